# SPDX-License-Identifier: Apache-2.0
"""What an agent decides itself about who is asking, whatever the hub says."""

import json
from pathlib import Path

import pytest

import backends
from backends import write_yaml
from clock import wait_until
from cluster_site import Site
from procs import run
from roguehub import field, request_header
from test_rogue_hub import Edge
from tokens import AUDIENCE, Issuer, b64, bearer
from world import CLOSED

PODS = "/api/v1/namespaces/d/pods"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
PROJECT = {"name": "gitops", "members": {"memberTokens": True}, "clusters": ["f1"],
           "rules": [{"resources": ["*"], "verbs": ["*"]}]}
HARNESS = {"name": "harness", "members": {"users": ["admin"]}, "clusters": ["*"],
           "rules": [{"nonResourcePaths": ["/*"], "verbs": ["get"]}]}


def ok(x):
    x.respond(200, {"kind": "PodList", "items": []})


def ask(site, token, path=PODS, method="GET", headers=()):
    with site.world.client(None) as client:
        return client.request(method, site.prefix + path, bearer(token) + list(headers))


# ---- tokens of the member cluster ----

def review(x):
    """Knows one token."""
    token = json.loads(x.body())["spec"]["token"]
    assert x.method == "POST" and not x.all("impersonate-user")
    good = token == review.good
    status = {"authenticated": good}
    if good:
        status["user"] = {"username": "system:serviceaccount:argocd:manager"}
    x.respond(201, {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
                    "status": status})


@pytest.fixture
def member(world):
    issuer = Issuer(world.folder, "https://kubernetes.default.svc.cluster.local")
    review.good = issuer.token("system:serviceaccount:argocd:manager")
    file = write_yaml(world.folder / "fleet.yaml", {"projects": [PROJECT, HARNESS]})
    world.start_hub(memberTokens=True, fleetFile=file)
    fake = backends.FakeBackend(str(world.folder / "fake"))
    site = Site(world, fake, "f1", world.folder / "f1")
    site.issuer = issuer
    site.api.script(REVIEWS, review)
    site.api.script(PODS, ok)
    yield site
    fake.close()


def test_member_token_goes_on_as_it_is(member):
    for _ in range(3):
        assert ask(member, review.good).status == 200
    seen = member.api.seen(lambda x: x.path == PODS)
    assert len(seen) == 3
    for x in seen:
        assert x.all("authorization") == [f"Bearer {review.good}"]
        assert not [n for n in x.names() if n.startswith("impersonate-")]
    assert len(member.api.seen(lambda x: x.path == REVIEWS)) == 1, "a verdict is kept for a minute"


def test_member_token_that_the_api_server_does_not_know_is_401(member):
    answer = ask(member, member.issuer.token("system:serviceaccount:x:y"))
    assert answer.status == 401 and answer.json()["reason"] == "Unauthorized"
    assert not member.api.seen(lambda x: x.path == PODS)


def test_member_token_cannot_act_as_another(member):
    answer = ask(member, review.good, headers=[("impersonate-user", "root")])
    assert answer.status == 403
    assert not member.api.seen(lambda x: x.path == PODS)


def test_member_token_does_not_open_the_fleet_view(member):
    with member.world.client(None) as client:
        answer = client.get("/clusters/%2A/api/v1/pods", bearer(review.good))
    assert answer.status == 401


def test_member_token_when_the_api_server_cannot_say_is_503(member):
    member.api.script(REVIEWS, lambda x: x.fail(500, "InternalError"))
    assert ask(member, member.issuer.token("another")).status == 503
    assert not member.api.seen(lambda x: x.path == PODS)


def test_upstream_401_reaches_who_brought_a_member_token(member):
    member.api.script(PODS, lambda x: x.fail(401, "Unauthorized"))
    assert ask(member, review.good).status == 401


# ---- identity mode verified ----

class Verified:
    def __init__(self, world):
        self.issuer = Issuer(world.folder)
        authn = write_yaml(world.folder / "authn.yaml", {"issuers": [self.issuer.entry()]})
        world.start_hub(authenticationFile=authn,
                        impersonation=["user:acme:alice=user:*"])
        policy = write_yaml(world.folder / "verified.yaml", {
            "mode": "read-write", "exec": True, "open": CLOSED, "identity": "verified",
            "verified": {"issuer": self.issuer.url, "audience": AUDIENCE,
                         "jwksFile": str(self.issuer.file)}})
        self.fake = backends.FakeBackend(str(world.folder / "fake"))
        self.policy = policy
        self.world = world
        kubeconfig = self.fake.kubeconfig(str(Path(world.folder) / "agent.kubeconfig"))
        self.agent = world.start_agent("f1", kubeconfig, wait=False, policyFile=policy)
        self.agent.wait_admin()
        self.prefix = "/clusters/f1"
        self.fake.api.script(PODS, ok)
        wait_until(lambda: ask(self, self.issuer.token()).status == 200, 20, "the agent is there")

    def seen(self):
        return self.fake.api.seen(lambda x: x.path == PODS)


@pytest.fixture
def verified(world):
    made = Verified(world)
    yield made
    made.fake.close()


def test_T31_verified_agent_takes_the_user_from_the_token(verified):
    assert ask(verified, verified.issuer.token("alice", groups=["dev"])).status == 200
    x = verified.seen()[-1]
    assert x.all("impersonate-user") == ["kuberelay:alice"], "not the hub's word: acme:alice"
    assert x.all("impersonate-group") == ["kuberelay:dev"]


def test_T31_verified_agent_believes_no_hub_without_a_token(verified):
    """A user with a certificate: the hub vouches, and brings nothing that proves it."""
    before = len(verified.seen())
    with verified.world.client("root") as client:
        answer = client.get(verified.prefix + PODS)
    assert answer.status == 401 and "agent" in answer.json()["message"]
    as_another = ask(verified, verified.issuer.token("alice"),
                     headers=[("impersonate-user", "root")])
    assert as_another.status == 401
    assert len(verified.seen()) == before


def test_T31_verified_agent_checks_expiry_and_keys_itself(verified):
    token = verified.issuer.token("alice", life=3)
    assert ask(verified, token).status == 200
    wait_until(lambda: ask(verified, token).status == 401, 20, "expired")
    verified.issuer.publish([k for k in verified.issuer.keys() if k["kid"] != "r1"])
    wait_until(lambda: ask(verified, verified.issuer.token()).status == 401, 20, "key withdrawn")


def forged(issuer, other):
    """What a hub could bring for a user who is not there."""
    none = f"{b64({'alg': 'none', 'kid': 'r1'})}.{b64(issuer.claims('root'))}."
    return {
        "nothing": b"", "no token": b"x", "expired": issuer.token("root", life=-1),
        "of another cluster": issuer.token("root", aud="another-cluster"),
        "of another issuer": other.token("root"), "by another's keys": other.token(
            "root", iss=issuer.url),
        "without a signature": none, "signed with the public key": issuer.hs256(b"public"),
        "without an end": issuer.token("root", exp=None),
        "changed": issuer.token("root")[:-8] + "AAAAAAAA"}


def test_T31_a_hub_that_checks_nothing_cannot_forge_a_user(world):
    """As T30: the hub is ours, and what it says of the user is not believed."""
    issuer = Issuer(world.folder)
    other = Issuer(world.folder, "https://other.example.test", "other")
    edge = Edge(world, {
        "mode": "read-write", "exec": True, "open": CLOSED, "identity": "verified",
        "verified": {"issuer": issuer.url, "audience": AUDIENCE, "jwksFile": str(issuer.file)}})
    try:
        for kind, token in forged(issuer, other).items():
            header = request_header("root", ["admins"], raw=field(12, token) if token else b"")
            answer = edge.hub.ask("GET", PODS, header=header)
            assert answer.status == 401, (kind, answer.status, answer.body)
        assert edge.reached() == []
        header = request_header("root", ["admins"], uid="u0", extra=[("scopes", ["all"])],
                                raw=field(12, issuer.token("alice", groups=["dev"])))
        assert edge.hub.ask("GET", PODS, header=header).status == 200
        x = edge.reached()[0]
        assert x.all("impersonate-user") == ["kuberelay:alice"], "the token's word, not the hub's"
        assert x.all("impersonate-group") == ["kuberelay:dev"]
        assert not [n for n in x.names() if n.startswith(("impersonate-uid", "impersonate-extra"))]
    finally:
        edge.close()


def test_verified_agent_without_keys_does_not_start(world):
    policy = write_yaml(world.folder / "p.yaml", {
        "identity": "verified", "verified": {"issuer": "https://x", "audience": "a",
                                             "jwksFile": str(world.folder / "none.json")}})

    world.start_hub()
    config = write_yaml(world.folder / "a.yaml", world.agent_config("f1", "/none",
                                                                   policyFile=policy))
    code, out, err = run([world.binaries["kuberelay-agent"], "--config", config], 20)
    assert code != 0 and b"none.json" in out + err


# ---- the same with a real API server ----

@pytest.mark.real
def test_service_account_token_works_through_the_relay_as_argocd_uses_it(world, backend):
    """`argocd cluster add`: a service account with a role, and its token."""
    def post(client, path, obj):
        answer = client.request("POST", path, [("content-type", "application/json")],
                                json.dumps(obj).encode())
        assert answer.status in (201, 409), answer
        return answer
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    accounts = "/api/v1/namespaces/kube-system/serviceaccounts"
    with backend.as_root() as root:
        post(root, f"{rbac}/clusterroles", {"metadata": {"name": "kuberelay-reviews"}, "rules": [
            {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"],
             "verbs": ["create"]}]})
        post(root, f"{rbac}/clusterrolebindings", backends.binding(
            "kuberelay-reviews", "kuberelay-reviews", "User", "kuberelay-agent"))
        post(root, accounts, {"metadata": {"name": "argocd-manager"}})
        post(root, f"{rbac}/clusterroles", {"metadata": {"name": "argocd-manager"}, "rules": [
            {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]}]})
        bound = backends.binding("argocd", "argocd-manager", "ServiceAccount", "argocd-manager")
        bound["subjects"][0].update(namespace="kube-system")
        bound["subjects"][0].pop("apiGroup")
        post(root, f"{rbac}/clusterrolebindings", bound)
        token = post(root, f"{accounts}/argocd-manager/token",
                     {"spec": {"expirationSeconds": 600}}).json()["status"]["token"]
        foreign = post(root, f"{accounts}/argocd-manager/token", {
            "spec": {"audiences": ["somebody-else"]}}).json()["status"]["token"]
    world.start_hub(memberTokens=True)
    site = Site(world, backend, "f1", world.folder / "f1")
    wait_until(lambda: ask(site, token, "/api/v1/namespaces").status == 200, 20, "rights are known")
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    with world.client(None) as client:
        who = client.request("POST", site.prefix + review, bearer(token) + [
            ("content-type", "application/json")], b'{"apiVersion":"authentication.k8s.io/v1",'
            b'"kind":"SelfSubjectReview"}').json()
        assert (who["status"]["userInfo"]["username"]
                == "system:serviceaccount:kube-system:argocd-manager")
        watch = client.start("GET", site.prefix + "/api/v1/namespaces?watch=1", bearer(token))
        watch.wait_bytes(10)
    assert ask(site, token, "/api/v1/secrets").status == 403, "its own RBAC decides"
    assert ask(site, foreign, "/api/v1/namespaces").status == 401
    assert ask(site, token[:-4] + "AAAA", "/api/v1/namespaces").status == 401
