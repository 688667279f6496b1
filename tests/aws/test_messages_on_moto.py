# SPDX-License-Identifier: Apache-2.0
"""Messages in and out once more, with moto behind the front where this machine has it: a second opinion on SQS, SNS and SES. Which tier ran is said at the end."""

import json

import pytest

from aws.test_messages_in import QUEUE, event
from aws.test_messages_out import TO, Teller
from lib.ops import Ops
from lib.wait import until

ACCOUNT = "123456789012"  # moto's own


class Queues:
    """What moto has in its queues."""

    def __init__(self, world):
        self.world, self.client = world, world.client("sqs")

    def make(self, name, **attributes):
        self.client.create_queue(QueueName=name, Attributes=attributes)
        return "%s/%s/%s" % (self.world.url, ACCOUNT, name)

    def count(self, name):
        """Messages in it, whether somebody has them or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        got = self.client.get_queue_attributes(QueueUrl="%s/%s/%s" % (self.world.url, ACCOUNT, name), AttributeNames=names)["Attributes"]
        return sum(map(int, got.values()))

    def put(self, name, body):
        body = body if isinstance(body, str) else json.dumps(body)
        return self.client.send_message(QueueUrl="%s/%s/%s" % (self.world.url, ACCOUNT, name), MessageBody=body)["MessageId"]


@pytest.fixture
def queues(moto_world):
    return Queues(moto_world)


def start(make, world, url, **env):
    return make.server(**world.credentials(), AWS_ENDPOINT_URL=world.url, LEASEHOLD_GUARD_QUEUE_URL=url, **env)


def stored(server):
    return sorted(e["detail"]["id"] for e in Ops(server).events("type=cloudtrail:ConsoleLogin"))


def test_C32_moto_too_sees_one_effect_of_a_crash_between_commit_and_delete(moto_world, queues, make):
    url, sent = queues.make(QUEUE, VisibilityTimeout="3"), event()
    held = moto_world.fault("hold_before", "sqs", "DeleteMessageBatch")
    server = start(make, moto_world, url)
    queues.put(QUEUE, sent)
    moto_world.wait_held(held)
    assert stored(server) == [sent["id"]] and queues.count(QUEUE) == 1  # it is committed, and not deleted
    server.kill()
    until(lambda: not moto_world.is_holding(held), "the front sees that the caller is gone")
    moto_world.clear()
    server.start()
    until(lambda: queues.count(QUEUE) == 0, "it came again and is deleted", 120)
    assert stored(server) == [sent["id"]]


def test_C33_moto_too_gives_up_a_bad_body_alone(moto_world, queues, make):
    queues.make("dead")
    rule = json.dumps({"deadLetterTargetArn": "arn:aws:sqs:us-east-1:%s:dead" % ACCOUNT, "maxReceiveCount": 3})
    url, good = queues.make(QUEUE, VisibilityTimeout="3", RedrivePolicy=rule), [event(), event()]
    server = start(make, moto_world, url)
    queues.put(QUEUE, good[0])
    bad = queues.put(QUEUE, '{"id": 7')
    queues.put(QUEUE, good[1])
    until(lambda: queues.count("dead") == 1 and queues.count(QUEUE) == 0, "the queue has given it up", 180, 0.2)
    got = queues.client.receive_message(QueueUrl="%s/%s/dead" % (moto_world.url, ACCOUNT))["Messages"]
    assert [(m["MessageId"], m["Body"]) for m in got] == [(bad, '{"id": 7')]
    until(lambda: stored(server) == sorted(e["id"] for e in good), "its neighbours are stored", 60)


def test_C37_moto_too_has_no_topic_any_more(moto_world, queues, make):
    topics = moto_world.client("sns")
    arn = topics.create_topic(Name="alerts")["TopicArn"]
    queues.make("heard")
    topics.subscribe(TopicArn=arn, Protocol="sqs", Endpoint="arn:aws:sqs:us-east-1:%s:heard" % ACCOUNT)
    teller = Teller(moto_world, make, SNS_ALERT_TOPIC_ARN=arn)
    teller.pause_claims()
    until(lambda: queues.count("heard") == 1, "it is published", 120)
    topics.delete_topic(TopicArn=arn)
    teller.resume_claims()
    dead = until(lambda: [d for d in teller.dead("sns") if d["type"] == "AlarmCleared"], "it is dead", 120)
    assert len(dead) == 1 and dead[0]["tries"] == 1 and "NotFound" in dead[0]["error"]
    assert topics.create_topic(Name="alerts")["TopicArn"] == arn
    topics.subscribe(TopicArn=arn, Protocol="sqs", Endpoint="arn:aws:sqs:us-east-1:%s:heard" % ACCOUNT)
    assert teller.ops.act("dead-letters/%s/replay" % dead[0]["id"]).status == 200
    until(lambda: queues.count("heard") == 2, "it is replayed", 120)


def test_C37_moto_too_refuses_a_sender_that_is_not_verified(moto_world, make):
    """That sending is paused is the front's alone: moto sends whatever its account says."""
    mail = moto_world.client("sesv2")
    teller = Teller(moto_world, make, LEASEHOLD_MAIL="ses", LEASEHOLD_MAIL_FROM="leasehold@example.com", LEASEHOLD_MAIL_TO=TO)
    teller.pause_claims()
    dead = until(lambda: [d for d in teller.dead("mail-alarm") if d["type"] == "AlarmRaised"], "it is dead", 120)
    assert {d["tries"] for d in dead} == {1} and all("MessageRejected" in d["error"] for d in dead)
    mail.create_email_identity(EmailIdentity="leasehold@example.com")
    assert teller.ops.act("dead-letters/%s/replay" % dead[0]["id"]).status == 200
    until(lambda: [e for e in moto_world.log("sesv2", "SendEmail") if e["status"] == 200], "it is sent", 120)
