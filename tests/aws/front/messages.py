# SPDX-License-Identifier: Apache-2.0
"""What takes messages: an event bus, topics, mail. They keep what came, for the tests to read."""

import json

from aws.front.machine import Machine
from aws.front.names import HUB, REGION

TOPIC = "arn:aws:sns:%s:%s:alerts" % (REGION, HUB)
EVENT_MAX = 256 * 1024


class EventBridge(Machine):
    def reset(self):
        self.buses, self.events, self.codes = {"default", "leases"}, [], []

    def show(self):
        return {"events": self.events}

    def ctl_add_bus(self, name):
        self.buses.add(name)

    def ctl_fail_entries(self, codes):
        """For the entries that come next, in order: a code, or null for one that passes."""
        self.codes = list(codes)

    def size(self, entry):
        return (14 if "Time" in entry else 0) + sum(len(entry.get(k, "").encode()) for k in ("Source", "DetailType", "Detail")) + sum(
            len(r.encode()) for r in entry.get("Resources", []))

    def judge(self, entry):
        for word in ("Source", "DetailType", "Detail"):
            if not entry.get(word):
                return "InvalidArgument"
        if entry["Source"].startswith("aws."):
            return "NotAuthorizedForSourceException"
        try:
            if not isinstance(json.loads(entry["Detail"]), dict):
                return "MalformedDetail"
        except ValueError:
            return "MalformedDetail"
        return None

    def PutEvents(self, params, _request):
        if sum(self.size(e) for e in params["Entries"]) >= EVENT_MAX:
            self.fail("ValidationException", "Total size of the entries in the request is over the limit.")
        answers = []
        for entry in params["Entries"]:
            code = (self.codes.pop(0) if self.codes else None) or self.judge(entry)
            bus = entry.get("EventBusName", "default").rsplit("/", 1)[-1]
            if code:
                answers.append({"ErrorCode": code, "ErrorMessage": "as the test asked, or rightly so"})
                continue
            answers.append({"EventId": self.world.uuid()})
            if bus in self.buses:  # An unknown bus loses them without a word.
                self.events.append({"bus": bus, "source": entry["Source"], "type": entry["DetailType"], "detail": json.loads(entry["Detail"]),
                                    "time": entry["Time"].timestamp() if "Time" in entry else None, "id": answers[-1]["EventId"]})
        return {"FailedEntryCount": sum("ErrorCode" in a for a in answers), "Entries": answers}


class Sns(Machine):
    def reset(self):
        self.topics, self.messages = {TOPIC}, []

    def show(self):
        return {"messages": self.messages}

    def ctl_add_topic(self, arn):
        self.topics.add(arn)

    def ctl_remove_topic(self, arn=TOPIC):
        self.topics.discard(arn)

    def Publish(self, params, _request):
        if params.get("TopicArn") not in self.topics:
            self.fail("NotFound", "Topic does not exist", 404)
        subject = params.get("Subject")
        if subject is not None and not (0 < len(subject) < 100 and subject.isascii() and subject.isprintable() and subject[0] != " "):
            self.fail("InvalidParameter", "Invalid parameter: Subject")
        if not params["Message"] or len(params["Message"].encode()) > EVENT_MAX:
            self.fail("InvalidParameter", "Invalid parameter: Message too long, or empty")
        id = self.world.uuid()
        self.messages.append({"topic": params["TopicArn"], "subject": subject, "message": params["Message"], "id": id})
        return {"MessageId": id}

    def GetTopicAttributes(self, params, _request):
        if params["TopicArn"] not in self.topics:
            self.fail("NotFound", "Topic does not exist", 404)
        return {"Attributes": {"TopicArn": params["TopicArn"]}}


class Ses(Machine):
    def reset(self):
        self.senders, self.mails, self.production, self.sending = {"leasehold@example.com"}, [], True, True

    def show(self):
        return {"mails": self.mails}

    def ctl_set(self, senders=None, production=True, sending=True):
        self.senders = set(senders) if senders is not None else self.senders
        self.production, self.sending = production, sending

    def GetAccount(self, _params, _request):
        return {"ProductionAccessEnabled": self.production, "SendingEnabled": self.sending, "EnforcementStatus": "HEALTHY",
                "SendQuota": {"Max24HourSend": 50000.0, "MaxSendRate": 14.0, "SentLast24Hours": float(len(self.mails))}}

    def SendEmail(self, params, _request):
        sender = params.get("FromEmailAddress", "")
        address = sender.rsplit("<", 1)[-1].rstrip(">")
        if not self.sending:
            self.fail("SendingPausedException", "Email sending is paused")
        if address not in self.senders:
            self.fail("MessageRejected", "Email address is not verified. The following identities failed the check: " + address)
        to = params.get("Destination", {}).get("ToAddresses", [])
        if not 1 <= len(to) <= 50 or any("@" not in a or any(c in a for c in "\r\n") for a in to):
            self.fail("BadRequestException", "Illegal address")
        simple = params["Content"].get("Simple")
        if not simple or any(c in simple["Subject"]["Data"] for c in "\r\n"):
            self.fail("BadRequestException", "only simple mail is here, with a subject of one line")
        id = self.world.uuid()
        self.mails.append({"from": sender, "to": to, "subject": simple["Subject"]["Data"], "id": id,
                           "text": simple["Body"].get("Text", {}).get("Data"), "html": simple["Body"].get("Html", {}).get("Data"),
                           "reply_to": params.get("ReplyToAddresses", [])})
        return {"MessageId": id}
