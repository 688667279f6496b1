# SPDX-License-Identifier: Apache-2.0
"""One flow, and every call of it disturbed once: its answer is lost, before or after it was done, or the server is killed at that very moment.

The calls are those of two undisturbed runs, one right after a start and one later, by service, operation and how often it came before: none is left out. Workers
share the cases; each has a front and a server of its own."""

import concurrent.futures
import itertools
import queue
import threading
from collections import Counter

from lib.aws_front import Front
from lib.ops import Ops
from lib.wait import until

LOST = ("cut_before", "cut_after")
KILLED = ("hold_before", "hold_after")
LOOKS = ("Describe", "List", "Get")
WORKERS = 12


def occurrences(entries, left_out=()):
    """(service, operation, how many of them came before) for each call."""
    seen, found = Counter(), []
    for entry in entries:
        key = (entry["service"], entry["operation"])
        if key not in left_out:
            found.append((*key, seen[key]))
            seen[key] += 1
    return found


class Flow:
    """What a flow must offer. One of them for each worker."""

    left_out = ()  # calls that come by themselves, as often as they like
    looks = None  # of each operation that only looks, so many are disturbed: where something is waited for, there are more or fewer of them each time

    def __init__(self, make, front):
        self.make, self.front, self.server = make, front, None

    def begin(self):
        """Start a server on the front's world."""
        raise NotImplementedError

    def run(self, account):
        """All of it, with one account, to its end. Must be content with a server that was killed meanwhile."""
        raise NotImplementedError

    def check(self, account, since):
        """What must be so afterwards. since: number of log entries before."""
        raise NotImplementedError

    def explain(self):
        """What may help whoever reads of a failure."""
        try:
            said = ["%s:%s %s %s %s" % (e["service"], e["operation"], e["status"], e["code"], e["fault"]) for e in self.front.log(since=max(0, self.front.count() - 60))
                    if e["operation"] != "ReceiveMessage"]
            said.append(str(Ops(self.server).read("sagas?state=running")["sagas"]))
            return "\n".join(said + [line.rstrip() for line in self.server.lines[-20:]])
        except Exception as e:  # pylint: disable=broad-except
            return "no more is known: %s" % e

    def end_jobs(self):
        """They run at the first start; then they shall not call by themselves any more."""
        ops = Ops(self.server)
        until(lambda: not any(j["running"] for j in ops.read("jobs")["jobs"]), "the jobs of the start are over", 120)
        for job in ops.read("jobs")["jobs"]:
            if job["name"] in ("reconcile", "account-drift", "directory-refresh", "cost-refresh"):
                assert ops.act("jobs/%s/pause" % job["name"]).status == 200

    def fresh(self):
        """An undisturbed server without anything in its memory, once the jobs of its start are over; its sessions have ended."""
        self.server.stop(120)
        self.server.start()
        self.front.do("sts", "expire")
        until(lambda: not any(j["running"] for j in Ops(self.server).read("jobs")["jobs"]), "its jobs are over", 120)
        since, counts = self.front.count(), []

        def is_quiet():
            counts.append(len(occurrences(self.front.log(since=since), self.left_out)))
            return len(counts) > 3 and counts[-4:] == counts[-1:] * 4

        until(is_quiet, "nothing is called any more", 120, 0.15)

    def calls(self, since):
        """Of a run, that began with so many entries in the log."""
        return occurrences(self.front.log(since=since), self.left_out)

    def disturb(self, kind, call):
        """From now on; answers by what it is known."""
        service, operation, before = call
        return self.front.fault(kind, service, operation, skip=before)

    def is_holding(self, number):
        return self.front.is_holding(number)

    def release(self, number):
        self.front.release(number)

    def end_disturbance(self, number):
        """How often it struck."""
        hits = self.front.hits(number)
        self.front.clear()
        return hits

    def revive(self, number, is_over):
        """Kill the server once the request is held, and start it again."""
        until(lambda: is_over.is_set() or self.is_holding(number), "the call is held", 300)
        if is_over.is_set():
            return
        self.server.kill()
        self.release(number)
        self.server.start(300)


def one(flow, account, case, kind):
    if case[3]:
        flow.fresh()
    since, is_over = flow.front.count(), threading.Event()
    number = flow.disturb(kind, case[:3])
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        killer = pool.submit(flow.revive, number, is_over) if kind in KILLED else None
        try:
            flow.run(account)
        except BaseException:
            if killer and killer.done():
                killer.result()  # a server that did not come back says more than who waited for it
            raise
        finally:
            is_over.set()
        if killer:
            killer.result(300)
    hits = flow.end_disturbance(number)
    flow.check(account, since)
    return hits


def work(flow, accounts, jobs, done):
    while True:
        try:
            case, kind = jobs.get_nowait()
        except queue.Empty:
            return
        try:
            # What was kept in memory may differ from the undisturbed run, so that the call did not come: then once more.
            done.append((case, kind, one(flow, next(accounts), case, kind) or one(flow, next(accounts), (*case[:3], True), kind)))
        except BaseException as e:
            raise AssertionError("%s at call %s: %s\n%s" % (kind, case, e, flow.explain())) from e


def undisturbed(flow, account):
    since = flow.front.count()
    flow.run(account)
    flow.check(account, since)
    return flow.calls(since)


def calls_of(flow, accounts):
    """Each call once: (service, operation, how many of them came before, whether it comes only after a start)."""
    flow.fresh()
    cold, warm = ([call for call in undisturbed(flow, next(accounts)) if flow.looks is None or call[2] < flow.looks or not call[1].startswith(LOOKS)]
                  for _ in range(2))
    count = {which: Counter(call[:2] for call in calls) for which, calls in (("cold", cold), ("warm", warm))}
    return [(*call, False) for call in warm] + [(*call, True) for call in cold if count["cold"][call[:2]] != count["warm"][call[:2]]]


def assert_all_struck(disturbed, kinds):
    """Each call of every run; and most of those that come after a start only, of which some come only sometimes."""
    calls, done = disturbed
    assert sorted(case for case, kind, _ in done if kind in kinds) == sorted(calls * len(kinds))
    missed = [(case, kind) for case, kind, hits in done if kind in kinds and not hits]
    cold = [case for case in calls if case[3]]
    assert not [case for case, _ in missed if not case[3]], missed
    assert len(missed) <= len(cold) * len(kinds) / 2, missed


def disturb_every_call(make, kind_of_flow):
    """The calls of the flow, and for each of them and each kind of disturbance how often it struck."""
    fronts = [Front() for _ in range(WORKERS)]
    try:
        flows = [kind_of_flow(make, front) for front in fronts]
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(lambda flow: flow.begin(), flows))
        accounts = [iter(flow.accounts()) for flow in flows]
        cases = calls_of(flows[0], accounts[0])
        jobs, done = queue.Queue(), []
        for job in itertools.product(cases, LOST + KILLED):
            jobs.put(job)
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for future in [pool.submit(work, flow, ids, jobs, done) for flow, ids in zip(flows, accounts)]:
                future.result()
        broken = [e for front in fronts for e in front.broken()]
        assert not broken, broken
        return cases, done
    finally:
        for front in fronts:
            front.clear()
            front.close()
