# SPDX-License-Identifier: Apache-2.0
"""The three calls of a track: claim, give back, look; who the owner is; what a repeat gets."""

import time

import pytest

from lib.crowd import together
from lib.server import TRACK_TOKEN

CLAIM_FIELDS = {"sandbox_id", "name", "external_id", "allocated_at", "expires_at", "sfdc_account_id"}
VIEW_FIELDS = CLAIM_FIELDS | {"status", "allocated_to_track", "track_name"}


@pytest.fixture(scope="module")
def csp(make_for_module):
    vendor = make_for_module.csp(150)
    vendor.add(20, "red", sfdc_account_id="SF-77")
    return vendor


@pytest.fixture(scope="module")
def server(make_for_module, csp):
    return make_for_module.server(csp=csp)


def raw_owner(server, **headers):
    """A client that sends just these headers besides the token."""
    return server.client(
        {"Authorization": "Bearer " + TRACK_TOKEN, **{k.replace("_", "-"): v for k, v in headers.items()}}
    )


# Claim.


def test_a_claim_is_201_with_the_documented_fields(server, csp, owner):
    before = int(time.time())
    reply = server.track(owner).allocate()
    got = reply.json
    assert reply.status == 201
    assert reply.header("content-type").startswith("application/json")
    assert set(got) == CLAIM_FIELDS
    assert before - 1 <= got["allocated_at"] <= time.time() + 1
    assert got["expires_at"] == got["allocated_at"] + 4 * 3600
    vendors = csp.find(got["sandbox_id"])
    assert (got["name"], got["external_id"]) == (vendors["name"], vendors["id"])
    assert isinstance(got["sandbox_id"], str)


def test_the_vendors_account_number_is_passed_on_or_null(server, new_owner):
    red = server.track(new_owner()).claim(prefix="red-")
    assert red["sfdc_account_id"] == "SF-77"
    assert server.track(new_owner()).claim(prefix="lab-")["sfdc_account_id"] is None


def test_a_repeat_is_200_and_the_same(server, owner):
    track = server.track(owner)
    first = track.allocate()
    again = track.allocate()
    assert (first.status, again.status) == (201, 200)
    assert again.json == first.json


def test_two_tracks_get_two_sandboxes(server, new_owner):
    assert server.track(new_owner()).claim()["sandbox_id"] != server.track(new_owner()).claim()["sandbox_id"]


def test_a_repeat_with_a_prefix_that_does_not_fit_still_gets_the_held_one(server, owner):
    track = server.track(owner)
    first = track.claim(prefix="lab-")
    reply = track.allocate(prefix="red-")
    assert (reply.status, reply.json["sandbox_id"]) == (200, first["sandbox_id"])


def test_a_claim_is_seen_by_the_operator(server, owner):
    got = server.track(owner).claim(headers={"X-Instruqt-Track-ID": "intro-lab"})
    record = server.admin().record(got["sandbox_id"])
    assert record["status"] == "allocated"
    assert record["allocated_to_track"] == owner
    assert record["track_name"] == "intro-lab"
    assert record["lab_duration_hours"] == 4


def test_concurrent_repeats_of_one_track_get_one_sandbox(server, owner):
    replies = together(16, lambda n: server.track(owner).allocate())
    assert sorted(r.status for r in replies) == [200] * 15 + [201]
    assert len({r.json["sandbox_id"] for r in replies}) == 1


# Idempotency-Key.


def test_one_track_with_different_keys_gets_one_sandbox(server, owner):
    track = server.track(owner)
    first = track.claim(key="key-one")
    reply = track.allocate(key="key-two")
    assert (reply.status, reply.json["sandbox_id"]) == (200, first["sandbox_id"])


def test_a_key_belongs_to_its_owner(server, new_owner):
    key = "shared-key-" + new_owner()
    one = server.track(new_owner()).allocate(key=key)
    two = server.track(new_owner()).allocate(key=key)
    assert (one.status, two.status) == (201, 201)
    assert one.json["sandbox_id"] != two.json["sandbox_id"]


def test_a_key_is_recorded(server, owner):
    got = server.track(owner).claim(key="remember-me")
    assert server.admin().record(got["sandbox_id"])["idempotency_key"] == "remember-me"


def test_an_old_key_does_not_bring_a_marked_sandbox_back(server, owner):
    track = server.track(owner)
    first = track.claim(key="again")
    assert track.mark(first["sandbox_id"]).status == 200
    second = track.allocate(key="again")
    assert second.status == 201
    assert second.json["sandbox_id"] != first["sandbox_id"]
    assert track.allocate(key="again").json["sandbox_id"] == second.json["sandbox_id"]


# Prefix.


def test_a_prefix_limits_the_choice(server, new_owner):
    for _ in range(5):
        assert server.track(new_owner()).claim(prefix="red-")["name"].startswith("red-")


def test_a_prefix_nobody_has_is_409(server, owner):
    reply = server.track(owner).allocate(prefix="blue-")
    assert (reply.status, reply.code) == (409, "NO_SANDBOXES_AVAILABLE")
    assert reply.error["message"] == "no sandbox whose name begins with 'blue-' is free"


def test_a_prefix_nobody_has_is_named_after_a_wait_too(server, owner):
    reply = server.track(owner).allocate(prefix="blue-", wait=1)
    assert (reply.status, reply.code) == (409, "NO_SANDBOXES_AVAILABLE")
    assert reply.error["message"] == "no sandbox whose name begins with 'blue-' became free in time"


def test_a_prefix_is_not_a_pattern(server, owner):
    for prefix in ("%", "_ab-", "r%", "*", "RED-", "red-%"):
        assert server.track(owner).allocate(prefix=prefix).status == 409, prefix


# Who the owner is.


def test_the_instruqt_id_wins_over_the_track_id(server, new_owner):
    mine, other = new_owner(), new_owner()
    got = raw_owner(server, X_Instruqt_Sandbox_ID=mine, X_Track_ID=other).post("/v1/allocate").json
    assert server.admin().record(got["sandbox_id"])["allocated_to_track"] == mine
    assert server.track(mine).allocate().status == 200
    assert server.track(other).allocate().status == 201


def test_outer_blanks_are_trimmed(server, owner):
    got = raw_owner(server, X_Track_ID="  \t" + owner + "\t  ").post("/v1/allocate").json
    assert server.admin().record(got["sandbox_id"])["allocated_to_track"] == owner
    assert server.track(owner).allocate().status == 200


def test_owner_ids_differ_in_case(server, owner):
    one = server.track(owner).claim()
    two = server.track(owner.upper()).claim()
    assert one["sandbox_id"] != two["sandbox_id"]


def test_an_owner_id_of_128_characters_is_kept_whole(server, owner):
    long = (owner + "-" + "x" * 128)[:128]
    got = server.track(long).claim()
    assert server.track(long).show(got["sandbox_id"]).json["allocated_to_track"] == long
    assert server.track(long[:127] + "y").show(got["sandbox_id"]).status == 403


def test_every_visible_character_may_be_in_an_owner_id(server, owner):
    odd = owner + "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    got = server.track(odd).claim()
    assert server.admin().record(got["sandbox_id"])["allocated_to_track"] == odd


# Give back.


def test_marking_is_200_with_the_documented_fields(server, owner):
    track = server.track(owner)
    got = track.claim()
    before = int(time.time())
    reply = track.mark(got["sandbox_id"])
    assert reply.status == 200
    assert set(reply.json) == {"sandbox_id", "status", "deletion_requested_at"}
    assert reply.json["sandbox_id"] == got["sandbox_id"]
    assert reply.json["status"] == "pending_deletion"
    assert before - 1 <= reply.json["deletion_requested_at"] <= time.time() + 1


def test_marking_again_is_the_same_200_with_the_same_time(make, owner):
    server = make.server(3)
    server.admin().act("jobs/cleanup/pause")
    track = server.track(owner)
    got = track.claim()
    first = track.mark(got["sandbox_id"])
    server.stop()
    assert (
        server.sql(
            "UPDATE sandbox SET deletion_requested_at = deletion_requested_at - 100 WHERE sandbox_id = ?",
            got["sandbox_id"],
        )
        == 1
    )
    server.start()
    again = server.track(owner).mark(got["sandbox_id"])
    assert again.status == 200
    assert again.json["deletion_requested_at"] == first.json["deletion_requested_at"] - 100


def test_concurrent_marks_all_get_the_same_answer(server, owner):
    got = server.track(owner).claim()
    replies = together(8, lambda n: server.track(owner).mark(got["sandbox_id"]))
    assert {r.status for r in replies} == {200}
    assert len({r.body for r in replies}) == 1


def test_after_marking_the_track_may_claim_another(server, owner):
    track = server.track(owner)
    seen = set()
    for _ in range(4):
        reply = track.allocate()
        assert reply.status == 201
        seen.add(reply.json["sandbox_id"])
        assert track.mark(reply.json["sandbox_id"]).status == 200
    assert len(seen) == 4


def test_marking_an_unknown_sandbox_is_404(server, owner):
    reply = server.track(owner).mark("no-such-sandbox")
    assert (reply.status, reply.code) == (404, "SANDBOX_NOT_FOUND")


def test_marking_anothers_sandbox_is_403_and_changes_nothing(server, new_owner):
    mine = new_owner()
    got = server.track(mine).claim()
    reply = server.track(new_owner()).mark(got["sandbox_id"])
    assert (reply.status, reply.code) == (403, "NOT_SANDBOX_OWNER")
    assert mine not in reply.body.decode()
    assert server.track(mine).show(got["sandbox_id"]).json["status"] == "allocated"


def test_marking_a_free_sandbox_is_403(server, owner):
    free = server.admin().list("?status=available&limit=1").json["sandboxes"][0]
    reply = server.track(owner).mark(free["sandbox_id"])
    assert (reply.status, reply.code) == (403, "NOT_SANDBOX_OWNER")


# Look.


def test_the_owner_sees_its_sandbox(server, owner):
    track = server.track(owner)
    got = track.claim(headers={"X-Instruqt-Track-ID": "intro-lab"})
    reply = track.show(got["sandbox_id"])
    assert reply.status == 200
    assert set(reply.json) == VIEW_FIELDS
    assert {k: reply.json[k] for k in CLAIM_FIELDS} == got
    assert reply.json["status"] == "allocated"
    assert reply.json["allocated_to_track"] == owner
    assert reply.json["track_name"] == "intro-lab"


def test_track_name_is_null_when_none_was_given(server, owner):
    track = server.track(owner)
    assert track.show(track.claim()["sandbox_id"]).json["track_name"] is None


def test_the_owner_still_sees_it_after_marking(server, owner):
    track = server.track(owner)
    got = track.claim()
    track.mark(got["sandbox_id"])
    reply = track.show(got["sandbox_id"])
    assert (reply.status, reply.json["status"]) == (200, "pending_deletion")
    assert reply.json["allocated_at"] == got["allocated_at"]


def test_the_owner_still_sees_it_after_an_operator_set_it_aside(server, owner):
    track = server.track(owner)
    got = track.claim()
    assert server.admin().on(got["sandbox_id"], "quarantine").status == 200
    reply = track.show(got["sandbox_id"])
    assert (reply.status, reply.json["status"]) == (200, "stale")


def test_another_track_does_not_see_it(server, new_owner):
    mine = new_owner()
    got = server.track(mine).claim()
    reply = server.track(new_owner()).show(got["sandbox_id"])
    assert (reply.status, reply.code) == (403, "NOT_SANDBOX_OWNER")
    assert mine not in reply.body.decode()


def test_nobody_owns_a_free_sandbox(server, owner):
    free = server.admin().list("?status=available&limit=1").json["sandboxes"][0]
    assert server.track(owner).show(free["sandbox_id"]).code == "NOT_SANDBOX_OWNER"


def test_looking_for_an_unknown_sandbox_is_404(server, owner):
    reply = server.track(owner).show("no-such-sandbox")
    assert (reply.status, reply.code) == (404, "SANDBOX_NOT_FOUND")


def test_after_the_vendor_deleted_it_it_is_404(make, owner):
    server = make.server(2)
    track = server.track(owner)
    got = track.claim()
    track.mark(got["sandbox_id"])
    assert server.admin().run("cleanup")["deleted"] == 1
    assert track.show(got["sandbox_id"]).code == "SANDBOX_NOT_FOUND"
    assert track.mark(got["sandbox_id"]).code == "SANDBOX_NOT_FOUND"


# An empty pool.


def test_an_empty_pool_is_409_with_retry_after(make, new_owner):
    server = make.server(3)
    got = [server.track(new_owner()).claim()["sandbox_id"] for _ in range(3)]
    assert len(set(got)) == 3
    reply = server.track(new_owner()).allocate()
    assert (reply.status, reply.code) == (409, "NO_SANDBOXES_AVAILABLE")
    assert reply.error["retry_after"] == 30
    assert reply.header("retry-after") == "30"


def test_a_crowd_on_a_small_pool_gets_exactly_the_pool(make, new_owner):
    server = make.server(20)
    owners = [new_owner() for _ in range(60)]
    replies = together(60, lambda n: server.track(owners[n]).allocate())
    won = [r.json["sandbox_id"] for r in replies if r.status == 201]
    assert len(won) == len(set(won)) == 20
    assert sum(r.status == 409 for r in replies) == 40
    assert server.admin().stats()["available"] == 0


def test_claims_and_marks_survive_a_restart(make, new_owner):
    server = make.server(10, CLEANUP_BATCH_DELAY_SEC=0)
    server.admin().act("jobs/cleanup/pause")
    keep, give = new_owner(), new_owner()
    kept, given = server.track(keep).claim(), server.track(give).claim()
    marked = server.track(give).mark(given["sandbox_id"]).json
    before = server.admin().stats()
    server.restart()
    assert server.admin().stats() == before
    again = server.track(keep).allocate()
    assert (again.status, again.json) == (200, kept)
    assert server.track(give).mark(given["sandbox_id"]).json == marked
