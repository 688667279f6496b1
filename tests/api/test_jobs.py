# SPDX-License-Identifier: Apache-2.0
"""The jobs: what they show, running them, pausing them, and answers that do not wait."""

import threading
import time

import pytest

from lib import server as program
from lib.crowd import Background, together
from lib.wait import until

NAMES = ["sync", "cleanup", "expiry", "stale-removal", "event-retention"]
FIELDS = {
    "name",
    "paused",
    "running",
    "interval_sec",
    "last_started_at",
    "last_finished_at",
    "last_outcome",
    "last_error",
    "last_result",
    "next_run_at",
}


@pytest.fixture
def csp(make):
    return make.csp(4)


@pytest.fixture
def server(make, csp):
    return make.server(csp=csp)


@pytest.fixture
def admin(server):
    return server.admin()


def test_every_job_is_listed_with_the_documented_fields(admin):
    jobs = admin.get("/v1/admin/jobs").json["jobs"]
    assert sorted(j["name"] for j in jobs) == sorted(NAMES)
    for job in jobs:
        assert set(job) == FIELDS
        assert job["paused"] is False and job["running"] is False
        assert job["last_outcome"] == "success"
        assert job["last_error"] is None
        assert isinstance(job["last_result"], dict)
        assert job["last_started_at"] <= job["last_finished_at"] <= time.time() + 1
        assert job["next_run_at"] > time.time()
    assert {j["name"]: j["interval_sec"] for j in jobs} == {
        "sync": 3600,
        "cleanup": 3600,
        "expiry": 3600,
        "stale-removal": 86400,
        "event-retention": 3600,
    }


def test_before_its_first_pass_a_job_has_no_outcome(make):
    csp = make.csp(2)
    csp.gate = threading.Event()
    admin = make.server(csp=csp, wait=False, CSP_TIMEOUT_READ_SEC=30).admin()
    job = until(lambda: (lambda j: j if j["running"] else None)(admin.job("sync")), "sync runs")
    assert (job["last_finished_at"], job["last_outcome"], job["last_result"]) == (None, None, None)
    csp.gate.set()
    until(lambda: admin.job("sync")["last_outcome"] == "success", "sync is over")


@pytest.mark.parametrize(
    "name,call",
    [("sync", "sync"), ("cleanup", "cleanup"), ("expiry", "expire"), ("stale-removal", "auto-delete-stale")],
)
def test_running_a_job_answers_as_its_own_call(admin, name, call):
    one, two = admin.run("jobs/%s/run" % name), admin.run(call)
    assert set(one) - {"grace_period_hours"} == set(two) - {"grace_period_hours"}
    assert one["status"] == two["status"] == "completed"
    result = dict(admin.job(name)["last_result"])
    assert set(result) & set(one) - {"status", "duration_ms"}


@pytest.mark.parametrize("what", ["run", "pause", "resume"])
def test_an_unknown_job_is_404(admin, what):
    reply = admin.act("jobs/no-such-job/" + what)
    assert (reply.status, reply.code) == (404, "JOB_NOT_FOUND")


def test_jobs_run_by_themselves(make):
    csp = make.csp(2)
    server = make.server(csp=csp, SYNC_INTERVAL_SEC=1, CLEANUP_INTERVAL_SEC=1, AUTO_EXPIRY_INTERVAL_SEC=1)
    csp.add(1)
    server.wait_available(3, 15)
    track = server.track("by-itself")
    track.mark(track.claim()["sandbox_id"])
    until(lambda: csp.deletes(), "cleanup ran by itself", 15)


def test_a_paused_job_does_not_run_but_can_be_run(make):
    csp = make.csp(2)
    server = make.server(csp=csp, SYNC_INTERVAL_SEC=1, AUTO_EXPIRY_INTERVAL_SEC=1)
    admin = server.admin()
    reply = admin.act("jobs/sync/pause")
    assert reply.status == 200
    assert (reply.json["name"], reply.json["paused"]) == ("sync", True)
    until(lambda: not admin.job("sync")["running"], "no pass under way")
    asked = csp.lists()
    # Two more passes of another job with the same interval: time enough for a sync that should not come.
    for _ in range(2):
        last = admin.job("expiry")["last_finished_at"]
        until(lambda: admin.job("expiry")["last_finished_at"] > last, "expiry ran again", 10, 0.05)
    assert csp.lists() == asked
    csp.add(1)
    assert admin.run("jobs/sync/run")["added"] == 1
    assert admin.job("sync")["paused"] is True
    reply = admin.act("jobs/sync/resume")
    assert (reply.status, reply.json["paused"]) == (200, False)
    asked = csp.lists()
    until(lambda: csp.lists() > asked, "sync runs by itself again", 10)


def test_pause_and_resume_can_be_repeated(admin):
    for what, paused in (("pause", True), ("pause", True), ("resume", False), ("resume", False)):
        reply = admin.act("jobs/cleanup/" + what)
        assert (reply.status, reply.json["paused"]) == (200, paused)


def test_pausing_survives_a_restart(server, csp, admin):
    admin.act("jobs/sync/pause")
    asked = csp.lists()
    server.restart()
    admin = server.admin()
    assert admin.job("sync")["paused"] is True
    assert csp.lists() == asked
    due = admin.act("jobs/sync/resume").json["next_run_at"]
    assert abs(due - time.time() - 3600) < 60
    server.restart()
    job = server.admin().job("sync")
    assert (job["paused"], job["next_run_at"]) == (False, due)


def test_a_schedule_survives_a_restart(server, csp, admin):
    """What is not due is not run because the program is started; the time that was set stays."""
    asked = csp.lists()
    before = {job["name"]: job["next_run_at"] for job in admin.jobs()}
    server.restart()
    assert {job["name"]: job["next_run_at"] for job in server.admin().jobs()} == before
    assert csp.lists() == asked


def test_what_became_due_while_nobody_was_there_is_run_once(make):
    csp = make.csp(2)
    server = make.server(csp=csp)
    asked = csp.lists()
    assert server.stop() == 0
    assert server.sql("UPDATE timer SET due_ms = due_ms - 5 * 3600000 WHERE name = 'job/sync'") == 1
    server.start().settle()
    assert csp.lists() == asked + 1
    assert server.admin().job("sync")["next_run_at"] > time.time() + 3000


def test_a_shorter_interval_counts_from_the_start_on(server, csp):
    asked = csp.lists()
    server.restart(SYNC_INTERVAL_SEC=1)
    until(lambda: csp.lists() > asked, "sync runs by its new interval", 10)


def test_a_pass_that_a_kill_ended_is_run_again_at_the_start(make):
    csp = make.csp(2)
    server = make.server(csp=csp, CSP_TIMEOUT_READ_SEC=60)
    csp.gate = threading.Event()
    asked = csp.lists()
    assert server.admin().act("sync", headers={"Prefer": "respond-async"}).status == 202
    until(lambda: csp.lists() == asked + 1, "the pass is under way")
    server.kill()
    csp.gate.set()
    csp.gate = None
    csp.add(1)
    server.start()
    until(lambda: server.admin().stats()["available"] == 3, "the pass that was asked for is run")


def test_pausing_survives_a_kill(server, admin):
    assert admin.act("jobs/sync/pause").status == 200
    server.kill()
    server.start()
    assert server.admin().job("sync")["paused"] is True


@pytest.mark.parametrize("path,name", [("sync", "sync"), ("jobs/sync/run", "sync")])
def test_respond_async_is_202_and_the_pass_goes_on(server, csp, admin, path, name):
    csp.gate = threading.Event()
    csp.add(2)
    reply = admin.act(path, headers={"Prefer": "respond-async"})
    assert reply.status == 202
    assert reply.json == {"status": "running", "job": name}
    assert admin.job("sync")["running"] is True
    csp.gate.set()
    until(lambda: not admin.job("sync")["running"], "the pass is over")
    job = admin.job("sync")
    assert job["last_outcome"] == "success"
    assert job["last_result"]["added"] == 2
    assert admin.stats()["available"] == 6


def test_a_running_job_is_not_started_twice(server, csp, admin):
    csp.gate = threading.Event()
    asked = csp.lists()
    first = Background(server.admin().act, "sync")
    until(lambda: csp.lists() == asked + 1, "the vendor is asked")
    others = [Background(server.admin().act, path) for path in ("sync", "jobs/sync/run", "sync", "sync")]
    # Answers on another connection after the others asked: the server has seen them too.
    for _ in range(50):
        assert admin.job("sync")["running"] is True
    assert csp.lists() == asked + 1
    assert not any(call.is_done() for call in [first, *others])
    csp.gate.set()
    assert {call.result().status for call in [first, *others]} == {200}
    assert "joined" not in first.result().json and all(call.result().json["joined"] is True for call in others)


def test_who_runs_a_job_that_runs_already_is_told(server, csp, admin):
    csp.gate = threading.Event()
    assert "joined" not in admin.act("sync", headers={"Prefer": "respond-async"}).json
    assert admin.act("sync", headers={"Prefer": "respond-async"}).json == {"status": "running", "job": "sync", "joined": True}
    env = {"LEASEHOLD_ADDRESS": server.url, "BROKER_ADMIN_TOKEN": program.ADMIN_TOKEN}
    joined = program.run("job", "run", "sync", "--async", env=env)
    assert joined.returncode == 0 and "already running" in joined.stderr, joined
    csp.gate.set()
    until(lambda: not admin.job("sync")["running"], "the pass is over")
    alone = program.run("job", "run", "sync", env=env)
    assert alone.returncode == 0 and "already running" not in alone.stderr


def test_many_callers_of_one_job_all_get_an_answer(server, csp):
    replies = together(12, lambda n: server.admin().act("sync"))
    assert {r.status for r in replies} == {200}
    assert {r.json["synced"] for r in replies} == {4}


def test_a_failing_pass_is_shown(csp, admin):
    csp.list_fault = 500
    reply = admin.act("jobs/sync/run")
    assert (reply.status, reply.code) == (503, "SERVICE_UNAVAILABLE")
    job = admin.job("sync")
    assert job["last_outcome"] == "error"
    assert "500" in job["last_error"]


def test_a_pass_of_more_than_20_s_is_202(make, new_owner):
    csp = make.csp(3)
    server = make.server(csp=csp, CSP_TIMEOUT_READ_SEC=60)
    admin = server.admin()
    csp.gate = threading.Event()
    begin = time.monotonic()
    reply = admin.act("sync", timeout=58)  # the vendor would be waited for longer
    took = time.monotonic() - begin
    assert (reply.status, reply.json) == (202, {"status": "running", "job": "sync"})
    assert took > 19
    csp.gate.set()
    until(
        lambda: admin.job("sync")["last_outcome"] == "success" and not admin.job("sync")["running"], "its end is shown"
    )
