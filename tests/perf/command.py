# SPDX-License-Identifier: Apache-2.0
"""What the commands of ./dev bench have in common: options, and the run from world to figures."""

import argparse
import sys

from world import BenchError, World


def parser(doc, rounds=5):
    made = argparse.ArgumentParser(description=doc.splitlines()[0])
    made.add_argument("--bin", default="build/release", help="build folder with the programs")
    made.add_argument("--json", help="write the figures to this file")
    made.add_argument("--rounds", type=int, default=rounds)
    made.add_argument("--keep", action="store_true", help="keep the work folder")
    return made


def add_choice(made, option, all_of):
    made.add_argument(f"--{option}", default=",".join(all_of), help="default: %(default)s")


def choice(made, args, option, all_of):
    """The ones that were named, in the order of all of them."""
    wanted = [n for n in getattr(args, option).split(",") if n]
    unknown = set(wanted) - set(all_of)
    if unknown:
        made.error(f"unknown: {', '.join(sorted(unknown))}")
    return [n for n in all_of if n in wanted]


def run(name, args, report, bench):
    """The exit code; `bench` is made of these three and runs."""
    failed = False
    try:
        with World(args.keep) as world:
            bench(args, world, report).run()
    except BenchError as e:
        print(f"bench {name}: {e}", file=sys.stderr)
        failed = True
    report.finish()
    report.print_all()  # what was measured before a failure, too
    if args.json and not failed:
        report.write_json(args.json)
    return 1 if failed else 0
