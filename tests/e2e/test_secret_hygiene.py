# SPDX-License-Identifier: Apache-2.0
"""T38: credentials are where they must be while they are used, and nowhere else: not in logs, audit
logs, metrics, errors, the hub's state, the arguments or the environment of a process, and, once the
requests are over, not in the memory of hub and agent, from which a core file would be made.
(The fleet view's cache is in memory only: there is no snapshot of it on disk to search.)"""

import base64
import json
import os
import re
import secrets as random_text
from pathlib import Path

import pytest

from backends import FakeBackend, write_yaml
from clock import wait_until
from cluster_site import JSON
from tokens import Issuer, bearer
from world import admin_get

SPACE = "/api/v1/namespaces/default"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


def planted(stem):
    return f"{stem}-{random_text.token_hex(16)}"


class Planted:
    """Secrets of every kind: {what: text}."""

    def __init__(self, enrollment):
        self.enrollment, self.world = enrollment, enrollment.world
        self.folder = Path(enrollment.folder)
        self.issuer = Issuer(self.folder)
        self.cluster = Issuer(self.folder, "https://kubernetes.default.svc", "cluster")
        self.texts = {n: planted(n) for n in ("lab", "edge", "unknown", "basic", "cookie",
                                              "body", "answer", "socket")}
        self.texts["id"] = self.issuer.token("alice")
        self.texts["member"] = self.cluster.token("system:serviceaccount:argocd:manager")
        self.texts["bad-signature"] = self.issuer.token("mallory")[:-8] + "AAAAAAAA"
        self.logs = [str(self.folder / f"{end}-audit.log") for end in ("hub", "agent")]
        self.answers = []
        self.fake = FakeBackend(str(self.folder / "fake"))
        self.fake.api.script(lambda x: True, self.serve)
        self.start()

    def start(self):
        table = self.folder / "tokens.csv"
        table.write_text(f"{self.texts['lab']},lab,u1\n{self.texts['socket']},ws,u2\n")
        table.chmod(0o600)
        self.enrollment.start_hub(
            tokenFile=str(table), memberTokens=True, auditLog=self.logs[0], logLevel="debug",
            authenticationFile=write_yaml(self.folder / "authn.yaml",
                                          {"issuers": [self.issuer.entry()]}))
        self.world.hub = self.enrollment.hub
        self.texts["join"] = self.enrollment.token("f1").rpartition(".")[2]
        join = self.folder / "join"
        join.write_text(self.enrollment.token("f1") + "\n")
        self.texts["join"] = join.read_text().strip().rpartition(".")[2]
        self.agent = self.enrollment.start_agent(
            "f1", kubeconfig=self.kubeconfig_with_token(), auditLog=self.logs[1], logLevel="debug",
            joinTokenFile=str(join), policyFile=self.world.open_policy())

    def kubeconfig_with_token(self):
        path = self.folder / "token.kubeconfig"
        write_yaml(path, {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": self.fake.url,
                                                   "certificate-authority": self.fake.ca}}],
            "users": [{"name": "c", "user": {"token": self.texts["edge"]}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]})
        path.chmod(0o600)
        return str(path)

    def serve(self, x):
        body = x.body()
        if x.path == REVIEWS:
            good = json.loads(body)["spec"]["token"] == self.texts["member"]
            user = {"user": {"username": "system:serviceaccount:argocd:manager"}} if good else {}
            return x.respond(201, {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
                                   "status": {"authenticated": good, **user}})
        if "secrets" in x.path:
            return x.respond(200, {"kind": "Secret", "data": {"password": self.texts["answer"]}})
        if "exec" in x.path:
            return x.fail(403, "Forbidden")
        return x.respond(200, {"kind": "x"})

    # -- what clients bring, and how
    def note(self, answer):
        """What comes back must not hold what was brought."""
        self.answers.append(f"{answer.status} {answer.headers} ".encode() + answer.body)
        return answer

    def bring(self, client):
        """Every credential, good and bad, over one kind of connection."""
        path = f"/clusters/f1{SPACE}/pods/p"
        for what in ("lab", "id", "member"):
            assert self.note(client.get(path, bearer(self.texts[what]))).status == 200, what
        for what in ("unknown", "bad-signature"):
            assert self.note(client.get(path, bearer(self.texts[what]))).status == 401, what
        basic = base64.b64encode(f"user:{self.texts['basic']}".encode()).decode()
        assert self.note(client.get(path, [("authorization", f"Basic {basic}")])).status == 401
        lab = bearer(self.texts["lab"])
        cookie = [("cookie", f"session={self.texts['cookie']}")]
        assert self.note(client.get(path, lab + cookie)).status == 200
        body = json.dumps({"data": {"password": self.texts["body"]}}).encode()
        assert self.note(client.request("POST", f"/clusters/f1{SPACE}/configmaps", lab + [JSON],
                                        body)).status == 200
        answer = client.get(f"/clusters/f1{SPACE}/secrets/s", lab)
        assert self.texts["answer"] in answer.body.decode()

    def bring_all(self):
        with self.world.client(None) as client:
            self.bring(client)
        with self.world.h1(None) as client:
            self.bring(client)
        self.websocket()
        wait_until(lambda: self.world.metrics().get('kuberelay_hub_exchanges{class="all"}') == 0,
                   10, "no request under way")

    def websocket(self):
        """A browser's: the token is one of the subprotocols."""
        hidden = base64.urlsafe_b64encode(self.texts["socket"].encode()).decode().rstrip("=")
        self.texts["socket-encoded"] = hidden
        with self.world.h1(None) as client:
            client.head("GET", f"/clusters/f1{SPACE}/pods/p/exec?command=id", [
                ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
                ("Sec-WebSocket-Protocol",
                 f"base64url.bearer.authorization.k8s.io.{hidden}, v5.channel.k8s.io")])
            assert client.read_head()[0] == 403

    def keys(self):
        """A line of each private key as it stands in its file."""
        state = Path(self.agent.state) / "pair.pem"
        files = {"hub-key": self.world.hub_pair.key, "signer-key": self.world.pki / "ca.key",
                 "agent-key": state}
        return {n: re.search(r"PRIVATE KEY-----\n(\S+)\n", Path(f).read_text()).group(1)
                for n, f in files.items()}


@pytest.fixture
def used(enrollment):
    made = Planted(enrollment)
    made.bring_all()
    yield made
    made.fake.close()


def forms_of(text):
    """A secret as itself and as base64 within something else, at each of the three offsets."""
    raw = text.encode()
    yield raw
    for skip in range(3):
        inner = raw[skip:len(raw) - (len(raw) - skip) % 3]
        yield base64.b64encode(inner)


def found_in(data, secrets):
    return sorted({n for n, text in secrets.items() if any(f in data for f in forms_of(text))})


def test_t38_no_secret_in_logs_metrics_errors_state_arguments_or_environment(used):
    secrets = {**used.texts, **used.keys()}
    places = {"hub audit": Path(used.logs[0]).read_bytes(),
              "agent audit": Path(used.logs[1]).read_bytes(),
              "answers": b"\n".join(used.answers)}
    for process in (used.enrollment.hub, used.agent):
        places[f"{process.name} log"] = "\n".join(process.grep("")).encode()
        assert process.grep("level=debug"), "the most that can be logged"
        for page in ("/metrics", "/livez", "/readyz", "/clusters", "/debug"):
            places[f"{process.name} {page}"] = admin_get(process.admin, page)[1].encode() + b" "
        for file in ("environ", "cmdline"):
            places[f"{process.name} {file}"] = Path(f"/proc/{process.pid}/{file}").read_bytes()
    for path in used.enrollment.state.iterdir():
        places[f"state {path.name}"] = path.read_bytes()
    for place, data in places.items():
        assert data, place
        assert not found_in(data, secrets), (place, found_in(data, secrets))


PASSING = ("body", "answer")  # what only passes through is overwritten by what passes later


def memory_of(pid):
    """[(what the mapping is, its bytes)]: all that a core file would hold."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as file:
        lines = file.read().splitlines()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in lines:
            fields = line.split(None, 5)
            begin, end = (int(n, 16) for n in fields[0].split("-"))
            name = fields[5] if len(fields) > 5 else "anonymous"
            if "w" not in fields[1] or name.startswith("[v"):
                continue
            try:
                yield f"{name}@{begin:x}", os.pread(memory.fileno(), end - begin, begin)
            except OSError:
                continue  # a guard page


def remembered(process, secrets):
    """{what: how often} of the secrets in the memory of a process."""
    found = {}
    for _, data in memory_of(process.pid):
        for name, text in secrets.items():
            count = sum(data.count(f) for f in forms_of(text))
            if count:
                found[name] = found.get(name, 0) + count
    return found


@pytest.mark.weighed
def test_t38_no_secret_stays_in_memory(used):
    hub, agent = used.enrollment.hub, used.agent
    if not hub.weighable:
        pytest.skip("a sanitizer keeps what was freed: runs with the release build")
    secrets = {n: t for n, t in {**used.texts, **used.keys()}.items() if n not in PASSING}
    own = remembered(agent, {"edge": used.texts["edge"]})
    assert own, "the agent's own credential, which it needs: so the search finds what is there"
    for process, kept in ((hub, ()), (agent, ("edge",))):
        found = remembered(process, secrets)
        assert not set(found) - set(kept), (process.name, found)
