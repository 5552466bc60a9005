# SPDX-License-Identifier: Apache-2.0
"""Throw-away keys: for the API servers, and for every kind of certificate that the hub
and the agent must refuse. The good kuberelay certificates come from kuberelayctl."""

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLIENT = [ExtendedKeyUsageOID.CLIENT_AUTH]
SERVER = [ExtendedKeyUsageOID.SERVER_AUTH]
BOTH = CLIENT + SERVER
DAY = datetime.timedelta(days=1)


class Pair:
    """A certificate and its key, as objects and as files."""

    def __init__(self, certificate, key, crt, key_path):
        self.certificate, self.private = certificate, key
        self.crt, self.key = str(crt), str(key_path)


def name(common, organizations=()):
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
    return x509.Name(parts + [x509.NameAttribute(NameOID.COMMON_NAME, common)])


def load(crt, key):
    certificate = x509.load_pem_x509_certificate(Path(crt).read_bytes())
    private = serialization.load_pem_private_key(Path(key).read_bytes(), None)
    return Pair(certificate, private, crt, key)


def write(folder, stem, certificate, key):
    crt, key_path = Path(folder) / f"{stem}.crt", Path(folder) / f"{stem}.key"
    crt.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path.touch(mode=0o600)
    key_path.write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption()))
    return Pair(certificate, key, crt, key_path)


def new_ca(folder, stem="ca", common="test root"):
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.utcnow()
    builder = (x509.CertificateBuilder()
               .subject_name(name(common)).issuer_name(name(common))
               .public_key(key.public_key()).serial_number(x509.random_serial_number())
               .not_valid_before(now - DAY).not_valid_after(now + 30 * DAY)
               .add_extension(x509.BasicConstraints(True, None), True)
               .add_extension(_usage(ca=True), True)
               .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False))
    return write(folder, stem, builder.sign(key, hashes.SHA256()), key)


def issue(ca, folder, stem, common="x", organizations=(), uris=(), dns=(), ips=(), usage=CLIENT,
          starts=-DAY, lasts=DAY, key=None, digest=None, signs=True, is_ca=False, pathlen=None):
    """A leaf signed by `ca`; everything that a bad one may need is a parameter."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.utcnow()
    names = [x509.UniformResourceIdentifier(u) for u in uris]
    names += [x509.DNSName(d) for d in dns]
    names += [x509.IPAddress(ipaddress.ip_address(i)) for i in ips]
    builder = (x509.CertificateBuilder()
               .subject_name(name(common, organizations)).issuer_name(ca.certificate.subject)
               .public_key(key.public_key()).serial_number(x509.random_serial_number())
               .not_valid_before(now + starts).not_valid_after(now + lasts)
               .add_extension(x509.BasicConstraints(is_ca, pathlen), True)
               .add_extension(_usage(ca=is_ca, signs=signs), True)
               .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
               .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(
                   ca.private.public_key()), False))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), False)
    if usage:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usage), False)
    return write(folder, stem, builder.sign(ca.private, digest or hashes.SHA256()), key)


def traditional_key(pair, path):
    """The form in which kube-apiserver finds the public half of a key too."""
    Path(path).touch(mode=0o600)
    Path(path).write_bytes(pair.private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption()))
    return str(path)


def _usage(ca, signs=True):
    return x509.KeyUsage(digital_signature=not ca and signs, content_commitment=False,
                         key_encipherment=not signs, data_encipherment=False, key_agreement=False,
                         key_cert_sign=ca, crl_sign=ca, encipher_only=False, decipher_only=False)


def client_context(ca_file, pair=None, verify=True):
    """What the raw clients want: a function of the ALPN name that gives a context."""
    def make(alpn):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(ca_file)
        if not verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if pair:
            context.load_cert_chain(pair.crt, pair.key)
        if alpn:
            context.set_alpn_protocols(alpn if isinstance(alpn, list) else [alpn])
        return context
    return make


def server_context(pair, client_ca=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.crt, pair.key)
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
