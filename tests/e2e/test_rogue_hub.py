# SPDX-License-Identifier: Apache-2.0
"""T30: a hub that skips all its own checks gets nothing past an agent's policy, and the agent has
each attempt in its own audit log."""

import pytest

import auditlog
import testpki
from backends import FakeBackend, write_yaml
from clock import wait_until
from roguehub import RogueHub, field, request_header

OWN = "kuberelay"


class Edge:
    """An agent that dialled a hub of ours, in front of a scripted API server."""

    def __init__(self, world, policy, **more):
        self.hub = RogueHub(testpki.server_context(world.hub_pair, world.ca))
        self.fake = FakeBackend(str(world.folder / "fake"))
        self.fake.api.script(lambda x: True, lambda x: x.respond(200, {"kind": "x"}))
        self.log = str(world.folder / "edge-audit.log")
        kubeconfig = self.fake.kubeconfig(str(world.folder / "edge.kubeconfig"))
        config = {"policyFile": write_yaml(world.folder / "policy.yaml", policy) if policy else None,
                  "auditLog": self.log, "hubName": "localhost", "lanes": 1, **more}
        self.agent = world.start_agent("edge", kubeconfig, wait=False, hubs=[self.hub.address],
                                       **config)
        self.hub.wait_tunnel()

    def reached(self):
        """What the hub got to the API server; the agent's own look is not that."""
        return self.fake.api.seen(lambda x: "impersonate-user" in x.names() or
                                  x.get("audit-id"))

    def line(self, audit_id):
        found = auditlog.wait_for(self.log, lambda f: [e for e in f if e["auditID"] == audit_id],
                                  f"a line for {audit_id}")
        return [e for e in found if e["auditID"] == audit_id][-1]

    def close(self):
        self.hub.close()
        self.fake.close()


SAR = "/apis/authentication.k8s.io/v1/tokenreviews"
READ_ONLY = [  # (method, path, why the line says it)
    ("GET", "/api/v1/secrets", "closed:secrets"),
    ("GET", "/api/v1/namespaces/default/secrets/s", "closed:secrets"),
    ("GET", "/api/v1/namespaces/default/secrets?watch=1", "closed:secrets"),
    ("GET", "/api/v1/watch/secrets", "closed:secrets"),
    ("GET", f"/api/v1/namespaces/{OWN}/pods", "closed:own-namespace"),
    ("GET", f"/api/v1/namespaces/{OWN}/configmaps/c", "closed:own-namespace"),
    ("GET", f"/api/v1/namespaces/{OWN}/pods/agent/log", "closed:own-namespace"),
    ("POST", "/api/v1/namespaces/default/serviceaccounts/sa/token", None),
    ("POST", SAR, None),
    ("POST", "/api/v1/namespaces/default/pods", "mode"),
    ("PUT", "/api/v1/namespaces/default/pods/p", "mode"),
    ("PATCH", "/api/v1/namespaces/default/pods/p", "mode"),
    ("DELETE", "/api/v1/namespaces/default/pods/p", "mode"),
    ("DELETE", "/api/v1/namespaces/default/pods", "mode"),
    ("POST", "/api/v1/namespaces/default/pods/p/exec?command=id", None),
    ("GET", "/api/v1/namespaces/default/pods/p/exec?command=id", None),
    ("GET", "/api/v1/namespaces/default/pods/p/attach", None),
    ("GET", "/api/v1/namespaces/default/pods/p/portforward", None),
    ("GET", "/api/v1/nodes/n/proxy/pods", "closed:nodes/proxy"),
    ("GET", "/api/v1/namespaces/default/services/s/proxy/", "closed:services/proxy"),
    ("PATCH", "/api/v1/namespaces/default/pods/p/ephemeralcontainers", None),
]


@pytest.fixture
def edge(world):
    made = Edge(world, {"mode": "read-only", "ownNamespace": OWN})
    yield made
    made.close()


def ask(edge, method, path, wanted, **more):
    audit_id = f"00000000-0000-4000-8000-{ask.count:012d}"
    ask.count += 1
    body = b"{}" if method in ("POST", "PUT", "PATCH") else None
    answer = edge.hub.ask(method, path, body=body, audit_id=audit_id, **more)
    assert answer.status == wanted, (method, path, answer.status, answer.body)
    line = edge.line(audit_id)
    assert line["responseStatus"]["code"] == wanted, line
    assert auditlog.note(line, "outcome") == "not-forwarded", line
    return line


ask.count = 1


def test_t30_a_read_only_edge_refuses_all_that_it_must(edge):
    assert edge.hub.ask("GET", "/api/v1/namespaces/default/pods").status == 200
    before = len(edge.reached())
    assert before == 1
    for method, path, rule in READ_ONLY:
        line = ask(edge, method, path, 403, groups=["system-like"])
        assert auditlog.note(line, "decision") == "forbid", line
        assert rule is None or auditlog.note(line, "rule") == rule, (path, line)
        assert line["requestURI"] == path and line["user"]["username"] == "admin", line
    assert len(edge.reached()) == before, "something got past"
    auditlog.check_chain(auditlog.lines(edge.log))


def test_t30_without_a_policy_file_the_edge_is_read_only(world):
    edge = Edge(world, None)
    ask(edge, "POST", "/api/v1/namespaces/default/pods", 403)
    ask(edge, "GET", "/api/v1/secrets", 403)
    ask(edge, "GET", "/api/v1/namespaces/default/pods/p/exec?command=id", 403)
    assert edge.reached() == []
    edge.close()


def test_t30_no_identity_of_the_system_can_be_made(world):
    """Whatever the hub says, with an empty prefix as well."""
    edge = Edge(world, {"mode": "read-write", "exec": True}, userPrefix="")
    for who in ({"user": "system:admin"}, {"user": "alice", "groups": ["system:masters"]},
                {"user": "alice", "groups": ["dev", " system:masters"]},
                {"user": " system:admin"}, {"user": "system:serviceaccount:kube-system:x"}):
        line = ask(edge, "GET", "/api/v1/pods", 403, **who)
        assert auditlog.note(line, "decision") == "forbid", line
    ask(edge, "GET", "/api/v1/pods", 400, user="")
    assert edge.reached() == []
    edge.close()


PATHS = ["/api/v1/namespaces/default%2Fsecrets", "//api/v1/secrets", "/api/v1/../v1/secrets",
         "/api/v1/namespaces/default/pods/%2e%2e/secrets", "/api/v1/./secrets",
         "/api/v1/namespaces/a%5Cb/pods", "/api/v1/namespaces/a%00/pods", "api/v1/secrets", "*",
         "/api/v1/secrets#x", "http://other/api/v1/secrets", "/api/v1/%zz/secrets"]


def test_t30_paths_that_two_readers_read_differently_are_refused(world):
    edge = Edge(world, {"mode": "read-write", "exec": True})
    for path in PATHS:
        answer = edge.hub.ask("GET", path)
        assert answer.reset is not None or answer.status in (400, 403), (path, answer.status)
    for path in ("/api/v1/%73ecrets", "/api/v1/namespaces/default/%73%65crets/x"):
        ask(edge, "GET", path, 403)
    assert edge.reached() == []
    edge.close()


def test_t30_headers_that_are_no_request_of_a_hub_are_refused(world):
    edge = Edge(world, {"mode": "read-write", "exec": True})
    good = request_header("admin")
    for header in ("", "!!!", "AAAA", [good, good], [good, request_header("bob")]):
        ask(edge, "GET", "/api/v1/pods", 400, header=header)
    for method in ("TRACE", "OPTIONS", "BREW"):
        answer = edge.hub.ask(method, "/api/v1/pods")
        assert answer.reset is not None or answer.status == 400, method
    ask(edge, "POST", "/api/v1/namespaces/default/pods", 400,
        header=request_header("admin", raw=field(10, field(1, 7))))
    assert edge.reached() == []
    edge.close()


def test_t30_the_hub_cannot_give_itself_credentials(edge):
    """Authorization and Impersonate-* of a hub do not reach the API server: the agent writes its
    own."""
    answer = edge.hub.ask("GET", "/api/v1/namespaces/default/pods", [
        ("authorization", "Bearer stolen"), ("impersonate-user", "system:admin"),
        ("impersonate-group", "system:masters"), ("impersonate-extra-x", "y"),
        ("x-remote-user", "system:admin"), ("x-remote-group", "system:masters"),
        ("cookie", "a=b")], user="alice", groups=["dev"])
    assert answer.status == 200
    x = edge.reached()[0]
    assert x.all("impersonate-user") == ["kuberelay:alice"]
    assert x.all("impersonate-group") == ["kuberelay:dev"]
    for name in ("authorization", "x-remote-user", "x-remote-group", "impersonate-extra-x",
                 "cookie"):
        assert x.all(name) == [], name


def test_t30_upgrades_are_judged_as_what_they_are(edge):
    """CONNECT with a method inside: exec, and a method that does not fit."""
    for method in ("GET", "POST"):
        answer = edge.hub.ask(
            "CONNECT", "/api/v1/namespaces/default/pods/p/exec?command=id", protocol="websocket",
            header=request_header("admin", method=method, upgrade="websocket"))
        assert answer.status == 403, answer.body
    answer = edge.hub.ask("CONNECT", "/api/v1/pods?watch=1", protocol="h2c",
                          header=request_header("admin", method="GET", upgrade="h2c"))
    assert answer.status == 400
    assert edge.reached() == []
    wait_until(lambda: len(auditlog.of(auditlog.events(edge.log))) >= 3, 10, "logged")
