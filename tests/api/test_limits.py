# SPDX-License-Identifier: Apache-2.0
"""Limits: of known callers by who they are, of refused ones by address."""

import itertools

import pytest
from lib.jwt import SECRET, token

from lib.crowd import together
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


def used_up(send):
    """Send until it is refused: each second one more is allowed, so on a slow machine that may take some. The statuses before that."""
    statuses = [send().status]

    def is_refused():
        statuses.append(send().status)
        return statuses[-1] == 429

    until(is_refused, "the burst is used up", pause=0)
    return statuses[:-1]


def test_a_burst_passes_and_then_it_is_429(server, owner):
    track = server.track(owner)
    assert used_up(track.allocate)[:5] == [201, 200, 200, 200, 200]
    refused = until(lambda: [r for r in burst(track.allocate) if r.status == 429], "some more are refused")
    for reply in refused:
        assert reply.code == "RATE_LIMIT_EXCEEDED"
        assert reply.error["retry_after"] >= 1
        assert reply.header("retry-after") == str(reply.error["retry_after"])
        assert reply.header("x-frame-options") == "DENY"
        assert reply.error["request_id"] == reply.header("x-request-id")


def test_tokens_come_back_with_time(server, owner):
    track = server.track(owner)
    used_up(track.allocate)
    until(lambda: track.allocate().status == 200, "one more is allowed", 10, 0.1)


def test_each_owner_has_its_own_limit(server, new_owner):
    busy = server.track(new_owner())
    used_up(busy.allocate)
    assert server.track(new_owner()).allocate().status == 201


def test_all_calls_of_a_track_count_together(server, owner):
    track = server.track(owner)
    sandbox = track.claim()["sandbox_id"]

    def is_refused():
        used_up(lambda: track.show(sandbox))
        return track.allocate().status == 429

    until(is_refused, "a claim is refused after too many questions")


def test_operators_are_limited_per_token(server):
    admin = server.admin()
    used_up(lambda: admin.get("/v1/admin/stats"))
    until(
        lambda: server.admin(token="watcher-token-0123456789").get("/v1/admin/stats").status == 200,
        "another token passes",
        5,
        0.1,
    )


def test_wrong_tokens_are_limited_by_address(server, owner):
    wrong = server.track(owner, token="wrong")
    assert used_up(wrong.allocate)[:5] == [401] * 5
    reply = until(lambda: (lambda r: r.status == 429 and r)(wrong.allocate()), "one more is refused")
    assert reply.code == "RATE_LIMIT_EXCEEDED" and int(reply.header("retry-after")) >= 1
    assert server.track(owner, token="wrong", source="127.0.0.2").allocate().status == 401


def test_callers_without_a_token_cannot_use_up_a_tracks_limit(server, owner):
    used_up(server.track(owner, token="wrong").allocate)
    assert server.track(owner).allocate().status == 201


def person(server, email, **kw):
    return server.client({"Authorization": "Bearer " + token(email, "Admin")}, **kw)


@pytest.fixture
def people(make):
    return make.server(
        wait=False, LEASEHOLD_JWT_SECRET=SECRET, LEASEHOLD_RATE_LIMIT_PER_SEC=1, LEASEHOLD_RATE_LIMIT_BURST=5
    )


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
def test_strangers_do_not_lock_out_those_behind_the_same_address(people, headers):
    assert set(used_up(lambda: people.client(headers).get("/api/leases"))) == {401}
    assert person(people, "ann@example.com").get("/api/leases").status == 200
    assert people.client().get("/api/auth/signin").status == 200
    assert people.client().get("/api/auth/login/status").status == 200


def test_a_person_has_one_limit_wherever_he_calls_from(people):
    sources = itertools.cycle("127.0.0.%d" % i for i in range(1, 100))
    assert set(used_up(lambda: person(people, "ann@example.com", source=next(sources)).get("/api/leases"))) == {200}
    assert person(people, "bob@example.com").get("/api/leases").status == 200


def asking(server, forwarded, source="127.0.0.1"):
    return server.client({"Authorization": "Bearer wrong", **forwarded}, source=source).get("/v1/admin/stats")


def refused_as(server, forwarded, count, source="127.0.0.1"):
    return [asking(server, forwarded, source).status for _ in range(count)]


@pytest.fixture
def proxied(make):
    return make.server(
        wait=False,
        LEASEHOLD_RATE_LIMIT_PER_SEC=1,
        LEASEHOLD_RATE_LIMIT_BURST=5,
        LEASEHOLD_TRUSTED_PROXIES="127.0.0.1, 10.0.0.0/8",
    )


def test_a_trusted_proxy_says_who_the_client_is(proxied):
    first = {"X-Forwarded-For": "203.0.113.1"}
    used_up(lambda: asking(proxied, first))
    assert refused_as(proxied, {"X-Forwarded-For": "203.0.113.2"}, 1) == [401]
    assert 429 in refused_as(proxied, {"X-Forwarded-For": "198.51.100.7, 203.0.113.1, 10.1.2.3"}, 3)
    assert 429 in refused_as(proxied, {"Forwarded": 'for="203.0.113.1:4711";proto=https'}, 3)
    assert refused_as(proxied, {"Forwarded": "for=203.0.113.3, for=10.9.9.9"}, 1) == [401]
    proxied.stop()
    assert '"client":"203.0.113.2"' in proxied.output()


def test_who_is_no_trusted_proxy_is_not_believed(proxied):
    used_up(lambda: asking(proxied, {"X-Forwarded-For": "203.0.113.1"}, "127.0.0.9"))
    assert 429 in refused_as(proxied, {"X-Forwarded-For": "203.0.113.9"}, 3, source="127.0.0.9")
    assert refused_as(proxied, {"X-Forwarded-For": "203.0.113.1"}, 1) == [401]


def test_a_client_cannot_choose_who_it_is_by_a_header_that_the_proxy_hands_on(proxied):
    hosts = itertools.count(1)
    used_up(lambda: asking(proxied, {"X-Forwarded-For": "203.0.113.1", "Forwarded": "for=198.51.%d.7" % (next(hosts) % 200)}))
    assert refused_as(proxied, {"X-Forwarded-For": "203.0.113.1"}, 1) == [401]


def test_addresses_of_one_ipv6_network_count_together(proxied):
    hosts = itertools.count(1)
    used_up(lambda: asking(proxied, {"X-Forwarded-For": "2001:db8:1:2::%x" % next(hosts)}))
    assert refused_as(proxied, {"X-Forwarded-For": "2001:db8:1:3::1"}, 1) == [401]


@pytest.mark.parametrize("wrong", ["proxy.example.com", "10.0.0.0/33", "10.0.0.0/", ",", "::1/129"])
def test_a_proxy_that_is_no_address_stops_the_start(make, wrong):
    server = make.server(start=False, LEASEHOLD_TRUSTED_PROXIES=wrong)
    with pytest.raises(AssertionError, match="LEASEHOLD_TRUSTED_PROXIES"):
        server.start()


def test_open_routes_are_not_limited(server):
    client = server.client()
    for path in ("/healthz", "/readyz", "/metrics"):
        assert {r.status for r in burst(lambda: client.get(path), 20)} == {200}


def test_the_limit_is_shown(server, owner):
    track = server.track(owner)
    replies = burst(track.allocate, 3)
    assert {r.header("x-ratelimit-limit") for r in replies} == {"5"}
    left = [int(r.header("x-ratelimit-remaining")) for r in replies]
    assert left[0] == 4 and all(0 <= n <= 4 for n in left)
    used_up(track.allocate)
    until(lambda: track.allocate().header("x-ratelimit-remaining") == "0", "nothing remains")


def test_zero_switches_it_off(make, owner):
    server = make.server(3, LEASEHOLD_RATE_LIMIT_PER_SEC=0)
    assert 429 not in {r.status for r in burst(server.track(owner).allocate, 600)}


def test_the_default_is_50_a_second_and_200_at_once(make, owner):
    server = make.server(3, wait=False, LEASEHOLD_RATE_LIMIT_PER_SEC=None)
    until(lambda: server.admin().stats()["available"] == 3, "the first sync", 30, 0.2)
    track = server.track(owner)
    statuses = [r.status for r in burst(track.allocate, 200)]
    assert 429 not in statuses

    def crowd(_):
        own = server.track(owner)
        return {own.allocate().status for _ in range(40)}

    until(lambda: 429 in set().union(*together(16, crowd)), "more than 50 a second is too much", pause=0)
