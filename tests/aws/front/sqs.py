# SPDX-License-Identifier: Apache-2.0
"""SQS: visibility, counted receives, dead letters, long polls, delays."""

import hashlib
import json
import struct
import threading

from aws.front.machine import Machine
from aws.front.names import HUB, REGION


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


def md5_of_attributes(attributes):
    total = hashlib.md5()
    for name, value in sorted(attributes.items()):
        kind = value["DataType"]
        for part in (name.encode(), kind.encode()):
            total.update(struct.pack(">I", len(part)) + part)
        data = value["BinaryValue"] if kind.startswith("Binary") else value["StringValue"].encode()
        total.update(b"\x02" if kind.startswith("Binary") else b"\x01")
        total.update(struct.pack(">I", len(data)) + data)
    return total.hexdigest()


class Message:
    def __init__(self, id, body, attributes, at, visible_at):
        self.id, self.body, self.attributes, self.sent, self.visible_at = id, body, attributes, at, visible_at
        self.receives, self.first, self.handles = 0, None, set()


class Sqs(Machine):
    slow = ("ReceiveMessage",)
    DEFAULTS = {"VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "0",
                "MaximumMessageSize": "262144"}

    def reset(self):
        self.queues = {}
        self.deleted, self.stopping = 0, False
        self.changed = threading.Condition(self.world.lock)

    def show(self):
        return {name: {"attributes": q["attributes"], "messages": [
            {"id": m.id, "body": m.body, "receives": m.receives, "visible": m.visible_at <= self.now()} for m in q["messages"]],
            "sent": q["sent"], "deleted": q["deleted"]} for name, q in self.queues.items()}

    # For the tests.

    def ctl_add_queue(self, name, **attributes):
        self.queues[name] = {"attributes": {**self.DEFAULTS, **attributes}, "messages": [], "sent": 0, "deleted": 0}
        return self.url(name)

    def ctl_remove_queue(self, name):
        del self.queues[name]
        self.changed.notify_all()

    def ctl_put(self, name, body):
        return self.put(name, body).id

    def ctl_show_again(self, name):
        """Whatever is hidden is visible now."""
        for message in self.queues[name]["messages"]:
            message.visible_at = 0
        self.changed.notify_all()

    # What is so.

    def url(self, name):
        return "%s/%s/%s" % (self.world.url, HUB, name)

    def arn(self, name):
        return "arn:aws:sqs:%s:%s:%s" % (REGION, HUB, name)

    def queue(self, params):
        name = params["QueueUrl"].rsplit("/", 1)[-1]
        if name not in self.queues:
            self.fail("QueueDoesNotExist", "The specified queue does not exist.")
        return self.queues[name]

    def put(self, name, body, attributes=None, delay=None):
        queue = self.queues[name]
        if delay is None:
            delay = int(queue["attributes"]["DelaySeconds"])
        message = Message(self.world.uuid(), body, attributes or {}, self.now(), self.now() + delay)
        queue["messages"].append(message)
        queue["sent"] += 1
        self.changed.notify_all()
        return message

    def bury(self, queue):
        """Messages that came too often go to the dead letters."""
        rule = json.loads(queue["attributes"].get("RedrivePolicy", "{}"))
        dead = rule and self.queues.get(rule["deadLetterTargetArn"].rsplit(":", 1)[1])
        for message in list(queue["messages"]):
            if dead and message.visible_at <= self.now() and message.receives >= int(rule["maxReceiveCount"]):
                queue["messages"].remove(message)
                message.visible_at = self.now()
                dead["messages"].append(message)
                dead["sent"] += 1

    def take(self, queue, params):
        self.bury(queue)
        hidden = params.get("VisibilityTimeout", int(queue["attributes"]["VisibilityTimeout"]))
        got = []
        for message in queue["messages"]:
            if message.visible_at <= self.now() and len(got) < params.get("MaxNumberOfMessages", 1):
                message.visible_at = self.now() + hidden
                message.receives += 1
                message.first = message.first or self.now()
                got.append(self.received(message, params))
        return got

    def received(self, message, params):
        handle = self.world.uuid()
        message.handles.add(handle)
        got = {"MessageId": message.id, "ReceiptHandle": handle, "MD5OfBody": md5(message.body), "Body": message.body}
        asked = set(params.get("AttributeNames", [])) | set(params.get("MessageSystemAttributeNames", []))
        facts = {"ApproximateReceiveCount": str(message.receives), "SentTimestamp": str(int(message.sent * 1000)), "SenderId": "AIDAFRONT",
                 "ApproximateFirstReceiveTimestamp": str(int(message.first * 1000))}
        shown = {k: v for k, v in facts.items() if k in asked or "All" in asked}
        if shown:
            got["Attributes"] = shown
        wanted = params.get("MessageAttributeNames", [])
        if message.attributes and wanted:
            got["MessageAttributes"] = {k: v for k, v in message.attributes.items() if "All" in wanted or ".*" in wanted or k in wanted}
            got["MD5OfMessageAttributes"] = md5_of_attributes(got["MessageAttributes"])
        return got

    def find(self, queue, handle):
        if len(handle) != 36:
            self.fail("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
        return next((m for m in queue["messages"] if handle in m.handles), None)

    # Operations.

    def CreateQueue(self, params, _request):
        name = params["QueueName"]
        if name not in self.queues:
            self.ctl_add_queue(name, **params.get("Attributes", {}))
        return {"QueueUrl": self.url(name)}

    def DeleteQueue(self, params, _request):
        self.queue(params)
        self.ctl_remove_queue(params["QueueUrl"].rsplit("/", 1)[-1])
        return {}

    def GetQueueUrl(self, params, _request):
        if params["QueueName"] not in self.queues:
            self.fail("QueueDoesNotExist", "The specified queue does not exist.")
        return {"QueueUrl": self.url(params["QueueName"])}

    def ListQueues(self, params, _request):
        found = [self.url(n) for n in sorted(self.queues) if n.startswith(params.get("QueueNamePrefix", ""))]
        return self.page(found, params, 1000, name="QueueUrls")

    def GetQueueAttributes(self, params, _request):
        queue, asked = self.queue(params), params.get("AttributeNames", [])
        name = params["QueueUrl"].rsplit("/", 1)[-1]
        seen = [m.visible_at <= self.now() for m in queue["messages"]]
        facts = {**queue["attributes"], "QueueArn": self.arn(name), "ApproximateNumberOfMessages": str(sum(seen)),
                 "ApproximateNumberOfMessagesNotVisible": str(len(seen) - sum(seen)), "ApproximateNumberOfMessagesDelayed": "0"}
        return {"Attributes": {k: v for k, v in facts.items() if "All" in asked or k in asked}}

    def SetQueueAttributes(self, params, _request):
        self.queue(params)["attributes"].update(params["Attributes"])
        return {}

    def PurgeQueue(self, params, _request):
        self.queue(params)["messages"].clear()
        return {}

    def sent(self, name, params):
        message = self.put(name, params["MessageBody"], params.get("MessageAttributes"), params.get("DelaySeconds"))
        got = {"MessageId": message.id, "MD5OfMessageBody": md5(message.body)}
        if message.attributes:
            got["MD5OfMessageAttributes"] = md5_of_attributes(message.attributes)
        return got

    def SendMessage(self, params, _request):
        queue = self.queue(params)
        if not params["MessageBody"] or len(params["MessageBody"].encode()) > int(queue["attributes"]["MaximumMessageSize"]):
            self.fail("InvalidParameterValue", "One or more parameters are invalid. Reason: Message must be 1 to 262144 bytes.")
        return self.sent(params["QueueUrl"].rsplit("/", 1)[-1], params)

    def batch(self, params, each):
        entries = params["Entries"]
        self.queue(params)
        if not entries:
            self.fail("EmptyBatchRequest", "There should be at least one entry in the request.")
        if len(entries) > 10:
            self.fail("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10.")
        if len({e["Id"] for e in entries}) != len(entries):
            self.fail("BatchEntryIdsNotDistinct", "Id repeated.")
        good, bad = [], []
        for entry in entries:
            reason = self.world.pick_entry_fault(entry)
            if reason:
                bad.append({"Id": entry["Id"], "SenderFault": False, "Code": reason, "Message": "as the test asked"})
                continue
            try:
                good.append({"Id": entry["Id"], **each(entry)})
            except Exception as e:  # pylint: disable=broad-except
                bad.append({"Id": entry["Id"], "SenderFault": True, "Code": getattr(e, "code", "InternalError"), "Message": str(e)})
        return {"Successful": good, "Failed": bad}

    def SendMessageBatch(self, params, _request):
        if sum(len(e["MessageBody"].encode()) for e in params["Entries"]) > 262144:
            self.fail("BatchRequestTooLong", "Batch requests cannot be longer than 262144 bytes.")
        name = params["QueueUrl"].rsplit("/", 1)[-1]
        return self.batch(params, lambda entry: self.sent(name, entry))

    def ReceiveMessage(self, params, request):
        with self.changed:
            queue = self.queue(params)
            wait = params.get("WaitTimeSeconds", int(queue["attributes"]["ReceiveMessageWaitTimeSeconds"]))
            deadline = self.now() + wait
            while True:
                got = [] if self.world.is_gone(request) else self.take(queue, params)
                left = deadline - self.now()
                if got or left <= 0 or self.world.is_gone(request):
                    break
                self.changed.wait(min(left, 0.1))
                queue = self.queue(params)
        return {"Messages": got} if got else {}

    def remove(self, queue, handle):
        message = self.find(queue, handle)
        if message:
            queue["messages"].remove(message)
            queue["deleted"] += 1
        return {}

    def DeleteMessage(self, params, _request):
        return self.remove(self.queue(params), params["ReceiptHandle"])

    def DeleteMessageBatch(self, params, _request):
        queue = self.queue(params)
        return self.batch(params, lambda entry: self.remove(queue, entry["ReceiptHandle"]))

    def hide(self, queue, params):
        message = self.find(queue, params["ReceiptHandle"])
        if not message or message.visible_at <= self.now():
            self.fail("MessageNotInflight", "the message is not in flight")
        if not 0 <= params.get("VisibilityTimeout", 0) <= 43200:
            self.fail("InvalidParameterValue", "VisibilityTimeout must be 0 to 43200")
        message.visible_at = self.now() + params.get("VisibilityTimeout", 0)
        self.changed.notify_all()
        return {}

    def ChangeMessageVisibility(self, params, _request):
        return self.hide(self.queue(params), params)

    def ChangeMessageVisibilityBatch(self, params, _request):
        queue = self.queue(params)
        return self.batch(params, lambda entry: self.hide(queue, entry))
