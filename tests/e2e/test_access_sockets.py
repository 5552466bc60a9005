# SPDX-License-Identifier: Apache-2.0
"""WebSockets whose client loses its right: a Close frame with 1008 behind a whole frame of the
server; other protocols are cut (T09, T28, T29)."""

import base64
import hashlib
import struct
import threading
import time

import pytest

import backends
from clock import scaled
from test_access_projects import OPS, READERS, SPDY, UPGRADE, Projects
from test_access_tokens import Tokens
from tokens import bearer

PODS = "/api/v1/namespaces/a/pods"
EXEC = PODS + "/p/exec"
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(payload, opcode=2):
    """As a server sends it: without a mask."""
    if len(payload) < 126:
        head = struct.pack("!BB", 0x80 | opcode, len(payload))
    else:
        head = struct.pack("!BBH", 0x80 | opcode, 126, len(payload))
    return head + payload


class Reader:
    """The frames of the bytes that came, all of them whole."""

    def __init__(self, data):
        self.frames = []
        while data:
            opcode, size, at = data[0] & 15, data[1], 2
            assert data[0] & 0x80 and size < 128, data[:20]
            if size == 126:
                size, at = struct.unpack("!H", data[2:4])[0], 4
            assert len(data) >= at + size, f"half a frame at the end: {data[:20]!r}"
            self.frames.append((opcode, data[at:at + size]))
            data = data[at + size:]

    def check_closed(self, code):
        opcode, payload = self.frames[-1]
        assert opcode == 8, self.frames[-1]
        assert struct.unpack("!H", payload[:2])[0] == code
        assert [f for f in self.frames[:-1] if f[0] == 8] == [], "one Close frame"
        return payload[2:].decode()


def switch(x):
    key = x.get("sec-websocket-key")
    accept = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
    x.raw(f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          f"Sec-WebSocket-Accept: {accept}\r\n"
          f"Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n".encode())


def talk(x):
    switch(x)
    x.raw(frame(b"\1hello"))
    x.hold()


def open_socket(client, path, headers=()):
    client.head("GET", path, [*UPGRADE, *headers])
    assert client.read_head()[0] == 101


def read(client, count):
    return client.exactly(count, time.monotonic() + scaled(20))


@pytest.fixture
def projects(world):
    made = Projects(world)
    yield made
    made.fake.close()


def test_T29_exec_over_websocket_is_closed_with_1008(projects):
    projects.api.script(EXEC, talk)
    path = projects.site.prefix + EXEC + "?command=id"
    with projects.world.h1("oscar") as client:
        open_socket(client, path)
        got = read(client, 8)
        projects.write([READERS])
        reason = Reader(got + client.wait_closed(60)).check_closed(1008)
    assert reason == "no project allows it any more"
    projects.api.wait_request(lambda x: x.path == EXEC).wait_cancelled(10)
    assert projects.ask("oscar", EXEC + "?command=id").status == 403


def test_T29_half_a_frame_is_completed_before_the_end(projects):
    """The client has the start of a frame when its rule goes: it gets the rest of it, nothing of
    the next one, and then the Close frame."""
    go_on = threading.Event()
    whole = frame(b"\1" + b"x" * 999)

    def serve(x):
        switch(x)
        x.raw(whole[:500])
        assert go_on.wait(scaled(30))
        x.raw(whole[500:] + frame(b"\1secret"))
        x.hold()
    projects.api.script(EXEC, serve)
    with projects.world.h1("oscar") as client:
        open_socket(client, projects.site.prefix + EXEC + "?command=id")
        got = read(client, 500)
        mark = projects.world.hub.mark()
        projects.write([READERS])
        projects.world.hub.wait_line("event=stream-ended", timeout=60, after=mark)
        go_on.set()
        read_all = Reader(got + client.wait_closed(60))
    read_all.check_closed(1008)
    assert [len(p) for op, p in read_all.frames if op == 2] in ([1000], [1000, 7])
    assert read_all.frames[0] == (2, b"\1" + b"x" * 999)


def test_T29_a_frame_that_never_ends_is_cut(projects):
    def serve(x):
        switch(x)
        x.raw(frame(b"\1" + b"x" * 999)[:500])
        x.hold()
    projects.api.script(EXEC, serve)
    with projects.world.h1("oscar") as client:
        open_socket(client, projects.site.prefix + EXEC + "?command=id")
        read(client, 500)
        projects.write([READERS])
        assert client.wait_closed(60) == b"", "no Close frame in the middle of another"


def test_T29_watch_over_websocket_is_closed_with_1008(projects):
    def serve(x):
        switch(x)
        x.raw(frame(b'{"type":"ADDED"}', 1))
        x.hold()
    projects.api.script(lambda x: x.path == PODS and x.is_watch, serve)
    with projects.world.h1("oscar") as client:
        open_socket(client, projects.site.prefix + PODS + "?watch=true")
        got = read(client, 18)
        projects.write([READERS])
        Reader(got + client.wait_closed(60)).check_closed(1008)


def test_T29_exec_over_spdy_is_cut(projects):
    def serve(x):
        x.raw(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
              b"X-Stream-Protocol-Version: v5.channel.k8s.io\r\n\r\nspdy")
        x.hold()
    projects.api.script(EXEC, serve)
    with projects.world.h1("oscar") as client:
        client.head("POST", projects.site.prefix + EXEC + "?command=id", SPDY)
        assert client.read_head()[0] == 101
        assert read(client, 4) == b"spdy"
        projects.write([OPS | {"rules": OPS["rules"][2:]}])
        assert client.wait_closed(60) == b""


def test_T29_a_server_that_has_closed_is_not_closed_again(projects):
    def serve(x):
        switch(x)
        x.raw(frame(struct.pack("!H", 1000), 8))
        x.hold()
    projects.api.script(EXEC, serve)
    with projects.world.h1("oscar") as client:
        open_socket(client, projects.site.prefix + EXEC + "?command=id")
        got = read(client, 4)
        projects.write([READERS])
        Reader(got + client.wait_closed(60)).check_closed(1000)


def test_T28_exec_over_websocket_ends_with_1008_when_its_token_expires(world):
    tokens = Tokens(world)
    try:
        tokens.api.script(EXEC, talk)
        with world.h1(None) as client:
            open_socket(client, tokens.site.prefix + EXEC + "?command=id",
                        bearer(tokens.issuer.token(life=4)))
            reason = Reader(client.wait_closed(60)).check_closed(1008)
        assert reason == "the credential has expired"
    finally:
        tokens.fake.close()


def test_T09_exec_over_websocket_ends_with_1008_when_its_cluster_is_denied(enrollment):
    fake = backends.FakeBackend(str(enrollment.folder / "fake"))
    try:
        fake.api.script(EXEC, talk)
        enrollment.start_hub()
        enrollment.start_agent(
            "edge-1", enrollment.token("edge-1"),
            fake.kubeconfig(str(enrollment.folder / "fake.kubeconfig")),
            policyFile=backends.write_yaml(enrollment.folder / "policy.yaml",
                                           {"mode": "read-write", "exec": True}))
        with enrollment.world.h1() as client:
            open_socket(client, "/clusters/edge-1" + EXEC + "?command=id")
            got = read(client, 8)
            began = time.monotonic()
            enrollment.ctl("cluster", "deny", "edge-1")
            reason = Reader(got + client.wait_closed(10)).check_closed(1008)
            assert time.monotonic() - began < scaled(5)
        assert reason == "the cluster is refused"
    finally:
        fake.close()
