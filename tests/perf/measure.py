# SPDX-License-Identifier: Apache-2.0
"""What is read from the outside: CPU time and memory of processes, and one run of the load."""

import json
import pathlib
import subprocess

from world import BenchError, die_with_parent


def family(pid):
    """The process and its children (nginx has a master and a worker)."""
    pids = [pid]
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            pids.append(int(entry.parent.name))
    return pids


def cpu_ns(pids):
    total = 0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total


def memory_kib(pids, field):
    """Sum of VmRSS, RssAnon or VmHWM."""
    total = 0
    for pid in pids:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                total += int(line.split()[1])
    return total


def load_arguments(tools, target, path, options):
    return [
        tools / "perf_load", "--to", f"127.0.0.1:{target.port}", "--path", target.prefix + path,
        "--ca", target.ca, "--cert", target.cert, "--key", target.key, *options,
    ]


def run_load(tools, target, path, body_bytes, options):
    argv = [str(a) for a in load_arguments(tools, target, path, options)]
    before = {role: cpu_ns(pids) for role, pids in target.pids.items()}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300,
                          preexec_fn=die_with_parent)
    after = {role: cpu_ns(pids) for role, pids in target.pids.items()}
    if done.returncode != 0:
        raise BenchError(f"{target.name}: {path}: {done.stdout.strip()} {done.stderr.strip()}")
    result = json.loads(done.stdout)
    if result["bytes"] != body_bytes * result["done"]:
        raise BenchError(f"{target.name}: {path}: wrong body length: {result}")
    figures = {
        "rps": result["done"] / result["seconds"],
        "mbps": result["bytes"] / result["seconds"] / 1e6,
        "p50": result["p50_us"],
        "p99": result["p99_us"],
    }
    for role in before:
        figures[f"cpu_{role}"] = (after[role] - before[role]) / 1e3 / result["done"]
    if before:
        figures["cpu"] = sum(figures[f"cpu_{role}"] for role in before)
    return figures
