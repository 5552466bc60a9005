# SPDX-License-Identifier: Apache-2.0
"""Agents that know their root by the hash of its key: nothing leaves them before a hub has shown it."""

import hashlib
import json
import shlex
import ssl
import threading
import socket
from pathlib import Path

import grpc
import pytest
from cryptography.hazmat.primitives import serialization

import testpki
from backends import write_yaml
from clock import scaled
from procs import run


def pin_of(certificate):
    der = certificate.public_key().public_bytes(serialization.Encoding.DER,
                                                serialization.PublicFormat.SubjectPublicKeyInfo)
    return "sha256:" + hashlib.sha256(der).hexdigest()


def create(enrollment, *flags):
    """(stdout, stderr) of token create."""
    code, out, err = run([enrollment.world.binaries["kuberelayctl"], "token", "create", "--cluster",
                          "edge-1", "--auto-accept", "--socket", enrollment.socket, *flags], 30)
    assert code == 0, err
    return out.decode(), err.decode()


class Listener(threading.Thread):
    """A TLS server where the hub should be; what it is told inside of TLS is in `heard`."""

    def __init__(self, pair, *chain):
        super().__init__(daemon=True)
        folder = Path(pair.crt).parent
        self.chain = folder / "shown.pem"
        self.chain.write_text("".join(Path(p).read_text() for p in (pair.crt, *chain)))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.chain, pair.key)
        self.context.set_alpn_protocols(["h2"])
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.heard, self.shakes = b"", 0
        self.cond = threading.Condition()
        self.start()

    def run(self):
        while True:
            try:
                raw, _ = self.socket.accept()
            except OSError:
                return
            raw.settimeout(scaled(5))
            try:
                with self.context.wrap_socket(raw, server_side=True) as talk:
                    while data := talk.recv(65536):
                        with self.cond:
                            self.heard += data
                            self.cond.notify_all()
            except OSError:
                pass
            with self.cond:
                self.shakes += 1
                self.cond.notify_all()

    def wait_for(self, what):
        with self.cond:
            assert self.cond.wait_for(what, 20), (self.heard, self.shakes)


def hub_leaf(root, folder, name="shown"):
    return testpki.issue(root, folder, name, uris=["spiffe://example.test/hub/hub-1"],
                         dns=["localhost"], ips=["127.0.0.1"], usage=testpki.SERVER)


def dial(enrollment, listener, pin, token="kr1.aaaaaaaa." + "b" * 32):
    """An agent that joins there."""
    return enrollment.start_agent("edge-1", token, name="pinned", wait=False, caFile=None,
                                  rootPin=pin, hubs=[listener.address])


def test_token_comes_with_the_pin_and_the_commands_for_the_edge(enrollment):
    enrollment.start_hub()
    pin = pin_of(enrollment.world.root().certificate)
    out, err = create(enrollment, "--hub", "hub.example:8443")
    token = out.strip()
    assert token.startswith("kr1.") and "\n" not in token, "the token alone, for scripts"
    words = shlex.split(err[err.index("helm install"):].split("\n\n", maxsplit=1)[0].replace("\\\n", " "))
    values = dict(w.split("=", 1) for w in words if "=" in w)
    assert values == {"cluster": "edge-1", "hubs": "{hub.example:8443}", "ca.pin": pin,
                      "identity.joinToken": token, "image.repository": "REGISTRY/kuberelay"}
    assert f"root pin: {pin}\n" in err and "cluster accept" not in err
    out, _ = create(enrollment, "-o", "json")
    told = json.loads(out)
    assert told["rootPin"] == pin and told["token"].startswith("kr1.")


def test_agent_with_the_right_pin_joins_and_keeps_the_roots(enrollment):
    enrollment.start_hub()
    out, err = create(enrollment, "--hub", enrollment.hub.agent_address)
    command = shlex.split(
        err[err.index("kuberelay-agent --hubs"):].split("\n\n", maxsplit=1)[0].replace("\\\n", " "))
    options = dict(zip(command[1::2], command[2::2]))
    agent = enrollment.start_agent("edge-1", out.strip(), caFile=None,
                                   rootPin=options["--root-pin"])
    assert options["--hubs"] == enrollment.hub.agent_address
    assert options["--join-token"] == out.strip()
    kept = (agent.state / "bundle.pem").read_text()
    assert kept.startswith("# generation ") and \
        Path(enrollment.world.ca).read_text().strip() in kept
    agent.stop()
    again = enrollment.restart_agent(agent)
    assert not again.grep(r"event=join")
    assert enrollment.world.client().get("/clusters/edge-1/api/v1/namespaces").status == 200


def test_agent_that_lost_the_roots_goes_by_the_pin_again(enrollment):
    """As after a crash between the certificate and the bundle of one answer."""
    enrollment.start_hub()
    pin = pin_of(enrollment.world.root().certificate)
    agent = enrollment.start_agent("edge-1", enrollment.token("edge-1"), caFile=None, rootPin=pin)
    agent.stop()
    (agent.state / "bundle.pem").unlink()
    again = enrollment.restart_agent(agent)
    again.wait_line(r"event=bundle\b")
    assert (agent.state / "bundle.pem").exists()


def test_agent_with_a_wrong_pin_tells_a_hub_nothing(enrollment):
    enrollment.start_hub()
    token = enrollment.token("edge-1")
    agent = enrollment.start_agent("edge-1", token, caFile=None, rootPin="sha256:" + "0" * 64,
                                   wait=False)
    agent.wait_line(r"event=join-failed\b.*not the one that is pinned")
    assert not enrollment.hub.grep(r"event=join\b")
    tokens = json.loads(run(["curl", "-s", "--unix-socket", enrollment.socket,
                             "http://hub/tokens"], 10)[1])["tokens"]
    assert [t["used"] for t in tokens] == [False]


def test_control_the_listener_hears_the_token_of_who_trusts_it(enrollment):
    world = enrollment.world
    enrollment.start_hub()
    listener = Listener(hub_leaf(world.root(), world.folder), world.ca)
    token = "kr1.aaaaaaaa." + "c" * 32
    dial(enrollment, listener, pin_of(world.root().certificate), token)
    # It waits for a server's SETTINGS, as HTTP/2 has it: the preface is proof enough.
    listener.wait_for(lambda: listener.heard.startswith(b"PRI * HTTP/2.0"))


@pytest.mark.parametrize("case", ["other root", "no root", "foreign leaf, right root"])
def test_nothing_leaves_the_agent_towards_a_server_without_the_pinned_root(enrollment, case):
    world = enrollment.world
    enrollment.start_hub()
    right = world.root()
    foreign = testpki.new_ca(world.folder, "foreign", "foreign root")
    if case == "no root":
        listener, words = Listener(hub_leaf(right, world.folder)), "comes without its root"
    elif case == "other root":
        listener, words = (Listener(hub_leaf(foreign, world.folder), foreign.crt),
                           "not the one that is pinned")
    else:
        listener, words = (Listener(hub_leaf(foreign, world.folder), world.ca),
                           "certificate is refused")
    agent = dial(enrollment, listener, pin_of(right.certificate))
    agent.wait_line(rf"event=join-failed\b.*{words}")
    listener.wait_for(lambda: listener.shakes >= 2)  # it comes again, and is no softer
    assert listener.heard == b""


@pytest.mark.parametrize("options, words", [
    ({"rootPin": "sha256:00"}, "64 hexadecimal"), ({"rootPin": "x" * 71}, "64 hexadecimal"),
    ({}, "caFile is required"),
    ({"rootPin": "sha256:" + "0" * 64, "caFile": "x"}, "not both"),
    ({"rootPin": "sha256:" + "0" * 64, "stateDir": None, "certFile": "a", "keyFile": "b"},
     "needs stateDir")])
def test_options_that_do_not_fit_are_refused(enrollment, options, words):
    config = {"hubs": ["127.0.0.1:1"], "stateDir": "/tmp/none", **options}
    path = write_yaml(enrollment.folder / "bad.yaml",
                      {k: v for k, v in config.items() if v is not None})
    code, _, err = run([enrollment.world.binaries["kuberelay-agent"], "--check-config", "--config",
                        path], 10)
    assert code == 2 and words in err.decode(), err


def test_stock_client_that_has_the_root_is_served_as_before(enrollment):
    """The root in the chain disturbs nobody."""
    from enrollment import Caller, new_key, status_of
    enrollment.start_hub()
    assert status_of(Caller(enrollment).join, enrollment.token("edge-1"), new_key()) == \
        grpc.StatusCode.OK
