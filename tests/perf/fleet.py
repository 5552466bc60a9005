#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./dev bench fleet: the fleet view over simulated clusters with pods of 14 KiB.

What is compared takes turns in every round; a ratio is taken within a round, then the median of the
rounds is reported. Everything runs on this machine, on loopback. docs/performance.md says more.
"""

import json
import signal
import sys
import time

import command
from contestants import CONFIGMAPS, Programs, start_nginx
from fleet_agent import AgentCases
from fleet_rogue import RogueCase
from fleet_world import (AS_TABLE, FLEET, PODS, FleetAgent, FleetHub, Reader, Simulator, Tls,
                         curl, watch_path)
from measure import cpu_ns
from report import FleetReport
from world import BenchError, find_tools, make_pki, run, stop

CASES = ("scale", "events", "agent", "wire", "slim", "rogue")
PODS_EACH = 4000
WATCHERS = 1000
WATCHER_CONNECTIONS = 4
BURST = 20000  # events of one cluster at once
AGE_RATE = 50  # events/s
AGE_SECONDS = 4
GET_SECONDS = 2


class Bench:
    def __init__(self, args, world, report):
        self.args, self.world, self.report = args, world, report
        self.tools = find_tools(world, args.bin)
        self.pki = make_pki(world)
        self.programs = Programs(world, args.bin)
        self.kubesim = Programs.find(args.bin, "kubesim")

    def simulator(self, name, clusters=1, pods=PODS_EACH, nodes=40, history=2 * BURST):
        return Simulator(self.world, self.kubesim, name, clusters, pods, nodes, history)

    def say(self, text):
        print(text, file=sys.stderr)

    def load(self, tls, port, path, *options):
        argv = [self.tools / "perf_load", "--to", f"127.0.0.1:{port}", "--path", path,
                *tls.arguments(), *options]
        return json.loads(run(argv))

    def stop_all(self, *things):
        for thing in things:
            stop(thing.process)

    # ---- many clusters ----

    def scale(self):
        clusters = max(1, self.args.pods // PODS_EACH)
        count = clusters * PODS_EACH
        simulator = self.simulator("scale-sim", clusters, history=5000)
        hub = FleetHub(self.world, self.programs, "scale-hub")
        before = hub.rss_kib()
        started = time.monotonic()
        agents = [FleetAgent(self.world, self.programs, hub, simulator, cluster, "scale-")
                  for cluster in simulator.ports]
        hub.wait_objects(count)
        self.report.add("fleet.load_pods_per_s", count / (time.monotonic() - started), "pods/s",
                        "higher")
        self.report.add("fleet.pods", count, "pods", "higher")
        self.say(f"scale: {count} pods are there")
        self.memory(hub, simulator, count, before)
        self.events_all(hub, simulator, clusters)
        self.pages(hub, count)
        self.lists(hub)
        self.watchers(hub, simulator, clusters)
        self.stop_all(*agents, hub, simulator)

    def reader(self, name, hub, path=PODS, connections=1, streams=1, *options):
        version = hub.endpoint.version(FLEET + path)
        return Reader(self.world, self.tools, name, hub.api, hub.tls,
                      watch_path(FLEET, path, version), "--connections", connections, "--streams",
                      streams, *options)

    def events_all(self, hub, simulator, clusters):
        each = max(1, 50000 // clusters)
        reader = self.reader("all-events", hub)
        for number in range(self.args.rounds + 1):
            reader.mark()
            simulator.churn(n=each, all="true", mix="readiness")
            result = reader.quiet(1000)
            if number > 0:
                rate = each * clusters / result["seconds"]
                self.report.sample("fleet.events_all_per_s", rate, "events/s", "higher")
        reader.stop()
        self.say("events of all clusters: done")

    def memory(self, hub, simulator, count, before):
        """Behind the first sync, and when a tenth of the pods has changed."""
        grown = (hub.rss_kib() - before) * 1024
        self.report.add("fleet.hub_bytes_per_pod_at_first", grown / count, "B")
        reader = self.reader("mixed-events", hub)
        reader.mark()
        simulator.churn(n=PODS_EACH // 10, all="true", mix="pods")
        reader.quiet(2000)
        reader.stop()
        hub.wait_objects(count)
        grown = (hub.rss_kib() - before) * 1024
        self.report.add("fleet.hub_bytes_per_pod", grown / count, "B")
        self.report.add("fleet.hub_rss_mib", hub.rss_kib() / 1024, "MiB")

    def pages(self, hub, count):
        whole = f"{FLEET}{PODS}"
        for _ in range(self.args.rounds):
            page = self.load(hub.tls, hub.api, f"{whole}?limit=500", "--requests", 20)
            self.report.sample("fleet.page_500_ms", page["p50_us"] / 1e3, "ms")
            query = f"{whole}?labelSelector=app%3Dno-such-app"
            found = self.load(hub.tls, hub.api, query, "--requests", 5)
            self.report.sample("fleet.filter_ns_per_pod", found["p50_us"] * 1e3 / count, "ns")
        self.say("pages and filters: done")

    def lists(self, hub):
        """The same client reads the same bytes from the hub, from a file, from memory."""
        files = self.world.folder("list-files")
        path = files / "list.json"
        url = f"https://localhost:{hub.api}{FLEET}{PODS}"
        curl(hub.tls, url, out=path)
        nginx, nginx_port = start_nginx(self.world, "list-nginx", "nginx-origin.conf.in", self.pki,
                                        files=files)
        memory, memory_port = self.world.spawn_printing_port("list-memory", [
            self.tools / "perf_mem_server", path, self.pki / "server.crt", self.pki / "server.key"])
        other = Tls(self.pki / "ca.crt", self.pki / "client.crt", self.pki / "client.key")
        ways = {"fleet": (hub.tls, url), "nginx": (other, f"https://localhost:{nginx_port}/list.json"),
                "memory": (other, f"https://localhost:{memory_port}/list.json")}
        hub_before = hub.rss_kib()
        for number in range(self.args.rounds + 1):
            round_ = {name: self.list_once(hub, name, *way) for name, way in ways.items()}
            if number > 0:
                self.note_lists(round_)
        self.report.add("fleet.list_growth_mib", (hub.rss_kib() - hub_before) / 1024, "MiB")
        for process in (nginx, memory):
            stop(process)
        path.unlink()
        self.say("lists: done")

    def list_once(self, hub, name, tls, url):
        used = cpu_ns([hub.pid])
        figures = curl(tls, url)
        figures["mbps"] = figures["bytes"] / figures["seconds"] / 1e6
        figures["cpu_s"] = (cpu_ns([hub.pid]) - used) / 1e9 if name == "fleet" else 0
        return figures

    def note_lists(self, round_):
        for name, figures in round_.items():
            self.report.sample(f"{name}.list_mbps", figures["mbps"], "MB/s", "higher")
        ours = round_["fleet"]
        self.report.sample("fleet.list_first_ms", ours["first_ms"], "ms")
        self.report.sample("fleet.list_cpu_ns_per_byte", ours["cpu_s"] * 1e9 / ours["bytes"], "ns")
        for name in ("nginx", "memory"):
            self.report.sample(f"fleet.list_mbps.vs_{name}", ours["mbps"] / round_[name]["mbps"],
                               "ratio", "higher")

    def watchers(self, hub, simulator, clusters):
        reader = self.many_readers("watchers", hub)
        each = max(1, 200 // clusters)
        for number in range(self.args.rounds + 1):
            reader.mark()
            used = cpu_ns([hub.pid])
            simulator.churn(n=each, all="true", mix="readiness")
            result = reader.quiet(500)
            if result["least"] != result["most"]:
                raise BenchError(f"watchers got different numbers of events: {result}")
            if number > 0:
                used = cpu_ns([hub.pid]) - used
                self.report.sample("fleet.cpu_ns_per_event_and_watcher", used / result["events"],
                                   "ns")
                self.report.sample("fleet.deliveries_per_s", result["events"] / result["seconds"],
                                   "events/s", "higher")
        reader.stop()
        self.say("watchers: done")

    def many_readers(self, name, hub):
        return self.reader(name, hub, PODS, WATCHER_CONNECTIONS, WATCHERS // WATCHER_CONNECTIONS)

    # ---- one cluster ----

    def events(self):
        simulator = self.simulator("events-sim")
        hub = FleetHub(self.world, self.programs, "events-hub")
        agent = FleetAgent(self.world, self.programs, hub, simulator, "c1", "events-")
        hub.wait_objects(PODS_EACH)
        self.watcher_memory(simulator, hub)
        self.config_map(simulator)
        near = simulator.endpoint()
        bare = Reader(self.world, self.tools, "bare-events", near.port, near.tls,
                      watch_path("", PODS, near.version(PODS), includeObject="Object"),
                      "--accept", AS_TABLE)
        ours = self.reader("fleet-events", hub, PODS, 1, 1, "--ages")
        for number in range(self.args.rounds + 1):
            self.burst(simulator, bare, ours, agent, number > 0)
        for number in range(self.args.rounds):
            self.ages(simulator, hub, ours)
        for reader in (bare, ours):
            reader.stop()
        self.stop_all(agent, hub, simulator)
        self.say("events of one cluster: done")

    @staticmethod
    def config_map(simulator):
        """What a GET of 1 KB gets."""
        simulator.endpoint().ask(
            "POST", CONFIGMAPS.rstrip("/"), '{"metadata":{"name":"k1"},"data":{"x":"' + "x" * 700
            + '"}}', {"content-type": "application/json"})

    def watcher_memory(self, simulator, hub):
        """In a small hub: a large one has free memory from its start to give them."""
        before = hub.rss_kib()
        reader = self.many_readers("quiet-watchers", hub)
        idle = hub.rss_kib() - before
        reader.mark()
        simulator.churn(n=200, mix="readiness")
        reader.quiet(500)
        busy = hub.rss_kib() - before
        reader.stop()
        self.report.add("fleet.hub_kib_per_idle_watcher", idle / WATCHERS, "KiB")
        self.report.add("fleet.hub_kib_per_busy_watcher", busy / WATCHERS, "KiB")

    def burst(self, simulator, bare, ours, agent, counts):
        """Each reads a burst while the other way is stopped; that takes it in afterwards."""
        alone = self.read_burst(simulator, bare, ours, agent.process, bare.process)
        behind = self.read_burst(simulator, ours, bare, bare.process, agent.process)
        if not counts:
            return
        for owner, worker, (seconds, cpu_us) in (("bare", "cpu", alone),
                                                 ("fleet", "agent_cpu", behind)):
            self.report.sample(f"{owner}.events_1_per_s", BURST / seconds, "events/s", "higher")
            self.report.sample(f"{owner}.{worker}_us_per_event", cpu_us / BURST, "us")
        self.report.sample("fleet.events_1.vs_bare", alone[0] / behind[0], "ratio", "higher")
        self.report.sample("fleet.agent_cpu.vs_bare", behind[1] / alone[1], "ratio")

    def read_burst(self, simulator, reader, later, stopped, worker):
        """Seconds, and microseconds of the worker's CPU."""
        for each in (reader, later):
            each.mark()
        used = cpu_ns([worker.pid])
        stopped.send_signal(signal.SIGSTOP)
        try:
            simulator.churn(n=BURST, mix="readiness")
            seconds = reader.quiet(500)["seconds"]
            used = cpu_ns([worker.pid]) - used
        finally:
            stopped.send_signal(signal.SIGCONT)
        later.quiet(500)
        return seconds, used / 1e3

    def ages(self, simulator, hub, reader):
        simulator.churn(rate=AGE_RATE, mix="readiness")
        reader.mark()
        time.sleep(AGE_SECONDS)
        simulator.churn(rate=0)
        result = reader.quiet(300)
        got = self.load(hub.tls, hub.api, f"/clusters/c1{CONFIGMAPS}k1", "--seconds", GET_SECONDS)
        self.report.sample("fleet.event_age_p50_us", result["p50_us"], "us")
        self.report.sample("fleet.event_age_p99_us", result["p99_us"], "us")
        self.report.sample("relay.get_1k_p99_us", got["p99_us"], "us")
        self.report.sample("fleet.event_age_p99.vs_get", result["p99_us"] / got["p99_us"], "ratio")

    # ---- the slimmer ----

    def slim(self):
        """perf_slim_bench prints medians of ratios as key=value."""
        program = Programs.find(self.args.bin, "perf_slim_bench")
        out = run([program, "--rounds", max(5, self.args.rounds)])
        values = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
        self.report.add("fleet.slim_mbps", float(values["slim_mb_s"]), "MB/s", "higher")
        for other in ("jsonc", "memcpy"):
            self.report.add(f"fleet.slim.vs_{other}", float(values[f"slim_over_{other}"]), "ratio",
                            "higher")

    def run(self):
        for case in self.args.cases:
            if case in ("agent", "wire"):
                getattr(AgentCases(self), case)()
            elif case == "rogue":
                RogueCase(self).rogue()
            else:
                getattr(self, case)()


def parse_arguments():
    parser = command.parser(__doc__)
    parser.add_argument("--pods", type=int, default=1_000_000,
                        help=f"of the whole fleet, {PODS_EACH} in each cluster (%(default)s)")
    command.add_choice(parser, "cases", CASES)
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds below 1")
    args.cases = command.choice(parser, args, "cases", CASES)
    return args


def main():
    return command.run("fleet", parse_arguments(), FleetReport(), Bench)


if __name__ == "__main__":
    sys.exit(main())
