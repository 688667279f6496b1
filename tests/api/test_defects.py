# SPDX-License-Identifier: Apache-2.0
"""One test for each defect seen in the existing implementation (contract, section 13), that fails when it is there.

Number 11 (store down) needs a failing disk and is in crash/test_disk.py.
"""

import time

import pytest

from lib.crowd import Background, Loop, together
from lib.http import Client
from lib.server import Server
from lib.wait import until


def second_process(server, make):
    """Another process on the same data, when the program lets it: then both must be right together."""
    other = Server(server.data, server.env)
    make.servers.append(other)
    try:
        return other.start(10)
    except AssertionError:
        return None


def test_defect_01_one_track_at_once_through_two_processes_gets_one_sandbox(make):
    server = make.server(500)
    other = second_process(server, make)
    doors = [server, other or server]
    got = together(
        64,
        lambda caller: [
            (n, doors[caller % 2].track("one-%d" % n).claim()["sandbox_id"])
            for n in range(8 * (caller // 8), 8 * (caller // 8) + 8)
        ],
    )
    per_track = {}
    for answers in got:
        for n, sandbox in answers:
            per_track.setdefault(n, set()).add(sandbox)
    assert len(per_track) == 64
    assert {len(s) for s in per_track.values()} == {1}
    assert server.admin().stats()["allocated"] == 64


def test_defect_02_sync_never_hands_a_claimed_sandbox_out_again(make, new_owner):
    csp = make.csp(400)
    server = make.server(csp=csp)
    other = second_process(server, make) or server
    told = []

    def caller(_):
        for _ in range(50):
            track = server.track(new_owner())
            reply = track.allocate()
            if reply.status == 201:
                told.append(reply.json["sandbox_id"])
            track.close()

    with Loop(lambda: other.admin().run("sync")) as one, Loop(lambda: server.admin().run("sync")):
        together(8, caller)
        until(lambda: one.rounds >= 2, "sync ran meanwhile", 30)
    assert len(told) == len(set(told)) == 400


def test_defect_03_repeats_stay_the_same_after_a_mark(make, new_owner):
    server = make.server(30)
    track = server.track(new_owner())
    for round_ in range(4):
        first = track.allocate(key="always-the-same")
        assert first.status == 201
        for _ in range(3):
            again = track.allocate(key="always-the-same")
            assert (again.status, again.json["sandbox_id"]) == (200, first.json["sandbox_id"])
        assert server.admin().stats()["allocated"] == 1
        assert track.mark(first.json["sandbox_id"]).status == 200


def test_defect_04_a_key_gives_no_track_anothers_sandbox(make, new_owner):
    server = make.server(20)
    got = [server.track(new_owner()).allocate(key="stolen-key") for _ in range(5)]
    assert [r.status for r in got] == [201] * 5
    assert len({r.json["sandbox_id"] for r in got}) == 5


def marked(server, new_owner, count):
    for _ in range(count):
        track = server.track(new_owner())
        assert track.mark(track.claim()["sandbox_id"]).status == 200
        track.close()


def test_defect_05_a_failed_deletion_is_tried_again_and_an_open_circuit_fails_nothing(make, new_owner):
    csp = make.csp(12)
    server = make.server(
        csp=csp, LEASEHOLD_DELETION_BACKOFF_SEC=0, CIRCUIT_BREAKER_THRESHOLD=3, CIRCUIT_BREAKER_TIMEOUT_SEC=1
    )
    admin = server.admin()
    marked(server, new_owner, 10)
    csp.delete_fault = 500
    begin = time.monotonic()
    for _ in range(3):
        admin.act("cleanup")
    assert len(csp.deletes()) <= 4 + int(time.monotonic() - begin), "an open circuit asks nothing but once a second"
    stats = admin.stats()
    assert (stats["pending_deletion"], stats["deletion_failed"]) == (10, 0)
    csp.delete_fault = None

    def emptied():
        admin.act("cleanup")
        return admin.stats()["pending_deletion"] == 0

    until(emptied, "all are deleted once the vendor works again", 15, 0.1)
    assert admin.stats()["total"] == 2


def test_defect_06_deletions_that_answer_500_open_the_circuit(make, new_owner):
    csp = make.csp(15)
    server = make.server(csp=csp, LEASEHOLD_DELETION_BACKOFF_SEC=0)
    marked(server, new_owner, 12)
    csp.delete_fault = 500
    server.admin().act("cleanup")
    assert len(csp.deletes()) == 5
    assert server.admin().act("sync").status == 503


def test_defect_07_a_long_sync_stops_neither_health_checks_nor_claims(make, new_owner):
    csp = make.csp(50)
    server = make.server(csp=csp)
    csp.add(8000, "many")
    client = server.client()

    def look():
        assert client.get("/healthz").status == 200
        assert server.track(new_owner()).allocate().status in (201, 409)

    with Loop(look) as loop:
        before = loop.rounds
        run = Background(server.admin().run, "sync")
        until(run.is_done, "sync", 60, 0.02)
        meanwhile = loop.rounds - before
    assert run.result()["added"] == 8000
    assert meanwhile > 3, "%d times while sync ran" % meanwhile


def test_defect_08_no_connection_is_reset_and_no_sandbox_lost_with_256_at_once(make):
    server = make.server(300)

    def caller(n):
        track = server.track("crowd-%d" % n, retry=False, timeout=60)
        got = {track.claim()["sandbox_id"] for _ in range(6)}
        track.close()
        return got

    answers = together(256, caller)
    assert {len(a) for a in answers} == {1}
    told = {next(iter(a)) for a in answers}
    assert len(told) == 256
    assert {s["sandbox_id"] for s in server.admin().everything("allocated")} == told


def test_defect_08_a_connection_idle_for_more_than_5_s_is_still_good(make):
    server = make.server(3)
    track = server.track("idle", retry=False)
    first = track.claim()
    opened = time.monotonic()
    until(lambda: time.monotonic() - opened > 6, "more than the other server's 5 s", 10, 0.5)
    assert track.claim() == first


def test_defect_09_lists_counts_prefixes_and_jobs_reach_past_the_first_page(make, new_owner):
    csp = make.csp(12000)
    csp.add(20, "zz-rare")
    server = make.server(csp=csp)
    admin = server.admin()
    assert admin.stats()["total"] == admin.stats()["available"] == 12020
    assert len({s["sandbox_id"] for s in admin.everything("available")}) == 12020
    got = {server.track(new_owner()).claim(prefix="zz-rare")["sandbox_id"] for _ in range(20)}
    assert len(got) == 20
    assert server.track(new_owner()).allocate(prefix="zz-rare").status == 409
    reply = server.client().get("/metrics").body.decode()
    assert "\nbroker_pool_total 12020\n" in reply


def test_defect_10_an_empty_or_shrunk_listing_leaves_the_pool_alone(make, new_owner):
    csp = make.csp(20)
    server = make.server(csp=csp)
    csp.is_empty = True
    assert server.admin().act("sync").status == 503
    csp.is_empty = False
    csp.hidden = {s["sandbox_id"] for s in server.admin().everything()[:15]}
    assert server.admin().act("sync").status == 503
    assert server.admin().stats()["available"] == 20
    assert server.track(new_owner()).allocate().status == 201


def test_defect_12_refusals_name_no_other_track(make, new_owner):
    server = make.server(10)
    mine = "the-secret-owner-name"
    track = server.track(mine)
    sandbox = track.claim(headers={"X-Instruqt-Track-ID": "the-secret-lab"})["sandbox_id"]
    spy = server.track(new_owner())
    for reply in (spy.show(sandbox), spy.mark(sandbox)):
        assert reply.status == 403
        said = reply.body.decode() + repr(reply.headers)
        assert mine not in said and "the-secret-lab" not in said
    track.mark(sandbox)
    assert mine not in spy.mark(sandbox).body.decode()


def test_defect_12_callers_without_a_token_cannot_grow_the_rate_limiters_table(make):
    server = make.server(3, LEASEHOLD_RATE_LIMIT_PER_SEC=50)

    def memory():
        with open("/proc/%d/statm" % server.pid) as f:
            size, resident = (int(n) * 4096 for n in f.read().split()[:2])
        if size > 1 << 40:
            pytest.skip("a sanitizer keeps freed memory")
        return resident

    client = Client(server.address)

    def ask(count, tag):
        for n in range(count):
            headers = {"X-Track-ID": "%s-%d-%s" % (tag, n, "x" * 100), "Authorization": "Bearer wrong"}
            assert client.post("/v1/allocate", headers=headers).status in (401, 429)

    ask(2000, "warm")
    before = memory()
    ask(6000, "flood")
    assert memory() - before < 1_000_000


def test_defect_13_one_duration_governs_end_marking_and_expiry(make, new_owner):
    server = make.server(5, LAB_DURATION_HOURS=48)
    admin = server.admin()
    admin.act("jobs/expiry/pause")
    owner = new_owner()
    got = server.track(owner).claim()
    assert got["expires_at"] - got["allocated_at"] == 48 * 3600
    server.stop()
    server.age_allocation(got["sandbox_id"], 47 * 3600)
    server.start()
    assert server.admin().run("expire")["expired"] == 0
    shown = server.track(owner).show(got["sandbox_id"]).json
    assert shown["expires_at"] - shown["allocated_at"] == 48 * 3600
    assert server.track(owner).mark(got["sandbox_id"]).status == 200
