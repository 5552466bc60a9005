# SPDX-License-Identifier: Apache-2.0
"""The node behind a real API server: the stand-in of tests/real/kubelet."""

import backends
import testpki
from clock import wait_until
from procs import Process

NODE = "node-1"


class Kubelet:
    """A pod bound to its node runs within a moment: a folder, a log, a few programs."""

    def __init__(self, backend):
        self.backend = backend
        self.folder = backend.folder / "kubelet"
        self.folder.mkdir(exist_ok=True)
        serving = testpki.issue(backend.pki, self.folder, "serving", "node-1", ips=["127.0.0.1"],
                                usage=testpki.SERVER)
        config = backends.write_yaml(self.folder / "kubeconfig", backends.kubeconfig_of(
            backend.url, backend.ca, backend.root.crt, backend.root.key))
        self.pods = self.folder / "pods"
        self.process = Process("kubelet", [
            backends.real_binaries("kubelet")["kubelet"], "--kubeconfig", config, "--node", NODE,
            "--folder", self.pods, "--cert", serving.crt, "--key", serving.key,
            "--client-ca", backend.ca], str(self.folder))
        self.process.wait_line(r"event=ready\b", 30)

    def path(self, namespace, name):
        """The folder that a pod takes for its whole file system."""
        return self.pods / namespace / name

    def pod(self, site, namespace, name, **metadata):
        """Makes a pod and waits until it is ready."""
        site.create(f"/api/v1/namespaces/{namespace}/pods", {
            "metadata": {"name": name, **metadata},
            "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": "example.test/a:1"}]}})
        where = f"/api/v1/namespaces/{namespace}/pods/{name}"
        wait_until(lambda: site.ask_direct("GET", where).json()["status"]["phase"] == "Running",
                   20, f"pod {name} runs")
        return name

    def close(self):
        self.process.kill()
