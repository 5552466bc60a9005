# SPDX-License-Identifier: Apache-2.0
"""Join tokens: who gets a certificate, how often, and what a hub remembers of it."""

import threading
import time

import grpc
from backends import FakeBackend
from clock import scaled
from enrollment import (JOIN, Caller, certificate_of, csr_of, field, new_key, spki_of, status_of,
                        uri_of)
from h2client import ConnectionLost, StreamReset
from test_upgrades import FORMS

def wait_over(stream):
    """It ends, in one way or another."""
    try:
        stream.wait_end(5)
    except (StreamReset, ConnectionLost):
        pass


OK = grpc.StatusCode.OK
DENIED = grpc.StatusCode.PERMISSION_DENIED
USED = grpc.StatusCode.ALREADY_EXISTS


def test_join_with_a_token_brings_the_tunnel_up(enrollment):
    enrollment.start_hub()
    agent = enrollment.start_agent("edge-1", enrollment.token("edge-1"))
    agent.wait_line(r"event=joined\b.*cluster=edge-1\b.*generation=1\b")
    answer = enrollment.world.client().get("/clusters/edge-1/api/v1/namespaces")
    assert answer.status == 200
    assert (agent.state / "pair.pem").stat().st_mode & 0o777 == 0o600
    assert enrollment.cluster("edge-1")["state"] == "accepted"
    assert not (agent.state / "pending.key").exists()


def test_join_survives_a_restart_of_agent_and_hub(enrollment):
    enrollment.start_hub()
    agent = enrollment.start_agent("edge-1", enrollment.token("edge-1"))
    agent.stop()
    enrollment.hub.stop()
    enrollment.start_hub()
    again = enrollment.restart_agent(agent)
    assert not again.grep(r"event=join")
    assert enrollment.instance("edge-1")["generation"] == 1


def test_join_without_auto_accept_waits_for_an_operator(enrollment):
    enrollment.start_hub()
    agent = enrollment.start_agent("edge-1", enrollment.token("edge-1", auto=False), wait=False)
    agent.wait_line(r"event=pending\b")
    assert enrollment.cluster("edge-1")["state"] == "pending"
    answer = enrollment.world.client().get("/clusters/edge-1/api/v1/namespaces")
    assert answer.status in (403, 503)
    enrollment.ctl("cluster", "accept", "edge-1")
    enrollment.world.wait_cluster("edge-1")
    agent.wait_line(r"event=accepted\b")
    assert enrollment.cluster("edge-1")["state"] == "accepted"


def test_required_registration_refuses_a_good_certificate_that_nobody_enrolled(enrollment):
    enrollment.start_hub()
    world = enrollment.world
    world.hub = enrollment.hub
    stranger = world.start_agent("edge-9", enrollment.kubeconfig(), wait=False)
    enrollment.hub.wait_line(r"event=agent-refused\b.*not registered")
    assert stranger.alive
    enrollment.ctl("cluster", "accept", "edge-9", "--external")
    stranger.signal(1)
    world.wait_cluster("edge-9")


def test_T16_join_token_gives_one_certificate_to_50_racers(enrollment):
    enrollment.start_hub()
    token = enrollment.token("edge-1")
    got, failed = [], []

    def race():
        caller, key = Caller(enrollment), new_key()
        try:
            # The hub serves 16 connections at once: the others are to come again.
            got.append((key, caller.join(token, key, wait=True, timeout=20)))
        except grpc.RpcError as error:
            failed.append(error.code())
        finally:
            caller.close()

    racers = [threading.Thread(target=race) for _ in range(50)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert len(got) == 1, (len(got), failed)
    assert set(failed) == {USED}
    key, answer = got[0]
    assert enrollment.instance("edge-1")["key"] == spki_of(key)
    assert uri_of(certificate_of(answer)) == ["spiffe://example.test/cluster/edge-1/agent/a"]


def test_T16_join_token_answers_the_same_key_with_the_same_certificate(enrollment):
    enrollment.start_hub()
    token, key, caller = enrollment.token("edge-1"), new_key(), Caller(enrollment)
    first = caller.join(token, key)
    assert caller.join(token, key) == first
    assert status_of(caller.join, token, new_key()) == USED
    assert status_of(caller.join, token, key, instance="b") == USED
    enrollment.hub.stop()
    enrollment.start_hub()
    assert Caller(enrollment).join(token, key)[1] == first[1]


def test_T16_join_token_names_the_cluster_whatever_the_request_says(enrollment):
    enrollment.start_hub()
    caller, key = Caller(enrollment), new_key()
    answer = caller.join(enrollment.token("edge-1"), key, csr=csr_of(key, "edge-2"))
    assert uri_of(certificate_of(answer)) == ["spiffe://example.test/cluster/edge-1/agent/a"]
    for bad in ("a/b", "..", "a b", "x" * 256):
        assert status_of(caller.join, enrollment.token("edge-1"), key, instance=bad) == \
            grpc.StatusCode.INVALID_ARGUMENT


def test_T16_join_token_is_burned_by_ten_wrong_secrets(enrollment):
    enrollment.start_hub()
    token, caller = enrollment.token("edge-1"), Caller(enrollment)
    for i in range(10):
        assert status_of(caller.join, token[:-1] + "abcdefghijk".replace(token[-1], "")[i], new_key()) == DENIED
    assert status_of(caller.join, token, new_key()) == DENIED
    assert enrollment.cluster("edge-1") is None


def test_T16_join_token_that_was_revoked_or_never_made_is_refused(enrollment):
    enrollment.start_hub()
    token, caller = enrollment.token("edge-1"), Caller(enrollment)
    enrollment.ctl("token", "revoke", token.split(".")[1])
    enrollment.ctl("token", "revoke", token.split(".")[1], code=1)
    for bad in (token, "", "kr1", "kr1..", "kr1.aaaaaaaa." + "b" * 32, token.upper(), token + "a"):
        assert status_of(caller.join, bad, new_key()) in (DENIED,
                                                          grpc.StatusCode.INVALID_ARGUMENT)
    assert enrollment.registry()["clusters"] == []


def test_T16_one_address_may_fail_five_times_a_minute(enrollment):
    enrollment.start_hub(joinTries=5)
    token, caller = enrollment.token("edge-1"), Caller(enrollment)
    for _ in range(5):
        assert status_of(caller.join, "kr1.aaaaaaaa." + "b" * 32, new_key()) == DENIED
    assert status_of(caller.join, token, new_key()) == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_enrollment_serves_nothing_else(enrollment):
    enrollment.start_hub()
    caller = Caller(enrollment)
    unknown = "/kuberelay.v1.Agent/Attach"
    assert status_of(caller.call, unknown, b"") == grpc.StatusCode.UNIMPLEMENTED
    assert status_of(caller.call, JOIN, b"\xff\xff") == grpc.StatusCode.INVALID_ARGUMENT
    assert status_of(caller.call, JOIN, field(2, b"x" * 20000)) != OK
    assert status_of(caller.renew, new_key()) == DENIED  # no certificate was shown


def test_a_stolen_copy_of_the_state_holds_no_secret(enrollment):
    enrollment.start_hub()
    token = enrollment.token("edge-1")
    agent = enrollment.start_agent("edge-1", token)
    enrollment.hub.stop()
    secret = token.split(".")[2].encode()
    key = (agent.state / "pair.pem").read_bytes().split(b"-----")[2].strip()
    for path in enrollment.state.iterdir():
        content = path.read_bytes()
        assert secret not in content and key not in content and b"PRIVATE" not in content
        assert path.stat().st_mode & 0o077 == 0


def hold_or_switch(x):
    """A watch that only waits, and an exec that only listens."""
    if not x.path.endswith("/exec"):
        x.start_stream() if x.is_watch else x.respond(200, {"kind": "x"})
    else:
        x.raw(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
              + FORMS["websocket"][2].encode() + b"\r\n")
    return x.hold() if x.is_watch or x.path.endswith("/exec") else None


def test_T09_denied_cluster_is_cut_while_a_watch_and_an_exec_run(enrollment):
    enrollment.start_hub()
    fake = FakeBackend(str(enrollment.folder / "fake"))
    fake.api.script(lambda x: True, hold_or_switch)
    agent = enrollment.start_agent("edge-1", enrollment.token("edge-1"),
                                   kubeconfig=fake.kubeconfig(enrollment.folder / "fake.kc"),
                                   policyFile=enrollment.world.open_policy())
    enrollment.start_agent("edge-2", enrollment.token("edge-2"))
    enrollment.world.hub = enrollment.hub
    client = enrollment.world.client()
    doomed = client.start("GET", "/clusters/edge-1/api/v1/pods?watch=true")
    other = client.start("GET", "/clusters/edge-2/api/v1/pods?watch=true")
    doomed.wait_headers()
    other.wait_headers()
    with enrollment.world.h1() as shell:
        method, headers, _ = FORMS["websocket"]
        shell.head(method, "/clusters/edge-1/api/v1/namespaces/d/pods/p/exec?command=sh", headers)
        assert shell.read_head(10)[0] == 101
        mark = agent.mark()
        began = time.monotonic()
        enrollment.ctl("cluster", "deny", "edge-1")
        wait_over(doomed)
        shell.wait_closed(5)
        assert time.monotonic() - began < scaled(5)
    agent.wait_line(r"event=tunnel-(down|failed)\b.*refused", after=mark)
    agent.signal(1)  # it would wait minutes
    enrollment.hub.wait_line(r"event=agent-refused\b.*denied")
    assert not other.ended
    assert client.get("/clusters/edge-2/api/v1/namespaces").status == 200
    assert client.get("/clusters/edge-1/api/v1/namespaces").status in (403, 503)
    fake.close()
