# SPDX-License-Identifier: Apache-2.0
"""Events from outside: taken in once each, by those who may, however bad their neighbours are."""

import json

import pytest

from lib.http import Client
from lib.ops import INBOX_TOKEN, Ops, outside
from lib.server import ADMIN_TOKEN, TRACK_TOKEN

BODY_MAX = 1048576
PATH = "/v1/inbox/cloudtrail"


@pytest.fixture(scope="module")
def server(make_for_module):
    return make_for_module.server(0, LEASEHOLD_INBOX_TOKENS=INBOX_TOKEN + ",another-" + INBOX_TOKEN)


@pytest.fixture
def ops(server):
    return Ops(server)


@pytest.fixture
def sender(server):
    return Client(server.address, {"Authorization": "Bearer " + INBOX_TOKEN})


def verdict(reply):
    assert reply.status == 202, reply
    assert set(reply.json) == {"accepted", "duplicates", "rejected"}
    return reply.json["accepted"], reply.json["duplicates"], [(r["index"], r["id"]) for r in reply.json["rejected"]]


def test_an_event_is_stored_with_who_sent_it_and_under_which_request(sender, ops):
    event = outside("MoveAccount", subject="account/111122223333", detail={"a": 1})
    reply = sender.post(PATH, body=event)
    assert verdict(reply) == (1, 0, [])
    stored = ops.events("subject=account/111122223333")[0]
    assert stored["detail-type"] == "cloudtrail:MoveAccount"
    assert stored["actor"] == "inbox/cloudtrail"
    assert stored["requestId"] == reply.header("x-request-id")
    assert stored["detail"] == event


def test_the_same_event_is_taken_once(sender, ops):
    event = outside("Again", subject="thing/again")
    assert verdict(sender.post(PATH, body=event)) == (1, 0, [])
    assert verdict(sender.post(PATH, body=event)) == (0, 1, [])
    assert verdict(sender.post(PATH, body=[event, outside("New", subject="thing/again"), event])) == (1, 2, [])
    assert len(ops.events("subject=thing/again")) == 2


def test_a_bad_record_does_not_keep_its_neighbours(sender, ops):
    batch = [outside("A", subject="thing/batch"), 7, {"id": "no-type"}, outside("B", subject="thing/batch"), None]
    reply = sender.post(PATH, body=batch)
    assert verdict(reply) == (2, 0, [(1, None), (2, "no-type"), (4, None)])
    assert all(r["error"] for r in reply.json["rejected"])
    stored = ops.events("order=oldest&subject=thing/batch")
    assert [e["detail-type"] for e in stored] == ["cloudtrail:A", "cloudtrail:B"]


def test_records_may_be_wrapped_as_queues_do(sender):
    records = [{"messageId": "m%d" % n, "body": json.dumps(outside("W%d" % n))} for n in range(3)]
    assert verdict(sender.post(PATH, body={"Records": records})) == (3, 0, [])


@pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b"7", b"[1,", b'"text"', b"\xff\xfe"])
def test_a_body_that_cannot_be_read_is_400(sender, body):
    reply = sender.post(PATH, body=body)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


def test_more_records_than_a_transaction_would_have_are_taken(sender):
    assert verdict(sender.post(PATH, body=[outside("Many") for _ in range(100)])) == (100, 0, [])
    reply = sender.post(PATH, body=[outside("Many") for _ in range(101)])
    assert reply.status == 400 and "100" in reply.error["message"]


def test_an_unknown_source_is_404_and_says_which_are_known(sender):
    reply = sender.post("/v1/inbox/nobody", body=outside("A"))
    assert (reply.status, reply.code) == (404, "NOT_FOUND")
    assert "'nobody'" in reply.error["message"] and "cloudtrail" in reply.error["message"]


@pytest.mark.parametrize(
    "token,status",
    [(None, 401), ("wrong-token-0123456789abcdef", 401), (TRACK_TOKEN, 403), (ADMIN_TOKEN, 202)]
    + [(INBOX_TOKEN, 202), ("another-" + INBOX_TOKEN, 202)],
)
def test_who_may_send(server, token, status):
    client = Client(server.address, {"Authorization": "Bearer " + token} if token else None)
    assert client.post(PATH, body=outside("Allowed")).status == status


@pytest.mark.parametrize("path", ["/v1/ops/events", "/v1/admin/stats", "/v1/ops/events/stream"])
def test_a_senders_token_opens_nothing_else(sender, path):
    reply = sender.get(path)
    assert (reply.status, reply.code) == (403, "FORBIDDEN")


def test_a_large_body_is_taken_from_who_is_known_and_no_larger_one(server, sender):
    body = [outside("Large", detail={"filler": "x" * 60000}) for _ in range(16)]
    assert verdict(sender.post(PATH, body=body)) == (16, 0, [])
    too_large = b" " * BODY_MAX + json.dumps(outside("A")).encode()
    assert sender.post(PATH, body=too_large).status == 413
    stranger = Client(server.address, {"Authorization": "Bearer wrong-token-0123456789abcdef"})
    assert stranger.post(PATH, body=b" " * 5000 + b"{}").status == 413
    assert sender.post("/v1/inbox/cloudtrail/more", body=b" " * 5000 + b"{}").status == 413


def test_without_tokens_of_its_own_the_inbox_is_the_operators(make):
    server = make.server(0)
    assert Ops(server).send(outside("A")).status == 202
    client = Client(server.address, {"Authorization": "Bearer " + INBOX_TOKEN})
    assert client.post(PATH, body=outside("A")).status == 401
