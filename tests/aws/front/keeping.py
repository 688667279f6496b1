# SPDX-License-Identifier: Apache-2.0
"""Secrets Manager, the parameters of SSM, the inline policies of IAM, and as much of DynamoDB as the account table of another system takes."""

import json
import re

from aws.front.machine import Machine
from aws.front.names import HUB, REGION


class SecretsManager(Machine):
    def reset(self):
        self.secrets = {}

    def show(self):
        return {name: {"value": s["value"], "tags": s["tags"], "policy": s["policy"], "deleted": s["deleted"], "versions": len(s["tokens"]),
                       "account": s["account"], "key": s["key"]} for name, s in self.secrets.items()}

    # For the tests.

    def ctl_put(self, name, value, tags=None):
        self.secrets[name] = {"value": value, "tags": tags or {}, "policy": None, "deleted": None, "tokens": {self.world.uuid(): value},
                              "created": self.now(), "account": HUB, "key": None}

    def ctl_delete(self, name):
        """Into its recovery window."""
        self.secrets[name]["deleted"] = self.now()

    def ctl_read(self, name, account):
        """What somebody of this account gets, whom a policy of their own lets read it. AWS's own key is for the secret's account alone."""
        secret = self.secrets[name]
        if account != secret["account"]:
            if account not in [s["Principal"]["AWS"] for s in json.loads(secret["policy"] or '{"Statement": []}')["Statement"]]:
                return "AccessDeniedException: no resource-based policy allows the secretsmanager:GetSecretValue action"
            if not secret["key"]:
                return "InvalidRequestException: You can't access a secret from a different AWS account if you encrypt the secret with the default KMS key."
        return secret["value"]

    # What is so.

    def arn(self, name):
        return "arn:aws:secretsmanager:%s:%s:secret:%s-AbCdEf" % (REGION, self.secrets[name]["account"] if name in self.secrets else HUB, name)

    def all_tags(self):
        return [(self.arn(name), s["tags"]) for name, s in self.secrets.items() if s["deleted"] is None]

    def find(self, id, deleted_too=False):
        name = re.sub(r"-AbCdEf$", "", id.split(":secret:")[-1])
        if name not in self.secrets:
            self.fail("ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
        if self.secrets[name]["deleted"] is not None and not deleted_too:
            self.fail("InvalidRequestException", "You can't perform this operation on the secret because it was marked for deletion.")
        return name

    def put(self, name, params):
        secret, token = self.secrets[name], params.get("ClientRequestToken", self.world.uuid())
        value = params.get("SecretString")
        if secret["tokens"].get(token, value) != value:
            self.fail("ResourceExistsException", "You can't use ClientRequestToken %s because that value is already in use" % token)
        secret["tokens"][token] = value
        secret["value"] = value
        return {"ARN": self.arn(name), "Name": name, "VersionId": token}

    # Operations.

    def CreateSecret(self, params, request):
        name = params["Name"]
        if not re.fullmatch(r"[\w/+=.@-]{1,512}", name):
            self.fail("ValidationException", "Invalid name. Must be a valid name containing alphanumeric characters, or any of: -/_+=.@!")
        if name in self.secrets:
            if self.secrets[name]["deleted"] is not None:
                self.fail("InvalidRequestException", "You can't create this secret because a secret with this name is already scheduled for deletion.")
            token = params.get("ClientRequestToken")
            if self.secrets[name]["tokens"].get(token) != params.get("SecretString"):
                self.fail("ResourceExistsException", "The operation failed because the secret %s already exists." % name)
            return {"ARN": self.arn(name), "Name": name, "VersionId": token}
        self.secrets[name] = {"value": None, "tags": {t["Key"]: t["Value"] for t in params.get("Tags", [])}, "policy": None, "deleted": None,
                              "tokens": {}, "created": self.now(), "account": request.principal["account"], "key": params.get("KmsKeyId")}
        return self.put(name, params)

    def PutSecretValue(self, params, _request):
        return {**self.put(self.find(params["SecretId"]), params), "VersionStages": ["AWSCURRENT"]}

    def GetSecretValue(self, params, _request):
        name = self.find(params["SecretId"])
        return {"ARN": self.arn(name), "Name": name, "SecretString": self.secrets[name]["value"], "VersionStages": ["AWSCURRENT"],
                "VersionId": list(self.secrets[name]["tokens"])[-1], "CreatedDate": self.time(self.secrets[name]["created"])}

    def DescribeSecret(self, params, _request):
        name = self.find(params["SecretId"], True)
        secret = self.secrets[name]
        got = {"ARN": self.arn(name), "Name": name, "Tags": [{"Key": k, "Value": v} for k, v in secret["tags"].items()],
               "CreatedDate": self.time(secret["created"])}
        if secret["deleted"] is not None:
            got["DeletedDate"] = self.time(secret["deleted"])
        return got

    def DeleteSecret(self, params, _request):
        name = self.find(params["SecretId"], params.get("ForceDeleteWithoutRecovery", False))
        arn = self.arn(name)
        if params.get("ForceDeleteWithoutRecovery"):
            if "RecoveryWindowInDays" in params:
                self.fail("InvalidParameterException", "You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.")
            del self.secrets[name]
        else:
            self.secrets[name]["deleted"] = self.now()
        return {"ARN": arn, "Name": name, "DeletionDate": self.time()}

    def RestoreSecret(self, params, _request):
        name = self.find(params["SecretId"], True)
        self.secrets[name]["deleted"] = None
        return {"ARN": self.arn(name), "Name": name}

    def PutResourcePolicy(self, params, _request):
        name = self.find(params["SecretId"])
        try:
            json.loads(params["ResourcePolicy"])
        except ValueError:
            self.fail("MalformedPolicyDocumentException", "This resource policy contains invalid Json")
        self.secrets[name]["policy"] = params["ResourcePolicy"]
        return {"ARN": self.arn(name), "Name": name}

    def TagResource(self, params, _request):
        self.secrets[self.find(params["SecretId"])]["tags"].update({t["Key"]: t["Value"] for t in params["Tags"]})
        return {}

    def ListSecrets(self, params, _request):
        found = []
        for name, secret in sorted(self.secrets.items()):
            if secret["deleted"] is None and all(self.has(name, secret, f) for f in params.get("Filters", [])):
                found.append({"ARN": self.arn(name), "Name": name, "Tags": [{"Key": k, "Value": v} for k, v in secret["tags"].items()]})
        return self.page(found, params, 100, name="SecretList")

    @staticmethod
    def has(name, secret, rule):
        known = {"name": [name], "tag-key": list(secret["tags"]), "tag-value": list(secret["tags"].values())}[rule["Key"]]
        return any(text.startswith(value) for value in rule["Values"] for text in known)


class Ssm(Machine):
    def reset(self):
        self.parameters = {}

    def show(self):
        return self.parameters

    def ctl_put(self, name, value):
        self.parameters[name] = value

    def GetParameter(self, params, _request):
        name = params["Name"].split(":parameter", 1)[-1]
        if name not in self.parameters:
            self.fail("ParameterNotFound", "")
        return {"Parameter": {"Name": name, "Type": "String", "Value": self.parameters[name], "Version": 1, "DataType": "text",
                              "ARN": "arn:aws:ssm:%s:%s:parameter%s" % (REGION, HUB, name), "LastModifiedDate": self.time()}}


class Iam(Machine):
    def reset(self):
        self.policies = {}

    def show(self):
        return {"policies": [{"account": a, "role": r, "name": n, "document": d} for (a, r, n), d in self.policies.items()]}

    def PutRolePolicy(self, params, request):
        try:
            json.loads(params["PolicyDocument"])
        except ValueError:
            self.fail("MalformedPolicyDocument", "Syntax errors in policy.")
        self.policies[request.principal["account"], params["RoleName"], params["PolicyName"]] = params["PolicyDocument"]
        return {}

    def DeleteRolePolicy(self, params, request):
        if self.policies.pop((request.principal["account"], params["RoleName"], params["PolicyName"]), None) is None:
            self.fail("NoSuchEntity", "The role policy with name %s cannot be found." % params["PolicyName"], 404)
        return {}

    def ListAccountAliases(self, _params, request):
        return {"AccountAliases": ["sandbox-" + request.principal["account"]], "IsTruncated": False}


class DynamoDb(Machine):
    """One table whose key is awsAccountId. Conditions and updates as account_table.c writes them, no others."""

    def reset(self):
        self.tables = {}

    def show(self):
        return self.tables

    def ctl_add_table(self, name, items=None):
        """items: status by account id."""
        self.tables[name] = {}
        self.ctl_add_items(name, items or {})

    def ctl_add_items(self, name, items):
        self.tables[name].update({id: {"awsAccountId": {"S": id}, "status": {"S": status}} for id, status in items.items()})

    def ctl_set_status(self, table, account, status):
        self.tables[table].setdefault(account, {"awsAccountId": {"S": account}})["status"] = {"S": status}

    def table(self, params):
        if params["TableName"] not in self.tables:
            self.fail("ResourceNotFoundException", "Requested resource not found")
        if set(params["Key"]) != {"awsAccountId"}:
            self.fail("ValidationException", "The provided key element does not match the schema")
        return self.tables[params["TableName"]], params["Key"]["awsAccountId"]["S"]

    def GetItem(self, params, _request):
        table, key = self.table(params)
        item = table.get(key)
        if item is None:
            return {}
        names = params.get("ExpressionAttributeNames", {})
        asked = [names.get(w.strip(), w.strip()) for w in params["ProjectionExpression"].split(",")] if "ProjectionExpression" in params else list(item)
        return {"Item": {k: v for k, v in item.items() if k in asked}}

    def holds(self, params, item):
        rule = params.get("ConditionExpression")
        if rule is None:
            return True
        found = re.fullmatch(r"(#?\w+) = (:\w+)", rule)
        if not found:
            self.fail("ValidationException", "the front does not know this condition: " + rule)
        name = params.get("ExpressionAttributeNames", {}).get(found.group(1), found.group(1))
        return item is not None and item.get(name) == params["ExpressionAttributeValues"][found.group(2)]

    def UpdateItem(self, params, _request):
        table, key = self.table(params)
        if not self.holds(params, table.get(key)):
            self.fail("ConditionalCheckFailedException", "The conditional request failed")
        found = re.fullmatch(r"SET (#?\w+) = (:\w+)", params["UpdateExpression"])
        if not found:
            self.fail("ValidationException", "the front does not know this update: " + params["UpdateExpression"])
        name = params.get("ExpressionAttributeNames", {}).get(found.group(1), found.group(1))
        table.setdefault(key, {"awsAccountId": {"S": key}})[name] = params["ExpressionAttributeValues"][found.group(2)]
        return {}

    def DeleteItem(self, params, _request):
        table, key = self.table(params)
        if not self.holds(params, table.get(key)):
            self.fail("ConditionalCheckFailedException", "The conditional request failed")
        table.pop(key, None)
        return {}
