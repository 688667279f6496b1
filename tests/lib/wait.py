# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition with a deadline, instead of sleeping and hoping."""

import time

LEAST = 60.0  # seconds that everything may take: a busy machine stops for some of them, and who waits in vain has time


def until(condition, what, timeout=60.0, pause=0.01):
    """Call condition() until it answers something true, and return that. Fails with `what` when time is up, which is long: machines are busy."""
    timeout = max(timeout, LEAST)
    deadline = time.monotonic() + timeout
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > deadline:
            raise AssertionError("not within %.1f s: %s (last answer: %r)" % (timeout, what, got))
        time.sleep(pause)
