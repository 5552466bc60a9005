# SPDX-License-Identifier: Apache-2.0
"""A hub that checks nothing: it takes the tunnel of an agent and sends what a test tells it to.

An agent dials, then the roles turn round: the hub is the HTTP/2 client on that connection.

    hub = RogueHub(server_context_with_alpn)
    answer = hub.ask("GET", "/api/v1/secrets", user="admin")
"""

import base64
import socket
import threading
import uuid

import h2.config
import h2.connection
import h2.events

from clock import scaled
from tlspipe import TlsPipe


def varint(n):
    out = b""
    while n > 0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """One field of a protobuf message: a number, or bytes or text."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value if isinstance(value, bytes) else value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def request_header(user, groups=(), uid="", extra=(), method="", upgrade="", **more):
    """The value of kuberelay-request-bin (proto RelayRequest)."""
    message = field(1, uuid.uuid4().bytes) + field(2, user)
    message += b"".join(field(3, g) for g in groups)
    if uid:
        message += field(4, uid)
    for key, values in extra:
        message += field(5, field(1, key) + b"".join(field(2, v) for v in values))
    if method:
        message += field(8, method) + field(9, upgrade)
    message += more.get("raw", b"")
    return base64.b64encode(message).decode().rstrip("=")


class Answer:
    def __init__(self):
        self.status, self.headers, self.body = None, [], b""
        self.ended, self.reset = False, None


class RogueHub:
    def __init__(self, context):
        context.set_alpn_protocols(["kuberelay/1"])
        self.context = context
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.cond = threading.Condition()
        self.h2 = self.pipe = None
        self.answers = {}
        threading.Thread(target=self._serve, daemon=True).start()

    # -- for tests
    def wait_tunnel(self, timeout=20):
        with self.cond:
            assert self.cond.wait_for(lambda: self.h2 is not None, scaled(timeout)), "no agent came"

    def ask(self, method, path, headers=(), body=None, timeout=10, header=None, audit_id=None,
            protocol=None, **who):
        """Sends it as a hub sends it; `header` replaces the whole kuberelay-request-bin."""
        if header is None:
            header = request_header(**{"user": "admin", **who})
        fields = [(":method", method), (":scheme", "https"), (":authority", "kubernetes"),
                  (":path", path)]
        if protocol:
            fields.append((":protocol", protocol))
        fields += [(n, v) for n, v in headers]
        fields.append(("audit-id", audit_id or str(uuid.uuid4())))
        fields += [("kuberelay-request-bin", h) for h in
                   (header if isinstance(header, list) else [header])]
        answer = Answer()
        with self.cond:
            stream = self.h2.get_next_available_stream_id()
            self.answers[stream] = answer
            self.h2.send_headers(stream, fields, end_stream=body is None and not protocol)
            if body is not None:
                self.h2.send_data(stream, body, end_stream=True)
            self.pipe.sendall(self.h2.data_to_send())
            done = self.cond.wait_for(lambda: answer.ended or answer.reset is not None or
                                      (protocol and answer.status), scaled(timeout))
        assert done, f"no answer to {method} {path}"
        return answer

    def close(self):
        self.listener.close()
        if self.pipe:
            self.pipe.close()

    # -- the wire
    def _serve(self):
        while True:
            try:
                raw, _ = self.listener.accept()
                tls = self.context.wrap_socket(raw, server_side=True)
            except OSError:
                if self.listener.fileno() < 0:
                    return
                continue
            threading.Thread(target=self._tunnel, args=(TlsPipe(tls),), daemon=True).start()

    def _tunnel(self, pipe):
        config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8",
                                           validate_outbound_headers=False,
                                           normalize_outbound_headers=False)
        conn = h2.connection.H2Connection(config)
        conn.initiate_connection()
        conn.increment_flow_control_window(1 << 24)
        pipe.sendall(conn.data_to_send())
        with self.cond:
            self.h2, self.pipe = conn, pipe
            self.cond.notify_all()
        while data := self._read(pipe):
            with self.cond:
                for event in conn.receive_data(data):
                    self._on_event(conn, event)
                if conn.data_to_send and (out := conn.data_to_send()):
                    pipe.sendall(out)
                self.cond.notify_all()

    def _read(self, pipe):
        try:
            return pipe.recv()
        except OSError:
            return b""

    def _on_event(self, conn, event):
        answer = self.answers.get(getattr(event, "stream_id", None))
        if answer is None:
            return
        if isinstance(event, h2.events.ResponseReceived):
            answer.headers = event.headers
            answer.status = int(dict(event.headers)[":status"])
        elif isinstance(event, h2.events.DataReceived):
            answer.body += event.data
            conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            answer.ended = True
        elif isinstance(event, h2.events.StreamReset):
            answer.reset = event.error_code
