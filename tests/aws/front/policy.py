# SPDX-License-Identifier: Apache-2.0
"""As much of IAM's language as deploy/aws uses: what a call is about, as ARNs and as keys of conditions, and whether the statements of a role allow all of it."""

import fnmatch
import re

from aws.front.names import HUB, MANAGEMENT, ORG, REGION


def organizations(id):
    kind = "account" if id.isdigit() else id.split("-")[0].replace("r", "root") if id.startswith(("r-", "ou-")) else "unknown"
    return "arn:aws:organizations::%s:%s/%s/%s" % (MANAGEMENT, kind, ORG, id)


def ours(service, text, account=HUB):
    """text: the last part of an ARN, or one already."""
    return text if text.startswith("arn:") else "arn:aws:%s:%s:%s:%s" % (service, REGION, account, text)


def queue(params):
    return [ours("sqs", params["QueueUrl"].rsplit("/", 1)[1], params["QueueUrl"].rsplit("/", 2)[1])]


def secret(params):
    name = params.get("SecretId", params.get("Name"))
    return [name if name.startswith("arn:") else ours("secretsmanager", "secret:%s-AbCdEf" % name)]


def assignment(params):
    return [arn for arn in (params.get("InstanceArn"), params.get("PermissionSetArn")) if arn] + [
        "arn:aws:sso:::account/" + params[name] for name in ("TargetId", "AccountId") if name in params]


def directory(params):
    found = ["arn:aws:identitystore::%s:identitystore/%s" % (MANAGEMENT, params["IdentityStoreId"])]
    return found + ["arn:aws:identitystore:::%s/%s" % (kind, params[name]) for kind, name in (("user", "UserId"), ("group", "GroupId")) if name in params]


def project(name):
    return ours("codebuild", "project/" + name)


# Who makes something with tags must be allowed to tag, too.
TAGGING = {"elasticfilesystem:CreateAccessPoint": "elasticfilesystem:TagResource", "secretsmanager:CreateSecret": "secretsmanager:TagResource",
           "logs:CreateLogGroup": "logs:TagResource", "cognito-idp:CreateUserPool": "cognito-idp:TagResource",
           **{"ecs:" + name: "ecs:TagResource" for name in ("RegisterTaskDefinition", "CreateService", "RunTask")},
           **{"elasticloadbalancing:" + name: "elasticloadbalancing:AddTags" for name in ("CreateTargetGroup", "CreateRule")}}


def given_tags(params):
    found = params.get("Tags", params.get("tags", params.get("UserPoolTags", {})))
    return found if isinstance(found, dict) else {t.get("Key", t.get("key")): t.get("Value", t.get("value")) for t in found}


def needed(action, params):
    """What else AWS asks its policies for before it does this: (action, params) each."""
    found = [(action, params)]
    if action in TAGGING and given_tags(params):
        found.append((TAGGING[action], params))
    if action == "ecs:RegisterTaskDefinition":
        found += [("iam:PassRole", {"PassedRole": params[name]}) for name in ("executionRoleArn", "taskRoleArn") if name in params]
    return found


def services(params):
    names = params.get("services", [params.get("service", params.get("serviceName"))])
    return [name if name.startswith("arn:") else ours("ecs", "service/%s/%s" % (params["cluster"].rsplit("/", 1)[-1], name)) for name in names]


# What a call is about, by action or by service; "*" is what only a statement about everything allows. Of a service without a row only the action is looked at.
RESOURCES = {
    "organizations:MoveAccount": lambda p: [organizations(p[name]) for name in ("AccountId", "SourceParentId", "DestinationParentId")],
    "organizations:ListRoots": lambda p: ["*"],
    "ce": lambda p: ["*"],
    "ses:GetAccount": lambda p: ["*"],
    "organizations": lambda p: [organizations(p[name]) for name in ("ChildId", "AccountId", "ResourceId", "ParentId") if name in p],
    "sts:AssumeRole": lambda p: [p["RoleArn"]],
    "dynamodb": lambda p: [ours("dynamodb", "table/" + p["TableName"])],
    "sqs": queue,
    "events:PutEvents": lambda p: [bus if bus.startswith("arn:") else ours("events", "event-bus/" + bus)
                                   for bus in (e.get("EventBusName", "default") for e in p["Entries"])],
    "sns:Publish": lambda p: [p["TopicArn"]],
    "ses:SendEmail": lambda p: [ours("ses", "identity/" + p["FromEmailAddress"])],
    "codebuild:BatchGetBuilds": lambda p: [project(id.split(":")[0]) for id in p["ids"]],
    "codebuild": lambda p: [project(p["projectName"])],
    "ssm:GetParameter": lambda p: [ours("ssm", "parameter/" + p["Name"].lstrip("/"))],
    "secretsmanager": secret,
    "scheduler:ListSchedules": lambda p: ["*"],
    "scheduler": lambda p: [ours("scheduler", "schedule/%s/%s" % (p.get("GroupName", "default"), p["Name"]))],
    "sso:ListInstances": lambda p: ["*"],
    "sso": assignment,
    "identitystore": directory,
    "elasticfilesystem:DeleteAccessPoint": lambda p: [ours("elasticfilesystem", "access-point/" + p["AccessPointId"])],
    "elasticfilesystem": lambda p: [ours("elasticfilesystem", "file-system/" + p["FileSystemId"])],
    "logs": lambda p: [ours("logs", "log-group:%s:*" % p["logGroupName"])],
    **{"ecs:" + name: services for name in ("CreateService", "UpdateService", "DeleteService", "DescribeServices")},
    "ecs": lambda p: ["*"],
    "elasticloadbalancing:CreateTargetGroup": lambda p: [ours("elasticloadbalancing", "targetgroup/%s/0123456789abcdef" % p["Name"])],
    "elasticloadbalancing:DeleteTargetGroup": lambda p: [p["TargetGroupArn"]],
    "elasticloadbalancing:CreateRule": lambda p: [p["ListenerArn"]],
    "elasticloadbalancing:ModifyRule": lambda p: [p["RuleArn"]],
    "elasticloadbalancing:DeleteRule": lambda p: [p["RuleArn"]],
    "elasticloadbalancing": lambda p: ["*"],
    "cognito-idp": lambda p: [ours("cognito-idp", "userpool/" + p["UserPoolId"]) if "UserPoolId" in p else "*"],
    "cognito-idp:DescribeUserPoolDomain": lambda p: ["*"],
    "tag:GetResources": lambda p: ["*"],
    "iam:PassRole": lambda p: [p["PassedRole"]],
    **{action: lambda p: ["*"] for action in set(TAGGING.values()) - {"secretsmanager:TagResource"}},
}


def find(action):
    return RESOURCES.get(action, RESOURCES.get(action.split(":")[0]))


def attributes(params):
    """Of a DynamoDB item, that a call names: its key, and what its expressions have in them."""
    renamed = params.get("ExpressionAttributeNames", {})
    text = " ".join(params.get(name, "") for name in ("ProjectionExpression", "UpdateExpression", "ConditionExpression"))
    words = set(re.findall(r"(?<![:\w])#?[A-Za-z_]\w*(?!\w*\()", text)) - {"SET", "REMOVE", "AND", "OR", "NOT"}
    return sorted({renamed.get(word, word) for word in words} | set(params.get("Key", {})))


def context(action, params, tags):
    """The keys that a call has. tags: of what it is about."""
    found = {"aws:RequestTag/" + k: [v] for k, v in given_tags(params).items()}
    found.update({"aws:ResourceTag/" + k: [v] for k, v in tags.items()})
    if action == "iam:PassRole":
        return {"iam:PassedToService": ["ecs-tasks.amazonaws.com"]}
    if action.startswith("ecs:") and "cluster" in params:
        return {**found, "ecs:cluster": [ours("ecs", "cluster/" + params["cluster"].rsplit("/", 1)[-1])]}
    if action == "sts:AssumeRole":
        return {"aws:ResourceOrgID": [ORG]}
    if action.startswith("dynamodb:"):
        found = {"dynamodb:Attributes": attributes(params)}
        if action == "dynamodb:GetItem":
            found["dynamodb:Select"] = ["SPECIFIC_ATTRIBUTES" if "ProjectionExpression" in params else "ALL_ATTRIBUTES"]
        else:
            found["dynamodb:ReturnValues"] = [params.get("ReturnValues", "NONE")]
        return found
    return found


def many(value):
    return value if isinstance(value, list) else [value]


def holds(operator, wanted, values):
    """One condition. values: of the call, None: it has no such key."""
    every = operator.startswith("ForAllValues:")
    name = operator.split(":")[-1]
    if values is None:
        return every or name.endswith("IfExists")
    name = name.replace("IfExists", "")
    match = {"StringEquals": lambda v, w: v == w, "ArnEquals": fnmatch.fnmatchcase, "StringLike": fnmatch.fnmatchcase}[name]  # another one is none that deploy/aws has: a KeyError
    return all(any(match(v, w) for w in many(wanted)) for v in values) if every else any(match(v, w) for v in values for w in many(wanted))


def allows(statements, action, params, tags=None):
    """None, or what of the call no statement allows. tags: of what it is about, which may not be there."""
    facts, about = context(action, params, tags or {}), find(action)
    fit = [s for s in statements if any(fnmatch.fnmatchcase(action.lower(), a.lower()) for a in many(s["Action"]))]
    if not about:
        return None if fit else action
    fit = [s for s in fit if all(holds(operator, wanted, facts.get(key)) for operator, keys in s.get("Condition", {}).items() for key, wanted in keys.items())]
    for arn in about(params):
        if not any(fnmatch.fnmatchcase(arn, pattern) for s in fit for pattern in many(s["Resource"])):
            return "%s on %s with %s" % (action, arn, facts)
    return None
