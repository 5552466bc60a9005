# SPDX-License-Identifier: Apache-2.0
"""Field cases about bodies: sizes, numbers, nesting, split characters, slow readers."""

import hashlib
import json
import os
import threading
import time

import pytest

from clock import scaled
from cluster_site import JSON, configmap
from oracle import assert_same

PATH = "/api/v1/namespaces/d/secrets"
SIZES = [*range(3095, 3106), *range(4095, 4098), *range(8191, 8194), *range(16383, 16386),
         *range(65535, 65538), 2**20, 3 * 2**20 - 1, 3 * 2**20]


def echo(x):
    body = x.body()
    x.respond(200, body, content_type="application/octet-stream")


@pytest.mark.parametrize("wire", ["h2", "h1 length"])
def test_field_F007_bodies_of_every_size_arrive_whole_and_come_back(fake, wire):
    fake.api.script(PATH, echo)
    client = fake.world.client() if wire == "h2" else fake.world.h1()
    for size in SIZES:
        body = os.urandom(size)
        answer = client.request("POST", fake.prefix + PATH, [("content-type", "x/y")], body)
        seen = fake.api.seen(lambda x: x.method == "POST")[-1]
        assert answer.status == 200, (size, answer)
        assert hashlib.sha256(seen.received).digest() == hashlib.sha256(body).digest(), size
        assert answer.body == body, size


@pytest.mark.parametrize("step,sizes", [(1, [3095, 3100, 3105, 4096]),
                                        (7, [3101, 8192, 16385]),
                                        (16384, [16384, 65536, 65537, 2**20, 3 * 2**20])])
def test_field_F007_chunked_in_pieces(fake, step, sizes):
    fake.api.script(PATH, echo)
    with fake.world.h1() as client:
        for size in sizes:
            body = os.urandom(size)
            client.head("POST", fake.prefix + PATH, [("Transfer-Encoding", "chunked")])
            frames = b"".join(b"%x\r\n%s\r\n" % (len(body[at:at + step]), body[at:at + step])
                              for at in range(0, size, step))
            client.send(frames + b"0\r\n\r\n")
            assert client.answer().body == body, size


def test_field_F007_a_real_secret_is_stored_as_sent(site):
    import base64

    path = f"/api/v1/namespaces/{site.namespace()}/secrets"
    for number, size in enumerate([3000, 4096, 65536, 700_000]):
        data = base64.b64encode(os.urandom(size)).decode()
        obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"s{number}"},
               "data": {"k": data}}
        assert site.ask("POST", path, [JSON], json.dumps(obj).encode()).status == 201
        assert site.ask_direct("GET", f"{path}/s{number}").json()["data"]["k"] == data
        assert site.ask("GET", f"{path}/s{number}").json()["data"]["k"] == data


@pytest.mark.parametrize("over", [0, 1])
def test_field_F007_the_annotation_limit_is_the_servers(site, over):
    path = f"/api/v1/namespaces/{site.namespace()}/configmaps"
    obj = configmap("a", annotations={"k": "x" * (256 * 1024 - 1 + over)})
    direct = site.ask_direct("POST", path + "?dryRun=All", [JSON], json.dumps(obj).encode())
    relayed = site.ask("POST", path + "?dryRun=All", [JSON], json.dumps(obj).encode())
    assert relayed.status == direct.status
    if site.backend.is_real:
        assert relayed.status == (422 if over else 201)


# -- F009: what is queued never exceeds the window

def endless(x, pieces=400, piece=b"x" * 65536):
    x.start_stream("text/plain")
    x.sent = 0
    for _ in range(pieces):
        x.write(piece)
        x.sent += len(piece)
    x.end()


def test_field_F009_slow_readers_are_felt_at_the_source(fake):
    """20 clients that do not read: the source must stop, both processes stay small."""
    fake.api.script("/api/v1/big", endless)
    fake.api.script("/api/v1/x", lambda x: x.respond(200, {}))
    hub, agent = fake.world.hub, fake.agent
    before = hub.memory_kib(), agent.memory_kib()
    client = fake.world.client(window=65535)
    streams = [client.start("GET", fake.prefix + "/api/v1/big", auto_window=False)
               for _ in range(20)]
    for stream in streams:
        stream.wait_bytes(60000, 20)
    sources = fake.api.seen(lambda x: x.path == "/api/v1/big")
    stalled = stalled_at(sources)
    for sent in stalled:  # windows of the three legs (4 MiB may be granted on the tunnel)
        assert sent < 8 * 2**20, stalled
    grown = [now - then for now, then in zip((hub.memory_kib(), agent.memory_kib()), before)]
    assert grown[0] < 20 * 5 * 1024 and grown[1] < 20 * 1024, grown
    begin = time.monotonic()
    assert fake.ask("GET", "/api/v1/x").status == 200
    assert time.monotonic() - begin < scaled(1)
    for stream in streams:
        stream.reset()
    for source in sources:
        source.wait_cancelled(5)


def stalled_at(sources):
    """What each source has sent once none of them moved for a second."""
    last, since = None, time.monotonic()
    while time.monotonic() - since < 1:
        now = [getattr(s, "sent", 0) for s in sources]
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.05)
    return last


def test_field_F009_a_slow_upstream_is_felt_at_the_client(fake):
    path = "/api/v1/namespaces/d/services/web/proxy/upload"  # no limit of the API server's there

    def never_reads(x):
        x.hold()
    fake.api.script(path, never_reads)
    fake.api.consume = False
    stream = fake.start("POST", path, [JSON], end=False)
    sent = 0
    try:
        while sent < 30 * 2**20:
            stream.send(b"y" * 65536, timeout=2)
            sent += 65536
        pytest.fail("30 MiB went into an upstream that reads nothing")
    except TimeoutError:
        pass  # no window any more: the wait has reached the client
    finally:
        fake.api.consume = True
    assert sent <= 10 * 2**20  # the windows of three legs: 4 + 4 + 1 MiB
    stream.reset()
    fake.api.wait_request(lambda x: x.path == path).wait_cancelled(5)


# -- F027, F028, F033: what the API server writes is what the client reads

def test_field_F027_an_empty_list_is_byte_equal(site):
    path = f"/api/v1/namespaces/{site.namespace()}/pods"
    for accept in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"):
        direct, relayed = site.both("GET", path + "?labelSelector=none%3Dx",
                                    [("accept", accept)])
        assert_same(direct, relayed)
        assert b'null' not in relayed.body.split(b'"items"')[-1][:6]


NUMBERS = (b'{"apiVersion":"ex.io/v1","kind":"W","spec":{"a":1000000,"b":9007199254740993,'
           b'"c":-9223372036854775808,"d":18446744073709551615,"e":1.0,"f":1e3,"g":1E+2,"h":-0,'
           b'"i":0.1,"j":1.7976931348623157e308,"k":123456789012345678901234567890,"l":1.10,'
           b'"dup":1,"dup":2,"esc":"\\u0000\\/\\ud83d\\ude00"}}')


def test_field_F028_numbers_keep_their_spelling(fake):
    fake.api.script("/apis/ex.io/v1/ws/a", lambda x: x.respond(200, NUMBERS))
    assert fake.ask("GET", "/apis/ex.io/v1/ws/a").body == NUMBERS
    event = b'{"type":"ADDED","object":' + NUMBERS + b"}\n"

    def watch(x):
        x.start_stream()
        x.write(event)
        x.end()
    fake.api.script("/apis/ex.io/v1/ws?watch", watch)
    assert fake.ask("GET", "/apis/ex.io/v1/ws?watch=1").body == event
    fake.ask("PUT", "/apis/ex.io/v1/ws/a", [JSON], NUMBERS)
    assert fake.api.wait_request(lambda x: x.method == "PUT").received == NUMBERS


@pytest.mark.real
def test_field_F028_numbers_in_a_custom_object(site):
    make_crd(site)
    path = f"/apis/ex.test/v1/namespaces/{site.namespace()}/frees"
    body = (b'{"apiVersion":"ex.test/v1","kind":"Free","metadata":{"name":"n"},"spec":'
            b'{"a":1000000,"b":9007199254740993,"e":1.0,"i":0.1,"l":1.10}}')
    assert site.ask("POST", path, [JSON], body).status == 201
    assert_same(*site.both("GET", path + "/n"))


def make_crd(site):
    """A namespaced kind whose objects may hold anything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
           "metadata": {"name": "frees.ex.test"},
           "spec": {"group": "ex.test", "scope": "Namespaced",
                    "names": {"plural": "frees", "singular": "free", "kind": "Free"},
                    "versions": [{"name": "v1", "served": True, "storage": True,
                                  "schema": {"openAPIV3Schema": schema}}]}}
    from clock import wait_until
    made = site.ask_direct("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                           [JSON], json.dumps(crd).encode())
    assert made.status in (201, 409), made
    wait_until(lambda: site.ask_direct("GET", "/apis/ex.test/v1/frees").status == 200, 20,
               "the new kind is served")


@pytest.mark.real
@pytest.mark.parametrize("depth", [33, 64, 200, 1000])
def test_field_F033_what_the_server_stores_deep_is_carried(site, depth):
    make_crd(site)
    path = f"/apis/ex.test/v1/namespaces/{site.namespace()}/frees"
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    body = (b'{"apiVersion":"ex.test/v1","kind":"Free","metadata":{"name":"deep"},"spec":'
            + nested + b"}")
    relayed = site.ask("POST", path, [JSON], body)
    direct = site.ask_direct("GET", path + "/deep")
    assert (relayed.status == 201) == (direct.status == 200)
    assert_same(direct, site.ask("GET", path + "/deep"))


@pytest.mark.parametrize("depth", [9_999, 10_001, 2_000_000])
def test_field_F033_nesting_without_sense_is_carried_and_hurts_nobody(fake, depth):
    body = b"[" * depth
    fake.api.script("/api/v1/deep", lambda x: x.respond(200, body))
    assert fake.ask("GET", "/api/v1/deep").body == body
    event = b'{"type":"ADDED","object":' + b"[" * depth + b"]" * depth + b"}\n"

    def watch(x):
        x.start_stream()
        x.write(event)
        x.end()
    fake.api.script("/api/v1/deeps?watch", watch)
    assert fake.ask("GET", "/api/v1/deeps?watch=1").body == event


# -- F034, F036: pieces

EMOJI = ('{"type":"ADDED","object":{"metadata":{"annotations":{"a":"' + "\U0001f600" * 3000
         + '","b":"' + "\u20ac" * 1000 + '"}}}}').encode()


@pytest.mark.parametrize("sizes", [[1, 2, 3, 4, 5, 6, 7], [2047, 2048], [4095, 4096], [len(EMOJI) + 1]])
@pytest.mark.parametrize("wire", ["h2", "h1"])
def test_field_F034_a_split_character_arrives_whole(fake, sizes, wire):
    # Whole in tiny pieces would take long in Python: there one event of the kind is enough.
    text = EMOJI if sizes[0] > 7 else EMOJI[:600] + b'"}}}}'
    body = text + b"\n" + text + b"\r\n" + text + b"\n"

    def pieces(x):
        x.start_stream()
        at = 0
        while at < len(body):
            for size in sizes:
                if at < len(body):
                    x.write(body[at:at + size])
                at += size
        x.end()
    fake.api.script("/api/v1/ws?watch", pieces)
    if wire == "h2":
        assert fake.ask("GET", "/api/v1/ws?watch=1").body == body
    else:
        with fake.world.h1() as client:
            assert client.get(fake.prefix + "/api/v1/ws?watch=1").body == body


TRICKLES = {
    "watch": ("/api/v1/ws", "?watch=1", b'{"type":"ADDED","object":{"n":%d}}\n'),
    "log": ("/api/v1/namespaces/d/pods/p/log", "?follow=true", b"%d"),
}


@pytest.mark.parametrize("wire", ["h2", "h1"])
@pytest.mark.parametrize("what", TRICKLES)
def test_field_F036_heads_and_small_pieces_are_not_held_back(fake, wire, what):
    """A whole event of a watch, a single byte of a log."""
    path, query, piece = TRICKLES[what]
    go = threading.Semaphore(0)

    def trickle(x):
        x.start_stream()
        for number in range(5):
            go.acquire(timeout=20)
            x.write(piece % number)
        go.acquire(timeout=20)
        x.end()
    fake.api.script(path, trickle)
    # Each step waits for the one before it: anything held back would stop the test.
    if wire == "h2":
        stream = fake.start("GET", path + query)
        stream.wait_headers(5)
        for number in range(5):
            go.release()
            stream.wait(lambda s: s.body.endswith(piece % number), 5)
        go.release()
        assert stream.wait_finish(5) == "end"
        return
    with fake.world.h1() as client:
        client.head("GET", fake.prefix + path + query)
        assert client.read_head(5)[0] == 200
        for number in range(5):
            go.release()
            assert client.read_chunk(5) == piece % number
        go.release()
        assert client.read_chunk(5) == b""
