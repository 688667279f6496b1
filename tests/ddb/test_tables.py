# SPDX-License-Identifier: Apache-2.0
"""Existing tables are used as they are: we read what the documents' own code writes, it reads what we write, and both
may run at once. Tables that are missing can be made, and differences are named."""

import itertools
import time

import pytest

from lib.crowd import together
from lib.dynamodb import INDEXES, REGION, Dynamo, DynamoError, Emulator, Store
from lib.wait import until

HOUR = 3600
OWN_INDEXES = {"Index%d" % n: ("g%dh" % n, "g%ds" % n) for n in (1, 2, 3)}  # of our own table

# Of the schema document: attributes that every item has, and those of some states.
ALWAYS = {
    "PK": "S",
    "SK": "S",
    "sandbox_id": "S",
    "name": "S",
    "external_id": "S",
    "status": "S",
    "lab_duration_hours": "N",
    "deletion_retry_count": "N",
    "allocated_at": "N",
    "created_at": "N",
    "updated_at": "N",
}
SOMETIMES = {
    "allocated_to_track": "S",
    "idempotency_key": "S",
    "deletion_requested_at": "N",
    "last_synced": "N",
    "track_name": "S",
    "sfdc_account_id": "S",
}


class Documents:
    """The program of the documents, as far as it touches the table: its reads, writes and conditions, and no more."""

    def __init__(self, endpoint, table):
        self.db, self.table = Dynamo(endpoint), table

    def item(self, account, status="available", **more):
        now = int(time.time())
        sandbox_id = str(account["csp_id"])
        return {
            "PK": "SBX#" + sandbox_id,
            "SK": "META",
            "sandbox_id": sandbox_id,
            "name": account["name"],
            "external_id": account["id"],
            "status": status,
            "lab_duration_hours": 4,
            "deletion_retry_count": 0,
            "allocated_at": 0,
            "created_at": now - 1000,
            "updated_at": now - 1000,
            "last_synced": now - 1000,
            **more,
        }

    def allocated(self, account, track, age=60, **more):
        at = int(time.time()) - age
        return self.item(account, "allocated", allocated_to_track=track, idempotency_key=track, allocated_at=at, **more)

    def fill(self, csp):
        self.db.put_all(self.table, [self.item(a) for a in csp.accounts.values()])

    def claim(self, sandbox_id, track):
        """True when the condition held."""
        now = int(time.time())
        return self._try(
            sandbox_id,
            "SET #status = :allocated, allocated_to_track = :t, allocated_at = :now, idempotency_key = :k,"
            " updated_at = :now",
            {":allocated": "allocated", ":available": "available", ":t": track, ":now": now, ":k": track},
            "attribute_exists(PK) AND #status = :available",
        )

    def allocate(self, track):
        """Its whole way: a repeat by the key's index, else candidates by the status index. None: nothing is free."""
        for item in self.db.query(self.table, "IdempotencyIndex", "idempotency_key", track, Limit=1):
            if item["status"] == "allocated":
                return item["sandbox_id"]
        for item in self.db.query(self.table, "StatusIndex", "status", "available", Limit=15):
            if self.claim(item["sandbox_id"], track):
                return item["sandbox_id"]
        return None

    def mark(self, sandbox_id, track):
        now = int(time.time())
        least = now - 4 * HOUR
        return self._try(
            sandbox_id,
            "SET #status = :p, deletion_requested_at = :now, updated_at = :now",
            {":p": "pending_deletion", ":allocated": "allocated", ":t": track, ":now": now, ":least": least},
            "attribute_exists(PK) AND #status = :allocated AND allocated_to_track = :t AND allocated_at > :least",
        )

    def _try(self, sandbox_id, change, values, condition):
        try:
            self.db.update(self.table, "SBX#" + sandbox_id, change, values, condition, {"#status": "status"})
            return True
        except DynamoError as e:
            assert e.type == "ConditionalCheckFailedException", e
            return False


@pytest.fixture
def documents(emulator, store):
    documents = Documents(emulator.endpoint, store.pool)
    yield documents
    documents.db.close()


def accounts_of(csp):
    return list(csp.accounts.values())


# What others wrote.


def test_items_of_the_documents_can_be_claimed_shown_marked_and_listed(make, store, documents, nodes, owner):
    csp = make.csp(12)
    documents.fill(csp)
    (node,) = nodes(1, csp)
    track, admin = node.track(owner), node.admin()
    assert {s["sandbox_id"] for s in admin.everything()} == {str(a["csp_id"]) for a in accounts_of(csp)}
    assert admin.stats()["available"] == 12
    got = track.claim()
    account = csp.find(got["sandbox_id"])
    assert (got["name"], got["external_id"]) == (account["name"], account["id"])
    assert got["expires_at"] == got["allocated_at"] + 4 * HOUR
    assert track.claim() == {**got}
    assert track.show(got["sandbox_id"]).json["status"] == "allocated"
    assert [s["sandbox_id"] for s in admin.everything("allocated")] == [got["sandbox_id"]]
    assert track.mark(got["sandbox_id"]).status == 200
    assert [s["sandbox_id"] for s in admin.everything("pending_deletion")] == [got["sandbox_id"]]
    assert len(admin.everything("available")) == 11
    admin.run("cleanup")
    assert store.sandbox(got["sandbox_id"]) is None and csp.uuid_of(got["sandbox_id"]) in csp.deleted


def test_what_was_allocated_by_the_documents_is_honoured(make, store, documents, nodes):
    csp = make.csp(6)
    accounts = accounts_of(csp)
    documents.db.put_all(store.pool, [documents.item(a) for a in accounts[2:]])
    documents.db.put(store.pool, documents.allocated(accounts[0], "their-track"))
    documents.db.put(store.pool, documents.allocated(accounts[1], "late-track", age=4 * HOUR + 60))
    (node,) = nodes(1, csp)
    theirs = node.track("their-track")
    repeat = theirs.allocate()
    assert (repeat.status, repeat.json["sandbox_id"]) == (200, str(accounts[0]["csp_id"]))
    assert node.track("another").mark(str(accounts[0]["csp_id"])).code == "NOT_SANDBOX_OWNER"
    assert theirs.mark(str(accounts[0]["csp_id"])).status == 200
    assert node.track("late-track").mark(str(accounts[1]["csp_id"])).code == "ALLOCATION_EXPIRED"
    later = node.track("late-track").allocate()
    assert later.status == 201 and later.json["sandbox_id"] != str(accounts[1]["csp_id"])
    assert store.sandbox(str(accounts[1]["csp_id"]))["status"] == "pending_deletion"
    assert all(len(h) == 1 for h in store.holders().values())


def test_items_in_every_state_are_understood(make, store, documents, nodes):
    csp = make.csp(4)
    accounts, now = accounts_of(csp), int(time.time())
    given = {"allocated_to_track": "old", "idempotency_key": "old", "allocated_at": now - 100}
    documents.db.put(store.pool, documents.item(accounts[0]))
    documents.db.put(store.pool, documents.item(accounts[1], "stale"))
    documents.db.put(store.pool, documents.item(accounts[2], "pending_deletion", deletion_requested_at=now, **given))
    documents.db.put(store.pool, documents.item(accounts[3], "deletion_failed", deletion_requested_at=now, **given))
    (node,) = nodes(1, csp)
    admin = node.admin()
    # At start sync brings the stale one back, and cleanup deletes the pending one.
    until(lambda: admin.run("sync") and admin.stats()["available"] == 2, "the stale one is back", 20, 0.1)
    until(lambda: admin.run("cleanup") and admin.stats()["pending_deletion"] == 0, "cleanup is through", 20, 0.1)
    assert csp.deletes() == [csp.uuid_of(str(accounts[2]["csp_id"]))]
    assert admin.stats()["deletion_failed"] == 1
    assert admin.on(str(accounts[3]["csp_id"]), "retry-deletion").status == 200
    assert store.sandbox(str(accounts[3]["csp_id"]))["status"] == "pending_deletion"


@pytest.mark.parametrize("where", ["in the table", "in the table and its index"])
def test_items_of_another_kind_are_left_alone(make, store, documents, nodes, owner, where):
    csp = make.csp(5)
    documents.fill(csp)
    others = [
        {"PK": "NIOSXAAS#%d" % (100000 + n), "SK": "CLEANUP", "ttl": int(time.time()) + 30 * 86400, "done": True}
        for n in range(5)
    ]
    if "index" in where:
        others.append({"PK": "NIOSXAAS#77", "SK": "CLEANUP", "status": "available", "allocated_at": 0})
    documents.db.put_all(store.pool, others)
    (node,) = nodes(1, csp)
    admin = node.admin()
    assert len(admin.everything()) == admin.stats()["total"] == 5
    assert len(admin.everything("available")) == admin.stats()["available"] == 5
    for what in ("sync", "cleanup", "expire"):
        admin.run(what)
    for n in range(5):
        assert node.track("%s-%d" % (owner, n)).allocate().status == 201
    assert node.track(owner).allocate().code == "NO_SANDBOXES_AVAILABLE"
    kept = {i["PK"]: i for i in documents.db.items(store.pool) if i["PK"].startswith("NIOSXAAS#")}
    assert kept == {o["PK"]: o for o in others}


def test_attributes_that_we_do_not_know_stay(make, store, documents, nodes, owner):
    csp = make.csp(1)
    extra = {"niosxaas_cleaned_at": 1700000000, "niosxaas_cleanup_skipped": True, "their_note": "keep me"}
    documents.db.put(store.pool, documents.item(accounts_of(csp)[0], **extra))
    (node,) = nodes(1, csp)
    node.admin().run("sync")
    sandbox = node.track(owner).claim()["sandbox_id"]
    assert node.track(owner).mark(sandbox).status == 200
    item = store.sandbox(sandbox)
    assert item["status"] == "pending_deletion" and {k: item.get(k) for k in extra} == extra


def test_a_list_goes_on_behind_items_of_another_kind(make, store, documents, nodes):
    csp = make.csp(100)
    (node,) = nodes(1, csp)
    documents.db.put_all(store.pool, [{"PK": "LOCK#%d" % n, "SK": "META", "owner": "x"} for n in range(60)])
    pages = list(itertools.islice(node.admin().pages(limit=10), 60))
    assert len(pages) < 60, "the list does not end"
    shown = [s["sandbox_id"] for page in pages for s in page]
    assert sorted(shown) == sorted(str(a["csp_id"]) for a in accounts_of(csp))


def test_what_the_documents_allocate_of_ours_is_adopted_at_the_next_start(make, store, documents, nodes):
    (node,) = nodes(1, make.csp(4))
    node.settle()
    assert node.stop() == 0
    theirs = documents.allocate("their-track")
    assert store.sandbox(theirs)["status"] == "allocated"
    node.start()
    track = node.track("their-track")
    repeat = until(lambda: (lambda r: r.status != 503 and r)(track.allocate()), "the node is open", 20, 0.1)
    assert (repeat.status, repeat.json["sandbox_id"]) == (200, theirs)
    assert store.holders() == {"their-track": [theirs]}


def test_what_the_documents_allocate_to_a_track_that_had_one_of_ours_is_adopted(make, store, documents, nodes):
    """Its marker named the old sandbox, and the track got a second one."""
    (node,) = nodes(1, make.csp(4))
    node.settle()
    ours = node.track("a-track").claim()["sandbox_id"]
    assert node.stop() == 0
    documents.mark(ours, "a-track")
    theirs = documents.allocate("a-track")
    assert theirs != ours
    node.start()
    track = node.track("a-track")
    repeat = until(lambda: (lambda r: r.status != 503 and r)(track.allocate()), "the node is open", 20, 0.1)
    assert (repeat.status, repeat.json["sandbox_id"]) == (200, theirs)
    assert store.holders() == {"a-track": [theirs]}


def test_one_that_the_documents_allocated_ends_also_when_the_track_has_another_of_ours(make, store, documents, nodes):
    """The marker names ours; ending theirs met that as a conflict, each time it was tried."""
    (node,) = nodes(1, make.csp(4))
    node.settle()
    theirs = documents.allocate("a-track")  # not known to be the track's before the next start
    track = node.track("a-track")
    ours = track.claim()["sandbox_id"]
    assert theirs != ours
    assert track.mark(theirs).status == 200
    assert store.sandbox(theirs)["status"] == "pending_deletion"
    assert track.claim()["sandbox_id"] == ours
    assert track.mark(ours).status == 200


def test_one_that_the_documents_allocated_is_replaced_before_it_is_adopted(make, store, documents, nodes):
    (node,) = nodes(1, make.csp(4))
    node.settle()
    theirs = documents.allocate("a-track")
    reply = node.admin().on(theirs, "replace", body={"reason": "broken"})
    assert reply.status in (200, 201), reply
    assert store.sandbox(theirs)["status"] == "stale"
    assert len(store.holders()["a-track"]) == 1


def test_an_id_longer_than_any_is_not_found(make, nodes, owner):
    (node,) = nodes(1, make.csp(1))
    track, long_id = node.track(owner), "x" * 600
    for reply in (track.show(long_id), track.mark(long_id)):
        assert (reply.status, reply.code) == (404, "SANDBOX_NOT_FOUND")
    assert node.is_alive() and track.allocate().status == 201


# What we write.


def assert_as_documented(raw):
    """Names and types of the schema document, on the wire."""
    for name, kind in ALWAYS.items():
        assert list(raw.get(name, {})) == [kind], "%s of %s: %r" % (name, raw["PK"], raw.get(name))
    for name, kind in SOMETIMES.items():
        assert name not in raw or list(raw[name]) == [kind], (name, raw[name])
    assert "" not in [v for a in raw.values() for v in a.values()], "an empty text: %r" % raw
    assert not any("NULL" in a for a in raw.values()), raw
    assert all(a["N"].isdigit() for n, a in raw.items() if n in ALWAYS and "N" in a), raw
    assert raw["PK"]["S"] == "SBX#" + raw["sandbox_id"]["S"] and raw["SK"]["S"] == "META"
    state = raw["status"]["S"]
    was_given = state in ("allocated", "pending_deletion", "deletion_failed")
    assert ("allocated_to_track" in raw, "idempotency_key" in raw) == (was_given, was_given), raw
    assert (raw["allocated_at"]["N"] != "0") == was_given, raw
    assert ("deletion_requested_at" in raw) == (was_given and state != "allocated"), raw


def every_state(make, nodes, csp, **env):
    """A node whose pool has sandboxes in each of the five states; the owner of the allocated one is "holder"."""
    (node,) = nodes(1, csp, DELETION_RETRY_MAX_ATTEMPTS=0, **env)
    admin = node.admin()

    def give_back(owner):
        track = node.track(owner)
        sandbox = track.claim()["sandbox_id"]
        assert track.mark(sandbox).status == 200
        return sandbox

    csp.delete_fault = 500
    give_back("failing")
    until(lambda: admin.act("cleanup") and admin.stats()["deletion_failed"] == 1, "one failed", 20, 0.1)
    csp.delete_fault = None
    node.track("holder").claim(key="a-key", headers={"X-Instruqt-Track-ID": "the-lab"})
    node.track("plain").claim()
    gone = next(s["sandbox_id"] for s in admin.everything("available"))
    csp.hidden = {gone}
    until(lambda: admin.act("sync") and admin.stats()["stale"] == 1, "one is stale", 20, 0.1)
    give_back("pending")
    return node


def test_what_we_write_is_what_the_schema_document_says(make, store, nodes):
    csp = make.csp(20)
    node = every_state(make, nodes, csp)
    raw = {i["sandbox_id"]["S"]: i for i in store.db.raw_items(store.pool) if i["PK"]["S"].startswith("SBX#")}
    assert len(raw) == 20
    for item in raw.values():
        assert_as_documented(item)
    states = {i["status"]["S"] for i in raw.values()}
    assert states == {"available", "allocated", "pending_deletion", "stale", "deletion_failed"}
    # And its lookups find it.
    (held,) = store.db.query(store.pool, "TrackIndex", "allocated_to_track", "holder")
    assert (held["status"], held["idempotency_key"], held["track_name"]) == ("allocated", "a-key", "the-lab")
    (plain,) = store.db.query(store.pool, "IdempotencyIndex", "idempotency_key", "plain")
    assert plain["sandbox_id"] == node.track("plain").claim()["sandbox_id"]
    free = store.db.query(store.pool, "StatusIndex", "status", "available")
    assert len(free) == node.admin().stats()["available"] and all(i["allocated_at"] == 0 for i in free)


def test_the_documents_code_goes_on_with_what_we_wrote(make, store, documents, nodes, owner):
    (node,) = nodes(1, make.csp(6))
    theirs = documents.allocate("their-track")
    assert store.sandbox(theirs)["allocated_to_track"] == "their-track"
    ours = node.track(owner).claim()["sandbox_id"]
    assert documents.allocate(owner) == ours, "a repeat at theirs finds ours"
    assert node.track("their-track").show(theirs).json["status"] == "allocated"
    assert documents.mark(ours, "somebody") is False
    assert documents.mark(ours, owner) is True
    assert node.track(owner).show(ours).json["status"] == "pending_deletion"
    again = node.track(owner).allocate()
    assert again.status == 201 and again.json["sandbox_id"] != ours
    assert node.track("their-track").mark(theirs).status == 200
    assert_as_documented(next(i for i in store.db.raw_items(store.pool) if i["PK"]["S"] == "SBX#" + theirs))


@pytest.mark.parametrize("written_by", ["them", "us"])
def test_both_programs_at_once_never_lend_a_sandbox_twice(make, store, emulator, documents, nodes, written_by):
    csp = make.csp(150)
    if written_by == "them":
        documents.fill(csp)
    (node,) = nodes(1, csp)
    each = 30

    def theirs(number):
        code = Documents(emulator.endpoint, store.pool)
        got = [("t%d-%d" % (number, n), code.allocate("t%d-%d" % (number, n))) for n in range(each)]
        code.db.close()
        return got

    def ours(number):
        got = []
        for n in range(each):
            track = node.track("o%d-%d" % (number, n))
            reply = track.allocate()
            assert reply.status in (201, 409, 503), reply  # 503: others were faster too often
            got.append((track.owner, reply.json.get("sandbox_id")))
            track.close()
        return got

    answers = together(6, lambda n: theirs(n) if n % 2 else ours(n))
    told = [(track, sandbox) for got in answers for track, sandbox in got if sandbox]
    assert len({s for _, s in told}) == len(told), "a sandbox was lent twice"
    assert len(told) > 100
    items = store.sandboxes()
    assert all(items[s]["allocated_to_track"] == t for t, s in told)


# Requests.


def test_a_claim_costs_two_requests(make, store, proxy, nodes):
    (node,) = nodes(1, make.csp(150), via=proxy)
    node.settle()
    node.track("first").claim()
    proxy.forget()
    tracks = [node.track("count-%d" % n) for n in range(100)]
    for track in tracks:
        assert track.allocate().status == 201
        track.close()
    assert proxy.total() <= 2 * 100 + 4, proxy.counts()  # a few for what happens beside, on a timer
    assert len(store.holders()) == 101


def test_requests_are_signed_for_the_region(make, store, proxy, nodes, owner):
    """The proxy checks every signature; here another region is used."""
    assert store.env["AWS_REGION"] == REGION
    (node,) = nodes(1, make.csp(3), via=proxy, AWS_REGION="eu-central-1")
    node.track(owner).claim()
    assert proxy.unsigned == [] and proxy.total() > 3


# The tables themselves.


def keys_of(described):
    return tuple(k["AttributeName"] for k in sorted(described["KeySchema"], key=lambda k: k["KeyType"]))


def assert_own_indexes(kernel):
    indexes = {i["IndexName"]: i for i in kernel["GlobalSecondaryIndexes"]}
    assert {n: keys_of(i) for n, i in indexes.items()} == OWN_INDEXES
    assert {i["Projection"]["ProjectionType"] for i in indexes.values()} == {"ALL"}
    assert {i["IndexStatus"] for i in indexes.values()} == {"ACTIVE"}
    assert {a["AttributeType"] for a in kernel["AttributeDefinitions"]} == {"S"}


def test_missing_tables_are_made(bare_store):
    got = bare_store.run("store", "create-tables")
    assert got.returncode == 0, got.stderr
    pool, kernel = bare_store.db.describe(bare_store.pool), bare_store.db.describe(bare_store.kernel)
    assert pool["TableStatus"] == kernel["TableStatus"] == "ACTIVE"
    assert keys_of(pool) == ("PK", "SK")
    indexes = {i["IndexName"]: i for i in pool["GlobalSecondaryIndexes"]}
    assert {n: keys_of(i) for n, i in indexes.items()} == {n: (k, "allocated_at") for n, k in INDEXES.items()}
    assert {i["Projection"]["ProjectionType"] for i in indexes.values()} == {"ALL"}
    kinds = {a["AttributeName"]: a["AttributeType"] for a in pool["AttributeDefinitions"]}
    assert kinds == {**dict.fromkeys(("PK", "SK", *INDEXES.values()), "S"), "allocated_at": "N"}
    assert_own_indexes(kernel)
    for table in (pool, kernel):
        assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
        ttl = bare_store.db("DescribeTimeToLive", TableName=table["TableName"])["TimeToLiveDescription"]
        assert ttl["TimeToLiveStatus"] == "DISABLED"  # nothing is written that it could go by
    assert bare_store.run("store", "check").returncode == 0


def test_tables_that_are_there_stay_as_they_are(bare_store):
    bare_store.db.create_pool(bare_store.pool)
    bare_store.db.put(bare_store.pool, {"PK": "SBX#1", "SK": "META", "status": "available", "allocated_at": 0})
    for _ in range(2):
        got = bare_store.run("store", "create-tables")
        assert got.returncode == 0, got.stderr
    assert bare_store.db.count(bare_store.pool) == 1
    assert bare_store.kernel in bare_store.db.tables()


@pytest.fixture
def fresh_store(emulator):
    """Names and settings on an emulator that does nothing else: on one that has run for a while with other tables, an
    added index may stay CREATING for good."""
    own = Emulator()
    store = Store(own.endpoint)
    yield store
    store.drop()
    own.close()


@pytest.mark.parametrize("there", [(), ("Index1",), ("Index1", "Index3")])
def test_a_kernel_table_from_before_gets_the_indexes_that_are_missing(fresh_store, there):
    db, kernel = fresh_store.db, fresh_store.kernel
    db.create_pool(fresh_store.pool)
    db.create(kernel, indexes={n: OWN_INDEXES[n] for n in there})
    old = {"PK": "tombstone", "SK": "7", "sandbox_id": "7", "version": 1}
    db.put(kernel, old)
    got = fresh_store.run("store", "check")
    said = got.stdout + got.stderr
    assert got.returncode != 0
    for name in OWN_INDEXES:
        assert ("table %s, index %s: is missing" % (kernel, name) in said) == (name not in there), said
    for _ in range(2):
        got = fresh_store.run("store", "create-tables")
        assert got.returncode == 0, got.stderr
        assert_own_indexes(db.describe(kernel))
    assert fresh_store.run("store", "check").returncode == 0
    assert db.items(kernel) == [old]


def test_check_names_a_kernel_index_with_other_keys(bare_store):
    bare_store.db.create_pool(bare_store.pool)
    bare_store.db.create(bare_store.kernel, indexes={**OWN_INDEXES, "Index2": ("g2h", "g1s")})
    got = bare_store.run("store", "check")
    said = got.stdout + got.stderr
    assert got.returncode != 0 and "index Index2" in said and "it must be g2h and g2s" in said, said
    assert "Index1" not in said and "Index3" not in said, said


def test_other_names_of_indexes_are_used(make, bare_store, owner):
    names = {"DDB_GSI1_NAME": "by-status", "DDB_GSI2_NAME": "by-track", "DDB_GSI3_NAME": "by-key"}
    bare_store.env.update(names)
    assert bare_store.run("store", "create-tables").returncode == 0
    made = bare_store.db.describe(bare_store.pool)["GlobalSecondaryIndexes"]
    assert {i["IndexName"] for i in made} == set(names.values())
    assert bare_store.run("store", "check").returncode == 0
    node = make.server(csp=make.csp(3), wait=False, **bare_store.env)
    node.wait_available(3)
    assert node.track(owner).allocate().status == 201
    assert len(bare_store.db.query(bare_store.pool, "by-track", "allocated_to_track", owner)) == 1


def test_check_is_content_with_good_tables(store):
    got = store.run("store", "check")
    assert got.returncode == 0 and "ok" in got.stdout, (got.stdout, got.stderr)


WRONG = {
    "an index is missing": (lambda db, t: db.create_pool(t, without=("IdempotencyIndex",)), ["IdempotencyIndex"]),
    "two indexes are missing": (
        lambda db, t: db.create_pool(t, without=("TrackIndex", "StatusIndex")),
        ["TrackIndex", "StatusIndex"],
    ),
    "an index has other keys": (
        lambda db, t: db.create_pool(t, TrackIndex=("owner", "allocated_at")),
        ["TrackIndex", "allocated_to_track"],
    ),
    "the table has other keys": (
        lambda db, t: db.create(t, ("id", "SK"), {n: (k, "allocated_at") for n, k in INDEXES.items()}),
        ["PK"],
    ),
    "the table has no sort key": (
        lambda db, t: db.create(t, ("PK",), {n: (k, "allocated_at") for n, k in INDEXES.items()}),
        ["SK"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_check_names_what_is_wrong(store, name):
    create, words = WRONG[name]
    store.db("DeleteTable", TableName=store.pool)
    create(store.db, store.pool)
    got = store.run("store", "check")
    said = got.stdout + got.stderr
    assert got.returncode != 0, said
    for word in [store.pool, *words]:
        assert word in said, said


@pytest.mark.parametrize("which", ["pool", "kernel"])
def test_check_names_a_missing_table(store, which):
    table = getattr(store, which)
    store.db("DeleteTable", TableName=table)
    got = store.run("store", "check")
    assert got.returncode != 0 and table in got.stdout + got.stderr, (got.stdout, got.stderr)


def test_a_server_without_its_tables_says_which_and_what_would_be_right(make, bare_store):
    node = make.server(csp=make.csp(1), wait=False, start=False, **bare_store.env)
    try:
        node.start()
    except AssertionError:
        said = "".join(node.said)  # it refused to start
    else:
        ready = node.client().get("/readyz")
        assert ready.status == 503
        said = ready.body.decode() + node.output()
    assert bare_store.pool in said and "create-tables" in said, said
