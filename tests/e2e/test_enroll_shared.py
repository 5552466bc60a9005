# SPDX-License-Identifier: Apache-2.0
"""Two agents that share one Secret of an issuer of their own (replicaCount 2 and cert-manager): each
takes a renewed certificate in its own time, and nobody is taken for a thief meanwhile."""

import shutil
import time

import pytest

from clock import wait_until
from test_fleet_clock import Clock

SWITCHED = 3.5  # seconds: behind the time in which an old key is only refused


def put(pair, folder):
    """As a kubelet does: both files change at once, as far as anybody can tell."""
    for name, path in (("tls.key", pair.key), ("tls.crt", pair.crt)):
        fresh = folder / (name + ".new")
        shutil.copy(path, fresh)
        fresh.chmod(0o600)
        fresh.rename(folder / name)


class Shared:
    def __init__(self, enrollment):
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            pytest.skip("needs a C compiler to build a clock that can be turned")
        self.enrollment, self.world = enrollment, enrollment.world
        self.clock = Clock(enrollment.folder, compiler)
        env = dict(self.clock.env)
        if self.world.binaries.sanitized:  # a sanitizer wants to be the first library of a program
            env["ASAN_OPTIONS"] = "verify_asan_link_order=0"
        self.hub = enrollment.start_hub(env=env)
        self.world.hub = self.hub
        enrollment.ctl("cluster", "accept", "edge-1", "--external")
        pair = self.world.issue_agent("edge-1")
        self.agents = {name: self.start(name, pair) for name in ("one", "two")}

    def start(self, name, pair):
        folder = self.enrollment.folder / name
        folder.mkdir()
        put(pair, folder)
        agent = self.world.start_agent(
            "edge-1", self.enrollment.kubeconfig(), name=name, pair=pair,
            certFile=str(folder / "tls.crt"), keyFile=str(folder / "tls.key"))
        agent.wait_line(r"event=tunnel-up\b")
        return agent

    def renew(self):
        """The issuer makes a new pair; gives it."""
        for path in self.world.pki.glob("agent-edge-1-a.*"):
            path.unlink()
        begin = time.time()
        wait_until(lambda: time.time() > begin + 1.1, 5, "another second, for notBefore")
        return self.world.issue_agent("edge-1")

    def take(self, name, pair):
        put(pair, self.enrollment.folder / name)
        self.agents[name].signal(1)

    def restart(self, name, wait=True):
        self.agents[name].stop()
        self.agents[name] = self.world.restart_agent(self.agents[name], wait=wait)
        return self.agents[name]

    def state(self):
        return self.enrollment.instance("edge-1")["state"]


def test_agents_that_share_a_secret_may_take_it_minutes_apart(enrollment):
    shared = Shared(enrollment)
    pair = shared.renew()
    shared.take("one", pair)
    shared.hub.wait_line(r"event=key-in-use\b.*generation=2\b", timeout=20)
    begin = time.time()
    wait_until(lambda: time.time() > begin + SWITCHED, 10, "the switch is over")
    shared.restart("two").wait_line(r"event=tunnel-up\b")
    shared.clock.turn(300)
    shared.restart("two").wait_line(r"event=tunnel-up\b")
    assert shared.state() == "active" and not shared.hub.grep(r"event=alarm\b")
    shared.take("two", pair)
    shared.agents["two"].wait_line(r"event=files-taken\b")
    shared.clock.turn(700)
    shared.restart("two").wait_line(r"event=tunnel-up\b")
    assert shared.state() == "active" and not shared.hub.grep(r"event=alarm\b")


def test_T14_a_key_that_comes_back_later_is_a_stolen_one(enrollment):
    shared = Shared(enrollment)
    shared.take("one", shared.renew())
    shared.hub.wait_line(r"event=key-in-use\b.*generation=2\b", timeout=20)
    shared.clock.turn(700)
    shared.restart("two", wait=False)
    shared.hub.wait_line(r"event=alarm\b.*kind=cloned-key\b.*locked", timeout=20)
    assert shared.state() == "locked"
