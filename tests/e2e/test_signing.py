# SPDX-License-Identifier: Apache-2.0
"""kuberelay-signer: the key that certifies agents, away from the hub; and what both ways share."""

import os
import shutil
import socket
import subprocess
import tempfile
import threading

import grpc
import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

import auditlog
from backends import write_yaml
from clock import scaled, wait_until
from enrollment import (Caller, certificate_of, csr_of, field, fields, new_key, pem_of, status_of,
                        uri_of)
from procs import Process, run

SIGN = "/kuberelay.v1.Signer/Sign"
AGENT = "spiffe://example.test/cluster/edge-1/agent/a"
DENIED = grpc.StatusCode.PERMISSION_DENIED
INVALID = grpc.StatusCode.INVALID_ARGUMENT
LIMITED = grpc.StatusCode.RESOURCE_EXHAUSTED
AWAY = grpc.StatusCode.UNAVAILABLE


class Signer:
    """An agent-ca of the world's root, and the process that holds it."""

    def __init__(self, enrollment):
        self.enrollment, world = enrollment, enrollment.world
        assert not world.binaries.missing("kuberelay-signer"), "kuberelay-signer is not built"
        self.folder = world.folder / "signer"
        self.folder.mkdir()
        world.ctl("ca", "init", "--dir", world.pki, "--agent-ca")
        self.cert = self.folder / "agent-ca.crt"
        self.key = self.folder / "agent-ca.key"
        shutil.copy(world.pki / "agent-ca.crt", self.cert)
        shutil.move(world.pki / "agent-ca.key", self.key)
        self.socket = self.folder / "s.sock"
        self.log = self.folder / "issued.log"
        self.process, self.starts = None, 0

    def start(self, prefix=(), wait=True, **more):
        config = {"certFile": str(self.cert), "keyFile": str(self.key),
                  "socket": str(self.socket), "auditLog": str(self.log), "hourLimit": 100000,
                  "clusterLimit": 6000, **more}
        path = write_yaml(self.folder / "signer.yaml", config)
        self.starts += 1
        self.process = Process(f"signer-{self.starts}",
                               [self.enrollment.world.binaries["kuberelay-signer"], "--config",
                                path], str(self.enrollment.folder), prefix=prefix)
        self.enrollment.world.processes.append(self.process)
        if wait:
            self.process.wait_line(r"event=started\b.*trust-domain=example\.test\b")
        return self.process

    def hub_options(self, **more):
        return {"signerCertFile": str(self.cert), "signerKeyFile": None,
                "signer": f"unix:{self.socket}", "signHourLimit": None, "signClusterLimit": None,
                **more}

    def ask(self, uri=AGENT, key=None, lifetime=3600, csr=None, path=SIGN):
        """What a hub that was taken over could say."""
        message = field(1, uri) + field(2, csr or csr_of(key or new_key())) + field(3, lifetime)
        with grpc.insecure_channel(f"unix:{self.socket}") as channel:
            return fields(channel.unary_unary(path)(message, timeout=scaled(10)))


@pytest.fixture
def signer(enrollment):
    return Signer(enrollment)


def test_agents_join_and_renew_by_a_signer_and_the_hub_needs_no_key(enrollment, signer):
    signer.start()
    enrollment.start_hub(**signer.hub_options(agentLifetime="12s"))
    agent = enrollment.start_agent("edge-1", enrollment.token("edge-1"))
    assert enrollment.world.client().get("/clusters/edge-1/api/v1/namespaces").status == 200
    enrollment.hub.wait_line(r"event=key-in-use\b.*generation=2\b", timeout=20)
    assert enrollment.instance("edge-1")["ofSigner"]
    made = auditlog.events(signer.log)
    assert len(made) >= 2 and auditlog.check_chain(auditlog.lines(signer.log)) == len(made)
    assert {auditlog.note(e, "uri") for e in made} == {AGENT}
    pair = (agent.state / "pair.pem").read_text()
    used = x509.load_pem_x509_certificate(pair[pair.index("-----BEGIN CERT"):].encode())
    assert f"{used.serial_number:x}" in [auditlog.note(e, "serial").lstrip("0") for e in made]
    assert not list(enrollment.state.glob("issued.log*")), "the signer writes, not the hub"


def test_hub_tells_agents_to_come_back_while_the_signer_is_away(enrollment, signer):
    """And nothing is lost: the token is still good for the key that came with it."""
    enrollment.start_hub(**signer.hub_options())
    token, key, caller = enrollment.token("edge-1"), new_key(), Caller(enrollment)
    assert status_of(caller.join, token, key) == AWAY
    enrollment.hub.wait_line(r"event=signer-away\b")
    assert status_of(caller.join, token, new_key()) == grpc.StatusCode.ALREADY_EXISTS
    assert enrollment.cluster("edge-1") is None
    signer.start()
    answer = Caller(enrollment).join(token, key)
    assert uri_of(certificate_of(answer)) == [AGENT]
    enrollment.hub.wait_line(r"event=signer-back\b")
    signer.process.stop()
    holder = Caller(enrollment, pem_of(key), answer[1])
    renewed = new_key()
    assert status_of(holder.renew, renewed) == AWAY
    assert enrollment.world.metrics(enrollment.hub)[
        'kuberelay_hub_enrollments_total{result="renew-later"}'] == 1
    signed = enrollment.world.metrics(enrollment.hub)
    assert signed['kuberelay_hub_signatures_total{result="signed"}'] == 1
    assert signed['kuberelay_hub_signatures_total{result="unavailable"}'] >= 2
    signer.start()
    assert holder.renew(renewed)[4] == 2
    assert auditlog.check_chain(auditlog.lines(signer.log)) == 2, "the chain goes on"


def test_T16_one_of_30_racers_is_signed_for(enrollment, signer):
    """A token is bound to its key before a certificate is made, not after."""
    signer.start()
    enrollment.start_hub(**signer.hub_options())
    token, codes = enrollment.token("edge-1"), []

    def race():
        caller, key = Caller(enrollment), new_key()
        # The hub serves 16 connections at once: the others are to come again.
        codes.append(status_of(caller.join, token, key, wait=True, timeout=20))
        caller.close()

    racers = [threading.Thread(target=race) for _ in range(30)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert sorted(c.name for c in codes) == ["ALREADY_EXISTS"] * 29 + ["OK"], codes
    assert len(auditlog.events(signer.log)) == 1


def test_agent_waits_for_a_signer_that_is_late(enrollment, signer):
    enrollment.start_hub(**signer.hub_options())
    agent = enrollment.start_agent("edge-1", enrollment.token("edge-1"), wait=False)
    agent.wait_line(r"event=join-failed\b.*gRPC status 14\b")
    signer.start()
    agent.wait_line(r"event=joined\b", timeout=20)
    enrollment.world.wait_cluster("edge-1")


def test_signer_that_hangs_holds_up_nobody_else(enrollment, signer):
    enrollment.start_hub(registration="open", **signer.hub_options())
    enrollment.world.start_agent("edge-2", enrollment.kubeconfig())
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(signer.socket))
        silent.listen(5)
        got = []
        caller = Caller(enrollment)
        asker = threading.Thread(target=lambda: got.append(
            status_of(caller.call, "/kuberelay.v1.Enrollment/Join",
                      field(1, enrollment.token("edge-1")) + field(2, csr_of(new_key())), 30)))
        asker.start()
        client = enrollment.world.client()
        for _ in range(20):
            assert client.get("/clusters/edge-2/api/v1/namespaces", timeout=2).status == 200
        asker.join(scaled(30))
        assert got == [AWAY]


def test_limit_of_a_cluster_is_told_and_lifts(enrollment, signer):
    signer.start(clusterLimit=60)
    enrollment.start_hub(**signer.hub_options())
    key = new_key()
    answer = Caller(enrollment).join(enrollment.token("edge-1"), key)
    holder = Caller(enrollment, pem_of(key), answer[1])
    codes = [status_of(holder.renew, new_key()) for _ in range(12)]
    assert codes[:4] == [grpc.StatusCode.OK] * 4 and LIMITED in codes, codes
    with pytest.raises(grpc.RpcError) as told:
        for _ in range(12):
            holder.renew(new_key())
    assert "certificates of a cluster in a minute; come back in 1 s" in told.value.details()
    other = new_key()
    assert Caller(enrollment).join(enrollment.token("edge-2"), other)[4] == 1
    wait_until(lambda: status_of(holder.renew, new_key()) == grpc.StatusCode.OK, 5, "it lifts",
               every=0.3)
    assert len(auditlog.events(signer.log)) == len(signer.process.grep(r"event=signed\b"))


def test_limit_of_an_hour_holds_whatever_is_asked_for(signer):
    signer.start(hourLimit=12)
    names = [f"spiffe://example.test/cluster/c{n}/agent/a" for n in range(6)]
    codes = [status_of(signer.ask, name) for name in names]
    assert codes == [grpc.StatusCode.OK] * 2 + [LIMITED] * 4, "a sixth of it at once"
    assert len(auditlog.events(signer.log)) == 2


def test_hub_that_holds_the_key_itself_has_the_same_limits_and_log(enrollment):
    enrollment.start_hub(signClusterLimit=60)
    key = new_key()
    answer = Caller(enrollment).join(enrollment.token("edge-1"), key)
    holder = Caller(enrollment, pem_of(key), answer[1])
    codes = [status_of(holder.renew, new_key()) for _ in range(12)]
    assert LIMITED in codes, codes
    made = auditlog.events(enrollment.state / "issued.log")
    assert len(made) == 1 + codes.count(grpc.StatusCode.OK)
    assert auditlog.check_chain(auditlog.lines(enrollment.state / "issued.log")) == len(made)
    assert {e["user"]["username"] for e in made} == {"hub-1"}


def test_hub_that_was_taken_over_gets_agents_certificates_and_no_others(signer):
    signer.start(maxLifetime="24h")
    answer = signer.ask()
    leaf = x509.load_pem_x509_certificate(answer[1])
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert uri_of(leaf) == [AGENT]
    for bad in ("spiffe://example.test/hub/hub-2", "spiffe://example.test/user/admin",
                "spiffe://other.test/cluster/edge-1/agent/a", "spiffe://example.test",
                "spiffe://example.test:8/cluster/edge-1/agent/a", "https://example.test/", AGENT + "/x"):
        assert status_of(signer.ask, bad) == DENIED, bad
    for lifetime in (0, 4, 24 * 3600 + 1, 2**40, 2**63):
        assert status_of(signer.ask, lifetime=lifetime) == INVALID, lifetime
    assert status_of(signer.ask, csr=b"\x30\x03\x02\x01\x00") == INVALID
    assert status_of(signer.ask, csr=b"x" * 20000) != grpc.StatusCode.OK
    assert status_of(signer.ask, path="/kuberelay.v1.Enrollment/Join") == \
        grpc.StatusCode.UNIMPLEMENTED
    assert len(auditlog.events(signer.log)) == 1
    assert signer.process.grep(r"event=not-signed\b.*only agents are certified")
    with socket.socket(socket.AF_UNIX) as noise:
        noise.connect(str(signer.socket))
        noise.sendall(os.urandom(4096))
    assert status_of(signer.ask) == grpc.StatusCode.OK


def test_no_certificate_without_its_line(signer):
    signer.start(auditLog="/dev/full")
    assert status_of(signer.ask) == AWAY
    signer.process.wait_line(r"event=audit-failing\b.*No space left")


def test_signer_answers_one_user_only(signer):
    signer.start(hubUid=os.geteuid() + 4321)
    assert status_of(signer.ask) == AWAY
    signer.process.wait_line(rf"event=stranger\b.*uid={os.geteuid()}\b")
    assert not auditlog.lines(signer.log)


def test_signer_runs_as_a_user_of_its_own_with_its_memory_closed(enrollment, signer):
    if os.geteuid() != 0:
        pytest.skip("only root can start it as somebody else")
    folder = tempfile.mkdtemp(prefix="kr-signer-", dir="/tmp")
    try:
        for path in (signer.cert, signer.key):
            shutil.copy(path, folder)
        for path in (folder, *(os.path.join(folder, n) for n in os.listdir(folder))):
            os.chown(path, 65533, 65533)
        os.chmod(folder, 0o755)
        program = shutil.copy(enrollment.world.binaries["kuberelay-signer"], folder)
        signer.cert, signer.key = f"{folder}/agent-ca.crt", f"{folder}/agent-ca.key"
        signer.socket, signer.log = f"{folder}/s.sock", f"{folder}/issued.log"
        process = Process("signer-own", [program, "--socket", signer.socket, "--hub-uid", "0",
                                         "--cert-file", signer.cert, "--key-file", signer.key,
                                         "--audit-log", signer.log], str(enrollment.folder),
                          prefix=["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups"])
        enrollment.world.processes.append(process)
        process.wait_line(r"event=started\b.*hub-uid=0\b")
        enrollment.start_hub(**signer.hub_options())
        enrollment.start_agent("edge-1", enrollment.token("edge-1"))
        # Of a process that cannot be dumped the kernel gives these to root.
        assert os.stat(f"/proc/{process.pid}/environ").st_uid == 0
        limits = open(f"/proc/{process.pid}/limits", encoding="ascii").read()
        assert "Max core file size        0                    0" in limits
        peek = subprocess.run(["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", "cat",
                               f"/proc/{process.pid}/maps"], capture_output=True, check=False)
        assert peek.returncode != 0, "not even its own user can look"
    finally:
        shutil.rmtree(folder)


def test_answers_of_another_ca_are_not_passed_on(enrollment, signer):
    """Whoever sits on the socket is believed as far as signerCertFile goes."""
    world = enrollment.world
    signer.start()
    other = world.folder / "other"
    world.ctl("ca", "init", "--dir", other, "--trust-domain", "example.test")
    enrollment.start_hub(**signer.hub_options(signerCertFile=str(other / "ca.crt")))
    assert status_of(Caller(enrollment).join, enrollment.token("edge-1"), new_key()) == AWAY
    enrollment.hub.wait_line(r"event=join\b.*another CA than signerCertFile")
    assert enrollment.cluster("edge-1") is None


def test_new_files_of_the_signer_are_taken_without_a_restart(enrollment, signer):
    world = enrollment.world
    signer.start()
    enrollment.start_hub(**signer.hub_options())
    shutil.copy(world.pki / "agent-ca.crt", world.folder / "before.crt")
    (world.pki / "agent-ca.crt").unlink()
    world.ctl("ca", "init", "--dir", world.pki, "--agent-ca")
    os.replace(world.pki / "agent-ca.key", signer.key)
    shutil.copy(world.pki / "agent-ca.crt", world.folder / "next.crt")
    os.replace(world.folder / "next.crt", signer.cert)
    signer.process.wait_line(r"event=reloaded\b", timeout=10)
    enrollment.hub.wait_line(r"event=reloaded\b", timeout=10)
    enrollment.start_agent("edge-1", enrollment.token("edge-1"))
    assert enrollment.instance("edge-1")["ofSigner"]


@pytest.mark.parametrize("options, words", [
    ({"signer": "unix:/tmp/x"}, "signerCertFile needs"),
    ({"signer": "/tmp/x", "signerCertFile": "x"}, "unix:FILE"),
    ({"signer": "unix:/tmp/x", "signerCertFile": "x", "signerKeyFile": "y"}, "not both"),
    ({"signHourLimit": 5}, "signHourLimit"), ({"signHourLimit": 100001}, "signHourLimit"),
    ({"signClusterLimit": 6001}, "signClusterLimit")])
def test_options_that_do_not_fit_are_refused(enrollment, options, words):
    path = write_yaml(enrollment.folder / "bad.yaml",
                      enrollment.world.hub_config(stateDir="/tmp/none", **options))
    code, _, err = run([enrollment.world.binaries["kuberelay-hub"], "--check-config", "--config",
                        path], 10)
    assert code == 2 and words in err.decode(), err
