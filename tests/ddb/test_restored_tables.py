# SPDX-License-Identifier: Apache-2.0
"""D28 on DynamoDB: tables as they were at a moment, under other names, as point-in-time recovery makes them. What was lent since is found in the
tables that were replaced, and is not lent again. The emulator has no such recovery: items are read at the moment, and written into new tables."""

import pytest

from lib.dynamodb import BATCH, Store
from lib.server import run
from lib.wait import until

STOCK, KEPT, LENT, NEW = 60, 5, 30, 4


def moment(store):
    """What the tables have now: all that recovery would bring back."""
    return {name: store.db.raw_items(getattr(store, name)) for name in ("pool", "kernel")}


@pytest.fixture
def restored(emulator):
    """restored(pool=items, kernel=items): new tables with these items."""
    made = []

    def restore(**items):
        store = Store(emulator.endpoint).create()
        made.append(store)
        for name, list_ in items.items():
            for at in range(0, len(list_), BATCH):
                asked = {getattr(store, name): [{"PutRequest": {"Item": i}} for i in list_[at : at + BATCH]]}
                while asked:
                    asked = store.db("BatchWriteItem", RequestItems=asked).get("UnprocessedItems")
        return store

    yield restore
    for store in made:
        store.drop()


def start_on(make, store, csp):
    return make.server(csp=csp, wait=False, LEASEHOLD_STORE_DEADLINE_MS="8000", **store.env)


def cli(server, *words, code=0):
    got = run(*words, env={"LEASEHOLD_ADDRESS": server.url, "BROKER_ADMIN_TOKEN": server.env["BROKER_ADMIN_TOKEN"]}, timeout=300)
    assert got.returncode == code, (words, got.stdout[-500:], got.stderr[-500:])
    return got.stdout


def test_D28_what_was_lent_since_the_moment_is_listed_by_the_old_table_and_never_lent_again(make, store, nodes, restored, tmp_path):
    csp = make.csp(STOCK)
    (node,) = nodes(1, csp)
    kept = {owner: node.track(owner).claim()["sandbox_id"] for owner in ("before-%d" % n for n in range(KEPT))}
    backup = moment(store)

    # Lent are some that were there at the moment, and one that came afterwards.
    known = set(store.sandboxes())
    csp.add(NEW)
    node.admin().run("sync")
    until(lambda: store.db.count(store.pool) == STOCK + NEW, "the new ones are in the pool")
    lent = set()
    while len(lent) < LENT or not lent - known:
        lent.add(node.track("since-%d" % len(lent)).claim()["sandbox_id"])
    given_back = "before-0"
    assert node.track(given_back).mark(kept[given_back]).status in (200, 202)
    assert node.stop() == 0

    again = restored(**backup)
    assert again.run("store", "check").returncode == 0
    got = again.run("store", "restore", "--from", store.pool)
    assert got.returncode == 0 and "claims are paused" in got.stderr, got.stderr
    assert set(got.stdout.split()) == lent, "exactly those: what is known here as in use is not among them"
    unknown = tmp_path / "unknown"
    unknown.write_text(got.stdout)

    server = start_on(make, again, csp)
    until(lambda: server.client().get("/readyz").status, "it serves")
    server.admin().run("sync")  # the restored tables think that it ran a moment ago
    assert set(store.sandboxes()) - {kept[given_back]} <= set(again.sandboxes()), "what came afterwards is known again"
    assert [server.track("late").allocate().code for _ in range(3)] == ["CLAIMS_PAUSED"] * 3
    ready = server.client().get("/readyz").json["checks"]
    assert ready == {"store": "ok", "claims": "paused"}, "that claims are paused is no failure of the store"
    assert server.track("before-1").claim()["sandbox_id"] == kept["before-1"]
    cli(server, "sandbox", "quarantine", "--from", str(unknown), "--reason", "in use at the restore")
    cli(server, "claims", "resume", "--reason", "looked at")
    got = [server.track("after-%d" % n).allocate() for n in range(STOCK + NEW)]
    now = {r.json["sandbox_id"] for r in got if r.status == 201}
    assert len(now) == STOCK + NEW - KEPT - len(lent) and not now & lent and not now & set(kept.values())
    assert all(len(h) == 1 for h in again.holders().values())


@pytest.mark.parametrize("newer", ["pool", "kernel"])
def test_tables_that_were_restored_a_moment_apart_lend_nothing_twice(make, store, nodes, restored, newer):
    """Two tables are two recoveries: a claim, which is one transaction in both, may be in one of them only."""
    csp = make.csp(20)
    (node,) = nodes(1, csp)
    before = {owner: node.track(owner).claim()["sandbox_id"] for owner in ("a", "b")}
    early = moment(store)
    between = {owner: node.track(owner).claim()["sandbox_id"] for owner in ("c", "d", "e")}
    assert node.track("a").mark(before["a"]).status in (200, 202)
    late = moment(store)
    assert node.stop() == 0

    again = restored(**{name: (late if name == newer else early)[name] for name in ("pool", "kernel")})
    assert again.run("store", "restore").returncode == 0
    server = start_on(make, again, csp)
    until(lambda: server.track("x").allocate().status == 503, "it serves, and lends nothing")
    cli(server, "claims", "resume", "--reason", "a test")
    assert server.track("b").claim()["sandbox_id"] == before["b"]
    if newer == "pool":
        assert {o: server.track(o).claim()["sandbox_id"] for o in between} == between, "what the pool says is lent is its track's"
    held = {o: server.track(o).claim()["sandbox_id"] for o in ("b", "c", "d", "e", "f", "g")}
    assert len(set(held.values())) == len(held)
    assert all(len(h) == 1 for h in again.holders().values())


def test_a_restore_names_what_the_tables_lack_and_pauses_nothing(store, bare_store, emulator):
    other = Store(emulator.endpoint)
    got = other.run("store", "restore")
    assert got.returncode != 0 and other.pool in got.stderr and got.stdout == ""
    got = store.run("store", "restore", "--from", "no-such-table")
    assert got.returncode != 0 and "no-such-table" in got.stderr
    other.db.close()
