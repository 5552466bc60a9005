# SPDX-License-Identifier: Apache-2.0
"""T33: an agent that lies in Catalog and Sync spoils its own part of the fleet view and no other.
What is known of the other cluster stays as it is, byte for byte."""

import random
import statistics
import time
from contextlib import contextmanager

import pytest

from beside import Beside
from clock import wait_until
from fleet import PARTIAL_LIST, TABLE, Fleet, cluster_of
from rogueagent import CATALOG, END, LIE, LIES, TYPES, Rogue, batch, upsert
from secondagent import fields_of, grpc, number_field
from test_fleet_model import seed_of_run

PODS = "/api/v1/pods"


@pytest.fixture
def victim(world):
    fleet = Fleet(world, names=("c1",), pods=60, cacheQuota="2MiB", fleetWait="1s")
    fleet.pod("c1", "same")
    fleet.pod("c1", "lie")
    fleet.wait_synced()
    return fleet


def seen(fleet, accept=None, cluster="c1", **query):
    """What lists have of one cluster; without what depends on the time."""
    answer = fleet.list(PODS, accept, **query)
    rows = answer.get("rows", answer.get("items"))
    found = [r for r in rows if cluster_of(r.get("object", r)) == cluster]
    if accept == TABLE:
        names = [c["name"] for c in answer["columnDefinitions"]]
        for row in found:
            row["cells"] = {n: c for n, c in zip(names, row["cells"]) if n != "Age"}
    return found


def all_seen(fleet):
    return [seen(fleet), seen(fleet, TABLE), seen(fleet, PARTIAL_LIST),
            seen(fleet, labelSelector="kuberelay.io/cluster=c1"), seen(fleet, clusters="c1")]


def unharmed(fleet, before):
    assert all_seen(fleet) == before
    answer = fleet.list(PODS, labelSelector="kuberelay.io/cluster=c1")
    assert {cluster_of(i) for i in answer["items"]} == {"c1"}
    for item in fleet.list(PODS)["items"]:
        labels, notes = item["metadata"]["labels"], item["metadata"]["annotations"]
        assert labels["kuberelay.io/cluster"] == notes["kcp.io/cluster"] == cluster_of(item)
        assert notes["multicluster.x-k8s.io/cluster-name"] == cluster_of(item)
    hub = fleet.world.hub
    assert hub.alive and not hub.grep(r"level=error")
    fleet.pod("c1", "after")
    wait_until(lambda: any(i["metadata"]["name"] == "after" for i in seen(fleet)), 10, "goes on")


def drain(agent):
    """Until the hub has taken all, or a while after it has stopped reading."""
    try:
        wait_until(lambda: not any(agent.queues.values()) or not agent.thread.is_alive(), 3, "all")
    except TimeoutError:
        pass


@contextmanager
def served(fleet):
    """Requests to the other cluster meanwhile: each is answered, and its tunnels stay."""
    beside = Beside(fleet.world.client("beside"), "/clusters/c1/api/v1/namespaces")
    try:
        yield
        wait_until(lambda: beside.problem or len(beside.times) >= 5, 60, "requests to c1")
    finally:
        beside.finish()
    assert not fleet.world.hub.grep(r"event=tunnel-down\b.*cluster=c1\b")


def rogue(fleet, catalog=CATALOG, batches=(batch(END),), name="evil"):
    return Rogue(fleet.world.hub.agent, fleet.world.ca, fleet.world.issue_agent(name), catalog,
                 batches)


@pytest.mark.weighed
@pytest.mark.parametrize("lie", LIES)
def test_T33_what_a_rogue_agent_syncs_is_its_own_affair(victim, lie):
    before = all_seen(victim)
    small = victim.world.hub.memory_kib()
    agent = rogue(victim, batches=LIES[lie])
    try:
        with served(victim):
            wait_until(lambda: agent.opened, 20, "a Sync call")
            drain(agent)
        unharmed(victim, before)
        assert victim.world.hub.memory_kib() - small < 64 * 1024
    finally:
        agent.close()


@pytest.mark.parametrize("types", TYPES)
def test_T33_what_a_rogue_agent_says_it_serves_is_its_own_affair(victim, types):
    before = all_seen(victim)
    core = {r["name"]: r for r in victim.get("/api/v1").json()["resources"]}
    agent = rogue(victim, TYPES[types])
    try:
        with served(victim):
            wait_until(lambda: agent.beats and (agent.queues or not agent.thread.is_alive()), 20,
                       "the catalog")
            drain(agent)
        unharmed(victim, before)
        after = {r["name"]: r for r in victim.get("/api/v1").json()["resources"]}
        assert {n: after.get(n) for n in core} == core
        assert victim.get("/api/v1/secrets").status == 403
    finally:
        agent.close()


def test_T33_a_rogue_agent_that_sends_bytes_at_random(victim):
    seed = seed_of_run()
    rng = random.Random(seed)
    before = all_seen(victim)
    for turn in range(15):
        batches = []
        for data in rng.choices([b for lie in LIES.values() if len(lie) < 100 for b in lie], k=20):
            data = bytearray(data[5:20000])
            for _ in range(rng.randrange(1, 6)):
                if data:
                    data[rng.randrange(len(data))] = rng.randrange(256)
            batches.append(grpc(bytes(data)))
        agent = rogue(victim, batches=batches, name=f"evil-{turn}")
        try:
            wait_until(lambda: agent.opened or not agent.thread.is_alive(), 20, "a Sync call")
            drain(agent)
        finally:
            agent.close()
    try:
        unharmed(victim, before)
    except AssertionError as error:
        raise AssertionError(f"KUBERELAY_TEST_SEED={seed}: {error}") from error


@pytest.mark.parametrize("catalog", [CATALOG, [b"\x00"]])
def test_T33_an_agent_that_is_never_ready_holds_up_one_reader_once(victim, catalog):
    before = all_seen(victim)
    agent = rogue(victim, catalog, [b"\x00"])
    try:
        wait_until(lambda: agent.queues, 20, "a call")
        victim.get(PODS)  # this one may wait for it, fleetWait at most
        took = []
        for _ in range(5):
            begun = time.monotonic()
            assert "1 loading" in victim.get(PODS).get("warning")
            took.append(time.monotonic() - begun)
        assert statistics.median(took) < 1, "who waits does so for fleetWait at least"
        unharmed(victim, before)
    finally:
        agent.close()


def test_T33_a_small_rogue_agent_shows_what_is_its_own(victim):
    """The double itself works: its objects are there, under its name."""
    agent = rogue(victim, batches=[batch(upsert("own"), upsert("lie", LIE), END)])
    try:
        wait_until(lambda: len(seen(victim, cluster="evil")) == 2, 20, "its pods")
        assert fields_of(number_field(1, 5)) == {1: [5]}
    finally:
        agent.close()
