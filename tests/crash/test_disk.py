# SPDX-License-Identifier: Apache-2.0
"""A full disk and a disk that fails to flush: claims are refused at once, nothing is lost, and it recovers by itself."""

import resource
import time

import pytest

from lib.crowd import Background, together
from lib.wait import until


class FullDisk:
    """The server may not write a byte behind the first of any file. (Pipes are not files, so it can still log.)"""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        self.was = resource.prlimit(self.server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.server.pid, resource.RLIMIT_FSIZE, (1, self.was[1]))
        return self

    def __exit__(self, *_):
        if self.server.is_alive():
            resource.prlimit(self.server.pid, resource.RLIMIT_FSIZE, self.was)


class FailingFlush:
    """Every flush of the server answers EIO."""

    def __init__(self, folder):
        self.flag = folder / "fail"

    def __enter__(self):
        self.flag.touch()
        return self

    def __exit__(self, *_):
        self.flag.unlink()


@pytest.fixture(params=["full", "flush"])
def trouble(request, make):
    """(server, a function that makes its disk fail while in a with block)."""
    if request.param == "full":
        server = make.server(60)
        return server, lambda: FullDisk(server)
    flags = request.getfixturevalue("flags")
    server = make.server(60, **request.getfixturevalue("shimmed"))
    return server, lambda: FailingFlush(flags)


def claims(server, new_owner, count):
    """{owner: what it was told}."""
    return {o: server.track(o).claim() for o in (new_owner() for _ in range(count))}


def refused(reply):
    assert (reply.status, reply.code) == (503, "SERVICE_UNAVAILABLE"), reply
    assert int(reply.header("retry-after")) == reply.error["retry_after"] >= 1
    assert reply.header("x-frame-options") == "DENY"


def all_there(server, told):
    for owner, got in told.items():
        reply = server.track(owner).show(got["sandbox_id"])
        assert (reply.status, reply.json["status"]) == (200, "allocated"), (owner, reply)
        again = server.track(owner).allocate()
        assert (again.status, again.json) == (200, got)


def claim_again(server, owner, timeout=15):
    """Claims succeed again by themselves."""
    track = server.track(owner)
    return until(
        lambda: (lambda r: r.json if r.status in (200, 201) else None)(track.allocate()),
        "claims succeed again",
        timeout,
        0.1,
    )


def test_claims_are_refused_and_then_succeed_without_a_restart(trouble, new_owner):
    server, failing = trouble
    told = claims(server, new_owner, 10)
    late = [new_owner() for _ in range(8)]
    with failing():
        for owner in late:
            refused(server.track(owner).allocate())
        assert server.client().get("/healthz").status == 200
    pid = server.pid
    told[late[0]] = claim_again(server, late[0])
    for owner in late[1:]:
        told[owner] = server.track(owner).claim()
    assert server.pid == pid and server.is_alive()
    assert len({g["sandbox_id"] for g in told.values()}) == len(told) == 18
    all_there(server, told)
    assert server.admin().stats()["allocated"] == 18, "a refused claim holds nothing"
    server.check_store()
    assert server.stop() == 0
    server.start()
    all_there(server, told)


def test_defect_11_a_failing_store_is_503_at_once_for_many_callers(trouble, new_owner):
    server, failing = trouble
    owners = [new_owner() for _ in range(32)]
    with failing():
        refused(server.track(new_owner()).allocate())

        def ask(n):
            begin = time.monotonic()
            refused(server.track(owners[n]).allocate())
            return time.monotonic() - begin

        assert max(together(32, ask)) < 20  # a tenth of a second when nobody else works here; a store that is waited for takes 5 s each
        assert server.client().get("/healthz").status == 200


def test_what_is_on_disk_can_still_be_read(trouble, new_owner):
    server, failing = trouble
    told = claims(server, new_owner, 3)
    with failing():
        refused(server.track(new_owner()).allocate())
        for owner, got in told.items():
            assert server.track(owner).show(got["sandbox_id"]).json["status"] == "allocated"
        assert server.admin().stats()["allocated"] == 3


def test_a_refused_mark_has_not_happened_and_works_later(trouble, new_owner):
    server, failing = trouble
    owner = new_owner()
    sandbox = server.track(owner).claim()["sandbox_id"]
    with failing():
        refused(server.track(owner).mark(sandbox))
        assert server.track(owner).show(sandbox).json["status"] == "allocated"
    reply = until(
        lambda: (lambda r: r if r.status == 200 else None)(server.track(owner).mark(sandbox)),
        "the mark succeeds",
        15,
        0.1,
    )
    assert reply.json["status"] == "pending_deletion"


def test_a_pass_that_cannot_write_is_503(trouble, new_owner):
    server, failing = trouble
    admin = server.admin()
    with failing():
        reply = admin.on(admin.list("?limit=1").json["sandboxes"][0]["sandbox_id"], "quarantine")
        refused(reply)
        refused(admin.act("bulk-delete", "?status=available"))
    assert admin.stats()["available"] == 60


def test_after_a_kill_in_the_middle_of_it_everything_acknowledged_is_there(trouble, new_owner):
    server, failing = trouble
    told = claims(server, new_owner, 12)
    late = [new_owner() for _ in range(6)]
    with failing():
        for owner in late:
            refused(server.track(owner).allocate())
        server.kill()
    server.check_store()
    server.start()
    all_there(server, told)
    # A refused claim may or may not have reached the disk before the kill, but it is nobody else's.
    for owner in late:
        told[owner] = server.track(owner).claim()
    assert len({g["sandbox_id"] for g in told.values()}) == len(told)
    server.check_store()


def test_trouble_that_comes_and_goes_under_load(trouble, new_owner):
    server, failing = trouble
    told = {}

    def caller(n):
        for _ in range(4):
            owner = new_owner()
            reply = server.track(owner).allocate()
            if reply.status == 201:
                told[owner] = reply.json
            elif reply.status != 409:
                refused(reply)

    for _ in range(2):
        with failing():
            together(8, caller)
        claim_again(server, next(iter(told)) if told else new_owner())
        together(3, caller)
    assert len({g["sandbox_id"] for g in told.values()}) == len(told) > 0
    all_there(server, told)
    server.kill()
    server.start()
    all_there(server, told)
    server.check_store()


def test_the_flush_shim_is_asked(make, shimmed, flags, owner):
    server = make.server(3, **shimmed)
    with FailingFlush(flags):
        refused(server.track(owner).allocate())
    assert (flags / "count").stat().st_size >= 1


def test_a_reply_leaves_after_the_flush(make, shimmed, flags, owner):
    server = make.server(3, **shimmed)
    track = server.track(owner)
    assert track.get("/healthz").status == 200
    (flags / "slow").touch()
    begin = time.monotonic()
    got = track.claim()
    assert time.monotonic() - begin > 0.39, "the answer came before the flush was over"
    begin = time.monotonic()
    assert track.mark(got["sandbox_id"]).status == 200
    assert time.monotonic() - begin > 0.39
    (flags / "slow").unlink()


def test_a_slow_disk_does_not_stop_reads_and_health_checks(make, shimmed, flags, new_owner):
    server = make.server(30, **shimmed)
    hang = flags / "hang"
    hang.touch()
    try:
        claims_ = [Background(server.track("slow-%d" % n).allocate) for n in range(8)]
        until(lambda: (flags / "count").exists(), "a flush hangs")
        for _ in range(20):
            assert server.client().get("/healthz").status == 200
            assert server.admin().list().status == 200
        assert not any(c.is_done() for c in claims_)
    finally:
        hang.unlink()
    assert [c.result().status for c in claims_] == [201] * 8


def test_not_ready_is_said_while_the_store_fails(make, new_owner):
    server = make.server(5)
    assert server.client().get("/readyz").status == 200
    with FullDisk(server):
        refused(server.track(new_owner()).allocate())
        reply = server.client().get("/readyz")
        assert reply.status in (200, 503)
        if reply.status == 503:
            assert reply.json["status"] == "not_ready"
            assert reply.json["checks"]["store"] != "ok"
    claim_again(server, new_owner())
    until(lambda: server.client().get("/readyz").status == 200, "ready again")


def test_not_ready_is_said_while_a_flush_hangs(make, shimmed, flags, owner):
    server = make.server(3, **shimmed)
    client = server.client()
    assert client.get("/readyz").status == 200
    hang = flags / "hang"
    hang.touch()
    try:
        claim = Background(server.track(owner).allocate)
        until(lambda: (flags / "count").exists(), "a flush hangs")
        reply = until(lambda: (lambda r: r.status == 503 and r)(client.get("/readyz")), "not ready: about 3 s", 60, 0.05)
        assert reply.json["status"] == "not_ready" and reply.json["checks"]["store"] != "ok"
        assert client.get("/healthz").status == 200 and not claim.is_done()
    finally:
        hang.unlink()
    assert claim.result(15).status == 201
    until(lambda: client.get("/readyz").status == 200, "ready again")
