# SPDX-License-Identifier: Apache-2.0
"""The cleanup job: deleting at the vendor, trying again, giving up, and the circuit breaker."""

import threading
import time

import pytest

from lib.crowd import Background
from lib.wait import until


class Bin:
    """A server with some sandboxes given back, cleanup only when asked."""

    def __init__(self, make, new_owner, marked=1, count=None, **env):
        self.csp = make.csp(count or marked + 2)
        self.server = make.server(
            csp=self.csp, **{"LEASEHOLD_DELETION_BACKOFF_SEC": 0, "CIRCUIT_BREAKER_THRESHOLD": 1000, **env}
        )
        self.admin = self.server.admin()
        self.new_owner = new_owner
        self.marked = [self.mark() for _ in range(marked)]

    def mark(self):
        track = self.server.track(self.new_owner())
        sandbox = track.claim()["sandbox_id"]
        assert track.mark(sandbox).status == 200
        track.close()
        return sandbox

    def cleanup(self):
        return self.admin.run("cleanup")

    def record(self, n=0):
        return self.admin.record(self.marked[n])


def test_cleanup_deletes_what_was_given_back(make, new_owner):
    bin = Bin(make, new_owner, 3)
    got = bin.cleanup()
    assert set(got) == {"status", "deleted", "failed", "postponed", "duration_ms"}
    assert (got["status"], got["deleted"], got["failed"], got["postponed"]) == ("completed", 3, 0, 0)
    assert sorted(bin.csp.deletes()) == sorted(bin.csp.uuid_of(s) for s in bin.marked)
    assert all(bin.admin.show(s).status == 404 for s in bin.marked)
    assert bin.admin.stats()["total"] == 2


def test_cleanup_touches_nothing_else(make, new_owner):
    bin = Bin(make, new_owner, 0, count=4)
    held = bin.server.track(new_owner()).claim()["sandbox_id"]
    bin.admin.on("100003", "quarantine") if held != "100003" else bin.admin.on("100002", "quarantine")
    assert bin.cleanup()["deleted"] == 0
    assert bin.csp.deletes() == []


@pytest.mark.parametrize("status", [200, 204, 404])
def test_answers_that_count_as_deleted(make, new_owner, status):
    bin = Bin(make, new_owner)
    bin.csp.delete_fault = status
    assert bin.cleanup()["deleted"] == 1
    assert bin.admin.show(bin.marked[0]).status == 404


@pytest.mark.parametrize("fault", [400, 401, 403, 409, 429, 500, 503, "drop", "html500", "html", "html404", "garbage", 202])
def test_answers_that_count_as_failed(make, new_owner, fault):
    bin = Bin(make, new_owner)
    bin.csp.delete_fault = fault
    got = bin.cleanup()
    assert (got["deleted"], got["failed"]) == (0, 1)
    record = bin.record()
    assert (record["status"], record["deletion_retry_count"]) == ("pending_deletion", 1)
    bin.csp.delete_fault = None
    assert bin.cleanup()["deleted"] == 1


def test_a_slow_deletion_counts_as_failed(make, new_owner):
    bin = Bin(make, new_owner, CSP_TIMEOUT_READ_SEC=1)
    bin.csp.delete_delay = 3
    assert bin.cleanup()["failed"] == 1
    assert bin.record()["deletion_retry_count"] == 1


def test_it_is_given_up_after_more_than_the_allowed_failures(make, new_owner):
    bin = Bin(make, new_owner)
    bin.csp.delete_fault = 500
    for failures in (1, 2, 3):
        bin.cleanup()
        record = bin.record()
        assert (record["status"], record["deletion_retry_count"]) == ("pending_deletion", failures)
    bin.cleanup()
    record = bin.record()
    assert (record["status"], record["deletion_retry_count"]) == ("deletion_failed", 4)
    bin.csp.delete_fault = None
    assert bin.cleanup()["deleted"] == 0, "only an operator brings it back"
    assert len(bin.csp.deletes()) == 4


def test_the_allowed_failures_can_be_set(make, new_owner):
    bin = Bin(make, new_owner, DELETION_RETRY_MAX_ATTEMPTS=1)
    bin.csp.delete_fault = 500
    bin.cleanup()
    assert bin.record()["status"] == "pending_deletion"
    bin.cleanup()
    assert bin.record()["status"] == "deletion_failed"


def test_failures_are_remembered_over_a_restart(make, new_owner):
    bin = Bin(make, new_owner)
    bin.csp.delete_fault = 500
    bin.cleanup()
    bin.admin.act("jobs/cleanup/pause")
    bin.server.restart()
    bin.admin = bin.server.admin()
    assert bin.record()["deletion_retry_count"] == 1


def test_a_failure_is_not_tried_again_before_its_time(make, new_owner):
    bin = Bin(make, new_owner, LEASEHOLD_DELETION_BACKOFF_SEC=300)
    bin.csp.delete_fault = 500
    assert bin.cleanup()["failed"] == 1
    bin.csp.delete_fault = None
    got = bin.cleanup()
    assert (got["deleted"], got["failed"]) == (0, 0)
    assert len(bin.csp.deletes()) == 1
    assert bin.record()["deletion_retry_count"] == 1


def test_a_failure_is_tried_again_after_its_time_and_the_time_doubles(make, new_owner):
    bin = Bin(make, new_owner, LEASEHOLD_DELETION_BACKOFF_SEC=1)
    bin.csp.delete_fault = 500
    times = []

    def failed_again():
        if bin.cleanup()["failed"]:
            times.append(time.monotonic())
        return len(times) == 3

    until(failed_again, "three tries", 20, 0.05)
    # Times are stored in whole seconds at the coarsest, so a wait may look up to one second shorter.
    assert times[2] - times[1] > 0.95
    assert times[2] - times[0] > 1.95


def test_one_that_fails_does_not_stop_the_others(make, new_owner):
    bin = Bin(make, new_owner, 6)
    bad = bin.csp.uuid_of(bin.marked[2])
    delete = bin.csp.delete
    bin.csp.delete = lambda unique: 500 if unique == bad else delete(unique)
    got = bin.cleanup()
    assert (got["deleted"], got["failed"]) == (5, 1)
    assert bin.record(2)["status"] == "pending_deletion"


def test_batches_have_a_pause_between(make, new_owner):
    bin = Bin(make, new_owner, 4, CLEANUP_BATCH_SIZE=2, CLEANUP_BATCH_DELAY_SEC=1)
    begin = time.monotonic()
    assert bin.cleanup()["deleted"] == 4
    assert time.monotonic() - begin > 0.9


def test_single_deletions_have_a_pause_between(make, new_owner):
    bin = Bin(make, new_owner, 3, CLEANUP_PER_SANDBOX_DELAY_SEC=0.5)
    begin = time.monotonic()
    assert bin.cleanup()["deleted"] == 3
    assert time.monotonic() - begin > 0.9


def test_it_takes_all_not_only_the_first_page(make, new_owner):
    bin = Bin(make, new_owner, 250, CLEANUP_BATCH_SIZE=20)
    assert bin.cleanup()["deleted"] == 250
    assert len(set(bin.csp.deletes())) == len(bin.csp.deletes()) == 250


def test_an_owner_still_sees_its_failed_deletion(make, new_owner):
    bin = Bin(make, new_owner, 0, DELETION_RETRY_MAX_ATTEMPTS=0)
    track = bin.server.track(new_owner())
    sandbox = track.claim()["sandbox_id"]
    track.mark(sandbox)
    bin.csp.delete_fault = 500
    bin.cleanup()
    assert track.show(sandbox).json["status"] == "deletion_failed"
    assert track.allocate().status == 201


# Operators retry.


def test_retry_deletion_brings_one_back(make, new_owner):
    bin = Bin(make, new_owner, 2, DELETION_RETRY_MAX_ATTEMPTS=0)
    bin.csp.delete_fault = 500
    bin.cleanup()
    assert bin.admin.stats()["deletion_failed"] == 2
    reply = bin.admin.on(bin.marked[0], "retry-deletion")
    assert reply.status == 200
    assert (reply.json["status"], reply.json["deletion_retry_count"]) == ("pending_deletion", 0)
    assert reply.json == bin.record(0)
    bin.csp.delete_fault = None
    assert bin.cleanup()["deleted"] == 1
    assert bin.record(1)["status"] == "deletion_failed"


def test_retry_deletion_is_for_failed_ones_only(make, new_owner):
    bin = Bin(make, new_owner)
    reply = bin.admin.on(bin.marked[0], "retry-deletion")
    assert (reply.status, reply.code) == (409, "CONFLICT")
    free = bin.admin.list("?status=available&limit=1").json["sandboxes"][0]["sandbox_id"]
    refused = bin.admin.on(free, "retry-deletion")
    assert refused.code == "CONFLICT"
    assert refused.error["message"] == "sandbox %s is available; only one that is deletion_failed can be retried" % free
    assert bin.admin.on("no-such-sandbox", "retry-deletion").code == "SANDBOX_NOT_FOUND"


def test_retry_failed_deletions_brings_all_back(make, new_owner):
    bin = Bin(make, new_owner, 3, DELETION_RETRY_MAX_ATTEMPTS=0, LEASEHOLD_DELETION_BACKOFF_SEC=300)
    bin.csp.delete_fault = 500
    bin.cleanup()
    got = bin.admin.run("retry-failed-deletions")
    assert set(got) == {"status", "retried", "duration_ms"}
    assert (got["status"], got["retried"]) == ("completed", 3)
    assert bin.admin.stats()["pending_deletion"] == 3
    assert bin.record()["deletion_retry_count"] == 0
    bin.csp.delete_fault = None
    assert bin.cleanup()["deleted"] == 3, "a retry does not wait for the old back-off"
    assert bin.admin.run("retry-failed-deletions")["retried"] == 0


# The circuit.


def test_failed_deletions_open_the_circuit_and_the_rest_is_postponed(make, new_owner):
    bin = Bin(make, new_owner, 8, CIRCUIT_BREAKER_THRESHOLD=5)
    bin.csp.delete_fault = 500
    reply = bin.admin.act("cleanup")
    assert reply.status in (200, 503)
    if reply.status == 200:
        assert (reply.json["failed"], reply.json["postponed"], reply.json["deleted"]) == (5, 3, 0)
    assert len(bin.csp.deletes()) == 5
    assert bin.admin.stats()["pending_deletion"] == 8
    assert sorted(bin.record(n)["deletion_retry_count"] for n in range(8)) == [0] * 3 + [1] * 5


def test_an_open_circuit_tries_and_counts_nothing(make, new_owner):
    bin = Bin(make, new_owner, 3, CIRCUIT_BREAKER_THRESHOLD=2)
    bin.csp.list_fault = 500
    for _ in range(2):
        assert bin.admin.act("sync").status == 503
    asked = len(bin.csp.log)
    for _ in range(6):
        reply = bin.admin.act("cleanup")
        assert reply.status in (200, 503)
        if reply.status == 200:
            assert (reply.json["deleted"], reply.json["failed"]) == (0, 0)
    assert len(bin.csp.log) == asked
    assert [bin.record(n)["deletion_retry_count"] for n in range(3)] == [0, 0, 0]
    assert bin.admin.stats()["pending_deletion"] == 3


def test_an_open_circuit_fails_sync_without_asking(make):
    csp = make.csp(3)
    admin = make.server(csp=csp, CIRCUIT_BREAKER_THRESHOLD=3).admin()
    csp.list_fault = 500
    for _ in range(3):
        assert admin.act("sync").status == 503
    asked = csp.lists()
    reply = admin.act("sync")
    assert (reply.status, reply.code) == (503, "SERVICE_UNAVAILABLE")
    assert csp.lists() == asked


def test_a_success_in_between_starts_the_count_again(make):
    csp = make.csp(3)
    admin = make.server(csp=csp, CIRCUIT_BREAKER_THRESHOLD=3).admin()
    for _ in range(3):
        csp.list_fault = 500
        for _ in range(2):
            assert admin.act("sync").status == 503
        csp.list_fault = None
        assert admin.act("sync").status == 200


def test_after_its_time_one_call_probes_and_closes_it(make, new_owner):
    bin = Bin(make, new_owner, 2, CIRCUIT_BREAKER_THRESHOLD=2, CIRCUIT_BREAKER_TIMEOUT_SEC=1)
    bin.csp.list_fault = 500
    for _ in range(2):
        assert bin.admin.act("sync").status == 503
    bin.csp.list_fault = None
    opened = time.monotonic()
    assert bin.admin.act("sync").status == 503 or time.monotonic() - opened >= 0.9, "still open"
    until(lambda: bin.admin.act("sync").status == 200, "the probe closes the circuit", 10, 0.05)
    assert bin.cleanup()["deleted"] == 2


def test_a_failed_probe_opens_it_again(make):
    csp = make.csp(3)
    admin = make.server(csp=csp, CIRCUIT_BREAKER_THRESHOLD=3, CIRCUIT_BREAKER_TIMEOUT_SEC=1).admin()
    csp.list_fault = 500
    for _ in range(3):
        admin.act("sync")
    asked = csp.lists()
    until(lambda: admin.act("sync") and csp.lists() > asked, "a probe", 10, 0.05)
    asked, probed = csp.lists(), time.monotonic()
    assert admin.act("sync").status == 503
    assert csp.lists() == asked or time.monotonic() - probed >= 0.9, "one failed probe is enough to open it again"


def test_claims_and_marks_do_not_wait_for_a_slow_cleanup(make, new_owner):
    bin = Bin(make, new_owner, 3, count=10)
    bin.csp.delete_gate = threading.Event()
    run = Background(bin.server.admin().run, "cleanup")
    until(lambda: bin.csp.deletes(), "a deletion is under way")
    bin.mark()
    assert not run.is_done()
    bin.csp.delete_gate.set()
    assert run.result()["deleted"] >= 3
