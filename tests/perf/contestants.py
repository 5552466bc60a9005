# SPDX-License-Identifier: Apache-2.0
"""The origin, and the ways to reach it: direct, two chains of proxies, kuberelay."""

import dataclasses
import json
import os
import pathlib
import subprocess
import urllib.request

from measure import family
from world import HERE, BenchError, free_port, run, wait_for

WINDOW = 4 * 1024 * 1024  # the largest stream window of a tunnel; everybody gets it
CONFIGMAPS = "/api/v1/namespaces/default/configmaps/"
BODIES = {"k1": 1000, "k100": 100_000, "m10": 10_000_000, "m100": 100_000_000, "g1": 1_000_000_000}


@dataclasses.dataclass
class Target:
    """Where the load goes. pids: role (hub, agent) -> process ids."""

    name: str
    port: int
    prefix: str
    ca: pathlib.Path
    cert: pathlib.Path
    key: pathlib.Path
    pids: dict = dataclasses.field(default_factory=dict)


def render(template, out, **values):
    text = (HERE / "chains" / template).read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    out.write_text(text)
    return out


# ---- the origin ----


def write_body(path, size):
    head = f'{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{path.name}"}},"data":{{"x":"'
    tail = '"}}\n'
    left = size - len(head) - len(tail)
    with path.open("w") as f:
        f.write(head)
        while left > 0:
            part = min(left, 1 << 20)
            f.write("kuberelay-bench " * (part // 16) + "x" * (part % 16))
            left -= part
        f.write(tail)


def write_files(root, bodies):
    plain = {
        "readyz": {"status": "ok"},
        "livez": {"status": "ok"},
        "healthz": {"status": "ok"},
        "version": {"major": "1", "minor": "30", "gitVersion": "v1.30.0"},
        "api.json": {"kind": "APIVersions", "versions": ["v1"]},
        "apis.json": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
        "api/v1/namespaces/kube-system": {
            "kind": "Namespace", "apiVersion": "v1",
            "metadata": {"name": "kube-system", "uid": "00000000-0000-0000-0000-000000000001"},
        },
        "api/v1/nodes": {
            "kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"},
            "items": [],
        },
    }
    for name, value in plain.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value) + "\n")
    folder = root / CONFIGMAPS.strip("/")
    folder.mkdir(parents=True, exist_ok=True)
    for name in bodies:
        write_body(folder / name, BODIES[name])


def start_nginx(world, name, template, pki, **values):
    folder = world.folder(name)
    port = free_port()
    user = "user root;" if os.getuid() == 0 else ""
    render("nginx-common.conf.in", folder / "common.conf", dir=folder, pki=pki)
    conf = render(template, folder / "nginx.conf", dir=folder, pki=pki, port=port, user=user,
                  **values)
    process = world.spawn(name, ["nginx", "-p", folder, "-e", folder / "error.log", "-c", conf])
    world.wait_listening(process, port)
    return process, port


def start_origin(world, pki, bodies):
    files = world.folder("files")
    write_files(files, bodies)
    return start_nginx(world, "origin", "nginx-origin.conf.in", pki, files=files)


# ---- the ways ----


class Setup:
    """Everything a way needs to be built: the world, tools, certificates, origin, delay."""

    def __init__(self, world, tools, pki, origin_port, label, delay_ms=0):
        self.world = world
        self.tools = tools
        self.pki = pki
        self.origin_port = origin_port
        self.label = label
        self.delay_ms = delay_ms

    def leg(self, name, port):
        """The port to dial for reaching `port`: itself, or a delay relay in front of it."""
        if self.delay_ms == 0:
            return port
        argv = [self.tools / "delay_relay", "--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{port}",
                "--delay-ms", self.delay_ms]
        return self.world.spawn_printing_port(f"{self.label}-{name}-delay", argv)[1]

    def target(self, name, port, prefix, **pids):
        return Target(name, port, prefix, self.pki / "ca.crt", self.pki / "client.crt",
                      self.pki / "client.key", pids)


def direct(setup):
    return setup.target("direct", setup.leg("direct", setup.origin_port), "")


def haproxy_process(setup, role, next_port, kind="haproxy"):
    name = f"{setup.label}-{kind}-{role}"
    port = free_port()
    conf = render(f"{kind}-{role}.cfg.in", setup.world.dir / f"{name}.cfg", pki=setup.pki,
                  port=port, next=next_port, window=WINDOW)
    process = setup.world.spawn(name, ["haproxy", "-db", "-f", conf])
    setup.world.wait_listening(process, port)
    return process, port


def haproxy(setup):
    agent, agent_port = haproxy_process(setup, "agent", setup.origin_port)
    hub, port = haproxy_process(setup, "hub", setup.leg("haproxy", agent_port))
    return setup.target("haproxy", port, "/clusters/c1", hub=[hub.pid], agent=[agent.pid])


def haproxy_tcp(setup):
    """For upgrades: it passes bytes on and knows no paths."""
    agent, agent_port = haproxy_process(setup, "agent", setup.origin_port, "haproxy-tcp")
    hub, port = haproxy_process(setup, "hub", setup.leg("haproxy", agent_port), "haproxy-tcp")
    return setup.target("haproxy", port, "", hub=[hub.pid], agent=[agent.pid])


def nginx(setup):
    def start(role, next_port):
        name = f"{setup.label}-nginx-{role}"
        return start_nginx(setup.world, name, f"nginx-{role}.conf.in", setup.pki, next=next_port)

    agent, agent_port = start("agent", setup.origin_port)
    hub, port = start("hub", setup.leg("nginx", agent_port))
    return setup.target("nginx", port, "/clusters/c1", hub=family(hub.pid), agent=family(agent.pid))


# ---- kuberelay ----


class Programs:
    """The programs under test, wherever in the build folder they are, and their certificates."""

    def __init__(self, world, build):
        self.world = world
        self.pki = world.dir / "kuberelay-pki"
        self.hub = self.find(build, "kuberelay-hub")
        self.agent = self.find(build, "kuberelay-agent")
        self.ctl = self.find(build, "kuberelayctl")

    @staticmethod
    def find(build, name):
        found = [p for p in pathlib.Path(build).rglob(name) if p.is_file() and os.access(p, os.X_OK)]
        if not found:
            raise BenchError(f"no {name} in {build}; build it first")
        return found[0]

    def make_pki(self):
        if self.pki.exists():
            return
        run([self.ctl, "ca", "init", "--dir", self.pki])
        self.issue("hub", "--name", "hub-1", "--dns", "localhost", "--ip", "127.0.0.1")
        self.issue("user", "--name", "bench")

    def issue(self, role, *options):
        run([self.ctl, "ca", "issue", role, "--dir", self.pki, *options])

    def agent_certificate(self, cluster):
        self.make_pki()
        cert = self.pki / f"agent-{cluster}-a.crt"
        if not cert.exists():
            self.issue("agent", "--cluster", cluster)
        return cert


def write_kubeconfig(path, setup):
    path.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: bench\n"
        "clusters:\n- name: bench\n  cluster:\n"
        f"    server: https://127.0.0.1:{setup.origin_port}\n"
        f"    certificate-authority: {setup.pki / 'ca.crt'}\n"
        "users:\n- name: bench\n  user:\n    token: bench\n"
        "contexts:\n- name: bench\n  context:\n    cluster: bench\n    user: bench\n"
    )
    path.chmod(0o600)
    return path


class Hub:
    def __init__(self, setup, programs):
        programs.make_pki()
        self.setup, self.programs = setup, programs
        self.api, self.tunnel, self.admin = free_port(), free_port(), free_port()
        self.name = f"{setup.label}-hub"
        conf = setup.world.dir / f"{self.name}.yaml"
        conf.write_text(
            f"apiListen: 127.0.0.1:{self.api}\nagentListen: 127.0.0.1:{self.tunnel}\n"
            f"adminListen: 127.0.0.1:{self.admin}\ncaFile: {programs.pki / 'ca.crt'}\n"
            f"certFile: {programs.pki / 'hub-hub-1.crt'}\n"
            f"keyFile: {programs.pki / 'hub-hub-1.key'}\nworkers: 1\nlogLevel: warn\n"
            "drainDelay: 0s\ndrainTimeout: 1s\n"
        )
        self.process = setup.world.spawn(self.name, [programs.hub, "--config", conf])
        setup.world.wait_listening(self.process, self.api)
        self.dial_port = setup.leg("kuberelay", self.tunnel)

    def start_agent(self, cluster="c1", lanes=2, kubeconfig=None):
        """In front of the setup's origin, or of what the kubeconfig names."""
        cert = self.programs.agent_certificate(cluster)
        name = f"{self.setup.label}-agent-{cluster}"
        conf = self.setup.world.dir / f"{name}.yaml"
        if kubeconfig is None:
            kubeconfig = write_kubeconfig(self.setup.world.dir / f"{name}.kubeconfig", self.setup)
        policy = self.setup.world.dir / "policy.yaml"
        policy.write_text("mode: read-write\nexec: true\n")
        conf.write_text(
            f"hubs:\n- 127.0.0.1:{self.dial_port}\ncaFile: {self.programs.pki / 'ca.crt'}\n"
            f"certFile: {cert}\nkeyFile: {cert.with_suffix('.key')}\n"
            f"kubeconfig: {kubeconfig}\nlanes: {lanes}\nlogLevel: warn\n"
            f"policyFile: {policy}\nadminListen: 127.0.0.1:{free_port()}\ndrainTimeout: 1s\n"
        )
        return self.setup.world.spawn(name, [self.programs.agent, "--config", conf])

    def tunnels(self):
        """Tunnels that are attached, as the hub counts them."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=10) as r:
            lines = r.read().decode().splitlines()
        return sum(int(x.split()[-1]) for x in lines if x.startswith("kuberelay_hub_tunnels{"))

    def target(self, agent, cluster="c1"):
        bundle = self.setup.world.dir / "bundle.crt"
        bundle.write_text((self.setup.pki / "ca.crt").read_text()
                          + (self.programs.pki / "ca.crt").read_text())
        pki = self.programs.pki
        return Target("kuberelay", self.api, f"/clusters/{cluster}", bundle,
                      pki / "user-bench.crt", pki / "user-bench.key",
                      {"hub": [self.process.pid], "agent": [agent.pid]})


def probe_ok(setup, target):
    argv = [setup.tools / "perf_load", "--to", f"127.0.0.1:{target.port}",
            "--path", target.prefix + "/version", "--ca", target.ca, "--cert", target.cert,
            "--key", target.key, "--requests", "1"]
    return subprocess.run([str(a) for a in argv], capture_output=True, timeout=30).returncode == 0


def kuberelay(setup, programs, kubeconfig=None):
    hub = Hub(setup, programs)
    agent = hub.start_agent(kubeconfig=kubeconfig)
    target = hub.target(agent)
    try:
        wait_for("kuberelay to relay", lambda: probe_ok(setup, target))
    except BenchError as e:
        tails = [setup.world.log_tail(n) for n in (hub.name, agent.name)]
        raise BenchError("\n".join([str(e), *tails])) from e
    return target
