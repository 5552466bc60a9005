# SPDX-License-Identifier: Apache-2.0
"""T33: an agent that lies in Catalog and Sync spoils its own part of the fleet view and no other.
What is known of the other cluster stays as it is, byte for byte."""

import json
import random
import statistics
import struct
import time

import pytest

from clock import wait_until
from fleet import PARTIAL_LIST, TABLE, Fleet, cluster_of
from h2.events import RequestReceived, StreamEnded, StreamReset, WindowUpdated
from test_fleet_model import seed_of_run
from test_second_agent import SecondAgent, bytes_field, fields_of, grpc, number_field, varint

PODS = "/api/v1/pods"


def fixed(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value)


def kind_of(group="", version="v1", resource="pods", kind="Pod", spaced=True):
    return bytes_field(1, bytes_field(1, group.encode()) + bytes_field(2, version.encode())
                       + bytes_field(3, resource.encode()) + bytes_field(4, kind.encode())
                       + bytes_field(5, kind.lower().encode()) + number_field(8, int(spaced))
                       + number_field(9, 1))


def upsert(name, obj=None, namespace="default", uid="u", cells=b"", plain=None, size=None, **more):
    if obj is None:
        obj = {"metadata": {"name": name, "namespace": namespace, "uid": uid}, "spec": {}}
    if plain is None:
        plain = cells + b"\n" + json.dumps(obj).encode()
    message = (bytes_field(1, namespace.encode()) + bytes_field(2, name.encode())
               + bytes_field(3, uid.encode()) + bytes_field(4, b"1")
               + fixed(5, more.get("hash", 7)) + number_field(7, more.get("dictionary", 0))
               + number_field(8, len(plain) if size is None else size) + bytes_field(9, plain))
    return bytes_field(3, message)


END = number_field(5, 1) + bytes_field(6, b"1")


class Rogue(SecondAgent):
    """Answers Catalog with `catalog` and every Sync with `batches`: messages, or raw bytes."""

    def __init__(self, hub, ca, pair, catalog, batches):
        self.catalog, self.batches, self.queues, self.opened = catalog, batches, {}, 0
        super().__init__(hub, ca, pair)

    def send_state(self):
        self.beats += 1
        self.h2.send_data(self.attach, grpc(
            bytes_field(2, b"second") + bytes_field(3, self.boot_id) + number_field(4, 1) +
            number_field(7, 1) + number_field(9, self.beats) + bytes_field(12, b"sync/1")))

    def on_event(self, event):
        if isinstance(event, RequestReceived):
            path = dict(event.headers)[":path"]
            if path.endswith(("/Catalog", "/Sync")):
                self.h2.send_headers(event.stream_id, [(":status", "200"),
                                                       ("content-type", "application/grpc")])
                self.heads[event.stream_id] = ({":path": path}, b"")
                if path.endswith("/Catalog"):
                    self.queues[event.stream_id] = b"".join(self.catalog)
                    self.push(event.stream_id)
                return
        if isinstance(event, StreamEnded) and self.heads.get(event.stream_id, ({},))[0].get(
                ":path", "").endswith(("/Catalog", "/Sync")):
            return
        if isinstance(event, StreamReset) and event.stream_id in self.queues:
            self.queues[event.stream_id] = b""
        super().on_event(event)
        stream = getattr(event, "stream_id", None)
        head, body = self.heads.get(stream, ({}, b""))
        if head.get(":path", "").endswith("/Sync") and stream not in self.queues and len(body) > 5:
            self.opened += 1
            self.queues[stream] = b"".join(self.batches)
        if isinstance(event, WindowUpdated) or stream in self.queues:
            for each in list(self.queues):
                self.push(each)

    def push(self, stream):
        data = self.queues[stream]
        try:
            while data and (room := min(self.h2.local_flow_control_window(stream), 16384)) > 0:
                self.h2.send_data(stream, data[:room])
                data = data[room:]
        except Exception:  # the hub has reset it, or ended the tunnel
            data = b""
        self.queues[stream] = data


CATALOG = [grpc(kind_of())]
LIE = {"metadata": {"name": "lie", "namespace": "default", "uid": "u",
                    "labels": {"kuberelay.io/cluster": "c1"},
                    "annotations": {"kcp.io/cluster": "c1", "kuberelay.io/resource-version": "1",
                                    "multicluster.x-k8s.io/cluster-name": "c1",
                                    "kuberelay.io/stale-since": "never"}}}
DEEP = b"\n" + b'{"metadata":{"name":"deep","namespace":"default","uid":"u"},"x":' + b"[" * 100000


def batch(*parts):
    return grpc(b"".join(parts))


def many(count, size):
    return [batch(upsert(f"fat-{n}", {"metadata": {"name": f"fat-{n}", "namespace": "default",
                                                   "uid": "u"}, "x": "y" * size}))
            for n in range(count)]


LIES = {
    "names the other": [batch(upsert("lie", LIE), END)],
    "its own names twice": [batch(upsert("lie", plain=b'\n{"metadata":{"name":"lie","namespace":'
                                         b'"default","uid":"u","labels":{"kuberelay.io/cluster":'
                                         b'"c1","kuberelay.io/cluster":"c1"},"labels":{}}}'), END)],
    "no json": [batch(upsert("a", plain=b"\n{"), upsert("b", plain=b"\n\xff"), END)] * 60,
    "another name": [batch(upsert("a", {"metadata": {"name": "b", "namespace": "default",
                                                     "uid": "u"}}), END)],
    "another namespace": [batch(upsert("a", {"metadata": {"name": "a", "namespace": "kube-system",
                                                          "uid": "u"}}), END)],
    "no metadata": [batch(upsert("a", {"spec": {}}), upsert("c", plain=b"\n[]"), END)],
    "control characters": [batch(upsert("a\nb"), upsert("\x00"), upsert("x" * 100_000), END)],
    "long names": [batch(*(upsert("n" * 2000 + str(n)) for n in range(1000)), END)],
    "names that are paths": [batch(upsert("../../c1"), upsert("a/b"), upsert("*"), END)],
    "empty names": [batch(upsert(""), END)],
    "wrong sizes": [batch(upsert("a", size=1), upsert("b", size=4 << 20), upsert("c", size=0),
                          upsert("d", size=1 << 31), END)],
    "packed without sense": [batch(upsert("a", plain=b"\x28\xb5\x2f\xfd" * 100, size=4 << 20,
                                          dictionary=1), END)],
    "a dictionary of the future": [batch(upsert("a", dictionary=77), END)],
    "very deep": [batch(upsert("deep", plain=DEEP + b"]" * 100000 + b"}"), END)],
    "deletes at random": [grpc(b"".join(fixed(4, n * 0x9E3779B97F4A7C15 % 2**64)
                                        for n in range(4000)) + END)] * 5,
    "upserts and deletes of one": [batch(upsert("a"), fixed(4, 0), fixed(4, 0), END)],
    "columns without sense": [batch(bytes_field(1, b'[{"name":"Evil","type":"x"}]'),
                                    upsert("a", cells=b'["evil",1,2,3,4,5,6,7,8,9]'), END)],
    "columns that are none": [batch(bytes_field(1, b'{"a":'), END)],
    "huge columns": [batch(bytes_field(1, b"[" + b"{}," * 100_000 + b"{}]"), END)],
    "cells that are none": [batch(upsert("a", cells=b'{"a":1}'), upsert("b", cells=b"[" * 5000),
                                  END)],
    "buckets": [batch(varint(2 << 3 | 2), varint(3), b"\x01\x01\xff", END)] * 3,
    "buckets that are none": [batch(*(number_field(2, n) for n in (256, 2**31, 2**32 - 1)), END)],
    "problems": [batch(number_field(7, 99), number_field(9, 1), bytes_field(8, b"x" * 60_000))],
    "not served": [batch(upsert("a"), END), batch(number_field(7, 2), number_field(9, 1))],
    "half a message": [grpc(b"x" * 1000)[:500]],
    "no message": [b"\x00\xff\xff\xff\xff" + b"x" * 1000],
    "a compressed one": [b"\x01" + grpc(END)[1:]],
    "no protobuf": [grpc(b"\xff" * 1000)],
    "ends without number": [batch(END)] * 3000,
    "the same again": [batch(upsert("same", {"metadata": {"name": "same", "namespace": "default",
                                                          "uid": "u"}, "n": n % 2}, hash=n % 2),
                             END) for n in range(3000)],
    "ten times the quota": many(200, 100_000),
}


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
        wait_until(lambda: agent.opened, 20, "a Sync call")
        drain(agent)
        unharmed(victim, before)
        assert victim.world.hub.memory_kib() - small < 64 * 1024
    finally:
        agent.close()


TYPES = {
    "another kind": [grpc(kind_of(kind="Evil", spaced=False))],
    "a kind that is none": [grpc(kind_of(resource="../x", kind="a b\n"))],
    "secrets": [grpc(kind_of(resource="secrets", kind="Secret") + kind_of())],
    "no end": [grpc(kind_of(resource=f"r{n}") * 10 + number_field(2, 1)) for n in range(3000)],
    "very many": [grpc(b"".join(kind_of(f"g{n}.io", "v1", f"r{m}", f"K{m}") for m in range(900)))
                  for n in range(30)],
    "empty": [grpc(b"")],
    "no protobuf": [grpc(b"\xff" * 100)],
    "one after the other": [grpc(kind_of(resource=f"r{n}")) for n in range(500)],
    "long": [grpc(kind_of("g" * 5000, "v" * 5000, "r" * 5000, "K" * 5000))],
}


@pytest.mark.parametrize("types", TYPES)
def test_T33_what_a_rogue_agent_says_it_serves_is_its_own_affair(victim, types):
    before = all_seen(victim)
    core = {r["name"]: r for r in victim.get("/api/v1").json()["resources"]}
    agent = rogue(victim, TYPES[types])
    try:
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
