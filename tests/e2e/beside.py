# SPDX-License-Identifier: Apache-2.0
"""Somebody else's requests while something happens."""

import threading
import time

from clock import scaled
from h2client import ConnectionLost, StreamReset


class Beside(threading.Thread):
    """The same small request again and again, which must be answered each time; takes the client."""

    def __init__(self, client, path):
        super().__init__(daemon=True)
        self.client, self.path = client, path
        self.times, self.problem, self.over = [], None, threading.Event()
        self.start()

    def run(self):
        try:
            while not self.over.wait(0.01):
                begin = time.monotonic()
                answer = self.client.get(self.path)
                assert answer.status == 200, answer
                self.times.append(time.monotonic() - begin)
        except (AssertionError, ConnectionLost, StreamReset, TimeoutError, OSError) as error:
            self.problem = repr(error)

    def finish(self):
        """How long each of them took."""
        self.over.set()
        self.join(scaled(40))
        self.client.close()
        assert self.problem is None, self.problem
        return self.times
