# SPDX-License-Identifier: Apache-2.0
"""Bearer tokens at the API port: the token file, ID tokens of issuers, and what is not one."""

import base64
import json
import shutil
import socket
import tempfile
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

import backends
import clock
from backends import write_yaml
from clock import scaled, wait_until
from cluster_site import Site
from h2client import ConnectionLost
from procs import run
from test_security_tls import cpu_ms
from testpki import new_ca
from tokens import Issuer, KeyServer, b64, bearer
from world import World

PODS = "/api/v1/namespaces/d/pods"


class Tokens:
    """A hub that takes tokens, before a scripted API server."""

    def __init__(self, world):
        self.world, self.folder = world, Path(world.folder)
        self.issuer = Issuer(self.folder)
        self.other = Issuer(self.folder, "https://other.example.test", "other")
        self.file = self.folder / "authentication.yaml"
        self.table = self.folder / "tokens.csv"
        self.lab('lab-token-1,lab,u1,"ops,dev"\nlab-token-2,solo,u2\n')
        self.configure([self.issuer.entry(), self.other.entry(
            usernamePrefix="other:", groupsPrefix="other:", algorithms=["ES256"])])
        world.start_hub(authenticationFile=str(self.file), tokenFile=str(self.table))
        self.fake = backends.FakeBackend(str(self.folder / "fake"))
        self.site = Site(world, self.fake, "f1", self.folder / "f1")
        self.api = self.fake.api
        self.api.script(PODS, lambda x: x.respond(200, {"kind": "PodList", "items": []}))

    def configure(self, issuers):
        write_yaml(self.file, {"issuers": issuers})

    def lab(self, text):
        self.table.write_text(text)

    def ask(self, token, path=PODS):
        with self.world.client(None) as client:
            return client.get(self.site.prefix + path, bearer(token))

    def identity(self, token):
        before = len(self.api.seen(lambda x: x.path == PODS))
        answer = self.ask(token)
        assert answer.status == 200, answer
        x = self.api.seen(lambda x: x.path == PODS)[before]
        assert not x.all("authorization") or token not in x.all("authorization")[0]
        return x.all("impersonate-user"), x.all("impersonate-group")


@pytest.fixture(scope="module")
def tokens(binaries):
    folder = tempfile.mkdtemp(prefix="kr-t-")
    world = World(Path(folder) / "w", binaries)
    made = Tokens(world)
    yield made
    made.fake.close()
    world.close()
    shutil.rmtree(folder, ignore_errors=True)


def test_token_file_names_user_and_groups(tokens):
    assert tokens.identity("lab-token-1") == (["kuberelay:lab"],
                                              ["kuberelay:ops", "kuberelay:dev"])
    assert tokens.identity("lab-token-2") == (["kuberelay:solo"], [])


@pytest.mark.parametrize("alg", ["RS256", "ES256"])
def test_id_token_names_user_and_groups_with_prefixes(tokens, alg):
    got = tokens.identity(tokens.issuer.token("alice", alg=alg))
    assert got == (["kuberelay:acme:alice"], ["kuberelay:acme:dev"])


def test_certificate_comes_before_token(tokens):
    with tokens.world.client("carol") as client:
        assert client.get(tokens.site.prefix + PODS, bearer("lab-token-1")).status == 200
    assert tokens.api.seen(lambda x: x.path == PODS)[-1].all("impersonate-user") == [
        "kuberelay:carol"]


@pytest.mark.parametrize("headers", [
    bearer("nobody-knows-this"), [("authorization", "Basic YTpi")], [("authorization", "Bearer")],
    bearer("lab-token-1") + bearer("lab-token-1"), [("authorization", "Bearer a b")]])
def test_bad_credential_is_401_and_nobody(tokens, headers):
    with tokens.world.client(None) as client:
        answer = client.get(tokens.site.prefix + PODS, headers)
    assert answer.status == 401 and answer.json()["reason"] == "Unauthorized"
    assert answer.get("www-authenticate", "").startswith("Bearer")


def attacks(issuer, other, bait):
    public = issuer.rsa.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    good = issuer.token()
    head, claims, signature = good.split(".")
    own = {"kty": "RSA", "kid": "r1", "n": "AQAB", "e": "AQAB"}
    deep = ("[" * 10000 + "]" * 10000).encode()
    return {
        "none": f"{b64({'alg': 'none', 'kid': 'r1'})}.{claims}.",
        "none with a signature": f"{b64({'alg': 'none', 'kid': 'r1'})}.{claims}.{signature}",
        "HS256 with the public key": issuer.hs256(public),
        "jku": issuer.token(header={"kid": "x", "jku": f"https://127.0.0.1:{bait}/keys"}),
        "x5u": issuer.token(header={"kid": "x", "x5u": f"https://127.0.0.1:{bait}/keys"}),
        "jwk": issuer.token(header={"kid": "x", "jwk": own}),
        "kid traversal": issuer.token(header={"kid": "../../../../dev/null"}),
        "no kid": issuer.token(header={"kid": None}),
        "crit": issuer.token(header={"crit": ["exp"]}),
        "typ": issuer.token(header={"typ": "at+jwt"}),
        "RS256 with the EC key": issuer.token(header={"kid": "e1"}),
        "ES256 with the RSA key": issuer.token(alg="ES256", header={"kid": "r1"}),
        "an algorithm that this issuer may not use": other.token(),
        "wrong aud": issuer.token(aud="another"),
        "no aud": issuer.token(aud=None),
        "wrong iss": issuer.token(iss="https://evil.example.test"),
        "iss with a slash": issuer.token(iss=issuer.url + "/"),
        "the keys of another issuer": other.token(iss=issuer.url, alg="ES256"),
        "no exp": issuer.token(exp=None),
        "exp is a text": issuer.token(exp="9999999999"),
        "exp is huge": issuer.token(exp=1 << 62),
        "expired": issuer.token(life=-1),
        "not yet": issuer.token(nbf=int(time.time()) + 120),
        "from the future": issuer.token(iat=int(time.time()) + 120),
        "no user": issuer.token(user=""),
        "user is a number": issuer.token(sub=7),
        "a line break in the user": issuer.token(user="a\r\nimpersonate-user: root"),
        "groups of numbers": issuer.token(groups=[1, 2]),
        "another signature": f"{head}.{claims}.{b64(b'x' * 256)}",
        "other claims": f"{head}.{b64(issuer.claims('root'))}.{signature}",
        "padding": good + "==",
        "four parts": good + ".e30",
        "beyond 8 KiB": issuer.token(pad="x" * 6100),
        "deep JSON": f"{head}.{b64(deep)[:4000]}.{signature}",
    }


@pytest.mark.weighed
def test_T27_no_forged_token_is_believed(tokens):
    before = tokens.api.seen(lambda x: x.path == PODS)
    with socket.create_server(("127.0.0.1", 0)) as bait:
        forged = attacks(tokens.issuer, tokens.other, bait.getsockname()[1])
        for name, token in forged.items():
            spent = cpu_ms(tokens.world.hub)
            answer = tokens.ask(token)
            spent = cpu_ms(tokens.world.hub) - spent
            assert answer.status == 401, (name, answer)
            assert token not in answer.body.decode()
            # With its connection; a limit that only what grows with the token can break.
            assert spent < 100 * clock.SLOWNESS, (name, spent)
        bait.settimeout(1)
        with pytest.raises(TimeoutError):  # nobody looks where a token says that its keys are
            bait.accept()
    for size in (56 << 10, 1 << 20):  # beyond any header
        with tokens.world.h1(None) as client:
            try:
                client.head("GET", tokens.site.prefix + PODS, bearer("e30." * (size // 4)))
                assert client.read_head()[0] in (401, 431)
            except (ConnectionLost, OSError):
                assert size == 1 << 20
    assert tokens.api.seen(lambda x: x.path == PODS) == before
    assert tokens.identity(tokens.issuer.token("bob"))[0] == ["kuberelay:acme:bob"]


def test_other_issuer_with_its_own_prefix(tokens):
    got = tokens.identity(tokens.other.token("alice", alg="ES256", groups=[]))
    assert got == (["kuberelay:other:alice"], [])


def test_websocket_token_is_taken_and_removed(tokens):
    seen = []

    def script(x):
        seen.append(x.all("sec-websocket-protocol"))
        x.raw(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
              b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
              b"Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n")
    path = PODS + "/p/exec?command=id"
    tokens.api.script(PODS + "/p/exec", script)
    item = base64.urlsafe_b64encode(b"lab-token-1").rstrip(b"=").decode()
    headers = [("Connection", "Upgrade"), ("Upgrade", "websocket"),
               ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]

    def ask(protocols):
        with tokens.world.h1(None) as client:
            client.head("GET", tokens.site.prefix + path,
                        headers + [("Sec-WebSocket-Protocol", protocols)])
            return client.read_head()[0]
    token = f"base64url.bearer.authorization.k8s.io.{item}"
    assert ask(f"{token}, v5.channel.k8s.io") == 101
    assert seen == [["v5.channel.k8s.io"]]
    assert ask(token) == 401, "no other protocol beside it"
    assert ask(f"{token}, {token}, v5.channel.k8s.io") == 401
    assert ask("base64url.bearer.authorization.k8s.io.!!!!, v5.channel.k8s.io") == 401


def watch(tokens, client, token):
    stream = client.start("GET", tokens.site.prefix + PODS + "?watch=true", bearer(token))
    stream.wait_headers()
    assert stream.status == 200
    return stream


def hold_watch(x):
    if x.is_watch:
        x.start_stream()
        x.event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "5"}})
        x.hold()
    else:
        x.respond(200, {"kind": "PodList", "items": []})


def test_T28_watch_ends_when_its_token_expires(tokens):
    tokens.api.script(PODS, hold_watch)
    with tokens.world.client(None) as client:
        begin = time.monotonic()
        token = tokens.issuer.token(life=4)
        stream = watch(tokens, client, token)
        stream.wait_finish(scaled(60))
        assert 2 < time.monotonic() - begin < 60
        assert client.get(tokens.site.prefix + PODS, bearer(token)).status == 401


def test_T28_watch_ends_when_its_token_leaves_the_file(tokens):
    tokens.api.script(PODS, hold_watch)
    with tokens.world.client(None) as client:
        kept, gone = watch(tokens, client, "lab-token-1"), watch(tokens, client, "lab-token-2")
        tokens.lab('lab-token-1,lab,u1,"ops,dev"\n')
        gone.wait_finish(scaled(30))
        assert client.get(tokens.site.prefix + PODS, bearer("lab-token-2")).status == 401
        assert not kept.ended
        assert client.get(tokens.site.prefix + PODS, bearer("lab-token-1")).status == 200


def test_key_that_is_withdrawn_is_not_believed_any_more(tokens):
    token = tokens.issuer.token("dora")
    assert tokens.ask(token).status == 200
    tokens.issuer.publish([k for k in tokens.issuer.keys() if k["kid"] != "r1"])
    wait_until(lambda: tokens.ask(token).status == 401, 30, "the key is gone")
    tokens.issuer.publish()
    wait_until(lambda: tokens.ask(token).status == 200, 30, "the key is back")


def test_keys_are_fetched_in_advance_from_a_pinned_server(world):
    issuer = Issuer(world.folder)
    pair = world.issue_hub("keys-server")
    server = KeyServer(pair, lambda path: (200, issuer.file.read_bytes())
                       if path == "/keys?v=1" else (404, b""))
    foreign = KeyServer(pair, lambda path: (200, issuer.file.read_bytes()))
    other_ca = new_ca(world.folder, "foreign")
    file = write_yaml(world.folder / "authn.yaml", {"issuers": [
        {**issuer.entry(), "jwksFile": None, "jwksUrl": f"https://127.0.0.1:{server.port}/keys?v=1",
         "caFile": world.ca},
        {"url": "https://unpinned.example.test", "audiences": ["kuberelay"],
         "jwksUrl": f"https://localhost:{foreign.port}/", "caFile": other_ca.crt}]})
    text = Path(file).read_text().replace("  jwksFile: null\n", "")
    Path(file).write_text(text)
    hub = world.start_hub(authenticationFile=file)
    hub.wait_line(r"event=keys-fetched\b.*login.example.test")
    hub.wait_line(r"event=keys-not-fetched\b.*unpinned")

    def status(token):
        with world.client(None) as client:
            return client.get("/clusters/x/api/v1/pods", bearer(token)).status
    assert status(issuer.token()) == 403, "known, but the cluster is not"
    assert status(issuer.token(header={"kid": "unknown"})) == 401
    assert status(issuer.token(iss="https://unpinned.example.test")) == 401
    assert server.asked == 1 and foreign.asked == 0
    server.close()
    foreign.close()


@pytest.mark.parametrize("line", [
    "t,system:admin,u", 't,a,u,"system:masters"', "t,a", "t,,u", ",a,u", 't,a,u,"x', "t,a,u,b,c",
    "t,a,u\nt,b,u"])
def test_token_file_with_a_fault_is_refused(world, line):
    table = world.folder / "t.csv"
    table.write_text(line + "\n")
    config = write_yaml(world.folder / "h.yaml", world.hub_config(tokenFile=str(table)))
    code, _, err = run([world.binaries["kuberelay-hub"], "--check-config", "--config", config], 20)
    assert code != 0 and b"t.csv:" in err


@pytest.mark.parametrize("entry", [
    {"url": "http://x"}, {"algorithms": ["HS256"]}, {"algorithms": ["none"]}, {"audiences": None},
    {"jwksUrl": "https://x/keys"}, {"jwksFile": None}, {"colour": "red"}])
def test_authentication_file_with_a_fault_is_refused(world, entry):
    issuer = Issuer(world.folder)
    content = {k: v for k, v in {**issuer.entry(), **entry}.items() if v is not None}
    file = write_yaml(world.folder / "a.yaml", {"issuers": [content]})
    config = write_yaml(world.folder / "h.yaml", world.hub_config(authenticationFile=file))
    code, _, err = run([world.binaries["kuberelay-hub"], "--check-config", "--config", config], 20)
    assert code != 0 and b"a.yaml:" in err, json.dumps(content)
