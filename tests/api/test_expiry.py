# SPDX-License-Identifier: Apache-2.0
"""The end of an allocation by time. Stored times are moved into the past while the server is stopped."""

import pytest

from lib.wait import until

HOUR = 3600


class Old:
    """A server on which `count` tracks hold sandboxes, the n-th for ages[n] seconds."""

    def __init__(self, make, new_owner, ages, **env):
        self.server = make.server(len(ages) + 3, **env)
        admin = self.server.admin()
        for job in ("expiry", "cleanup"):
            assert admin.act("jobs/%s/pause" % job).status == 200
        self.owners = [new_owner() for _ in ages]
        self.ids = [self.server.track(o).claim()["sandbox_id"] for o in self.owners]
        self.server.stop()
        for sandbox, age in zip(self.ids, ages):
            self.server.age_allocation(sandbox, age)
        self.server.start().settle()
        self.admin = self.server.admin()

    def track(self, n=0):
        return self.server.track(self.owners[n])

    def status(self, n=0):
        return self.admin.record(self.ids[n])["status"]


def test_the_log_warns_of_each_track_that_did_not_give_back(make, new_owner):
    old = Old(make, new_owner, [90 * HOUR, 0, 90 * HOUR])
    assert old.admin.run("expire")["expired"] == 2

    def warned():
        lines = [line for line in old.server.lines if '"SandboxExpired"' in line]
        return len(lines) == 2 and lines

    lines = until(warned, "two lines about expired sandboxes")
    assert all('"level":"WARNING"' in line for line in lines)
    assert [sum(owner in line for line in lines) for owner in old.owners] == [1, 0, 1]


def test_expiry_ends_what_is_over_its_grace(make, new_owner):
    old = Old(make, new_owner, [0, 4 * HOUR - 60, 4 * HOUR + 60, 4.5 * HOUR - 60, 4.5 * HOUR + 60, 90 * HOUR])
    got = old.admin.run("expire")
    assert set(got) == {"status", "expired", "duration_ms"}
    assert (got["status"], got["expired"]) == ("completed", 2)
    assert [old.status(n) for n in range(6)] == ["allocated"] * 4 + ["pending_deletion"] * 2
    record = old.admin.record(old.ids[5])
    assert record["deletion_requested_at"] is not None
    assert record["allocated_to_track"] == old.owners[5]
    assert old.admin.run("expire")["expired"] == 0


def test_what_expired_is_never_available_again(make, new_owner):
    old = Old(make, new_owner, [90 * HOUR])
    old.admin.run("expire")
    old.admin.run("sync")
    assert old.status() == "pending_deletion"
    assert old.admin.run("cleanup")["deleted"] == 1
    old.admin.run("sync")
    assert old.admin.show(old.ids[0]).status == 404


@pytest.mark.parametrize("age", [4 * HOUR + 5, 4.5 * HOUR + 60])
def test_marking_after_the_end_is_403_expired(make, new_owner, age):
    old = Old(make, new_owner, [age])
    reply = old.track().mark(old.ids[0])
    assert (reply.status, reply.code) == (403, "ALLOCATION_EXPIRED")
    assert old.status() == "allocated"


def test_marking_just_before_the_end_is_fine(make, new_owner):
    old = Old(make, new_owner, [4 * HOUR - 60])
    assert old.track().mark(old.ids[0]).status == 200


def test_anothers_expired_sandbox_is_still_anothers(make, new_owner):
    old = Old(make, new_owner, [5 * HOUR])
    reply = old.server.track(new_owner()).mark(old.ids[0])
    assert reply.code == "NOT_SANDBOX_OWNER"


def test_the_owner_sees_its_expired_sandbox(make, new_owner):
    old = Old(make, new_owner, [5 * HOUR])
    shown = old.track().show(old.ids[0])
    assert (shown.status, shown.json["status"]) == (200, "allocated")
    assert shown.json["expires_at"] == shown.json["allocated_at"] + 4 * HOUR
    old.admin.run("expire")
    assert old.track().show(old.ids[0]).json["status"] == "pending_deletion"


def test_a_repeat_before_the_end_gets_the_same(make, new_owner):
    old = Old(make, new_owner, [4 * HOUR - 60])
    reply = old.track().allocate()
    assert (reply.status, reply.json["sandbox_id"]) == (200, old.ids[0])


@pytest.mark.parametrize("age", [4 * HOUR + 5, 4.5 * HOUR + 60])
def test_a_claim_after_the_end_gets_a_new_one_and_ends_the_old(make, new_owner, age):
    old = Old(make, new_owner, [age])
    reply = old.track().allocate()
    assert reply.status == 201
    assert reply.json["sandbox_id"] != old.ids[0]
    assert old.status() == "pending_deletion"
    assert old.admin.stats()["allocated"] == 1


def test_the_duration_is_the_one_at_the_time_of_the_claim(make, new_owner):
    old = Old(make, new_owner, [5 * HOUR], LAB_DURATION_HOURS=10)
    old.server.restart(LAB_DURATION_HOURS=1)
    old.admin = old.server.admin()
    assert old.admin.run("expire")["expired"] == 0
    shown = old.track().show(old.ids[0]).json
    assert shown["expires_at"] == shown["allocated_at"] + 10 * HOUR
    assert old.track().mark(old.ids[0]).status == 200
    fresh = old.track().claim()
    assert fresh["expires_at"] == fresh["allocated_at"] + 1 * HOUR


def test_the_grace_can_be_set(make, new_owner):
    old = Old(make, new_owner, [4 * HOUR + 90, 4 * HOUR + 30], GRACE_PERIOD_MINUTES=1)
    assert old.admin.run("expire")["expired"] == 1
    assert [old.status(0), old.status(1)] == ["pending_deletion", "allocated"]


def test_expiry_runs_by_itself(make, new_owner):
    old = Old(make, new_owner, [90 * HOUR])
    assert old.admin.act("jobs/expiry/resume").status == 200
    old.server.restart(AUTO_EXPIRY_INTERVAL_SEC=1)
    old.admin = old.server.admin()
    until(lambda: old.status() == "pending_deletion", "the expiry job ended it")


def test_it_takes_all_not_only_the_first_page(make, new_owner):
    old = Old(make, new_owner, [90 * HOUR] * 300)
    assert old.admin.run("expire")["expired"] == 300
    assert old.admin.stats()["pending_deletion"] == 300
