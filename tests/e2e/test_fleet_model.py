# SPDX-License-Identifier: Apache-2.0
"""The fleet view as a model: two clusters change at random while agents are killed and paused,
tunnels are cut and silenced, histories are compacted and the hub is killed. Whenever all is quiet,
lists are the union of the clusters, and everybody who watched from anywhere holds the same.

KUBERELAY_TEST_SEED=N runs the changes of a failure again."""

import json
import os
import random
import signal
import threading
import time

import pytest

from backends import RealBackend, binding, write_yaml
from clock import scaled, wait_until
from fleet import ALL, JSON, STAR, Cluster, Fleet, bare, key
from fleet_model import Follower, View, metadata_view, table_view
from h2client import ConnectionLost, H2Client, StreamReset
from procs import Process, run

CM, PODS = "/api/v1/configmaps", "/api/v1/pods"
SPACES = ("default", "m1", "m2")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
HERE = os.path.dirname(os.path.abspath(__file__))


class RealCluster:
    """A real API server, seen directly."""

    def __init__(self, name, backend, folder):
        self.name, self.backend = name, backend
        self.kubeconfig = backend.kubeconfig(str(folder / f"{name}.kubeconfig"))
        self._client = None
        rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
        for path, obj in (("clusterroles", {"metadata": {"name": "model"}, "rules": [rule]}),
                          ("clusterrolebindings", binding("model", "model", "User",
                                                          "kuberelay-agent"))):
            self.ask("POST", f"{RBAC}/{path}", obj)

    def ask(self, method, path, obj=None, kind=JSON[1]):
        if self._client is None or self._client.lost or self._client.goaway:
            self._client = self.backend.as_root()
        body = json.dumps(obj).encode() if obj is not None else None
        answer = self._client.request(method, path, [("content-type", kind)] if body else [], body)
        assert answer.status < 300 or answer.status == 409, answer
        return answer.json()

    def items(self, path):
        return self.ask("GET", path)["items"]

    def compact(self):
        self.backend.etcdctl_compact()

    def close(self):
        if self._client is not None:
            self._client.close()


class SimCluster(Cluster):
    def compact(self):
        self.ask("POST", "/kubesim/compact")

    def ask(self, method, path, obj=None, kind=JSON[1]):
        if kind == JSON[1]:
            return super().ask(method, path, obj)
        answer = self._client.request(method, path, [("content-type", kind)],
                                      json.dumps(obj).encode())
        assert answer.status < 300, answer
        return answer.json()


class ModelSite(Fleet):
    """Two clusters whose agents reach the hub by links that may be cut."""

    overflows = False

    def __init__(self, world, clusters, **hub):
        self.world, self.names, self.epoch = world, [c.name for c in clusters], 0
        self.folder, self._users = world.folder, {}
        self.clusters = {c.name: c for c in clusters}
        world.clients.extend(clusters)
        for cluster in clusters:
            for space in SPACES[1:]:
                cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
        self.more = {"fleetFile": write_yaml(world.folder / "fleet.yaml", {"readers": [ALL]}),
                     "stateDir": str(world.folder / "state"), **hub}
        os.makedirs(self.more["stateDir"], exist_ok=True)
        world.start_hub(**self.more)
        self.context = world.context()
        self.links, self.agents = {}, {}
        relay = relay_program(world)
        for cluster in clusters:
            link = Process(f"link-{cluster.name}", [
                relay, "--listen", "127.0.0.1:0", "--to", world.hub.agent_address,
                "--drop", "both"], str(world.folder))
            world.processes.append(link)
            self.links[cluster.name] = link
            address = link.wait_line(r"listening (\S+)").group(1)
            self.agents[cluster.name] = world.start_agent(
                cluster.name, cluster.kubeconfig, hubs=[address], reconnectMax="300ms")

    @property
    def address(self):
        return self.world.hub.api

    def restart_hub(self):
        hub = self.world.hub
        hub.kill()
        self.epoch += 1  # nobody can have asked the new one before it is
        self.world.restart_hub(hub, **self.more)

    def compare(self, path):
        """None, or how the fleet view differs from the clusters."""
        try:
            with H2Client(self.address, self.context) as client:
                answer = client.get(STAR + path, timeout=30)
        except (OSError, ConnectionLost, StreamReset, TimeoutError) as error:
            return repr(error)
        if answer.status != 200:
            return repr(answer)
        shown = {key(i): bare(i) for i in answer.json()["items"]}
        direct = self.union(path)
        newer = [k for k in shown.keys() & direct.keys() if origin(shown[k]) > origin(direct[k])]
        assert not newer, f"versions that the clusters have not reached: {newer}"
        form = View(path).form
        return difference({k: form(o) for k, o in shown.items()},
                          {k: form(o) for k, o in direct.items()})

    def versions(self, path):
        return {key(i): int(i["metadata"]["resourceVersion"])
                for i in self.list(path)["items"]}


def origin(obj):
    return int(obj["metadata"]["resourceVersion"])


def difference(one, other):
    """None, or the first keys whose contents are not the same, as far as they are not."""
    wrong = sorted(k for k in one.keys() | other.keys() if one.get(k) != other.get(k))
    found = []
    for k in wrong[:3]:
        a, b = one.get(k) or {}, other.get(k) or {}
        found.append((k, {f: (a.get(f), b.get(f)) for f in a.keys() | b.keys()
                          if a.get(f) != b.get(f)}))
    return found or None


def relay_program(world):
    built = world.binaries.folder / "tests" / "delay_relay"
    if built.exists():
        return built
    made = world.folder / "delay_relay"
    fakes = os.path.join(HERE, "..", "fakes")
    code, _, err = run(["cc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-o", made,
                        *(os.path.join(fakes, f"delay_{n}.c") for n in ("relay", "start"))])
    assert code == 0, err
    return made


# -- what changes

class Changes:
    """Random changes of one cluster. It knows what it made, so each is a right one."""

    def __init__(self, cluster, seed):
        self.cluster, self.rng = cluster, random.Random(f"{seed}-{cluster.name}")
        self.made, self.count, self.fault = {}, 0, None

    def labels(self):
        tier = self.rng.choice(("a", "a", "b", "c", None))
        return {"n": str(self.count), **({"tier": tier} if tier else {})}

    def path(self, one):
        return f"/api/v1/namespaces/{one[1]}/{one[0]}/{one[2]}"

    def create(self, one=None):
        one = one or (self.rng.choice(("configmaps", "pods")), self.rng.choice(SPACES),
                      f"o-{self.rng.randrange(40)}")
        if one in self.made:
            return
        obj = {"metadata": {"name": one[2], "labels": self.labels()}}
        if one[0] == "pods":
            obj.update(kind="Pod", apiVersion="v1",
                       spec={"containers": [{"name": "c", "image": "i"}]})
        else:
            obj.update(kind="ConfigMap", apiVersion="v1", data=self.data())
        self.made[one] = self.cluster.ask("POST", self.path(one).rpartition("/")[0], obj)

    def data(self):
        return {k: self.rng.choice(("", "é\u2028\"\\", "x" * self.rng.randrange(3000), "1"))
                for k in self.rng.sample("abcdef", self.rng.randrange(5))}

    def replace(self, one):
        obj = json.loads(json.dumps(self.made[one]))
        obj["metadata"]["labels"] = self.labels()
        if one[0] == "configmaps":
            obj["data"] = self.data()
        self.made[one] = self.cluster.ask("PUT", self.path(one), obj)

    def same(self, one):
        self.made[one] = self.cluster.ask("PUT", self.path(one), self.made[one])

    def patch(self, one):
        value = self.rng.choice((None, "", "v", {"a": "b"}.get("a")))
        self.made[one] = self.cluster.ask(
            "PATCH", self.path(one), {"metadata": {"annotations": {"note": value}}},
            "application/merge-patch+json")

    def move(self, one):
        tier = self.rng.choice(("a", "b", "c", None))
        self.made[one] = self.cluster.ask(
            "PATCH", self.path(one), {"metadata": {"labels": {"tier": tier}}},
            "application/merge-patch+json")

    def manager(self, one):
        """Another owner of the same fields: the version changes, and nothing one can see."""
        obj = {"apiVersion": "v1", "kind": self.made[one].get("kind"),
               "metadata": {"name": one[2],
                            "labels": self.made[one]["metadata"].get("labels") or {}}}
        self.made[one] = self.cluster.ask(
            "PATCH", f"{self.path(one)}?fieldManager=m{self.rng.randrange(3)}&force=true", obj,
            "application/apply-patch+yaml")

    def delete(self, one):
        self.cluster.ask("DELETE", f"{self.path(one)}?gracePeriodSeconds=0")
        del self.made[one]

    def again(self, one):
        self.delete(one)
        self.create(one)

    def burst(self, one):
        for _ in range(self.rng.randrange(2, 8)):
            self.move(one)

    KINDS = ("replace", "replace", "same", "patch", "move", "move", "delete", "again", "burst",
             "manager")

    def run(self, count):
        try:
            for _ in range(count):
                self.count += 1
                if not self.made or self.rng.random() < 0.3:
                    self.create()
                    continue
                one = self.rng.choice(sorted(self.made))
                getattr(self, self.rng.choice(self.KINDS))(one)
        except BaseException as error:
            self.fault = error


def change_all(changes, count):
    threads = [threading.Thread(target=c.run, args=(count,), daemon=True) for c in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(scaled(60))
    for one in changes:
        if one.fault:
            raise one.fault


# -- what is done to it meanwhile

class Trouble:
    def __init__(self, site, rng, changes, followers):
        self.site, self.rng, self.changes, self.followers = site, rng, changes, followers
        self.history = []

    def one(self):
        name = self.rng.choice(("none", "agent", "agent", "compact", "pause", "cut", "cut",
                                "silence", "hub", "readers", "both"))
        cluster = self.rng.choice(self.site.names)
        self.history.append((name, cluster))
        getattr(self, name)(cluster)

    def go(self, low=5, high=60):
        change_all(self.changes, self.rng.randrange(low, high))

    def none(self, _):
        self.go(high=200)

    def agent(self, cluster):
        self.site.agents[cluster].kill()
        self.go()
        self.site.agents[cluster] = self.site.world.restart_agent(self.site.agents[cluster],
                                                                  wait=False)
        self.go(0, 20)

    def both(self, cluster):
        self.site.agents[cluster].kill()
        self.hub(cluster)
        self.site.agents[cluster] = self.site.world.restart_agent(self.site.agents[cluster],
                                                                  wait=False)

    def compact(self, cluster):
        self.site.agents[cluster].kill()
        self.go()
        self.site.clusters[cluster].compact()
        self.go(1, 10)
        self.site.agents[cluster] = self.site.world.restart_agent(self.site.agents[cluster],
                                                                  wait=False)

    def pause(self, cluster):
        self.site.agents[cluster].freeze()
        self.go()
        if self.rng.random() < 0.5:
            self.site.clusters[cluster].compact()
        self.site.agents[cluster].thaw()
        self.go(0, 20)

    def cut(self, cluster):
        self.go(0, 30)
        self.site.links[cluster].signal(signal.SIGUSR2)
        self.go(0, 30)

    def silence(self, cluster):
        """Nothing arrives for a while; then all of it does, or the connection is found dead."""
        link = self.site.links[cluster]
        link.signal(signal.SIGUSR1)
        self.go()
        if self.rng.random() < 0.5:
            link.signal(signal.SIGUSR2)
        link.signal(signal.SIGUSR1)
        self.go(0, 20)

    def hub(self, _):
        self.go(0, 20)
        self.site.restart_hub()
        self.go(0, 20)

    def readers(self, _):
        self.go(0, 20)
        for follower in self.rng.sample(self.followers, len(self.followers) // 2):
            follower.cut()
        self.go()


VIEWS = (
    (View(CM), "list", None),
    (View(CM, labelSelector="tier=a",
          keep=lambda k, o: tier(o) == "a"), "list", None),
    (View(CM, labelSelector="tier notin (a,b)",
          keep=lambda k, o: tier(o) not in ("a", "b")), "initial", None),
    (table_view(CM, labelSelector="kuberelay.io/cluster=c1", keep=lambda k, o: k[0] == "c1"),
     "list", None),
    (View(PODS), "nothing", None),
    (metadata_view(PODS, labelSelector="tier in (a,b)",
                   keep=lambda k, o: tier(o) in ("a", "b")), "list", None),
    (View("/api/v1/namespaces/m1/configmaps", keep=lambda k, o: k[1] == "m1"), "list", 2),
    (View(PODS, fieldSelector="metadata.namespace!=m2", keep=lambda k, o: k[1] != "m2"),
     "initial", 3),
    (View(CM, clusters="c2", keep=lambda k, o: k[0] == "c2"), "list", 1),
    (table_view(PODS, labelSelector="!tier", keep=lambda k, o: tier(o) is None), "initial", None),
)


def tier(obj):
    return (obj["metadata"].get("labels") or {}).get("tier")


class Model:
    def __init__(self, site, seed):
        self.site, self.rng = site, random.Random(seed)
        self.changes = [Changes(c, seed) for c in site.clusters.values()]
        change_all(self.changes, 40)
        self.followers = [Follower(site, *view) for view in VIEWS]
        self.late, self.places = [], []
        self.trouble = Trouble(site, self.rng, self.changes, self.followers)
        self.rounds = self.checks = 0

    def run(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until or self.rounds < 3:
            self.rounds += 1
            self.trouble.one()
            if self.rng.random() < 0.5:
                self.check()
        self.check()

    def check(self):
        """Everything is still: everybody agrees."""
        self.checks += 1
        for path in (CM, PODS):
            try:
                wait_until(lambda p=path: self.site.compare(p) is None, 60, "in step", every=0.1)
            except TimeoutError:
                raise AssertionError(f"{path}: {self.site.compare(path)}") from None
        unions = {p: self.site.union(p) for p in (CM, PODS)}
        versions = {p: self.site.versions(p) for p in (CM, PODS)}
        for follower in self.followers + self.late:
            path = CM if follower.view.path.endswith("configmaps") else PODS
            wanted = follower.view.of(unions[path])
            try:
                wait_until(lambda f=follower, w=wanted: f.state()[0] == w, 30, "told all")
            except TimeoutError:
                raise AssertionError(
                    f"{follower.view} from {follower.begin}, {follower.version}: holds / is "
                    f"{difference(follower.state()[0], wanted)} after {follower.recent}") from None
            self.held_versions(follower, versions[path])
        self.later()

    def held_versions(self, follower, listed):
        """An object's version in an event is that in a list. One that has come into a selector,
        or only lost sight of, may be told with that of its event."""
        wrong = {k: (v, listed[k]) for k, v in follower.state()[1].items() if v != listed[k]}
        assert not wrong, f"{follower.view}: versions in events / in the list: {wrong}"

    def later(self):
        """Others go on from where somebody once was."""
        for follower in self.late:
            follower.halt()
            follower.state()
        here = self.site.epoch
        self.places = [p for p in self.places if p[1][0] == here][-40:]
        chosen = self.rng.sample(self.places, min(3, len(self.places)))
        self.late = [Follower(self.site, view, at=place) for view, place in chosen]
        self.places += [(f.view, f.place()) for f in self.followers
                        if f.place()[0] == here and f.place()[1] and f.begin == "at"]

    def close(self):
        for follower in self.followers + self.late:
            follower.halt()


def seed_of_run():
    return int(os.environ.get("KUBERELAY_TEST_SEED", 0)) or random.SystemRandom().randrange(1 << 32)


@pytest.fixture
def clusters(backend, binaries, world):
    """c1 and c2: two of the API servers that this run is about."""
    if not backend.is_real:
        folder = world.folder / "sim"
        os.makedirs(folder)
        sim = Process("kubesim", [
            binaries["kubesim"], "--listen", "127.0.0.1:0", "--clusters", 2, "--names", "c1,c2",
            "--pods", 0, "--nodes", 1, "--churn", 0, "--seed", 1, "--pki", folder], str(folder))
        world.processes.append(sim)
        sim.wait_line(r"event=ready\b")
        yield [SimCluster(n, folder / f"kubeconfig-{n}") for n in ("c1", "c2")]
        return
    both = [RealBackend(backend.name, world.folder / n) for n in ("c1", "c2")]
    yield [RealCluster(n, b, world.folder) for n, b in zip(("c1", "c2"), both)]
    for one in both:
        one.close()


def run_model(world, clusters, seconds, **hub):
    seed = seed_of_run()
    site = ModelSite(world, clusters, **hub)
    model = Model(site, seed)
    try:
        model.run(scaled(seconds))
    except BaseException as error:
        raise AssertionError(f"KUBERELAY_TEST_SEED={seed}, after {model.trouble.history}: "
                             f"{error}") from error
    finally:
        model.close()
    events = sum(f.events for f in model.followers)
    print(f"seed {seed}: {model.rounds} rounds, {model.checks} checks, {events} events, "
          f"{sum(c.count for c in model.changes)} changes, "
          f"{sum(f.lists for f in model.followers)} lists, "
          f"{sum(f.watches for f in model.followers)} watches, "
          f"{sum(f.expired for f in model.followers)} 410")
    assert not world.hub.grep(r"level=error")
    assert events > 100 and model.checks >= 2


def test_everybody_agrees_whenever_all_is_quiet(world, clusters):
    run_model(world, clusters, 30)


@pytest.mark.long
def test_everybody_agrees_for_ten_minutes(world, clusters):
    run_model(world, clusters, 600)
