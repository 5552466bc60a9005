# SPDX-License-Identifier: Apache-2.0
"""One cluster seen twice: straight at its API server, and through hub and agent."""

import itertools
import json
import os

import kubectl
from backends import impersonation
from world import HUB_DOMAIN

JSON = ("content-type", "application/json")


class Site:
    def __init__(self, world, backend, cluster, folder, **agent):
        self.world, self.backend, self.cluster = world, backend, cluster
        self.folder = str(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.prefix = f"/clusters/{cluster}"
        self.agent_kubeconfig = backend.kubeconfig(os.path.join(self.folder, "agent.kubeconfig"))
        self.agent = world.start_agent(cluster, self.agent_kubeconfig, **agent)
        self._relay, self._direct = {}, None
        self._numbers = itertools.count(1)

    @property
    def api(self):
        """The scripts of the fake backend."""
        return self.backend.api

    def heal(self):
        """The next test starts with both processes alive; a death fails one test, not all."""
        dead = [p for p in (self.world.hub, self.agent) if not p.alive]
        if not self.world.hub.alive:
            self.world.restart_hub(self.world.hub)
        if not self.agent.alive:
            self.agent = self.world.restart_agent(self.agent)
        for process in dead:
            code = process.child.returncode
            raise AssertionError(f"{process.name} died ({code}): {process.tail(5)}")
        self.world.wait_cluster(self.cluster)

    def relayed(self):
        """What clients brought to the fake: without the agent's own look at its API server and
        what it serves, which may come at any time and has no id for an audit log, and without the
        harness's question if the site is up."""
        def ours(x):
            own = x.method == "GET" and not {"impersonate-user", "audit-id"} & set(x.names())
            return x.path == "/readyz" or own
        return self.api.seen(lambda x: not ours(x))

    def unique(self, stem="t"):
        return f"{stem}-{os.getpid()}-{next(self._numbers)}"

    # -- clients
    def relay(self, user="admin", groups=()):
        """A shared connection to the hub; made again when it was lost."""
        key = (user, tuple(groups))
        if key not in self._relay or self._relay[key].lost or self._relay[key].goaway:
            self._relay[key] = self.world.client(user, groups)
        return self._relay[key]

    def direct(self):
        if self._direct is None or self._direct.lost or self._direct.goaway:
            self._direct = self.backend.direct()
        return self._direct

    # -- requests
    def ask(self, method, path, headers=(), body=None, user="admin", groups=(), timeout=30):
        """Through hub and agent. Header names are written small, as HTTP/2 wants them."""
        headers = [(n.lower(), v) for n, v in headers]
        return self.relay(user, groups).request(method, self.prefix + path, headers, body, timeout)

    def ask_direct(self, method, path, headers=(), body=None, user="admin", groups=(),
                   timeout=30):
        """Straight, as the user that the agent would impersonate."""
        headers = [(n.lower(), v) for n, v in headers] + impersonation(user, groups)
        return self.direct().request(method, path, headers, body, timeout)

    def both(self, method, path, headers=(), body=None, **kw):
        return (self.ask_direct(method, path, headers, body, **kw),
                self.ask(method, path, headers, body, **kw))

    def start(self, method, path, headers=(), user="admin", groups=(), **kw):
        return self.relay(user, groups).start(method, self.prefix + path, headers, **kw)

    def start_direct(self, method, path, headers=(), user="admin", groups=(), **kw):
        return self.direct().start(method, path, [*headers, *impersonation(user, groups)], **kw)

    # -- kubectl
    def kubectl(self, path=None, user="admin", groups=(), hub=None):
        """kubectl whose server is the cluster's prefix on the hub."""
        home = os.path.join(self.folder, self.unique("kx"))
        os.makedirs(home)
        config = self.world.kubeconfig(os.path.join(home, "config"), self.cluster, user, groups,
                                       hub)
        return kubectl.Kubectl(path or kubectl.newest(), config, home)

    def kubectl_named(self, proxy, path=None, user="admin"):
        """kubectl whose server is the cluster's own name, without a prefix. The name is in
        no DNS here, so a CONNECT proxy takes it to the hub."""
        home = os.path.join(self.folder, self.unique("kn"))
        os.makedirs(home)
        server = f"https://{self.server_name}:{self.world.hub.api[1]}"
        config = self.world.kubeconfig(os.path.join(home, "config"), self.cluster, user,
                                       server=server, proxy=proxy.url)
        return kubectl.Kubectl(path or kubectl.newest(), config, home)

    def kubectl_direct(self, path=None, user="admin", groups=()):
        home = os.path.join(self.folder, self.unique("kd"))
        os.makedirs(home)
        config = self.backend.kubeconfig(os.path.join(home, "config"), f"kuberelay:{user}",
                                         [f"kuberelay:{g}" for g in groups])
        return kubectl.Kubectl(path or kubectl.newest(), config, home)

    @property
    def server_name(self):
        return f"{self.cluster}.{HUB_DOMAIN}"

    # -- things in the cluster, made directly
    def namespace(self, stem="ns"):
        name = self.unique(stem)
        answer = self.ask_direct("POST", "/api/v1/namespaces", [JSON],
                                 json.dumps({"metadata": {"name": name}}).encode())
        assert answer.status == 201, answer
        return name

    def create(self, path, obj):
        answer = self.ask_direct("POST", path, [JSON], json.dumps(obj).encode())
        assert answer.status == 201, answer
        return answer.json()


def configmap(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata},
            "data": data or {"k": "v"}}


def pod(name, **metadata):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata},
            "spec": {"containers": [{"name": "c", "image": "example.test/image:1"}]}}
