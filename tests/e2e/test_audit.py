# SPDX-License-Identifier: Apache-2.0
"""The audit logs of both ends (T36, T37, T38)."""

import json
import re
import signal

import pytest

import auditlog
from auditlog import settle
from backends import FakeBackend
from clock import wait_until
from cluster_site import JSON, Site, configmap

POD = "/api/v1/namespaces/default/pods/p"


class Audited:
    """Hub and agent with audit logs, in front of a scripted API server."""

    def __init__(self, world, agent=(), **hub):
        self.world = world
        self.hub_log = str(world.folder / "hub-audit.log")
        self.agent_log = str(world.folder / "agent-audit.log")
        world.start_hub(auditLog=self.hub_log, **hub)
        self.fake = FakeBackend(str(world.folder / "fake"))
        self.site = Site(world, self.fake, "f1", world.folder / "f1",
                         **{"auditLog": self.agent_log, **dict(agent)})

    def settle(self):
        """Every request of ours has ended at both ends."""
        settle(self.world, self.site.agent)

    def both(self, **members):
        """(at the hub, at the agent), complete."""
        return (auditlog.of(auditlog.events(self.hub_log), **members),
                auditlog.of(auditlog.events(self.agent_log), **members))


@pytest.fixture
def audited(world):
    made = Audited(world)
    yield made
    made.fake.close()


def test_audit_a_write_is_received_and_complete_at_both_ends_under_one_id(audited):
    audited.site.api.script(lambda x: x.method == "POST", 
                            lambda x: x.respond(201, {"kind": "x"}))
    answer = audited.site.ask("POST", "/api/v1/namespaces/default/configmaps", [JSON],
                              json.dumps(configmap("a")).encode(), user="alice", groups=["dev"])
    assert answer.status == 201
    auditlog.wait_for(audited.hub_log, lambda found: auditlog.of(found, verb="create"), "logged")
    ids = set()
    for path in (audited.hub_log, audited.agent_log):
        found = [e for e in auditlog.events(path) if e["verb"] == "create"]
        assert [e["stage"] for e in found] == ["RequestReceived", "ResponseComplete"], found
        assert found[0]["auditID"] == found[1]["auditID"]
        ids.add(found[0]["auditID"])
        last = found[1]
        assert last["user"] == {"username": "alice", "groups": ["dev"]}, last
        assert last["objectRef"] == {"resource": "configmaps", "namespace": "default",
                                     "apiVersion": "v1"}, last
        assert last["responseStatus"]["code"] == 201 and last["sourceIPs"] == ["127.0.0.1"], last
        assert auditlog.note(last, "outcome") == "completed", last
        assert auditlog.note(last, "decision") == "allow", last
        assert auditlog.note(last, "cluster") == "f1", last
        assert int(auditlog.note(last, "bytes-in")) > 50, last
        auditlog.check_chain(auditlog.lines(path))
    sent = audited.site.api.seen(lambda x: x.method == "POST")
    assert ids == {x.get("audit-id") for x in sent} and len(sent) == 1


def test_audit_a_watch_begins_and_ends(audited):
    audited.site.api.script(lambda x: x.is_watch, lambda x: (x.start_stream(), x.hold()))
    stream = audited.site.start("GET", "/api/v1/pods?watch=1")
    assert stream.wait_headers(10) == 200 or stream.status == 200
    auditlog.wait_for(audited.hub_log,
                      lambda found: auditlog.of(found, "ResponseStarted", verb="watch"), "begun")
    assert not auditlog.of(auditlog.events(audited.hub_log), verb="watch")
    stream.reset()
    for path in (audited.hub_log, audited.agent_log):
        found = auditlog.wait_for(path, lambda found: auditlog.of(found, verb="watch"), "ended")
        stages = [e["stage"] for e in found if e["verb"] == "watch"]
        assert stages == ["ResponseStarted", "ResponseComplete"], stages
        assert auditlog.note(auditlog.of(found, verb="watch")[0], "outcome") == "completed"


def test_t36_names_cannot_break_a_line(audited):
    """Newlines, escapes, quotes and marks that turn text around, wherever a client can put
    them: each event stays one line of JSON."""
    evil = "a%0Ab%1B%5B2Jc%22%7D%E2%80%AEd"
    audited.site.ask("GET", f"/api/v1/namespaces/default/pods/x?fieldManager={evil}",
                     [("user-agent", 'ua"} \u202e \\ \t{"x":1}'.encode())])
    audited.site.ask("GET", f"/api/v1/namespaces/{evil}/pods")
    audited.site.ask("POST", f"/api/v1/namespaces/default/pods/{evil}/exec?command={evil}")
    audited.settle()
    for path in (audited.hub_log, audited.agent_log):
        raw = auditlog.lines(path)
        for line in raw:
            assert not re.search(rb"[\x00-\x1f\x7f]", line), line
            line.decode()
        auditlog.check_chain(raw)
    hub = auditlog.events(audited.hub_log)
    asked = [e for e in hub if evil in e["requestURI"]]
    assert len({e["auditID"] for e in asked}) == 3, asked
    assert any(e.get("userAgent", "").startswith('ua"} \u202e') for e in asked), asked


KINDS = {
    "read": ("GET", POD, None),
    "list": ("GET", "/api/v1/pods", None),
    "write": ("POST", "/api/v1/namespaces/default/pods", b"{}"),
    "patch": ("PATCH", POD, b"{}"),
    "delete": ("DELETE", POD, None),
    "lost": ("PUT", "/api/v1/namespaces/default/pods/lost", b"{}"),
    "lost-read": ("GET", "/api/v1/namespaces/default/pods/lost", None),
    "refused": ("GET", "/api/v1/namespaces/default/pods/refused", None),
    "bad-path": ("GET", "/api/v1/namespaces/a%2Fb/pods", None),
    "version": ("GET", "/version", None),
    "denied": ("GET", "/api/v1/namespaces/default/secrets/s", None),
}


def ask_mixed(site, n):
    """Requests of many kinds; gives {mark in the query: (status, kind)}."""
    made = {}
    for i in range(n):
        kind = list(KINDS)[i % len(KINDS)]
        method, path, body = KINDS[kind]
        answer = site.ask(method, f"{path}?mark=m{i}m", [JSON] if body else [], body)
        made[f"mark=m{i}m"] = (answer.status, kind)
    return made


def scripted(x):
    if x.path.endswith("/lost"):
        x.abort()
    elif x.path.endswith("/refused"):
        x.fail(404, "NotFound")
    else:
        x.respond(200, {"kind": "x"})


OUTCOMES = {"bad-path": "not-forwarded", "lost": "unknown", "lost-read": "unknown",
            "denied": "not-forwarded"}


def check_joined(site, kind, status, at_hub, at_agent, at_server):
    wanted = OUTCOMES.get(kind, "completed")
    assert at_hub["responseStatus"]["code"] == status, (kind, at_hub)
    assert auditlog.note(at_hub, "outcome") == wanted, (kind, at_hub)
    assert (at_agent is not None) == (kind != "bad-path"), kind
    assert bool(at_server) == (kind not in ("bad-path", "denied")), kind
    for x in at_server:
        assert x.target.decode() == at_agent["requestURI"]
    if at_agent is None:
        return
    assert auditlog.note(at_agent, "outcome") == wanted, (kind, at_agent)
    assert at_agent["responseStatus"]["code"] == status, (kind, at_agent)
    assert at_agent["verb"] == at_hub["verb"], (at_agent, at_hub)
    assert at_agent["user"] == at_hub["user"], (at_agent, at_hub)
    assert at_hub["requestURI"] == site.prefix + at_agent["requestURI"]
    if kind == "denied":
        assert auditlog.note(at_agent, "decision") == "forbid", at_agent
        assert auditlog.note(at_agent, "rule") == "closed:secrets", at_agent


def test_t37_three_logs_are_joined_by_one_id(world):
    """Several hundred requests of all kinds: what the hub logged, what the agent logged and what
    the API server got are the same requests, with the same codes and the right outcome."""
    from backends import write_yaml
    from world import CLOSED

    policy = write_yaml(world.folder / "no-secrets.yaml",
                        {"mode": "read-write", "exec": True,
                         "open": [c for c in CLOSED if c != "secrets"]})
    audited = Audited(world, agent={"policyFile": policy})
    try:
        site = audited.site
        site.api.script(lambda x: x.path != "/readyz", scripted)
        made = ask_mixed(site, 330)
        assert len(made) == 330
        audited.settle()
        hub = auditlog.by_id(auditlog.events(audited.hub_log))
        agent = auditlog.by_id(auditlog.events(audited.agent_log))
        server = {}
        for x in site.relayed():
            if "impersonate-user" in x.names():  # else the agent's own look at its API server
                server.setdefault(x.get("audit-id"), []).append(x)
        ids = {e["requestURI"].partition("?")[2]: i for i, e in hub.items()}
        for mark, (status, kind) in made.items():
            check_joined(site, kind, status, hub[ids[mark]], agent.get(ids[mark]),
                         server.get(ids[mark], []))
        assert set(agent) <= set(hub), "the agent got what the hub did not log"
        assert set(server) <= set(agent), "the API server got what the agent did not log"
        for path in (audited.hub_log, audited.agent_log):
            auditlog.check_chain(auditlog.lines(path))
    finally:
        audited.fake.close()


@pytest.mark.real
def test_t37_the_log_of_a_real_api_server_has_the_same_requests(world, backend):
    """Its audit log, ours at both ends: the same ids, verbs, objects and codes."""
    logs = [str(world.folder / "hub-audit.log"), str(world.folder / "agent-audit.log")]
    world.start_hub(auditLog=logs[0])
    site = Site(world, backend, "r1", world.folder / "r1", auditLog=logs[1])
    name = site.unique("t37")
    base = "/api/v1/namespaces/default/configmaps"
    for i in range(30):
        site.ask("POST", base, [JSON], json.dumps(configmap(f"{name}-{i}")).encode())
        site.ask("GET", f"{base}/{name}-{i}?x={name}")
        site.ask("GET", f"{base}/{name}-none-{i}?x={name}")
        site.ask("DELETE", f"{base}/{name}-{i}")
        site.ask("GET", f"/apis/apps/v1/deployments?limit=1&x={name}")
    settle(world, site.agent)
    hub, agent = (auditlog.by_id(auditlog.events(path)) for path in logs)
    asked = [i for i, e in hub.items() if name in json.dumps(e) or e["verb"] == "create"]
    assert len(asked) == 150
    for audit_id in asked:
        entries = wait_until(lambda: backend.audit_entries(audit_id), 10, "the server's line")
        theirs = [e for e in entries if e["stage"] == "ResponseComplete"]
        assert len(theirs) == 1, entries
        for ours in (hub[audit_id], agent[audit_id]):
            assert ours["verb"] == theirs[0]["verb"], (ours, theirs)
            assert ours["responseStatus"]["code"] == theirs[0]["responseStatus"]["code"]
            assert auditlog.note(ours, "outcome") == "completed", ours
            for member in ("resource", "namespace", "apiGroup", "apiVersion"):
                assert ours["objectRef"].get(member) == theirs[0]["objectRef"].get(member), member
        assert theirs[0]["impersonatedUser"]["username"] == "kuberelay:admin"
        assert agent[audit_id]["user"]["username"] == "admin"


def test_t37_a_client_that_leaves_is_an_unknown_outcome(audited):
    audited.site.api.script(lambda x: x.method == "POST", lambda x: x.hold())
    stream = audited.site.start("POST", "/api/v1/namespaces/default/pods", [JSON])
    audited.site.api.wait_request(lambda x: x.method == "POST")
    stream.reset()
    for path in (audited.hub_log, audited.agent_log):
        found = auditlog.wait_for(path, lambda found: auditlog.of(found, verb="create"), "ended")
        last = auditlog.of(found, verb="create")[0]
        assert auditlog.note(last, "outcome") == "unknown", last
        assert last["responseStatus"]["code"] == 499, last


def test_t37_an_agent_that_is_away_forwards_nothing(audited):
    audited.site.agent.stop()
    audited.world.wait_away("f1")
    answer = audited.site.ask("POST", "/api/v1/namespaces/default/pods", [JSON], b"{}", timeout=30)
    assert answer.status == 503
    found = auditlog.wait_for(audited.hub_log, lambda f: auditlog.of(f, verb="create"), "logged")
    assert auditlog.note(auditlog.of(found, verb="create")[-1], "outcome") == "not-forwarded"


def test_t38_no_credential_is_in_logs_metrics_or_audit(audited):
    """Bearer tokens of clients in each place where a client may put one, and the keys."""
    import base64

    token = "planted-TOKEN-0123456789"
    audited.site.ask("GET", POD, [("authorization", f"Bearer {token}")])
    audited.site.ask("GET", POD, [("authorization", f"Basic {token}")])
    hidden = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    h1 = audited.world.h1()
    try:
        h1.request("GET", audited.site.prefix + "/api/v1/namespaces/default/pods/p/exec?command=id",
                   [("upgrade", "websocket"), ("connection", "upgrade"),
                    ("sec-websocket-version", "13"), ("sec-websocket-key", "a" * 22 + "=="),
                    ("sec-websocket-protocol",
                     f"base64url.bearer.authorization.k8s.io.{hidden}, v5.channel.k8s.io")])
    except (OSError, AttributeError, ValueError):
        pass
    body = b'{"data":{"password":"' + token.encode() + b'"}}'
    audited.site.ask("POST", "/api/v1/namespaces/default/configmaps", [JSON], body)
    audited.settle()
    planted = [token.encode(), hidden.encode()]
    for pair in (audited.world.hub_pair, audited.world.user("admin"), audited.fake.agent):
        planted.append(open(pair.key, "rb").read().split(b"\n")[1])
    from world import admin_get

    places = {"hub audit": open(audited.hub_log, "rb").read(),
              "agent audit": open(audited.agent_log, "rb").read()}
    for process in (audited.world.hub, audited.site.agent):
        places[process.name + " log"] = "\n".join(process.grep("")).encode()
        places[process.name + " metrics"] = admin_get(process.admin, "/metrics")[1].encode()
    for place, text in places.items():
        assert text, place
        for secret in planted:
            assert secret not in text, f"{secret!r} is in the {place}"


def test_audit_rotates_by_size_and_the_chain_goes_on(world):
    audited = Audited(world, auditMaxSize=8192, auditKeep=50)
    try:
        for _ in range(60):
            audited.site.ask("GET", POD)
        audited.settle()
        files = sorted(world.folder.glob("hub-audit.log.*"),
                       key=lambda p: -int(p.suffix[1:]))
        assert len(files) >= 3, files
        raw = auditlog.lines(*files, audited.hub_log)
        assert auditlog.check_chain(raw) >= 60
        assert all(p.stat().st_size <= 8192 for p in files)
    finally:
        audited.fake.close()


def test_audit_sighup_opens_the_file_anew(audited):
    import os

    audited.site.ask("GET", POD)
    audited.settle()
    old = audited.hub_log + ".old"
    os.rename(audited.hub_log, old)
    audited.world.hub.child.send_signal(signal.SIGHUP)
    wait_until(lambda: os.path.exists(audited.hub_log), 10, "a new file")
    audited.site.ask("GET", POD)
    audited.settle()
    assert auditlog.check_chain(auditlog.lines(old, audited.hub_log)) >= 2
    assert auditlog.lines(audited.hub_log)


def test_audit_a_hub_that_comes_again_goes_on_with_the_chain(audited):
    audited.site.ask("GET", POD)
    audited.settle()
    audited.world.hub.kill()
    with open(audited.hub_log, "ab") as file:
        file.write(b'{"half')  # of a crash
    audited.world.restart_hub(audited.world.hub, auditLog=audited.hub_log)
    audited.world.wait_cluster("f1")
    raw = auditlog.lines(audited.hub_log)
    torn = raw.index(b'{"half')
    auditlog.check_chain(raw[:torn])
    assert auditlog.check_chain(raw[torn + 1:], start=raw[torn]) > 0
