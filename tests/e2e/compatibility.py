#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/compatibility.md from the JUnit files of a run:

    ./dev test && tests/e2e/compatibility.py build/results > docs/compatibility.md

Each check of the fidelity matrix is a line; what was not run says so."""

import collections
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

CHECKS = {
    1: "version, API groups and OpenAPI documents read raw",
    2: "raw paths of old and new kubectl, with a prefix and with the cluster's own name",
    3: "kubectl proxy, with and without the path of the server",
    4: "aggregated discovery, its ETag, and the 304 after it",
    5: "a stale OpenAPI v3 hash: the redirect keeps the prefix",
    6: "api-resources, explain, get all with a cold cache",
    7: "lists as JSON, YAML, protobuf, Table, metadata only",
    8: "a media type nobody serves: 406",
    9: "large lists with gzip and without",
    10: "pretty JSON for curl",
    11: "create, apply, server-side apply, replace, patch, scale, label, delete",
    12: "a conflict of server-side apply and its causes",
    13: "a CBOR patch the server does not take: 415",
    14: "a body over the server's limit: 413",
    15: "bodies without a length or a type",
    16: "Expect: 100-continue, and a refusal before the body has ended",
    17: "dry run, strict field validation",
    18: "warnings of the server, each on its own",
    19: "forged identity headers and hop-by-hop headers",
    20: "acting as another user, group and uid, by rule only",
    21: "whoami and can-i tell of the user, not of the agent",
    22: "one audit id in hub, answer and audit log",
    23: "trace headers untouched",
    24: "dangerous paths: dots, escapes, empty segments",
    25: "paths below a service proxy, byte for byte",
    26: "smuggling: two lengths, two hosts, bare line feeds, h2c",
    27: "the timeout parameter, valid and not",
    28: "a server that hangs: 504 at the deadline",
    29: "two hundred watches on one connection",
    30: "pings are answered while a download stalls",
    31: "get -w shows events at once",
    32: "watches in every form, WebSocket too",
    33: "bookmarks in a quiet watch",
    34: "a watch ends cleanly at its time-out",
    35: "a resource version long gone: 410 in the stream",
    36: "a list as a stream",
    37: "lists in pages, and an expired continue token",
    38: "the agent dies: watches end cleanly, informers do not list",
    39: "the agent is away: 429 with a growing Retry-After, then the same watch",
    40: "Ctrl-C ends the request at the server",
    41: "get while the agent is away fails at once and says why",
    42: "an unknown cluster: 403, never 404",
    43: "create while the agent is away, and while it dies",
    44: "overload: 429, and the create happens once",
    45: "a truncated answer is never a short success",
    46: "exec and attach: output, exit code, stdin to its end",
    47: "exec refused by the server, and by the hub",
    48: "exec on a terminal: resize, echo of keys",
    49: "cp both ways, checksums, bounded memory",
    50: "port-forward: large answers, half-close, fifty at once, nobody listens",
    51: "exec over SPDY only; answers that are no upgrade",
    52: "nothing follows a refused upgrade",
    53: "logs: tail, since, follow, many pods, the pod's end",
    54: "drain with a disruption budget; top without metrics",
    55: "the agent's token is replaced and the old one revoked",
    56: "the server refuses the agent's token for good: 502, not 401",
    57: "fleet: get over all clusters",
    58: "fleet: resource versions over churn and restarts",
    59: "fleet: pages over many objects under churn",
    60: "client-go, controller-runtime, Helm, Argo CD's watches, the Python client, through an outage",
}
REMARKS = {
    54: "no metrics server and no node here: the budget's status is kept by the test",
    60: "Argo CD's pattern is imitated; Argo CD, Flux and k9s themselves are not run",
}

Case = collections.namedtuple("Case", "backend check kubectl outcome reason")


def outcome_of(case):
    for tag, word in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        found = case.find(tag)
        if found is not None:
            return word, (found.get("message") or "").split("\n")[0]
    return "passed", ""


def read(path):
    backend = path.stem.removeprefix("pytest-")
    for case in ET.parse(path).iter("testcase"):
        match = re.match(r"test_check_(\d+)_", case.get("name"))
        if match:
            version = next((p.get("value") for p in case.iter("property")
                            if p.get("name") == "kubectl"), None)
            outcome, reason = outcome_of(case)
            if "runs on the real backends" not in reason:  # else it belongs to another column
                yield Case(backend, int(match.group(1)), version, outcome, reason)


def cell(cases):
    """One result for several tests of a check."""
    if not cases:
        return "-"
    counts = collections.Counter(c.outcome for c in cases)
    if counts["failed"]:
        return f"**{counts['failed']} of {len(cases)} failed**"
    if not counts["passed"]:
        return "skipped"
    return f"pass ({counts['passed']})" + (f", {counts['skipped']} skipped" if counts["skipped"] else "")


def heading(backend):
    if backend == "kubesim":
        return "scripted server and simulator"
    return "kube-apiserver " + backend.removeprefix("real-")


def table(header, rows):
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def checks_table(cases, backends):
    rows = []
    for number, text in CHECKS.items():
        mine = [c for c in cases if c.check == number]
        results = [cell([c for c in mine if c.backend == b]) for b in backends]
        if all(result == "-" for result in results):
            results = ["not run"] * len(backends)
        remark = REMARKS.get(number, "")
        rows.append([str(number), text, *results, remark])
    return table(["#", "check", *map(heading, backends), "remark"], rows)


def versions_table(cases):
    """The checks that were run with kubectl of a certain version, all servers together."""
    known = [c for c in cases if c.kubectl]
    versions = sorted({c.kubectl for c in known}, key=lambda v: int(v.split(".")[1]))
    rows = []
    for number in sorted({c.check for c in known}):
        mine = [c for c in known if c.check == number]
        rows.append([str(number), *(cell([c for c in mine if c.kubectl == v]) for v in versions)])
    return table(["#", *(f"kubectl {v}" for v in versions)], rows)


def skips(cases):
    reasons = collections.Counter((c.reason, c.backend) for c in cases if c.outcome == "skipped")
    for (reason, backend), count in sorted(reasons.items()):
        yield f"- {heading(backend)}: {count} skipped: {reason}"


def page(cases):
    backends = sorted({c.backend for c in cases}, key=lambda b: (b != "kubesim", b))
    yield from ("<!-- SPDX-License-Identifier: Apache-2.0 -->", "# Compatibility", "",
                "What clients see through the hub is compared with what the API server answers directly.",
                "This page is made from the results of a test run by `tests/e2e/compatibility.py`; a number",
                "in brackets counts tests; `-` means that a check does not depend on that server or cannot",
                "be made with it.", "")
    yield from checks_table(cases, backends)
    yield from ("", "## By version of kubectl", "",
                "The newest is built from its Go module; Debian's is 1.20. kubectl before 1.30 upgrades to",
                "SPDY, later ones to WebSocket first. A version that is not listed was not run.", "")
    yield from versions_table(cases)
    yield from ("", "## What was skipped", "")
    yield from skips(cases)


def main():
    paths = sorted(Path(sys.argv[1] if len(sys.argv) > 1 else "build/results").glob("pytest-*.xml"))
    if not paths:
        sys.exit("no pytest-*.xml there: run ./dev test first")
    cases = [case for path in paths for case in read(path)]
    print("\n".join(page(cases)))


if __name__ == "__main__":
    main()
