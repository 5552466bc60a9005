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

from backends import RealBackend
from clock import scaled, wait_until
from fleet_clusters import CM, PODS, SPACES, LinkedFleet, BackendCluster, SimCluster, difference
from fleet_model import Follower, View, metadata_view, table_view
from procs import Process


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
            self.follows(follower, follower.view.of(unions[path]), versions[path])
        self.later()

    def follows(self, follower, wanted, listed):
        """It holds all that there is, in the versions of the list: an object's version in an event
        is that in a list. Who has not noticed yet that the hub is another one still holds those of
        the one before."""
        try:
            wait_until(lambda: follower.state()[0] == wanted, 30, "told all")
            wait_until(lambda: not wrong_versions(follower, listed), 30, "in these versions")
        except TimeoutError:
            raise AssertionError(
                f"{follower.view} from {follower.begin}, {follower.version}: holds / is "
                f"{difference(follower.state()[0], wanted)}, versions in events / in the list "
                f"{wrong_versions(follower, listed)} after {follower.recent}") from None

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


def wrong_versions(follower, listed):
    held = follower.state()[1]
    return {k: (v, listed.get(k)) for k, v in held.items() if v != listed.get(k)}


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
    yield [BackendCluster(n, b, world.folder) for n, b in zip(("c1", "c2"), both)]
    for one in both:
        one.close()


def run_model(world, clusters, seconds, **hub):
    seed = seed_of_run()
    site = LinkedFleet(world, clusters, **hub)
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
