# SPDX-License-Identifier: Apache-2.0
"""What operators see: the list in pages, one record, the counts."""

import pytest

from lib.crowd import Loop
from lib.wait import until

STATES = ["available", "allocated", "pending_deletion", "stale", "deletion_failed"]
LIST_FIELDS = {
    "sandbox_id",
    "name",
    "external_id",
    "status",
    "allocated_at",
    "expires_at",
    "allocated_to_track",
    "track_name",
    "sfdc_account_id",
    "quarantine_reason",
}
RECORD_FIELDS = LIST_FIELDS | {
    "lab_duration_hours",
    "deletion_retry_count",
    "created_at",
    "updated_at",
    "last_synced",
    "deletion_requested_at",
    "idempotency_key",
}


@pytest.fixture(scope="module")
def server(make_for_module):
    """230 sandboxes, never changed by a test."""
    server = make_for_module.server(230)
    for n in range(120):
        server.track("list-%d" % n).claim()
    for n in range(10):
        track = server.track("list-marked-%d" % n)
        track.mark(track.claim()["sandbox_id"])
    return server


@pytest.fixture(scope="module")
def admin(server):
    return server.admin()


def test_a_page_has_the_documented_fields(admin):
    page = admin.list().json
    assert set(page) == {"sandboxes", "count", "cursor"}
    assert page["count"] == len(page["sandboxes"]) == 50
    assert isinstance(page["cursor"], str) and page["cursor"]
    for item in page["sandboxes"]:
        assert set(item) == LIST_FIELDS


def test_a_free_sandbox_shows_nulls(admin):
    item = admin.list("?status=available&limit=1").json["sandboxes"][0]
    assert [item[k] for k in ("allocated_at", "expires_at", "allocated_to_track", "track_name")] == [None] * 4


def test_an_allocated_one_shows_its_track(admin):
    item = admin.list("?status=allocated&limit=1").json["sandboxes"][0]
    assert item["allocated_to_track"].startswith("list-")
    assert item["expires_at"] == item["allocated_at"] + 4 * 3600


@pytest.mark.parametrize("limit", [1, 7, 50, 99, 100])
def test_pages_over_everything_show_each_once(admin, limit):
    if limit == 1:
        pages = list(admin.pages("pending_deletion", 1))
        assert [len(p) for p in pages if p] == [1] * 10
        return
    pages = list(admin.pages(None, limit))
    ids = [s["sandbox_id"] for p in pages for s in p]
    assert len(ids) == len(set(ids)) == 230
    assert all(len(p) == limit for p in pages[:-1])


@pytest.mark.parametrize(
    "status,count",
    [("available", 100), ("allocated", 120), ("pending_deletion", 10), ("stale", 0), ("deletion_failed", 0)],
)
def test_a_filter_over_many_pages_shows_each_once(admin, status, count):
    items = [s for page in admin.pages(status, 9) for s in page]
    assert len({s["sandbox_id"] for s in items}) == len(items) == count
    assert {s["status"] for s in items} <= {status}


def test_the_last_page_has_no_cursor(admin):
    assert admin.list("?status=pending_deletion&limit=100").json["cursor"] is None
    assert admin.list("?status=stale").json == {"sandboxes": [], "count": 0, "cursor": None}


def test_a_cursor_gives_the_same_page_again(admin):
    cursor = admin.list("?limit=20").json["cursor"]
    assert admin.list("?limit=20&cursor=" + cursor).body == admin.list("?limit=20&cursor=" + cursor).body


def test_a_cursor_needs_no_escaping(admin):
    cursor = admin.list("?limit=20").json["cursor"]
    assert not set(cursor) & set("+/=&?#% ")


def test_a_cursor_outlives_a_restart(make):
    server = make.server(30)
    cursor = server.admin().list("?limit=10").json["cursor"]
    second = server.admin().list("?limit=10&cursor=" + cursor).json["sandboxes"]
    server.restart()
    assert server.admin().list("?limit=10&cursor=" + cursor).json["sandboxes"] == second


def changed(cursor, position):
    return cursor[:position] + ("A" if cursor[position] != "A" else "B") + cursor[position + 1 :]


def test_tampered_cursors_are_400(admin):
    cursor = admin.list("?limit=20&status=available").json["cursor"]
    bad = [changed(cursor, p) for p in range(0, len(cursor) - 1)]
    bad += [cursor + "AAAA", cursor[:-4], cursor[: len(cursor) // 2], cursor[::-1], cursor * 2, "AAAA" + cursor]
    for tampered in bad:
        reply = admin.list("?limit=20&status=available&cursor=" + tampered)
        assert (reply.status, reply.code) == (400, "VALIDATION_ERROR"), tampered


def test_a_cursor_of_another_filter_is_400(admin):
    of_all = admin.list("?limit=5").json["cursor"]
    of_free = admin.list("?limit=5&status=available").json["cursor"]
    for query in ("&status=available&cursor=" + of_all, "&cursor=" + of_free, "&status=allocated&cursor=" + of_free):
        reply = admin.list("?limit=5" + query)
        assert (reply.status, reply.code) == (400, "VALIDATION_ERROR"), query


@pytest.mark.parametrize("status", [None, "available"])
def test_pages_lose_and_repeat_nothing_while_claims_run(make, new_owner, status):
    """Whoever is unchanged from before the first page to after the last is listed exactly once."""
    server = make.server(400)
    admin = server.admin()
    claimed = []

    def claim():
        track = server.track(new_owner())
        reply = track.allocate()
        if reply.status == 201:
            claimed.append(reply.json["sandbox_id"])
        track.close()

    before = {s["sandbox_id"] for s in admin.everything(status)}
    with Loop(claim) as loop:
        until(lambda: loop.rounds >= 3, "claims run")
        pages = []
        for page in admin.pages(status, 25):
            pages.append([s["sandbox_id"] for s in page])
            seen = loop.rounds
            until(lambda: loop.rounds > seen, "another claim happened")
    after = {s["sandbox_id"] for s in admin.everything(status)}
    listed = [i for page in pages for i in page]
    assert len(pages) > 3
    assert len(listed) == len(set(listed)), "listed twice"
    assert before & after <= set(listed), "lost"
    assert claimed


def test_one_record_has_everything(admin):
    item = admin.list("?status=allocated&limit=1").json["sandboxes"][0]
    record = admin.record(item["sandbox_id"])
    assert RECORD_FIELDS <= set(record)
    assert {k: record[k] for k in LIST_FIELDS} == {k: item[k] for k in LIST_FIELDS}
    assert record["lab_duration_hours"] == 4
    assert record["deletion_retry_count"] == 0
    assert record["quarantine_reason"] is None
    for name in ("created_at", "updated_at", "last_synced"):
        assert isinstance(record[name], int) and record[name] > 1_600_000_000, name


def test_no_record_is_404(admin):
    reply = admin.show("no-such-sandbox")
    assert (reply.status, reply.code) == (404, "SANDBOX_NOT_FOUND")


def test_stats_count_the_whole_pool(admin):
    assert admin.stats() == {
        "total": 230,
        "available": 100,
        "allocated": 120,
        "pending_deletion": 10,
        "stale": 0,
        "deletion_failed": 0,
        "quarantined": 0,
        "waiting": 0,
    }


def test_stats_agree_with_the_lists_in_every_state(make, new_owner):
    csp = make.csp(12)
    server = make.server(csp=csp, DELETION_RETRY_MAX_ATTEMPTS=0, LEASEHOLD_SYNC_MAX_STALE_PERCENT=100)
    admin = server.admin()
    csp.delete_fault = 500
    failed = server.track(new_owner())
    failed.mark(failed.claim()["sandbox_id"])
    admin.run("cleanup")
    csp.delete_fault = None
    marked = server.track(new_owner())
    marked.mark(marked.claim()["sandbox_id"])
    server.track(new_owner()).claim()
    csp.hidden = {admin.list("?status=available&limit=1").json["sandboxes"][0]["sandbox_id"]}
    admin.run("sync")
    aside = admin.list("?status=available&limit=1").json["sandboxes"][0]["sandbox_id"]
    admin.on(aside, "quarantine", body={"reason": "noisy"})
    stats = admin.stats()
    assert {s: stats[s] for s in STATES} == {
        "available": 7,
        "allocated": 1,
        "pending_deletion": 1,
        "stale": 2,
        "deletion_failed": 1,
    }
    assert (stats["total"], stats["quarantined"]) == (12, 1)
    reasons = {s["sandbox_id"]: s["quarantine_reason"] for s in admin.everything("stale")}
    assert reasons == {aside: "noisy", **{gone: None for gone in csp.hidden}}
    for status in STATES:
        assert len(admin.everything(status)) == stats[status]
