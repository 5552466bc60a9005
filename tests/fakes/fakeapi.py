# SPDX-License-Identifier: Apache-2.0
"""A scripted fake of a Kubernetes API server: TLS, HTTP/2 and HTTP/1.1, no Kubernetes.

It keeps every request as it arrived (target, headers, body, all as bytes) and answers
with what a test's script does to the Exchange: hang, trickle, cut short, GOAWAY, reset,
an early 413, any status, a watch stream. It asserts nothing by itself.

    fake = FakeApi(context)
    fake.script(lambda x: x.target.startswith(b"/api/v1/pods"), answer_pods)
    x = fake.wait_request(lambda x: x.method == "POST")
"""

import json
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


class Gone(Exception):
    """The peer reset the request or the connection ended: the script may stop."""


def status_body(code, reason, message, **extra):
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code}
    body.update(extra)
    return json.dumps(body).encode()


class Exchange:
    """One request and what the script does with it. The two wires subclass it."""

    def __init__(self, api, connection):
        self.api = api
        self.connection = connection
        self.cond = connection.cond
        self.method = ""
        self.target = b""
        self.headers = []  # (name, value) in bytes, as they came
        self.authority = b""
        self.received = b""
        self.arrived_at = time.monotonic()
        self.body_done = False
        self.cancelled_at = None  # the peer reset it or went away
        self.reset_code = None
        self.consume = True  # False: leave the peer's window closed
        self.finished = False

    # -- the request
    def all(self, name):
        name = name.lower().encode()
        return [v.decode("latin-1") for n, v in self.headers if n.lower() == name]

    def get(self, name, default=None):
        values = self.all(name)
        return values[0] if values else default

    def names(self):
        return [n.decode("latin-1").lower() for n, _ in self.headers]

    @property
    def path(self):
        return self.target.split(b"?")[0].decode("latin-1")

    @property
    def query(self):
        return self.target.partition(b"?")[2].decode("latin-1")

    @property
    def is_watch(self):
        return "watch=" in self.query

    def wait(self, what, timeout=30):
        """Not scaled: with what never holds it is a time that the server takes."""
        with self.cond:
            self.cond.wait_for(lambda: what(self) or self.cancelled_at, timeout)
            return what(self)

    def body(self, timeout=30):
        if not self.wait(lambda x: x.body_done, scaled(timeout)):
            raise Gone("the request body did not end")
        return self.received

    def wait_cancelled(self, timeout=10):
        """Seconds on the monotonic clock when the peer gave the request up."""
        with self.cond:
            if not self.cond.wait_for(lambda: self.cancelled_at, scaled(timeout)):
                raise TimeoutError("the request was not cancelled")
            return self.cancelled_at

    # -- the answer: start, write and end are the wire's own
    def respond(self, status=200, body=b"", headers=(), content_type="application/json"):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        fields = [("content-type", content_type)] if content_type else []
        fields += [("content-length", str(len(body)))] + list(headers)
        self.start(status, fields)
        if body and self.method != "HEAD":
            self.write(body)
        self.end()

    def fail(self, code, reason, message="scripted", headers=()):
        self.respond(code, status_body(code, reason, message), headers)

    def start_stream(self, content_type="application/json", headers=()):
        self.start(200, [("content-type", content_type), *headers])

    def event(self, kind, obj):
        self.write(json.dumps({"type": kind, "object": obj}).encode() + b"\n")

    def hold(self, timeout=120):
        """Does nothing until the peer gives up; raises Gone then."""
        with self.cond:
            self.cond.wait_for(lambda: self.cancelled_at, scaled(timeout))
        raise Gone("held to the end")

    def check(self):
        if self.cancelled_at:
            raise Gone("cancelled by the peer")

    def abort(self, rst=False):
        """Kills the whole connection, as a crash does."""
        self.connection.abort(rst)

    def __repr__(self):
        return f"<{self.method} {self.target.decode('latin-1')}>"


class H2Exchange(Exchange):
    def __init__(self, api, connection, stream_id):
        super().__init__(api, connection)
        self.id = stream_id
        self.unacked = 0

    def interim(self, status):
        with self.cond:
            self.connection.h2.send_headers(self.id, [(b":status", str(status).encode())])
            self.connection.flush()

    def start(self, status, headers=()):
        fields = [(b":status", str(status).encode())]
        fields += [(_bytes(n).lower(), _bytes(v)) for n, v in headers]
        self._do(lambda: self.connection.h2.send_headers(self.id, fields))

    def write(self, data):
        view = memoryview(data)
        h2c = self.connection.h2
        while len(view):
            with self.cond:
                self.check()
                room = self._room()
                if room <= 0:
                    self.cond.wait(1)
                    continue
                piece = view[:room]
                self._do(lambda: h2c.send_data(self.id, bytes(piece)))
            view = view[len(piece):]

    def _room(self):
        h2c = self.connection.h2
        try:
            return min(h2c.local_flow_control_window(self.id), h2c.max_outbound_frame_size)
        except h2.exceptions.ProtocolError as error:
            raise Gone(str(error))

    def end(self, trailers=None):
        self.finished = True
        if trailers:
            fields = [(_bytes(n), _bytes(v)) for n, v in trailers]
            self._do(lambda: self.connection.h2.send_headers(self.id, fields, end_stream=True))
        else:
            self._do(lambda: self.connection.h2.end_stream(self.id))

    def reset(self, code=h2.errors.ErrorCodes.INTERNAL_ERROR):
        self.finished = True
        self._do(lambda: self.connection.h2.reset_stream(self.id, code))

    def goaway(self, last=None, code=h2.errors.ErrorCodes.NO_ERROR):
        """GOAWAY by hand: python3-h2 would close its state machine on its own."""
        last = self.id if last is None else last
        payload = last.to_bytes(4, "big") + int(code).to_bytes(4, "big")
        frame = len(payload).to_bytes(3, "big") + b"\x07\x00" + bytes(4) + payload
        with self.cond:
            self.connection.draining = last
            self.connection.pipe.sendall(frame)

    def _do(self, call):
        with self.cond:
            self.check()
            try:
                call()
            except h2.exceptions.ProtocolError as error:
                raise Gone(str(error))
            self.connection.flush()


class H1Exchange(Exchange):
    """HTTP/1.1: chunked unless the script gives a content-length."""

    chunked = False

    def interim(self, status):
        self._send(b"HTTP/1.1 %d Continue\r\n\r\n" % status)

    def start(self, status, headers=()):
        lines = [b"HTTP/1.1 %d Scripted" % status]
        names = {_bytes(n).lower() for n, _ in headers}
        lines += [_bytes(n) + b": " + _bytes(v) for n, v in headers]
        self.chunked = not names & {b"content-length", b"transfer-encoding"} and status >= 200
        if status in (204, 304):
            self.chunked = False
        if self.chunked:
            lines.append(b"Transfer-Encoding: chunked")
        self._send(b"\r\n".join(lines) + b"\r\n\r\n")

    def write(self, data):
        self._send(b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data)

    def raw(self, data):
        self._send(data)

    def read_raw(self, timeout=30):
        """What the peer sent after the head (of an upgrade); b"" is its end."""
        connection = self.connection
        with connection.cond:
            if not connection.cond.wait_for(lambda: connection.buffer or connection.ended,
                                            scaled(timeout)):
                raise TimeoutError(f"{self}: nothing came for {timeout} s")
            data, connection.buffer = connection.buffer, b""
        return data

    def end(self, trailers=None):
        self.finished = True
        if self.chunked:
            tail = b"".join(_bytes(n) + b": " + _bytes(v) + b"\r\n" for n, v in trailers or ())
            self._send(b"0\r\n" + tail + b"\r\n")

    def reset(self, code=None):
        self.connection.abort(rst=True)

    def _send(self, data):
        self.check()
        try:
            self.connection.pipe.sendall(data)
        except OSError as error:
            raise Gone(str(error))


class Connection:
    """What both wires share: the socket, its lock, the live exchanges."""

    def __init__(self, api, sock):
        self.api = api
        self.cond = threading.Condition(threading.RLock())
        self.pipe = TlsPipe(sock)
        self.live = {}
        self.closed = False
        self.draining = None

    def begin(self, exchange):
        self.api.record(exchange)
        threading.Thread(target=self._run, args=(exchange,), daemon=True).start()

    def _run(self, exchange):
        try:
            self.api.script_for(exchange)(exchange)
        except (Gone, OSError):
            pass
        except Exception as error:  # a fault of the script: the test must see it
            self.api.faults.append(f"{exchange}: {error!r}")
            self.abort()

    def abort(self, rst=False):
        if rst:
            self.pipe.reset()
        else:
            self.pipe.shutdown()
        self.lost()

    def lost(self):
        with self.cond:
            self.closed = True
            for exchange in self.live.values():
                if not exchange.cancelled_at and not exchange.finished:
                    exchange.cancelled_at = time.monotonic()
            self.cond.notify_all()


class H2Connection(Connection):
    def __init__(self, api, sock):
        super().__init__(api, sock)
        config = h2.config.H2Configuration(
            client_side=False, header_encoding=None, validate_inbound_headers=False,
            normalize_inbound_headers=False, validate_outbound_headers=False)
        self.h2 = h2.connection.H2Connection(config)
        self.pongs = []
        codes = h2.settings.SettingCodes
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values={
            codes.MAX_CONCURRENT_STREAMS: api.max_streams,
            codes.INITIAL_WINDOW_SIZE: api.window,
            codes.MAX_HEADER_LIST_SIZE: 1 << 20,
        })

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            try:
                self.pipe.sendall(data)
            except OSError as error:
                raise Gone(str(error))

    def wait_read(self, timeout=10):
        """Until the peer has read all that was written: it answers a PING in its turn."""
        data = time.monotonic_ns().to_bytes(8, "big")
        with self.cond:
            self.h2.ping(data)
            self.flush()
            if not self.cond.wait_for(lambda: data in self.pongs or self.closed, scaled(timeout)):
                raise TimeoutError("no answer to a PING")

    def serve(self):
        with self.cond:
            self.h2.initiate_connection()
            self.h2.increment_flow_control_window(1 << 24)
            self.flush()
        while data := self.pipe.recv():
            self.last_read = data[:80]
            with self.cond:
                for event in self.h2.receive_data(data):
                    self._on_event(event)
                self.flush()
                self.cond.notify_all()

    def _on_event(self, event):
        x = self.live.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.RequestReceived):
            self._on_request(event)
        elif isinstance(event, h2.events.DataReceived):
            self._on_data(x, event)
        elif isinstance(event, h2.events.StreamEnded) and x:
            x.body_done = True
        elif isinstance(event, h2.events.PingAckReceived):
            self.pongs.append(event.ping_data)
        elif isinstance(event, h2.events.StreamReset) and x:
            x.reset_code = int(event.error_code)
            x.cancelled_at = x.cancelled_at or time.monotonic()

    def _on_request(self, event):
        if self.draining is not None and event.stream_id > self.draining:
            return  # past our GOAWAY: as good as never seen
        x = H2Exchange(self.api, self, event.stream_id)
        for name, value in event.headers:
            if name == b":method":
                x.method = value.decode("latin-1")
            elif name == b":path":
                x.target = value
            elif name == b":authority":
                x.authority = value
            elif name[:1] != b":":
                x.headers.append((name, value))
        x.consume = self.api.consume
        self.live[event.stream_id] = x
        self.begin(x)

    def _on_data(self, x, event):
        if x is None:
            return
        x.received += event.data
        if x.consume:
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        else:
            x.unacked += event.flow_controlled_length


class H1Connection(Connection):
    """One exchange after the other; a watcher thread sees the peer's end meanwhile."""

    ended = False

    def serve(self):
        self.buffer = b""
        number = 0
        while not self.closed:
            head = self._until(b"\r\n\r\n")
            if head is None:
                break
            x = H1Exchange(self.api, self)
            self._parse(x, head)
            number += 1
            self.live = {number: x}
            self.begin(x)
            if not self._read_body(x):
                break
            if not self._wait_finished(x):
                break

    def _wait_finished(self, x):
        """Reads on while the script answers, only to see the peer leave."""
        while not x.finished:
            try:
                data = self.pipe.recv(timeout=0.05)
            except TimeoutError:
                continue
            with self.cond:
                self.buffer += data
                self.ended = not data
                self.cond.notify_all()
            if not data:
                return False
        return True

    def _parse(self, x, head):
        first, *lines = head.split(b"\r\n")
        method, x.target, _ = first.split(b" ", 2)
        x.method = method.decode("latin-1")
        for line in lines:
            name, value = line.split(b":", 1)
            if name.lower() == b"host":
                x.authority = value.strip()
            x.headers.append((name, value.strip()))

    def _read_body(self, x):
        length = x.get("content-length")
        if (x.get("expect") or "").lower() == "100-continue":
            self.pipe.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if (x.get("transfer-encoding") or "").lower() == "chunked":
            ok = self._read_chunks(x)
        elif length:
            data = self._exactly(int(length))
            ok = data is not None
            x.received = data or b""
        else:
            ok = True
        with self.cond:
            x.body_done = ok
            self.cond.notify_all()
        return ok

    def _read_chunks(self, x):
        while True:
            line = self._until(b"\r\n")
            if line is None:
                return False
            size = int(line.split(b";")[0], 16)
            data = self._exactly(size + 2) if size else self._until(b"\r\n")
            if data is None:
                return False
            if not size:
                return True
            x.received += data[:-2]

    def _until(self, mark):
        while mark not in self.buffer:
            data = self.pipe.recv()
            if not data:
                return None
            self.buffer += data
        head, self.buffer = self.buffer.split(mark, 1)
        return head

    def _exactly(self, count):
        while len(self.buffer) < count:
            data = self.pipe.recv()
            if not data:
                return None
            self.buffer += data
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data


class FakeApi:
    """The server. `context` is an ssl.SSLContext for servers without ALPN set."""

    def __init__(self, context, protocols=("h2", "http/1.1"), window=1 << 20, max_streams=1000,
                 port=0):
        self.window = window
        self.max_streams = max_streams
        self.consume = True
        self.scripts = []
        self.requests = []
        self.faults = []
        self.connections = []
        self.dials = 0
        self.cond = threading.Condition()
        context.set_alpn_protocols(list(protocols))
        self.context = context
        self.listener = socket.create_server(("127.0.0.1", port), backlog=512)
        self.address = self.listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"https://127.0.0.1:{self.address[1]}"

    # -- scripts: the newest that matches wins
    def script(self, matches, run):
        if isinstance(matches, str):
            prefix = matches.encode()
            self.scripts.insert(0, (lambda x: x.target.startswith(prefix), run))
        else:
            self.scripts.insert(0, (matches, run))

    def script_for(self, exchange):
        for matches, run in self.scripts:
            if matches(exchange):
                return run
        return lambda x: x.fail(404, "NotFound", "no script for this")

    def forget(self):
        """A clean slate for the next test; connections stay."""
        with self.cond:
            self.scripts, self.requests, self.faults = [], [], []
        self.consume = True

    # -- what was seen
    def record(self, exchange):
        with self.cond:
            self.requests.append(exchange)
            self.cond.notify_all()

    def seen(self, matches=lambda x: True):
        with self.cond:
            return [x for x in self.requests if matches(x)]

    def wait_request(self, matches=lambda x: True, timeout=10, count=1):
        """The count-th request that matches."""
        with self.cond:
            def found():
                hits = [x for x in self.requests if matches(x)]
                return hits[count - 1] if len(hits) >= count else None
            if not self.cond.wait_for(found, scaled(timeout)):
                raise TimeoutError(f"no such request; seen: {self.requests[-10:]}")
            return found()

    # -- life
    def _accept(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            self.dials += 1
            threading.Thread(target=self._serve, args=(raw,), daemon=True).start()

    def _serve(self, raw):
        connection = None
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.settimeout(scaled(10))
            sock = self.context.wrap_socket(raw, server_side=True)
            h2_chosen = sock.selected_alpn_protocol() == "h2"
            connection = (H2Connection if h2_chosen else H1Connection)(self, sock)
            self.connections.append(connection)
            connection.serve()
        except (Gone, OSError, ValueError):
            pass
        except h2.exceptions.ProtocolError as error:
            self.faults.append(f"the peer broke HTTP/2: {error!r} at {connection.last_read!r}")
        finally:
            if connection:
                connection.lost()
                connection.pipe.close()
                self.connections.remove(connection)
            else:
                raw.close()

    def drop_connections(self, rst=False):
        for connection in list(self.connections):
            connection.abort(rst)

    def stop_listening(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept
        except OSError:
            pass
        self.listener.close()

    def close(self):
        self.stop_listening()
        self.drop_connections()


def _bytes(value):
    return value if isinstance(value, bytes) else value.encode("latin-1")
