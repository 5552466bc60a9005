# SPDX-License-Identifier: Apache-2.0
"""500 random cancels a second on full-speed streams, downloads and upgraded ones: nobody else
notices, nothing leaks. The streams are those of the benchmark's programs (tests/perf); Python
would not be fast enough to be a storm."""

import json
import os
import statistics
import subprocess
import time
from pathlib import Path

import pytest

import testpki
from backends import kubeconfig_of, write_yaml
from beside import Beside
from clock import scaled, wait_until
from h2client import ConnectionLost
from test_process import assert_back, baseline
from world import gauge

CONNECTIONS = 20
STREAMS = 4  # on each
CANCELS = 450  # a second, on the connections above: 22 each, of the 33 that refill
UPGRADES = 50  # a second, each broken off; one connection each
ENDLESS = "/api/v1/namespaces/d/configmaps/endless"
EXEC = "/api/v1/namespaces/d/pods/p/exec"


class Storm:
    """The fast origin behind an own hub and agent, and the programs that load it."""

    def __init__(self, world, tools):
        self.world, self.tools = world, tools
        folder = world.folder
        pki = testpki.new_ca(folder, "origin-ca", "origin CA")
        serving = testpki.issue(pki, folder, "origin", "origin", ips=["127.0.0.1"],
                                dns=["localhost"], usage=testpki.SERVER)
        ours = testpki.issue(pki, folder, "origin-agent", "kuberelay-agent")
        self.children = []
        origin = self.spawn("watch_origin", serving.crt, serving.key)
        url = "https://" + origin.stdout.readline().split()[1]
        world.start_hub()
        self.agent = world.start_agent("s1", write_yaml(
            folder / "origin.kubeconfig", kubeconfig_of(url, pki.crt, ours.crt, ours.key)))
        self.user = world.user("storm")

    def spawn(self, name, *args):
        child = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", self.tools / f"perf_{name}",
             *[str(a) for a in args]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.children.append(child)
        return child

    def load(self, name, path, *args):
        host, port = self.world.hub.api
        return self.spawn(name, "--to", f"{host}:{port}", "--path", "/clusters/s1" + path,
                          "--ca", self.world.ca, "--cert", self.user.crt, "--key", self.user.key,
                          *args)

    def downloads(self, cancels, seconds):
        return self.load("load", ENDLESS, "--connections", CONNECTIONS, "--streams", STREAMS,
                         "--window", 1 << 20, "--cancels", cancels, "--seconds", seconds)

    def upgrades(self, seconds):
        return self.load("exec_load", EXEC, "--mode", "cancel", "--rate", UPGRADES,
                         "--threads", 32, "--seconds", seconds)

    def memory(self):
        return self.world.hub.memory_kib(), self.agent.memory_kib()

    def lost(self):
        return gauge(self.world.metrics(), "kuberelay_hub_tunnels_lost_total")

    def close(self):
        for child in self.children:
            child.kill()
            child.communicate()


@pytest.fixture
def storm(world, binaries):
    tools = next((p for p in (binaries.folder / "tests", binaries.folder)
                  if os.access(p / "perf_exec_load", os.X_OK)), None)
    if tools is None:
        pytest.skip(f"the benchmark's programs are not built (looked in {binaries.folder})")
    made = Storm(world, Path(tools))
    yield made
    made.close()


def result(child):
    out, err = child.communicate(timeout=scaled(120))
    assert out.startswith("{"), (child.returncode, out, err[-500:])
    return json.loads(out), err


def others_of(storm):
    return Beside(storm.world.client("beside"), "/clusters/s1/api/v1/namespaces/d/configmaps/small")


def median_of(others):
    times = others.finish()
    assert len(times) >= 5, "hardly any request got through"
    return statistics.median(times)


def calm(storm, seconds):
    """The same streams at full speed, none of them cancelled."""
    load = storm.downloads(0, seconds)
    beside = others_of(storm)
    numbers, err = result(load)
    assert numbers["failed"] == 0, (numbers, err[-500:])
    return median_of(beside)


def cancels(storm, seconds):
    """(median of the others, memory at half time and just before the end)."""
    load, upgrades, beside = storm.downloads(CANCELS, seconds), storm.upgrades(seconds), None
    try:
        beside = others_of(storm)
        time.sleep(seconds / 2)
        half = storm.memory()
        time.sleep(max(seconds / 2 - 1, 0))
        end = storm.memory()
    finally:
        numbers, err = result(load)
        broken, broken_err = result(upgrades)
    assert numbers["failed"] == 0, (numbers, err[-500:])
    assert broken["failed"] == 0, (broken, broken_err[-500:])
    # A machine that is busy with something else cancels less; far less is no storm.
    assert numbers["cancelled"] > CANCELS * seconds / scaled(4), numbers
    assert broken["done"] > UPGRADES * seconds / scaled(20), broken
    return median_of(beside), half, end


def test_cancel_storm_of_many_connections_disturbs_nobody(storm, request):
    seconds = 60 if request.config.getoption("--long") else 10
    wait_until(lambda: baseline(storm.world, storm.agent)["hub exchanges"] == 0, 10, "idle")
    before, lost = baseline(storm.world, storm.agent), storm.lost()
    calm(storm, 2)  # warm: all pools are there
    assert_back(storm.world, storm.agent, {**before, "hub fds": before["hub fds"] + 2})
    memory = storm.memory()
    quiet = calm(storm, max(seconds / 3, 3))
    loud, half, end = cancels(storm, seconds)
    assert loud < 5 * quiet + scaled(0.05), (quiet, loud)
    assert storm.lost() == lost, "a tunnel was lost"
    assert_back(storm.world, storm.agent, {**before, "hub fds": before["hub fds"] + 2})
    for name, at_half, at_end, first in zip(("hub", "agent"), half, end, memory):
        assert at_end < 1.5 * at_half + 16 * 1024, (name, first, at_half, at_end)
    wait_until(lambda: all(now < first + 32 * 1024
                           for now, first in zip(storm.memory(), memory)), 10, "memory given back")


def test_cancel_storm_of_one_connection_ends_that_one_only(storm):
    lost = storm.lost()
    assert lost is not None
    others = storm.downloads(100, 6)
    beside = others_of(storm)
    flood = storm.world.client("storm", window=65535)  # the same user as the others
    try:
        for _ in range(5000):
            stream = flood.start("GET", "/clusters/s1" + ENDLESS)
            stream.reset()
            flood.streams.pop(stream.id, None)
    except (ConnectionLost, OSError):
        pass
    flood.wait_lost(20)
    assert flood.goaway and flood.goaway[1] == 11, flood.goaway  # ENHANCE_YOUR_CALM
    numbers, err = result(others)
    assert numbers["failed"] == 0, (numbers, err[-500:])
    median_of(beside)
    assert storm.lost() == lost, "a tunnel was lost"
