# SPDX-License-Identifier: Apache-2.0
"""Check 54, as far as it goes without a real node: drain meets a disruption budget.

No controllers run here, so the test keeps the budget's status itself."""

import json

import pytest

import kubectl
from cluster_site import JSON


def allow(site, path, disruptions):
    budget = site.ask_direct("GET", path).json()
    budget["status"] = {"disruptionsAllowed": disruptions, "currentHealthy": 1, "desiredHealthy": 1,
                        "expectedPods": 1, "observedGeneration": budget["metadata"]["generation"]}
    answer = site.ask_direct("PUT", path + "/status", [JSON], json.dumps(budget).encode())
    assert answer.status == 200, answer


@pytest.mark.parametrize("minor", [27, 33, 37])
def test_check_54_drain_waits_for_a_disruption_budget(site, kubelet, minor):
    namespace = site.namespace("drain")
    kubelet.pod(site, namespace, "kept", labels={"app": "kept"})
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    site.create(budgets, {"metadata": {"name": "b"}, "spec": {
        "minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}})
    allow(site, f"{budgets}/b", 0)
    tool = site.kubectl(kubectl.need(minor))
    draining = tool.start("drain", "node-1", "--force", "--pod-selector=app=kept", "--timeout=60s")
    try:
        draining.wait_line("(?i)will retry after|cannot evict pod", 20, errors=True)
        allow(site, f"{budgets}/b", 1)
        assert draining.wait(40) == 0, draining.errors
        assert site.ask_direct("GET", f"/api/v1/namespaces/{namespace}/pods/kept").status == 404
    finally:
        draining.stop()
        tool.ok("uncordon", "node-1")


@pytest.mark.real
@pytest.mark.parametrize("minor", [27, 33, 37])
def test_check_54_top_says_what_it_says_without_metrics(site, minor):
    program = kubectl.need(minor)
    direct, relayed = (tool.run("top", "pods") for tool in (
        site.kubectl_direct(program), site.kubectl(program)))
    assert (relayed.code, relayed.out, relayed.err) == (direct.code, direct.out, direct.err)
    assert relayed.code == 1 and "Metrics" in relayed.err
