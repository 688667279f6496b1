# SPDX-License-Identifier: Apache-2.0
"""Keys that get more writes than DynamoDB gives a partition key: nothing is lost, whoever has time is served, and the log of events takes its
writes evenly. And that the meter, which stands in for the service here, counts and refuses as that does."""

import time

import pytest

from lib.crowd import together
from lib.ddb_proxy import Proxy
from lib.ddb_units import BURST_SECONDS, Meter
from lib.dynamodb import ACCESS_KEY, SECRET_KEY, Dynamo, DynamoError, wire

CLAIMS, CALLERS, SLICES, LIMIT = 160, 16, 4, 25


@pytest.fixture
def metered(emulator):
    """A proxy whose meter only counts, until it gets a limit."""
    proxy = Proxy(emulator.endpoint, {ACCESS_KEY: SECRET_KEY}, Meter(emulator.endpoint))
    yield proxy
    proxy.stop()


@pytest.fixture
def counted(emulator, store):
    """A client behind a meter, on tables of its own."""
    proxy = Proxy(emulator.endpoint, meter=Meter(emulator.endpoint))
    yield Dynamo(proxy.endpoint), proxy.meter
    proxy.stop()


def sandbox(name, status, **more):
    return {"PK": name, "SK": "META", "status": status, "allocated_at": 0, **more}


def test_a_write_costs_a_unit_for_each_started_kb_and_each_index_its_own(store, counted):
    db, meter = counted
    pool, status = store.pool, store.pool + "/StatusIndex"

    def paid():
        found = {key: cost for key, cost in meter.paid.items() if cost}
        meter.forget()
        return found

    db.put(pool, {"PK": "a", "SK": "META"})
    assert paid() == {(pool, "a"): 1}
    db.put(pool, {"PK": "b", "SK": "META", "text": "x" * 2040})  # 2,054 bytes with names and keys
    assert paid() == {(pool, "b"): 3}
    db.put(pool, sandbox("a", "free"))
    assert paid() == {(pool, "a"): 1, (status, "free"): 1}, "it comes into the index"
    db.update(pool, "a", "SET #s = :s", {":s": "used"}, names={"#s": "status"})
    assert paid() == {(pool, "a"): 1, (status, "free"): 1, (status, "used"): 1}, "it moves there"
    db.update(pool, "a", "SET note = :n", {":n": "y" * 1100})
    assert paid() == {(pool, "a"): 2, (status, "used"): 2}, "it is projected whole"
    key = {"Key": wire({"PK": "a", "SK": "META"}), "TableName": pool}
    check = {**key, "ConditionExpression": "attribute_exists(PK)"}
    put = {"TableName": pool, "Item": wire({"PK": "c", "SK": "META"})}
    db("TransactWriteItems", TransactItems=[{"ConditionCheck": check}, {"Put": put}])
    assert paid() == {(pool, "a"): 4, (pool, "c"): 2}, "double, a look included; indexes only when something changes"
    db("BatchWriteItem", RequestItems={pool: [{"DeleteRequest": {"Key": key["Key"]}}]})
    assert paid() == {(pool, "a"): 2, (status, "used"): 2}


def test_the_emulator_counts_a_transaction_the_same_but_doubles_its_indexes_too(store, counted):
    db, meter = counted
    db.put(store.pool, sandbox("a", "free"))
    db.put(store.pool, sandbox("b", "free", note="y" * 1100))
    meter.forget()
    key = lambda pk: {"TableName": store.pool, "Key": wire({"PK": pk, "SK": "META"})}
    update = {**key("a"), "UpdateExpression": "SET #s = :s, allocated_to_track = :t REMOVE note",
              "ExpressionAttributeNames": {"#s": "status"}, "ExpressionAttributeValues": wire({":s": "used", ":t": "me"})}
    put = {"TableName": store.kernel, "Item": wire({"PK": "event", "SK": "1", "detail": "x" * 1500})}
    reply = db("TransactWriteItems", ReturnConsumedCapacity="INDEXES",
               TransactItems=[{"Update": update}, {"Delete": key("b")}, {"Put": put}])
    theirs = {}
    for each in reply["ConsumedCapacity"]:
        theirs[each["TableName"]] = each["Table"]["CapacityUnits"]
        for name, index in each.get("GlobalSecondaryIndexes", {}).items():
            theirs[each["TableName"] + "/" + name] = index["CapacityUnits"] / 2
    assert meter.by_place() == theirs and len(theirs) == 4


def test_a_key_that_has_had_its_share_is_refused_in_the_services_words(store, counted):
    db, meter = counted
    meter.limit = 4 / BURST_SECONDS
    for n in range(4):
        db.put(store.kernel, {"PK": "hot", "SK": str(n)})
    with pytest.raises(DynamoError) as refused:
        while True:  # it gets some more while we ask
            db.put(store.kernel, {"PK": "hot", "SK": "more"})
    assert refused.value.type == "ThrottlingException"
    db.put(store.kernel, {"PK": "cool", "SK": "0"})
    both = [{"Put": {"TableName": store.kernel, "Item": wire({"PK": pk, "SK": "t"})}} for pk in ("cool", "hot")]
    with pytest.raises(DynamoError) as refused:
        while True:
            db("TransactWriteItems", TransactItems=both)
    assert refused.value.type == "TransactionCanceledException"
    assert [r["Code"] for r in refused.value.body["CancellationReasons"]] in (["None", "ThrottlingError"], ["ThrottlingError"] * 2)
    assert set(meter.refused) <= {(store.kernel, "hot"), (store.kernel, "cool")} and meter.refused[store.kernel, "hot"] >= 2


def claims_of(store):
    """{track: sandbox} as the table has it; nobody has two, and no two have one."""
    holders = store.holders()
    assert all(len(held) == 1 for held in holders.values()), holders
    return {track: held[0] for track, held in holders.items()}


def test_throttled_keys_lose_no_claim_and_each_slice_takes_its_share(make, store, nodes, metered, new_owner):
    meter = metered.meter
    servers = nodes(2, make.csp(CLAIMS), via=metered, LEASEHOLD_STORE_DEADLINE_MS=60000, LEASEHOLD_DDB_EVENT_SLICES=SLICES)
    meter.learn(store.pool, store.kernel)
    meter.limit = LIMIT
    meter.forget()
    owners, told = [new_owner() for _ in range(CLAIMS)], {}

    def claim(caller):
        for owner in owners[caller::CALLERS]:
            told[owner] = servers[caller % 2].track(owner, timeout=120).claim()["sandbox_id"]

    together(CALLERS, claim)
    most = LIMIT * (meter.seconds() + BURST_SECONDS)
    assert claims_of(store) == told and len(told) == CLAIMS
    assert meter.refused, "the limit was met"
    assert {key: cost for key, cost in meter.paid.items() if cost > most} == {}
    shares = meter.of(store.kernel, "event")
    assert sum(shares.values()) >= 2 * CLAIMS
    # Of 160, a quarter is 40; 64 or more in one slice would be chance once in 100,000 runs.
    assert max(shares.values()) <= 0.4 * sum(shares.values()), shares


def test_only_who_has_no_time_left_is_told_to_come_again(make, store, nodes, metered, new_owner):
    """Four attempts were all, and a cancelled transaction had one: 503 long before the deadline."""
    deadline = 3.0
    (node,) = nodes(1, make.csp(60), via=metered, LEASEHOLD_STORE_DEADLINE_MS=int(1000 * deadline), LEASEHOLD_DDB_EVENT_SLICES=1)
    metered.meter.learn(store.pool, store.kernel)
    metered.meter.limit = 4  # two claims a second
    told, refused = {}, {}

    def claim(_):
        for owner in (new_owner(), new_owner()):
            begin = time.monotonic()
            reply = node.track(owner, timeout=120).allocate()
            if reply.status == 201:
                told[owner] = reply.json["sandbox_id"]
            else:
                assert (reply.status, reply.code) == (503, "SERVICE_UNAVAILABLE"), reply
                refused[owner] = time.monotonic() - begin

    together(CALLERS, claim)
    metered.meter.limit = None
    assert told and refused and len(told) + len(refused) == 2 * CALLERS
    assert min(refused.values()) >= 0.9 * deadline, sorted(refused.values())
    for owner in refused:  # a 503 may have happened; asking again finds out, and the store was never given up
        told[owner] = node.track(owner).claim()["sandbox_id"]
    assert claims_of(store) == told
