# SPDX-License-Identifier: Apache-2.0
"""What callers were told, and a judge who believes nothing else.

An Op is one call: who, what, when it was sent (begin) and when its answer was there (end; None when no answer came, so
it may have happened or not). The judge reasons only from these times. A sandbox is *surely held* by a track from the
end of the first claim that returned it until the begin of the first mark for it (answered or not), or until its
expires_at. In that time, whatever order the server put things in, these must hold:

    1. one use:   a sandbox is in the answers of one track only, ever, and newly claimed (201) once only;
    2. one live:  a track does not surely hold two sandboxes at once;
    3. repeats:   a claim sent and answered while the track surely holds a sandbox returns that one, with 200;
    4. given back stays so: a claim sent after a mark was acknowledged does not return the marked one;
    5. a mark of a held one, sent and answered in time and with no other mark before or beside it, is acknowledged;
    6. expires_at of a sandbox never changes.
"""

import math
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Optional

SLACK = 1.5  # seconds: expires_at is in whole seconds, and clocks are read at different moments


@dataclass
class Op:
    kind: str  # "claim" or "mark"
    track: str
    begin: float
    end: Optional[float] = None
    status: Optional[int] = None
    sandbox: Optional[str] = None  # of a mark: the one it is for
    expires_at: float = math.inf

    @property
    def is_answered(self):
        return self.end is not None

    @property
    def is_claimed(self):
        return self.kind == "claim" and self.is_answered and self.status in (200, 201)


@dataclass
class Hold:
    track: str
    sandbox: str
    begin: float
    end: float


class Recorder:
    """Collects ops from many threads."""

    def __init__(self):
        self.ops = []
        self.lock = threading.Lock()

    def begin(self, kind, track, sandbox=None):
        op = Op(kind, track, time.time(), sandbox=sandbox)
        with self.lock:
            self.ops.append(op)
        return op

    def claim(self, track, send):
        """Record one claim; send() returns the reply or raises. Without an answer the op stays open."""
        op = self.begin("claim", track)
        reply = send()
        op.status = reply.status
        if reply.status in (200, 201):
            body = reply.json
            op.sandbox, op.expires_at = body["sandbox_id"], body["expires_at"]
        op.end = time.time()
        return reply

    def mark(self, track, sandbox, send):
        op = self.begin("mark", track, sandbox)
        reply = send()
        op.status = reply.status
        op.end = time.time()
        return reply


def holds(ops):
    """The sure holds, per track."""
    first, mark = {}, defaultdict(lambda: math.inf)
    for op in ops:
        key = (op.track, op.sandbox)
        if op.is_claimed and (key not in first or op.end < first[key].end):
            first[key] = op
        if op.kind == "mark":
            mark[key] = min(mark[key], op.begin)
    found = defaultdict(list)
    for (track, sandbox), op in first.items():
        end = min(mark[(track, sandbox)], op.expires_at - SLACK)
        if end > op.end:
            found[track].append(Hold(track, sandbox, op.end, end))
    return found


def judge(ops):
    """All violations as sentences; empty when the history is right."""
    ops = list(ops)
    held = holds(ops)
    return one_use(ops) + one_live(held) + repeats(ops, held) + given_back(ops) + marks(ops, held) + fixed_end(ops)


def one_use(ops):
    told, new, bad = defaultdict(set), defaultdict(int), []
    for op in ops:
        if op.is_claimed:
            told[op.sandbox].add(op.track)
            new[op.sandbox] += op.status == 201
    bad += ["sandbox %s was given to %s" % (s, sorted(t)) for s, t in told.items() if len(t) > 1]
    bad += ["sandbox %s was newly claimed %d times" % (s, n) for s, n in new.items() if n > 1]
    return bad


def one_live(held):
    bad = []
    for track, list_ in held.items():
        list_ = sorted(list_, key=lambda h: h.begin)
        latest = None
        for h in list_:
            if latest and h.begin < latest.end:
                bad.append("track %s held %s and %s at once" % (track, latest.sandbox, h.sandbox))
            if latest is None or h.end > latest.end:
                latest = h
    return bad


def repeats(ops, held):
    bad = []
    for op in ops:
        if op.kind != "claim" or not op.is_answered or op.status not in (200, 201, 409):
            continue
        for h in held.get(op.track, ()):
            if h.begin < op.begin and op.end < h.end and (op.status, op.sandbox) != (200, h.sandbox):
                bad.append("track %s held %s but its claim gave %s %s" % (op.track, h.sandbox, op.status, op.sandbox))
    return bad


def given_back(ops):
    acked, bad = {}, []
    for op in ops:
        if op.kind == "mark" and op.is_answered and op.status == 200:
            key = (op.track, op.sandbox)
            acked[key] = min(acked.get(key, math.inf), op.end)
    for op in ops:
        if op.is_claimed and op.begin > acked.get((op.track, op.sandbox), math.inf):
            bad.append("track %s gave %s back and was given it again" % (op.track, op.sandbox))
    return bad


def marks(ops, held):
    """A mark that was alone with a sure hold must be acknowledged (503, 429 and the like are not a verdict)."""
    sent, ends = defaultdict(list), {}
    for op in ops:
        if op.kind == "mark":
            sent[(op.track, op.sandbox)].append(op)
        elif op.is_claimed:
            ends[op.sandbox] = op.expires_at
    bad = []
    for track, list_ in held.items():
        for h in list_:
            for op in sent[(track, h.sandbox)]:
                alone = not any(o is not op and o.begin <= (op.end or math.inf) for o in sent[(track, h.sandbox)])
                in_time = op.is_answered and h.begin < op.begin and op.end < ends[h.sandbox] - SLACK
                if alone and in_time and op.status in (400, 401, 403, 404, 409):
                    bad.append("track %s held %s but its mark gave %d" % (track, h.sandbox, op.status))
    return bad


def fixed_end(ops):
    ends = defaultdict(set)
    for op in ops:
        if op.is_claimed:
            ends[op.sandbox].add(op.expires_at)
    return ["sandbox %s had different ends %s" % (s, sorted(e)) for s, e in ends.items() if len(e) > 1]
