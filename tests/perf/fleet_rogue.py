# SPDX-License-Identifier: Apache-2.0
"""T33 of docs/security.md in figures: what the users of one cluster notice while the agent of another,
which was taken over, sends the hub all that it can think of.

On a machine with few processors the flood takes time from everybody just by being made. So it goes to
a second hub, too, which nobody uses: what the same flood costs at one's own hub is told by the two."""

import threading
import time
import types

from contestants import CONFIGMAPS
from end_to_end import rogueagent
from fleet_world import FleetAgent, FleetHub
from world import BenchError

PODS = 200
SECONDS = 3  # of a flood, and of the quiet before it
QUOTA = "2MiB"
LIE_SECONDS = 0.1  # that a lie has to be asked for; after a bad one the hub lets its cluster wait
LIES = [(rogueagent.CATALOG, lie) for lie in rogueagent.LIES.values()] + \
       [(said, []) for said in rogueagent.TYPES.values()]
# What is no fault by itself: the hub takes it in and asks for more.
REPEATED = [one for name in ("the same again", "ends without number", "deletes at random")
            for one in rogueagent.LIES[name][:300]] + rogueagent.many(8, 100_000)


class Endless(rogueagent.Rogue):
    """Repeats what it syncs for as long as the hub takes it."""

    again = b"".join(REPEATED)

    def more(self, stream):
        head, _ = self.heads.get(stream, ({}, b""))
        return self.again if head.get(":path", "").endswith("/Sync") else b""


class Flood(threading.Thread):
    """What one cluster's agent sends, until end()."""

    def __init__(self, case, hub):
        super().__init__(daemon=True)
        case.floods += 1  # a new cluster each time: the hub lets one wait after a fault
        cert = case.programs.agent_certificate(f"evil-{case.floods}")
        pair = types.SimpleNamespace(crt=str(cert), key=str(cert.with_suffix(".key")))
        self.way = ("127.0.0.1", hub.tunnel), str(case.programs.pki / "ca.crt"), pair
        self.over, self.bytes, self.tunnels = threading.Event(), 0, 0
        self.start()

    def end(self):
        self.over.set()
        self.join(30)

    def run(self):
        while not self.over.is_set():
            self.round()

    def one(self, kind, catalog, batches, seconds):
        """A tunnel, until the hub ends it or the time is over or all is said."""
        try:
            agent = kind(*self.way, catalog, batches)
        except OSError:
            return
        end = time.monotonic() + seconds
        while agent.thread.is_alive() and time.monotonic() < end and not (
                agent.opened and not any(agent.queues.values())):
            if self.over.wait(0.01):
                break
        agent.close()
        self.bytes += agent.sent
        self.tunnels += 1


class Tunnels(Flood):
    """One lie after the other, each on a tunnel of its own."""

    def round(self):
        for catalog, batches in LIES:
            if not self.over.is_set():
                self.one(rogueagent.Rogue, catalog, batches, LIE_SECONDS)


class Sync(Flood):
    """One tunnel, and as much through it as goes."""

    def round(self):
        self.one(Endless, rogueagent.CATALOG, REPEATED, SECONDS)


class RogueCase:
    def __init__(self, bench):
        self.bench, self.world, self.programs = bench, bench.world, bench.programs
        self.floods = 0

    def rogue(self):
        bench = self.bench
        simulator = bench.simulator("rogue-sim", pods=PODS, nodes=2)
        bench.config_map(simulator)
        hub, elsewhere = (FleetHub(self.world, bench.programs, name, more=f"cacheQuota: {QUOTA}\n")
                          for name in ("rogue-hub", "rogue-other-hub"))
        agent = FleetAgent(self.world, bench.programs, hub, simulator, "c1", "rogue-")
        hub.wait_objects(PODS)
        for number in range(bench.args.rounds + 1):
            for kind in (Sync, Tunnels):
                self.round(kind, hub, elsewhere, number > 0)
        bench.stop_all(agent, hub, elsewhere, simulator)
        bench.say("a rogue agent: done")

    def gets(self, hub):
        result = self.bench.load(hub.tls, hub.api, f"/clusters/c1{CONFIGMAPS}k1", "--seconds",
                                 SECONDS)
        if result["failed"]:
            raise BenchError(f"requests to the other cluster failed: {result}")
        return result

    def flooded(self, kind, hub, at):
        flood = kind(self, at)
        try:
            return self.gets(hub), flood
        finally:
            flood.end()

    def round(self, kind, hub, elsewhere, counts):
        figures = {"before": self.gets(hub)}
        figures["elsewhere"], _ = self.flooded(kind, hub, elsewhere)
        ours, flood = self.flooded(kind, hub, hub)
        if not counts:
            return
        sample = self.bench.report.sample
        name = f"fleet.rogue_{kind.__name__.lower()}"
        for q in ("p50", "p99"):
            sample(f"{name}_get_{q}_us", ours[f"{q}_us"], "us")
            for when, other in figures.items():
                sample(f"{name}_get_{q}_{when}_us", other[f"{q}_us"], "us")
                sample(f"{name}_get_{q}.vs_{when}", ours[f"{q}_us"] / other[f"{q}_us"], "ratio")
        sample(f"{name}_mib_per_s", flood.bytes / SECONDS / 2**20, "MiB/s", "higher")
        sample(f"{name}_tunnels_per_s", flood.tunnels / SECONDS, "1/s", "higher")
