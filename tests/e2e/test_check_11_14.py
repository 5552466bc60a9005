# SPDX-License-Identifier: Apache-2.0
"""Checks 11 to 14: writes on twin objects, conflicts, and what the server refuses."""

import json

import pytest

import kubectl
from cluster_site import configmap
from oracle import assert_same_twins, twin

PATCHES = {
    "json": ("application/json-patch+json", [{"op": "add", "path": "/data/n", "value": "1"}]),
    "merge": ("application/merge-patch+json", {"data": {"n": "1"}}),
    "strategic": ("application/strategic-merge-patch+json", {"data": {"n": "1"}}),
    "apply": ("application/apply-patch+yaml",
              {"apiVersion": "v1", "kind": "ConfigMap", "data": {"n": "1"}}),
}


@pytest.fixture
def twins(site):
    """Two namespaces: what is done to one directly is done to the other by relay."""
    return site.namespace("direct"), site.namespace("relay")


def on_twins(site, twins, method, path, body, kind="application/json", query=""):
    """The same write to both; `path` has {ns}. Gives both answers."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = [("content-type", kind), ("user-agent", "twin-test")]
    return (site.ask_direct(method, path.format(ns=twins[0]) + query, headers, data),
            site.ask(method, path.format(ns=twins[1]) + query, headers, data))


MAPS = "/api/v1/namespaces/{ns}/configmaps"


def test_check_11_create_read_update_delete(site, twins):
    answers = on_twins(site, twins, "POST", MAPS, configmap("a"))
    assert answers[1].status == 201
    assert_same_twins(*answers, names=twins)
    assert_same_twins(*on_twins(site, twins, "PUT", MAPS + "/a", configmap("a", {"k": "w"})),
                      names=twins)
    answers = on_twins(site, twins, "DELETE", MAPS + "/a", {"propagationPolicy": "Background"})
    assert answers[1].status == 200
    assert_same_twins(*answers, names=twins)
    answers = on_twins(site, twins, "DELETE", MAPS + "/a", b"")
    assert answers[1].status == 404
    assert_same_twins(*answers, names=twins)


@pytest.mark.parametrize("kind", PATCHES)
def test_check_11_each_kind_of_patch(site, twins, kind):
    on_twins(site, twins, "POST", MAPS, configmap("a"))
    media, body = PATCHES[kind]
    query = "?fieldManager=t&force=true" if kind == "apply" else "?fieldManager=t"
    answers = on_twins(site, twins, "PATCH", MAPS + "/a", body, media, query)
    assert answers[1].status == 200 and answers[1].json()["data"]["n"] == "1"
    assert_same_twins(*answers, names=twins)


def test_check_11_a_stale_update_is_the_same_conflict(site, twins):
    on_twins(site, twins, "POST", MAPS, configmap("a"))
    stale = configmap("a", resourceVersion="1")
    answers = on_twins(site, twins, "PUT", MAPS + "/a", stale)
    assert answers[1].status == 409
    assert_same_twins(*answers, names=twins)


def test_check_11_delete_collection(site, twins):
    for name in ("a", "b"):
        on_twins(site, twins, "POST", MAPS, configmap(name, labels={"x": "1"}))
    answers = on_twins(site, twins, "DELETE", MAPS, b"", query="?labelSelector=x%3D1")
    assert answers[1].status == 200
    left = site.ask("GET", MAPS.format(ns=twins[1]) + "?labelSelector=x%3D1").json()
    assert left["items"] == []


def deployment(name="web", replicas=1, image="a:1"):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}},
                                  "spec": {"containers": [{"name": "c", "image": image}]}}}}


STEPS = [
    (["create", "-f", "-"], configmap("one")),
    (["apply", "-f", "-"], configmap("two")),
    (["apply", "-f", "-"], configmap("two", {"k": "changed"})),
    (["apply", "--server-side", "-f", "-"], configmap("three")),
    (["replace", "-f", "-"], configmap("one", {"k": "replaced"})),
    (["patch", "configmap", "one", "--type", "json", "-p",
      '[{"op":"add","path":"/data/j","value":"1"}]'], None),
    (["patch", "configmap", "one", "--type", "merge", "-p", '{"data":{"m":"1"}}'], None),
    (["patch", "configmap", "one", "--type", "strategic", "-p", '{"data":{"s":"1"}}'], None),
    (["apply", "-f", "-"], deployment()),
    (["scale", "deployment", "web", "--replicas", "3"], None),
    (["label", "configmap", "one", "tier=web"], None),
    (["annotate", "configmap", "one", "note=hello"], None),
    (["rollout", "restart", "deployment/web"], None),
    (["diff", "-f", "-"], configmap("two", {"k": "other"})),
    (["delete", "configmap", "two"], None),
    (["create", "-f", "-"], configmap("one")),  # AlreadyExists: the same refusal
]


@pytest.mark.parametrize("minor", [27, 33, 37])
def test_check_11_kubectl_writes_like_direct(site, twins, minor):
    program = kubectl.need(minor)
    tools = site.kubectl_direct(program), site.kubectl(program)
    for args, obj in STEPS:
        stdin = json.dumps(obj) if obj else None
        results = [tool.run("-n", ns, *args, stdin=stdin) for tool, ns in zip(tools, twins)]
        codes = [r.code for r in results]
        if args[:2] == ["rollout", "restart"] and codes[0] and not site.backend.is_real:
            continue  # not all of it is simulated; the real servers run it
        assert codes[0] == codes[1], (args, results)
        if args[0] != "diff":  # diff prints temporary file names
            texts = [r.out.replace(ns, "TWIN") for r, ns in zip(results, twins)]
            assert texts[1] == texts[0], (args, results)
    for path in (MAPS + "/one", MAPS + "/three", "/apis/apps/v1/namespaces/{ns}/deployments/web"):
        objects = [site.ask_direct("GET", path.format(ns=ns)) for ns in twins]
        names = [*twins, "restartedAt"]
        assert _no_restart(twin(objects[1].body, names)) == _no_restart(
            twin(objects[0].body, names)), path


def _no_restart(obj):
    """The time at which `rollout restart` was typed is the user's, not ours."""
    annotations = (obj.get("spec", {}).get("template", {}).get("metadata", {})
                   .get("annotations", {}))
    for key in annotations:
        annotations[key] = "*"
    return obj


def test_check_12_a_server_side_apply_conflict_names_its_causes(site, twins):
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "1"}}
    media = "application/apply-patch+yaml"
    on_twins(site, twins, "PATCH", MAPS + "/c", obj, media, "?fieldManager=first")
    obj["data"]["k"] = "2"
    answers = on_twins(site, twins, "PATCH", MAPS + "/c", obj, media, "?fieldManager=second")
    if answers[0].status != 409:
        assert not site.backend.is_real
        pytest.skip(f"{site.backend.name} keeps no field managers")
    assert answers[1].json()["details"]["causes"][0]["reason"] == "FieldManagerConflict"
    assert_same_twins(*answers, names=twins)
    result = site.kubectl().run("-n", twins[1], "apply", "--server-side", "--field-manager",
                                "third", "-f", "-", stdin=json.dumps(obj | {"data": {"k": "3"}}))
    assert result.code != 0 and "conflict" in result.err and ".data.k" in result.err


@pytest.mark.parametrize("media", ["application/apply-patch+cbor", "text/plain"])
def test_check_13_an_unknown_patch_type_is_415_from_the_api_server(site, twins, media):
    on_twins(site, twins, "POST", MAPS, configmap("a"))
    answers = on_twins(site, twins, "PATCH", MAPS + "/a", b"\xa0", media, "?fieldManager=t")
    assert answers[1].status == 415
    assert answers[1].json()["kind"] == "Status"
    assert_same_twins(*answers, names=twins)


def test_check_14_one_byte_over_three_mebibytes_is_the_servers_own_413(site, twins):
    frame = json.dumps(configmap("huge", {"k": ""})).encode()
    body = frame.replace(b'""', b'"' + b"x" * (3 * 2**20 + 1 - len(frame)) + b'"')
    assert len(body) == 3 * 2**20 + 1
    answers = on_twins(site, twins, "POST", MAPS, body)
    assert answers[1].status == 413, answers[1]
    assert answers[1].json()["message"] == answers[0].json()["message"]
    assert_same_twins(*answers, names=twins)
    assert site.ask("GET", "/readyz").status == 200


def test_check_14_kubectl_survives_the_refusal(site, twins):
    big = json.dumps(configmap("huge", {"k": "x" * (3 * 2**20)}))
    result = site.kubectl().run("-n", twins[1], "create", "-f", "-", stdin=big)
    assert result.code == 1 and "too large" in (result.out + result.err).lower(), result


def test_check_14_a_body_just_under_the_limit_reaches_the_server(site, twins):
    frame = json.dumps(configmap("huge", {"k": ""})).encode()
    body = frame.replace(b'""', b'"' + b"x" * (3 * 2**20 - len(frame)) + b'"')
    answers = on_twins(site, twins, "POST", MAPS, body)  # too long for one object: 422
    assert answers[1].status == answers[0].status != 413
    assert_same_twins(*answers, names=twins)
