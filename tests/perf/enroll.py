#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./dev bench enroll: a thousand agents dial a hub that was just restarted, all at once.

Simulated agents (attach_load.c), each with a certificate of its own, and one real agent in front of
an nginx whose GETs are timed before and meanwhile. What the hub does for a handshake is held against
what `openssl speed` says that its cryptography costs on the same machine in the same round.
docs/performance.md says more.
"""

import dataclasses
import json
import signal
import subprocess
import sys
import time

import command
import contestants
from contestants import Hub, Programs, Setup
from measure import cpu_ns, die_with_parent, load_arguments, memory_kib
from report import EnrollReport
from world import BenchError, find_tools, make_pki, run, stop, wait_for

LANES = 2  # tunnels of each agent
QUIET_SECONDS = 2
PATIENCE = 90  # seconds until all have to be back


@dataclasses.dataclass
class Crypto:
    """Operations per second on one core."""

    sign: float
    verify: float
    verify_root: float
    exchange: float

    def handshakes(self, root=True):
        """A hub signs once, checks the agent's signature and its certificate's, makes a key and
        uses it. The root of kuberelayctl is P-384, which costs far more to check than P-256."""
        certificate = self.verify_root if root else self.verify
        return 1 / (1 / self.sign + 1 / self.verify + 1 / certificate + 2 / self.exchange)


def openssl_speed():
    text = run(["openssl", "speed", "-mr", "-seconds", "1", "ecdsap256", "ecdsap384", "ecdhx25519"])
    lines = [line.split(":") for line in text.splitlines() if line.startswith(("+F4:", "+F5:"))]
    curves = {line[2]: line for line in lines}
    try:
        return Crypto(float(curves["256"][3]), float(curves["256"][4]), float(curves["384"][4]),
                      float(curves["253"][3]))
    except (KeyError, IndexError, ValueError) as e:
        raise BenchError(f"openssl speed says something else than expected: {text}") from e


class Storm:
    """All simulated agents, ready to dial."""

    def __init__(self, bench, hub, label):
        argv = [bench.tools / "perf_attach_load", hub.tunnel, bench.programs.pki, "s",
                bench.args.agents, LANES, 1]
        self.process = bench.world.spawn(label, argv, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise BenchError(f"attach_load did not start:\n{bench.world.log_tail(label)}")

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def tries(self):
        """Of all the dials; the line comes when every tunnel has sent its state."""
        line = self.process.stdout.readline().split()
        if len(line) != 3:
            raise BenchError("attach_load ended early")
        return int(line[2])


class Probe:
    """GETs through the real agent, one after the other, until end()."""

    def __init__(self, bench, target):
        path = contestants.CONFIGMAPS + "k1"
        argv = load_arguments(bench.tools, target, path, ["--streams", 1, "--seconds", PATIENCE])
        self.process = subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE, text=True,
                                        preexec_fn=die_with_parent)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=30)
        result = json.loads(out)
        if result["failed"] or result["done"] < 5:
            raise BenchError(f"requests through the real agent failed: {result}")
        return result


class Bench:
    def __init__(self, args, world, report):
        self.args, self.world, self.report = args, world, report
        self.tools = find_tools(world, args.bin)
        self.pki = make_pki(world)
        self.programs = Programs(world, args.bin)

    def certificates(self):
        begin = time.monotonic()
        for i in range(self.args.agents):
            self.programs.agent_certificate(f"s{i}")
        took = time.monotonic() - begin
        print(f"{self.args.agents} certificates in {took:.1f} s", file=sys.stderr)

    def round(self, origin_port, number):
        crypto = openssl_speed()
        setup = Setup(self.world, self.tools, self.pki, origin_port, f"r{number}")
        target, hub, agent = self.start(setup)
        storm = Storm(self, hub, f"storm{number}")
        quiet = Probe(self, target)
        time.sleep(QUIET_SECONDS)
        quiet = quiet.end()
        alone = self.attach(hub, storm, crypto)
        stop(storm.process)
        wait_for("the simulated agents to be gone", lambda: hub.tunnels() == LANES, 30)
        again = Storm(self, hub, f"storm{number}b")
        probe = Probe(self, target)
        wait_for("the probe", lambda: cpu_ns([probe.process.pid]) > 20e6)
        seconds = self.attach(hub, again, None)
        busy = probe.end()
        self.latency(quiet, busy)
        self.report.sample("enroll.seconds_with_requests", seconds, "s")
        for process in (again.process, agent, hub.process):
            stop(process)
        print(f"round {number}: {alone:.2f} s", file=sys.stderr)

    def start(self, setup):
        """A hub that has just started, and the real agent at it."""
        hub = Hub(setup, self.programs)
        agent = hub.start_agent()
        target = hub.target(agent)
        wait_for("kuberelay to relay", lambda: contestants.probe_ok(setup, target))
        wait_for("both its tunnels", lambda: hub.tunnels() == LANES)
        return target, hub, agent

    def attach(self, hub, storm, crypto):
        """Seconds until all are attached; with `crypto` the hub's work is noted too."""
        count = self.args.agents * LANES
        memory = memory_kib([hub.process.pid], "VmRSS")
        used = cpu_ns([hub.process.pid])
        begin = time.monotonic()
        storm.go()
        tries = storm.tries()
        wait_for("all agents", lambda: hub.tunnels() >= count + LANES, PATIENCE)
        seconds = time.monotonic() - begin
        used = cpu_ns([hub.process.pid]) - used
        if crypto:
            self.note(count, seconds, used, tries, crypto)
            grown = memory_kib([hub.process.pid], "VmRSS") - memory
            self.report.sample("enroll.hub_kib_per_agent", grown / self.args.agents, "KiB")
        return seconds

    def note(self, count, seconds, used, tries, crypto):
        per_core = count / (used / 1e9)
        sample = self.report.sample
        sample("enroll.seconds_until_all", seconds, "s")
        sample("enroll.handshakes_per_s", count / seconds, "1/s", "higher")
        sample("enroll.handshakes_per_core_s", per_core, "1/s", "higher")
        sample("enroll.openssl_per_core_s", crypto.handshakes(), "1/s", "higher")
        sample("enroll.openssl_p256_per_core_s", crypto.handshakes(root=False), "1/s", "higher")
        sample("enroll.vs_openssl", per_core / crypto.handshakes(), "ratio", "higher")
        sample("enroll.vs_openssl_p256", per_core / crypto.handshakes(root=False), "ratio",
               "higher")
        sample("enroll.dials_per_tunnel", tries / count, "ratio")

    def latency(self, quiet, busy):
        for name in ("p50", "p99", "max"):
            before, during = quiet[f"{name}_us"], busy[f"{name}_us"]
            self.report.sample(f"enroll.get_{name}_before_us", before, "us")
            self.report.sample(f"enroll.get_{name}_meanwhile_us", during, "us")
            self.report.sample(f"enroll.get_{name}.vs_before", during / before, "ratio")

    def run(self):
        origin, port = contestants.start_origin(self.world, self.pki, ["k1"])
        self.certificates()
        for number in range(self.args.rounds):
            self.round(port, number)
        stop(origin)


def parse_arguments():
    parser = command.parser(__doc__, rounds=3)
    parser.add_argument("--agents", type=int, default=1000)
    args = parser.parse_args()
    if args.rounds < 1 or not 1 <= args.agents <= 5000:
        parser.error("--rounds from 1, --agents from 1 to 5000")
    return args


def main():
    return command.run("enroll", parse_arguments(), EnrollReport(), Bench)


if __name__ == "__main__":
    sys.exit(main())
