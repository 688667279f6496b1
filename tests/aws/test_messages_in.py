# SPDX-License-Identifier: Apache-2.0
"""Queues of SQS that are read: stored first, deleted then, whatever happens in between. Contract, section 8."""

import json
import time
import uuid

import pytest

from lib.ops import Ops
from lib.wait import until

QUEUE = "isb-billing-sep-event-queue-test"


def event(name="ConsoleLogin"):
    """As EventBridge puts it into a queue. The name is the type of ours."""
    return {"version": "0", "id": str(uuid.uuid4()), "detail-type": name, "source": "aws.signin", "account": "111122223333",
            "time": "2026-11-16T17:00:00Z", "region": "us-east-1", "resources": [], "detail": {"some": "thing"}}


class Inbox:
    """A server that reads a queue of the front."""

    def __init__(self, front, make, **env):
        self.front, self.make = front, make
        self.env = {**front.credentials(), "AWS_ENDPOINT_URL": front.url, "LEASEHOLD_GUARD_QUEUE_URL": front.url + "/100000000002/" + QUEUE,
                    "LEASEHOLD_ALARM_INTERVAL_SEC": 1, **env}
        self.server = None

    def start(self, **env):
        self.server = self.make.server(**{**self.env, **env})
        self.ops = Ops(self.server)
        return self

    def put(self, body):
        return self.front.do("sqs", "put", name=QUEUE, body=body if isinstance(body, str) else json.dumps(body))

    def queue(self, name=QUEUE):
        return self.front.state("sqs")[name]

    def stored(self, name="ConsoleLogin"):
        return [e["detail"]["id"] for e in self.ops.events("type=cloudtrail:%s" % name)]

    def show_again(self):
        self.front.do("sqs", "show_again", name=QUEUE)


@pytest.fixture
def inbox(front, make):
    front.do("sqs", "add_queue", name=QUEUE)
    return Inbox(front, make)


def test_what_is_in_the_queue_is_stored_and_deleted(inbox):
    sent = [event() for _ in range(25)]
    for e in sent:
        inbox.put(e)
    inbox.start()
    until(lambda: inbox.queue()["deleted"] == 25, "all are deleted", 120)
    assert sorted(inbox.stored()) == sorted(e["id"] for e in sent)
    asked = inbox.front.log("sqs", "ReceiveMessage")[0]["params"]
    assert (asked["MaxNumberOfMessages"], asked["WaitTimeSeconds"]) == (10, 20)
    assert asked["MessageSystemAttributeNames"] == ["ApproximateReceiveCount"]


def test_C32_a_crash_between_commit_and_delete_has_one_effect(inbox):
    held = inbox.front.fault("hold_before", "sqs", "DeleteMessageBatch")
    inbox.start()
    sent = event()
    inbox.put(sent)
    inbox.front.wait_held(held)
    assert inbox.stored() == [sent["id"]]  # it is committed, and not deleted
    inbox.server.kill()
    until(lambda: not inbox.front.is_holding(held), "the front sees that the caller is gone")
    inbox.front.clear()
    assert len(inbox.queue()["messages"]) == 1
    inbox.show_again()
    inbox.server.start()
    inbox.ops = Ops(inbox.server)
    until(lambda: inbox.queue()["deleted"] == 1, "it came again and is deleted", 120)
    assert inbox.stored() == [sent["id"]]


def test_C33_a_bad_body_goes_to_the_dead_letters_alone(front, make):
    front.do("sqs", "add_queue", name="dead")
    rule = json.dumps({"deadLetterTargetArn": "arn:aws:sqs:us-east-1:100000000002:dead", "maxReceiveCount": 2})
    front.do("sqs", "add_queue", name=QUEUE, RedrivePolicy=rule)
    inbox = Inbox(front, make)
    good = [event(), event()]
    inbox.put(good[0])
    bad = inbox.put('{"id": 7')
    inbox.put(good[1])
    inbox.start()
    until(lambda: inbox.queue()["deleted"] == 2, "its neighbours are deleted", 120)

    def is_dead():
        inbox.show_again()
        return [m["id"] for m in inbox.queue("dead")["messages"]] == [bad]

    until(is_dead, "the queue has given it up", 180, 0.2)
    assert inbox.queue()["messages"] == []
    assert sorted(inbox.stored()) == sorted(e["id"] for e in good)
    said = until(lambda: [json.loads(line) for line in list(inbox.server.lines) if "makes no sense" in line], "it says so", 60)
    assert said[0]["messageId"] == bad and said[0]["why"]


def test_C34_what_could_not_be_deleted_comes_again_and_is_known(inbox):
    sent = [event() for _ in range(3)]
    for e in sent:
        inbox.put(e)
    inbox.front.ask("entry_faults", {"codes": [None, "InternalError", None]})
    inbox.start()
    until(lambda: inbox.queue()["deleted"] == 2, "two of three are deleted", 120)
    until(lambda: any("could not be deleted" in line for line in inbox.server.lines), "it says so")
    assert len(inbox.queue()["messages"]) == 1
    inbox.show_again()
    until(lambda: inbox.queue()["deleted"] == 3, "the third, too", 120)
    assert sorted(inbox.stored()) == sorted(e["id"] for e in sent)


def test_C34_a_stop_does_not_wait_for_a_long_poll(inbox):
    inbox.start()
    until(lambda: inbox.front.log("sqs", "ReceiveMessage"), "it polls")
    began = time.monotonic()
    assert inbox.server.stop() == 0
    assert time.monotonic() - began < 18  # the poll would have been 20 s; alone on a machine it is about one


def test_C34_a_queue_that_is_gone_is_asked_now_and_then_and_an_alarm_tells(inbox):
    front = inbox.front
    front.do("sqs", "remove_queue", name=QUEUE)
    inbox.start()

    def asked():
        return [e["time"] for e in front.log("sqs", "ReceiveMessage")]

    until(lambda: len(asked()) >= 3, "it is asked again", 120)
    times = asked()
    assert times[1] - times[0] >= 0.45 and times[2] - times[1] >= 0.9, times  # longer each time

    def alarm():
        return {a["name"]: a for a in inbox.ops.read("alarms")["alarms"]}.get("inbox-silent#guard")

    seen = until(alarm, "there is an alarm", 120)
    assert "QueueDoesNotExist" in seen["evidence"] and seen["severity"] == "page"
    front.do("sqs", "add_queue", name=QUEUE)
    sent = event()
    inbox.put(sent)
    until(lambda: inbox.queue()["deleted"] == 1, "it is read again", 120)
    assert inbox.stored() == [sent["id"]]
    until(lambda: not alarm(), "the alarm is gone", 120)


def test_a_store_that_fails_keeps_messages_in_the_queue(front, make, shimmed, flags):
    front.do("sqs", "add_queue", name=QUEUE)
    inbox = Inbox(front, make, **shimmed).start()
    (flags / "fail").touch()
    sent = event()
    inbox.put(sent)
    until(lambda: any("cannot be read" in line for line in inbox.server.lines), "it says so", 120)
    assert inbox.queue()["deleted"] == 0
    (flags / "fail").unlink()
    inbox.show_again()
    until(lambda: inbox.queue()["deleted"] == 1, "it is taken later", 120)
    assert inbox.stored() == [sent["id"]]


def test_a_store_that_is_slow_keeps_what_it_has_received(front, make, shimmed, flags):
    front.do("sqs", "add_queue", name=QUEUE, VisibilityTimeout="3")
    inbox = Inbox(front, make, **shimmed).start()
    first = event()
    inbox.put(first)
    until(lambda: inbox.queue()["deleted"] == 1, "it reads", 120)
    until(lambda: front.log("sqs", "GetQueueAttributes"), "it knows for how long messages are its own", 120)
    held, nudge = front.fault("hold_before", "sqs", "ReceiveMessage"), event()
    inbox.put(nudge)  # ends the poll that is under way; the next one is held
    front.wait_held(held)
    sent = [event() for _ in range(10)]
    for e in sent:
        inbox.put(e)
    (flags / "slow").touch()
    front.release(held)
    until(lambda: inbox.queue()["deleted"] == 12, "all are deleted", 120)
    kept = front.log("sqs", "ChangeMessageVisibilityBatch")
    assert kept and {e["VisibilityTimeout"] for e in kept[0]["params"]["Entries"]} == {3}
    assert 1 <= len(kept[0]["params"]["Entries"]) < 10  # those that were still to come
    assert sorted(inbox.stored()) == sorted(e["id"] for e in [first, nudge, *sent])


def test_settings_that_make_no_sense_are_named_together(front, make):
    server = make.server(start=False, LEASEHOLD_GUARD_QUEUE_URL="arn:aws:sqs:us-east-1:1:q", LEASEHOLD_PROVISION_QUEUE_URL="https://a/1/q",
                         SNS_ALERT_TOPIC_ARN="alerts", ISB_EVENT_BUS="my bus", LEASEHOLD_MAIL="ses", LEASEHOLD_WAKE="scheduler", ISB_NAMESPACE="x")
    with pytest.raises(AssertionError) as e:
        server.start()
    for name in ("LEASEHOLD_GUARD_QUEUE_URL: must be the URL of a queue", "LEASEHOLD_PROVISION_QUEUE_URL: there are no instances",
                 "SNS_ALERT_TOPIC_ARN: must be an ARN", "ISB_EVENT_BUS: must be", "LEASEHOLD_MAIL_FROM: must be", "LEASEHOLD_WAKE: scheduler wakes a guard",
                 "SCHEDULER_ROLE_ARN: must be", "UNQUARANTINE_LAMBDA_ARN: must be", "LEASEHOLD_SCHEDULER_DLQ_ARN: must be", "ISB_NAMESPACE: must be"):
        assert name in str(e.value), (name, str(e.value))
    server.said.clear()
