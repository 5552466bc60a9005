# SPDX-License-Identifier: Apache-2.0
"""T02 to T05, T08, T18 and T19: what TLS lets in, what it costs to refuse, and how keys are swapped."""

import os
import re
import shutil
import signal
import socket
import ssl
from pathlib import Path

import pytest
from clock import scaled, wait_until
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from procs import run
from test_certificates import AGENT, HUB, BadHub
from testpki import BOTH, SERVER, issue, load, new_ca

ALPN = {"api": "h2", "agent": "kuberelay/1"}


def s_client(world, port, *flags, alpn=True, stdin=b""):
    """What openssl's own client has to say: (exit code, all text)."""
    host, number = getattr(world.hub, port)
    pair = world.issue_agent("t02") if not (world.pki / "agent-t02-a.crt").exists() else load(
        world.pki / "agent-t02-a.crt", world.pki / "agent-t02-a.key")
    if port == "api":
        pair = world.user("admin")
    argv = ["openssl", "s_client", "-connect", f"{host}:{number}", "-CAfile", world.ca, "-cert",
            pair.crt, "-key", pair.key, *flags]
    code, out, err = run(argv + (["-alpn", ALPN[port]] if alpn else []), 20, stdin=stdin)
    return code, (out + err).decode("utf-8", "replace")


@pytest.mark.parametrize("port", ["api", "agent"])
def test_T02_only_tls_1_3_without_tickets_compression_early_data(session_world, port):
    code, text = s_client(session_world, port)
    assert code == 0 and "Protocol version: TLSv1.3" in text or "New, TLSv1.3" in text, text
    assert "Compression: NONE" in text and "Early data was not sent" in text
    assert "Secure Renegotiation IS NOT supported" in text
    assert "New Session Ticket arrived" not in text and "TLS session ticket:" not in text
    assert "Max Early Data: 0" in text or "Max Early Data" not in text


@pytest.mark.parametrize("port", ["api", "agent"])
@pytest.mark.parametrize("version", ["tls1", "tls1_1", "tls1_2"])
def test_T02_older_versions_are_refused_with_an_alert(session_world, port, version):
    code, text = s_client(session_world, port, f"-{version}", "-cipher", "ALL:@SECLEVEL=0")
    assert code != 0 and "alert protocol version" in text, text
    assert "Cipher is (NONE)" in text


@pytest.mark.parametrize("port, alpn", [("api", "http/1.0"), ("api", "kuberelay/1"),
                                        ("agent", "http/1.0"), ("agent", "http/1.1")])
def test_T03_another_protocol_is_a_fatal_alert(session_world, port, alpn):
    code, text = s_client(session_world, port, "-alpn", alpn, alpn=False,
                          stdin=b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert code != 0 and "alert no application protocol" in text, text
    assert "HTTP/1" not in text.split("CONNECTED", 1)[1]


def test_T03_no_protocol_on_the_agent_port_gets_no_byte(session_world):
    code, text = s_client(session_world, "agent", "-ign_eof", alpn=False,
                          stdin=b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert "HTTP/1" not in text and "PRI *" not in text, text
    assert "alert" in text or code != 0


def lax_context(ca, pair):
    """A client that shows a certificate which its own library would not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.load_verify_locations(ca)
    context.load_cert_chain(pair.crt, pair.key)
    context.set_alpn_protocols(["kuberelay/1"])
    return context


def refusal(world, pair):
    """The alert with which the agent port refuses this certificate; "" if it did not."""
    with socket.create_connection(world.hub.agent, timeout=scaled(10)) as raw:
        try:
            with lax_context(world.ca, pair).wrap_socket(raw, server_hostname="127.0.0.1") as tls:
                got = tls.recv(100)
                return "" if got else "closed"
        except ssl.SSLError as error:
            return error.reason or str(error)
        except (ConnectionResetError, BrokenPipeError):
            return "closed"


def weak_rsa():
    return rsa.generate_private_key(public_exponent=65537, key_size=1024)


WEAK = {  # test_certificates.py has the others of T04 to T07
    "RSA-1024": (lambda: dict(key=weak_rsa()), "1024|key too|too small|weak"),
    "SHA-1": (lambda: dict(digest=hashes.SHA1()), "SHA1|SHA-1|digest|md too weak|weak"),
    "keyUsage without digitalSignature": (lambda: dict(signs=False), "digitalSignature|usage|purpose"),
}


@pytest.mark.parametrize("kind", WEAK)
def test_T04_T05_weak_certificates_are_refused_and_only_the_log_says_why(session_world, tmp_path,
                                                                         kind):
    fields, why = WEAK[kind]
    pair = issue(session_world.root(), tmp_path, "weak", uris=[AGENT], **fields())
    mark = session_world.hub.mark()
    said = refusal(session_world, pair)
    assert said and not re.search(why, said.replace("_", " "), re.I), said
    session_world.hub.wait_line(rf"(?i)level=(warn|info|error).*({why})", 5, after=mark)


# -- T08: chains that lie about who may sign, and chains that only want to be long

def with_chain(pair, folder, stem, *more):
    """The same leaf with other certificates behind it."""
    path = Path(folder) / f"{stem}.crt"
    path.write_text("".join(Path(p.crt).read_text() for p in (pair, *more)))
    return load_as(pair, path)


def load_as(pair, crt):
    again = load(pair.crt, pair.key)
    again.crt = str(crt)
    return again


def leaf_as_ca(root, folder):
    middle = issue(root, folder, "leaf", uris=[AGENT], usage=BOTH)
    return with_chain(issue(middle, folder, "under-leaf", uris=[AGENT]), folder, "c1", middle)


def deep(root, folder, levels):
    above, chain = root, []
    for level in range(levels):
        above = issue(above, folder, f"ca{level}", f"ca {level}", is_ca=True, usage=None)
        chain.insert(0, above)
    return with_chain(issue(above, folder, "deep", uris=[AGENT]), folder, f"deep{levels}", *chain)


def padded(root, folder):
    """A good leaf behind which a mebibyte of other certificates comes."""
    pair = issue(root, folder, "good", uris=[AGENT])
    other = issue(root, folder, "filler", uris=[AGENT.replace("f1", "x" * 50)])
    size = len(other.certificate.public_bytes(Encoding.DER))
    return with_chain(pair, folder, "padded", *[other] * ((1 << 20) // size + 1))


CHAINS = {
    "a leaf signs": leaf_as_ca,
    "pathlen exceeded": lambda root, folder: deep(root, folder, 3),
    "50 certificates": lambda root, folder: deep(root, folder, 49),
    "a mebibyte": padded,
}


def cpu_ms(process):
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((t / "schedstat").read_text().split()[0]) for t in tasks) / 1e6


@pytest.mark.weighed
@pytest.mark.parametrize("kind", CHAINS)
def test_T08_chain_abuse_is_refused_and_costs_little(session_world, tmp_path, kind):
    hub, tries = session_world.hub, 20
    pair = CHAINS[kind](session_world.root(), tmp_path)
    assert refusal(session_world, pair)
    before, memory = cpu_ms(hub), hub.memory_kib("VmRSS")
    for _ in range(tries):
        assert refusal(session_world, pair)
    if hub.weighable:
        assert (cpu_ms(hub) - before) / tries < 5
        assert hub.memory_kib("VmRSS") - memory < 64 * tries / 4
    assert hub.alive


def test_T08_one_intermediate_is_allowed(session_world, tmp_path):
    """So that the refusals above mean something."""
    assert refusal(session_world, deep(session_world.root(), tmp_path, 1)) == ""


# -- T18: secrets as a kubelet swaps them

def fill(folder, data, pair):
    """A new folder, then one rename of the ..data link."""
    fresh = folder / f"..{data}"
    fresh.mkdir(parents=True)
    shutil.copy(pair.crt, fresh / "tls.crt")
    shutil.copy(pair.key, fresh / "tls.key")
    link = folder / "..new"
    link.symlink_to(fresh.name)
    os.replace(link, folder / "..data")
    for name in ("tls.crt", "tls.key"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    return fresh


@pytest.fixture
def mounted(world):
    """A hub whose pair lies in a folder that is mounted from a secret."""
    folder = world.folder / "secret"
    folder.mkdir()
    fill(folder, "one", world.hub_pair)
    mount = load_as(world.hub_pair, folder / "tls.crt")
    mount.key = str(folder / "tls.key")
    world.start_hub(pair=mount, laxKeyMode=True)
    world.secret = folder
    return world


def serial(world):
    from cryptography import x509

    context = world.context()("h2")
    with socket.create_connection(world.hub.api, timeout=scaled(5)) as raw:
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as tls:
            return x509.load_der_x509_certificate(tls.getpeercert(True)).serial_number


def test_T18_a_swapped_secret_is_served_within_5_seconds(mounted):
    fresh = mounted.issue_hub("hub-2")
    fill(mounted.secret, "two", fresh)  # and nobody sends a signal
    wait_until(lambda: serial(mounted) == fresh.certificate.serial_number, 5, "the new certificate")


def half_key(world, folder):
    Path(folder / "tls.key").write_bytes(Path(world.hub_pair.key).read_bytes()[:100])


def other_key(world, folder):
    shutil.copy(world.issue_hub("hub-3").key, folder / "tls.key")


def other_role(world, folder):
    pair = issue(world.root(), world.folder, "role", uris=[AGENT], ips=["127.0.0.1"], usage=BOTH)
    shutil.copy(pair.crt, folder / "tls.crt")
    shutil.copy(pair.key, folder / "tls.key")


def no_certificate(world, folder):
    (folder / "tls.crt").write_text("")


@pytest.mark.parametrize("spoil", [half_key, other_key, other_role, no_certificate])
def test_T18_a_bad_secret_is_ignored_and_told(mounted, spoil):
    before, mark = serial(mounted), mounted.hub.mark()
    spoil(mounted, fill(mounted.secret, "bad", mounted.hub_pair))
    mounted.hub.signal(signal.SIGHUP)  # so that it looks at once
    mounted.hub.wait_line(r"level=(warn|error)", 5, after=mark)
    assert serial(mounted) == before and mounted.hub.alive
    fresh = mounted.issue_hub("hub-2")
    fill(mounted.secret, "good", fresh)
    wait_until(lambda: serial(mounted) == fresh.certificate.serial_number, 5, "the good one")


# -- T19: another server where the hub should be

def test_T19_an_impostor_hears_nothing_and_is_not_asked_again_soon(world, fake, tmp_path):
    """As after a change in DNS: a certificate for the right name by a CA that is not ours."""
    world.start_hub()
    public = new_ca(tmp_path, "public", "public root")
    pair = issue(public, tmp_path, "impostor", dns=["localhost"], ips=["127.0.0.1"], uris=[HUB],
                 usage=SERVER)
    impostor = BadHub(pair, world.ca)
    try:
        agent = world.start_agent("f1", fake.backend.kubeconfig(tmp_path / "kc"), wait=False,
                                  hubs=[impostor.address], lanes=2)
        for lane in ("bulk", "interactive"):
            found = agent.wait_line(
                rf"level=warn.*lane={lane}.*certificate is refused.*retry-ms=(\d+)", 10)
            assert int(found.group(1)) > 60_000, "a refusal will not pass by itself"
        assert impostor.dials == 2 and impostor.spoken == b"" and agent.alive
    finally:
        impostor.close()
