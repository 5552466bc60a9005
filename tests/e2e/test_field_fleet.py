# SPDX-License-Identifier: Apache-2.0
"""Field cases through the fleet view, held against the direct answers of the API server."""

import base64
import json
import os
import random
import signal
import time

import pytest

from clock import scaled, wait_until
from fleet import ALL, PARTIAL_LIST, STAR, Fleet, bare, key, short
from fleet_clusters import CM, PODS, BackendCluster, LinkedFleet
from h2client import H2Client
from procs import Process
from scripted_fleet import THINGS, ScriptedFleet
from world import World, gauge

MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def linked(binaries, backend, workdir):
    """The API server that this run is about, as the only cluster of a fleet."""
    world = World(workdir / "field-fleet", binaries)
    made = LinkedFleet(world, [BackendCluster("c1", backend, world.folder)])
    for path in (CM, PODS):
        wait_until(lambda p=path: made.compare(p) is None, 60, f"{path} in step")
    yield made
    world.close()


@pytest.fixture
def space(linked):
    """An own namespace's path, and the cluster."""
    name = f"ff-{os.getpid()}-{random.SystemRandom().randrange(10**6)}"
    linked.clusters["c1"].ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return f"/api/v1/namespaces/{name}/configmaps"


def config(name, labels=None, data=None):
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": labels or {}}, "data": data or {}}


def make(linked, path, name, labels=None, data=None):
    return linked.clusters["c1"].ask("POST", path, config(name, labels, data))


def raw(linked, path):
    return linked.client().get(STAR + path, timeout=30)


def start(linked, path, query):
    stream = linked.client().start("GET", f"{STAR}{path}?watch=1{query}")
    return stream.wait_headers(10)


def events(stream):
    return [json.loads(x) for x in stream.body.rpartition(b"\n")[0].splitlines()]


def wait_events(stream, count, timeout=20):
    try:
        stream.wait(lambda s: s.body.count(b"\n") >= count, timeout)
    except TimeoutError as error:
        raise AssertionError([short(e) for e in events(stream)]) from error
    return events(stream)


def version(linked, path):
    return raw(linked, path).json()["metadata"]["resourceVersion"]


# -- F016

QUERIES = ["labelSelector=&labelSelector=app%20in%20(a,b)", "labelSelector=app+in+%28a%2Cb%29",
           "labelSelector=app%2Bx", "labelSelector=%21legacy,tier%20notin%20(db)",
           "labelSelector=a=b&labelSelector=c=d", "labelSelector=a%3Db%00", "labelSelector=a%zz",
           "labelSelector=app%20in%20(a," + ",".join(f"value-{n:04}" for n in range(400)) + ")",
           "fieldSelector=metadata.name%3Dm-1&",
           "labelSelector=a%20in%20()", "labelSelector=a%20in%20(,b)", "labelSelector=!a",
           "labelSelector=a==b", "labelSelector=a!=b", "labelSelector=,", "labelSelector=a,",
           "labelSelector=n%3E1", "labelSelector=n%3C2,n", "labelSelector=a=b;c=d",
           "labelSelector=a%20b", "fieldSelector=metadata.name%21%3Dm-1",
           "fieldSelector=metadata.name%3Dm-1,metadata.name%3Dm-2",
           "fieldSelector=metadata.namespace%3Dnone", "labelSelector=-a",
           "labelSelector=a/b/c", "labelSelector=" + "k" * 64, "labelselector=a=b",
           "labelSelector=app%20in%20(a),app%20notin%20(a)", "watch=0&labelSelector=a",
           "limit=-1", "limit=abc", "resourceVersion=abc", "resourceVersionMatch=Exact"]
LABELS = [{"app": "a"}, {"app": "b", "tier": "db"}, {"legacy": "1"}, {"a": "b"},
          {"a": "b", "c": "d"}, {}, {"app": "x"}, {"n": "2"}, {"a": ""}]


@pytest.fixture(scope="module")
def selected(linked):
    name = f"sel-{os.getpid()}"
    linked.clusters["c1"].ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    path = f"/api/v1/namespaces/{name}/configmaps"
    for n, labels in enumerate(LABELS):
        make(linked, path, f"m-{n}", labels)
    wait_until(lambda: len(raw(linked, path).json()["items"]) >= len(LABELS), 20, "in step")
    return path


# What the simulator is less strict about than the API server.
LAX = ("=a%zz", "%00", "=a,", "=-a", "=a/b/c", "=kkk", "=abc", "=a=b;c=d")


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q[:50])
def test_field_F016_a_selector_means_what_it_means_to_the_server(linked, selected, query):
    if not linked.clusters["c1"].backend.is_real and any(x in query for x in LAX):
        pytest.skip("the simulator does not go that far: runs on the real backends")
    direct = linked.clusters["c1"].get(f"{selected}?{query}")
    ours = raw(linked, f"{selected}?{query}")
    assert ours.status == direct.status, (ours, direct)
    if direct.status != 200:
        assert ours.json()["kind"] == "Status"
        return
    names = [i["metadata"]["name"] for i in direct.json()["items"]]
    assert [i["metadata"]["name"] for i in ours.json()["items"]] == names


def test_field_F016_a_selector_of_too_many_requirements_is_refused(linked, selected):
    answer = raw(linked, f"{selected}?labelSelector={'a%3Db%2C' * 500}a")
    assert answer.status == 400 and "requirements" in answer.json()["message"]


# -- F017

@pytest.mark.parametrize("field", [False, True])
def test_field_F017_an_object_that_leaves_the_selector(linked, space, field):
    """A watch of the API server itself is told the same."""
    cluster = linked.clusters["c1"]
    make(linked, space, "p", {"tier": "web"}, {"image": "1"})
    make(linked, space, "q", {"tier": "web"})
    query = "&labelSelector=tier%3Dweb" + ("&fieldSelector=metadata.name%3Dp" if field else "")
    wait_until(lambda: len(raw(linked, space).json()["items"]) >= 2, 20, "in step")
    ours = start(linked, space, f"{query}&resourceVersion={version(linked, space)}")
    with cluster.connect() as client:
        since = client.get(space).json()["metadata"]["resourceVersion"]
        direct = client.start("GET", f"{space}?watch=1{query}&resourceVersion={since}")
        count = 0
        for patch, more in (
                ({"metadata": {"labels": {"tier": "db"}}}, 1), ({"data": {"image": "2"}}, 0),
                ({"metadata": {"labels": {"tier": "web"}}}, 1),
                ({"metadata": {"labels": {"tier": "db"}, "annotations": {"a": "b"}}}, 1)):
            cluster.ask("PATCH", f"{space}/p", patch, MERGE)
            count += more
            if more:
                wait_events(ours, count)
                direct.wait(lambda s, c=count: s.body.count(b"\n") >= c, 20)
            else:  # seen in a list: the next event is the next change
                wait_until(lambda: '"image":"2"' in raw(linked, space).body.decode(), 20, "2")

        def told(stream):
            found = []
            for event in events(stream):
                obj = bare(event["object"])
                del obj["metadata"]["resourceVersion"]
                found.append((event["type"], obj))
            return found
        assert told(ours) == told(direct)
        assert [e["type"] for e in events(ours)] == ["DELETED", "ADDED", "DELETED"]
        direct.reset()
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events(ours)]
    assert versions == sorted(set(versions))
    ours.reset()


# -- F018

@pytest.mark.parametrize("how", ["connected", "link", "agent"])
def test_field_F018_another_object_of_the_same_name(linked, space, how):
    cluster = linked.clusters["c1"]
    first = make(linked, space, "x", {"l": "1"}, {"a": "1", "b": "2"})
    wait_until(lambda: len(raw(linked, f"{space}?labelSelector=l").json()["items"]) == 1, 20, "x")
    watch = start(linked, space, f"&resourceVersion={version(linked, space)}")
    if how == "link":
        linked.links["c1"].signal(signal.SIGUSR1)
    elif how == "agent":
        linked.agents["c1"].kill()
    cluster.ask("DELETE", f"{space}/x")
    second = make(linked, space, "x", None, {"a": "1"})
    if how == "link":
        linked.links["c1"].signal(signal.SIGUSR2)
        linked.links["c1"].signal(signal.SIGUSR1)
    elif how == "agent":
        linked.agents["c1"] = linked.world.restart_agent(linked.agents["c1"])
    seen = [e for e in wait_events(watch, 2, 40) if e["object"]["metadata"]["name"] == "x"]
    assert [(e["type"], e["object"]["metadata"]["uid"]) for e in seen] == [
        ("DELETED", first["metadata"]["uid"]), ("ADDED", second["metadata"]["uid"])]
    assert seen[1]["object"]["data"] == {"a": "1"}
    assert "l" not in seen[1]["object"]["metadata"]["labels"]
    item, = [i for i in raw(linked, space).json()["items"] if i["metadata"]["name"] == "x"]
    assert bare(item) == bare(cluster.ask("GET", f"{space}/x"))
    watch.reset()


# -- F021

LIST = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


@pytest.mark.parametrize("query, objects, bookmark", [
    (LIST + "&allowWatchBookmarks=true", 3, True),
    (LIST + "&allowWatchBookmarks=true&resourceVersion=", 0, True),
    (LIST + "&allowWatchBookmarks=true&resourceVersion=0", 3, True),
    (LIST, 3, False)])
def test_field_F021_initial_events_end_with_their_mark(linked, space, query, objects, bookmark):
    for n in range(objects):
        make(linked, space, f"i-{n}")
    wait_until(lambda: len([i for i in raw(linked, space).json()["items"]
                            if i["metadata"]["name"].startswith("i-")]) == objects, 20, "in step")
    count = len(raw(linked, space).json()["items"])
    watch = start(linked, space, query)
    seen = wait_events(watch, count + bookmark)
    assert [e["type"] for e in seen] == ["ADDED"] * count + ["BOOKMARK"] * bookmark
    if bookmark:
        mark = seen[-1]["object"]["metadata"]
        assert mark["annotations"]["k8s.io/initial-events-end"] == "true"
        assert int(mark["resourceVersion"]) >= int(version(linked, space)) - 10**9
    make(linked, space, "live")
    assert wait_events(watch, count + bookmark + 1)[-1]["object"]["metadata"]["name"] == "live"
    watch.reset()


@pytest.mark.parametrize("query", [
    "sendInitialEvents=true", "sendInitialEvents=true&resourceVersionMatch=Exact",
    "sendInitialEvents=false", "resourceVersionMatch=NotOlderThan",
    "watch=0&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"])
def test_field_F021_what_is_asked_wrongly_is_refused_as_the_server_does(linked, space, query):
    direct = linked.clusters["c1"].get(f"{space}?{'' if 'watch' in query else 'watch=1&'}{query}")
    ours = raw(linked, f"{space}?{'' if 'watch' in query else 'watch=1&'}{query}")
    assert ours.status == direct.status >= 400, (ours, direct)
    assert ours.json()["reason"] == direct.json()["reason"]


def test_field_F021_a_cluster_that_is_away_holds_up_no_mark(linked, space):
    make(linked, space, "there")
    wait_until(lambda: b'"there"' in raw(linked, space).body, 20, "in step")
    linked.agents["c1"].kill()
    linked.world.wait_away("c1")
    watch = start(linked, space, LIST + "&allowWatchBookmarks=true")
    watch.wait(lambda s: b"initial-events-end" in s.body, 20)
    assert b'"there"' in watch.body
    watch.reset()
    linked.agents["c1"] = linked.world.restart_agent(linked.agents["c1"])
    wait_until(lambda: linked.compare(CM) is None, 30, "back")


# -- F008

def test_field_F008_objects_of_a_megabyte_come_with_all_others(world):
    fleet = Fleet(world, names=("c1",), pods=10)
    cluster = fleet.clusters["c1"]
    path = "/api/v1/namespaces/default/configmaps"

    def large(name):
        return config(name, data={"k": base64.b64encode(os.urandom(750_000)).decode()})
    for n in range(60):
        cluster.ask("POST", path, large(f"big-{n}"))

    def sizes():
        return {i["metadata"]["name"]: len(i["data"]["k"])
                for i in fleet.list(path)["items"] if i["metadata"]["name"][:4] == "big-"}
    wait_until(lambda: len(sizes()) == 60, 60, "all of them", every=0.5)
    assert set(sizes().values()) == {1_000_000}
    watch = fleet.watch(PODS, resourceVersion=fleet.list(PODS)["metadata"]["resourceVersion"])
    cluster.ask("PUT", f"{path}/big-7", large("big-7"))
    begun = time.monotonic()
    fleet.pod("c1", "small")
    watch.wait(lambda e: any(x["object"]["metadata"]["name"] == "small" for x in e))
    assert time.monotonic() - begun < scaled(2)
    direct = cluster.ask("GET", f"{path}/big-7")
    wait_until(lambda: direct["data"] == next(
        i["data"] for i in fleet.list(path, fieldSelector="metadata.name=big-7")["items"]), 20,
        "the new one")
    assert not world.hub.grep("level=error")


# -- F009

def tail(stream):
    return b"".join(piece for _, piece in stream.chunks[-4:])


def test_field_F009_watchers_that_do_not_read_cost_what_their_windows_hold(world):
    fleet = Fleet(world, pods=2000)
    fleet.wait_synced(timeout=60)
    before = world.hub.memory_kib()
    with H2Client(world.hub.api, world.context(), window=65535) as client:
        stuck = [client.start("GET", f"{STAR}{PODS}?watch=1", auto_window=False)
                 for _ in range(100)]
        for stream in stuck:
            stream.wait_bytes(1)
        other = fleet.watch(PODS, resourceVersion=fleet.list(PODS)["metadata"]["resourceVersion"])
        fleet.clusters["c1"].ask("POST", "/kubesim/churn?rate=1000&mix=pods&all=true")
        other.stream.wait(lambda s: s.received > 20 << 20, 90)
        fleet.clusters["c1"].ask("POST", "/kubesim/churn?rate=0&mix=pods&all=true")
        begun = time.monotonic()
        fleet.pod("c2", "quick")
        other.stream.wait(lambda s: b'"name":"quick"' in tail(s), 20)
        assert time.monotonic() - begun < scaled(2)
        # The log of changes has its own bound of 64 MiB; a hundred whole lists would be 400 MiB.
        assert world.hub.memory_kib() - before < 150 * 1024
        for stream in stuck[1:]:
            stream.reset()
        # It goes on if the log reaches back to it; if not, it ends as kube-apiserver ends one.
        slow = stuck[0]
        slow.auto_window = True
        slow.grant(1 << 20)
        slow.wait(lambda s: s.ended or b'"name":"quick"' in tail(s), 60)
        for line in slow.body.rpartition(b"\n")[0].splitlines():
            assert json.loads(line)["type"] in ("ADDED", "MODIFIED", "DELETED")
        slow.reset()
        other.close()
    wait_until(lambda: world.metrics()["kuberelay_hub_fleet_watchers"] == 0, 10, "gone")


def test_field_F009_a_watcher_that_the_log_has_outrun_is_ended_and_lists_again(world):
    """More than the 64 MiB that are kept of changes, none of which compresses."""
    fleet = Fleet(world, pods=4, fleetLogEvents=100)
    path = "/api/v1/namespaces/default/configmaps"
    cluster = fleet.clusters["c1"]

    def big(number):
        text = base64.b64encode(os.urandom(300 << 10)).decode()
        return config(f"big-{number % 10}", data={"number": str(number), "text": text})
    for number in range(10):
        cluster.ask("POST", path, big(number))
    fleet.wait_synced(path, timeout=60)
    start_at = fleet.list(path)["metadata"]["resourceVersion"]
    before = world.hub.memory_kib()
    with H2Client(world.hub.api, world.context(), window=65535) as client:
        stuck = client.start("GET", f"{STAR}{path}?watch=1&resourceVersion={start_at}",
                             auto_window=False)
        stuck.wait_headers(10)
        other = fleet.watch(path, resourceVersion=start_at)
        for number in range(10, 310):
            cluster.ask("PUT", f"{path}/big-{number % 10}", big(number))
            # One by one, so that the agent does not leave any out.
            other.stream.wait(lambda s, n=number: s.received >= (n - 9) * 400 << 10, 20)
        # The log has its bound; objects, texts under way and the heap's holes are beside it.
        assert world.hub.memory_kib() - before < 200 * 1024
        stuck.auto_window = True
        stuck.grant(8 << 20)
        assert stuck.wait_finish(60) == "end", "as kube-apiserver ends one that cannot keep up"
        lines = stuck.body.splitlines(keepends=True)
        seen = [json.loads(line) for line in lines]  # behind a whole event
        numbers = [int(e["object"]["data"]["number"]) for e in seen]
        assert 0 < len(numbers) < 300 and numbers == list(range(10, 10 + len(numbers)))
        last = seen[-1]["object"]["metadata"]["resourceVersion"]
        answer = fleet.get(path, watch=1, resourceVersion=last)
        assert answer.status == 410 or answer.json()["object"]["code"] == 410, answer
        fresh = fleet.list(path)
        assert {i["data"]["number"] for i in fresh["items"] if i["metadata"]["name"][:4] == "big-"} == {
            str(n) for n in range(300, 310)}
        other.close()
    wait_until(lambda: world.metrics()["kuberelay_hub_fleet_watchers"] == 0, 10, "gone")


# -- F014

ALICE = {"users": ["alice"], "clusters": ["c1"], "resources": ["pods", "configmaps"],
         "namespaces": ["a"]}


@pytest.fixture(scope="module")
def shop(binaries, workdir):
    world = World(workdir / "fleet-alice", binaries)
    fleet = Fleet(world, pods=4, readers=(ALL, ALICE))
    for name, cluster in fleet.clusters.items():
        for space in ("a", "b"):
            cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
            for n in range(3):
                fleet.pod(name, f"{space}-{n}", space, {"of": space})
        cluster.ask("POST", "/api/v1/namespaces/a/secrets",
                    {"metadata": {"name": "s"}, "stringData": {"k": "hidden-value"}})
    fleet.wait_synced()
    yield fleet
    world.close()


MINE = [("c1", "a", f"a-{n}") for n in range(3)]


@pytest.mark.parametrize("query", [
    {}, {"labelSelector": "of"}, {"labelSelector": "of in (a,b)"}, {"labelSelector": "of!=b"},
    {"labelSelector": "kuberelay.io/cluster in (c1,c2)"}, {"clusters": "c1,c2"},
    {"fieldSelector": "metadata.namespace!=default"}, {"resourceVersion": "0"}])
def test_field_F014_lists_show_what_the_reader_may_see(shop, query):
    answer = shop.list(PODS, user="alice", **query)
    assert [key(i) for i in answer["items"]] == MINE
    assert "remainingItemCount" not in answer["metadata"]
    page = shop.list(PODS, user="alice", limit=2, **query)
    assert page["metadata"].get("remainingItemCount", 1) == 1
    watch = shop.watch(PODS, user="alice", **{k: v for k, v in query.items()
                                             if k != "resourceVersion"})
    assert {key(e["object"]) for e in watch.wait(lambda e: len(e) >= 3)} == set(MINE)
    watch.close()


@pytest.mark.parametrize("query", [
    {"labelSelector": "of=b"}, {"fieldSelector": "metadata.namespace=b"}, {"clusters": "c2"},
    {"labelSelector": "kuberelay.io/cluster=c2"}, {"fieldSelector": "metadata.name=b-0"}])
def test_field_F014_no_query_reaches_what_is_hidden(shop, query):
    answer = shop.get(PODS, user="alice", **query)
    assert answer.status == 403 or answer.json()["items"] == []
    assert b"b-0" not in answer.body


@pytest.mark.parametrize("path", [
    "/api/v1/secrets", "/api/v1/namespaces/a/secrets", "/api/v1/nodes", "/api/v1/services",
    "/api/v1/namespaces"])
@pytest.mark.parametrize("query", ["", "?watch=1", "?limit=1", "?watch=1&sendInitialEvents=true&"
                                   "resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"])
def test_field_F014_other_kinds_are_403(shop, path, query):
    answer = shop.client("alice").get(f"{STAR}{path}{query}", timeout=20)
    assert answer.status == 403 and answer.json()["reason"] == "Forbidden"
    assert b"hidden-value" not in answer.body


@pytest.mark.parametrize("query", ["", "?limit=1", "?watch=1&timeoutSeconds=2"])
def test_field_F014_another_namespace_is_403(shop, query):
    """As an API server says it, and the same whether any cluster has that namespace."""
    for space in ("b", "nowhere"):
        answer = shop.client("alice").get(f"{STAR}/api/v1/namespaces/{space}/pods{query}",
                                          timeout=20)
        verb = "watch" if "watch" in query else "list"
        assert answer.status == 403 and answer.json()["reason"] == "Forbidden"
        assert answer.json()["message"] == (
            f'pods is forbidden: User "alice" cannot {verb} resource "pods" in API group "" in the '
            f'namespace "{space}" (fleet view)')


def test_field_F014_a_cluster_that_is_hidden_looks_like_none(shop):
    answers = [shop.get("/api/v1/namespaces/a/pods", user="alice", clusters=c)
               for c in ("c2", "nowhere")]
    bodies = [json.loads(a.body) for a in answers]
    for body in bodies:
        body["metadata"].pop("resourceVersion")
    assert [a.status for a in answers] == [200, 200] and bodies[0] == bodies[1]
    assert bodies[0]["items"] == []


def test_field_F014_what_may_be_asked_is_what_is_answered(shop):
    """SelfSubjectAccessReview, by which kubectl auth can-i asks."""
    def can(verb, namespace):
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                  "spec": {"resourceAttributes": {"verb": verb, "resource": "pods",
                                                  "namespace": namespace}}}
        answer = shop.client("alice").request(
            "POST", f"{STAR}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            [("content-type", "application/json")], json.dumps(review).encode())
        assert answer.status == 201, answer
        return answer.json()["status"]["allowed"]
    assert can("list", "a") and can("watch", "a") and can("list", "")
    assert not can("list", "b") and not can("watch", "nowhere") and not can("get", "a")


def test_field_F014_a_token_of_somebody_else_opens_nothing(shop):
    token = shop.list(PODS, limit=1)["metadata"]["continue"]
    answer = shop.get(PODS, user="alice", limit=100, **{"continue": token})
    assert answer.status == 410
    assert b"b-0" not in answer.body


def test_field_F014_changes_of_others_are_not_told(shop):
    watch = shop.watch(PODS, user="alice",
                       resourceVersion=shop.list(PODS)["metadata"]["resourceVersion"])
    for cluster in shop.names:
        for space in ("b", "a"):
            shop.pod(cluster, "new", space)
            shop.drop(cluster, "new", space)
    shop.pod("c1", "last", "a")
    seen = watch.wait(lambda e: any(x["object"]["metadata"]["name"] == "last" for x in e))
    assert {key(e["object"])[:2] for e in seen} == {("c1", "a")}
    shop.drop("c1", "last", "a")
    watch.close()
    shop.wait_synced()


def test_field_F014_secrets_are_not_held_at_all(shop):
    """Not asked for by a profile: not even the admin gets one, and no byte of it is there."""
    assert shop.get("/api/v1/secrets").status == 403
    assert not any("secrets" in line for line in shop.world.metrics())


# -- F037

def test_field_F037_a_link_that_says_nothing_is_found_dead(world, backend):
    site = LinkedFleet(world, [BackendCluster("c1", backend, world.folder)],
                       agent={"silenceTimeout": "4s"}, silenceTimeout="4s", heartbeat="2s")
    wait_until(lambda: site.compare(CM) is None, 30, "in step")
    path = "/api/v1/namespaces/m1/configmaps"
    name = f"silent-{random.SystemRandom().randrange(10**9)}"
    watch = start(site, path, f"&resourceVersion={version(site, path)}")
    site.links["c1"].signal(signal.SIGUSR1)
    make(site, path, name)
    begun = time.monotonic()
    wait_until(lambda: "1 stale" in (raw(site, path).get("warning") or ""), 30, "found dead")
    assert time.monotonic() - begun < scaled(10)
    assert site.client().get("/clusters/c1/version", timeout=20).status == 503
    site.links["c1"].signal(signal.SIGUSR1)
    assert short(wait_events(watch, 1, 30)[0])[:3] == ("ADDED", "c1", name)
    wait_until(lambda: site.compare(CM) is None, 30, "in step again")
    assert [short(e)[:3] for e in events(watch)] == [("ADDED", "c1", name)]
    watch.reset()
    site.clusters["c1"].ask("DELETE", f"{path}/{name}")


# -- F044

def test_field_F044_series_do_not_grow_with_what_readers_name(shop):
    client, world = shop.client(), shop.world

    def ask(number):
        stem = f"n{number}"
        for path in (f"/api/v1/namespaces/{stem}/pods", f"/apis/{stem}.io/v1/things",
                     f"/api/v1/{stem}", f"{PODS}?labelSelector={stem}", f"/{stem}",
                     f"{PODS}?clusters={stem}", f"/api/v1/namespaces/a/pods/{stem}",
                     f"{PODS}?fieldSelector=metadata.name%3D{stem}&limit=1"):
            yield client.start("GET", STAR + path, [("user-agent", stem)])

    def series():
        return sum(len(world.metrics(p)) for p in (world.hub, *shop.agents.values()))
    for stream in ask(0):
        stream.wait_finish(20)
    before = series()
    for number in range(1, 300):
        for stream in list(ask(number)):
            assert stream.wait_finish(20) == "end"
    for number in range(30):
        assert shop.get(PODS, user=f"user{number}").status == 403
        shop.pod("c1", f"series-{number}", "b")
        shop.drop("c1", f"series-{number}", "b")
    assert series() <= before + 10
    assert gauge(world.metrics(), "kuberelay_hub_fleet_watchers") == 0
    shop.wait_synced()


# -- F027

def test_field_F027_a_type_that_one_cluster_has(world):
    made = ScriptedFleet(world)
    folder = world.folder / "sim"
    os.makedirs(folder)
    sim = Process("kubesim", [
        world.binaries["kubesim"], "--listen", "127.0.0.1:0", "--clusters", 1, "--names", "c1",
        "--pods", 3, "--nodes", 1, "--churn", 0, "--seed", 1, "--pki", folder], str(folder))
    world.processes.append(sim)
    sim.wait_line(r"event=ready\b")
    world.start_agent("c1", str(folder / "kubeconfig-c1"))
    wait_until(lambda: made.get(PODS).status == 200
               and len(made.get(PODS).json()["items"]) == 3, 20, "pods of c1 alone")
    answer = made.get(THINGS)
    assert answer.status == 200 and answer.json()["items"] == []
    assert answer.json()["kind"] == "ThingList"
    made.things.put("only", '"x":1')
    made.wait_shown('"name":"only"')
    assert {key(i)[0] for i in made.get(PODS).json()["items"]} == {"c1"}
    with world.client() as client:
        partial = client.get(STAR + THINGS, [("accept", PARTIAL_LIST)]).json()
    assert [key(i)[0] for i in partial["items"]] == ["s1"]
    made.close()
