# SPDX-License-Identifier: Apache-2.0
"""A raw HTTP/1.1 client over TLS: what is written is what was given, byte for byte."""

import json
import socket
import time

from clock import scaled
from h2client import Answer, ConnectionLost
from tlspipe import TlsPipe


class H1Client:
    """One connection. `alpn=None` offers none at all, as kubectl's upgrades do."""

    def __init__(self, address, context, server_name=None, alpn="http/1.1", timeout=10):
        self.host = server_name or f"{address[0]}:{address[1]}"
        raw = socket.create_connection(address, timeout=scaled(timeout))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made = context(alpn) if callable(context) else context
        try:
            self.tls = made.wrap_socket(raw, server_hostname=server_name or address[0])
        except BaseException:
            raw.close()
            raise
        self.alpn = self.tls.selected_alpn_protocol()
        self.pipe = TlsPipe(self.tls)
        self.buffer = bytearray()
        self.finished = False  # the peer's end was seen

    # -- sending
    def send(self, data):
        self.pipe.sendall(data)
        return self

    def head(self, method, target, headers=(), host=None):
        """Writes a request head with the headers in the given order."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host or self.host}"]
        lines += [f"{name}: {value}" for name, value in headers]
        return self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def request(self, method, target, headers=(), body=None, timeout=30, host=None):
        headers = list(headers)
        if body is not None:
            headers.append(("Content-Length", str(len(body))))
        self.head(method, target, headers, host)
        if body:
            self.send(body)
        return self.answer(timeout, head_only=method == "HEAD")

    def get(self, target, headers=(), **kw):
        return self.request("GET", target, headers, **kw)

    def chunk(self, data):
        """One chunk; the empty one is the end."""
        return self.send(b"%x\r\n%s\r\n" % (len(data), data))

    # -- receiving
    def fill(self, until):
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no answer; have {bytes(self.buffer[:200])!r}")
        data = self.pipe.recv(timeout=left)
        if not data:
            self.finished = True
        self.buffer += data
        return bool(data)

    def line(self, until):
        while b"\r\n" not in self.buffer:
            if not self.fill(until):
                raise ConnectionLost(f"connection ended in a line: {bytes(self.buffer[:200])!r}")
        line = self.take(self.buffer.index(b"\r\n") + 2)
        return line[:-2]

    def exactly(self, count, until):
        while len(self.buffer) < count:
            if not self.fill(until):
                raise ConnectionLost(f"{count - len(self.buffer)} bytes missing at the end")
        return self.take(count)

    def take(self, count):
        """The first bytes of what is here."""
        data = bytes(memoryview(self.buffer)[:count])
        del self.buffer[:count]
        return data

    def read_head(self, timeout=10):
        """(status, headers) of the next response head, interim ones included."""
        until = time.monotonic() + scaled(timeout)
        version, status, *_ = self.line(until).split(b" ", 2)
        if version not in (b"HTTP/1.1", b"HTTP/1.0"):
            raise ConnectionLost(f"not a status line: {version!r}")
        headers = []
        while line := self.line(until):
            name, value = line.split(b":", 1)
            headers.append((name.decode("latin-1"), value.strip().decode("latin-1")))
        return int(status), headers

    def read_chunk(self, timeout=10):
        """One chunk's bytes; b"" is the last chunk (its trailers are read too)."""
        until = time.monotonic() + scaled(timeout)
        size = int(self.line(until).split(b";")[0], 16)
        data = self.exactly(size, until)
        if size:
            self.exactly(2, until)
        else:
            while self.line(until):
                pass
        return data

    def answer(self, timeout=30, head_only=False):
        """A whole final answer; a body cut short raises ConnectionLost."""
        status, headers = self.read_head(timeout)
        interim = []
        while status < 200 and status != 101:
            interim.append(status)
            status, headers = self.read_head(timeout)
        body = b"" if head_only else self._body(status, headers, timeout)
        result = Answer(status, headers, body)
        result.interim = interim
        return result

    def _body(self, status, headers, timeout):
        fields = {n.lower(): v for n, v in headers}
        until = time.monotonic() + scaled(timeout)
        if status in (101, 204, 304):
            return b""
        if fields.get("transfer-encoding", "").lower() == "chunked":
            pieces = []
            while piece := self.read_chunk(timeout):
                pieces.append(piece)
            return b"".join(pieces)
        if "content-length" in fields:
            return self.exactly(int(fields["content-length"]), until)
        while self.fill(until):
            pass
        return self.take(len(self.buffer))

    def wait_closed(self, timeout=10):
        """Waits until the peer has closed; returns what came before that."""
        until = time.monotonic() + scaled(timeout)
        try:
            while self.fill(until):
                pass
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
        return bytes(self.buffer)

    def close(self):
        self.pipe.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def status_of(answer):
    """The Status object of an error answer; fails if the body is not one."""
    status = json.loads(answer.body)
    assert status["kind"] == "Status" and status["apiVersion"] == "v1", status
    return status
