# SPDX-License-Identifier: Apache-2.0
"""The kubectl versions of the fidelity matrix, and a terminal to run one on."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

import pytest

from clock import scaled

# Debian's; SPDY only; WebSocket exec; WebSocket port-forward; after it; the newest.
MINORS = [20, 27, 30, 32, 33, 34, 37]


each = pytest.mark.parametrize("minor", MINORS, ids=[f"kubectl-1.{m}" for m in MINORS])


class Terminal:
    """A kubectl on a terminal of its own."""

    def __init__(self, tool, *args, size=(24, 80)):
        self.ours, theirs = pty.openpty()
        self.resize(*size)
        self.child = subprocess.Popen(tool.argv(*args), env={**tool.env(), "TERM": "dumb"},
                                      stdin=theirs, stdout=theirs, stderr=theirs,
                                      start_new_session=True,
                                      preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)
        self.shown = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, data):
        os.write(self.ours, data)

    def wait(self, wanted, timeout=15):
        """Until the bytes have been shown; what came up to them is taken away."""
        until = time.monotonic() + scaled(timeout)
        while wanted not in self.shown:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.ours], [], [], left)[0]:
                raise TimeoutError(f"no {wanted!r} in {self.shown!r}")
            try:
                data = os.read(self.ours, 65536)
            except OSError:  # the last process on the terminal has left
                data = b""
            if not data:
                raise EOFError(f"ended without {wanted!r}: {self.shown!r}")
            self.shown += data
        before, self.shown = self.shown.split(wanted, 1)
        return before

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
        code = self.child.wait()
        os.close(self.ours)
        return code
