# SPDX-License-Identifier: Apache-2.0
"""The benchmark's surroundings: a work folder, processes that end with it, certificates, tools."""

import ctypes
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PR_SET_PDEATHSIG = 1


class BenchError(Exception):
    """Something that makes the figures impossible; the text says what."""


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def raise_file_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(argv, **kwargs):
    done = subprocess.run(
        [str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs
    )
    if done.returncode != 0:
        raise BenchError(f"{argv[0]} exited with {done.returncode}:\n{done.stdout.strip()}")
    return done.stdout


def wait_for(what, condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise BenchError(f"gave up after {seconds} s waiting for {what}")
        time.sleep(0.02)


class World:
    """Use it in a with statement: whatever was started in it is stopped at the end."""

    def __init__(self, keep=False):
        raise_file_limit()
        self.keep = keep
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="kuberelay-bench."))
        self.processes = []

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda *_: exit(143))
        return self

    def __exit__(self, kind, *_):
        for process in reversed(self.processes):
            stop(process)
        if kind is None and not self.keep:
            shutil.rmtree(self.dir)
        else:
            print(f"work folder kept: {self.dir}")

    def folder(self, name):
        path = self.dir / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def spawn(self, name, argv, **kwargs):
        log = open(self.folder("logs") / f"{name}.log", "ab")
        process = subprocess.Popen(
            [str(a) for a in argv], stderr=log, preexec_fn=die_with_parent,
            **{"stdout": log, "stdin": subprocess.DEVNULL, **kwargs},
        )
        log.close()
        process.name = name
        self.processes.append(process)
        return process

    def log_tail(self, name, lines=15):
        path = self.folder("logs") / f"{name}.log"
        text = path.read_text(errors="replace") if path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def wait_listening(self, process, port):
        def ready():
            if process.poll() is not None:
                tail = self.log_tail(process.name)
                raise BenchError(f"{process.name} exited with {process.returncode}:\n{tail}")
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) == 0

        wait_for(f"{process.name} to listen", ready)

    def spawn_printing_port(self, name, argv):
        """For programs that print "listening HOST:PORT" as their first line."""
        process = self.spawn(name, argv, stdout=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        if not line.startswith("listening "):
            raise BenchError(f"{name} did not start:\n{self.log_tail(name)}")
        return process, int(line.rsplit(":", 1)[1])


def stop(process):
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


TOOLS = {  # program -> its sources, for when the build folder does not have it
    "perf_load": ["perf/load.c", "perf/h2_peer.c", "perf/h2_client.c"],
    "perf_attach_load": ["perf/attach_load.c", "perf/h2_peer.c", "perf/h2_client.c"],
    "perf_exec_load": ["perf/exec_load.c", "perf/h2_peer.c", "perf/h2_client.c"],
    "perf_fleet_read": ["perf/fleet_read.c", "perf/h2_peer.c", "perf/h2_client.c"],
    "perf_mem_server": ["perf/mem_server.c", "perf/h2_peer.c", "perf/h2_client.c"],
    "perf_watch_origin": ["perf/watch_origin.c", "perf/h2_peer.c", "perf/h2_client.c"],
    "delay_relay": ["fakes/delay_relay.c", "fakes/delay_start.c"],
}


def find_tools(world, build):
    """The folder with the tools: of the build, or a fresh one."""
    built = pathlib.Path(build) / "tests"
    if all((built / name).exists() for name in TOOLS):
        return built
    out = world.folder("bin")
    for name, sources in TOOLS.items():
        paths = [HERE.parent / source for source in sources]
        run(["cc", "-std=c17", "-D_GNU_SOURCE", "-O2", "-o", out / name, *paths,
             "-lnghttp2", "-lssl", "-lcrypto"])
    return out


def make_certificate(pki, name, extension):
    key, request, cert = (pki / f"{name}.{end}" for end in ("key", "csr", "crt"))
    run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-keyout", key, "-out", request, "-subj", f"/CN={name}"])
    conf = pki / f"{name}.ext"
    conf.write_text(extension)
    run(["openssl", "x509", "-req", "-in", request, "-CA", pki / "ca.crt", "-CAkey", pki / "ca.key",
         "-days", "2", "-extfile", conf, "-out", cert])
    (pki / f"{name}.pem").write_text(cert.read_text() + key.read_text())


def make_pki(world):
    """A P-256 root, a server certificate for localhost and a client certificate, for the chains."""
    pki = world.folder("pki")
    run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=bench root", "-keyout", pki / "ca.key",
         "-out", pki / "ca.crt"])
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n"
    make_certificate(pki, "server", names)
    make_certificate(pki, "client", "extendedKeyUsage=clientAuth\n")
    return pki
