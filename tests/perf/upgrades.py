#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./dev bench exec: upgraded connections through kuberelay, direct, and through HAProxy in TCP mode.

Keystrokes, bulk in both directions and sessions per second; the rest as in relay.py. Then keystrokes
through a real kube-apiserver and the kubelet behind it, where these can be built.
"""

import json
import subprocess
import sys

import command
import contestants
import real_cluster
from contestants import Programs, Setup
from measure import cpu_ns, memory_kib
from report import ExecReport
from world import BenchError, die_with_parent, find_tools, make_pki, stop

PATH = "/api/v1/namespaces/default/pods/bench/exec"
KEYSTROKES = 3000
LINK_KEYSTROKES = 100
LINK_MS = 5  # each way, on the hub-agent leg; for direct between client and origin
RATE = 500  # sessions/s
SECONDS = 3
CASES = ("near", "far", "apiserver")


def run_exec(tools, target, *options):
    argv = [tools / "perf_exec_load", "--to", f"127.0.0.1:{target.port}",
            "--path", target.prefix + PATH, "--ca", target.ca, "--cert", target.cert,
            "--key", target.key, *options]
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=300,
                          preexec_fn=die_with_parent)
    if done.returncode != 0:
        what = " ".join(str(o) for o in options)
        tail = "\n".join(done.stderr.splitlines()[-3:])
        raise BenchError(f"{target.name}: {what}: {done.stdout.strip()} {tail}")
    return json.loads(done.stdout)


def latency(result):
    return {"p50": result["p50_us"], "p99": result["p99_us"]}


class Bench:
    def __init__(self, args, world, report):
        self.args = args
        self.world = world
        self.report = report
        self.tools = find_tools(world, args.bin)
        self.pki = make_pki(world)
        self.programs = Programs(world, args.bin)

    def targets(self, origin_port, delay_ms):
        setup = Setup(self.world, self.tools, self.pki, origin_port, f"x{delay_ms}", delay_ms)
        return [contestants.direct(setup), contestants.haproxy_tcp(setup),
                contestants.kuberelay(setup, self.programs)]

    # ---- the cases: a target's figures of one round ----

    def keystroke(self, target, count=KEYSTROKES):
        return latency(run_exec(self.tools, target, "--mode", "keystroke", "--count", count))

    def keystroke_link(self, target):
        return self.keystroke(target, LINK_KEYSTROKES)

    def keystroke_exec(self, target):
        """`kubectl exec -i bench -- cat`, a byte at a time."""
        return latency(run_exec(self.tools, target, "--mode", "keystroke", "--count", KEYSTROKES,
                                "--websocket"))

    def bulk(self, target, mode):
        result = run_exec(self.tools, target, "--mode", mode, "--count", self.args.bytes)
        if result["bytes"] != self.args.bytes:
            raise BenchError(f"{target.name}: {mode}: wrong length: {result}")
        return {"mbps": result["bytes"] / result["seconds"] / 1e6}

    def sessions(self, target, rate=0):
        """At RATE: an open loop, latency from when a session was due. Else 16 at a time."""
        pace = ["--rate", rate, "--threads", 128] if rate else ["--threads", 16]
        pids = [pid for role in target.pids.values() for pid in role]
        before = cpu_ns(pids)
        result = run_exec(self.tools, target, "--mode", "sessions", "--seconds", SECONDS, *pace)
        figures = {"rate": result["done"] / result["seconds"], **latency(result)}
        if pids:
            figures["cpu"] = (cpu_ns(pids) - before) / 1e3 / result["done"]
        return figures

    # ---- rounds ----

    def rounds(self, case, targets, measure):
        for number in range(self.args.rounds + 1):
            for target in targets:
                figures = measure(target)
                if number > 0:  # the first round warms up
                    self.report.add_round(case, target.name, figures)
        print(f"{case}: done", file=sys.stderr)

    def note_memory(self, targets, what, field="VmHWM"):
        """The high-water mark of VmRSS since the processes started, or VmRSS now."""
        for target in targets:
            for role, pids in target.pids.items():
                owner = f"exec.{role}" if target.name == "kuberelay" else f"{target.name}.{role}"
                self.report.add(f"{owner}_rss_{what}_mib", memory_kib(pids, field) / 1024, "MiB")

    def near(self):
        origin, port = self.start_origin()
        targets = self.targets(port, 0)
        self.note_memory(targets, "idle", "VmRSS")
        self.rounds("keystroke", targets, self.keystroke)
        self.rounds("out", targets, lambda t: self.bulk(t, "out"))
        self.rounds("in", targets, lambda t: self.bulk(t, "in"))
        self.note_memory(targets, "peak")
        self.rounds(f"sessions_{RATE}", targets, lambda t: self.sessions(t, RATE))
        self.rounds("sessions", targets, self.sessions)
        self.note_memory(targets, "peak_sessions")
        stop(origin)

    def far(self):
        origin, port = self.start_origin()
        self.rounds(f"keystroke_{2 * LINK_MS}ms", self.targets(port, LINK_MS),
                    self.keystroke_link)
        stop(origin)

    def apiserver(self):
        """What users call direct: a kube-apiserver, the kubelet, a process in the pod."""
        cluster = real_cluster.start(self.world)
        if cluster is None:
            return
        try:
            setup = Setup(self.world, self.tools, self.pki, cluster.port, "real")
            ours = contestants.kuberelay(setup, self.programs, cluster.kubeconfig())
            self.rounds("keystroke_apiserver", [cluster.direct(), ours], self.keystroke_exec)
        finally:
            cluster.close()

    def start_origin(self):
        argv = [self.tools / "perf_watch_origin", self.pki / "server.crt", self.pki / "server.key"]
        return self.world.spawn_printing_port("exec-origin", argv)

    def run(self):
        for case in self.args.cases:
            getattr(self, case)()


def parse_arguments():
    parser = command.parser(__doc__)
    parser.add_argument("--bytes", type=int, default=1_000_000_000, help="of one bulk transfer")
    command.add_choice(parser, "cases", CASES)
    args = parser.parse_args()
    if args.rounds < 1 or args.bytes < 1:
        parser.error("--rounds and --bytes are at least 1")
    args.cases = command.choice(parser, args, "cases", CASES)
    return args


def main():
    return command.run("exec", parse_arguments(), ExecReport(), Bench)


if __name__ == "__main__":
    sys.exit(main())
