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
}


def find(action):
    return RESOURCES.get(action, RESOURCES.get(action.split(":")[0]))


def attributes(params):
    """Of a DynamoDB item, that a call names: its key, and what its expressions have in them."""
    renamed = params.get("ExpressionAttributeNames", {})
    text = " ".join(params.get(name, "") for name in ("ProjectionExpression", "UpdateExpression", "ConditionExpression"))
    words = set(re.findall(r"(?<![:\w])#?[A-Za-z_]\w*(?!\w*\()", text)) - {"SET", "REMOVE", "AND", "OR", "NOT"}
    return sorted({renamed.get(word, word) for word in words} | set(params.get("Key", {})))


def context(action, params):
    """The keys that a call has."""
    if action == "sts:AssumeRole":
        return {"aws:ResourceOrgID": [ORG]}
    if action.startswith("dynamodb:"):
        found = {"dynamodb:Attributes": attributes(params)}
        if action == "dynamodb:GetItem":
            found["dynamodb:Select"] = ["SPECIFIC_ATTRIBUTES" if "ProjectionExpression" in params else "ALL_ATTRIBUTES"]
        else:
            found["dynamodb:ReturnValues"] = [params.get("ReturnValues", "NONE")]
        return found
    return {}


def many(value):
    return value if isinstance(value, list) else [value]


def holds(operator, wanted, values):
    """One condition. values: of the call, None: it has no such key."""
    every = operator.startswith("ForAllValues:")
    name = operator.split(":")[-1]
    if values is None:
        return every or name.endswith("IfExists")
    name = name.replace("IfExists", "")
    match = {"StringEquals": lambda v, w: v == w, "StringLike": fnmatch.fnmatchcase}[name]  # another one is none that deploy/aws has: a KeyError
    return all(any(match(v, w) for w in many(wanted)) for v in values) if every else any(match(v, w) for v in values for w in many(wanted))


def allows(statements, action, params):
    """None, or what of the call no statement allows."""
    facts, about = context(action, params), find(action)
    fit = [s for s in statements if any(fnmatch.fnmatchcase(action.lower(), a.lower()) for a in many(s["Action"]))]
    if not about:
        return None if fit else action
    fit = [s for s in fit if all(holds(operator, wanted, facts.get(key)) for operator, keys in s.get("Condition", {}).items() for key, wanted in keys.items())]
    for arn in about(params):
        if not any(fnmatch.fnmatchcase(arn, pattern) for s in fit for pattern in many(s["Resource"])):
            return "%s on %s with %s" % (action, arn, facts)
    return None
