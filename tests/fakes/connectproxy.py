# SPDX-License-Identifier: Apache-2.0
"""A small HTTP CONNECT proxy: it notes what it was asked for and may send it elsewhere,
so that a name without DNS can be reached."""

import select
import socket
import threading


class ConnectProxy:
    def __init__(self, target=None, answer=b"HTTP/1.1 200 Connection established\r\n\r\n"):
        self.target = target  # (host, port) for everybody; None: what they ask for
        self.answer = answer
        self.heads = []  # the request heads, as they came
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.address[1]}"

    def asked_for(self):
        return [head.split(b" ")[1].decode() for head in self.heads]

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                data = client.recv(4096)
                if not data:
                    return
                head += data
            self.heads.append(head)
            if b" 200 " not in self.answer:
                client.sendall(self.answer)
                return
            host, port = head.split(b" ")[1].decode().rsplit(":", 1)
            with socket.create_connection(self.target or (host.strip("[]"), int(port))) as far:
                client.sendall(self.answer)
                self._pump(client, far)

    @staticmethod
    def _pump(one, two):
        other = {one: two, two: one}
        while True:
            for ready in select.select([one, two], [], [])[0]:
                try:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    other[ready].sendall(data)
                except OSError:
                    return

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
