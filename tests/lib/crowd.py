# SPDX-License-Identifier: Apache-2.0
"""Many callers at once: threads that start together and hand their failures to the test."""

import threading

from lib.wait import LEAST


def together(count, work):
    """Run work(number) in `count` threads that start at the same moment; their results in order."""
    barrier = threading.Barrier(count)
    results, failures = [None] * count, []

    def body(number):
        try:
            barrier.wait(120)
            results[number] = work(number)
        except BaseException as e:  # handed to the test below
            failures.append(e)

    threads = [threading.Thread(target=body, args=(n,), daemon=True) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(300)
    assert not any(t.is_alive() for t in threads), "a caller hangs"
    if failures:
        raise failures[0]
    return results


class Background:
    """One call in a thread of its own; result() waits for it."""

    def __init__(self, work, *args, **kw):
        self.value = self.failure = None
        self.thread = threading.Thread(target=self._run, args=(work, args, kw), daemon=True)
        self.thread.start()

    def _run(self, work, args, kw):
        try:
            self.value = work(*args, **kw)
        except BaseException as e:  # handed to the test by result()
            self.failure = e

    def is_done(self):
        return not self.thread.is_alive()

    def result(self, timeout=LEAST):
        timeout = max(timeout, LEAST)
        self.thread.join(timeout)
        assert not self.thread.is_alive(), "not done within %.0f s" % timeout
        if self.failure:
            raise self.failure
        return self.value


class Loop:
    """Repeat work() in a thread until leaving the with block; a failure is raised there."""

    def __init__(self, work):
        self.work, self.end, self.rounds = work, threading.Event(), 0

    def __enter__(self):
        self.run = Background(self._repeat)
        return self

    def _repeat(self):
        while not self.end.is_set():
            self.work()
            self.rounds += 1

    def __exit__(self, kind, value, trace):
        self.end.set()
        if kind is None:
            self.run.result()
        else:
            self.run.thread.join(60)
