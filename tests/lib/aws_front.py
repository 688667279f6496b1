# SPDX-License-Identifier: Apache-2.0
"""The strict front of tests/aws/front as a process, and moto behind it where it is there."""

import json
import re
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from aws.front import names
from lib.wait import until

TESTS = Path(__file__).resolve().parents[1]
# Which policy belongs to which role of the front's organisation.
ROLES = {"task": names.TASK_ROLE, "task-credentials": names.TASK_ROLE, "instances": names.TASK_ROLE, "intermediate": names.INTERMEDIATE_ROLE,
         "intermediate-credentials": names.INTERMEDIATE_ROLE, "management": names.ORG_ROLE, "identity-center": names.IDC_ROLE,
         "sandbox": names.SANDBOX_ROLE}


# What stands for {NAME} in the policies, in the front's organisation. Names that tests give as they like are open.
VALUES = {"AWS_REGION": names.REGION, "HUB_ACCOUNT_ID": names.HUB, "ORG_MGT_ACCOUNT_ID": names.MANAGEMENT, "ORGANIZATION_ID": names.ORG,
          "INTERMEDIATE_ROLE_ARN": names.INTERMEDIATE_ROLE, "ORG_MGT_ROLE_ARN": names.ORG_ROLE, "IDC_ROLE_ARN": names.IDC_ROLE,
          "SANDBOX_ACCOUNT_ROLE_NAME": names.SANDBOX_ROLE, "SANDBOX_OU_ID": names.SANDBOX_OU, "SANDBOX_CHILD_OU_ID": "ou-frnt-*",
          "LEASEHOLD_IDC_INSTANCE_ARN": names.INSTANCE_ARN, "LEASEHOLD_IDC_STORE_ID": names.STORE_ID, "ISB_NAMESPACE": names.NAMESPACE,
          "ACCOUNT_TABLE_NAME": "*", "LEASEHOLD_CODEBUILD_PROJECT": "cleaner", "ISB_EVENT_BUS": "*", "SCHEDULER_GROUP": "isb-billing-separator",
          "SNS_ALERT_TOPIC_ARN": "arn:aws:sns:%s:%s:*" % (names.REGION, names.HUB), "SCHEDULER_ROLE_ARN": "*", "KEY_ID": "*",
          "ACCOUNT_POOL_CONFIG_PARAM_ARN": "arn:aws:ssm:%s:%s:parameter/*" % (names.REGION, names.HUB), "LEASEHOLD_ENV": "test",
          "LEASEHOLD_TENANT_ROLE": "InnovationSandbox-front-Tenant", "LEASEHOLD_CREDENTIALS_KEY_ARN": names.KEY,
          "LEASEHOLD_DB_ADMIN_SECRET": names.DB_ADMIN_SECRET, "SECRET_NAME": "leasehold/smtp",
          "LEASEHOLD_EFS_ID": names.FILE_SYSTEM, "LEASEHOLD_ECS_CLUSTER": names.CLUSTER, "LEASEHOLD_LISTENER_ARN": names.LISTENER,
          "LEASEHOLD_EXECUTION_ROLE_ARN": names.EXECUTION_ROLE, "LEASEHOLD_TASK_ROLE_ARN": names.SITE_ROLE}
QUEUES = ["guard", "trail", "q"]  # further queues of tests, beside those with their real names


def statements():
    """What each role may, by deploy/aws."""
    got = {}
    for name, arn in ROLES.items():
        text = (TESTS.parent / "deploy/aws" / (name + ".json")).read_text()
        document = json.loads(re.sub(r"\{([A-Z_]+)\}", lambda m: VALUES.get(m.group(1), "*"), text))
        for statement in document["Statement"]:
            if statement["Sid"] == "QueuesIn":
                statement["Resource"] += ["arn:aws:sqs:%s:%s:%s" % (names.REGION, names.HUB, queue) for queue in QUEUES]
        got.setdefault(names.role_name(arn) if "/" in arn else arn, []).extend(document["Statement"])
    return got


def policies():
    """The actions alone."""
    return {role: sorted({a for s in found for a in actions_of(s)}) for role, found in statements().items()}


def actions_of(statement):
    actions = statement["Action"]
    return [actions] if isinstance(actions, str) else actions


class Front:
    def __init__(self, *args):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(["/usr/bin/python3", "-m", "aws.front", *args], cwd=TESTS, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            self.process.wait(10)
            self.errors.seek(0)
            raise AssertionError("the front does not start: %s" % self.errors.read().decode())

    # To the front itself.

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request("%s/_front/%s" % (self.url, path), data), timeout=60) as got:
                return json.load(got)
        except urllib.error.HTTPError as e:
            raise AssertionError(e.read().decode()) from e

    def log(self, service=None, operation=None, since=0):
        return [e for e in self.ask("log?since=%d" % since) if service in (None, e["service"]) and operation in (None, e["operation"])]

    def count(self):
        """How many requests have come so far."""
        return self.ask("count")

    def calls(self, since=0):
        return ["%s:%s" % (e["service"], e["operation"]) for e in self.log(since=since)]

    def state(self, service):
        return self.ask(service)

    def do(self, service, what, **members):
        return self.ask("machine", {"service": service, "do": what, "with": members})["result"]

    def fault(self, kind, service=None, operation=None, role=None, **more):
        """See front/faults.py. Answers the number of the rule."""
        where = {k: v for k, v in (("service", service), ("operation", operation), ("role", role)) if v is not None}
        return self.ask("fault", {"kind": kind, "where": where, **more})["result"]

    def faults(self):
        return self.ask("faults")

    def hits(self, number):
        return next(f["hits"] for f in self.faults() if f["number"] == number)

    def is_holding(self, number):
        return next(f["holding"] for f in self.faults() if f["number"] == number) > 0

    def wait_held(self, number, timeout=60):
        until(lambda: self.is_holding(number), "a request is held", timeout)

    def release(self, number=None):
        self.ask("release", {"number": number} if number else {})

    def clear(self):
        self.ask("clear", {})

    def reset(self):
        self.ask("reset", {})

    def advance(self, seconds):
        return self.ask("clock", {"add": seconds})["result"]

    def broken(self):
        """Requests that no client may send, and those that no policy of deploy/aws allows."""
        return [e for e in self.log() if e["broken"]] + self.state("sts")["outside"]

    # For a program under test.

    def credentials(self):
        return {"AWS_ACCESS_KEY_ID": names.TASK_KEY, "AWS_SECRET_ACCESS_KEY": names.TASK_SECRET, "AWS_SESSION_TOKEN": names.TASK_TOKEN}

    def env(self):
        """Everything that Leasehold needs to work on this organisation."""
        return {**self.credentials(), "AWS_ENDPOINT_URL": self.url, "AWS_REGION": names.REGION, "AWS_EC2_METADATA_DISABLED": "true",
                "LEASEHOLD_CLOUD": "aws", "INTERMEDIATE_ROLE_ARN": names.INTERMEDIATE_ROLE, "ORG_MGT_ROLE_ARN": names.ORG_ROLE,
                "IDC_ROLE_ARN": names.IDC_ROLE, "SANDBOX_ACCOUNT_ROLE_NAME": names.SANDBOX_ROLE, "SANDBOX_OU_ID": names.SANDBOX_OU,
                "ISB_NAMESPACE": names.NAMESPACE, "ORG_MGT_ACCOUNT_ID": names.MANAGEMENT, "IDC_ACCOUNT_ID": names.IDC, "HUB_ACCOUNT_ID": names.HUB}

    def client(self, service, role=None, region=names.REGION, **more):
        """botocore's own. Without a role: a person with all rights in the management account."""
        import botocore.config
        import botocore.session

        keys = {"aws_access_key_id": names.USER_KEY, "aws_secret_access_key": names.USER_SECRET}
        if role == "task":
            keys = {"aws_access_key_id": names.TASK_KEY, "aws_secret_access_key": names.TASK_SECRET, "aws_session_token": names.TASK_TOKEN}
        config = botocore.config.Config(retries={"max_attempts": 0}, **more)
        return botocore.session.Session().create_client(service, region_name=region, endpoint_url=self.url, config=config, **keys)

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()
        self.errors.seek(0)
        said = self.errors.read().decode()
        self.errors.close()
        assert not said, said
