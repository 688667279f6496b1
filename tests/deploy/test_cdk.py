# SPDX-License-Identifier: Apache-2.0
"""The stacks of deploy/cdk: synthesized without a network, held against the program, tried on moto. Slow: `make check-deploy` runs it.

What moto does not know (policies of queues, alarms, most of what a service needs) it leaves out and says nothing: that templates are right is shown by the tests
in deploy/cdk/test, which run here too, by cdk-nag and by cfn-lint."""

import json
import os
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest

from lib import guard, moto
from lib.guard import Guarded
from lib.server import ADMIN_TOKEN, binary, clean_env
from lib.wait import until

ROOT = Path(__file__).resolve().parents[2]
CDK = ROOT / "deploy/cdk"
MOTO_ACCOUNT = "123456789012"
pytestmark = pytest.mark.skipif("LEASEHOLD_DEPLOY" not in os.environ, reason="make check-deploy runs it")
needs_moto = pytest.mark.skipif(not moto.version(), reason="D6, D7, D8 and D29 were NOT tried: the first python3 on PATH has no moto (pip install moto[server])")


def run(*args, code=0, **kw):
    got = subprocess.run([str(a) for a in args], capture_output=True, text=True, stdin=subprocess.DEVNULL, **kw)
    assert got.returncode == code, (args, got.returncode, got.stdout[-3000:], got.stderr[-3000:])
    return got


@pytest.fixture(scope="module")
def app():
    installed = CDK / "node_modules/.package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (CDK / "package-lock.json").stat().st_mtime:
        run("npm", "ci", "--no-audit", "--no-fund", "--silent", cwd=CDK)
    run("npx", "tsc", cwd=CDK)


@pytest.fixture(scope="module")
def synthesize(app, tmp_path_factory):
    """Calls the app as the CLI does, in a network of its own with nothing in it."""

    def go(name, **change):
        folder = tmp_path_factory.mktemp("stacks")
        context = {**json.loads((CDK / "cdk.json").read_text())["context"], **json.loads((CDK / "test" / (name + ".json")).read_text()), **change}
        env = {**os.environ, "CDK_CONTEXT_JSON": json.dumps(context), "CDK_OUTDIR": str(folder)}
        run("unshare", "-rn", "node", "build/bin/leasehold.js", cwd=CDK, env=env)
        return {p.name.split(".")[0]: json.loads(p.read_text()) for p in folder.glob("*.template.json")}, folder

    return go


@pytest.fixture(scope="module")
def templates(synthesize):
    return {name: synthesize(name) for name in ("prod", "dev", "whole")}


def test_the_tests_of_the_stacks_pass(app):
    got = subprocess.run(["npm", "test"], capture_output=True, text=True, cwd=CDK, check=False)
    failed = [line for line in got.stdout.splitlines() if line.startswith("not ok")]
    assert got.returncode == 0 and not failed, (failed, got.stdout[-2000:], got.stderr[-2000:])


def test_d1_every_stack_is_synthesized_without_a_network(templates):
    assert sorted(templates["prod"][0]) == sorted(
        ["LeaseholdPipeline-prod", "LeaseholdData-prod", "LeaseholdService-prod", "LeaseholdInstances-prod", "isb-billing-sep-data-prod",
         "isb-billing-sep-hub-prod", "isb-billing-sep-org-prod"])
    assert len(templates["dev"][0]) == 5


def test_d2_the_app_names_all_problems_and_makes_nothing(app, tmp_path):
    env = {**os.environ, "CDK_CONTEXT_JSON": json.dumps({"env": "Prod!", "tasksMin": 1}), "CDK_OUTDIR": str(tmp_path / "out")}
    got = run("node", "build/bin/leasehold.js", cwd=CDK, env=env, code=2)
    for name in ("env", "tasksMin", "account", "region", "alertEmail", "imageDigest", "certificateArn", "allowedCidrs"):
        assert "\n  %s: " % name in got.stderr, got.stderr
    assert not list((tmp_path / "out").glob("*.template.json"))


def test_d3_cfn_lint_finds_nothing(templates):
    if not shutil.which("cfn-lint"):
        pytest.skip("there is no cfn-lint on PATH; Debian has none")
    for name, (_, folder) in templates.items():
        region = json.loads((CDK / "test" / (name + ".json")).read_text())["region"]
        # W3010: zones are those of the context. W3005: the library names a dependency twice.
        run("cfn-lint", "--regions", region, "--ignore-checks", "W3010", "W3005", "--", *sorted(folder.glob("*.template.json")))


def literal(value):
    """A value of a template without what only AWS knows."""
    return value if isinstance(value, str) else "unknown"


def environments(templates):
    for name, (stacks, _) in templates.items():
        for stack, template in stacks.items():
            for resource in template["Resources"].values():
                if resource["Type"] == "AWS::ECS::TaskDefinition":
                    container = resource["Properties"]["ContainerDefinitions"][0]
                    secrets = {s["Name"]: s["Name"].lower() + "-of-at-least-32-characters" for s in container["Secrets"]}
                    yield stack, {**{e["Name"]: literal(e["Value"]) for e in container["Environment"]}, **secrets}
                elif resource["Type"] == "AWS::Lambda::Function":
                    yield stack, {k: literal(v) for k, v in resource["Properties"]["Environment"]["Variables"].items()}


def test_d9_the_program_accepts_the_settings_of_every_task(templates):
    found = list(environments(templates))
    assert {stack for stack, _ in found} == {"%s-%s" % (stack, name) for stack in ("LeaseholdService", "isb-billing-sep-hub") for name in templates}
    for stack, env in found:
        got = run(binary(), "config", env=clean_env(env))
        assert "problems" not in got.stderr, (stack, got.stderr)


# On moto.


@pytest.fixture
def cloud():
    made = moto.Moto()
    made.client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="21", Type="String")  # what `cdk bootstrap` leaves
    yield made
    made.close()


def for_moto(template):
    """Without the network and what runs in it, dashboards, tags of keys, references to buses and imports: moto cannot make or remove them."""
    buses = {id: r["Properties"]["Name"] for id, r in template["Resources"].items() if r["Type"] == "AWS::Events::EventBus"}

    def change(value):
        if isinstance(value, list):
            return [change(v) for v in value]
        if not isinstance(value, dict):
            return value
        if value.get("Ref") in buses:
            return buses[value["Ref"]]
        if "Fn::ImportValue" in value:
            return "arn:aws:secretsmanager:us-east-1:%s:secret:imported" % MOTO_ACCOUNT
        return {k: change(v) for k, v in value.items() if k != "Tags" or value.get("EnableKeyRotation") is None}

    kept = {id: r for id, r in template["Resources"].items() if not r["Type"].startswith(("AWS::EC2::", "AWS::ECS::", "AWS::CloudWatch::"))}
    return json.dumps(change({**template, "Resources": kept}))


def create(cloud, name, template, account=None):
    client = cloud.client("cloudformation", account)
    client.create_stack(StackName=name, TemplateBody=for_moto(template), Capabilities=["CAPABILITY_NAMED_IAM"])
    assert client.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"
    return client


def store_check(cloud, code, **tables):
    env = clean_env({**cloud.env(), "LEASEHOLD_STORE": "dynamodb", "AWS_REGION": "us-east-1", "DDB_ENDPOINT_URL": cloud.url, **tables})
    got = subprocess.run([binary(), "store", "check"], capture_output=True, text=True, env=env, check=False)
    assert got.returncode == code, got
    return got.stdout + got.stderr


@needs_moto
def test_d6_the_program_accepts_the_tables_and_misses_an_index(cloud, templates):
    names = {"DDB_TABLE_NAME": "sandbox-broker-pool-dev", "LEASEHOLD_DDB_KERNEL_TABLE": "leasehold-kernel-dev"}
    create(cloud, "data", templates["dev"][0]["LeaseholdData-dev"])
    store_check(cloud, 0, **names)
    cloud.client("dynamodb").update_table(TableName="leasehold-kernel-dev", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "Index2"}}])
    assert "Index2" in store_check(cloud, 1, **names)


@pytest.fixture(scope="module")
def guards(synthesize):
    """Of the guard as a task, in moto's account, keeping its data."""
    change = {"env": "moto", "retain": True, "parts": ["guard"], "account": MOTO_ACCOUNT, "home": "fargate", "scheduler": "internal",
              "accountTableArn": "arn:aws:dynamodb:us-east-1:%s:table/accounts" % MOTO_ACCOUNT}
    return synthesize("dev", **change)[0], change


def guarded(make, **env):
    settings = {k: v for k, v in guard.ENV.items() if k != "LEASEHOLD_TIME_SCALE"}
    return Guarded(make.server(args=["--dev"], **{**settings, "ACCOUNT_TABLE_NAME": "sim", **env}))


def with_account(cloud, queue):
    """Moto's rule hands on what it got but for the account, which EventBridge always has: put in, in the queue itself. How many there were."""
    sqs, found = cloud.client("sqs"), []
    while got := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages"):
        for message in got:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            found.append(json.loads(message["Body"]))
    for event in found:
        sqs.send_message(QueueUrl=queue, MessageBody=json.dumps({"account": MOTO_ACCOUNT, **event}))
    return len(found)


@needs_moto
def test_d7_a_move_on_the_bus_is_held(cloud, guards, make):
    create(cloud, "hub", guards[0]["isb-billing-sep-hub-moto"])
    queue = cloud.client("sqs").get_queue_url(QueueName="isb-billing-sep-event-queue-moto")["QueueUrl"]
    g = guarded(make)
    account = g.accounts("Available")[0]
    ous = {o["name"]: o["id"] for o in g.world()["ous"]}
    assert g.server.stop() == 0
    detail = {"eventVersion": "1.08", "eventSource": "organizations.amazonaws.com", "eventName": "MoveAccount", "eventTime": "2026-11-16T17:00:00Z",
              "eventID": str(uuid.uuid4()),
              "requestParameters": {"accountId": account, "sourceParentId": ous["CleanUp"], "destinationParentId": ous["Available"]}}
    for d in ({**detail, "eventName": "TagResource"}, detail):
        sent = cloud.client("events").put_events(Entries=[{
            "EventBusName": "isb-billing-sep-bus-moto", "Source": "aws.organizations", "DetailType": "AWS API Call via CloudTrail", "Detail": json.dumps(d)}])
        assert sent["FailedEntryCount"] == 0
    assert with_account(cloud, queue) == 1, "the rule lets moves through, and nothing else"
    g.server.env.update(AWS_ENDPOINT_URL=cloud.url, AWS_REGION="us-east-1", LEASEHOLD_GUARD_QUEUE_URL=queue, **cloud.env())
    g = Guarded(g.server.start())
    g.wait_for(account, "QUARANTINE_COMPLETE", 120)
    assert g.place(account) == "Quarantine"


def everything(cloud, account=None):
    """What there is of a deployment, by name; without secrets, which moto removes whatever their policy says."""
    ask = lambda service: cloud.client(service, account)
    return sorted(ask("dynamodb").list_tables()["TableNames"]
                  + [u.rsplit("/", 1)[1] for u in ask("sqs").list_queues().get("QueueUrls", [])]
                  + [b["Name"] for b in ask("events").list_event_buses()["EventBuses"] if b["Name"] != "default"]
                  + [g["logGroupName"] for g in ask("logs").describe_log_groups()["logGroups"]]
                  + [t["TopicArn"].rsplit(":", 1)[1] for t in ask("sns").list_topics()["Topics"]])


@needs_moto
def test_d8_what_is_left_after_a_removal_is_what_is_documented(cloud, guards):
    stacks, _ = guards
    before = everything(cloud)
    client = None
    for name in ("isb-billing-sep-data-moto", "isb-billing-sep-hub-moto"):
        client = create(cloud, name, stacks[name])
    kept = ["/isb-billing-sep/moto", "isb-billing-sep-kernel-moto", "isb-billing-sep-pool-moto"]
    gone = ["isb-billing-sep-%s-moto" % name for name in ("alerts", "bus", "event-dlq", "event-queue", "rule-dlq")]
    assert everything(cloud) == sorted(before + kept + gone)
    for name in ("isb-billing-sep-hub-moto", "isb-billing-sep-data-moto"):
        client.delete_stack(StackName=name)
    assert everything(cloud) == sorted(before + kept)


# Removal, as the script does it: the program is real, the stacks are on moto.


class Removal:
    def __init__(self, cloud, guards, make, folder):
        stacks, change = guards
        self.cloud, self.folder, self.org = cloud, folder, "111111111111"
        create(cloud, "isb-billing-sep-hub-moto", stacks["isb-billing-sep-hub-moto"])
        create(cloud, "isb-billing-sep-org-moto", stacks["isb-billing-sep-org-moto"], self.org)
        self.file = folder / "moto.json"
        self.file.write_text(json.dumps({**json.loads((CDK / "test/dev.json").read_text()), **change}))
        self.guard = guarded(make)
        self.account = self.guard.accounts("Available")[0]
        self.guard.clean(self.account)
        self.guard.wait_for(self.account, "QUARANTINE_COMPLETE", 120)
        self.env = clean_env({**cloud.env(), "AWS_ENDPOINT_URL": cloud.url, "AWS_REGION": "us-east-1", "LEASEHOLD_BIN": binary(),
                    "LEASEHOLD_ADDRESS": self.guard.server.url, "BROKER_ADMIN_TOKEN": ADMIN_TOKEN, **self.profile()})

    def profile(self):
        got = self.cloud.client("sts").assume_role(RoleArn="arn:aws:iam::%s:role/x" % self.org, RoleSessionName="test")["Credentials"]
        config = self.folder / "aws"
        config.write_text("[profile org]\nregion = us-east-1\naws_access_key_id = %s\naws_secret_access_key = %s\naws_session_token = %s\n" % (
            got["AccessKeyId"], got["SecretAccessKey"], got["SessionToken"]))
        return {"AWS_CONFIG_FILE": str(config), "AWS_SHARED_CREDENTIALS_FILE": str(self.folder / "none"), "LEASEHOLD_ORG_PROFILE": "org"}

    def leasehold(self, *args, code=0):
        return run(binary(), *args, env=self.env, code=code)

    def remove(self, *args, env="moto", code=0):
        return run(CDK / "remove", self.file, env, *args, env=self.env, code=code)

    def stacks(self):
        return [s["StackName"] for account in (None, self.org) for s in self.cloud.client("cloudformation", account).describe_stacks()["Stacks"]]


@pytest.fixture
def removal(app, cloud, guards, make, tmp_path):
    return Removal(cloud, guards, make, tmp_path)


@needs_moto
def test_d29_with_open_holds_nothing_is_removed(removal):
    got = removal.remove(code=7)
    assert "holds that end by themselves: 1" in got.stdout and "nothing was removed" in got.stderr
    assert "is of env 'moto', not 'prod'" in removal.remove(env="prod", code=2).stderr
    assert len(removal.stacks()) == 2


@needs_moto
def test_d29_once_holds_are_released_the_stacks_go(removal):
    removal.leasehold("hold", "drain", "release", "--yes", "--reason", "replaced")
    until(lambda: removal.guard.place(removal.account) == "Available", "it is back", 120)
    until(lambda: removal.guard.ops.read("holds/safe-to-remove")["safe"], "nothing is under way", 120)
    said = removal.remove().stdout
    assert removal.stacks() == []
    assert said.rstrip().endswith("isb-billing-sep-data-moto")


@needs_moto
def test_d29_with_messages_in_a_queue_nothing_is_removed(removal):
    removal.leasehold("hold", "drain", "hand-over", "--yes", "--reason", "replaced")
    sqs = removal.cloud.client("sqs")
    dead = sqs.get_queue_url(QueueName="isb-billing-sep-event-dlq-moto")["QueueUrl"]
    sqs.send_message(QueueUrl=dead, MessageBody="{}")
    assert "The queue isb-billing-sep-event-dlq-moto has messages (1)" in removal.remove(code=7).stderr
    assert len(removal.stacks()) == 2
    removal.env["LEASEHOLD_DROP_MESSAGES"] = "1"
    removal.remove()
    assert removal.stacks() == []


@needs_moto
def test_d29_the_stack_of_the_management_account_can_be_left_to_its_owner(removal):
    removal.leasehold("hold", "drain", "hand-over", "--yes", "--reason", "replaced")
    removal.env["LEASEHOLD_ORG_BY_HAND"] = "1"
    assert removal.remove().stdout.rstrip().endswith("isb-billing-sep-data-moto\n  isb-billing-sep-org-moto")
    assert removal.stacks() == ["isb-billing-sep-org-moto"]


@needs_moto
def test_d29_handed_over_they_go_and_a_list_of_the_accounts_stays(removal):
    removal.remove("--hand-over", removal.folder / "holds.csv")
    assert removal.stacks() == []
    assert removal.account in (removal.folder / "holds.csv").read_text()
    assert removal.guard.place(removal.account) == "Quarantine", "nothing was moved"
    assert "exists already" in removal.remove("--hand-over", removal.folder / "holds.csv", code=2).stderr
