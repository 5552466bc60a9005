# SPDX-License-Identifier: Apache-2.0
"""F022 through the fleet view: custom types that are added, changed and removed at run time."""

import json

import pytest

from clock import scaled, wait_until
from fleet import STAR, TABLE, key
from fleet_clusters import CM, BackendCluster, LinkedFleet

pytestmark = pytest.mark.real

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "field.example.test"
OPEN = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}


def definition(scope="Namespaced", versions=(("v1", True, True),)):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{GROUP}"},
            "spec": {"group": GROUP, "scope": scope,
                     "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
                     "versions": [{"name": n, "served": served, "storage": stored, "schema": OPEN}
                                  for n, served, stored in versions]}}


class Types:
    def __init__(self, site):
        self.site, self.cluster = site, site.clusters["c1"]

    def get(self, path, accept=None):
        with self.site.world.client() as client:
            return client.get(STAR + path, [("accept", accept)] if accept else [], timeout=30)

    def served(self, version, status):
        path = f"/apis/{GROUP}/{version}/widgets"
        wait_until(lambda: self.get(path).status == status, scaled(40), f"{path}: {status}")
        return path

    def define(self, **kw):
        self.cluster.ask("POST", CRDS, definition(**kw))
        wait_until(lambda: self.cluster.get(f"/apis/{GROUP}/v1/widgets").status == 200, 30, "CRD")

    def widget(self, name, base=f"/apis/{GROUP}/v1/namespaces/default/widgets"):
        self.cluster.ask("POST", base, {"apiVersion": f"{GROUP}/v1", "kind": "Widget",
                                        "metadata": {"name": name}, "spec": {"old": name}})

    def remove(self):
        self.cluster.ask("DELETE", f"{CRDS}/widgets.{GROUP}")
        wait_until(lambda: self.cluster.get(f"/apis/{GROUP}/v1/widgets").status == 404, 60, "gone")


@pytest.fixture
def types(world, backend):
    site = LinkedFleet(world, [BackendCluster("c1", backend, world.folder)],
                       agent={"discoveryInterval": "1s"})
    wait_until(lambda: site.compare(CM) is None, 60, "in step")
    made = Types(site)
    yield made
    if made.cluster.get(f"{CRDS}/widgets.{GROUP}").status == 200:
        made.remove()


def names(answer):
    return sorted(i["metadata"]["name"] for i in answer.json()["items"])


def test_field_F022_a_type_comes_changes_and_goes(types):
    assert types.get(f"/apis/{GROUP}/v1/widgets").status == 404
    types.define()
    path = types.served("v1", 200)
    with types.site.world.client() as client:
        watch = client.start("GET", f"{STAR}{path}?watch=1")
        for n in range(3):
            types.widget(f"w-{n}")
        watch.wait(lambda s: s.body.count(b'"ADDED"') == 3, 20)
        assert names(types.get(path)) == ["w-0", "w-1", "w-2"]

        changed = types.cluster.ask("GET", f"{CRDS}/widgets.{GROUP}")
        changed["spec"]["versions"] = definition(
            versions=(("v1", True, False), ("v2", True, True)))["spec"]["versions"]
        types.cluster.ask("PUT", f"{CRDS}/widgets.{GROUP}", changed)
        newer = types.served("v2", 200)
        wait_until(lambda: len(types.get(newer).json()["items"]) == 3, scaled(20), "v2 objects")
        types.cluster.ask("PATCH", f"/apis/{GROUP}/v2/namespaces/default/widgets/w-0",
                          {"spec": {"old": None, "new": "w-0"}}, "application/merge-patch+json")
        for where in (path, newer):
            wait_until(lambda p=where: b'"new":"w-0"' in types.get(p).body, 20, "renamed")
            assert {i["apiVersion"] for i in types.get(where).json()["items"]} == {
                where[6:].rpartition("/")[0]}

        types.remove()
        watch.wait(lambda s: s.body.count(b'"DELETED"') == 3 or s.ended, 40)
        lines = [json.loads(x) for x in watch.body.splitlines()]
        assert sorted(e["object"]["metadata"]["name"] for e in lines
                      if e["type"] == "DELETED") == ["w-0", "w-1", "w-2"]
        types.served("v1", 404)
        types.served("v2", 404)
    # The others go on.
    types.cluster.ask("POST", "/api/v1/namespaces/m1/configmaps",
                      {"metadata": {"name": "after-the-type"}})
    wait_until(lambda: types.site.compare(CM) is None, 20, "other types")
    types.cluster.ask("DELETE", "/api/v1/namespaces/m1/configmaps/after-the-type")

    types.define(scope="Cluster")
    types.served("v1", 200)
    assert names(types.get(path)) == []
    types.widget("top", path)
    wait_until(lambda: names(types.get(path)) == ["top"], scaled(20), "the new one")
    assert key(types.get(path).json()["items"][0]) == ("c1", "", "top")
    table = types.get(path, TABLE).json()
    assert [c["name"] for c in table["columnDefinitions"]][:2] == ["Cluster", "Name"]
