# SPDX-License-Identifier: Apache-2.0
"""The one time-out knob: KUBERELAY_TEST_SLOWNESS multiplies every wait of the suite."""

import os
import time

SLOWNESS = float(os.environ.get("KUBERELAY_TEST_SLOWNESS", "1"))


def scaled(seconds):
    """A limit for waiting: how long something may take before the test gives it up."""
    return seconds * SLOWNESS


def wait_until(check, timeout=10, what="condition", every=0.02):
    """Polls a state that offers no event (a port, a metric) until it holds."""
    until = time.monotonic() + scaled(timeout)
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not within {scaled(timeout):g} s")
        time.sleep(every)
