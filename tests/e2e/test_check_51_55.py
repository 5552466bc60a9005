# SPDX-License-Identifier: Apache-2.0
"""Checks 47, 51 and 52 with a scripted server; 53 and 55 with a real one and a kubelet."""

import json

import pytest

import fakekube
import kubectl
import testpki
import versions
from backends import binding, write_yaml
from clock import wait_until
from cluster_site import JSON, configmap
from h2client import H2Client

EXEC = "/api/v1/namespaces/default/pods/p/exec"


# -- 47: refused by the API server, or by the hub

@pytest.mark.parametrize("minor,tries", [(27, 1), (30, 2), (33, 2), (37, 2)])
def test_check_47_a_refused_exec_says_so_once(fake, minor, tries):
    """WebSocket first, then SPDY; a refusal of the first is no reason to repeat it aloud."""
    fakekube.install(fake.api)
    fake.api.script(EXEC, lambda x: x.fail(403, "Forbidden", "pods p is forbidden: not for you"))
    result = fake.kubectl(kubectl.need(minor)).run("exec", "p", "--", "id")
    assert result.code == 1
    assert (result.out + result.err).count("not for you") == 1, result
    seen = fake.api.seen(lambda x: x.path == EXEC)
    assert 1 <= len(seen) <= tries
    assert not fake.api.seen(lambda x: x.path == EXEC and not x.all("impersonate-user"))


@pytest.mark.parametrize("minor", [27, 33, 37])
def test_check_47_exec_in_a_cluster_that_is_not_there(fake, minor):
    tool = fake.kubectl(kubectl.need(minor))
    text = open(tool.kubeconfig, encoding="utf-8").read()
    with open(tool.kubeconfig, "w", encoding="utf-8") as file:
        file.write(text.replace(fake.prefix, "/clusters/nowhere"))
    result = tool.run("exec", "p", "--", "id")
    assert result.code == 1 and "nowhere" in result.err
    assert not fake.api.seen(lambda x: x.path == EXEC)


# -- 51, 52: kubectl and answers that are no upgrade

@pytest.mark.parametrize("minor", [27, 30, 33, 37])
@pytest.mark.parametrize("status", [200, 302, 400, 500])
def test_check_51_kubectl_gives_up_on_an_answer_that_is_no_upgrade(fake, minor, status):
    fakekube.install(fake.api)
    fake.api.script(EXEC, lambda x: x.respond(
        status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "odd answer"},
        [("location", "/elsewhere")] if status == 302 else []))
    result = fake.kubectl(kubectl.need(minor)).run("exec", "p", "--", "id", timeout=30)
    assert result.code == 1 and result.out == ""
    assert not fake.api.seen(lambda x: x.path == "/elsewhere")


def test_check_52_nothing_follows_a_refused_upgrade(fake):
    """CVE-2018-1002105: a pipelined request is neither answered nor forwarded."""
    fake.api.script(EXEC, lambda x: x.fail(400, "BadRequest", "no"))
    fake.api.script("/api/v1/secrets", lambda x: x.respond(200, {}))
    first = (f"GET {fake.prefix}{EXEC}?command=id HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n"
             "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    second = f"GET {fake.prefix}/api/v1/secrets HTTP/1.1\r\nHost: h\r\n\r\n"
    with fake.world.h1("alice", alpn=None) as client:
        client.send((first + second).encode())
        assert client.answer().status == 400
        assert client.wait_closed(10) == b""
    assert not fake.api.seen(lambda x: "secrets" in x.path)


# -- 53: logs

@pytest.fixture(scope="module")
def space(session_site, kubelet):
    namespace = session_site.namespace("logs")
    for number in range(5):
        kubelet.pod(session_site, namespace, f"p{number}", labels={"app": "five"})
    return namespace


def both(site, minor, *args):
    """Pods that are asked in parallel speak in any order."""
    program = kubectl.need(minor)
    direct, relayed = site.kubectl_direct(program).run(*args), site.kubectl(program).run(*args)
    assert (relayed.code, relayed.err) == (direct.code, direct.err), args
    assert sorted(relayed.out.splitlines()) == sorted(direct.out.splitlines()), args
    return relayed


@versions.each
def test_check_53_logs(site, space, minor):
    assert len(both(site, minor, "-n", space, "logs", "p0").out.splitlines()) >= 100
    assert both(site, minor, "-n", space, "logs", "p0", "--tail=3").out.count("\n") == 3
    assert "old line 97" in both(site, minor, "-n", space, "logs", "p0", "--since=45m").out
    stamped = both(site, minor, "-n", space, "logs", "p0", "--tail=2", "--timestamps").out
    assert stamped.startswith("20")
    five = both(site, minor, "-n", space, "logs", "-l", "app=five", "--tail=2", "--prefix")
    assert len(five.out.splitlines()) == 10
    assert both(site, minor, "-n", space, "logs", "no-such-pod").code == 1


@versions.each
def test_check_53_logs_follow_line_by_line_and_end_with_the_pod(site, space, kubelet, minor):
    name = kubelet.pod(site, space, f"follow-{minor}")
    program = kubectl.need(minor)
    direct, relayed = site.kubectl_direct(program), site.kubectl(program)
    running = [tool.start("-n", space, "logs", "-f", name, "--tail=1") for tool in (direct, relayed)]
    try:
        for follower in running:
            follower.wait_line("old line 99")
        for number in range(3):  # one at a time: nothing may wait for more
            direct.ok("-n", space, "exec", name, "--", "say", f"news {number}")
            for follower in running:
                follower.wait_line(f"^news {number}$", 5)
        site.ask_direct("DELETE", f"/api/v1/namespaces/{space}/pods/{name}")
        assert [follower.wait(20) for follower in running] == [0, 0]
        texts = [[line for _, line in follower.lines] for follower in running]
        assert texts[0] == texts[1]
    finally:
        for follower in running:
            follower.stop()


def test_check_53_logs_follow_of_five_pods(site, space, kubelet):
    tool = site.kubectl(kubectl.need(37))
    with_label = tool.start("-n", space, "logs", "-f", "-l", "app=five", "--prefix", "--tail=0",
                            "--max-log-requests=5")
    try:
        # --tail=0 says nothing of when it has begun: speak until it is heard.
        for number in range(5):
            def heard(number=number):
                tool.ok("-n", space, "exec", f"p{number}", "--", "say", "here")
                return any(f"pod/p{number}/c" in line for _, line in with_label.lines)
            wait_until(heard, 20, f"p{number} heard")
    finally:
        with_label.stop()


# -- 55: the agent's token is replaced

ACCOUNT = "system:serviceaccount:{ns}:agent"


class Tokens:
    """A service account for the agent, with tokens that end when their secret does."""

    def __init__(self, site, folder):
        self.site, self.namespace = site, site.namespace("tokens")
        self.path = folder / "token"
        self.base = f"/api/v1/namespaces/{self.namespace}"
        self._post(f"{self.base}/serviceaccounts", {"metadata": {"name": "agent"}})
        account = {**binding(f"agent-{self.namespace}", "kuberelay-agent", "User", ""),
                   "subjects": [{"kind": "ServiceAccount", "name": "agent",
                                 "namespace": self.namespace}]}
        self._post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", account)

    def _post(self, path, obj):
        with self.site.backend.as_root() as root:
            answer = root.request("POST", path, [JSON], json.dumps(obj).encode())
        assert answer.status == 201, answer
        return answer.json()

    def write(self, name):
        """A new token in the file, as the kubelet does: by renaming."""
        secret = self._post(f"{self.base}/secrets", {"metadata": {"name": name}})
        made = self._post(f"{self.base}/serviceaccounts/agent/token", {
            "spec": {"expirationSeconds": 3600, "boundObjectRef": {
                "apiVersion": "v1", "kind": "Secret", "name": name,
                "uid": secret["metadata"]["uid"]}}})
        fresh = self.path.with_suffix(".new")
        fresh.write_text(made["status"]["token"], encoding="ascii")
        fresh.rename(self.path)
        return made["status"]["token"]

    def revoke(self, name):
        with self.site.backend.as_root() as root:
            assert root.request("DELETE", f"{self.base}/secrets/{name}").status == 200

    def works(self, token):
        context = testpki.client_context(self.site.backend.ca, None)
        with H2Client(self.site.backend.address, context) as client:
            return client.get("/api/v1/namespaces/default", [
                ("authorization", f"Bearer {token}")]).status != 401


@pytest.mark.real
def test_check_55_a_new_token_is_used_and_nobody_sees_a_401(site, world, tmp_path):
    tokens = Tokens(site, tmp_path)
    old = tokens.write("first")
    world.start_hub()
    backend = site.backend
    config = write_yaml(tmp_path / "agent.kubeconfig", {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": backend.url,
                                               "certificate-authority": backend.ca}}],
        "users": [{"name": "c", "user": {"tokenFile": str(tokens.path)}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]})
    world.start_agent("t1", config)
    path = f"/api/v1/namespaces/{tokens.namespace}/configmaps"
    with world.client() as client:
        version = client.get("/clusters/t1" + path).json()["metadata"]["resourceVersion"]
        watch = client.start("GET", f"/clusters/t1{path}?watch=1&resourceVersion={version}")
        watch.wait_headers()
        new = tokens.write("second")
        tokens.revoke("first")
        statuses = set()

        def old_is_dead():
            statuses.add(client.get("/clusters/t1" + path).status)
            return not tokens.works(old)
        wait_until(old_is_dead, 30, "the old token is refused", every=0.2)
        for _ in range(20):
            statuses.add(client.get("/clusters/t1" + path).status)
        assert tokens.works(new) and statuses == {200}
        site.create(path, configmap("after"))
        watch.wait(lambda s: s.body.endswith(b"\n"), 10, "a whole event")
        assert b'"after"' in watch.body
        watch.reset()
