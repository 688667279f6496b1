# SPDX-License-Identifier: Apache-2.0
"""kill -9 at a random moment, again and again on the same data: what was acknowledged is there, nothing is lent twice.

LEASEHOLD_CRASH_ROUNDS and LEASEHOLD_CRASH_SEED make longer and other runs, here and in the other files of kills.
"""

import os
import random
import threading
import time

from lib.crowd import Background, together
from lib.history import Recorder, judge
from lib.http import Broken
from lib.wait import until

CALLERS, NEW_PER_ROUND = 64, 4
ROUNDS = int(os.environ.get("LEASEHOLD_CRASH_ROUNDS", "40"))
SEED = int(os.environ.get("LEASEHOLD_CRASH_SEED", "20261115"))
STOCK = CALLERS * ROUNDS * NEW_PER_ROUND + 1000


class Caller:
    """One caller: new tracks, repeats and marks, until the server is gone. Its tracks are nobody else's."""

    def __init__(self, number, record):
        self.number, self.record = number, record
        self.rng = random.Random(SEED * 1000 + number)
        self.made = 0
        self.told = {}  # owner: sandbox, acknowledged
        self.marked = {}  # owner: True when the mark was acknowledged, False when nobody knows

    def round(self, server, end):
        """Returns the owners that were told something in this round."""
        seen, new = set(), 0
        try:
            while not end.is_set():
                if new < NEW_PER_ROUND:
                    new += 1
                    self.made += 1
                    owner = "crash-%d-%d" % (self.number, self.made)
                elif self.told:
                    owner = self.rng.choice(list(self.told))
                else:
                    owner = "crash-%d-%d" % (self.number, self.made)
                self.turn(server, owner, seen)
        except (Broken, OSError):
            pass
        return seen

    def turn(self, server, owner, seen):
        track = server.track(owner, retry=False)
        try:
            sandbox = self.told.get(owner)
            if sandbox and owner not in self.marked and self.rng.random() < 0.3:
                self.marked[owner] = False
                reply = self.record.mark(owner, sandbox, lambda: track.mark(sandbox))
                assert reply.status == 200, reply
                self.marked[owner] = True
            elif owner not in self.marked:
                reply = self.record.claim(owner, track.allocate)
                assert reply.status in (200, 201), reply
                self.told[owner] = reply.json["sandbox_id"]
            else:
                reply = track.show(sandbox)
                assert reply.status == 200, reply
            seen.add(owner)
        finally:
            track.close()

    def check(self, server, owners):
        """What was told is still so."""
        for owner in owners:
            if owner not in self.told:
                continue
            track = server.track(owner)
            reply = track.show(self.told[owner])
            track.close()
            assert reply.status == 200, "%s lost %s: %r" % (owner, self.told[owner], reply)
            assert reply.json["status"] in self.allowed(owner), (owner, reply)
            assert reply.json["allocated_to_track"] == owner

    def allowed(self, owner):
        if owner not in self.marked:
            return ("allocated",)
        return ("pending_deletion",) if self.marked[owner] else ("allocated", "pending_deletion")


def one_round(server, callers, record, rng):
    """Load, and a kill in the middle of it: after so many calls, however long they take. Returns what each caller was told."""
    end, enough = threading.Event(), len(record.ops) + rng.randrange(20, 250)
    work = [Background(c.round, server, end) for c in callers]
    until(lambda: len(record.ops) >= enough, "the moment to die", pause=0.001)
    server.kill()
    end.set()
    return [w.result(60) for w in work]


def test_nothing_acknowledged_is_lost_and_nothing_is_lent_twice(make):
    rng = random.Random(SEED)
    server = make.server(STOCK)
    # Cleanup would delete what was marked, and with it the proof.
    assert server.admin().act("jobs/cleanup/pause").status == 200
    record = Recorder()
    callers = [Caller(n, record) for n in range(CALLERS)]

    for number in range(ROUNDS):
        seen = one_round(server, callers, record, rng)
        if number % 2:
            server.check_store()
        server.start()
        if not number % 2:
            server.check_store()
        together(8, lambda n: [callers[c].check(server, seen[c]) for c in range(n, CALLERS, 8)])

    assert judge(record.ops) == []
    claims = [op for op in record.ops if op.is_claimed and op.status == 201]
    assert len(claims) > ROUNDS * 20, "too little happened to mean something"
    assert any(not op.is_answered for op in record.ops), "no kill hit a request under way"

    # All rounds together: nobody's sandbox went away or to somebody else later.
    told = {s: (o, c) for c in callers for o, s in c.told.items()}
    assert len(told) == sum(len(c.told) for c in callers)
    admin = server.admin()
    stored = {s["sandbox_id"]: s for status in ("allocated", "pending_deletion") for s in admin.everything(status)}
    for sandbox, (owner, caller) in told.items():
        assert stored[sandbox]["allocated_to_track"] == owner
        assert stored[sandbox]["status"] in caller.allowed(owner)
    live = [s["allocated_to_track"] for s in stored.values() if s["status"] == "allocated"]
    assert len(live) == len(set(live)), "one live sandbox per track"
    assert admin.stats()["total"] == STOCK
    assert server.stop() == 0
    server.check_store()
    print("%d kills among callers, %d calls" % (ROUNDS, len(record.ops)))


def test_a_kill_during_the_first_sync_leaves_a_store_that_goes_on(make):
    rng = random.Random(SEED)
    server = make.server(3000, start=False)
    for _ in range(6):
        server.start()
        begin, moment = time.monotonic(), rng.uniform(0, 0.08)
        until(lambda: time.monotonic() - begin > moment, "the moment to die", 5, 0.002)
        server.kill()
    server.start()
    server.wait_available(3000)
    assert server.admin().stats()["total"] == 3000
    server.check_store()


def test_a_kill_during_cleanup_neither_loses_nor_revives(make, new_owner):
    csp = make.csp(60)
    server = make.server(csp=csp, LEASEHOLD_DELETION_BACKOFF_SEC=0)
    csp.keeps_deleted = True
    csp.delete_delay = 0.02
    given = []
    for _ in range(40):
        track = server.track(new_owner())
        given.append(track.claim()["sandbox_id"])
        assert track.mark(given[-1]).status == 200
        track.close()
    assert server.admin().act("cleanup", headers={"Prefer": "respond-async"}).status == 202
    until(lambda: len(csp.deletes()) > 10, "some are deleted")
    server.kill()
    server.start()
    csp.delete_delay = 0
    admin = server.admin()
    until(lambda: admin.run("cleanup") and admin.stats()["pending_deletion"] == 0, "the rest is deleted")
    admin.run("sync")
    assert admin.stats() == {
        "total": 20,
        "available": 20,
        "allocated": 0,
        "pending_deletion": 0,
        "stale": 0,
        "quarantined": 0,
        "deletion_failed": 0,
        "waiting": 0,
    }
    assert {csp.uuid_of(s) for s in given} == csp.deleted
