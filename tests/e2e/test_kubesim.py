# SPDX-License-Identifier: Apache-2.0
"""The simulator against a real API server: the same steps, the same answers.

Compared are status, content type, warnings and the whole body, after what each server makes up
anew is taken out. What kubesim leaves out on purpose (tests/kubesim/README.md) is not asked.
"""

import json
import re

import pytest

from backends import KubesimBackend
from world import Binaries

JSON = ("content-type", "application/json")
MERGE = ("content-type", "application/merge-patch+json")
STRATEGIC = ("content-type", "application/strategic-merge-patch+json")
PATCH = ("content-type", "application/json-patch+json")
APPLY = ("content-type", "application/apply-patch+yaml")
META = ("accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
METAS = ("accept", META[1].replace("Metadata;", "MetadataList;"))

VOLATILE = {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields",
            "continue", "description"}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
TABLE = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
AGE = re.compile(r"[0-9]+s")  # a cell

NUMBERS = re.compile(r"current: \d+|version: \d+ \(\d+\)")


def normal(value):
    if isinstance(value, dict):
        return {k: "*" if k in VOLATILE else normal(v) for k, v in value.items()}
    if isinstance(value, list):
        return [normal(v) for v in value]
    if isinstance(value, str) and AGE.fullmatch(value):
        return "AGE"
    if isinstance(value, str):
        return NUMBERS.sub("N", UUID.sub("UID", value))
    return value


def body_of(answer):
    lines = answer.body.splitlines() if b'{"type":' in answer.body[:8] else [answer.body]
    try:
        return [normal(json.loads(line)) for line in lines if line]
    except ValueError:
        return answer.body


class Twins:
    """Both servers in one namespace of their own; ask() is one step on each."""

    def __init__(self, clients, namespace):
        self.clients, self.namespace = clients, namespace
        self.maps = f"/api/v1/namespaces/{namespace}/configmaps"
        self.root = f"/api/v1/namespaces/{namespace}"
        self.deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        self.ask("POST", "/api/v1/namespaces", [JSON], {"metadata": {"name": namespace}})

    def ask(self, method, path, headers=(), body=None):
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        data = body.encode() if body is not None else None
        real, sim = [c.request(method, path, list(headers), data) for c in self.clients]
        step = (method, path, body)
        assert (step, sim.status) == (step, real.status)
        assert (step, body_of(sim)) == (step, body_of(real))
        for name in ("content-type", "warning", "retry-after", "cache-control"):
            assert (step, sim.all(name)) == (step, real.all(name))
        return real


@pytest.fixture(scope="module")
def servers(request, backend, workdir):
    if backend.name != "real-1.33":
        pytest.skip("kubesim plays a server of 1.33")
    found = Binaries(request.config.getoption("--bin"))
    if found.missing("kubesim"):
        pytest.fail("kubesim is not built")
    sim = KubesimBackend(workdir / "twin-sim", found["kubesim"])
    clients = [backend.as_root(), sim.direct()]
    yield clients
    for client in clients:
        client.close()
    sim.close()


@pytest.fixture
def twins(request, servers):
    # Words of the test's name, to be legal and to be one of a kind.
    return Twins(servers, re.sub(r"[^a-z0-9]+", "-", request.node.name[len("test_kubesim_"):])[:50].strip("-"))


def config(name, meta=None, **data):
    return {"metadata": {"name": name, **(meta or {})}, "data": data or {"a": "b"}}


pytestmark = pytest.mark.real


def test_kubesim_creates_as_the_real_one(twins):
    maps = twins.maps
    twins.ask("POST", maps, [JSON], config("x", b="1", a="2"))
    twins.ask("POST", maps, [JSON], config("x"))
    twins.ask("POST", maps, [], config("no-type"))
    twins.ask("POST", maps, [JSON], {"metadata": {}})
    twins.ask("POST", maps, [JSON], config("Bad_Name"))
    twins.ask("POST", maps, [JSON], config("y", {"namespace": "other"}))
    twins.ask("POST", maps, [JSON], config("y", {"labels": {"l": "a b"}}))
    twins.ask("POST", maps, [JSON], config("y", {"resourceVersion": "5"}))
    twins.ask("POST", maps, [JSON], {"metadata": {"name": "y"}, "data": {"n": 1}})
    twins.ask("POST", maps, [JSON], {**config("y"), "apiVersion": "v2", "kind": "ConfigMap"})
    twins.ask("POST", maps, [("content-type", "text/plain")], config("y"))
    twins.ask("POST", maps + "?dryRun=All", [JSON], config("y"))
    twins.ask("POST", maps + "?dryRun=some", [JSON], config("y"))
    twins.ask("POST", maps + "?fieldValidation=some", [JSON], config("y"))
    twins.ask("POST", maps + "?fieldValidation=Strict", [JSON], {**config("y"), "dta": {}})
    twins.ask("POST", maps + "?fieldValidation=Warn", [JSON], {**config("y"), "dta": {}})
    twins.ask("POST", "/api/v1/namespaces/no-such/configmaps", [JSON], config("y"))
    twins.ask("POST", "/api/v1/configmaps", [JSON], config("y"))
    twins.ask("POST", twins.root + "/pods", [JSON],
              {"metadata": {"name": "p"}, "spec": {"containers": []}})


def test_kubesim_reads_as_the_real_one(twins):
    maps = twins.maps
    twins.ask("POST", maps, [JSON], config("x", {"labels": {"l": "1"}}))
    twins.ask("POST", maps, [JSON], config("y"))
    for path in ("/x", "/nope", "/x/status", "/x/foo/bar", "/a%2Fb"):
        twins.ask("GET", maps + path)
    for path in ("/api/v1/nothing", "/apis/apps/v1/nothing", "/apis/nope/v1", "/nope",
                 "/livez", "/livez/nope", "/apis/apps"):
        twins.ask("GET", path)
    twins.ask("GET", maps + "/x", [META])
    twins.ask("GET", maps, [META])  # 406: a list is not one
    twins.ask("GET", maps, [METAS])
    twins.ask("HEAD", maps + "/x")
    twins.ask("PUT", maps, [JSON], config("x"))


@pytest.mark.parametrize("query", [
    "", "limit=1", "limit=0", "limit=x", "timeout=abc", "continue=", "resourceVersion=abc",
    "resourceVersion=99999999", "resourceVersionMatch=Exact", "sendInitialEvents=true",
    "resourceVersion=1&resourceVersionMatch=Foo", "resourceVersion=0&resourceVersionMatch=Exact",
    "labelSelector=l%3D1", "labelSelector=l+in+%281%2C2%29", "labelSelector=%21l",
    "fieldSelector=foo%3D1", "fieldSelector=metadata.name%3Dx",
    "watch=1&resourceVersion=abc", "watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1",
    "watch=1&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name%3Dx",
])
def test_kubesim_lists_as_the_real_one(twins, query):
    twins.ask("POST", twins.maps, [JSON], config("x", {"labels": {"l": "1"}}))
    twins.ask("POST", twins.maps, [JSON], config("y"))
    twins.ask("GET", f"{twins.maps}?{query}")


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
def test_kubesim_tables_as_the_real_one(twins, include):
    """What an agent's reflector asks: columns come once in a watch, with whole objects in rows."""
    for name in ("x", "y", "z"):
        twins.ask("POST", twins.maps, [JSON], config(name))
    for query in ("limit=2", "watch=1&resourceVersion=0&timeoutSeconds=1",
                  "watch=1&resourceVersion=0&timeoutSeconds=1&fieldSelector=metadata.name%3Dy",
                  "watch=1&resourceVersion=1", "resourceVersion=1&resourceVersionMatch=Exact"):
        twins.ask("GET", f"{twins.maps}?includeObject={include}&{query}", [TABLE])


def test_kubesim_streams_metadata_as_the_real_one(twins):
    twins.ask("POST", twins.maps, [JSON], config("x"))
    twins.ask("GET", f"{twins.maps}?watch=1&resourceVersion=0&timeoutSeconds=1", [META])
    twins.ask("GET", f"{twins.maps}?watch=1&resourceVersion=1", [META])


def test_kubesim_updates_and_patches_as_the_real_one(twins):
    x = twins.maps + "/x"
    twins.ask("POST", twins.maps, [JSON], config("x"))
    twins.ask("PUT", x, [JSON], config("x", c="d"))
    twins.ask("PUT", x, [JSON], config("z", c="d"))
    twins.ask("PUT", x, [JSON], config("x", {"resourceVersion": "1"}, c="e"))
    twins.ask("PUT", x, [JSON], config("x", {"uid": "5a3e0c1b-51b1-4c9e-8f0e-6b7562657369"}))
    twins.ask("PUT", twins.maps + "/nope", [JSON], config("nope"))
    twins.ask("PATCH", x, [MERGE], {"data": {"m": "1", "c": None}})
    twins.ask("PATCH", x, [STRATEGIC], {"metadata": {"labels": {"l": "1"}}})
    twins.ask("PATCH", x, [PATCH], [{"op": "add", "path": "/data/j", "value": "2"}])
    twins.ask("PATCH", x, [PATCH], [{"op": "test", "path": "/data/j", "value": "3"}])
    twins.ask("PATCH", x, [PATCH], [{"op": "remove", "path": "/data/zz"}])
    twins.ask("PATCH", x, [PATCH], {"a": 1})
    twins.ask("PATCH", x, [MERGE], {"metadata": {"resourceVersion": "1"}, "data": {"t": "u"}})
    twins.ask("PATCH", twins.maps + "/nope", [MERGE], {"data": {"m": "1"}})


def test_kubesim_applies_as_the_real_one(twins):
    x = twins.maps + "/x"

    def applied(**data):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data}
    twins.ask("PATCH", x, [APPLY], applied(m="1"))
    twins.ask("PATCH", x + "?fieldManager=me", [APPLY], {"data": {"m": "1"}})
    twins.ask("PATCH", x + "?fieldManager=me", [APPLY], applied(m="1", n="1"))
    twins.ask("PATCH", x + "?fieldManager=me", [APPLY], applied(m="2"))
    twins.ask("PATCH", x + "?fieldManager=you", [APPLY], applied(m="2"))
    twins.ask("PATCH", x + "?fieldManager=you", [APPLY], applied(m="3"))
    twins.ask("PATCH", x + "?fieldManager=you", [APPLY], applied(m="3", n="3"))
    twins.ask("PATCH", x + "?fieldManager=you&force=true", [APPLY], applied(m="3"))


def test_kubesim_deletes_as_the_real_one(twins):
    maps, pods = twins.maps, twins.root + "/pods"
    twins.ask("POST", maps, [JSON], config("x"))
    twins.ask("DELETE", maps + "/x", [JSON],
              {"preconditions": {"uid": "5a3e0c1b-51b1-4c9e-8f0e-6b7562657369"}})
    twins.ask("DELETE", maps + "/x?dryRun=All")
    twins.ask("DELETE", maps + "/x", [JSON], {"propagationPolicy": "Background"})
    twins.ask("DELETE", maps + "/x")
    twins.ask("POST", maps, [JSON], config("f", {"finalizers": ["a.b/c"]}))
    twins.ask("DELETE", maps + "/f")
    twins.ask("PATCH", maps + "/f", [MERGE], {"metadata": {"finalizers": None}})
    twins.ask("GET", maps + "/f")
    twins.ask("DELETE", maps + "?labelSelector=l%3D77")
    spec = {"containers": [{"name": "c", "image": "i"}]}
    twins.ask("POST", pods, [JSON], {"metadata": {"name": "p"}, "spec": spec})
    twins.ask("GET", pods + "/p/log")
    twins.ask("PATCH", pods + "/p/status", [MERGE], {"status": {"phase": "Running"}})
    twins.ask("DELETE", pods + "/p")
    twins.ask("DELETE", twins.root)


def test_kubesim_scales_as_the_real_one(twins):
    containers = [{"name": "c", "image": "i:1", "ports": [{"containerPort": 80}]}]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}
    d = twins.deployments + "/d"
    twins.ask("POST", twins.deployments, [JSON],
              {"metadata": {"name": "d"},
               "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}})
    twins.ask("GET", d + "/scale")
    twins.ask("PATCH", d + "/scale", [MERGE], {"spec": {"replicas": 3}})
    more = [{"name": "c", "image": "i:2"}, {"name": "e", "image": "x"}]
    twins.ask("PATCH", d, [STRATEGIC], {"spec": {"template": {"spec": {"containers": more}}}})
    twins.ask("PUT", d + "/status", [JSON],
              {"metadata": {"name": "d"}, "status": {"replicas": 1},
               "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}})
    twins.ask("GET", d)
    twins.ask("DELETE", d)
