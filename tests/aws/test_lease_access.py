# SPDX-License-Identifier: Apache-2.0
"""Who gets access to an account, and loses it: assignments of Identity Center by the providers, on the strict front."""

import pytest

from aws.front import names
from lib.aws_lease_tool import (ADMIN_SET, ADMINS, CONFLICT, DENIED, INVALID, LIMITED, MANAGER_SET, MANAGERS, NOT_FOUND, OK, TIMEOUT, UNAVAILABLE, USER_SET,
                                USERS, LeaseTool)
from lib.wait import until

ACCOUNT, OTHER = "200000000001", "200000000002"
ANNA = "anna@example.com"


@pytest.fixture
def tool(front, tmp_path):
    for id in (ACCOUNT, OTHER):
        front.do("organizations", "add_account", id=id)
    front.anna = front.do("identitystore", "add_user", email=ANNA, groups=[USERS])
    with LeaseTool(front, tmp_path) as tool:
        tool.do("refresh_people")
        yield tool


def give(tool, who=ANNA, account=ACCOUNT, set=USER_SET, **more):
    return tool.ask("grant", account=account, who=who, set=set, **more)


def take(tool, who=ANNA, account=ACCOUNT, set=USER_SET, **more):
    return tool.ask("revoke", account=account, who=who, set=set, **more)


def assigned(front):
    return sorted((a["account"], front.state("sso-admin")["sets"][a["set"]], a["kind"], a["principal"]) for a in front.state("sso-admin")["assignments"])


def count(front, operation):
    return len(front.log(operation=operation))


def test_c22_a_grant_that_takes_five_looks(front, tool):
    front.do("sso-admin", "pace", looks=6, seconds=36000)
    assert give(tool)["rc"] == OK
    assert count(front, "DescribeAccountAssignmentCreationStatus") == 6
    assert assigned(front) == [(ACCOUNT, USER_SET, "USER", front.anna)]
    assert tool.do("clock")["waits"] == 6


def test_c22_a_grant_that_fails_says_why(front, tool):
    front.do("sso-admin", "outcome", status="FAILED", reason="the account is suspended")
    answer = give(tool)
    assert answer["rc"] == CONFLICT and "the account is suspended" in answer["error"]
    assert assigned(front) == []


def test_c22_a_grant_without_an_end_is_found_by_the_next_try(front, tool):
    front.do("sso-admin", "pace", looks=-1, seconds=36000)
    answer = give(tool)
    assert answer["rc"] == TIMEOUT and "has not ended after 121 s" in answer["error"]
    assert tool.do("clock")["waits"] == 26  # 1, 2, 3, 5 s, then 5 s each
    front.do("sso-admin", "finish")
    assert give(tool)["rc"] == OK
    assert count(front, "CreateAccountAssignment") == 1
    assert len(assigned(front)) == 1


def test_c22_waiting_ends_when_the_server_does(front, tmp_path):
    front.do("organizations", "add_account", id=ACCOUNT)
    front.do("identitystore", "add_user", email=ANNA, groups=[USERS])
    front.do("sso-admin", "pace", looks=-1, seconds=36000)
    with LeaseTool(front, tmp_path, waits=True) as tool:  # really waits
        tool.do("refresh_people")
        asked = tool.begin("grant", account=ACCOUNT, who=ANNA, set=USER_SET)
        until(lambda: count(front, "CreateAccountAssignment"), "the grant is asked for", 60)
        second = tool.begin("grant", account=ACCOUNT, who=ANNA, set=USER_SET)  # waits for the account
        tool.do("stop")
        assert tool.end(asked)["rc"] == TIMEOUT
        assert tool.end(second)["rc"] in (UNAVAILABLE, TIMEOUT)
    assert count(front, "CreateAccountAssignment") == 1


def test_c22_the_status_is_asked_for_again_when_it_cannot_be_had(front, tool):
    front.do("sso-admin", "pace", looks=1, seconds=36000)
    front.fault("error", "sso-admin", "DescribeAccountAssignmentCreationStatus", status=500, count=7)
    assert give(tool)["rc"] == OK
    assert count(front, "CreateAccountAssignment") == 1


def test_c23_a_grant_repeated_is_one_assignment_and_a_revoke_twice_is_done(front, tool):
    assert [give(tool)["rc"] for _ in range(3)] == [OK] * 3
    assert count(front, "CreateAccountAssignment") == 1 and len(assigned(front)) == 1
    assert [take(tool)["rc"] for _ in range(2)] == [OK] * 2
    assert assigned(front) == [] and [e[0] for e in front.state("sso-admin")["effects"]] == ["created", "deleted"]


@pytest.mark.parametrize("kind", ["cut_after", "cut_before", "done_error"])
def test_c23_a_lost_answer_makes_no_second_assignment(front, tool, kind):
    front.do("sso-admin", "pace", looks=1, seconds=0)  # over at once
    front.fault(kind, "sso-admin", "CreateAccountAssignment", count=1)
    answer = give(tool)
    if answer["rc"] != OK:
        assert answer["rc"] == TIMEOUT
        assert give(tool)["rc"] == OK
    assert len(assigned(front)) == 1 and [e[0] for e in front.state("sso-admin")["effects"]] == ["created"]
    front.fault(kind, "sso-admin", "DeleteAccountAssignment", count=1)
    answer = take(tool)
    if answer["rc"] != OK:
        assert answer["rc"] == TIMEOUT
        assert take(tool)["rc"] == OK
    assert assigned(front) == [] and [e[0] for e in front.state("sso-admin")["effects"]] == ["created", "deleted"]


def test_c23_many_at_once_for_one_account_are_one_at_a_time(front, tool):
    asked = [tool.begin("grant", account=ACCOUNT, who=ANNA, set=USER_SET) for _ in range(8)]
    assert [tool.end(n)["rc"] for n in asked] == [OK] * 8
    assert count(front, "CreateAccountAssignment") == 1
    assert not [e for e in front.log(operation="CreateAccountAssignment") if e["code"]]


def test_c24_a_grant_while_a_revoke_settles_waits(front, tool):
    assert give(tool)["rc"] == OK
    front.fault("error", "sso-admin", "CreateAccountAssignment", code="ConflictException", status=400, count=2)
    assert take(tool)["rc"] == OK
    assert give(tool)["rc"] == OK
    assert count(front, "CreateAccountAssignment") == 4  # the first, two conflicts, one that is taken
    front.fault("error", "sso-admin", "DeleteAccountAssignment", code="ConflictException", status=400, count=-1)
    answer = take(tool)
    assert answer["rc"] == LIMITED and "ConflictException" in answer["error"], answer
    assert len(assigned(front)) == 1


def test_c24_errors_mean_what_the_contract_says(front, tool):
    front.fault("error", "sso-admin", "CreateAccountAssignment", code="ServiceQuotaExceededException", status=400)
    assert give(tool)["rc"] == CONFLICT
    front.fault("deny", "sso-admin", "CreateAccountAssignment")
    answer = give(tool)
    assert answer["rc"] == DENIED and "sso:CreateAccountAssignment" in answer["error"]
    assert give(tool, account="200000009999")["rc"] == NOT_FOUND
    assert give(tool, account="12")["rc"] == INVALID
    assert give(tool, set="AdministratorAccess")["rc"] == INVALID
    assert give(tool, who="nobody@example.com")["rc"] == NOT_FOUND
    assert assigned(front) == []


def test_c25_foreign_sets_are_neither_shown_nor_touched(front, tool):
    front.do("sso-admin", "add_set", name="AWSAdministratorAccess")
    front.do("sso-admin", "assign", account=ACCOUNT, principal=front.anna, set_name="AWSAdministratorAccess")
    assert give(tool)["rc"] == OK
    for group, permissions in ((MANAGERS, MANAGER_SET), (ADMINS, ADMIN_SET)):
        assert give(tool, who=group, set=permissions, kind="group")["rc"] == OK
    assert tool.do("list", account=ACCOUNT)["list"] == ["user %s %s" % (ANNA, USER_SET), "group %s %s" % (MANAGERS, MANAGER_SET), "group %s %s" % (ADMINS, ADMIN_SET)]
    assert take(tool)["rc"] == OK and take(tool, set="AWSAdministratorAccess")["rc"] == INVALID
    assert (ACCOUNT, "AWSAdministratorAccess", "USER", front.anna) in assigned(front)


def test_c25_more_than_a_page_of_assignments_and_users_that_nobody_knows(front, tool):
    ids = front.do("identitystore", "add_users", emails=["p%03d@example.com" % i for i in range(230)])
    for id in ids:
        front.do("sso-admin", "assign", account=ACCOUNT, principal=id, set_name=USER_SET)
    got = tool.do("list", account=ACCOUNT)["list"]
    assert sorted(got) == sorted("user %s %s" % (id, USER_SET) for id in ids)
    assert take(tool, who=ids[7])["rc"] == OK  # by the id that was shown
    assert len(assigned(front)) == 229


def test_c25_sets_are_found_among_many_and_names_are_kept(front, tool):
    for i in range(120):
        front.do("sso-admin", "add_set", name="Other%d" % i)
    assert give(tool)["rc"] == OK
    described = count(front, "DescribePermissionSet")
    assert give(tool, account=OTHER)["rc"] == OK and tool.do("list", account=OTHER)["list"]
    assert count(front, "DescribePermissionSet") == described and described <= 123
    tool.pass_time(3601 * 1000)
    assert take(tool)["rc"] == OK
    assert count(front, "DescribePermissionSet") > described


def test_a_set_that_was_made_anew_is_found_by_its_new_id(front, tool):
    assert give(tool)["rc"] == OK
    front.do("sso-admin", "remake_set", name=USER_SET)
    assert give(tool, account=OTHER)["rc"] == OK
    assert [a[:2] for a in assigned(front)] == [(OTHER, USER_SET)]


def test_several_instances_need_a_setting(front, tmp_path):
    front.do("sso-admin", "add_instance", arn="arn:aws:sso:::instance/ssoins-fedcba9876543210", store="d-9876543210")
    with LeaseTool(front, tmp_path) as tool:
        answer = tool.ask("list", account=ACCOUNT)
        assert answer["rc"] == INVALID and "LEASEHOLD_IDC_INSTANCE_ARN" in answer["error"]
    (tmp_path / "b").mkdir()
    with LeaseTool(front, tmp_path / "b", instance=names.INSTANCE_ARN) as tool:
        assert tool.do("list", account=ACCOUNT)["list"] == []
    before = count(front, "ListInstances")
    (tmp_path / "c").mkdir()
    with LeaseTool(front, tmp_path / "c", instance=names.INSTANCE_ARN, store_id=names.STORE_ID) as tool:
        assert tool.do("list", account=ACCOUNT)["list"] == []
    assert count(front, "ListInstances") == before  # both are given: nothing is asked


def test_c23_moto_too_has_one_assignment(moto_world, tmp_path):
    """moto alone would make two."""
    sso, people = moto_world.client("sso-admin"), moto_world.client("identitystore")
    arn, store = sso.list_instances()["Instances"][0]["InstanceArn"], names.STORE_ID  # moto's own store has no legal id, and any will do
    for name in (USER_SET, MANAGER_SET, ADMIN_SET, "Foreign"):
        sso.create_permission_set(InstanceArn=arn, Name=name)
    user = people.create_user(IdentityStoreId=store, UserName="anna", DisplayName="Anna", Name={"GivenName": "Anna", "FamilyName": "Bell"},
                              Emails=[{"Value": ANNA, "Type": "work", "Primary": True}])["UserId"]
    for name in (USERS, MANAGERS, ADMINS):
        group = people.create_group(IdentityStoreId=store, DisplayName=name)["GroupId"]
        if name == USERS:
            people.create_group_membership(IdentityStoreId=store, GroupId=group, MemberId={"UserId": user})
    with LeaseTool(moto_world, tmp_path, instance=arn, store_id=store) as tool:
        tool.do("refresh_people")
        assert tool.do("find", email=ANNA)["roles"] == 1
        assert [give(tool)["rc"] for _ in range(2)] == [OK] * 2
        assert tool.do("list", account=ACCOUNT)["list"] == ["user %s %s" % (ANNA, USER_SET)]
        assert count(moto_world, "CreateAccountAssignment") == 1
        assert [take(tool)["rc"] for _ in range(2)] == [OK] * 2
        assert tool.do("list", account=ACCOUNT)["list"] == []
