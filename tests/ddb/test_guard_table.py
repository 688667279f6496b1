# SPDX-License-Identifier: Apache-2.0
"""The guard on another system's account table in DynamoDB: only the status is written, and only when it is as expected."""

import pytest

from lib.guard import ENV, Guarded
from lib.wait import until

TABLE = "SandboxAccountTable"
META = {"createdTime": "2026-01-01T00:00:00.000Z", "lastEditTime": "2026-01-02T00:00:00.000Z", "schemaVersion": 1}


class Table:
    """The other system's, with attributes that are none of our business."""

    def __init__(self, db, name):
        self.db, self.name = db, name
        db.create(name, keys=("awsAccountId",))

    def put(self, account, status):
        item = {"awsAccountId": account, "name": "pool-1", "email": "x@example.com", "status": status}
        self.db("PutItem", TableName=self.name, Item={**{k: {"S": v} for k, v in item.items()}, **self.rest()})

    @staticmethod
    def rest():
        meta = {k: {"N": str(v)} if isinstance(v, int) else {"S": v} for k, v in META.items()}
        return {"driftAtLastScan": {"BOOL": False}, "meta": {"M": meta}}

    def item(self, account):
        got = self.db("GetItem", TableName=self.name, Key={"awsAccountId": {"S": account}}, ConsistentRead=True)
        return got.get("Item")

    def status(self, account):
        return (self.item(account) or {}).get("status", {}).get("S")


@pytest.fixture
def table(bare_store):
    name = TABLE + "-" + bare_store.pool
    table = Table(bare_store.db, name)
    yield table
    bare_store.db("DeleteTable", TableName=name)


@pytest.fixture
def guarded(make, bare_store, table):
    """A guard on that table. The simulated organisation is made first: its root is a setting."""
    cloud = {k: v for k, v in bare_store.env.items() if k.startswith("AWS_") or k == "DDB_ENDPOINT_URL"}
    server = make.server(args=["--dev"], **ENV, **cloud, ACCOUNT_TABLE_NAME="sim")
    root = Guarded(server).world()["root"]
    assert server.stop() == 0

    def start(**env):
        server.env.update({"ACCOUNT_TABLE_NAME": table.name, "SANDBOX_OU_ID": root, **env})
        server.start()
        return Guarded(server)

    return start


def without_status(item):
    return {k: v for k, v in item.items() if k != "status"}


def test_a_whole_cycle_changes_the_status_and_nothing_else(guarded, table):
    g = guarded(QUARANTINE_DURATION_HOURS=240)
    account = g.accounts("Available")[0]
    table.put(account, "CleanUp")
    before = table.item(account)
    g.clean(account)
    g.wait_for(account, "QUARANTINE_COMPLETE")
    assert g.place(account) == "Quarantine" and table.status(account) == "Quarantine"
    assert without_status(table.item(account)) == without_status(before)
    g.wait_for(account, "UNQUARANTINE_COMPLETE", 90)
    assert g.place(account) == "Available" and table.status(account) == "Available"
    assert without_status(table.item(account)) == without_status(before)


def test_an_account_that_the_table_does_not_have_is_not_held(guarded, table):
    g = guarded()
    account = g.accounts("Available")[0]
    g.clean(account)
    g.wait_for(account, "QUARANTINE_SKIP")
    assert g.place(account) == "Available" and table.item(account) is None


def test_a_lease_in_the_table_is_left_alone_and_flagged(guarded, table):
    g = guarded()
    account = g.accounts("Available")[0]
    table.put(account, "Active")
    g.clean(account)
    g.wait_for(account, "QUARANTINE_FLAGGED")
    assert g.place(account) == "Available" and table.status(account) == "Active"


def test_a_late_write_of_the_other_system_is_put_right(guarded, table):
    g = guarded(LEASEHOLD_TIME_SCALE=20)  # so that the second look comes after some seconds
    account = g.accounts("Available")[0]
    table.put(account, "CleanUp")
    g.clean(account)
    g.wait_for(account, "QUARANTINE_COMPLETE")
    table.put(account, "Available")
    until(lambda: table.status(account) == "Quarantine" and g.place(account) == "Quarantine", "it is put right", 30)
    g.wait_for(account, "QUARANTINE_CORRECTED")


def test_an_ejected_account_is_deleted_from_the_table(guarded, table):
    g = guarded(EJECT_AFTER_CLEANUP="true")
    account, other = g.accounts("Available")[:2]
    table.put(account, "Available")
    table.put(other, "Available")
    g.clean(account)
    g.wait_for(account, "EJECT_COMPLETE")
    assert g.place(account) == "Exit" and table.item(account) is None and table.status(other) == "Available"


def test_a_table_that_is_not_there_is_an_error_and_not_a_skip(guarded, table):
    g = guarded(ACCOUNT_TABLE_NAME="NoSuchTable")
    account = g.accounts("Available")[0]
    g.clean(account)
    lane = until(
        lambda: next((x for x in g.ops.read("queues/guard/lanes")["lanes"] if x.get("last_error")), None), "it fails", 30
    )
    assert "NoSuchTable" in lane["last_error"]
    assert "QUARANTINE_SKIP" not in g.actions(account)
