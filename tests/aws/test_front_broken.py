# SPDX-License-Identifier: Apache-2.0
"""Requests that no service would take, or that one would take and misread: the front refuses every one of them and says why, and does nothing."""

import hashlib
import json
import time
import urllib.error
import urllib.request
from urllib.parse import urlencode

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from aws.front import names

ACCOUNT = "200000000001"
MOVE = {"AccountId": ACCOUNT, "SourceParentId": names.OUS["Available"], "DestinationParentId": names.OUS["Active"]}
SCHEDULE = {"ScheduleExpression": "at(2030-01-02T03:04:05)", "FlexibleTimeWindow": {"Mode": "OFF"},
            "Target": {"Arn": "arn:aws:lambda:us-east-1:100000000002:function:f", "RoleArn": "arn:aws:iam::100000000002:role/r"}}
ASSUME = {"Action": "AssumeRole", "Version": "2011-06-15", "RoleArn": names.INTERMEDIATE_ROLE, "RoleSessionName": "name"}


class Sent:
    """A request before it is signed; `late` changes it after."""

    def __init__(self, method="POST", path="/", headers=None, body=b"", service="organizations", region="us-east-1", key=names.USER_KEY,
                 secret=names.USER_SECRET, token=None, late=None):
        self.method, self.path, self.headers, self.service, self.region = method, path, dict(headers or {}), service, region
        self.body = body if isinstance(body, bytes) else body.encode()
        self.key, self.secret, self.token, self.late = key, secret, token, late

    def send(self, url):
        request = AWSRequest(self.method, url + self.path, headers=self.headers, data=self.body)
        if self.service:
            SigV4Auth(Credentials(self.key, self.secret, self.token), self.service, self.region).add_auth(request)
        headers, body, path = dict(request.headers.items()), self.body, self.path
        if self.late:
            headers, body, path = self.late(headers, body, path)
        wire = urllib.request.Request(url + path, body if self.method != "GET" else None, headers, method=self.method)
        wire.add_unredirected_header("Content-type", headers.get("Content-Type", "application/octet-stream"))
        try:
            with urllib.request.urlopen(wire, timeout=30) as got:
                return got.status, got.read()
        except urllib.error.HTTPError as e:
            return e.code, e.read()


def org(body=None, operation="MoveAccount", raw=None, kind="application/x-amz-json-1.1", **more):
    target = {"X-Amz-Target": "AWSOrganizationsV20161128." + operation} if operation else {}
    return Sent(headers={**target, "Content-Type": kind}, body=raw if raw is not None else json.dumps(MOVE if body is None else body), **more)


def sts(form, **more):
    kind = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    return Sent(headers=kind, body=form if isinstance(form, str) else urlencode(form), service="sts", key=names.TASK_KEY, secret=names.TASK_SECRET,
                token=more.pop("token", names.TASK_TOKEN), **more)


def schedule(body=None, name="n", method="POST", query="", **more):
    kind = {"Content-Type": more.pop("kind", "application/json")} if method == "POST" else {}
    return Sent(method, "/schedules/%s%s" % (name, query), kind, json.dumps(SCHEDULE if body is None else body) if method == "POST" else b"",
                "scheduler", **more)


def queue(operation, body, kind="application/x-amz-json-1.0"):
    return Sent(headers={"X-Amz-Target": "AmazonSQS." + operation, "Content-Type": kind}, body=json.dumps(body), service="sqs")


def without(members, *names_):
    return {k: v for k, v in members.items() if k not in names_}


def header(name, value):
    def change(headers, body, path):
        return {**without(headers, name), **({name: value} if value is not None else {})}, body, path

    return change


def body_of(text):
    return lambda headers, body, path: (headers, text.encode(), path)


def path_of(text):
    return lambda headers, body, path: (headers, body, text)


GOOD = {"organizations": org(), "sts": sts(ASSUME), "scheduler": schedule(), "sqs": queue("CreateQueue", {"QueueName": "q"})}

BROKEN = {
    # Members.
    "misspelt member": org({**without(MOVE, "AccountId"), "AccountID": ACCOUNT}),
    "missing member": org(without(MOVE, "DestinationParentId")),
    "member too many": org({**MOVE, "Force": True}),
    "number for a text": org({**MOVE, "AccountId": 200000000001}),
    "null": org({**MOVE, "AccountId": None}),
    "list for a text": org({**MOVE, "AccountId": [ACCOUNT]}),
    "account of 11 digits": org({**MOVE, "AccountId": "20000000001"}),
    "OU that is none": org({**MOVE, "SourceParentId": "Available"}),
    "empty body": org(raw=""),
    "list for an object": org(raw="[]"),
    "not JSON": org(raw="{"),
    "member twice": org(raw=json.dumps(MOVE)[:-1] + ', "AccountId": "%s"}' % ACCOUNT),
    "page of 21": org({"ParentId": names.ROOT, "MaxResults": 21}, "ListAccountsForParent"),
    "page of 0": org({"ParentId": names.ROOT, "MaxResults": 0}, "ListAccountsForParent"),
    "size as a text": org({"ParentId": names.ROOT, "MaxResults": "20"}, "ListAccountsForParent"),
    "true for a number": org({"ParentId": names.ROOT, "MaxResults": True}, "ListAccountsForParent"),
    "long tag": org({"ResourceId": ACCOUNT, "Tags": [{"Key": "k" * 129, "Value": ""}]}, "TagResource"),
    "tag without value": org({"ResourceId": ACCOUNT, "Tags": [{"Key": "k"}]}, "TagResource"),
    "no such operation": org(operation="MoveAccounts"),
    "no such service": Sent(headers={"X-Amz-Target": "AWSOrganizations.MoveAccount", "Content-Type": "application/x-amz-json-1.1"}, body="{}"),
    "no target": org(operation=None),
    "JSON 1.0 for 1.1": org(kind="application/x-amz-json-1.0"),
    "JSON without its version": org(kind="application/json"),
    "not at the root": org(path="/x"),
    "with a query": org(path="/?a=b"),
    "other region": org(region="eu-west-1"),
    # Forms.
    "form: unknown member": sts({**ASSUME, "Duration": "900"}),
    "form: missing member": sts(without(ASSUME, "RoleSessionName")),
    "form: too short a session": sts({**ASSUME, "DurationSeconds": "899"}),
    "form: text for a number": sts({**ASSUME, "DurationSeconds": "15m"}),
    "form: session name": sts({**ASSUME, "RoleSessionName": "a b"}),
    "form: version": sts({**ASSUME, "Version": "2011-06-16"}),
    "form: no version": sts(without(ASSUME, "Version")),
    "form: no such action": sts({**ASSUME, "Action": "AssumeRoles"}),
    "form: member twice": sts(urlencode(ASSUME) + "&RoleSessionName=other"),
    "form: list counts from 0": sts({**ASSUME, "Tags.member.0.Key": "k", "Tags.member.0.Value": "v"}),
    "form: list with a gap": sts({**ASSUME, "Tags.member.1.Key": "k", "Tags.member.1.Value": "v", "Tags.member.3.Key": "l", "Tags.member.3.Value": "v"}),
    "form: list without member": sts({**ASSUME, "Tags.1.Key": "k", "Tags.1.Value": "v"}),
    # REST.
    "rest: name": schedule(name="a%20b"),
    "rest: long name": schedule(name="n" * 65),
    "rest: enumeration": schedule({**SCHEDULE, "FlexibleTimeWindow": {"Mode": "off"}}),
    "rest: time as text": schedule({**SCHEDULE, "StartDate": "2030-01-01T00:00:00Z"}),
    "rest: name in the body too": schedule({**SCHEDULE, "Name": "n"}),
    "rest: unknown query": schedule(method="GET", query="?GroupName=g"),
    "rest: query twice": schedule(method="GET", query="?groupName=g&groupName=h"),
    "rest: no such path": Sent("GET", "/schedule/n", service="scheduler"),
    "rest: content type": schedule(kind="application/x-amz-json-1.1"),
    # SQS's JSON.
    "sqs: 11 at once": queue("ReceiveMessage", {"QueueUrl": "u", "MaxNumberOfMessages": "11"}),
    "sqs: flattened name": queue("ReceiveMessage", {"QueueUrl": "u", "MessageSystemAttributeName": ["All"]}),
    "sqs: no body": queue("SendMessage", {"QueueUrl": "u"}),
    "sqs: JSON 1.1": queue("SendMessage", {"QueueUrl": "u", "MessageBody": "b"}, "application/x-amz-json-1.1"),
    # Signatures.
    "unsigned": org(service=None),
    "wrong secret": org(secret="wrong"),
    "body changed": org(late=body_of(json.dumps({**MOVE, "DestinationParentId": names.ROOT}))),
    "target changed": org(late=header("X-Amz-Target", "AWSOrganizationsV20161128.DescribeAccount")),
    "path changed": schedule(late=path_of("/schedules/other")),
    "query added": schedule(method="GET", late=path_of("/schedules/n?groupName=default")),
    "date changed": org(late=header("X-Amz-Date", "20200101T000000Z")),
    "unsigned x-amz header": org(late=header("X-Amz-Extra", "1")),
    "no session token": sts(ASSUME, late=header("X-Amz-Security-Token", None)),
    "foreign session token": sts(ASSUME, token="another-token"),
    "signed for another service": org(service="iam"),
    "signed as sso-admin": Sent(headers={"X-Amz-Target": "SWBExternalService.ListInstances", "Content-Type": "application/x-amz-json-1.1"}, body="{}",
                                service="sso-admin"),
    "wrong checksum": org(late=header("X-Amz-Content-SHA256", hashlib.sha256(b"").hexdigest())),
}


@pytest.fixture
def strict(front):
    front.do("organizations", "add_account", id=ACCOUNT)
    front.may_break = True
    return front


@pytest.mark.parametrize("what", sorted(GOOD))
def test_the_same_request_unbroken_is_taken(strict, what):
    status, body = GOOD[what].send(strict.url)
    assert status == 200, body
    assert not strict.broken()


@pytest.mark.parametrize("what", sorted(BROKEN))
def test_a_broken_request_is_refused(strict, what):
    status, body = BROKEN[what].send(strict.url)
    assert 400 <= status < 500, (status, body)
    entry = strict.log()[-1]
    assert entry["broken"] and not entry["done"] and entry["status"] == status
    assert strict.state("organizations")["moves"] == [] and strict.state("scheduler")["schedules"] == []


def test_keys_that_nobody_has_are_refused(strict):
    status, body = org(key="AKIAFRONTNOBODY00001").send(strict.url)
    assert (status, json.loads(body)["__type"]) == (400, "UnrecognizedClientException")


def test_a_clock_that_is_off_is_named(strict):
    strict.advance(600)
    status, body = org().send(strict.url)
    assert (status, json.loads(body)["__type"]) == (400, "InvalidSignatureException")
    assert json.loads(body)["message"].startswith("Signature expired")
    assert not strict.broken()


def test_there_are_at_least_forty():
    assert len(BROKEN) >= 40


def test_the_front_starts_quickly_and_ends_with_its_owner():
    from lib.aws_front import Front

    started = time.monotonic()
    front = Front()
    assert front.client("sts").get_caller_identity()["Account"] == names.MANAGEMENT
    assert time.monotonic() - started < 90  # one second when nobody else works here
    front.close()
    assert front.process.returncode == 0
