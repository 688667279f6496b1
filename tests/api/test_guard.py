# SPDX-License-Identifier: Apache-2.0
"""The guard beside another system, as a running server: settings, a whole cycle, what it says, what it does not serve."""

import json
from datetime import datetime

import pytest

from lib import leases
from lib.clouds import SimGuard
from lib.guard import ENV, FOUND, HOURS
from lib.server import QUIET, run
from lib.wait import until

GUARD = {"LEASEHOLD_QUARANTINE": "guard"}


@pytest.fixture
def start(make):
    """start(SETTING=...): a guard, in a world that goes faster."""
    return lambda scale=ENV["LEASEHOLD_TIME_SCALE"], **more: SimGuard.start(make, None, **{**ENV, "LEASEHOLD_TIME_SCALE": scale, **more})


@pytest.fixture
def guarded(start):
    return start()


def refused(tmp_path, **env):
    got = run("serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"), env={**QUIET, **GUARD, **env})
    assert got.returncode == 2 and not (tmp_path / "data").exists(), got
    return got.stderr


def logged(server, action):
    found = [json.loads(line) for line in server.lines if line.startswith("{")]
    return [line for line in found if line.get("action") == action]


def test_h7_a_missing_setting_is_refused_at_the_start_by_name(tmp_path):
    assert "ACCOUNT_TABLE_NAME: is required" in refused(tmp_path)


def test_r8_a_missing_setting_of_the_release_is_refused_at_the_start_by_name(tmp_path):
    assert "SANDBOX_OU_ID: is required" in refused(tmp_path, ACCOUNT_TABLE_NAME="SandboxAccounts")


@pytest.mark.parametrize(
    "name,value", [("SANDBOX_OU_ID", "OU-ABCD-12345678"), ("SANDBOX_OU_ID", "111122223333"), ("LEASEHOLD_QUARANTINE", "on")]
)
def test_a_setting_that_makes_no_sense_is_refused(tmp_path, name, value):
    assert name + ": must be" in refused(tmp_path, ACCOUNT_TABLE_NAME="sim", **{name: value})


def test_a_hold_too_short_for_two_bills_is_refused(make):
    server = make.server(start=False, args=["--dev"], **{**ENV, "QUARANTINE_DURATION_HOURS": 39}, ACCOUNT_TABLE_NAME="sim")
    with pytest.raises(AssertionError, match="QUARANTINE_DURATION_HOURS"):
        server.start()
    server.said.clear()


def test_an_account_is_held_and_comes_back(guarded):
    account = guarded.accounts("Available")[0]
    guarded.clean(account)
    guarded.wait_for(account, "QUARANTINE_COMPLETE")
    guarded.pass_hours(HOURS + 1)
    guarded.wait_for(account, "UNQUARANTINE_COMPLETE")
    until(lambda: guarded.place(account) == "Available", "it is back")
    said = guarded.actions(account)
    wanted = ["SCHEDULER_CREATED", "QUARANTINE_START", "QUARANTINE_COMPLETE", "UNQUARANTINE_START", "UNQUARANTINE_COMPLETE"]
    assert [a for a in said if a in wanted] == wanted
    assert guarded.ops.read("dead-letters")["dead_letters"] == []


def test_nfr_p1_a_burst_of_moves_is_held_within_30_seconds_each(start):
    """At real speed: from the arrival of CloudTrail's event to the end of the move and the write of the table."""
    guarded = start(scale=1, accounts=20)
    accounts = guarded.accounts("Available")
    assert len(accounts) >= 20
    for account in accounts:
        guarded.clean(account)
    until(lambda: len(guarded.accounts("Quarantine")) == len(accounts), "all are held", 120, 0.2)

    def seconds(account):
        guarded.wait_for(account, "QUARANTINE_COMPLETE")
        events = guarded.ops.events("subject=account/%s&order=oldest" % account)
        began = next(e["time"] for e in events if e["detail-type"] == "guard:QUARANTINE_START")
        came = [e["time"] for e in events if e["detail-type"] == "cloudtrail:MoveAccount" and e["time"] <= began][-1]  # out of CleanUp
        done = next(e["time"] for e in events if e["detail-type"] == "guard:QUARANTINE_COMPLETE")
        return (datetime.fromisoformat(done) - datetime.fromisoformat(came)).total_seconds()

    assert max(seconds(account) for account in accounts) < 30


def test_what_it_does_is_logged_and_counted(guarded):
    account = guarded.accounts("Available")[0]
    guarded.clean(account)
    guarded.wait_for(account, "QUARANTINE_COMPLETE")
    lines = until(lambda: logged(guarded.server, "QUARANTINE_COMPLETE"), "a line")
    assert lines[0]["accountId"] == account and (lines[0]["fromOu"], lines[0]["toOu"]) == ("Available", "Quarantine")
    assert lines[0]["quarantineOuId"].startswith("ou-") and lines[0]["timestamp"].endswith("Z")
    metrics = until(lambda: guarded.ops.get("/metrics").body.decode(), "metrics")
    assert 'leasehold_guard_actions_total{action="QUARANTINE_COMPLETE"} 1' in metrics


def test_what_somebody_moves_by_hand_is_not_held(guarded):
    account = guarded.accounts("Available")[0]
    guarded.move(account, "Available", "Frozen")
    guarded.move(account, "Frozen", "Available")
    guarded.wait_for(account, "QUARANTINE_SKIP")
    assert guarded.place(account) == "Available"
    assert "QUARANTINE_START" not in guarded.actions(account)


def test_a_hold_outlives_the_process(guarded):
    account = guarded.accounts("Available")[0]
    guarded.clean(account)
    guarded.wait_for(account, "QUARANTINE_START")
    guarded.server.kill()
    guarded.server.start()
    guarded = guarded.again()
    guarded.wait_for(account, "QUARANTINE_COMPLETE")
    guarded.pass_hours(HOURS + 1)
    guarded.wait_for(account, "UNQUARANTINE_COMPLETE")
    assert guarded.place(account) == "Available"


def test_leases_are_not_served(make, start):
    admin = leases.Api(start(**leases.env(make.folder)).server, leases.ADMIN, "Admin")
    for path in ("/leases", "/accounts", "/leaseTemplates", "/configurations"):
        reply = admin.call("GET", path)
        assert reply.status == 404 and "LEASEHOLD_QUARANTINE" in reply.body.decode(), (path, reply.body)
    assert admin.call("POST", "/leases", {"leaseTemplateUuid": "x"}).status == 404


# The reconciler. The world goes slower here, so that what is found is not over before it is looked at.


@pytest.fixture
def silent(start):
    """No event comes, and only the doctor looks."""
    guarded = start(scale=600, silent=True, LEASEHOLD_ALARM_INTERVAL_SEC=1)
    assert guarded.ops.act("jobs/reconcile/pause").status == 200
    return guarded


def raised(guarded):
    return [a["name"] for a in guarded.ops.read("alarms")["alarms"] if a["state"] == "raised"]


def test_x18_the_doctor_heals_beside_another_system_too(silent):
    account = silent.accounts("Available")[0]
    assert "nothing is wrong" in silent.doctor()[1]
    silent.move(account, "Available", "Quarantine")
    code, said = silent.doctor()
    assert code == FOUND and "unrecorded-rest" in said and account in said and not silent.held(account)
    assert "repaired" in silent.doctor("--fix")[1]
    hold = silent.held(account)[0]
    assert hold["created_by"] == "reconciler" and hold["mode"] == "guard" and hold["due_at"] - hold["created_at"] == HOURS * 3600
    until(lambda: "pool-mismatch#" + account in raised(silent), "it is told of", 30)
    silent.wait_for(account, "QUARANTINE_COMPLETE")
    until(lambda: "nothing is wrong" in silent.doctor("--fix")[1], "the table has followed", 30)
    assert len(silent.held(account)) == 1


def test_fr19_a_move_that_no_event_told_of_is_held_by_the_next_pass(silent):
    account = silent.accounts("Available")[0]
    silent.move(account, "Available", "CleanUp")
    silent.doctor("--fix")
    silent.move(account, "CleanUp", "Available")
    code, said = silent.doctor()
    assert code == FOUND and "bypass" in said and not silent.held(account)
    silent.doctor("--fix")
    silent.wait_for(account, "QUARANTINE_COMPLETE")
    assert silent.place(account) == "Quarantine" and len(silent.held(account)) == 1
    until(lambda: "hold-bypass#" + account in raised(silent), "it is told of", 30)


def test_nfr_r2_the_reconciler_runs_by_itself_beside_another_system(silent):
    account = silent.accounts("Available")[0]
    silent.move(account, "Available", "Quarantine")
    assert silent.ops.act("jobs/reconcile/resume").status == 200
    silent.pass_hours(2)
    until(lambda: silent.held(account), "a pass has found it", 30)
