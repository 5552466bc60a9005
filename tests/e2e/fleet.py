# SPDX-License-Identifier: Apache-2.0
"""A fleet on loopback: simulated clusters, an agent for each, a hub with a fleet view, and the
oracle: the union of what the clusters answer directly."""

import json
import os
from pathlib import Path
from urllib.parse import quote, urlsplit

import yaml

import kubectl
import testpki
from backends import write_yaml
from clock import wait_until
from h2client import H2Client
from procs import Process

STAR = "/clusters/%2A"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
JSON = ("content-type", "application/json")
INJECTED = ("kcp.io/cluster", "multicluster.x-k8s.io/cluster-name", "kuberelay.io/stale-since",
            "kuberelay.io/resource-version", "kuberelay.io/slimmed")
ALL = {"users": ["admin"], "clusters": ["*"], "resources": ["*"]}
SOME = {"users": ["bob"], "clusters": ["c1"], "resources": ["pods"]}


class Cluster:
    """One simulated cluster, seen directly."""

    def __init__(self, name, kubeconfig):
        config = yaml.safe_load(Path(kubeconfig).read_text())
        folder = Path(kubeconfig).parent
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        where = urlsplit(cluster["server"])

        def file_of(section, key):
            return str((folder / section[key]).resolve())
        self.name, self.kubeconfig = name, str(kubeconfig)
        self.address = (where.hostname, where.port)
        self.context = testpki.client_context(
            file_of(cluster, "certificate-authority"),
            testpki.load(file_of(user, "client-certificate"), file_of(user, "client-key")))
        self._client = None

    def ask(self, method, path, obj=None):
        if self._client is None or self._client.lost or self._client.goaway:
            self._client = H2Client(self.address, self.context)
        body = json.dumps(obj).encode() if obj is not None else None
        answer = self._client.request(method, path, [JSON] if body else [], body)
        assert answer.status < 300, answer
        return answer.json() if answer.body[:1] == b"{" else None

    def items(self, path):
        return self.ask("GET", path)["items"]

    def close(self):
        if self._client is not None:
            self._client.close()


class Fleet:
    def __init__(self, world, names=("c1", "c2"), pods=12, readers=(ALL, SOME), profiles=None,
                 **hub):
        self.world, self.names = world, list(names)
        self.folder = world.folder / "fleet"
        os.makedirs(self.folder / "sim", exist_ok=True)
        self.sim = Process("kubesim", [
            world.binaries["kubesim"], "--listen", "127.0.0.1:0", "--clusters", len(names), "--names", ",".join(names),
            "--pods", pods, "--nodes", 2, "--churn", 0, "--seed", 1,
            "--pki", self.folder / "sim"], str(self.folder))
        world.processes.append(self.sim)
        self.sim.wait_line(r"event=ready\b")
        self.clusters = {n: Cluster(n, self.folder / "sim" / f"kubeconfig-{n}") for n in names}
        world.clients.extend(self.clusters.values())
        self.config = {"readers": list(readers), **({"profiles": profiles} if profiles else {})}
        self.file = write_yaml(self.folder / "fleet.yaml", self.config)
        world.start_hub(fleetFile=self.file, **hub)
        self.agents = {n: world.start_agent(n, c.kubeconfig) for n, c in self.clusters.items()}
        self._users = {}

    # -- through the hub
    def client(self, user="admin"):
        old = self._users.get(user)
        if old is None or old.lost or old.goaway:
            self._users[user] = self.world.client(user)
        return self._users[user]

    def get(self, path, accept=None, user="admin", **query):
        """`path` behind the prefix; query parameters by name."""
        text = "&".join(f"{k}={quote(str(v), safe='')}" for k, v in query.items())
        headers = [("accept", accept)] if accept else []
        return self.client(user).get(f"{STAR}{path}{'?' if text else ''}{text}", headers,
                                     timeout=30)

    def list(self, path, accept=None, user="admin", **query):
        answer = self.get(path, accept, user, **query)
        assert answer.status == 200, answer
        return answer.json()

    def watch(self, path, accept=None, user="admin", **query):
        return Watch(self, path, accept, user, query)

    def pages(self, path, limit, **query):
        """Each page of a list, as an answer."""
        more = {}
        while True:
            page = self.list(path, limit=limit, **query, **more)
            yield page
            if not page["metadata"].get("continue"):
                return
            more = {"continue": page["metadata"]["continue"]}

    # -- the oracle
    def union(self, path):
        """{(cluster, namespace, name): object} of the direct answers."""
        return {key(item, name): bare(item) for name, c in self.clusters.items()
                for item in c.items(path)}

    def shown(self, answer):
        """The same of a list of the fleet view."""
        return {key(item): bare(item) for item in answer["items"]}

    def wait_synced(self, path="/api/v1/pods", timeout=30):
        """Until the fleet view shows what the clusters have. It may not serve the type yet."""
        def synced():
            answer = self.get(path)
            return answer.status == 200 and self.shown(answer.json()) == self.union(path)
        wait_until(synced, timeout, f"{path} in step", every=0.1)

    def kubectl(self, user="admin", path=None):
        home = self.folder / f"kubectl-{user}"
        os.makedirs(home, exist_ok=True)
        config = self.world.kubeconfig(home / "config", "*", user,
                                       server=f"{self.world.hub.url}/clusters/*")
        return kubectl.Kubectl(path or kubectl.newest(), config, home)

    # -- changes
    def pod(self, cluster, name, namespace="default", labels=None):
        return self.clusters[cluster].ask(
            "POST", f"/api/v1/namespaces/{namespace}/pods",
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
             "spec": {"containers": [{"name": "c", "image": "i"}]}})

    def label(self, cluster, name, value, namespace="default"):
        client = self.clusters[cluster]
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        obj = client.ask("GET", path)
        obj["metadata"].setdefault("labels", {})["value"] = value
        return client.ask("PUT", path, obj)

    def drop(self, cluster, name, namespace="default"):
        return self.clusters[cluster].ask(
            "DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds=0")


class Watch:
    """An open watch of the fleet view."""

    def __init__(self, fleet, path, accept, user, query):
        text = "&".join(f"{k}={quote(str(v), safe='')}" for k, v in query.items())
        self.stream = fleet.client(user).start(
            "GET", f"{STAR}{path}?watch=1{'&' if text else ''}{text}",
            [("accept", accept)] if accept else [])
        self.stream.wait_headers(10)
        self.taken = 0
        self.rest = b""
        self.seen = []

    def events(self):
        """All that came so far. Each byte is read once: a test that parses the whole body
        again at every chunk is a slow watcher, and a hub cuts those."""
        chunks = self.stream.chunks
        fresh = len(chunks)
        *lines, self.rest = (self.rest + b"".join(
            piece for _, piece in chunks[self.taken:fresh])).split(b"\n")
        self.taken = fresh
        self.seen += [json.loads(line) for line in lines]
        return list(self.seen)

    def wait(self, check, timeout=30, what="events"):
        """Until check(events) holds; returns them."""
        try:
            self.stream.wait(lambda _: check(self.events()), timeout, what)
        except TimeoutError as error:
            raise AssertionError(f"{what}: {[short(e) for e in self.events()]}") from error
        return self.events()

    def close(self):
        self.stream.reset()


def short(event):
    obj = event["object"]
    meta = obj.get("metadata", {})
    return (event["type"], cluster_of(obj), meta.get("name"), meta.get("resourceVersion"))


def cluster_of(obj):
    return obj.get("metadata", {}).get("annotations", {}).get("kcp.io/cluster")


def key(obj, cluster=None):
    meta = obj["metadata"]
    return (cluster or cluster_of(obj), meta.get("namespace", ""), meta["name"])


def bare(obj):
    """An object without what a fleet view puts in or leaves out, its origin version apart."""
    obj = {**obj, "metadata": {**obj["metadata"]}}  # only what changes: there are many thousands
    meta = obj["metadata"]
    annotations = dict(meta.get("annotations") or {})
    origin = annotations.get("kuberelay.io/resource-version", meta["resourceVersion"])
    for name in INJECTED:
        annotations.pop(name, None)
    labels = dict(meta.get("labels") or {})
    labels.pop("kuberelay.io/cluster", None)
    for name, content in (("annotations", annotations), ("labels", labels)):
        meta.pop(name, None)
        if content:
            meta[name] = content
    meta.pop("managedFields", None)
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    meta["resourceVersion"] = origin
    return obj
