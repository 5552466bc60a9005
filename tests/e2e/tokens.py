# SPDX-License-Identifier: Apache-2.0
"""An issuer of ID tokens (OpenID Connect): keys, its key set, tokens good and bad."""

import base64
import hashlib
import hmac
import http.server
import json
import os
import ssl
import threading
import time
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

URL = "https://login.example.test"
AUDIENCE = "kuberelay"


def b64(data):
    if isinstance(data, (dict, list)):
        data = json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(n, size=None):
    return b64(n.to_bytes(size or (n.bit_length() + 7) // 8, "big"))


class Issuer:
    """With one RSA and one EC key."""

    def __init__(self, folder, url=URL, stem="jwks"):
        self.url = url
        self.rsa = rsa.generate_private_key(65537, 2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.file = Path(folder) / f"{stem}.json"
        self.publish()

    def keys(self):
        r, e = self.rsa.public_key().public_numbers(), self.ec.public_key().public_numbers()
        return [{"kty": "RSA", "kid": "r1", "use": "sig", "alg": "RS256", "n": number(r.n),
                 "e": number(r.e)},
                {"kty": "EC", "kid": "e1", "use": "sig", "crv": "P-256", "x": number(e.x, 32),
                 "y": number(e.y, 32)}]

    def publish(self, keys=None):
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps({"keys": self.keys() if keys is None else keys}))
        os.replace(fresh, self.file)

    def claims(self, user="alice", groups=("dev",), life=300, **more):
        now = int(time.time())
        made = {"iss": self.url, "aud": AUDIENCE, "sub": user, "groups": list(groups),
                "iat": now, "nbf": now, "exp": now + life}
        made.update(more)
        return {k: v for k, v in made.items() if v is not None}

    def sign(self, text, alg):
        if alg == "RS256":
            return self.rsa.sign(text, padding.PKCS1v15(), hashes.SHA256())
        r, s = decode_dss_signature(self.ec.sign(text, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def token(self, *args, alg="RS256", header=None, **kw):
        head = {"alg": alg, "typ": "JWT", "kid": {"RS256": "r1", "ES256": "e1"}.get(alg, "r1")}
        head.update(header or {})
        head = {k: v for k, v in head.items() if v is not None}
        text = f"{b64(head)}.{b64(self.claims(*args, **kw))}".encode()
        return f"{text.decode()}.{b64(self.sign(text, alg))}"

    def hs256(self, secret):
        """The public key taken for a shared secret."""
        text = f"{b64({'alg': 'HS256', 'kid': 'r1'})}.{b64(self.claims())}".encode()
        return f"{text.decode()}.{b64(hmac.new(secret, text, hashlib.sha256).digest())}"

    def entry(self, **more):
        return {"url": self.url, "audiences": [AUDIENCE], "jwksFile": str(self.file),
                "usernamePrefix": "acme:", "groupsClaim": "groups", "groupsPrefix": "acme:",
                **more}


def bearer(token):
    return [("authorization", f"Bearer {token}")]


class KeyServer:
    """Publishes a key set over HTTPS."""

    def __init__(self, pair, answer):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked += 1
                status, body = answer(self.path)
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.asked = 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.crt, pair.key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
