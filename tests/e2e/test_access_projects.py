# SPDX-License-Identifier: Apache-2.0
"""Projects: who may do what on which cluster, decided by the hub."""

import json
import random
import time
from pathlib import Path

import pytest

import auditlog
import backends
from backends import write_yaml
from clock import scaled, wait_until
from cluster_site import Site
from fleet import ALL, SOME, STAR, Fleet
from procs import run

PODS = "/api/v1/namespaces/a/pods"
READ = ["get", "list", "watch"]
READERS = {"name": "readers", "members": {"users": ["rita"], "groups": ["readers"]},
           "clusters": ["f1"], "rules": [{"resources": ["*"], "verbs": ["*"]}]}
OPS = {"name": "ops", "members": {"users": ["oscar"]}, "clusters": ["f1"],
       "rules": [{"namespaces": ["a"], "resources": ["pods", "pods/exec", "pods/log"],
                  "verbs": ["get", "list", "watch", "connect"]},
                 {"resources": ["secrets"], "verbs": ["get"]},
                 {"nonResourcePaths": ["/metrics", "/logs/*"], "verbs": ["get"]}]}
UPGRADE = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
           ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
           ("Sec-WebSocket-Protocol", "v5.channel.k8s.io")]
SPDY = [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"), ("Content-Length", "0"),
        ("X-Stream-Protocol-Version", "v5.channel.k8s.io")]


class Projects:
    def __init__(self, world, projects=(READERS, OPS)):
        self.world, self.file = world, Path(world.folder) / "fleet.yaml"
        self.write(projects)
        self.socket = str(Path(world.folder) / "admin.sock")
        self.log = str(Path(world.folder) / "hub-audit.log")
        world.start_hub(fleetFile=str(self.file), adminSocket=self.socket, auditLog=self.log,
                        impersonation=["user:oscar=user:*", "user:oscar=group:*"])
        self.fake = backends.FakeBackend(str(Path(world.folder) / "fake"))
        # The harness's own look for the cluster must be allowed, too.
        self.site = Site(world, self.fake, "f1", Path(world.folder) / "f1")
        self.api = self.fake.api

    def write(self, projects):
        admin = {"name": "harness", "members": {"users": ["admin"]}, "clusters": ["f1"],
                 "rules": [{"nonResourcePaths": ["/*"], "verbs": ["get"]}]}
        write_yaml(self.file, {"projects": [admin, *projects]})

    def ask(self, user, path, method="GET", headers=(), body=None, groups=()):
        with self.world.client(user, groups) as client:
            return client.request(method, self.site.prefix + path, headers, body)


@pytest.fixture
def projects(world):
    made = Projects(world)
    yield made
    made.fake.close()


def ok(x):
    x.respond(200, {"kind": "PodList", "items": []})


def test_T22_who_reads_does_not_get_in(projects):
    """Every way to the inside of a pod is `connect`, which "*" does not give."""
    exec_path = PODS + "/p/exec?command=id"
    ways = [exec_path, PODS + "/p/attach", PODS + "/p/portforward?ports=80", PODS + "/p/proxy",
            PODS + "/p/proxy/x/y", "/api/v1/nodes/n/proxy/pods", PODS.replace("pods", "services")
            + "/s/proxy/", "/api/v1/proxy/nodes/n", "/api/v1/proxy/namespaces/a/pods/p"]
    for path in ways:
        for method in ("GET", "POST"):
            answer = projects.ask("rita", path, method)
            assert answer.status == 403, (method, path, answer)
            assert answer.json()["reason"] == "Forbidden"
    for method, headers in (("GET", UPGRADE), ("POST", SPDY)):
        with projects.world.h1("rita") as client:
            client.head(method, projects.site.prefix + exec_path, headers)
            assert client.read_head()[0] == 403
    with projects.world.h1("rita") as client:  # the legacy prefix is a watch, and reading
        projects.api.script(PODS, lambda x: x.respond(200, {}))
        assert projects.ask("rita", "/api/v1/watch/namespaces/a/pods").status != 403
    assert not projects.api.seen(lambda x: "exec" in x.path or "proxy" in x.path)
    tried = [e for e in auditlog.of(auditlog.events(projects.log))
             if e["user"]["username"] == "rita" and "/watch/" not in e["requestURI"]]
    assert len(tried) == 2 * len(ways) + 2, "each is in the audit log"
    for event in tried:
        assert event["responseStatus"]["code"] == 403, event
        assert auditlog.note(event, "decision") == "forbid", event
        assert auditlog.note(event, "outcome") == "not-forwarded", event


def test_denial_reads_as_that_of_an_api_server(projects):
    answer = projects.ask("rita", PODS + "/p/exec?command=id", "POST").json()
    assert answer["message"] == ('pods "p" is forbidden: User "rita" cannot create resource '
                                 '"pods/exec" in API group "" in the namespace "a": no project '
                                 'allows it')
    assert answer["details"]["kind"] == "pods" and answer["details"]["name"] == "p"
    answer = projects.ask("oscar", "/apis/apps/v1/deployments").json()
    assert answer["message"] == ('deployments.apps is forbidden: User "oscar" cannot list resource '
                                 '"deployments" in API group "apps" at the cluster scope: no '
                                 'project allows it')
    answer = projects.ask("oscar", "/debug/pprof").json()
    assert answer["message"].startswith('forbidden: User "oscar" cannot get path "/debug/pprof"')


ALLOWED = [("rita", "GET", PODS), ("rita", "DELETE", PODS), ("rita", "GET", "/version"),
           ("rita", "GET", "/apis"), ("oscar", "GET", PODS), ("oscar", "GET", PODS + "/p/log"),
           ("oscar", "GET", PODS + "/p/exec"), ("oscar", "POST", PODS + "/p/exec"),
           ("oscar", "GET", "/api/v1/namespaces/b/secrets/x"), ("oscar", "GET", "/metrics"),
           ("oscar", "GET", "/logs/a"), ("oscar", "GET", "/healthz"),
           ("oscar", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")]
DENIED = [("rita", "GET", "/api/v1/namespaces/a/secrets/x"), ("rita", "GET", "/metrics"),
          ("rita", "POST", "/api/v1/namespaces/a/serviceaccounts/s/token"),
          ("oscar", "GET", "/api/v1/namespaces/b/pods"), ("oscar", "GET", "/api/v1/pods"),
          ("oscar", "DELETE", PODS + "/p"), ("oscar", "PUT", PODS + "/p"),
          ("oscar", "GET", PODS + "/p/attach"), ("oscar", "GET", PODS + "/p/status"),
          ("oscar", "GET", "/api/v1/namespaces/b/secrets"), ("oscar", "GET", "/logs"),
          ("oscar", "POST", "/metrics"), ("oscar", "GET", "/apis/x.io/v1/namespaces/a/pods")]


def test_rules_of_projects(projects):
    for user, method, path in ALLOWED:
        answer = projects.ask(user, path, method)
        assert answer.status != 403, (user, method, path, answer)
    before = len(projects.site.relayed())
    for user, method, path in DENIED:
        answer = projects.ask(user, path, method)
        assert answer.status == 403, (user, method, path, answer)
    assert len(projects.site.relayed()) == before


def test_groups_and_acting_as(projects):
    assert projects.ask("nina", PODS, groups=["readers"]).status != 403
    as_rita = [("impersonate-user", "rita")]
    as_nobody = [("impersonate-user", "nobody")]
    assert projects.ask("oscar", "/api/v1/namespaces/b/pods", headers=as_rita).status != 403
    assert projects.ask("oscar", PODS, headers=as_nobody).status == 403


def test_cluster_without_access_looks_like_no_cluster(projects):
    def shape(answer, name):
        body = answer.body.decode().replace(name, "NAME")
        return answer.status, body, sorted(n for n, _ in answer.headers)
    with projects.world.client("stranger") as client:
        known = client.get("/clusters/f1" + PODS)
        unknown = client.get("/clusters/f2" + PODS)
    assert shape(known, "f1") == shape(unknown, "f2")
    assert known.status == 403 and "no such cluster" in known.json()["message"]


def hold(x):
    x.start_stream()
    x.event("ADDED", {"kind": "Pod", "metadata": {"name": "p", "resourceVersion": "5"}})
    x.hold()


def test_T29_streams_end_when_the_rule_goes(projects):
    def switch(x):
        x.raw(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
              b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
              b"Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n")
        x.hold()
    projects.api.script(PODS, lambda x: hold(x) if x.is_watch else ok(x))
    projects.api.script(PODS + "/p/exec", switch)
    path = projects.site.prefix + PODS
    with projects.world.client("oscar") as one, projects.world.client("rita") as two, \
            projects.world.h1("oscar") as three:
        lost = one.start("GET", path + "?watch=1")
        kept = two.start("GET", path + "?watch=1")
        lost.wait_bytes(10)
        kept.wait_bytes(10)
        three.head("GET", path + "/p/exec?command=id", UPGRADE)
        assert three.read_head()[0] == 101
        begin = time.monotonic()
        projects.write([READERS])
        lost.wait_finish(scaled(60))
        assert time.monotonic() - begin < scaled(60)
        assert lost.body.endswith(b"\n"), "whole events"
        three.wait_closed(scaled(60))
        assert one.get(path).status == 403
        assert two.get(path).status == 200 and not kept.ended


def test_can_i_and_explain_say_why(projects):
    def ctl(*args, cluster="f1"):
        code, out, err = run([projects.world.binaries["kuberelayctl"], *args, "--socket",
                              projects.socket, "--cluster", cluster], 20)
        return code, out.decode(), err.decode()
    assert ctl("can-i", "get", "pods", "--user", "rita") == (0, "yes (readers/rules[0])\n", "")
    assert ctl("can-i", "get", "pods", "--user", "x", "--group", "readers")[0] == 0
    assert ctl("can-i", "connect", "pods/exec", "--user", "oscar", "--namespace", "a")[0] == 0
    code, out, _ = ctl("can-i", "get", "pods/exec", "--user", "rita", "--namespace", "a")
    assert code == 1 and out.startswith('no (pods is forbidden: User "rita" cannot get resource')
    code, out, _ = ctl("explain", "delete", "pods", "--user", "oscar", "--namespace", "a")
    assert code == 0 and out.startswith("denied: pods is forbidden")
    assert "ops/rules[0]                     does not give this verb\n" in out
    assert "readers/rules[0]                 is not for this user or these groups\n" in out
    assert ctl("can-i", "get", "/metrics", "--user", "oscar")[0] == 0
    code, out, _ = ctl("explain", "get", "pods", "--user", "stranger")
    assert out.startswith("denied: no project gives them anything")
    assert ctl("can-i", "get", "pods")[0] == 2, "for whom?"
    assert ctl("can-i", "list", "pods", "--user", "rita", cluster="*")[0] == 0
    assert ctl("explain", "list", "pods", "--user", "stranger", cluster="*")[1] == (
        "denied: the fleet view shows it by no reader and no project\n")


def test_bad_new_file_leaves_the_old_rules(projects):
    projects.file.write_text("projects: [{name: x}]\n")
    projects.world.hub.wait_line(r"event=reload-failed\b.*members")
    assert projects.ask("oscar", PODS).status != 403
    assert projects.ask("rita", PODS + "/p/exec").status == 403


def test_without_projects_nobody_may_if_the_option_says_so(world):
    file = write_yaml(world.folder / "fleet.yaml", {"onDemand": False})
    world.start_hub(fleetFile=file, authorization="projects")
    with world.client("admin") as client:
        assert client.get("/clusters/c1/api").status == 403


def test_self_review_at_the_fleet_is_answered_by_the_hub(world):
    fleet = Fleet(world)

    def may_i(user, **attributes):
        body = json.dumps({"kind": "SelfSubjectAccessReview",
                           "apiVersion": "authorization.k8s.io/v1",
                           "spec": {"resourceAttributes": attributes}}).encode()
        with world.client(user) as client:
            answer = client.request(
                "POST", STAR + "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                [("content-type", "application/json")], body)
        assert answer.status == 201, answer
        assert answer.json()["spec"]["resourceAttributes"] == attributes
        return answer.json()["status"]["allowed"]
    assert may_i("admin", verb="list", resource="pods")
    assert may_i("bob", verb="watch", resource="pods", namespace="default")
    assert not may_i("bob", verb="list", resource="nodes")
    assert not may_i("admin", verb="delete", resource="pods")
    assert not may_i("stranger", verb="list", resource="pods")
    with world.client("admin") as client:
        answer = client.request(
            "POST", STAR + "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", [], b"k8s\0x")
        assert answer.status == 415
    assert fleet.names


def test_self_rules_at_the_fleet_say_what_is_shown_in_a_namespace(world):
    Fleet(world, readers=(ALL, {**SOME, "namespaces": ["default"]}))

    def rules(user, namespace, code=201):
        body = json.dumps({"kind": "SelfSubjectRulesReview",
                           "apiVersion": "authorization.k8s.io/v1",
                           "spec": {"namespace": namespace}}).encode()
        with world.client(user) as client:
            answer = client.request(
                "POST", STAR + "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
                [("content-type", "application/json")], body)
        assert answer.status == code, answer
        return answer.json()["status"]
    everything = rules("admin", "default")
    assert {"verbs": ["list", "watch"], "apiGroups": ["*"], "resources": ["*"]} in \
        everything["resourceRules"], everything
    assert everything["incomplete"] and "Secrets" in everything["evaluationError"]
    few = rules("bob", "default")
    assert few["resourceRules"] and all(r["verbs"] == ["list", "watch"] and r["resources"] != ["*"]
                                        for r in few["resourceRules"]), few
    assert rules("bob", "nowhere")["resourceRules"] == []
    packed = b"k8s\0" + b"\x12\x0b" + b"\x12\x09" + b"\x0a\x07default"
    with world.client("bob") as client:
        answer = client.request(
            "POST", STAR + "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            [("content-type", "application/vnd.kubernetes.protobuf")], packed)
    assert answer.status == 201 and answer.json()["status"] == few, answer
    assert rules("stranger", "default") == {"resourceRules": [], "nonResourceRules": [],
                                            "incomplete": False}


# ---- the fleet view: a model of random rules ----

NAMESPACES = ["default", "kube-system", "team-0", "team-1"]


def random_projects(rng, clusters):
    made = []
    for i in range(6):
        users = rng.sample([f"u{n}" for n in range(6)], rng.randint(1, 3))
        rule = {"resources": rng.choice([["pods"], ["pods", "configmaps"], ["*"], ["configmaps"]]),
                "verbs": rng.choice([["list"], READ, ["get"], ["*"], ["watch"]])}
        if rng.random() < 0.6:
            rule["namespaces"] = rng.sample(NAMESPACES, rng.randint(1, 2))
        made.append({"name": f"p{i}", "members": {"users": users},
                     "clusters": rng.choice([["*"], rng.sample(clusters, 1)]), "rules": [rule]})
    return made


def may(projects, user, verb, cluster, resource, namespace):
    for p in projects:
        if user not in p["members"]["users"] or not {"*", cluster} & set(p["clusters"]):
            continue
        for rule in p["rules"]:
            if ({"*", resource} & set(rule["resources"]) and {"*", verb} & set(rule["verbs"])
                    and namespace in rule.get("namespaces", [namespace])):
                return True
    return False


def spot(obj):
    meta = obj["metadata"]
    cluster = meta.get("labels", {}).get("kcp.io/cluster") or meta["annotations"]["kcp.io/cluster"]
    return cluster, meta["namespace"], meta["name"]


def paged(client, total):
    """In pages; what is said to remain is what this user may see, and nothing else."""
    found, more = [], ""
    while True:
        answer = client.get(STAR + f"/api/v1/pods?limit=3&continue={more}").json()
        found += answer["items"]
        more = answer["metadata"].get("continue", "")
        remaining = answer["metadata"].get("remainingItemCount")
        assert remaining is None or remaining == total - len(found)
        if not more:
            return found


def test_T35_continue_token_serves_its_own_user_only(world):
    """Two users who see the same; and a token of which any bit was changed."""
    fleet = Fleet(world, readers=[{"users": ["u1", "u2"], "clusters": ["*"], "resources": ["*"]}])
    with world.client("u1") as one, world.client("u2") as two:
        token = one.get(STAR + "/api/v1/pods?limit=2").json()["metadata"]["continue"]

        def ask(client, text):
            return client.get(STAR + f"/api/v1/pods?limit=2&continue={text}").status
        assert ask(one, token) == 200
        assert ask(two, token) == 410
        for i in range(len(token)):
            for bit in (1, 4):
                changed = chr(ord(token[i]) ^ bit)
                if changed.isalnum():
                    assert ask(one, token[:i] + changed + token[i + 1:]) == 410, i
        assert ask(one, token) == 200
    assert fleet.names


def test_T34_fleet_lists_show_what_the_model_shows(world):
    fleet = Fleet(world)
    rng = random.Random(34)
    truth = {(c, o["metadata"]["namespace"], o["metadata"]["name"])
             for c in fleet.names for o in fleet.clusters[c].items("/api/v1/pods")}
    for turn in range(5):
        projects = random_projects(rng, fleet.names)
        write_yaml(fleet.file, {"projects": projects})
        hub = fleet.world.hub
        wait_until(lambda: len(hub.grep(r"event=reloaded\b.*fleet-file")) > turn, 20, "reloaded")
        for user in [f"u{n}" for n in range(6)]:
            want = {t for t in truth if may(projects, user, "list", t[0], "pods", t[1])}
            some = any("pods" in r["resources"] or "*" in r["resources"]
                       for p in projects for r in p["rules"] if user in p["members"]["users"]
                       and {"*", "list"} & set(r["verbs"]))
            with world.client(user) as client:
                answer = client.get(STAR + "/api/v1/pods")
                if not some:
                    assert answer.status == 403, (turn, user, answer)
                    continue
                assert answer.status == 200, (turn, user, answer)
                assert {spot(o) for o in answer.json()["items"]} == want, (turn, user)
                assert {spot(o) for o in paged(client, len(want))} == want, (turn, user)
                for name in fleet.names:  # and through each cluster itself
                    direct = client.get(f"/clusters/{name}/api/v1/namespaces/default/pods").status
                    assert (direct == 200) == may(projects, user, "list", name, "pods",
                                                  "default"), (turn, user, name, direct)
