# SPDX-License-Identifier: Apache-2.0
"""`leasehold migrate`: from an Innovation Sandbox and from the upstream broker to here, and back. Their tables are only read."""

import json
import time

import pytest

from lib import leases
from lib.dynamodb import wire
from lib.server import QUIET, run

UUID = "00000000-0000-4000-8000-%012d"
EDITED = "2026-11-01T10:00:00.000Z"


def meta(**more):
    return {"M": wire({"createdTime": "2026-10-01T10:00:00.000Z", "lastEditTime": EDITED, "schemaVersion": 1, **more})}


def account(number, status):
    return {**wire({"awsAccountId": "11112222%04d" % number, "email": "a%d@example.com" % number, "name": "sandbox %d" % number, "status": status}), "meta": meta()}


def lease(number, email, status, **fields):
    item = wire({"userEmail": email, "uuid": UUID % number, "status": status, "originalLeaseTemplateUuid": UUID % 99, "originalLeaseTemplateName": "Basic",
                 "maxSpend": 50, "leaseDurationInHours": 24, "comments": "for a course", **fields})
    item["budgetThresholds"] = {"L": [{"M": {"dollarsSpent": {"N": "40"}, "action": {"S": "ALERT"}}}]}
    return {**item, "meta": meta()}


def in_use(number, email, status, account_number, **fields):
    return lease(number, email, status, awsAccountId="11112222%04d" % account_number, approvedBy="manager@example.com", startDate="2026-11-16T08:00:00.000Z",
                 lastCheckedDate="2026-11-16T09:00:00.000Z", expirationDate="2099-11-17T08:00:00.000Z", **fields)


ACCOUNTS = [account(1, "Available"), account(2, "Active"), account(3, "Frozen"), account(4, "CleanUp"), account(5, "Quarantine"), account(6, "Active"),
            account(7, "Nonsense")]
LEASES = [in_use(1, leases.USER, "Active", 2), in_use(2, "Person-7@Example.com", "Frozen", 3), lease(3, leases.USER, "PendingApproval"),
          in_use(4, leases.USER, "Expired", 1, endDate="2026-11-10T08:00:00.000Z", ttl=4000000000), in_use(5, leases.USER, "Active", 1),
          in_use(6, leases.USER, "Provisioning", 6), lease(7, leases.USER, "Active")]
TAKEN = {"lease %s %s" % (UUID % n, s) for n, s in ((1, "Active"), (2, "Frozen"), (3, "PendingApproval"), (4, "Expired"))}
TAKEN |= {"account 11112222%04d %s" % (n, s) for n, s in ((1, "Available"), (2, "Active"), (3, "Frozen"), (5, "Quarantine"))}


@pytest.fixture
def isb(store):
    """The two tables of an Innovation Sandbox beside ours."""
    names = [store.pool + "-isb-accounts", store.pool + "-isb-leases"]
    store.db.create(names[0], keys=("awsAccountId",))
    store.db.create(names[1], keys=("userEmail", "uuid"))
    for name, items in zip(names, (ACCOUNTS, LEASES)):
        for item in items:
            store.db("PutItem", TableName=name, Item=item)
    yield names
    for name in names:
        store.db("DeleteTable", TableName=name)


def migrate(store, data, *words, status=0, **env):
    got = run("migrate", *map(str, words), "--data", str(data), env={**QUIET, **store.env, "LEASEHOLD_STORE": "sqlite", **env}, timeout=120)
    assert got.returncode == status, (words, got.returncode, got.stdout, got.stderr)
    return got.stdout + got.stderr


def everything(store, names):
    return [sorted(json.dumps(i, sort_keys=True) for i in store.db.raw_items(name)) for name in names]


@pytest.mark.parametrize("home", ["sqlite", "dynamodb"])
def test_an_innovation_sandbox_is_told_taken_over_and_given_back(make, store, isb, tmp_path, home):
    data, notes, before = tmp_path / "data", tmp_path / "taken.txt", everything(store, isb)
    told = migrate(store, data, "isb", *isb, LEASEHOLD_STORE=home)
    assert "8 would be taken over, 0 here already, 6 left" in told, told
    for words in ("it is being cleaned", "it is in use, and no lease says by whom", "'Nonsense' is not known here", "its account is not there, or not in use",
                  "it is being set up", "it lacks what a lease that is Active has"):
        assert told.count(words) == 1, (words, told)
    assert "0 here already" in migrate(store, data, "isb", *isb, LEASEHOLD_STORE=home), "a dry run wrote something"

    assert "--to FILE must be given" in migrate(store, data, "isb", *isb, "--fix", status=2, LEASEHOLD_STORE=home)
    assert "8 taken over, 0 here already, 6 left" in migrate(store, data, "isb", *isb, "--fix", "--to", notes, LEASEHOLD_STORE=home)
    assert "0 taken over, 8 here already, 6 left" in migrate(store, data, "isb", *isb, "--fix", "--to", notes, LEASEHOLD_STORE=home)
    assert set(notes.read_text().splitlines()) == TAKEN

    env = {**store.env, "LEASEHOLD_STORE": home, **leases.env(make.folder), "LEASEHOLD_STORE_DEADLINE_MS": "20000"}
    server = make.server(data=data, **env).settle()
    pool = leases.Pool(server)
    shown = {item["uuid"]: item for item in pool.admin.everything("/leases", 10)}
    assert {u: (i["status"], i.get("awsAccountId")) for u, i in shown.items()} == {
        UUID % 1: ("Active", "111122220002"), UUID % 2: ("Frozen", "111122220003"), UUID % 3: ("PendingApproval", None), UUID % 4: ("Expired", "111122220001")}
    one = shown[UUID % 1]
    assert (one["userEmail"], one["maxSpend"], one["leaseDurationInHours"], one["originalLeaseTemplateName"]) == (leases.USER, 50, 24, "Basic")
    assert one["budgetThresholds"] == [{"dollarsSpent": 40, "action": "ALERT"}]
    # The simulated organisation has accounts of its own.
    ours = {a["awsAccountId"]["S"] for a in ACCOUNTS}
    assert {i["awsAccountId"]: i["status"] for i in pool.admin.everything("/accounts", 10) if i["awsAccountId"] in ours} == {
        "111122220001": "Available", "111122220002": "Active", "111122220003": "Frozen", "111122220005": "Quarantine"}
    pool.manager.data("POST", "/leases/%s/review" % shown[UUID % 3]["leaseId"], {"action": "Deny"})  # it is used here now
    server.stop()

    assert "would be removed" in migrate(store, data, "undo", notes, LEASEHOLD_STORE=home)
    back = migrate(store, data, "undo", notes, "--fix", LEASEHOLD_STORE=home)
    (kept,) = [line for line in back.splitlines() if line.endswith("has another status by now, and stays")]
    assert back.count("removed") == 7 and UUID % 3 in kept, back
    assert migrate(store, data, "undo", notes, "--fix", LEASEHOLD_STORE=home).count("is gone already") == 7
    assert everything(store, isb) == before


def test_a_table_that_is_not_there_is_named_and_nothing_is_written(store, tmp_path):
    assert "table no-such-table: ResourceNotFoundException" in migrate(store, tmp_path / "data", "isb", "no-such-table", "nor-this", status=4)


def test_the_upstream_brokers_sandboxes_are_taken_over_and_given_back(make, store, tmp_path):
    table, data, notes = store.pool + "-upstream", tmp_path / "data", tmp_path / "taken.txt"
    store.db.create_pool(table)
    now = int(time.time())
    base = {"SK": "META", "created_at": now, "updated_at": now, "last_synced": now, "lab_duration_hours": 4, "deletion_retry_count": 0}
    for number in range(5):
        held = {"status": "allocated", "allocated_to_track": "student-%d" % number, "allocated_at": now} if number < 2 else {"status": "available", "allocated_at": 0}
        store.db.put(table, {**base, **held, "PK": "SBX#%d" % number, "sandbox_id": str(number), "name": "lab-%d" % number, "external_id": "identity/accounts/%d" % number})
    before = everything(store, [table])
    assert "5 would be taken over" in migrate(store, data, "broker", table)
    assert "5 taken over, 0 here already" in migrate(store, data, "broker", table, "--fix", "--to", notes)
    csp = make.csp(0)
    csp.list_fault = 500
    server = make.server(data=data, wait=False, csp=csp)
    stats = server.admin().stats()
    assert (stats["available"], stats["allocated"]) == (3, 2), stats
    assert server.track("student-1").allocate().json["sandbox_id"] == "1"  # the same again: he holds it
    server.stop()
    assert migrate(store, data, "undo", notes, "--fix").count("removed") == 5
    assert everything(store, [table]) == before
    store.db("DeleteTable", TableName=table)
