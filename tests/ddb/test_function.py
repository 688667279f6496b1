# SPDX-License-Identifier: Apache-2.0
"""The guard as functions of AWS Lambda on one store in DynamoDB: as it is meant to run."""

import json
import uuid

import pytest

from aws.front import names
from lib.aws_front import Front
from lib.crowd import together
from lib.lambda_runtime import Function, Runtime
from lib.server import binary
from lib.wait import until

AVAILABLE, CLEANUP, QUARANTINE = (names.OUS[n] for n in ("Available", "CleanUp", "Quarantine"))
ACCOUNTS = ["33334444%04d" % i for i in range(3)]


def moved(account):
    at = "2026-11-16T17:00:00Z"
    event = {"version": "0", "id": str(uuid.uuid4()), "detail-type": "AWS API Call via CloudTrail", "source": "aws.organizations",
             "account": names.MANAGEMENT, "time": at, "region": "us-east-1", "resources": [],
             "detail": {"eventTime": at, "eventSource": "organizations.amazonaws.com", "eventName": "MoveAccount", "eventID": str(uuid.uuid4()),
                        "requestParameters": {"accountId": account, "sourceParentId": CLEANUP, "destinationParentId": AVAILABLE}}}
    return {"messageId": str(uuid.uuid4()), "body": json.dumps(event), "eventSource": "aws:sqs"}


class World:
    def __init__(self, store, folder):
        self.store, self.front = store, Front()
        self.table = "Accounts-" + store.pool
        self.front.do("organizations", "add_accounts", ids=ACCOUNTS)
        store.db.create(self.table, keys=("awsAccountId",))
        for account in ACCOUNTS:
            store.db("PutItem", TableName=self.table, Item={"awsAccountId": {"S": account}, "status": {"S": "Available"}})
        self.env = {**store.env, **self.front.env(), "LEASEHOLD_QUARANTINE": "guard", "ACCOUNT_TABLE_NAME": self.table, "LEASEHOLD_STORE_DEADLINE_MS": 8000}
        self.program = folder / "bootstrap"
        self.program.symlink_to(binary())
        self.functions, self.runtimes = [], []

    def function(self):
        """One more instance of it, ready to be invoked: its runtime."""
        runtime = Runtime()
        self.runtimes.append(runtime)
        self.functions.append(Function(runtime, None, self.env, command=[str(self.program)]))
        self.functions[-1].start().wait_ready()
        return runtime

    def status(self, account):
        return self.store.db("GetItem", TableName=self.table, Key={"awsAccountId": {"S": account}}, ConsistentRead=True)["Item"]["status"]["S"]

    def moves(self):
        return [(m["account"], m["to"]) for m in self.front.state("organizations")["moves"]]

    def close(self):
        for function in self.functions:
            function.kill()
        for runtime in self.runtimes:
            runtime.close()
        self.store.db("DeleteTable", TableName=self.table)
        broken = self.front.broken() + [line for function in self.functions for line in function.complaints()]
        self.front.close()
        assert not broken, broken


@pytest.fixture
def world(store, tmp_path):
    world = World(store, tmp_path)
    yield world
    world.close()


def deliver(runtime, records):
    """As SQS does: what was not taken comes again."""
    for _ in range(10):
        got = runtime.good({"Records": records}, 90)["batchItemFailures"]
        records = [r for r in records if r["messageId"] in [f["itemIdentifier"] for f in got]]
        if not records:
            return
    raise AssertionError("not taken after ten receives: %r" % records)


def wait_held(world, *runtimes):
    """Ticks come until all is done: an index that lags, and the pace of the organisation, leave something for the next one."""

    def is_held():
        together(len(runtimes), lambda i: runtimes[i].good({"leasehold": "tick"}, 90))
        return [world.status(a) for a in ACCOUNTS] == ["Quarantine"] * len(ACCOUNTS)

    until(is_held, "all are held", 120, 0.5)
    assert sorted(world.moves()) == sorted((a, QUARANTINE) for a in ACCOUNTS)


def test_C40_a_batch_is_held_by_the_program_as_it_is_deployed(world):
    runtime = world.function()
    deliver(runtime, [moved(a) for a in ACCOUNTS])
    wait_held(world, runtime)


def test_C40_two_at_once_with_the_same_messages_move_each_account_once(world):
    runtimes = [world.function(), world.function()]
    records = [moved(a) for a in ACCOUNTS]
    together(2, lambda i: deliver(runtimes[i], records))
    wait_held(world, *runtimes)
