# SPDX-License-Identifier: Apache-2.0
"""A root that is replaced where an agent-ca certifies agents and revocation lists are in use: no
root's key comes to the hub, nobody is without a list, and nobody is left behind at the end."""

import os
import shutil

import pytest

from clock import wait_until
from enrollment import lifetime
from h2client import H2Client
from procs import run


class Rotation:
    def __init__(self, enrollment):
        self.enrollment, self.world, self.pki = enrollment, enrollment.world, enrollment.world.pki
        self.world.ctl("ca", "init", "--dir", self.pki, "--agent-ca")
        shutil.copy(self.pki / "ca.crt", self.pki / "bundle.crt")
        for end in ("crt", "key"):
            shutil.copy(self.pki / f"agent-ca.{end}", self.pki / f"signer.{end}")
        bundle = str(self.pki / "bundle.crt")
        enrollment.start_hub(
            caFile=bundle, bundleFile=bundle, agentLifetime=lifetime(10),
            signerCertFile=str(self.pki / "signer.crt"), signerKeyFile=str(self.pki / "signer.key"),
            crlFile=self.world.ctl("ca", "crl", "--dir", self.pki)[0])

    def step(self, phase, *flags, reload=True):
        code, _, err = run([self.world.binaries["kuberelayctl"], "ca", "rotate", phase, "--dir",
                            self.pki, *flags], 30)
        assert code == 0, (phase, err)
        self.only_agent_cas_on_the_hub()
        if reload:
            self.reload()

    def refused(self, phase, *flags):
        code, _, err = run([self.world.binaries["kuberelayctl"], "ca", "rotate", phase, "--dir",
                            self.pki, *flags], 30)
        assert code == 1, (phase, code, err)
        return err.decode()

    def reload(self):
        mark = self.enrollment.hub.mark()
        self.enrollment.hub.signal(1)
        self.enrollment.hub.wait_line(r"event=revocations\b", after=mark)

    def only_agent_cas_on_the_hub(self):
        signer = (self.pki / "signer.key").read_bytes()
        roots = [self.pki / f"{name}.key" for name in ("ca", "next", "old")]
        assert signer not in [root.read_bytes() for root in roots if root.exists()]

    def wait(self, key, what):
        wait_until(lambda: self.enrollment.registry()[key] == 0, 20, what)

    def tunnels(self):
        return self.enrollment.registry()["tunnels"]


@pytest.fixture
def rotation(enrollment):
    return Rotation(enrollment)


def test_T17_root_rotation_with_an_agent_ca_and_revocation_lists(rotation):
    enrollment, world, pki = rotation.enrollment, rotation.world, rotation.pki
    agent = enrollment.start_agent("edge-1", enrollment.token("edge-1"))
    rotation.step("start")
    rotation.wait("tunnelsBehind", "all have the bundle")
    rotation.step("issue")
    rotation.wait("keysOfOldRoots", "all have renewed")
    rotation.step("rollback")
    rotation.wait("keysOfOldRoots", "all are back")
    rotation.step("issue")
    rotation.wait("keysOfOldRoots", "all have renewed")
    rotation.step("servers", "--socket", enrollment.socket, reload=False)
    fresh = world.ctl("ca", "issue", "hub", "--dir", pki, "--name", "hub-1", "--ip", "127.0.0.1",
                      "--dns", "localhost", "--out", str(world.folder / "fresh"))
    os.replace(fresh[0], world.hub_pair.crt)
    os.replace(fresh[1], world.hub_pair.key)
    world.users.clear()
    world.user("of-the-next-root")
    rotation.reload()
    rotation.wait("tunnelsBehind", "none is behind")
    before = enrollment.registry()["bundleGeneration"]
    rotation.step("finish", "--socket", enrollment.socket)
    wait_until(lambda: rotation.tunnels() != 0 and enrollment.registry()["tunnelsBehind"] == 0 and
               enrollment.registry()["bundleGeneration"] > before, 20,
               "all trust the new root alone")
    world.ca = str(pki / "bundle.crt")
    with H2Client(enrollment.hub.api, world.context("of-the-next-root")) as client:
        assert client.get("/clusters/edge-1/api/v1/namespaces").status == 200
    # And once more, by the agent-ca of the new root; the agent still renews.
    mark = agent.mark()
    agent.wait_line(r"event=renewed\b", 20, after=mark)
    world.ctl("ca", "crl", "--dir", pki)
    assert not list(pki.glob("next*"))
    assert (pki / "agent-ca.key").read_bytes() == (pki / "signer.key").read_bytes()


def test_T17_rotation_does_not_go_on_while_an_agent_that_is_away_does_not_know_the_next_root(rotation):
    """It would find a hub that it cannot trust, and nobody could tell it by the hub."""
    enrollment, socket = rotation.enrollment, ("--socket", rotation.enrollment.socket)
    enrollment.start_agent("edge-1", enrollment.token("edge-1"))
    away = enrollment.start_agent("edge-2", enrollment.token("edge-2"))
    away.stop()
    rotation.step("start", reload=False)
    rotation.step("issue", reload=False)
    assert "does not tell agents of the next root" in rotation.refused("servers", *socket)
    rotation.reload()
    rotation.wait("tunnelsBehind", "who is there knows both roots")
    rotation.wait("keysOfOldRoots", "no certificate of the old root is good any more")
    assert enrollment.registry()["agentsBehind"] == 1
    for phase in ("servers", "finish"):
        said = rotation.refused(phase, *socket)
        assert "edge-2 a: has not shown that it has the roots of now\n" in said, said
        assert "1 agents have not shown" in said, said
        rotation.step(phase, "--force", reload=False)
    assert (rotation.pki / "bundle.crt").read_text().count("BEGIN") == 1


def test_T17_rotation_goes_on_without_an_agent_that_was_denied(rotation):
    enrollment, socket = rotation.enrollment, ("--socket", rotation.enrollment.socket)
    enrollment.start_agent("edge-1", enrollment.token("edge-1")).stop()
    rotation.step("start")
    rotation.step("issue")
    assert "edge-1 a" in rotation.refused("servers", *socket)
    enrollment.ctl("cluster", "deny", "edge-1")
    rotation.step("servers", *socket)
    rotation.step("finish", *socket)


def test_revoking_what_the_next_root_has_issued(rotation):
    world, pki = rotation.world, rotation.pki
    for phase in ("start", "issue"):
        rotation.step(phase, reload=False)
    rotation.step("servers", "--force", reload=False)  # the hub was not told of the next root
    world.users.clear()
    pair = world.user("of-the-next-root")
    world.ctl("ca", "revoke", pair.crt, "--dir", pki)
    assert world.ctl("ca", "crl", "--dir", pki)
    assert (pki / "crl.pem").read_text().count("BEGIN X509 CRL") == 4
