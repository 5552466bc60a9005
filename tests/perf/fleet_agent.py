# SPDX-License-Identifier: Apache-2.0
"""The part of ./dev bench fleet that looks at one agent: its memory, its work, bytes on the tunnel."""

import resource
import subprocess
import time

from fleet_world import (AS_TABLE, NODES, PODS, CountingRelay, FleetAgent, FleetHub, Reader,
                         curl, watch_path)
from measure import cpu_ns

LARGE = 20000  # pods of the large cluster
WIRE_PODS = 3000
WIRE_NODES = 100
HOUR_OF_BEATS = WIRE_NODES * 360  # one each 10 s
HOUR_OF_CHANGES = 20000
WIRE_RATE = 2000  # events/s: far slower than the agent, so that nothing is merged while it waits


class AgentCases:
    def __init__(self, bench):
        self.bench, self.world, self.report = bench, bench.world, bench.report

    # ---- memory, work, resuming ----

    def agent(self):
        simulator = self.bench.simulator("large-sim", 1, LARGE)
        hub = FleetHub(self.world, self.bench.programs, "large-hub")
        relay = CountingRelay(hub.tunnel)
        hub.dial = relay.port
        agent = FleetAgent(self.world, self.bench.programs, hub, simulator, "c1", "large-")
        hub.wait_objects(LARGE)
        first = relay.settle()
        self.report.add("fleet.first_sync_bytes_per_pod", first / LARGE, "B")
        self.report.add("fleet.agent_rss_mib", agent.memory_kib() / 1024, "MiB")
        self.resume(relay, first, "cut", relay.cut)
        self.resume(relay, first, "restart", agent.restart)
        hub.wait_objects(LARGE)
        self.second_sync(simulator, hub, relay, agent)
        self.relayed_list(hub, agent)
        self.bench.stop_all(agent, hub, simulator)
        self.bench.say("agent of a large cluster: done")

    def resume(self, relay, first, how, act):
        before = relay.total()
        act()
        used = relay.settle() - before
        self.report.add(f"fleet.resume_{how}_percent", used * 100 / first, "%")
        self.report.add(f"fleet.resume_{how}_kib", used / 1024, "KiB")

    def second_sync(self, simulator, hub, relay, agent):
        """The hub forgot everything: the agent lists 290 MB again, with its memory as it was."""
        idle = agent.memory_kib()
        agent.forget_peak()
        used = cpu_ns([agent.pid])
        hub.restart()
        hub.wait_objects(LARGE)
        relay.settle()
        used = cpu_ns([agent.pid]) - used
        grown = agent.memory_kib("VmHWM") - idle
        self.report.add("fleet.agent_sync_growth_mib", grown / 1024, "MiB")
        self.report.add("fleet.agent_sync_cpu_s", used / 1e9, "s")
        read = self.plain_read(simulator)
        self.report.add("fleet.agent_sync_cpu.vs_read", used / read, "ratio")

    def plain_read(self, simulator):
        """CPU of curl reading the same rows."""
        tls, port = simulator.tls, simulator.ports["c1"]
        argv = ["curl", "-sS", "-o", "/dev/null", "-H", f"accept: {AS_TABLE}", *tls.curl(),
                f"https://localhost:{port}{PODS}?includeObject=Object"]
        best = None
        for _ in range(self.bench.args.rounds):
            before = children_cpu_s()
            subprocess.run([str(a) for a in argv], check=True)
            spent = (children_cpu_s() - before) * 1e9
            best = spent if best is None else min(best, spent)
        return best

    def relayed_list(self, hub, agent):
        idle = agent.memory_kib()
        agent.forget_peak()
        curl(hub.tls, f"https://localhost:{hub.api}/clusters/c1{PODS}")
        grown = agent.memory_kib("VmHWM") - idle
        self.report.add("fleet.agent_relay_growth_mib", grown / 1024, "MiB")

    # ---- bytes ----

    def wire(self):
        simulator = self.bench.simulator("wire-sim", 1, WIRE_PODS, WIRE_NODES, HOUR_OF_BEATS * 2)
        hub = FleetHub(self.world, self.bench.programs, "wire-hub")
        relay = CountingRelay(hub.tunnel)
        hub.dial = relay.port
        agent = FleetAgent(self.world, self.bench.programs, hub, simulator, "c1", "wire-")
        hub.wait_objects(WIRE_PODS)
        hub.wait_objects(WIRE_NODES, NODES)
        relay.settle()
        self.hour(simulator, hub, relay, "pods", PODS, HOUR_OF_CHANGES, "pods")
        self.hour(simulator, hub, relay, "nodes", NODES, HOUR_OF_BEATS, "heartbeats")
        self.bench.stop_all(agent, hub, simulator)
        self.bench.say("bytes on the tunnel: done")

    def hour(self, simulator, hub, relay, name, path, count, mix):
        near = simulator.endpoint()
        raw = Reader(self.world, self.bench.tools, f"raw-{name}", near.port, near.tls,
                     watch_path("", path, near.version(path)))
        slim = self.bench.reader(f"slim-{name}", hub, path)
        before = relay.total()
        for reader in (raw, slim):
            reader.mark()
        simulator.churn(rate=WIRE_RATE, mix=mix)
        time.sleep(count / WIRE_RATE)
        simulator.churn(rate=0)
        raw_result = raw.quiet(500)
        sent = relay.settle() - before
        slim_result = slim.report()
        for reader in (raw, slim):
            reader.stop()
        prefix = f"fleet.wire_{name}"
        self.report.add(f"{prefix}_events", raw_result["events"], "events", "higher")
        self.report.add(f"{prefix}_events_sent", slim_result["events"], "events")
        self.report.add(f"{prefix}_raw_mb", raw_result["bytes"] / 1e6, "MB")
        self.report.add(f"{prefix}_slim_mb", slim_result["bytes"] / 1e6, "MB")
        self.report.add(f"{prefix}_sent_mb", sent / 1e6, "MB")
        self.report.add(f"{prefix}_times_less", raw_result["bytes"] / max(1, sent), "x", "higher")


def children_cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
