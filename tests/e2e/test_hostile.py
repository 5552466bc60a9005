# SPDX-License-Identifier: Apache-2.0
"""API servers and hubs that do what none should: the agent answers, and goes on."""

import base64
import socket
import ssl

import h2.config
import h2.connection
import h2.events
import pytest

import backends
from clock import scaled, wait_until
from cluster_site import Site
from secondagent import bytes_field, grpc, number_field

CONNECTIONS = 64  # the most that an agent opens to an API server that speaks HTTP/2


def test_hostile_an_api_server_without_streams_left_is_an_error_and_passes(world):
    """One stream a connection: the agent ran out of both, and went round in circles."""
    world.start_hub()
    fake = backends.FakeBackend(str(world.folder / "fake"), max_streams=1)
    try:
        site = Site(world, fake, "f1", world.folder / "f1")
        fake.api.script(lambda x: x.is_watch, lambda x: (x.start_stream(), x.hold()))
        fake.api.script(lambda x: not x.is_watch, lambda x: x.respond(200, b"{}"))
        with world.client() as client:
            streams = [client.start("GET", site.prefix + "/api/v1/w?watch=1")
                       for _ in range(CONNECTIONS + 10)]
            for stream in streams:
                stream.wait_headers(20)
            refused = [s for s in streams if s.status != 200]
            assert {s.status for s in refused} == {503}
            assert len(refused) >= 10
            for stream in streams:
                stream.reset()
            wait_until(lambda: client.get(site.prefix + "/api/v1/pods").status == 200, 10,
                       "room again")
        assert site.agent.alive
    finally:
        fake.close()


def test_hostile_a_watch_shorter_than_its_length_looks_cut(lone_fake):
    event = b'{"type":"ADDED","object":{}}\n'
    lone_fake.api.script(lambda x: x.is_watch, lambda x: (
        x.start(200, [("content-type", "application/json"), ("content-length", "500")]),
        x.write(event), x.reset()))
    stream = lone_fake.start("GET", "/api/v1/w?watch=1")
    finish = stream.wait_finish(10)
    # A reset that overtakes the head leaves no answer that could be cut.
    assert finish == "reset" or stream.status == 429, (finish, stream.status)


class HostileHub:
    """Has a hub's certificate and says what it likes, to one tunnel of an agent."""

    def __init__(self, world):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(world.hub_pair.crt, world.hub_pair.key)
        self.context.load_verify_locations(world.ca)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.context.set_alpn_protocols(["kuberelay/1"])

    def accept(self):
        self.listener.settimeout(scaled(10))
        self.tls = self.context.wrap_socket(self.listener.accept()[0], server_side=True)
        self.tls.settimeout(scaled(10))
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=True, header_encoding=None, validate_outbound_headers=False))
        self.h2.initiate_connection()
        self.send("/kuberelay.v1.Agent/Attach", [("content-type", "application/grpc")], b"POST")
        self.h2.send_data(1, grpc(bytes_field(1, b"hub-1") + number_field(2, 10000)))
        self.tls.sendall(self.h2.data_to_send())
        self.status_of(1)

    def send(self, path, headers, method=b"GET", protocol=None, end=False):
        stream = self.h2.get_next_available_stream_id()
        more = [(b":protocol", protocol)] if protocol else []
        self.h2.send_headers(stream, [
            (b":method", method), *more, (b":scheme", b"https"), (b":authority", b"kubernetes"),
            (b":path", path), *headers], end_stream=end)
        self.tls.sendall(self.h2.data_to_send())
        return stream

    def status_of(self, stream):
        while True:
            data = self.tls.recv(65536)
            assert data, "the agent closed the tunnel"
            for event in self.h2.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived) and event.stream_id == stream:
                    return int(dict(event.headers)[b":status"])
            self.tls.sendall(self.h2.data_to_send())

    def ask(self, user, groups=(), upgrade=False):
        who = bytes_field(1, bytes(16)) + bytes_field(2, user)
        who += b"".join(bytes_field(3, group) for group in groups)
        if upgrade:
            who += bytes_field(8, b"GET") + bytes_field(9, b"websocket")
        header = [("kuberelay-request-bin", base64.b64encode(who).rstrip(b"="))]
        if upgrade:
            return self.status_of(self.send("/api/v1/namespaces/d/pods/p/exec", header,
                                            b"CONNECT", b"websocket"))
        return self.status_of(self.send("/api/v1/pods", header, end=True))


@pytest.fixture
def hostile_hub(world):
    world.start_hub()  # for its certificate's sake only
    fake = backends.FakeBackend(str(world.folder / "fake"))
    fake.api.script(lambda x: True, lambda x: x.respond(200, b"{}"))
    hub = HostileHub(world)
    hub.api = fake.api
    hub.agent = world.start_agent("c1", fake.kubeconfig(str(world.folder / "kubeconfig")),
                                  wait=False, hubs=[hub.address], userPrefix="")
    hub.accept()
    yield hub
    assert hub.agent.alive
    hub.listener.close()
    fake.close()


@pytest.mark.parametrize("upgrade", [False, True])
def test_hostile_hub_cannot_make_a_system_identity(hostile_hub, upgrade):
    """Not even without a prefix; and HTTP/1.1 takes spaces around a value away."""
    for user, groups in ((b"system:admin", ()), (b" system:admin", ()), (b"a ", ()),
                         (b"alice", (b"system:masters",)), (b"alice", (b"  system:masters",))):
        assert hostile_hub.ask(user, groups, upgrade) == 403, (user, groups)
    assert hostile_hub.ask(b"", (), upgrade) == 400
    assert hostile_hub.ask(b"a\r\nx: y", (), upgrade) == 400
    assert hostile_hub.api.seen(lambda x: x.all("impersonate-user")) == []
    if not upgrade:
        assert hostile_hub.ask(b"alice", (b"dev",)) == 200
        assert len(hostile_hub.api.seen(lambda x: x.all("impersonate-user"))) == 1


@pytest.mark.parametrize("path, passes", [
    ("/api/v1/pods", False), ("/api/v1/namespaces/d/services/s/proxy/x", True)])
def test_hostile_trailers_do_not_go_around_the_filter(lone_fake, path, passes):
    lone_fake.api.script(path, lambda x: (
        x.start(200, [("content-type", "application/json")]), x.write(b"{}"),
        x.end([("set-cookie", "a=b")])))
    answer = lone_fake.ask("GET", path)
    assert (answer.status, answer.body) == (200, b"{}")
    assert answer.trailers == ([("set-cookie", "a=b")] if passes else [])


def test_idle_connections_keep_nobody_out(world):
    """Connections that never shake hands take every place; those that last make room."""
    hub = world.start_hub(maxHandshakes=8)
    idle = [socket.create_connection(hub.api, timeout=scaled(10)) for _ in range(24)]
    try:
        with world.client(timeout=9) as client:  # a handshake alone may take 10 s
            assert client.get("/livez").status == 200
    finally:
        for sock in idle:
            sock.close()


@pytest.fixture
def impatient(world):
    """A hub that gives an answer two seconds to go on."""
    world.start_hub(requestTimeout="2s")
    backend = backends.FakeBackend(str(world.folder / "fake"))
    yield Site(world, backend, "f1", world.folder / "f1")
    backend.close()


def test_an_answer_that_stops_is_cut(impatient):
    path = "/api/v1/x"

    def stop(x):
        x.start(200, [("content-type", "application/json")])
        x.write(b"{")
        x.hold()
    impatient.api.script(path, stop)
    stream = impatient.start("GET", path)
    assert stream.wait_finish(10) == "reset"
    impatient.api.wait_request(lambda x: x.path == path).wait_cancelled(5)


def test_a_reader_that_stops_over_http_1_is_cut(impatient):
    path = "/api/v1/big"

    def much(x):
        x.start(200, [("content-type", "application/json")])
        while True:
            x.write(b"x" * 65536)
    impatient.api.script(path, much)
    with impatient.world.h1() as client:
        client.head("GET", impatient.prefix + path)
        assert client.read_head(10)[0] == 200
        impatient.api.wait_request(lambda x: x.path == path).wait_cancelled(15)
