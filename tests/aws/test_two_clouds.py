# SPDX-License-Identifier: Apache-2.0
"""Leases, quarantine and the reconciler on two clouds: the simulated one, and AWS as the front has it. The same assertions."""

import re

import pytest

from lib.clouds import GUARDS, POOLS, release
from lib.guard import FOUND
from lib.ops import Ops
from lib.wait import until


@pytest.fixture(params=sorted(GUARDS))
def guarded(request, make, front):
    return GUARDS[request.param].start(make, front)


@pytest.fixture(params=sorted(GUARDS))
def silent(request, make, front):
    """No event comes, and only the doctor looks."""
    got = GUARDS[request.param].start(make, front, silent=True)
    assert got.ops.act("jobs/reconcile/pause").status == 200
    return got


def assert_only_these_attributes(front):
    """The policy gives no others, and a read without a projection is refused by it."""
    calls = [e["params"] for e in front.log("dynamodb")]
    assert {e["operation"] for e in front.log("dynamodb")} == {"GetItem", "UpdateItem"}
    for params in calls:
        words = " ".join([params.get("ProjectionExpression", params.get("UpdateExpression", "everything")), params.get("ConditionExpression", "")])
        named = {params.get("ExpressionAttributeNames", {}).get(word, word) for word in re.findall(r"(?<![:\w])#?[a-zA-Z]+", words)} - {"SET"}
        assert named and named <= {"awsAccountId", "status", "name"} and "ReturnValues" not in params, params


def test_an_account_is_held_and_comes_back(guarded):
    account, other = guarded.accounts("Available")[:2]
    guarded.clean(account)
    guarded.wait_for(account, "QUARANTINE_COMPLETE", 180)
    assert guarded.place(account) == "Quarantine" and guarded.place(other) == "Available"
    hold = guarded.held(account)[0]
    assert hold["mode"] == "guard" and hold["due_at"] - hold["created_at"] == 72 * 3600
    release(guarded, account)
    guarded.wait_for(account, "UNQUARANTINE_COMPLETE", 180)
    until(lambda: guarded.place(account) == "Available", "it is back", 120)
    wanted = ["QUARANTINE_START", "QUARANTINE_COMPLETE", "UNQUARANTINE_START", "UNQUARANTINE_COMPLETE"]
    assert [a for a in guarded.actions(account) if a in wanted] == wanted
    assert guarded.ops.read("dead-letters")["dead_letters"] == []
    assert guarded.ops.read("sagas?state=parked")["sagas"] == []
    if guarded.kind == "aws":
        assert guarded.status(account) == "Available"
        # Its own move to Available is told of by the trail too, and is not held again.
        until(lambda: guarded.front.state("sqs")["guard"]["messages"] == [], "the queue is empty", 120)
        assert len(guarded.held(account)) == 0 and guarded.place(account) == "Available"
        assert_only_these_attributes(guarded.front)


@pytest.mark.parametrize("kind", sorted(GUARDS))
def test_an_account_that_shall_leave_is_ejected(make, front, kind):
    guarded = GUARDS[kind].start(make, front, EJECT_AFTER_CLEANUP="true")
    account = guarded.accounts("Available")[0]
    guarded.clean(account)
    guarded.wait_for(account, "EJECT_COMPLETE", 180)
    assert guarded.place(account) == "Exit" and not guarded.held(account)
    if kind == "aws":
        assert account not in guarded.front.state("dynamodb")["accounts"]


def test_what_comes_from_elsewhere_is_not_held(guarded):
    account = guarded.accounts("Available")[0]
    guarded.move(account, "Available", "Frozen")
    guarded.move(account, "Frozen", "Available")
    other = guarded.accounts("Available")[1]
    guarded.clean(other)
    guarded.wait_for(other, "QUARANTINE_COMPLETE", 180)
    assert not guarded.held(account) and guarded.place(account) == "Available"


def test_a_hold_outlives_the_process(guarded):
    account = guarded.accounts("Available")[0]
    guarded.clean(account)
    guarded.wait_for(account, "QUARANTINE_START", 180)
    guarded.server.kill()
    guarded.server.start()
    guarded = guarded.again()
    guarded.wait_for(account, "QUARANTINE_COMPLETE", 180)
    assert guarded.place(account) == "Quarantine" and len(guarded.held(account)) == 1


def test_the_doctor_heals_what_rests_without_a_record(silent):
    account = silent.accounts("Available")[0]
    assert "nothing is wrong" in silent.doctor()[1]
    silent.move(account, "Available", "Quarantine")
    code, said = silent.doctor()
    assert code == FOUND and "unrecorded-rest" in said and account in said and not silent.held(account)
    assert "repaired" in silent.doctor("--fix")[1]
    silent.wait_for(account, "QUARANTINE_COMPLETE", 180)
    until(lambda: "nothing is wrong" in silent.doctor("--fix")[1], "the table has followed", 180)
    assert len(silent.held(account)) == 1


def test_a_move_that_no_event_told_of_is_held_by_the_next_pass(silent):
    account = silent.accounts("Available")[0]
    silent.move(account, "Available", "CleanUp")
    silent.doctor("--fix")
    silent.move(account, "CleanUp", "Available")
    code, said = silent.doctor()
    assert code == FOUND and "bypass" in said and not silent.held(account)
    silent.doctor("--fix")
    silent.wait_for(account, "QUARANTINE_COMPLETE", 180)
    assert silent.place(account) == "Quarantine" and len(silent.held(account)) == 1


# Leases.


@pytest.fixture(scope="module", params=sorted(POOLS))
def one_pool(request, make_for_module, own_front, jumpclock):
    return POOLS[request.param].start(make_for_module, own_front, jumpclock, count=4)


@pytest.fixture
def pool(one_pool):
    return one_pool.again()


def show(pool, account):
    return pool.admin.data("GET", "/accounts/" + account)


def assert_calm(pool):
    ops = Ops(pool.server)
    assert ops.read("dead-letters")["dead_letters"] == []
    assert ops.read("sagas?state=parked")["sagas"] == []


def test_a_lease_from_request_to_rest(pool):
    person = pool.person()
    lease = pool.active(person)
    account = lease["awsAccountId"]
    assert pool.place(account) == "Active" and pool.owners(account) == [person.email]
    pool.manager.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    pool.until(lambda: show(pool, account)["phase"] == "Cooldown", "it rests")
    pool.until(lambda: pool.place(account) == "Quarantine", "it is in Quarantine")
    assert pool.owners(account) == []
    holds = Ops(pool.server).read("holds?account=" + account)["holds"]
    assert [h["state"] for h in holds] == ["open", "exempt"]  # it did not rest after its first cleanup
    assert_calm(pool)


def test_a_freeze_takes_access_away_and_gives_it_back(pool):
    person = pool.person()
    lease = pool.active(person)
    account = lease["awsAccountId"]
    pool.manager.data("POST", "/leases/%s/freeze" % lease["leaseId"])
    pool.until(lambda: pool.place(account) == "Frozen" and pool.owners(account) == [], "it is frozen")
    pool.manager.data("POST", "/leases/%s/unfreeze" % lease["leaseId"])
    pool.until(lambda: pool.place(account) == "Active" and pool.owners(account) == [person.email], "it is used again")
    assert pool.show(lease)["status"] == "Active"
    assert_calm(pool)


def test_a_lease_survives_the_process(pool):
    person = pool.person()
    lease = pool.pending(person)
    pool.manager.data("POST", "/leases/%s/review" % lease["leaseId"], {"action": "Approve"})
    pool.server.kill()
    pool.server.start()
    pool = pool.again()
    got = pool.until_status(lease, "Active")
    pool.until(lambda: pool.owners(got["awsAccountId"]) == [person.email], "access works")
    assert pool.place(got["awsAccountId"]) == "Active"
    assert_calm(pool)


def test_an_account_that_somebody_moves_is_locked_away(pool):
    account = next(a["awsAccountId"] for a in pool.admin.everything("/accounts", 100) if a["phase"] == "Available")
    assert pool.place(account) == "Available"
    pool.move(account, "Frozen")
    pool.until(lambda: show(pool, account)["status"] == "Quarantine", "it is locked away")
    pool.until(lambda: pool.place(account) == "Quarantine", "it is in Quarantine")
    events = {e["detail-type"]: e["detail"] for e in Ops(pool.server).events("subject=account/" + account)}
    assert (events["AccountDriftDetected"]["actualOu"], events["AccountDriftDetected"]["expectedOu"]) == ("Frozen", "Available")
    assert_calm(pool)
