# SPDX-License-Identifier: Apache-2.0
"""Values of the charts that would render well and fail in the pod, or do nothing: Helm says no, and in
words that tell what to change. And that the charts know every option that the programs have."""

import json
import re

import pytest

from helm import AGENT, HUB, Helm, Refused, of_kind
from procs import run
from test_charts import AGENT_VALUES, HUB_VALUES, PEM, merged, values_of

KEY = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"
RULE = {"resources": ["pods"], "verbs": ["get"]}
PROJECT = {"name": "shop", "members": {"groups": ["dev"]}, "clusters": ["*"], "rules": [RULE]}
LOGIN = {"url": "https://login.test", "audiences": ["kuberelay"]}
IN_POD = "/etc/kuberelay/authentication/"
# Options that mean nothing in a pod: where nothing can be mounted, and files that audit logs are not.
NOT_IN_PODS = {AGENT: {"kubeconfig", "context", "serviceAccountDir", "joinToken", "auditMaxSize", "auditKeep"},
               HUB: {"auditMaxSize", "auditKeep"}}


@pytest.fixture
def helm(tmp_path):
    return Helm(tmp_path)


def refusal(helm, chart, more):
    with pytest.raises(Refused) as refused:
        helm.template(chart, merged(AGENT_VALUES if chart == AGENT else HUB_VALUES, more))
    return str(refused.value)


@pytest.mark.parametrize("more,text", [
    ({"adminListen": "127.0.0.1:9444"}, "adminListen: \"127.0.0.1:9444\" is not possible: 0.0.0.0:PORT"),
    ({"adminListen": "[::]:80"}, "adminListen"),
    ({"auditLog": "/var/log/audit.log"}, "/auditLog"),
    ({"options": {"auditLog": "/var/log/audit.log"}}, "additional properties 'auditLog' not allowed"),
    ({"options": {"logLevel": "loud"}}, "/options/logLevel"),
    ({"options": {"drainTimeout": "30"}}, "/options/drainTimeout"),
    ({"options": {"drainTimeout": "2h"}}, "options.drainTimeout: 2h is not possible"),
    ({"ca": {"pem": "ca.crt"}}, "--set-file ca.pem=ca.crt"),
    ({"ca": {"pem": PEM + KEY}}, "and no key"),
    ({"hubs": ["hub:8443", "hub:8443"]}, "/hubs"),
    ({"policy": {"exec": True}}, "policy.exec: needs policy.mode read-write"),
    ({"policy": {"rule": []}}, "additional properties 'rule' not allowed"),
    ({"policy": {"rules": []}}, "/policy/rules"),
    ({"policy": {"rules": [{"resources": ["pods"]}]}}, "missing property 'verbs'"),
    ({"policy": {"groups": {"ops": "system:masters"}}}, "/policy/groups/ops"),
    ({"policy": {"ownNamespace": "other"}}, "additional properties 'ownNamespace' not allowed"),
    ({"policy": {"identity": "fixed"}}, "fixed needs policy.rules or rbac.fixedRules"),
    ({"rbac": {"fixedRules": [{"apiGroups": [""], **RULE}]}}, "rbac.fixedRules: is for policy.identity fixed"),
    ({"rbac": {"impersonate": {"users": ["alice"]}}}, "\"alice\" does not begin with userPrefix"),
    ({"rbac": {"impersonate": {"groups": ["dev"]}}}, "\"dev\" does not begin with userPrefix"),
    ({"rbac": {"sync": [{"apiGroups": ["*"], "resources": ["secrets"]}]}}, "Secrets need policy.open"),
    ({"rbac": {"sync": [{"apiGroups": [""], "resources": ["secrets"]}]}, "policy": {"open": ["secrets"]}},
     "Secrets also need options.syncDeny"),
    ({"serviceAccount": {"create": False}}, "serviceAccount.name: is needed"),
    ({"podLabels": {"app.kubernetes.io/name": "mine"}}, "podLabels: "),
    ({"podAnnotations": {"prometheus.io/port": 9444}}, "/podAnnotations/prometheus.io~1port"),
    ({"networkPolicy": {"apiServerPorts": []}}, "/networkPolicy/apiServerPorts"),
    ({"networkPolicy": {"hubCIDRs": ["192.0.2.1"]}}, "/networkPolicy/hubCIDRs/0"),
    ({"persistence": {"size": "16 MB"}}, "/persistence/size"),
    ({"image": {"digest": "0123"}}, "/image/digest"),
])
def test_charts_agent_values_that_fail_in_the_pod_are_refused(helm, more, text):
    assert text in refusal(helm, AGENT, more)


@pytest.mark.parametrize("more,text", [
    ({"auditLog": "/var/log/audit.log"}, "/auditLog"),
    ({"options": {"adminListen": "0.0.0.0:9443"}}, "additional properties 'adminListen' not allowed"),
    ({"options": {"cacheQuota": "1KiB"}}, "/options/cacheQuota"),
    ({"options": {"heartbeat": "2m"}}, "options.heartbeat: 2m is not possible"),
    ({"options": {"drainTimeout": "5m"}, "terminationGracePeriodSeconds": 75}, "takes 305 seconds to drain"),
    ({"enrollment": {"agentLifetime": "720h", "signer": {"maxLifetime": "24h"}}}, "nothing would be certified"),
    ({"enrollment": {"agentLifetime": "1s"}}, "enrollment.agentLifetime: 1s is not possible"),
    ({"clientCa": {"pem": KEY}}, "clientCa.pem: the root's certificate is expected"),
    ({"authentication": {"issuers": [LOGIN]}}, "give one of jwksFile and jwksUrl"),
    ({"authentication": {"issuers": [{**LOGIN, "jwksUrl": "https://login.test/k"}]}}, "jwksUrl needs caFile"),
    ({"authentication": {"issuers": [{**LOGIN, "jwksFile": "/keys.json"}], "files": {"keys.json": "{}"}}},
     "not \"/keys.json\""),
    ({"authentication": {"issuers": [{**LOGIN, "jwksFile": IN_POD + "k"}], "files": {"keys.json": "{}"}}},
     f"not \"{IN_POD}k\""),
    ({"authentication": {"issuers": [{**LOGIN, "jwksUrl": "https://l.test:8443/k", "caFile": IN_POD + "ca"}],
                         "files": {"ca": PEM}}}, "issuerPorts: has to have 8443"),
    ({"authentication": {"issuers": [{**LOGIN, "audience": "x"}]}}, "'audience' not allowed"),
    ({"projects": [{**PROJECT, "rules": [{**RULE, "verb": ["get"]}]}]}, "'verb' not allowed"),
    ({"projects": [{**PROJECT, "members": {}}]}, "projects: shop: members"),
    ({"projects": [{**PROJECT, "members": {"groups": ["system:masters"]}}]}, "nobody is known as"),
    ({"projects": [{**PROJECT, "clusterSelector": "a=b"}]}, "clusters or clusterSelector, not both"),
    ({"projects": [PROJECT, PROJECT]}, "projects: shop is there twice"),
    ({"projects": [{**PROJECT, "rules": [{"verbs": ["get"]}]}]}, "a rule needs resources"),
    ({"fleet": {"clusters": {"edge-1": {"tier": 1}}}}, "/fleet/clusters/edge-1/tier"),
    ({"fleet": {"readers": [{"resources": ["pods"], "clusters": ["*"]}]}}, "fleet.readers[0]: users or groups"),
    ({"fleet": {"profiles": [{"name": "all", "resources": ["*"], "always": True}]}}, "always needs resources"),
    ({"impersonation": ["ops=alice"]}, "/impersonation/0"),
    ({"serviceAccount": {"create": False}}, "serviceAccount.name: is needed"),
    ({"api": {"service": {"externalTrafficPolicy": "local"}}}, "/api/service/externalTrafficPolicy"),
])
def test_charts_hub_values_that_fail_in_the_pod_are_refused(helm, more, text):
    assert text in refusal(helm, HUB, more)


def test_charts_pods_have_the_time_that_draining_takes(helm):
    for chart, options, seconds in ((AGENT, {}, 45), (AGENT, {"drainTimeout": "2m"}, 135), (HUB, {}, 75),
                                    (HUB, {"drainDelay": "500ms", "drainTimeout": "1m"}, 71)):
        objects = helm.template(chart, merged(values_of(chart), {"options": options}))
        workload, = of_kind(objects, "Deployment", "StatefulSet")
        assert workload["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == seconds, options


def test_charts_probes_and_policy_follow_the_port_of_the_agents_metrics(helm):
    objects = helm.template(AGENT, merged(AGENT_VALUES, {
        "adminListen": "[::]:9500", "networkPolicy": {"metricsFrom": [{"namespaceSelector": {}}]}}))
    container, = of_kind(objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "admin", "containerPort": 9500}]
    assert {container[p]["httpGet"]["port"] for p in ("livenessProbe", "readinessProbe")} == {"admin"}
    policy, = of_kind(objects, "NetworkPolicy")
    assert policy["spec"]["ingress"][0]["ports"] == [{"port": 9500, "protocol": "TCP"}]


def options_of(binaries, chart):
    code, out, err = run([binaries[chart.name], "--help"], 30)
    assert code == 0, err
    flags = re.findall(r"(?m)^  --([-a-z0-9]+)", out.decode())
    return {re.sub(r"-(.)", lambda m: m.group(1).upper(), f) for f in flags} - {
        "config", "checkConfig", "printConfig", "help", "version"}


@pytest.mark.parametrize("chart", [AGENT, HUB], ids=["agent", "hub"])
def test_charts_know_every_option_of_their_program(binaries, chart):
    """Whoever adds an option says whether it can be set in a pod: in the schema, or by a value."""
    schema = json.loads((chart / "values.schema.json").read_text(encoding="utf-8"))
    free = set(schema["properties"]["options"]["properties"])
    config = (chart / "templates" / "config.yaml").read_text(encoding="utf-8")
    own = set(re.findall(r'\bset \$options "(\w+)"', config))
    own |= set(re.findall(r'"(\w+)"', re.search(r"\$options := dict (.*)-}}", config)[1])) & options_of(
        binaries, chart)
    if chart == AGENT:
        own.add("proxy")  # by its environment, since it may have a password
    assert not own & free
    assert own | free | NOT_IN_PODS[chart] == options_of(binaries, chart)


@pytest.mark.parametrize("chart", [AGENT, HUB], ids=["agent", "hub"])
def test_charts_bounds_of_durations_are_the_programs(binaries, tmp_path, chart):
    helpers = (chart / "templates" / "_helpers.tpl").read_text(encoding="utf-8")
    bounds = re.findall(r'"(\w+)" \(list (\d+) (\d+)\)', helpers)
    assert len(bounds) > 5
    needed = {"caFile": "x", "certFile": "x", "keyFile": "x", **({"hubs": "h:1"} if chart == AGENT else {})}
    argv = [binaries[chart.name], "--check-config"]
    for key, value in needed.items():
        argv.append("--" + re.sub(r"([A-Z])", lambda m: "-" + m.group(1).lower(), key) + "=" + value)
    for key, low, high in bounds:
        flag = "--" + re.sub(r"([A-Z])", lambda m: "-" + m.group(1).lower(), key)
        for ms, code in ((int(low), 0), (int(high), 0), (int(low) - 1, 2), (int(high) + 1, 2)):
            assert run([*argv, f"{flag}={ms}ms"], 30)[0] == code, (flag, ms)
