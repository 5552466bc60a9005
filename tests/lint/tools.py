# SPDX-License-Identifier: Apache-2.0
"""Checks that other programs do: clang-format, clang-tidy, shellcheck, and objdump for variables that
could change and belong to nobody."""

import concurrent.futures
import hashlib
import json
import re
import shutil
import subprocess
import sys

import layers
import text

TIDY_SECONDS = 120  # for one file
# Sections that a program can write to; .data.rel.ro is made read-only by the loader.
WRITABLE = re.compile(r"^\S+\s+(\S*)\s*O\s+(\.data|\.bss|\.tdata|\.tbss)(?!\.rel\.ro)\S*\s+\S+\s+(.+)$")
# Instrumentation and compiler helpers, not ours.
NOT_OURS = re.compile(r"^(__|\.L|completed\.|frame_dummy)")


def tool(*names):
    return next((n for n in names if shutil.which(n)), None)


def c_files_of_project(root):
    return [str(p) for p in text.c_files(root)]


def check_format(root):
    clang_format = tool("clang-format-14", "clang-format")
    if clang_format is None:
        yield "tests/lint/tools.py:1: clang-format-14 is not installed"
        return
    files = c_files_of_project(root)
    run = subprocess.run([clang_format, "--dry-run", "-Werror", *files], cwd=root,
                         capture_output=True, text=True)
    seen = set()
    for match in re.finditer(r"^([^\s:]+):(\d+):\d+: error: code should be", run.stderr, re.MULTILINE):
        if match[1] not in seen:
            seen.add(match[1])
            yield f"{match[1]}:{match[2]}: not as clang-format wants it (./dev lint --fix)"


def fix_format(root):
    subprocess.run([tool("clang-format-14", "clang-format"), "-i", *c_files_of_project(root)], cwd=root,
                   check=True)


def check_variables(root):
    """The rooms' libraries hold no variable that can be written."""
    for library in sorted((root / "build/release").glob("libkr_*.a")):
        if library.name == "libkr_proto.a":
            continue
        listing = subprocess.run(["objdump", "-t", library], capture_output=True, text=True)
        member = library.name
        for line in listing.stdout.splitlines():
            if line.endswith("file format elf64-x86-64") or ": " in line and "file format" in line:
                member = line.split(":")[0]
            match = WRITABLE.match(line)
            if match and not NOT_OURS.match(match[3]):
                yield f"{library.name}({member}):1: `{match[3]}` is a variable outside of any object"


def check_shell(root):
    shellcheck = tool("shellcheck")
    if shellcheck is None:
        return
    scripts = [str(p) for p in text.project_files(root)
               if p.suffix == ".sh" or text.read_lines(root, p)[:1] == ["#!/bin/bash"]]
    run = subprocess.run([shellcheck, "-x", "-S", "warning", "-f", "gcc", *scripts], cwd=root, capture_output=True,
                         text=True)
    yield from run.stdout.splitlines()


def check_manuals(root):
    """The option tables of the manuals are what the programs say of themselves."""
    script, programs = root / "docs/man/options.py", root / "build/release"
    if not script.exists() or not (programs / "kuberelay-agent").exists():
        return
    run = subprocess.run([sys.executable, script, "--check", programs], capture_output=True, text=True)
    if run.returncode != 0:
        yield f"docs/man/options.py:1: {(run.stdout + run.stderr).strip()[:300]}"


def everything_hash(root):
    """Changes when any header, the configuration or the compiler's switches change."""
    h = hashlib.sha256()
    for path in [p for p in text.c_files(root) if p.suffix == ".h"]:
        h.update((root / path).read_bytes())
    for name in (".clang-tidy", "cmake/options.cmake", "tests/lint/tools.py"):
        h.update((root / name).read_bytes())
    return h.hexdigest()


def tidy_one(root, clang_tidy, path, stamp):
    """The findings on one file; none are remembered by a stamp, so that a second run is quick."""
    if stamp.exists():
        return []
    command = [clang_tidy, "-p", "build/release", "--quiet", "--warnings-as-errors=*",
               "--extra-arg=-Wno-unknown-warning-option", str(path)]
    try:
        run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=TIDY_SECONDS)
    except subprocess.TimeoutExpired:
        return [f"{path}:1: clang-tidy took more than {TIDY_SECONDS} s"]
    found = [line.replace(str(root) + "/", "") for line in run.stdout.splitlines()
             if re.search(r": (error|warning): ", line)]
    if run.returncode != 0 and not found:
        return [f"{path}:1: clang-tidy failed: {run.stderr.strip()[:300]}"]
    if not found:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()
    return found


def check_tidy(root, jobs):
    clang_tidy = tool("clang-tidy-14", "clang-tidy")
    if clang_tidy is None or not (root / "build/release/compile_commands.json").exists():
        yield "tests/lint/tools.py:1: clang-tidy-14 or build/release/compile_commands.json is missing"
        return
    commands = json.loads((root / "build/release/compile_commands.json").read_text())
    known = {c["file"] for c in commands}
    base = everything_hash(root)
    todo = []
    for path in layers.sources(root):
        if path.suffix == ".c" and str(root / path) in known:
            content = (root / path).read_bytes()
            key = hashlib.sha256(base.encode() + str(path).encode() + content).hexdigest()
            todo.append((path, root / "build/lint" / key))
    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        for found in pool.map(lambda t: tidy_one(root, clang_tidy, *t), todo):
            yield from sorted(set(found))
