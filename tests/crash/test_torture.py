# SPDX-License-Identifier: Apache-2.0
"""Each call of the system fails once, wherever a request passes it: the answer is a clear refusal or the whole change, never a crash, never half of one.

A round is one claim with what follows and one lease, from fresh connections. It is counted how many calls of a kind it takes; then one of them fails in
each round. When memory runs out the server ends, by intent and with a sentence (src/base/mem.h), and so it does when a flush fails on which pages moved
earlier depend (src/store/sqlite/sqlite_wal.c): it is started again, and what it had answered is there.
LEASEHOLD_TORTURE_POINTS=0 tries every single call; otherwise that many of each kind, spread over the round by LEASEHOLD_TORTURE_SEED. Every single one takes
an hour, because a start asks for memory 15,000 times: LEASEHOLD_TORTURE_SLICE=2/30 tries every thirtieth from the third on, and all of a kind of few.
"""

import mmap
import os
import random
import re
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from lib import leases
from lib.http import Broken
from lib.leases import Pool
from lib.wait import until

POINTS = int(os.environ.get("LEASEHOLD_TORTURE_POINTS", "6"))
SEED = int(os.environ.get("LEASEHOLD_TORTURE_SEED", "7"))
SLICE, SLICES = map(int, os.environ.get("LEASEHOLD_TORTURE_SLICE", "0/0").split("/"))
KINDS = ["memory", "open", "read", "write", "flush", "accept", "wait"]
FOREVER = 1 << 40
SANDBOXES = 800 if SLICES else 4000  # more than there are rounds


@pytest.fixture(scope="session")
def failing_calls(tmp_path_factory):
    library = tmp_path_factory.mktemp("failcall") / "failcall.so"
    source = Path(__file__).with_name("failcall.c")
    subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-fno-builtin", "-o", str(library), str(source)], check=True)
    return library


class Fault:
    """The n-th call of a kind, from now on, fails."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(24))
        with path.open("r+b") as file:
            self.map = mmap.mmap(file.fileno(), 24)

    def arm(self, kind, left):
        self.map[8:16] = struct.pack("q", left)
        self.map[0:8] = struct.pack("q", KINDS.index(kind) + 1)

    def disarm(self):
        self.map[0:8] = bytes(8)

    @property
    def left(self):
        return struct.unpack("q", self.map[8:16])[0]

    @property
    def failed(self):
        return struct.unpack("q", self.map[16:24])[0]


class Tortured:
    """A server whose calls fail, what it has answered, and the facts that follow."""

    def __init__(self, make, library):
        self.fault = Fault(make.folder / "fault")
        settings = leases.env(make.folder, LEASEHOLD_SIM_ACCOUNTS="2000", LEASEHOLD_POLL_MS="50", LEASEHOLD_RATE_LIMIT_API_PER_SEC=None,
                              LD_PRELOAD=str(library), FAILCALL_FILE=str(self.fault.path))
        self.server = make.server(SANDBOXES, args=["--dev"], **settings)
        self.template = Pool(self.server).template(requiresApproval=True)["uuid"]
        self.rounds, self.deaths, self.holders = 0, 0, {}

    def call(self, ask):
        """The reply; None where the connection broke or could not be had."""
        try:
            reply = ask()
        except (Broken, OSError):
            return None
        if reply.status >= 400:
            assert reply.json, "a refusal without a word: %r" % reply
        return reply

    def round(self):
        """The facts that its answers tell."""
        self.rounds += 1
        owner, facts = "torture-%d" % self.rounds, {}
        track = lambda: self.server.track(owner)
        got = self.call(lambda: track().allocate())
        facts["owner"], facts["sandbox"] = owner, got.json["sandbox_id"] if got and got.status == 201 else None
        if facts["sandbox"]:
            self.call(lambda: track().show(facts["sandbox"]))
            marked = self.call(lambda: track().mark(facts["sandbox"]))
            facts["marked"] = bool(marked and marked.status == 200)
        person = lambda: leases.Api(self.server, "person-%d@example.com" % (self.rounds % 300 + 1), "User")
        asked = self.call(lambda: person().call("POST", "/leases", {"leaseTemplateUuid": self.template, "comments": owner}))
        facts["lease"] = asked.json["data"]["leaseId"] if asked and asked.status == 201 else None
        if facts["lease"]:
            manager = lambda: leases.Api(self.server, leases.MANAGER, "Manager")
            said = self.call(lambda: manager().call("POST", "/leases/%s/review" % facts["lease"], {"action": "Deny"}))
            facts["denied"] = bool(said and said.status == 200)
        return facts

    def revive(self, kind):
        """A server that ended says why: for want of memory, or because a flush failed on which pages moved earlier depend. It is started again."""
        until(lambda: not self.server.is_alive() or self.call(lambda: self.server.client().get("/healthz")), "it answers or has ended")
        if self.server.is_alive():
            return
        status = self.server.wait_end()
        said = "".join(self.server.errors)
        may_end = {"memory": is_want, "flush": is_lost_flush}.get(kind)
        assert may_end and may_end(status, said), (kind, status, said[-2000:])
        self.server.said.clear()
        self.server.start()
        self.deaths += 1

    def check(self, facts):
        owner, sandbox = facts["owner"], facts["sandbox"]
        track, admin = self.server.track(owner), Pool(self.server).admin
        if sandbox:
            assert self.holders.setdefault(sandbox, owner) == owner, "two holders of %s" % sandbox
            kept = until(lambda: (lambda r: r.status == 200 and r)(self.server.admin().get("/v1/admin/sandboxes/" + sandbox)), "the record").json
            assert kept["allocated_to_track"] == owner, kept
            if facts["marked"]:
                assert kept["status"] == "pending_deletion", kept
        else:
            got = until(lambda: (lambda r: r.status in (200, 201) and r)(track.allocate()), "a claim when nothing fails any more").json
            assert self.holders.setdefault(got["sandbox_id"], owner) == owner, "two holders of %s" % got["sandbox_id"]
        if facts["lease"]:
            lease = admin.data("GET", "/leases/" + facts["lease"])
            assert lease["status"] == "ApprovalDenied" or not facts["denied"], lease


def is_want(status, said):
    """It ended for want of memory or of something else that the system gives; libraries abort by themselves, and only the sentence about that is ours."""
    return status == -signal.SIGABRT and bool(re.search("out of memory, or over another limit|memory or threads are used up", said))


def is_lost_flush(status, said):
    """Pages counted as moved into the database file before, while a reader was at work: docs/decisions/0094-a-short-log.md."""
    return status == -signal.SIGABRT and "the database file could not be flushed" in said


def points(calls):
    if SLICES:
        return range(1 + SLICE, calls + 1, SLICES) if calls >= 2 * SLICES else range(1, calls + 1)
    return range(1, calls + 1) if not POINTS else sorted(random.Random(SEED).sample(range(1, calls + 1), min(POINTS, calls)))


@pytest.fixture(scope="module")
def tortured(make_for_module, failing_calls):
    return Tortured(make_for_module, failing_calls)


# No request opens a file, or what a loop waits with.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("open", "wait")])
def test_a_call_that_fails_costs_an_answer_at_most(tortured, kind):
    t = tortured
    t.check(t.round())  # the first one asks for more, once
    t.fault.arm(kind, FOREVER)
    facts = t.round()
    calls = FOREVER - t.fault.left
    t.fault.disarm()
    t.check(facts)
    assert calls > 0, "no call of this kind"
    before = t.fault.failed
    for n in points(calls):
        failed = t.fault.failed
        t.fault.arm(kind, n)
        told = [t.round()]
        while t.fault.failed == failed and len(told) < 3:  # how many calls a round takes depends on what happens beside it
            told.append(t.round())
        t.fault.disarm()
        t.revive(kind)
        try:
            for facts in told:
                t.check(facts)
        except AssertionError as e:
            raise AssertionError("%s, call %d of %d: %s" % (kind, n, calls, e)) from e
    assert t.fault.failed > before, "nothing failed"
    print("%s: %d calls a round, %d failed, %d ends of the server" % (kind, calls, t.fault.failed - before, t.deaths))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "accept"])
def test_a_start_with_a_call_that_fails_succeeds_or_is_refused_with_a_sentence(make, failing_calls, kind):
    fault = Fault(make.folder / "fault")
    server = make.server(20, LD_PRELOAD=str(failing_calls), FAILCALL_FILE=str(fault.path))
    assert server.stop() == 0
    fault.arm(kind, FOREVER)
    server.start()
    calls = FOREVER - fault.left
    fault.disarm()
    assert server.stop() == 0
    refused = 0
    for n in points(calls):
        fault.arm(kind, n)
        got = server.try_start()
        fault.disarm()
        if got:
            status, said = got
            assert said.startswith("leasehold: ") and (status == 1 or is_want(status, said)), (kind, n, calls, status, said[-2000:])
            refused += 1
        else:  # the call may also have come right behind the start
            status, said = server.stop(), "".join(server.errors)
            assert status == 0 or is_want(status, said), (kind, n, calls, status, said[-2000:])
            server.said.clear()
    print("%s: %d calls a start, %d tried, %d refused" % (kind, calls, len(points(calls)), refused))
    server.start().wait_available(20)


def test_the_store_is_sound_afterwards(tortured):
    assert tortured.server.stop() == 0
    tortured.server.check_store()
