# SPDX-License-Identifier: Apache-2.0
"""Just enough scripted Kubernetes on a FakeApi that a real kubectl gets to its point:
discovery, one pod `p`, config maps that can be created. Tests put their own scripts on top."""

import json

POD = {"apiVersion": "v1", "kind": "Pod",
       "metadata": {"name": "p", "namespace": "default", "uid": "u1", "resourceVersion": "100"},
       "spec": {"containers": [{"name": "c", "image": "a:1"}]},
       "status": {"phase": "Running"}}
RESOURCES = [("pods", "Pod", True), ("configmaps", "ConfigMap", True),
             ("namespaces", "Namespace", False), ("services", "Service", True)]
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def pod_list(*pods, version="100"):
    return {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": version},
            "items": list(pods)}


def _versions(x):
    x.respond(200, {"kind": "APIVersions", "versions": ["v1"]})


def _groups(x):
    x.respond(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": []})


def _core(x):
    x.respond(200, {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
        {"name": name, "singularName": kind.lower(), "namespaced": spaced, "kind": kind,
         "verbs": VERBS} for name, kind, spaced in RESOURCES]})


def _version(x):
    x.respond(200, {"major": "1", "minor": "33", "gitVersion": "v1.33.0"})


def _created(x):
    obj = json.loads(x.body())
    obj["metadata"].update(uid="u2", resourceVersion="101", namespace="default")
    x.respond(201, obj)


def _watch(x):
    x.start_stream()
    x.hold()


def install(api):
    """The newest script wins, so what is general comes first."""
    api.script("/readyz", lambda x: x.respond(200, b"ok", content_type="text/plain"))
    api.script("/api/v1/namespaces/default/pods", lambda x: x.respond(200, pod_list(POD)))
    api.script("/api/v1/namespaces/default/pods/p", lambda x: x.respond(200, POD))
    api.script(lambda x: x.path.endswith("/pods") and x.is_watch, _watch)
    api.script(lambda x: x.method == "POST" and x.path.endswith("/configmaps"), _created)
    api.script(lambda x: x.path == "/api", _versions)
    api.script(lambda x: x.path == "/apis", _groups)
    api.script(lambda x: x.path == "/api/v1", _core)
    api.script("/version", _version)


def lists(api, resource="pods"):
    return api.seen(lambda x: x.method == "GET" and x.path.endswith("/" + resource)
                    and not x.is_watch)


def watches(api, resource="pods"):
    return api.seen(lambda x: x.path.endswith("/" + resource) and x.is_watch)
