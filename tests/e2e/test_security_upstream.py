# SPDX-License-Identifier: Apache-2.0
"""T24, T25 and T32: an API server that lies, floods or stalls costs its own requests only."""

import json
import threading
import time

import pytest
from backends import FakeBackend
from clock import scaled, wait_until
from cluster_site import Site
from h2client import ConnectionLost, StreamReset

PATH = "/api/v1/namespaces/d/configmaps/hostile"


@pytest.fixture
def hostile(world):
    """An API server that speaks HTTP/1.1 raw, behind a hub that waits two seconds for an answer."""
    world.start_hub(requestTimeout="2s")
    backend = FakeBackend(str(world.folder / "fake"), protocols=["http/1.1"])
    site = Site(world, backend, "f1", world.folder / "f1")
    site.api.script("/api/v1/good", lambda x: x.respond(200, {"good": True}))
    yield site
    backend.close()


def until_gone(x, *pieces, seconds=20):
    """Writes the last piece again and again, until nobody takes it any more."""
    end = time.monotonic() + scaled(seconds)
    try:
        for piece in pieces[:-1]:
            x.raw(piece)
        while time.monotonic() < end:
            x.raw(pieces[-1])
    finally:
        x.abort()


def once(x, answer, rst=False):
    x.raw(answer)
    x.wait(lambda x: False, 0.2)
    x.abort(rst)


def drip(x):
    """One byte of a head every tenth of a second: never whole in time."""
    for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 1000:
        x.raw(bytes([byte]))
        x.wait(lambda x: False, 0.1)


def header_of_100_mb(x):
    x.raw(b"HTTP/1.1 200 OK\r\nX-Big: ")
    for _ in range(1600):
        x.raw(b"a" * 65536)
    x.abort()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
ANSWERS = {  # how -> (script, whether an error of ours must come instead of a cut body)
    "a header of 100 MB": (header_of_100_mb, True),
    "a million small headers": (lambda x: until_gone(x, b"HTTP/1.1 200 OK\r\n", b"A: b\r\n" * 1000),
                                True),
    "1xx without end": (lambda x: until_gone(x, b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),
                        True),
    "a length of 2^63": (lambda x: once(x, HEAD + b"Content-Length: 9223372036854775808\r\n\r\n{}"),
                         True),
    "a length below 0": (lambda x: once(x, HEAD + b"Content-Length: -1\r\n\r\n{}"), True),
    "chunks of garbage": (lambda x: once(x, HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"
                                            b"\xff\xfe\r\n"), False),
    "a chunk of 2^64": (lambda x: once(x, HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
                                       b"FFFFFFFFFFFFFFFFF\r\n"), False),
    "a head that drips": (drip, True),
    "RST in the body": (lambda x: once(x, HEAD + b"Content-Length: 1000\r\n\r\n{", True), False),
    "nothing, and closed": (lambda x: x.abort(), True),
}


def ask(site, path=PATH):
    """(status, body), or "cut" when what came cannot be taken for a whole answer."""
    try:
        with site.world.client() as client:
            answer = client.get(site.prefix + path, timeout=30)
    except (StreamReset, ConnectionLost):
        return "cut"
    return answer.status, answer.body


@pytest.mark.weighed
@pytest.mark.parametrize("how", ANSWERS)
def test_T32_a_hostile_answer_is_an_error_and_costs_no_memory(hostile, how):
    script, must_answer = ANSWERS[how]
    assert ask(hostile, "/api/v1/good")[0] == 200
    hostile.api.script(PATH, script)
    before, answers, ended = hostile.agent.memory_kib(), [], threading.Event()

    def others():
        while not ended.is_set():
            answers.append(ask(hostile, "/api/v1/good"))
    thread = threading.Thread(target=others)
    thread.start()
    try:
        for _ in range(3):
            got = ask(hostile)
            if got == "cut":
                assert not must_answer, "no answer where one was possible"
                continue
            assert got[0] in (502, 503, 504), got
            assert json.loads(got[1])["kind"] == "Status"
    finally:
        ended.set()
        thread.join()
    assert answers and all(a == (200, b'{"good": true}') for a in answers), answers[:3]
    assert hostile.agent.memory_kib("RssAnon") - before < 8 * 1024
    assert hostile.agent.alive and hostile.world.hub.alive


def test_T32_a_hundred_hostile_answers_leave_no_connection_behind(hostile):
    hostile.api.script(PATH, lambda x: once(x, HEAD + b"Content-Length: 99999\r\n\r\n{", True))
    ask(hostile, "/api/v1/good")
    before = hostile.agent.fds()
    for _ in range(100):
        ask(hostile)
    wait_until(lambda: hostile.agent.fds() <= before + 2, 10, "connections closed")
    assert ask(hostile, "/api/v1/good")[0] == 200


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_T25_no_redirect_is_followed_and_none_leads_away(hostile, method, status):
    """A GET may be told of a path on the same API server; everything else is 502."""
    other = FakeBackend(str(hostile.world.folder / "other"))
    try:
        other.api.script(lambda x: True, lambda x: x.respond(200, {}))
        for place in (other.url + "/api/v1/secrets", "//evil.test/x", "/api/v1/secrets",
                      "https://evil.test/x"):
            hostile.api.script(PATH, lambda x, place=place: (
                x.body(), x.respond(status, b"", [("location", place)])))
            with hostile.world.client() as client:
                answer = client.request(method, hostile.prefix + PATH)
            if answer.status != 502:
                assert method == "GET" and place.startswith("/api"), (answer, place)
                assert answer.get("location") == hostile.prefix + place
        assert not other.api.seen()
        assert not hostile.api.seen(lambda x: "secrets" in x.path)
    finally:
        other.close()
