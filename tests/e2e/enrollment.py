# SPDX-License-Identifier: Apache-2.0
"""A hub that enrolls agents, and agents that join it; the tests of enrollment share it."""

import contextlib
import hashlib
import http.client
import json
import socket

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import clock
from backends import KubesimBackend, write_yaml
from clock import scaled
from procs import run
from world import Agent, World, next_name

JOIN = "/kuberelay.v1.Enrollment/Join"
RENEW = "/kuberelay.v1.Enrollment/Renew"


def lifetime(seconds):
    """Of certificates: the slow need longer for what has to be done before they expire."""
    return f"{round(seconds * min(clock.SLOWNESS, 1.5))}s"


class Enrollment:
    """`hub` is started by start_hub; `ctl` speaks to it over its admin socket."""

    def __init__(self, folder, binaries):
        self.world = World(folder, binaries)
        self.folder = self.world.folder
        self.socket = str(self.folder / "admin.sock")
        self.state = self.folder / "hub-state"
        self.backends = {}
        self.hub = None

    def start_hub(self, name="hub-1", **more):
        config = {"registration": "required", "stateDir": str(self.state),
                  "adminSocket": self.socket, "signerCertFile": self.world.ca,
                  "signerKeyFile": str(self.world.pki / "ca.key"), "heartbeat": "500ms",
                  "joinTries": 1000, "signHourLimit": 100000, "signClusterLimit": 6000, **more}
        if self.hub is None:
            self.hub = self.world.start_hub(name, **config)
        else:
            self.hub = self.world.restart_hub(self.hub, **config)
        return self.hub

    def kubeconfig(self, name="one"):
        """Of a small simulated cluster, made when it is first asked for."""
        if name not in self.backends:
            self.backends[name] = KubesimBackend(self.folder / f"sim-{name}",
                                                 self.world.binaries["kubesim"], pods=5, nodes=1,
                                                 seed=len(self.backends) + 1)
            self.backends[name].kubeconfig(self.folder / f"{name}.kubeconfig")
        return str(self.folder / f"{name}.kubeconfig")

    # -- the operator
    def ctl(self, *args, code=0):
        got, out, err = run([self.world.binaries["kuberelayctl"], *args, "--socket", self.socket],
                            30)
        assert got == code, f"kuberelayctl {args}: {got} {err.decode()}"
        return out.decode()

    def token(self, cluster, *flags, auto=True):
        flags = [*flags, "--auto-accept"] if auto else flags
        return self.ctl("token", "create", "--cluster", cluster, *flags).strip()

    def registry(self):
        return json.loads(self.ctl("cluster", "list", "-o", "json"))

    def look(self):
        """The same without a process, which takes longer than what happens at times."""
        conn = http.client.HTTPConnection("hub", timeout=scaled(10))
        conn.sock = socket.socket(socket.AF_UNIX)
        conn.sock.settimeout(scaled(10))
        with contextlib.closing(conn):
            conn.sock.connect(self.socket)
            conn.request("GET", "/registry")
            return json.load(conn.getresponse())

    def cluster(self, name):
        found = [c for c in self.registry()["clusters"] if c["name"] == name]
        return found[0] if found else None

    def instance(self, name, instance="a"):
        cluster = self.cluster(name)
        found = [i for i in (cluster or {"instances": []})["instances"]
                 if i["name"] == instance]
        return found[0] if found else None

    # -- agents
    def start_agent(self, cluster, token=None, kubeconfig=None, instance="a", name=None, state=None,
                    wait=True, hub=None, prefix=(), env=None, **more):
        name = name or f"agent-{cluster}-{instance}"
        state = state or self.folder / f"state-{name}"
        config = {"hubs": [(hub or self.hub).agent_address], "caFile": self.world.ca,
                  "stateDir": str(state), "kubeconfig": kubeconfig or self.kubeconfig(), "instance": instance,
                  "joinToken": token, "reconnectBase": "100ms", "reconnectMax": "1s",
                  "drainTimeout": "1s", "adminListen": "127.0.0.1:0", **more}
        path = write_yaml(self.folder / f"{name}.yaml",
                          {k: v for k, v in config.items() if v is not None})
        agent = Agent(name, [self.world.binaries["kuberelay-agent"], "--config", path],
                      str(self.folder), prefix=prefix, env=env)
        agent.cluster, agent.config_path, agent.state = cluster, path, state
        self.world.processes.append(agent)
        if wait:
            agent.wait_admin()
            self.world.wait_cluster(cluster)
        return agent

    def restart_agent(self, agent, wait=True):
        again = Agent(next_name(agent.name), agent.argv, str(self.folder))
        again.cluster, again.config_path, again.state = (agent.cluster, agent.config_path,
                                                         agent.state)
        self.world.processes.append(again)
        if wait:
            again.wait_admin()
            self.world.wait_cluster(agent.cluster)
        return again

    def close(self):
        self.world.close()
        for backend in self.backends.values():
            backend.close()


# -- what any gRPC client can do; the messages are small enough to be written by hand

def _varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value) if value else b""
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def fields(message):
    """{number: value} of a flat message."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(message):
        key = varint()
        if key & 7 == 0:
            found[key >> 3] = varint()
        else:
            size = varint()
            found[key >> 3] = message[at:at + size]
            at += size
    return found


def new_key():
    return ec.generate_private_key(ec.SECP256R1())


def csr_of(key, name="ignored"):
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(
        key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.DER)


def spki_of(key):
    der = key.public_key().public_bytes(serialization.Encoding.DER,
                                        serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def pem_of(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                             serialization.NoEncryption())


class Caller:
    """A stock gRPC client at the hub's agent port."""

    def __init__(self, enrollment, key=None, chain=None):
        with open(enrollment.world.ca, "rb") as file:
            root = file.read()
        creds = grpc.ssl_channel_credentials(root, key, chain)
        self.channel = grpc.secure_channel(enrollment.hub.agent_address, creds,
                                           options=[("grpc.ssl_target_name_override", "localhost")])

    def call(self, path, message, timeout=10, wait=False):
        """`wait`: until there is a connection, however often that fails (within the timeout)."""
        return fields(self.channel.unary_unary(path)(message, timeout=scaled(timeout),
                                                     wait_for_ready=wait))

    def join(self, token, key, instance="", csr=None, **more):
        return self.call(JOIN, field(1, token) + field(2, csr or csr_of(key)) + field(3, instance),
                         **more)

    def renew(self, key, generation=0):
        return self.call(RENEW, field(1, csr_of(key)) + field(2, generation))

    def close(self):
        self.channel.close()


def status_of(call, *args, **kw):
    """The gRPC status that a call ends with."""
    try:
        call(*args, **kw)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def certificate_of(answer):
    return x509.load_pem_x509_certificate(answer[1])


def uri_of(certificate):
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.UniformResourceIdentifier)
