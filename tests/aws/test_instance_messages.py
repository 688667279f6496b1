# SPDX-License-Identifier: Apache-2.0
"""Instances by queue: every command of the document in, every completion out, what the container service says, with the figures of the document's queues."""

import json

import pytest

from lib.ops import Ops
from lib.server import ADMIN_TOKEN
from lib.wait import until

# The document's queues: visibility in seconds, days that messages are kept.
QUEUES = {"provision": (900, 4), "lifecycle": (300, 4), "deprovision": (900, 14), "tenant-events": (30, 4), "ecs": (60, 4)}
DAY = 86400


def real_name(name):
    """As in the policy of the role that reads and writes it."""
    return {"tenant-events": "bbws-tenant-events-test", "ecs": "leasehold-ecs-test"}.get(name, "bbws-instance-%s-test" % name)


ACME = {"organizationName": "Acme", "contactEmail": "it@acme.example"}


class Queues:
    """A server whose tenants are commanded by queues of the front."""

    def __init__(self, front, make, **env):
        self.front, self.make, self.count = front, make, 0
        settings = {**front.credentials(), "AWS_ENDPOINT_URL": front.url, **env}
        for name, (visibility, days) in QUEUES.items():
            attributes = {"VisibilityTimeout": str(visibility), "MessageRetentionPeriod": str(days * DAY)}
            if name != "tenant-events":
                front.do("sqs", "add_queue", name=real_name(name) + "-dead", MessageRetentionPeriod=str(14 * DAY))
                attributes["RedrivePolicy"] = json.dumps({"deadLetterTargetArn": "arn:aws:sqs:us-east-1:100000000002:%s-dead" % real_name(name), "maxReceiveCount": 3})
            settings["LEASEHOLD_%s_QUEUE_URL" % name.replace("-", "_").upper()] = front.do("sqs", "add_queue", name=real_name(name), **attributes)
        self.server = make.server(count=1, args=["--dev"], **settings)
        self.client = self.server.client({"Authorization": "Bearer " + ADMIN_TOKEN})

    def queue(self, name, suffix=""):
        return self.front.state("sqs")[real_name(name) + suffix]

    def send(self, queue, kind, tenant, correlation=None, **more):
        """Answers the correlation id."""
        self.count += 1
        correlation = correlation or "c-%d" % self.count
        self.front.do("sqs", "put", name=real_name(queue), body=json.dumps({
            "eventType": kind, "tenantId": tenant, "timestamp": "2026-11-16T17:00:00Z", "requestedBy": "ann@example.com", "correlationId": correlation, **more}))
        return correlation

    def told(self, correlation=None):
        """The completions so far, oldest first."""
        events = [json.loads(m["body"]) for m in self.queue("tenant-events")["messages"]]
        return [e for e in events if correlation in (None, e["correlationId"])]

    def completes(self, correlation):
        return until(lambda: self.told(correlation), "%s is completed" % correlation, 180)[0]

    def show(self, tenant):
        got = self.client.get("/v1.0/tenants/-/instances/" + tenant)
        return got.json if got.status == 200 else None

    def is_taken(self):
        return all(not self.queue(name)["messages"] for name in QUEUES if name != "tenant-events")

    def dead(self):
        found = {name: self.queue(name, "-dead")["messages"] for name in QUEUES if name != "tenant-events"}
        return {name: messages for name, messages in found.items() if messages}


@pytest.fixture
def queues(front, make):
    return Queues(front, make)


def test_every_command_is_done_and_its_end_is_told(front, make):
    queues = Queues(front, make, LEASEHOLD_METRICS_EMF="true")
    done = queues.completes(queues.send("provision", "START_CLUSTER_CREATION", "tenant-acme", **ACME))
    assert (done["eventType"], done["tenantId"], done["status"]) == ("CLUSTER_CREATION_COMPLETE", "tenant-acme", "SUCCESS")
    assert set(done["resources"]) == {"ecsServiceArn", "efsAccessPointId", "cognitoUserPoolId"} and all(done["resources"].values())
    assert done["instanceId"].startswith("inst-") and done["timestamp"].endswith("Z")
    for queue, kind, more, event, status in [
        ("lifecycle", "SUSPEND_CLUSTER", {"reason": "unpaid"}, "CLUSTER_SUSPEND_COMPLETE", "SUSPENDED"),
        ("lifecycle", "RESUME_CLUSTER", {}, "CLUSTER_RESUME_COMPLETE", "ACTIVE"),
        ("lifecycle", "START_CLUSTER_SCALE", {"desiredCount": 4}, "CLUSTER_SCALE_COMPLETE", "ACTIVE"),
        ("lifecycle", "START_CLUSTER_PARK", {"reason": "quiet"}, "CLUSTER_PARK_COMPLETE", "PARKED"),
        ("lifecycle", "START_CLUSTER_UNPARK", {}, "CLUSTER_UNPARK_COMPLETE", "ACTIVE"),
        ("deprovision", "START_CLUSTER_DELETION", {}, "CLUSTER_DELETION_COMPLETE", "DEPROVISIONED"),
    ]:
        done = queues.completes(queues.send(queue, kind, "tenant-acme", **more))
        assert (done["eventType"], done["status"]) == (event, "SUCCESS"), done
        assert queues.show("tenant-acme")["status"] == status
    assert len(queues.told()) == 7 and queues.dead() == {}
    until(queues.is_taken, "all messages are deleted", 60)
    figures = until(lambda: [f for f in (json.loads(line) for line in list(queues.server.lines) if '"_aws"' in line) if "ProvisioningDuration" in f],
                    "the figures of the minute", 180)[0]
    assert figures["ProvisioningSuccess"] == 100 and figures["ProvisioningFailures"] == 0 and figures["RollbackCount"] == 0
    assert figures["ProvisioningDuration"] > 0
    units = {m["Name"]: m["Unit"] for d in figures["_aws"]["CloudWatchMetrics"] if d["Namespace"] == "BBWS/Instance" for m in d["Metrics"]}
    assert units == {"ProvisioningSuccess": "Percent", "ProvisioningFailures": "Count", "RollbackCount": "Count", "ProvisioningDuration": "Seconds"}


def test_commands_of_one_tenant_are_done_in_their_order_those_of_others_beside_them(queues):
    wanted = [queues.send("provision", "START_CLUSTER_CREATION", "tenant-a", **ACME), queues.send("provision", "START_CLUSTER_CREATION", "tenant-b", **ACME)]
    for correlation in wanted:
        assert queues.completes(correlation)["status"] == "SUCCESS"
    sent = [queues.send("lifecycle", kind, "tenant-a", **more) for kind, more in (
        ("START_CLUSTER_SCALE", {"desiredCount": 3}), ("SUSPEND_CLUSTER", {}), ("RESUME_CLUSTER", {}))]
    for correlation in sent:
        assert queues.completes(correlation)["status"] == "SUCCESS"
    assert [e["correlationId"] for e in queues.told() if e["correlationId"] in sent] == sent


def test_a_command_that_comes_again_is_done_once(queues):
    correlation = queues.send("provision", "START_CLUSTER_CREATION", "tenant-acme", **ACME)
    queues.send("provision", "START_CLUSTER_CREATION", "tenant-acme", correlation, **ACME)
    queues.completes(correlation)
    queues.send("provision", "START_CLUSTER_CREATION", "tenant-acme", correlation, **ACME)
    until(lambda: queues.queue("provision")["deleted"] == 3, "all three are deleted", 120)
    last = queues.completes(queues.send("lifecycle", "SUSPEND_CLUSTER", "tenant-acme"))
    assert last["status"] == "SUCCESS" and len(queues.told(correlation)) == 1


def test_a_command_that_cannot_be_done_is_completed_as_failed(queues):
    done = queues.completes(queues.send("deprovision", "START_CLUSTER_DELETION", "tenant-nobody"))
    assert (done["eventType"], done["status"], done["resources"]) == ("CLUSTER_DELETION_COMPLETE", "FAILED", {})
    assert done["error"]["code"] == "INSTANCE_NOT_FOUND" and done["error"]["message"]
    assert queues.dead() == {}


@pytest.mark.parametrize("body", ["{", "[]", json.dumps({"eventType": "START_CLUSTER_CREATION", "correlationId": "c"}),
                                  json.dumps({"eventType": "START_CLUSTER_CREATION", "tenantId": "tenant-acme"})])
def test_what_makes_no_sense_is_a_dead_letter_after_three_receives(queues, body):
    queues.front.do("sqs", "put", name=real_name("provision"), body=body)

    def is_dead():
        queues.front.do("sqs", "show_again", name=real_name("provision"))
        return queues.queue("provision", "-dead")["messages"]

    assert until(is_dead, "the queue has given it up", 180, 0.2)[0]["body"] == body
    assert queues.queue("provision")["messages"] == [] and queues.told() == []


def test_a_kill_between_receive_and_end_loses_nothing_and_doubles_nothing(queues):
    held = queues.front.fault("hold_before", "sqs", "DeleteMessageBatch")
    correlation = queues.send("provision", "START_CLUSTER_CREATION", "tenant-acme", **ACME)
    queues.front.wait_held(held, 120)  # it is stored, the queue does not know
    queues.server.kill()
    queues.front.clear()
    queues.front.do("sqs", "show_again", name=real_name("provision"))
    queues.server.start()
    assert queues.completes(correlation)["status"] == "SUCCESS"
    until(lambda: queues.queue("provision")["deleted"] == 1, "it is deleted at its second coming", 120)
    last = queues.completes(queues.send("lifecycle", "SUSPEND_CLUSTER", "tenant-acme"))
    assert last["status"] == "SUCCESS" and len(queues.told(correlation)) == 1


def state_change(queues, name, detail_type="ECS Service Action", at="2026-11-16T17:00:00Z", **detail):
    queues.count += 1
    service = queues.show("tenant-acme")["resources"]["workers"]["name"]
    queues.front.do("sqs", "put", name=real_name("ecs"), body=json.dumps({
        "version": "0", "id": "ecs-%d" % queues.count, "detail-type": detail_type, "source": "aws.ecs", "account": "100000000002", "time": at,
        "region": "us-east-1", "resources": ["arn:aws:ecs:us-east-1:100000000002:service/tenants/" + service],
        "detail": {"eventType": "INFO", "eventName": name, **detail}}))


def test_what_the_container_service_says_is_noted_by_the_table(queues):
    queues.completes(queues.send("provision", "START_CLUSTER_CREATION", "tenant-acme", **ACME))
    deployment = "ECS Deployment State Change"
    for minute, (name, kind, key, value) in enumerate([
        ("SERVICE_DEPLOYMENT_IN_PROGRESS", deployment, "deploymentStatus", "IN_PROGRESS"),
        ("SERVICE_DEPLOYMENT_COMPLETED", deployment, "deploymentStatus", "COMPLETED"),
        ("SERVICE_DEPLOYMENT_FAILED", deployment, "deploymentStatus", "FAILED"),
        ("SERVICE_DESIRED_COUNT_UPDATED", "ECS Service Action", "status", "ACTIVE"),
        ("SERVICE_TASK_START_IMPAIRED", "ECS Service Action", "status", "ACTIVE"),
        ("SERVICE_STEADY_STATE", "ECS Service Action", "status", "ACTIVE"),
    ]):
        state_change(queues, name, kind, "2026-11-16T17:%02d:00Z" % minute)
        shown = until(lambda: (lambda i: i if (i["lastEcsEvent"] or {}).get("eventName") == name else None)(queues.show("tenant-acme")), name, 120)
        assert shown[key] == value and shown["status"] == "ACTIVE", "tasks run: no event alone makes a state"
    assert queues.show("tenant-acme")["lastError"]["code"] == "SERVICE_TASK_START_IMPAIRED"
    assert queues.dead() == {}


def test_events_of_nobodys_service_and_older_ones_are_passed_over(queues):
    queues.completes(queues.send("provision", "START_CLUSTER_CREATION", "tenant-acme", **ACME))
    state_change(queues, "SERVICE_DEPLOYMENT_COMPLETED", at="2026-11-16T18:00:00Z")
    until(lambda: (queues.show("tenant-acme")["lastEcsEvent"] or {}).get("eventName") == "SERVICE_DEPLOYMENT_COMPLETED", "the newer one", 120)
    state_change(queues, "SERVICE_DEPLOYMENT_FAILED", at="2026-11-16T17:00:00Z")
    queues.front.do("sqs", "put", name=real_name("ecs"), body=json.dumps({
        "version": "0", "id": "foreign-1", "detail-type": "ECS Service Action", "source": "aws.ecs", "time": "2026-11-16T19:00:00Z", "region": "us-east-1",
        "resources": ["arn:aws:ecs:us-east-1:100000000002:service/tenants/somebody-elses"], "detail": {"eventName": "SERVICE_STEADY_STATE"}}))
    until(lambda: queues.queue("ecs")["deleted"] == 3, "all are taken", 120)
    until(lambda: not Ops(queues.server).read("queues/instance-ecs/lanes")["lanes"], "all are done", 120)
    shown = queues.show("tenant-acme")
    assert shown["deploymentStatus"] == "COMPLETED" and shown["lastEcsEvent"]["eventName"] == "SERVICE_DEPLOYMENT_COMPLETED"
