# SPDX-License-Identifier: Apache-2.0
"""Readers of the fleet view who mean harm: queries, tokens and headers that make no sense, crowds
of watches, and types that come and go. The hub answers each of them with a Status, and lives."""

import random
import time

import pytest

from clock import wait_until
from fleet import STAR, TABLE, Fleet, key
from h2client import ConnectionLost, H2Client
from test_fleet_model import seed_of_run
from world import World

PODS = "/api/v1/pods"


@pytest.fixture(scope="module")
def fleet(binaries, workdir):
    world = World(workdir / "fleet-hostile", binaries)
    made = Fleet(world, pods=200)
    made.wait_synced()
    yield made
    assert world.hub.alive and not world.hub.grep("level=error")
    world.close()


def fine(answer):
    """An answer that a client can work with."""
    assert answer.status in (200, 400, 403, 404, 405, 406, 410, 414, 422, 431, 504), answer
    if answer.status != 200:
        body = answer.json()
        assert body["kind"] == "Status" and body["code"] == answer.status, answer


NUMBERS = ["-1", "+1", "0x10", "1e3", "00012", "18446744073709551615", "18446744073709551616",
           "9" * 40, "", " 1", "1 ", "%00", "1%00", "NaN", "-9223372036854775808", "\u0661"]


@pytest.mark.parametrize("name", ["limit", "resourceVersion", "timeoutSeconds", "continue",
                                  "resourceVersionMatch", "sendInitialEvents", "clusters",
                                  "includeObject", "allowWatchBookmarks", "watch", "pretty"])
def test_values_that_are_none(fleet, name):
    """A number of the future makes a list wait for 3 s: all of them at once."""
    client = fleet.client()
    streams = []
    for value in NUMBERS + ["a" * 30000, "..", "*", ",,,", "%2A", "null", "true,false"]:
        value = value.replace(" ", "%20").encode("utf-8").decode("latin-1")
        for more in ("", "&timeoutSeconds=1&watch=1", "&limit=1", f"&{name}=1"):
            if name == "watch":
                more += "&timeoutSeconds=1"
            streams.append(client.start("GET", f"{STAR}{PODS}?{name}={value}{more}"))
    until = time.monotonic() + 6
    for stream in streams:
        stream.wait_headers(30)
        try:
            answer = stream.answer(max(0.01, until - time.monotonic()))
        except TimeoutError:  # a watch without a limit, as asked for
            assert stream.status == 200
            stream.reset()
            continue
        fine(answer)


@pytest.mark.parametrize("path", [
    "/clusters/%2a/api/v1/pods", "/clusters/*/api/v1/namespaces/%2e%2e/pods",
    "/clusters/*/api/v1/namespaces/../pods", "/clusters/*//api/v1/pods", "/clusters/*",
    "/clusters/*/", "/clusters/**/api/v1/pods", "/clusters/*%00/api/v1/pods",
    "/clusters/*/api/v1/namespaces//pods", "/clusters/*/apis//v1/pods", "/clusters/*/api/v1/",
    "/clusters/*/apis/apps/v1/deployments/", "/clusters/*/api/v1/namespaces/a%2Fb/pods",
    "/clusters/*/api/v1/watch/pods?timeoutSeconds=1", "/clusters/*/api/v1/pods/a/b/c/d/e",
    "/clusters/*,c1/api/v1/pods", "/clusters/*/clusters/c1/api/v1/pods",
    "/clusters/*/apis/" + "g" * 20000 + "/v1/things", "/clusters/*/api/v1/namespaces/"
    + "n" * 20000 + "/pods", "/clusters/*/openapi/v3/../../api/v1/pods",
    "/clusters/*/api/v1/pods?" + "&" * 5000, "/clusters/*/api/v1/pods?" + "a=b&" * 5000,
    "/clusters/*/api/v1/pods?labelSelector=" + "(" * 20000,
    "/clusters/*/api/v1/pods?labelSelector=a%20in%20(" + "b," * 15000 + "c)",
    "/clusters/*/api/v1/pods?fieldSelector=" + "metadata.name!=a," * 2000 + "metadata.name!=a",
    "/clusters/*/api/v1/pods?fieldSelector=metadata.name%3D%5C",
    "/clusters/*/api/v1/pods?clusters=" + "c," * 15000])
def test_paths_and_queries_of_a_stranger(fleet, path):
    fine(fleet.client().get(path, timeout=20))
    assert fleet.list(PODS, limit=1)["items"]


@pytest.mark.parametrize("accept", [
    "", ",", ";", "*/*;q=0", "application/json;as=", "application/json;as=Table",
    "application/json;as=Table;v=v9;g=meta.k8s.io", "application/json;as=Pod;v=v1;g=",
    ",".join(["application/json;as=Table;v=v2;g=meta.k8s.io"] * 500) + ",application/json",
    "application/json;" * 2000, 'application/json;x="' + "\\" * 999, "text/html", "application/cbor",
    "application/yaml", "a/b" * 5000])
def test_accept_headers_of_a_stranger(fleet, accept):
    for query in ("", "?watch=1&timeoutSeconds=1"):
        fine(fleet.client().get(f"{STAR}{PODS}{query}", [("accept", accept)], timeout=20))


def test_tokens_that_were_changed_anywhere(fleet):
    token = fleet.list(PODS, limit=50)["metadata"]["continue"]
    client, seen = fleet.client(), []
    for at in range(len(token)):
        for other in {"A", "z", "-", "%00", "="} - {token[at]}:
            seen.append(client.start(
                "GET", f"{STAR}{PODS}?limit=1&continue={token[:at]}{other}{token[at + 1:]}"))
    for cut in (1, len(token) // 2, len(token) - 1):
        seen.append(client.start("GET", f"{STAR}{PODS}?limit=1&continue={token[:cut]}"))
        seen.append(client.start("GET", f"{STAR}{PODS}?limit=1&continue={token}{token[:cut]}"))
    for stream in seen:
        answer = stream.answer(20)
        assert answer.status in (400, 410), answer
    for path in ("/api/v1/configmaps", "/api/v1/namespaces/default/pods",
                 "/apis/apps/v1/deployments"):
        assert client.get(f"{STAR}{path}?limit=1&continue={token}").status == 410
    rest = fleet.list(PODS, limit=10000, **{"continue": token})["items"]
    assert len(rest) == len(fleet.list(PODS)["items"]) - 50


def test_tokens_without_end_cost_a_bound(fleet):
    """Each holds a moment of the past: there is a limit, and a 410 beyond it."""
    before = fleet.world.hub.memory_kib()
    client = fleet.client()
    space, name = next(k[1:] for k in fleet.union(PODS) if k[0] == "c1")
    tokens = []
    for number in range(300):
        if number % 30 == 0:
            fleet.label("c1", name, f"t{number}", space)
        streams = [client.start("GET", f"{STAR}{PODS}?limit=1") for _ in range(20)]
        tokens += [s.answer(20).json()["metadata"]["continue"] for s in streams]
    for token in (tokens[0], tokens[-1]):
        assert fleet.get(PODS, limit=1, **{"continue": token}).status in (200, 410)
    assert fleet.get(PODS, limit=1, **{"continue": tokens[-1]}).status == 200
    assert fleet.world.hub.memory_kib() - before < 64 * 1024


PIECES = ["watch=1", "watch=true&timeoutSeconds=1", "limit=5", "limit=1", "resourceVersion=0",
          "resourceVersion=1", "resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan",
          "sendInitialEvents=true", "allowWatchBookmarks=1", "labelSelector=a%20in%20(b)",
          "labelSelector=kuberelay.io/cluster%3Dc1", "fieldSelector=status.phase%3DRunning",
          "fieldSelector=spec.nodeName!%3Dx", "clusters=c1", "clusters=c1,c2,c3", "continue=x",
          "includeObject=None", "includeObject=Object", "timeoutSeconds=1", "%", "&", "=", "+"]
KINDS = [PODS, "/api/v1/nodes", "/api/v1/namespaces/default/pods", "/apis/apps/v1/deployments",
         "/api", "/apis", "/api/v1", "/version", "/openapi/v3", "/api/v1/namespaces"]


def test_questions_at_random(fleet):
    seed = seed_of_run()
    rng = random.Random(seed)
    for _ in range(60):
        asked = []
        with H2Client(fleet.world.hub.api, fleet.world.context()) as client:
            for _ in range(50):
                query = "&".join(rng.choices(PIECES, k=rng.randrange(6)))
                if rng.random() < 0.2 and query:
                    at = rng.randrange(len(query))
                    query = query[:at] + rng.choice("%&=,!()~") + query[at + 1:]
                # In front, where no mutation reaches it: nothing may run without end.
                path = f"{STAR}{rng.choice(KINDS)}?timeoutSeconds=1&{query}"
                accept = [("accept", rng.choice((TABLE, "application/json", "*/*")))]
                asked.append((path, client.start("GET", path, accept)))
                if rng.random() < 0.1:
                    asked.pop()[1].reset()
            for path, stream in rng.sample(asked, min(10, len(asked))):
                try:
                    fine(stream.answer(15))
                except Exception as error:
                    raise AssertionError(f"KUBERELAY_TEST_SEED={seed}: {path}: {error}") from error
        # The rest is cut off with the connection.
    assert {key(i)[0] for i in fleet.list(PODS)["items"]} == {"c1", "c2"}
    wait_until(lambda: fleet.world.metrics()["kuberelay_hub_fleet_watchers"] == 0, 10, "gone")


def test_watches_opened_and_dropped_leave_nothing(fleet):
    hub = fleet.world.hub
    before = None
    for turn in range(6):
        with H2Client(hub.api, fleet.world.context()) as client:
            try:
                for _ in range(400):
                    stream = client.start("GET", f"{STAR}{PODS}?watch=1")
                    if turn % 2:
                        stream.reset()
            except ConnectionLost:  # so many resets are taken for an attack
                assert turn % 2
            time.sleep(0.1)  # any time will do: it is about where in its work the hub is met
        wait_until(lambda: fleet.world.metrics()["kuberelay_hub_fleet_watchers"] == 0, 20, "gone")
        if turn == 1:
            before = (hub.memory_kib(), hub.fds())
    assert hub.memory_kib() - before[0] < 16 * 1024 and hub.fds() <= before[1] + 4


def test_a_crowd_of_watches_is_served_and_costs_little(fleet):
    hub, version = fleet.world.hub, fleet.list(PODS)["metadata"]["resourceVersion"]
    small = hub.memory_kib()
    clients = [H2Client(hub.api, fleet.world.context()) for _ in range(20)]
    try:
        streams = [c.start("GET", f"{STAR}{PODS}?watch=1&resourceVersion={version}"
                           f"&labelSelector=crowd,n!%3D{n}") for c in clients for n in range(100)]
        for stream in streams:
            stream.wait_headers(30)
        assert {s.status for s in streams} == {200}
        cost = (hub.memory_kib() - small) / len(streams)
        assert cost < 20, f"{cost} KiB for each of {len(streams)}"
        fleet.pod("c1", "crowd", labels={"crowd": "1"})
        for stream in streams:
            stream.wait(lambda s: b'"name":"crowd"' in s.body, 30)
        fleet.drop("c1", "crowd")
    finally:
        for client in clients:
            client.close()
