# SPDX-License-Identifier: Apache-2.0
"""A small fleet on loopback: certificates, hubs, agents, and clients that reach them.

Everything waits on an event or on readiness; close() ends every process it started.
"""

import os
import re
import urllib.request
from pathlib import Path

import testpki
from backends import kubeconfig_of, write_yaml
from clock import scaled, wait_until
from h1client import H1Client
from h2client import ConnectionLost, H2Client, StreamReset
from procs import Process, run

HUB_DOMAIN = "hub.test"
TRUST_DOMAIN = "example.test"
REPORT = r"ERROR: \w+Sanitizer|runtime error:|WARNING: ThreadSanitizer|[Aa]ssertion .*failed"


# What an agent's policy closes unless it is opened by name (agent/policy.c).
CLOSED = ["secrets", "serviceaccounts/token", "nodes/proxy", "pods/proxy", "services/proxy",
          "certificatesigningrequests/approval", "certificatesigningrequests", "tokenreviews",
          "clusterroles", "clusterrolebindings", "roles", "rolebindings",
          "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
          "mutatingadmissionpolicies", "apiservices", "customresourcedefinitions",
          "own-namespace"]


class Binaries:
    """Where the programs under test are; `missing` names the ones that are not there."""

    NAMES = ("kuberelay-hub", "kuberelay-agent", "kuberelay-signer", "kuberelayctl", "kubesim")

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.paths = {}
        for name in self.NAMES:
            found = [p for p in (self.folder / name, *self.folder.glob(f"*/{name}"),
                                 *self.folder.glob(f"*/*/{name}"))
                     if p.is_file() and os.access(p, os.X_OK)]
            if found:
                self.paths[name] = str(found[0])

    def __getitem__(self, name):
        return self.paths[name]

    @property
    def sanitized(self):
        """Built with a sanitizer: slower, and its memory says nothing."""
        hub = self.paths.get("kuberelay-hub")
        return bool(hub) and re.search(rb"__(asan|tsan)_init", Path(hub).read_bytes()) is not None

    def missing(self, *names):
        return [n for n in names if n not in self.paths]


class Hub(Process):
    """A hub process and its three addresses."""

    def wait_ready(self):
        for port in ("api", "agent", "admin"):
            found = self.wait_line(rf"event=listening\b.*\bport={port}\b.*\baddress=(\S+)")
            host, number = found.group(1).strip('"').rsplit(":", 1)
            setattr(self, port, (host.strip("[]"), int(number)))
        return self

    @property
    def agent_address(self):
        return f"{self.agent[0]}:{self.agent[1]}"

    @property
    def url(self):
        return f"https://{self.api[0]}:{self.api[1]}"


class Agent(Process):
    admin = None

    def wait_admin(self):
        found = self.wait_line(r"event=listening\b.*\bport=admin\b.*\baddress=(\S+)")
        host, number = found.group(1).strip('"').rsplit(":", 1)
        self.admin = (host, int(number))
        return self


def next_name(name):
    """Of a process that is started again: hub-1, hub-1~2, hub-1~3, however often."""
    stem, _, number = name.partition("~")
    return f"{stem}~{int(number or 1) + 1}"


class World:
    def __init__(self, folder, binaries):
        self.folder = Path(folder)
        self.binaries = binaries
        self.pki = self.folder / "pki"
        self.pki.mkdir(parents=True)
        self.processes = []
        self.clients = []
        self.users = {}
        self.hub = None
        self.ctl("ca", "init", "--dir", self.pki, "--trust-domain", TRUST_DOMAIN)
        self.ca = str(self.pki / "ca.crt")
        self.hub_pair = self.issue_hub("hub-1")

    # -- certificates
    def ctl(self, *args, timeout=30):
        code, out, err = run([self.binaries["kuberelayctl"], *args], timeout)
        assert code == 0, f"kuberelayctl {args}: {code} {err.decode()}"
        return out.decode().split()

    def _pair(self, paths):
        crt = [p for p in paths if p.endswith(".crt")]
        key = [p for p in paths if p.endswith(".key")]
        return testpki.load(crt[0], key[0])

    def issue_hub(self, name):
        return self._pair(self.ctl(
            "ca", "issue", "hub", "--dir", self.pki, "--name", name, "--dns", "localhost",
            "--dns", HUB_DOMAIN, "--dns", f"*.{HUB_DOMAIN}", "--ip", "127.0.0.1"))

    def issue_agent(self, cluster, instance="a"):
        return self._pair(self.ctl("ca", "issue", "agent", "--dir", self.pki, "--cluster",
                                   cluster, "--instance", instance))

    def user(self, name, groups=()):
        if name not in self.users:
            flags = [f for g in groups for f in ("--group", g)]
            self.users[name] = self._pair(
                self.ctl("ca", "issue", "user", "--dir", self.pki, "--name", name, *flags))
        return self.users[name]

    def root(self):
        """The root itself, to sign certificates that kuberelayctl would not."""
        return testpki.load(self.pki / "ca.crt", self.pki / "ca.key")

    # -- processes
    def hub_config(self, pair=None, **more):
        pair = pair or self.hub_pair
        config = {"apiListen": "127.0.0.1:0", "agentListen": "127.0.0.1:0",
                  "adminListen": "127.0.0.1:0", "caFile": self.ca, "certFile": pair.crt,
                  "keyFile": pair.key, "hubDomain": HUB_DOMAIN,
                  # A test knows when its agents are there.
                  "startGrace": "0s"}
        config.update(more)
        return {k: v for k, v in config.items() if v is not None}

    def start_hub(self, name="hub-1", pair=None, env=None, prefix=(), **more):
        path = write_yaml(self.folder / f"{name}.yaml", self.hub_config(pair, **more))
        hub = Hub(name, [self.binaries["kuberelay-hub"], "--config", path], str(self.folder),
                  env=env, prefix=prefix)
        self.processes.append(hub)
        hub.wait_ready()
        self.hub = self.hub or hub
        return hub

    def restart_hub(self, hub, **more):
        """A new hub on the ports of one that has ended."""
        addresses = {f"{port}Listen": "%s:%d" % getattr(hub, port)
                     for port in ("api", "agent", "admin")}
        fresh = self.start_hub(next_name(hub.name), **{**addresses, **more})
        if hub is self.hub:
            self.hub = fresh
        return fresh

    def open_policy(self):
        """An edge that closes nothing: what a test is about is not what the policy does."""
        path = self.folder / "open-policy.yaml"
        if not path.exists():
            write_yaml(path, {"mode": "read-write", "exec": True, "open": CLOSED})
        return str(path)

    def agent_config(self, cluster, kubeconfig, hubs=None, pair=None, instance="a", **more):
        pair = pair or self.issue_agent(cluster, instance)
        config = {"hubs": hubs or [self.hub.agent_address], "caFile": self.ca,
                  "certFile": pair.crt, "keyFile": pair.key, "kubeconfig": kubeconfig,
                  # Right in the field and long in a test: full jitter up to a minute, and half
                  # a minute for watches to end.
                  "policyFile": self.open_policy(),
                  "reconnectMax": "2s", "drainTimeout": "3s", "adminListen": "127.0.0.1:0"}
        config.update(more)
        return {k: v for k, v in config.items() if v is not None}

    def start_agent(self, cluster, kubeconfig, wait=True, env=None, prefix=(), name=None, **more):
        name = name or f"agent-{cluster}"
        path = write_yaml(self.folder / f"{name}.yaml",
                          self.agent_config(cluster, kubeconfig, **more))
        agent = Agent(name, [self.binaries["kuberelay-agent"], "--config", path],
                      str(self.folder), env=env, prefix=prefix)
        agent.cluster, agent.config_path = cluster, path
        self.processes.append(agent)
        if wait:
            agent.wait_admin()
            self.wait_cluster(cluster)
        return agent

    def restart_agent(self, agent, wait=True):
        """The same agent, the same certificate, after its process ended."""
        again = Agent(next_name(agent.name), agent.argv, str(self.folder))
        again.cluster, again.config_path = agent.cluster, agent.config_path
        self.processes.append(again)
        if wait:
            again.wait_admin()
            self.wait_cluster(agent.cluster)
        return again

    # -- clients
    def context(self, user="admin", groups=()):
        return testpki.client_context(self.ca, self.user(user, groups) if user else None)

    def client(self, user="admin", groups=(), hub=None, **kw):
        client = H2Client((hub or self.hub).api, self.context(user, groups), **kw)
        self.clients.append(client)
        return client

    def h1(self, user="admin", groups=(), hub=None, **kw):
        client = H1Client((hub or self.hub).api, self.context(user, groups), **kw)
        self.clients.append(client)
        return client

    def kubeconfig(self, path, cluster, user="admin", groups=(), hub=None, server=None,
                   proxy=None):
        """For kubectl: the path form by default, or any server URL."""
        pair = self.user(user, groups)
        server = server or f"{(hub or self.hub).url}/clusters/{cluster}"
        content = kubeconfig_of(server, self.ca, pair.crt, pair.key)
        if proxy:
            content["clusters"][0]["cluster"]["proxy-url"] = proxy
        return write_yaml(path, content)

    def wait_cluster(self, cluster, timeout=30, hub=None):
        """Until the cluster's own API server, not the hub, gives the answer."""
        def answers():
            try:
                with H2Client((hub or self.hub).api, self.context()) as client:
                    answer = client.get(f"/clusters/{cluster}/readyz", timeout=10)
            except (OSError, ConnectionLost, StreamReset):
                return False
            return not any("kuberelay" in w for w in answer.all("warning"))
        wait_until(answers, timeout, f"cluster {cluster} reachable", every=0.05)

    def wait_away(self, cluster, timeout=40, hub=None):
        """Until the hub knows that the agent is gone: a watch gets 429 then."""
        def away():
            with H2Client((hub or self.hub).api, self.context()) as client:
                stream = client.start("GET", f"/clusters/{cluster}/api/v1/pods?watch=true")
                try:
                    stream.wait_headers(10)
                except (StreamReset, ConnectionLost, TimeoutError):
                    return False
                return stream.status == 429
        wait_until(away, timeout, f"cluster {cluster} away", every=0.1)

    # -- numbers
    def metrics(self, process=None):
        return metrics((process or self.hub).admin)

    def close(self):
        """Ends everything; fails if a sanitizer or an assertion spoke on the way."""
        for client in self.clients:
            try:
                client.close()
            except OSError:
                pass
        for process in self.processes:
            if process.frozen:
                process.thaw()
            process.child.kill()  # all of them first: the rest would dial a hub that is gone
        for process in self.processes:
            process.kill()
            process.reader.join(5)
        reports = [line for p in self.processes for line in p.grep(REPORT)]
        assert not reports, f"a program reported a fault of its own: {reports[:5]}"


def admin_get(address, path, timeout=10):
    """(status, text) from an admin port."""
    try:
        with urllib.request.urlopen(f"http://{address[0]}:{address[1]}{path}",
                                    timeout=scaled(timeout)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metrics(address):
    """{'name{labels}': value} of a Prometheus page."""
    status, page = admin_get(address, "/metrics")
    assert status == 200, page
    found = {}
    for line in page.splitlines():
        if match := re.match(r"^([a-zA-Z_:][\w:]*(?:\{.*\})?) (\S+)", line):
            found[match.group(1)] = float(match.group(2))
    return found


def gauge(numbers, name):
    """The sum over all label sets of one metric; None if it does not exist."""
    values = [v for k, v in numbers.items() if k == name or k.startswith(name + "{")]
    return sum(values) if values else None
