# SPDX-License-Identifier: Apache-2.0
"""The store in trouble: quick and honest answers while it is away, no restart when it is back, and claims that stay
right whatever it says or forgets to say."""

import random
import threading
import time

import pytest

from lib.crowd import Background, together
from lib.history import Recorder, judge
from lib.http import Broken
from lib.wait import until

PROMPT = 15.0  # seconds; a store that hangs does so for 60, and a transaction has 2
BACK_WITHIN = 60.0
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem")


def away_stopped(proxy):
    proxy.stop()
    return proxy.start


def away_hanging(proxy):
    proxy.fault("hang", seconds=60)

    def back():
        proxy.clear()
        proxy.stop()  # those that still hang are let go
        proxy.start()

    return back


def away_failing(proxy):
    proxy.fault("error")
    return proxy.clear


AWAY = {"stopped": away_stopped, "hanging": away_hanging, "failing": away_failing}


def timed(call):
    begin = time.monotonic()
    reply = call()
    return reply, time.monotonic() - begin


def assert_unavailable(reply, took, most=PROMPT):
    assert reply.status == 503 and reply.code == "SERVICE_UNAVAILABLE", reply
    assert int(reply.header("Retry-After")) >= 1
    assert reply.error["retry_after"] == int(reply.header("Retry-After"))
    assert took < most, "took %.2f s" % took


@pytest.mark.parametrize("how", AWAY)
def test_without_the_store_answers_are_prompt_and_with_it_claims_go_on(make, store, proxy, nodes, new_owner, how):
    (node,) = nodes(1, make.csp(40), via=proxy)
    holder = node.track(new_owner())
    held = holder.claim()["sandbox_id"]
    assert node.client().get("/readyz").status == 200

    back = AWAY[how](proxy)
    calls = {
        "allocate": lambda: node.track(new_owner()).allocate(),
        "repeat": holder.allocate,
        "show": lambda: holder.show(held),
        "mark": lambda: holder.mark(held),
        "list": lambda: node.admin().list(),
        "stats": lambda: node.admin().get("/v1/admin/stats"),
    }
    for _ in range(3):
        for call in calls.values():
            assert_unavailable(*timed(call))
    # Many at once are answered as promptly as one.
    for reply, took in together(32, lambda n: timed(lambda: node.track("many-%d" % n).allocate())):
        assert_unavailable(reply, took)

    healthy, took = timed(lambda: node.client().get("/healthz"))
    assert healthy.status == 200 and healthy.json["status"] == "healthy" and took < PROMPT
    ready, took = timed(lambda: node.client().get("/readyz"))
    assert ready.status == 503 and ready.json["status"] == "not_ready" and took < PROMPT
    assert ready.json["checks"]["store"] not in ("", "ok"), "it says why"

    pid = node.pid
    back()
    newcomer = node.track(new_owner())
    until(lambda: newcomer.allocate().status in (200, 201), "claims succeed again", BACK_WITHIN, 0.05)
    until(lambda: node.client().get("/readyz").status == 200, "it is ready again", BACK_WITHIN, 0.05)
    assert node.pid == pid and node.is_alive()
    # A mark that was answered with 503 may have happened or not; it did not where nothing was passed on.
    repeat = holder.allocate()
    assert (repeat.status, repeat.json["sandbox_id"]) == (200, held)
    assert all(len(h) == 1 for h in store.holders().values())


def test_a_node_started_without_the_store_serves_when_it_is_back(make, store, proxy, nodes, new_owner):
    csp = make.csp(5)
    (first,) = nodes(1, csp, via=proxy)
    settings = dict(first.env)
    assert first.stop() == 0
    proxy.stop()
    node = make.server(csp=csp, wait=False, **settings)
    assert node.client().get("/healthz").status == 200
    assert node.client().get("/readyz").status == 503
    assert_unavailable(*timed(lambda: node.track(new_owner()).allocate()))
    proxy.start()
    track = node.track(new_owner())
    until(lambda: track.allocate().status in (200, 201), "claims succeed", BACK_WITHIN, 0.05)
    until(lambda: node.client().get("/readyz").status == 200, "it is ready", BACK_WITHIN, 0.05)
    assert store.holders() == {track.owner: [track.claim()["sandbox_id"]]}


def test_while_an_index_is_filled_claims_are_asked_to_come_again(make, proxy, nodes, new_owner):
    """A table that gets an index for a newer version has none to read for minutes, or hours."""
    (node,) = nodes(1, make.csp(5), via=proxy)
    filling = proxy.fault("filling")
    track = node.track(new_owner())
    assert_unavailable(*timed(track.allocate))
    assert filling.hits
    proxy.clear()
    until(lambda: track.allocate().status in (200, 201), "claims succeed", BACK_WITHIN, 0.05)


def test_a_claim_under_way_when_the_store_goes_away_is_answered_promptly(make, proxy, nodes, new_owner):
    """Each call of a transaction had time for itself: slow ones and then one without an answer were more than a transaction's time."""
    (node,) = nodes(1, make.csp(5), via=proxy, LEASEHOLD_STORE_DEADLINE_MS=6000)
    track = node.track(new_owner())
    track.get("/healthz")  # its connection is there
    reads = proxy.fault("delay", operations=("GetItem", "Query"), seconds=2.7)
    proxy.fault("hang", operations=WRITES, seconds=60)
    assert_unavailable(*timed(track.allocate), most=10)  # 6 s; each for itself it was 11
    assert reads.hits, "it was under way"


def test_a_waiting_claim_outlives_an_outage_or_is_told(make, store, proxy, nodes, new_owner):
    csp = make.csp(1)
    (node,) = nodes(1, csp, via=proxy)
    node.track(new_owner()).claim()
    waiting = Background(node.track(new_owner()).allocate, wait=20)
    until(lambda: node.admin().stats()["waiting"] == 1, "it waits")
    proxy.stop()
    until(lambda: node.client().get("/readyz").status == 503, "the outage is seen", 5, 0.05)
    proxy.start()
    csp.add(1)
    until(lambda: node.client().get("/readyz").status == 200, "the store is back", BACK_WITHIN, 0.05)
    until(lambda: node.admin().act("sync").status == 200, "sync works again", 10, 0.1)
    reply = waiting.result(30)
    assert reply.status in (201, 503), reply
    assert sum(len(h) for h in store.holders().values()) == (2 if reply.status == 201 else 1)


def test_an_outage_in_the_middle_of_load_loses_nothing(make, store, proxy, nodes, new_owner):
    servers = nodes(2, make.csp(400), via=proxy)
    run = Load(servers, tracks=40)
    work = [Background(run.caller, n) for n in range(8)]
    for _ in range(3):
        known = len(run.told)
        until(lambda: len(run.told) >= min(40, known + 5) or run.turns > 400, "some claims", 20)
        proxy.stop()
        begin = time.monotonic()
        until(lambda: time.monotonic() - begin > 0.7, "a while", 2)
        proxy.start()
    run.finish(work)
    run.check(store)


# Faults that a store has on a normal day.

FAULTS = {
    "throttled": [("throttle", None, 0.25)],
    "500": [("error", None, 0.25)],
    "cut off before": [("drop", None, 0.2)],
    "happened but not told": [("lose", WRITES, 0.3)],
    "happened but told it failed": [("lose-500", WRITES, 0.3)],
    "conflicts": [("conflict", WRITES, 0.3)],
    "slow": [("delay", None, 0.3)],
    "an index that lags": [("stale", ("Query",), 0.8)],
    "everything": [
        ("throttle", None, 0.05),
        ("error", None, 0.05),
        ("drop", None, 0.05),
        ("lose", WRITES, 0.1),
        ("lose-500", WRITES, 0.1),
        ("conflict", WRITES, 0.1),
        ("delay", None, 0.1),
        ("stale", ("Query",), 0.5),
    ],
}


class Load:
    """Callers over a few tracks, so that repeats and marks meet; every answer is kept."""

    def __init__(self, servers, tracks):
        self.servers = servers
        self.owners = ["load-%d" % n for n in range(tracks)]
        self.record, self.end = Recorder(), threading.Event()
        self.told, self.turns, self.strange = {}, 0, []

    def caller(self, number):
        rng = random.Random(500 + number)
        while not self.end.is_set():
            owner = rng.choice(self.owners)
            track = rng.choice(self.servers).track(owner, retry=False)
            try:
                self.turn(rng, track, owner)
            except (Broken, OSError) as e:
                self.strange.append("no answer: %s" % e)
            finally:
                track.close()
            self.turns += 1

    def turn(self, rng, track, owner):
        sandbox = self.told.get(owner)
        if sandbox and rng.random() < 0.2:
            reply = self.record.mark(owner, sandbox, lambda: track.mark(sandbox))
        else:
            reply = self.record.claim(owner, track.allocate)
            if reply.status in (200, 201):
                self.told[owner] = reply.json["sandbox_id"]
        if reply.status not in (200, 201, 403, 404, 409, 503):
            self.strange.append(reply)

    def finish(self, work):
        self.end.set()
        for w in work:
            w.result(60)

    def check(self, store):
        """With the trouble over, each track asks once more; then answers and table must tell the same story."""
        final = {}
        for n, owner in enumerate(self.owners):
            track = self.servers[n % len(self.servers)].track(owner)

            def is_told():
                reply = self.record.claim(owner, track.allocate)
                if reply.status in (200, 201):
                    final[owner] = reply.json["sandbox_id"]
                return reply.status in (200, 201)

            until(is_told, "%s is answered" % owner, BACK_WITHIN, 0.05)
            track.close()
        assert self.strange == []
        assert judge(marks_with_a_doubt_are_unanswered(self.record.ops)) == []
        assert store.holders() == {o: [s] for o, s in final.items()}, "nothing is held that its holder was not told of"


def marks_with_a_doubt_are_unanswered(ops):
    """A 503 says that the store gave no word: what was asked may have happened."""
    for op in ops:
        if op.status == 503:
            op.end = op.status = None
    return ops


@pytest.mark.parametrize("name", FAULTS)
def test_claims_stay_right(make, store, proxy, nodes, name):
    servers = nodes(2, make.csp(600), via=proxy)
    faults = [
        proxy.fault(kind, operations, share=share, seconds=0.1, seed=n)
        for n, (kind, operations, share) in enumerate(FAULTS[name])
    ]
    run = Load(servers, tracks=16)
    work = [Background(run.caller, n) for n in range(8)]
    begin = time.monotonic()
    is_enough = lambda: all(f.hits > 3 for f in faults) and sum(op.is_claimed for op in list(run.record.ops)) > 30
    until(lambda: time.monotonic() - begin > 3 and is_enough(), "the run, with each fault some times", 120, 0.05)
    run.finish(work)
    proxy.clear()
    run.check(store)


def test_a_claim_whose_answer_was_lost_is_found_by_its_repeat(make, store, proxy, nodes, new_owner):
    (node,) = nodes(1, make.csp(30), via=proxy)
    for kind in ("lose", "lose-500"):
        for _ in range(10):
            owner = new_owner()
            fault = proxy.fault(kind, operations=WRITES, count=1)
            first = node.track(owner).allocate()
            proxy.clear()
            assert fault.hits == 1
            assert first.status in (200, 201, 503), first
            again = node.track(owner).claim()
            if first.status != 503:
                assert again["sandbox_id"] == first.json["sandbox_id"]
            assert store.holders()[owner] == [again["sandbox_id"]]
    assert len(store.holders()) == 20


def test_a_mark_whose_answer_was_lost_is_acknowledged_by_its_repeat(make, store, proxy, nodes, new_owner):
    (node,) = nodes(1, make.csp(12), via=proxy)
    for _ in range(5):
        track = node.track(new_owner())
        sandbox = track.claim()["sandbox_id"]
        proxy.fault("lose", operations=WRITES, count=1)
        assert track.mark(sandbox).status in (200, 503)
        proxy.clear()
        assert track.mark(sandbox).status == 200
        assert store.sandbox(sandbox)["status"] == "pending_deletion"


@pytest.mark.parametrize("kind", ["throttle", "error", "conflict", "drop"])
def test_a_single_hiccup_is_not_the_callers_business(make, proxy, nodes, new_owner, kind):
    (node,) = nodes(1, make.csp(30), via=proxy)
    for operations in (WRITES,) if kind == "conflict" else (WRITES, None):  # a read meets no conflict
        for _ in range(5):
            fault = proxy.fault(kind, operations=operations, count=1)
            assert node.track(new_owner()).allocate().status == 201
            proxy.clear()
            assert fault.hits == 1
