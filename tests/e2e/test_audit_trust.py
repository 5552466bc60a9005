# SPDX-License-Identifier: Apache-2.0
"""What happens to keys, tokens and clusters, in the hub's audit log; and which agent a request went
to."""

import datetime
import re
import shutil
import signal
import tempfile
import time

import grpc
import pytest

import auditlog
from clock import wait_until
from enrollment import Caller, Enrollment, lifetime, new_key, spki_of, status_of


class Audited(Enrollment):
    def __init__(self, folder, binaries):
        super().__init__(folder, binaries)
        self.log = str(self.folder / "audit.log")

    def start_hub(self, name="hub-1", **more):
        return super().start_hub(name, **{"auditLog": self.log, **more})

    def events(self, resource, subresource=None):
        return [e for e in auditlog.events(self.log)
                if e.get("objectRef", {}).get("apiGroup") == "kuberelay.io"
                and e["objectRef"]["resource"] == resource
                and e["objectRef"].get("subresource") == subresource]

    def wait_event(self, resource, subresource=None, count=1):
        return wait_until(lambda: self.events(resource, subresource)[count - 1:], 10,
                          f"{resource} {subresource} is logged")[0]


@pytest.fixture
def audited(binaries):
    folder = tempfile.mkdtemp(prefix="kr-tt-")
    made = Audited(folder, binaries)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


def said(event):
    name = event["objectRef"].get("name")
    return event["responseStatus"]["code"], event["user"].get("username"), name


def test_join_and_renew_are_logged_with_the_token_by_its_id(audited):
    audited.start_hub(agentLifetime="30s")
    token = audited.token("edge-1")
    token_id, secret = token.split(".")[1:]
    assert said(audited.wait_event("jointokens")) == (201, "kuberelay:operator", token_id)
    audited.start_agent("edge-1", token)
    joined = audited.wait_event("agents", "join")
    assert said(joined) == (201, f"kuberelay:join-token:{token_id}", "edge-1:a")
    assert joined["verb"] == "create" and joined["sourceIPs"] == ["127.0.0.1"]
    assert joined["requestURI"] == "/kuberelay.v1.Enrollment/Join"
    assert joined["stage"] == "ResponseComplete"
    assert auditlog.note(joined, "generation") == "1"
    assert auditlog.note(joined, "cluster") == "edge-1"
    assert auditlog.note(joined, "agent-instance") == "a"
    assert auditlog.note(joined, "decision") == "allow"
    audited.hub.wait_line(r"event=key-in-use\b.*generation=2\b", timeout=35)
    renewed = audited.wait_event("agents", "renew")
    assert said(renewed) == (200, "kuberelay:agent:edge-1:a", "edge-1:a")
    assert auditlog.note(renewed, "generation") == "2" and renewed["verb"] == "update"
    used = audited.wait_event("agents", "switch")
    assert auditlog.note(used, "generation") == "2" and used["sourceIPs"] == ["127.0.0.1"]
    raw = auditlog.lines(audited.log)
    auditlog.check_chain(raw)
    text = b"\n".join(raw)
    assert secret.encode() not in text and b"PRIVATE" not in text and b"BEGIN" not in text


def test_refused_joins_are_logged_with_the_reason_and_the_address(audited):
    audited.start_hub()
    token = audited.token("edge-1")
    caller = Caller(audited)
    try:
        key = new_key()
        caller.join(token, key)
        assert status_of(caller.join, token, new_key()) == grpc.StatusCode.ALREADY_EXISTS
        taken = audited.events("agents", "join")[-1]
        assert said(taken)[0] == 409 and taken["responseStatus"]["reason"] == "Conflict"
        assert "used by another key" in taken["responseStatus"]["message"]
        assert auditlog.note(taken, "decision") == "forbid"
        wrong = token.rsplit(".", 1)[0] + "." + "a" * 32
        for _ in range(10):
            assert status_of(caller.join, wrong, new_key()) == grpc.StatusCode.PERMISSION_DENIED
        burned = audited.events("jointokens", "burn")
        assert [e["objectRef"]["name"] for e in burned] == [token.split(".")[1]]
        refused = audited.events("agents", "join")[-1]
        assert refused["sourceIPs"] == ["127.0.0.1"] and said(refused)[0] == 403
        assert status_of(caller.join, "kr1.no", new_key()) == grpc.StatusCode.PERMISSION_DENIED
        assert audited.events("agents", "join")[-1]["user"] == {}
    finally:
        caller.close()
    assert b"a" * 32 not in open(audited.log, "rb").read()


def test_what_an_operator_orders_is_logged(audited):
    audited.start_hub()
    audited.start_agent("edge-1", audited.token("edge-1", auto=False), wait=False)
    audited.wait_event("agents", "join")
    audited.ctl("cluster", "accept", "edge-1")
    audited.ctl("cluster", "deny", "edge-1")
    audited.ctl("cluster", "remove", "edge-1")
    spare = audited.token("edge-2").split(".")[1]
    audited.ctl("token", "revoke", spare)
    audited.ctl("token", "revoke", "aaaaaaaa", code=1)
    for order, verb in (("accept", "update"), ("deny", "update"), ("remove", "delete")):
        event = audited.wait_event("clusters", order)
        assert said(event) == (200, "kuberelay:operator", "edge-1") and event["verb"] == verb
        assert auditlog.note(event, "cluster") == "edge-1"
    gone = [e for e in audited.events("jointokens") if e["verb"] == "delete"]
    assert [said(e) for e in gone] == [(200, "kuberelay:operator", spare),
                                       (404, "kuberelay:operator", "aaaaaaaa")]
    assert auditlog.check_chain(auditlog.lines(audited.log)) >= 8


def test_key_and_instance_orders_are_logged(audited):
    audited.start_hub()
    token = audited.token("edge-1")
    caller, key = Caller(audited), new_key()
    caller.join(token, key)
    caller.close()
    audited.ctl("cluster", "deny", "edge-1", "--instance", "a")
    audited.ctl("cluster", "deny", "edge-1", "--key", spki_of(key))
    denied = audited.wait_event("agents", "deny")
    assert said(denied) == (200, "kuberelay:operator", "edge-1:a")
    assert said(audited.wait_event("keys", "deny")) == (200, "kuberelay:operator", spki_of(key))
    audited.ctl("cluster", "unlock", "edge-1", "--key", spki_of(key))
    assert said(audited.wait_event("keys", "unlock")) == (200, "kuberelay:operator", spki_of(key))


def test_T14_audit_of_a_cloned_key_has_both_addresses(audited):
    """The owner comes over IPv4 and the thief over IPv6: the line of the lock names both."""
    pair = audited.world._pair(audited.world.ctl(
        "ca", "issue", "hub", "--dir", audited.world.pki, "--name", "hub-2", "--dns", "localhost",
        "--ip", "127.0.0.1", "--ip", "::1"))
    hub = audited.start_hub(agentLifetime=lifetime(30), agentListen="[::]:0", pair=pair)
    hub.agent = ("127.0.0.1", hub.agent[1])
    agent = audited.start_agent("edge-1", audited.token("edge-1"))
    agent.stop()
    stolen = audited.folder / "stolen"
    shutil.copytree(agent.state, stolen)
    audited.restart_agent(agent)
    hub.wait_line(r"event=key-in-use\b.*generation=2\b", timeout=35)
    switched = audited.wait_event("agents", "switch")
    at = datetime.datetime.fromisoformat(switched["stageTimestamp"].replace("Z", "+00:00")).timestamp()
    wait_until(lambda: time.time() > at + 3.5, 30, "the switch is over")
    audited.start_agent("edge-1", state=stolen, name="thief", wait=False,
                        hubs=[f"[::1]:{hub.agent[1]}"])
    hub.wait_line(r"event=alarm\b.*kind=cloned-key\b.*locked", timeout=20)
    lock = audited.wait_event("agents", "lock")
    assert lock["sourceIPs"] == ["::1"], lock
    peers = auditlog.note(lock, "peers").split(",")
    assert peers and all(re.fullmatch(r"(\[::ffff:127\.0\.0\.1\]|127\.0\.0\.1):\d+", p)
                         for p in peers), peers
    assert lock["responseStatus"]["code"] == 403 and auditlog.note(lock, "generation") == "2"
    assert lock["user"] == {"username": "kuberelay:agent:edge-1:a"}


def test_new_trust_bundle_is_logged_once(audited):
    bundle = audited.folder / "bundle.pem"
    shutil.copy(audited.world.ca, bundle)
    hub = audited.start_hub(bundleFile=str(bundle))
    first = audited.wait_event("trustbundles")
    other = audited.folder / "other"
    audited.world.ctl("ca", "init", "--dir", other, "--trust-domain", "x.example")
    bundle.write_bytes(bundle.read_bytes() + (other / "ca.crt").read_bytes())
    hub.child.send_signal(signal.SIGHUP)
    second = audited.wait_event("trustbundles", count=2)
    assert int(auditlog.note(second, "generation")) > int(auditlog.note(first, "generation"))
    assert second["user"]["username"] == "kuberelay:hub:hub-1"
    mark = hub.mark()
    hub.child.send_signal(signal.SIGHUP)
    hub.wait_line(r"event=reloaded\b", after=mark)
    audited.ctl("token", "create", "--cluster", "edge-1")
    assert len(audited.events("trustbundles")) == 2


def test_t39_nothing_is_handed_out_while_the_log_takes_no_lines(audited):
    audited.start_hub(auditLog="/dev/full")
    audited.hub.wait_line(r"event=audit-failing\b")
    audited.ctl("token", "create", "--cluster", "edge-1", code=1)
    audited.ctl("cluster", "accept", "edge-9", "--external", code=1)
    audited.ctl("cluster", "deny", "edge-9")
    assert audited.cluster("edge-9")["state"] == "denied", "what closes something is done"
    caller = Caller(audited)
    try:
        assert status_of(caller.join, "kr1.aaaaaaaa." + "b" * 32, new_key()) not in (
            grpc.StatusCode.OK, grpc.StatusCode.PERMISSION_DENIED)
    finally:
        caller.close()


def test_audit_names_the_agent_that_a_request_went_to(audited):
    audited.start_hub()
    agents = {i: audited.start_agent("edge-1", audited.token("edge-1"), instance=i)
              for i in ("a", "b")}
    client = audited.world.client()

    def carried_by(mark):
        assert client.get(f"/clusters/edge-1/api/v1/namespaces?mark={mark}").status == 200
        found = auditlog.wait_for(
            audited.log, lambda f: [e for e in f if mark in e["requestURI"]], "logged")
        event = [e for e in found if mark in e["requestURI"]][-1]
        assert auditlog.note(event, "request-uid") == event["auditID"]
        assert int(auditlog.note(event, "bytes-out")) > 100
        assert auditlog.note(event, "outcome") == "completed"
        assert auditlog.note(event, "rule") == "open"
        return auditlog.note(event, "agent-instance")
    assert carried_by("m1") in ("a", "b")
    agents["a"].stop()
    assert carried_by("m2") == "b"
    agents["b"].stop()
    audited.world.wait_away("edge-1")
    assert client.get("/clusters/nowhere/api/v1/namespaces?mark=m3").status in (403, 404)
    lost = [e for e in auditlog.events(audited.log) if "m3" in e["requestURI"]][-1]
    assert auditlog.note(lost, "agent-instance") is None
    assert auditlog.note(lost, "outcome") == "not-forwarded"
