# SPDX-License-Identifier: Apache-2.0
"""An unchanged kube-apiserver with etcd and the stand-in for a kubelet, as the end-to-end tests start
them, and a pod in which `cat` can be executed."""

import json

from contestants import Target
from end_to_end import backends, kubelet
from world import BenchError, wait_for

SERVER = "apiserver-1.33"
PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "bench"},
       "spec": {"nodeName": kubelet.NODE, "containers": [{"name": "c", "image": "example.test/a:1"}]}}
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


class RealCluster:
    def __init__(self, folder):
        self.folder = folder
        self.backend = backends.RealBackend(f"real-{SERVER[10:]}", folder)
        self.kubelet = kubelet.Kubelet(self.backend)
        with self.backend.as_root() as client:
            self.create(client, BINDINGS,
                        backends.binding("bench", "cluster-admin", "User", "kuberelay:bench"))
            self.create(client, PODS, POD)
            wait_for("the pod to run", lambda: client.get(f"{PODS}/bench").json()
                     ["status"]["phase"] == "Running")

    @staticmethod
    def create(client, path, what):
        answer = client.request("POST", path, [("content-type", "application/json")],
                                json.dumps(what).encode())
        if answer.status != 201:
            raise BenchError(f"POST {path}: {answer}")

    @property
    def port(self):
        return self.backend.port

    def kubeconfig(self):
        """The agent's: it may impersonate."""
        path = self.folder / "agent.kubeconfig"
        self.backend.kubeconfig(path)
        path.chmod(0o600)
        return path

    def direct(self):
        root = self.backend.root
        return Target("direct", self.port, "", self.backend.ca, root.crt, root.key)

    def close(self):
        self.kubelet.close()
        self.backend.close()


def start(world):
    """None, with a word why, where its programs are not there and cannot be built."""
    missing = {"etcd", "kubelet", SERVER} - set(backends.real_binaries("etcd", "kubelet", SERVER))
    if missing:
        print(f"SKIPPED: no {', '.join(sorted(missing))} here (see tests/real/build): nothing is "
              "measured with a real kube-apiserver", file=sys.stderr)
        return None
    try:
        return RealCluster(world.folder("real"))
    except (RuntimeError, TimeoutError) as e:
        raise BenchError(f"the real cluster did not start: {e}") from e
