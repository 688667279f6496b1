# SPDX-License-Identifier: Apache-2.0
"""Accounts are emptied by builds of CodeBuild: one build a key, whatever gets lost."""

import pytest

from aws.front import names
from lib.aws_lease_tool import CONFLICT, DAY, DENIED, INVALID, LIMITED, NOT_FOUND, OK, TIMEOUT, UNAVAILABLE, LeaseTool

ACCOUNT, OTHER = "200000000001", "200000000002"
KEY = ACCOUNT + "/cleanup-1/1"


@pytest.fixture
def tool(front, tmp_path):
    with LeaseTool(front, tmp_path) as tool:
        yield tool


def start(tool, key=KEY, account=ACCOUNT, **more):
    return tool.ask("start", account=account, key=key, **more)


def builds(front):
    return front.state("codebuild")["builds"]


def test_a_build_runs_and_succeeds(front, tool):
    front.do("codebuild", "pace", looks=2)
    run = start(tool)["run"]
    assert run.startswith("cleaner:")
    assert [tool.do("check", run=run)["state"] for _ in range(3)] == ["running", "succeeded", "succeeded"]
    build, = builds(front)
    assert build["environment"] == {"CLEANUP_ACCOUNT_ID": ACCOUNT, "STATE_MACHINE_EXECUTION_ID": KEY, "APPCONFIG_APPLICATION_ID": "app1234",
                                    "APPCONFIG_ENVIRONMENT_ID": "env1234", "APPCONFIG_NUKE_CONFIG_CONFIGURATION_PROFILE_ID": "prof123"}
    assert build["minutes"] == 60 and build["initiator"] == names.role_name(names.TASK_ROLE)


@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "STOPPED", "FAULT"])
def test_c30_a_build_that_ends_badly(front, tool, status):
    front.do("codebuild", "outcome", status=status, message="3 resources could not be deleted")
    run = start(tool)["run"]
    got = tool.do("check", run=run)
    assert got["state"] == "failed"
    for words in (status, "3 resources could not be deleted", "console.aws.amazon.com"):
        assert words in got["text"]


def test_c30_a_build_that_is_gone_has_failed(front, tool):
    run = start(tool)["run"]
    front.do("codebuild", "forget")
    assert tool.do("check", run=run)["state"] == "failed"


def test_c30_the_same_key_is_the_same_build(front, tool):
    runs = {start(tool)["run"], start(tool)["run"], start(tool, node=1)["run"]}
    front.advance(3600)  # AWS has forgotten the token
    runs.add(start(tool)["run"])
    assert len(runs) == 1 and len(builds(front)) == 1
    answer = start(tool, account=OTHER)
    assert answer["rc"] == CONFLICT and ACCOUNT in answer["error"]
    assert start(tool, key=ACCOUNT + "/cleanup-1/2")["run"] not in runs
    assert len(builds(front)) == 2


@pytest.mark.parametrize("kind", ["cut_after", "done_error"])
def test_c30_a_lost_answer_of_start_build_is_found(front, tool, kind):
    for i in range(3):
        start(tool, key="%s/before/%d" % (ACCOUNT, i))
    front.fault(kind, "codebuild", "StartBuild", count=-1)
    answer = start(tool)
    assert answer["rc"] == OK
    mine = [b["id"] for b in builds(front) if b["environment"]["STATE_MACHINE_EXECUTION_ID"] == KEY]
    assert mine == [answer["run"]] and len(builds(front)) == 4


def test_c30_a_build_that_was_started_and_never_noted_is_found_after_the_token_has_gone(front, tool):
    front.fault("cut_after", "codebuild", "StartBuild", count=-1)
    front.fault("error", "codebuild", "ListBuildsForProject", status=500, count=-1)
    assert start(tool)["rc"] == TIMEOUT
    assert len(builds(front)) == 1
    front.clear()
    front.advance(3600)
    assert start(tool)["run"] == builds(front)[0]["id"]
    assert len(builds(front)) == 1


def test_c30_a_request_that_never_arrived_is_sent_again(front, tool):
    front.fault("cut_before", "codebuild", "StartBuild", count=-1)
    assert start(tool)["rc"] == TIMEOUT
    assert builds(front) == []
    front.clear()
    assert start(tool)["rc"] == OK and len(builds(front)) == 1


def test_c30_many_at_once_with_one_key_are_one_build(front, tool):
    asked = [tool.begin("start", account=ACCOUNT, key=KEY, node=i % 2) for i in range(8)]
    assert len({tool.end(n)["run"] for n in asked}) == 1
    assert len(builds(front)) == 1


def test_a_lost_build_is_found_behind_a_page_of_others(front, tool):
    front.fault("cut_after", "codebuild", "StartBuild", count=-1)
    front.fault("error", "codebuild", "ListBuildsForProject", status=500, count=-1)
    assert start(tool)["rc"] == TIMEOUT
    front.clear()
    front.advance(3600)
    for i in range(120):
        start(tool, key="%s/later/%d" % (ACCOUNT, i))
    assert start(tool)["run"] == builds(front)[0]["id"]


def looks(front, since=0):
    """The builds that each question was about."""
    return [sorted(e["params"]["ids"]) for e in front.log("codebuild", "BatchGetBuilds", since=since)]


def test_all_builds_that_are_waited_for_are_asked_for_at_once(front, tool):
    front.do("codebuild", "pace", looks=-1)
    runs = [start(tool, key="%s/at-once/%d" % (ACCOUNT, i))["run"] for i in range(5)]
    assert {tool.do("check", run=run)["state"] for run in runs} == {"running"}
    tool.pass_time(30 * 1000)
    since = front.count()
    assert {tool.do("check", run=run)["state"] for run in runs} == {"running"}
    assert looks(front, since) == [sorted(runs)]
    front.do("codebuild", "finish", status="FAILED", message="no")
    assert tool.do("check", run=runs[0])["state"] == "failed", "who asks again is answered anew"
    since = front.count()
    assert {tool.do("check", run=run)["state"] for run in runs[1:]} == {"failed"} and looks(front, since) == []
    new = start(tool, key=ACCOUNT + "/later")["run"]
    tool.do("check", run=new)
    assert looks(front, since) == [[new]], "what has ended is not waited for"


def test_what_was_heard_of_a_build_is_forgotten_after_a_while(front, tool):
    front.do("codebuild", "pace", looks=-1)
    one, other = (start(tool, key="%s/old/%d" % (ACCOUNT, i))["run"] for i in range(2))
    for run in (one, other, one):
        tool.do("check", run=run)
    since = front.count()
    tool.pass_time(16 * 1000)
    tool.do("check", run=other)
    tool.pass_time(6 * 60 * 1000)
    tool.do("check", run=other)
    assert looks(front, since) == [sorted([one, other]), [other]], "nobody has waited for the first for minutes"


def test_a_question_is_about_a_hundred_builds_at_most(front, tool):
    front.do("codebuild", "pace", looks=-1)
    runs = [start(tool, key="%s/many/%d" % (ACCOUNT, i))["run"] for i in range(102)]
    for _ in range(2):
        assert {tool.do("check", run=run)["state"] for run in runs} == {"running"}
        tool.pass_time(30 * 1000)
    assert max(len(ids) for ids in looks(front)) == 100


def test_errors_mean_what_the_contract_says(front, tool):
    front.fault("error", "codebuild", "StartBuild", code="AccountLimitExceededException", status=400, count=-1)
    assert start(tool)["rc"] == LIMITED
    front.clear()
    front.fault("error", "codebuild", "BatchGetBuilds", status=500, count=-1)
    front.do("codebuild", "add_project", name="other")
    run = start(tool)["run"] or "cleaner:x"
    assert tool.ask("check", run=run)["rc"] == UNAVAILABLE
    front.clear()
    assert start(tool, account="12")["rc"] == INVALID and start(tool, key="")["rc"] == INVALID and start(tool, key="k" * 201)["rc"] == INVALID
    assert tool.ask("check", run="")["rc"] == NOT_FOUND


def test_a_project_that_is_not_there_is_for_a_person(front, tool):
    front.do("codebuild", "remove_project", name="cleaner")
    answer = start(tool)
    assert answer["rc"] == DENIED and "cleaner" in answer["error"]


@pytest.mark.parametrize("account", [names.MANAGEMENT, names.HUB])
def test_c31_an_administration_account_is_refused_before_anything_is_sent(front, tool, account):
    answer = start(tool, account=account)
    assert answer["rc"] == DENIED and account in answer["error"]
    assert front.log() == []
    assert start(tool, account=ACCOUNT)["rc"] == OK  # the key was not taken either


def test_old_builds_are_forgotten(front, tool):
    first = start(tool)["run"]
    tool.pass_time(31 * DAY)
    start(tool, key="another")
    front.do("codebuild", "forget")
    front.advance(3600)
    assert start(tool)["run"] != first
