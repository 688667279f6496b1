# SPDX-License-Identifier: Apache-2.0
"""Our own pool: an account that somebody else moves is locked away as soon as CloudTrail tells of it, long before the scan for drift."""

import pytest

from lib.clouds import SimPool
from lib.ops import Ops


@pytest.fixture
def pool(make):
    return SimPool.start(make, None, None, LEASEHOLD_TIME_SCALE="60")


def show(pool, account):
    return pool.admin.data("GET", "/accounts/" + account)


def test_an_account_moved_by_hand_is_locked_away_within_seconds(pool):
    ops = Ops(pool.server)
    account = next(a["awsAccountId"] for a in pool.admin.data("GET", "/accounts")["result"] if a["status"] == "Available")
    pool.move(account, "Frozen")
    pool.until(lambda: show(pool, account)["status"] == "Quarantine", "it is locked away")
    events = {e["detail-type"]: e["detail"] for e in ops.events("subject=account/" + account)}
    drift = events["AccountDriftDetected"]
    assert (drift["actualOu"], drift["expectedOu"]) == ("Frozen", "Available")
    assert drift["driftDetails"]["drift_description"].startswith("it was moved to Frozen by ")
    assert events["AccountQuarantined"]["reason"] == drift["driftDetails"]["drift_description"]
    pool.until(lambda: pool.place(account) == "Quarantine", "it is in Quarantine")


def test_our_own_moves_lock_nothing_away(pool):
    lease = pool.active(pool.person(), leaseDurationInHours=24)
    account = lease["awsAccountId"]
    pool.manager.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    ops = Ops(pool.server)
    pool.until(lambda: [e for e in ops.events("subject=account/%s&type=HoldCreated" % account)], "it rests after its cleanup")
    pool.until(lambda: len(ops.events("subject=account/%s&type=cloudtrail:MoveAccount" % account)) >= 3, "its moves are told of")
    pool.until(lambda: ops.read("queues/account-moved/lanes")["lanes"] == [], "all of them were looked at")
    assert ops.events("subject=account/%s&type=AccountQuarantined" % account) == []
    assert ops.read("dead-letters")["dead_letters"] == []
