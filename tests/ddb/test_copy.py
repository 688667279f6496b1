# SPDX-License-Identifier: Apache-2.0
"""The way from one machine to many: `leasehold store copy --from sqlite:DIR --to dynamodb:` moves everything, says how
much in numbers and checksums that can be compared, and can be broken off and begun again."""

import re
import sqlite3
import subprocess

import pytest

from lib.dynamodb import Store
from lib.server import binary, clean_env
from lib.wait import until

STOCK = 300
FAR = 4000000000000  # ms: in the year 2096
WRITES = ("PutItem", "UpdateItem", "TransactWriteItems", "BatchWriteItem")


class Source:
    """A stopped server on sqlite with sandboxes in all states, tombstones, a paused job; and what it said of them."""

    def __init__(self, make):
        self.csp = make.csp(STOCK)
        self.server = node = make.server(csp=self.csp, DELETION_RETRY_MAX_ATTEMPTS=0)
        admin = node.admin()
        self.csp.delete_fault = 500
        self.give_back(4, "failed")
        assert admin.run("cleanup")["failed"] == 4
        self.csp.delete_fault = None
        self.csp.keeps_deleted = True
        self.gone = self.give_back(5, "gone")  # leave tombstones
        assert admin.run("cleanup")["deleted"] == 5
        self.pending = self.give_back(6, "pending")
        self.held = {"held-%d" % n: node.track("held-%d" % n).claim(key="key-%d" % n) for n in range(30)}
        free = [s["sandbox_id"] for s in admin.everything("available")]
        assert admin.on(free[0], "quarantine", body={"reason": "looks odd: \u00fcml\u00e4ut \"quoted\""}).status == 200
        self.csp.hidden = {*free[1:4]}
        assert admin.run("sync")["marked_stale"] == 3
        assert admin.act("jobs/cleanup/pause").status == 200
        self.records = {s["sandbox_id"]: self.bare(admin.record(s["sandbox_id"])) for s in admin.everything()}
        self.stats = admin.stats()
        assert node.stop() == 0
        self.add_kernel_records()

    def add_kernel_records(self):
        """What the kernel keeps, due in a far future; dead letters so long that a page of them is no one transaction."""
        with sqlite3.connect("%s/leasehold.db" % self.server.data) as db:
            db.executemany(
                "INSERT INTO timer (version, name, state, due_ms, type, subject, armed_ms)"
                " VALUES (1, ?, 0, ?, 't', 's', 1)",
                [("copied/%d" % n, FAR + n) for n in range(40)],
            )
            db.execute(
                'INSERT INTO lane (version, "key", queue, subject, event_id, head, tail, since_ms, due_ms, tries, fence)'
                " VALUES (1, 'q#copied', 'q', 'copied', 'e', 1, 1, ?, ?, 0, 0)",
                (FAR, FAR),
            )
            db.executemany(
                "INSERT INTO dead (version, id, queue, subject, event_id, event, tries, since_ms, died_ms)"
                " VALUES (1, ?, 'q', 's', 'e', ?, 8, 1, 2)",
                [("dead-%d" % n, '"' * (128 * 1024)) for n in range(30)],
            )
            names = [name.removesuffix("_row") for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
            self.counts = {name: db.execute('SELECT count(*) FROM "%s"' % name).fetchone()[0] for name in names}
        db.close()
        assert self.counts["sandbox"] == STOCK - 5 and self.counts["tombstone"] == 5 and self.counts["job"] == 5
        assert self.counts["dead"] >= 30 and len(self.counts) >= 14

    def give_back(self, count, name):
        given = []
        for n in range(count):
            track = self.server.track("%s-%d" % (name, n))
            given.append(track.claim()["sandbox_id"])
            assert track.mark(given[-1]).status == 200
            track.close()
        return given

    @staticmethod
    def bare(record):
        """How often a record was written is the store's own business."""
        return {k: v for k, v in record.items() if k != "version"}


@pytest.fixture(scope="module")
def source(make_for_module):
    return Source(make_for_module)


def arguments(source):
    return ["store", "copy", "--from", "sqlite:%s" % source.server.data, "--to", "dynamodb:"]


def assert_told(source, got):
    """A line for each kind of record: count and checksum of both sides, which agree. Returns {kind: checksum}."""
    assert got.returncode == 0, (got.stdout, got.stderr)
    sums = {}
    for kind, count in source.counts.items():
        line = next((l for l in got.stdout.splitlines() if l.split()[:1] == [kind]), "")
        assert re.findall(r"\b(\d+) records\b", line) == [str(count)] * 2, (kind, got.stdout)
        found = re.findall(r"\b[0-9a-f]{16}\b", line)
        assert len(found) == 2 and found[0] == found[1], (kind, got.stdout)
        sums[kind] = found[0]
    return sums


def assert_same(make, source, store):
    """A node on the new store says of every sandbox what the old one said, and goes on from there."""
    assert set(store.sandboxes()) == set(source.records)
    node = make.server(csp=source.csp, wait=False, **store.env)
    admin = node.admin()
    assert admin.job("cleanup")["paused"], "the pause came along"
    got = {s["sandbox_id"]: source.bare(admin.record(s["sandbox_id"])) for s in admin.everything()}
    for sandbox_id, record in source.records.items():
        assert without_sync(got[sandbox_id]) == without_sync(record)
    stats = admin.stats()
    assert {k: v for k, v in stats.items() if k != "waiting"} == {
        k: v for k, v in source.stats.items() if k != "waiting"
    }
    for owner, held in source.held.items():
        reply = node.track(owner).allocate()
        assert (reply.status, reply.json) == (200, held)
    admin.run("sync")
    listed = {s["sandbox_id"] for s in admin.everything()}
    assert not listed & set(source.gone), "what was used and deleted came back"
    newcomer = node.track("newcomer").claim()["sandbox_id"]
    assert source.records[newcomer]["status"] == "available"


def without_sync(record):
    """The node's own sync may have looked at it since."""
    return {k: v for k, v in record.items() if k not in ("last_synced", "updated_at")}


def test_everything_is_moved(make, source, store):
    got = store.run(*arguments(source))
    assert_told(source, got)
    for item in store.sandboxes().values():
        assert item["PK"] == "SBX#" + item["sandbox_id"]
        assert (item["allocated_at"] == 0) == (item["status"] in ("available", "stale"))
    (lane,) = [i for i in store.db.query(store.kernel, "Index1", "g1h", "lane.Due#q") if i["SK"] == "q#copied"]
    assert (lane["PK"], lane["due_ms"], int(lane["g1s"])) == ("lane", FAR, FAR + 2**63)
    timers = store.db.query(store.kernel, "Index1", "g1h", "timer.Due#0")
    assert [t["name"] for t in timers if t["due_ms"] >= FAR] == ["copied/%d" % n for n in range(40)]
    assert_same(make, source, store)


def test_a_second_copy_changes_nothing_and_says_the_same(source, store):
    first = assert_told(source, store.run(*arguments(source)))
    before = store.sandboxes()
    assert assert_told(source, store.run(*arguments(source))) == first
    assert store.sandboxes() == before


def test_a_copy_that_was_killed_is_finished_by_the_next(make, source, store, emulator, proxy):
    env = {**store.env, "DDB_ENDPOINT_URL": proxy.endpoint}
    proxy.fault("delay", operations=WRITES, seconds=0.05)
    for least in (1, 2, 3):
        proxy.forget()
        copy = subprocess.Popen(
            [binary(), *arguments(source)], env=clean_env(env), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            until(
                lambda: len(proxy.entries(*WRITES)) >= least or copy.poll() is not None, "it has begun to write", 20
            )
            assert copy.poll() is None, "it was too fast to be killed in the middle"
        finally:
            copy.kill()
            copy.wait()
    assert len(store.sandboxes()) < STOCK - 5, "it was killed before its end"
    proxy.clear()
    whole = assert_told(source, store.run(*arguments(source)))
    # The same checksum as that of a copy that nobody disturbed.
    other = Store(emulator.endpoint).create()
    assert assert_told(source, other.run(*arguments(source))) == whole
    other.drop()
    assert_same(make, source, store)


def test_a_copy_through_a_store_in_trouble_is_whole_or_says_that_it_is_not(source, store, proxy):
    proxy.fault("throttle", share=0.2, seed=1)
    proxy.fault("lose", operations=WRITES, share=0.1, seed=2)
    env = {"DDB_ENDPOINT_URL": proxy.endpoint}
    got = store.run(*arguments(source), **env)
    if got.returncode:
        assert got.stderr.strip(), "a failure is explained"
        proxy.clear()
        got = store.run(*arguments(source), **env)
    assert_told(source, got)
    assert set(store.sandboxes()) == set(source.records)


@pytest.mark.parametrize("from_, to", [("sqlite:/nowhere/at/all", "dynamodb:"), ("paper:", "dynamodb:"), (None, None)])
def test_a_copy_that_makes_no_sense_is_refused(store, from_, to):
    args = ["store", "copy"] + (["--from", from_, "--to", to] if from_ else [])
    got = store.run(*args)
    assert got.returncode != 0 and got.stderr.strip()
    assert store.db.count(store.pool) == 0
