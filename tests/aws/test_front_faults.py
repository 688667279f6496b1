# SPDX-License-Identifier: Apache-2.0
"""Faults strike whom they shall, as often as they shall, and leave done or undone what they say."""

import threading

import botocore.exceptions
import pytest

from aws.front import names
from lib.wait import until

ACCOUNT = "200000000001"
MOVE = {"AccountId": ACCOUNT, "SourceParentId": names.OUS["Available"], "DestinationParentId": names.OUS["Active"]}
CUT = (botocore.exceptions.ConnectionClosedError, botocore.exceptions.EndpointConnectionError)


@pytest.fixture
def org(front):
    front.do("organizations", "add_account", id=ACCOUNT)
    return front.client("organizations", read_timeout=30)


def code(call, **members):
    with pytest.raises(botocore.exceptions.ClientError) as e:
        call(**members)
    return e.value.response["Error"]["Code"], e.value.response["ResponseMetadata"]["HTTPStatusCode"]


def moves(front):
    return len(front.state("organizations")["moves"])


def test_throttles_in_the_words_of_the_service(front, org):
    front.fault("throttle", "organizations", "ListRoots", skip=1, count=2)
    assert org.list_roots()["Roots"]
    assert [code(org.list_roots) for _ in range(2)] == [("TooManyRequestsException", 400)] * 2
    assert org.list_roots()["Roots"]
    front.fault("throttle", "ce")
    got = code(front.client("ce").get_cost_and_usage, TimePeriod={"Start": "2026-01-01", "End": "2026-01-02"}, Granularity="DAILY", Metrics=["UnblendedCost"])
    assert got == ("LimitExceededException", 400)
    front.fault("throttle", "sts")
    assert code(front.client("sts").get_caller_identity) == ("Throttling", 400)


def test_a_cut_answer_before_and_after(front, org):
    front.fault("cut_before", "organizations", "MoveAccount")
    with pytest.raises(CUT):
        org.move_account(**MOVE)
    assert moves(front) == 0
    front.fault("cut_after", "organizations", "MoveAccount")
    with pytest.raises(CUT):
        org.move_account(**MOVE)
    assert moves(front) == 1
    assert code(org.move_account, **MOVE)[0] == "DuplicateAccountException"
    assert [e["done"] for e in front.log(operation="MoveAccount")] == [False, True, False]


def test_errors_with_and_without_effect(front, org):
    front.fault("error", "organizations", "MoveAccount", status=500)
    assert code(org.move_account, **MOVE) == ("InternalFailure", 500)
    assert moves(front) == 0
    front.fault("done_error", "organizations", "MoveAccount", status=503, code="ServiceUnavailable")
    assert code(org.move_account, **MOVE) == ("ServiceUnavailable", 503)
    assert moves(front) == 1


def test_a_permission_is_taken_away(front, org):
    front.do("sts", "deny", action="organizations:ListRoots")
    assert code(org.list_roots) == ("AccessDeniedException", 400)
    assert org.list_parents(ChildId=ACCOUNT)["Parents"]
    front.do("sts", "allow_all")
    assert org.list_roots()["Roots"]


def test_a_request_is_held_before_it_is_done_and_after(front, org):
    for kind, done in (("hold_before", 0), ("hold_after", 1)):
        number = front.fault(kind, "organizations", "MoveAccount")
        thread = threading.Thread(target=org.move_account, kwargs=MOVE)
        thread.start()
        front.wait_held(number)
        assert moves(front) == done
        front.release(number)
        thread.join(120)
        assert not thread.is_alive() and moves(front) == 1
        front.reset()
        front.do("organizations", "add_account", id=ACCOUNT)


def test_whoever_goes_away_while_held_is_let_go(front):
    impatient = front.client("organizations", read_timeout=1)
    number = front.fault("hold_before", "organizations")
    with pytest.raises(botocore.exceptions.ReadTimeoutError):
        impatient.list_roots()
    until(lambda: not front.is_holding(number), "the front lets go", 120)


def test_reads_are_stale_for_a_while(front, org):
    front.do("organizations", "stale", seconds=60)
    org.move_account(**MOVE)
    assert org.list_parents(ChildId=ACCOUNT)["Parents"][0]["Id"] == names.OUS["Available"]
    assert code(org.move_account, **MOVE)[0] == "DuplicateAccountException"
    front.do("organizations", "stale", seconds=0)
    assert org.list_parents(ChildId=ACCOUNT)["Parents"][0]["Id"] == names.OUS["Active"]


def test_sessions_end(front):
    sts = front.client("sts", role="task")
    keys = sts.assume_role(RoleArn=names.INTERMEDIATE_ROLE, RoleSessionName="name")["Credentials"]
    import botocore.session

    client = botocore.session.Session().create_client("sts", region_name="us-east-1", endpoint_url=front.url, aws_access_key_id=keys["AccessKeyId"],
                                                      aws_secret_access_key=keys["SecretAccessKey"], aws_session_token=keys["SessionToken"])
    assert client.get_caller_identity()["Arn"].endswith("isb-billing-sep-intermediate/name")
    front.do("sts", "expire")
    assert code(client.get_caller_identity) == ("ExpiredToken", 403)


def test_an_assignment_takes_its_time_fails_or_never_ends(front):
    front.do("organizations", "add_account", id=ACCOUNT)
    user = front.do("identitystore", "add_user", email="a@example.com")
    s = front.client("sso-admin")
    arn = s.list_permission_sets(InstanceArn=names.INSTANCE_ARN)["PermissionSets"][0]
    what = {"InstanceArn": names.INSTANCE_ARN, "TargetId": ACCOUNT, "TargetType": "AWS_ACCOUNT", "PermissionSetArn": arn, "PrincipalType": "USER", "PrincipalId": user}

    def look(id):
        got = s.describe_account_assignment_creation_status(InstanceArn=names.INSTANCE_ARN, AccountAssignmentCreationRequestId=id)
        return got["AccountAssignmentCreationStatus"]["Status"]

    front.do("sso-admin", "pace", looks=3, seconds=3600)
    front.do("sso-admin", "outcome", status="FAILED", reason="quota")
    id = s.create_account_assignment(**what)["AccountAssignmentCreationStatus"]["RequestId"]
    assert [look(id) for _ in range(4)] == ["IN_PROGRESS", "IN_PROGRESS", "FAILED", "FAILED"]
    assert front.state("sso-admin")["assignments"] == []
    front.do("sso-admin", "pace", looks=-1, seconds=0)
    front.do("sso-admin", "outcome")
    id = s.create_account_assignment(**what)["AccountAssignmentCreationStatus"]["RequestId"]
    assert [look(id) for _ in range(10)] == ["IN_PROGRESS"] * 10
    front.do("sso-admin", "finish")
    assert look(id) == "SUCCEEDED" and len(front.state("sso-admin")["assignments"]) == 1


def test_a_fault_that_is_none_is_refused(front):
    with pytest.raises(AssertionError, match="no such fault"):
        front.fault("trottle")
    with pytest.raises(AssertionError, match="no such fault"):
        front.fault("throttle", oepration="x")
