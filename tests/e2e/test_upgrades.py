# SPDX-License-Identifier: Apache-2.0
"""Upgrades, end to end, against the scripted API server: exec, port-forward, WebSocket watches."""

import hashlib
import os
import threading

import pytest
from clock import scaled
from h2client import ConnectionLost
from test_field_streams import status_of

EXEC = "/api/v1/namespaces/d/pods/p/exec"
ARGV = "?command=sh&command=-c&command=id&stdout=true"
WEBSOCKET = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
             ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
             ("Sec-WebSocket-Protocol", "v5.channel.k8s.io")]
SPDY = [("Connection", "keep-alive, Upgrade"), ("Upgrade", "SPDY/3.1"), ("Content-Length", "0"),
        ("X-Stream-Protocol-Version", "v5.channel.k8s.io"),
        ("X-Stream-Protocol-Version", "v4.channel.k8s.io")]
FORMS = {
    "websocket": ("GET", WEBSOCKET,
                  "Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
                  "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n"),
    "spdy": ("POST", SPDY, "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v5.channel.k8s.io\r\n"),
}


def switch(x, fields, first=b""):
    """101 and the first stream bytes in one write."""
    x.raw(f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n{fields}\r\n".encode() + first)
    return Raw(x)


class Raw:
    """The scripted server's end of an upgraded connection."""

    def __init__(self, exchange):
        self.exchange = exchange

    def recv(self, timeout):
        return self.exchange.read_raw(timeout)

    def sendall(self, data):
        self.exchange.raw(data)


def ask(fake, client, form, path=EXEC + ARGV):
    method, headers, _ = FORMS[form]
    client.head(method, fake.prefix + path, headers)


def read(client, count):
    import time
    return client.exactly(count, time.monotonic() + scaled(20))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alpn", [None, "http/1.1"])
def test_field_F001_stream_bytes_in_the_segment_of_the_101(fake, form, alpn):
    method, headers, fields = FORMS[form]

    def serve(x):
        pipe = switch(x, fields, b"twenty bytes at once")
        while data := pipe.recv(timeout=scaled(20)):
            pipe.sendall(data.upper())
    fake.api.script(EXEC, serve)
    with fake.world.h1("alice", alpn=alpn) as client:
        ask(fake, client, form)
        status, got = client.read_head(10)
        assert status == 101
        got = {name.lower(): value for name, value in got}
        assert got["upgrade"] == dict(headers)["Upgrade"]
        for line in fields.strip().split("\r\n")[1:]:
            name, value = line.split(": ")
            assert got[name.lower()] == value
        assert read(client, 20) == b"twenty bytes at once"
        client.send(b"keystroke")
        assert read(client, 9) == b"KEYSTROKE"
    x = fake.api.wait_request(lambda x: x.path == EXEC)
    assert x.method == method and x.target == (EXEC + ARGV).encode()
    assert x.all("impersonate-user") == ["kuberelay:alice"]
    assert x.all("upgrade") == [dict(headers)["Upgrade"]]
    for name in ("Sec-WebSocket-Key", "Sec-WebSocket-Protocol", "X-Stream-Protocol-Version"):
        assert x.all(name.lower()) == [v for n, v in headers if n == name]


@pytest.mark.parametrize("form", FORMS)
def test_upgrade_early_bytes_are_held_until_the_101(fake, form):
    ready = threading.Event()

    def serve(x):
        assert ready.wait(scaled(20))
        pipe = switch(x, FORMS[form][2])
        data = b""
        while len(data) < 11:
            data += pipe.recv(timeout=scaled(20))
        pipe.sendall(data)
    fake.api.script(EXEC, serve)
    with fake.world.h1("alice", alpn=None) as client:
        ask(fake, client, form)
        client.send(b"early bytes")
        fake.api.wait_request(lambda x: x.path == EXEC)
        ready.set()
        assert client.read_head(10)[0] == 101
        assert read(client, 11) == b"early bytes"


@pytest.mark.parametrize("status,expected", [(200, 502), (204, 502), (302, 502), (400, 400),
                                             (403, 403), (500, 500)])
def test_field_F004_a_refused_upgrade_is_the_end_of_the_connection(fake, status, expected):
    """CVE-2018-1002105: what follows a refused upgrade is never delivered."""
    body = {"kind": "Status", "message": "no"}
    fake.api.script(EXEC, lambda x: x.respond(status, b"" if status == 204 else body,
                                              [("location", "/elsewhere")] if status == 302 else []))
    fake.api.script(lambda x: "secrets" in x.path, lambda x: x.respond(200, {}))
    second = (f"GET {fake.prefix}/api/v1/namespaces/kube-system/secrets HTTP/1.1\r\n"
              "Host: h\r\n\r\n").encode()
    for pipelined in (True, False):
        with fake.world.h1("alice", alpn=None) as client:
            method, headers, _ = FORMS["spdy"]
            lines = [f"{method} {fake.prefix + EXEC} HTTP/1.1", "Host: h"]
            lines += [f"{n}: {v}" for n, v in headers]
            head = ("\r\n".join(lines) + "\r\n\r\n").encode()
            client.send(head + (second if pipelined else b""))
            answer = client.answer()
            assert answer.status == expected, answer
            if status >= 400:
                assert answer.json() == body
            else:
                status_of(answer)
            if not pipelined:
                try:
                    client.send(second)
                except (ConnectionLost, OSError):
                    pass
            client.wait_closed(10)
    assert not fake.api.seen(lambda x: "secrets" in x.path)


def test_field_F002_a_refusal_reaches_the_client_unchanged(fake):
    text = b"websocket: not here, try the other"
    fake.api.script(lambda x: "portforward" in x.path and x.method == "GET",
                    lambda x: x.respond(400, text, content_type="text/plain"))
    with fake.world.h1("alice", alpn=None) as client:
        headers = [(n, "SPDY/3.1+portforward.k8s.io" if n == "Sec-WebSocket-Protocol" else v)
                   for n, v in WEBSOCKET]
        client.head("GET", fake.prefix + "/api/v1/namespaces/d/pods/p/portforward", headers)
        answer = client.answer()
    assert (answer.status, answer.body) == (400, text)


def test_field_F003_the_end_never_overtakes_data(fake):
    out = os.urandom(200_000)
    tail = b"\x03status\x88\x02\x03\xe8"

    def serve(x):
        pipe = switch(x, FORMS["websocket"][2])
        pipe.sendall(out)
        pipe.sendall(tail)
        x.connection.abort()
    fake.api.script(EXEC, serve)
    for _ in range(30):
        with fake.world.h1("alice", alpn=None) as client:
            ask(fake, client, "websocket")
            assert client.read_head(10)[0] == 101
            assert read(client, len(out) + len(tail)) == out + tail
            client.wait_closed(20)


@pytest.mark.parametrize("size", [16 << 20])
def test_field_F006_both_ways_at_once(fake, size):
    up, down = os.urandom(1 << 16) * (size >> 16), os.urandom(1 << 16) * (size >> 16)
    sums = {}

    def serve(x):
        pipe = switch(x, FORMS["spdy"][2])
        sender = threading.Thread(target=pipe.sendall, args=(down,), daemon=True)
        sender.start()
        digest, left = hashlib.sha256(), size
        while left:
            data = pipe.recv(timeout=scaled(60))
            digest.update(data)
            left -= len(data)
        sender.join()
        sums["up"] = digest.digest()
        pipe.sendall(digest.digest())
    fake.api.script(EXEC, serve)
    with fake.world.h1("alice", alpn=None) as client:
        ask(fake, client, "spdy")
        assert client.read_head(10)[0] == 101
        sender = threading.Thread(target=client.send, args=(up,), daemon=True)
        sender.start()
        got = hashlib.sha256(read(client, size)).digest()
        assert got == hashlib.sha256(down).digest()
        assert read(client, 32) == hashlib.sha256(up).digest()
        sender.join()


@pytest.mark.parametrize("what", ["h2c", "foo/1", "websocket, h2c", ""])
def test_upgrade_other_protocols_are_refused(fake, what):
    with fake.world.h1("alice", alpn=None) as client:
        client.head("GET", fake.prefix + EXEC, [("Connection", "Upgrade"), ("Upgrade", what)])
        answer = client.answer()
    assert answer.status == 400
    status_of(answer)
    assert not fake.api.seen(lambda x: x.path == EXEC)


def test_upgrade_with_a_body_is_refused(fake):
    with fake.world.h1("alice", alpn=None) as client:
        client.head("POST", fake.prefix + EXEC,
                    [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"), ("Content-Length", "5")])
        client.send(b"12345")
        assert client.answer().status == 400
        client.wait_closed(10)


def test_upgrade_under_proxy_any_protocol_passes(fake):
    path = "/api/v1/namespaces/d/services/web/proxy/socket"

    def serve(x):
        pipe = switch(x, "Upgrade: own/2\r\nX-Own: y\r\n", b"hello")
        pipe.recv(timeout=scaled(20))
    fake.api.script(path, serve)
    with fake.world.h1("alice", alpn=None) as client:
        client.head("GET", fake.prefix + path, [("Connection", "Upgrade"), ("Upgrade", "own/2")])
        status, headers = client.read_head(10)
        assert status == 101 and ("x-own", "y") in [(n.lower(), v) for n, v in headers]
        assert read(client, 5) == b"hello"


def test_upgrade_the_bearer_subprotocol_stays_here(fake):
    fake.api.script(EXEC, lambda x: switch(x, FORMS["websocket"][2]))
    headers = [(n, v) for n, v in WEBSOCKET if n != "Sec-WebSocket-Protocol"]
    headers.append(("Sec-WebSocket-Protocol",
                    "base64url.bearer.authorization.k8s.io.c2VjcmV0, v5.channel.k8s.io"))
    with fake.world.h1("alice", alpn=None) as client:
        client.head("GET", fake.prefix + EXEC, headers)
        assert client.read_head(10)[0] == 101
    x = fake.api.wait_request(lambda x: x.path == EXEC)
    assert x.all("sec-websocket-protocol") == ["v5.channel.k8s.io"]


def test_upgrade_a_client_that_leaves_frees_the_server(fake):
    gone = threading.Event()

    def serve(x):
        pipe = switch(x, FORMS["spdy"][2], b"x")
        while pipe.recv(timeout=scaled(20)):
            pass
        gone.set()
    fake.api.script(EXEC, serve)
    with fake.world.h1("alice", alpn=None) as client:
        ask(fake, client, "spdy")
        assert client.read_head(10)[0] == 101
    assert gone.wait(scaled(5))


def test_upgrade_with_the_agent_away_is_a_status(lone_fake):
    lone_fake.agent.kill()
    with lone_fake.world.h1("alice", alpn=None) as client:
        ask(lone_fake, client, "spdy")
        answer = client.answer(timeout=20)
    assert answer.status == 503
    status_of(answer)


@pytest.mark.long
def test_field_F004_a_hanging_upgrade_ends_and_delivers_nothing(fake):
    fake.api.script(EXEC, lambda x: x.hold())
    second = (f"GET {fake.prefix}/api/v1/namespaces/kube-system/secrets HTTP/1.1\r\n"
              "Host: h\r\n\r\n").encode()
    with fake.world.h1("alice", alpn=None) as client:
        ask(fake, client, "spdy")
        client.send(second)
        answer = client.answer(timeout=45)
        assert answer.status == 504
        status_of(answer)
        client.wait_closed(10)
    x = fake.api.wait_request(lambda x: x.path == EXEC)
    x.wait_cancelled(5)
    assert not fake.api.seen(lambda x: "secrets" in x.path)
