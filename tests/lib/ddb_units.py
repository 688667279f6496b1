# SPDX-License-Identifier: Apache-2.0
"""What writes cost on DynamoDB, by partition key, and what the service does when a key gets too many of them.

    meter = Meter(endpoint, limit=100)          # write units a second for each key; None: only count
    Proxy(endpoint, meter=meter)

A write costs one unit for each started KB of the item, the larger of before and after; in a transaction double, also
when a condition fails or is all there is. Each secondary index that has the item, before or after, costs a write of
its own: one when the entry comes, goes or changes, two when it moves to another key. Those of a transaction are not
doubled, for they follow behind it.

A key is a partition key of a table or of an index, and gets `limit` units a second, up to BURST_SECONDS of them at once.
What would go beyond is refused in DynamoDB's words, and costs nothing. An index that is full refuses the write of its
table, as on AWS. What AWS does besides is not here: it may split a key whose sort keys are spread, and lets a quiet
partition save up.

To know the item before a write, the meter keeps what it has seen written, and reads what it has not.
"""

import json
import re
import threading
import time
from collections import Counter
from dataclasses import dataclass

from lib.dynamodb import Dynamo

KB = 1024
BURST_SECONDS = 0.25
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem")
BUSY = "Throughput exceeds the current capacity of your table or index"
CLAUSE = re.compile(r"\b(SET|REMOVE)\s+(.*?)(?=\s+(?:SET|REMOVE)\s|$)")


def value_size(value):
    """Bytes of an attribute's value, as DynamoDB counts them."""
    (kind, inner), = value.items()
    if kind == "N":
        return (len(inner.strip("-").replace(".", "")) + 1) // 2 + 1 + inner.startswith("-")
    if kind in ("BOOL", "NULL"):
        return 1
    if kind == "M":
        return 3 + sum(len(k.encode()) + value_size(v) + 1 for k, v in inner.items())
    if kind == "L":
        return 3 + sum(value_size(v) + 1 for v in inner)
    assert kind == "S", "not a kind of value that we write: %s" % kind
    return len(inner.encode())


def units(item):
    """Write units of one item; one for an item that is not there."""
    size = sum(len(k.encode()) + value_size(v) for k, v in item.items()) if item else 0
    return max(1, -(-size // KB))


def text_of(value):
    return next(iter(value.values()))


def changed(item, key, action):
    """The item after an Update of the forms that we send."""
    after = dict(item or key)
    names, values = action.get("ExpressionAttributeNames", {}), action.get("ExpressionAttributeValues", {})
    for clause, rest in CLAUSE.findall(action["UpdateExpression"]):
        for part in rest.split(","):
            name, _, value = (x.strip() for x in part.partition("="))
            assert bool(value) == (clause == "SET"), "not an expression that we send: %s" % action["UpdateExpression"]
            if value:
                after[names.get(name, name)] = values[value]
            else:
                after.pop(names.get(name, name), None)
    return after


@dataclass
class Action:
    """One write of a request: what it makes of the item, and what each key pays for it."""

    table: str
    key: tuple
    after: dict
    costs: Counter  # {(table or "table/index", partition key): units}


class Meter:
    def __init__(self, endpoint, limit=None, spared=()):
        """spared: names of indexes whose keys are counted and not limited."""
        self.limit, self.spared = limit, spared
        self.db, self.lock = Dynamo(endpoint), threading.Lock()
        self.schemas, self.items, self.known = {}, {}, set()
        self.levels = {}  # key: (units that it may have now, when that was)
        self.forget()

    def forget(self):
        """Count from here on."""
        with self.lock:
            self.calls, self.paid, self.refused = Counter(), Counter(), Counter()  # by operation; by key; by key
            self.refusals, self.begin = 0, time.monotonic()

    def learn(self, *tables):
        """Read what is in there, so that no write has to wait for it; for tables that nobody writes to past the meter."""
        for table in tables:
            with self.lock:  # nothing is admitted meanwhile
                for item in self.db.raw_items(table):
                    self.items[table, self._key(table, item)] = item
                self.known.add(table)

    # What it costs.

    def _schema(self, table):
        """Attributes of the table's key, and {index: attributes of its key}."""
        if table not in self.schemas:
            about = self.db.describe(table)
            keys = lambda schema: tuple(k["AttributeName"] for k in schema)
            indexes = {i["IndexName"]: keys(i["KeySchema"]) for i in about.get("GlobalSecondaryIndexes", [])}
            self.schemas[table] = keys(about["KeySchema"]), indexes
        return self.schemas[table]

    def _key(self, table, item):
        return tuple(text_of(item[name]) for name in self._schema(table)[0])

    def _before(self, table, key, attributes):
        if (table, key) not in self.items and table not in self.known:
            names = self._schema(table)[0]
            got = self.db("GetItem", TableName=table, Key={n: attributes[n] for n in names}, ConsistentRead=True)
            self.items[table, key] = got.get("Item")
        return self.items.get((table, key))

    def _action(self, kind, action, factor):
        table, attributes = action["TableName"], action.get("Item") or action["Key"]
        key = self._key(table, attributes)
        before = self._before(table, key, attributes)
        after = {"Put": lambda: attributes, "Delete": lambda: None, "ConditionCheck": lambda: before,
                 "Update": lambda: changed(before, attributes, action)}[kind]()
        costs = Counter({(table, key[0]): factor * max(units(before), units(after))})
        for index, names in self._schema(table)[1].items():
            old, new = (tuple(text_of(i[n]) for n in names) if i and all(n in i for n in names) else None
                        for i in (before, after))
            if old and new and old == new:
                costs[table + "/" + index, old[0]] += max(units(before), units(after)) if before != after else 0
                continue
            for place, item in ((old, before), (new, after)):
                if place:
                    costs[table + "/" + index, place[0]] += units(item)
        return Action(table, key, after, costs)

    def _actions(self, operation, body):
        if operation == "TransactWriteItems":
            return [self._action(kind, action, 2) for a in body["TransactItems"] for kind, action in a.items()]
        if operation == "BatchWriteItem":
            asked = [(t, kind, a) for t, all_of in body["RequestItems"].items() for r in all_of for kind, a in r.items()]
            return [self._action(kind[: -len("Request")], {**a, "TableName": t}, 1) for t, kind, a in asked]
        return [self._action(operation[: -len("Item")], body, 1)]

    # What is allowed.

    def _level(self, key, now):
        level, then = self.levels.get(key, (self.limit * BURST_SECONDS, now))
        return min(self.limit * BURST_SECONDS, level + (now - then) * self.limit)

    def _is_full(self, key, cost, now):
        if self.limit is None or key[0].rpartition("/")[2] in self.spared:
            return False
        return self._level(key, now) < min(cost, self.limit * BURST_SECONDS)

    def admit(self, operation, text):
        """(None, what to keep when it has been done), or (the refusal: its name and body, None)."""
        with self.lock:
            self.calls[operation] += 1
            if operation not in WRITES:
                return None, []
            actions, now = self._actions(operation, json.loads(text)), time.monotonic()
            total = sum((a.costs for a in actions), Counter())
            full = {key for key, cost in total.items() if self._is_full(key, cost, now)}
            if full:
                self.refusals += 1
                self.refused.update(full)
                return refusal(operation, [bool(full & set(a.costs)) for a in actions]), None
            self.paid.update(total)
            if self.limit is not None:
                self.levels.update({key: (self._level(key, now) - cost, now) for key, cost in total.items()})
            return None, actions

    def done(self, actions):
        """It was carried out."""
        with self.lock:
            for a in actions:
                self.items[a.table, a.key] = a.after

    # What was paid.

    def seconds(self):
        return time.monotonic() - self.begin

    def by_place(self):
        """Units of each table and each "table/index"."""
        sums = Counter()
        with self.lock:
            for (place, _), cost in self.paid.items():
                sums[place] += cost
        return sums

    def of(self, place, prefix=""):
        """Units of each partition key of a table or "table/index", of those that begin like this."""
        with self.lock:
            return Counter({key: cost for (where, key), cost in self.paid.items()
                            if where == place and key.startswith(prefix)})


def refusal(operation, are_full):
    if operation != "TransactWriteItems":
        return "ThrottlingException", {"message": BUSY}
    reasons = [{"Code": "ThrottlingError", "Message": BUSY} if full else {"Code": "None"} for full in are_full]
    codes = ", ".join(r["Code"] for r in reasons)
    message = "Transaction cancelled, please refer cancellation reasons for specific reasons [%s]" % codes
    return "TransactionCanceledException", {"Message": message, "CancellationReasons": reasons}
