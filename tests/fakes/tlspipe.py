# SPDX-License-Identifier: Apache-2.0
"""A TLS socket that one thread may read while another writes.

OpenSSL allows one call at a time on a connection. A blocking read would hold that
call for ever, so the socket is non-blocking, each call takes a lock, and the waiting
is done by poll outside of it (a select takes no numbers above 1023).
"""

import select
import socket
import ssl
import threading


class TlsPipe:
    def __init__(self, sock):
        sock.setblocking(False)
        self.sock = sock
        self._call = threading.Lock()
        self._send = threading.Lock()  # a half-sent record must be finished first
        self._closed = threading.Event()

    def recv(self, count=1 << 16, timeout=None):
        """Bytes, or b"" at the end. TimeoutError after `timeout` seconds."""
        while True:
            try:
                with self._call:
                    return self.sock.recv(count)
            except (ssl.SSLWantReadError, BlockingIOError):
                self._wait(True, timeout)
            except ssl.SSLWantWriteError:
                self._wait(False, timeout)
            except ssl.SSLEOFError:
                return b""  # closed without close_notify, as many do

    def sendall(self, data, timeout=60):
        view = memoryview(data)
        with self._send:
            while len(view):
                try:
                    with self._call:
                        view = view[self.sock.send(view[:1 << 16]):]
                except (ssl.SSLWantWriteError, BlockingIOError):
                    self._wait(False, timeout)
                except ssl.SSLWantReadError:
                    self._wait(True, timeout)

    def _wait(self, reading, timeout):
        if self._closed.is_set():
            raise OSError("closed by us")
        fd = self.sock.fileno()
        if fd < 0:
            raise OSError("closed by us")
        poll = select.poll()
        poll.register(fd, select.POLLIN if reading else select.POLLOUT)
        moved = poll.poll(None if timeout is None else max(0, timeout) * 1000)
        if not moved:
            raise TimeoutError(f"nothing moved for {timeout} s")
        if moved[0][1] & select.POLLNVAL:
            raise OSError("closed by us")

    def shutdown(self):
        """Ends both directions, without TLS's closing alert: what a dying peer does."""
        self._closed.set()
        self._stop(socket.SHUT_RDWR)

    def reset(self):
        """TCP RST instead of FIN. It goes out when nobody polls the socket any more: hence the end
        of reading before, which wakes who does and sends nothing."""
        try:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                 (1).to_bytes(4, "little") + (0).to_bytes(4, "little"))
        except OSError:
            pass
        self._closed.set()
        self._stop(socket.SHUT_RD)
        with self._call:
            self.sock.close()

    def _stop(self, how):
        """Not by SSLSocket: its shutdown forgets the TLS state, and a thread that reads would
        take what is under way, still encrypted, for its peer's words."""
        try:
            socket.socket.shutdown(self.sock, how)
        except OSError:
            pass

    def close(self):
        self.shutdown()
        with self._call:
            self.sock.close()
