#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./dev bench relay: kuberelay against direct access, an HAProxy chain and an nginx chain.

Same origin, same load generator, same cipher and windows, one thread per process, all on loopback.
Every round runs every contestant in turn; a ratio is taken within a round, then the median of the
rounds is reported. docs/performance.md says more.
"""

import dataclasses
import subprocess
import sys
import time

import command
import contestants
from contestants import WINDOW, Hub, Programs, Setup
from measure import cpu_ns, load_arguments, memory_kib, run_load
from report import Report
from world import BenchError, find_tools, make_pki, stop, wait_for

MEMORY = ("watches", "tunnels")
ALL = ("direct", "haproxy", "nginx", "kuberelay")
WATCHES = 1000
WATCH_CONNECTIONS = 4
TUNNEL_AGENTS = 50
TUNNEL_LANES = 20
IDLE_SECONDS = 12


@dataclasses.dataclass
class Case:
    name: str
    body: str
    streams: int
    seconds: float = 0
    requests: int = 0
    delay_ms: int = 0


CASES = [
    Case("1k_c1", "k1", 1, seconds=1),
    Case("1k_c64", "k1", 64, seconds=2),
    Case("100k_c1", "k100", 1, seconds=1),
    Case("100k_c64", "k100", 64, seconds=2),
    Case("10m", "m10", 1, seconds=2),
    Case("1g", "g1", 1, requests=1),
    Case("1stream_100ms", "m100", 1, requests=1, delay_ms=50),
    Case("1k_c64_100ms", "k1", 64, seconds=2, delay_ms=50),
]


class Bench:
    def __init__(self, args, world, report):
        self.args = args
        self.world = world
        self.report = report
        self.tools = find_tools(world, args.bin)
        self.pki = make_pki(world)
        self.programs = None
        if "kuberelay" in args.contestants:
            self.programs = Programs(world, args.bin)

    def setup(self, origin_port, label, delay_ms=0):
        return Setup(self.world, self.tools, self.pki, origin_port, label, delay_ms)

    def target(self, setup, name):
        if name == "kuberelay":
            return contestants.kuberelay(setup, self.programs)
        return getattr(contestants, name)(setup)

    # ---- bodies ----

    def run_case(self, case, target):
        options = ["--streams", case.streams, "--window", WINDOW]
        options += ["--requests", case.requests] if case.requests else ["--seconds", case.seconds]
        path = contestants.CONFIGMAPS + case.body
        size = contestants.BODIES[case.body]
        return run_load(self.tools, target, path, size, options)

    def bodies(self, origin_port, delay_ms):
        cases = [c for c in self.args.cases if c.delay_ms == delay_ms]
        if not cases:
            return
        setup = self.setup(origin_port, f"d{delay_ms}", delay_ms)
        targets = [self.target(setup, name) for name in self.args.contestants]
        if delay_ms == 0:
            self.note_memory(targets, "rss_idle")
        for case in cases:
            self.rounds(case, targets)
        if delay_ms == 0:
            self.note_memory(targets, "rss_loaded")
            self.note_memory(targets, "rss_peak", "VmHWM")
        self.stop_targets(targets)

    def rounds(self, case, targets):
        for number in range(self.args.rounds + 1):
            for target in targets:
                figures = self.run_case(case, target)
                if number > 0:  # the first round warms up
                    self.report.add_round(case.name, target.name, figures)
        print(f"{case.name}: done", file=sys.stderr)

    def note_memory(self, targets, what, field="RssAnon"):
        for target in targets:
            for role, pids in target.pids.items():
                owner = role if target.name == "kuberelay" else f"{target.name}.{role}"
                self.report.add(f"{owner}.{what}_mib", memory_kib(pids, field) / 1024, "MiB")
                if field == "RssAnon":
                    rss = memory_kib(pids, "VmRSS") / 1024
                    self.report.add(f"{owner}.vm{what}_mib", rss, "MiB")

    def stop_targets(self, targets):
        pids = {pid for t in targets for role in t.pids.values() for pid in role}
        for process in self.world.processes:
            if process.pid in pids or process.name.endswith("-delay"):
                stop(process)

    # ---- idle watches ----

    def watches(self):
        argv = [self.tools / "perf_watch_origin", self.pki / "server.crt", self.pki / "server.key"]
        origin, port = self.world.spawn_printing_port("watch-origin", argv)
        for name in self.args.contestants:
            if name != "direct":
                target = self.target(self.setup(port, "watch"), name)
                self.count_watches(target)
                self.stop_targets([target])
        stop(origin)
        ours = self.report.values.get("hub.kib_per_watch")
        for name in ("haproxy", "nginx"):
            theirs = self.report.values.get(f"{name}.hub.kib_per_watch")
            if ours and theirs and theirs[0] > 0:
                self.report.add(f"hub.kib_per_watch.vs_{name}", ours[0] / theirs[0], "ratio")

    def open_watches(self, target, per_connection):
        path = contestants.CONFIGMAPS.rstrip("/") + "?watch=true&resourceVersion=1"
        options = ["--connections", WATCH_CONNECTIONS, "--streams", per_connection,
                   "--window", WINDOW, "--hold"]
        argv = load_arguments(self.tools, target, path, options)
        holder = self.world.spawn(f"{target.name}-watches", argv, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        line = holder.stdout.readline()
        if not line.startswith("open "):
            tail = self.world.log_tail(holder.name)
            raise BenchError(f"{target.name}: watches did not open: {line}{tail}")
        return holder

    def count_watches(self, target):
        """What 1,000 watches add to what the connections with one watch each cost."""
        few = self.open_watches(target, 1)
        before = {role: memory_kib(pids, "VmRSS") for role, pids in target.pids.items()}
        stop(few)
        many = self.open_watches(target, WATCHES // WATCH_CONNECTIONS)
        for role, pids in target.pids.items():
            owner = role if target.name == "kuberelay" else f"{target.name}.{role}"
            grown = memory_kib(pids, "VmRSS") - before[role]
            count = WATCHES - WATCH_CONNECTIONS
            self.report.add(f"{owner}.kib_per_watch", grown / count, "KiB")
        stop(many)
        print(f"{target.name} watches: done", file=sys.stderr)

    # ---- tunnels ----

    def tunnels(self, origin_port):
        hub = Hub(self.setup(origin_port, "tunnels"), self.programs)
        first = hub.start_agent("t0", TUNNEL_LANES)
        agents = [first]
        wait_for("the first tunnels", lambda: hub.tunnels() == TUNNEL_LANES)
        before = memory_kib([hub.process.pid], "VmRSS")
        for i in range(1, TUNNEL_AGENTS + 1):
            agents.append(hub.start_agent(f"t{i}", TUNNEL_LANES))
        count = TUNNEL_AGENTS * TUNNEL_LANES
        wait_for("all tunnels", lambda: hub.tunnels() == count + TUNNEL_LANES, 60)
        used = cpu_ns([hub.process.pid])
        time.sleep(IDLE_SECONDS)  # heartbeats and PINGs go round
        used = cpu_ns([hub.process.pid]) - used
        grown = memory_kib([hub.process.pid], "VmRSS") - before
        self.report.add("hub.kib_per_tunnel", grown / count, "KiB")
        self.report.add("hub.cpu_1000_idle_tunnels", used / 1e6 / IDLE_SECONDS, "ms/s")
        for process in [*agents, hub.process]:
            stop(process)
        print("tunnels: done", file=sys.stderr)

    def run(self):
        names = sorted({c.body for c in self.args.cases} | {"k1"})
        origin, port = contestants.start_origin(self.world, self.pki, names)
        for delay_ms in (0, 50):
            self.bodies(port, delay_ms)
        if "watches" in self.args.memory:
            self.watches()
        if "tunnels" in self.args.memory and self.programs:
            self.tunnels(port)
        stop(origin)


def parse_arguments():
    parser = command.parser(__doc__)
    cases = [c.name for c in CASES]
    for option, all_of in (("contestants", ALL), ("cases", cases), ("memory", MEMORY)):
        command.add_choice(parser, option, all_of)
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds below 1")
    args.contestants = command.choice(parser, args, "contestants", ALL)
    args.memory = command.choice(parser, args, "memory", MEMORY)
    wanted = command.choice(parser, args, "cases", cases)
    args.cases = [c for c in CASES if c.name in wanted]
    return args


def main():
    return command.run("relay", parse_arguments(), Report(), Bench)


if __name__ == "__main__":
    sys.exit(main())
