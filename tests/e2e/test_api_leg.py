# SPDX-License-Identifier: Apache-2.0
"""The agent's leg to an API server that speaks HTTP/1.1 only, and what else lies behind it."""

import json
import os
import threading

import pytest

from backends import FakeBackend, kubeconfig_of, write_yaml
from clock import scaled, wait_until
from cluster_site import JSON, Site

MAPS = "/api/v1/namespaces/d/configmaps"


@pytest.fixture(scope="module")
def shared_h1(session_world, workdir):
    fake = FakeBackend(str(workdir / "fake1"), protocols=["http/1.1"])
    site = Site(session_world, fake, "h1", workdir / "h1")
    yield site
    fake.close()


@pytest.fixture
def old(shared_h1):
    shared_h1.heal()
    shared_h1.api.forget()
    yield shared_h1
    assert not shared_h1.api.faults


def test_api_leg_http1_reads_and_writes(old):
    old.api.script("/api/v1", lambda x: x.respond(200, x.body() or b"{}"))
    for size in (0, 1, 70_000, 2_000_000):
        body = os.urandom(size)
        answer = old.ask("POST", MAPS, [JSON], body)
        assert answer.status == 200 and answer.body == (body or b"{}")
    assert old.ask("GET", "/api/v1/x?a=%2F&b").body == b"{}"
    seen = old.api.seen(lambda x: x.path == "/api/v1/x")[0]
    assert seen.target == b"/api/v1/x?a=%2F&b"
    assert seen.all("impersonate-user") == ["kuberelay:admin"]
    assert seen.authority == b"127.0.0.1:%d" % old.backend.address[1]


def test_api_leg_http1_connections_are_kept(old):
    old.api.script("/api/v1", lambda x: x.respond(200, {}))
    old.ask("GET", "/api/v1/x")
    before = old.api.dials
    for _ in range(50):
        assert old.ask("GET", "/api/v1/x").status == 200
    assert old.api.dials - before <= 2


def test_api_leg_http1_a_watch_streams_and_is_cancelled(old):
    def watch(x):
        x.start_stream()
        x.event("ADDED", {"n": 1})
        x.hold()
    old.api.script("/api/v1", watch)
    stream = old.start("GET", "/api/v1/pods?watch=1").wait_bytes(10)
    assert stream.body == b'{"type": "ADDED", "object": {"n": 1}}\n'
    stream.reset()
    old.api.wait_request(lambda x: x.is_watch).wait_cancelled(2)


@pytest.mark.parametrize("how", ["chunk", "length"])
def test_api_leg_http1_a_cut_answer_looks_cut(old, how):
    seen = threading.Event()

    def cut(x):
        x.start(200, [("content-type", "application/json")]
                + ([("content-length", "1000")] if how == "length" else []))
        x.write(b'{"items":[')
        seen.wait(scaled(20))
        x.abort()
    old.api.script("/api/v1", cut)
    stream = old.start("GET", "/api/v1/pods").wait_bytes(1)
    seen.set()
    assert stream.wait_finish(10) == "reset"


def test_api_leg_http1_a_cut_watch_ends_cleanly_or_looks_cut(old):
    def cut(x):
        x.start_stream()
        x.event("ADDED", {"n": 1})
        x.abort()
    old.api.script("/api/v1", cut)
    stream = old.start("GET", "/api/v1/pods?watch=1")
    assert stream.wait_finish(10) in ("end", "reset")
    assert stream.body in (b"", b'{"type": "ADDED", "object": {"n": 1}}\n')


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 999999 Odd\r\n\r\n", b"\x00\x01\x02garbage\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000 + b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n"])
def test_api_leg_http1_a_malformed_answer_is_an_error_not_a_guess(old, answer):
    def speak(x):
        x.raw(answer)
        x.wait(lambda x: False, 0.1)
        x.abort()
    old.api.script("/api/v1", speak)
    got = old.ask("GET", "/api/v1/x")
    assert got.status in (502, 503) and json.loads(got.body)["kind"] == "Status", got
    assert old.agent.alive and old.world.hub.alive


def test_api_leg_http1_interim_answers_are_not_the_answer(old):
    def speak(x):
        x.raw(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        x.respond(200, {"ok": 1})
    old.api.script("/api/v1", speak)
    assert old.ask("GET", "/api/v1/x").json() == {"ok": 1}


def test_api_leg_http1_an_uninvited_101_is_502(old):
    old.api.script("/api/v1", lambda x: x.raw(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"))
    assert old.ask("GET", "/api/v1/x").status == 502


def test_api_leg_a_path_in_the_kubeconfig_is_put_in_front(world):
    """The local server may itself lie behind a prefix."""
    world.start_hub()
    fake = FakeBackend(str(world.folder / "fake"))
    fake.api.script("/k8s/clusters/x/api/v1/x", lambda x: x.respond(200, {"ok": 1}))
    config = write_yaml(world.folder / "kc", kubeconfig_of(
        fake.url + "/k8s/clusters/x", fake.ca, fake.agent.crt, fake.agent.key))
    world.start_agent("f1", config)
    assert world.client().get("/clusters/f1/api/v1/x").json() == {"ok": 1}
    fake.close()


def test_api_leg_in_cluster_by_default(world):
    """Without a kubeconfig: the service account's folder and KUBERNETES_SERVICE_HOST."""
    import shutil

    world.start_hub()
    fake = FakeBackend(str(world.folder / "fake"))
    folder = world.folder / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("in-cluster-token\n")
    shutil.copy(fake.ca, folder / "ca.crt")
    fake.api.script("/api/v1/x", lambda x: x.respond(200, {"ok": 1}))
    world.start_agent("f1", None, serviceAccountDir=str(folder), env={
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(fake.address[1])})
    assert world.client().get("/clusters/f1/api/v1/x").status == 200
    x = fake.api.wait_request(lambda x: x.path == "/api/v1/x")
    assert x.get("authorization") == "Bearer in-cluster-token"
    fake.close()


def test_api_leg_the_server_comes_back_after_an_outage(lone_fake):
    lone_fake.api.script("/api/v1/x", lambda x: x.respond(200, {}))
    assert lone_fake.ask("GET", "/api/v1/x").status == 200
    address = lone_fake.api.address
    lone_fake.api.close()
    assert lone_fake.ask("GET", "/api/v1/x").status == 503
    import testpki
    from fakeapi import FakeApi
    serving = testpki.load(os.path.join(lone_fake.backend.folder, "serving.crt"),
                           os.path.join(lone_fake.backend.folder, "serving.key"))
    again = FakeApi(testpki.server_context(serving), port=address[1])
    again.script("/api/v1/x", lambda x: x.respond(200, {"back": 1}))
    wait_until(lambda: lone_fake.ask("GET", "/api/v1/x").status == 200, 15, "the server is back")
    again.close()


def test_api_leg_many_streams_spread_over_connections(world):
    """An API server that allows 100 streams a connection: 250 watches are all served."""
    world.start_hub()
    fake = FakeBackend(str(world.folder / "fake"), max_streams=100)
    fake.api.script("/api/v1/w", lambda x: (x.start_stream(), x.event("ADDED", {}), x.hold()))
    site = Site(world, fake, "f1", world.folder / "f1")
    streams = [site.start("GET", "/api/v1/w?watch=1") for _ in range(250)]
    for stream in streams:
        stream.wait_bytes(1, 20)
    for stream in streams:
        stream.reset()
    wait_until(lambda: not [x for x in fake.api.seen(lambda x: x.is_watch)
                            if not x.cancelled_at], 10, "all are cancelled")
    fake.close()


def test_api_leg_an_error_of_http2_is_an_error_for_its_stream_only(lone_fake):
    lone_fake.api.script("/api/v1/bad", lambda x: x.reset())
    lone_fake.api.script("/api/v1/good", lambda x: x.respond(200, {}))
    for _ in range(20):
        assert lone_fake.ask("GET", "/api/v1/bad").status in (502, 503)
        assert lone_fake.ask("GET", "/api/v1/good").status == 200
    assert lone_fake.api.dials <= 8
