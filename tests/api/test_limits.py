# SPDX-License-Identifier: Apache-2.0
"""The rate limit per authenticated caller."""

import pytest

from lib.server import ADMIN_TOKEN
from lib.wait import until


@pytest.fixture
def server(make):
    """One request a second, five at once; the simulated stock is waited for with a token of its own."""
    server = make.server(
        50,
        wait=False,
        BROKER_ADMIN_TOKEN=ADMIN_TOKEN + ",watcher-token-0123456789",
        LEASEHOLD_RATE_LIMIT_PER_SEC=1,
        LEASEHOLD_RATE_LIMIT_BURST=5,
    )
    until(
        lambda: server.admin(token="watcher-token-0123456789").get("/v1/admin/stats").json.get("available") == 50,
        "the first sync",
        30,
        0.5,
    )
    return server


def burst(send, count=12):
    return [send() for _ in range(count)]


def test_a_burst_passes_and_then_it_is_429(server, owner):
    track = server.track(owner)
    replies = burst(track.allocate)
    assert [r.status for r in replies[:5]] == [201, 200, 200, 200, 200]
    refused = [r for r in replies if r.status == 429]
    assert len(refused) >= 5
    for reply in refused:
        assert reply.code == "RATE_LIMIT_EXCEEDED"
        assert reply.error["retry_after"] >= 1
        assert reply.header("retry-after") == str(reply.error["retry_after"])
        assert reply.header("x-frame-options") == "DENY"
        assert reply.error["request_id"] == reply.header("x-request-id")


def test_tokens_come_back_with_time(server, owner):
    track = server.track(owner)
    until(lambda: track.allocate().status == 429, "the burst is used up", 10)
    until(lambda: track.allocate().status == 200, "one more is allowed", 10, 0.1)


def test_each_owner_has_its_own_limit(server, new_owner):
    busy = server.track(new_owner())
    until(lambda: busy.allocate().status == 429, "the burst is used up", 10)
    assert server.track(new_owner()).allocate().status == 201


def test_all_calls_of_a_track_count_together(server, owner):
    track = server.track(owner)
    sandbox = track.claim()["sandbox_id"]
    replies = burst(lambda: track.show(sandbox))
    assert 429 in {r.status for r in replies}
    assert track.allocate().status == 429


def test_operators_are_limited_per_token(server):
    admin = server.admin()
    assert 429 in {r.status for r in burst(lambda: admin.get("/v1/admin/stats"))}
    until(
        lambda: server.admin(token="watcher-token-0123456789").get("/v1/admin/stats").status == 200,
        "another token passes",
        5,
        0.1,
    )


def test_a_wrong_token_is_401_and_never_429(server, owner):
    track = server.track(owner, token="wrong")
    assert {r.status for r in burst(track.allocate, 40)} == {401}


def test_callers_without_a_token_cannot_use_up_a_tracks_limit(server, owner):
    burst(server.track(owner, token="wrong").allocate, 40)
    assert server.track(owner).allocate().status == 201


def test_open_routes_are_not_limited(server):
    client = server.client()
    for path in ("/healthz", "/readyz", "/metrics"):
        assert {r.status for r in burst(lambda: client.get(path), 20)} == {200}


def test_the_limit_is_shown(server, owner):
    track = server.track(owner)
    replies = burst(track.allocate, 3)
    assert {r.header("x-ratelimit-limit") for r in replies} == {"5"}
    left = [int(r.header("x-ratelimit-remaining")) for r in replies]
    assert left == sorted(left, reverse=True) and left[0] == 4 and left[-1] < left[0]


def test_zero_switches_it_off(make, owner):
    server = make.server(3, LEASEHOLD_RATE_LIMIT_PER_SEC=0)
    assert 429 not in {r.status for r in burst(server.track(owner).allocate, 600)}


def test_the_default_is_50_a_second_and_200_at_once(make, owner):
    server = make.server(3, wait=False, LEASEHOLD_RATE_LIMIT_PER_SEC=None)
    until(lambda: server.admin().stats()["available"] == 3, "the first sync", 30, 0.2)
    track = server.track(owner)
    statuses = [r.status for r in burst(track.allocate, 200)]
    assert 429 not in statuses
    until(lambda: track.allocate().status == 429, "more than 50 a second is too much", 10, 0)
