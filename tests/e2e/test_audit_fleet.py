# SPDX-License-Identifier: Apache-2.0
"""The fleet view in the audit logs: reads and watches at the hub, subscriptions at the agent."""

import json

import auditlog
from clock import wait_until
from fleet import ALL, JSON, SOME, STAR, Fleet

PODS = "/api/v1/pods"


def idle(world):
    wait_until(lambda: world.metrics().get('kuberelay_hub_exchanges{class="all"}') == 0, 10, "idle")


def test_audit_reads_of_the_fleet_view_are_lines_of_the_hub(world):
    log = str(world.folder / "hub-audit.log")
    fleet = Fleet(world, names=("c1",), readers=(ALL, SOME), auditLog=log)
    fleet.wait_synced()
    assert fleet.get(PODS + "?limit=3").status == 200
    assert fleet.get(PODS, user="nobody").status == 403
    assert fleet.get("/api/v1/namespaces/default/pods/x").status == 405
    watch = fleet.watch(PODS)
    found = auditlog.wait_for(log, lambda f: auditlog.of(f, "ResponseStarted", verb="watch"), "it")
    assert not auditlog.of(found, verb="watch")
    watch.stream.reset()
    idle(world)
    found = auditlog.events(log)
    ours = [e for e in found if e["requestURI"].startswith(STAR + "/api/v1")]
    listed = [e for e in auditlog.of(ours, verb="list") if "limit=3" in e["requestURI"]][0]
    assert listed["objectRef"]["resource"] == "pods" and auditlog.note(listed, "cluster") == "*"
    assert auditlog.note(listed, "outcome") == "completed", listed
    denied = [e for e in auditlog.of(ours) if e["user"]["username"] == "nobody"]
    assert [e["responseStatus"]["code"] for e in denied] == [403], denied
    assert auditlog.note(denied[0], "decision") == "forbid", denied
    assert auditlog.note(denied[0], "outcome") == "not-forwarded", denied
    refused = auditlog.of(ours, verb="get")
    assert [e["responseStatus"]["code"] for e in refused] == [405], refused
    assert len(auditlog.of(ours, verb="watch")) == 1
    auditlog.check_chain(auditlog.lines(log))


def test_audit_bytes_out_are_those_of_the_body_that_left(world):
    log = str(world.folder / "hub-audit.log")
    fleet = Fleet(world, names=("c1",), pods=400, auditLog=log)
    fleet.wait_synced()
    client = fleet.client()
    review = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
              "spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}}
    pods = STAR + PODS
    answers = [client.get(pods), client.get(pods + "?limit=3"),
               client.get(pods, [("accept-encoding", "gzip")]),
               client.request("HEAD", pods), client.get(STAR + "/apis"),
               client.get(pods + "?fieldSelector=x%3D1"), client.get("/clusters/nobody" + PODS),
               client.get(STAR + "/version"),
               client.request("POST", f"{STAR}/apis/authorization.k8s.io/v1/"
                              "selfsubjectaccessreviews", [JSON], json.dumps(review).encode())]
    assert answers[2].get("content-encoding") == "gzip"
    assert [a.status for a in answers] == [200, 200, 200, 200, 200, 400, 403, 200, 201]
    watch = fleet.watch(PODS, timeoutSeconds=1)
    assert watch.stream.wait_finish() == "end"
    answers.append(watch.stream)
    idle(world)
    written = auditlog.by_id(auditlog.events(log))
    for answer in answers:
        (of,) = [v for k, v in answer.headers if k == "audit-id"]
        assert int(auditlog.note(written[of], "bytes-out")) == len(answer.body), written[of]


def test_audit_subscriptions_are_lines_of_the_agent(world):
    """What a hub reads of the cluster for itself, and what it asked for and did not get."""
    log = str(world.folder / "agent-audit.log")
    fleet = Fleet(world, names=("c1",), profiles=[
        {"name": "p", "resources": ["pods", "secrets"], "always": True}])
    fleet.agents["c1"].stop()
    agent = world.start_agent("c1", fleet.clusters["c1"].kubeconfig, name="audited",
                              instance="b", auditLog=log)
    fleet.wait_synced()

    def about(resource, stage):
        return [e for e in auditlog.of(auditlog.events(log), stage, verb="watch")
                if e["objectRef"]["resource"] == resource]

    # What is shown may be what the agent before had told.
    begun = wait_until(lambda: about("pods", "ResponseStarted"), 10, "the subscription")
    assert len(begun) == 1 and begun[0]["user"]["username"] == "hub-1", begun
    assert not about("pods", "ResponseComplete")
    wait_until(lambda: about("secrets", "ResponseComplete"), 10, "the refused one")
    denied = about("secrets", "ResponseComplete")[0]
    assert denied["responseStatus"]["code"] == 403 and auditlog.note(denied, "rule"), denied
    assert auditlog.note(denied, "decision") == "forbid", denied
    agent.stop()
    ended = about("pods", "ResponseComplete")
    assert [e["auditID"] for e in ended] == [begun[0]["auditID"]], ended
    auditlog.check_chain(auditlog.lines(log))
