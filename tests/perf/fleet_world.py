# SPDX-License-Identifier: Apache-2.0
"""What ./dev bench fleet runs: simulated clusters, a hub, agents, readers, and a relay that counts."""

import http.client
import json
import re
import select
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
import urllib.request

from measure import memory_kib
from world import HERE, BenchError, die_with_parent, free_port, stop

FLEET = "/clusters/*"
PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
POD_BYTES = 14336


class Tls:
    """The files that a client needs for one side."""

    def __init__(self, ca, cert, key):
        self.ca, self.cert, self.key = ca, cert, key

    def arguments(self):
        return ["--ca", self.ca, "--cert", self.cert, "--key", self.key]

    def curl(self):
        return ["--cacert", self.ca, "--cert", self.cert, "--key", self.key,
                "--tls13-ciphers", "TLS_AES_128_GCM_SHA256"]

    def context(self):
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(str(self.cert), str(self.key))
        return context


class Endpoint:
    """An HTTPS server that is asked small questions."""

    def __init__(self, port, tls):
        self.port, self.tls = port, tls
        self.context = tls.context()

    def ask(self, method, path, body=None, headers=None, timeout=120):
        conn = http.client.HTTPSConnection("localhost", self.port, timeout=timeout,
                                           context=self.context)
        try:
            conn.request(method, path, body, headers or {})
            answer = conn.getresponse()
            return answer.status, answer.read()
        finally:
            conn.close()

    def get(self, path, **kw):
        status, body = self.ask("GET", path, **kw)
        if status != 200:
            raise BenchError(f"GET {path}: {status} {body[:300]!r}")
        return json.loads(body)

    def version(self, path):
        return self.get(f"{path}?limit=1")["metadata"]["resourceVersion"]


class Simulator:
    """One kubesim; the clusters are endpoints by name."""

    def __init__(self, world, binary, name, clusters, pods, nodes, history):
        self.folder = world.folder(name)
        self.process = world.spawn(name, [
            binary, "--pki", self.folder, "--clusters", clusters, "--pods", pods, "--nodes", nodes,
            "--pod-bytes", POD_BYTES, "--history", history], stdout=subprocess.PIPE, text=True)
        self.tls = Tls(self.folder / "ca.crt", self.folder / "client.crt",
                       self.folder / "client.key")
        self.ports = {}
        for line in self.process.stdout:
            found = re.match(r"event=listening cluster=(\S+) address=\S+:(\d+) ", line)
            if found:
                self.ports[found[1]] = int(found[2])
            if line.startswith("event=ready"):
                break
        if len(self.ports) != clusters:
            raise BenchError(f"{name} did not start:\n{world.log_tail(name)}")
        for name in self.ports:
            self.kubeconfig(name).chmod(0o600)

    def kubeconfig(self, cluster):
        return self.folder / f"kubeconfig-{cluster}"

    def endpoint(self, cluster="c1"):
        return Endpoint(self.ports[cluster], self.tls)

    def churn(self, cluster="c1", **how):
        query = urllib.parse.urlencode(how)
        status, body = self.endpoint(cluster).ask("POST", f"/kubesim/churn?{query}")
        if status != 200:
            raise BenchError(f"churn {query}: {status} {body!r}")


class FleetHub:
    """A hub with the committed fleet file; it can be started again on its ports."""

    def __init__(self, world, programs, name, agent_port=None, more=""):
        programs.make_pki()
        self.world, self.programs, self.name = world, programs, name
        self.api, self.tunnel, self.admin = free_port(), free_port(), free_port()
        self.dial = agent_port or self.tunnel
        pki = programs.pki
        self.tls = Tls(pki / "ca.crt", pki / "user-bench.crt", pki / "user-bench.key")
        self.conf = world.dir / f"{name}.yaml"
        self.conf.write_text(
            f"apiListen: 127.0.0.1:{self.api}\nagentListen: 127.0.0.1:{self.tunnel}\n"
            f"adminListen: 127.0.0.1:{self.admin}\ncaFile: {pki / 'ca.crt'}\n"
            f"certFile: {pki / 'hub-hub-1.crt'}\nkeyFile: {pki / 'hub-hub-1.key'}\n"
            f"fleetFile: {HERE / 'pods.yaml'}\nlogLevel: warn\n"
            f"drainDelay: 0s\ndrainTimeout: 1s\nstartGrace: 0s\n{more}")
        self.start()

    def start(self):
        self.process = self.world.spawn(self.name, [self.programs.hub, "--config", self.conf])
        self.world.wait_listening(self.process, self.api)
        self.endpoint = Endpoint(self.api, self.tls)

    def restart(self):
        self.process.kill()
        self.process.wait()
        self.start()

    @property
    def pid(self):
        return self.process.pid

    def rss_kib(self):
        return memory_kib([self.pid], "VmRSS")

    def metrics(self):
        return read_metrics(self.admin)

    def objects(self, path=PODS):
        """How many objects the fleet view has; 0 while it is not ready."""
        try:
            status, body = self.endpoint.ask("GET", f"{FLEET}{path}?limit=1")
        except (OSError, http.client.HTTPException):
            return 0
        if status != 200:
            return 0
        answer = json.loads(body)
        return len(answer["items"]) + answer["metadata"].get("remainingItemCount", 0)

    def wait_objects(self, count, path=PODS, seconds=600):
        end = time.monotonic() + seconds
        while (have := self.objects(path)) != count:
            if time.monotonic() > end:
                tail = self.world.log_tail(self.name)
                raise BenchError(f"gave up with {have} of {count} objects after {seconds} s\n{tail}")
            time.sleep(0.05)


class FleetAgent:
    def __init__(self, world, programs, hub, simulator, cluster, prefix=""):
        cert = programs.agent_certificate(cluster)
        self.world, self.programs = world, programs
        self.name = f"{prefix}agent-{cluster}"
        self.admin = free_port()
        self.conf = world.dir / f"{self.name}.yaml"
        self.conf.write_text(
            f"hubs:\n- 127.0.0.1:{hub.dial}\nhubName: localhost\n"
            f"caFile: {programs.pki / 'ca.crt'}\ncertFile: {cert}\n"
            f"keyFile: {cert.with_suffix('.key')}\nkubeconfig: {simulator.kubeconfig(cluster)}\n"
            f"logLevel: warn\nadminListen: 127.0.0.1:{self.admin}\ndrainTimeout: 1s\n"
            "reconnectBase: 100ms\nreconnectMax: 1s\n")
        self.start()

    def start(self):
        self.process = self.world.spawn(self.name, [self.programs.agent, "--config", self.conf])

    def restart(self):
        self.process.kill()
        self.process.wait()
        self.start()

    @property
    def pid(self):
        return self.process.pid

    def metrics(self):
        return read_metrics(self.admin)

    def memory_kib(self, field="VmRSS"):
        return memory_kib([self.pid], field)

    def forget_peak(self):
        """VmHWM begins anew at what is resident now."""
        with open(f"/proc/{self.pid}/clear_refs", "w") as f:
            f.write("5")


def read_metrics(port):
    """{"name{labels}": value} of an admin port."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as r:
        lines = r.read().decode().splitlines()
    return {x.rsplit(" ", 1)[0]: float(x.rsplit(" ", 1)[1]) for x in lines
            if x and not x.startswith("#")}


class Reader:
    """fleet_read on watches; it obeys and reports."""

    def __init__(self, world, tools, name, port, tls, path, *options):
        argv = [tools / "perf_fleet_read", "--to", f"127.0.0.1:{port}", "--path", path,
                *tls.arguments(), "--watch", *options]
        self.world, self.name = world, name
        self.process = world.spawn(name, argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        self.line(120, "open ")

    def line(self, seconds, start=""):
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            raise BenchError(f"{self.name}: silent for {seconds} s")
        line = self.process.stdout.readline()
        if not line or not line.startswith(start):
            raise BenchError(f"{self.name}: {line!r}\n{self.world.log_tail(self.name)}")
        return line

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def mark(self):
        self.tell("mark")
        self.line(60, "marked")

    def report(self):
        self.tell("report")
        return json.loads(self.line(60))

    def quiet(self, ms, seconds=120):
        self.tell(f"quiet {ms}")
        return json.loads(self.line(seconds))

    def stop(self):
        stop(self.process)


def watch_path(prefix, path, version, **more):
    query = urllib.parse.urlencode({"watch": "true", "resourceVersion": version, **more})
    return f"{prefix}{path}?{query}"


def curl(tls, url, *options, out="/dev/null"):
    """Seconds to the first byte and to the end, both after the handshake, and bytes."""
    done = subprocess.run(
        [str(a) for a in ["curl", "-sS", "-f", "-g", "-o", out, "-w",
                          "%{time_pretransfer} %{time_starttransfer} %{time_total} %{size_download}",
                          *tls.curl(), *options, url]],
        capture_output=True, text=True, timeout=600, preexec_fn=die_with_parent)
    if done.returncode != 0:
        raise BenchError(f"curl {url}: {done.stderr.strip()}")
    ready, first, total, size = (float(x) for x in done.stdout.split())
    return {"first_ms": (first - ready) * 1e3, "seconds": total - ready, "bytes": size}


class CountingRelay:
    """Passes TCP on to a port and counts; cut() ends what is open. For a few MB only."""

    def __init__(self, to_port):
        self.to_port = to_port
        self.up = self.down = 0  # from who dialled; to who dialled
        self.pairs = []
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            try:
                far = socket.create_connection(("127.0.0.1", self.to_port))
            except OSError:
                near.close()
                continue
            with self.lock:
                self.pairs.append((near, far))
            for source, sink, name in ((near, far, "up"), (far, near, "down")):
                threading.Thread(target=self.pump, args=(source, sink, name), daemon=True).start()

    def pump(self, source, sink, name):
        try:
            while data := source.recv(1 << 18):
                with self.lock:
                    setattr(self, name, getattr(self, name) + len(data))
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def total(self):
        with self.lock:
            return self.up + self.down

    def cut(self):
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for near, far in pairs:
            for end in (near, far):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def settle(self, seconds=2, limit=120, slack=2000):
        """Waits until fewer than `slack` bytes came in `seconds` (heartbeats go on)."""
        end = time.monotonic() + limit
        before = self.total()
        while time.monotonic() < end:
            time.sleep(seconds)
            now = self.total()
            if now - before < slack:
                return now
            before = now
        raise BenchError("the tunnel does not come to rest")
