# SPDX-License-Identifier: Apache-2.0
"""Our signatures against botocore's, over generated requests."""

import calendar
import datetime
import json
import random
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from lib.server import binary

auth = pytest.importorskip("botocore.auth")
from botocore.awsrequest import AWSRequest  # noqa: E402
from botocore.credentials import Credentials  # noqa: E402

TOOL = Path(binary()).parent / "tests/unit/sigv4_tool"
LETTERS = "abcXYZ019-._~ /:+&=%?#,;@!$'()*[]äß日本\u00a0\U0001f600"
SEGMENTS = ["a", "b c", "arn:aws:x", "ä", "..", ".", "", "x%2Fy", "~", "%20", "日"]


def text(dice, most=12):
    return "".join(dice.choice(LETTERS) for _ in range(dice.randint(0, most)))


def escape_somehow(dice, word):
    """As a client may send it: small or large hex digits, more escaped than needed."""
    sent = "".join(
        "".join("%%%02X" % byte for byte in c.encode()) if dice.random() < 0.2 else quote(c, safe="-_.~") for c in word
    )
    return sent if dice.random() < 0.7 else sent.replace("%C3", "%c3").replace("%2F", "%2f").replace("%3A", "%3a")


def json_post(dice):
    body = json.dumps({"TableName": text(dice), "Key": {"pk": {"S": text(dice, 40)}}}, ensure_ascii=dice.random() < 0.5)
    return dict(
        method="POST", path="/", params=[], body=body, service="dynamodb",
        headers=[["Content-Type", "application/x-amz-json-1.0"],
                 ["X-Amz-Target", "DynamoDB_20120810." + dice.choice(["GetItem", "TransactWriteItems"])]],
    )


def form_post(dice):
    body = "Action=AssumeRole&Version=2011-06-15&RoleArn=" + quote(text(dice), safe="")
    return dict(
        method="POST", path=dice.choice(["/", ""]), params=[], body=body, service="sts",
        headers=[["content-type", "application/x-www-form-urlencoded; charset=utf-8"]],
    )


def odd_get(dice):
    params = [(text(dice), text(dice)) for _ in range(dice.randint(0, 6))]
    params = [(key or "k", value) for key, value in params]
    if params and dice.random() < 0.5:
        params += [(params[0][0], text(dice)), (params[0][0] + "-", "")]
    return dict(
        method=dice.choice(["GET", "DELETE", "PUT"]), path="/" + "/".join(dice.choices(SEGMENTS, k=dice.randint(0, 6))),
        params=params, body="", service="scheduler",
        headers=[["X-Amz-Meta-%d" % i, dice.choice(["", " a", "b  c", "\td \t e ", "\"x   y\""])]
                 for i in range(dice.randint(0, 4))],
    )


def generate(dice):
    request = dice.choice([json_post, form_post, odd_get, odd_get])(dice)
    sent = list(request["params"])
    dice.shuffle(sent)
    request["query"] = "&".join(
        escape_somehow(dice, key) + ("=" + escape_somehow(dice, value) if value or dice.random() < 0.5 else "")
        for key, value in sent
    )
    request["headers"].append(["Host", request["service"] + ".eu-west-1.amazonaws.com"])
    dice.shuffle(request["headers"])
    request.update(
        region=dice.choice(["eu-west-1", "us-gov-east-1"]), key="AKIDEXAMPLE", secret="s/+ecret" + str(dice.random()),
        token=dice.choice(["", "AQoDYXdzEPT//=="]), now=dice.randint(1, 4102444799),
    )
    return request


def botocore_signs(request):
    stamp = datetime.datetime.utcfromtimestamp(request["now"])
    assert calendar.timegm(stamp.timetuple()) == request["now"]
    theirs = AWSRequest(
        method=request["method"], url="https://host" + request["path"].replace("?", "%3F").replace("#", "%23"),
        params=request["params"], data=request["body"].encode(),
    )
    for name, value in request["headers"]:
        theirs.headers.add_header(name, value)
    credentials = Credentials(request["key"], request["secret"], request["token"] or None)
    signer = auth.SigV4Auth(credentials, request["service"], request["region"])
    theirs.context["timestamp"] = stamp.strftime("%Y%m%dT%H%M%SZ")
    # What add_auth() does, with a time of ours.
    auth.SigV4Auth._modify_request_before_signing(signer, theirs)
    text_to_sign = signer.string_to_sign(theirs, signer.canonical_request(theirs))
    signer._inject_signature_to_request(theirs, signer.signature(text_to_sign, theirs))
    return theirs.headers["Authorization"]


def test_signatures_are_botocores():
    dice = random.Random(20150830)
    requests = [generate(dice) for _ in range(600)]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([str(TOOL)], input=lines, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    ours = done.stdout.splitlines()
    assert len(ours) == len(requests)
    for request, got in zip(requests, ours):
        assert got == botocore_signs(request), request
