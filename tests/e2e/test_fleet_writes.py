# SPDX-License-Identifier: Apache-2.0
"""Writes to /clusters/NAME whose objects were read from /clusters/*: versions are exchanged, what
the fleet view adds stays behind, and what a profile left out is not lost."""

import itertools
import json
import threading

import pytest

import kubectl
from backends import binding, write_yaml
from clock import wait_until
from cluster_site import Site
from fleet import ALL, INJECTED, JSON, Fleet, bare, cluster_of

DEFAULT = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PROTOBUF = "application/vnd.kubernetes.protobuf"
WIDGETS = "/apis/example.test/v1/namespaces/default/widgets"
IMAGES = {"name": "images", "resources": ["deployments.apps"],
          "keep": ["spec.replicas", "spec.template.spec.containers[*].name",
                   "spec.template.spec.containers[*].image"]}
NAMES = {"name": "names", "resources": ["configmaps", "widgets.example.test"],
         "metadataOnly": True}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CRD = {"metadata": {"name": "widgets.example.test"},
       "spec": {"group": "example.test", "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
                    "openAPIV3Schema": {"type": "object",
                                        "x-kubernetes-preserve-unknown-fields": True}}}]}}
numbers = itertools.count(1)


class OneFleet(Fleet):
    """One cluster: the API server that this run is about."""

    def __init__(self, world, backend, profiles):
        self.world, self.backend, self.names = world, backend, ["c1"]
        self.folder, self._users = world.folder, {}
        self.file = write_yaml(world.folder / "fleet.yaml",
                               {"readers": [ALL], "profiles": profiles})
        self.clusters, self._direct = {"c1": self}, None
        if backend.is_real:
            self._prepare()
        world.start_hub(fleetFile=self.file)
        self.site = Site(world, backend, "c1", world.folder / "c1")

    def _prepare(self):
        """A real API server lets nobody read without a word, and has no custom resource yet."""
        rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
        name = "kuberelay-fleet-writes"
        self.ask("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
        self.ask("POST", f"{RBAC}/clusterrolebindings",
                 binding(name, name, "User", "kuberelay-agent"))
        self.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                 {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                  **CRD})
        with self.backend.as_root() as client:
            wait_until(lambda: client.get(WIDGETS).status == 200, 30, "the custom resource")

    def ask(self, method, path, obj=None):
        """Straight at the API server."""
        if self._direct is None or self._direct.lost or self._direct.goaway:
            server = self.backend
            self._direct = server.as_root() if server.is_real else server.direct()
        body = json.dumps(obj).encode() if obj is not None else None
        answer = self._direct.request(method, path, [JSON] if body else [], body)
        assert answer.status < 300, answer
        return answer.json() if answer.body[:1] == b"{" else None


@pytest.fixture(scope="module")
def fleet(backend, binaries, workdir):
    from world import World
    world = World(workdir / "writes-world", binaries)
    made = OneFleet(world, backend, [IMAGES, NAMES])
    yield made
    world.close()


class Target:
    """One object of one cluster: as the fleet view shows it, as it is, and written through the hub."""

    def __init__(self, fleet, cluster, collection, name):
        self.fleet, self.cluster, self.collection, self.name = fleet, cluster, collection, name
        self.path = f"{collection}/{name}"

    def live(self):
        return self.fleet.clusters[self.cluster].ask("GET", self.path)

    def seen(self, in_step=True):
        """From the fleet view, once it shows the latest version."""
        found = []

        def look():
            items = self.fleet.list(self.collection,
                                    fieldSelector=f"metadata.name={self.name}",
                                    labelSelector=f"kuberelay.io/cluster={self.cluster}")["items"]
            found[:] = items
            return items and (not in_step or origin(items[0]) ==
                              self.live()["metadata"]["resourceVersion"])
        wait_until(look, 30, f"{self.path} in the fleet view", every=0.05)
        return found[0]

    def write(self, method, body, content_type="application/json", suffix="", raw=None):
        headers = [("content-type", content_type)] if content_type else []
        data = raw if raw is not None else json.dumps(body).encode()
        return self.fleet.client().request(
            method, f"/clusters/{self.cluster}{self.path}{suffix}", headers, data)

    def change(self, change):
        """Behind the hub's back."""
        obj = self.live()
        change(obj)
        return self.fleet.clusters[self.cluster].ask("PUT", self.path, obj)


def varint(n):
    out = b""
    while n >= 0x80:
        out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
    return out + bytes([n])


def field(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(message):
    """Of one message whose fields are numbers and texts: (number, value, bytes as they stand)."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(message):
        start, tag = at, number()
        value = number()
        if tag & 7 == 2:
            value, at = message[at:at + value], at + value
        yield tag >> 3, value, message[start:at]


def as_fleet_protobuf(target, version):
    """The object as protobuf, as a typed client would write it that read it from the fleet view."""
    path = f"/clusters/{target.cluster}{target.path}"
    answer = target.fleet.client().get(path, [("accept", PROTOBUF)])
    assert answer.status == 200 and answer.body.startswith(b"k8s\0"), answer
    out = b"k8s\0"
    for number, value, whole in fields(answer.body[4:]):
        if number == 2:
            meta = b"".join(part for n, _, part in fields(dict(
                (n, v) for n, v, _ in fields(value) if n == 1)[1]) if n not in (6, 17))
            meta += field(6, version.encode())
            meta += field(11, field(1, b"n") + field(2, b"1"))
            meta += field(11, field(1, b"kuberelay.io/cluster") + field(2, b"c1"))
            for key in INJECTED:
                meta += field(12, field(1, key.encode()) + field(2, b"x"))
            value = field(1, meta) + b"".join(part for n, _, part in fields(value) if n != 1)
            whole = field(2, value)
        out += whole
    return out


def origin(obj):
    return obj["metadata"]["annotations"]["kuberelay.io/resource-version"]


def deployment(name):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [
                         {"name": "a", "image": "a:1", "env": [{"name": "E", "value": "1"}]},
                         {"name": "b", "image": "b:1", "command": ["run"]}]}}}}


@pytest.fixture
def pod(fleet):
    name = f"written-{next(numbers)}"
    fleet.pod("c1", name, labels={"team": "x"})
    return Target(fleet, "c1", DEFAULT, name)


@pytest.fixture
def deploy(fleet):
    name = f"written-{next(numbers)}"
    fleet.clusters["c1"].ask("POST", DEPLOYMENTS, deployment(name))
    return Target(fleet, "c1", DEPLOYMENTS, name)


def no_trace(obj):
    meta = obj["metadata"]
    assert not set(meta.get("annotations") or {}) & set(INJECTED)
    assert "kuberelay.io/cluster" not in (meta.get("labels") or {})
    return True


# -- versions

def test_a_put_of_what_was_seen_is_done_and_leaves_no_trace(pod):
    obj = pod.seen()
    assert int(obj["metadata"]["resourceVersion"]) != int(origin(obj))
    obj["metadata"]["labels"]["new"] = "1"
    answer = pod.write("PUT", obj)
    assert answer.status == 200, answer
    live = pod.live()
    assert live["metadata"]["labels"] == {"team": "x", "new": "1"} and no_trace(live)
    assert answer.json()["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]


def test_a_second_put_of_the_same_is_a_conflict(pod):
    obj = pod.seen()
    obj["metadata"]["labels"]["n"] = "1"
    assert pod.write("PUT", obj).status == 200
    obj["metadata"]["labels"]["n"] = "2"
    answer = pod.write("PUT", obj)
    assert answer.status == 409 and answer.json()["reason"] == "Conflict", answer
    assert answer.json()["message"] == (
        f'Operation cannot be fulfilled on pods "{pod.name}": the object has been modified; please '
        "apply your changes to the latest version and try again")
    assert pod.live()["metadata"]["labels"]["n"] == "1"


def test_a_change_that_the_fleet_view_has_seen_is_a_conflict_too(pod):
    obj = pod.seen()
    pod.change(lambda o: o["metadata"]["labels"].update(other="1"))
    pod.seen()
    assert pod.write("PUT", obj).status == 409


def test_what_the_cluster_answered_can_be_written_again(pod):
    obj = pod.seen()
    obj["metadata"]["labels"]["n"] = "1"
    obj = pod.write("PUT", obj).json()
    obj["metadata"]["labels"]["n"] = "2"
    assert pod.write("PUT", obj).status == 200
    assert pod.live()["metadata"]["labels"]["n"] == "2"


@pytest.mark.parametrize("kind", ["merge-patch+json", "strategic-merge-patch+json"])
def test_a_patch_with_a_version_is_mapped(pod, kind):
    version = pod.seen()["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version, "labels": {"n": "1"},
                         "annotations": {"kcp.io/cluster": "c1", "mine": "1"}}}
    assert pod.write("PATCH", body, f"application/{kind}").status == 200
    live = pod.live()
    assert live["metadata"]["labels"]["n"] == "1" and no_trace(live)
    assert live["metadata"]["annotations"]["mine"] == "1"
    assert pod.write("PATCH", body, f"application/{kind}").status == 409


def test_a_json_patch_that_tests_the_version_is_mapped(pod):
    version = pod.seen()["metadata"]["resourceVersion"]
    body = [{"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/metadata/labels/n", "value": version}]
    assert pod.write("PATCH", body, "application/json-patch+json").status == 200
    assert pod.live()["metadata"]["labels"]["n"] == version, "only where it is the version"


def test_a_delete_with_preconditions_is_mapped(pod):
    seen = pod.seen()["metadata"]
    stale = {"preconditions": {"uid": seen["uid"], "resourceVersion": seen["resourceVersion"]}}
    pod.change(lambda o: o["metadata"]["labels"].update(other="1"))
    assert pod.write("DELETE", stale).status == 409
    seen = pod.seen()["metadata"]
    fresh = {"preconditions": {"uid": seen["uid"], "resourceVersion": seen["resourceVersion"]},
             "gracePeriodSeconds": 0}
    assert pod.write("DELETE", fresh).status == 200


def test_another_object_of_the_same_name_is_a_conflict(pod):
    obj = pod.seen()
    fleet = pod.fleet
    fleet.drop("c1", pod.name)
    fleet.pod("c1", pod.name, labels={"team": "x"})
    assert pod.write("PUT", obj).status == 409
    assert "n" not in pod.live()["metadata"]["labels"]


def test_the_status_can_be_written(pod):
    obj = pod.seen()
    obj["status"]["message"] = "hello"
    answer = pod.write("PUT", obj, suffix="/status")
    assert answer.status == 200, answer
    assert pod.live()["status"]["message"] == "hello"


def test_an_unconditional_put_loses_only_what_the_fleet_view_added(pod):
    obj = pod.seen()
    del obj["metadata"]["resourceVersion"]
    obj["metadata"]["labels"]["n"] = "1"
    assert pod.write("PUT", obj).status == 200
    live = pod.live()
    assert live["metadata"]["labels"] == {"team": "x", "n": "1"} and no_trace(live)


def test_a_body_that_is_no_json_is_415(pod):
    obj = pod.seen()
    raw = b"k8s\0 " + obj["metadata"]["resourceVersion"].encode()
    for kind in ("application/yaml", "application/cbor"):
        answer = pod.write("PUT", None, kind, raw=raw)
        assert answer.status == 415 and answer.json()["reason"] == "UnsupportedMediaType", answer
    answer = pod.write("PUT", None, PROTOBUF, raw=raw)
    assert answer.status == 400 and "no protobuf" in answer.json()["message"], answer


@pytest.mark.real
def test_protobuf_is_written_back_as_it_was_but_for_what_the_fleet_view_added(pod):
    """What the API server itself would answer, with the fleet's version and keys put in."""
    obj = pod.seen()
    version = obj["metadata"]["resourceVersion"]
    body = as_fleet_protobuf(pod, version)
    answer = pod.write("PUT", None, PROTOBUF, raw=body)
    assert answer.status == 200, answer
    live = pod.live()
    assert no_trace(live) and live["metadata"]["labels"] == {"team": "x", "n": "1"}
    assert pod.write("PUT", None, PROTOBUF, raw=body).status == 409
    status = as_fleet_protobuf(pod, pod.seen()["metadata"]["resourceVersion"])
    answer = pod.write("PUT", None, PROTOBUF, suffix="/status", raw=status)
    assert answer.status == 200 and no_trace(pod.live()), answer


@pytest.mark.real
def test_protobuf_of_a_slim_object_is_415_and_says_what_to_do(deploy):
    version = deploy.seen()["metadata"]["resourceVersion"]
    answer = deploy.write("PUT", None, PROTOBUF, raw=as_fleet_protobuf(deploy, version))
    assert answer.status == 415, answer
    assert 'ContentType "application/json"' in answer.json()["message"]


def test_what_is_created_from_the_fleet_view_has_no_trace_of_it(pod):
    obj = pod.seen()
    copy = f"{pod.name}-copy"
    obj["metadata"] = {k: obj["metadata"][k] for k in ("labels", "annotations")} | {"name": copy}
    obj["spec"].pop("nodeName", None)
    answer = pod.fleet.client().request(
        "POST", f"/clusters/c1{pod.collection}", [("content-type", "application/json")],
        json.dumps(obj).encode())
    assert answer.status == 201, answer
    made = Target(pod.fleet, "c1", pod.collection, copy).live()
    assert made["metadata"]["labels"] == {"team": "x"} and no_trace(made)


def test_a_body_with_metadata_twice_is_400(pod):
    obj = pod.seen()
    text = json.dumps(obj)
    answer = pod.write("PUT", None, raw=text[:-1].encode() + b',"metadata":{"name":"x"}}')
    assert answer.status == 400 and "twice" in answer.json()["message"], answer


def test_a_write_that_has_nothing_to_do_with_it_passes_as_it_came(pod):
    pod.seen()
    obj = pod.live()
    obj["metadata"]["labels"]["n"] = "1"
    raw = json.dumps(obj, indent=3).encode()
    assert pod.write("PUT", None, raw=raw).status == 200
    assert pod.write("PATCH", None, "application/merge-patch+json", raw=b"{broken").status == 400
    assert pod.write("DELETE", {"gracePeriodSeconds": 0}).status == 200
    assert pod.write("DELETE", {"gracePeriodSeconds": 0}).status == 404


def test_large_bodies_come_through_whole(fleet):
    target = Target(fleet, "c1", "/api/v1/namespaces/default/services", "large")
    notes = {f"note-{i}": "x" * 1000 for i in range(200)}
    fleet.clusters["c1"].ask("POST", target.collection, {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "large", "annotations": notes},
        "spec": {"ports": [{"port": 1}]}})
    obj = target.seen()
    obj["metadata"]["annotations"]["note-7"] = "changed"
    answer = target.write("PUT", obj)
    assert answer.status == 200, answer
    live = target.live()
    assert live["metadata"]["annotations"] == {**notes, "note-7": "changed"} and no_trace(live)


def test_many_writers_lose_no_update(pod):
    """As client-go's RetryOnConflict does it, each reading from the fleet view."""
    def count(times):
        for _ in range(times):
            while True:
                obj = pod.seen(in_step=False)
                labels = obj["metadata"]["labels"]
                labels["count"] = str(int(labels.get("count", "0")) + 1)
                answer = pod.fleet.world.client().request(
                    "PUT", f"/clusters/c1{pod.path}", [("content-type", "application/json")],
                    json.dumps(obj).encode())
                if answer.status == 200:
                    break
                assert answer.status in (409, 503), answer
    pod.seen()
    threads = [threading.Thread(target=count, args=(5,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pod.live()["metadata"]["labels"]["count"] == "20"


def test_bodies_that_are_collected_have_a_budget(pod):
    """64 MiB at once; without a length the largest is assumed."""
    pod.seen()
    client = pod.fleet.world.client()
    path, headers = f"/clusters/c1{pod.path}", [("content-type", "application/json")]
    held = [client.start("PUT", path, headers, end=False) for _ in range(20)]
    for stream in held:
        stream.send(b"{")
    more = client.start("PUT", path, headers, end=False)
    answer = more.answer()
    assert answer.status == 429 and answer.get("retry-after") == "1", answer
    for stream in held:
        stream.reset()
    obj = pod.seen()
    obj["metadata"]["labels"]["n"] = "1"
    wait_until(lambda: pod.write("PUT", obj).status == 200, 10, "room again")


def test_a_write_while_the_agent_is_away_and_after(pod):
    obj, site, world = pod.seen(), pod.fleet.site, pod.fleet.world
    obj["metadata"]["labels"]["n"] = "1"
    site.agent.kill()
    world.wait_away("c1")
    answer = pod.write("PUT", obj)
    assert answer.status == 503 and answer.get("retry-after") is None, answer
    site.agent = world.restart_agent(site.agent)

    def done():
        answer = pod.write("PUT", obj)
        # Until the Sync is open again the version means nothing to the agent: nothing was sent.
        assert answer.status == 200 or (answer.status, answer.get("retry-after")) == (503, "1"), answer
        return answer.status == 200
    wait_until(done, 30, "the write")
    assert pod.live()["metadata"]["labels"]["n"] == "1"


def test_with_two_agents_a_write_goes_to_the_one_that_syncs(pod):
    world = pod.fleet.world
    other = world.start_agent("c1", pod.fleet.site.agent_kubeconfig, instance="b",
                              pair=world.issue_agent("c1", "b"), name="agent-c1-b")
    wait_until(lambda: world.hub.grep(r"event=tunnel-up .*instance=b .*lane=bulk"), 10, "tunnels")
    for i in range(12):
        obj = pod.seen()
        obj["metadata"]["labels"]["n"] = str(i)
        answer = pod.write("PUT", obj)
        assert answer.status == 200, answer
    other.stop()


# -- parts that were left out

def test_a_put_of_a_slim_object_changes_only_what_was_changed(deploy):
    before = deploy.live()
    obj = deploy.seen()
    assert obj["metadata"]["annotations"]["kuberelay.io/slimmed"] == "true"
    assert "selector" not in obj["spec"] and "status" not in obj
    obj["spec"]["replicas"] = 3
    obj["spec"]["template"]["spec"]["containers"][1]["image"] = "b:2"
    answer = deploy.write("PUT", obj)
    assert answer.status == 200, answer
    before["spec"]["replicas"] = 3
    before["spec"]["template"]["spec"]["containers"][1]["image"] = "b:2"
    live = deploy.live()
    assert live["spec"] == before["spec"] and no_trace(live)
    assert live["metadata"]["uid"] == before["metadata"]["uid"]
    assert deploy.fleet.world.hub.grep(r"event=fleet-write .*verb=update as=patch")


def test_items_are_reordered_with_what_was_left_out_of_them(deploy):
    obj = deploy.seen()
    obj["spec"]["template"]["spec"]["containers"].reverse()
    obj["spec"]["template"]["spec"]["containers"].append({"name": "c", "image": "c:1"})
    answer = deploy.write("PUT", obj)
    assert answer.status == 200, answer
    got = deploy.live()["spec"]["template"]["spec"]["containers"]
    assert [c["name"] for c in got] == ["b", "a", "c"]
    assert got[0]["command"] == ["run"] and got[1]["env"] == [{"name": "E", "value": "1"}]


def test_a_slim_put_on_a_stale_object_is_a_conflict(deploy):
    obj = deploy.seen()
    deploy.change(lambda o: o["spec"].update(replicas=7))
    obj["spec"]["replicas"] = 2
    answer = deploy.write("PUT", obj)
    assert answer.status == 409 and answer.json()["reason"] == "Conflict", answer
    assert f'deployments.apps "{deploy.name}"' in answer.json()["message"]
    assert deploy.live()["spec"]["replicas"] == 7


def test_a_change_in_what_was_left_out_does_not_disturb(deploy):
    obj = deploy.seen()
    deploy.change(lambda o: o["spec"].update(minReadySeconds=5))
    obj["spec"]["replicas"] = 2
    answer = deploy.write("PUT", obj)
    spec = deploy.live()["spec"]
    # The generation, which is served, tells of the change where the API server counts it.
    assert (answer.status, spec["replicas"]) in ((200, 2), (409, 1)), answer
    assert spec["minReadySeconds"] == 5


@pytest.mark.parametrize("change, place", [
    (lambda o: o["spec"].update(selector={"matchLabels": {"x": "y"}}), "/spec/selector"),
    (lambda o: o["spec"]["template"]["spec"]["containers"][0].update(name="z"),
     "/spec/template/spec/containers"),
    (lambda o: o["metadata"].pop("resourceVersion"), "resourceVersion"),
])
def test_a_change_that_could_lose_something_is_refused(deploy, change, place):
    before = deploy.live()
    obj = deploy.seen()
    change(obj)
    answer = deploy.write("PUT", obj)
    assert answer.status == 422 and answer.json()["reason"] == "Invalid", answer
    assert place in answer.json()["message"]
    assert deploy.live()["spec"] == before["spec"]


def test_metadata_can_be_written_where_nothing_else_was_served(fleet):
    target = Target(fleet, "c1", "/api/v1/namespaces/default/configmaps", "slim")
    fleet.clusters["c1"].ask("POST", target.collection, {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slim"}, "data": {"k": "v"}})
    obj = target.seen()
    assert "data" not in obj
    obj["metadata"].setdefault("labels", {})["a"] = "b"
    assert target.write("PUT", obj).status == 200
    live = target.live()
    assert live["data"] == {"k": "v"} and live["metadata"]["labels"] == {"a": "b"}
    obj = target.seen()
    obj["data"] = {"k": "w"}
    assert target.write("PUT", obj).status == 422
    assert target.live()["data"] == {"k": "v"}


@pytest.mark.real
def test_custom_resources_are_written_as_well(fleet):
    target = Target(fleet, "c1", WIDGETS, "w")
    fleet.ask("POST", WIDGETS, {"apiVersion": "example.test/v1", "kind": "Widget",
                                "metadata": {"name": "w", "labels": {"z": "1", "a": "2"}},
                                "spec": {"z": 1, "a": [1.5, 10**18]}})
    obj = target.seen()
    assert "spec" not in obj
    obj["metadata"]["annotations"]["mine"] = "1"
    answer = target.write("PUT", obj)
    assert answer.status == 200, answer
    live = target.live()
    assert live["spec"] == {"z": 1, "a": [1.5, 10**18]} and no_trace(live)
    assert live["metadata"]["annotations"] == {"mine": "1"}
    assert target.write("PUT", obj).status == 409


# -- the tools that people use

def kubectl_for(fleet, cluster):
    home = fleet.folder / f"kubectl-{cluster}"
    home.mkdir(exist_ok=True)
    config = fleet.world.kubeconfig(home / "config", cluster)
    return kubectl.Kubectl(kubectl.newest(), config, home)


def test_kubectl_replaces_what_it_got_from_the_fleet(pod):
    pod.seen()
    fleet = pod.fleet
    got = fleet.kubectl().run("get", "pods", "-n", "default", "-l",
                              "kuberelay.io/cluster=c1", "--field-selector",
                              f"metadata.name={pod.name}", "-o", "json")
    assert got.code == 0, got
    obj = json.loads(got.out)["items"][0]
    assert cluster_of(obj) == "c1"
    obj["metadata"]["labels"]["edited"] = "yes"
    file = fleet.folder / "edited.json"
    file.write_text(json.dumps(obj))
    done = kubectl_for(fleet, "c1").run("replace", "-f", str(file))
    assert done.code == 0, done
    live = pod.live()
    assert live["metadata"]["labels"] == {"team": "x", "edited": "yes"} and no_trace(live)
    again = kubectl_for(fleet, "c1").run("replace", "-f", str(file))
    assert again.code == 1 and "the object has been modified" in again.err, again
    assert bare(pod.seen())["metadata"]["labels"] == {"team": "x", "edited": "yes"}


@pytest.mark.real
@pytest.mark.parametrize("server_side", [False, True], ids=["client-side", "server-side"])
def test_kubectl_applies_what_it_got_from_the_fleet(pod, server_side):
    pod.seen()
    fleet = pod.fleet
    obj = pod.seen()
    obj["metadata"]["labels"]["edited"] = "yes"
    file = fleet.folder / "applied.json"
    file.write_text(json.dumps(obj))
    flags = ["--server-side", "--force-conflicts"] if server_side else []
    done = kubectl_for(fleet, "c1").run("apply", "-f", str(file), *flags)
    assert done.code == 0, done
    live = pod.live()
    assert live["metadata"]["labels"] == {"team": "x", "edited": "yes"} and no_trace(live)
    kept = (live["metadata"].get("annotations") or {}).get(
        "kubectl.kubernetes.io/last-applied-configuration")
    assert (kept is None) == server_side
    if kept:
        applied = json.loads(kept)
        assert applied["metadata"]["labels"] == live["metadata"]["labels"], applied
        assert no_trace(applied)
        assert "resourceVersion" not in applied["metadata"]
