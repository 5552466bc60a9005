# SPDX-License-Identifier: Apache-2.0
"""Clusters of any backend behind the fleet view, each reached by a link that may be cut."""

import json
import os

from backends import binding, write_yaml
from fleet import ALL, JSON, STAR, Cluster, Fleet, bare, key
from fleet_model import View
from h2client import ConnectionLost, H2Client, StreamReset
from procs import Process, run

CM, PODS = "/api/v1/configmaps", "/api/v1/pods"
SPACES = ("default", "m1", "m2")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
HERE = os.path.dirname(os.path.abspath(__file__))


class BackendCluster:
    """The API server of a backend, seen directly with all rights."""

    def __init__(self, name, backend, folder):
        self.name, self.backend = name, backend
        self.kubeconfig = backend.kubeconfig(str(folder / f"{name}.kubeconfig"))
        self._client = None
        if backend.is_real:
            self.grant()

    def grant(self):
        """The agent's own credential may read what is synced."""
        rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
        for path, obj in (("clusterroles", {"metadata": {"name": "model"}, "rules": [rule]}),
                          ("clusterrolebindings", binding("model", "model", "User",
                                                          "kuberelay-agent"))):
            self.ask("POST", f"{RBAC}/{path}", obj)

    def ask(self, method, path, obj=None, kind=JSON[1]):
        if self._client is None or self._client.lost or self._client.goaway:
            self._client = self.connect()
        body = json.dumps(obj).encode() if obj is not None else None
        answer = self._client.request(method, path, [("content-type", kind)] if body else [], body)
        assert answer.status < 300 or answer.status == 409, answer
        return answer.json() if answer.body[:1] == b"{" else None

    def connect(self):
        return self.backend.as_root() if self.backend.is_real else self.backend.direct()

    def get(self, path):
        """Whatever it answers."""
        with self.connect() as client:
            return client.get(path, timeout=30)

    def items(self, path):
        return self.ask("GET", path)["items"]

    def compact(self):
        if self.backend.is_real:
            self.backend.etcdctl_compact()
        else:
            self.ask("POST", "/kubesim/compact")

    def close(self):
        if self._client is not None:
            self._client.close()


class SimCluster(Cluster):
    def compact(self):
        self.ask("POST", "/kubesim/compact")

    def ask(self, method, path, obj=None, kind=JSON[1]):
        if kind == JSON[1]:
            return super().ask(method, path, obj)
        answer = self._client.request(method, path, [("content-type", kind)],
                                      json.dumps(obj).encode())
        assert answer.status < 300, answer
        return answer.json()


class Link(Process):
    def signal(self, number):
        """Until it is heard: two of the same in a row could be one."""
        mark = self.mark()
        super().signal(number)
        self.wait_line(r"^(drops|heals|cut)$", after=mark)


class LinkedFleet(Fleet):
    """Clusters whose agents reach the hub by links that may be cut."""

    overflows = False

    def __init__(self, world, clusters, agent=None, **hub):
        self.world, self.names, self.epoch = world, [c.name for c in clusters], 0
        self.folder, self._users = world.folder, {}
        self.clusters = {c.name: c for c in clusters}
        world.clients.extend(clusters)
        for cluster in clusters:
            for space in SPACES[1:]:
                cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
        self.more = {"fleetFile": write_yaml(world.folder / "fleet.yaml", {"readers": [ALL]}),
                     "stateDir": str(world.folder / "state"), **hub}
        os.makedirs(self.more["stateDir"], exist_ok=True)
        world.start_hub(**self.more)
        self.context = world.context()
        self.links, self.agents = {}, {}
        relay = relay_program(world)
        for cluster in clusters:
            link = Link(f"link-{cluster.name}", [
                relay, "--listen", "127.0.0.1:0", "--to", world.hub.agent_address,
                "--drop", "both"], str(world.folder))
            world.processes.append(link)
            self.links[cluster.name] = link
            address = link.wait_line(r"listening (\S+)").group(1)
            self.agents[cluster.name] = world.start_agent(
                cluster.name, cluster.kubeconfig, hubs=[address],
                **{"reconnectMax": "300ms", **(agent or {})})

    @property
    def address(self):
        return self.world.hub.api

    def restart_hub(self):
        hub = self.world.hub
        hub.kill()
        self.epoch += 1  # nobody can have asked the new one before it is
        self.world.restart_hub(hub, **self.more)

    def compare(self, path):
        """None, or how the fleet view differs from the clusters."""
        try:
            with H2Client(self.address, self.context) as client:
                answer = client.get(STAR + path, timeout=30)
        except (OSError, ConnectionLost, StreamReset, TimeoutError) as error:
            return repr(error)
        if answer.status != 200:
            return repr(answer)
        shown = {key(i): bare(i) for i in answer.json()["items"]}
        direct = self.union(path)
        newer = [k for k in shown.keys() & direct.keys() if origin(shown[k]) > origin(direct[k])]
        assert not newer, f"versions that the clusters have not reached: {newer}"
        form = View(path).form
        return difference({k: form(o) for k, o in shown.items()},
                          {k: form(o) for k, o in direct.items()})

    def versions(self, path):
        return {key(i): int(i["metadata"]["resourceVersion"])
                for i in self.list(path)["items"]}


def origin(obj):
    return int(obj["metadata"]["resourceVersion"])


def difference(one, other):
    """None, or the first keys whose contents are not the same, as far as they are not."""
    wrong = sorted(k for k in one.keys() | other.keys() if one.get(k) != other.get(k))
    found = []
    for k in wrong[:3]:
        a, b = one.get(k) or {}, other.get(k) or {}
        found.append((k, {f: (a.get(f), b.get(f)) for f in a.keys() | b.keys()
                          if a.get(f) != b.get(f)}))
    return found or None


def relay_program(world):
    built = world.binaries.folder / "tests" / "delay_relay"
    if built.exists():
        return built
    made = world.folder / "delay_relay"
    fakes = os.path.join(HERE, "..", "fakes")
    code, _, err = run(["cc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-o", made,
                        *(os.path.join(fakes, f"delay_{n}.c") for n in ("relay", "start"))])
    assert code == 0, err
    return made
