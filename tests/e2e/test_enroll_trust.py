# SPDX-License-Identifier: Apache-2.0
"""Revocation lists, resumption, roots that change, and certificates that others renew."""

import datetime
import os
import shutil
import subprocess
import time

import testpki
from backends import write_yaml
from clock import wait_until
from enrollment import Caller, certificate_of, new_key
from h2client import ConnectionLost, H2Client, StreamReset
from procs import run


def issue_agent(enrollment, cluster="edge-1", instance="a"):
    return enrollment.world.issue_agent(cluster, instance)


def crl(enrollment, *flags):
    return enrollment.world.ctl("ca", "crl", "--dir", enrollment.world.pki, *flags)[0]


def test_T10_revoked_agent_loses_its_tunnel_and_does_not_come_back(enrollment):
    world = enrollment.world
    enrollment.start_hub(registration="open", crlFile=crl(enrollment))
    world.hub = enrollment.hub
    pair = issue_agent(enrollment)
    agent = world.start_agent("edge-1", enrollment.kubeconfig(), pair=pair)
    world.start_agent("edge-2", enrollment.kubeconfig(), pair=issue_agent(enrollment, "edge-2"))
    world.ctl("ca", "revoke", pair.crt, "--dir", world.pki)
    crl(enrollment)
    enrollment.hub.wait_line(r"event=tunnel-down\b.*revoked", timeout=10)
    agent.signal(1)
    enrollment.hub.wait_line(r"event=agent-refused\b.*revoked")
    assert world.client().get("/clusters/edge-2/api/v1/namespaces").status == 200


def test_T10_revoked_user_is_refused_and_cut(enrollment):
    world = enrollment.world
    enrollment.start_hub(crlFile=crl(enrollment))
    enrollment.start_agent("edge-1", enrollment.token("edge-1"))
    bob = world.client("bob")
    assert bob.get("/clusters/edge-1/api/v1/namespaces").status == 200
    world.ctl("ca", "revoke", world.user("bob").crt, "--dir", world.pki)
    crl(enrollment)
    enrollment.hub.wait_line(r"event=revocations\b", timeout=10)

    def refused():
        try:
            with H2Client(enrollment.hub.api, world.context("bob")) as client:
                client.get("/clusters/edge-1/api/v1/namespaces", timeout=2)
        except (ConnectionLost, StreamReset, OSError):
            return True
        return False
    wait_until(refused, 10, "bob is refused")
    try:
        answer = bob.get("/clusters/edge-1/api/v1/namespaces", timeout=2)
    except (ConnectionLost, StreamReset, OSError):
        answer = None
    assert answer is None, "his connection is cut"


def test_T10_expired_list_refuses_and_raises_an_alarm(enrollment):
    world = enrollment.world
    path = world.folder / "old.pem"
    old_list(world, path)
    enrollment.start_hub(registration="open", crlFile=str(path))
    enrollment.hub.wait_line(r"event=alarm\b.*kind=crl-expired\b")
    world.hub = enrollment.hub
    world.start_agent("edge-1", enrollment.kubeconfig(), wait=False)
    enrollment.hub.wait_line(r"event=agent-refused\b.*CRL")
    fresh = crl(enrollment, "--out", str(path))
    assert fresh == str(path)
    enrollment.hub.wait_line(r"event=revocations\b", timeout=10)


def old_list(world, path):
    """A list of the root that was due yesterday."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    root = world.root()
    now = datetime.datetime.utcnow()
    made = (x509.CertificateRevocationListBuilder().issuer_name(root.certificate.subject)
            .last_update(now - datetime.timedelta(days=8))
            .next_update(now - datetime.timedelta(days=1))
            .sign(root.private, hashes.SHA384()))
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))


def test_T10_missing_list_stops_the_start(enrollment):
    config = enrollment.world.hub_config(crlFile=str(enrollment.folder / "none.pem"))
    path = write_yaml(enrollment.folder / "bad.yaml", config)
    code, _, err = run([enrollment.world.binaries["kuberelay-hub"], "--config", path], 10)
    assert code == 1 and b"none.pem" in err


def test_T11_no_session_is_resumed(enrollment):
    """So a session from before a revocation opens nothing (a resumed one skips the check)."""
    world = enrollment.world
    enrollment.start_hub(registration="open", crlFile=crl(enrollment))
    pair = issue_agent(enrollment)
    saved = world.folder / "session.pem"
    for port, alpn, holder in ((enrollment.hub.agent, "kuberelay/1", pair),
                               (enrollment.hub.api, "h2", world.user("admin"))):
        command = ["openssl", "s_client", "-connect", "%s:%d" % port, "-CAfile", world.ca,
                   "-cert", holder.crt, "-key", holder.key, "-alpn", alpn,
                   "-sess_out", str(saved)]
        first = subprocess.run(command, input=b"", capture_output=True, timeout=20, check=False)
        assert b"New, TLSv1.3" in first.stdout
        assert b"TLS session ticket:" not in first.stdout
        assert not saved.exists() or b"Reused" not in subprocess.run(
            [*command, "-sess_in", str(saved)], input=b"", capture_output=True, timeout=20,
            check=False).stdout
    world.ctl("ca", "revoke", pair.crt, "--dir", world.pki)
    crl(enrollment)
    enrollment.hub.wait_line(r"event=revocations\b", timeout=10)
    subprocess.run(["openssl", "s_client", "-connect", "%s:%d" % enrollment.hub.agent, "-CAfile",
                    world.ca, "-cert", pair.crt, "-key", pair.key, "-alpn", "kuberelay/1"],
                   input=b"", capture_output=True, timeout=20, check=False)
    enrollment.hub.wait_line(r"event=agent-refused\b.*revoked")


def test_cert_manager_secret_that_is_renewed_is_taken_without_a_restart(enrollment):
    """As a kubelet does it: a directory of its own for each version, and a link that is swapped."""
    world = enrollment.world
    enrollment.start_hub()
    enrollment.ctl("cluster", "accept", "edge-1", "--external")
    mount = world.folder / "secret"
    mount.mkdir()

    def publish(version, crt, key):
        folder = mount / version
        folder.mkdir()
        shutil.copy(crt, folder / "tls.crt")
        shutil.copy(key, folder / "tls.key")
        os.symlink(version, mount / "..tmp")
        os.replace(mount / "..tmp", mount / "..data")

    first = issue_agent(enrollment, instance="one")
    publish("v1", first.crt, first.key)
    for name in ("tls.crt", "tls.key"):
        os.symlink(f"..data/{name}", mount / name)
    pair = testpki.load(mount / "tls.crt", mount / "tls.key")
    world.hub = enrollment.hub
    agent = world.start_agent("edge-1", enrollment.kubeconfig(), pair=pair)
    other = issue_agent(enrollment, "edge-1", "two")
    publish("v2", other.crt, first.key)  # not a pair: refused, and the old one stays
    agent.wait_line(r"event=files-refused\b", timeout=15)
    publish("v3", other.crt, other.key)  # a pair, but another agent's
    agent.wait_line(r"event=files-refused\b.*two", timeout=15)
    time.sleep(1.1)  # certificates tell whole seconds, and newer is what counts
    newer = testpki.issue(world.root(), world.folder, "newer", starts=-datetime.timedelta(0),
                          uris=["spiffe://example.test/cluster/edge-1/agent/one"],
                          usage=testpki.CLIENT)
    publish("v4", newer.crt, newer.key)
    agent.wait_line(r"event=files-taken\b", timeout=15)
    enrollment.hub.wait_line(r"event=key-in-use\b.*instance=one\b.*generation=2\b")
    assert world.client().get("/clusters/edge-1/api/v1/namespaces").status == 200


def test_agent_ca_certifies_agents_and_nobody_else(enrollment):
    world = enrollment.world
    made = world.ctl("ca", "init", "--dir", world.pki, "--agent-ca")
    enrollment.start_hub(signerCertFile=made[0], signerKeyFile=made[1],
                         crlFile=crl(enrollment))
    enrollment.start_agent("edge-1", enrollment.token("edge-1"))
    answer = Caller(enrollment).join(enrollment.token("edge-2"), new_key())
    assert answer[1].count(b"BEGIN CERTIFICATE") == 2
    agent_ca = testpki.load(*made)
    hub = testpki.issue(agent_ca, world.folder, "evil", uris=["spiffe://example.test/hub/hub-1"],
                        dns=["localhost"], usage=testpki.SERVER)
    chain = world.folder / "evil-chain.pem"
    chain.write_bytes(open(hub.crt, "rb").read() + open(made[0], "rb").read())
    verdict = subprocess.run(["openssl", "verify", "-CAfile", world.ca, "-untrusted", made[0],
                              "-purpose", "sslserver", hub.crt], capture_output=True, check=False)
    assert verdict.returncode != 0
    assert certificate_of(answer).issuer == agent_ca.certificate.subject


def test_roots_go_on_being_taken_when_the_registry_was_lost(enrollment):
    """Generations must not begin anew: agents ignore what is not newer than what they have."""
    world, pki = enrollment.world, enrollment.world.pki
    bundle = pki / "bundle.crt"
    shutil.copy(pki / "ca.crt", bundle)
    options = {"caFile": str(bundle), "bundleFile": str(bundle), "registration": "open"}
    enrollment.start_hub(**options)
    agent = enrollment.start_agent("edge-1", enrollment.token("edge-1"))
    before = enrollment.registry()["bundleGeneration"]
    kept = agent.state / "bundle.pem"
    assert kept.read_text().startswith(f"# generation {before}\n")
    enrollment.hub.stop()
    for path in enrollment.state.glob("registry.db*"):
        path.unlink()
    world.ctl("ca", "rotate", "start", "--dir", pki)
    enrollment.start_hub(**options)
    world.wait_cluster("edge-1")
    wait_until(lambda: enrollment.registry()["tunnelsBehind"] == 0 and
               kept.read_text().count("BEGIN") == 2, 10, "the new roots are taken")
    assert enrollment.registry()["bundleGeneration"] > before
    assert not agent.grep(r"event=join")[1:], "it did not have to join again"


def test_a_second_hub_in_the_same_folder_is_refused(enrollment):
    """Two would undo each other's changes, and each would take the other's agents for clones."""
    world = enrollment.world
    enrollment.start_hub()
    path = write_yaml(enrollment.folder / "second.yaml",
                      world.hub_config(stateDir=str(enrollment.state)))
    code, _, err = run([world.binaries["kuberelay-hub"], "--config", path], 10)
    assert code != 0 and f"another process uses {enrollment.state}" in err.decode(), err
    enrollment.start_agent("edge-1", enrollment.token("edge-1"))
