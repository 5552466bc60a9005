# SPDX-License-Identifier: Apache-2.0
"""Finds the kubectl versions of this machine and runs them in a clean home."""

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

import backends
from clock import scaled


def _version(path):
    try:
        out = subprocess.run([path, "version", "--client"], capture_output=True, text=True,
                             timeout=30, check=False, env={"HOME": "/nonexistent", "PATH": ""})
    except OSError:
        return None
    match = re.search(r'(?:GitVersion:"|Client Version: )v1\.(\d+)', out.stdout)
    return int(match.group(1)) if match else None


def find():
    """{minor: path}; versioned binaries beside the one on the PATH come first. More may be
    named in KUBERELAY_KUBECTL, like a PATH."""
    found = {}
    more = os.environ.get("KUBERELAY_KUBECTL", "").split(":")
    for candidate in (shutil.which("kubectl"), "/usr/bin/kubectl", *more):
        if not candidate or not os.path.exists(candidate):
            continue
        real = Path(candidate).resolve()
        versioned = sorted(real.parent.glob("kubectl.1.*"))
        for path in versioned:
            found.setdefault(int(path.name.rsplit(".", 1)[1]), str(path))
        # Beside versioned ones the plain name is a dispatcher with habits of its own.
        if not versioned and (minor := _version(str(real))):
            found.setdefault(minor, str(real))
    return found


AVAILABLE = find()


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"<exit {self.code}\n--out--\n{self.out}\n--err--\n{self.err}>"


class Kubectl:
    """One version with one kubeconfig; every instance has its own discovery cache."""

    def __init__(self, path, kubeconfig, home):
        self.path, self.kubeconfig, self.home = path, str(kubeconfig), str(home)
        os.makedirs(self.home, exist_ok=True)

    def argv(self, *args):
        return [self.path, "--kubeconfig", self.kubeconfig,
                "--cache-dir", os.path.join(self.home, "cache"), *map(str, args)]

    def env(self):
        return {"HOME": self.home, "PATH": os.environ["PATH"], "KUBECTL_ENABLE_CMD_SHADOW": "0"}

    def run(self, *args, stdin=None, timeout=60):
        done = subprocess.run(self.argv(*args), capture_output=True, text=True, input=stdin,
                              env=self.env(), timeout=scaled(timeout), check=False)
        return Result(done.returncode, done.stdout, done.stderr)

    def ok(self, *args, **kw):
        result = self.run(*args, **kw)
        assert result.code == 0, (args, result)
        return result.out

    def start(self, *args):
        return Running(self.argv(*args), self.env())


class Running:
    """A kubectl that goes on: its lines are events with the time they came."""

    def __init__(self, argv, env):
        # A run in the background hands on that SIGINT is ignored.
        self.child = subprocess.Popen(["env", "--default-signal=INT", *argv], env=env, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = []
        self.errors = []
        self.cond = threading.Condition()
        self.threads = [
            threading.Thread(target=self._read, args=(self.child.stdout, self.lines), daemon=True),
            threading.Thread(target=self._read, args=(self.child.stderr, self.errors),
                             daemon=True)]
        for thread in self.threads:
            thread.start()

    def _read(self, pipe, into):
        for line in pipe:
            with self.cond:
                into.append((time.monotonic(), line.rstrip("\n")))
                self.cond.notify_all()

    def wait_line(self, pattern, timeout=15, errors=False):
        wanted = re.compile(pattern)
        lines = self.errors if errors else self.lines
        with self.cond:
            def hit():
                return next(((t, l) for t, l in lines if wanted.search(l)), None)
            if not self.cond.wait_for(hit, scaled(timeout)):
                raise TimeoutError(f"no {pattern!r} in {self.lines[-5:]} {self.errors[-5:]}")
            return hit()

    def interrupt(self):
        self.child.send_signal(signal.SIGINT)

    def wait(self, timeout=30):
        code = self.child.wait(scaled(timeout))
        for thread in self.threads:
            thread.join(5)
        return code

    def stop(self):
        if self.child.poll() is None:
            self.child.kill()
        self.wait()


def need(*minors):
    """The path of the first of these versions that is here or can be built (by tests/real/build),
    or a loud skip."""
    for minor in minors:
        if minor in AVAILABLE:
            return AVAILABLE[minor]
        if (backends.REPO / f"tests/real/kubectl-1.{minor}").is_dir():
            built = backends.real_binaries(f"kubectl-1.{minor}")
            if built:
                return built[f"kubectl-1.{minor}"]
    have = ", ".join(f"1.{m}" for m in sorted(AVAILABLE)) or "none"
    wanted = " or ".join(f"1.{m}" for m in minors)
    pytest.skip(f"needs kubectl {wanted}; here: {have}")


def newest():
    if not AVAILABLE:
        pytest.skip("needs a kubectl (Debian: kubernetes-client); there is none here")
    return AVAILABLE[max(AVAILABLE)]
