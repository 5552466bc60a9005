# SPDX-License-Identifier: Apache-2.0
"""Field cases about identity, paths and selectors."""

import os
import time

import pytest

import kubectl
import testpki
from backends import kubeconfig_of, write_yaml
from clock import wait_until
from oracle import comparable

SECRETS = "/api/v1/namespaces/d/secrets"


def echo_ok(x):
    x.respond(200, {"kind": "SecretList", "items": []})


def assert_alice_or_refused(fake, status):
    seen = fake.api.seen(lambda x: x.path == SECRETS)
    if status >= 400:
        assert not seen
        return
    for x in seen:
        assert x.all("impersonate-user") == ["kuberelay:alice"]
        assert all(g.startswith("kuberelay:") or g == "system:authenticated"
                   for g in x.all("impersonate-group"))
        assert not x.all("x-remote-user") and not x.all("x-remote-group")


@pytest.mark.parametrize("headers", [
    [("Connection", "close, Impersonate-User, Impersonate-Group, X-Remote-User, X-Remote-Group, "
                    "Authorization, Content-Length")],
    [("Connection", "Impersonate-User"), ("Connection", "Impersonate-Group, kuberelay-request-bin")],
    [("TE", "Impersonate-User, trailers"), ("Connection", "TE, Impersonate-User")],
    [("connection", "KubeRelay-Request-Bin, Host")],
])
def test_field_F010_connection_does_not_strip_the_identity(fake, headers):
    fake.api.script(SECRETS, echo_ok)
    with fake.world.h1("alice") as client:
        answer = client.get(fake.prefix + SECRETS, headers)
    assert answer.status in (200, 400)
    assert_alice_or_refused(fake, answer.status)


IMPERSONATION = [
    ("Impersonate-User", "root"), ("Impersonate-Group", "system:masters"),
    ("impersonate-group", "system:masters"), ("Impersonate-Uid", "0"),
    ("Impersonate-Extra-Scopes", "all"), ("IMPERSONATE-EXTRA-a%2Fb", "c"),
]


@pytest.mark.parametrize("header", IMPERSONATION)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_field_F011_impersonation_without_the_right_is_refused(fake, header, method):
    """Alone: groups, uid and extra without a user make no sense, which is 400 or 403."""
    fake.api.script(SECRETS, echo_ok)
    name, value = header
    allowed = (403,) if name == "Impersonate-User" else (400, 403)
    answer = fake.ask(method, SECRETS, [(name.lower(), value)], user="alice")
    assert answer.status in allowed, answer
    with fake.world.h1("alice") as client:
        assert client.request(method, fake.prefix + SECRETS, [header]).status in allowed
    assert not fake.api.seen(lambda x: x.path == SECRETS)


@pytest.mark.parametrize("user", ["root", "alice", "kuberelay:alice", "system:admin"])
def test_field_F011_all_of_it_together_is_403(fake, user):
    fake.api.script(SECRETS, echo_ok)
    headers = [("Impersonate-User", user), *IMPERSONATION[1:]]
    assert fake.ask("GET", SECRETS, headers, user="alice").status == 403
    with fake.world.h1("alice") as client:
        assert client.get(fake.prefix + SECRETS, headers).status == 403
    assert not fake.api.seen(lambda x: x.path == SECRETS)


EXEC = "/api/v1/namespaces/d/pods/p/exec"


@pytest.mark.parametrize("header", IMPERSONATION)
def test_field_F011_on_an_upgrade_it_is_refused_too(fake, header):
    fake.api.script(EXEC, echo_ok)
    with fake.world.h1("alice", alpn=None) as client:
        client.head("GET", fake.prefix + EXEC + "?command=id", [
            header, ("Connection", "Upgrade"), ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")])
        status, _ = client.read_head(10)
    assert status in ((403,) if header[0] == "Impersonate-User" else (400, 403))
    assert not fake.api.seen(lambda x: x.path == EXEC)


@pytest.mark.parametrize("minor", [27, 33])
def test_field_F012_kubectl_as_somebody_else_is_refused_on_every_verb(fake, minor):
    import fakekube

    program = kubectl.need(minor)
    fakekube.install(fake.api)
    tool = fake.kubectl(program, "alice")
    for args in (("get", "pods"), ("delete", "pod", "p"), ("auth", "can-i", "create", "pods")):
        result = tool.run("--as=system:serviceaccount:d:sa", *args)
        assert result.code == 1, result
        assert "impersonat" in (result.out + result.err).lower(), result
    assert not fake.relayed()


def test_field_F011_a_header_name_with_a_space_is_400(fake):
    fake.api.script(SECRETS, echo_ok)
    with fake.world.h1("alice") as client:
        client.send(f"GET {fake.prefix}{SECRETS} HTTP/1.1\r\nHost: {client.host}\r\n"
                    "Impersonate-Group : system:masters\r\n\r\n".encode())
        assert client.read_head(5)[0] == 400
    assert not fake.api.seen(lambda x: x.path == SECRETS)


def test_field_F011_upper_case_on_h2_is_malformed(fake):
    fake.api.script(SECRETS, echo_ok)
    with fake.world.client("alice") as client:
        stream = client.start("GET", fake.prefix + SECRETS, [("Impersonate-User", "root")])
        ended = stream.wait_finish(5)
    assert ended in ("reset", "lost") or stream.status in (400, 403)
    assert not fake.api.seen(lambda x: x.path == SECRETS)


# -- F013: the token of the agent

@pytest.fixture
def token_site(world):
    """An agent whose credential is a token in a file, as a mounted service account is."""
    from backends import FakeBackend
    from cluster_site import Site

    world.start_hub()
    backend = FakeBackend(str(world.folder / "fake"))
    tokens = world.folder / "tokens"
    swap_token(tokens, "first-token")

    def kubeconfig(path, *_):
        content = kubeconfig_of(backend.url, backend.ca, "", "")
        content["users"][0]["user"] = {"tokenFile": str(tokens / "token")}
        return write_yaml(path, content)
    backend.kubeconfig = kubeconfig
    site = Site(world, backend, "f1", world.folder / "f1")
    site.tokens = tokens
    yield site
    backend.close()


def swap_token(folder, token):
    """The kubelet's way: a new folder, then one rename of the ..data link."""
    fresh = folder / f"..{token}"
    fresh.mkdir(parents=True)
    (fresh / "token").write_text(token + "\n")
    link = folder / "..new"
    link.symlink_to(fresh.name)
    os.replace(link, folder / "..data")
    if not (folder / "token").is_symlink():
        (folder / "token").symlink_to("..data/token")


def guarded(valid):
    def run(x):
        x.body()
        if x.get("authorization") != f"Bearer {valid[0]}":
            return x.fail(401, "Unauthorized")
        if x.is_watch:
            x.start_stream()
            x.event("ADDED", {"n": 1})
            x.hold()
        return x.respond(200, {})
    return run


def test_field_F013_a_replaced_token_is_used_without_a_visible_401(token_site):
    valid = ["first-token"]
    token_site.api.script("/api/v1", guarded(valid))
    watch = token_site.start("GET", "/api/v1/x?watch=1")
    watch.wait_bytes(1)
    assert token_site.ask("GET", "/api/v1/x").status == 200
    time.sleep(1.1)  # the agent reads the file at most once a second
    swap_token(token_site.tokens, "second-token")
    valid[0] = "second-token"
    for _ in range(10):
        assert token_site.ask("GET", "/api/v1/x").status == 200
    refused = token_site.api.seen(lambda x: x.path == "/api/v1/x"
                                  and x.get("authorization") == "Bearer first-token")
    assert len(refused) <= 3  # the watch, one good, at most one that met the 401
    assert watch.reset_code is None and not watch.ended
    assert all("impersonate-user" in x.names() for x in token_site.api.seen(
        lambda x: x.path == "/api/v1/x"))


def test_field_F013_an_empty_file_keeps_the_old_token(token_site):
    valid = ["first-token"]
    token_site.api.script("/api/v1", guarded(valid))
    assert token_site.ask("GET", "/api/v1/x").status == 200
    (token_site.tokens / "..first-token" / "token").write_text("")
    assert token_site.ask("GET", "/api/v1/x").status == 200
    valid[0] = "nobody-has-this"
    assert token_site.ask("GET", "/api/v1/x").status == 502
    (token_site.tokens / "..first-token" / "token").write_text("third")
    valid[0] = "third"
    wait_until(lambda: token_site.ask("GET", "/api/v1/x").status == 200, 5, "the third token")


def test_check_56_a_persistent_401_is_502_for_the_client(token_site):
    token_site.api.script("/api/v1", lambda x: (x.body(), x.fail(401, "Unauthorized")))
    answer = token_site.ask("GET", "/api/v1/x")
    assert answer.status == 502 and answer.json()["reason"] == "InternalError"
    assert answer.get("www-authenticate") is None and answer.get("retry-after") is None
    assert len(token_site.api.seen(lambda x: x.path == "/api/v1/x")) <= 2


# -- F015: redirects

PROXY = "/api/v1/namespaces/d/services/web/proxy"


@pytest.mark.parametrize("method,location,expected", [
    ("GET", PROXY + "/", "{prefix}" + PROXY + "/"),
    ("HEAD", PROXY + "/?a=b", "{prefix}" + PROXY + "/?a=b"),
    ("GET", "{api}" + PROXY + "/", "{prefix}" + PROXY + "/"),
    ("GET", "./x", "./x"),
    ("GET", "//other.example/x", None),
    ("GET", "https://other.example/x", None),
    ("POST", PROXY + "/", None),
])
def test_field_F015_a_redirect_stays_inside_the_prefix(fake, method, location, expected):
    target = location.format(api=fake.backend.url)
    fake.api.script(PROXY, lambda x: (x.body(), x.respond(301, b"", [("location", target)])))
    answer = fake.ask(method, PROXY)
    assert str(fake.backend.address[1]) not in str(answer.headers) + answer.body.decode()
    if answer.status == 502 and (expected is None or not location.startswith("/")):
        return  # refusing a redirect that is not server-relative is right too
    assert answer.status == 301
    got = answer.get("location")
    allowed = [expected.format(prefix=fake.prefix)] if expected else [target]
    hub = fake.world.hub.url
    assert got in allowed or got in [hub + a for a in allowed if a.startswith("/")], got


def test_field_F015_a_redirect_of_a_write_is_502(fake):
    fake.api.script(PROXY, lambda x: (x.body(), x.respond(307, b"", [("location", "/x")])))
    answer = fake.ask("POST", PROXY, body=b"x")
    assert answer.status == 502 and answer.json()["kind"] == "Status"


# -- F016: selectors

QUERIES = ["labelSelector=&labelSelector=app%20in%20(a,b)", "labelSelector=app+in+%28a%2Cb%29",
           "labelSelector=app%2Bx", "labelSelector=%21legacy,tier%20notin%20(db)",
           "labelSelector=a=b&labelSelector=c=d", "labelSelector=a%3Db%00",
           "labelSelector=" + "a%3Db%2C" * 500 + "c", "fieldSelector=metadata.name%3Dx&",
           "limit=1&&limit=2", "labelSelector=a%zz"]


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q[:50])
def test_field_F016_the_query_arrives_byte_equal(fake, query):
    fake.api.script("/api/v1/pods", lambda x: x.respond(200, {}))
    answer = fake.ask("GET", "/api/v1/pods?" + query)
    if answer.status == 400 and "%zz" in query:
        return
    assert answer.status == 200, answer
    assert fake.api.wait_request(lambda x: x.path == "/api/v1/pods").query == query


@pytest.mark.parametrize("query", [q for q in QUERIES if "%zz" not in q], ids=lambda q: q[:50])
def test_field_F016_the_server_decides_what_a_selector_means(site, query):
    direct, relayed = site.both("GET", "/api/v1/namespaces?" + query)
    assert comparable(relayed) == comparable(direct) and relayed.body == direct.body


def test_field_F016_a_head_of_long_fields_is_carried_up_to_the_limit(fake):
    fake.api.script("/api/v1/pods", lambda x: x.respond(200, {}))
    query = "labelSelector=" + "a" * 50_000
    assert fake.ask("GET", "/api/v1/pods?" + query).status == 200
    assert fake.api.wait_request(lambda x: x.path == "/api/v1/pods").query == query
    answer = fake.ask("GET", "/api/v1/pods?labelSelector=" + "a" * 62_000)
    assert answer.status == 414 and answer.json()["code"] == 414
    answer = fake.ask("GET", "/api/v1/pods", [("x-big", "b" * 62_000)])
    assert answer.status == 431
    assert fake.ask("GET", "/api/v1/pods").status == 200


def test_identity_no_certificate_is_401_and_goes_nowhere(fake):
    fake.api.script("/api/v1", echo_ok)
    with fake.world.client(user=None) as client:
        answer = client.get(fake.prefix + SECRETS)
    assert answer.status == 401 and answer.json()["reason"] == "Unauthorized"
    assert answer.get("www-authenticate", "").startswith("Bearer")
    assert not fake.api.seen(lambda x: x.path == SECRETS)


def test_identity_a_user_named_like_the_system_cannot_be_one(fake):
    fake.api.script("/api/v1", echo_ok)
    root = fake.world.root()
    pair = testpki.issue(root, fake.folder, "sys", "system:admin", ["system:masters"])
    from h2client import ConnectionLost, H2Client
    try:
        with H2Client(fake.world.hub.api, testpki.client_context(fake.world.ca, pair)) as client:
            answer = client.get(fake.prefix + SECRETS)
    except (OSError, ConnectionLost):
        answer = None
    for x in fake.api.seen(lambda x: x.path == SECRETS):
        assert x.all("impersonate-user") == ["kuberelay:system:admin"]
        assert all(g.startswith("kuberelay:") for g in x.all("impersonate-group"))
    assert answer is None or answer.status in (200, 401, 403)
