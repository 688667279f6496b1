# SPDX-License-Identifier: Apache-2.0
"""Who the people are, by the groups of Identity Center: read by one node, known to all of them, from memory."""

import pytest

from lib.aws_lease_tool import ADMINS, DAY, MANAGERS, NOT_FOUND, OK, UNAVAILABLE, USER_SET, USERS, LeaseTool

MINUTE = 60 * 1000
USER, MANAGER, ADMIN = 1, 2, 4
ACCOUNT = "200000000001"


@pytest.fixture
def tool(front, tmp_path):
    with LeaseTool(front, tmp_path) as tool:
        yield tool


def add(front, email, *groups, **facts):
    return front.do("identitystore", "add_user", email=email, groups=groups, **facts)


def count(front, operation):
    return len(front.log(operation=operation))


def test_c26_emails_have_no_case_and_roles_are_a_union(front, tool):
    add(front, "Anna.Bell@Example.com", USERS)
    add(front, "carl@example.com", USERS, MANAGERS, ADMINS)
    assert tool.do("refresh_people")["members"] == 2
    found = tool.do("find", email="anna.bell@EXAMPLE.com")
    assert (found["email"], found["roles"]) == ("Anna.Bell@Example.com", USER)
    assert tool.do("find", email="CARL@example.com")["roles"] == USER | MANAGER | ADMIN
    assert tool.ask("find", email="dora@example.com")["rc"] == NOT_FOUND


def test_c26_disabled_without_email_and_in_no_group(front, tool):
    add(front, "on@example.com", USERS)
    add(front, "off@example.com", USERS, status="DISABLED")
    add(front, None, USERS)
    add(front, "outside@example.com")
    assert tool.do("refresh_people")["members"] == 1
    assert tool.do("people")["people"] == ["on@example.com"]
    for email in ("off@example.com", "outside@example.com"):
        assert tool.ask("find", email=email)["rc"] == NOT_FOUND
        assert tool.ask("sign_in", email=email)["rc"] == NOT_FOUND


def test_c26_a_group_that_is_not_there_has_nobody(front, tool):
    add(front, "anna@example.com", USERS)
    add(front, "max@example.com", MANAGERS)
    front.do("identitystore", "remove_group", name=MANAGERS)
    tool.do("refresh_people")
    assert tool.do("people")["people"] == ["anna@example.com"]
    for group in (USERS, ADMINS):
        front.do("identitystore", "remove_group", name=group)
    answer = tool.ask("refresh_people")
    assert answer["rc"] == NOT_FOUND and USERS in answer["error"]
    assert tool.do("people")["people"] == ["anna@example.com"]  # the last copy serves


def test_c26_250_members_are_three_pages_and_described_once(front, tool):
    emails = ["p%03d@example.com" % i for i in range(250)]
    front.do("identitystore", "add_users", emails=emails, groups=[USERS])
    assert tool.do("refresh_people")["described"] == 250
    assert tool.do("people")["people"] == emails
    assert count(front, "DescribeUser") == 250
    assert len([e for e in front.log(operation="ListGroupMemberships") if "NextToken" in (e["params"] or {})]) == 2
    add(front, "new@example.com", USERS)
    assert tool.do("refresh_people")["described"] == 1
    assert count(front, "DescribeUser") == 251
    page = tool.do("people", max=100, after="p149@example.com")["people"]
    assert page == emails[150:]


def test_c26_more_than_500_new_ones_are_listed(front, tool):
    front.do("identitystore", "add_users", emails=["p%03d@example.com" % i for i in range(501)], groups=[USERS])
    assert tool.do("refresh_people")["described"] == 501
    assert count(front, "DescribeUser") == 0 and count(front, "ListUsers") == 6
    assert len(tool.do("people")["people"]) == 501


def test_c26_everybody_is_described_again_once_a_day(front, tool):
    id = add(front, "anna@example.com", USERS)
    tool.do("refresh_people")
    front.do("identitystore", "set_user", id=id, email="anna.new@example.com")
    assert tool.do("refresh_people")["described"] == 0
    assert tool.do("people")["people"] == ["anna@example.com"]
    tool.pass_time(DAY)
    assert tool.do("refresh_people")["described"] == 1
    assert tool.do("people")["people"] == ["anna.new@example.com"]
    assert tool.do("refresh_people")["changed"] == 0


def test_c26_other_nodes_load_what_one_has_read(front, tool):
    add(front, "anna@example.com", USERS)
    tool.do("load_people", node=1)
    assert tool.ask("find", email="anna@example.com", node=1)["rc"] == UNAVAILABLE
    tool.do("refresh_people", node=0)
    assert tool.ask("find", email="anna@example.com", node=1)["rc"] == UNAVAILABLE  # from memory
    calls = len(front.log())
    tool.do("load_people", node=1)
    assert tool.do("find", email="anna@example.com", node=1)["roles"] == USER
    assert len(front.log()) == calls


def test_c26_a_directory_that_is_down(front, tool):
    add(front, "anna@example.com", USERS)
    tool.do("refresh_people")
    front.fault("error", "identitystore", status=500, count=-1)
    tool.pass_time(31 * MINUTE)
    assert tool.ask("refresh_people")["rc"] == UNAVAILABLE
    assert tool.do("sign_in", email="anna@example.com")["roles"] == USER  # the last copy serves
    tool.pass_time(DAY)
    answer = tool.ask("sign_in", email="anna@example.com")
    assert answer["rc"] == UNAVAILABLE and "more than a day" in answer["error"]
    assert tool.do("find", email="anna@example.com")["roles"] == USER  # leases and mail go on
    front.clear()
    tool.do("refresh_people")
    assert tool.do("sign_in", email="anna@example.com")["roles"] == USER


def test_nobody_is_unknown_before_the_directory_was_read(front, tool):
    add(front, "anna@example.com", USERS)
    for email in ("anna@example.com", "dora@example.com"):
        answer = tool.ask("find", email=email)
        assert answer["rc"] == UNAVAILABLE and "has not been read yet" in answer["error"]
    tool.do("refresh_people")
    assert tool.do("find", email="anna@example.com")["roles"] == USER
    assert tool.ask("find", email="dora@example.com")["rc"] == NOT_FOUND


def test_c26_a_refresh_that_fails_half_way_changes_nothing(front, tool):
    id = add(front, "anna@example.com", USERS)
    tool.do("refresh_people")
    front.do("identitystore", "leave", user=id)
    add(front, "bob@example.com", ADMINS)
    front.fault("error", "identitystore", "DescribeUser", status=500, count=-1)
    assert tool.ask("refresh_people")["rc"] == UNAVAILABLE
    assert tool.do("people")["people"] == ["anna@example.com"]
    front.clear()
    tool.do("refresh_people")
    assert tool.do("people")["people"] == ["bob@example.com"]


def test_c26_somebody_new_signs_in_before_the_next_refresh(front, tool):
    tool.do("refresh_people")
    add(front, "new@example.com", USERS, ADMINS)
    assert tool.ask("find", email="new@example.com")["rc"] == NOT_FOUND
    assert tool.do("sign_in", email="new@example.com")["roles"] == USER | ADMIN
    calls = len(front.log())
    assert tool.do("sign_in", email="New@example.com")["roles"] == USER | ADMIN
    assert len(front.log()) == calls  # known by now


def test_c26_an_unknown_one_is_looked_for_once_a_minute(front, tool):
    tool.do("refresh_people")
    for _ in range(5):
        assert tool.ask("sign_in", email="nobody@example.com")["rc"] == NOT_FOUND
    assert count(front, "GetUserId") == 1
    tool.pass_time(61 * 1000)
    assert tool.ask("sign_in", email="nobody@example.com")["rc"] == NOT_FOUND
    assert count(front, "GetUserId") == 2


def test_c26_who_has_left_signs_in_no_more_and_can_still_be_revoked(front, tool):
    front.do("organizations", "add_account", id=ACCOUNT)
    id = add(front, "anna@example.com", USERS)
    tool.do("refresh_people")
    tool.do("grant", account=ACCOUNT, who="anna@example.com", set=USER_SET)
    front.do("identitystore", "leave", user=id)
    tool.do("refresh_people")
    assert tool.ask("find", email="anna@example.com")["rc"] == NOT_FOUND
    assert tool.ask("sign_in", email="anna@example.com")["rc"] == NOT_FOUND
    assert tool.do("list", account=ACCOUNT)["list"] == ["user anna@example.com " + USER_SET]
    front.do("identitystore", "remove_user", id=id)
    assert tool.ask("revoke", account=ACCOUNT, who="anna@example.com", set=USER_SET)["rc"] == OK
    assert front.state("sso-admin")["assignments"] == []
    assert tool.ask("grant", account=ACCOUNT, who="anna@example.com", set=USER_SET)["rc"] == NOT_FOUND


def test_who_comes_back_has_his_roles_again(front, tool):
    id = add(front, "anna@example.com", USERS)
    tool.do("refresh_people")
    front.do("identitystore", "leave", user=id)
    tool.do("refresh_people")
    assert tool.do("people")["people"] == []
    front.do("identitystore", "join", user=id, group=MANAGERS)
    tool.do("refresh_people")
    assert tool.do("find", email="anna@example.com")["roles"] == MANAGER
    assert count(front, "DescribeUser") == 1
