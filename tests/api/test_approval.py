# SPDX-License-Identifier: Apache-2.0
"""Approval rules: what the operator writes decides about the next request, and a dry run says so beforehand."""

import json
import os
import subprocess

import pytest

from lib import leases
from lib.leases import MANAGER, USER, Pool
from lib.ops import Ops
from lib.server import ADMIN_TOKEN

RULES = """
rules:
  - {id: no-managers, when: {role: Manager}, then: deny}
  - {id: small, when: {domain: Example.com, maxBudget: 20, maxHours: 24}, then: approve}
"""
EXPLAIN = "/v1/ops/policy/approval/explain"


@pytest.fixture(scope="module")
def pool(make_for_module):
    return Pool(make_for_module.server(args=["--dev"], **leases.env(make_for_module.folder)))


@pytest.fixture
def ops(pool):
    return Ops(pool.server)


def write(ops, text):
    version = ops.read("policy/approval")["version"]
    reply = ops.request("PUT", "/v1/ops/policy/approval", body={"document": text, "version": version})
    assert reply.status == 200, reply
    return reply.json


@pytest.fixture
def rules(ops):
    yield write(ops, RULES)
    write(ops, "rules: []\n")


def explain(ops, template, email=USER, **more):
    reply = ops.request("POST", EXPLAIN, body={"template": template, "userEmail": email, **more})
    assert reply.status == 200, reply
    return reply.json


def ask(person, template):
    return person.call("POST", "/leases", {"leaseTemplateUuid": template["uuid"], "comments": ""})


def test_a_manager_gets_around_no_rule_by_assigning_to_himself(pool, rules):
    template = pool.template()
    body = {"leaseTemplateUuid": template["uuid"], "comments": "", "userEmail": MANAGER.upper()}
    assert pool.manager.call("POST", "/leases", body).status == 403


def test_nobody_approves_his_own_request_unless_the_policy_allows_it(pool, ops):
    template = pool.template()
    body = {"leaseTemplateUuid": template["uuid"], "comments": "", "userEmail": MANAGER}
    lease = pool.manager.data("POST", "/leases", body, 201)
    assert lease["status"] == "PendingApproval"
    review = "/leases/%s/review" % lease["leaseId"]
    refused = pool.manager.call("POST", review, {"action": "Approve"})
    assert refused.status == 403 and b"leases.allowSelfApproval" in refused.body
    can = pool.manager.data("GET", "/leases/%s/explain" % lease["leaseId"])["can"]
    assert [c["command"].split()[2] for c in can] == ["deny", "withdraw"]
    version = ops.read("policy")["version"]
    policy = {"document": "leases: {allowSelfApproval: true}\n", "version": version}
    assert ops.request("PUT", "/v1/ops/policy", body=policy).status == 200
    assert pool.manager.data("POST", review, {"action": "Approve"})["status"] == "Provisioning"
    policy = {"document": "{}", "version": version + 1}
    assert ops.request("PUT", "/v1/ops/policy", body=policy).status == 200


def test_without_rules_the_template_decides(pool, ops):
    asks, approves = pool.template(), pool.template(requiresApproval=False)
    for template, decision in ((asks, "ask"), (approves, "approve")):
        got = explain(ops, template["name"])
        assert (got["decision"], got["decided_by"], got["rule"], got["rules"]) == (decision, "template", None, [])


def test_a_rule_approves_at_once_and_none_that_matches_asks_a_person(pool, ops, rules):
    small, large = pool.template(maxSpend=20), pool.template(maxSpend=40, requiresApproval=False)
    got = explain(ops, small["uuid"])
    assert (got["decision"], got["decided_by"], got["rule"]) == ("approve", "rule", "small")
    assert (got["max_spend"], got["hours"], got["template"]) == (20, 24, small["name"])
    assert [(n["rule"], n["matches"]) for n in got["rules"]] == [("no-managers", False), ("small", True)]
    reply = ask(pool.person(), small)
    assert reply.status == 201 and reply.json["data"]["approvedBy"] == "AUTO_APPROVED", reply

    got = explain(ops, large["name"])
    assert (got["decision"], got["decided_by"], got["rule"]) == ("ask", "default", None)
    assert "the budget is 40 dollars, more than 20" in got["rules"][1]["why"]
    reply = ask(pool.person(), large)
    assert reply.status == 201 and reply.json["data"]["status"] == "PendingApproval", reply


def test_a_rule_denies_and_its_name_is_told(pool, ops, rules):
    template = pool.template(maxSpend=20)
    got = explain(ops, template["name"], MANAGER)
    assert (got["decision"], got["rule"], len(got["rules"])) == ("deny", "no-managers", 1)
    reply = ask(pool.manager, template)
    assert reply.status == 403 and b"no-managers" in reply.body, reply


def test_a_dry_run_may_ask_for_other_amounts(pool, ops, rules):
    template = pool.template(maxSpend=20)
    assert explain(ops, template["name"], maxSpend=20.5)["decision"] == "ask"
    assert explain(ops, template["name"], hours=24.5)["decision"] == "ask"
    assert explain(ops, template["name"], maxSpend=0.5, hours=1)["decision"] == "approve"


def test_a_change_is_in_force_with_its_answer(pool, ops, rules):
    template = pool.template(maxSpend=20)
    changed = write(ops, RULES.replace("then: approve", "then: deny"))
    assert [c["key"] for c in changed["changes"]] == ["rules.small"]
    assert ask(pool.person(), template).status == 403


@pytest.mark.parametrize(
    "body, status, part",
    [
        (b"", 400, "the body must be like"),
        ({}, 400, "template"),
        ({"template": "Project"}, 400, "userEmail"),
        ({"template": "Project", "userEmail": "nobody"}, 400, "userEmail"),
        ({"template": "Project", "userEmail": USER, "budget": 1}, 400, "budget"),
        ({"template": "Project", "userEmail": USER, "maxSpend": 0}, 400, "maxSpend"),
        ({"template": "Project", "userEmail": USER, "hours": "1"}, 400, "hours"),
        ({"template": "Project", "userEmail": "stranger@example.com"}, 404, "directory"),
        ({"template": "no such template", "userEmail": USER}, 404, "no such template"),
    ],
)
def test_questions_that_make_no_sense(ops, body, status, part):
    reply = ops.request("POST", EXPLAIN, body=body)
    assert reply.status == status and part in reply.error["message"], reply


def test_the_command_line_explains(pool, ops, rules, tmp_path):
    template = pool.template(maxSpend=20)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LEASEHOLD_ADDRESS": pool.server.url,
           "BROKER_ADMIN_TOKEN": ADMIN_TOKEN}

    def run(*words):
        command = [os.environ["LEASEHOLD_BIN"], "policy", "explain", template["name"], *words]
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=90)

    good = run("--email", USER)
    assert good.returncode == 0 and good.stdout.startswith("approve, by the rule small\n"), good
    assert "  no-managers: no: the owner is not Manager\n" in good.stdout
    assert run("--email", USER, "--max-spend", "21").stdout.startswith("ask: no rule matches\n")
    assert json.loads(run("--email", MANAGER, "--json").stdout)["decision"] == "deny"
    assert run().returncode == 2 and "--email" in run().stderr
    assert run("--email", USER, "--hours", "x").returncode == 2
    assert run("--email", "stranger@example.com").returncode == 4
