# SPDX-License-Identifier: Apache-2.0
"""Adds up what the stages of `./dev test` left in a folder: JUnit XML of ctest and pytest, and
noted.tsv (name, pass|fail|skip, reason). Prints what failed, what was skipped and why, and as the last
line `N passed, N failed, N skipped`. Exit code 1 if anything failed or nothing ran."""

import argparse
import collections
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

Result = collections.namedtuple("Result", "source name outcome reason")


def of_xml(path):
    """A file that is cut short (its writer was killed) counts as one failure."""
    try:
        tree = ET.parse(path)
    except ET.ParseError as e:
        return [Result(path.stem, path.name, "fail", f"unreadable: {e}")]
    return [of_case(path.stem, case) for case in tree.iter("testcase")]


def of_case(source, case):
    name = "::".join(filter(None, [case.get("classname"), case.get("name")]))
    if source.startswith("ctest"):
        name = case.get("name")
    failure = case.find("failure") if case.find("failure") is not None else case.find("error")
    skipped = case.find("skipped")
    if failure is not None or case.get("status") == "fail":
        return Result(source, name, "fail", first_line(failure))
    if skipped is not None:
        return Result(source, name, "skip", first_line(skipped))
    return Result(source, name, "pass", "")


def first_line(element):
    text = (element.get("message") or element.text or "") if element is not None else ""
    return text.strip().split("\n")[0][:300]


def load(folder):
    results = []
    for path in sorted(folder.glob("*.xml")):
        results += of_xml(path)
    noted = folder / "noted.tsv"
    if noted.exists():
        for line in noted.read_text().splitlines():
            name, outcome, reason = line.split("\t")
            results.append(Result("noted", name, outcome, reason))
    return results


def count(results, outcome):
    return sum(r.outcome == outcome for r in results)


def summary(results):
    return ", ".join(f"{count(results, o)} {word}" for o, word in
                     (("pass", "passed"), ("fail", "failed"), ("skip", "skipped")))


def print_skips(results):
    reasons = collections.Counter((r.source, r.reason or "no reason given")
                                  for r in results if r.outcome == "skip")
    for (source, reason), n in sorted(reasons.items()):
        print(f"skipped: {n} in {source}: {reason}")


def missing_real(results):
    """The backends on which nothing passed, among those that should have run."""
    folders = (Path(__file__).parent / "real").glob("apiserver-*")
    wanted = {"pytest-real-" + p.name.removeprefix("apiserver-") for p in folders}
    return sorted(wanted - {r.source for r in results if r.outcome == "pass"})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--failed", action="store_true", help="print the number of failures only")
    parser.add_argument("--stage", help="print the counts of one stage in brackets, if it has any")
    parser.add_argument("--require-real", action="store_true",
                        help="fail if the tests on real API servers did not run")
    args = parser.parse_args()
    results = load(args.folder)
    if args.failed:
        print(count(results, "fail"))
        return 0
    if args.stage:
        prefixes = {"unit": ("ctest-release",), "asan": ("ctest-asan",), "tsan": ("ctest-tsan",),
                    "e2e": ("pytest-kubesim",), "real": ("pytest-real",)}.get(args.stage, ())
        mine = [r for r in results if prefixes and r.source.startswith(prefixes)]
        print(f": {summary(mine)}" if mine else "")
        return 0
    for backend in missing_real(results) if args.require_real else []:
        results.append(Result("noted", f"{backend} must run here", "fail", "it was skipped"))
    for r in results:
        if r.outcome == "fail":
            print(f"FAILED: {r.source} {r.name}: {r.reason}")
    print_skips(results)
    print(summary(results))
    return 1 if count(results, "fail") or not count(results, "pass") else 0


if __name__ == "__main__":
    sys.exit(main())
