# SPDX-License-Identifier: Apache-2.0
"""A raw HTTP/2 client over TLS: exact header bytes, many streams, resets, manual windows.

One reader thread per connection feeds python3-h2's state machine; every Stream is
woken through one condition. Nothing is retried and nothing is made prettier on the way.
"""

import socket
import threading
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from clock import scaled
from tlspipe import TlsPipe

BIG_WINDOW = 2**31 - 1


class StreamReset(Exception):
    """The peer reset the stream; `code` says why."""

    def __init__(self, code):
        super().__init__(f"stream reset, code {code}")
        self.code = int(code)


class ConnectionLost(Exception):
    """The connection ended while something still waited for it."""


class Answer:
    """What came back for one request: status, headers in order, body bytes."""

    def __init__(self, status, headers, body, trailers=None):
        self.status = status
        self.headers = headers
        self.body = body
        self.trailers = trailers or []

    def all(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower()]

    def get(self, name, default=None):
        values = self.all(name)
        return values[0] if values else default

    def json(self):
        import json

        return json.loads(self.body)

    def __repr__(self):
        return f"<Answer {self.status} {self.headers} {self.body[:300]!r}>"


def text(value):
    return value.decode("latin-1") if isinstance(value, bytes) else value


class Stream:
    """One request as the client sees it; all methods may be called from any thread."""

    def __init__(self, client, stream_id, auto_window):
        self.client = client
        self.id = stream_id
        self.auto_window = auto_window
        self.status = None
        self.headers = []
        self.trailers = []
        self.interim = []
        self.chunks = []  # (monotonic time, bytes) in order of arrival
        self.received = 0
        self.unacked = 0
        self.ended = False
        self.reset_code = None
        self.ended_at = None

    # -- sending
    def send(self, data, end=False, timeout=30):
        """Sends the bytes as the peer's windows allow, then END_STREAM if asked."""
        view = memoryview(data)
        until = time.monotonic() + scaled(timeout)
        while len(view):
            with self.client.cond:
                room = self.client.wait_room(self, until)
                piece = view[: min(room, len(view))]
                self.client.h2.send_data(self.id, bytes(piece))
                self.client.flush()
            view = view[len(piece):]
        if end:
            self.end()
        return self

    def end(self):
        with self.client.cond:
            self.client.h2.end_stream(self.id)
            self.client.flush()

    def reset(self, code=h2.errors.ErrorCodes.CANCEL):
        with self.client.cond:
            try:
                self.client.h2.reset_stream(self.id, code)
                self.client.flush()
            except h2.exceptions.ProtocolError:
                pass  # the peer was first

    # -- receiving
    def wait(self, what, timeout=10, describe="event"):
        """Waits until what(self) is true; a reset or a lost connection raises at once."""
        until = time.monotonic() + scaled(timeout)
        with self.client.cond:
            while not what(self):
                if self.reset_code is not None:
                    raise StreamReset(self.reset_code)
                if self.client.lost:
                    raise ConnectionLost(self.client.lost)
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError(
                        f"no {describe} on stream {self.id}: status={self.status} "
                        f"received={self.received}"
                    )
                self.client.cond.wait(left)
        return self

    def wait_headers(self, timeout=10):
        return self.wait(lambda s: s.status is not None, timeout, "response head")

    def wait_bytes(self, count, timeout=10):
        return self.wait(lambda s: s.received >= count or s.ended, timeout, f"{count} bytes")

    def wait_end(self, timeout=30):
        """Waits for a clean END_STREAM."""
        return self.wait(lambda s: s.ended, timeout, "end of stream")

    def wait_finish(self, timeout=30):
        """Waits for any ending; returns 'end', 'reset' or 'lost'."""
        try:
            self.wait_end(timeout)
            return "end"
        except StreamReset:
            return "reset"
        except ConnectionLost:
            return "lost"

    @property
    def body(self):
        return b"".join(piece for _, piece in self.chunks)

    def get(self, name, default=None):
        for n, v in self.headers:
            if n == name:
                return v
        return default

    def answer(self, timeout=30):
        self.wait_end(timeout)
        return Answer(self.status, self.headers, self.body, self.trailers)

    def grant(self, count):
        """Gives the peer `count` more bytes of window on this stream (manual mode)."""
        with self.client.cond:
            count = min(count, self.unacked)
            if count:
                self.client.h2.acknowledge_received_data(count, self.id)
                self.unacked -= count
                self.client.flush()


class GoawayFilter:
    """Takes GOAWAY frames out of a byte stream: python3-h2 takes no frame after one, where
    HTTP/2 wants the streams that are open to be finished."""

    def __init__(self):
        self.buffer = b""

    def feed(self, data):
        """(bytes for the state machine, [(last stream, code)])."""
        self.buffer += data
        passed, found, at = [], [], 0
        while len(self.buffer) - at >= 9:
            size = 9 + int.from_bytes(self.buffer[at:at + 3], "big")
            if len(self.buffer) - at < size:
                break
            if self.buffer[at + 3] == 7:
                found.append((int.from_bytes(self.buffer[at + 9:at + 13], "big"),
                              int.from_bytes(self.buffer[at + 13:at + 17], "big")))
            else:
                passed.append(self.buffer[at:at + size])
            at += size
        self.buffer = self.buffer[at:]
        return b"".join(passed), found


class H2Client:
    """One TLS connection that speaks HTTP/2 and nothing else."""

    def __init__(self, address, context, server_name=None, window=1 << 20, conn_window=1 << 26,
                 timeout=10):
        self.authority = server_name or f"{address[0]}:{address[1]}"
        self.cond = threading.Condition(threading.RLock())
        self.streams = {}
        self.lost = None
        self.goaway = None  # (last stream, code) of the last one
        self.goaways = []
        self.filter = GoawayFilter()
        self.pongs = []
        self.settings_acked = False
        self.sock = self._dial(address, context, server_name, timeout)
        config = h2.config.H2Configuration(
            client_side=True, header_encoding=None,
            validate_outbound_headers=False, normalize_outbound_headers=False,
            validate_inbound_headers=False, normalize_inbound_headers=False,
        )
        self.h2 = h2.connection.H2Connection(config)
        self.h2.local_settings = h2.settings.Settings(
            client=True,
            initial_values={
                h2.settings.SettingCodes.ENABLE_PUSH: 0,
                h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window,
                h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: 1 << 20,
            },
        )
        self.h2.initiate_connection()
        if conn_window > 65535:
            self.h2.increment_flow_control_window(conn_window - 65535)
        self.flush()
        self.reader = threading.Thread(target=self._read_loop, daemon=True)
        self.reader.start()

    @staticmethod
    def _dial(address, context, server_name, timeout):
        raw = socket.create_connection(address, timeout=scaled(timeout))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        context = context("h2") if callable(context) else context
        try:
            sock = context.wrap_socket(raw, server_hostname=server_name or address[0])
        except BaseException:
            raw.close()
            raise
        if sock.selected_alpn_protocol() != "h2":
            sock.close()
            raise ConnectionLost("the peer did not choose h2")
        return TlsPipe(sock)

    # -- requests
    def start(self, method, path, headers=(), end=True, auto_window=True, authority=None,
              scheme="https", pseudo=None):
        """Sends a request head and returns its Stream. Header bytes go out as given."""
        fields = pseudo if pseudo is not None else [
            (b":method", method.encode()),
            (b":scheme", scheme.encode()),
            (b":authority", (authority or self.authority).encode()),
            (b":path", path if isinstance(path, bytes) else path.encode("latin-1")),
        ]
        for name, value in headers:
            fields.append((_bytes(name), _bytes(value)))
        with self.cond:
            if self.lost:
                raise ConnectionLost(self.lost)
            stream = Stream(self, self.h2.get_next_available_stream_id(), auto_window)
            self.streams[stream.id] = stream
            self.h2.send_headers(stream.id, fields, end_stream=end)
            self.flush()
        return stream

    def request(self, method, path, headers=(), body=None, timeout=30, authority=None):
        stream = self.start(method, path, headers, end=body is None, authority=authority)
        if body is not None:
            try:
                stream.send(body, end=True, timeout=timeout)
            except (h2.exceptions.ProtocolError, StreamReset):
                pass  # an early final answer; wait_end below says what it was
        return stream.answer(timeout)

    def get(self, path, headers=(), **kw):
        return self.request("GET", path, headers, **kw)

    def ping(self, timeout=5):
        """Seconds until the PING was acknowledged."""
        data = time.monotonic_ns().to_bytes(8, "big")
        begin = time.monotonic()
        with self.cond:
            self.h2.ping(data)
            self.flush()
            self.cond.wait_for(lambda: data in self.pongs or self.lost, scaled(timeout))
            if data not in self.pongs:
                raise TimeoutError(f"no PING answer ({self.lost})")
        return time.monotonic() - begin

    def send_raw(self, data):
        """Bytes past the state machine, for malformed frames."""
        self.sock.sendall(data)

    def wait_lost(self, timeout=10):
        with self.cond:
            if not self.cond.wait_for(lambda: self.lost, scaled(timeout)):
                raise TimeoutError("the connection stayed open")
        return self.lost

    def wait_goaway(self, timeout=10):
        with self.cond:
            if not self.cond.wait_for(lambda: self.goaway or self.lost, scaled(timeout)):
                raise TimeoutError("no GOAWAY")
        return self.goaway

    def close(self):
        with self.cond:
            if not self.lost:
                self.lost = "closed by us"
                self.cond.notify_all()
        self.sock.shutdown()
        self.reader.join(5)
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- the inside
    def flush(self):
        data = self.h2.data_to_send()
        if data:
            try:
                self.sock.sendall(data)
            except OSError as error:
                self._lose(f"send: {error}")

    def wait_room(self, stream, until):
        """Called with the lock held: bytes that may be sent now on the stream."""
        while True:
            if stream.reset_code is not None:
                raise StreamReset(stream.reset_code)
            if self.lost:
                raise ConnectionLost(self.lost)
            if stream.ended and self.h2.streams[stream.id].closed:
                raise StreamReset(0)  # a whole answer, then RST_STREAM(NO_ERROR) in the same read
            room = min(self.h2.local_flow_control_window(stream.id),
                       self.h2.max_outbound_frame_size)
            if room > 0:
                return room
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no window on stream {stream.id}")
            self.cond.wait(left)

    def _lose(self, why):
        with self.cond:
            self.lost = self.lost or why or "closed by the peer"
            self.cond.notify_all()

    def _read_loop(self):
        while True:
            try:
                data = self.sock.recv(1 << 16)
            except (OSError, ValueError) as error:
                return self._lose(f"recv: {error}")
            if not data:
                return self._lose("closed by the peer")
            try:
                with self.cond:
                    data, goaways = self.filter.feed(data)
                    if goaways:
                        self.goaways += goaways
                        self.goaway = goaways[-1]
                    for event in self.h2.receive_data(data) if data else ():
                        self._on_event(event)
                    self.flush()
                    self.cond.notify_all()
            except h2.exceptions.ProtocolError as error:
                return self._lose(f"the peer broke the protocol: {error!r}")

    def _on_event(self, event):
        stream = self.streams.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.ResponseReceived):
            stream.status = int(dict(event.headers)[b":status"])
            stream.headers = [(text(n), text(v)) for n, v in event.headers if n[:1] != b":"]
        elif isinstance(event, h2.events.InformationalResponseReceived):
            stream.interim.append(int(dict(event.headers)[b":status"]))
        elif isinstance(event, h2.events.DataReceived):
            self._on_data(stream, event)
        elif isinstance(event, h2.events.TrailersReceived):
            stream.trailers = [(text(n), text(v)) for n, v in event.headers]
        elif isinstance(event, h2.events.StreamEnded):
            stream.ended, stream.ended_at = True, time.monotonic()
        elif isinstance(event, h2.events.StreamReset):
            if stream and not stream.ended:
                stream.reset_code = int(event.error_code)
                stream.ended_at = time.monotonic()
        elif isinstance(event, h2.events.PingAckReceived):
            self.pongs.append(event.ping_data)
        elif isinstance(event, h2.events.SettingsAcknowledged):
            self.settings_acked = True

    def _on_data(self, stream, event):
        length = event.flow_controlled_length
        if stream is None:
            return
        stream.chunks.append((time.monotonic(), event.data))
        stream.received += len(event.data)
        if stream.auto_window:
            self._give_back(length, stream.id)
        else:
            # Only this stream is held back: the connection's window must not be.
            stream.unacked += length
            self.h2.increment_flow_control_window(length)

    def _give_back(self, length, stream_id):
        if length:
            try:
                self.h2.acknowledge_received_data(length, stream_id)
            except h2.exceptions.ProtocolError:
                pass  # the stream is closed on our side already


def _bytes(value):
    return value if isinstance(value, bytes) else value.encode("latin-1")
