# SPDX-License-Identifier: Apache-2.0
"""Certificates that must be refused, at both ends, each with a log line that says why."""

import datetime
import re
import socket
import ssl

import pytest

import testpki
from backends import FakeBackend
from clock import scaled
from h2client import ConnectionLost, H2Client
from testpki import BOTH, CLIENT, DAY, SERVER, issue

AGENT = "spiffe://example.test/cluster/f1/agent/a"
HUB = "spiffe://example.test/hub/hub-1"
HOUR = datetime.timedelta(hours=1)


def bad_agents(root, foreign, folder):
    """name: (pair, a word that the log line must contain)."""
    def make(stem, ca=root, **kw):
        kw.setdefault("uris", [AGENT])
        return issue(ca, folder, "a-" + stem, **kw)
    return {
        "expired": (make("expired", starts=-2 * DAY, lasts=-HOUR), "expired"),
        "not yet valid": (make("future", starts=DAY, lasts=2 * DAY), "not yet valid"),
        "foreign root": (make("foreign", ca=foreign), "certificate|issuer|verify"),
        "role user": (make("user", uris=["spiffe://example.test/user/bob"]), "role|agent"),
        "role hub": (make("hub", uris=[HUB], usage=BOTH), "role|agent"),
        "foreign domain": (make("domain", uris=[AGENT.replace("example.test", "other.test")]),
                           "domain"),
        "two URIs": (make("two", uris=[AGENT, AGENT.replace("f1", "f2")]), "URI|SAN"),
        "no URI": (make("none", uris=[], dns=["f1"]), "URI|SAN"),
        "no EKU": (make("eku", usage=None), "key usage|EKU|purpose|usage"),
        "server EKU": (make("server", usage=SERVER), "key usage|EKU|purpose|usage"),
        "bad name": (make("name", uris=[AGENT.replace("f1", "F_1")]), "URI|name|spiffe|identity"),
        "slashes": (make("slash", uris=[AGENT + "/x"]), "URI|spiffe|identity"),
        "encoded": (make("encoded", uris=[AGENT.replace("f1", "f%31")]), "URI|spiffe|identity"),
    }


KINDS = ["expired", "not yet valid", "foreign root", "role user", "role hub", "foreign domain",
         "two URIs", "no URI", "no EKU", "server EKU", "bad name", "slashes", "encoded"]


@pytest.fixture(scope="module")
def agents(session_world, workdir):
    folder = workdir / "bad"
    folder.mkdir()
    foreign = testpki.new_ca(folder, "foreign", "foreign root")
    return bad_agents(session_world.root(), foreign, folder)


def knock(address, context, alpn="kuberelay/1"):
    """Dials as an agent would; gives what came: None for a refusal, else bytes."""
    with socket.create_connection(address, timeout=scaled(5)) as raw:
        try:
            with context(alpn).wrap_socket(raw, server_hostname="127.0.0.1") as tls:
                return tls.recv(100) or None
        except (ssl.SSLError, ConnectionResetError, BrokenPipeError):
            return None


@pytest.mark.parametrize("kind", KINDS)
def test_certificates_the_hub_refuses_an_agent_and_says_why(session_world, agents, kind):
    hub = session_world.hub
    pair, why = agents[kind]
    mark = hub.mark()
    assert knock(hub.agent, testpki.client_context(session_world.ca, pair)) is None
    line = hub.wait_line(rf"(?i)level=(warn|info|error|notice).*({why})", 5, after=mark)
    assert "127.0.0.1" in line.string  # who it was


def test_certificates_a_good_agent_is_greeted(session_world):
    """So that the refusals above mean something."""
    pair = session_world.issue_agent("greeted")
    got = knock(session_world.hub.agent, testpki.client_context(session_world.ca, pair))
    assert got and got.startswith(b"PRI * HTTP/2.0")  # the hub is the HTTP/2 client


def test_certificates_no_certificate_on_the_agent_port(session_world):
    assert knock(session_world.hub.agent, testpki.client_context(session_world.ca)) is None


@pytest.mark.parametrize("alpn", [None, "http/1.1", "h2", "kuberelay/2", "kuberelay/10"])
def test_certificates_other_protocols_on_the_agent_port(session_world, alpn):
    pair = session_world.issue_agent("alpn" + re.sub(r"\W", "", str(alpn)).lower())
    assert knock(session_world.hub.agent,
                 testpki.client_context(session_world.ca, pair), alpn) is None


def test_certificates_tls_1_2_on_the_agent_port(session_world):
    pair = session_world.issue_agent("oldtls")

    def context(alpn):
        made = testpki.client_context(session_world.ca, pair)(alpn)
        made.maximum_version = ssl.TLSVersion.TLSv1_2
        return made
    assert knock(session_world.hub.agent, context) is None
    assert knock(session_world.hub.api, context, "h2") is None


def test_certificates_no_session_is_resumed(session_world):
    """A resumed session would skip the judgement of the certificate."""
    context = session_world.context()("h2")
    with socket.create_connection(session_world.hub.api, timeout=scaled(5)) as raw:
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as tls:
            tls.recv(100)
            assert tls.session is None or not tls.session.has_ticket
            session = tls.session
    if session is not None:
        with socket.create_connection(session_world.hub.api, timeout=scaled(5)) as raw:
            with context.wrap_socket(raw, server_hostname="127.0.0.1", session=session) as tls:
                assert not tls.session_reused


BAD_USERS = {
    "expired": dict(common="bob", starts=-2 * DAY, lasts=-HOUR),
    "agent": dict(uris=[AGENT]), "hub": dict(uris=[HUB]),
    "two URIs": dict(uris=["spiffe://example.test/user/a", "spiffe://example.test/user/b"]),
    "server EKU": dict(common="bob", usage=SERVER), "no EKU": dict(common="bob", usage=None),
    "system": dict(common="system:admin"),
    "system group": dict(common="bob", organizations=["system:masters"]),
}


@pytest.mark.parametrize("kind", BAD_USERS)
def test_certificates_the_hub_refuses_a_user(fake, kind):
    fake.api.script("/api/v1/x", lambda x: x.respond(200, {}))
    pair = issue(fake.world.root(), fake.folder, "u-" + kind.replace(" ", ""), **BAD_USERS[kind])
    try:
        with H2Client(fake.world.hub.api, testpki.client_context(fake.world.ca, pair)) as client:
            answer = client.get(fake.prefix + "/api/v1/x")
    except (OSError, ConnectionLost):
        answer = None
    assert answer is None or answer.status in (401, 403), answer
    assert not fake.api.seen(lambda x: x.path == "/api/v1/x")


def test_certificates_a_foreign_user_is_refused(fake):
    foreign = testpki.new_ca(fake.folder, "foreign-user-ca", "foreign")
    pair = issue(foreign, fake.folder, "u-foreign", common="admin")
    fake.api.script("/api/v1/x", lambda x: x.respond(200, {}))
    try:
        with H2Client(fake.world.hub.api, testpki.client_context(fake.world.ca, pair)) as client:
            answer = client.get(fake.prefix + "/api/v1/x")
    except (OSError, ConnectionLost):
        answer = None
    assert answer is None or answer.status == 401
    assert not fake.api.seen(lambda x: x.path == "/api/v1/x")


BAD_HUBS = {
    "expired": (dict(starts=-2 * DAY, lasts=-HOUR), "expired"),
    "foreign root": (dict(foreign=True), "certificate|issuer|verify"),
    "role agent": (dict(uris=[AGENT]), "role|hub"),
    "role user": (dict(uris=["spiffe://example.test/user/x"]), "role|hub"),
    "two URIs": (dict(uris=[HUB, HUB + "x"]), "URI|SAN"),
    "no URI": (dict(uris=[]), "URI|SAN"),
    "wrong host": (dict(ips=["192.0.2.7"]), "host|address|name|IP"),
    "client EKU": (dict(usage=CLIENT), "usage|EKU|purpose"),
    "no EKU": (dict(usage=None), "usage|EKU|purpose"),
}


@pytest.fixture(scope="module")
def hub_cases(binaries):
    """One agent per bad hub, all started at once: each retries on its own."""
    import shutil
    import tempfile
    from pathlib import Path
    from world import World

    folder = Path(tempfile.mkdtemp(prefix="kr-h-"))
    world = World(folder / "w", binaries)
    fake = FakeBackend(str(folder / "fake"))
    config = fake.kubeconfig(folder / "kc")
    foreign = testpki.new_ca(folder, "foreign", "foreign root")
    cases = {}
    for number, (kind, (fields, why)) in enumerate(BAD_HUBS.items()):
        fields = dict(fields)
        ca = foreign if fields.pop("foreign", False) else world.root()
        pair = issue(ca, folder, f"hub{number}", **{
            "uris": [HUB], "ips": ["127.0.0.1"], "dns": ["localhost"], "usage": BOTH, **fields})
        listener = BadHub(pair, world.ca)
        agent = world.start_agent(f"c{number}", config, wait=False, hubs=[listener.address])
        cases[kind] = (agent, listener, why)
    yield cases
    for _, listener, _ in cases.values():
        listener.close()
    world.close()
    fake.close()
    shutil.rmtree(folder, ignore_errors=True)


class BadHub:
    """A TLS listener that looks like a hub but for its certificate."""

    def __init__(self, pair, ca):
        import threading

        self.context = testpki.server_context(pair, ca)
        self.context.set_alpn_protocols(["kuberelay/1"])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.dials, self.spoken = 0, b""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            self.dials += 1
            raw.settimeout(scaled(5))
            try:
                with self.context.wrap_socket(raw, server_side=True) as tls:
                    self.spoken += tls.recv(1000)
            except OSError:
                pass
            finally:
                raw.close()

    def close(self):
        self.listener.close()


@pytest.mark.parametrize("kind", BAD_HUBS)
def test_certificates_the_agent_refuses_a_hub_and_says_why(hub_cases, kind):
    agent, listener, why = hub_cases[kind]
    agent.wait_line(rf"(?i)level=(warn|error|info).*({why})", 15)
    assert agent.alive
    assert listener.spoken == b"", "the agent spoke to a hub that it must not trust"
