# SPDX-License-Identifier: Apache-2.0
"""What the other tests stand on: the emulator keeps its promises, the proxy's switches do what they say, and a bad
signature is noticed."""

import datetime
import hashlib
import hmac
import json
import time

import pytest

from lib.crowd import together
from lib.ddb_proxy import Caller, Proxy, signature_fault
from lib.dynamodb import Dynamo, DynamoError, wire
from lib.http import Broken, Client


@pytest.fixture
def table(bare_store):
    bare_store.db.create_pool(bare_store.pool)
    return bare_store.pool


@pytest.fixture
def proxy(emulator):
    """One that does not look at signatures: the test's own client makes none."""
    proxy = Proxy(emulator.endpoint)
    yield proxy
    proxy.stop()


@pytest.fixture
def db(proxy):
    db = Dynamo(proxy.endpoint, timeout=10, retry=False)
    yield db
    db.close()


ITEM = {"PK": "SBX#1", "SK": "META", "n": 1}
SET = {"Update": {"Key": wire({"PK": "SBX#1", "SK": "META"}), "UpdateExpression": "SET n = :n"}}


def transaction(table, value, **more):
    update = {**SET["Update"], "TableName": table, "ExpressionAttributeValues": wire({":n": value})}
    other = {"Put": {"TableName": table, "Item": wire({"PK": "M#1", "SK": "M"})}}
    return {"TransactItems": [{"Update": update}, other], **more}


def in_store(store, pk="SBX#1"):
    return (store.db.get(store.pool, pk) or {}).get("n")


# The emulator.


def add_one(db, table):
    """A compare-and-set by a reader who may be too late."""
    while True:
        seen = db.get(table, "COUNTER")["n"]
        try:
            db.update(table, "COUNTER", "SET n = :new", {":new": seen + 1, ":seen": seen}, "n = :seen")
            return
        except DynamoError as e:
            assert e.type == "ConditionalCheckFailedException", e


@pytest.mark.parametrize("way", ["direct", "by the proxy"])
def test_a_compare_and_set_counter_by_8_threads_loses_nothing(emulator, proxy, bare_store, table, way):
    bare_store.db.put(table, {"PK": "COUNTER", "SK": "META", "n": 0})

    def work(_):
        db = Dynamo(emulator.endpoint if way == "direct" else proxy.endpoint)
        for _ in range(25):
            add_one(db, table)
        db.close()

    together(8, work)
    assert in_store(bare_store, "COUNTER") == 200
    assert (proxy.total() >= 400) == (way != "direct")


def test_a_transaction_is_all_or_nothing_and_says_why(bare_store, table):
    db = bare_store.db
    asked = transaction(table, 5)
    asked["TransactItems"][0]["Update"]["ConditionExpression"] = "attribute_exists(PK)"
    with pytest.raises(DynamoError) as refused:
        db("TransactWriteItems", **asked)
    assert refused.value.type == "TransactionCanceledException"
    assert [r["Code"] for r in refused.value.body["CancellationReasons"]] == ["ConditionalCheckFailed", "None"]
    assert db.count(table) == 0


def test_a_client_token_makes_a_transaction_happen_once(bare_store, table):
    db = bare_store.db
    add = {"TableName": table, "Key": wire({"PK": "SBX#1", "SK": "META"}), "UpdateExpression": "ADD n :n"}
    asked = {
        "TransactItems": [{"Update": {**add, "ExpressionAttributeValues": wire({":n": 1})}}],
        "ClientRequestToken": "token-1",
    }
    for _ in range(3):
        db("TransactWriteItems", **asked)
    assert in_store(bare_store) == 1


def test_pages_are_followed_to_the_end(bare_store, table):
    big = "x" * 20000
    bare_store.db.put_all(table, [{"PK": "SBX#%d" % n, "SK": "META", "text": big} for n in range(120)])
    assert "LastEvaluatedKey" in bare_store.db("Scan", TableName=table)
    assert len(bare_store.db.items(table)) == bare_store.db.count(table) == 120


# The proxy: (kind, what the caller sees, whether it happened).

REFUSED = {
    "throttle": (400, "ProvisionedThroughputExceededException", False),
    "error": (500, "InternalServerError", False),
    "lose-500": (500, "InternalServerError", True),
    "conflict": (400, "TransactionConflictException", False),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_fault_that_answers(proxy, db, bare_store, table, kind):
    fault = proxy.fault(kind, operations=("PutItem",), count=2)
    status, name, happens = REFUSED[kind]
    for _ in range(2):
        with pytest.raises(DynamoError) as refused:
            db.put(table, ITEM)
        assert (refused.value.status, refused.value.type) == (status, name)
    assert in_store(bare_store) == (1 if happens else None)
    db.put(table, {**ITEM, "n": 2})
    assert in_store(bare_store) == 2 and fault.hits == 2
    assert [(e.fault, e.status, e.is_forwarded) for e in proxy.entries("PutItem")] == [
        (kind, status, happens),
        (kind, status, happens),
        (None, 200, True),
    ]


@pytest.mark.parametrize("kind, happens", [("drop", False), ("lose", True), ("hang", False)])
def test_a_fault_that_does_not_answer(proxy, db, bare_store, table, kind, happens):
    proxy.fault(kind, operations=("PutItem",), count=1, seconds=0.2)
    with pytest.raises(Broken):
        db.put(table, ITEM)
    assert in_store(bare_store) == (1 if happens else None)
    db.put(table, {**ITEM, "n": 2})
    assert in_store(bare_store) == 2
    assert [(e.fault, e.status) for e in proxy.entries("PutItem")] == [(kind, None), (None, 200)]


def test_a_conflict_of_a_transaction_names_a_reason_for_every_item(proxy, db, bare_store, table):
    proxy.fault("conflict", count=1)
    with pytest.raises(DynamoError) as refused:
        db("TransactWriteItems", **transaction(table, 7))
    assert refused.value.type == "TransactionCanceledException"
    assert [r["Code"] for r in refused.value.body["CancellationReasons"]] == ["TransactionConflict", "None"]
    assert in_store(bare_store) is None
    db("TransactWriteItems", **transaction(table, 7))
    assert in_store(bare_store) == 7


def test_a_delay_is_passed_on_later(proxy, db, bare_store, table):
    proxy.fault("delay", count=1, seconds=0.3)
    begin = time.monotonic()
    db.put(table, ITEM)
    assert time.monotonic() - begin >= 0.3
    assert in_store(bare_store) == 1


def test_an_index_can_be_made_to_lag(proxy, db, bare_store, table):
    def free():
        return len(db.query(table, "StatusIndex", "status", "available"))

    def put(number):
        bare_store.db.put(table, {"PK": "SBX#%d" % number, "SK": "META", "status": "available", "allocated_at": 0})

    put(1)
    proxy.fault("stale")
    assert free() == 1
    put(2)
    assert free() == 1 and len(db.items(table)) == 2, "only indexes lag"
    proxy.clear()
    assert free() == 2
    proxy.fault("stale")
    put(3)
    assert free() == 2


def test_a_share_strikes_about_so_often_and_only_where_it_is_meant(proxy, db, table):
    fault = proxy.fault("throttle", operations=("PutItem",), share=0.3, seed=4)
    refused = 0
    for n in range(200):
        try:
            db.put(table, {**ITEM, "n": n})
        except DynamoError:
            refused += 1
        if n % 20 == 0:
            db.get(table, "SBX#1")
    assert refused == fault.hits and 35 < refused < 85
    assert proxy.counts() == {"PutItem": 200, "GetItem": 10}
    proxy.clear()
    proxy.forget()
    db.put(table, ITEM)
    assert proxy.counts() == {"PutItem": 1}


def test_stopped_it_refuses_and_back_it_serves_on_the_same_port(proxy, db, bare_store, table):
    db.put(table, ITEM)
    before = proxy.endpoint
    proxy.stop()
    for _ in range(2):
        with pytest.raises((Broken, OSError)):
            db.put(table, {**ITEM, "n": 2})
    assert in_store(bare_store) == 1
    proxy.start()
    assert proxy.endpoint == before
    db.put(table, {**ITEM, "n": 3})
    assert in_store(bare_store) == 3


def test_one_connection_is_enough_for_many_requests(proxy, db, table):
    for n in range(50):
        db.put(table, {**ITEM, "n": n})
    assert len(proxy.open) == 1


# Signatures.


def signed(body, secret="s3cret", target="DynamoDB_20120810.ListTables", when=None):
    """A rightly signed request, worked out step by step as AWS documents it."""
    when = when or datetime.datetime.now(datetime.timezone.utc)
    stamp, day = when.strftime("%Y%m%dT%H%M%SZ"), when.strftime("%Y%m%d")
    names = "content-type;host;x-amz-date;x-amz-target"
    headers = {"content-type": "application/x-amz-json-1.0", "host": "h", "x-amz-date": stamp, "x-amz-target": target}
    canonical = "POST\n/\n\n" + "".join("%s:%s\n" % (n, headers[n]) for n in names.split(";"))
    canonical += "\n" + names + "\n" + hashlib.sha256(body).hexdigest()
    scope = day + "/us-east-1/dynamodb/aws4_request"
    text = "AWS4-HMAC-SHA256\n%s\n%s\n%s" % (stamp, scope, hashlib.sha256(canonical.encode()).hexdigest())
    step = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        step = hmac.new(step, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(step, text.encode(), hashlib.sha256).hexdigest()
    headers["authorization"] = "AWS4-HMAC-SHA256 Credential=KEY/%s, SignedHeaders=%s, Signature=%s" % (
        scope,
        names,
        signature,
    )
    return headers


class Wire:
    """A socket that has already received these bytes."""

    def __init__(self, data):
        self.data = data

    def recv(self, _):
        data, self.data = self.data, b""
        return data


def parsed(headers, body):
    lines = ["POST / HTTP/1.1"] + ["%s: %s" % h for h in headers.items()] + ["content-length: %d" % len(body)]
    return Caller(Wire(("\r\n".join(lines) + "\r\n\r\n").encode() + body)).request()


def test_a_right_signature_passes():
    assert signature_fault(parsed(signed(b"{}"), b"{}"), {"KEY": "s3cret"}) is None


@pytest.mark.parametrize(
    "name, change",
    [
        ("another secret", lambda h: h.update(signed(b"{}", secret="other"))),
        ("another body", lambda h: h.update(signed(b"[]"))),
        ("a header changed", lambda h: h.update({"x-amz-target": "DynamoDB_20120810.Scan"})),
        ("a header not signed", lambda h: h.update({"x-amz-security-token": "t"})),
        ("no signature", lambda h: h.pop("authorization")),
        ("another key", lambda h: h.update({"authorization": h["authorization"].replace("KEY", "OTHER")})),
        ("another service", lambda h: h.update({"authorization": h["authorization"].replace("dynamodb", "s3")})),
    ],
)
def test_a_wrong_signature_is_found(name, change):
    headers = signed(b"{}")
    change(headers)
    assert signature_fault(parsed(headers, b"{}"), {"KEY": "s3cret"}), name


def test_the_proxy_refuses_what_is_not_signed(emulator):
    proxy = Proxy(emulator.endpoint, {"KEY": "s3cret"})
    http = Client(("127.0.0.1", proxy.port))
    headers = signed(b"{}")
    assert http.post("/", headers={**headers, "Host": None}, body=b"{}").status == 200
    with pytest.raises(DynamoError) as refused:
        Dynamo(proxy.endpoint).tables()
    assert refused.value.type == "InvalidSignatureException"
    assert len(proxy.unsigned) == 1
    assert json.loads(proxy.entries()[-1].body) == {}
    http.close()
    proxy.stop()
