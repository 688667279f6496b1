# SPDX-License-Identifier: Apache-2.0
"""Leases, templates and accounts on the command line, against a real server."""

import json

import pytest

from lib import jwt, leases, server
from lib.leases import ADMIN, MANAGER, Pool
from lib.wait import until

OK, REFUSED, USAGE, EMPTY, NOT_FOUND, NOT_ALLOWED = 0, 1, 2, 3, 4, 5


class Person:
    """Somebody at a terminal of his own; everything is asked for with his token."""

    def __init__(self, pool, email, role):
        self.email = email
        self.env = {"LEASEHOLD_ADDRESS": pool.server.url, "LEASEHOLD_TOKEN": jwt.token(email, role),
                    "NO_COLOR": "1", "TZ": "UTC"}

    def run(self, *args, code=OK):
        done = server.run(*args, env=self.env)
        assert done.returncode == code, done
        return done

    def out(self, *args, code=OK):
        return self.run(*args, code=code).stdout

    def json(self, *args):
        return json.loads(self.out(*args, "--json"))["data"]

    def card(self, *args, code=OK):
        """The labelled lines of an answer."""
        lines = [line.split("  ", 1) for line in self.out(*args, code=code).splitlines()]
        return {label: rest.strip() for label, rest in lines}


@pytest.fixture(scope="module")
def pool(make_for_module):
    env = leases.env(make_for_module.folder, LEASEHOLD_SIM_ACCOUNTS="12", LEASEHOLD_SIM_ENTRY_ACCOUNTS="3")
    return Pool(make_for_module.server(args=["--dev"], **env))


@pytest.fixture
def user(pool):
    return Person(pool, pool.person().email, "User")


@pytest.fixture
def manager(pool):
    return Person(pool, MANAGER, "Manager")


@pytest.fixture
def admin(pool):
    return Person(pool, ADMIN, "Admin")


@pytest.fixture
def template(pool):
    return pool.template()["name"]


def test_a_lease_from_the_request_to_its_end(pool, user, manager, template):
    asked = user.run("lease", "request", "--template", template, "--comments", "a course")
    assert "PendingApproval" in asked.stdout and "a course" in asked.stdout
    short = user.json("lease", "list")["result"][0]["uuid"][-8:]
    assert "leasehold lease wait " + short in asked.stderr
    assert short in manager.out("lease", "list", "--status", "PendingApproval", "--all")
    assert manager.card("lease", "approve", short)["Approved by"] == MANAGER
    ready = user.card("lease", "wait", short, "--wait", "30")
    assert ready["Status"] == "Active" and ready["Spent/budget"].endswith("/40.00") and "(in " in ready["Ends"]
    assert manager.card("lease", "freeze", short)["Status"] == "Frozen"
    assert manager.card("lease", "unfreeze", short)["Status"] == "Active"
    before = user.json("lease", "show", short)["expirationDate"]
    manager.run("lease", "extend", short, "--hours", "5")
    after = user.json("lease", "show", short)["expirationDate"]
    assert after[:10] >= before[:10] and after != before
    ended = user.card("lease", "terminate", short)
    assert ended["Status"] == "ManuallyTerminated" and ended["Ended by"].lower() == user.email and "Ends" not in ended
    assert "ManuallyTerminated" in user.run("lease", "wait", short, code=REFUSED).stderr


def test_a_lease_that_nobody_has_to_approve_is_waited_for(pool, user):
    name = pool.template(requiresApproval=False)["name"]
    assert user.card("lease", "request", "--template", name, "--wait")["Status"] == "Active"


def test_a_manager_assigns_a_lease(pool, user, manager, template):
    lease = manager.card("lease", "request", "--template", template, "--for", user.email, "--wait", "30")
    assert lease["Owner"].lower() == user.email and lease["Requested by"] == MANAGER and lease["Status"] == "Active"
    assert lease["Lease"][:8] in user.out("lease", "list")
    assert lease["Lease"][:8] in manager.out("lease", "list", "--user", user.email)
    assert lease["Lease"][:8] not in manager.out("lease", "list", "--mine")


def test_a_denial_says_why(user, manager, template):
    user.run("lease", "request", "--template", template)
    lease = user.json("lease", "list")["result"][0]
    denied = manager.card("lease", "deny", lease["leaseId"], "--reason", "use the shared one")
    assert denied["Status"] == "ApprovalDenied" and denied["Reason"] == "use the shared one"
    assert "ApprovalDenied: use the shared one" in user.run("lease", "wait", lease["uuid"], code=REFUSED).stderr


def request(pool, template):
    """By a person of its own: one has only a few at a time."""
    return pool.person().data("POST", "/leases", {"leaseTemplateUuid": template["uuid"], "comments": ""}, 201)


def test_thirty_requests_are_decided_and_ended_with_one_command_each(make, tmp_path):
    """By hand it is one command a request; a class has thirty."""
    pool = Pool(make.server(args=["--dev"], **leases.env(make.folder, LEASEHOLD_SIM_ACCOUNTS="12")))
    manager = Person(pool, MANAGER, "Manager")
    templates = [pool.template() for _ in range(2)]
    course, other = (one["name"] for one in templates)
    for i in range(30):
        request(pool, templates[i % 2])
    assert manager.run("lease", "approve", "--all", "--template", other, code=USAGE).stderr.count("--yes") == 1
    denied = manager.run("lease", "deny", "--all", "--template", other, "--reason", "next term", "--yes")
    assert denied.stdout == "15 denied, 0 not\n"
    mine = [one for one in manager.json("lease", "list", "--all")["result"] if one["originalLeaseTemplateName"] == course]
    assert manager.out("lease", "approve", *(one["uuid"] for one in mine[:2])) == "2 approved, 0 not\n"
    assert manager.out("lease", "approve", "--all", "--template", course, "--yes") == "13 approved, 0 not\n"
    names = tmp_path / "ids"
    names.write_text("\n".join(one["uuid"] for one in mine[:3]) + "\n")
    assert "3 ended, 0 not" in manager.out("lease", "terminate", "--from", names, "--reason", "the course is over")
    assert "12 ended, 0 not" in manager.out("lease", "terminate", "--all", "--template", course, "--yes")  # also in line
    ended = manager.card("lease", "show", mine[0]["uuid"])
    assert ended["Ended because"] == "the course is over" and ended["Ended by"] == MANAGER


def test_of_many_those_that_cannot_be_done_are_named(pool, manager):
    first, second = (request(pool, pool.template())["uuid"] for _ in range(2))
    manager.run("lease", "deny", first, "--reason", "no")
    done = manager.run("lease", "approve", first, second, code=7)
    assert done.stdout == "1 approved, 1 not\n" and first in done.stderr
    assert "nothing was done" in manager.run("lease", "approve", second, "ffff0000", code=NOT_FOUND).stderr
    manager.run("lease", "approve", code=USAGE)
    manager.run("lease", "approve", first, "--all", code=USAGE)


def test_who_is_frozen_reads_why_and_by_whom(user, manager, template):
    user.run("lease", "request", "--template", template)
    short = user.json("lease", "list")["result"][0]["uuid"]
    manager.run("lease", "approve", short, "--wait", "30")
    manager.run("lease", "freeze", short, "--reason", "not used for a week")
    frozen = user.card("lease", "show", short)
    assert frozen["Frozen by"] == MANAGER and frozen["Frozen because"] == "not used for a week"
    manager.run("lease", "unfreeze", short)
    assert "Frozen by" not in user.card("lease", "show", short)


def test_a_request_is_withdrawn(user, manager, template):
    user.run("lease", "request", "--template", template)
    uuid = user.json("lease", "list")["result"][0]["uuid"]
    manager.run("lease", "withdraw", uuid, code=NOT_ALLOWED)
    assert user.card("lease", "withdraw", uuid)["Status"] == "Withdrawn"
    assert uuid in manager.out("lease", "list", "--all", "--status", "Withdrawn")


def test_what_is_not_allowed_or_not_there_has_its_exit_code(user, manager, template):
    user.run("lease", "request", "--template", template)
    uuid = user.json("lease", "list")["result"][0]["uuid"]
    refused = user.run("lease", "approve", uuid, code=NOT_ALLOWED).stderr
    assert "needs the role Manager or Admin" in refused and "Approve or deny a request" in refused and "/api/" not in refused
    user.run("account", "list", code=NOT_ALLOWED)
    manager.run("lease", "freeze", uuid, code=REFUSED)
    assert "template list" in user.run("lease", "request", "--template", "nowhere", code=NOT_FOUND).stderr
    nobody = manager.run("lease", "request", "--template", template, "--for", "nobody@example.com", code=NOT_FOUND).stderr
    assert "not in the directory of people" in nobody and "template" not in nobody
    assert "lease list" in user.run("lease", "show", "00000000-0000", code=NOT_FOUND).stderr
    user.env["LEASEHOLD_TOKEN"] = "eyJhbGciOiJIUzI1NiJ9.eyJ4IjoxfQ.c2ln"
    assert "token issue" in user.run("lease", "show", "eyJ1c2VyRW1haWwiOiJhQGIuYyJ9", code=NOT_ALLOWED).stderr


def test_a_status_that_there_is_not_is_echoed_with_those_there_are(admin):
    for noun, words in (("lease", "PendingApproval, ApprovalDenied, "), ("account", "Available, Active, ")):
        said = admin.run(noun, "list", "--status", "nonsense", code=REFUSED).stderr
        assert "--status: must be " + words in said and said.endswith(", not 'nonsense'\n")
    for noun, status in (("lease", "PENDINGAPPROVAL"), ("account", "quarantine")):
        admin.run(noun, "list", "--status", status)


def test_somebody_elses_lease_is_not_found(pool, user, template):
    other = Person(pool, pool.person().email, "User")
    other.run("lease", "request", "--template", template)
    uuid = other.json("lease", "list")["result"][0]["uuid"]
    user.run("lease", "terminate", uuid, code=NOT_FOUND)


def test_a_template_is_made_changed_and_deleted(manager, tmp_path):
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"maxSpend": 30, "leaseDurationInHours": 12,
                                "budgetThresholds": [{"dollarsSpent": 20, "action": "ALERT"}]}))
    made = manager.card("template", "create", "of the file", "--body", str(file), "--hours", "8", "--approval", "no")
    assert made["Lasts"] == "8 h" and made["Budget"] == "30.00" and made["Needs approval"] == "no"
    changed = manager.card("template", "change", "of the file", "--max-spend", "35.5", "--description", "new")
    assert changed["Budget"] == "35.50" and changed["Lasts"] == "8 h" and changed["Description"] == "new"
    assert changed["Budget thresholds"] == "at 20.00 ALERT" and changed["ID"] == made["ID"]
    assert "of the file" in manager.out("template", "list", "--all")
    assert "maxSpend" in manager.run("template", "change", "of the file", "--max-spend", "9999", code=REFUSED).stderr
    manager.run("template", "delete", "of the file")
    manager.run("template", "show", "of the file", code=NOT_FOUND)
    manager.run("template", "delete", "of the file", code=NOT_FOUND)


def test_an_account_comes_into_the_pool_and_is_cleaned_first(admin):
    entry = admin.json("account", "unregistered")["result"][0]["Id"]
    registered = admin.card("account", "register", entry)
    assert registered["Account"] == entry and registered["Status"] == "CleanUp"
    assert entry in admin.out("account", "list", "--all")
    until(lambda: admin.json("account", "show", entry).get("cleanupExecutionContext", {}).get("stateMachineExecutionArn", "waiting")
          != "waiting", "its cleanup begins", timeout=60)
    assert "in cleanup since" in admin.run("account", "retry-cleanup", entry, code=REFUSED).stderr
    admin.run("account", "eject", entry, code=REFUSED)


def test_an_account_leaves_the_pool(admin):
    free = [a["awsAccountId"] for a in admin.json("account", "list")["result"] if a["status"] == "Available"][0]
    admin.run("account", "retry-cleanup", free, code=REFUSED)
    assert free in admin.out("account", "eject", free)
    until(lambda: free not in admin.out("account", "list", "--all"), "the account has left", 30, 0.1)
    admin.run("account", "show", free, code=NOT_FOUND)


def test_the_table_is_whole_in_a_pipe(user, manager, template):
    user.run("lease", "request", "--template", template)
    lines = manager.out("lease", "list", "--all").splitlines()
    assert lines[0].split() == ["ID", "OWNER", "TEMPLATE", "STATUS", "ACCOUNT", "SPENT/BUDGET", "FORECAST", "ENDS"]
    uuid = user.json("lease", "list")["result"][0]["uuid"]
    assert any(line.startswith(uuid) for line in lines) and not any("…" in line for line in lines)


# Waiting.


def test_an_approval_can_wait_until_the_lease_can_be_used(user, manager, template):
    user.run("lease", "request", "--template", template)
    uuid = user.json("lease", "list")["result"][0]["uuid"]
    done = manager.run("lease", "approve", uuid, "--wait", "30", "--json")
    assert json.loads(done.stdout)["data"]["status"] == "Active", "standard output has the lease alone"
    assert "\r" not in done.stderr, "without a terminal there are plain lines"


def test_wait_lease_ends_with_the_status_that_was_asked_for(pool, user, manager, template):
    user.run("lease", "request", "--template", template)
    uuid = user.json("lease", "list")["result"][0]["uuid"]
    assert user.card("wait", "lease", uuid, "--for", "pendingapproval")["Status"] == "PendingApproval"
    late = user.run("wait", "lease", uuid, "--timeout", "0", code=EMPTY)
    assert "the time is up: waiting for approval" in late.stderr and late.stdout == ""
    manager.run("lease", "approve", uuid)
    assert user.card("wait", "lease", uuid, "--timeout", "30")["Status"] == "Active"
    manager.run("lease", "freeze", uuid)
    assert user.json("wait", "lease", uuid, "--for", "Frozen")["status"] == "Frozen"
    manager.run("lease", "terminate", uuid)
    over = user.run("wait", "lease", uuid, "--for", "Expired", code=REFUSED)
    assert "ended otherwise: ManuallyTerminated" in over.stderr
    assert user.card("wait", "lease", uuid, "--for", "ManuallyTerminated")["Status"] == "ManuallyTerminated"
    assert "status of a lease" in user.run("wait", "lease", uuid, "--for", "Nonsense", code=USAGE).stderr


def test_wait_account_and_accounts_of_one_status(admin):
    free = admin.json("account", "list", "--status", "Available")["result"]
    assert free and {a["status"] for a in free} == {"Available"}
    assert admin.card("wait", "account", free[0]["awsAccountId"])["Status"] == "Available"
    late = admin.run("wait", "account", free[0]["awsAccountId"], "--for", "Quarantine", "--timeout", "0", code=EMPTY)
    assert "the account is in Available" in late.stderr
    admin.run("account", "list", "--status", "Exit", code=REFUSED)
    admin.run("wait", "account", free[0]["awsAccountId"], "--for", "Exit", code=USAGE)


def test_on_a_terminal_one_line_is_written_anew(pool, user, template):
    import os
    import pty
    import subprocess

    user.run("lease", "request", "--template", template)
    uuid = user.json("lease", "list")["result"][0]["uuid"]
    ours, theirs = pty.openpty()
    done = subprocess.run([os.environ["LEASEHOLD_BIN"], "wait", "lease", uuid, "--timeout", "1"], stderr=theirs,
                          stdout=subprocess.PIPE, env={**os.environ, **user.env}, timeout=90)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:
        pass  # how Linux says that the other side is closed
    os.close(ours)
    assert done.returncode == EMPTY and done.stdout == b""
    assert shown.count(b"\rwaiting for approval ... ") >= 2, shown
    assert shown.count(b"\n") == 2, "only what is said at the end has lines of its own"


def test_config_is_another_name_of_policy(admin, pool, tmp_path):
    env = dict(admin.env, LEASEHOLD_TOKEN=server.ADMIN_TOKEN)
    shown = server.run("config", "show", env=env)
    assert shown.returncode == OK and "maxBudget" in shown.stdout
    file = tmp_path / "policy.yaml"
    file.write_text(shown.stdout)
    assert server.run("config", "validate", str(file), env=env).returncode == OK
    file.write_text("leases: {nonsense: 1}")
    refused = server.run("config", "validate", str(file), env=env)
    assert refused.returncode == REFUSED and "nonsense" in refused.stdout + refused.stderr
    assert server.run("config", "set", str(file), env=env).returncode == REFUSED
    assert json.loads(server.run("config", "show", "--json", env=env).stdout)["version"] == 0


# Every verb that the product promises.


@pytest.mark.parametrize("words", [
    *("lease " + verb for verb in "request list show approve deny freeze unfreeze terminate extend withdraw wait statement".split()),
    *("template " + verb for verb in "list show create change delete".split()),
    *("account " + verb for verb in "list show register unregistered retry-cleanup quarantine eject".split()),
    *("config " + verb for verb in "show edit set validate".split()),
    "report costs", "report statement", "wait lease", "wait account",
])
def test_every_verb_is_there_and_can_answer_in_json(words):
    done = server.run("help", *words.split(), env={})
    assert done.returncode == OK and "usage: leasehold " + words in done.stdout, done
    assert "--json" in done.stdout


def test_an_owner_who_waits_for_the_end_is_told_who_sees_accounts(pool, user):
    name = pool.template(requiresApproval=False)["name"]
    user.run("lease", "request", "--template", name, "--wait", "30")
    uuid = user.json("lease", "list")["result"][0]["uuid"]
    done = user.run("lease", "terminate", uuid, "--wait", "5")
    assert "ManuallyTerminated" in done.stdout and "only managers and admins can follow" in done.stderr
