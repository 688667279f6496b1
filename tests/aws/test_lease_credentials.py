# SPDX-License-Identifier: Apache-2.0
"""Temporary credentials in Secrets Manager: for one person, renewed while the lease lasts, void when it ends."""

import json
from datetime import datetime

import pytest

from aws.front import names
from lib.aws_lease_tool import DENIED, HOUR, INVALID, OK, TENANT_ROLE, UNAVAILABLE, USER_SET, LeaseTool

ACCOUNT, NAME, ANNA, BOB = "200000000001", "leasehold/200000000001", "anna@example.com", "bob@example.com"
OTHER = "200000000002"
DUE = 46 * HOUR // 60


@pytest.fixture
def tool(front, tmp_path):
    front.do("organizations", "add_account", id=ACCOUNT)
    front.do("sts", "set_role", arn=TENANT_ROLE, trusts=[names.INTERMEDIATE_ROLE])
    with LeaseTool(front, tmp_path, log=True) as tool:
        yield tool


def issue(tool, who=ANNA):
    return tool.ask("issue", account=ACCOUNT, name=NAME, who=who)


def secret(front):
    return front.state("secretsmanager").get(NAME)


def voided_until(front):
    """Tokens that are older are denied. In milliseconds."""
    policy, = front.state("iam")["policies"]
    statement, = json.loads(policy["document"])["Statement"]
    return datetime.fromisoformat(statement["Condition"]["DateLessThan"]["aws:TokenIssueTime"].replace("Z", "+00:00")).timestamp() * 1000


def has_record(front, tool, account=ACCOUNT):
    """Only then does a withdrawal call anybody."""
    since = front.count()
    tool.do("withdraw", account=account)
    return front.calls(since) != []


def hold(front, operation):
    """The next call: for AssumeRole, that of the person's role."""
    if operation == "AssumeRole":
        return front.fault("hold_before", "sts", operation, role=names.role_name(names.INTERMEDIATE_ROLE))
    return front.fault("hold_before", "secretsmanager", operation)


def begin_held(front, tool, what, operation, **arguments):
    held = hold(front, operation)
    begun = tool.begin(what, **arguments)
    front.wait_held(held)
    return held, begun


def belongs_to_bob(front, tool):
    kept, found = secret(front), tool.do("find_secret", account=ACCOUNT)
    assert kept["tags"]["leasehold:principal"] == BOB and BOB in kept["policy"] and ANNA not in kept["policy"]
    return found["found"] and found["who"] == BOB


def test_credentials_are_kept_for_one_person(front, tool):
    assert issue(tool)["rc"] == OK
    kept = secret(front)
    value = json.loads(kept["value"])
    assert sorted(value) == ["accessKeyId", "accountId", "expiration", "secretAccessKey", "sessionToken"]
    assert kept["tags"] == {"leasehold:account": ACCOUNT, "leasehold:principal": ANNA} and kept["account"] == names.HUB
    policy = json.loads(kept["policy"])["Statement"]
    assert len(policy) == 1 and policy[0]["Principal"] == {"AWS": ACCOUNT} and policy[0]["Action"] == "secretsmanager:GetSecretValue"
    assert policy[0]["Condition"]["StringLike"]["aws:userid"] == "*:" + ANNA
    assert "AWSReservedSSO_%s_*" % USER_SET in policy[0]["Condition"]["ArnLike"]["aws:PrincipalArn"]
    assumed = front.log(operation="AssumeRole")[-1]["params"]
    assert assumed["RoleArn"] == "arn:aws:iam::%s:role/%s" % (ACCOUNT, TENANT_ROLE) and assumed["DurationSeconds"] == 3600
    for text in (value["secretAccessKey"], value["sessionToken"]):
        assert text not in json.dumps(tool.log) + json.dumps(front.log())


def test_they_can_be_read_in_the_account_that_they_are_for(front, tool):
    assert issue(tool)["rc"] == OK
    assert front.do("secretsmanager", "read", name=NAME, account=ACCOUNT) == secret(front)["value"]
    assert "AccessDenied" in front.do("secretsmanager", "read", name=NAME, account=OTHER)
    front.do("secretsmanager", "delete", name=NAME)
    tool.pass_time(DUE)
    assert tool.do("renew")["renewed"] == 1
    assert front.do("secretsmanager", "read", name=NAME, account=ACCOUNT) == secret(front)["value"]


def test_what_is_so_already_is_not_made_again(front, tool):
    assert [issue(tool)["rc"] for _ in range(3)] == [OK] * 3
    assert secret(front)["versions"] == 1
    found = tool.do("find_secret", account=ACCOUNT)
    assert (found["found"], found["name"], found["who"]) == (True, NAME, ANNA)


def test_another_person_gets_others(front, tool):
    issue(tool)
    before = secret(front)["value"]
    assert issue(tool, who="bob@example.com")["rc"] == OK
    after = secret(front)
    assert after["value"] != before and after["tags"]["leasehold:principal"] == "bob@example.com"
    assert "bob@example.com" in after["policy"] and ANNA not in after["policy"]


def test_they_are_renewed_a_quarter_of_an_hour_before_they_end(front, tool):
    issue(tool)
    first = secret(front)["value"]
    tool.pass_time(40 * HOUR // 60)
    assert tool.do("renew")["renewed"] == 0
    tool.pass_time(6 * HOUR // 60)
    assert tool.do("renew")["renewed"] == 1
    assert secret(front)["value"] != first
    assert tool.do("renew")["renewed"] == 0


def test_a_withdrawal_removes_the_secret_and_voids_what_was_issued(front, tool):
    issue(tool)
    assert [tool.ask("withdraw", account=ACCOUNT)["rc"] for _ in range(2)] == [OK] * 2
    assert secret(front) is None
    assert tool.do("find_secret", account=ACCOUNT)["found"] is False
    policy, = front.state("iam")["policies"]
    assert (policy["account"], policy["role"]) == (ACCOUNT, TENANT_ROLE)
    statement, = json.loads(policy["document"])["Statement"]
    assert statement["Effect"] == "Deny" and list(statement["Condition"]) == ["DateLessThan"]
    assert len(front.log(operation="DeleteSecret")) == 1  # the second had nothing to do
    assert tool.do("renew")["renewed"] == 0


def test_a_withdrawal_that_fails_is_tried_again(front, tool):
    issue(tool)
    front.fault("error", "iam", "PutRolePolicy", status=500, count=-1)
    assert tool.ask("withdraw", account=ACCOUNT)["rc"] != OK
    front.clear()
    assert tool.ask("withdraw", account=ACCOUNT)["rc"] == OK
    assert secret(front) is None and len(front.state("iam")["policies"]) == 1


def test_tokens_of_the_second_of_the_withdrawal_are_void_too(front, tool):
    """AWS knows no milliseconds of when a token was issued."""
    issue(tool)
    now = tool.now()
    tool.do("withdraw", account=ACCOUNT)
    assert voided_until(front) > now


def test_a_withdrawal_that_failed_is_not_undone_by_the_renewal_but_done(front, tool):
    issue(tool)
    front.fault("error", "iam", "PutRolePolicy", status=500, count=-1)
    assert tool.ask("withdraw", account=ACCOUNT)["rc"] != OK
    tool.pass_time(DUE)
    assert tool.ask("renew")["rc"] != OK and secret(front) is None
    front.clear()
    assert tool.do("renew")["renewed"] == 0
    assert secret(front) is None and not has_record(front, tool)


def test_what_is_withdrawn_while_another_is_renewed_is_not_brought_back(front, tool):
    front.do("organizations", "add_account", id=OTHER)
    issue(tool)
    tool.do("issue", account=OTHER, name="leasehold/" + OTHER, who=BOB)
    tool.pass_time(DUE)
    held, renewal = begin_held(front, tool, "renew", "AssumeRole")
    tool.do("withdraw", account=OTHER, node=1)
    since = front.count()
    front.release(held)
    answer = tool.end(renewal)
    assert (answer["rc"], answer["renewed"]) == (OK, 1)
    assert list(front.state("secretsmanager")) == [NAME] and not has_record(front, tool, OTHER)
    assert not [e for e in front.log(operation="AssumeRole", since=since) if OTHER in e["params"]["RoleArn"]]


def test_what_is_lent_again_while_another_is_renewed_stays_the_new_holders(front, tool):
    front.do("organizations", "add_account", id=OTHER)
    tool.do("issue", account=OTHER, name="leasehold/" + OTHER, who=ANNA)
    issue(tool)
    tool.pass_time(DUE)
    held, renewal = begin_held(front, tool, "renew", "AssumeRole")
    tool.do("withdraw", account=ACCOUNT, node=1)
    tool.do("issue", account=ACCOUNT, name=NAME, who=BOB, node=1)
    front.release(held)
    assert tool.end(renewal)["renewed"] == 1
    assert belongs_to_bob(front, tool)


LATE = ["AssumeRole", "CreateSecret", "PutSecretValue", "TagResource", "PutResourcePolicy"]


@pytest.mark.parametrize("operation", LATE)
def test_a_renewal_that_a_withdrawal_overtakes_leaves_nothing(front, tool, operation):
    issue(tool)
    tool.pass_time(DUE)
    held, renewal = begin_held(front, tool, "renew", operation)
    tool.do("withdraw", account=ACCOUNT, node=1)
    now = tool.pass_time(5000)
    front.release(held)
    answer = tool.end(renewal)
    assert (answer["rc"], answer["renewed"]) == (OK, 0)
    assert secret(front) is None and not has_record(front, tool)
    assert voided_until(front) > now


@pytest.mark.parametrize("operation", LATE)
def test_a_renewal_that_is_late_leaves_the_new_holder_theirs(front, tool, operation):
    issue(tool)
    tool.pass_time(DUE)
    held, renewal = begin_held(front, tool, "renew", operation)
    tool.do("withdraw", account=ACCOUNT, node=1)
    tool.do("issue", account=ACCOUNT, name=NAME, who=BOB, node=1)
    front.release(held)
    assert tool.end(renewal)["rc"] == OK
    assert belongs_to_bob(front, tool)


@pytest.mark.parametrize("operation", ["AssumeRole", "CreateSecret", "PutResourcePolicy"])
def test_an_issue_that_a_withdrawal_overtakes_leaves_nothing(front, tool, operation):
    held, begun = begin_held(front, tool, "issue", operation, account=ACCOUNT, name=NAME, who=ANNA)
    tool.do("withdraw", account=ACCOUNT, node=1)
    now = tool.pass_time(5000)
    front.release(held)
    answer = tool.end(begun)
    assert secret(front) is None and not has_record(front, tool)
    assert answer["rc"] == UNAVAILABLE and voided_until(front) > now


@pytest.mark.parametrize("operation", ["AssumeRole", "CreateSecret", "PutResourcePolicy"])
def test_an_issue_that_is_late_leaves_the_new_holder_theirs(front, tool, operation):
    held, begun = begin_held(front, tool, "issue", operation, account=ACCOUNT, name=NAME, who=ANNA)
    tool.do("withdraw", account=ACCOUNT, node=1)
    tool.do("issue", account=ACCOUNT, name=NAME, who=BOB, node=1)
    front.release(held)
    answer = tool.end(begun)
    assert belongs_to_bob(front, tool)
    assert answer["rc"] == UNAVAILABLE


def test_what_a_late_one_cannot_remove_the_next_renewal_removes(front, tool):
    held, begun = begin_held(front, tool, "issue", "CreateSecret", account=ACCOUNT, name=NAME, who=ANNA)
    tool.do("withdraw", account=ACCOUNT, node=1)
    front.fault("error", "secretsmanager", "DeleteSecret", status=500, count=-1)
    front.release(held)
    assert tool.end(begun)["rc"] != OK and secret(front)
    assert tool.do("find_secret", account=ACCOUNT)["found"] is False
    front.clear()
    assert tool.do("renew")["renewed"] == 0
    assert secret(front) is None and not has_record(front, tool)


def test_a_withdrawal_that_is_late_takes_a_new_holders_away_until_the_next_renewal_only(front, tool):
    issue(tool)
    held, begun = begin_held(front, tool, "withdraw", "DeleteSecret", account=ACCOUNT)
    tool.do("issue", account=ACCOUNT, name=NAME, who=BOB, node=1)
    front.release(held)
    assert tool.end(begun)["rc"] == UNAVAILABLE
    assert tool.do("renew")["renewed"] == 1
    assert belongs_to_bob(front, tool)


def test_a_withdrawal_and_a_late_renewal_remove_the_same(front, tool):
    issue(tool)
    tool.pass_time(DUE)
    held, renewal = begin_held(front, tool, "renew", "PutResourcePolicy")
    first, withdrawal = begin_held(front, tool, "withdraw", "DeleteSecret", account=ACCOUNT, node=1)
    second = hold(front, "DeleteSecret")
    front.release(held)
    front.wait_held(second)
    front.release(first)
    assert tool.end(withdrawal)["rc"] == OK
    front.release(second)
    assert tool.end(renewal)["rc"] == OK
    assert secret(front) is None and not has_record(front, tool)


def test_an_issue_and_a_renewal_at_once_do_not_disturb_each_other(front, tool):
    held, begun = begin_held(front, tool, "issue", "CreateSecret", account=ACCOUNT, name=NAME, who=BOB)
    assert tool.do("renew", node=1)["renewed"] == 1
    since = front.count()
    front.release(held)
    assert tool.end(begun)["rc"] == OK
    assert front.log(operation="AssumeRole", since=since) == [] and belongs_to_bob(front, tool)


def test_a_secret_that_waits_for_its_deletion_is_brought_back(front, tool):
    front.do("secretsmanager", "put", name=NAME, value="old")
    front.do("secretsmanager", "delete", name=NAME)
    assert issue(tool)["rc"] == OK
    assert secret(front)["deleted"] is None and "accessKeyId" in secret(front)["value"]


def test_a_secret_that_is_there_gets_the_new_value(front, tool):
    front.do("secretsmanager", "put", name=NAME, value="old")
    assert issue(tool)["rc"] == OK
    assert "accessKeyId" in secret(front)["value"] and secret(front)["tags"]["leasehold:principal"] == ANNA


@pytest.mark.parametrize("kind", ["cut_before", "cut_after"])
@pytest.mark.parametrize("operation", ["CreateSecret", "PutResourcePolicy"])
def test_lost_answers_leave_one_secret(front, tool, kind, operation):
    front.fault(kind, "secretsmanager", operation, count=-1)
    issue(tool)
    front.clear()
    assert issue(tool)["rc"] == OK
    assert ANNA in secret(front)["policy"] and "accessKeyId" in secret(front)["value"]
    assert tool.do("find_secret", account=ACCOUNT)["found"] is True


def test_a_role_that_trusts_nobody_is_named(front, tool):
    front.do("sts", "remove_role", arn=TENANT_ROLE)
    answer = issue(tool)
    assert answer["rc"] == DENIED and TENANT_ROLE in answer["error"]
    assert secret(front) is None and tool.do("find_secret", account=ACCOUNT)["found"] is False


def test_what_makes_no_sense_is_refused(front, tool):
    assert tool.ask("issue", account="12", name=NAME, who=ANNA)["rc"] == INVALID
    assert tool.ask("issue", account=ACCOUNT, name="", who=ANNA)["rc"] == INVALID
    assert tool.ask("issue", account=ACCOUNT, name=NAME, who="")["rc"] == INVALID
    assert front.log() == []
