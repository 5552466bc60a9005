# SPDX-License-Identifier: Apache-2.0
"""Field cases about watches, long silence, GOAWAY, and writes in doubt."""

import json
import threading
import time

import h2.errors
import pytest

import fakekube
from clock import scaled, wait_until
from cluster_site import JSON
from h1client import status_of
from h2client import StreamReset

MAPS = "/api/v1/namespaces/default/configmaps"
EXPIRED = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
           "reason": "Expired", "message": "too old resource version: 10 (400)", "code": 410}


# -- F019, F020 on the proxied path: nothing is swallowed, judged or remembered

def test_field_F019_versions_that_run_backwards_pass(fake):
    """After a restore from a backup: the relay has no opinion on numbers."""
    for version in ("1200", "1001", "5"):
        fake.api.script("/api/v1/pods", lambda x: x.respond(200, fakekube.pod_list(
            version=version)))
        answer = fake.ask("GET", "/api/v1/pods")
        assert answer.json()["metadata"]["resourceVersion"] == version
        fake.api.script("/api/v1/pods?watch", lambda x: (
            x.start_stream(), x.event("ADDED", {"metadata": {"resourceVersion": version}}),
            x.end()))
        answer = fake.ask("GET", f"/api/v1/pods?watch=1&resourceVersion={version}")
        assert json.loads(answer.body)["object"]["metadata"]["resourceVersion"] == version


@pytest.mark.parametrize("obj", [EXPIRED, {**EXPIRED, "code": 500, "reason": "InternalError"},
                                 {"odd": [1]}, None, "text"])
@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize("open_end", [False, True])
def test_field_F020_an_error_event_passes_untouched(fake, obj, before, open_end):
    body = b"".join(b'{"type":"ADDED","object":{"n":%d}}\n' % n for n in range(before))
    body += json.dumps({"type": "ERROR", "object": obj}).encode() + b"\n"

    def watch(x):
        x.start_stream()
        x.write(body)
        x.hold() if open_end else x.end()
    fake.api.script("/api/v1/pods", watch)
    stream = fake.start("GET", "/api/v1/pods?watch=1&resourceVersion=10")
    stream.wait_bytes(len(body))
    assert stream.status == 200 and stream.body == body
    if open_end:
        stream.reset()
    else:
        assert stream.wait_finish(5) == "end"


def test_field_F020_a_plain_410_passes_untouched(fake):
    text = json.dumps(EXPIRED).encode()
    fake.api.script("/api/v1/pods", lambda x: x.respond(410, text))
    answer = fake.ask("GET", "/api/v1/pods?watch=1&resourceVersion=10")
    assert answer.status == 410 and answer.body == text
    assert not any("kuberelay" in w for w in answer.all("warning"))


# -- F035: silence

def silent(seconds):
    def run(x):
        x.start_stream()
        x.wait(lambda x: False, seconds)
        x.write(b"x\n")
        x.end()
    return run


def quiet_streams(fake, seconds):
    fake.api.script("/api/v1", silent(seconds))
    paths = ["/api/v1/pods?watch=1", "/api/v1/namespaces/d/pods/p/log?follow=true"]
    streams = [fake.start("GET", p) for p in paths]
    client = fake.world.h1()
    client.head("GET", fake.prefix + paths[0])
    for stream in streams:
        assert stream.answer(seconds + 20).body == b"x\n"
    client.read_head(seconds + 20)
    assert client.read_chunk(20) == b"x\n"
    client.close()


def test_field_F035_a_short_silence_adds_no_byte(fake):
    """Longer than one PING and one heartbeat of the tunnel."""
    quiet_streams(fake, 13)


@pytest.mark.long
def test_field_F035_six_minutes_of_silence(fake):
    quiet_streams(fake, 370)


@pytest.mark.long
def test_field_F035_an_answer_that_takes_long_on_a_long_running_path(fake):
    def late(x):
        x.wait(lambda x: False, 70)
        x.respond(200, b"late", content_type="text/plain")
    fake.api.script("/api/v1", late)
    assert fake.ask("GET", "/api/v1/namespaces/d/pods/p/log", timeout=90).body == b"late"


# -- F038: GOAWAY from the API server

def test_field_F038_goaway_lets_open_streams_finish(lone_fake):
    go = threading.Event()

    def slow_list(x):
        x.start_stream()
        x.write(b'{"items":[')
        go.wait(20)
        x.write(b"]}")
        x.end()

    def watch(x):
        x.start_stream()
        x.event("ADDED", {"n": 1})
        x.goaway()
        go.wait(20)
        x.event("ADDED", {"n": 2})
        x.end()
    lone_fake.api.script("/api/v1/list", slow_list)
    lone_fake.api.script("/api/v1/w?watch", watch)
    lone_fake.api.script("/api/v1/x", lambda x: (x.body(), x.respond(200, {"ok": 1})))
    listing = lone_fake.start("GET", "/api/v1/list").wait_bytes(1)
    watching = lone_fake.start("GET", "/api/v1/w?watch=1").wait_bytes(1)
    for _ in range(5):
        assert lone_fake.ask("POST", "/api/v1/x", [JSON], b"{}").status == 200
    go.set()
    assert listing.answer().body == b'{"items":[]}'
    assert watching.answer().body.count(b"\n") == 2
    assert len(lone_fake.api.seen(lambda x: x.method == "POST")) == 5


def test_field_F038_goaway_on_every_second_request_is_not_seen(lone_fake):
    count = [0]

    def sometimes(x):
        x.body()
        count[0] += 1
        if count[0] % 2 and hasattr(x, "goaway"):
            x.goaway()
        x.respond(200, {"n": 1})
        if x.connection.draining is not None:
            x.wait(lambda x: False, 0.05)
            x.connection.abort()
    lone_fake.api.script("/api/v1", sometimes)
    for number in range(200):
        method = ("GET", "POST", "PUT", "DELETE")[number % 4]
        body = b"{}" if method in ("POST", "PUT") else None
        answer = lone_fake.ask(method, "/api/v1/x", [JSON], body)
        assert answer.status == 200, (number, method, answer)
    assert len(lone_fake.api.seen(lambda x: x.path == "/api/v1/x")) == 200


def test_field_F038_a_stream_past_the_goaway_is_sent_again(lone_fake):
    """The API server never looked at the POST: it must arrive once, on a new connection."""
    first = threading.Event()

    def watch(x):
        x.start_stream()
        x.event("ADDED", {"n": 1})
        first.wait(20)
        x.goaway(last=x.id)
        x.hold()

    def write(x):
        x.body()
        x.respond(201, {})
    lone_fake.api.script("/api/v1/w?watch", watch)
    lone_fake.api.script("/api/v1/x", write)
    stream = lone_fake.start("GET", "/api/v1/w?watch=1").wait_bytes(1)
    first.set()
    for _ in range(20):
        answer = lone_fake.ask("POST", "/api/v1/x", [JSON], b"{}")
        assert answer.status == 201, answer
    answered = lone_fake.api.seen(lambda x: x.method == "POST")
    assert len(answered) == 20
    stream.reset()


def test_field_F038_refused_streams_are_repeated_by_nobody_but_the_relay(lone_fake):
    """REFUSED_STREAM says that nothing was processed: the client must not see an error."""
    left = [2]

    def refuse(x):
        if left[0]:
            left[0] -= 1
            return x.reset(h2.errors.ErrorCodes.REFUSED_STREAM)
        x.body()
        return x.respond(200, {})
    lone_fake.api.script("/api/v1/x", refuse)
    assert lone_fake.ask("GET", "/api/v1/x").status == 200
    left[0] = 2
    assert lone_fake.ask("POST", "/api/v1/x", [JSON], b"{}").status == 200


def assert_status_names(answer, cluster):
    assert cluster in status_of(answer)["message"], answer


# -- F039: sent twice

BREAKS = {"reset": lambda x: x.reset(), "abort": lambda x: x.abort(),
          "rst": lambda x: x.abort(rst=True)}


@pytest.mark.parametrize("how", BREAKS)
@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "PUT"])
def test_field_F039_a_write_that_may_have_run_is_not_repeated(fake, how, method):
    def stored_then_broken(x):
        x.body()
        BREAKS[how](x)
    fake.api.script(MAPS, stored_then_broken)
    body = b'{"metadata":{"generateName":"job-"}}'
    answer = fake.ask(method, MAPS, [JSON], body)
    assert answer.status in (502, 503, 504), answer
    status = status_of(answer)
    assert answer.get("retry-after") is None and "retryAfterSeconds" not in status.get(
        "details", {})
    assert len(fake.api.seen(lambda x: x.path == MAPS)) == 1


def test_field_F039_an_idle_connection_that_died_costs_nobody_a_write(fake):
    """The pool's connections are cut while idle; the next write goes out once and arrives."""
    fake.api.script(MAPS, lambda x: (x.body(), x.respond(201, {})))
    for _ in range(5):
        assert fake.ask("POST", MAPS, [JSON], b"{}").status == 201
        before = list(fake.api.connections)
        fake.api.drop_connections()
        wait_until(lambda: not [c for c in before if c in fake.api.connections], 5, "they are gone")
    assert len(fake.api.seen(lambda x: x.method == "POST")) == 5


# -- F043: every error explains itself

def test_field_F043_foreign_html_passes_as_it_is(fake):
    page = b"<html><body>502 Bad Gateway</body></html>"
    fake.api.script("/api/v1", lambda x: x.respond(502, page, content_type="text/html"))
    answer = fake.ask("GET", "/api/v1/x")
    assert answer.status == 502 and answer.body == page
    assert answer.get("content-type") == "text/html"


def hub_errors(site, accept):
    """(name, Stream) of each error that the hub or the agent makes by itself."""
    relay, p, kind = site.relay(), site.prefix, ("accept", accept)
    yield "deadline", relay.start("GET", p + "/api/v1/hang?timeout=1s", [kind])
    yield "unknown cluster", relay.start("GET", "/clusters/nope/api/v1/pods", [kind])
    yield "bad path", relay.start("GET", p + "/api/v1/namespaces/../x", [kind])
    yield "no prefix", relay.start("GET", "/api/v1/pods", [kind])
    yield "impersonation", relay.start("GET", p + "/api/v1/pods",
                                       [kind, ("impersonate-user", "x")])
    yield "field too large", relay.start("GET", p + "/api/v1/pods", [kind, ("x-a", "a" * 62_000)])
    yield "path too long", relay.start("GET", p + "/api/v1/pods?x=" + "a" * 62_000, [kind])


ACCEPTS = ["application/json", "application/yaml", "*/*", "text/html",
           "application/vnd.kubernetes.protobuf",
           "application/json;as=Table;v=v1;g=meta.k8s.io"]


def test_field_F043_every_error_of_ours_is_a_status(fake):
    fake.api.script("/api/v1/hang", lambda x: x.hold())
    asked = [(name, stream) for accept in ACCEPTS for name, stream in hub_errors(fake, accept)]
    for name, stream in asked:
        answer = stream.answer()
        status = status_of(answer)
        assert answer.status == status["code"] >= 400, (name, answer)
        assert answer.get("content-type") == "application/json", name
        assert status["message"] and status["reason"], (name, status)
        assert [w for w in answer.all("warning") if w.startswith("299 ")], (name, answer)


def test_field_F043_a_body_over_the_hubs_limit_is_413(fake):
    """The API server's own limit is 3 MiB and wins; the hub's lies a little above it."""
    fake.api.script(MAPS, lambda x: (x.body(), x.respond(201, {})))
    body = b"x" * (3 * 2**20 + 128 * 1024)
    answer = fake.ask("POST", MAPS, [JSON, ("content-length", str(len(body)))], body)
    assert answer.status == 413 and status_of(answer)["reason"] == "RequestEntityTooLarge"
    answer = fake.ask("POST", MAPS, [JSON], body)
    assert answer.status == 413 and status_of(answer)["code"] == 413
    proxied = "/api/v1/namespaces/d/services/web/proxy/upload"
    fake.api.script(proxied, lambda x: x.respond(200, {"n": len(x.body())}))
    assert fake.ask("POST", proxied, [JSON], body).json()["n"] == len(body)


def test_field_F043_the_api_server_down_is_named(lone_fake):
    lone_fake.api.close()
    answer = lone_fake.ask("GET", "/api/v1/pods")
    status = status_of(answer)
    assert answer.status == 503 and "f1" in status["message"]
    assert "API server" in status["message"]
    assert answer.get("retry-after") == "1"
    assert lone_fake.ask("GET", "/api").get("retry-after") is None
    watch = lone_fake.ask("GET", "/api/v1/pods?watch=1")
    assert watch.status in (429, 503)


def test_field_F043_a_foreign_certificate_of_the_api_server_is_502(world):
    from backends import FakeBackend, kubeconfig_of, write_yaml
    import testpki

    world.start_hub()
    fake = FakeBackend(str(world.folder / "fake"))
    other = testpki.new_ca(world.folder, "other-ca", "another root")
    config = write_yaml(world.folder / "kc", kubeconfig_of(
        fake.url, other.crt, fake.agent.crt, fake.agent.key))
    agent = world.start_agent("f1", config, wait=False)
    agent.wait_admin()

    def judged():
        with world.client() as client:
            answer = client.get("/clusters/f1/api/v1/pods")
        return answer if "certificate" in answer.body.decode().lower() or (
            answer.status == 502) else None
    answer = wait_until(judged, 20, "the refusal of the foreign certificate")
    assert answer.status == 502 and status_of(answer)["reason"] == "InternalError"
    assert not fake.api.requests
    fake.close()


def test_field_F043_an_upgrade_without_its_agent_is_an_error_not_a_dead_socket(lone_fake):
    from test_check_38_45 import agent_gone

    agent_gone(lone_fake)
    path = "/api/v1/namespaces/d/pods/p/exec?command=id&stdout=true"
    for method, upgrade in (("GET", "websocket"), ("POST", "SPDY/3.1")):
        with lone_fake.world.h1(alpn=None) as client:
            client.head(method, lone_fake.prefix + path,
                        [("Connection", "Upgrade"), ("Upgrade", upgrade), ("Content-Length", "0"),
                         ("Sec-WebSocket-Version", "13"),
                         ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")])
            answer = client.answer()
        assert answer.status == 503 and "f1" in status_of(answer)["message"], answer


def test_field_F004_a_refused_upgrade_opens_no_pipe(fake):
    """What follows a refused upgrade on the same socket is a request like any other."""
    fake.api.script(lambda x: True, lambda x: x.respond(200, {}))
    upgrade = (f"POST {fake.prefix}/api/v1/namespaces/d/pods/p/exec HTTP/1.1\r\nHost: h\r\n"
               "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n")
    second = (f"GET {fake.prefix}/api/v1/namespaces/kube-system/secrets HTTP/1.1\r\nHost: h\r\n"
              "Impersonate-User: root\r\n\r\n")
    with fake.world.h1("alice", alpn=None) as client:
        client.send((upgrade + second).encode())
        status, _ = client.read_head(10)
        assert status >= 400
        try:
            client.wait_closed(3)
        except TimeoutError:
            pass  # still open: then the second was answered for what it is
    for x in fake.api.seen(lambda x: "secrets" in x.path):
        assert x.all("impersonate-user") == ["kuberelay:alice"]


# -- F044: metrics

def test_field_F044_series_do_not_grow_with_names(fake):
    fake.api.script("/api", lambda x: x.respond(404, {}))
    relay = fake.relay()
    relay.get(fake.prefix + "/api/v1/namespaces/n/pods/p")
    relay.get("/clusters/nope/api")
    relay.request("GET", fake.prefix + "/api/v1/x", [("user-agent", "u")])

    def series():
        return len(fake.world.metrics()), len(fake.world.metrics(fake.agent))
    before = series()
    streams = []
    for number in range(1000):
        streams.append(relay.start("GET", f"{fake.prefix}/api/v1/namespaces/n{number}/pods/p"))
        streams.append(relay.start("GET", f"/clusters/nope{number}/api/v1/pods"))
        streams.append(relay.start("GET", fake.prefix + "/api/v1/x",
                                   [("user-agent", f"agent{number}")]))
        if number % 50 == 0:
            for stream in streams:
                stream.wait_finish(20)
            streams.clear()
    for stream in streams:
        stream.wait_finish(20)
    for number in range(20):
        relay.request(f"ODD{number}", fake.prefix + "/api/v1/x")
    after = series()
    # A method or a class of codes may be new; names may not.
    assert after[0] <= before[0] + 20 and after[1] <= before[1] + 20, (before, after)
    assert before[0] > 5 and before[1] > 2


# -- F040 with one hub: no session here

def test_field_F040_an_agent_connected_elsewhere_is_a_clean_503(lone_fake):
    """The cluster's agent is enrolled but has no session with this hub."""
    pair = lone_fake.world.issue_hub("hub-2")
    other = lone_fake.world.start_hub("hub-2", pair)
    begin = time.monotonic()
    answer = lone_fake.world.client(hub=other).get("/clusters/f1/api/v1/pods")
    assert time.monotonic() - begin < scaled(1) + 5
    # A hub that has never seen the cluster cannot tell it from one that does not exist.
    assert answer.status in (403, 503)
    assert_status_names(answer, "f1")


def test_field_F040_an_agent_with_two_hubs_serves_both(world, tmp_path):
    from backends import FakeBackend

    one = world.start_hub("hub-1")
    two = world.start_hub("hub-2", world.issue_hub("hub-2"))
    fake = FakeBackend(str(world.folder / "fake"))
    fake.api.script("/api/v1/x", lambda x: x.respond(200, {"ok": 1}))
    config = fake.kubeconfig(world.folder / "kc")
    world.start_agent("f1", config, hubs=[one.agent_address, two.agent_address])
    world.wait_cluster("f1", hub=two)
    for hub in (one, two):
        assert world.client(hub=hub).get("/clusters/f1/api/v1/x").status == 200
    stream = world.client(hub=two).start("GET", "/clusters/f1/api/v1/x")
    stream.answer()
    one.kill()
    for _ in range(20):
        assert world.client(hub=two).get("/clusters/f1/api/v1/x").status == 200
    world.restart_hub(one)
    world.wait_cluster("f1", 40)
    fake.close()


def test_field_F043_too_many_streams_are_refused_not_lost(fake):
    """1,000 streams of one connection are served, the rest is refused in HTTP/2's way."""
    fake.api.script("/api/v1/w", lambda x: (x.start_stream(), x.event("ADDED", {}), x.hold()))
    with fake.world.client() as client:
        streams = [client.start("GET", fake.prefix + "/api/v1/w?watch=1") for _ in range(400)]
        for stream in streams:
            try:
                stream.wait_bytes(1, 20)
            except StreamReset as reset:
                pytest.fail(f"one of 400 streams was refused: {reset}")
        for stream in streams:
            stream.reset()
