# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments while events go out by webhook: the receiver misses none and never hears a subject out of order."""

import os
import random
import threading

from lib.crowd import Background
from lib.http import Broken
from lib.receiver import Receiver
from lib.server import Server
from lib.wait import until

CALLERS, SUBJECTS = 4, 5
ROUNDS = int(os.environ.get("LEASEHOLD_CRASH_ROUNDS", "50"))
SEED = int(os.environ.get("LEASEHOLD_CRASH_SEED", "4711"))


class Sender:
    """Sends outside events for its own subjects, numbered, until the server is gone; what was not answered is sent again with the same id."""

    def __init__(self, number):
        self.number = number
        self.rng = random.Random(SEED * 1000 + number)
        self.next = {"%d-%d" % (number, i): 1 for i in range(SUBJECTS)}
        self.open = None  # sent, and nobody knows
        self.taken = []  # (subject, number), acknowledged

    def event(self, subject, number):
        return {
            "version": "0",
            "id": "%s-%06d" % (subject, number),
            "detail-type": "Numbered",
            "source": "test",
            "subject": "thing/%s" % subject,
            "detail": {"number": number},
        }

    def send(self, admin):
        if self.open is None:
            subject = self.rng.choice(sorted(self.next))
            self.open = (subject, self.next[subject])
        reply = admin.post("/v1/inbox/cloudtrail", body=self.event(*self.open))
        assert reply.status == 202, reply
        assert reply.json["rejected"] == [], reply
        self.taken.append(self.open)
        self.next[self.open[0]] += 1
        self.open = None

    def round(self, server, end):
        admin = server.admin(retry=False, timeout=20)
        try:
            while not end.is_set():
                self.send(admin)
        except (Broken, OSError):
            pass
        finally:
            admin.close()


def heard(receiver):
    """Numbers by subject, in the order of their first receipt."""
    firsts, seen = {}, set()
    for event in receiver.events():
        if event["detail-type"] != "cloudtrail:Numbered" or event["id"] in seen:
            continue
        seen.add(event["id"])
        firsts.setdefault(event["subject"], []).append(number_of(event))
    return firsts


def number_of(event):
    detail = event["detail"]
    return detail["number"] if "number" in detail else detail["detail"]["number"]


def test_no_event_is_missed_and_no_subject_reordered_by_kills(tmp_path):
    rng = random.Random(SEED)
    senders = [Sender(i) for i in range(CALLERS)]
    with Receiver() as receiver:
        server = Server(tmp_path / "data", env={"LEASEHOLD_WEBHOOK_PRIVATE": "true"}).start()
        made = server.admin().post("/v1/ops/webhooks", body={"url": receiver.url, "filter": "cloudtrail:*"})
        assert made.status == 201, made
        for _ in range(ROUNDS):
            end = threading.Event()
            heard_before = len(receiver.got)
            enough = heard_before + rng.randrange(1, 25)
            rounds = [Background(sender.round, server, end) for sender in senders]
            until(lambda: len(receiver.got) > enough, "some are delivered", 30)
            server.kill()
            end.set()
            for each in rounds:
                each.result()
            server.start()
        wanted = {}
        for sender in senders:
            for subject, number in sender.taken:
                wanted.setdefault("thing/%s" % subject, []).append(number)
        admin = server.admin()

        def complete():
            got = heard(receiver)
            return got if all(len(got.get(subject, [])) >= len(numbers) for subject, numbers in wanted.items()) else None

        # By subject, not in sum: one may have been heard of that its sender has no answer for.
        got = until(complete, "all are delivered", 60)
        for subject, numbers in wanted.items():
            # One that was sent and never acknowledged may have been taken in: the next start of its sender repeats it.
            assert got[subject][: len(numbers)] == numbers, subject
            assert got[subject] == sorted(got[subject]), subject
        assert admin.get("/v1/ops/dead-letters").json["dead_letters"] == []
        assert all(hit.is_signed_with(made.json["secret"]) for hit in receiver.got)
        assert server.stop() == 0
    print("%d kills among deliveries" % ROUNDS)
