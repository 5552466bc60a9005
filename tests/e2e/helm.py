# SPDX-License-Identifier: Apache-2.0
"""The real Helm with the two charts, and what a kubelet does with a pod of theirs: volumes become
folders, and the program runs here with the pod's own command, configuration and environment."""

import base64
import re

import pytest
import yaml

import backends
from procs import run

CHARTS = backends.REPO / "charts"
AGENT, HUB = CHARTS / "kuberelay-agent", CHARTS / "kuberelay-hub"
# Helm built from its module knows no version of Kubernetes of its own.
KUBE_VERSION = "1.33.0"


class Refused(Exception):
    """Helm said no: its text."""


class Helm:
    def __init__(self, folder, kubeconfig=None, namespace="kuberelay"):
        found = backends.real_binaries("helm")
        if "helm" not in found:
            pytest.skip("the charts are not tried: Helm cannot be built without Go (tests/real/build)")
        self.folder, self.namespace = folder, namespace
        self.prefix = [found["helm"], "-n", namespace]
        if kubeconfig:
            self.prefix += ["--kubeconfig", kubeconfig]
        self.env = {"HOME": str(folder), "HELM_CACHE_HOME": str(folder / "cache"),
                    "HELM_CONFIG_HOME": str(folder / "helm"), "HELM_DATA_HOME": str(folder / "data")}

    def run(self, *args, values=None):
        if values is not None:
            path = self.folder / "values.yaml"
            backends.write_yaml(path, values)
            args = [*args, "-f", path]
        code, out, err = run([*self.prefix, *args], 120, self.env)
        if code != 0:
            raise Refused(err.decode() + out.decode())
        return out.decode()

    def template(self, chart, values, release="kr"):
        text = self.run("template", release, chart, "--kube-version", KUBE_VERSION, values=values)
        return objects_of(text)

    def install(self, chart, values, release="kr"):
        """What was installed."""
        self.run("install", release, chart, values=values)
        return objects_of(self.run("get", "manifest", release))


def objects_of(text):
    return [o for o in yaml.safe_load_all(text) if o]


def of_kind(objects, *kinds):
    return [o for o in objects if o["kind"] in kinds]


def named(objects, kind, name):
    found = [o for o in of_kind(objects, kind) if o["metadata"]["name"] == name]
    assert len(found) == 1, f"{kind} {name}: {len(found)} times"
    return found[0]


def _texts(obj):
    data = {k: base64.b64decode(v).decode() for k, v in obj.get("data", {}).items()} \
        if obj["kind"] == "Secret" else obj.get("data", {})
    return {**data, **obj.get("stringData", {})}


class Pod:
    """The one pod of a rendered chart, as one of its containers sees it. `outside`: {(kind, name):
    {key: text}} of what the chart refers to but does not bring. Folders of `shared` stand for
    volumes that another container has made."""

    def __init__(self, objects, folder, outside=None, container=0, shared=None):
        self.objects, self.folder, self.outside = objects, folder, outside or {}
        self.workload = of_kind(objects, "Deployment", "StatefulSet")[0]
        self.spec = self.workload["spec"]["template"]["spec"]
        self.container = self.spec["containers"][container]
        shared = shared or {}
        self.places = {m["mountPath"]: shared.get(m["name"], folder / m["name"])
                       for m in self.container["volumeMounts"]}
        volumes = {v["name"]: v for v in self.spec["volumes"]}
        claims = {c["metadata"]["name"] for c in self.workload["spec"].get("volumeClaimTemplates", [])}
        for mount in self.container["volumeMounts"]:
            place = folder / mount["name"]
            if mount["name"] in shared:
                continue
            place.mkdir(parents=True)
            if mount["name"] in claims:
                continue
            for name, text in self._content(volumes[mount["name"]]).items():
                (place / name).touch(mode=0o640)  # with fsGroup a kubelet opens keys to the group
                (place / name).write_text(self.here(text), encoding="utf-8")

    def _source(self, kind, name, optional=False):
        if (kind, name) in self.outside:
            return self.outside[kind, name]
        if optional and not [o for o in of_kind(self.objects, kind)
                             if o["metadata"]["name"] == name]:
            return {}
        return _texts(named(self.objects, kind, name))

    def _content(self, volume):
        sources = volume.get("projected", {"sources": [volume]})["sources"]
        found = {}
        for source in sources:
            if "configMap" in source:
                found.update(self._source("ConfigMap", source["configMap"]["name"]))
            elif "secret" in source:
                secret = source["secret"]
                content = self._source("Secret", secret["secretName"], secret.get("optional"))
                found.update({i["path"]: content[i["key"]] for i in secret["items"]}
                             if "items" in secret else content)
            else:
                assert {"emptyDir", "persistentVolumeClaim"} & set(source), source
        return found

    def here(self, text):
        """With the paths of the pod as paths of this machine."""
        for path in sorted(self.places, key=len, reverse=True):
            text = re.sub(re.escape(path) + r"(?=[/\s'\"]|$)", str(self.places[path]), text)
        return text

    @property
    def config(self):
        """The rendered configuration of the program."""
        return yaml.safe_load(open(self.here(self.container["args"][1]), encoding="utf-8"))

    def argv(self, binaries, *more):
        program = self.container["command"][0]
        assert program.startswith("/usr/bin/") and len(self.container["command"]) == 1
        return [binaries[program[9:]], *map(self.here, self.container["args"]), *more]

    def env(self):
        found = {}
        for entry in self.container.get("env", []):
            if "value" in entry:
                found[entry["name"]] = entry["value"]
            else:
                ref = entry["valueFrom"]["secretKeyRef"]
                found[entry["name"]] = self._source("Secret", ref["name"])[ref["key"]]
        return found
