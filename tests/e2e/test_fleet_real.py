# SPDX-License-Identifier: Apache-2.0
"""The fleet view of a real API server: what kubectl prints there is what it prints of the cluster,
with one more column; objects are those of the cluster; custom resources are like the others."""

import json
import os
import re

import pytest

import kubectl
from backends import binding, write_yaml
from clock import wait_until
from fleet import ALL, PARTIAL_LIST, STAR, TABLE, bare, key

pytestmark = pytest.mark.real

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROLE = "kuberelay-fleet-real"
LABEL = r",kuberelay.io/cluster=r1|kuberelay.io/cluster=r1,?"
GROUP = "fleet.example.test"
CRD = {
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {"group": GROUP, "scope": "Namespaced",
             "names": {"plural": "widgets", "singular": "widget", "kind": "Widget",
                       "shortNames": ["wdg"]},
             "versions": [{
                 "name": "v1", "served": True, "storage": True,
                 "schema": {"openAPIV3Schema": {
                     "type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                 "additionalPrinterColumns": [
                     {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                     {"name": "Made", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                     {"name": "Extra", "type": "string", "priority": 1,
                      "jsonPath": ".spec.extra"}]}]}}


def call(client, method, path, obj=None):
    answer = client.request(method, path, [("content-type", "application/json")],
                            json.dumps(obj).encode() if obj else None)
    assert answer.status < 300 or answer.status == 409, answer
    return answer.json()


class RealFleet:
    def __init__(self, world, backend):
        self.world, self.backend = world, backend
        self.root = backend.as_root()
        rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
        call(self.root, "POST", f"{RBAC}/clusterroles",
             {"metadata": {"name": ROLE}, "rules": [rule]})
        call(self.root, "POST", f"{RBAC}/clusterrolebindings",
             binding(ROLE, ROLE, "User", "kuberelay-agent"))
        call(self.root, "POST", CRDS, CRD)
        wait_until(lambda: self.root.get(f"/apis/{GROUP}/v1").status == 200, 30, "the CRD")
        self.fill()
        file = write_yaml(world.folder / "fleet.yaml", {"readers": [ALL]})
        world.start_hub(fleetFile=file)
        world.start_agent("r1", backend.kubeconfig(str(world.folder / "agent.kubeconfig")))
        wait_until(lambda: GROUP in self.get("/apis").body.decode(), 30, "the catalog")

    def fill(self):
        labels = {"app": "web"}
        spec = {"containers": [{"name": "c", "image": "registry.example/web:1"}]}
        for n in range(3):
            call(self.root, "POST", "/api/v1/namespaces/default/pods",
                 {"metadata": {"name": f"fleet-{n}", "labels": labels}, "spec": spec})
            call(self.root, "POST", f"/apis/{GROUP}/v1/namespaces/default/widgets",
                 {"apiVersion": f"{GROUP}/v1", "kind": "Widget",
                  "metadata": {"name": f"w-{n}"}, "spec": {"size": n, "extra": "é\u2028\\"}})
        call(self.root, "POST", "/apis/apps/v1/namespaces/default/deployments",
             {"metadata": {"name": "fleet"},
              "spec": {"selector": {"matchLabels": labels},
                       "template": {"metadata": {"labels": labels}, "spec": spec}}})
        call(self.root, "POST", "/api/v1/namespaces/default/services",
             {"metadata": {"name": "fleet"}, "spec": {"ports": [{"port": 80}]}})

    def get(self, path, accept=None):
        with self.world.client() as client:
            return client.get(f"{STAR}{path}", [("accept", accept)] if accept else [])

    def direct(self, path, accept=None):
        return self.root.get(path, [("accept", accept)] if accept else []).json()

    def tool(self, server, name):
        home = self.world.folder / name
        os.makedirs(home, exist_ok=True)
        if server:
            config = self.world.kubeconfig(home / "config", "*", server=server)
        else:
            from backends import kubeconfig_of
            root = self.backend.root
            config = write_yaml(home / "config", kubeconfig_of(
                self.backend.url, self.backend.ca, root.crt, root.key))
        return kubectl.Kubectl(kubectl.newest(), config, home)


@pytest.fixture(scope="module")
def real(backend, binaries, workdir):
    if not backend.is_real:
        pytest.skip("needs a real API server: runs on the real backends")
    from world import World
    world = World(workdir / "fleet-real", binaries)
    yield RealFleet(world, backend)
    world.close()


PATHS = ["/api/v1/pods", "/api/v1/namespaces", "/api/v1/services", "/apis/apps/v1/deployments",
         "/api/v1/configmaps", f"{RBAC}/clusterroles", f"/apis/{GROUP}/v1/widgets",
         "/apis/coordination.k8s.io/v1/leases", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"]


@pytest.mark.parametrize("path", PATHS)
def test_objects_are_those_of_the_cluster(real, path):
    answer = real.get(path)
    if "leases" in path:
        assert answer.status == 403  # never on demand
        return
    assert answer.status == 200, answer
    shown = {key(i): bare(i) for i in answer.json()["items"]}
    direct = real.direct(path)
    assert shown == {key(i, "r1"): bare(i) for i in direct["items"]}
    assert answer.json()["kind"] == direct["kind"]
    assert answer.json()["apiVersion"] == direct["apiVersion"]


@pytest.mark.parametrize("path", [p for p in PATHS if "leases" not in p])
def test_tables_are_those_of_the_cluster(real, path):
    real.get(path)
    table, direct = real.get(path, TABLE).json(), real.direct(path, TABLE)
    assert table["columnDefinitions"][1:] == direct["columnDefinitions"]
    timely = {i for i, c in enumerate(direct["columnDefinitions"])
              if c["name"] in ("Age", "Made", "Last Schedule") or c["type"] == "date"}
    rows = {key(r["object"]): r["cells"] for r in table["rows"]}
    assert rows.keys() == {key(r["object"], "r1") for r in direct["rows"]}
    for row in direct["rows"]:
        ours = rows[key(row["object"], "r1")]
        assert ours[0] == "r1"
        for i, cell in enumerate(row["cells"]):
            assert i in timely or ours[i + 1] == cell, (i, ours, row["cells"])
    partial = real.get(path, PARTIAL_LIST).json()
    assert partial["kind"] == real.direct(path, PARTIAL_LIST)["kind"]


@pytest.mark.parametrize("args", [("pods",), ("pods", "-o", "wide"), ("deployments", "-o", "wide"),
                                  ("widgets", "-o", "wide"), ("wdg",), ("svc,deploy",),
                                  ("ns",), ("pods", "--show-labels"), ("pods", "-o", "name")])
def test_kubectl_prints_what_it_prints_of_the_cluster(real, args):
    fleet = real.tool(real.world.hub.url + "/clusters/*", "k-fleet")
    direct = real.tool(None, "k-direct")
    scope = () if args[0] == "ns" else ("-A",)

    def rows(tool, drop):
        out = tool.ok("get", *args, *scope)
        lines = [line.split() for line in out.splitlines() if line.strip()]
        found = []
        for line in lines:
            line = [w for w in line if w not in drop]
            found.append([re.sub("^$", "<none>", re.sub(LABEL, "", w)) for w in line])
        return found
    ours, theirs = rows(fleet, ("CLUSTER", "r1")), rows(direct, ())

    def ageless(lines):  # what tells the time may have moved on by a second
        return [[w for w in line if not re.fullmatch(r"(\d+[smhdy])+", w)] for line in lines]
    assert ageless(ours) == ageless(theirs)


def test_discovery_is_that_of_the_cluster(real):
    def types(groups):
        return {(g["metadata"].get("name", ""), v["version"], r["resource"],
                 r["responseKind"]["kind"], r["scope"])
                for g in groups["items"] for v in g["versions"] for r in v["resources"]
                if {"list", "watch"} <= set(r["verbs"])}
    form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    for path in ("/api", "/apis"):
        assert types(real.get(path, form).json()) == types(real.direct(path, form))
    fleet = real.tool(real.world.hub.url + "/clusters/*", "k-fleet")
    lines = fleet.ok("api-resources", "-o", "name").splitlines()
    assert f"widgets.{GROUP}" in lines and "pods" in lines


def test_a_watch_shows_what_happens_in_the_cluster(real):
    path = f"/apis/{GROUP}/v1/namespaces/default/widgets"
    start = real.get(path).json()["metadata"]["resourceVersion"]
    with real.world.client() as client:
        stream = client.start("GET", f"{STAR}{path}?watch=1&resourceVersion={start}")
        call(real.root, "POST", path, {"apiVersion": f"{GROUP}/v1", "kind": "Widget",
                                       "metadata": {"name": "seen"}, "spec": {"size": 1.50}})
        stream.wait(lambda s: b"\n" in s.body, 20)
        event = json.loads(stream.body.splitlines()[0])
        assert event["type"] == "ADDED" and event["object"]["kind"] == "Widget"
        direct = real.direct(f"{path}/seen")
        assert bare(event["object"]) == bare(direct)
        call(real.root, "DELETE", f"{path}/seen")
        stream.wait(lambda s: b'"DELETED"' in s.body, 20)
        stream.reset()
