# SPDX-License-Identifier: Apache-2.0
"""A network namespace of the test's own, in which it may drop packets."""

import contextlib
import ctypes
import os
import shutil
import threading

import pytest

from procs import run

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Netns:
    def __init__(self):
        for tool in ("ip", "nft"):
            if not shutil.which(tool):
                pytest.skip(f"needs the program {tool} to drop packets")
        self.name = f"kr{os.getpid()}"
        code, _, err = run(["ip", "netns", "add", self.name])
        if code:
            pytest.skip(f"may not make a network namespace here: {err.decode().strip()}")
        self.prefix = ("ip", "netns", "exec", self.name)
        try:
            self._must("ip", "link", "set", "lo", "up")
            self._must("nft", "add", "table", "inet", "t")
            self._must("nft", "add", "chain", "inet", "t", "in",
                       "{ type filter hook input priority 0 ; }")
        except RuntimeError as error:
            self.close()
            pytest.skip(f"may not filter packets here: {error}")

    def _must(self, *argv):
        code, _, err = run([*self.prefix, *argv])
        if code:
            raise RuntimeError(f"{' '.join(argv)}: {err.decode().strip()}")

    def drop(self, port, both=True):
        """From now on no packet to the port arrives; and none from it, if `both`."""
        self._must("nft", "add", "rule", "inet", "t", "in", "tcp", "dport", str(port), "drop")
        if both:
            self._must("nft", "add", "rule", "inet", "t", "in", "tcp", "sport", str(port), "drop")

    def restore(self):
        self._must("nft", "flush", "chain", "inet", "t", "in")

    @contextlib.contextmanager
    def inside(self):
        """Sockets that this thread makes belong to the namespace; they stay there."""
        assert threading.current_thread() is threading.main_thread()
        with open("/proc/thread-self/ns/net", "rb") as home, \
                open(f"/var/run/netns/{self.name}", "rb") as there:
            _setns(there.fileno())
            try:
                yield self
            finally:
                _setns(home.fileno())

    def close(self):
        run(["ip", "netns", "del", self.name])


def _setns(fd):
    if _libc.setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
