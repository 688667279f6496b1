# SPDX-License-Identifier: Apache-2.0
"""What people come for, at a terminal: each task with the number of commands that it may take. tests/browser/tasks.test.mjs has the same in the console."""

import datetime
import re

import pytest

from lib import jwt, leases
from lib.leases import MANAGER, Pool
from lib.ops import Ops
from lib.server import ADMIN_TOKEN
from lib.terminal import Terminal
from lib.wait import until

OK, REFUSED = 0, 1
TEAM = "research"


class Hand:
    """Somebody who types; his commands are counted."""

    def __init__(self, server, columns=100, **env):
        self.env = {"LEASEHOLD_ADDRESS": server.url, **env}
        self.columns, self.count = columns, 0

    def type(self, *words, code=OK):
        self.count += 1
        there = Terminal(*(str(word) for word in words), env=self.env, columns=self.columns)
        got = there.end()
        assert got == code, (words, got, there.plain)
        return there.plain


def manager_of(server, **more):
    return Hand(server, LEASEHOLD_TOKEN=jwt.token(MANAGER, "Manager"), **more)


@pytest.fixture(scope="module")
def pool(make_for_module):
    env = leases.env(make_for_module.folder, LEASEHOLD_SIM_ACCOUNTS="40", LEASEHOLD_SIM_SANDBOXES="33")
    server = make_for_module.server(args=["--dev"], **env)
    server.wait_available(33, 60)
    return Pool(server)


@pytest.fixture
def manager(pool):
    return manager_of(pool.server)


def test_thirty_requests_are_approved_in_one_command(pool, manager):
    course = pool.template()
    asked = [pool.person().data("POST", "/leases", {"leaseTemplateUuid": course["uuid"]}, 201) for _ in range(30)]
    said = manager.type("lease", "approve", "--all", "--template", course["name"], "--yes", "--reason", "for the course on Friday")
    assert "30 approved, 0 not" in said and manager.count == 1
    shown = pool.show(asked[7])
    assert (shown["approvedBy"], shown["approvalReason"]) == (MANAGER, "for the course on Friday")


def test_a_manager_finds_in_two_commands_why_an_account_is_not_free(pool, manager):
    account = next(a["awsAccountId"] for a in pool.admin.data("GET", "/accounts?pageSize=100")["result"] if a["phase"] == "Available")
    held = Ops(pool.server).act("holds", {"account": account, "reason": "the auditors look at it", "hours": 48})
    assert held.status == 201, held
    assert re.search(r"%s.*Cooldown" % account, manager.type("account", "list", "--all"))
    why = " ".join(manager.type("explain", "account", account).split())
    assert "is in cooldown until" in why and "the auditors look at it" in why and manager.count == 2
    assert "hold release" not in why, "what is for operators is not offered to a manager"


def test_extending_stops_at_the_limit_of_the_policy_and_says_so_in_two_commands(pool, manager):
    lease = pool.active(pool.person(), leaseDurationInHours=24)
    most = pool.admin.data("GET", "/configurations")["leases"]["maxDurationHours"]
    said = manager.type("lease", "extend", lease["uuid"], "--hours", most, code=REFUSED)
    assert "leases.maxDurationHours" in said and "7 days" in said
    manager.type("lease", "extend", lease["uuid"], "--hours", most - 24)
    assert manager.count == 2
    assert pool.show(lease)["expirationDate"] > lease["expirationDate"]


def test_a_class_of_thirty_is_one_command_and_a_broken_sandbox_is_replaced_in_one_more(pool, tmp_path):
    roster = tmp_path / "students.csv"
    roster.write_text("track,name\n" + "".join("s%02d@school.example,Student %d\n" % (i, i) for i in range(30)))
    teacher = Hand(pool.server, BROKER_ADMIN_TOKEN=ADMIN_TOKEN)
    said = teacher.type("sandbox", "claim", "--file", roster)
    assert "30 have a sandbox" in said and said.count("@school.example") == 30 and teacher.count == 1
    admin = pool.server.admin()
    held = next(s for s in admin.list("?limit=100").json["sandboxes"] if s["allocated_to_track"] == "s03@school.example")
    assert held["sandbox_id"] not in teacher.type("sandbox", "replace", "s03@school.example", "--reason", "no network")
    assert admin.record(held["sandbox_id"])["quarantine_reason"] == "no network" and teacher.count == 2


@pytest.mark.parametrize("columns", [80, 100, 160])
def test_a_list_of_leases_fits_the_terminal(pool, columns):
    pool.pending(pool.person())
    hand = manager_of(pool.server, columns=columns)
    lines = hand.type("lease", "list", "--all").splitlines()
    table = [line for line in lines if re.match(r"ID |[0-9a-f]{8} ", line)]
    assert len(table) > 1 and max(len(line) for line in table) <= columns
    assert {"ID", "OWNER", "TEMPLATE", "STATUS", "SPENT/BUDGET", "ENDS"} <= set(table[0].split())
    assert ("FORECAST" in table[0], "ACCOUNT" in table[0]) == (columns > 80, columns > 80)


# The costs of last month, in a world where a month takes half a minute.


def months(text):
    """The month of this time, and the one before."""
    now = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return now.strftime("%Y-%m"), (now.replace(day=1) - datetime.timedelta(days=1)).strftime("%Y-%m")


def put(ops, path, body):
    reply = ops.request("PUT", "/v1/ops/" + path if not path.startswith("..") else "/v1" + path[2:], body=body)
    assert reply.status == 200, reply


def test_a_team_s_cost_of_last_month_and_its_dearest_leases_in_two_commands(make):
    """The leases last for months, so that each of them has days in the month before, whatever the day is now."""
    server = make.server(args=["--dev"], **leases.env(make.folder, LEASEHOLD_TIME_SCALE="100000", LEASEHOLD_SIM_ACCOUNTS="8"))
    pool, ops = Pool(server), Ops(server)
    policy = ops.read("policy")
    longer = re.sub(r"maxDurationHours: *\d+", "maxDurationHours: 4000", policy["text"])
    put(ops, "policy", {"document": re.sub(r"maxBudget: *\d+", "maxBudget: 90000", longer), "version": policy["version"]})
    put(ops, "reporting", {"document": "costReportGroups: [%s, other]\n" % TEAM, "version": 0})
    made = [pool.active(pool.person(), requiresApproval=True, costReportGroup=group, leaseDurationInHours=4000, maxSpend=90000)
            for group in (TEAM, TEAM, TEAM, TEAM, "other")]
    for rate, lease in enumerate(made, 1):
        put(ops, "../sim/accounts/%s/cost-rate" % lease["awsAccountId"], {"usd_per_hour": rate})

    def last_month():
        now, before = months(server.admin().get("/v1/admin/stats").header("Leasehold-Time"))
        text = ops.get("/v1/ops/reports/costs?by=lease&month=" + before).body.decode()
        return before if all(lease["uuid"] in text for lease in made) else None

    month = until(last_month, "last month has costs of all leases", 120, 0.2)
    manager = manager_of(server)
    assert TEAM in manager.type("report", "costs", month)
    lines = manager.type("report", "costs", month, "--by", "lease", "--group", TEAM).splitlines()
    shown = [line.split() for line in lines if re.match(r"[0-9a-f]{8}-", line)]
    assert {row[0] for row in shown} == {lease["uuid"] for lease in made[:4]}, "not those of the other group"
    costs = [float(row[3]) for row in shown]
    assert costs == sorted(costs, reverse=True) and costs[2] > 0 and manager.count <= 3
