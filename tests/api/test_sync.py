# SPDX-License-Identifier: Apache-2.0
"""The sync job against a vendor that behaves, and one that does not."""

import threading

import pytest

from lib.crowd import Background, Loop
from lib.fake_csp import TOKEN, account
from lib.wait import until


class Pool:
    def __init__(self, make, count, **env):
        self.csp = make.csp(count)
        self.server = make.server(csp=self.csp, **env)
        self.admin = self.server.admin()

    def sync(self, query=""):
        return self.admin.run("sync", query)

    def failed_sync(self):
        """A pass that must fail, and say so as documented."""
        reply = self.admin.act("sync")
        assert (reply.status, reply.code) == (503, "SERVICE_UNAVAILABLE"), reply
        assert int(reply.header("retry-after")) == reply.error["retry_after"] >= 1
        assert reply.error["message"]
        return reply

    def states(self):
        return {s["sandbox_id"]: s["status"] for s in self.admin.everything()}


@pytest.fixture
def pool(make):
    return Pool(make, 10)


def test_the_vendor_is_asked_with_its_token(pool):
    assert pool.csp.log[0] == ("GET", "/current_user/accounts", "Token " + TOKEN)


def test_a_pass_answers_with_the_documented_fields(pool):
    got = pool.sync()
    assert set(got) == {"status", "synced", "added", "restored", "marked_stale", "duration_ms"}
    assert got["status"] == "completed"
    assert (got["synced"], got["added"], got["restored"], got["marked_stale"]) == (10, 0, 0, 0)
    assert got["duration_ms"] >= 0


def test_new_accounts_become_available(pool):
    ids = pool.csp.add(3)
    got = pool.sync()
    assert (got["synced"], got["added"]) == (13, 3)
    assert all(pool.admin.record(i)["status"] == "available" for i in ids)


def test_what_is_no_active_sandbox_is_left_out(pool):
    pool.csp.add(1, account_type="admin")
    pool.csp.add(1, state="disabled")
    (wanted,) = pool.csp.add(1)
    got = pool.sync()
    assert got["added"] == 1
    assert pool.admin.stats()["total"] == 11
    assert pool.admin.record(wanted)["status"] == "available"


def test_accounts_without_number_or_name_are_still_usable(pool):
    item = account(5000)
    del item["csp_id"], item["name"]
    pool.csp.put(item)
    assert pool.sync()["added"] == 1
    found = [s for s in pool.admin.everything() if s["external_id"] == item["id"]]
    assert [(s["sandbox_id"], s["name"]) for s in found] == [(item["id"], "sandbox-" + item["id"])]


def test_an_account_that_cannot_be_used_does_not_spoil_the_others(pool):
    for number, odd in (
        (6001, {"csp_id": None, "id": None}),
        (6002, {"csp_id": "with blanks"}),
        (6003, {"csp_id": ["list"]}),
    ):
        pool.csp.accounts["odd-%d" % number] = account(number, **odd)
    (wanted,) = pool.csp.add(1)
    assert pool.sync()["added"] >= 1
    assert pool.admin.record(wanted)["status"] == "available"


def test_missing_ones_become_stale_and_come_back(pool):
    gone = {"100001", "100002"}
    pool.csp.hidden = gone
    assert pool.sync()["marked_stale"] == 2
    assert {i for i, s in pool.states().items() if s == "stale"} == gone
    assert pool.admin.record("100001")["quarantine_reason"] is None
    pool.csp.hidden = set()
    got = pool.sync()
    assert (got["restored"], got["added"], got["marked_stale"]) == (2, 0, 0)
    assert set(pool.states().values()) == {"available"}


def test_stale_ones_are_not_claimed(make, new_owner):
    pool = Pool(make, 4)
    pool.csp.hidden = {"100000"}
    pool.sync()
    got = {pool.server.track(new_owner()).claim()["sandbox_id"] for _ in range(3)}
    assert "100000" not in got
    assert pool.server.track(new_owner()).allocate().status == 409


def test_allocated_and_pending_ones_are_never_touched(make, new_owner):
    pool = Pool(make, 4)
    pool.admin.act("jobs/cleanup/pause")
    holder, giver = pool.server.track(new_owner()), pool.server.track(new_owner())
    held, given = holder.claim()["sandbox_id"], giver.claim()["sandbox_id"]
    giver.mark(given)
    for name in (held, given):
        pool.csp.rename(name, "renamed")
    before = [pool.admin.record(i) for i in (held, given)]
    pool.sync()
    pool.csp.hidden = {held, given}
    pool.sync()
    after = [pool.admin.record(i) for i in (held, given)]
    for one, two in zip(before, after):
        for field in (
            "status",
            "name",
            "allocated_to_track",
            "allocated_at",
            "deletion_requested_at",
            "lab_duration_hours",
        ):
            assert one[field] == two[field], field
    assert holder.allocate().json["sandbox_id"] == held


def test_a_rename_is_followed(pool, owner):
    pool.csp.rename("100004", "gold-1")
    pool.sync()
    assert pool.admin.record("100004")["name"] == "gold-1"
    got = pool.server.track(owner).claim(prefix="gold-")
    assert (got["sandbox_id"], got["name"]) == ("100004", "gold-1")


def test_a_rename_while_stale_is_followed(pool):
    pool.csp.hidden = {"100004"}
    pool.sync()
    pool.csp.hidden = set()
    pool.csp.rename("100004", "gold-2")
    pool.sync()
    record = pool.admin.record("100004")
    assert (record["status"], record["name"]) == ("available", "gold-2")


def test_quarantined_ones_are_not_brought_back(pool):
    assert pool.admin.on("100003", "quarantine", body={"reason": "smells"}).status == 200
    assert pool.sync()["restored"] == 0
    record = pool.admin.record("100003")
    assert (record["status"], record["quarantine_reason"]) == ("stale", "smells")


# Trouble at the vendor.


@pytest.mark.parametrize(
    "fault", [400, 401, 403, 404, 429, 500, 502, 503, "drop", "html", "html500", "garbage", "no-results", "truncated"]
)
def test_a_vendor_in_trouble_is_503_and_changes_nothing(pool, fault):
    before = pool.states()
    pool.csp.list_fault = fault
    pool.failed_sync()
    assert pool.states() == before
    job = pool.admin.job("sync")
    assert job["last_outcome"] == "error" and job["last_error"]
    pool.csp.list_fault = None
    assert pool.sync()["synced"] == 10
    job = pool.admin.job("sync")
    assert job["last_outcome"] == "success" and not job["last_error"]


def test_an_empty_listing_is_503_and_changes_nothing(pool):
    before = pool.states()
    pool.csp.is_empty = True
    pool.failed_sync()
    assert pool.states() == before


def test_an_empty_listing_is_refused_even_with_force(pool):
    before = pool.states()
    pool.csp.is_empty = True
    assert pool.admin.act("sync", "?force=true").status == 503
    assert pool.states() == before


def test_a_slow_vendor_is_given_up(make):
    pool = Pool(make, 3, CSP_TIMEOUT_READ_SEC=1)
    pool.csp.gate = threading.Event()
    pool.failed_sync()
    pool.csp.gate.set()
    assert pool.admin.stats()["available"] == 3


def test_a_vendor_that_is_away_is_503(make):
    pool = Pool(make, 3)
    pool.csp.vanish()
    pool.failed_sync()
    assert pool.admin.stats()["available"] == 3


def test_claims_go_on_while_the_vendor_is_in_trouble(pool, new_owner):
    pool.csp.list_fault = 500
    pool.failed_sync()
    assert pool.server.track(new_owner()).allocate().status == 201


# Too many missing at once.


def test_too_many_missing_is_503_and_marks_nothing(pool):
    pool.csp.hidden = {"100000", "100001", "100002"}
    pool.failed_sync()
    assert set(pool.states().values()) == {"available"}


def test_force_lifts_the_limit_for_one_pass(pool):
    pool.csp.hidden = {"10000%d" % n for n in range(6)}
    assert pool.sync("?force=true")["marked_stale"] == 6
    pool.csp.hidden = {"10000%d" % n for n in range(9)}
    pool.failed_sync()


def test_as_many_as_the_limit_may_go(make):
    pool = Pool(make, 8)
    pool.csp.hidden = {"100000", "100001"}
    assert pool.sync()["marked_stale"] == 2


def test_one_may_always_go(make):
    pool = Pool(make, 2)
    pool.csp.hidden = {"100000"}
    assert pool.sync()["marked_stale"] == 1


def test_the_limit_is_a_share_of_the_free_ones(make, new_owner):
    pool = Pool(make, 12)
    for _ in range(6):
        pool.server.track(new_owner()).claim()
    free = [s["sandbox_id"] for s in pool.admin.everything("available")]
    pool.csp.hidden = set(free[:2])
    pool.failed_sync()
    pool.csp.hidden = set(free[:1])
    assert pool.sync()["marked_stale"] == 1


def test_the_limit_can_be_set(make):
    pool = Pool(make, 10, LEASEHOLD_SYNC_MAX_STALE_PERCENT=60)
    pool.csp.hidden = {"10000%d" % n for n in range(6)}
    assert pool.sync()["marked_stale"] == 6


# Tombstones.


def test_a_deleted_one_that_is_still_listed_does_not_come_back(pool, new_owner):
    pool.csp.keeps_deleted = True
    track = pool.server.track(new_owner())
    used = track.claim()["sandbox_id"]
    track.mark(used)
    assert pool.admin.run("cleanup")["deleted"] == 1
    assert pool.sync()["added"] == 0
    assert pool.admin.show(used).status == 404
    pool.server.restart()
    pool.admin = pool.server.admin()
    assert pool.sync()["added"] == 0
    assert pool.admin.show(used).status == 404


@pytest.mark.parametrize("status", ["allocated", "pending_deletion"])
def test_a_bulk_deleted_one_that_is_still_listed_does_not_come_back(pool, new_owner, status):
    pool.admin.act("jobs/cleanup/pause")
    track = pool.server.track(new_owner())
    used = track.claim()["sandbox_id"]
    if status == "pending_deletion":
        track.mark(used)
    removed = pool.admin.run("bulk-delete", "?status=" + status)["deleted"]
    assert removed == 1
    assert pool.sync()["added"] == 0
    assert pool.admin.stats()["total"] == 9


def test_a_bulk_deleted_one_that_was_never_lent_comes_back(pool, new_owner):
    used = pool.server.track(new_owner()).claim()["sandbox_id"]
    assert pool.admin.run("bulk-delete", "?status=available")["deleted"] == 9
    assert pool.admin.stats()["total"] == 1
    assert pool.sync()["added"] == 9
    assert pool.states()[used] == "allocated"


# Large.


def test_5000_accounts_while_claims_go_on(make, new_owner):
    csp = make.csp(200)
    server = make.server(csp=csp)
    csp.add(4800, "more")
    admin = server.admin()

    def claim():
        track = server.track(new_owner())
        reply = track.allocate()
        assert reply.status in (201, 409), reply
        if reply.status == 201:
            assert track.mark(reply.json["sandbox_id"]).status == 200
        track.close()

    with Loop(claim) as one, Loop(claim) as two:
        before = one.rounds + two.rounds
        run = Background(admin.run, "sync")
        until(run.is_done, "sync of 5000", 60, 0.02)
        meanwhile = one.rounds + two.rounds - before
    got = run.result()
    assert got["added"] == 4800
    assert got["synced"] >= 4800
    assert admin.stats()["total"] == 5000
    assert meanwhile > 6, "%d claims while sync ran: they wait for it" % meanwhile


def test_sync_back_to_back_never_undoes_a_claim(make, new_owner):
    csp = make.csp(300)
    server = make.server(csp=csp)
    claimed = {}
    with Loop(lambda: server.admin().run("sync")) as one, Loop(lambda: server.admin().run("sync")):
        while len(claimed) < 300:
            track = server.track(new_owner())
            got = track.claim()
            assert got["sandbox_id"] not in claimed
            claimed[got["sandbox_id"]] = track.owner
            track.close()
        until(lambda: one.rounds >= 3, "sync ran meanwhile", 20)
    now = {s["sandbox_id"]: s["allocated_to_track"] for s in server.admin().everything("allocated")}
    assert now == claimed
