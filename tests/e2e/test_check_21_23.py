# SPDX-License-Identifier: Apache-2.0
"""Checks 21 to 23: who the API server thinks is asking, audit ids, and trace headers."""

import json
import re

import pytest

import kubectl
from clock import wait_until
from cluster_site import JSON

UUID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def test_check_21_the_user_is_asked_about_not_the_agent(site):
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    direct, relayed = site.both("POST", path, [JSON], json.dumps(review).encode(), user="alice")
    if direct.status == 404 and not site.backend.is_real:
        pytest.skip(f"{site.backend.name} has no SelfSubjectReview")
    info = relayed.json()["status"]["userInfo"]
    assert info["username"] == "kuberelay:alice"
    assert info == direct.json()["status"]["userInfo"]


@pytest.mark.real
@pytest.mark.parametrize("minor", [28, 33, 37])
def test_check_21_whoami_and_can_i(site, minor):
    program = kubectl.need(minor)
    direct = site.kubectl_direct(program, "viewer", ["viewers"])
    relayed = site.kubectl(program, "viewer", ["viewers"])
    assert "kuberelay:viewer" in relayed.ok("auth", "whoami")
    for args in (("auth", "whoami"), ("auth", "can-i", "--list"), ("auth", "can-i", "get", "pods"),
                 ("auth", "can-i", "delete", "pods")):
        one, two = direct.run(*args), relayed.run(*args)
        assert (two.code, sorted(two.out.split())) == (one.code, sorted(one.out.split())), args


@pytest.mark.real
def test_check_21_a_user_without_rights_gets_the_servers_own_403(site):
    direct, relayed = site.both("GET", "/api/v1/secrets", user="nobody")
    assert relayed.status == 403 and "kuberelay:nobody" in relayed.json()["message"]
    assert relayed.body == direct.body


@pytest.mark.real
def test_check_22_one_audit_id_in_hub_answer_and_cluster_log(site):
    answer = site.ask("GET", "/api/v1/namespaces/default", [("audit-id", "chosen-by-client")])
    audit_id = answer.get("audit-id")
    assert audit_id and UUID.match(audit_id), answer.headers
    entries = wait_until(lambda: site.backend.audit_entries(audit_id), 10, "audit log entry")
    assert entries[0]["auditID"] == audit_id
    assert entries[0]["impersonatedUser"]["username"] == "kuberelay:admin"
    assert not site.backend.audit_entries("chosen-by-client")


def test_check_22_every_request_has_a_fresh_audit_id(fake):
    fake.api.script("/api", lambda x: x.respond(200, {}, [("audit-id", x.get("audit-id", ""))]))
    ids = set()
    for _ in range(3):
        answer = fake.ask("GET", "/api/v1/x", [("audit-id", "chosen-by-client")])
        assert len(answer.all("audit-id")) == 1
        ids.add(answer.get("audit-id"))
    assert len(ids) == 3 and all(UUID.match(i) for i in ids), ids


def test_check_22_an_error_of_the_hub_has_an_audit_id_too(fake):
    answer = fake.relay().get("/clusters/no-such-cluster/api")
    assert answer.status == 403 and UUID.match(answer.get("audit-id"))


def test_check_23_trace_headers_are_not_touched(fake):
    trace = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
             ("tracestate", "vendor=a:b,other=1"), ("baggage", "k=v;p,k2=v2")]
    fake.api.script("/api", lambda x: x.respond(200, {}))
    fake.ask("GET", "/api/v1/x", trace)
    x = fake.api.wait_request(lambda x: x.target == b"/api/v1/x")
    for name, value in trace:
        assert x.all(name) == [value]
