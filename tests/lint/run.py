# SPDX-License-Identifier: Apache-2.0
"""Runs every check of this folder on the project; called by `./dev lint`.
Prints one `FILE:LINE: message` for each finding; exit code 1 if there is any."""

import argparse
import os
import sys
import time
from pathlib import Path

import layers
import selftest
import text
import tools


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--fix", action="store_true", help="format the sources first")
    parser.add_argument("--no-tidy", action="store_true", help="leave clang-tidy out")
    args = parser.parse_args()
    root = Path(__file__).resolve().parents[2]
    if args.fix:
        tools.fix_format(root)
    checks = [selftest.check_checks, *layers.CHECKS, *text.CHECKS, tools.check_format,
              tools.check_variables, tools.check_shell, tools.check_manuals]
    if not args.no_tidy:
        checks.append(lambda r: tools.check_tidy(r, args.jobs))
    total = 0
    for check in checks:
        start = time.monotonic()
        findings = list(check(root))
        for finding in findings:
            print(finding)
        total += len(findings)
        seconds = time.monotonic() - start
        if seconds > 5:
            print(f"lint: {getattr(check, '__name__', 'check')} took {seconds:.0f} s")
    print(f"lint: {text.report(root)}")
    print(f"lint: {total} findings")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
