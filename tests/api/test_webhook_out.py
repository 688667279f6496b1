# SPDX-License-Identifier: Apache-2.0
"""Webhooks as a receiver sees them: sent by the sender itself (tests/unit/notify_tool) to a real HTTP server."""

import json
import socket
import subprocess
from pathlib import Path

import pytest

from lib.certificate import Certificate
from lib.receiver import Receiver
from lib.server import binary

TOOL = Path(binary()).parent / "tests/unit/notify_tool"
SECRET = "a secret between the two of us"
EVENT = {
    "id": "01900000-0000-7000-8000-000000000001", "type": "SandboxAllocated", "subject": "sandbox/ä-1", "actor": "track/7",
    "time": 1700000000, "detail": {"name": "Größe", "n": 1},
}


def send(url, **fields):
    """(has succeeded, what was said)"""
    given = {"url": url, "secret": SECRET, "allowsPrivate": 1, "event": EVENT, **fields}
    done = subprocess.run([str(TOOL), "webhook"], input=json.dumps(given), capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    assert SECRET not in done.stdout + done.stderr
    return done.returncode == 0, done.stdout.strip()


@pytest.fixture
def receiver():
    with Receiver() as server:
        yield server


def test_the_envelope_arrives_signed(receiver):
    assert send(receiver.url + "?token=1", tries=2) == (True, "ok")
    (hit,) = receiver.got
    assert (hit.method, hit.path) == ("POST", "/hook?token=1")
    assert hit.is_signed_with(SECRET)
    assert not hit.is_signed_with(SECRET + "x")
    assert hit.event["id"] == EVENT["id"]
    assert hit.event["detail-type"] == EVENT["type"]
    assert hit.event["subject"] == EVENT["subject"]
    assert hit.event["detail"] == EVENT["detail"]
    assert hit.event["time"].startswith("2023-11-14T22:13:20")
    assert hit.headers["content-type"] == "application/json"
    assert hit.headers["user-agent"].startswith("leasehold/")
    assert hit.headers["leasehold-event-id"] == EVENT["id"]
    assert hit.headers["leasehold-event-type"] == EVENT["type"]
    assert hit.headers["leasehold-delivery-try"] == "2"


def test_another_body_or_time_has_another_signature(receiver):
    send(receiver.url)
    (hit,) = receiver.got
    hit.body = hit.body.replace(b"sandbox", b"Sandbox")
    assert not hit.is_signed_with(SECRET)
    hit.body = hit.body.replace(b"Sandbox/", b"sandbox/").replace(b"SandboxA", b"SandboxA")
    hit.at += 3600
    assert not hit.is_signed_with(SECRET)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_is_success(receiver, status):
    receiver.status = status
    assert send(receiver.url) == (True, "ok")


@pytest.mark.parametrize("status", [301, 307, 400, 404, 410, 429, 500, 503])
def test_anything_else_is_a_failure_with_the_receivers_words(receiver, status):
    receiver.status, receiver.body = status, b"no\r\n\x1b[31mthanks\xff " + b"x" * 1000
    receiver.headers = {"Location": receiver.url}
    ok, said = send(receiver.url + "?token=hidden")
    assert not ok
    assert said.startswith("the receiver answered %d: no   [31mthanks? xxx" % status)
    assert len(said) < 240 and "hidden" not in said
    assert len(receiver.got) == 1  # no redirect was followed


def test_a_webhook_that_is_gone_or_paused_is_not_called(receiver):
    assert send(receiver.url, gone=1) == (True, "ok")
    assert send(receiver.url, paused=1) == (True, "ok")
    assert receiver.got == []


def test_a_private_address_is_not_called_unless_allowed(receiver):
    ok, said = send(receiver.url, allowsPrivate=0)
    assert not ok and "127.0.0.1" in said
    ok, said = send(receiver.url.replace("127.0.0.1", "localhost"), allowsPrivate=0)
    assert not ok and "may not be called" in said
    assert receiver.got == []


@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "2852039166", "[::ffff:169.254.169.254]"])
def test_metadata_addresses_are_never_called(host):
    ok, said = send("http://%s/latest/meta-data" % host, allowsPrivate=1)
    assert not ok and "may not be called" in said


def test_nobody_listening_is_a_failure_without_the_query():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # taken, and nobody listens
        ok, said = send("http://127.0.0.1:%d/hook?token=hidden" % sock.getsockname()[1])
    assert not ok and "/hook" in said and "hidden" not in said


def test_https_is_checked(tmp_path):
    certificate = Certificate(tmp_path)
    with Receiver(certificate) as receiver:
        ok, said = send(receiver.url)
        assert not ok and "certificate" in said
        assert receiver.got == []
        assert send(receiver.url, caFile=certificate.cert) == (True, "ok")
        assert receiver.got[0].is_signed_with(SECRET)


def test_an_odd_event_type_cannot_make_a_header(receiver):
    ok, _ = send(receiver.url, event={**EVENT, "type": "A\r\nX-Injected: 1"})
    assert ok
    assert "x-injected" not in receiver.got[0].headers
