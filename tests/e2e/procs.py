# SPDX-License-Identifier: Apache-2.0
"""Child processes whose log lines are events one can wait for."""

import os
import re
import select
import signal
import subprocess
import threading
import time

from clock import scaled


PIPE = 1 << 16  # what a pipe holds


class Died(Exception):
    """A process that was to stay up ended."""


class Process:
    """Starts at once; dies with the test run, even if that is killed."""

    def __init__(self, name, argv, folder, env=None, merge=True, prefix=()):
        self.name, self.argv = name, [str(a) for a in argv]
        self.log_path = os.path.join(folder, f"{name}.log")
        self.lines, self.rest, self.ended = [], b"", False
        self.cond = threading.Condition()
        self.frozen = False
        guard = [*prefix, "setpriv", "--pdeathsig", "KILL", "--"]
        self.child = subprocess.Popen(
            guard + self.argv, cwd=folder, env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merge else subprocess.PIPE)
        self.pid = self.child.pid
        os.set_blocking(self.child.stdout.fileno(), False)
        self.log = open(self.log_path, "ab")  # the reader closes it: a test starts hundreds
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        news = select.poll()
        news.register(self.child.stdout, select.POLLIN)
        with self.log, self.child.stdout:
            while not self.ended:
                news.poll()
                with self.cond:
                    self._take()
        self.child.wait()
        with self.cond:
            self.cond.notify_all()

    def _take(self):
        """With the lock held: takes what the process has written until now (more than a pipe holds
        that cannot be). So who asks for lines has them, whether the reader's thread ran or not."""
        taken = 0
        while taken < PIPE and not self.ended:
            try:
                data = os.read(self.child.stdout.fileno(), PIPE)
            except BlockingIOError:
                return
            self.log.write(data)
            self.log.flush()
            taken += len(data)
            *lines, self.rest = (self.rest + data).split(b"\n")
            if not data:
                self.ended, lines = True, [self.rest] if self.rest else []
            self.lines += [line.decode("utf-8", "replace") for line in lines]
            self.cond.notify_all()

    # -- events
    def mark(self):
        """A place in the log: wait_line(after=mark) looks only at what was written later."""
        with self.cond:
            self._take()
            return len(self.lines)

    def wait_line(self, pattern, timeout=15, after=0):
        """The first line that matches, as a match object."""
        wanted = re.compile(pattern)
        until = time.monotonic() + scaled(timeout)
        seen = after
        with self.cond:
            while True:
                for line in self.lines[seen:]:
                    if match := wanted.search(line):
                        return match
                seen = max(seen, len(self.lines))
                left = until - time.monotonic()
                if not self.reader.is_alive() and self.child.poll() is not None:
                    raise Died(f"{self.name} ended ({self.child.returncode}): {self.tail()}")
                if left <= 0:
                    raise TimeoutError(f"{self.name}: no line {pattern!r}: {self.tail()}")
                self.cond.wait(min(left, 0.2))

    def tail(self, count=15):
        return "\n".join(self.lines[-count:])

    def grep(self, pattern, after=0):
        with self.cond:
            self._take()
            return [line for line in self.lines[after:] if re.search(pattern, line)]

    @property
    def alive(self):
        return self.child.poll() is None

    # -- control
    def signal(self, number):
        self.child.send_signal(number)

    def freeze(self):
        self.frozen = True
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.frozen = False
        self.signal(signal.SIGCONT)

    def kill(self):
        if self.alive:
            self.child.kill()
        return self.wait(10)

    def stop(self, timeout=10):
        """SIGTERM, and SIGKILL for one that does not listen."""
        if self.alive:
            if self.frozen:
                self.thaw()
            self.child.terminate()
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
        self.reader.join(5)

    def wait(self, timeout=30):
        return self.child.wait(scaled(timeout))

    # -- what the kernel knows about it
    weighable = True  # False for a sanitized build

    def fds(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def memory_kib(self, field="RssAnon"):
        """0 for a program whose memory is mostly its sanitizer's."""
        if not self.weighable:
            return 0
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
        raise KeyError(field)


def run(argv, timeout=60, env=None, stdin=None, cwd=None):
    """A command to its end: (code, stdout, stderr)."""
    done = subprocess.run([str(a) for a in argv], capture_output=True, timeout=scaled(timeout),
                          env={**os.environ, **(env or {})}, input=stdin, cwd=cwd, check=False)
    return done.returncode, done.stdout, done.stderr
