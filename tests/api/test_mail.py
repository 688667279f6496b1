# SPDX-License-Identifier: Apache-2.0
"""Mails as a real SMTP server gets them: sent by the sender itself (tests/unit/notify_tool)."""

import email.utils
import json
import socket
import subprocess
import time
from pathlib import Path

import pytest

from lib.certificate import Certificate
from lib.server import binary

pytest.importorskip("aiosmtpd")
from lib.smtp import SmtpServer  # noqa: E402

TOOL = Path(binary()).parent / "tests/unit/notify_tool"
PASSWORD = "correct horse battery"
EVENT = {
    "id": "01900000-0000-7000-8000-000000000001", "type": "AlarmRaised", "subject": "alarm/dead-letters#mail-out",
    "actor": "alarms", "time": 1700000000,
    "detail": {"severity": "page", "evidence": "3 dead letters since 12:00", "value": 3, "list": [1, {"a": None}]},
}


def send(url, to="ops@example.org", event=None, **fields):
    """(has succeeded, what was said)"""
    given = {"url": url, "from": "leasehold@example.org", "to": to, "event": {**EVENT, **(event or {})}, **fields}
    done = subprocess.run([str(TOOL), "mail"], input=json.dumps(given), capture_output=True, text=True, timeout=90)
    assert done.returncode in (0, 1), done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    return done.returncode == 0, done.stdout.strip()


@pytest.fixture
def server():
    with SmtpServer() as plain:
        yield plain


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return Certificate(tmp_path_factory.mktemp("certificate"))


def only(server):
    (mail,) = server.mails
    return mail


# What a mail says.


def test_a_mail_says_what_happened_to_what_when_by_whom_and_what_to_do(server):
    assert send(server.url) == (True, "ok")
    mail = only(server)
    assert (mail.sender, mail.recipients) == ("leasehold@example.org", ["ops@example.org"])
    assert mail.message["Subject"] == "[leasehold] Alarm (page): alarm/dead-letters#mail-out"
    assert mail.message["From"].addresses[0].addr_spec == "leasehold@example.org"
    assert mail.message["To"].addresses[0].addr_spec == "ops@example.org"
    assert mail.message["Auto-Submitted"] == "auto-generated"
    assert abs(email.utils.parsedate_to_datetime(str(mail.message["Date"])).timestamp() - time.time()) < 300
    for part in ("alarm/dead-letters#mail-out", "2023-11-14T22:13:20Z", "alarms", "evidence: 3 dead letters since 12:00",
                 "value: 3", 'list: [1,{"a":null}]', "What to do:", EVENT["id"]):
        assert part in mail.text
    assert not mail.message.defects


def test_an_event_without_words_of_its_own_gets_the_generic_ones(server):
    send(server.url, event={"type": "SomethingElse", "subject": "lease/7", "detail": {}})
    mail = only(server)
    assert mail.message["Subject"] == "[leasehold] SomethingElse: lease/7"
    assert "Details" not in mail.text


def test_letters_beyond_ascii_arrive_and_the_mail_is_ascii(server):
    subject = "lease/" + "Größe-日本-😀-" * 9 + "=end "
    send(server.url, event={"subject": subject, "detail": {"grund": "Überfällig = 100 % 😀 " * 30}})
    mail = only(server)
    assert mail.raw.isascii()
    assert max(len(line) for line in mail.raw.split(b"\r\n")) <= 76
    shown = str(mail.message["Subject"])
    assert shown.startswith("[leasehold] Alarm: lease/Größe-日本-😀-Größe") and "\ufffd" not in shown
    assert "grund: " + ("Überfällig = 100 % 😀 " * 30).strip()[:900] in mail.text
    assert not mail.message.defects


@pytest.mark.parametrize("text", ["x\r\nBcc: evil@example.org", "x\nBcc: evil@example.org", "x\rBcc: e", "x\x0bBcc: e",
                                  "x\u2028Bcc: e", "x\u0085Bcc: e"])
def test_no_text_of_an_event_makes_a_header_or_a_line(server, text):
    send(server.url, event={"subject": text, "type": text, "actor": text, "detail": {text: text, "severity": text}})
    mail = only(server)
    assert "Bcc" not in mail.message
    assert mail.recipients == ["ops@example.org"]
    assert not [line for line in mail.text.splitlines() if line.startswith("Bcc")]
    assert b"\nBcc" not in mail.raw


def test_a_subject_that_looks_encoded_is_shown_as_it_is(server):
    send(server.url, event={"subject": "=?utf-8?q?tricked?="})
    assert str(only(server).message["Subject"]).endswith(": =?utf-8?q?tricked?=")


def test_dots_at_the_beginning_of_lines_survive(server):
    # A soft line break of quoted-printable puts any character at the beginning of a line, a lonely dot among them.
    text = "." * 400
    send(server.url, event={"detail": {"dots": text}})
    mail = only(server)
    assert any(line.startswith(b".") for line in mail.raw.split(b"\r\n")), "the test does not test it"
    assert "dots: " + text in mail.text
    assert mail.text.rstrip().endswith(EVENT["id"])


def test_a_repeat_has_the_same_message_id_and_others_do_not(server):
    for to in ("a@example.org", "a@example.org", "b@example.org"):
        send(server.url, to=to)
    send(server.url, to="a@example.org", event={"id": EVENT["id"].replace("1", "2")})
    ids = [str(mail.message["Message-ID"]) for mail in server.mails]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    assert all(each.endswith("@example.org>") for each in ids)


# What a server may do.


def test_a_refused_recipient_fails_alone_with_the_servers_words(server):
    server.refuses.add("gone@example.org")
    ok, said = send(server.url, to="gone@example.org")
    assert not ok and "550 5.1.1 no such mailbox as <gone@example.org>" in said and server.url in said
    assert send(server.url, to="here@example.org") == (True, "ok")
    assert only(server).recipients == ["here@example.org"]


def test_a_recipient_for_later_is_a_failure_now(server):
    server.delays.add("late@example.org")
    ok, said = send(server.url, to="late@example.org")
    assert not ok and "451 4.3.0 try again later" in said


def test_a_server_that_is_down_is_a_failure(server):
    server.is_down = True
    ok, said = send(server.url)
    assert not ok and "421" in said
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # taken, and nobody listens
        ok, said = send("smtp://127.0.0.1:%d" % sock.getsockname()[1])
    assert not ok and said.startswith("smtp://127.0.0.1:")


@pytest.mark.parametrize("to", ["", "ops", "ops@", "@example.org", "a b@example.org", "a@b@c", "<a@example.org>", "a@example.org>\r\n",
                                "a@example.org,b@example.org", "-oQ@example.org", "a@-b.org", "ä@example.org", "a@b..c", "a|b@c.d",
                                "x" * 65 + "@c.d"])
def test_what_is_no_address_is_not_sent_to(server, to):
    ok, said = send(server.url, to=to)
    assert not ok and "not a mail address" in said
    assert server.sessions == 0


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "127.0.0.1:25", "smtp://", "smtp://user:pass@127.0.0.1", "smtp://127.0.0.1/x"])
def test_what_is_no_mail_server_is_refused(url):
    ok, said = send(url)
    assert not ok and "mail server must be smtp://" in said and "pass@" not in said


# TLS.


def test_starttls_is_used_when_offered(certificate):
    with SmtpServer("starttls", certificate) as server:
        assert send(server.url, caFile=certificate.cert) == (True, "ok")
        assert only(server).is_encrypted


def test_a_certificate_that_nobody_signed_is_refused(certificate):
    for mode in ("starttls", "smtps"):
        with SmtpServer(mode, certificate) as server:
            ok, said = send(server.url)
            assert not ok and "certificate" in said
            assert server.mails == []


def test_tls_that_is_required_and_not_offered_sends_nothing(server):
    ok, said = send(server.url, tls="required")
    assert not ok and "TLS is required" in said
    assert server.mails == []


def test_tls_from_the_start(certificate):
    with SmtpServer("smtps", certificate) as server:
        assert send(server.url, caFile=certificate.cert) == (True, "ok")
        assert only(server).is_encrypted


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")  # the server does not see its own smtps
@pytest.mark.parametrize("mode", ["starttls", "smtps"])
def test_user_and_password_are_given_over_tls(certificate, mode):
    with SmtpServer(mode, certificate, login=("ops", PASSWORD)) as server:
        ok, _ = send(server.url, caFile=certificate.cert, user="ops", password=PASSWORD)
        assert ok
        assert only(server).user == "ops"
        ok, said = send(server.url, caFile=certificate.cert, user="ops", password=PASSWORD + "x")
        assert not ok and "535" in said
        assert len(server.mails) == 1


def test_a_password_is_never_given_in_the_clear(server):
    ok, said = send(server.url, user="ops", password=PASSWORD)
    assert not ok and "TLS is required" in said
    assert server.mails == []


def test_user_and_password_belong_together(server):
    ok, said = send(server.url, user="ops")
    assert not ok and "belong together" in said
