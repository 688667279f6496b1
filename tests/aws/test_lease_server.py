# SPDX-License-Identifier: Apache-2.0
"""A whole server on the front: an account is registered, cleaned by a build, lent to somebody of Identity Center, paid for, and taken back."""

import time

import pytest

from aws.front import names
from lib import jwt
from lib.aws_lease_tool import ADMINS, MANAGERS, USER_SET, USERS
from lib.http import Client
from lib.leases import ADMIN, MANAGER, Api, Pool
from lib.oidc import Provider
from lib.ops import insert, now_ms
from lib.server import Server
from lib.wait import until

ACCOUNT, ANNA = "200000000001", "anna@example.com"


@pytest.fixture
def people(front):
    add = lambda email, *groups: front.do("identitystore", "add_user", email=email, groups=groups)
    return {"anna": add("Anna@example.com", USERS), "manager": add(MANAGER, MANAGERS), "admin": add(ADMIN, ADMINS)}


SETTINGS = {"LEASEHOLD_JWT_SECRET": jwt.SECRET, "LEASEHOLD_CLEANER": "codebuild", "LEASEHOLD_CODEBUILD_PROJECT": "cleaner",
            "APPCONFIG_APPLICATION_ID": "app1234", "APPCONFIG_ENVIRONMENT_ID": "env1234",
            "APPCONFIG_NUKE_CONFIG_CONFIGURATION_PROFILE_ID": "prof123", "LEASEHOLD_ALARM_INTERVAL_SEC": "1"}


@pytest.fixture
def server(front, people, make):
    """With an account that is free: cleaning it first would take minutes of real time."""
    front.do("organizations", "add_account", id=ACCOUNT)
    front.do("sso-admin", "pace", looks=1, seconds=0)
    server = make.server(**{**front.env(), **SETTINGS})
    run(server, "directory-refresh")
    server.stop()
    insert(server, "account", id=ACCOUNT, name="free", status=0, placed_ou="Available", follow_number=0, is_following=0, has_drifted=0, cleaned_ms=now_ms() - 1000, rested_ms=now_ms(),
           clean_successes=0, clean_failures=0, created_ms=now_ms(), edited_ms=now_ms())
    server.start()
    return server


def place(front):
    parent = front.state("organizations")["accounts"][ACCOUNT]["parent"]
    return next(name for name, id in names.OUS.items() if id == parent)


def assigned(front):
    state = front.state("sso-admin")
    return sorted((state["sets"][a["set"]], a["principal"]) for a in state["assignments"])


def operator(server):
    return Client(server.address, {"Authorization": "Bearer " + server.env["BROKER_ADMIN_TOKEN"]})


def run(server, name):
    """A job, now; what it says it did."""
    reply = operator(server).post("/v1/ops/jobs/%s/run" % name)
    assert reply.status == 200, reply
    return reply.json


def test_somebody_of_identity_center_gets_an_account_and_gives_it_back(front, people, server):
    pool, anna = Pool(server), Api(server, ANNA, "User")
    lease = pool.active(anna)
    assert lease["userEmail"] == "Anna@example.com"  # as the directory writes it
    assert place(front) == "Active" and assigned(front) == [(USER_SET, people["anna"])]
    anna.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    until(lambda: place(front) == "CleanUp" and assigned(front) == [], "access ends and the account is cleaned", 60)
    build = until(lambda: front.state("codebuild")["builds"], "a build empties it", 60)[0]
    assert build["environment"]["CLEANUP_ACCOUNT_ID"] == ACCOUNT
    assert [e[0] for e in front.state("sso-admin")["effects"]] == ["created", "deleted"]


def test_a_lease_costs_what_cost_explorer_says(front, people, server):
    pool = Pool(server)
    lease = pool.active(Api(server, ANNA, "User"))
    front.do("ce", "add", account=ACCOUNT, day=time.strftime("%Y-%m-%d", time.gmtime()), amount="1.25")
    assert run(server, "cost-refresh")["pages"] >= 1
    run(server, "lease-monitor")
    assert pool.show(lease)["totalCostAccrued"] == 1.25
    pages = front.state("ce")["pages"]
    for _ in range(3):
        run(server, "lease-monitor")
    assert front.state("ce")["pages"] == pages


def test_who_has_left_gets_nothing_any_more(front, people, server):
    pool = Pool(server)
    front.do("identitystore", "leave", user=people["anna"])
    assert run(server, "directory-refresh")["changed"] == 1
    template = pool.template()
    assert pool.manager.call("POST", "/leases", {"leaseTemplateUuid": template["uuid"], "userEmail": ANNA}).status >= 400
    assert front.state("sso-admin")["effects"] == []


def test_c26_a_directory_that_is_down_is_an_alarm(front, people, server):
    server.stop()
    server.sql("UPDATE aws_directory SET read_ms = read_ms - ?", 31 * 60000)
    front.fault("error", "identitystore", "GetGroupId", status=500, count=-1)
    front.fault("error", "identitystore", "ListGroupMemberships", status=500, count=-1)
    server.start()

    def alarm():
        found = [a for a in operator(server).get("/v1/ops/alarms").json["alarms"] if a["rule"] == "directory-unread"]
        return found and found[0]

    assert until(alarm, "the alarm is raised", 60)["severity"] == "warning"
    front.clear()
    run(server, "directory-refresh")
    until(lambda: not alarm(), "the alarm ends", 60)


def test_sessions_go_on_after_a_kill_in_the_middle_of_a_grant(front, people, server):
    pool, anna = Pool(server), Api(server, ANNA, "User")
    held = front.fault("hold_after", "sso-admin", "CreateAccountAssignment", count=1)
    lease = pool.pending(anna)
    pool.manager.data("POST", "/leases/%s/review" % lease["leaseId"], {"action": "Approve"})
    front.wait_held(held)
    server.kill()
    front.release(held)
    server.start()
    pool = Pool(server)
    pool.until_status(lease, "Active")
    assert assigned(front) == [(USER_SET, people["anna"])]
    assert [e[0] for e in front.state("sso-admin")["effects"]] == ["created"]


def test_a_freeze_says_that_open_sessions_live_on(front, people, server):
    pool = Pool(server)
    lease = pool.active(Api(server, ANNA, "User"))
    assert "live on" in pool.manager.data("POST", "/leases/%s/freeze" % lease["leaseId"])["note"]
    until(lambda: place(front) == "Frozen" and assigned(front) == [], "access is taken away", 60)


@pytest.fixture
def provider():
    made = Provider()
    yield made
    made.close()


def sign_in(server, provider, email):
    """By the pages of the provider; the answer to the browser that comes back."""
    provider.person = {"email": email, "name": "From the token", "groups": ["lab-admins"]}
    begun = server.client().get("/api/auth/login")
    cookie = begun.header("set-cookie").partition(";")[0]
    _, query = provider.authorize(begun.header("location"))
    return server.client().request("GET", "/api/auth/login/callback?" + query, headers={"Cookie": cookie})


def test_the_provider_says_who_and_identity_center_says_what(front, people, make, provider):
    server = make.server(**{**front.env(), **SETTINGS, **provider.settings("http://127.0.0.1:1")})
    run(server, "directory-refresh")
    reply = sign_in(server, provider, "anna@EXAMPLE.com")
    assert reply.status == 302, reply
    token = reply.header("location").partition("?token=")[2]
    user = server.client().get("/api/auth/login/status", headers={"Authorization": "Bearer " + token}).json["session"]["user"]
    assert (user["email"], user["roles"]) == ("Anna@example.com", ["User"])  # whatever groups the token has
    assert sign_in(server, provider, "stranger@example.com").status == 401
    front.do("identitystore", "add_user", email="new@example.com", groups=[USERS])
    assert sign_in(server, provider, "new@example.com").status == 302  # before the next refresh
    front.do("identitystore", "leave", user=people["anna"])
    run(server, "directory-refresh")
    assert sign_in(server, provider, "anna@example.com").status == 401


NUKE = """#!/bin/sh
[ "$1" = resource-types ] && { echo SQSQueue; exit 0; }
echo "$AWS_ACCESS_KEY_ID" >> "$(dirname "$0")/keys"
echo 'Scan complete: 1 total, 0 nukeable, 1 filtered.'
"""


def test_aws_nuke_gets_its_credentials_by_the_chain(front, people, make, tmp_path):
    program, template = tmp_path / "aws-nuke", tmp_path / "nuke.yaml"
    program.write_text(NUKE)
    program.chmod(0o700)
    template.write_text('regions: [us-east-1]\naccount-blocklist: ["%s"]\naccounts: {"%%CLEANUP_ACCOUNT_ID%%": {}}\n' % names.MANAGEMENT)
    front.do("organizations", "add_account", id=ACCOUNT, parent=names.OUS["Entry"])
    server = make.server(**{**front.env(), **SETTINGS, "LEASEHOLD_CLEANER": "nuke", "LEASEHOLD_NUKE_CONFIG": template, "LEASEHOLD_NUKE_PROGRAM": program})
    Pool(server).admin.data("POST", "/accounts", {"awsAccountId": ACCOUNT}, 201)
    until((tmp_path / "keys").exists, "the account is being emptied", 60)
    assumed = next(a for a in front.state("sts")["assumed"] if a["role"].endswith(":role/" + names.SANDBOX_ROLE))
    assert assumed["role"] == "arn:aws:iam::%s:role/%s" % (ACCOUNT, names.SANDBOX_ROLE) and assumed["seconds"] == 3600
    assert "isb-billing-sep-intermediate" in assumed["by"] and assumed["name"].endswith("-nuke")
    until(lambda: (tmp_path / "keys").read_text().startswith("ASIAFRONT"), "aws-nuke has that session's keys", 30)
