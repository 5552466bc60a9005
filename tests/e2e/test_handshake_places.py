# SPDX-License-Identifier: Apache-2.0
"""Who gets a place for a TLS handshake when there are more who ask than places (T45)."""

import contextlib
import resource
import socket
import time

from clock import scaled

HELLO_BEGINS = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # of a record of 512 bytes
SOON = 8  # seconds; a handshake that does not go on keeps its place for 10


@contextlib.contextmanager
def sockets(address, count, first=b""):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 512)), hard))
    made = []
    try:
        for _ in range(count):
            made.append(socket.create_connection(address, timeout=scaled(10)))
            if first:
                made[-1].sendall(first)
        yield made
    finally:
        for sock in made:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def time_of_a_new_client(world):
    """Not by one of the clients: they cannot have more than 1,024 descriptors."""
    context = world.context()("http/1.1")  # its certificate is made by a process
    begin = time.monotonic()
    with socket.create_connection(world.hub.api, timeout=scaled(20)) as sock, \
            context.wrap_socket(sock, server_hostname="localhost") as tls:
        tls.sendall(b"GET /livez HTTP/1.1\r\nHost: h\r\n\r\n")
        assert tls.recv(4096).startswith(b"HTTP/1.1 200")
    return time.monotonic() - begin


def test_T45_silent_connections_take_no_place(world):
    hub = world.start_hub()
    with sockets(hub.api, 2000):
        assert time_of_a_new_client(world) < SOON


def test_T45_half_a_hello_makes_room_at_once(world):
    hub = world.start_hub()
    with sockets(hub.api, 2000, HELLO_BEGINS):
        assert time_of_a_new_client(world) < SOON


def test_T45_a_byte_now_and_then_keeps_no_place(world):
    """Bytes are no progress: only a whole message is."""
    hub = world.start_hub(maxHandshakes=16)
    with sockets(hub.api, 64, HELLO_BEGINS) as slow:
        begin = time.monotonic()
        for sock in slow:
            with contextlib.suppress(OSError):
                sock.sendall(b"\0")
        assert time_of_a_new_client(world) < SOON
        assert time.monotonic() - begin < SOON + 1


def test_T45_agents_are_let_in_beside_them(world, backend):
    hub = world.start_hub(maxHandshakes=16)
    with sockets(hub.agent, 300, HELLO_BEGINS):
        config = backend.kubeconfig(str(world.folder / "late.kubeconfig"))
        begin = time.monotonic()
        world.start_agent("late", config)
        assert time.monotonic() - begin < scaled(10)
