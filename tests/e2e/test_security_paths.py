# SPDX-License-Identifier: Apache-2.0
"""T20, T21, T23 and T26: nobody can read a request in two ways. What the hub decided on (its audit log), what
arrived at the API server, and a model of Kubernetes' own RequestInfo must be one and the same."""

import urllib.parse

import auditlog
import pytest
from h1client import H1Client
from h2client import ConnectionLost
from test_audit import Audited
from test_check_24_28 import smuggled

METHODS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch",
           "DELETE": "delete"}


def request_info(method, target):
    """(verb, objectRef) as k8s.io/apiserver's RequestInfoFactory would say; objectRef {} for paths
    that are no resource."""
    path, _, query = target.partition("?")
    parts = [p for p in urllib.parse.unquote(path).strip("/").split("/")]
    plain = (method.lower(), {})
    if len(parts) < 3 or parts[0] not in ("api", "apis"):
        return plain
    group, parts = (parts[1], parts[2:]) if parts[0] == "apis" else ("", parts[1:])
    version, parts = parts[0], parts[1:]
    if not parts:
        return plain
    verb = METHODS.get(method, "")
    special = parts[0] in ("proxy", "watch")
    if special:
        if len(parts) < 2:
            return None  # an error there
        verb, parts = parts[0], parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in ("status", "finalize"):
            parts = parts[2:]
    name = parts[1] if len(parts) > 1 else ""
    sub = parts[2] if len(parts) > 2 and verb != "proxy" else ""
    options = urllib.parse.parse_qs(query, keep_blank_values=True)
    if not name and verb == "get":
        watch = options.get("watch", ["false"])[0].lower() in ("1", "true", "t")
        verb = "watch" if watch else "list"
    if not name and verb == "delete":
        verb = "deletecollection"
    found = {"resource": parts[0], "namespace": namespace, "name": name, "apiGroup": group,
             "apiVersion": version, "subresource": sub}
    return verb, {k: v for k, v in found.items() if v}


BASES = ["/api/v1/namespaces/d/pods/p", "/apis/apps/v1/namespaces/d/deployments/x/scale",
         "/api/v1/pods", "/api/v1/nodes/n/status", "/api/v1/namespaces/d/secrets",
         "/api/v1/namespaces/d", "/healthz/etcd", "/api/v1/watch/namespaces/d/pods"]
MIDDLES = ["//", "/./", "/../", "/%2e/", "/%2e%2e/", "/.%2E/", "/%2f", "/%2F", "/%5c", "\\", "/\\/",
           "%252f", "%252e", "/;a=b/", ";", "/%3b/", "#", "/#/", "%23", "%3f", "?", "?/../", "%00",
           "%0a", "%0d%0a", "%09", "%20", "+", ":", "%3A", "@", "%40", "*", "~", ",", "=", "&", "!",
           "$", "%24", "'", "(", "%41", "%c3%a9", "%ff", "%c0%af", "%e2%80%ae", "%ef%bc%8f", "é",
           "\x7f", "\x01", "%zz", "%", "%2", "|", "{", "^", "`", '"', "<", "/ ", "..;/", "/...",
           "/.hidden/", "/status", "/proxy/", "/log", "/namespaces/kube-system/", "/watch/"]


def corpus():
    """(method, target), each once."""
    made = []
    for number, base in enumerate(BASES):
        cuts = [i for i, c in enumerate(base) if c == "/"][1:] + [len(base)]
        for other, middle in enumerate(MIDDLES):
            at = cuts[(number + other) % len(cuts)]
            method = list(METHODS)[(number * 7 + other) % len(METHODS)]
            made.append((method, base[:at] + middle + base[at:]))
    made += [(m, b) for b in BASES for m in METHODS]
    made += [("GET", b + q) for b in BASES for q in ("?watch=true", "?watch=0", "?", "?a=/../b")]
    return sorted(set(made))


@pytest.fixture
def audited(world):
    made = Audited(world)
    yield made
    made.fake.close()


def test_T21_hub_and_api_server_read_every_path_alike(audited):
    forms = corpus()
    assert len(forms) >= 500
    site = audited.site
    site.api.script(lambda x: True, lambda x: (x.body(), x.respond(200, {})))
    refused, forwarded = 0, 0
    client, world = None, audited.world
    for method, target in forms:
        client = client or H1Client(world.hub.api, world.context("alice"))
        client.send(f"{method} {site.prefix}{target} HTTP/1.1\r\nHost: {client.host}\r\n"
                    "Content-Length: 0\r\n\r\n".encode())
        answer = client.answer(head_only=method == "HEAD")
        assert answer.status in (200, 400, 403, 404, 405, 414), (method, target, answer)
        forwarded += answer.status == 200
        refused += answer.status != 200
        if answer.status == 400:
            client.close()
            client = None
    audited.settle()
    assert forwarded >= 200 and refused >= 100, (forwarded, refused)
    decided = auditlog.by_id(auditlog.events(audited.hub_log))
    arrived = [x for x in site.api.seen() if x.get("impersonate-user") == "kuberelay:alice"]
    assert len(arrived) == forwarded
    for x in arrived:
        target, event = x.target.decode(), decided[x.get("audit-id")]
        assert (x.method, target) in forms, "another path than was asked for"
        model = request_info(x.method, target)
        assert model == (event["verb"], event.get("objectRef", {})), (x.method, target, model)
        assert ".." not in urllib.parse.unquote(target.partition("?")[0]).split("/") or \
            "/proxy/" in target


# -- T20: identity headers, in every spelling

NAMES = ["Impersonate-User", "impersonate-user", "IMPERSONATE-USER", "Impersonate-Group",
         "Impersonate-Uid", "Impersonate-Extra-Scopes", "Impersonate-Extra-a%2Fb", "X-Remote-User",
         "X-Remote-Group", "X-Remote-Extra-Scopes", "kuberelay-request-bin", "Impersonate_User"]
VALUES = ["", " ", "root", "system:admin", "a\x00b", "a\rX: y", "a\nImpersonate-User: b", "\xe9"]


def test_T20_the_api_server_sees_our_identity_or_nothing(fake):
    fake.api.script(lambda x: True, lambda x: x.respond(200, {}))
    for name in NAMES:
        for value in VALUES:
            for connection in ("", f"Connection: {name}\r\n"):
                with fake.world.h1("alice") as client:
                    client.send(f"GET {fake.prefix}/api/v1/t20 HTTP/1.1\r\nHost: {client.host}\r\n"
                                f"{connection}{name}: {value}\r\n{name}: twice\r\n\r\n"
                                .encode("latin-1"))
                    assert client.read_head(10)[0] in (200, 400, 401, 403, 431), (name, value)
    seen = fake.api.seen(lambda x: x.path == "/api/v1/t20")
    assert seen, "nothing passed at all"
    for x in seen:
        assert x.all("impersonate-user") == ["kuberelay:alice"]
        assert set(x.all("impersonate-group")) <= {"system:authenticated"}
        assert not [n for n in x.names() if n.startswith(("x-remote", "kuberelay-",
                                                          "impersonate-extra", "impersonate-uid"))]


# -- T23: what is smuggled poisons nobody else's connection

def test_T23_others_get_their_own_answers_meanwhile(fake):
    """After each malformed request, two users' answers on old and new connections are theirs."""
    fake.api.script("/api/v1/who", lambda x: x.respond(
        200, {"who": x.get("impersonate-user"), "q": x.query}))
    fake.api.script(lambda x: x.method == "POST", lambda x: (x.body(), x.respond(200, {})))
    number = 0
    with fake.world.h1("bob") as old:
        for kind, text in smuggled("h", fake.prefix).items():
            with fake.world.h1("alice") as bad:
                bad.send(text.replace("Host: h\r", f"Host: {bad.host}\r").encode("latin-1"))
                for user, client in (("bob", old), ("carol", None)):
                    number += 1
                    target = f"{fake.prefix}/api/v1/who?n={number}"
                    made = client or fake.world.h1(user)
                    answer = made.get(target)
                    assert answer.status == 200, (kind, answer)
                    assert answer.json() == {"who": f"kuberelay:{user}", "q": f"n={number}"}, kind
                    if client is None:
                        made.close()
                try:
                    bad.wait_closed(10)
                except ConnectionLost:
                    pass
    assert len(fake.api.seen(lambda x: x.path == "/api/v1/who")) == number
    assert not fake.api.seen(lambda x: "secrets" in x.path)


# -- T26: whose host is it

def test_T26_two_names_of_the_host_in_one_request_are_refused(fake):
    """SNI, Host, :authority and the absolute form: where two of them differ, nothing is relayed."""
    fake.api.script(lambda x: True, lambda x: x.respond(200, {}))
    path = fake.prefix + "/api/v1/pods"
    names = (fake.server_name, "other.hub.test")
    with fake.world.client(server_name=fake.server_name) as client:
        stream = client.start("GET", "/api/v1/pods", [("host", names[1])])
        assert stream.wait_finish(10) in ("reset", "lost") or stream.status in (400, 421)
    for sni, host in ((fake.server_name, names[1]), (names[1], fake.server_name)):
        with fake.world.h1(server_name=sni) as client:
            client.head("GET", "/api/v1/pods", host=host)
            assert client.read_head(10)[0] in (400, 403, 421), (sni, host)
    for line in (f"GET https://evil.test{path} HTTP/1.1\r\nHost: {{}}",
                 f"GET https://{{}}{path} HTTP/1.1\r\nHost: evil.test",
                 f"GET {path} HTTP/1.1\r\nHost: {{}}\r\nHost: evil.test",
                 f"GET https://user@{{}}{path} HTTP/1.1\r\nHost: {{}}"):
        with fake.world.h1() as client:
            client.send((line.format(client.host, client.host) + "\r\n\r\n").encode())
            assert client.read_head(10)[0] in (400, 421), line
    assert not fake.relayed()
