# SPDX-License-Identifier: Apache-2.0
"""The fleet view against the union of what the clusters answer directly: lists, watches, paging,
tables, selectors, and clusters that go away and come back."""

import gzip
import json
import re
import time

import pytest

from clock import scaled, wait_until
from fleet import PARTIAL, PARTIAL_LIST, STAR, TABLE, Fleet, bare, cluster_of, key, short
from h2client import H2Client
from world import World

PODS = "/api/v1/pods"
DEFAULT = "/api/v1/namespaces/default/pods"
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan",
           "allowWatchBookmarks": "true"}


@pytest.fixture(scope="module")
def fleet_world(binaries, workdir):
    from world import World
    made = World(workdir / "fleet-world", binaries)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared(fleet_world):
    """Two clusters for tests that leave no trace."""
    made = Fleet(fleet_world)
    for name in made.names:
        made.pod(name, "same", labels={"team": name})
    made.pod("c1", "only")
    made.wait_synced()
    return made


@pytest.fixture
def fleet(world):
    """Clusters of one's own, to be killed and changed."""
    made = Fleet(world)
    for name in made.names:
        made.pod(name, "same")
    made.wait_synced()
    return made


def version(answer):
    return int(answer["metadata"]["resourceVersion"])


# -- lists

@pytest.mark.parametrize("path", [PODS, DEFAULT, "/api/v1/nodes", "/api/v1/namespaces",
                                  "/apis/apps/v1/deployments", "/apis/apps/v1/replicasets"])
def test_a_list_is_the_union_of_the_clusters(shared, path):
    shared.wait_synced(path)
    answer = shared.list(path)
    assert shared.shown(answer) == shared.union(path)
    assert len(answer["items"]) == len(shared.union(path)), "an object twice"
    assert version(answer) > 0
    for item in answer["items"]:
        cluster = cluster_of(item)
        assert item["metadata"]["labels"]["kuberelay.io/cluster"] == cluster
        annotations = item["metadata"]["annotations"]
        assert annotations["multicluster.x-k8s.io/cluster-name"] == cluster
        assert "kuberelay.io/slimmed" not in annotations
        assert 0 < int(item["metadata"]["resourceVersion"]) <= version(answer)


def test_a_list_is_ordered_by_namespace_name_and_cluster(shared):
    keys = [key(i) for i in shared.list(PODS)["items"]]
    assert keys == sorted(keys, key=lambda k: (k[1], k[2], k[0]))


@pytest.mark.parametrize("query, chosen", [
    ({"labelSelector": "kuberelay.io/cluster=c1"}, lambda k, o: k[0] == "c1"),
    ({"labelSelector": "kuberelay.io/cluster notin (c1)"}, lambda k, o: k[0] != "c1"),
    ({"labelSelector": "team"}, lambda k, o: "team" in o["metadata"].get("labels", {})),
    ({"labelSelector": "team!=c1"},
     lambda k, o: o["metadata"].get("labels", {}).get("team") != "c1"),
    ({"clusters": "c2"}, lambda k, o: k[0] == "c2"),
    ({"fieldSelector": "metadata.name=same"}, lambda k, o: k[2] == "same"),
    ({"fieldSelector": "status.phase=Running"}, lambda k, o: o["status"]["phase"] == "Running"),
    ({"fieldSelector": "status.phase!=Running,metadata.namespace=default"},
     lambda k, o: o["status"]["phase"] != "Running" and k[1] == "default"),
])
def test_selectors_choose_what_they_would_choose_of_the_union(shared, query, chosen):
    wanted = {k: o for k, o in shared.union(PODS).items() if chosen(k, o)}
    assert shared.shown(shared.list(PODS, **query)) == wanted


def test_a_reader_of_a_part_sees_that_part(shared):
    mine = shared.list(PODS, user="bob")
    assert {key(i)[0] for i in mine["items"]} == {"c1"}
    assert shared.get("/api/v1/nodes", user="bob").status == 403
    assert shared.get(PODS, user="mallory").status == 403


@pytest.mark.parametrize("method, path, status", [
    ("POST", PODS, 405), ("DELETE", DEFAULT, 405), ("PUT", f"{DEFAULT}/same", 405),
    ("GET", f"{DEFAULT}/same", 405), ("GET", f"{DEFAULT}/same/log", 405),
    ("GET", "/metrics", 405), ("GET", "/openapi/v2", 404), ("GET", "/openapi/v3", 200),
    ("GET", "/apis/none.example/v1/things", 404), ("GET", "/version", 200),
    ("GET", "/readyz", 200), ("GET", f"{PODS}?fieldSelector=spec.none=1", 400),
    ("GET", "/api/v1/secrets", 403),
])
def test_what_is_not_served_says_so(shared, method, path, status):
    answer = shared.client().request(method, f"/clusters/*{path}")
    assert answer.status == status, answer
    if status >= 400:
        assert answer.json()["kind"] == "Status" and answer.json()["code"] == status


def test_who_acts_as_another_sees_what_that_one_sees(world):
    fleet = Fleet(world, impersonation=["user:admin=user:bob"])
    fleet.wait_synced()
    answer = fleet.client().get(f"/clusters/*{PODS}", [("impersonate-user", "bob")])
    assert {key(i)[0] for i in answer.json()["items"]} == {"c1"}
    refused = fleet.client().get(f"/clusters/*{PODS}", [("impersonate-user", "carol")])
    assert refused.status == 403


def test_http_1_gets_the_same(shared):
    with shared.world.h1() as client:
        answer = client.get(f"/clusters/*{PODS}")
        assert answer.get("transfer-encoding") == "chunked"
        assert shared.shown(answer.json()) == shared.union(PODS)
        assert client.get(f"/clusters/*{PODS}?limit=3").json()["metadata"]["continue"]
        assert client.get(f"/clusters/*{DEFAULT}/same").status == 405
    with shared.world.h1() as client:
        client.head("GET", f"/clusters/*{DEFAULT}?watch=1&timeoutSeconds=2")
        status, _ = client.read_head()[:2]
        assert status == 200
        lines = b""
        while piece := client.read_chunk():
            lines += piece
        kinds = {json.loads(line)["type"] for line in lines.splitlines()}
        assert kinds == {"ADDED"}


def test_a_reader_that_stops_holds_up_nobody(world):
    fleet = Fleet(world, pods=5000)
    fleet.wait_synced(timeout=60)
    small = world.hub.memory_kib()
    with H2Client(world.hub.api, world.context(), window=65535) as client:
        stuck = [client.start("GET", f"/clusters/*{PODS}", auto_window=False) for _ in range(20)]
        for stream in stuck:
            stream.wait_bytes(1)
        begun = time.monotonic()
        assert len(fleet.list(PODS, limit=100)["items"]) == 100
        assert time.monotonic() - begun < scaled(5)
        assert world.hub.memory_kib() - small < 20 * 1024, "more than a chunk for each"
        for stream in stuck:
            stream.reset()


# -- discovery

@pytest.mark.parametrize("path", ["/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"])
def test_discovery_has_what_the_clusters_have(shared, path):
    answer = shared.get(path)
    direct = shared.clusters["c1"].ask("GET", path)
    assert answer.status == 200 and answer.json()["kind"] == direct["kind"]
    if "resources" in direct:
        ours = {r["name"]: r for r in answer.json()["resources"]}
        theirs = {r["name"]: r for r in direct["resources"] if "/" not in r["name"]
                  and {"list", "watch"} <= set(r["verbs"])}
        assert set(ours) == set(theirs)
        for name, one in ours.items():
            assert one["verbs"] == ["list", "watch"]
            for field in ("kind", "namespaced", "shortNames", "singularName"):
                assert one.get(field) == theirs[name].get(field), (name, field)
    again = shared.client().get(f"/clusters/*{path}", [("if-none-match", answer.get("etag"))])
    assert again.status == 304 and not again.body and again.get("vary") == "Accept"


@pytest.mark.parametrize("form", ["v2", "v2beta1"])
def test_discovery_is_aggregated_where_asked(shared, form):
    accept = f"application/json;g=apidiscovery.k8s.io;v={form};as=APIGroupDiscoveryList"
    for path in ("/api", "/apis"):
        answer = shared.get(path, accept)
        assert answer.get("content-type") == accept
        for group in answer.json()["items"]:
            assert all(v["freshness"] == "Current" for v in group["versions"])
            assert all(r["verbs"] == ["list", "watch"] for v in group["versions"]
                       for r in v["resources"])
    assert "apps" in [g["metadata"].get("name") for g in answer.json()["items"]]


# -- check 57

def test_check_57_kubectl_prints_both_clusters(shared):
    tool = shared.kubectl()
    lines = tool.ok("get", "pods", "-A").splitlines()
    assert lines[0].split()[:3] == ["NAMESPACE", "CLUSTER", "NAME"]
    rows = [line.split()[:3] for line in lines[1:]]
    assert sorted(rows) == sorted([ns, c, name] for c, ns, name in shared.union(PODS))
    same = [r for r in rows if r[2] == "same"]
    assert same == [["default", "c1", "same"], ["default", "c2", "same"]]
    wide = tool.ok("get", "pods", "-A", "-o", "wide").splitlines()
    assert "NODE" in wide[0] and len(wide) == len(lines)


def test_check_57_kubectl_names_the_kinds_of_several(shared):
    out = shared.kubectl().ok("get", "pods,nodes")
    assert re.search(r"^c1 +pod/same ", out, re.M) and re.search(r"^c2 +node/", out, re.M)


def test_check_57_kubectl_selects_sorts_and_labels(shared):
    tool = shared.kubectl()
    rows = tool.ok("get", "pods", "-l", "kuberelay.io/cluster=c1", "--no-headers").splitlines()
    assert rows and all(r.split()[0] == "c1" for r in rows)
    rows = tool.ok("get", "pods", "-A", "--sort-by=.metadata.name", "--no-headers").splitlines()
    names = [r.split()[2] for r in rows]
    assert names == sorted(names) and len(rows) == len(shared.union(PODS))
    assert "kuberelay.io/cluster=c2" in tool.ok("get", "pods", "--show-labels")
    rows = tool.ok("get", "pods", "-A", "--no-headers", "--chunk-size=3").splitlines()
    assert len(rows) == len(shared.union(PODS))


def test_check_57_kubectl_watches(fleet):
    running = fleet.kubectl().start("get", "pods", "-w", "--output-watch-events")
    try:
        running.wait_line(r"^ADDED +c2 +same ")
        fleet.pod("c2", "fresh")
        running.wait_line(r"^ADDED +c2 +fresh ")
        fleet.drop("c1", "same")
        running.wait_line(r"^DELETED +c1 +same ")
    finally:
        running.stop()


def test_check_57_kubectl_against_an_absent_object_and_a_write(shared):
    tool = shared.kubectl()
    for args in (("get", "pod", "same"), ("delete", "pod", "same"), ("label", "pod", "same", "a=b")):
        result = tool.run(*args)
        assert result.code == 1 and "fleet view" in result.err, (args, result)
    assert ("c1", "default", "same") in shared.union(PODS)


def test_check_57_kubectl_asks_what_it_may(shared):
    """kubectl asks in protobuf from 1.32 on, in JSON before."""
    tool = shared.kubectl()
    assert tool.ok("auth", "can-i", "list", "pods").strip() == "yes"
    assert tool.run("auth", "can-i", "delete", "pods").code == 1
    assert tool.run("auth", "can-i", "get", "/metrics").code == 1


# -- tables and metadata (F042)

@pytest.mark.parametrize("include", [None, "None", "Metadata", "Object"])
def test_field_f042_a_list_as_table(shared, include):
    query = {"includeObject": include} if include else {}
    table = shared.list(PODS, TABLE, **query)
    direct = {}
    for name, cluster in shared.clusters.items():
        answer = cluster._client.get(PODS, [("accept", TABLE)]).json()
        for row in answer["rows"]:
            direct[key(row["object"], name)] = row["cells"]
        columns = answer["columnDefinitions"]
    assert table["kind"] == "Table" and table["apiVersion"] == "meta.k8s.io/v1"
    names = [c["name"] for c in table["columnDefinitions"]]
    assert names == ["Cluster"] + [c["name"] for c in columns]
    assert [c["name"] for c in table["columnDefinitions"] if c["format"] == "name"] == ["Name"]
    assert len(table["rows"]) == len(direct)
    age = names.index("Age")
    for row in table["rows"]:
        if include == "None":
            assert row["object"] is None
            continue
        one = key(row["object"])
        cells = [c for i, c in enumerate(row["cells"]) if i != age]
        assert cells == [one[0]] + [c for i, c in enumerate(direct[one]) if i + 1 != age]
        assert re.fullmatch(r"(\d+[smhdy])+", row["cells"][age]), row
        wanted = "Pod" if include == "Object" else "PartialObjectMetadata"
        assert row["object"]["kind"] == wanted
        assert ("spec" in row["object"]) == (include == "Object")


def test_field_f042_a_type_without_columns_and_a_watch(fleet):
    watch = fleet.watch(DEFAULT, TABLE)
    fleet.pod("c2", "fresh")
    seen = watch.wait(lambda e: any(x["object"]["rows"][0]["object"]["metadata"]["name"] == "fresh"
                                    for x in e))
    assert seen[0]["object"]["columnDefinitions"][0]["name"] == "Cluster"
    assert all(e["object"]["columnDefinitions"] is None for e in seen[1:])
    assert all(len(e["object"]["rows"]) == 1 for e in seen)
    watch.close()


def test_metadata_alone(shared):
    answer = shared.list(PODS, PARTIAL_LIST)
    assert answer["kind"] == "PartialObjectMetadataList"
    assert {key(i) for i in answer["items"]} == set(shared.union(PODS))
    assert all(set(i) == {"kind", "apiVersion", "metadata"} for i in answer["items"])
    watch = shared.watch(DEFAULT, PARTIAL)
    wanted = len(shared.list(DEFAULT)["items"])
    seen = watch.wait(lambda e: len(e) >= wanted)
    assert {e["object"]["kind"] for e in seen} == {"PartialObjectMetadata"}
    watch.close()


def test_what_only_protobuf_could_answer_is_406(shared):
    assert shared.get(PODS, "application/vnd.kubernetes.protobuf").status == 406
    both = shared.get(PODS, "application/vnd.kubernetes.protobuf,application/json")
    assert both.status == 200 and both.get("content-type") == "application/json"


# -- empty lists (F027)

@pytest.mark.parametrize("path", [PODS, DEFAULT])
@pytest.mark.parametrize("accept, field", [(None, "items"), (TABLE, "rows"),
                                           (PARTIAL_LIST, "items")])
def test_field_f027_an_empty_list_is_an_array(shared, path, accept, field):
    answer = shared.list(path, accept, labelSelector="nobody=has-this")
    assert answer[field] == [] and version(answer) > 0
    watch = shared.watch(path, accept and PARTIAL, resourceVersion=version(answer))
    assert watch.stream.status == 200
    watch.close()


def test_field_f027_clusters_that_are_away_are_named(fleet):
    before = fleet.shown(fleet.list(PODS))
    for agent in fleet.agents.values():
        agent.kill()
    for name in fleet.names:
        fleet.world.wait_away(name)
    answer = fleet.get(PODS)
    assert fleet.shown(answer.json()) == before, "a source that fails empties nothing"
    assert "2 stale" in answer.get("warning") and len(answer.get("warning")) <= 256
    for item in answer.json()["items"]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
                            item["metadata"]["annotations"]["kuberelay.io/stale-since"])
    assert fleet.list(PODS, labelSelector="nobody=x")["items"] == []


def test_field_f027_without_any_cluster_nothing_is_said_to_be_empty(world):
    fleet = Fleet(world, names=("c1",))
    fleet.agents["c1"].kill()
    hub = world.hub
    hub.kill()
    world.restart_hub(hub, fleetFile=fleet.file)
    assert fleet.get(PODS).status == 503


def test_a_registered_cluster_that_has_not_dialled_since_the_start_is_missed(world):
    hub_options = {"stateDir": str(world.folder / "state"),
                   "adminSocket": str(world.folder / "admin.sock")}
    fleet = Fleet(world, **hub_options)
    fleet.wait_synced()
    last = version(fleet.list(PODS))
    hub = world.hub
    fleet.agents["c2"].kill()
    hub.kill()
    world.restart_hub(hub, fleetFile=fleet.file, **hub_options)
    world.wait_cluster("c1")
    only = {"c1"}
    wait_until(lambda: {cluster_of(x) for x in fleet.list(PODS)["items"]} == only, 30, "c1")
    warned = "of 2 clusters 1 missing: c2"
    answer = fleet.get(PODS)
    assert warned in answer.get("warning") and len(answer.get("warning")) <= 256
    assert warned in fleet.get("/apis").get("warning")
    resumed = fleet.watch(PODS, resourceVersion=last)
    assert resumed.stream.wait_finish() == "end"
    assert [e["object"].get("code") for e in resumed.events()] == [410], "nothing is told as gone"
    assert fleet.get("/apis/of.nobody/v1/things").status == 503
    assert fleet.get(PODS, user="bob").get("warning") is None, "who may not see c2 is told nothing"
    direct = f"/clusters/c2{PODS}"
    assert fleet.client().get(direct).status == 503
    watched = fleet.client().get(f"{direct}?watch=1")
    assert (watched.status, int(watched.get("retry-after")) >= 1) == (429, True)
    assert fleet.client().get(f"/clusters/c9{PODS}").status == 403
    world.ctl("cluster", "remove", "c2", "--socket", hub_options["adminSocket"])
    assert fleet.get(PODS).get("warning") is None
    assert fleet.client().get(direct).status == 403


# -- paging (F026, check 59)

def test_field_f026_pages_are_one_moment(fleet):
    before = fleet.union(PODS)
    pages = fleet.pages(PODS, 5)
    got = [next(pages), next(pages)]
    last = [key(i) for i in got[1]["items"]][-1]
    behind = [k for k in before if (k[1], k[2], k[0]) > (last[1], last[2], last[0])
              and k[0] == "c2"]
    fleet.drop("c2", behind[-1][2], behind[-1][1])
    fleet.pod("c1", "zzz-new")
    fleet.agents["c2"].kill()
    fleet.agents["c2"] = fleet.world.restart_agent(fleet.agents["c2"])
    wait_until(lambda: behind[-1] not in fleet.shown(fleet.list(PODS))
               and ("c1", "default", "zzz-new") in fleet.shown(fleet.list(PODS)), 30, "changes")
    got += list(pages)
    items = [i for page in got for i in page["items"]]
    assert len(items) == len({key(i) for i in items})
    assert {key(i): bare(i) for i in items} == before
    assert len({version(p) for p in got}) == 1
    left = [p["metadata"].get("remainingItemCount", 0) for p in got]
    assert left == [len(before) - sum(len(p["items"]) for p in got[: n + 1])
                    for n in range(len(got))]
    watch = fleet.watch(PODS, resourceVersion=version(got[-1]))
    seen = watch.wait(lambda e: len(e) >= 2)
    kinds = sorted((e["type"], key(e["object"])) for e in seen)
    assert ("ADDED", ("c1", "default", "zzz-new")) in kinds
    assert ("DELETED", behind[-1]) in kinds
    watch.close()


@pytest.mark.parametrize("limit", [1, 10, 1000, 0])
def test_field_f026_any_page_size_gives_the_same(shared, limit):
    items = [i for page in shared.pages(PODS, limit) for i in page["items"]]
    assert len(items) == len({key(i) for i in items})
    assert {key(i): bare(i) for i in items} == shared.union(PODS)


def test_field_f026_a_token_serves_its_own_query_only(shared):
    token = shared.list(PODS, limit=2)["metadata"]["continue"]
    assert shared.get(PODS, limit=2, **{"continue": token}).status == 200
    for query in ({"labelSelector": "team"}, {"clusters": "c1"},
                  {"fieldSelector": "metadata.name=same"}):
        assert shared.get(PODS, limit=2, **query, **{"continue": token}).status == 410
    damaged = token[:30] + ("A" if token[30] != "A" else "B") + token[31:]
    answer = shared.get(PODS, limit=2, **{"continue": damaged})
    assert answer.status == 410 and answer.json()["reason"] == "Expired"
    assert shared.get(PODS, user="bob", limit=2, **{"continue": token}).status == 410
    assert shared.get(PODS, limit=2, resourceVersion=7, **{"continue": token}).status == 400


def churn(fleet, rate):
    fleet.clusters["c1"].ask("POST", f"/kubesim/churn?rate={rate}&mix=pods&all=true")


def test_check_59_pages_of_many_under_churn(world):
    fleet = Fleet(world, pods=10000)
    fleet.wait_synced(timeout=60)
    steady = set(fleet.union(PODS))
    churn(fleet, 100)
    pages = list(fleet.pages(PODS, 500))
    churn(fleet, 0)
    keys = [key(i) for p in pages for i in p["items"]]
    assert len(keys) == len(set(keys)), "an object twice"
    assert len({version(p) for p in pages}) == 1
    steady &= set(fleet.union(PODS))
    assert not steady - set(keys), "an object that was there all the time is missing"
    fleet.wait_synced(timeout=60)


def test_check_59_after_an_outage_only_real_differences(fleet):
    watch = fleet.watch(PODS, resourceVersion=version(fleet.list(PODS)))
    fleet.agents["c2"].kill()
    fleet.world.wait_away("c2")
    fleet.label("c2", "same", "changed")
    fleet.agents["c2"] = fleet.world.restart_agent(fleet.agents["c2"])
    watch.wait(lambda e: len(e) >= 1)
    fleet.pod("c2", "last")
    seen = watch.wait(lambda e: any(key(x["object"])[2] == "last" for x in e))
    got = [(e["type"], key(e["object"])) for e in seen
           if e["type"] != "MODIFIED" or key(e["object"])[2] != "last"]
    assert got == [("MODIFIED", ("c2", "default", "same")), ("ADDED", ("c2", "default", "last"))]
    watch.close()


# -- versions (check 58)

def test_check_58_versions_increase_over_events_and_a_restart(fleet):
    first = version(fleet.list(PODS))
    watch = fleet.watch(PODS, resourceVersion=first)
    for n in range(20):
        fleet.label("c1", "same", f"v{n}")
        fleet.label("c2", "same", f"v{n}")
    seen = watch.wait(lambda e: sum(x["object"]["metadata"]["labels"].get("value") == "v19"
                                    for x in e) == 2)
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in seen]
    assert versions == sorted(versions) and len(set(versions)) == len(versions)
    assert versions[0] > first and version(fleet.list(PODS)) >= versions[-1]
    hub = fleet.world.hub
    hub.kill()
    fleet.world.restart_hub(hub, fleetFile=fleet.file)
    for name in fleet.names:
        fleet.world.wait_cluster(name)
    fleet.wait_synced()
    assert version(fleet.list(PODS)) > versions[-1]
    old = fleet.watch(PODS, resourceVersion=versions[-1])
    event = old.wait(lambda e: e)[0]
    assert event["type"] == "ERROR" and event["object"]["code"] == 410
    assert event["object"]["reason"] == "Expired"
    assert old.stream.wait_finish() == "end"
    exact = fleet.get(PODS, resourceVersion=versions[-1], resourceVersionMatch="Exact")
    assert exact.status == 410


def test_check_58_many_events_in_order(fleet):
    watch = fleet.watch(PODS, resourceVersion=version(fleet.list(PODS)))
    churn(fleet, 500)
    watch.wait(lambda e: len(e) >= 10000, timeout=90)
    churn(fleet, 0)
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in watch.events()]
    assert all(a < b for a, b in zip(versions, versions[1:]))
    watch.close()


def test_a_version_of_the_future_is_504(shared):
    begun = time.monotonic()
    answer = shared.get(PODS, resourceVersion=9 * 10**18)
    assert answer.status == 504 and time.monotonic() - begun >= 2.9
    assert answer.json()["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_a_version_that_is_none_is_400(shared):
    assert shared.get(PODS, resourceVersion="abc").status == 400
    assert shared.get(PODS, resourceVersionMatch="Exact").status == 422


# -- watches

def test_a_watch_from_nothing_shows_all_and_goes_on(fleet):
    watch = fleet.watch(PODS)
    seen = watch.wait(lambda e: len(e) >= len(fleet.union(PODS)))
    assert {key(e["object"]): bare(e["object"]) for e in seen} == fleet.union(PODS)
    assert {e["type"] for e in seen} == {"ADDED"}
    count = len(seen)
    fleet.pod("c1", "fresh")
    seen = watch.wait(lambda e: any(x["object"]["metadata"]["name"] == "fresh" for x in e))
    assert short(seen[count])[:3] == ("ADDED", "c1", "fresh")
    watch.close()


def test_a_watch_with_initial_events_ends_them_with_a_bookmark(shared):
    watch = shared.watch(PODS, **INITIAL)
    seen = watch.wait(lambda e: e and e[-1]["type"] == "BOOKMARK")
    mark = seen[-1]["object"]
    assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert mark["kind"] == "Pod" and int(mark["metadata"]["resourceVersion"]) > 0
    assert {key(e["object"]) for e in seen[:-1]} == set(shared.union(PODS))
    watch.close()


def test_a_watch_with_a_selector_sees_things_come_and_go(fleet):
    start = version(fleet.list(PODS))
    watch = fleet.watch(PODS, resourceVersion=start, labelSelector="value=in")
    fleet.label("c1", "same", "in")
    watch.wait(lambda e: len(e) == 1)
    fleet.label("c2", "same", "out")
    fleet.label("c1", "same", "out")
    seen = watch.wait(lambda e: len(e) == 2)
    assert [short(e)[:3] for e in seen] == [("ADDED", "c1", "same"), ("DELETED", "c1", "same")]
    assert seen[1]["object"]["metadata"]["labels"]["value"] == "in"
    assert (int(seen[1]["object"]["metadata"]["resourceVersion"])
            > int(seen[0]["object"]["metadata"]["resourceVersion"]))
    watch.close()


def test_a_watch_ends_in_time_and_cleanly(shared):
    watch = shared.watch(PODS, resourceVersion=version(shared.list(PODS)), timeoutSeconds=3,
                         allowWatchBookmarks="true")
    assert watch.stream.wait_finish(10) == "end"
    assert [e["type"] for e in watch.events()] == ["BOOKMARK"]


def test_a_watch_ends_cleanly_when_the_hub_goes(fleet):
    watch = fleet.watch(PODS, resourceVersion=version(fleet.list(PODS)))
    fleet.world.hub.signal(15)
    # Five seconds until it drains, and half of its drainTimeout over which watches are spread.
    assert watch.stream.wait_finish(60) == "end"


def test_many_watches_see_the_same(shared):
    with H2Client(shared.world.hub.api, shared.world.context()) as client:
        start = version(shared.list(PODS))
        path = f"/clusters/*{DEFAULT}?watch=1&resourceVersion={start}"
        streams = [client.start("GET", path) for _ in range(200)]
        for stream in streams:
            stream.wait_headers(10)
        shared.pod("c1", "brief")
        for stream in streams:
            stream.wait_bytes(1, 20)
        wait_until(lambda: len({s.body for s in streams}) == 1, 10, "the same bytes")
        shared.drop("c1", "brief")
        for stream in streams:
            stream.wait(lambda s: b"DELETED" in s.body, 20)
        for stream in streams:
            stream.reset()
    shared.wait_synced()


# -- clusters that go and come (F025)

def outage(fleet, watch, begin, end):
    """Changes 10, adds 10 and deletes 10 pods of c2 while it is away."""
    for n in range(10):
        fleet.pod("c2", f"change-{n}")
        fleet.pod("c2", f"delete-{n}")
    def told():
        """Of these pods, what there is."""
        last = {key(e["object"]): bare(e["object"]) for e in watch.events()}
        return len(last) >= 20 and last == {
            k: o for k, o in fleet.union(DEFAULT).items() if k in last}
    wait_until(told, 30, "told of all of them")
    seen = len(watch.events())
    begin()
    for n in range(10):
        fleet.label("c2", f"change-{n}", "new")
        fleet.drop("c2", f"delete-{n}")
        fleet.pod("c2", f"add-{n}")
    end()
    fleet.wait_synced(timeout=90)

    def complete(events):
        return len(events) >= seen + 30
    events = watch.wait(complete, timeout=30)[seen:]
    last = {}
    for event in events:
        last.setdefault(key(event["object"])[2], []).append(event["type"])
    wanted = {f"{stem}-{n}": [kind] for n in range(10)
              for stem, kind in (("change", "MODIFIED"), ("delete", "DELETED"), ("add", "ADDED"))}
    assert last == wanted


@pytest.fixture
def watched(fleet):
    watch = fleet.watch(DEFAULT, resourceVersion=version(fleet.list(PODS)))
    yield fleet, watch
    watch.close()


def test_field_f025_an_open_watch_sees_a_cluster_whose_agent_died(watched):
    fleet, watch = watched

    def begin():
        fleet.agents["c2"].kill()
        fleet.world.wait_away("c2")

    def end():
        fleet.agents["c2"] = fleet.world.restart_agent(fleet.agents["c2"])
    outage(fleet, watch, begin, end)


@pytest.mark.long
def test_field_f025_an_open_watch_sees_a_cluster_whose_agent_was_paused(watched):
    fleet, watch = watched

    def begin():
        fleet.agents["c2"].freeze()
        fleet.world.wait_away("c2", timeout=60)

    def end():
        fleet.agents["c2"].thaw()
        fleet.world.wait_cluster("c2", timeout=60)
    outage(fleet, watch, begin, end)


def test_field_f025_a_cluster_that_joins_appears_in_open_watches(world):
    fleet = Fleet(world, names=("c1", "c2"))
    fleet.agents["c2"].kill()
    hub = world.hub
    hub.kill()
    world.restart_hub(hub, fleetFile=fleet.file)
    world.wait_cluster("c1")
    wait_until(lambda: fleet.get(PODS).status == 200, 30, "c1 serves pods")
    watch = fleet.watch(PODS)
    watch.wait(lambda e: e)
    world.restart_agent(fleet.agents["c2"])
    wanted = {k for k in fleet.union(PODS) if k[0] == "c2"}
    watch.wait(lambda e: wanted <= {key(x["object"]) for x in e})
    watch.close()


def test_readers_change_while_watches_are_open(fleet):
    mine = fleet.watch(PODS, user="bob", resourceVersion=version(fleet.list(PODS)))
    others = fleet.watch(PODS, resourceVersion=version(fleet.list(PODS)))
    from backends import write_yaml
    write_yaml(fleet.file, {"readers": fleet.config["readers"][:1]})
    fleet.world.hub.signal(1)
    assert mine.stream.wait_finish(15) == "end"
    assert fleet.get(PODS, user="bob").status == 403
    fleet.pod("c1", "after")
    others.wait(lambda e: e)
    others.close()


# -- the programs themselves

def test_metrics_count_lists_and_watches(fleet):
    watch = fleet.watch(PODS)
    count = len(watch.wait(lambda e: e))
    numbers = fleet.world.metrics()
    assert numbers["kuberelay_hub_fleet_watchers"] == 1
    assert numbers["kuberelay_hub_fleet_lists_total"] >= 1
    assert numbers["kuberelay_hub_fleet_events_sent_total"] >= count
    assert numbers["kuberelay_hub_fleet_list_bytes_total"] > 0
    watch.close()
    wait_until(lambda: fleet.world.metrics()["kuberelay_hub_fleet_watchers"] == 0, 10, "gone")


def test_no_line_of_the_log_is_an_error(shared):
    assert json.dumps(shared.world.hub.grep(r"level=error")) == "[]"


# -- packed lists

GZIP = ("accept-encoding", "gzip")


@pytest.fixture(scope="module")
def large(binaries, workdir):
    world = World(workdir / "fleet-large", binaries)
    made = Fleet(world, pods=3000)
    made.wait_synced(timeout=60)
    yield made
    world.close()


@pytest.mark.parametrize("accept", [None, TABLE, PARTIAL_LIST], ids=["objects", "table", "metadata"])
@pytest.mark.parametrize("query", ["", "?limit=2000"])
def test_a_large_list_is_packed_for_who_takes_it(large, accept, query):
    headers = [("accept", accept)] if accept else []
    plain = large.client().get(f"{STAR}{PODS}{query}", headers)
    packed = large.client().get(f"{STAR}{PODS}{query}", [*headers, GZIP])
    assert plain.get("content-encoding") is None and len(plain.body) > 1 << 18
    assert packed.get("content-encoding") == "gzip"
    assert packed.get("vary") == "Accept-Encoding"
    assert len(packed.body) < len(plain.body) / 3
    first, second = json.loads(plain.body), json.loads(gzip.decompress(packed.body))
    if accept == TABLE:  # an age may have grown by a second
        for one in (first, second):
            for row in one["rows"]:
                row["cells"].pop()
    for one in (first, second):
        one["metadata"].pop("continue", None)
    if query:  # each page pins anew
        first["metadata"].pop("resourceVersion"), second["metadata"].pop("resourceVersion")
    assert first == second


def test_what_is_small_or_a_watch_or_not_asked_for_is_not_packed(large):
    client = large.client()
    small = client.get(f"{STAR}{PODS}?limit=5", [GZIP])
    assert small.get("content-encoding") is None and len(small.json()["items"]) == 5
    for coding in ("identity", "gzip;q=0", "br"):
        answer = client.get(f"{STAR}{PODS}", [("accept-encoding", coding)])
        assert answer.get("content-encoding") is None and answer.json()["items"]
    watch = client.start("GET", f"{STAR}{PODS}?watch=1", [GZIP]).wait_bytes(1 << 18)
    assert watch.get("content-encoding") is None and watch.body.startswith(b'{"type":"ADDED"')
    watch.reset()


def test_a_packed_list_over_http_1_and_to_a_slow_reader(large):
    with large.world.h1("admin") as client:
        answer = client.get(f"{STAR}{PODS}", [GZIP])
        assert len(json.loads(gzip.decompress(answer.body))["items"]) == 6000
    before = large.world.hub.memory_kib()
    with large.world.client(window=65535) as client:
        stuck = [client.start("GET", f"{STAR}{PODS}", [GZIP], auto_window=False)
                 for _ in range(20)]
        for stream in stuck:
            stream.wait_bytes(1)
        # A chunk, what is packed of it and zlib's own each, however long the list is.
        assert large.world.hub.memory_kib() - before < 20 * 1024
        for stream in stuck:
            stream.auto_window = True
            stream.grant(1 << 20)
            assert stream.wait_finish(30) == "end"
            assert len(json.loads(gzip.decompress(stream.body))["items"]) == 6000
