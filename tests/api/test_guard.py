# SPDX-License-Identifier: Apache-2.0
"""The guard beside another system, as a running server: settings, a whole cycle, what it says, what it does not serve."""

import json

import pytest

from lib import leases
from lib.guard import ENV, Guarded
from lib.server import QUIET, run
from lib.wait import until

GUARD = {"LEASEHOLD_QUARANTINE": "guard"}


@pytest.fixture
def server(make):
    return make.server(args=["--dev"], **ENV, ACCOUNT_TABLE_NAME="sim")


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


def test_an_account_is_held_and_comes_back(server):
    guarded = Guarded(server)
    account = guarded.accounts("Available")[0]
    guarded.clean(account)
    guarded.wait_for(account, "QUARANTINE_COMPLETE")
    guarded.wait_for(account, "UNQUARANTINE_COMPLETE")
    until(lambda: guarded.place(account) == "Available", "it is back")
    said = guarded.actions(account)
    wanted = ["SCHEDULER_CREATED", "QUARANTINE_START", "QUARANTINE_COMPLETE", "UNQUARANTINE_START", "UNQUARANTINE_COMPLETE"]
    assert [a for a in said if a in wanted] == wanted
    assert guarded.ops.read("dead-letters")["dead_letters"] == []


def test_what_it_does_is_logged_and_counted(server):
    guarded = Guarded(server)
    account = guarded.accounts("Available")[0]
    guarded.clean(account)
    guarded.wait_for(account, "QUARANTINE_COMPLETE")
    lines = until(lambda: logged(server, "QUARANTINE_COMPLETE"), "a line")
    assert lines[0]["accountId"] == account and (lines[0]["fromOu"], lines[0]["toOu"]) == ("Available", "Quarantine")
    assert lines[0]["quarantineOuId"].startswith("ou-") and lines[0]["timestamp"].endswith("Z")
    metrics = until(lambda: guarded.ops.get("/metrics").body.decode(), "metrics")
    assert 'leasehold_guard_actions_total{action="QUARANTINE_COMPLETE"} 1' in metrics


def test_what_somebody_moves_by_hand_is_not_held(server):
    guarded = Guarded(server)
    account = guarded.accounts("Available")[0]
    guarded.move(account, "Available", "Frozen")
    guarded.move(account, "Frozen", "Available")
    guarded.wait_for(account, "QUARANTINE_SKIP")
    assert guarded.place(account) == "Available"
    assert "QUARANTINE_START" not in guarded.actions(account)


def test_a_hold_outlives_the_process(server):
    guarded = Guarded(server)
    account = guarded.accounts("Available")[0]
    guarded.clean(account)
    guarded.wait_for(account, "QUARANTINE_START")
    server.kill()
    server.start()
    guarded = Guarded(server)
    guarded.wait_for(account, "UNQUARANTINE_COMPLETE")
    assert guarded.place(account) == "Available"


def test_leases_are_not_served(make):
    server = make.server(args=["--dev"], **{**leases.env(make.folder), **ENV}, ACCOUNT_TABLE_NAME="sim")
    admin = leases.Api(server, leases.ADMIN, "Admin")
    for path in ("/leases", "/accounts", "/leaseTemplates", "/configurations"):
        reply = admin.call("GET", path)
        assert reply.status == 404 and "LEASEHOLD_QUARANTINE" in reply.body.decode(), (path, reply.body)
    assert admin.call("POST", "/leases", {"leaseTemplateUuid": "x"}).status == 404
