# SPDX-License-Identifier: Apache-2.0
"""Certificates that somebody else renews, the way a kubelet puts a new Secret into a volume: one link is
swapped, no signal is sent. Hub and agent take what fits together, and keep what they have otherwise."""

import os
import socket
from pathlib import Path

import pytest
from cryptography import x509

import testpki
from backends import FakeBackend
from clock import scaled


class Mount:
    """A volume of a Secret: every file is a link through one link that is swapped."""

    def __init__(self, folder, pair):
        self.folder, self.count = Path(folder), 0
        self.folder.mkdir()
        self.put(pair)
        for name in ("tls.crt", "tls.key"):
            (self.folder / name).symlink_to(f"..data/{name}")

    def put(self, pair, key=None):
        self.count += 1
        made = self.folder / f"..{self.count}"
        made.mkdir()
        (made / "tls.crt").write_bytes(Path(pair.crt).read_bytes())
        (made / "tls.key").touch(mode=0o600)
        (made / "tls.key").write_bytes(Path(key or pair.key).read_bytes())
        fresh = self.folder / "..new"
        fresh.symlink_to(made.name)
        os.replace(fresh, self.folder / "..data")

    @property
    def files(self):
        return {"certFile": str(self.folder / "tls.crt"), "keyFile": str(self.folder / "tls.key")}


def serial_of(address, ca):
    """Of the certificate that a new connection is shown."""
    context = testpki.client_context(ca)("h2")
    with socket.create_connection(address, scaled(10)) as raw:
        with context.wrap_socket(raw, server_hostname="localhost") as tls:
            return x509.load_der_x509_certificate(tls.getpeercert(binary_form=True)).serial_number


@pytest.fixture
def mounted_hub(world):
    mount = Mount(world.folder / "hub-mount", world.hub_pair)
    hub = world.start_hub(**mount.files)
    return mount, hub


def again(world, kind, *names):
    """Another certificate for the same name."""
    folder = world.folder / f"again-{kind}"
    return world._pair(world.ctl("ca", "issue", kind, "--dir", world.pki, *names, "--out", folder))


def test_hub_takes_a_renewed_certificate_without_a_signal(world, mounted_hub):
    mount, hub = mounted_hub
    before = serial_of(hub.api, world.ca)
    assert before == world.hub_pair.certificate.serial_number
    fresh = again(world, "hub", "--name", "hub-1", "--dns", "localhost", "--ip", "127.0.0.1")
    mark = hub.mark()
    mount.put(fresh)
    hub.wait_line("event=reloaded", 15, mark)
    assert serial_of(hub.api, world.ca) == fresh.certificate.serial_number


def test_hub_keeps_its_certificate_when_the_new_files_do_not_fit(world, mounted_hub):
    mount, hub = mounted_hub
    fresh = again(world, "hub", "--name", "hub-1", "--dns", "localhost", "--ip", "127.0.0.1")
    mark = hub.mark()
    mount.put(fresh, key=world.hub_pair.key)
    hub.wait_line("event=reload-failed", 15, mark)
    assert serial_of(hub.api, world.ca) == world.hub_pair.certificate.serial_number
    mark = hub.mark()
    mount.put(fresh)
    hub.wait_line("event=reloaded", 15, mark)
    assert serial_of(hub.api, world.ca) == fresh.certificate.serial_number


def test_agent_takes_a_renewed_certificate_without_a_signal(world):
    world.start_hub()
    backend = FakeBackend(str(world.folder / "fake"))
    try:
        pair = world.issue_agent("c1")
        mount = Mount(world.folder / "agent-mount", pair)
        agent = world.start_agent("c1", backend.kubeconfig(world.folder / "kubeconfig"),
                                  pair=pair, **mount.files)
        fresh = again(world, "agent", "--cluster", "c1")
        mark, hub_mark = agent.mark(), world.hub.mark()
        mount.put(fresh, key=world.hub_pair.key)
        agent.wait_line("event=files-refused", 15, mark)
        mount.put(fresh)
        agent.wait_line(rf"event=files-taken .*serial={fresh.certificate.serial_number:x}", 15, mark)
        world.hub.wait_line("event=tunnel-up .*cluster=c1", 15, hub_mark)
        world.wait_cluster("c1")
    finally:
        backend.close()
