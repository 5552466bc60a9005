# SPDX-License-Identifier: Apache-2.0
"""Checks 24 to 28: odd paths, request smuggling, and deadlines."""

import time

import pytest

from clock import scaled
from h1client import status_of

BAD_PATHS = [
    "/api/v1/namespaces/../secrets", "/api/v1/./pods", "/api/v1/namespaces/%2e%2e/secrets",
    "/api/v1/namespaces/%2E./secrets", "/api/v1/namespaces/d/pods/a%2Fb",
    "/api/v1/namespaces/d/pods/a%2fb", "/api/v1/namespaces/d/pods/a%5Cb",
    "/api/v1/namespaces/d/pods/a%252Fb", "/api/v1//pods", "/api/v1/namespaces//pods",
    "/api/v1/namespaces/d/pods/%00", "/api/v1/namespaces/d/pods/a%zz",
    "/api/v1/namespaces/d/pods/a%1", "/api/v1/namespaces/d/pods/%0a",
    "/apis/apps%2Fv1/deployments", "/api/v1/namespaces/d%2Fpods/x",
]


@pytest.mark.parametrize("path", BAD_PATHS)
@pytest.mark.parametrize("wire", ["h2", "h1"])
def test_check_24_an_unsafe_path_is_400_and_goes_nowhere(fake, wire, path):
    fake.api.script(lambda x: True, lambda x: x.respond(200, {}))
    if wire == "h2":
        answer = fake.ask("GET", path)
    else:
        with fake.world.h1() as client:
            answer = client.get(fake.prefix + path)
    assert answer.status == 400, answer
    status = status_of(answer)
    assert status["code"] == 400 and status["reason"] == "BadRequest"
    assert not fake.relayed()


@pytest.mark.parametrize("name", ["..", "%2e%2e", "f1%2Fapi", "F1", "f_1", "-f1", "", "%00"])
def test_check_24_a_bad_cluster_name_never_reaches_a_cluster(fake, name):
    fake.api.script(lambda x: True, lambda x: x.respond(200, {}))
    answer = fake.relay().get(f"/clusters/{name}/api/v1/pods")
    assert answer.status in (400, 403), answer
    assert status_of(answer)["code"] == answer.status
    assert not fake.relayed()


def test_check_24_the_encoded_star_is_the_fleet_not_a_cluster(fake):
    star = fake.relay().get("/clusters/*/api/v1/pods")
    encoded = fake.relay().get("/clusters/%2A/api/v1/pods")
    assert encoded.status == star.status != 400
    assert not fake.relayed()


GOOD_PATHS = [
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
    "/api/v1/namespaces/d/pods/a.b-c?x=%2F..%2F&y=//", "/api/v1/namespaces/d/pods/a%3Ab",
    "/api/v1/pods?labelSelector=a+in+%28b%2Cc%29&limit=5&limit=6", "/api/v1/pods?",
    "/api/v1/pods?a=b?c=d", "/healthz/etcd", "/metrics",
]


@pytest.mark.parametrize("path", GOOD_PATHS)
def test_check_24_a_good_path_arrives_byte_equal(fake, path):
    fake.api.script(lambda x: True, lambda x: x.respond(200, {}))
    assert fake.ask("GET", path).status == 200
    assert fake.relayed()[0].target == path.encode()


PROXY_PATHS = [
    "/api/v1/namespaces/d/services/https:web:443/proxy/a%2Fb//c?x=%2B",
    "/api/v1/namespaces/d/pods/p:8080/proxy/../x/./y/%2e%2e/z",
    "/api/v1/namespaces/d/pods/p/proxy//", "/api/v1/nodes/n/proxy/metrics/cadvisor?a=b&a=c",
    "/api/v1/namespaces/d/services/web/proxy/%252F%5C;a=1",
]


@pytest.mark.parametrize("path", PROXY_PATHS)
@pytest.mark.parametrize("wire", ["h2", "h1"])
def test_check_25_below_proxy_the_path_is_byte_exact(fake, wire, path):
    fake.api.script(lambda x: True, lambda x: x.respond(200, {}))
    if wire == "h2":
        answer = fake.ask("GET", path)
    else:
        with fake.world.h1() as client:
            answer = client.get(fake.prefix + path)
    assert answer.status == 200, answer
    assert fake.relayed()[0].target == path.encode()


def test_check_25_proxied_services_keep_their_own_headers(fake):
    path = "/api/v1/namespaces/d/services/web/proxy/"
    fake.api.script(path, lambda x: x.respond(200, b"hi", [
        ("set-cookie", "a=1"), ("set-cookie", "b=2"), ("x-own", "y")], "text/plain"))
    answer = fake.ask("GET", path, [("x-custom", "1"), ("cookie", "c=3")])
    x = fake.api.wait_request(lambda x: x.path == path)
    assert x.get("x-custom") == "1" and x.get("cookie") == "c=3"
    assert answer.all("set-cookie") == ["a=1", "b=2"] and answer.get("x-own") == "y"


# -- 26: smuggling. Each is one raw request; the hub must answer 400 and close.

def smuggled(host, prefix):
    get = f"GET {prefix}/api/v1/pods HTTP/1.1\r\n"
    post = f"POST {prefix}/api/v1/pods HTTP/1.1\r\n"
    h = f"Host: {host}\r\n"
    second = f"GET {prefix}/api/v1/secrets HTTP/1.1\r\n{h}\r\n"
    return {
        "CL and TE": f"{post}{h}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
                     f"0\r\n\r\n{second}",
        "two CL": f"{post}{h}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd{second}",
        "CL list": f"{post}{h}Content-Length: 4, 5\r\n\r\nabcd{second}",
        "CL sign": f"{post}{h}Content-Length: +4\r\n\r\nabcd{second}",
        "TE twice": f"{post}{h}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"
                    f"0\r\n\r\n{second}",
        "TE odd": f"{post}{h}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{second}",
        "two Host": f"{get}{h}Host: other.test\r\n\r\n",
        "no Host": f"{get}\r\n",
        "bare LF": f"GET {prefix}/api/v1/pods HTTP/1.1\nHost: {host}\n\n",
        "LF in head": f"{get}{h}X-A: 1\nX-B: 2\r\n\r\n",
        "space before colon": f"{get}{h}X-A : 1\r\n\r\n",
        "folded": f"{get}{h}X-A: 1\r\n  more\r\n\r\n",
        "NUL": f"{get}{h}X-A: 1\x002\r\n\r\n",
        "CR in value": f"{get}{h}X-A: 1\r2\r\n\r\n",
        "bad chunk": f"{post}{h}Transfer-Encoding: chunked\r\n\r\n0x5\r\nabcde\r\n0\r\n\r\n",
        "chunk without end": f"{post}{h}Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n",
        "h2c": f"{get}{h}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
               f"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
        "absolute other host": f"GET https://evil.test{prefix}/api/v1/pods HTTP/1.1\r\n{h}\r\n",
        "no version": f"GET {prefix}/api/v1/pods\r\n\r\n",
        "HTTP/2.0": f"GET {prefix}/api/v1/pods HTTP/2.0\r\n{h}\r\n",
        "not HTTP": "\x16\x03\x01 hello\r\n\r\n",
    }


@pytest.mark.parametrize("kind", list(smuggled("h", "/p")))
def test_check_26_a_malformed_request_is_400_and_closed(fake, kind):
    fake.api.script(lambda x: True, lambda x: (x.body(), x.respond(200, {})))
    with fake.world.h1() as client:
        client.send(smuggled(client.host, fake.prefix)[kind].encode("latin-1"))
        status, _ = client.read_head(5)
        allowed = {"HTTP/2.0": 505, "TE odd": 501, "TE twice": 501}
        assert status in (400, 421, allowed.get(kind)), status
        client.wait_closed(5)
    # What the hub could not make sense of must not have become a request elsewhere.
    assert not fake.api.seen(lambda x: "secrets" in x.path)
    if "chunk" not in kind:
        assert not fake.relayed()


def test_check_26_upgrade_headers_on_h2_are_malformed(fake):
    with fake.world.client() as client:
        stream = client.start("GET", fake.prefix + "/api/v1/pods",
                              [("connection", "upgrade"), ("upgrade", "websocket")])
        assert stream.wait_finish(5) in ("reset", "lost") or stream.status == 400
    assert not fake.relayed()


def test_check_26_pipelined_requests_are_answered_in_order(fake):
    fake.api.script("/api/v1/a", lambda x: x.respond(200, b'"a"'))
    fake.api.script("/api/v1/b", lambda x: x.respond(200, b'"b"'))
    with fake.world.h1() as client:
        one = f"GET {fake.prefix}/api/v1/%s HTTP/1.1\r\nHost: {client.host}\r\n\r\n"
        client.send((one % "a" + one % "b").encode())
        assert client.answer().body == b'"a"'
        assert client.answer().body == b'"b"'


# -- 27, 28: deadlines

def test_check_27_a_bad_timeout_is_the_api_servers_400(site):
    direct, relayed = site.both("GET", "/api/v1/namespaces/default?timeout=bad")
    assert relayed.status == direct.status and relayed.body == direct.body
    if site.backend.is_real:
        assert relayed.status == 400


def test_check_27_a_short_timeout_ends_a_hanging_request(fake):
    fake.api.script("/api/v1/hang", lambda x: x.hold())
    begin = time.monotonic()
    answer = fake.ask("GET", "/api/v1/hang?timeout=2s")
    took = time.monotonic() - begin
    assert answer.status == 504 and status_of(answer)["reason"] == "Timeout"
    assert answer.get("retry-after") is None
    # The API server's own answer gets its five seconds; without a timeout it would be 65.
    assert 2 <= took < 5 + scaled(5), took
    fake.api.wait_request(lambda x: x.path == "/api/v1/hang").wait_cancelled(2)


def test_check_27_the_api_servers_own_504_wins(fake):
    def late(x):
        time.sleep(1)  # the server's own work, not a wait of the test
        x.fail(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
    fake.api.script("/api/v1/late", late)
    answer = fake.ask("GET", "/api/v1/late?timeout=1s")
    assert answer.status == 504 and "allotted" in status_of(answer)["message"]


@pytest.mark.long
def test_check_28_a_hanging_get_is_504_after_65_seconds(fake):
    """Several kinds hang at once, so that the wait is paid once."""
    fake.api.script("/api/v1/hang", lambda x: x.hold())
    client = fake.relay()
    begin = time.monotonic()
    paths = ["/api/v1/hang", "/api/v1/hang?timeout=10m", "/api/v1/hang?timeout=0s"]
    streams = [client.start("GET", fake.prefix + p) for p in paths]
    watch = client.start("GET", fake.prefix + "/api/v1/hang?watch=true&timeout=1s")
    log = client.start("GET", fake.prefix + "/api/v1/hang/x/log?follow=true")
    for stream in streams:
        answer = stream.answer(80)
        assert answer.status == 504
        assert "65s" in status_of(answer)["message"]
        assert 63 < stream.ended_at - begin < 70
    assert watch.status is None and watch.reset_code is None and not watch.ended
    assert log.reset_code is None and not log.ended
    watch.reset()
    log.reset()


def test_check_28_a_client_that_sends_no_body_is_not_waited_for_ever(fake):
    """The head promises a body that stops: the timeout of the request still holds."""
    fake.api.script("/api/v1/slow", lambda x: (x.body(60), x.respond(200, {})))
    stream = fake.start("POST", "/api/v1/slow?timeout=1s", end=False)
    stream.send(b"half")
    begin = time.monotonic()
    stream.wait_headers(10)
    assert stream.status in (408, 504) and time.monotonic() - begin < 6 + scaled(4)
    stream.reset()
