# SPDX-License-Identifier: Apache-2.0
"""T17: the root of a fleet changes, and back, and again, while the hub is killed in the middle of
each phase. No agent is away for longer than it takes to come back to a hub that was killed, no
request fails otherwise, and nothing ends the old root while anybody still needs it."""

import datetime
import os
import shutil
import threading
import time

import pytest

import clock
import testpki
from clock import scaled, wait_until
from h2client import ConnectionLost, H2Client, StreamReset
from procs import run

BACK = 10  # seconds that an agent may take, once there is a hub again


def stamp_of(line):
    text = line.split("time=")[1].split()[0]
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Rotation:
    def __init__(self, enrollment, agents, lifetime):
        self.enrollment, self.world = enrollment, enrollment.world
        self.pki, self.kills, self.agents = self.world.pki, [], {}
        self.bundle, self.signer = self.pki / "bundle.crt", self.pki / "signer.crt"
        shutil.copy(self.pki / "ca.crt", self.bundle)
        for end in ("crt", "key"):
            shutil.copy(self.pki / f"ca.{end}", self.pki / f"signer.{end}")
        self.options = {"caFile": str(self.bundle), "bundleFile": str(self.bundle),
                        "signerCertFile": str(self.signer), "agentLifetime": f"{lifetime}s",
                        "signerKeyFile": str(self.pki / "signer.key")}
        self.lifetime = lifetime
        enrollment.start_hub(**self.options)
        self.names = [f"edge-{n}" for n in range(agents)]
        for name in self.names:
            self.agents[name] = enrollment.start_agent(name, enrollment.token(name), wait=False)
        for name in self.names:
            self.world.wait_cluster(name, hub=enrollment.hub)
        self.probe = Probe(self)

    # -- the operator
    def rotate(self, phase, code=0, *flags):
        got, _, err = run([self.world.binaries["kuberelayctl"], "ca", "rotate", phase, "--dir",
                           self.pki, *flags], 30)
        assert got == code, (phase, got, err)
        return err.decode()

    def finish(self, code):
        return self.rotate("finish", code, "--socket", self.enrollment.socket)

    def reload(self):
        mark = self.enrollment.hub.mark()
        self.enrollment.hub.signal(1)
        self.enrollment.hub.wait_line(r"event=reloaded\b", after=mark)

    def kill(self):
        begin = time.time()
        self.enrollment.hub.kill()
        self.enrollment.start_hub(**self.options)
        self.kills.append((begin, time.time()))

    def begin(self, name, amid=lambda: True):
        flags = ("--socket", self.enrollment.socket) if name == "servers" else ()
        self.rotate(name, 0, *flags)
        self.reload()
        wait_until(amid, self.lifetime, f"in the middle of {name}", every=0.02)

    def phase(self, name, amid=lambda: True):
        """The hub dies once `amid` holds."""
        self.begin(name, amid)
        self.kill()

    def freeze(self, yes):
        for agent in self.agents.values():
            agent.freeze() if yes else agent.thaw()

    def finish_at_last(self):
        """An agent that has a new certificate and does not use it yet is in the way, for a moment."""
        def done():
            code, _, err = run([self.world.binaries["kuberelayctl"], "ca", "rotate", "finish",
                                "--dir", self.pki, "--socket", self.enrollment.socket], 30)
            assert code == 0 or b"not issued by the signer" in err, err
            return code == 0
        wait_until(done, 30, "the end of the rotation", every=0.1)

    # -- where everybody is
    def registry(self):
        return self.enrollment.look()

    def some_renewed(self):
        """Of the keys some are the old root's, and some are not."""
        return 0 < self.registry()["keysOfOldRoots"] < len(self.names)

    def wait_renewed(self):
        wait_until(lambda: self.registry()["keysOfOldRoots"] == 0, self.lifetime + 10,
                   "all have renewed", every=0.1)

    def wait_trusting(self, roots):
        """All have the bundle in use, of that many roots."""
        wait_until(lambda: (r := self.registry())["tunnelsBehind"] == 0 and
                   self.all_have(r["bundleGeneration"], roots), 30,
                   f"all have the bundle of {roots}", every=0.1)

    def all_have(self, generation, roots):
        """In their state, so that they have it after a restart too."""
        return all((a.state / "bundle.pem").exists() and
                   (text := (a.state / "bundle.pem").read_text())
                   .startswith(f"# generation {generation}\n") and text.count("BEGIN") == roots
                   for a in self.agents.values())

    def new_servers(self):
        fresh = self.world.ctl("ca", "issue", "hub", "--dir", self.pki, "--name", "hub-1", "--ip",
                               "127.0.0.1", "--dns", "localhost", "--out",
                               str(self.world.folder / "fresh"))
        os.replace(fresh[0], self.world.hub_pair.crt)
        os.replace(fresh[1], self.world.hub_pair.key)

    # -- afterwards
    def gaps(self, agent):
        """[(begin, end)] in which an agent had no tunnel, after its first."""
        up, begin, found = 0, None, []
        for line in agent.grep(r"event=tunnel-(up|down)\b"):
            up += 1 if "event=tunnel-up" in line else -1
            if up == 0:
                begin = stamp_of(line)
            elif begin is not None:
                found.append((begin, stamp_of(line)))
                begin = None
        assert begin is None, (agent.name, agent.tail())
        return found

    def check_gaps(self):
        longest = 0
        for agent in self.agents.values():
            for begin, end in self.gaps(agent):
                hubless = sum(max(0, min(end, e) - max(begin, b)) for b, e in self.kills)
                longest = max(longest, end - begin - hubless)
                assert end - begin - hubless < scaled(BACK), (agent.name, begin, end, self.kills)
        return longest


class Probe(threading.Thread):
    """Asks one cluster after the other, for as long as the rotation goes on."""

    def __init__(self, rotation):
        super().__init__(daemon=True)
        self.rotation, self.halted, self.failed, self.done = rotation, False, [], 0
        # The roots as they are when it dials.
        self.context = testpki.client_context(str(rotation.bundle), rotation.world.user("admin"))
        self.start()

    def run(self):
        while not self.halted:
            try:
                with H2Client(self.rotation.enrollment.hub.api, self.context) as client:
                    self.rounds(client)
            except (ConnectionLost, StreamReset, OSError, TimeoutError) as error:
                self.failed.append((time.time(), "hub", repr(error)))
                time.sleep(0.05)

    def rounds(self, client):
        while not self.halted:
            for name in self.rotation.names:
                answer = client.get(f"/clusters/{name}/api/v1/namespaces")
                self.done += 1
                if answer.status != 200:
                    self.failed.append((time.time(), name, repr(answer)))

    def end(self):
        """What failed though the hub had not just been killed."""
        self.halted = True
        self.join(scaled(40))
        return [f for f in self.failed if not any(
            b - 1 <= f[0] <= e + scaled(BACK) for b, e in self.rotation.kills)]


def rotate_everything(enrollment, agents, lifetime):
    fleet = Rotation(enrollment, agents, lifetime)
    fleet.rotate("issue", 1)  # not before its time
    fleet.phase("start")
    fleet.wait_trusting(2)
    fleet.phase("issue", fleet.some_renewed)
    fleet.phase("rollback", lambda: fleet.registry()["keysOfOldRoots"] < len(fleet.names))
    fleet.wait_renewed()
    fleet.begin("issue", fleet.some_renewed)
    fleet.freeze(True)  # nobody gets any further: some need the old root
    fleet.begin("servers")
    fleet.new_servers()
    fleet.reload()
    assert 0 < fleet.registry()["keysOfOldRoots"]
    assert "not issued by the signer" in fleet.finish(1)
    assert fleet.bundle.read_text().count("BEGIN") == 2, "both roots are trusted"
    fleet.freeze(False)
    fleet.kill()
    fleet.wait_renewed()
    wait_until(lambda: fleet.registry()["tunnelsBehind"] == 0, 30, "none is behind")
    outside = fleet.probe.end()  # its user is of the old root
    fleet.finish_at_last()
    fleet.reload()
    fleet.kill()
    fleet.world.users.clear()
    fleet.world.ca = str(fleet.bundle)
    fleet.wait_trusting(1)
    with H2Client(enrollment.hub.api, fleet.world.context("root-2")) as client:
        for name in fleet.names:
            assert client.get(f"/clusters/{name}/api/v1/namespaces").status == 200
    for agent in fleet.agents.values():
        assert agent.alive and (agent.state / "bundle.pem").read_text().count("BEGIN") == 1
        assert not agent.grep(r"event=join\b"), "nobody had to join again"
    longest = fleet.check_gaps()
    assert not outside, (len(outside), outside[:3], fleet.kills)
    print(f"T17: {agents} agents, {len(fleet.kills)} kills, {fleet.probe.done} requests, "
          f"longest way back {longest:.1f} s")


def test_T17_root_rotation_and_back_with_the_hub_killed_in_each_phase(enrollment):
    rotate_everything(enrollment, 10, round(10 * min(clock.SLOWNESS, 1.8)))


@pytest.mark.long
def test_T17_root_rotation_and_back_with_50_agents(enrollment):
    rotate_everything(enrollment, 50, 30)
