# SPDX-License-Identifier: Apache-2.0
"""A wall clock that steps back, over a restart of the hub and under a running one: revisions of the
fleet view never do, and who comes back with one from before is told to list again."""

import datetime
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fleet import Fleet
from test_fleet_view import PODS, version

HOUR = 3600
SOURCE = Path(__file__).resolve().parent.parent / "fakes" / "shifted_clock.c"


@pytest.fixture
def clock(world):
    """Turns the hub's wall clock: clock.turn(seconds)."""
    if world.binaries.sanitized:
        pytest.skip("a sanitizer wants to be the first library of a program")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler to build a clock that can be turned")
    return Clock(world.folder, compiler)


class Clock:
    def __init__(self, folder, compiler):
        self.file = Path(folder) / "clock-shift"
        library = Path(folder) / "shifted_clock.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)],
                       check=True)
        self.env = {"LD_PRELOAD": str(library), "SHIFTED_CLOCK_FILE": str(self.file)}
        self.turn(0)

    def turn(self, seconds):
        fresh = self.file.with_suffix(".new")
        fresh.write_text(str(seconds))
        os.replace(fresh, self.file)


@pytest.fixture
def fleet(world, clock):
    state = world.folder / "state"
    state.mkdir()
    made = Fleet(world, pods=4, stateDir=str(state))
    made.hub_options = {"fleetFile": made.file, "stateDir": str(state), "env": clock.env}
    restart(made)
    return made


def restart(fleet):
    hub = fleet.world.hub
    hub.kill()
    fleet.world.restart_hub(hub, **fleet.hub_options)
    for name in fleet.names:
        fleet.world.wait_cluster(name)
    fleet.wait_synced(timeout=60)


def revisions(answer):
    return [int(item["metadata"]["resourceVersion"]) for item in answer["items"]]


def test_revisions_go_on_when_the_clock_stepped_back_over_a_restart(fleet, clock):
    before = fleet.list(PODS)
    highest = max([int(version(before)), *revisions(before)])
    for shift in (-HOUR, -24 * HOUR):
        clock.turn(shift)
        fleet.pod("c1", f"at{shift}")
        restart(fleet)
        after = fleet.list(PODS)
        assert min([int(version(after)), *revisions(after)]) > highest
        # What a client kept from before means nothing to this hub: it lists again.
        for rv in (version(before), str(highest)):
            answer = fleet.get(PODS, watch=1, resourceVersion=rv)
            assert answer.status == 410 or b'"code":410' in answer.body, answer
        highest = max([int(version(after)), *revisions(after)])
        before = after


def test_an_open_watch_goes_on_when_the_clock_steps_back(fleet, clock):
    start = version(fleet.list(PODS))
    watch = fleet.watch(PODS, resourceVersion=start)
    for number, shift in enumerate((0, -HOUR, -2 * HOUR, HOUR, -HOUR)):
        clock.turn(shift)
        for cluster in fleet.names:
            fleet.pod(cluster, f"at-{number}")
        watch.wait(lambda e, n=number: len(e) >= 2 * (n + 1))
    seen = [int(e["object"]["metadata"]["resourceVersion"]) for e in watch.events()]
    assert seen == sorted(set(seen)) and seen[0] > int(start)
    # One that comes back with what it saw last goes on from there.
    again = fleet.watch(PODS, resourceVersion=str(seen[4]))
    names = [e["object"]["metadata"]["name"] for e in again.wait(lambda e: len(e) >= 5)]
    assert names == [e["object"]["metadata"]["name"] for e in watch.events()[5:]]
    listed = fleet.list(PODS)
    assert int(version(listed)) >= seen[-1]
    again.close()
    watch.close()


def test_the_clock_of_these_tests_is_the_hubs(fleet, clock):
    """Else the tests above would say nothing: the hub's log tells its time."""
    clock.turn(-24 * HOUR)
    before = fleet.world.hub.mark()
    fleet.world.hub.signal(1)
    line = fleet.world.hub.wait_line(r"^time=(\S+) .*event=reloaded", 10, before)
    told = datetime.datetime.fromisoformat(line.group(1).replace("Z", "+00:00"))
    now = datetime.datetime.now(datetime.timezone.utc)
    assert 23 * HOUR < (now - told).total_seconds() < 25 * HOUR
