# SPDX-License-Identifier: Apache-2.0
"""One thing in words: what operators, managers and owners are told, by the API and on the command line."""

import json

import pytest

from lib import jwt, leases, server as program
from lib.leases import MANAGER, Pool
from lib.ops import Ops
from lib.server import TRACK_TOKEN
from lib.http import Client
from lib.wait import until

OK, USAGE, NOT_FOUND, NOT_ALLOWED = 0, 2, 4, 5
MEMBERS = ["subject", "kind", "id", "where", "since", "summary", "why", "holds", "events", "next", "can", "problems"]
HOUR_PER_SECOND = "3600"


@pytest.fixture(scope="module")
def pool(make_for_module):
    env = leases.env(make_for_module.folder, LEASEHOLD_TIME_SCALE=HOUR_PER_SECOND)
    return Pool(make_for_module.server(args=["--dev"], **env))


@pytest.fixture(scope="module")
def ops(pool):
    return Ops(pool.server)


def explain(ops, kind, thing):
    reply = ops.get("/v1/ops/explain/%s/%s" % (kind, thing))
    assert reply.status == 200, reply
    assert list(reply.json) == MEMBERS
    assert reply.json["subject"] == "%s/%s" % (kind, thing)
    return reply.json


def until_where(ops, account, where):
    return until(lambda: (lambda x: x if x["where"] == where else None)(explain(ops, "account", account)),
                 "the account is in " + where, 60, 0.1)


def faults(ops, *rules):
    assert ops.request("PUT", "/v1/sim/faults", body={"faults": list(rules)}).status == 200


def ended(pool, ops):
    """The account and the lease of somebody who has just given it back."""
    person = pool.person()
    lease = pool.active(person)
    person.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    return lease["awsAccountId"], lease


def test_an_account_rests_and_says_for_what_and_until_when(pool, ops):
    account, lease = ended(pool, ops)
    x = until_where(ops, account, "Cooldown")
    open_ones = [h for h in x["holds"] if h["state"] == "open"]
    assert len(open_ones) == 1 and open_ones[0]["reason"] == "billing" and open_ones[0]["leaseUuid"] == lease["uuid"]
    due = open_ones[0]["due"]
    shown = due[:10] + " " + due[11:16] + " UTC"
    assert x["summary"] == ("Account %s is in cooldown until %s so that the costs of lease %s are complete; then it can be lent again."
                            % (account, shown, lease["uuid"]))
    assert due in [step["at"] for step in x["next"]]
    assert x["problems"] == []
    assert [e["text"] for e in x["events"] if e["type"] == "AccountCleanupSucceeded"] == ["the cleanup succeeded: it is empty"]
    assert [e["time"] for e in x["events"]] == sorted((e["time"] for e in x["events"]), reverse=True)
    lease_told = explain(ops, "lease", lease["uuid"])
    assert lease_told["where"] == "ManuallyTerminated" and "has ended" in lease_told["summary"]


def test_an_account_whose_cleanup_failed_says_what_brings_it_back(pool, ops):
    person = pool.person()
    lease = pool.active(person)
    account = lease["awsAccountId"]
    faults(ops, {"fault": "clean-fails", "per_mille": 1000})
    try:
        person.data("POST", "/leases/%s/terminate" % lease["leaseId"])
        x = until_where(ops, account, "Quarantine")
    finally:
        faults(ops)
    assert "is in quarantine: the cleanup failed" in x["summary"]
    again = next(c for c in x["can"] if c["command"] == "leasehold account retry-cleanup " + account)
    assert (again["method"], again["role"]) == ("POST", "Admin")
    assert pool.admin.call(again["method"], again["path"][len("/api"):]).status == 200  # what is offered works
    assert explain(ops, "account", account)["where"] == "CleanUp"


@pytest.mark.parametrize("path, status, part", [
    ("account/999999999999", 404, "no event tells of one"),
    ("sandbox/sb-nowhere", 404, "there is no sandbox sb-nowhere"),
    ("lease/00000000-0000-0000-0000-000000000000", 404, "there is no lease"),
    ("instance/i-1", 404, "no event tells of one"),
    ("moon/1", 400, "right are account, lease, sandbox and instance"),
    ("account/12", 400, "12 digits"),
    ("sandbox/%20", 400, "not a sandbox id"),
    ("sandbox/" + "x" * 600, 404, "too long"),
])
def test_what_is_not_there_is_said(ops, path, status, part):
    reply = ops.get("/v1/ops/explain/" + path)
    assert reply.status == status and part in reply.body.decode(), reply


def test_only_operators_may_ask_about_anything(pool):
    track = Client(pool.server.address, {"Authorization": "Bearer " + TRACK_TOKEN})
    assert track.request("GET", "/v1/ops/explain/account/999999999999").status in (401, 403)


def test_a_sandbox_is_explained(ops):
    listed = ops.get("/v1/admin/sandboxes?status=available&limit=1").json["sandboxes"][0]
    x = explain(ops, "sandbox", listed["sandbox_id"])
    assert x["where"] == "available" and "is free" in x["summary"]


def test_the_owner_and_managers_are_told_and_nobody_else(pool):
    owner, other = pool.person(), pool.person()
    lease = pool.pending(owner)
    path = "/leases/%s/explain" % lease["leaseId"]
    told = owner.data("GET", path)
    assert list(told) == MEMBERS and told["where"] == "PendingApproval"
    assert [c["command"].split()[2] for c in told["can"]] == ["withdraw"]
    assert told["problems"] == [] and told["holds"] == []
    managers = pool.manager.data("GET", path)
    assert [c["command"].split()[2] for c in managers["can"]] == ["approve", "deny"]
    assert [c["command"].split()[2] for c in pool.admin.data("GET", path)["can"]] == ["approve", "deny"]
    other.errors("GET", path, status=403)
    pool.manager.errors("GET", "/leases/%s/explain" % leases.nowhere(owner.email), status=404)


def cli(pool, *args, env=None, code=OK):
    own = {"LEASEHOLD_ADDRESS": pool.server.url, "NO_COLOR": "1", **(env or {})}
    done = program.run(*args, env=own)
    assert done.returncode == code, done
    return done


def test_the_command_guesses_the_kind_and_prints_what_matters(pool, ops):
    account, lease = ended(pool, ops)
    until_where(ops, account, "Cooldown")
    admin = {"BROKER_ADMIN_TOKEN": program.ADMIN_TOKEN}
    text = cli(pool, "explain", account, env=admin).stdout
    words = " ".join(text.split())
    assert words.startswith("Account %s is in cooldown until " % account) and "Cooldown since " in words
    for heading in ("Why", "Holds", "What happens next", "What you can do", "History, newest first"):
        assert "\n%s\n" % heading in text, text
    assert "What is wrong" not in text
    assert "      leasehold hold release " in text and "held: billing" in text
    assert max(len(line) for line in text.split("Holds")[0].splitlines()) <= 100
    as_lease = cli(pool, "explain", lease["uuid"], env=admin).stdout
    assert "Lease " + lease["uuid"] in as_lease and "has ended" in " ".join(as_lease.split())
    document = json.loads(cli(pool, "explain", "account", account, "--json", env=admin).stdout)
    assert list(document) == MEMBERS


def test_the_command_says_when_there_is_nothing(pool):
    admin = {"BROKER_ADMIN_TOKEN": program.ADMIN_TOKEN}
    assert "no event tells of one" in cli(pool, "explain", "account", "999999999999", env=admin, code=NOT_FOUND).stderr
    assert "no instance i-1" in cli(pool, "explain", "instance", "i-1", env=admin, code=NOT_FOUND).stderr
    assert "no sandbox sb-nowhere" in cli(pool, "explain", "sb-nowhere", env=admin, code=NOT_FOUND).stderr
    assert "no lease 99999999," in cli(pool, "explain", "99999999", env=admin, code=NOT_FOUND).stderr
    cli(pool, "explain", env=admin, code=USAGE)
    cli(pool, "explain", "account", "999999999999", code=NOT_ALLOWED)


def test_without_an_operators_token_the_command_explains_a_lease_as_its_owner_sees_it(pool):
    owner = pool.person()
    lease = pool.pending(owner)
    env = {"LEASEHOLD_TOKEN": jwt.token(owner.email, "User")}
    text = cli(pool, "explain", "lease", lease["uuid"][:23], env=env, code=OK).stdout
    assert "is waiting for a manager's approval" in " ".join(text.split()) and "lease withdraw" in text
    managers = cli(pool, "explain", "lease", lease["uuid"], env={"LEASEHOLD_TOKEN": jwt.token(MANAGER, "Manager")}).stdout
    assert "leasehold lease approve " + lease["uuid"] in managers


def test_the_command_takes_the_end_of_an_id(pool, ops):
    lease = pool.pending(pool.person())
    sandbox = ops.get("/v1/admin/sandboxes?status=available&limit=1").json["sandboxes"][0]["sandbox_id"]
    env = {"BROKER_ADMIN_TOKEN": program.ADMIN_TOKEN, "LEASEHOLD_TOKEN": jwt.token(MANAGER, "Admin")}
    for words, whole in (
        (["lease", lease["uuid"][-8:]], lease["uuid"]),
        ([lease["uuid"][-8:]], lease["uuid"]),
        ([lease["uuid"]], lease["uuid"]),
        (["sandbox", sandbox[-8:]], sandbox),
        ([sandbox[-8:]], sandbox),
        ([sandbox], sandbox),
    ):
        document = json.loads(cli(pool, "explain", *words, "--json", env=env).stdout)
        assert document["id"] == whole, (words, document)
