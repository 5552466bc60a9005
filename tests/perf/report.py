# SPDX-License-Identifier: Apache-2.0
"""Medians, ratios per round, the table for people and the array for machines."""

import json
import statistics

UNITS = {
    "rps": ("requests/s", "higher"),
    "mbps": ("MB/s", "higher"),
    "p50": ("us", "lower"),
    "p99": ("us", "lower"),
    "cpu": ("us/request", "lower"),
    "cpu_hub": ("us/request", "lower"),
    "cpu_agent": ("us/request", "lower"),
    "rss": ("MiB", "lower"),
}

GOALS = [  # name, worst value that reaches the goal
    ("relay.rps_1k_c1.vs_haproxy", 0.9),
    ("relay.rps_1k_c64.vs_haproxy", 0.9),
    ("relay.rps_100k_c1.vs_haproxy", 0.9),
    ("relay.rps_100k_c64.vs_haproxy", 0.9),
    ("relay.mbps_10m.vs_nginx", 0.9),
    ("relay.mbps_1g.vs_nginx", 0.9),
    ("relay.cpu_1k_c64.vs_haproxy", 1.1),
    ("relay.cpu_100k_c64.vs_haproxy", 1.1),
    ("relay.cpu_10m.vs_nginx", 1.1),
    ("relay.cpu_1g.vs_nginx", 1.1),
    ("relay.mbps_1stream_100ms.vs_direct", 0.8),
    ("agent.rss_idle_mib", 4),
    ("hub.kib_per_tunnel", 40),
    ("hub.kib_per_watch", 12),
]


EXEC_UNITS = {
    "mbps": ("MB/s", "higher"),
    "rate": ("sessions/s", "higher"),
    "cpu": ("us/session", "lower"),
    "p50": ("us", "lower"),
    "p99": ("us", "lower"),
}

EXEC_GOALS = [
    ("exec.mbps_out.vs_haproxy", 0.8),
    ("exec.mbps_in.vs_haproxy", 0.8),
    ("exec.keystroke_p99.vs_direct", 2),
    ("exec.keystroke_10ms_p99.vs_direct", 2),
    ("exec.keystroke_apiserver_p99.vs_direct", 2),
]

FLEET_GOALS = [
    ("fleet.hub_bytes_per_pod", 768),
    ("fleet.list_mbps.vs_nginx", 0.5),
    ("fleet.events_1.vs_bare", 0.3),
    ("fleet.event_age_p99.vs_get", 5),
    ("fleet.agent_rss_mib", 16),
    ("fleet.agent_sync_growth_mib", 1),
    ("fleet.slim.vs_jsonc", 10),
    ("fleet.slim.vs_memcpy", 0.08),
    ("fleet.wire_pods_times_less", 40),
    ("fleet.wire_nodes_times_less", 300),
    ("fleet.resume_cut_percent", 1),
    ("fleet.resume_restart_percent", 1),
    ("fleet.rogue_sync_get_p99.vs_before", 1.1),
    ("fleet.rogue_tunnels_get_p99.vs_before", 1.1),
]

ENROLL_GOALS = [
    ("enroll.vs_openssl", 0.4),
    ("enroll.seconds_until_all", 30),
]


class Report:
    goals = GOALS
    units = UNITS
    ours = "relay"

    def __init__(self):
        self.rounds = {}  # case -> contestant -> list of figures, one per round
        self.values = {}  # name -> (value, unit, better)

    def add_round(self, case, contestant, figures):
        self.rounds.setdefault(case, {}).setdefault(contestant, []).append(figures)

    def add(self, name, value, unit, better="lower"):
        self.values[name] = (value, unit, better)

    def finish(self):
        for case, by_contestant in self.rounds.items():
            for contestant, rounds in by_contestant.items():
                self.add_medians(case, contestant, rounds)
            ours = by_contestant.get("kuberelay")
            for contestant, rounds in by_contestant.items():
                if ours and contestant != "kuberelay":
                    self.add_ratios(case, contestant, ours, rounds)

    def add_medians(self, case, contestant, rounds):
        for figure in rounds[0]:
            unit, better = self.units[figure]
            value = statistics.median(r[figure] for r in rounds)
            self.add(self.label(contestant, figure, case), value, unit, better)

    def label(self, contestant, figure, case):
        owner = self.ours if contestant == "kuberelay" else contestant
        return f"{owner}.{figure}_{case}"

    def add_ratios(self, case, contestant, ours, theirs):
        for figure in set(ours[0]) & set(theirs[0]):
            ratios = [a[figure] / b[figure] for a, b in zip(ours, theirs) if b[figure] > 0]
            if ratios:
                name = f"{self.label('kuberelay', figure, case)}.vs_{contestant}"
                self.add(name, statistics.median(ratios), "ratio", self.units[figure][1])

    # ---- output ----

    def print_case(self, case):
        print(f"\n{case}")
        print(f"  {'':10} {'req/s':>9} {'MB/s':>8} {'p50 us':>9} {'p99 us':>9}"
              f" {'hub us':>9} {'agent us':>9} {'cpu us':>9}   kuberelay/this: req/s, cpu, p99")
        for contestant in self.rounds[case]:
            self.print_row(case, contestant)

    def print_row(self, case, contestant):
        owner = "relay" if contestant == "kuberelay" else contestant
        names = ("rps", "mbps", "p50", "p99", "cpu_hub", "cpu_agent", "cpu")
        cells = [self.values.get(f"{owner}.{n}_{case}", (None,))[0] for n in names]
        widths = (9, 8, 9, 9, 9, 9, 9)
        text = " ".join(f"{number(c):>{w}}" for c, w in zip(cells, widths))
        ratios = [self.values.get(f"relay.{n}_{case}.vs_{contestant}", (None,))[0]
                  for n in ("rps", "cpu", "p99")]
        tail = ", ".join("-" if r is None else f"{r:.2f}" for r in ratios)
        print(f"  {contestant:10} {text}   {tail if any(ratios) else ''}")

    def print_all(self):
        for case in self.rounds:
            self.print_case(case)
        print("\nmemory, and CPU while idle")
        for name, (value, unit, _) in self.values.items():
            if "mib" in name or "kib" in name or "idle" in name:
                print(f"  {name:44} {number(value):>9} {unit}")
        self.print_goals()

    def print_goals(self):
        print("\ngoals")
        for name, limit in self.goals:
            if name not in self.values:
                continue
            value, _, better = self.values[name]
            reached = value >= limit if better == "higher" else value <= limit
            sign = ">=" if better == "higher" else "<="
            print(f"  {name:40} {number(value):>8} {sign} {limit:<4} {'yes' if reached else 'NO'}")

    def write_json(self, path):
        rows = [
            {"name": name, "value": round(value, 4), "unit": unit, "better": better}
            for name, (value, unit, better) in sorted(self.values.items())
        ]
        with open(path, "w") as f:
            json.dump(rows, f, indent=1)
            f.write("\n")


class ExecReport(Report):
    """One line for each figure: every contestant, and kuberelay's ratios to the others."""

    goals = EXEC_GOALS
    units = EXEC_UNITS
    ours = "exec"

    def label(self, contestant, figure, case):
        owner = self.ours if contestant == "kuberelay" else contestant
        if figure == "mbps":
            return f"{owner}.mbps_{case}"
        return f"{owner}.{case}_per_s" if figure == "rate" else f"{owner}.{case}_{figure}"

    def print_all(self):
        print(f"\n{'':28} {'direct':>9} {'haproxy':>9} {'kuberelay':>9}   kuberelay/direct, haproxy")
        for case, by_contestant in self.rounds.items():
            for figure in by_contestant.get("kuberelay", [{}])[0]:
                self.print_figure(case, figure)
        print()
        for name, (value, unit, _) in self.values.items():
            if unit == "MiB":
                print(f"  {name:40} {number(value):>9} {unit}")
        self.print_goals()

    def print_figure(self, case, figure):
        names = [self.label(c, figure, case) for c in ("direct", "haproxy", "kuberelay")]
        cells = [number(self.values.get(n, (None,))[0]) for n in names]
        ratios = [number(self.values.get(f"{names[2]}.vs_{c}", (None,))[0])
                  for c in ("direct", "haproxy")]
        text = " ".join(f"{c:>9}" for c in cells)
        print(f"  {names[2]:26} {text}   {', '.join(ratios)}")


class FleetReport(Report):
    """Plain figures; of what was sampled in several rounds the median."""

    goals = FLEET_GOALS

    def __init__(self):
        super().__init__()
        self.samples = {}

    def sample(self, name, value, unit, better="lower"):
        self.samples.setdefault(name, ([], unit, better))[0].append(value)

    def finish(self):
        for name, (values, unit, better) in self.samples.items():
            self.add(name, statistics.median(values), unit, better)

    def print_all(self):
        print()
        for name, (value, unit, _) in sorted(self.values.items()):
            rounds = self.samples.get(name, ([],))[0]
            spread = f"   {number(min(rounds))} to {number(max(rounds))}" if rounds else ""
            print(f"  {name:36} {number(value):>10} {unit:12}{spread}")
        self.print_goals()


class EnrollReport(FleetReport):
    goals = ENROLL_GOALS


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"
