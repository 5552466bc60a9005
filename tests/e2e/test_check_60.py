# SPDX-License-Identifier: Apache-2.0
"""Check 60: real clients through a cluster's path, and what they do when its agent is away:
client-go, controller-runtime, Helm, the way Argo CD watches, Debian's Python client."""

import json
import time

import pytest

import backends
from cluster_site import Site, configmap
from procs import Process, run

pytestmark = pytest.mark.real


@pytest.fixture
def own(backend, world, tmp_path):
    """The real API server behind a hub and an agent that may be killed."""
    world.start_hub()
    return Site(world, backend, "c1", tmp_path / "c1")


def built(name):
    found = backends.real_binaries(name)
    if name not in found:
        pytest.skip(f"{name} is not built here (see tests/real/build)")
    return found[name]


def hub_kubeconfig(site, path):
    return site.world.kubeconfig(path, site.cluster)


# -- informers and a manager

def start_client(site, kind, namespace, folder):
    config = hub_kubeconfig(site, folder / f"{kind}.kubeconfig")
    process = Process(kind, [built("clients"), "--kubeconfig", config, "--namespace", namespace,
                             kind], str(folder))
    site.world.processes.append(process)
    return process


def outage(site, seconds, work):
    """The agent dies; `work` happens behind its back; it comes back."""
    site.agent.kill()
    site.world.wait_away(site.cluster)
    work()
    time.sleep(seconds)
    site.agent = site.world.restart_agent(site.agent)


@pytest.mark.parametrize("seconds", [20, pytest.param(300, marks=pytest.mark.long)])
def test_check_60_informers_and_managers_survive_an_outage_without_a_list(own, tmp_path, seconds):
    namespace = own.namespace("informed")
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    labels = {"follow": "yes"}
    for name in ("first", "doomed"):
        own.create(path, configmap(name, labels=labels))
    both = [start_client(own, kind, namespace, tmp_path) for kind in ("informer", "manager")]
    informer, manager = both
    for process in both:
        process.wait_line("event=synced", 30)
    informer.wait_line('event=add name=first k="v"')
    manager.wait_line('event=reconciled name=first k="v" error=<nil>')
    # client-go lists again after a watch that ends within a second and showed nothing: each has
    # to show something before the agent goes.
    own.create(path, configmap("shown", labels=labels))
    informer.wait_line("event=add name=shown")
    manager.wait_line("event=reconciled name=shown")
    marks = [process.mark() for process in both]

    def work():
        own.create(path, configmap("while-away", {"k": "new"}, labels=labels))
        assert own.ask_direct("DELETE", f"{path}/doomed").status == 200
    outage(own, seconds, work)
    # Their back-off grows to 30 s while they are refused.
    informer.wait_line('event=add name=while-away k="new"', 90, marks[0])
    informer.wait_line("event=delete name=doomed", 30, marks[0])
    manager.wait_line('event=reconciled name=while-away k="new" error=<nil>', 90, marks[1])
    for process, mark in zip(both, marks):
        assert process.alive
        assert not process.grep(r"event=request kind=list\b", mark), process.tail(30)
        assert not process.grep(r"event=lost|event=add name=first", mark)
        statuses = [line.rsplit("status=", 1)[1].split()[0]
                    for line in process.grep(r"event=request kind=watch\b", mark)]
        # One watch may have been under way to the agent when it died.
        assert set(statuses) <= {"200", "429", "503"} and statuses.count("503") <= 1, statuses


# -- Helm

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: small\nversion: 0.1.0\n",
    "values.yaml": "text: one\n",
    "templates/map.yaml": """apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data: {text: "{{ .Values.text }}"}
""",
    "templates/rest.yaml": """apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}"}
spec: {selector: {app: small}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  selector: {matchLabels: {app: small}}
  template:
    metadata: {labels: {app: small}}
    spec: {containers: [{name: c, image: "example.test/a:1"}]}
""",
    "templates/hook.yaml": """apiVersion: v1
kind: ConfigMap
metadata:
  name: "{{ .Release.Name }}-hook"
  annotations: {helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: before-hook-creation}
data: {revision: "{{ .Release.Revision }}"}
""",
}


class Helm:
    def __init__(self, binary, kubeconfig, namespace, folder):
        self.prefix = [binary, "--kubeconfig", kubeconfig, "-n", namespace]
        self.env = {"HOME": str(folder), "HELM_CACHE_HOME": str(folder / "cache"),
                    "HELM_CONFIG_HOME": str(folder / "helm"), "HELM_DATA_HOME": str(folder / "data")}
        self.chart = folder / "small"
        for name, text in CHART.items():
            (self.chart / name).parent.mkdir(parents=True, exist_ok=True)
            (self.chart / name).write_text(text, encoding="utf-8")

    def run(self, *args):
        return run([*self.prefix, *args], 120, self.env)

    def ok(self, *args):
        code, out, err = self.run(*args)
        assert code == 0, (args, out.decode(), err.decode())
        return out.decode()


def test_check_60_helm_install_upgrade_rollback_uninstall(own, tmp_path):
    namespace = own.namespace("helm")
    where = f"/api/v1/namespaces/{namespace}/configmaps/app"
    helm = Helm(built("helm"), hub_kubeconfig(own, tmp_path / "config"), namespace, tmp_path)

    def text():
        answer = own.ask_direct("GET", where)
        return answer.json()["data"]["text"] if answer.status == 200 else answer.status
    chart = str(helm.chart)
    helm.ok("install", "app", chart)
    assert text() == "one"
    helm.ok("upgrade", "app", chart, "--set", "text=two")
    assert text() == "two"
    # With the agent away nothing may look as if it were gone.
    own.agent.kill()
    own.world.wait_away("c1")
    for args in (("upgrade", "--install", "app", chart, "--set", "text=lost"), ("status", "app"),
                 ("uninstall", "app")):
        code, out, err = helm.run(*args)
        assert code != 0 and b"not found" not in err.lower(), (args, out, err)
    assert text() == "two"
    own.agent = own.world.restart_agent(own.agent)
    helm.ok("rollback", "app", "1", "--wait-for-jobs")
    assert text() == "one"
    assert [r["status"] for r in json.loads(helm.ok("history", "app", "-o", "json"))] == [
        "superseded", "superseded", "deployed"]
    assert "kind: Deployment" in helm.ok("get", "manifest", "app")
    helm.ok("uninstall", "app")
    assert text() == 404
    assert json.loads(helm.ok("list", "-o", "json")) == []


# -- Argo CD: one watch for each kind, and the whole OpenAPI document

OPENAPI = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def watchable(site):
    """The collection path of every kind that can be listed and watched."""
    found = []
    for root in ("/api", "/apis"):
        groups = site.ask("GET", root, [
            ("accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")]).json()
        for group in groups["items"]:
            name = group["metadata"].get("name", "")
            version = group["versions"][0]
            base = f"{root}/{name}/{version['version']}" if name else f"{root}/{version['version']}"
            found += [f"{base}/{r['resource']}" for r in version["resources"]
                      if {"list", "watch"} <= set(r["verbs"])]
    return found


def test_check_60_the_way_argo_cd_watches(own):
    direct, relayed = own.both("GET", "/openapi/v2", [("accept", OPENAPI)])
    assert relayed.status == 200 and relayed.body == direct.body and len(relayed.body) > 1 << 20
    kinds = watchable(own)
    assert len(kinds) > 40
    maps = "/api/v1/configmaps"
    versions = {}
    for kind in kinds:
        answer = own.ask("GET", f"{kind}?limit=500")
        assert answer.status == 200, (kind, answer)
        versions[kind] = answer.json()["metadata"]["resourceVersion"]
    targets = [f"{kind}?watch=true&allowWatchBookmarks=true&resourceVersion={versions[kind]}"
               for kind in (kinds * 5)[:200]]
    with own.world.client() as client:
        def open_all():
            return [client.start("GET", own.prefix + target) for target in targets]
        streams = open_all()
        for stream in streams:
            assert stream.wait_headers(30).status == 200
        namespace = own.namespace("argo")
        own.create(f"/api/v1/namespaces/{namespace}/configmaps", configmap("one"))
        watchers = [s for s, t in zip(streams, targets) if t.startswith(maps + "?")]
        assert len(watchers) >= 3
        for stream in watchers:
            stream.wait_bytes(1, 10)
        own.agent.kill()
        for stream in streams:  # a clean end each: a reset would make it list again
            stream.wait_end(10)
        own.world.wait_away("c1")
        assert {client.request("GET", own.prefix + target, timeout=10).status
                for target in targets[:20]} == {429}
        own.agent = own.world.restart_agent(own.agent)
        streams = open_all()
        assert {stream.wait_headers(30).status for stream in streams} == {200}
        for stream, target in zip(streams, targets):
            if target.startswith(maps + "?"):
                stream.wait_bytes(1, 10)  # from where it was
        for stream in streams:
            stream.reset()


# -- Debian's Python client

PROGRAM = """
import sys, threading, time
from kubernetes import client, config, watch
config.load_kube_config(sys.argv[1])
core, namespace = client.CoreV1Api(), sys.argv[2]
body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="py"), data={"k": "v"})
version = core.list_namespaced_config_map(namespace).metadata.resource_version
def create():
    time.sleep(0.5)
    core.create_namespaced_config_map(namespace, body)
    core.patch_namespaced_config_map("py", namespace, {"data": {"k": "w"}})
    core.delete_namespaced_config_map("py", namespace)
threading.Thread(target=create).start()
watching = watch.Watch()
for event in watching.stream(core.list_namespaced_config_map, namespace,
                             resource_version=version, timeout_seconds=60):
    print(event["type"], event["object"].metadata.name, event["object"].data["k"])
    if event["type"] == "DELETED":
        watching.stop()
try:
    core.read_namespaced_config_map("none", namespace)
except client.ApiException as error:
    print(error.status, error.reason)
"""


def test_check_60_the_python_client(own, tmp_path):
    code, _, _ = run(["/usr/bin/python3", "-c", "import kubernetes"])
    if code != 0:
        pytest.skip("needs python3-kubernetes")
    namespace = own.namespace("python")
    config = hub_kubeconfig(own, tmp_path / "config")
    code, out, err = run(["/usr/bin/python3", "-c", PROGRAM, config, namespace], 60)
    assert code == 0, err.decode()
    assert out.decode().splitlines() == ["ADDED py v", "MODIFIED py w", "DELETED py w",
                                         "404 Not Found"]
