# SPDX-License-Identifier: Apache-2.0
"""Checks 38 to 45: what clients see when agents, hubs or answers are lost."""

import json
import threading
import time

import pytest

import fakekube
import kubectl
from clock import scaled, wait_until
from cluster_site import JSON, configmap
from h1client import status_of
from h2client import ConnectionLost

WATCH = "/api/v1/namespaces/default/pods?watch=true&resourceVersion=100"
MAPS = "/api/v1/namespaces/default/configmaps"


def three_events(x):
    x.start_stream()
    for number in range(3):
        x.event("ADDED", {"metadata": {"name": f"p{number}", "resourceVersion": str(101 + number)}})
    x.hold()


def part_of_an_event(x):
    x.start_stream()
    x.event("ADDED", {"metadata": {"name": "whole"}})
    x.write(b'{"type":"ADDED","object":{"met')
    x.hold()


def assert_hub_error(answer, code, reason, cluster="f1"):
    status = status_of(answer)
    assert answer.status == status["code"] == code, answer
    assert status["reason"] == reason and status["status"] == "Failure"
    assert answer.get("content-type") == "application/json"
    assert answer.get("cache-control") == "no-cache, private"
    assert answer.get("audit-id")
    assert any(w.startswith("299 ") and cluster in w for w in answer.all("warning")), answer
    details = status.get("details", {})
    assert answer.get("retry-after") == (str(details["retryAfterSeconds"])
                                         if "retryAfterSeconds" in details else None)
    return status


# -- 38: a watch whose agent is lost

@pytest.mark.parametrize("how", ["kill", "term"])
def test_check_38_a_lost_agent_ends_a_watch_cleanly(lone_fake, how):
    lone_fake.api.script(WATCH, three_events)
    stream = lone_fake.start("GET", WATCH)
    stream.wait(lambda s: s.body.count(b"\n") == 3)
    client = lone_fake.world.h1()
    client.head("GET", lone_fake.prefix + WATCH)
    client.read_head()
    got = b""
    while got.count(b"\n") < 3:
        got += client.read_chunk()
    lone_fake.agent.kill() if how == "kill" else lone_fake.agent.signal(15)
    assert stream.wait_finish(40) == "end"
    assert stream.body == got and stream.body.endswith(b"\n")
    assert client.read_chunk(40) == b""


def test_check_38_a_half_event_is_not_shown(lone_fake):
    lone_fake.api.script(WATCH, part_of_an_event)
    stream = lone_fake.start("GET", WATCH)
    stream.wait(lambda s: b"\n" in s.body)
    whole = stream.body.index(b"\n") + 1
    try:  # the hub may pass the half on at once or keep it back
        stream.wait_bytes(whole + 1, 1)
    except TimeoutError:
        pass
    lone_fake.agent.kill()
    ending = stream.wait_finish(40)
    assert json.loads(stream.body[:whole])["object"]["metadata"]["name"] == "whole"
    assert stream.body[whole:] in (b"", b'{"type":"ADDED","object":{"met')
    # A body of whole events ends cleanly; one that holds a half may also look cut.
    assert ending == "end" or stream.body[whole:], ending


def test_check_38_and_39_an_informer_does_not_list_again(lone_fake):
    """kubectl wait is an informer: agent away, agent back, and still one LIST."""
    program = kubectl.need(32, 33)
    fakekube.install(lone_fake.api)
    # Informers take a watch that ends within a second, without an event, as an error.
    tool = lone_fake.kubectl(program)
    waiter = tool.start("wait", "pod/p", "--for=condition=Ready", "--timeout=60s")
    try:
        lone_fake.api.wait_request(lambda x: x.is_watch, 15)
        time.sleep(1.2)  # the informer's own rule, see above
        lists = len(fakekube.lists(lone_fake.api))
        lone_fake.agent.kill()
        lone_fake.world.wait_away("f1")
        lone_fake.agent = lone_fake.world.restart_agent(lone_fake.agent)
        again = lone_fake.api.wait_request(lambda x: x.is_watch, 45, count=2)
        assert "resourceVersion=100" in again.query
        assert len(fakekube.lists(lone_fake.api)) == lists
    finally:
        waiter.stop()


def test_check_39_watches_meet_429_with_a_growing_pause(lone_fake):
    lone_fake.api.script("/api/v1", three_events)
    lone_fake.agent.kill()
    lone_fake.world.wait_away("f1")
    first = lone_fake.ask("GET", WATCH)
    assert_hub_error(first, 429, "TooManyRequests")
    assert 1 <= int(first.get("retry-after")) <= 2

    def grown():
        answer = lone_fake.ask("GET", WATCH)
        assert answer.status == 429
        return int(answer.get("retry-after")) >= 2
    wait_until(grown, 20, "Retry-After of 2 (12 s by the formula)", every=0.5)
    lone_fake.agent = lone_fake.world.restart_agent(lone_fake.agent)
    stream = lone_fake.start("GET", WATCH)
    stream.wait(lambda s: s.body.count(b"\n") == 3)
    assert stream.status == 200
    assert not fakekube.lists(lone_fake.api)
    stream.reset()


# -- 40: cancelling

def test_check_40_ctrl_c_cancels_the_request_upstream(fake):
    program = kubectl.need(32, 33, 30, 27)
    fakekube.install(fake.api)
    watcher = fake.kubectl(program).start("get", "pods", "-w")
    watch = fake.api.wait_request(lambda x: x.is_watch, 15)
    watcher.interrupt()
    watch.wait_cancelled(5)
    watcher.stop()


@pytest.mark.parametrize("way", ["h2 reset", "h2 close", "h1 close", "h1 reset"])
def test_check_40_each_way_to_leave_cancels_upstream(fake, way):
    fake.api.script(WATCH, three_events)
    client = fake.world.client() if way[:2] == "h2" else fake.world.h1()
    if way[:2] == "h2":
        stream = client.start("GET", fake.prefix + WATCH)
        stream.wait_bytes(1)
    else:
        client.head("GET", fake.prefix + WATCH)
        client.read_head()
    watch = fake.api.wait_request(lambda x: x.is_watch)
    if way == "h2 reset":
        stream.reset()
    elif way == "h1 reset":
        client.pipe.reset()
    else:
        client.close()
    watch.wait_cancelled(5)


def test_check_40_a_request_without_an_answer_yet_is_cancelled_too(fake):
    fake.api.script("/api/v1/hang", lambda x: x.hold())
    stream = fake.start("GET", "/api/v1/hang")
    seen = fake.api.wait_request(lambda x: x.path == "/api/v1/hang")
    stream.reset()
    seen.wait_cancelled(5)


# -- 41, 42: not there

def agent_gone(site):
    """The agent is dead and the time is over in which the hub holds requests for it."""
    site.agent.kill()
    site.world.wait_away("f1")

    def at_once():
        begin = time.monotonic()
        answer = site.ask("GET", "/api/v1/namespaces/default/pods")
        return answer.status == 503 and time.monotonic() - begin < 0.5
    wait_until(at_once, 15, "the hub stops holding requests")


def test_check_41_cold_kubectl_fails_at_once_and_says_why(lone_fake):
    programs = [kubectl.AVAILABLE[m] for m in sorted(kubectl.AVAILABLE)]
    if not programs:
        pytest.skip("needs a kubectl; there is none here")
    agent_gone(lone_fake)
    for program in programs:
        tool = lone_fake.kubectl(program)
        tool.run("version", "--client")  # the program's own start is paid for here
        begin = time.monotonic()
        result = tool.run("get", "pods", timeout=30)
        assert result.code == 1, result
        assert time.monotonic() - begin < scaled(2.5), (program, result)
        assert "f1" in result.err, result


def test_check_41_the_error_form_of_each_class(lone_fake):
    agent_gone(lone_fake)
    for path in ("/api/v1/pods", "/api", "/version", "/openapi/v2"):
        answer = lone_fake.ask("GET", path)
        assert_hub_error(answer, 503, "ServiceUnavailable")
        assert answer.get("retry-after") is None
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = lone_fake.ask(method, MAPS + "/x", [JSON], b"{}")
        assert_hub_error(answer, 503, "ServiceUnavailable")
        assert answer.get("retry-after") is None
    for accept in ("application/yaml", "application/vnd.kubernetes.protobuf", "text/plain"):
        answer = lone_fake.ask("GET", "/api/v1/pods", [("accept", accept)])
        assert_hub_error(answer, 503, "ServiceUnavailable")


def test_check_41_a_short_absence_is_bridged(lone_fake):
    """A request that comes while the agent reconnects is held, not refused."""
    lone_fake.api.script("/api/v1/x", lambda x: x.respond(200, {"ok": 1}))
    lone_fake.agent.kill()
    lone_fake.world.wait_away("f1")
    stream = lone_fake.start("GET", "/api/v1/x")
    lone_fake.agent = lone_fake.world.restart_agent(lone_fake.agent, wait=False)
    assert stream.answer(10).status == 200


@pytest.mark.parametrize("args,stdin", [
    (["get", "pods"], None), (["apply", "-f", "-"], configmap("x")),
    (["create", "-f", "-"], configmap("x")), (["delete", "configmap", "x", "--wait"], None)])
def test_check_42_an_unknown_cluster_is_forbidden_never_not_found(fake, args, stdin):
    tool = fake.kubectl()
    config = fake.world.kubeconfig(tool.kubeconfig + "-u", "unknown-cluster")
    tool.kubeconfig = config
    result = tool.run(*args, stdin=json.dumps(stdin) if stdin else None)
    assert result.code == 1, result
    text = result.out + result.err
    assert "not found" not in text.lower() and "unknown" in text, result
    assert not fake.relayed()


@pytest.mark.parametrize("path", ["/api", "/api/v1/pods", "/version", ""])
def test_check_42_unknown_clusters_answer_403_in_the_same_form(fake, path):
    answer = fake.relay().get("/clusters/unknown-cluster" + path)
    assert_hub_error(answer, 403, "Forbidden", "unknown-cluster")
    assert answer.get("retry-after") is None


# -- 43: a write whose fate is unknown

def test_check_43_a_create_with_the_agent_away_is_503_and_runs_never(lone_fake):
    fakekube.install(lone_fake.api)
    agent_gone(lone_fake)
    result = lone_fake.kubectl().run("create", "--validate=false", "-f", "-",
                                     stdin=json.dumps(configmap("x")))
    assert result.code == 1
    assert not lone_fake.api.seen(lambda x: x.method == "POST")


@pytest.mark.parametrize("method,path", [("POST", MAPS), ("PUT", MAPS + "/x"),
                                         ("PATCH", MAPS + "/x"), ("DELETE", MAPS + "/x")])
def test_check_43_an_agent_lost_after_sending_is_504_outcome_unknown(lone_fake, method, path):
    lone_fake.api.script("/api/v1", lambda x: (x.body(), x.hold()))
    stream = lone_fake.start(method, path, [JSON], end=False)
    stream.send(json.dumps(configmap("x")).encode(), end=True)
    lone_fake.api.wait_request(lambda x: x.method == method).body()
    lone_fake.agent.kill()
    answer = stream.answer(40)
    status = assert_hub_error(answer, 504, "Timeout")
    assert answer.get("retry-after") is None and "unknown" in status["message"]
    lone_fake.agent = lone_fake.world.restart_agent(lone_fake.agent)
    assert len(lone_fake.api.seen(lambda x: x.method == method)) == 1


def test_check_43_a_get_lost_after_sending_is_503_and_may_be_repeated(lone_fake):
    lone_fake.api.script("/api/v1", lambda x: x.hold())
    stream = lone_fake.start("GET", "/api/v1/namespaces/default/pods/p")
    lone_fake.api.wait_request(lambda x: x.path.endswith("/p"))
    lone_fake.agent.kill()
    answer = stream.answer(40)
    assert_hub_error(answer, 503, "ServiceUnavailable")
    assert answer.get("retry-after") == "1"


def test_check_43_kubectl_does_not_repeat_a_create_in_doubt(lone_fake):
    program = kubectl.need(32, 33, 30, 27)
    fakekube.install(lone_fake.api)
    lone_fake.api.script(lambda x: x.method == "POST", lambda x: (x.body(), x.hold()))
    creator = lone_fake.kubectl(program).start("create", "--validate=false", "-f",
                                               _file(lone_fake, configmap("x")))
    lone_fake.api.wait_request(lambda x: x.method == "POST", 15).body()
    lone_fake.agent.kill()
    lone_fake.agent = lone_fake.world.restart_agent(lone_fake.agent, wait=False)
    assert creator.wait(40) == 1
    lone_fake.world.wait_cluster("f1")
    assert len(lone_fake.api.seen(lambda x: x.method == "POST")) == 1


def _file(site, obj):
    path = site.world.folder / "object.json"
    path.write_text(json.dumps(obj), encoding="utf-8")
    return path


# -- 44, 45

def test_check_44_kubectl_waits_out_an_overload_and_creates_once(fake):
    """429 with Retry-After from the API server passes through; the client repeats."""
    program = kubectl.need(32, 33, 30, 27)
    fakekube.install(fake.api)
    refused = []

    def overloaded_twice(x):
        body = json.loads(x.body())
        if len(refused) < 2:
            refused.append(x)
            return x.fail(429, "TooManyRequests", "too many", [("retry-after", "1")])
        body["metadata"].update(uid="u", resourceVersion="9")
        return x.respond(201, body)
    fake.api.script(lambda x: x.method == "POST", overloaded_twice)
    out = fake.kubectl(program).ok("create", "--validate=false", "-f", "-",
                                   stdin=json.dumps(configmap("x")))
    assert "created" in out
    assert len(fake.api.seen(lambda x: x.method == "POST")) == 3


def cut_after(part, how, seen=None):
    """Cut once `seen` is set, or soon: the part has to travel first."""
    def run(x):
        x.start(200, [("content-type", "application/json")]
                + ([("content-length", "1000")] if how == "length" else []))
        x.write(part)
        seen.wait(scaled(20)) if seen else x.wait(lambda x: False, 0.2)
        x.reset() if how == "reset" else x.abort()
    return run


@pytest.mark.parametrize("how", ["reset", "abort", "length"])
@pytest.mark.parametrize("wire", ["h2", "h1"])
def test_check_45_a_cut_answer_looks_cut(fake, how, wire):
    part = b'{"kind":"PodList","items":[' + b" " * 100
    seen = threading.Event()
    fake.api.script("/api/v1/cut", cut_after(part, how, seen))
    if wire == "h2":
        stream = fake.start("GET", "/api/v1/cut").wait_bytes(len(part))
        seen.set()
        assert stream.wait_finish(10) == "reset"
        assert stream.reset_code in (2, 8) and stream.status == 200  # INTERNAL_ERROR
        return
    with fake.world.h1() as client:
        client.head("GET", fake.prefix + "/api/v1/cut")
        assert client.read_head()[0] == 200
        seen.set()
        with pytest.raises(ConnectionLost):
            while client.read_chunk():
                pass


def test_check_45_kubectl_does_not_take_a_cut_list_for_a_short_one(fake):
    program = kubectl.need(32, 33, 30, 27)
    fakekube.install(fake.api)
    fake.api.script("/api/v1/namespaces/default/pods",
                    cut_after(json.dumps(fakekube.pod_list()).encode()[:40], "abort"))
    result = fake.kubectl(program).run("get", "pods")
    assert result.code == 1 and "No resources found" not in result.out + result.err, result


def test_check_45_an_agent_lost_in_a_body_looks_cut(lone_fake):
    def half(x):
        x.start(200, [("content-type", "application/json")])
        x.write(b'{"items":[' + b"1," * 1000)
        x.hold()
    lone_fake.api.script("/api/v1/half", half)
    stream = lone_fake.start("GET", "/api/v1/half")
    stream.wait_bytes(2000)
    client = lone_fake.world.h1()
    client.head("GET", lone_fake.prefix + "/api/v1/half")
    client.read_head()
    lone_fake.agent.kill()
    assert stream.wait_finish(40) == "reset" and stream.reset_code == 2
    with pytest.raises(ConnectionLost):
        while client.read_chunk(40):
            pass
