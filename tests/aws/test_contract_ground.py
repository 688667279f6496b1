# SPDX-License-Identifier: Apache-2.0
"""The numbered cases of the AWS contract, sections 0 to 3: outcomes, throttling, moves, pages, regions, endpoints, roles, pace."""

import json
import re

import pytest

from aws.front import names
from lib.ports import free_port

ACCOUNT, OTHER = "200000000001", "200000000002"
AVAILABLE, ACTIVE, FROZEN = (names.OUS[n] for n in ("Available", "Active", "Frozen"))
MOVE = {"account": ACCOUNT, "from": AVAILABLE, "to": ACTIVE}
ORG = "organizations"


@pytest.fixture
def org(front):
    front.do(ORG, "add_accounts", ids=[ACCOUNT, OTHER])
    return front


def moves(front):
    return [(m["account"], m["to"]) for m in front.state(ORG)["moves"]]


def asked(front, operation, service=ORG):
    return len(front.log(service, operation))


# Outcomes and throttling.


def test_c1_three_throttles_then_success(org, tool):
    t = tool(org)
    org.fault("throttle", ORG, "MoveAccount", count=3)
    assert t("move", **MOVE)["rc"] == "OK"
    assert asked(org, "MoveAccount") == 4 and moves(org) == [(ACCOUNT, ACTIVE)]
    assert t("counts")["throttled"] == 3


def test_c1_throttled_to_the_end_is_limited_and_did_not_happen(org, tool):
    t = tool(org)
    org.fault("throttle", ORG, "MoveAccount", count=-1)
    got = t("move", **MOVE)
    assert got["rc"] == "LIMITED" and "TooManyRequestsException" in got["error"]
    assert asked(org, "MoveAccount") == 5 and moves(org) == []


def test_c2_codes_that_mean_throttling_only_where_they_do(org, tool):
    t = tool(org)
    org.fault("error", ORG, "ListRoots", code="TooManyRequestsException", status=400, count=2)
    assert t.call("ORGANIZATIONS", "ListRoots", **{"as": "management"})["rc"] == "OK"
    org.fault("error", "ce", code="LimitExceededException", status=400, count=2)
    question = {"TimePeriod": {"Start": "2026-11-01", "End": "2026-11-02"}, "Granularity": "DAILY", "Metrics": ["UnblendedCost"]}
    assert t.call("COST_EXPLORER", "GetCostAndUsage", question, **{"as": "management"})["rc"] == "OK"
    org.do("sts", "allow_all")
    org.fault("error", "cognito-idp", code="LimitExceededException", status=400, count=-1)
    got = t.call("COGNITO_IDENTITY_PROVIDER", "ListUserPools", {"MaxResults": 1})
    assert got["rc"] == "INTERNAL" and "LimitExceededException" in got["error"]
    assert (asked(org, "ListRoots"), asked(org, "GetCostAndUsage", "ce"), asked(org, "ListUserPools", "cognito-idp")) == (3, 3, 1)


def test_c3_concurrent_modification_twice_then_moved(org, tool):
    org.fault("error", ORG, "MoveAccount", code="ConcurrentModificationException", status=400, count=2)
    assert tool(org)("move", **MOVE)["rc"] == "OK"
    assert asked(org, "MoveAccount") == 3 and moves(org) == [(ACCOUNT, ACTIVE)]


@pytest.mark.parametrize("kind", ["cut_after", "done_error"])
def test_c4_a_move_that_was_done_without_an_answer_is_ok_and_one_move(org, tool, kind):
    org.fault(kind, ORG, "MoveAccount")
    assert tool(org)("move", **MOVE)["rc"] == "OK"
    assert moves(org) == [(ACCOUNT, ACTIVE)]


@pytest.mark.parametrize("kind", ["cut_before", "error"])
def test_c5_a_move_that_was_not_done_is_a_timeout_and_then_one_move(org, tool, kind):
    t = tool(org)
    number = org.fault(kind, ORG, "MoveAccount", count=-1)
    assert t("move", **MOVE)["rc"] == "TIMEOUT"
    assert moves(org) == [] and org.hits(number) in (5, 6)  # libcurl sends once more on a kept connection that ended
    org.clear()
    assert t("move", **MOVE)["rc"] == "OK"
    assert moves(org) == [(ACCOUNT, ACTIVE)]


def test_c5_a_read_without_an_answer_did_not_happen(org, tool):
    org.fault("cut_before", ORG, "ListParents", count=-1)
    assert tool(org)("find_parent", account=ACCOUNT)["rc"] == "UNAVAILABLE"


def test_c6_our_own_retry_meets_duplicate(org, tool):
    org.fault("cut_after", ORG, "MoveAccount")
    assert tool(org)("move", **MOVE)["rc"] == "OK"
    codes = [e["code"] for e in org.log(ORG, "MoveAccount")]
    assert codes == [None, "DuplicateAccountException"] and moves(org) == [(ACCOUNT, ACTIVE)]


def test_c7_what_cannot_be_moved(org, tool):
    t = tool(org)
    for change, rc, code in [
        ({"from": ACTIVE, "to": AVAILABLE}, "CONFLICT", "DuplicateAccountException"),
        ({"from": FROZEN}, "CONFLICT", "SourceParentNotFoundException"),
        ({"account": "200000000099"}, "NOT_FOUND", ("AccountNotFoundException", "ChildNotFoundException")),
        ({"to": "ou-frnt-00000000"}, "NOT_FOUND", "DestinationParentNotFoundException"),
    ]:
        got = t("move", **{**MOVE, **change})
        assert got["rc"] == rc and got["code"] in code, (change, got)
    assert moves(org) == [] and asked(org, "MoveAccount") == 1


def test_c7_somebody_moves_it_between_our_look_and_our_move(org, tool):
    t = tool(org)
    number = org.fault("hold_before", ORG, "MoveAccount")
    answer = t.begin("move", **MOVE)
    org.wait_held(number)
    org.do(ORG, "move", id=ACCOUNT, to=FROZEN)
    org.release(number)
    got = answer.get(timeout=60)
    assert (got["rc"], got["code"]) == ("CONFLICT", "SourceParentNotFoundException")
    assert moves(org) == [(ACCOUNT, FROZEN)]


# Pages.


def all_pages(t, ou):
    ids, cursor, pages = [], "", 0
    while True:
        got = t("list_accounts", ou=ou, cursor=cursor)
        assert got["rc"] == "OK", got
        ids += [a["id"] for a in got["accounts"]]
        pages += 1
        cursor = got["next"]
        if not cursor:
            return ids, pages


def test_c8_forty_five_accounts_are_three_pages(front, tool):
    wanted = ["2000000000%02d" % i for i in range(45)]
    front.do(ORG, "add_accounts", ids=wanted)
    assert all_pages(tool(front), AVAILABLE) == (wanted, 3)
    assert [e["params"]["MaxResults"] for e in front.log(ORG, "ListAccountsForParent")] == [20] * 3


def test_c8_forty_five_accounts_of_moto(moto_world, tool):
    o = moto_world.client("organizations")
    o.create_organization(FeatureSet="ALL")
    root = o.list_roots()["Roots"][0]["Id"]
    made = {o.create_account(AccountName="a%d" % i, Email="a%d@example.com" % i)["CreateAccountStatus"]["AccountId"] for i in range(44)}
    ids, pages = all_pages(tool(moto_world), root)
    assert made < set(ids) and len(ids) == len(set(ids)) == 45 and pages == 3


def test_c9_an_empty_page_with_a_token_is_not_the_end(org, tool):
    t = tool(org)
    account = {"Id": ACCOUNT, "Name": "n", "Email": "e@example.com", "State": "ACTIVE"}
    org.fault("reply", ORG, "ListAccountsForParent", body={"Accounts": [], "NextToken": "more"})
    org.fault("reply", ORG, "ListAccountsForParent", body={"Accounts": [account], "NextToken": "last"})
    org.fault("garbage", ORG, "ListAccountsForParent", text=json.dumps({"Accounts": [], "NextToken": None}))
    assert all_pages(t, AVAILABLE) == ([ACCOUNT], 3)
    assert [e["params"].get("NextToken") for e in org.log(ORG, "ListAccountsForParent")] == [None, "more", "last"]


def test_c9_the_parent_may_be_on_the_second_page(org, tool):
    org.fault("reply", ORG, "ListParents", body={"Parents": [], "NextToken": "more"})
    assert tool(org)("find_parent", account=ACCOUNT)["ou"] == AVAILABLE
    assert [e["params"].get("NextToken") for e in org.log(ORG, "ListParents")] == [None, "more"]


def test_c9_pages_without_end_are_an_error(org, tool):
    org.fault("reply", ORG, "ListTagsForResource", body={"Tags": [], "NextToken": "again"}, count=-1)
    assert tool(org)("get_tags", account=ACCOUNT)["rc"] == "CORRUPT"


def test_c10_a_token_of_100_000_characters_stays_inside(org, tool):
    t, token = tool(org), "t" * 99999 + "!"
    org.fault("reply", ORG, "ListAccountsForParent", body={"Accounts": [], "NextToken": token})
    org.fault("reply", ORG, "ListAccountsForParent", body={"Accounts": []})
    first = t("list_accounts", ou=AVAILABLE, cursor="")
    assert 0 < len(first["next"]) <= 64
    assert t("list_accounts", ou=FROZEN, cursor=first["next"])["rc"] == "INVALID"  # of another list
    assert t("list_accounts", ou=AVAILABLE, cursor=first["next"])["rc"] == "OK"
    assert org.log(ORG, "ListAccountsForParent")[-1]["params"]["NextToken"] == token


# What is read.


def test_c11_stale_reads_for_three_seconds_are_no_drift(org, tool):
    t = tool(org)
    org.do(ORG, "stale", seconds=3)
    assert t("move", **MOVE)["rc"] == "OK"
    assert t("find_parent", account=ACCOUNT)["ou"] == ACTIVE
    parents = asked(org, "ListParents")
    assert parents >= 3  # one before the move, then until it was so
    assert t("move", account=ACCOUNT, **{"from": ACTIVE, "to": FROZEN})["rc"] == "OK"
    assert moves(org) == [(ACCOUNT, ACTIVE), (ACCOUNT, FROZEN)]


def test_c12_suspended_accounts_are_left_out_and_a_state_may_be_missing(org, tool):
    t = tool(org)
    org.do(ORG, "set_account", id=OTHER, state="SUSPENDED")
    assert all_pages(t, AVAILABLE)[0] == [ACCOUNT]
    for id in (ACCOUNT, OTHER):
        org.do(ORG, "set_account", id=id, no_state=True)
    assert all_pages(t, AVAILABLE)[0] == [ACCOUNT]
    org.do(ORG, "set_account", id=OTHER, state="PENDING_CLOSURE", no_state=False)
    assert all_pages(t, AVAILABLE)[0] == [ACCOUNT]
    assert t("describe", account=ACCOUNT)["account"] == {
        "id": ACCOUNT, "name": "account-" + ACCOUNT, "email": "aws+%s@example.com" % ACCOUNT, "parent": AVAILABLE,
        "joined_ms": int(org.state(ORG)["accounts"][ACCOUNT]["joined"]) * 1000}


def test_ous_come_from_the_organisation_or_from_the_parameter(org, tool):
    wanted = {"Root": names.ROOT, "sandbox": names.SANDBOX_OU, **names.OUS}
    t = tool(org)
    got = t("list_ous")["ous"]
    assert {name: ou["id"] for name, ou in got.items()} == wanted
    assert t("list_ous")["ous"] == got and asked(org, "ListRoots") == 1  # kept
    words = {"Available": "available", "Active": "active", "Frozen": "frozen", "CleanUp": "cleanup", "Quarantine": "quarantine", "Entry": "entry", "Exit": "exit"}
    arn = "arn:aws:ssm:us-east-1:%s:parameter/pool" % names.HUB
    org.do("ssm", "put", name="/pool", value=json.dumps({word + "OuId": names.OUS[name] for name, word in words.items()}))
    got = tool(org, pool_param=arn)("list_ous")["ous"]
    assert {name: ou["id"] for name, ou in got.items()} == wanted
    org.do("ssm", "put", name="/pool", value="{}")
    assert tool(org, pool_param=arn)("list_ous")["rc"] == "CORRUPT"


def test_tags_are_set_read_and_removed(org, tool):
    t = tool(org)
    tags = {"k%02d" % i: "v ä %d" % i for i in range(25)}
    assert t("set_tags", account=ACCOUNT, tags=tags)["rc"] == "OK"
    assert t("get_tags", account=ACCOUNT)["tags"] == tags  # two pages
    for _ in range(2):
        assert t("remove_tag", account=ACCOUNT, name="k00")["rc"] == "OK"
    assert "k00" not in t("get_tags", account=ACCOUNT)["tags"]
    assert t("set_tags", account=ACCOUNT, tags={"x%02d" % i: "" for i in range(40)})["rc"] == "TOO_LARGE"
    assert t("get_tags", account="200000000099")["rc"] == "NOT_FOUND"


# Regions, endpoints.

HARMLESS = {  # id: operation, body, hop, model, more
    "ORGANIZATIONS": ("ListRoots", {}, "management", "organizations", {}),
    "COST_EXPLORER": ("GetCostAndUsage", {"TimePeriod": {"Start": "2026-11-01", "End": "2026-11-02"}, "Granularity": "DAILY", "Metrics": ["UnblendedCost"]},
                      "management", "ce", {}),
    "SSO_ADMIN": ("ListInstances", {}, "idc", "sso-admin", {}),
    "IDENTITYSTORE": ("ListUsers", {"IdentityStoreId": names.STORE_ID}, "idc", "identitystore", {}),
    "SECRETS_MANAGER": ("GetSecretValue", {"SecretId": "/InnovationSandbox/front/s"}, "own", "secretsmanager", {}),
    "CODEBUILD": ("BatchGetBuilds", {"ids": ["cleaner:b"]}, "own", "codebuild", {}),
    "SSM": ("GetParameter", {"Name": "/p"}, "own", "ssm", {}),
    "SQS": ("GetQueueAttributes", {"QueueUrl": "http://q/100000000002/q", "AttributeNames": ["All"]}, "own", "sqs", {}),
    "EVENTBRIDGE": ("PutEvents", {"Entries": [{"Source": "s", "DetailType": "t", "Detail": "{}"}]}, "own", "events", {}),
    "STS": ("GetCallerIdentity", "", "own", "sts", {}),
    "SNS": ("Publish", "TopicArn=arn%3Aaws%3Asns%3Aus-east-1%3A100000000002%3Aalerts&Message=m%20%26%20n", "own", "sns", {}),
    "SCHEDULER": ("GetSchedule", "", "own", "scheduler", {"method": "GET", "path": "/schedules/{Name}", "args": ["a.b_c-d"], "query": "groupName=isb-billing-separator"}),
    "SESV2": ("GetAccount", "", "own", "sesv2", {"method": "GET", "path": "/v2/email/account"}),
}
GLOBAL = ("organizations", "ce")


def call_all(front, t):
    front.do("sqs", "add_queue", name="q")
    front.do("secretsmanager", "put", name="/InnovationSandbox/front/s", value="secret")
    front.do("ssm", "put", name="/p", value="v")
    for id, (op, body, hop, model, more) in HARMLESS.items():
        got = t.call(id, op, body, **{"as": hop}, **more)
        assert got["rc"] == "OK" or "ResourceNotFoundException" in got["error"], (id, got)
    return [e for e in front.log() if (e["service"], e["operation"]) in {(h[3], h[0]) for h in HARMLESS.values()}]


def test_c13_regions_and_signing_names_in_eu_west_1(front, tool):
    got = call_all(front, tool(front, region="eu-west-1", idc_region="eu-central-1"))
    assert {e["service"] for e in got} == {h[3] for h in HARMLESS.values()}
    for entry in got:
        wanted = "us-east-1" if entry["service"] in GLOBAL else "eu-central-1" if entry["role"] == "isb-billing-sep-idc" else "eu-west-1"
        assert entry["region"] == wanted and not entry["broken"], entry


def test_c14_each_service_has_an_endpoint_of_its_own(front, tool):
    env = {"AWS_ENDPOINT_URL": "http://127.0.0.1:%d" % free_port()}
    env.update({"AWS_ENDPOINT_URL_" + id: front.url for id in HARMLESS})
    assert len(call_all(front, tool(front, env))) == len(HARMLESS)


def test_c14_one_that_is_not_named_goes_to_the_common_endpoint(front, tool):
    t = tool(front, {"AWS_ENDPOINT_URL_SSM": "http://127.0.0.1:%d" % free_port()})
    assert t.call("SSM", "GetParameter", {"Name": "/p"})["rc"] == "UNAVAILABLE"
    assert t.call("STS", "GetCallerIdentity", "")["rc"] == "OK"


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS"])
@pytest.mark.parametrize("url", ["http://192.0.2.1:8000", "http://aws.example.com", "http://127.0.0.1.example.com", "ftp://127.0.0.1", "127.0.0.1:80"])
def test_c14_foreign_http_is_refused(front, tool, name, url):
    t = tool(front, {"AWS_ENDPOINT_URL": None, name: url})
    assert t.opened["opened"] is False and name in t.opened["error"]
    assert front.log() == []


# Roles.


def assumed(front):
    return front.state("sts")["assumed"]


def test_c15_credentials_end_between_pages_and_are_renewed_once(front, tool):
    front.do(ORG, "add_accounts", ids=["2000000000%02d" % i for i in range(45)])
    t = tool(front)
    first = t("list_accounts", ou=AVAILABLE, cursor="")
    assert len(assumed(front)) == 2
    front.do("sts", "expire")
    second = t("list_accounts", ou=AVAILABLE, cursor=first["next"])
    assert second["rc"] == "OK" and len(second["accounts"]) == 20
    assert t("list_accounts", ou=AVAILABLE, cursor=second["next"])["rc"] == "OK"
    roles = [a["role"] for a in assumed(front)]
    assert roles.count(names.ORG_ROLE) == 2 and roles.count(names.INTERMEDIATE_ROLE) == 2


def test_c16_credentials_end_during_a_poll_and_are_renewed_once(front, tool):
    """The polls themselves, as the grant makes them; each is a call of its own."""
    front.do(ORG, "add_account", id=ACCOUNT)
    front.do("sso-admin", "pace", looks=6, seconds=3600)
    user = front.do("identitystore", "add_user", email="a@example.com")
    arn = next(iter(front.state("sso-admin")["sets"]))
    t = tool(front)
    made = t.call("SSO_ADMIN", "CreateAccountAssignment", {
        "InstanceArn": names.INSTANCE_ARN, "TargetId": ACCOUNT, "TargetType": "AWS_ACCOUNT", "PermissionSetArn": arn, "PrincipalType": "USER",
        "PrincipalId": user}, **{"as": "idc"}, writes=True)["answer"]["AccountAssignmentCreationStatus"]
    seen = []
    for i in range(6):
        if i == 2:
            front.do("sts", "expire")
        got = t.call("SSO_ADMIN", "DescribeAccountAssignmentCreationStatus",
                     {"InstanceArn": names.INSTANCE_ARN, "AccountAssignmentCreationRequestId": made["RequestId"]}, **{"as": "idc"})
        seen.append(got["answer"]["AccountAssignmentCreationStatus"]["Status"])
    assert seen == ["IN_PROGRESS"] * 5 + ["SUCCEEDED"]
    assert [a["role"] for a in assumed(front)].count(names.IDC_ROLE) == 2


@pytest.mark.parametrize("role,hop", [(names.INTERMEDIATE_ROLE, "intermediate"), (names.ORG_ROLE, "management")])
def test_c17_a_hop_that_is_refused_is_named_with_its_arn(org, tool, role, hop):
    org.do("sts", "set_role", arn=role, trusts=[])
    got = tool(org)("find_parent", account=ACCOUNT)
    assert got["rc"] == "DENIED" and role in got["error"], got
    assert hop in got["error"], got
    assert asked(org, "ListParents") == 0


PORT_CALLS = {
    "organizations:ListRoots": ("list_ous", {}),
    "organizations:ListOrganizationalUnitsForParent": ("list_ous", {}),
    "organizations:ListParents": ("find_parent", {"account": ACCOUNT}),
    "organizations:MoveAccount": ("move", MOVE),
    "organizations:ListAccountsForParent": ("list_accounts", {"ou": AVAILABLE, "cursor": ""}),
    "organizations:DescribeAccount": ("describe", {"account": ACCOUNT}),
    "organizations:ListTagsForResource": ("get_tags", {"account": ACCOUNT}),
    "organizations:TagResource": ("set_tags", {"account": ACCOUNT, "tags": {"k": "v"}}),
    "organizations:UntagResource": ("remove_tag", {"account": ACCOUNT, "name": "k"}),
}


@pytest.mark.parametrize("permission", sorted(PORT_CALLS))
def test_c18_each_permission_denied_alone(org, tool, permission):
    t = tool(org)
    what, members = PORT_CALLS[permission]
    org.do("sts", "deny", action=permission, role=names.role_name(names.ORG_ROLE))
    got = t(what, **members)
    assert got["rc"] == "DENIED" and permission in got["error"], got
    assert t("counts")["denied"] == 1 and moves(org) == []
    org.do("sts", "allow_all")
    assert t(what, **members)["rc"] == "OK"


def test_c18_a_denial_that_names_kms_says_so(org, tool):
    text = "The ciphertext refers to a customer master key: not authorized to perform: kms:Decrypt"
    org.fault("deny", "ssm", message=text)
    got = tool(org).call("SSM", "GetParameter", {"Name": "/p"})
    assert got["rc"] == "DENIED" and "kms:Decrypt" in got["error"]


@pytest.mark.parametrize("minutes", [-10, 10])
def test_c19_a_clock_that_is_ten_minutes_off(org, tool, minutes):
    t = tool(org, skew_ms=minutes * 60000)
    assert t("move", **MOVE)["rc"] == "OK"
    assert t("find_parent", account=ACCOUNT)["ou"] == ACTIVE
    refused = [e["code"] for e in org.log() if e["code"]]
    assert refused and set(refused) <= {"SignatureDoesNotMatch", "InvalidSignatureException"}
    assert len(refused) <= 3  # once for each of the clients: STS twice, the organisation once


def test_c20_sessions_last_an_hour_at_most_and_have_legal_names(org, tool):
    t = tool(org, session_sec=3600)
    assert t("find_parent", account=ACCOUNT)["rc"] == "OK"
    assert t.call("STS", "GetCallerIdentity", "", sandbox=ACCOUNT)["answer"]["Account"] == ACCOUNT
    assert tool(org)("find_parent", account=ACCOUNT)["rc"] == "OK"
    got = assumed(org)
    assert {a["role"] for a in got} == {names.INTERMEDIATE_ROLE, names.ORG_ROLE, "arn:aws:iam::%s:role/%s" % (ACCOUNT, names.SANDBOX_ROLE)}
    assert all(900 <= a["seconds"] <= 3600 and re.fullmatch(r"[\w+=,.@-]{2,64}", a["name"]) for a in got), got
    assert {a["seconds"] for a in got} == {900, 3600}
    assert any(a["name"].endswith("-org") for a in got) and any(a["name"].endswith("-nuke") for a in got)


def test_c20_an_external_id_and_a_source_identity_go_along(org, tool):
    for role in (names.INTERMEDIATE_ROLE, names.ORG_ROLE):
        org.do("sts", "set_role", arn=role, external_id="ex-1", source_identity=True)
    assert tool(org)("find_parent", account=ACCOUNT)["rc"] == "DENIED"
    assert tool(org, external_id="ex-1", source_identity="leasehold")("find_parent", account=ACCOUNT)["rc"] == "OK"


# Others.


def test_c47_a_code_that_nobody_knows_is_internal_with_the_code_in_the_text(org, tool):
    org.fault("error", ORG, "ListParents", code="SurpriseException", status=400)
    got = tool(org)("find_parent", account=ACCOUNT)
    assert got["rc"] == "INTERNAL" and "SurpriseException" in got["error"] and got["code"] is None


def test_the_agent_and_the_log_of_calls(org, tool):
    t = tool(org, agent="extra/1", log=True)
    assert t("find_parent", account=ACCOUNT)["rc"] == "OK"
    entry = org.log(ORG, "ListParents")[0]
    assert re.fullmatch(r"leasehold/\S+ extra/1", entry["agent"])
    t.close()
    said = "\n".join(json.dumps(line) for line in t.lines)
    assert '"ListParents"' in said and entry["request_id"] in said
    assert "front-session-secret" not in said and "front-token" not in said and names.TASK_SECRET not in said
