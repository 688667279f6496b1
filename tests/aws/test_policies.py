# SPDX-License-Identifier: Apache-2.0
"""deploy/aws against the program: no call without a permission, no permission without a call.

The rows of operations are constants, so their permissions stand in the program as texts. That no role makes a call that its own policy lacks is seen in all
other tests: the front enforces the policies; and test_used_permissions.py looks at what was really called."""

import json
import re

import pytest

from lib.aws_front import ROLES, TESTS, actions_of, policies, statements
from lib.server import binary
from aws.front import models, names, policy

FOLDER = TESTS.parent / "deploy/aws"
FILES = sorted(FOLDER.glob("*.json"))
# Used without a row: by the client of the account table, by AWS itself on our behalf, by the chain.
WITHOUT_A_ROW = {"dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "kms:Decrypt", "kms:GenerateDataKey", "iam:PassRole", "sts:AssumeRole"}
# In the sandbox role, which may do all.
IN_THE_SANDBOX = {"iam:PutRolePolicy", "iam:DeleteRolePolicy"}
# Calls that need none.
FREE = {"sts:GetCallerIdentity"}
PREFIXES = {action for _, action in models.SERVICES.values()}


def in_the_program():
    """Texts such as "sqs:ReceiveMessage" that are constants of the program."""
    with open(binary(), "rb") as f:
        found = set(re.findall(rb"\0([a-z-]+:[A-Z][A-Za-z]+)(?=\0)", f.read()))
    return {text.decode() for text in found if text.decode().split(":")[0] in PREFIXES}


def granted():
    return {action for actions in policies().values() for action in actions} - {"*"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_policy_is_well_formed(path):
    document = json.loads(path.read_text())
    assert list(document) == ["Version", "Statement"] and document["Version"] == "2012-10-17"
    ids = [s["Sid"] for s in document["Statement"]]
    assert len(ids) == len(set(ids)) and all(re.fullmatch("[A-Za-z0-9]+", id) for id in ids)
    for statement in document["Statement"]:
        assert statement["Effect"] == "Allow" and actions_of(statement)
        assert ("Resource" in statement) != ("Principal" in statement)
        assert set(statement) <= {"Sid", "Effect", "Action", "Resource", "Principal", "Condition"}
    assert path.stem in ROLES or path.stem == "trust"


def test_every_file_is_there_and_small_enough():
    assert {p.stem for p in FILES} == set(ROLES) | {"trust"}
    for path in FILES:
        assert len(re.sub(r"\s", "", path.read_text())) < 6144, path  # of a managed policy


def test_only_the_sandbox_role_may_do_all():
    for name, role in ROLES.items():
        actions = policies()[names.role_name(role) if "/" in role else role]
        assert ("*" in actions) == (name == "sandbox")
        assert name == "sandbox" or not any("*" in action for action in actions)


def test_every_action_is_an_operation_of_its_service():
    special = {"kms:Decrypt", "kms:GenerateDataKey", "iam:PassRole"}
    for action in granted() - special:
        prefix, operation = action.split(":")
        service = next(s for s, (_, known) in models.SERVICES.items() if known == prefix)
        assert operation in next(iter(models.load(service).values())).operation_names, action


def test_no_call_without_a_permission():
    rows = in_the_program()
    assert "organizations:MoveAccount" in rows, "the rows are not in %s" % binary()
    assert rows - granted() - FREE - IN_THE_SANDBOX == set()


def test_no_permission_without_a_call():
    assert granted() - in_the_program() - WITHOUT_A_ROW == set()


# The front enforces them to the letter. What is outside, and by how little:
TABLE = {"TableName": "accounts", "Key": {"awsAccountId": {"S": "200000000001"}}}
READ = {**TABLE, "ProjectionExpression": "#s", "ExpressionAttributeNames": {"#s": "status"}}
SET = {**TABLE, "UpdateExpression": "SET #s = :s", "ExpressionAttributeNames": {"#s": "status"}}
MANAGED = [{"key": "bbws:managed-by", "value": "instance-management"}]
MOVE = {"AccountId": "200000000001", "SourceParentId": names.OUS["Available"], "DestinationParentId": names.OUS["Active"]}


@pytest.mark.parametrize("role,action,params,outside", [
    (names.TASK_ROLE, "dynamodb:GetItem", READ, {"ExpressionAttributeNames": {"#s": "email"}}),
    (names.TASK_ROLE, "dynamodb:GetItem", {**READ, "ConsistentRead": True}, {"ProjectionExpression": None}),
    (names.TASK_ROLE, "dynamodb:UpdateItem", SET, {"ReturnValues": "ALL_NEW"}),
    (names.TASK_ROLE, "dynamodb:UpdateItem", SET, {"UpdateExpression": "SET #s = :s, driftAtLastScan = :d"}),
    (names.TASK_ROLE, "sqs:ReceiveMessage", {"QueueUrl": "http://127.0.0.1/%s/guard" % names.HUB}, {"QueueUrl": "http://127.0.0.1/%s/guard" % names.IDC}),
    (names.TASK_ROLE, "sqs:SendMessage", {"QueueUrl": "http://127.0.0.1/%s/bbws-tenant-events-test" % names.HUB}, {"QueueUrl": "http://127.0.0.1/%s/guard" % names.HUB}),
    (names.TASK_ROLE, "codebuild:StartBuild", {"projectName": "cleaner"}, {"projectName": "another"}),
    (names.TASK_ROLE, "codebuild:BatchGetBuilds", {"ids": ["cleaner:1"]}, {"ids": ["cleaner:1", "another:1"]}),
    (names.TASK_ROLE, "secretsmanager:GetSecretValue", {"SecretId": "/InnovationSandbox/front/Auth/JwtSecret"}, {"SecretId": "/InnovationSandbox/other/Auth/JwtSecret"}),
    (names.TASK_ROLE, "secretsmanager:GetSecretValue", {"SecretId": "leasehold/smtp"}, {"SecretId": "leasehold/200000000001"}),
    (names.TASK_ROLE, "scheduler:GetSchedule", {"Name": "x", "GroupName": "isb-billing-separator"}, {"GroupName": "default"}),
    (names.TASK_ROLE, "sts:AssumeRole", {"RoleArn": names.INTERMEDIATE_ROLE}, {"RoleArn": names.ORG_ROLE}),
    (names.INTERMEDIATE_ROLE, "sts:AssumeRole", {"RoleArn": "arn:aws:iam::200000000001:role/" + names.SANDBOX_ROLE}, {"RoleArn": "arn:aws:iam::200000000001:role/other"}),
    (names.ORG_ROLE, "organizations:MoveAccount", MOVE, {"DestinationParentId": "ou-else-where000"}),
    (names.ORG_ROLE, "organizations:ListAccountsForParent", {"ParentId": names.SANDBOX_OU}, {"ParentId": names.ROOT}),
    (names.ORG_ROLE, "organizations:TagResource", {"ResourceId": "200000000001"}, {"ResourceId": names.SANDBOX_OU}),
    (names.IDC_ROLE, "sso:ListPermissionSets", {"InstanceArn": names.INSTANCE_ARN}, {"InstanceArn": names.INSTANCE_ARN[:-1] + "0"}),
    (names.TASK_ROLE, "elasticfilesystem:CreateAccessPoint", {"FileSystemId": names.FILE_SYSTEM}, {"FileSystemId": "fs-another"}),
    (names.TASK_ROLE, "logs:FilterLogEvents", {"logGroupName": "/aws/ecs/tenant-a-wordpress"}, {"logGroupName": "/aws/lambda/other"}),
    (names.TASK_ROLE, "ecs:UpdateService", {"cluster": names.CLUSTER, "service": "tenant-a-wordpress"}, {"service": "leasehold"}),
    (names.TASK_ROLE, "ecs:UpdateService", {"cluster": names.CLUSTER, "service": "tenant-a-wordpress"}, {"cluster": "another"}),
    (names.TASK_ROLE, "ecs:RunTask", {"cluster": names.CLUSTER}, {"cluster": "another"}),
    (names.TASK_ROLE, "ecs:TagResource", {"cluster": names.CLUSTER, "tags": MANAGED}, {"tags": []}),
    (names.TASK_ROLE, "iam:PassRole", {"PassedRole": names.SITE_ROLE}, {"PassedRole": names.TASK_ROLE}),
    (names.TASK_ROLE, "elasticloadbalancing:CreateRule", {"ListenerArn": names.LISTENER}, {"ListenerArn": names.LISTENER[:-1] + "0"}),
    (names.TASK_ROLE, "elasticloadbalancing:CreateTargetGroup", {"Name": "t-0123456789-tg"}, {"Name": "another"}),
    (names.IDC_ROLE, "identitystore:ListUsers", {"IdentityStoreId": names.STORE_ID}, {"IdentityStoreId": "d-9999999999"}),
])
def test_the_front_refuses_what_a_resource_or_condition_leaves_out(role, action, params, outside):
    allowed = statements()[names.role_name(role)]
    assert policy.allows(allowed, action, params) is None
    assert action in policy.allows(allowed, action, {k: v for k, v in {**params, **outside}.items() if v is not None})


@pytest.mark.parametrize("action,params", [("elasticfilesystem:DeleteAccessPoint", {"AccessPointId": "fsap-1"}), ("cognito-idp:DeleteUserPool", {"UserPoolId": "p"})])
def test_what_is_another_s_by_its_tags_cannot_be_touched(action, params):
    allowed = statements()[names.role_name(names.TASK_ROLE)]
    assert policy.allows(allowed, action, params, {"bbws:managed-by": "instance-management"}) is None
    assert action in policy.allows(allowed, action, params, {"bbws:managed-by": "somebody"}) and action in policy.allows(allowed, action, params)


def test_a_call_outside_its_policy_is_refused_and_seen(front):
    front.do("organizations", "add_account", id="200000000001")
    client = front.client("codebuild", "task")
    with pytest.raises(client.exceptions.ClientError, match="not authorized to perform: codebuild:BatchGetBuilds"):
        client.batch_get_builds(ids=["another:1"])
    assert ["project/another" in text for text in front.broken()] == [True]
    front.may_break = True
