# SPDX-License-Identifier: Apache-2.0
"""Sinks on AWS: bus, topic, mail, tenants' events, figures for CloudWatch. Contract, section 8."""

import json
import time

import pytest

from lib.guard import ENV, Guarded
from lib.ops import Ops, outside
from lib.wait import until

TOPIC = "arn:aws:sns:us-east-1:100000000002:alerts"
TO = "ops@example.org"


class Teller:
    """A server with sinks on the front."""

    def __init__(self, front, make, args=(), **env):
        self.front = front
        settings = {**front.credentials(), "AWS_ENDPOINT_URL": front.url, "LEASEHOLD_SINK_BACKOFF_SEC": "0.01", "LEASEHOLD_ALARM_INTERVAL_SEC": 1, **env}
        self.server = make.server(args=args, **settings)
        self.ops = Ops(self.server)

    def send(self, *events):
        reply = self.ops.send(*events)
        assert (reply.status, reply.json["accepted"]) == (202, len(events)), reply

    def dead(self, queue):
        return [d for d in self.ops.read("dead-letters")["dead_letters"] if d["queue"] == queue]

    def lanes(self, queue):
        return self.ops.read("queues/%s/lanes" % queue)["lanes"]

    def pause_claims(self):
        assert self.ops.post("/v1/admin/claims/pause", body={"reason": "a test"}).status == 200

    def resume_claims(self):
        assert self.ops.post("/v1/admin/claims/resume", body={"reason": "the test is over"}).status == 200

    def alarms(self):
        return {a["name"]: a for a in self.ops.read("alarms")["alarms"]}


# The bus.


def on_bus(front):
    return front.state("events")["events"]


def entries(front):
    """How many were sent, by request."""
    return [len(e["params"]["Entries"]) for e in front.log("events", "PutEvents")]


@pytest.fixture
def bus(front, make):
    return Teller(front, make, ISB_EVENT_BUS="leases", LEASEHOLD_BUS_EVENTS="cloudtrail:*")


def test_an_event_is_on_the_bus_as_it_is_here(bus):
    sent = outside("SomethingElse", subject="thing/7", detail={"size": 3})
    bus.send(sent)
    got = until(lambda: on_bus(bus.front), "it is on the bus")[0]
    ours = bus.ops.events("type=cloudtrail:SomethingElse")[0]
    assert (got["bus"], got["source"], got["type"]) == ("leases", "leasehold", "cloudtrail:SomethingElse")
    assert got["detail"].pop("leasehold") == {"eventId": ours["id"], "subject": "thing/7", "actor": "inbox/cloudtrail", "schemaVersion": 1,
                                              **({"requestId": ours["requestId"]} if "requestId" in ours else {})}
    assert got["detail"] == sent


def test_C35_of_two_entries_that_fail_one_comes_again_and_one_is_dead(bus):
    front = bus.front
    # The one that comes again is the last of the ten: none of the others can be its second try.
    front.do("events", "fail_entries", codes=[None, None, None, "MalformedDetail", None, None, None, None, None, "InternalFailure"])
    bus.send(*[outside("Ten", subject="thing/%d" % i) for i in range(10)])
    until(lambda: len(on_bus(front)) == 9, "nine are on the bus", 120)
    dead = until(lambda: bus.dead("bus"), "one is dead")
    assert len(dead) == 1 and dead[0]["tries"] == 1 and "MalformedDetail" in dead[0]["error"], dead
    assert sum(entries(front)) == 11 and max(entries(front)) <= 10  # only the one that failed was sent again
    told = {e["detail"]["leasehold"]["subject"] for e in on_bus(front)}
    assert told | {dead[0]["subject"]} == {"thing/%d" % i for i in range(10)}
    assert bus.ops.act("dead-letters/%s/replay" % dead[0]["id"]).status == 200
    until(lambda: len(on_bus(front)) == 10, "it is replayed", 120)


def test_C35_no_request_has_256_KB(bus):
    front = bus.front
    held = front.fault("hold_before", "events", "PutEvents")
    bus.send(outside("First", subject="thing/first"))
    front.wait_held(held)  # while it is being sent, the others gather
    bus.send(*[outside("Large", subject="thing/%d" % i, detail={"text": "x" * 62000}) for i in range(9)])

    def under_way():
        return [lane["subject"] for lane in bus.lanes("bus") if lane["state"] == "in_flight"]

    until(lambda: len(under_way()) == 10 or "thing/first" not in under_way(), "all are under way, or the first is given up", 120)
    is_gathered = front.is_holding(held)
    front.release(held)
    until(lambda: len({e["detail"]["leasehold"]["subject"] for e in on_bus(front)}) == 10, "all are on the bus", 120)
    assert not [e for e in front.log("events", "PutEvents") if e["code"]]
    assert max(entries(front)) <= 4 and (max(entries(front)) >= 2 or not is_gathered), entries(front)
    assert bus.dead("bus") == []


def test_a_bus_that_is_throttled_or_away_gets_its_events_later(bus):
    front = bus.front
    front.fault("throttle", "events", "PutEvents", count=4)
    front.fault("cut_before", "events", "PutEvents", count=4)
    bus.send(outside("Late"))
    until(lambda: len(on_bus(front)) == 1, "it is on the bus", 180)
    assert bus.dead("bus") == []


def test_C36_a_guard_speaks_as_itself_whatever_the_names_are(front, make):
    guard = Teller(front, make, ["--dev"], **ENV, ACCOUNT_TABLE_NAME="sim", ISB_EVENT_BUS="leases", LEASEHOLD_BUS_NAMES="isb", ISB_NAMESPACE="front",
                   LEASEHOLD_EVENT_SOURCE="InnovationSandbox-front")
    guarded = Guarded(guard.server)
    account = guarded.accounts("Available")[0]
    guarded.clean(account)
    until(lambda: "guard:QUARANTINE_COMPLETE" in [e["type"] for e in on_bus(front)], "the bus hears of it", 120)
    assert {e["source"] for e in on_bus(front)} == {"leasehold"}


def test_C36_without_a_guard_the_source_is_the_one_that_isbs_readers_expect(front, make):
    teller = Teller(front, make, ISB_EVENT_BUS="arn:aws:events:us-east-1:100000000002:event-bus/leases", LEASEHOLD_BUS_EVENTS="cloudtrail:*",
                    LEASEHOLD_BUS_NAMES="isb", ISB_NAMESPACE="front")
    sent = outside("Thing", detail={"a": 1})
    teller.send(sent)
    got = until(lambda: on_bus(front), "it is on the bus")[0]
    assert (got["source"], got["detail"]) == ("InnovationSandbox-front", sent)


# The topic.


def test_C37_alarms_raised_and_cleared_are_published_and_a_topic_that_is_gone_is_a_dead_letter(front, make):
    teller = Teller(front, make, SNS_ALERT_TOPIC_ARN=TOPIC)
    teller.pause_claims()

    def published():
        return [m for m in front.state("sns")["messages"] if "claims-paused" in m["subject"]]

    got = until(published, "the topic hears of the alarm", 120)[0]
    assert got["topic"] == TOPIC and got["subject"].startswith("[leasehold] Alarm")
    assert "Something is wrong" in got["message"] and "What to do:" in got["message"]
    front.do("sns", "remove_topic", arn=TOPIC)
    teller.resume_claims()
    dead = until(lambda: [d for d in teller.dead("sns") if d["type"] == "AlarmCleared"], "it is dead", 120)
    assert len(dead) == 1 and dead[0]["tries"] == 1 and "NotFound" in dead[0]["error"]
    front.do("sns", "add_topic", arn=TOPIC)
    assert teller.ops.act("dead-letters/%s/replay" % dead[0]["id"]).status == 200
    cleared = until(lambda: published()[1:], "it is replayed", 120)[0]
    assert "cleared" in cleared["subject"]


# Mail.


@pytest.fixture
def mailer(front, make):
    return Teller(front, make, LEASEHOLD_MAIL="ses", LEASEHOLD_MAIL_FROM="leasehold@example.com", LEASEHOLD_MAIL_TO=TO + ",second@example.org")


def test_mail_goes_out_by_ses_to_one_person_a_call(mailer):
    mailer.pause_claims()

    def mails():
        got = [m for m in mailer.front.state("sesv2")["mails"] if "claims-paused" in m["subject"]]
        return len(got) == 2 and got

    got = until(mails, "both have mail", 120)
    assert sorted(m["to"] for m in got) == [[TO], ["second@example.org"]]
    assert got[0]["from"] == "leasehold@example.com" and "What to do:" in got[0]["text"]


def test_C37_a_sender_that_is_not_verified_is_a_dead_letter_at_once(mailer):
    mailer.front.do("sesv2", "set", senders=[])
    mailer.pause_claims()
    dead = until(lambda: len(mailer.dead("mail-alarm")) >= 2 and mailer.dead("mail-alarm"), "both are dead", 120)
    assert {d["tries"] for d in dead} == {1} and all("MessageRejected" in d["error"] for d in dead)


def test_C37_while_sending_is_paused_mail_waits_a_quarter_of_an_hour_and_an_alarm_tells(mailer):
    front = mailer.front
    front.do("sesv2", "set", sending=False)
    mailer.pause_claims()

    def lanes_of_it():
        return [lane for lane in mailer.lanes("mail-alarm") if "claims-paused" in lane["subject"]]

    def waiting():
        lanes = lanes_of_it()
        return len(lanes) == 2 and all(lane["state"] == "waiting" and "SendingPausedException" in (lane["last_error"] or "") for lane in lanes) and lanes

    lanes = until(waiting, "both wait", 120)
    assert all(lane["tries"] == 0 and lane["due_at"] > time.time() + 600 for lane in lanes), lanes
    until(lambda: "circuit-open#ses" in mailer.alarms(), "there is an alarm", 120)
    asked = len(front.log("sesv2", "SendEmail"))
    mailer.resume_claims()  # one more mail each, behind those
    until(lambda: [lane["behind"] for lane in lanes_of_it()] == [1, 1], "they are in line", 120)
    assert len(front.log("sesv2", "SendEmail")) == asked <= 2  # nobody asks SES meanwhile
    assert mailer.dead("mail-alarm") == []


@pytest.mark.parametrize("code,status", [("ThrottlingException", 400), ("TooManyRequestsException", 429), ("LimitExceededException", 400)])
def test_over_the_quota_of_the_day_mail_waits_too(mailer, code, status):
    """SES has the same code for it as for mails that are too fast; only the words differ."""
    over = mailer.front.fault("error", "sesv2", "SendEmail", code=code, status=status, message="Daily message quota exceeded.", count=-1)
    mailer.pause_claims()

    def waiting():
        lanes = [lane for lane in mailer.lanes("mail-alarm") if "claims-paused" in lane["subject"]]
        return len(lanes) == 2 and all("quota exceeded" in (lane["last_error"] or "") for lane in lanes) and lanes

    lanes = until(waiting, "both wait", 120)
    assert all(lane["tries"] == 0 and lane["due_at"] > time.time() + 600 for lane in lanes), lanes
    until(lambda: "circuit-open#ses" in mailer.alarms(), "there is an alarm", 120)
    assert mailer.front.hits(over) <= 6 and mailer.dead("mail-alarm") == []


# Tenants' events.


def test_commands_come_from_a_queue_and_their_ends_go_to_another(front, make):
    for name in ("bbws-instance-provision", "bbws-tenant-events-test"):
        front.do("sqs", "add_queue", name=name)
    url = front.url + "/100000000002/"
    teller = Teller(front, make, ["--dev"], LEASEHOLD_PROVISION_QUEUE_URL=url + "bbws-instance-provision", LEASEHOLD_TENANT_EVENTS_QUEUE_URL=url + "bbws-tenant-events-test")
    command = {"eventType": "START_CLUSTER_CREATION", "tenantId": "tenant-acme", "timestamp": "2026-11-16T17:00:00Z", "organizationName": "Acme",
               "contactEmail": "it@acme.example", "requestedBy": "it@acme.example", "correlationId": "c-1"}
    front.do("sqs", "put", name="bbws-instance-provision", body=json.dumps(command))
    got = until(lambda: front.state("sqs")["bbws-tenant-events-test"]["messages"], "its end is told", 180)[0]
    told = json.loads(got["body"])
    assert (told["eventType"], told["tenantId"], told["status"], told["correlationId"]) == ("CLUSTER_CREATION_COMPLETE", "tenant-acme", "SUCCESS", "c-1")
    assert front.state("sqs")["bbws-instance-provision"]["deleted"] == 1
    front.do("sqs", "remove_queue", name="bbws-tenant-events-test")
    front.do("sqs", "put", name="bbws-instance-provision", body=json.dumps({**command, "tenantId": "tenant-beta", "correlationId": "c-2"}))
    dead = until(lambda: teller.dead("tenant-events"), "there is nobody to tell", 180)
    assert dead[0]["tries"] == 1 and "QueueDoesNotExist" in dead[0]["error"]


# Figures.


def figures(server):
    return [json.loads(line) for line in list(server.lines) if line.startswith("{") and '"_aws"' in line]


def test_C38_figures_for_cloudwatch_are_alone_on_their_line(front, make):
    server = make.server(args=["--dev"], **ENV, ACCOUNT_TABLE_NAME="sim", LEASEHOLD_METRICS_EMF="true")
    line = until(lambda: figures(server), "there is a line", 180)[0]
    metadata = line.pop("_aws")
    assert abs(metadata["Timestamp"] / 1000 - time.time()) < 600
    named = [m["Name"] for directive in metadata["CloudWatchMetrics"] for m in directive["Metrics"]]
    assert sorted(named) == sorted(line) and len(set(named)) == len(named) <= 100  # nothing but figures, and each is declared
    assert all(isinstance(v, (int, float)) for v in line.values())
    assert [d["Namespace"] for d in metadata["CloudWatchMetrics"]] == ["ISB/BillingSeparator", "BBWS/Instance"]
    assert {"QuarantineSuccessCount", "QuarantineBypassTagCount", "EjectSuccessCount", "UnquarantineSuccessCount",
            "AccountsInQuarantineOverThreshold"} <= set(named)
    for directive in metadata["CloudWatchMetrics"]:
        assert directive["Dimensions"] == [[]] and all(m["Unit"] in ("Count", "Percent", "Seconds") for m in directive["Metrics"])


def test_no_figures_without_the_setting(make):
    server = make.server(count=1)
    assert figures(server) == []
