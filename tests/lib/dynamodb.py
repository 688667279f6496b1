# SPDX-License-Identifier: Apache-2.0
"""DynamoDB for tests: the emulator as a process, a small client, and the tables of one test.

The client speaks DynamoDB's JSON over HTTP and signs nothing (the emulator does not look). Items are given and returned
as plain Python values (text, int, bool); raw_items() keeps the types as they are on the wire.
"""

import itertools
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from lib.http import Client
from lib.server import run
from lib.wait import until

ROOT = Path(__file__).resolve().parents[2]
REGION, ACCESS_KEY, SECRET_KEY = "us-east-1", "AKIDLEASEHOLDTEST", "secret-of-the-tests"
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=%s/20260101/%s/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
    % (ACCESS_KEY, REGION)
)
INDEXES = {"StatusIndex": "status", "TrackIndex": "allocated_to_track", "IdempotencyIndex": "idempotency_key"}
BATCH = 25  # most items of a BatchWriteItem
numbers = itertools.count(1)


class Emulator:
    """DynamoDB Local, by scripts/dynamodb-local; ends with this process whatever happens to it."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "scripts" / "dynamodb-local"), "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        word, _, self.endpoint = self.process.stdout.readline().strip().partition(" ")
        if word != "endpoint":
            said = self.process.stderr.read().strip()
            self.close()
            raise RuntimeError("no DynamoDB to test against: %s" % said)

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()
        self.process.stderr.close()


class DynamoError(Exception):
    """The service refused. type is the last part of its error's name."""

    def __init__(self, status, body):
        self.status = status
        self.body = json.loads(body) if body[:1] == b"{" else {}
        self.type = self.body.get("__type", "").rpartition("#")[2]
        self.message = self.body.get("message", self.body.get("Message", ""))
        super().__init__("%d %s: %s" % (status, self.type, self.message))


class Dynamo:
    """One connection's worth of calls. Not for two threads at once."""

    def __init__(self, endpoint, timeout=30.0, retry=True):
        at = urlsplit(endpoint)
        self.endpoint = endpoint
        self.http = Client((at.hostname, at.port), {"Authorization": AUTHORIZATION}, timeout=timeout, retry=retry)

    def __call__(self, operation, **body):
        headers = {"X-Amz-Target": "DynamoDB_20120810." + operation, "Content-Type": "application/x-amz-json-1.0"}
        reply = self.http.post("/", headers=headers, body=json.dumps(body).encode())
        if reply.status != 200:
            raise DynamoError(reply.status, reply.body)
        return reply.json

    def close(self):
        self.http.close()

    # Tables.

    def tables(self):
        return self("ListTables")["TableNames"]

    def describe(self, table):
        return self("DescribeTable", TableName=table)["Table"]

    def create(self, table, keys=("PK", "SK"), indexes=()):
        """indexes: {name: (hash, sort)}. Every key is text but allocated_at. On-demand, all attributes projected."""
        indexes = dict(indexes)
        names = {*keys, *(k for pair in indexes.values() for k in pair)}
        body = {
            "TableName": table,
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": schema(keys),
            "AttributeDefinitions": [
                {"AttributeName": n, "AttributeType": "N" if n == "allocated_at" else "S"} for n in sorted(names)
            ],
        }
        if indexes:
            body["GlobalSecondaryIndexes"] = [
                {"IndexName": name, "KeySchema": schema(pair), "Projection": {"ProjectionType": "ALL"}}
                for name, pair in indexes.items()
            ]
        self("CreateTable", **body)
        until(lambda: self.describe(table)["TableStatus"] == "ACTIVE", "table %s is active" % table)

    def create_pool(self, table, without=(), **other):
        """The pool table as the documents have it, without some indexes, or with other keys for some."""
        indexes = {name: (key, "allocated_at") for name, key in INDEXES.items() if name not in without}
        self.create(table, indexes={**indexes, **other})

    # Items.

    def put(self, table, item, **more):
        return self("PutItem", TableName=table, Item=wire(item), **more)

    def put_all(self, table, items):
        items = list(items)
        for at in range(0, len(items), BATCH):
            asked = {table: [{"PutRequest": {"Item": wire(i)}} for i in items[at : at + BATCH]]}
            while asked:
                asked = self("BatchWriteItem", RequestItems=asked).get("UnprocessedItems")

    def get(self, table, pk, sk="META"):
        got = self("GetItem", TableName=table, Key=wire({"PK": pk, "SK": sk}), ConsistentRead=True)
        return plain(got["Item"]) if "Item" in got else None

    def update(self, table, pk, expression, values, condition=None, names=None, sk="META"):
        body = {"UpdateExpression": expression, "ExpressionAttributeValues": wire(values)}
        if condition:
            body["ConditionExpression"] = condition
        if names:
            body["ExpressionAttributeNames"] = names
        return self("UpdateItem", TableName=table, Key=wire({"PK": pk, "SK": sk}), **body)

    def raw_items(self, table):
        """Every item, all pages, types as on the wire."""
        items, start = [], {}
        while True:
            page = self("Scan", TableName=table, ConsistentRead=True, **start)
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                return items
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def items(self, table):
        return [plain(i) for i in self.raw_items(table)]

    def count(self, table):
        total, start = 0, {}
        while True:
            page = self("Scan", TableName=table, ConsistentRead=True, Select="COUNT", **start)
            total += page["Count"]
            if "LastEvaluatedKey" not in page:
                return total
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def query(self, table, index, key, value, **more):
        got = self(
            "Query",
            TableName=table,
            IndexName=index,
            KeyConditionExpression="#k = :v",
            ExpressionAttributeNames={"#k": key},
            ExpressionAttributeValues=wire({":v": value}),
            **more
        )
        return [plain(i) for i in got["Items"]]


def schema(keys):
    return [{"AttributeName": k, "KeyType": t} for k, t in zip(keys, ("HASH", "RANGE"))]


def wire(item):
    """Plain values as DynamoDB writes them."""
    return {k: wire_value(v) for k, v in item.items()}


def wire_value(value):
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(value)}
    assert isinstance(value, str), "not a value of these tables: %r" % (value,)
    return {"S": value}


def plain(item):
    return {k: plain_value(v) for k, v in item.items()}


def plain_value(value):
    (kind, inner), = value.items()
    if kind == "N":
        return float(inner) if "." in inner else int(inner)
    if kind == "M":
        return plain(inner)
    if kind == "L":
        return [plain_value(v) for v in inner]
    return inner


class Store:
    """The tables of one test: names that no other test has, what a node needs to use them, and what is in them."""

    def __init__(self, endpoint):
        number = next(numbers)
        self.pool, self.kernel = "pool-%d" % number, "kernel-%d" % number
        self.db = Dynamo(endpoint)
        self.env = {
            "LEASEHOLD_STORE": "dynamodb",
            "DDB_TABLE_NAME": self.pool,
            "LEASEHOLD_DDB_KERNEL_TABLE": self.kernel,
            "DDB_ENDPOINT_URL": endpoint,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def run(self, *args, timeout=60, **env):
        """A command of the program with this store as its configuration."""
        return run(*args, env={**self.env, **env}, timeout=timeout)

    def create(self):
        """The pool as an existing deployment has it; the rest is made by the program."""
        self.db.create_pool(self.pool)
        got = self.run("store", "create-tables")
        assert got.returncode == 0, "create-tables: %d %s %s" % (got.returncode, got.stdout, got.stderr)
        return self

    def sandboxes(self):
        """{sandbox_id: item} of what is in the pool table."""
        items = self.db.items(self.pool)
        return {i["sandbox_id"]: i for i in items if i["PK"].startswith("SBX#") and i["SK"] == "META"}

    def sandbox(self, sandbox_id):
        return self.db.get(self.pool, "SBX#" + sandbox_id)

    def holders(self):
        """{track: [sandbox ids it holds now]}, from the table."""
        held = {}
        for sandbox_id, item in self.sandboxes().items():
            if item["status"] == "allocated":
                held.setdefault(item["allocated_to_track"], []).append(sandbox_id)
        return held

    def drop(self):
        names = self.db.tables()
        for table in (self.pool, self.kernel):
            if table in names:
                self.db("DeleteTable", TableName=table)
        self.db.close()
