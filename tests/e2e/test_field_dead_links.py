# SPDX-License-Identifier: Apache-2.0
"""F037: packets vanish on one of the links and nobody is told. What runs ends within the bound, new
work takes new connections, and watches go on with nothing lost and nothing twice."""

import json
import time

import pytest

from clock import scaled, wait_until
from fleet import Fleet, bare, key
from netns import Netns
from test_fleet_view import PODS
from test_process import Leg
from test_upgrades import EXEC, FORMS, switch

BOUND = 35  # the keep-alive of both ends, 30 s, and some


@pytest.fixture
def net():
    made = Netns()
    yield made
    made.close()


def half_a_list(x):
    x.start_stream()
    x.write(b'{"kind":"List","apiVersion":"v1","items":[')
    x.hold()


def echo(x):
    pipe = switch(x, FORMS["websocket"][2])
    while data := pipe.recv(timeout=scaled(120)):
        pipe.sendall(data)


class BusyLeg(Leg):
    """With an exec and a list half sent, beside the watch and the request that waits."""

    def __init__(self, net, binaries, folder, name, **hub):
        super().__init__(net, binaries, folder, name, **hub)
        self.fake.api.script(EXEC, echo)
        self.fake.api.script("/api/v1/half", half_a_list)
        self.half = self.client.start("GET", "/clusters/f1/api/v1/half").wait_bytes(10)
        self.exec = self.world.h1("admin")
        method, headers, _ = FORMS["websocket"]
        self.exec.head(method, "/clusters/f1" + EXEC, headers)
        assert self.exec.read_head(10)[0] == 101
        self.exec.send(b"typed")
        assert self.exec.exactly(5, time.monotonic() + scaled(10)) == b"typed"


ONE_WAY = pytest.mark.long


@pytest.mark.parametrize("both", [True, pytest.param(False, marks=ONE_WAY)],
                         ids=["both-ways", "one-way"])
def test_field_F037_exec_and_lists_end_within_the_bound(net, binaries, tmp_path, both):
    with net.inside():
        leg = BusyLeg(net, binaries, tmp_path, "leg")
        try:
            begin = time.monotonic()
            net.drop(leg.world.hub.agent[1], both=both)
            leg.exec.wait_closed(45)
            assert time.monotonic() - begin < scaled(BOUND)
            assert leg.half.wait_finish(15) == "reset", "a list that is not whole must not look so"
            assert leg.watch.wait_finish(15) == "end"
            assert leg.hanging.answer(15).status == 503
            assert time.monotonic() - begin < scaled(BOUND + 5)
            # Nothing is put on the dead connection: what comes now is told at once.
            asked = time.monotonic()
            assert leg.client.get("/clusters/f1/version").status == 503
            assert time.monotonic() - asked < scaled(15)
            net.restore()
            leg.world.wait_cluster("f1", 70)
            assert leg.world.client().get("/clusters/f1/api/v1/x").status == 200
        finally:
            leg.close()


# -- the fleet view over dead links

class Replay:
    """What a watcher knows, held against each event: nothing twice, nothing backwards."""

    def __init__(self, fleet):
        listed = fleet.list(PODS)
        self.held = {key(o): bare(o) for o in listed["items"]}
        self.last = int(listed["metadata"]["resourceVersion"])
        self.watch = fleet.watch(PODS, resourceVersion=str(self.last))
        self.done = 0

    def catch_up(self):
        events = self.watch.events()
        for event in events[self.done:]:
            self.take(event["type"], event["object"])
        self.done = len(events)
        return self.held

    def take(self, what, obj):
        revision, name, now = int(obj["metadata"]["resourceVersion"]), key(obj), bare(obj)
        assert revision > self.last, (what, name)
        self.last, before = revision, self.held.get(name)
        assert (what == "ADDED") == (before is None), (what, name)
        if what == "DELETED":
            del self.held[name]
            return
        if before is not None and before["metadata"]["uid"] == now["metadata"]["uid"]:
            assert before != now, ("the same once more", name)
            assert (int(before["metadata"]["resourceVersion"]) <
                    int(now["metadata"]["resourceVersion"])), ("backwards", name)
        self.held[name] = now


def cut_for(net, fleet, replay, port, both, seconds, churning):
    """Packets to the port vanish while the cluster goes on changing."""
    churning(4)
    time.sleep(1)  # changes are under way when it happens
    net.drop(port, both=both)
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        answer = fleet.get(PODS)  # reads never wait for an edge
        assert answer.status == 200
        time.sleep(1)
    net.restore()
    churning(0)
    fleet.wait_synced(timeout=120)
    wanted = fleet.union(PODS)
    wait_until(lambda: replay.catch_up() == wanted, 30, "the watch has it all")
    assert not replay.watch.stream.ended, "it is the watch that was open before"


@pytest.fixture
def fleet(net, binaries, tmp_path):
    from world import World

    with net.inside():
        world = World(tmp_path / "dead", binaries)
        yield Fleet(world, pods=40)
        world.close()


def simulator_port(fleet, name):
    return fleet.clusters[name].address[1]


def churn(fleet, rate):
    """By c2's address: that of c1 may be the one whose packets vanish."""
    fleet.clusters["c2"].ask("POST", f"/kubesim/churn?rate={rate}&mix=pods&all=true")


@pytest.mark.parametrize("which", ["api-server", "hub",
                                   pytest.param("hub-one-way", marks=ONE_WAY)])
def test_field_F037_watches_lose_nothing_and_see_nothing_twice(net, fleet, which):
    replay = Replay(fleet)
    port = simulator_port(fleet, "c1") if which == "api-server" else fleet.world.hub.agent[1]
    cut_for(net, fleet, replay, port, which != "hub-one-way", 45, lambda r: churn(fleet, r))
    assert json.dumps(fleet.world.hub.grep("level=error")) == "[]"
    replay.watch.close()


@pytest.mark.long
def test_field_F037_five_minutes_without_a_packet(net, fleet):
    replay = Replay(fleet)
    cut_for(net, fleet, replay, fleet.world.hub.agent[1], True, 300, lambda r: churn(fleet, r))
    replay.watch.close()
