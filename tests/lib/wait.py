# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition with a deadline, instead of sleeping and hoping."""

import time


def until(condition, what, timeout=10.0, pause=0.01):
    """Call condition() until it answers something true, and return that. Fails with `what` when time is up."""
    deadline = time.monotonic() + timeout
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > deadline:
            raise AssertionError("not within %.1f s: %s (last answer: %r)" % (timeout, what, got))
        time.sleep(pause)
