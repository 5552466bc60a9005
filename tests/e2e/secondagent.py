# SPDX-License-Identifier: Apache-2.0
"""A second agent, written from docs/protocol.md alone."""

import base64
import socket
import ssl
import struct
import threading

import h2.config
import h2.connection
import h2.events
import h2.settings

from clock import scaled

ENABLE_CONNECT_PROTOCOL = h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL


# -- protobuf, as much as the page's tables need

def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out + bytes([n]))


def number_field(field, n):
    return varint(field << 3) + varint(n)


def bytes_field(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def fields_of(message):
    """{number: [values]} of varints and byte strings."""
    found, at = {}, 0

    def take():
        nonlocal at
        n = shift = 0
        while True:
            byte = message[at]
            at += 1
            n |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return n
    while at < len(message):
        key = take()
        value = take()
        if key & 7 == 2:
            value, at = message[at:at + value], at + value
        found.setdefault(key >> 3, []).append(value)
    return found


def grpc(message):
    return struct.pack(">BI", 0, len(message)) + message


class SecondAgent:
    """One tunnel, one thread."""

    def __init__(self, hub, ca, pair, boot_id=bytes(16)):
        context = ssl.create_default_context(cafile=ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(pair.crt, pair.key)
        context.set_alpn_protocols(["kuberelay/1"])
        raw = socket.create_connection(hub, timeout=scaled(10))
        self.tls = context.wrap_socket(raw, server_hostname="localhost")
        assert self.tls.selected_alpn_protocol() == "kuberelay/1"
        self.boot_id, self.beats, self.hub_states, self.requests = boot_id, 0, [], []
        self.attach = None
        self.waiting = b""
        self.heads = {}
        # The roles are reversed: who has dialled serves.
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=False, header_encoding="utf-8"))
        self.h2.local_settings[ENABLE_CONNECT_PROTOCOL] = 1
        self.h2.initiate_connection()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            self.tls.sendall(self.h2.data_to_send())
            while data := self.tls.recv(65536):
                for event in self.h2.receive_data(data):
                    self.on_event(event)
                self.tls.sendall(self.h2.data_to_send())
        except OSError:
            pass

    def on_event(self, event):
        if isinstance(event, h2.events.RequestReceived):
            head = dict(event.headers)
            if head[":path"] == "/kuberelay.v1.Agent/Attach" and "kuberelay-request-bin" not in head:
                self.accept_attach(event.stream_id, head)
            else:
                self.heads[event.stream_id] = (head, b"")
        elif isinstance(event, h2.events.DataReceived):
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if event.stream_id == self.attach:
                self.on_attach_bytes(event.data)
            else:
                head, body = self.heads[event.stream_id]
                self.heads[event.stream_id] = (head, body + event.data)
        elif isinstance(event, h2.events.StreamEnded) and event.stream_id != self.attach:
            self.answer(event.stream_id, *self.heads.pop(event.stream_id))

    def accept_attach(self, stream, head):
        assert head[":method"] == "POST" and head["content-type"].startswith("application/grpc")
        self.attach = stream
        self.h2.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
        self.send_state()

    def send_state(self):
        self.beats += 1
        self.h2.send_data(self.attach, grpc(
            bytes_field(2, b"second") + bytes_field(3, self.boot_id) + number_field(4, 1) +
            bytes_field(5, b"0.0.0-python") + number_field(7, 1) + number_field(9, self.beats)))

    def on_attach_bytes(self, data):
        self.waiting += data
        while len(self.waiting) >= 5:
            compressed, size = struct.unpack(">BI", self.waiting[:5])
            if len(self.waiting) < 5 + size:
                return
            assert compressed == 0
            self.hub_states.append(fields_of(self.waiting[5:5 + size]))
            self.waiting = self.waiting[5 + size:]

    def answer(self, stream, head, body):
        text = head["kuberelay-request-bin"]
        who = fields_of(base64.b64decode(text + "=" * (-len(text) % 4)))
        self.requests.append((head, who, body))
        answer = b'{"second":true}'
        self.h2.send_headers(stream, [(":status", "200"), ("content-type", "application/json"),
                                      ("content-length", str(len(answer)))])
        self.h2.send_data(stream, answer, end_stream=True)

    def close(self):
        """The thread must be out of the socket first: its number goes to the next one that opens."""
        try:
            socket.socket.shutdown(self.tls, socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join(scaled(10))
        assert not self.thread.is_alive()
        self.tls.close()
