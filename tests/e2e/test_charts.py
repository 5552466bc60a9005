# SPDX-License-Identifier: Apache-2.0
"""The Helm charts as text: what the real Helm lints and renders, what it refuses, and that hub and
agent understand every line of the configuration that comes out (field case F045)."""

import copy
import datetime
import json
import os
import re
import shlex
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from backends import REPO
from helm import AGENT, HUB, KUBE_VERSION, Helm, Pod, Refused, of_kind
from procs import Process, run
from world import Hub

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SERVICE = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
JWKS = json.dumps({"keys": [{
    "kty": "EC", "crv": "P-256", "kid": "k1", "use": "sig", "alg": "ES256",
    "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
    "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]})
PEM = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
AGENT_VALUES = {"cluster": "edge-1", "hubs": ["hub.example:8443", "[fd00::1]:9443"],
                "ca": {"pem": PEM},
                "identity": {"existingSecret": "pair"}}
HUB_VALUES = {"ca": AGENT_VALUES["ca"], "tls": {"existingSecret": "hub-pair"}}
CERT_MANAGER = {"enabled": True, "trustDomain": "example.test", "issuerRef": {"name": "roots"}}
RULES = [{"namespaces": ["shop"], "resources": ["pods", "pods/log", "deployments.apps/scale"],
          "verbs": ["get", "create"]}, {"resources": ["nodes"], "verbs": ["*"]}]
AGENTS = {
    "least": {},
    "token": {"identity": {"existingSecret": "", "joinToken": "kr1.abc.def"}},
    "pin": {"identity": {"existingSecret": "", "joinToken": "kr1.abc.def"},
            "ca": {"pem": "", "pin": "sha256:" + "0a" * 32}},
    "token-secret": {"identity": {"existingSecret": "", "existingJoinTokenSecret": "join"}},
    "cert-manager": {"identity": {"existingSecret": "", "certManager": CERT_MANAGER}},
    "two": {"replicaCount": 2, "ca": {"pem": "", "existingConfigMap": "roots"}},
    "off": {"policy": {"mode": False}},
    "fixed": {"policy": {"identity": "fixed", "rules": RULES}},
    "verified": {"jwks": JWKS, "policy": {
        "identity": "verified", "verified": {"issuer": "https://login.test", "audience": "edge"}}},
    "all": {"hubName": "hub.test", "noProxy": "10.0.0.0/8", "proxy": "http://me:p@s%231$(id)@proxy:3128",
            "userPrefix": "edge:", "options": {"logLevel": "debug", "lanes": 4, "windowBudget": "8MiB", "drainTimeout": "2m",
                                               "maxRequests": 100000, "syncDeny": ["secrets", "nodes"]},
            "systemUsers": ["system:serviceaccount:ci:deployer", "system:serviceaccount:ops:*"],
            "policy": {"mode": "read-write", "exec": True, "rules": RULES, "open": ["roles"],
                       "groups": {"ops": "edge-ops"}, "limits": {"requests": 200}}},
}
HUBS = {
    "least": {},
    "cert-manager": {"hubDomain": "hub.test",
                     "tls": {"existingSecret": "", "certManager": CERT_MANAGER}},
    "enrolling": {"enrollment": {"signerSecret": "signer"}},
    "signing": {"enrollment": {"signerSecret": "signer", "signer": {"enabled": True}, "hourLimit": 1200}},
    "all": {"replica": "hub-1", "hubDomain": "hub.test", "crlConfigMap": "crl",
            "clientCa": {"existingConfigMap": "roots"}, "enrollment": {"registration": "required"},
            "authentication": {
                "issuers": [{"url": "https://login.test", "audiences": ["kuberelay"],
                             "jwksFile": "/etc/kuberelay/authentication/keys.json"}],
                "files": {"keys.json": JWKS}, "tokensSecret": "tokens", "memberTokens": True},
            "projects": [{"name": "shop", "members": {"groups": ["shop-dev"]}, "clusters": ["edge-1"],
                          "rules": [{"resources": ["pods"], "verbs": ["get", "list"]}]}],
            "fleet": {"clusters": {"edge-1": {"region": "eu"}}, "onDemand": False,
                      "readers": [{"groups": ["ops"], "clusters": ["*"], "resources": ["*"]}],
                      "profiles": [{"name": "pods", "resources": ["pods"], "always": True}]},
            "impersonation": ["group:ops=user:*"], "options": {"cacheQuota": "64MiB", "tls12": True},
            "persistence": {"enabled": False}, "podDisruptionBudget": {"enabled": True}},
}
CASES = [(AGENT, n) for n in AGENTS] + [(HUB, n) for n in HUBS]


def merged(base, more):
    out = copy.deepcopy(base)
    for key, value in more.items():
        both = isinstance(value, dict) and isinstance(out.get(key), dict)
        out[key] = merged(out[key], value) if both else value
    return out


def values_of(chart, name="least"):
    return merged(AGENT_VALUES, AGENTS[name]) if chart == AGENT else merged(HUB_VALUES, HUBS[name])


@pytest.fixture
def helm(tmp_path):
    return Helm(tmp_path)


def each(cases):
    return pytest.mark.parametrize("chart,case", cases, ids=[f"{c.name}-{n}" for c, n in cases])


def pair_of(pair):
    return {"tls.crt": Path(pair.crt).read_text(encoding="ascii"),
            "tls.key": Path(pair.key).read_text(encoding="ascii")}


@pytest.fixture(scope="module")
def outside(session_world):
    """What the charts refer to: Secrets and ConfigMaps that somebody else makes."""
    root, now = session_world.root(), datetime.datetime.utcnow()
    crl = (x509.CertificateRevocationListBuilder().issuer_name(root.certificate.subject)
           .last_update(now).next_update(now + datetime.timedelta(days=1))
           .sign(root.private, hashes.SHA256()))
    agent = pair_of(session_world.issue_agent("edge-1"))
    return {("Secret", "pair"): agent, ("Secret", "kr-agent-cert"): agent,
            ("Secret", "hub-pair"): pair_of(session_world.hub_pair),
            ("Secret", "kr-hub-cert"): pair_of(session_world.hub_pair),
            ("Secret", "signer"): pair_of(root), ("Secret", "join"): {"token": "kr1.a.b"},
            ("Secret", "tokens"): {"tokens.csv": "a-token-of-some-length,alice,1\n"},
            ("ConfigMap", "roots"): {"ca.crt": Path(session_world.ca).read_text(encoding="ascii")},
            ("ConfigMap", "crl"): {
                "crl.pem": crl.public_bytes(serialization.Encoding.PEM).decode()}}


@each(CASES)
def test_charts_lint_and_the_programs_start_with_what_they_render(helm, binaries, outside, tmp_path,
                                                                  chart, case):
    values = values_of(chart, case)
    if case != "pin":
        values = merged(values, {"ca": {"pem": "", "existingConfigMap": "roots"}})
    out = helm.run("lint", chart, "--strict", "--kube-version", KUBE_VERSION, values=values)
    assert "0 chart(s) failed" in out and "[WARNING]" not in out, out
    pod = Pod(helm.template(chart, values), tmp_path / "pod", outside)
    code, out, err = run(pod.argv(binaries, "--check-config"), 30)
    assert code == 0, (out, err, pod.config)
    flags = ["--admin-listen", "127.0.0.1:0"]
    if chart == HUB:
        flags += ["--api-listen", "127.0.0.1:0", "--agent-listen", "127.0.0.1:0"]
    else:
        account = tmp_path / "account"
        account.mkdir()
        (account / "token").write_text("token", encoding="ascii")
        (account / "ca.crt").write_text(outside["ConfigMap", "roots"]["ca.crt"], encoding="ascii")
        flags += ["--service-account-dir", account]
    env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1", **pod.env()}
    process = Process(chart.name, pod.argv(binaries, *flags), str(tmp_path), env)
    try:
        process.wait_line(r"event=listening\b.*\bport=admin\b")
        assert not process.grep("event=(start|reload)-failed")
    finally:
        process.kill()


@each(CASES)
def test_charts_pods_are_confined(helm, chart, case):
    objects = helm.template(chart, values_of(chart, case))
    spec = of_kind(objects, "Deployment", "StatefulSet")[0]["spec"]["template"]["spec"]
    container, *beside = spec["containers"]
    assert len(beside) == (1 if case == "signing" else 0)
    assert "initContainers" not in spec and not spec.get("hostNetwork")
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] > 10000
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]}}
    assert {"livenessProbe", "readinessProbe", "resources"} <= set(container)
    # Nothing of the values is in a command line, where a kubelet or a shell would expand it.
    assert container["args"] == ["--config", f"/etc/kuberelay/config/{chart.name[10:]}.yaml"]
    assert spec["automountServiceAccountToken"] == (chart == AGENT)
    writable = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
    assert writable <= {"/var/lib/kuberelay", "/run/kuberelay", "/run/kuberelay-signer"}
    text = str(of_kind(objects, "ConfigMap"))
    assert "kr1." not in text and "p@s" not in text, "a secret in a ConfigMap"


def test_charts_the_signers_key_is_in_its_container_alone(helm, outside, tmp_path):
    values = merged(values_of(HUB, "signing"), {"ca": {"pem": "", "existingConfigMap": "roots"}})
    objects = helm.template(HUB, values)
    pod = Pod(objects, tmp_path / "hub", outside)
    signer = Pod(objects, tmp_path / "signer", outside, container=1,
                 shared={"signer-run": pod.places["/run/kuberelay-signer"]})
    assert signer.container["name"] == "signer"
    user = signer.container["securityContext"]
    assert user.pop("runAsUser") not in (0, pod.spec["securityContext"]["runAsUser"])
    assert user == pod.container["securityContext"]
    assert not list((tmp_path / "hub").rglob("tls.key"))[1:], "its own, and no other"
    assert (signer.places["/etc/kuberelay/signer"] / "tls.key").exists()
    assert pod.config["signer"] == f"unix:{signer.config['socket']}"
    assert "signerKeyFile" not in pod.config and signer.config["hourLimit"] == 1200
    assert signer.config["hubUid"] == pod.spec["securityContext"]["runAsUser"]


def test_charts_an_agent_joins_with_a_pin_by_the_signer_beside_the_hub(helm, binaries, outside, workdir):
    """Hub, signer and agent as they are rendered, but for the users, which a test cannot choose."""
    folder = workdir / "signing"
    values = merged(values_of(HUB, "signing"), {"ca": {"pem": "", "existingConfigMap": "roots"}})
    objects = helm.template(HUB, values)
    pod = Pod(objects, folder / "hub", outside)
    signer = Pod(objects, folder / "signer", outside, container=1,
                 shared={"signer-run": pod.places["/run/kuberelay-signer"]})
    account = folder / "account"
    account.mkdir()
    (account / "token").write_text("token", encoding="ascii")
    (account / "ca.crt").write_text(outside["ConfigMap", "roots"]["ca.crt"], encoding="ascii")
    processes = [Process("signer", signer.argv(binaries, "--hub-uid", str(os.geteuid())), str(folder))]
    try:
        processes[0].wait_line(r"event=started\b")
        hub = Hub("hub", pod.argv(binaries, "--admin-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0",
                                  "--agent-listen", "127.0.0.1:0"), str(folder), pod.env())
        processes.append(hub)
        hub.wait_ready()
        code, out, err = run([binaries["kuberelayctl"], "token", "create", "--cluster", "edge-1", "-o",
                              "json", "--socket", pod.places["/run/kuberelay"] / "admin.sock"], 30)
        assert code == 0, err
        token = json.loads(out)
        agent = Pod(helm.template(AGENT, merged(values_of(AGENT, "pin"), {
            "hubs": [hub.agent_address], "identity": {"joinToken": token["token"]},
            "ca": {"pin": token["rootPin"]}})), folder / "agent", outside)
        env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1", **agent.env()}
        processes.append(Process("agent", agent.argv(binaries, "--admin-listen", "127.0.0.1:0",
                                                     "--service-account-dir", account), str(folder), env))
        processes[-1].wait_line(r"event=joined\b.*cluster=edge-1\b")
        processes[0].wait_line(r"event=signed\b.*/cluster/edge-1/agent/a\b")
    finally:
        for process in processes:
            process.kill()


def test_charts_agents_that_share_a_secret_keep_its_key(helm):
    for count, policy in ((1, "Always"), (2, "Never")):
        values = merged(values_of(AGENT, "cert-manager"), {"replicaCount": count, "instance": "b"})
        certificate, = of_kind(helm.template(AGENT, values), "Certificate")
        assert certificate["spec"]["privateKey"]["rotationPolicy"] == policy
        assert certificate["spec"]["uris"][0].endswith("/cluster/edge-1/agent/b")


def test_charts_a_proxy_with_odd_characters_is_passed_as_it_is(helm, outside, tmp_path):
    pod = Pod(helm.template(AGENT, values_of(AGENT, "all")), tmp_path / "pod", outside)
    assert pod.env()["HTTPS_PROXY"] == AGENTS["all"]["proxy"]
    assert pod.config["maxRequests"] == 100000


def commands_of(document):
    """Every `helm install` of a document, with its lines joined and comments gone."""
    text = (REPO / document).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (re.sub(r"\s#\s.*", "", line).strip() for line in text.splitlines())
    return [shlex.split(line)[2:] for line in lines if line.startswith("helm install ")]


@pytest.mark.parametrize("document,count", [
    ("docs/operations.md", 2), ("charts/kuberelay-agent/README.md", 1),
    ("charts/kuberelay-hub/README.md", 1)])
def test_charts_commands_of_the_documents_render(helm, tmp_path, document, count):
    found = commands_of(document)
    assert len(found) == count
    (tmp_path / "ca.crt").write_text(PEM, encoding="ascii")
    for args in found:
        args = [a.replace("=ca.crt", f"={tmp_path}/ca.crt") for a in args if a != "--create-namespace"]
        args[1] = str(REPO / args[1])
        out = helm.run("template", *args, "--kube-version", KUBE_VERSION)
        assert "image: \"registry.example/kuberelay:" in out


# -- names

GOOD = ["edge-1", "9x", "0", "a" * 63]
BAD = ["Prod-EU", "a.b.c", "x_y", "b" * 64, "it's", 'a"b', "$(id)", "`id`", "", "-a", "a-", "a b",
       "a\nb", "ä"]


@pytest.mark.parametrize("name", GOOD)
def test_charts_f045_good_cluster_names_render(helm, name):
    values = merged(values_of(AGENT, "cert-manager"), {"cluster": name})
    certificate, = of_kind(helm.template(AGENT, values), "Certificate")
    assert certificate["spec"]["uris"] == [f"spiffe://example.test/cluster/{name}/agent/a"]


@pytest.mark.parametrize("name", BAD)
def test_charts_f045_bad_cluster_names_are_refused_in_words(helm, name):
    with pytest.raises(Refused, match="is not possible: lower-case letters, digits and '-', at most 63"):
        helm.template(AGENT, merged(AGENT_VALUES, {"cluster": name}))
    with pytest.raises(Refused, match="fleet.clusters: .* is not possible"):
        helm.template(HUB, merged(HUB_VALUES, {"fleet": {"clusters": {name: {"a": "b"}}}}))


RELEASES = ["kr", "9x", "a.b", "1e3", "r" * 53, "r" * 52 + "s", "r" * 47 + "-agent", "a-b"]


def names_of(objects):
    return {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects}


@pytest.mark.parametrize("chart,case", [(AGENT, "token"), (HUB, "all")], ids=["agent", "hub"])
def test_charts_f045_names_are_cut_safely_and_stay_unique(helm, chart, case):
    seen = set()
    for release in RELEASES:
        objects = helm.template(chart, values_of(chart, case), release)
        names = names_of(objects)
        assert not names & seen, release
        seen |= names
        for obj in objects:
            name, labels = obj["metadata"]["name"], obj["metadata"]["labels"]
            assert isinstance(name, str) and LABEL.fullmatch(name), name
            if obj["kind"] == "Service":
                assert SERVICE.fullmatch(name), name
            if obj["kind"] == "StatefulSet":
                assert len(name) <= 52, "a pod's label of its revision would be too long"
            assert all(isinstance(v, str) and len(v) <= 63 for v in labels.values()), labels
            assert obj["metadata"].get("namespace", "kuberelay") == "kuberelay"


def test_charts_names_that_look_like_numbers_stay_text(tmp_path):
    helm = Helm(tmp_path, namespace="123")
    for chart in (AGENT, HUB):
        for obj in helm.template(chart, values_of(chart), "1e3"):
            assert obj["metadata"].get("namespace", "123") == "123"


# -- what is refused

@pytest.mark.parametrize("more,text", [
    ({"clutser": "x"}, "additional properties 'clutser' not allowed"),
    ({"policy": {"mode": "on"}}, "/policy/mode"),
    ({"instance": "B_1"}, "instance: "),
    ({"hubs": []}, "hubs: the agent port of at least one hub is needed"),
    ({"hubs": ["https://hub:8443"]}, "is not HOST:PORT"),
    ({"hubs": ["hub:8443/$(id)"]}, "is not HOST:PORT"),
    ({"ca": {"pem": ""}}, "ca: the root that hubs are verified against is needed"),
    ({"ca": {"pin": "sha256:" + "0" * 64}}, "not both"),
    ({"ca": {"pem": "", "pin": "sha256:" + "0" * 64}}, "ca.pin: only with a join token"),
    ({"ca": {"pem": "", "pin": "md5:00"}}, "/ca/pin"),
    ({"identity": {"existingSecret": ""}}, "identity: give exactly one of"),
    ({"identity": {"joinToken": "kr1.a.b"}}, "identity: give exactly one of"),
    ({"identity": {"existingSecret": "", "joinToken": "secret"}}, "this is no token"),
    ({"identity": {"existingSecret": "", "joinToken": "kr1.a.b"}, "replicaCount": 2}, "replicaCount"),
    ({"rbac": {"sync": [{"apiGroups": [""], "resources": ["*"]}]}}, "Secrets need policy.open"),
    ({"rbac": {"sync": [{"apiGroups": [""], "resources": ["secrets"]}]}}, "Secrets need policy.open"),
    ({"proxy": "http://me:p#s@proxy:3128"}, "proxy: \"#\" is written %23"),
    ({"proxy": "proxy:3128"}, "proxy: http://"),
    ({"systemUsers": ["system:serviceaccount:*"]}, "RBAC has no prefixes"),
    ({"systemUsers": ["system:kube-*"]}, "RBAC has no prefixes"),
    ({"policy": {"identity": "verified"}}, "verified needs policy.verified"),
    ({"policy": {"identity": "fixed", "rules": [{"resources": ["*"], "verbs": ["get"]}]}},
     "cannot be said in RBAC"),
    ({"hubs": ["hub:0"]}, "has no port"),
    ({"hubs": ["hub:65536"]}, "has no port"),
])
def test_charts_agent_values_that_cannot_work_are_refused(helm, more, text):
    with pytest.raises(Refused) as refused:
        helm.template(AGENT, merged(AGENT_VALUES, more))
    assert text in str(refused.value)


@pytest.mark.parametrize("more,text", [
    ({"tls": {"existingSecret": ""}}, "tls: give exactly one of"),
    ({"tls": {"certManager": {"enabled": True}}}, "tls: give exactly one of"),
    ({"ca": {"pem": ""}}, "ca: the root that agents and users"),
    ({"replica": "Hub_1"}, "replica: "),
    ({"enrollment": {"signer": {"enabled": True}}}, "it needs the CA of enrollment.signerSecret"),
    ({"enrollment": {"signerSecret": "s", "signer": {"enabled": True, "runAsUser": 65532}}},
     "must not be the hub's own user"),
    ({"enrollment": {"hourLimit": 100001}}, "/enrollment/hourLimit"),
    ({"hubDomain": "hub.example:6443"}, "is not a DNS name"),
    ({"authorization": "all"}, "/authorization"),
    ({"authentication": {"files": {"../x": "text"}}}, "is no name for a file here"),
    ({"api": {"service": {"type": "ExternalName"}}}, "/api/service/type"),
])
def test_charts_hub_values_that_cannot_work_are_refused(helm, more, text):
    with pytest.raises(Refused) as refused:
        helm.template(HUB, merged(HUB_VALUES, more))
    assert text in str(refused.value)


# -- who may talk to whom, and what needs a restart

def ports_of(rules):
    return {(p["port"], p["protocol"]) for r in rules for p in r.get("ports", [])}


def test_charts_f045_policies_let_through_what_is_needed(helm):
    policy, = of_kind(helm.template(AGENT, AGENT_VALUES), "NetworkPolicy")
    assert ports_of(policy["spec"]["egress"]) == {
        (53, "UDP"), (53, "TCP"), (443, "TCP"), (6443, "TCP"), (8443, "TCP"), (9443, "TCP")}
    assert policy["spec"]["ingress"] == []
    narrow = merged(AGENT_VALUES, {"networkPolicy": {
        "hubCIDRs": ["192.0.2.1/32"], "apiServerCIDRs": ["10.0.0.1/32"]}})
    policy, = of_kind(helm.template(AGENT, narrow), "NetworkPolicy")
    assert [r["to"][0]["ipBlock"]["cidr"] for r in policy["spec"]["egress"] if "to" in r] == [
        "10.0.0.1/32", "192.0.2.1/32"]
    hub, = of_kind(helm.template(HUB, HUB_VALUES), "NetworkPolicy")
    assert hub["spec"]["egress"] == [] and len(hub["spec"]["ingress"]) == 2


def annotations(objects):
    return of_kind(objects, "Deployment", "StatefulSet")[0]["spec"]["template"]["metadata"]["annotations"]


def test_charts_only_what_is_not_taken_over_alive_restarts_a_hub(helm):
    def mark(**more):
        return annotations(helm.template(HUB, merged(values_of(HUB, "all"), more)))
    was = mark()
    assert mark(projects=[], fleet={"onDemand": True}) == was
    assert mark(authentication={"files": {"keys.json": "changed"}}) == was
    assert mark(options={"logLevel": "debug"}) != was
    assert mark(ca={"pem": PEM.replace("AA==", "AB==")}) != was


def test_charts_an_agents_policy_restarts_it(helm):
    was = annotations(helm.template(AGENT, AGENT_VALUES))
    assert annotations(helm.template(AGENT, values_of(AGENT, "off"))) != was


# -- rights

def rules_of(objects, kind="ClusterRole"):
    return [r for o in of_kind(objects, kind) for r in o["rules"]]


def singles(rules):
    """Every single right: (verb, group, resource, name or "*")."""
    return {(v, g, r, n) for rule in rules if "resources" in rule for v in rule["verbs"]
            for g in rule["apiGroups"] for r in rule["resources"]
            for n in rule.get("resourceNames") or ["*"]}


def verbs_of(rules):
    return {v for r in rules for v in r["verbs"]}


def test_charts_rights_follow_the_policy(helm):
    objects = helm.template(AGENT, AGENT_VALUES)
    assert verbs_of(rules_of(objects)) == {"get", "list", "watch", "impersonate"}
    assert not [r for r in rules_of(objects) if {"*", "secrets"} & set(r.get("resources", []))]
    off = rules_of(helm.template(AGENT, values_of(AGENT, "off")))
    assert verbs_of(off) == {"get", "list"} and len(off) == 3
    fixed = helm.template(AGENT, values_of(AGENT, "fixed"))
    assert "impersonate" not in verbs_of(rules_of(fixed)) and "create" not in verbs_of(rules_of(fixed))
    role, = of_kind(fixed, "Role")
    assert role["metadata"]["namespace"] == "shop"
    assert [(r["apiGroups"], r["resources"], r["verbs"]) for r in role["rules"]] == [
        ([""], ["pods"], ["get"]), ([""], ["pods/log"], ["get"]), (["apps"], ["deployments/scale"], ["get"])]
    assert {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]} in rules_of(fixed)
    # `connect` is no verb of RBAC, and what connects is a get or a create there.
    connects = {"policy": {"mode": "read-write", "exec": True, "identity": "fixed", "rules": [
        {"resources": ["pods", "pods/exec", "services/proxy"], "verbs": ["list", "connect"]}]}}
    rights = singles(rules_of(helm.template(AGENT, merged(AGENT_VALUES, connects))))
    assert {("get", "", "pods/exec", "*"), ("create", "", "pods/exec", "*"), ("patch", "", "services/proxy", "*"),
            ("list", "", "pods", "*")} <= rights
    assert not [r for r in rights if r[0] == "connect" or (r[0], r[2]) == ("create", "pods")]
    connects["policy"]["exec"] = False
    rights = singles(rules_of(helm.template(AGENT, merged(AGENT_VALUES, connects))))
    assert not {v for v, _, r, _ in rights if r == "pods/exec"} & {"get", "create", "connect"}
    every = helm.template(AGENT, merged(values_of(AGENT, "all"), {"rbac": {
        "memberTokens": True, "impersonate": {"users": ["edge:alice"], "groups": ["edge:dev"]}}}))
    assert singles(rules_of(every)) >= {
        ("create", "authentication.k8s.io", "tokenreviews", "*"), ("impersonate", "", "users", "edge:alice"),
        ("impersonate", "", "groups", "edge:dev"), ("impersonate", "", "groups", "edge-ops")}
    assert ("impersonate", "", "groups", "*") not in singles(rules_of(every))
    system = of_kind(every, "Role")
    assert {r["metadata"]["namespace"]: r["rules"][0].get("resourceNames") for r in system} == {
        "ci": ["deployer"], "ops": None}
