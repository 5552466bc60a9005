# SPDX-License-Identifier: Apache-2.0
"""The API servers behind the agents: the real one, the simulator, the scripted fake.

Each offers the same: an address, the credentials of the agent (which may impersonate
and nothing else), a kubeconfig made of them, and a direct client: the oracle.
"""

import json
import os
import socket
import subprocess
from pathlib import Path

import yaml

import testpki
from clock import wait_until
from fakeapi import FakeApi
from h1client import H1Client
from h2client import H2Client
from procs import Process

REPO = Path(__file__).resolve().parents[2]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def impersonation(user, groups=()):
    """The headers that the agent renders for a kuberelay user."""
    headers = [("impersonate-user", f"kuberelay:{user}")]
    return headers + [("impersonate-group", f"kuberelay:{g}") for g in groups]


def kubeconfig_of(url, ca, crt, key, as_user=None, as_groups=(), name="c"):
    user = {"client-certificate": crt, "client-key": key}
    if as_user:
        user["as"] = as_user
        if as_groups:
            user["as-groups"] = list(as_groups)
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": name, "preferences": {},
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority": ca}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }


def write_yaml(path, content):
    """At once: a program that looks at the file meanwhile sees the old one or the new one."""
    path = Path(path)
    fresh = path.with_name(f".{path.name}.fresh")
    fresh.write_text(yaml.safe_dump(content), encoding="utf-8")
    os.replace(fresh, path)
    return str(path)


class Backend:
    """address, ca, agent (Pair) are set by the subclass."""

    name = ""
    is_real = False
    is_fake = False

    @property
    def url(self):
        return f"https://{self.address[0]}:{self.address[1]}"

    def context(self):
        return testpki.client_context(self.ca, self.agent)

    def direct(self, **kw):
        """A client straight to the API server, with the agent's own credentials."""
        return H2Client(self.address, self.context(), **kw)

    def direct_h1(self, **kw):
        return H1Client(self.address, self.context(), **kw)

    def kubeconfig(self, path, as_user=None, as_groups=()):
        return write_yaml(path, kubeconfig_of(self.url, self.ca, self.agent.crt, self.agent.key,
                                              as_user, as_groups))

    def close(self):
        pass


class FakeBackend(Backend):
    name = "fake"
    is_fake = True

    def __init__(self, folder, **options):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.pki = testpki.new_ca(folder, "fake-ca", "fake API CA")
        self.ca = self.pki.crt
        serving = testpki.issue(self.pki, folder, "serving", "fake-api", ips=["127.0.0.1"],
                                dns=["localhost", "kubernetes"], usage=testpki.SERVER)
        self.agent = testpki.issue(self.pki, folder, "agent", "kuberelay-agent")
        self.api = FakeApi(testpki.server_context(serving), **options)
        self.address = self.api.address

    def close(self):
        self.api.close()


class RealBackend(Backend):
    """etcd and an unchanged kube-apiserver, with RBAC, audit log and impersonation."""

    is_real = True

    def __init__(self, name, folder):
        self.name = name
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = real_binaries("etcd", f"apiserver-{name[5:]}")
        self._keys()
        self.etcd_port, self.port = free_port(), free_port()
        self.address = ("127.0.0.1", self.port)
        self.etcd_binary, self.server_binary = paths["etcd"], paths[f"apiserver-{name[5:]}"]
        self.audit_log = self.folder / "audit.log"
        self.etcd = self._start_etcd()
        self.server = self._start_server()
        self._wait_ready()
        self._grant()
        # A server that knows the whole history never says 410: give it a past it forgot.
        self.etcdctl_compact()
        self.restart_server()

    def _keys(self):
        folder = self.folder
        self.pki = testpki.new_ca(folder, "api-ca", "API CA")
        self.ca = self.pki.crt
        self.serving = testpki.issue(
            self.pki, folder, "serving", "kube-apiserver", ips=["127.0.0.1", "10.96.0.1"],
            dns=["localhost", "kubernetes", "kubernetes.default.svc"], usage=testpki.SERVER)
        self.tokens = testpki.traditional_key(self.serving, folder / "service-accounts.key")
        self.root = testpki.issue(self.pki, folder, "root", "root", ["system:masters"])
        self.agent = testpki.issue(self.pki, folder, "agent", "kuberelay-agent")
        self.kubelet_client = testpki.issue(self.pki, folder, "to-kubelet", "kube-apiserver")

    def _start_etcd(self):
        peer = free_port()
        return Process("etcd", [
            self.etcd_binary, "--data-dir", self.folder / "etcd", "--unsafe-no-fsync",
            "--listen-client-urls", f"http://127.0.0.1:{self.etcd_port}",
            "--advertise-client-urls", f"http://127.0.0.1:{self.etcd_port}",
            "--listen-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-cluster", f"default=http://127.0.0.1:{peer}", "--log-level", "warn",
        ], str(self.folder))

    def _start_server(self):
        policy = write_yaml(self.folder / "audit-policy.yaml", {
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata"}]})
        return Process("kube-apiserver", [
            self.server_binary, "--etcd-servers", f"http://127.0.0.1:{self.etcd_port}",
            "--bind-address", "127.0.0.1", "--secure-port", self.port,
            "--tls-cert-file", self.serving.crt, "--tls-private-key-file", self.serving.key,
            "--client-ca-file", self.ca, "--authorization-mode", "RBAC",
            "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-signing-key-file", self.tokens,
            "--service-account-key-file", self.tokens,
            "--service-cluster-ip-range", "10.96.0.0/24", "--endpoint-reconciler-type", "none",
            # No controller manager here: nobody would make the service accounts.
            "--disable-admission-plugins", "ServiceAccount",
            "--audit-policy-file", policy, "--audit-log-path", self.audit_log,
            "--kubelet-preferred-address-types", "InternalIP",
            "--kubelet-certificate-authority", self.ca,
            "--kubelet-client-certificate", self.kubelet_client.crt,
            "--kubelet-client-key", self.kubelet_client.key,
            "--http2-max-streams-per-connection", "1000", "--event-ttl", "10m", "--profiling=false", "--v", "0",
        ], str(self.folder))

    def as_root(self):
        return H2Client(self.address, testpki.client_context(self.ca, self.root))

    def _wait_ready(self):
        def ready():
            if not self.server.alive or not self.etcd.alive:
                raise RuntimeError(f"{self.name} ended: {self.server.tail(30)}")
            try:
                with self.as_root() as client:
                    return client.get("/readyz", timeout=5).status == 200
            except OSError:
                return False
            except Exception:  # connection cut while it starts
                return False
        wait_until(ready, 90, f"{self.name} ready", every=0.2)
        self.wait_bootstrap()

    def wait_bootstrap(self):
        """The built-in roles and the default namespace come a moment after readiness."""
        with self.as_root() as client:
            wait_until(lambda: client.get(
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin").status == 200
                and client.get("/api/v1/namespaces/default").status == 200, 30, "bootstrap")

    def _grant(self):
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        rule = {"apiGroups": ["", "authentication.k8s.io"], "verbs": ["impersonate"],
                "resources": ["users", "groups", "uids", "userextras", "serviceaccounts"]}
        objects = [
            ("clusterroles", {"metadata": {"name": "kuberelay-agent"}, "rules": [rule]}),
            ("clusterrolebindings", binding("kuberelay-agent", "kuberelay-agent",
                                            "User", "kuberelay-agent")),
            ("clusterrolebindings", binding("kuberelay-admin", "cluster-admin",
                                            "User", "kuberelay:admin")),
            ("clusterrolebindings", binding("kuberelay-viewers", "view",
                                            "Group", "kuberelay:viewers")),
        ]
        with self.as_root() as client:
            for resource, obj in objects:
                answer = client.request("POST", f"{rbac}/{resource}",
                                        [("content-type", "application/json")],
                                        json.dumps(obj).encode())
                assert answer.status == 201, answer

    def etcdctl_compact(self):
        """Compacts all history up to now, through etcd's own JSON gateway."""
        import urllib.request

        def call(path, body):
            request = urllib.request.Request(f"http://127.0.0.1:{self.etcd_port}/v3/{path}",
                                             json.dumps(body).encode())
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        revision = int(call("kv/range", {"key": "AA=="})["header"]["revision"])
        call("kv/compaction", {"revision": revision, "physical": True})
        return revision

    def restart_server(self):
        self.server.kill()
        self.server = self._start_server()
        self._wait_ready()

    def audit_entries(self, audit_id):
        found = []
        if self.audit_log.exists():
            for line in self.audit_log.read_text(encoding="utf-8").splitlines():
                if audit_id in line:
                    found.append(json.loads(line))
        return found

    def close(self):
        self.server.kill()
        self.etcd.kill()


def binding(name, role, kind, subject):
    return {"metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": kind,
                          "name": subject}]}


def real_binaries(*names):
    """{name: path} of what tests/real/build has built; it builds what is missing. {} without Go."""
    done = subprocess.run([str(REPO / "tests/real/build"), *names], stdout=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode not in (0, 77):
        raise RuntimeError("tests/real/build failed")
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def real_versions():
    """Names for --backend, from the folders of tests/real."""
    return sorted("real-" + p.parent.name[10:] for p in
                  (REPO / "tests/real").glob("apiserver-*/go.mod"))


class KubesimBackend(Backend):
    """The simulator: one process; this is its first cluster."""

    name = "kubesim"

    def __init__(self, folder, binary, pods=40, nodes=3, seed=1):
        os.makedirs(folder, exist_ok=True)
        self.folder = Path(folder)
        self.process = Process("kubesim", [
            binary, "--listen", "127.0.0.1:0", "--clusters", "1", "--pods", pods,
            "--nodes", nodes, "--churn", "0", "--seed", seed, "--pki", folder], str(folder))
        line = self.process.wait_line(r"event=listening\b.*\bkubeconfig=(\S+)")
        self.process.wait_line(r"event=ready\b")
        self._read(Path(line.group(1).strip('"')))

    def _read(self, path):
        from urllib.parse import urlsplit

        config = yaml.safe_load(path.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        where = urlsplit(cluster["server"])
        assert not where.path.strip("/"), f"kubesim's server has a path: {where}"
        self.address = (where.hostname, where.port)
        self.ca = _file_of(self.folder, "sim-ca.crt", cluster, "certificate-authority")
        crt = _file_of(self.folder, "sim-agent.crt", user, "client-certificate")
        key = _file_of(self.folder, "sim-agent.key", user, "client-key")
        self.agent = testpki.load(crt, key)

    def close(self):
        self.process.kill()


def _file_of(folder, stem, section, key):
    """A kubeconfig entry as a file: it may be a path or inline data."""
    import base64

    if key in section:
        return str((folder / section[key]).resolve())
    path = folder / stem
    path.write_bytes(base64.b64decode(section[key + "-data"]))
    return str(path)
