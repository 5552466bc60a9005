# SPDX-License-Identifier: Apache-2.0
"""T01: h2spec against the API port. Its frames reach the hub through a TLS bridge that shows a
client certificate, so that requests are relayed and not refused before their body."""

import socket
import threading

import pytest
from backends import real_binaries
from clock import scaled
from procs import run

# What nghttp2 does on purpose: a frame on a stream that was closed some time ago is ignored, since a
# peer may have sent it before it knew (RFC 9113, 5.1: "MUST ignore" after our own RST_STREAM).
LISTED = {
    "closed: Sends a DATA frame after sending RST_STREAM frame",
    "closed: Sends a HEADERS frame after sending RST_STREAM frame",
    "closed: Sends a DATA frame",
    "closed: Sends a HEADERS frame",
    "Sends stream identifier that is numerically smaller than previous",
}


class TlsBridge:
    """Plain bytes in, the same bytes over TLS with a user's certificate out."""

    def __init__(self, address, context):
        self.address, self.context = address, context
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain):
        from tlspipe import TlsPipe

        with plain, socket.create_connection(self.address) as raw:
            try:
                pipe = TlsPipe(self.context("h2").wrap_socket(raw, server_hostname="127.0.0.1"))
                threading.Thread(target=self._upstream, args=(plain, pipe, raw),
                                 daemon=True).start()
                while data := pipe.recv(timeout=scaled(30)):
                    plain.sendall(data)
            except (OSError, TimeoutError):
                pass
            finally:
                shut(plain)

    @staticmethod
    def _upstream(plain, pipe, raw):
        try:
            while data := plain.recv(65536):
                pipe.sendall(data)
        except OSError:
            pass
        shut(raw)

    def close(self):
        self.listener.close()


def shut(sock):
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def failures(report):
    """The cases after "Failures:", without their numbers."""
    lines = report.split("Failures:", 1)[1].splitlines() if "Failures:" in report else []
    return [line.split(": ", 1)[1].strip() for line in lines if line.strip().startswith("\u00d7 ")]


def test_T01_h2spec_finds_only_what_is_listed(fake):
    programs = real_binaries("h2spec")
    if "h2spec" not in programs:
        pytest.skip("h2spec is not here: it is built with Go (tests/real/build h2spec)")
    fake.api.script("/api/v1/x", lambda x: (x.body(), x.respond(200, {})))
    bridge = TlsBridge(fake.world.hub.api, fake.world.context())
    try:
        code, out, err = run([programs["h2spec"], "-h", "127.0.0.1", "-p", str(bridge.port), "-S",
                              "-o", str(int(scaled(3))), "-P", fake.prefix + "/api/v1/x"], 300)
    finally:
        bridge.close()
    report = out.decode()
    assert code in (0, 1) and " tests, " in report, (code, err, report[-500:])
    unexpected = [name for name in failures(report) if name not in LISTED]
    assert not unexpected, report[report.find("Failures:"):]
    assert int(report.rsplit(" tests, ", 1)[0].split()[-1]) > 100
    assert fake.world.hub.alive
