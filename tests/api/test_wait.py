# SPDX-License-Identifier: Apache-2.0
"""Prefer: wait - the line of claims that wait for a sandbox."""

import socket
import time

import pytest

from lib.crowd import Background, Loop
from lib.http import Broken
from lib.server import TRACK_TOKEN
from lib.wait import until


class Line:
    """A server whose pool is used up, and the vendor that can bring more."""

    def __init__(self, make, new_owner, **env):
        self.csp = make.csp(1)
        self.server = make.server(csp=self.csp, **env)
        self.new_owner = new_owner
        self.holder = self.server.track(new_owner())
        self.held = self.holder.claim()
        self.admin = self.server.admin()
        self.waiting = 0

    def join(self, wait=300, owner=None, **kw):
        """One more in line, known to stand there."""
        track = self.server.track(owner or self.new_owner())
        call = Background(track.allocate, wait=wait, timeout=330, **kw)
        call.track = track
        self.waiting += 1
        self.stands(self.waiting)
        return call

    def stands(self, count):
        until(lambda: self.admin.stats()["waiting"] == count, "%d stand in line" % count)
        self.waiting = count

    def bring(self, count=1, prefix=None):
        ids = self.csp.add(count, prefix)
        self.admin.run("sync")
        return ids


@pytest.fixture
def line(make, new_owner):
    return Line(make, new_owner)


def test_first_come_first_served(line):
    calls = [line.join() for _ in range(5)]
    for position, call in enumerate(calls):
        (sandbox,) = line.bring()
        reply = call.result(20)
        assert (reply.status, reply.json["sandbox_id"]) == (201, sandbox)
        assert reply.header("preference-applied") == "wait=300"
        line.stands(4 - position)
        assert not any(c.is_done() for c in calls[position + 1 :])


def test_what_was_applied_is_said_once(line):
    served, waited = line.join(), line.server.track(line.new_owner()).allocate(wait=1, timeout=55)
    line.bring()
    assert (served.result(20).status, waited.status) == (201, 409)
    assert served.result().all("preference-applied") == ["wait=300"]
    assert waited.all("preference-applied") == ["wait=1"]


def test_several_at_once_serve_the_front_of_the_line(line):
    calls = [line.join() for _ in range(6)]
    ids = line.bring(4)
    got = [c.result(20) for c in calls[:4]]
    assert {r.status for r in got} == {201}
    assert {r.json["sandbox_id"] for r in got} == set(ids)
    line.stands(2)
    assert not any(c.is_done() for c in calls[4:])
    line.bring(2)
    assert [c.result(20).status for c in calls[4:]] == [201, 201]


def test_a_released_quarantine_serves_the_line(make, new_owner):
    csp = make.csp(2)
    server = make.server(csp=csp)
    admin = server.admin()
    aside = admin.list("?limit=1").json["sandboxes"][0]["sandbox_id"]
    assert admin.on(aside, "quarantine").status == 200
    server.track(new_owner()).claim()
    call = Background(server.track(new_owner()).allocate, wait=60)
    until(lambda: admin.stats()["waiting"] == 1, "one waits")
    assert admin.on(aside, "release").status == 200
    reply = call.result(20)
    assert (reply.status, reply.json["sandbox_id"]) == (201, aside)


def test_who_hangs_up_leaves_the_line(line):
    first, second = line.join(), line.join()
    first.track.conn.sock.shutdown(2)
    with pytest.raises(Broken):
        first.result(20)
    line.stands(1)
    (sandbox,) = line.bring()
    reply = second.result(20)
    assert (reply.status, reply.json["sandbox_id"]) == (201, sandbox)
    owners = [s["allocated_to_track"] for s in line.admin.everything("allocated")]
    assert first.track.owner not in owners


def test_who_hangs_up_during_the_first_try_is_not_in_line(line):
    for _ in range(100):
        track = line.server.track(line.new_owner())
        head = "POST /v1/allocate HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nX-Track-ID: %s\r\nPrefer: wait=60\r\n\r\n"
        with socket.create_connection(line.server.address) as client:
            client.sendall((head % ("Bearer " + TRACK_TOKEN, track.owner)).encode())
    line.stands(0)
    line.bring()
    until(lambda: line.admin.stats()["available"] == 1, "nobody takes it")
    assert line.admin.stats()["allocated"] == 1


def test_all_who_hang_up_leave_the_pool_untouched(line):
    calls = [line.join() for _ in range(10)]
    for call in calls:
        call.track.conn.sock.shutdown(2)
    line.stands(0)
    ids = line.bring(3)
    assert line.admin.stats()["available"] == 3
    assert line.server.track(line.new_owner()).claim()["sandbox_id"] in ids


def test_newcomers_do_not_overtake(line):
    """Callers who do not wait hammer the pool while sandboxes come one by one; each goes to who stands in line."""
    wins = []

    def newcomer():
        track = line.server.track(line.new_owner())
        reply = track.allocate()
        if reply.status != 409:
            wins.append((reply.status, reply.json["sandbox_id"]))
        track.close()

    calls = [line.join() for _ in range(9)]
    # The last in line never gets one, so somebody waits all the time.
    with Loop(newcomer) as one, Loop(newcomer) as two:
        for call in calls[:8]:
            (sandbox,) = line.bring()
            assert call.result(20).json["sandbox_id"] == sandbox
        until(lambda: one.rounds > 20 and two.rounds > 20, "newcomers asked", 20)
    assert wins == []
    line.bring()
    assert calls[8].result(20).status == 201


def test_a_newcomer_is_refused_while_someone_waits(line):
    line.join()
    reply = line.server.track(line.new_owner()).allocate()
    assert (reply.status, reply.code) == (409, "NO_SANDBOXES_AVAILABLE")
    assert reply.error["retry_after"] == 30


def test_when_time_is_up_it_is_the_usual_409(line):
    begin = time.monotonic()
    reply = line.server.track(line.new_owner()).allocate(wait=1)
    took = time.monotonic() - begin
    assert (reply.status, reply.code) == (409, "NO_SANDBOXES_AVAILABLE")
    assert reply.error["retry_after"] == 30 and reply.header("retry-after") == "30"
    assert reply.header("preference-applied") == "wait=1"
    assert took >= 0.9
    line.stands(0)


def test_preferences_may_be_sent_one_by_one(line):
    """RFC 7240: several fields mean what one with commas means, and of two the first counts."""
    head = "POST /v1/allocate HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\nX-Track-ID: %s\r\n"
    head += "Prefer: return=minimal\r\nPrefer: wait=1\r\nPrefer: wait=60\r\n\r\n"
    with socket.create_connection(line.server.address) as client:
        client.sendall((head % (TRACK_TOKEN, line.new_owner())).encode())
        with client.makefile("rb") as answer:
            reply = answer.read().decode()
    assert reply.startswith("HTTP/1.1 409 ") and "Preference-Applied: wait=1\r\n" in reply


def test_after_its_time_nobody_is_served(line):
    call = line.join(wait=1)
    assert call.result(20).status == 409
    ids = line.bring()
    assert line.admin.record(ids[0])["status"] == "available"


def test_wait_0_answers_at_once(line):
    reply = line.server.track(line.new_owner()).allocate(wait=0)
    assert reply.status == 409
    assert reply.header("preference-applied") == "wait=0"


def test_a_long_wait_is_cut_to_the_limit(make, new_owner):
    line = Line(make, new_owner, LEASEHOLD_WAIT_MAX_SEC=1)
    reply = line.server.track(new_owner()).allocate(wait=99999, timeout=55)
    assert reply.status == 409
    assert reply.header("preference-applied") == "wait=1"


def test_who_already_holds_one_gets_it_at_once(line):
    line.join()
    reply = line.holder.allocate(wait=60, timeout=55)
    assert (reply.status, reply.json) == (200, line.held)


def test_a_free_pool_serves_a_waiter_at_once(line):
    ids = line.bring()
    reply = line.server.track(line.new_owner()).allocate(wait=60, timeout=55)
    assert (reply.status, reply.json["sandbox_id"]) == (201, ids[0])
    assert reply.header("preference-applied") == "wait=60"


def test_one_track_twice_in_line_gets_one_sandbox(line):
    owner = line.new_owner()
    one, two = line.join(owner=owner), line.join(owner=owner)
    line.bring(2)
    replies = [one.result(20), two.result(20)]
    assert sorted(r.status for r in replies) == [200, 201]
    assert len({r.json["sandbox_id"] for r in replies}) == 1
    assert line.admin.stats()["available"] == 1


def test_a_waiter_with_a_prefix_takes_only_what_fits(line):
    call = line.join(prefix="red-")
    line.bring(1, "blue")
    line.stands(1)
    assert not call.is_done()
    ids = line.bring(1, "red")
    assert call.result(20).json["sandbox_id"] == ids[0]


def test_a_waiter_whose_prefix_does_not_fit_does_not_block_those_behind(line):
    first, second = line.join(prefix="red-"), line.join()
    (blue,) = line.bring(1, "blue")
    assert second.result(20).json["sandbox_id"] == blue
    line.stands(1)
    (red,) = line.bring(1, "red")
    assert first.result(20).json["sandbox_id"] == red


def test_the_line_has_an_end(make, new_owner):
    line = Line(make, new_owner, LEASEHOLD_WAITING_MAX=2)
    calls = [line.join(), line.join()]
    begin = time.monotonic()
    reply = line.server.track(new_owner()).allocate(wait=60, timeout=55)
    assert reply.status in (409, 503), reply
    assert time.monotonic() - begin < 55
    assert int(reply.header("retry-after")) >= 1
    line.bring(2)
    assert [c.result(20).status for c in calls] == [201, 201]


@pytest.mark.parametrize("value", ["wait", "wait=", "wait=x", "wait=-1", "wait=1.5", "wait=999999999999999999999999"])
def test_a_strange_preference_never_hangs_or_claims(make, new_owner, value):
    line = Line(make, new_owner, LEASEHOLD_WAIT_MAX_SEC=1)
    reply = line.server.track(new_owner()).allocate(headers={"Prefer": value}, timeout=55)
    assert reply.status in (400, 409)
    assert reply.code in ("VALIDATION_ERROR", "NO_SANDBOXES_AVAILABLE")
    line.stands(0)


def test_a_wait_among_other_preferences_counts(line):
    reply = line.server.track(line.new_owner()).allocate(headers={"Prefer": "return=minimal, wait=1"}, timeout=55)
    assert reply.status == 409
    assert reply.header("preference-applied") == "wait=1"


def test_many_wait_and_all_are_served_in_order(line):
    calls = [line.join() for _ in range(40)]
    line.bring(40)
    replies = [c.result(30) for c in calls]
    assert {r.status for r in replies} == {201}
    assert len({r.json["sandbox_id"] for r in replies}) == 40
    line.stands(0)
