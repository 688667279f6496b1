# SPDX-License-Identifier: Apache-2.0
"""The service models of botocore, read when they are first needed, with the members that Debian's release is too old for (newer.json).

SQS speaks two protocols: its model here is that of the query protocol; the one for JSON is made of it."""

import copy
import json
from pathlib import Path

from botocore.loaders import Loader
from botocore.model import ServiceModel

# Model, as it signs, and what IAM calls it.
SERVICES = {
    "organizations": ("organizations", "organizations"),
    "sts": ("sts", "sts"),
    "sso-admin": ("sso", "sso"),
    "identitystore": ("identitystore", "identitystore"),
    "ce": ("ce", "ce"),
    "codebuild": ("codebuild", "codebuild"),
    "sqs": ("sqs", "sqs"),
    "events": ("events", "events"),
    "sns": ("sns", "sns"),
    "sesv2": ("ses", "ses"),
    "secretsmanager": ("secretsmanager", "secretsmanager"),
    "ssm": ("ssm", "ssm"),
    "scheduler": ("scheduler", "scheduler"),
    "iam": ("iam", "iam"),
    "dynamodb": ("dynamodb", "dynamodb"),
    "ecs": ("ecs", "ecs"),
    "cognito-idp": ("cognito-idp", "cognito-idp"),
    "logs": ("logs", "logs"),
    "resourcegroupstaggingapi": ("tagging", "tag"),
    "elbv2": ("elasticloadbalancing", "elasticloadbalancing"),
    "efs": ("elasticfilesystem", "elasticfilesystem"),
}

# Where the action of IAM is not the operation. None: no permission is needed.
ACTIONS = {
    ("sts", "GetCallerIdentity"): None,
    ("sqs", "DeleteMessageBatch"): "sqs:DeleteMessage",
    ("sqs", "SendMessageBatch"): "sqs:SendMessage",
    ("sqs", "ChangeMessageVisibilityBatch"): "sqs:ChangeMessageVisibility",
    ("dynamodb", "TransactWriteItems"): "dynamodb:PutItem",
}

loader = Loader()
newer = json.loads(Path(__file__).with_name("newer.json").read_text())
known = {}


def merge(into, more):
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict) and "type" not in value:
            merge(into[key], value)
        else:
            into[key] = value


def load(name):
    """ServiceModels of a service by protocol."""
    if name not in known:
        raw = loader.load_service_model(name, "service-2")
        merge(raw, copy.deepcopy(newer.get(name, {})))
        made = {raw["metadata"]["protocol"]: ServiceModel(raw, name)}
        if name == "sqs":
            made["json"] = ServiceModel(json_twin(raw), name)
        known[name] = made  # whole: other threads look here meanwhile
    return known[name]


def json_twin(raw):
    twin = copy.deepcopy(raw)
    twin["metadata"].update(protocol="json", jsonVersion="1.0", targetPrefix="AmazonSQS")

    def strip(node):
        if isinstance(node, dict):
            for word in ("locationName", "flattened"):
                if isinstance(node.get(word), (str, bool)):
                    del node[word]
            for value in node.values():
                strip(value)
        elif isinstance(node, list):
            for value in node:
                strip(value)

    strip(twin["shapes"])
    for operation in twin["operations"].values():
        operation.get("output", {}).pop("resultWrapper", None)
    return twin


def by_target(prefix):
    """The JSON service with this prefix of X-Amz-Target."""
    return TARGETS.get(prefix)


TARGETS = {
    "AWSOrganizationsV20161128": "organizations",
    "AWSInsightsIndexService": "ce",
    "SWBExternalService": "sso-admin",
    "AWSIdentityStore": "identitystore",
    "secretsmanager": "secretsmanager",
    "CodeBuild_20161006": "codebuild",
    "AmazonSSM": "ssm",
    "AmazonSQS": "sqs",
    "AWSEvents": "events",
    "DynamoDB_20120810": "dynamodb",
    "AmazonEC2ContainerServiceV20141113": "ecs",
    "AWSCognitoIdentityProviderService": "cognito-idp",
    "Logs_20140328": "logs",
    "ResourceGroupsTaggingAPI_20170126": "resourcegroupstaggingapi",
}
QUERY = {"sts", "sns", "iam", "sqs", "elbv2"}
REST = {"scheduler", "sesv2", "efs"}


def by_signed_name(signed, names):
    return [name for name in sorted(names) if SERVICES[name][0] == signed]


def action(service, operation):
    """What IAM calls it."""
    return ACTIONS.get((service, operation), "%s:%s" % (SERVICES[service][1], operation))
