# SPDX-License-Identifier: Apache-2.0
"""T15: a process that dies at each of its file operations in turn, and is started again. The N-th
operation below the state folder is the last one (tests/fakes/failpoint.c), N goes up until a run
comes to its end without. A process that dies is shown, not a machine that loses power."""

import os
import datetime
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

import testpki
from clock import wait_until
from enrollment import Caller, new_key, spki_of
from procs import Died, run

SOURCE = Path(__file__).resolve().parent.parent / "fakes" / "failpoint.c"
MOST = 400  # operations that anything here may take


@pytest.fixture
def failpoint(enrollment):
    """env of a program that dies at its N-th operation in a folder: failpoint(folder, n)."""
    if enrollment.world.binaries.sanitized:
        pytest.skip("a sanitizer wants to be the first library of a program")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler to build what kills a program")
    library = enrollment.folder / "failpoint.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"],
                   check=True)
    return lambda folder, n: {"LD_PRELOAD": str(library), "FAILPOINT_DIR": str(folder),
                              "FAILPOINT_AT": str(n)}


# -- the hub

class Orders:
    """What an operator and two agents want of a hub, step by step. `sure`: names of those that were
    confirmed; what the hub died in may be done or not."""

    def __init__(self, enrollment):
        self.enrollment, self.sure = enrollment, []
        self.tried_unlock = False
        self.keys = {"edge-1": new_key(), "edge-2": new_key()}
        self.chains = {}
        self.token = None

    def ctl(self, *args):
        code, out, err = run([self.enrollment.world.binaries["kuberelayctl"], *args, "--socket",
                              self.enrollment.socket], 30)
        if code != 0:
            raise Died(f"{args}: {err.decode()}")
        return out.decode().strip()

    def join(self, cluster):
        caller = Caller(self.enrollment)
        try:
            answer = caller.join(self.token, self.keys[cluster])
        finally:
            caller.close()
        assert self.chains.setdefault(cluster, answer[1]) == answer[1], "the same key, the same chain"

    def make_token(self):
        self.token = self.ctl("token", "create", "--cluster", "edge-1")

    def unlock(self, key):
        """Shows that it was denied; but what the hub died in may be done."""
        again, self.tried_unlock = self.tried_unlock, True
        code, _, err = run([self.enrollment.world.binaries["kuberelayctl"], "cluster", "unlock",
                            "edge-2", "--key", key, "--socket", self.enrollment.socket], 30)
        if code != 0 and b"not denied" in err:
            assert again, "a key that was denied is not"
        elif code != 0:
            raise Died(err.decode())

    def steps(self):
        key = spki_of(self.keys["edge-2"])
        return [("token", self.make_token), ("join", lambda: self.join("edge-1")),
                ("accept", lambda: self.ctl("cluster", "accept", "edge-1")),
                ("deny", lambda: self.ctl("cluster", "deny", "edge-2")),
                ("deny-key", lambda: self.ctl("cluster", "deny", "edge-2", "--key", key)),
                ("remove", lambda: self.ctl("cluster", "remove", "edge-2")),
                ("unlock", lambda: self.unlock(key))]

    def go_on(self):
        """True: all is done. False: the hub has died."""
        for name, step in self.steps():
            if name in self.sure:
                continue
            try:
                step()
            except (Died, grpc.RpcError):
                return False
            self.sure.append(name)
        return True

    def check(self):
        """Of a hub that was started again: what it had confirmed holds."""
        seen = {c["name"]: c for c in self.enrollment.registry()["clusters"]}
        sure = self.sure
        if "join" in sure:
            assert [i["key"] for i in seen["edge-1"]["instances"]] == [
                spki_of(self.keys["edge-1"])], (sure, seen)
            self.join("edge-1")
        if "accept" in sure:
            assert seen["edge-1"]["state"] == "accepted", (sure, seen)
        elif "join" in sure:
            assert seen["edge-1"]["state"] in ("pending", "accepted"), (sure, seen)
        if "remove" in sure:
            assert seen["edge-2"]["state"] == "removed", (sure, seen)
        elif "deny" in sure:
            # Removal is the next order: it may have been done.
            assert seen["edge-2"]["state"] in ("denied", "removed"), (sure, seen)


def crash_hub(enrollment, failpoint, n):
    """True: nothing was left to die at."""
    enrollment.state = enrollment.folder / f"hub-{n}"
    orders = Orders(enrollment)
    try:
        enrollment.start_hub(env=failpoint(enrollment.state, n))
        done = orders.go_on()
    except Died:
        done = False  # while it started
    if not done:
        wait_until(lambda: not enrollment.world.processes[-1].alive, 10, "it has died")
        enrollment.start_hub(env=None)
        orders.check()
        assert orders.go_on(), (n, orders.sure, enrollment.hub.tail())
    orders.check()
    enrollment.hub.kill()
    return done


@pytest.mark.weighed  # not that it measures anything: it needs a build without a sanitizer
def test_T15_hub_that_dies_at_any_file_operation_loses_nothing_that_it_confirmed(
        enrollment, failpoint, request):
    stride = 1 if request.config.getoption("--long") else 12
    enrollment.start_hub()  # its ports are those of all others
    enrollment.hub.kill()
    for n in range(1, MOST, stride):
        if crash_hub(enrollment, failpoint, n):
            break
    else:
        pytest.fail(f"still not done after {MOST} operations")
    assert n > 20, "the program does what is counted"


# -- the agent

def check_pair(state):
    """One whole pair, of which key and certificate fit."""
    text = (state / "pair.pem").read_bytes()
    key = serialization.load_pem_private_key(text[:text.index(b"-----BEGIN CERT")], None)
    certificate = x509.load_pem_x509_certificate(text[text.index(b"-----BEGIN CERT"):])
    assert key.public_key().public_numbers() == certificate.public_key().public_numbers()
    return spki_of(key)


def overdue_pair(enrollment, cluster, state):
    """What an agent has that was switched off when it should have renewed: it does so at once."""
    pair = testpki.issue(enrollment.world.root(), enrollment.folder, f"overdue-{cluster}",
                         uris=[f"spiffe://example.test/cluster/{cluster}/agent/a"],
                         starts=-2 * testpki.DAY, lasts=datetime.timedelta(hours=4))
    state.mkdir(0o700)
    (state / "pair.pem").write_bytes(Path(pair.key).read_bytes() + Path(pair.crt).read_bytes())
    (state / "pair.pem").chmod(0o600)


def settled(agent, state, line):
    """It has what it wants, and nothing is left to be written."""
    rest = [state / "previous.pem", state / "pending.key"]
    return agent.grep(line) and not any(path.exists() for path in rest)


def crash_agent(enrollment, failpoint, what, n):
    """True: it was settled before there was an N-th operation."""
    name, state = f"edge-{n}", enrollment.folder / f"state-{n}"
    token, line = enrollment.token(name), r"event=tunnel-up\b"
    if what == "renewal":
        overdue_pair(enrollment, name, state)
        token, line = None, r"event=renewed\b"
    agent = enrollment.start_agent(name, token, state=state, wait=False, name=f"agent-{n}",
                                   env=failpoint(state, n))
    wait_until(lambda: not agent.alive or settled(agent, state, line), 60, f"{name}: {what}")
    done = agent.alive
    agent.kill()
    again = enrollment.restart_agent(agent, wait=False)
    again.wait_line(r"event=tunnel-up\b", timeout=60)
    wait_until(lambda: enrollment.instance(name)["key"] == check_pair(state), 60,
               f"{name} uses what it has")
    assert enrollment.instance(name)["state"] == "active"
    again.kill()
    return done


@pytest.mark.long  # on a loaded machine it has been seen to wait in vain for the key in use
@pytest.mark.parametrize("what", ["join", "renewal"])
def test_T15_agent_that_dies_at_any_file_operation_has_a_working_pair(
        enrollment, failpoint, request, what):
    stride = 1 if request.config.getoption("--long") else 3
    enrollment.start_hub(registration="open")
    enrollment.kubeconfig()
    numbers = range(1, 41, stride)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda n: crash_agent(enrollment, failpoint, what, n), numbers))
    assert done[-1] and not any(done[:3]), done
    assert done == sorted(done), "there are no more operations than were counted"
    assert not enrollment.hub.grep(r"event=alarm\b")
