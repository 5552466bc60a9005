# SPDX-License-Identifier: Apache-2.0
"""Programs of client-go and multicluster-runtime on the fleet view: a real API server and a
simulated one, whose objects have the same names, behind one hub."""

import itertools
import json
import socket

import pytest

import backends
from backends import write_yaml
from clock import scaled, wait_until
from cluster_site import Site, configmap
from procs import Process
from world import Binaries

pytestmark = pytest.mark.real

CLUSTERS = ("c1", "c2")  # the real one, the simulated one
NOISE = "example.test/noise"
READERS = [{"users": ["admin"], "clusters": ["*"], "resources": ["*"]}]
LOSSY = [{"name": "no-noise", "resources": ["configmaps"],
          "drop": [f'metadata.annotations["{NOISE}"]'], "always": True}]
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLE = "kuberelay-fleet-clients"
numbers = itertools.count(1)


def built(name):
    found = backends.real_binaries(name)
    if name not in found:
        pytest.skip(f"{name} is not built here (see tests/real/build)")
    return found[name]


@pytest.fixture(scope="module")
def reading(backend):
    """The agent of the real cluster may read what these tests are about."""
    if not backend.is_real:
        pytest.skip("needs a real API server: runs on the real backends")
    rule = {"apiGroups": [""], "resources": ["configmaps", "namespaces"],
            "verbs": ["get", "list", "watch"]}
    objects = [("clusterroles", {"metadata": {"name": ROLE}, "rules": [rule]}),
               ("clusterrolebindings", backends.binding(ROLE, ROLE, "User", "kuberelay-agent"))]
    with backend.as_root() as client:
        for resource, obj in objects:
            answer = client.request("POST", f"{RBAC}/{resource}",
                                    [("content-type", "application/json")],
                                    json.dumps(obj).encode())
            assert answer.status == 201, answer
        yield
        for resource, _ in objects:
            client.request("DELETE", f"{RBAC}/{resource}/{ROLE}")


@pytest.fixture(scope="module")
def simulator(request, workdir):
    found = Binaries(request.config.getoption("--bin"))
    if found.missing("kubesim"):
        pytest.fail("kubesim is not built")
    made = backends.KubesimBackend(workdir / "fleet-sim", found["kubesim"])
    yield made
    made.close()


class Fleet:
    def __init__(self, world, servers, profiles=(), first=CLUSTERS):
        self.world, self.servers = world, servers
        config = {"readers": READERS, **({"profiles": list(profiles)} if profiles else {})}
        self.hub_options = {
            "fleetFile": write_yaml(world.folder / "fleet.yaml", config),
            "adminSocket": str(world.folder / "hub.sock"),
            # A hub that starts shows nothing before its agents had the time to come back.
            "startGrace": "3s"}
        world.start_hub(**self.hub_options)
        self.sites = {}
        for name in first:
            self.join(name)
        self.namespace = f"fleet-{next(numbers)}"
        for name in CLUSTERS:
            self.direct(name, "POST", "/api/v1/namespaces",
                        {"metadata": {"name": self.namespace}})
        self.maps = f"/api/v1/namespaces/{self.namespace}/configmaps"

    def join(self, name):
        self.sites[name] = Site(self.world, self.servers[name], name, self.world.folder / name)

    def direct(self, name, method, path, obj=None, kind="application/json"):
        headers = [("content-type", kind)] if obj else []
        body = json.dumps(obj).encode() if obj else None
        server = self.servers[name]
        with (server.as_root() if server.is_real else server.direct()) as client:
            answer = client.request(method, path, headers, body)
        assert answer.status < 300, answer
        return answer.json()

    def create(self, name, *args, **metadata):
        for cluster in CLUSTERS:
            self.direct(cluster, "POST", self.maps, configmap(name, *args, **metadata))

    def set(self, cluster, name, value):
        self.direct(cluster, "PATCH", f"{self.maps}/{name}", {"data": {"k": value}},
                    "application/merge-patch+json")

    def remove(self, cluster, name):
        self.direct(cluster, "DELETE", f"{self.maps}/{name}")

    def get(self, cluster, name):
        return self.direct(cluster, "GET", f"{self.maps}/{name}")

    def kubeconfig(self, path):
        return self.world.kubeconfig(path, None, server=self.world.hub.url)

    def start(self, program, *args, name=None, **env):
        name = name or "-".join([program, *args])
        config = self.kubeconfig(self.world.folder / f"{name}.kubeconfig")
        if program == "clients":
            args = ["--namespace", self.namespace, *args]
        process = Process(name, [built(program), "--kubeconfig", config, *args],
                          str(self.world.folder), env=env)
        self.world.processes.append(process)
        return process

    def restart_agent(self, name, work):
        """The agent dies; `work` happens behind its back; it comes back."""
        site = self.sites[name]
        site.agent.kill()
        self.world.wait_away(name)
        work()
        site.agent = self.world.restart_agent(site.agent)

    def restart_hub(self, work):
        self.world.hub.kill()
        work()
        self.world.restart_hub(self.world.hub, **self.hub_options)

    def forget(self, name):
        """What `kuberelayctl` does when a cluster leaves for good."""
        with socket.socket(socket.AF_UNIX) as conn:
            conn.settimeout(scaled(10))
            conn.connect(self.hub_options["adminSocket"])
            conn.sendall(f"DELETE /clusters/{name} HTTP/1.1\r\nHost: hub\r\n"
                         "Connection: close\r\n\r\n".encode())
            answer = conn.recv(4096)
        return answer.split(b" ", 2)[1] == b"200"


@pytest.fixture
def make(reading, backend, simulator, world):
    servers = dict(zip(CLUSTERS, (backend, simulator)))
    return lambda **kw: Fleet(world, servers, **kw)


def key(fleet, cluster, name):
    return rf"key={cluster}\|{fleet.namespace}/{name}"


# -- informers

@pytest.mark.parametrize("streams", [True, False], ids=["watch-list", "list-and-watch"])
def test_fleet_informers_follow_all_clusters_through_restarts(make, streams):
    fleet = make()
    fleet.create("same")
    fleet.create("doomed")
    informer = fleet.start("clients", "fleet",
                           KUBE_FEATURE_WatchListClient="true" if streams else "false")
    informer.wait_line(r"event=synced objects=\d+", 40)
    for cluster in CLUSTERS:
        informer.wait_line(f'event=add {key(fleet, cluster, "same")} k="v"')
    if streams:  # list and watch in one
        assert not informer.grep("event=request kind=watch")
    else:  # which follows the list
        informer.wait_line("event=request kind=watch")

    fleet.set("c1", "same", "one")
    informer.wait_line(f'event=update {key(fleet, "c1", "same")} k="one"')
    fleet.remove("c2", "doomed")
    informer.wait_line(f'event=delete {key(fleet, "c2", "doomed")}')

    mark = informer.mark()
    fleet.restart_agent("c1", lambda: (fleet.set("c1", "same", "two"),
                                       fleet.remove("c1", "doomed")))
    informer.wait_line(f'event=update {key(fleet, "c1", "same")} k="two"', 60, mark)
    informer.wait_line(f'event=delete {key(fleet, "c1", "doomed")}', 30, mark)
    assert not informer.grep("event=request kind=list", mark), informer.tail(30)

    mark = informer.mark()
    fleet.restart_hub(lambda: fleet.set("c2", "same", "three"))
    informer.wait_line(f'event=update {key(fleet, "c2", "same")} k="three"', 90, mark)
    fleet.set("c1", "same", "four")
    informer.wait_line(f'event=update {key(fleet, "c1", "same")} k="four"', 60, mark)
    assert informer.alive
    assert not informer.grep("event=(delete|lost)", mark), informer.tail(40)


def test_fleet_informers_see_clusters_join_and_leave(make):
    fleet = make(first=["c1"])
    fleet.create("same")
    informer = fleet.start("clients", "fleet")
    informer.wait_line(r"event=synced objects=\d+", 40)
    informer.wait_line(f'event=add {key(fleet, "c1", "same")}')
    assert not informer.grep(key(fleet, "c2", "same"))

    fleet.join("c2")
    informer.wait_line(f'event=add {key(fleet, "c2", "same")}', 40)
    mark = informer.mark()
    fleet.sites["c2"].agent.kill()
    fleet.world.wait_away("c2")
    fleet.set("c1", "same", "still")
    informer.wait_line(f'event=update {key(fleet, "c1", "same")} k="still"')
    assert not informer.grep(f'event=(delete|lost) {key(fleet, "c2", "same")}', mark)

    wait_until(lambda: fleet.forget("c2"), 30, "c2 forgotten")
    informer.wait_line(f'event=delete {key(fleet, "c2", "same")}', 30, mark)
    assert not informer.grep(f'event=(delete|lost) {key(fleet, "c1", "same")}')
    assert not informer.grep("event=request kind=list", mark), informer.tail(30)


# -- writes that were built on what the fleet view shows

@pytest.mark.parametrize("profiles", [(), LOSSY], ids=["lossless", "lossy"])
def test_fleet_counters_lose_no_update(make, profiles):
    fleet = make(profiles=profiles)
    fleet.create("counter", {"n": "0", "other": "kept"}, labels={"count": "yes"},
                 annotations={NOISE: "dropped on the way", "mine": "1"})
    both = [fleet.start("clients", "counters", name=f"counters-{i}") for i in range(2)]
    for process in both:
        process.wait_line("event=done", 120)
    for cluster in CLUSTERS:
        found = fleet.get(cluster, "counter")
        assert found["data"] == {"n": "20", "other": "kept"}, (cluster, found)
        meta = found["metadata"]
        assert meta["annotations"] == {NOISE: "dropped on the way", "mine": "1"}
        assert meta["labels"] == {"count": "yes"}


def test_fleet_typed_clients_write_protobuf(make):
    """Updates with retries, a create of a copy, and a delete with preconditions."""
    fleet = make()
    fleet.direct("c1", "POST", fleet.maps, configmap(
        "counter", {"n": "0", "other": "kept"}, labels={"count": "yes"},
        annotations={"mine": "1"}))
    both = [fleet.start("clients", "typed", name=f"typed-{i}") for i in range(2)]
    for process in both:
        process.wait_line("event=done", 120)
        assert process.grep("event=deleted cluster=c1 name=counter-copy")
    found = fleet.get("c1", "counter")
    assert found["data"] == {"n": "20", "other": "kept"}, found
    assert found["metadata"]["annotations"] == {"mine": "1"}
    assert found["metadata"]["labels"] == {"count": "yes"}


def test_fleet_typed_clients_are_told_what_to_do_about_slim_objects(make):
    fleet = make(profiles=LOSSY)
    fleet.direct("c1", "POST", fleet.maps, configmap(
        "counter", {"n": "0"}, labels={"count": "yes"}, annotations={NOISE: "dropped"}))
    typed = fleet.start("clients", "typed")
    typed.wait_line(r'ContentType .*application/json', 60)
    assert fleet.get("c1", "counter")["data"] == {"n": "0"}


# -- the example

def test_fleet_example_controller_reads_all_and_writes_each(make):
    fleet = make()
    fleet.create("followed", {"k": "first"}, labels={"follow": "yes"})
    fleet.create("ignored")
    controller = fleet.start("multicluster-controller")

    def reconciled(cluster, value, after=0):
        controller.wait_line(f"event=reconciled cluster={cluster} name={fleet.namespace}/followed "
                             f'k="{value}" error=<nil>', 60, after)
        assert fleet.get(cluster, "followed")["metadata"]["annotations"] == {
            "example.test/seen": value}
    for cluster in CLUSTERS:
        controller.wait_line(f"event=joined cluster={cluster}", 60)
    for cluster in CLUSTERS:
        reconciled(cluster, "first")
    fleet.set("c2", "followed", "second")
    reconciled("c2", "second")
    assert "annotations" not in fleet.get("c1", "ignored")["metadata"]

    mark = controller.mark()
    fleet.restart_hub(lambda: fleet.set("c1", "followed", "third"))
    reconciled("c1", "third", mark)
    fleet.sites["c2"].agent.kill()
    fleet.world.wait_away("c2")
    wait_until(lambda: fleet.forget("c2"), 30, "c2 forgotten")
    controller.wait_line("event=left cluster=c2", 30, mark)
    fleet.set("c1", "followed", "fourth")
    reconciled("c1", "fourth", mark)
