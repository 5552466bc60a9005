# SPDX-License-Identifier: Apache-2.0
"""Both charts installed by the real Helm into a real API server. There is no kubelet, so hub and agent
run here with what their pods would have: command, volumes, environment, the service account's token.
What the rendered rights suffice for, and that they allow nothing else."""

import json
import re

import pytest

import kubectl
import testpki
from backends import binding, kubeconfig_of, write_yaml
from clock import wait_until
from fleet import STAR
from h2client import H2Client
from helm import AGENT, HUB, Helm, Pod, Refused, of_kind
from test_charts import PEM, pair_of, singles
from world import Agent, Hub, World

pytestmark = pytest.mark.real

SPACE = "kuberelay"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
RULES_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
READ = ["get", "list", "watch"]
PROJECTS = [
    {"name": "operators", "members": {"users": ["admin"]}, "clusters": ["*"],
     "rules": [{"resources": ["*", "secrets"], "verbs": ["*"]},
               {"nonResourcePaths": ["/*"], "verbs": ["get"]}]},
    {"name": "dev", "members": {"groups": ["dev"]}, "clusters": ["*"],
     "rules": [{"resources": ["pods", "configmaps", "secrets"], "verbs": READ}]},
    {"name": "robots", "members": {"memberTokens": True}, "clusters": ["*"],
     "rules": [{"resources": ["configmaps"], "verbs": READ}]}]


def call(client, method, path, obj=None, token=None):
    headers = [("content-type", "application/json")]
    if token:
        headers.append(("authorization", f"Bearer {token}"))
    return client.request(method, path, headers, json.dumps(obj).encode() if obj is not None else None)


class Installed:
    """One hub from the chart, and agents from the chart beside one API server."""

    def __init__(self, world, backend, folder):
        self.world, self.backend, self.folder = world, backend, folder
        self.root = backend.as_root()
        self.make("/api/v1/namespaces", {"metadata": {"name": SPACE}})
        for name in ("shop", "rest"):
            self.make("/api/v1/namespaces", {"metadata": {"name": name}})
            self.make(f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": f"in-{name}"}})
        # Without a controller manager nobody fills the role `view`.
        self.make(f"{RBAC}/clusterroles", {"metadata": {"name": "charts-dev"}, "rules": [
            {"apiGroups": [""], "resources": ["pods", "configmaps", "secrets"], "verbs": READ}]})
        self.make(f"{RBAC}/clusterrolebindings",
                  binding("charts-dev", "charts-dev", "Group", "kuberelay:dev"))
        config = write_yaml(folder / "root.kubeconfig", kubeconfig_of(
            backend.url, backend.ca, backend.root.crt, backend.root.key))
        self.helm = Helm(folder, config, SPACE)
        self.secrets = {}
        self.secret("hub-pair", pair_of(world.hub_pair))
        self.secret("signer", pair_of(world.root()))
        self.hub = self._hub()

    def make(self, path, obj):
        answer = call(self.root, "POST", path, obj)
        assert answer.status in (201, 409), answer
        return answer.json()

    def secret(self, name, content):
        self.secrets["Secret", name] = content
        self.make(f"/api/v1/namespaces/{SPACE}/secrets", {
            "metadata": {"name": name}, "type": "kubernetes.io/tls", "stringData": content})

    def _hub(self):
        ca = (self.world.pki / "ca.crt").read_text(encoding="ascii")
        objects = self.helm.install(HUB, {
            "ca": {"pem": ca}, "tls": {"existingSecret": "hub-pair"}, "replica": "hub-1",
            "enrollment": {"signerSecret": "signer"}, "projects": PROJECTS,
            "authentication": {"memberTokens": True},
            "fleet": {"readers": [{"groups": ["dev"], "clusters": ["*"], "resources": ["*"]}]}}, "main")
        pod = Pod(objects, self.folder / "hub", self.secrets)
        self.socket = pod.folder / "run" / "admin.sock"
        flags = ["--start-grace", "0s"]
        for port in ("api", "agent", "admin"):
            flags += [f"--{port}-listen", "127.0.0.1:0"]
        hub = Hub("hub", pod.argv(self.world.binaries, *flags), str(self.folder), pod.env())
        self.world.processes.append(hub)
        self.world.hub = hub.wait_ready()
        return hub

    def token_of(self, cluster):
        words = self.world.ctl("token", "create", "--cluster", cluster, "--auto-accept", "--socket",
                               self.socket)
        token, = [w for w in words if w.startswith("kr1.")]
        return token

    def account(self, name):
        """A token of a service account, as a kubelet asks for it."""
        answer = call(self.root, "POST", f"/api/v1/namespaces/{SPACE}/serviceaccounts/{name}/token",
                      {"spec": {"expirationSeconds": 3600}})
        assert answer.status == 201, answer
        return answer.json()["status"]["token"]

    def agent(self, cluster, release, **values):
        """Installs an agent, and runs it: (what was installed, process, its token)."""
        ca = (self.world.pki / "ca.crt").read_text(encoding="ascii")
        objects = self.helm.install(AGENT, {
            "cluster": cluster, "hubs": [self.hub.agent_address], "ca": {"pem": ca},
            "identity": {"joinToken": self.token_of(cluster)}, **values}, release)
        pod = Pod(objects, self.folder / release)
        token = self.account(pod.spec["serviceAccountName"])
        account = self.folder / f"{release}-account"
        account.mkdir()
        for name, text in (("token", token), ("namespace", SPACE)):
            (account / name).write_text(text, encoding="ascii")
        (account / "ca.crt").write_bytes(open(self.backend.ca, "rb").read())
        argv = pod.argv(self.world.binaries, "--admin-listen", "127.0.0.1:0", "--service-account-dir",
                        account, "--reconnect-max", "2s")
        env = {"KUBERNETES_SERVICE_HOST": self.backend.address[0],
               "KUBERNETES_SERVICE_PORT": str(self.backend.address[1]), **pod.env()}
        return objects, self.run_agent(cluster, release, argv, env), token

    def run_agent(self, cluster, name, argv, env):
        process = Agent(name, argv, str(self.folder), env)
        process.cluster, process.env = cluster, env
        self.world.processes.append(process)
        process.wait_admin()
        self.world.wait_cluster(cluster)
        return process

    def ask(self, cluster, path, user="alice", groups=("dev",), method="GET", obj=None):
        with self.world.client(user, groups) as client:
            return call(client, method, f"/clusters/{cluster}{path}", obj)

    def as_account(self, token, method, path, obj=None):
        with H2Client(self.backend.address, testpki.client_context(self.backend.ca)) as client:
            return call(client, method, path, obj, token)

    def rights(self, token, namespace="default"):
        """Every single right of an account: (verb, group, resource, name or "*")."""
        answer = self.as_account(token, "POST", RULES_REVIEW, {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace}})
        assert answer.status == 201, answer
        status = answer.json()["status"]
        assert not status["incomplete"]
        return singles(status["resourceRules"]), {
            (v, p) for r in status["nonResourceRules"] for v in r["verbs"] for p in r["nonResourceURLs"]}


@pytest.fixture(scope="module")
def installed(backend, binaries, workdir):
    if not backend.is_real:
        pytest.skip("needs a real API server: runs on the real backends")
    folder = workdir / "charts"
    folder.mkdir()
    world = World(workdir / "charts-world", binaries)
    yield Installed(world, backend, folder)
    world.close()


@pytest.fixture(scope="module")
def edge(installed):
    return installed.agent("edge-1", "edge", rbac={"memberTokens": True})


def test_charts_an_installed_agent_joins_and_relays_what_its_policy_allows(installed, edge):
    found = installed.ask("edge-1", "/api/v1/namespaces/shop/configmaps/in-shop")
    assert found.status == 200 and found.json()["metadata"]["name"] == "in-shop"
    # Nobody's member, so the hub says no; a member's write and Secrets are for the edge to refuse.
    assert installed.ask("edge-1", "/api/v1/pods", "mallory", ()).status == 403
    for method, path, obj in (
            ("POST", "/api/v1/namespaces/shop/configmaps", {"metadata": {"name": "new"}}),
            ("GET", "/api/v1/namespaces/shop/secrets", None),
            ("GET", f"/api/v1/namespaces/{SPACE}/pods", None)):
        answer = installed.ask("edge-1", path, "admin", (), method, obj)
        assert answer.status == 403 and "policy" in answer.body.decode(), (path, answer, answer.body)


def test_charts_a_new_pod_goes_on_with_what_is_in_the_volumes(installed, edge):
    """The join token was used up and its Secret may be gone; the hub knows its agent from its volume."""
    _, process, _ = edge
    (installed.folder / "edge" / "join" / "token").unlink()
    for name in ("edge", "hub"):
        kept = installed.folder / name / "state" / "state"
        assert kept.stat().st_mode & 0o077 == 0
    process.kill()
    installed.world.wait_away("edge-1")
    installed.run_agent("edge-1", "edge-again", process.argv, process.env)
    hub = installed.hub
    hub.kill()
    ports = [f"--{port}-listen=%s:%d" % getattr(hub, port) for port in ("api", "agent", "admin")]
    again = Hub("hub-again", [*hub.argv, *ports], str(installed.folder))
    installed.world.processes.append(again)
    installed.hub = installed.world.hub = again.wait_ready()
    installed.world.wait_cluster("edge-1")
    assert installed.ask("edge-1", "/api/v1/namespaces/shop/configmaps/in-shop").status == 200


def test_charts_tokens_of_the_clusters_own_accounts_are_judged_with_the_charts_rights(installed, edge):
    installed.make(f"/api/v1/namespaces/{SPACE}/serviceaccounts", {"metadata": {"name": "robot"}})
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": SPACE}
    installed.make(f"{RBAC}/namespaces/shop/rolebindings", {
        **binding("robot", "charts-dev", "User", "x"), "subjects": [subject]})
    with installed.world.client(None) as client:
        def get(namespace, token):
            path = f"/clusters/edge-1/api/v1/namespaces/{namespace}/configmaps"
            return call(client, "GET", path, None, token).status
        robot = installed.account("robot")
        assert get("shop", robot) == 200 and get("rest", robot) == 403
        assert get("shop", robot[:-8] + "AAAAAAAA") == 401


def test_charts_kubectl_works_through_what_was_installed(installed, edge):
    home = installed.folder / "kubectl"
    config = installed.world.kubeconfig(installed.folder / "user.kubeconfig", "edge-1", "alice", ["dev"])
    tool = kubectl.Kubectl(kubectl.newest(), config, home)
    assert "in-shop" in tool.ok("get", "configmaps", "-n", "shop")
    assert tool.run("delete", "configmap", "in-shop", "-n", "shop").code != 0


def test_charts_the_fleet_view_has_the_types_of_rbac_sync_and_no_others(installed, edge):
    def shown(path):
        with installed.world.client("alice", ["dev"]) as client:
            return client.get(f"{STAR}{path}")
    wait_until(lambda: shown("/api/v1/configmaps").status == 200, 30, "the catalog")
    names = {i["metadata"]["name"] for i in shown("/api/v1/configmaps").json()["items"]}
    assert {"in-shop", "in-rest"} <= names
    answer = shown("/api/v1/replicationcontrollers")
    assert answer.status == 200 and answer.json()["items"] == []
    assert any("1 failing: edge-1" in w for w in answer.all("warning")), answer.headers
    installed.hub.wait_line("event=sync-problem cluster=edge-1 type=replicationcontrollers "
                            "reason=.the agent's credential may not")


def test_charts_the_account_has_the_rights_of_the_chart_and_no_others(installed, edge):
    objects, _, token = edge
    installed.make(f"/api/v1/namespaces/{SPACE}/serviceaccounts", {"metadata": {"name": "nobody"}})
    everybodys = installed.rights(installed.account("nobody"))
    own = installed.rights(token)
    role, = of_kind(objects, "ClusterRole")
    assert own[0] - everybodys[0] == singles(role["rules"]) - everybodys[0]
    assert own[1] - everybodys[1] <= {("get", p) for r in role["rules"]
                                      for p in r.get("nonResourceURLs", [])}
    for method, path, obj in (
            ("GET", "/api/v1/secrets", None), ("GET", "/api/v1/namespaces/shop/pods/p", None),
            ("GET", f"{RBAC}/clusterroles", None), ("DELETE", "/api/v1/namespaces/shop", None),
            ("POST", "/api/v1/namespaces/shop/configmaps", {"metadata": {"name": "mine"}})):
        assert installed.as_account(token, method, path, obj).status == 403, path
    assert installed.as_account(token, "GET", "/api/v1/configmaps").status == 200


def test_charts_kubectl_lists_the_same_rights(installed, edge):
    _, _, token = edge
    config = write_yaml(installed.folder / "account.kubeconfig", {
        **kubeconfig_of(installed.backend.url, installed.backend.ca, "", ""),
        "users": [{"name": "c", "user": {"token": token}}]})
    tool = kubectl.Kubectl(kubectl.newest(), config, installed.folder / "kubectl-account")
    out = tool.ok("auth", "can-i", "--list")
    assert re.search(r"(?m)^users\s.*\[impersonate\]", out), out
    assert not re.search(r"(?m)^(\*\.\*|secrets)\s", out), out
    for verb, what in (("get", "secrets"), ("create", "pods"), ("delete", "nodes"), ("escalate", "roles")):
        assert tool.run("auth", "can-i", verb, what).code == 1


def test_charts_names_for_impersonation_are_held_by_the_api_server(installed):
    installed.agent("narrow", "narrow", rbac={"impersonate": {
        "users": ["kuberelay:admin", "kuberelay:alice"], "groups": ["kuberelay:dev"]}})
    assert installed.ask("narrow", "/api/v1/namespaces/shop/configmaps").status == 200
    answer = installed.ask("narrow", "/api/v1/namespaces/shop/configmaps", "bob")
    assert answer.status == 403 and "cannot impersonate" in answer.body.decode(), answer.body


def test_charts_a_fixed_identity_has_the_rights_of_the_policys_rules(installed):
    objects, _, token = installed.agent("fixed", "fixed", policy={
        "identity": "fixed", "rules": [
            {"namespaces": ["shop"], "resources": ["configmaps"], "verbs": ["*"]},
            {"resources": ["nodes"], "verbs": ["get", "list"]}]}, rbac={"sync": []})
    assert of_kind(objects, "Role")[0]["metadata"]["namespace"] == "shop"
    assert installed.ask("fixed", "/api/v1/namespaces/shop/configmaps/in-shop").status == 200
    assert installed.ask("fixed", "/api/v1/namespaces/rest/configmaps").status == 403
    for path, status in (("/api/v1/namespaces/shop/configmaps", 200), ("/api/v1/nodes", 200),
                         ("/api/v1/namespaces/rest/configmaps", 403), ("/api/v1/configmaps", 403),
                         ("/api/v1/namespaces/shop/pods", 403)):
        assert installed.as_account(token, "GET", path).status == status, path
    rights, _ = installed.rights(token, "shop")
    assert not {r for r in rights if r[0] == "impersonate"}


@pytest.mark.parametrize("release", ["r" * 53, "9x", "a.b"], ids=["long", "digit", "dot"])
def test_charts_f045_odd_releases_install_and_leave_nothing(installed, release):
    values = {"cluster": "c" * 63, "hubs": ["hub.example:8443"], "ca": {"pem": PEM},
              "identity": {"joinToken": "kr1.a.b"}, "proxy": "http://me:p%40s%23$(id)@proxy:3128"}
    objects = installed.helm.install(AGENT, values, release)
    kinds = {o["kind"] for o in objects}
    assert {"Deployment", "ConfigMap", "Secret", "NetworkPolicy", "ClusterRole"} <= kinds
    installed.helm.run("upgrade", release, AGENT, values={**values, "replicaCount": 1})
    installed.helm.run("uninstall", release)
    with pytest.raises(Refused, match="not found"):
        installed.helm.run("status", release)
    for kind in ("clusterroles", "clusterrolebindings"):
        left = call(installed.root, "GET", f"{RBAC}/{kind}").json()["items"]
        assert not [i for i in left if i["metadata"].get("labels", {}).get(
            "app.kubernetes.io/instance") == release]


def test_charts_a_hub_with_everything_installs(installed):
    values = {"ca": {"pem": PEM}, "tls": {"existingSecret": "x"}, "hubDomain": "hub.test",
              "podDisruptionBudget": {"enabled": True}, "authentication": {"files": {"a.crt": "x"}},
              "api": {"service": {"type": "LoadBalancer", "externalTrafficPolicy": "Local",
                                  "loadBalancerSourceRanges": ["192.0.2.0/24"]}},
              "agents": {"service": {"type": "NodePort", "nodePort": 30443}}}
    objects = installed.helm.install(HUB, values, "z" * 53)
    assert len(of_kind(objects, "Service")) == 2
    installed.helm.run("uninstall", "z" * 53)
