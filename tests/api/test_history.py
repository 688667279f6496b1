# SPDX-License-Identifier: Apache-2.0
"""Many callers at once with everything going on, judged by nothing but the answers they got; and the judge itself."""

import random
import threading
import time
from collections import Counter

import pytest

from lib.crowd import Background
from lib.history import Op, Recorder, judge
from lib.http import Broken
from lib.wait import until

CALLERS, TRACKS, SECONDS = 64, 48, 8.0
HOUR = 3600


# The judge.


def claim(track, sandbox, begin, end, status=201, expires_at=1e12):
    return Op("claim", track, begin, end, status, sandbox, expires_at)


def mark(track, sandbox, begin, end, status=200):
    return Op("mark", track, begin, end, status, sandbox)


GOOD = {
    "a life": [claim("a", "1", 0, 1), claim("a", "1", 2, 3, 200), mark("a", "1", 4, 5), claim("a", "2", 6, 7)],
    "two tracks": [claim("a", "1", 0, 1), claim("b", "2", 0, 1)],
    "nothing free": [claim("a", None, 0, 1, 409), claim("a", "1", 2, 3)],
    "a repeat during a mark may go either way": [claim("a", "1", 0, 1), mark("a", "1", 2, 5), claim("a", "2", 3, 4)],
    "a mark without an answer may have worked": [
        claim("a", "1", 0, 1),
        mark("a", "1", 2, None, None),
        claim("a", "2", 3, 4),
    ],
    "a mark without an answer may not have worked": [
        claim("a", "1", 0, 1),
        mark("a", "1", 2, None, None),
        claim("a", "1", 3, 4, 200),
    ],
    "a claim without an answer, found later": [Op("claim", "a", 0), claim("a", "1", 2, 3, 200)],
    "claims at once": [claim("a", "1", 0, 5, 200), claim("a", "1", 1, 4)],
    "a new one after the end": [claim("a", "1", 0, 1, 201, 100), claim("a", "2", 102, 103)],
    "two marks at once, the later is served first": [
        claim("a", "1", 0, 1),
        mark("a", "1", 2, 9, 404),
        mark("a", "1", 3, 4),
    ],
    "a mark that comes too late": [claim("a", "1", 0, 1, 201, 100), mark("a", "1", 98, 103, 403)],
    "refused for a while": [claim("a", "1", 0, 1), Op("claim", "a", 2, 3, 503), mark("a", "1", 4, 5, 503)],
}

BAD = {
    "one sandbox, two tracks": ("was given to", [claim("a", "1", 0, 1), claim("b", "1", 2, 3)]),
    "one sandbox, two tracks, in turn": (
        "was given to",
        [claim("a", "1", 0, 1), mark("a", "1", 2, 3), claim("b", "1", 4, 5)],
    ),
    "another track by a repeat": ("was given to", [claim("a", "1", 0, 1), claim("b", "1", 2, 3, 200)]),
    "new twice": ("newly claimed 2", [claim("a", "1", 0, 1), claim("a", "1", 2, 3, 201)]),
    "two live": ("at once", [claim("a", "1", 0, 1), claim("a", "2", 2, 3)]),
    "two live from claims at once": ("at once", [claim("a", "1", 0, 3), claim("a", "2", 1, 4)]),
    "a repeat gets another": (
        "but its claim gave",
        [claim("a", "1", 0, 1), claim("a", "2", 2, 3, 200), mark("a", "1", 4, 5)],
    ),
    "a holder is sent away": ("but its claim gave", [claim("a", "1", 0, 1), claim("a", None, 2, 3, 409)]),
    "a repeat is called new": ("but its claim gave", [claim("a", "1", 0, 1, 200), claim("a", "1", 2, 3, 201)]),
    "given back and back again": (
        "given it again",
        [claim("a", "1", 0, 1), mark("a", "1", 2, 3), claim("a", "1", 4, 5, 200)],
    ),
    "a new one before the end": ("at once", [claim("a", "1", 0, 1, 201, 100), claim("a", "2", 50, 51)]),
    "an owner may not give back": ("its mark gave 403", [claim("a", "1", 0, 1), mark("a", "1", 2, 3, 403)]),
    "an owner may not give back, later the other may": (
        "its mark gave 404",
        [claim("a", "1", 0, 1), mark("a", "1", 2, 3, 404), mark("a", "1", 4, 5)],
    ),
    "the end moves": ("different ends", [claim("a", "1", 0, 1, 201, 100), claim("a", "1", 2, 3, 200, 200)]),
}


@pytest.mark.parametrize("name", GOOD)
def test_the_judge_lets_pass(name):
    assert judge(GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_the_judge_finds(name):
    what, ops = BAD[name]
    assert any(what in sentence for sentence in judge(ops)), judge(ops)


def test_the_judge_does_not_depend_on_the_order_of_the_record():
    for name, (what, ops) in BAD.items():
        for seed in range(5):
            mixed = list(ops)
            random.Random(seed).shuffle(mixed)
            assert any(what in sentence for sentence in judge(mixed)), name


# The run.


class Run:
    """Callers, jobs and a vendor whose stock changes, for some seconds."""

    def __init__(self, server, csp, owners, seed):
        self.server, self.csp, self.owners, self.seed = server, csp, owners, seed
        self.record = Recorder()
        self.held = {}  # owner: the sandbox it was told last
        self.end = threading.Event()
        self.strange = []

    def caller(self, number):
        rng = random.Random(self.seed * 1000 + number)
        tracks = {}
        while not self.end.is_set():
            owner = rng.choice(self.owners)
            if owner not in tracks:
                if len(tracks) > 4:
                    tracks.popitem()[1].close()
                tracks[owner] = self.server.track(owner, retry=False)
            self.turn(rng, tracks[owner], owner)
        for track in tracks.values():
            track.close()

    def turn(self, rng, track, owner):
        sandbox = self.held.get(owner)
        try:
            if sandbox and rng.random() < 0.25:
                reply = self.record.mark(owner, sandbox, lambda: track.mark(sandbox))
                allowed = (200, 403, 404, 409)
            else:
                wait = rng.choice((None, None, None, 0, 1))
                key = rng.choice((None, "key-%d" % rng.randrange(5)))
                reply = self.record.claim(owner, lambda: track.allocate(wait=wait, key=key))
                allowed = (200, 201, 409)
                if reply.status in (200, 201):
                    self.held[owner] = reply.json["sandbox_id"]
        except (Broken, OSError) as e:
            self.strange.append("no answer: %s" % e)
            return
        if reply.status not in allowed:
            self.strange.append(reply)

    def job(self, what):
        admin = self.server.admin()
        while not self.end.is_set():
            reply = admin.act(what)
            if reply.status not in (200, 503):
                self.strange.append(reply)

    def vendor(self):
        """The stock grows, and a few accounts vanish from the listing and come back."""
        rng = random.Random(self.seed)
        sync = self.server.admin()
        while not self.end.is_set():
            self.csp.add(rng.randrange(1, 12))
            with self.csp.lock:
                some = rng.sample(sorted(self.csp.accounts), 3)
                self.csp.hidden = {str(self.csp.accounts[u]["csp_id"]) for u in some}
            reply = sync.act("sync")
            if reply.status not in (200, 503):
                self.strange.append(reply)

    def is_worth_judging(self):
        ops = list(self.record.ops)
        often = Counter((op.kind, op.status) for op in ops)
        told = {op.sandbox for op in ops if op.is_claimed}
        return min(often["claim", 201], often["claim", 200], often["mark", 200]) > 50 and len(told) > 100 and len(self.csp.deleted) > 20

    def go(self, seconds):
        work = [Background(self.caller, n) for n in range(CALLERS)]
        work += [
            Background(self.vendor),
            Background(self.job, "cleanup"),
            Background(self.job, "expire"),
            Background(self.job, "sync"),
        ]
        begin = time.monotonic()
        until(lambda: time.monotonic() - begin > seconds and self.is_worth_judging(), "the run, with enough in it", 180, 0.2)
        self.end.set()
        for w in work:
            w.result(60)


def test_64_callers_with_everything_going_on(make):
    csp = make.csp(200)
    env = {
        "GRACE_PERIOD_MINUTES": 0,
        "LAB_DURATION_HOURS": 1,
        "LEASEHOLD_DELETION_BACKOFF_SEC": 0,
        "CIRCUIT_BREAKER_THRESHOLD": 1000,
    }
    server = make.server(csp=csp, **env)
    owners = ["track-h%d" % n for n in range(TRACKS)]

    # Half of the tracks begin with a sandbox whose time ends in the middle of the run.
    early = {o: server.track(o).claim()["sandbox_id"] for o in owners[: TRACKS // 2]}
    server.stop()
    for n, sandbox in enumerate(early.values()):
        server.age_allocation(sandbox, HOUR - 3 - n % 5)
    server.start()

    run = Run(server, csp, owners, seed=20261)
    run.go(SECONDS)

    ops = run.record.ops
    assert run.strange == []
    assert judge(ops) == []
    assert set(early.values()) & {op.sandbox for op in ops if op.is_claimed}, "the early ones were seen"
    # What the server says about itself agrees with what it told.
    now = {s["sandbox_id"]: s["allocated_to_track"] for s in server.admin().everything("allocated")}
    assert len(set(now.values())) == len(now), "one live sandbox per track"
    assert server.stop() == 0
    server.check_store()
