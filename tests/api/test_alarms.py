# SPDX-License-Identifier: Apache-2.0
"""From a far side that fails to a mail in an operator's box, and back: real HTTP receiver, real mail server."""

import threading

import pytest

from lib.receiver import Receiver
from lib.server import ADMIN_TOKEN, Server, run
from lib.smtp import SmtpServer
from lib.wait import until

TO = "ops@example.org"


@pytest.fixture
def world(tmp_path):
    with Receiver() as receiver, SmtpServer() as mail:
        server = Server(
            tmp_path / "data",
            env={
                "LEASEHOLD_WEBHOOK_PRIVATE": "true",
                "LEASEHOLD_SINK_TRIES": "2",
                "LEASEHOLD_SINK_BACKOFF_SEC": "0.01",
                "LEASEHOLD_ALARM_INTERVAL_SEC": "1",
                "LEASEHOLD_SMTP_URL": mail.url,
                "LEASEHOLD_SMTP_REQUIRE_TLS": "false",
                "LEASEHOLD_MAIL_FROM": "leasehold@example.org",
                "LEASEHOLD_MAIL_TO": "%s, second@example.org" % TO,
            },
        ).start()
        yield server, server.admin(), receiver, mail
        assert not server.complaints()
        assert server.stop() == 0


def mails_about(mail, word, to=TO):
    return [m for m in list(mail.mails) if word in m.message["Subject"] and m.recipients == [to]]


def alarms(admin):
    return {a["name"]: a for a in admin.get("/v1/ops/alarms").json["alarms"]}


def break_webhook(server, admin, receiver):
    receiver.status = 500
    made = admin.post("/v1/ops/webhooks", body={"url": receiver.url, "filter": "SandboxAllocated"})
    assert made.status == 201, made
    server.wait_available(1)
    claimed = server.track("student-1").allocate()
    assert claimed.status == 201
    return until(lambda: admin.get("/v1/ops/dead-letters").json["dead_letters"], "there is a dead letter")


def test_a_dead_letter_raises_an_alarm_that_is_mailed_once_to_everybody_and_cleared_when_it_is_replayed(world):
    server, admin, receiver, mail = world
    dead = break_webhook(server, admin, receiver)
    until(lambda: alarms(admin).get("dead-letters#webhook-out", {}).get("state") == "raised", "the alarm is raised")
    until(lambda: mails_about(mail, "dead-letters") and mails_about(mail, "dead-letters", "second@example.org"), "mail")
    assert "webhook-out" in mails_about(mail, "dead-letters")[0].text

    receiver.status = 204
    for each in dead:
        assert admin.post("/v1/ops/dead-letters/%s/replay" % each["id"]).status == 200
    until(lambda: "dead-letters#webhook-out" not in alarms(admin), "the alarm is cleared")
    until(lambda: len(mails_about(mail, "dead-letters")) == 2, "that is mailed too")
    types = [e["detail-type"] for e in admin.get("/v1/ops/events?type=Alarm*&order=oldest").json["events"]]
    assert types.count("AlarmRaised") == 1 and types.count("AlarmCleared") == 1, types


def test_the_command_shows_an_alarm_with_what_it_means_and_what_to_do(world):
    server, admin, _, _ = world
    assert admin.post("/v1/admin/claims/pause", body={"reason": "a walk"}).status == 200
    env = {"LEASEHOLD_ADDRESS": server.url, "BROKER_ADMIN_TOKEN": ADMIN_TOKEN, "NO_COLOR": "1"}
    until(lambda: run("alarm", "show", "claims-paused", env=env).returncode == 0, "it is raised")
    shown = run("alarm", "show", "claims-paused", env=env).stdout
    assert "\nMeans: no sandbox is lent" in shown and "\nDo: after a restore" in shown, shown
    assert "job-failing" not in shown and run("alarm", "show", "claims", env=env).returncode == 4


def test_one_refused_recipient_does_not_keep_the_other_from_his_mail(world):
    server, admin, receiver, mail = world
    mail.refuses.add("second@example.org")
    break_webhook(server, admin, receiver)
    until(lambda: mails_about(mail, "dead-letters"), "the good recipient has his mail")
    dead = until(
        lambda: [d for d in admin.get("/v1/ops/dead-letters?queue=mail-alarm").json["dead_letters"]], "the other is dead"
    )
    assert {d["target"] for d in dead} == {"second@example.org"}
    assert all("550" in d["error"] for d in dead), dead


def test_receivers_that_hang_keep_no_alarm_from_the_pager(tmp_path):
    """More is due for those that hang than one look finds; a third one refuses, and of that the pager is told."""
    with Receiver() as hanging, Receiver() as second, Receiver() as refusing, Receiver() as pager:
        hanging.gate, second.gate, refusing.status = threading.Event(), threading.Event(), 500
        server = Server(
            tmp_path / "data",
            env={"LEASEHOLD_WEBHOOK_PRIVATE": "true", "LEASEHOLD_ALARM_INTERVAL_SEC": "1", "LEASEHOLD_SIM_SANDBOXES": "400", "LEASEHOLD_SINK_TRIES": "1"},
        ).start()
        admin = server.admin()
        for url, filter in ((hanging.url, "*"), (second.url, "*"), (refusing.url, "SandboxMarkedForDeletion"), (pager.url, "Alarm*")):
            assert admin.post("/v1/ops/webhooks", body={"url": url, "filter": filter}).status == 201
        server.wait_available(400)
        claims = [server.track("student-%d" % n).allocate() for n in range(300)]
        assert {c.status for c in claims} == {201}
        assert server.track("student-1").mark(claims[1].json["sandbox_id"]).status == 200
        until(lambda: [e for e in pager.events() if e["detail-type"] == "AlarmRaised"], "the pager is told")
        until(lambda: [e for e in second.events() if e["detail-type"] == "AlarmRaised"], "so is one that hangs, before the rest")
        hanging.gate.set(), second.gate.set()
        assert server.stop() == 0
