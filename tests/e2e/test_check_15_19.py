# SPDX-License-Identifier: Apache-2.0
"""Checks 15 to 19: request bodies in every framing, warnings, and forged headers."""

import hashlib
import json
import os

import pytest

from cluster_site import JSON, configmap
from oracle import assert_same_twins

MAPS = "/api/v1/namespaces/d/configmaps"


def ok(x):
    x.body()
    x.respond(201, {"kind": "Status", "status": "Success"})


# -- 15: bodies without a length or a type

@pytest.mark.parametrize("sizes", [[1] * 50, [7] * 300, [16384] * 20, [1, 100000, 3]])
def test_check_15_chunked_without_content_type_arrives_intact(fake, sizes):
    fake.api.script(MAPS, ok)
    body = os.urandom(sum(sizes))
    with fake.world.h1() as client:
        client.head("POST", fake.prefix + MAPS, [("Transfer-Encoding", "chunked")])
        at = 0
        for size in sizes:
            client.chunk(body[at:at + size])
            at += size
        client.chunk(b"")
        answer = client.answer()
    seen = fake.api.wait_request(lambda x: x.method == "POST")
    assert answer.status == 201
    assert seen.received == body
    assert seen.get("content-type") is None and seen.get("expect") is None


@pytest.mark.parametrize("size", [0, 1, 65536, 300000])
def test_check_15_h2_without_content_length_arrives_intact(fake, size):
    fake.api.script(MAPS, ok)
    body = os.urandom(size)
    answer = fake.ask("POST", MAPS, body=body)
    seen = fake.api.wait_request(lambda x: x.method == "POST")
    assert answer.status == 201
    assert hashlib.sha256(seen.received).digest() == hashlib.sha256(body).digest()
    assert seen.get("content-type") is None


def test_check_15_content_length_on_h1_is_kept(fake):
    fake.api.script(MAPS, ok)
    with fake.world.h1() as client:
        answer = client.request("POST", fake.prefix + MAPS, [("Content-Type", "x/y")], b"z" * 5000)
    seen = fake.api.wait_request(lambda x: x.method == "POST")
    assert answer.status == 201 and seen.received == b"z" * 5000
    assert seen.get("content-length") == "5000" and seen.get("content-type") == "x/y"


def test_check_15_bytes_reach_upstream_before_the_body_ends(fake):
    """Streaming, not store and forward."""
    fake.api.script(MAPS, ok)
    stream = fake.start("POST", MAPS, [JSON], end=False)
    stream.send(b"first")
    seen = fake.api.wait_request(lambda x: x.method == "POST")
    assert seen.wait(lambda x: x.received == b"first", 5)
    stream.send(b"-second", end=True)
    assert stream.answer().status == 201
    assert seen.received == b"first-second"


# -- 16: Expect: 100-continue and an early refusal

def test_check_16_expect_continue_is_answered_or_refused(fake):
    fake.api.script(MAPS, ok)
    body = b"x" * 2_000_000
    with fake.world.h1() as client:
        client.head("POST", fake.prefix + MAPS,
                    [("Expect", "100-continue"), ("Content-Length", str(len(body)))])
        status, _ = client.read_head(5)
        assert status == 100
        client.send(body)
        answer = client.answer()
    assert answer.status == 201
    assert fake.api.wait_request(lambda x: x.method == "POST").received == body


def early_413(x):
    x.wait(lambda x: len(x.received) > 1000, 10)
    x.fail(413, "RequestEntityTooLarge", "Request entity too large: limit is 1000")


def test_check_16_an_early_413_ends_a_half_sent_body(fake):
    fake.api.script(MAPS, early_413)
    stream = fake.start("POST", MAPS, [JSON], end=False)
    stream.send(b"x" * 65536)
    stream.wait_headers(5)
    assert stream.status == 413
    finish = stream.wait_finish(5)
    assert finish == "end" and json.loads(stream.body)["code"] == 413
    assert fake.ask("GET", "/nothing").status == 404  # the connection lives on


def test_check_16_curl_reads_the_early_413(fake, tmp_path):
    from procs import run

    fake.api.script(MAPS, early_413)
    (tmp_path / "body").write_bytes(b"x" * 2_000_000)
    user = fake.world.user("admin")
    # HTTP/1.1 only: on HTTP/2 curl 7.88 trips over early answers, of Go's servers too.
    code, out, err = run([
        "curl", "-sS", "--http1.1", "--max-time", "10", "--cacert", fake.world.ca, "--cert",
        user.crt, "--key", user.key, "-H", "Expect: 100-continue", "-X", "POST",
        "--data-binary", f"@{tmp_path}/body", "-w", "\n%{http_code}",
        fake.world.hub.url + fake.prefix + MAPS])
    assert out.decode().splitlines()[-1] == "413", (code, out, err)


# -- 17, 18: the server's own opinion of the request

@pytest.fixture(scope="module")
def namespace(session_site):
    return session_site.namespace("opinion")


def test_check_17_dry_run_stores_nothing(site, namespace):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    body = json.dumps(configmap("dry")).encode()
    assert_same_twins(*site.both("POST", path + "?dryRun=All", [JSON], body))
    assert site.ask_direct("GET", path + "/dry").status == 404


@pytest.mark.parametrize("query", ["dryRun=bad", "fieldValidation=Strict&dryRun=All",
                                   "fieldValidation=Warn&dryRun=All", "fieldValidation=nonsense"])
def test_check_17_validation_answers_are_the_same(site, namespace, query):
    body = json.dumps({**configmap("strict"), "unknown": 1, "metadata": {
        "name": "strict", "odd": True}}).encode()
    direct, relayed = site.both("POST", f"/api/v1/namespaces/{namespace}/configmaps?{query}",
                                [JSON], body)
    assert_same_twins(direct, relayed)
    if site.backend.is_real:
        assert relayed.status in ([201] if "Warn" in query else [400, 422])
        assert bool(relayed.all("warning")) == ("Warn" in query)


def test_check_18_several_warnings_stay_separate(fake):
    warnings = [("warning", '299 - "first is deprecated"'), ("warning", '299 - "second, too"'),
                ("warning", '299 - "a \\"quoted\\" third"')]
    fake.api.script("/api", lambda x: x.respond(200, {"kind": "x"}, warnings))
    answer = fake.ask("GET", "/api/v1/things")
    assert answer.all("warning") == [v for _, v in warnings]
    with fake.world.h1() as client:
        answer = client.get(fake.prefix + "/api/v1/things")
    assert answer.all("warning") == [v for _, v in warnings]


@pytest.mark.real
def test_check_18_kubectl_prints_the_servers_warning(site, namespace):
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w", "annotations": {
        "scheduler.alpha.kubernetes.io/critical-pod": ""}},
        "spec": {"containers": [{"name": "c", "image": "a:1"}]}}
    args = ("-n", namespace, "create", "--dry-run=server", "-f", "-")
    direct = site.kubectl_direct().run(*args, stdin=json.dumps(obj))
    relayed = site.kubectl().run(*args, stdin=json.dumps(obj))
    assert "Warning: " in direct.err
    assert (relayed.code, relayed.out, relayed.err) == (direct.code, direct.out, direct.err)


# -- 19: headers that a client may not decide

FORGED = [
    ("x-remote-user", "root"), ("x-remote-group", "system:masters"), ("x-remote-uid", "0"),
    ("x-remote-extra-scopes", "all"), ("x-forwarded-for", "10.9.8.7"),
    ("x-forwarded-host", "evil.test"), ("forwarded", "for=10.9.8.7"), ("x-real-ip", "10.9.8.7"),
    ("kuberelay-request-bin", "AAAA"), ("kuberelay-anything", "1"),
    ("authorization", "Bearer forged"),
]


def identity_of(x):
    return {n: x.all(n) for n in sorted(set(x.names())) if n.startswith("impersonate-")}


def assert_only_our_identity(x, user="alice"):
    assert x.all("impersonate-user") == [f"kuberelay:{user}"]
    for name in x.names():
        assert not name.startswith(("x-remote-", "kuberelay-")), name
        assert name not in ("x-foo", "forwarded", "x-real-ip", "x-forwarded-host"), name
    assert "10.9.8.7" not in str(x.headers)
    assert "forged" not in str(x.headers) and "system:masters" not in str(x.headers)


@pytest.mark.parametrize("wire", ["h2", "h1"])
def test_check_19_forged_identity_headers_never_arrive(fake, wire):
    fake.api.script("/api", ok)
    # A bearer token beside a client certificate may be refused; it must not be passed on.
    if wire == "h2":
        answer = fake.ask("GET", "/api/v1/x", FORGED, user="alice")
    else:
        with fake.world.h1("alice") as client:
            answer = client.get(fake.prefix + "/api/v1/x",
                                [*FORGED, ("Connection", "X-Foo"), ("X-Foo", "1")])
    if answer.status in (400, 401, 403):
        assert not fake.api.seen(lambda x: x.target == b"/api/v1/x")
        return
    assert_only_our_identity(fake.api.wait_request(lambda x: x.target == b"/api/v1/x"))


@pytest.mark.parametrize("name", [n for n, _ in FORGED if n != "authorization"])
def test_check_19_each_forged_header_alone(fake, name):
    fake.api.script("/api", ok)
    answer = fake.ask("GET", "/api/v1/x", [(name, dict(FORGED)[name])], user="alice")
    assert answer.status == 201, answer
    assert_only_our_identity(fake.api.wait_request(lambda x: x.target == b"/api/v1/x"))


def test_check_19_connection_listed_headers_are_hop_by_hop(fake):
    fake.api.script("/api", ok)
    with fake.world.h1("alice") as client:
        answer = client.get(fake.prefix + "/api/v1/x", [("Connection", "X-Foo, keep-alive"),
                                                        ("X-Foo", "1"), ("Keep-Alive", "x")])
    assert answer.status == 201
    x = fake.api.wait_request(lambda x: x.target == b"/api/v1/x")
    assert_only_our_identity(x)
    assert "keep-alive" not in x.names() and "connection" not in x.names()


def test_check_19_groups_of_the_certificate_arrive_with_the_prefix(fake):
    fake.api.script("/api", ok)
    fake.ask("GET", "/api/v1/x", user="carol", groups=("dev", "ops"))
    x = fake.api.wait_request(lambda x: x.target == b"/api/v1/x")
    assert x.all("impersonate-user") == ["kuberelay:carol"]
    assert {"kuberelay:dev", "kuberelay:ops"} <= set(x.all("impersonate-group"))
    assert all(g.startswith("kuberelay:") for g in x.all("impersonate-group"))


def test_check_19_headers_of_the_client_arrive_unchanged(fake):
    fake.api.script("/api", ok)
    kept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
            ("accept-encoding", "gzip"), ("user-agent", "kubectl/v1.33 (x)"),
            ("kubectl-command", "kubectl get"), ("kubectl-session", "9e5e0a0e"),
            ("if-none-match", '"ABC"'), ("range", "bytes=0-9")]
    fake.ask("GET", "/api/v1/x", kept)
    x = fake.api.wait_request(lambda x: x.target == b"/api/v1/x")
    for name, value in kept:
        assert x.all(name) == [value]
    assert x.authority == b"127.0.0.1:%d" % fake.backend.address[1]
