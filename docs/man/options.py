#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the option tables of docs/operations.md and the manuals from what `PROGRAM --help` prints.

    docs/man/options.py [--check] DIRECTORY-WITH-THE-PROGRAMS

A table stands between two marks that are comments: `options PROGRAM` and `end of options`. With
--check nothing is written; a table that is not what it should be is exit code 1, and so is a metric,
an error or a log event of the sources that docs/operations.md does not name."""

import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent
FILES = [DOCS / "operations.md", DOCS / "man/kuberelay-hub.8", DOCS / "man/kuberelay-agent.8",
         DOCS / "man/kuberelay-signer.8"]
COMMON = {"config", "check-config", "print-config", "help", "version"}
MARKDOWN = re.compile(r"(<!-- options (\S+) -->\n)(.*?)(<!-- end of options -->)", re.DOTALL)
MDOC = re.compile(r'(\.\\" options (\S+)\n)(.*?)(\.\\" end of options)', re.DOTALL)


def options_of(program):
    """(flag, value, text) of each option, in the order of --help."""
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  --([a-z0-9-]+)(?: (\S+))?\n      (.*)$", text, re.MULTILINE)


def camel(flag):
    first, *rest = flag.split("-")
    return first + "".join(word.capitalize() for word in rest)


def split_notes(text):
    """The sentence, and what --help puts in brackets behind it."""
    match = re.fullmatch(r"(.*?)(?: \((required|default .*)\))?", text)
    note = match[2] or ""
    return match[1], note.removeprefix("default ")


def markdown(options):
    lines = ["| key | value | default | |", "|---|---|---|---|"]
    for flag, value, text in options:
        if flag in COMMON:
            continue
        sentence, note = split_notes(text)
        default = f"`{note}`" if note and note != "required" else note
        lines.append(f"| `{camel(flag)}` | {value or 'BOOL'} | {default} | {sentence} |".replace("  ", " "))
    return "\n".join(lines) + "\n"


def escape(text):
    text = text.replace("\\", "\\e")
    return "\\&" + text if text.startswith((".", "'")) else text


def mdoc(options):
    lines = [".Bl -tag -width indent"]
    for flag, value, text in options:
        lines.append(f".It Fl Fl {flag}" + (f" Ar {value}" if value else ""))
        if flag not in COMMON:
            lines.append(f".Pq Li {camel(flag)}")
        lines.append(escape(text[0].upper() + text[1:] + "."))
    lines.append(".El")
    return "\n".join(lines) + "\n"


def unnamed():
    """What the sources have and the page for operators does not name."""
    root, page = DOCS.parent, (DOCS / "operations.md").read_text()
    facts = set(re.findall(r"^    X\((\w+), \d", (root / "lib/kube/status.h").read_text(), re.MULTILINE))
    for path in [p for d in ("hub", "agent", "signer") for p in root.glob(f"{d}/*.c")]:
        source = path.read_text()
        facts |= set(re.findall(r'"(kuberelay_(?:hub|agent)_\w+)"', source))
        # KR_LOG_AT(log, level, "event", ...), the event perhaps one of two.
        for call in re.findall(r"KR_LOG_AT\((.*?)(?:KR_[A-Z]+\(|\);)", source, re.DOTALL):
            facts |= set(re.findall(r'"([a-z-]+)"', call))
    return sorted(fact for fact in facts if not re.search(rf"(?<![\w-]){fact}(?![\w-])", page))


def main():
    args = [a for a in sys.argv[1:] if a != "--check"]
    if len(args) != 1:
        sys.exit(__doc__)
    wrong = 0
    for path in FILES:
        old = path.read_text()
        pattern, render = (MARKDOWN, markdown) if path.suffix == ".md" else (MDOC, mdoc)
        new = pattern.sub(
            lambda m, r=render: m[1] + r(options_of(Path(args[0]) / m[2])) + m[4], old)
        if new == old:
            continue
        if "--check" in sys.argv:
            print(f"{path}: the options are not those of --help; run docs/man/options.py")
            wrong = 1
        else:
            path.write_text(new)
    if "--check" in sys.argv:
        for fact in unnamed():
            print(f"{DOCS / 'operations.md'}: {fact} is not described")
            wrong = 1
    sys.exit(wrong)


if __name__ == "__main__":
    main()
