# SPDX-License-Identifier: Apache-2.0
"""Quarantine and release, and removing records."""

import time

import pytest

from lib.wait import until


@pytest.fixture
def pool(make):
    csp = make.csp(6)
    server = make.server(csp=csp)
    server.csp = csp
    return server


@pytest.fixture
def admin(pool):
    return pool.admin()


def free_one(admin):
    return admin.list("?status=available&limit=1").json["sandboxes"][0]["sandbox_id"]


# Quarantine.


def test_quarantine_sets_aside_and_answers_the_record(pool, admin):
    sandbox = free_one(admin)
    reply = admin.on(sandbox, "quarantine", body={"reason": "broken network"})
    assert reply.status == 200
    assert (reply.json["status"], reply.json["quarantine_reason"]) == ("stale", "broken network")
    assert reply.json == admin.record(sandbox)
    assert admin.stats()["stale"] == 1


@pytest.mark.parametrize("kw", [{}, {"body": {}}, {"body": b""}])
def test_a_reason_is_optional_but_the_mark_is_there(admin, kw):
    reply = admin.on(free_one(admin), "quarantine", **kw)
    assert reply.status == 200
    assert reply.json["quarantine_reason"]


def test_a_reason_keeps_its_characters(admin):
    reason = 'naïve "quotes" \\ and \u20ac, tab\tnewline\n'
    sandbox = free_one(admin)
    assert admin.on(sandbox, "quarantine", body={"reason": reason}).json["quarantine_reason"] == reason
    assert admin.record(sandbox)["quarantine_reason"] == reason


def test_quarantine_survives_sync_and_restart(pool, admin):
    sandbox = free_one(admin)
    admin.on(sandbox, "quarantine", body={"reason": "r"})
    admin.run("sync")
    pool.restart()
    record = pool.admin().record(sandbox)
    assert (record["status"], record["quarantine_reason"]) == ("stale", "r")


def test_quarantined_ones_are_not_claimed(pool, admin, new_owner):
    aside = {free_one(admin)}
    for sandbox in aside:
        admin.on(sandbox, "quarantine")
    got = {pool.track(new_owner()).claim()["sandbox_id"] for _ in range(5)}
    assert not got & aside
    assert pool.track(new_owner()).allocate().status == 409


def test_quarantine_of_a_held_one_lets_the_track_claim_another(pool, admin, owner):
    track = pool.track(owner)
    first = track.claim()["sandbox_id"]
    assert admin.on(first, "quarantine").json["status"] == "stale"
    second = track.allocate()
    assert (second.status, second.json["sandbox_id"] != first) == (201, True)


def test_the_owner_of_one_set_aside_need_not_give_it_back(pool, admin, owner):
    track = pool.track(owner)
    sandbox = track.claim()["sandbox_id"]
    admin.on(sandbox, "quarantine")
    reply = track.mark(sandbox)
    assert (reply.status, reply.code) == (409, "CONFLICT")
    assert reply.error["message"] == (
        "sandbox %s was put in quarantine by an operator; there is nothing more for you to do" % sandbox
    )
    assert admin.record(sandbox)["status"] == "stale"


def test_an_unknown_one_cannot_be_set_aside_or_released(admin):
    for what in ("quarantine", "release"):
        reply = admin.on("no-such-sandbox", what)
        assert (reply.status, reply.code) == (404, "SANDBOX_NOT_FOUND")


# Release.


def test_release_of_a_never_claimed_one_is_available(pool, admin, new_owner):
    sandbox = free_one(admin)
    admin.on(sandbox, "quarantine")
    reply = admin.on(sandbox, "release")
    assert reply.status == 200
    assert (reply.json["status"], reply.json["quarantine_reason"]) == ("available", None)
    assert reply.json == admin.record(sandbox)
    assert sandbox in {pool.track(new_owner()).claim()["sandbox_id"] for _ in range(6)}


def test_release_of_a_claimed_one_is_pending_deletion(pool, admin, owner):
    sandbox = pool.track(owner).claim()["sandbox_id"]
    admin.on(sandbox, "quarantine")
    assert admin.on(sandbox, "release").json["status"] == "pending_deletion"
    assert admin.run("cleanup")["deleted"] == 1


def test_release_of_a_marked_one_is_pending_deletion(pool, admin, owner):
    """Whether a given back one may be set aside or not: it never becomes available."""
    track = pool.track(owner)
    sandbox = track.claim()["sandbox_id"]
    track.mark(sandbox)
    assert admin.on(sandbox, "quarantine").status in (200, 409)
    assert admin.on(sandbox, "release").status in (200, 409)
    assert admin.record(sandbox)["status"] == "pending_deletion"


def test_release_is_for_quarantined_ones_only(pool, admin, owner):
    held = pool.track(owner).claim()["sandbox_id"]
    pool.csp.hidden = {free_one(admin)}
    admin.run("sync")
    for sandbox in (held, free_one(admin), *pool.csp.hidden):
        before = admin.record(sandbox)
        reply = admin.on(sandbox, "release")
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert admin.record(sandbox) == before


# Removing stale records.


def stale_since(server, admin, hours):
    """Two stale ones, one of them quarantined, both for that long."""
    missing = free_one(admin)
    server.csp.hidden = {missing}
    admin.run("sync")
    aside = free_one(admin)
    admin.on(aside, "quarantine")
    server.stop()
    assert (
        server.sql(
            "UPDATE sandbox SET updated_at = ? WHERE sandbox_id IN (?, ?)",
            int(time.time() - hours * 3600),
            missing,
            aside,
        )
        == 2
    )
    server.start().settle()
    return missing, aside


def test_auto_delete_stale_removes_the_old_ones_but_not_the_quarantined(pool, admin):
    missing, aside = stale_since(pool, admin, 3)
    admin = pool.admin()
    got = admin.run("auto-delete-stale", "?grace_period_hours=4")
    assert (got["status"], got["deleted"], got["grace_period_hours"]) == ("completed", 0, 4)
    got = admin.run("auto-delete-stale", "?grace_period_hours=2")
    assert set(got) == {"status", "deleted", "grace_period_hours", "duration_ms"}
    assert (got["deleted"], got["grace_period_hours"]) == (1, 2)
    assert admin.show(missing).status == 404
    assert admin.record(aside)["status"] == "stale"
    assert pool.csp.deletes() == [], "removing a record never deletes at the vendor"


def test_auto_delete_stale_means_24_hours_when_nothing_is_said(pool, admin):
    missing, _ = stale_since(pool, admin, 23)
    admin = pool.admin()
    got = admin.run("auto-delete-stale")
    assert (got["deleted"], got["grace_period_hours"]) == (0, 24)
    assert admin.record(missing)["status"] == "stale"


def test_stale_removal_runs_by_itself(pool, admin):
    missing, aside = stale_since(pool, admin, 25)
    pool.restart(LEASEHOLD_STALE_INTERVAL_SEC=1)
    admin = pool.admin()
    until(lambda: admin.show(missing).status == 404, "the job removed it")
    assert admin.record(aside)["status"] == "stale"


@pytest.mark.parametrize("hours", [1, 8760])
def test_the_limits_of_the_grace_are_allowed(admin, hours):
    assert admin.run("auto-delete-stale", "?grace_period_hours=%d" % hours)["deleted"] == 0


# Bulk delete.


@pytest.mark.parametrize(
    "status,left", [("available", 2), ("allocated", 5), ("pending_deletion", 5), ("stale", 6), ("deletion_failed", 6)]
)
def test_bulk_delete_removes_one_state_and_never_asks_the_vendor(pool, admin, new_owner, status, left):
    holder, giver = pool.track(new_owner()), pool.track(new_owner())
    holder.claim()
    giver.mark(giver.claim()["sandbox_id"])
    asked = len(pool.csp.log)
    got = admin.run("bulk-delete", "?status=" + status)
    assert set(got) == {"status", "deleted", "duration_ms"}
    assert (got["status"], got["deleted"]) == ("completed", 6 - left)
    assert admin.stats()["total"] == left
    assert admin.stats()[status] == 0
    assert len(pool.csp.log) == asked


def test_bulk_delete_without_a_state_is_400_and_removes_nothing(admin):
    for query in ("", "?status=", "?status=everything", "?status=deleted"):
        reply = admin.act("bulk-delete", query)
        assert (reply.status, reply.code) == (400, "VALIDATION_ERROR"), query
    assert admin.stats()["total"] == 6


def test_after_bulk_delete_of_its_sandbox_a_track_may_claim_again(pool, admin, owner):
    track = pool.track(owner)
    first = track.claim()["sandbox_id"]
    admin.run("bulk-delete", "?status=allocated")
    assert track.show(first).code == "SANDBOX_NOT_FOUND"
    second = track.allocate()
    assert (second.status, second.json["sandbox_id"] != first) == (201, True)


# Deleting one.


@pytest.mark.parametrize("state", ["available", "allocated", "stale"])
def test_an_operator_has_one_sandbox_deleted(pool, admin, owner, state):
    sandbox = pool.track(owner).claim()["sandbox_id"] if state == "allocated" else free_one(admin)
    if state == "stale":
        assert admin.on(sandbox, "quarantine").status == 200
    reply = admin.on(sandbox, "delete")
    assert (reply.status, reply.json["status"], reply.json["quarantine_reason"]) == (200, "pending_deletion", None)
    assert reply.json == admin.record(sandbox)
    assert admin.run("cleanup")["deleted"] == 1
    assert admin.show(sandbox).status == 404
    assert sandbox not in pool.csp.accounts


def test_who_lost_his_sandbox_to_an_operator_gets_another(pool, admin, owner):
    track = pool.track(owner)
    sandbox = track.claim()["sandbox_id"]
    assert admin.on(sandbox, "delete").status == 200
    assert track.claim()["sandbox_id"] != sandbox


def test_what_waits_for_its_deletion_is_not_deleted_twice(admin):
    sandbox = free_one(admin)
    assert admin.on(sandbox, "delete").status == 200
    assert admin.on(sandbox, "delete").status == 409
    assert admin.on("no-such-one", "delete").status == 404
