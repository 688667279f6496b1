# SPDX-License-Identifier: Apache-2.0
"""Holds as operators see them: list, add, extend, release, bypass, drain; and the doctor. Against a real server whose world goes faster."""

import csv
import io
import json

import pytest

from lib import server
from lib.clouds import SimPool
from lib.ops import Ops, segment
from lib.server import ADMIN_TOKEN

HOUR = 3600
SETTINGS = {"LEASEHOLD_ALARM_INTERVAL_SEC": "1"}
OK, REFUSED, USAGE, NOT_FOUND, FOUND = 0, 1, 2, 4, 7
SCHEDULE = "isb-billing-sep-unquarantine-"


class Operator:
    """Calls of the API, and the same at a terminal."""

    def __init__(self, pool):
        self.connect(pool)
        self.act("jobs/reconcile/pause")

    def connect(self, pool):
        self.server, self.pool, self.ops = pool.server, pool, Ops(pool.server)
        self.until = pool.until
        self.env = {"LEASEHOLD_ADDRESS": pool.server.url, "BROKER_ADMIN_TOKEN": ADMIN_TOKEN, "NO_COLOR": "1",
                    "TZ": "UTC"}

    def run(self, *args, code=OK):
        done = server.run(*args, env=self.env)
        assert done.returncode == code, done
        return done

    def out(self, *args, code=OK):
        return self.run(*args, code=code).stdout

    def act(self, path, body=None, status=200):
        reply = self.ops.act(path, body)
        assert reply.status == status, reply
        return reply.json

    def refused(self, path, body=None, status=400):
        return self.act(path, body, status)["error"]["message"]

    def order(self, account, what, body=None):
        assert self.pool.admin.call("POST", "/accounts/%s/%s" % (account, what), body).status == 200

    def account(self, account):
        return self.pool.admin.data("GET", "/accounts/" + account)

    def until_phase(self, account, phase):
        return self.until(lambda: (lambda a: a if a["phase"] == phase else None)(self.account(account)), "account %s is %s" % (account, phase))

    def holds(self, account):
        """All of one account, the newest first."""
        return self.ops.read("holds?account=" + account)["holds"]

    def open_hold(self, account):
        return next(h for h in self.holds(account) if h["state"] == "open")

    def give_back(self):
        """An account whose lease has ended and that was cleaned."""
        lease = self.pool.active(self.pool.person())
        before = self.account(lease["awsAccountId"])["lastCleanedTime"]
        self.pool.manager.data("POST", "/leases/%s/terminate" % lease["leaseId"])
        self.until(lambda: self.account(lease["awsAccountId"])["lastCleanedTime"] > before, "the account is clean")
        return lease["awsAccountId"]

    def resting(self):
        account = self.give_back()
        self.until_phase(account, "Cooldown")
        self.until(lambda: self.pool.place(account) == "Quarantine", "it is in Quarantine")
        return account

    def free(self):
        got = self.pool.admin.everything("/accounts", 100)
        return next(a["awsAccountId"] for a in got if a["phase"] == "Available")

    def move(self, account, to):
        self.connect(self.pool.move_unseen(account, to))
        assert self.pool.place(account) == to

    def alarms(self):
        return {a["name"]: a for a in self.ops.read("alarms")["alarms"] if a["state"] == "raised"}


@pytest.fixture(scope="module")
def operator(make_for_module):
    return Operator(SimPool.start(make_for_module, None, None, count=12, **SETTINGS))


@pytest.fixture
def start(make):
    """start(SETTING=...): an operator of a server of their own."""
    return lambda count=4, **env: Operator(SimPool.start(make, None, None, count=count, **SETTINGS, **env))


# Looking.


def test_an_account_that_was_given_back_rests_and_it_can_be_seen_why_and_until_when(operator):
    account = operator.resting()
    hold = operator.open_hold(account)
    assert (hold["reason"], hold["mode"], hold["locks"], hold["closed_at"]) == ("billing", "native", False, None)
    assert hold["due_at"] - hold["created_at"] == 72 * HOUR
    assert hold["schedule"] == SCHEDULE + hold["id"] and len(hold["schedule"]) == 55 and hold["lease_uuid"]
    assert operator.ops.read("holds/" + hold["id"]) == hold
    assert hold["id"] in [h["id"] for h in operator.ops.read("holds")["holds"]]
    assert operator.ops.read("timers/" + segment(hold["schedule"]))["due_at"] == hold["due_at"]
    shown = operator.account(account)
    assert (shown["status"], shown["phase"], shown["openHolds"]) == ("Quarantine", "Cooldown", 1), "upstream's clients know no Cooldown"
    row = next(line for line in operator.out("hold", "list").splitlines() if hold["id"] in line)
    assert " billing " in row and (" in 2 d " in row or " in 3 d" in row), row
    card = operator.out("hold", "show", hold["id"])
    assert "after its cleanup" in card and hold["schedule"] in card
    assert json.loads(operator.out("hold", "list", account, "--json"))["holds"] == operator.holds(account)


def test_open_holds_come_in_pages_and_the_next_due_first(operator):
    for _ in range(2):
        operator.resting()
    seen, cursor = [], ""
    while cursor is not None:
        page = operator.ops.read("holds?limit=1" + cursor)
        seen += page["holds"]
        cursor = "&cursor=" + page["cursor"] if page["cursor"] else None
    assert len({h["id"] for h in seen}) == len(seen) >= 2
    assert [h["due_at"] or 0 for h in seen] == sorted(h["due_at"] or 0 for h in seen)


# By hand.


def test_a_person_holds_an_account_extends_it_and_lets_it_go(operator):
    account = operator.free()
    hold = operator.act("holds", {"account": account, "reason": "an audit", "by": "ann@example.com"}, 201)
    assert (hold["due_at"], hold["created_by"], hold["note"], hold["reason"]) == (None, "admin/ann@example.com", "an audit", "manual")
    assert operator.account(account)["phase"] == "Cooldown"
    assert "by a person" in operator.out("hold", "list", account)
    assert "reason is needed" in operator.refused("holds/%s/extend" % hold["id"], {"hours": 48}), "it had no end"
    longer = json.loads(operator.out("hold", "extend", hold["id"], "--hours", "48", "--reason", "the audit ends", "--json"))
    assert longer["due_at"] and operator.account(account)["restingUntil"]
    assert "reason is needed" in operator.refused("holds/%s/release" % hold["id"], {})
    assert operator.account(account)["phase"] == "Cooldown"
    done = json.loads(operator.out("hold", "release", hold["id"], "--reason", "found nothing", "--email", "bob@example.com", "--json"))
    assert (done["state"], done["closed_by"], done["closed_why"]) == ("released-early", "admin/bob@example.com", "found nothing")
    operator.until_phase(account, "Available")
    assert "has been closed since" in operator.refused("holds/%s/cancel" % hold["id"], {"reason": "again"}, 409)


def test_a_resting_account_is_shown_as_quarantine_says_why_and_is_not_cleaned_by_accident(operator):
    account = operator.free()
    other = next(a["awsAccountId"] for a in operator.pool.admin.everything("/accounts", 100)
                 if a["phase"] == "Available" and a["awsAccountId"] != account)
    hold = operator.act("holds", {"account": account, "reason": "late costs", "hours": 90}, 201)
    operator.order(other, "quarantine", {"reason": "a strange bill"})
    listed = {q: {a["awsAccountId"] for size in (1, 100) for a in operator.pool.admin.everything("/accounts?" + q, size)}
              for q in ("status=Quarantine", "phase=Quarantine", "phase=Cooldown", "status=Cooldown")}
    assert {account, other} <= listed["status=Quarantine"]
    assert account not in listed["phase=Quarantine"] and other in listed["phase=Quarantine"]
    assert account in listed["phase=Cooldown"] == listed["status=Cooldown"] and other not in listed["phase=Cooldown"]
    shown = operator.account(account)
    assert shown["status"] == "Quarantine" and "cooldown" in shown["reason"]
    refused = operator.pool.admin.errors("POST", "/accounts/%s/retryCleanup" % account, status=409)
    assert "in cooldown until" in refused[0]["message"] and operator.account(account)["restingUntil"] == shown["restingUntil"]
    operator.order(account, "retryCleanup?restartRest=true")
    cleaned = operator.account(account)
    assert cleaned["phase"] == "CleanUp" and cleaned["cleanupExecutionContext"]["stateMachineExecutionStartTime"]
    operator.until_phase(account, "Cooldown")
    operator.order(other, "eject")
    assert hold["id"]


def test_two_holds_and_the_account_is_free_after_the_last(operator):
    account = operator.free()
    first = operator.act("holds", {"account": account, "reason": "one", "hours": 100}, 201)
    assert "late costs" in operator.account(account)["reason"]
    second = operator.act("holds", {"account": account, "reason": "two"}, 201)
    operator.act("holds/%s/cancel" % first["id"], {"reason": "never needed"})
    held = operator.account(account)
    assert held["phase"] == "Cooldown" and "until it is released" in held["reason"], held
    operator.act("holds/%s/release" % second["id"], {"reason": "done"})
    operator.until_phase(account, "Available")


def test_what_locks_an_account_away_is_not_released_by_hand(operator):
    account = operator.free()
    operator.order(account, "quarantine", {"reason": "a strange bill"})
    hold = operator.open_hold(account)
    assert hold["locks"] and hold["due_at"] is None
    for order in ("release", "cancel"):
        assert "retry its cleanup or eject it" in operator.refused("holds/%s/%s" % (hold["id"], order), {"reason": "let it go"}, 409)
    assert "after a cleanup" in operator.out("hold", "list", account)
    told = operator.out("explain", "account", account)
    assert "when a cleanup succeeds" in told and "someone releases it" not in told
    operator.order(account, "retryCleanup")
    operator.until(lambda: operator.ops.read("holds/" + hold["id"])["state"] == "cleaned-again", "its cleanup ends it")


@pytest.mark.parametrize(
    "path,body,status,says",
    [
        ("holds", None, 400, "JSON object"),
        ("holds", {"account": "1", "reason": "x"}, 400, "12 digits"),
        ("holds", {"account": "111122223333", "reason": "x", "hours": 1, "due_at": "2099-01-01T00:00:00Z"}, 400, "not both"),
        ("holds", {"account": "111122223333", "reason": "x", "hours": 1.5}, 400, "whole number"),
        ("holds", {"account": "111122223333", "reason": "x", "hours": 0}, 400, "from 1 to"),
        ("holds", {"account": "111122223333", "reason": "x", "due_at": "tomorrow"}, 400, "2026-11-15T18:03:43Z"),
        ("holds", {"account": "111122223333", "reason": "x", "until": 1}, 400, "known are"),
        ("holds", {"account": "111122223333", "reason": "x"}, 404, "no account 111122223333"),
        ("holds", {"account": "111122223333"}, 400, "reason is needed"),
        ("holds", {"account": "111122223333", "reason": "x" * 401}, 400, "at most 400"),
        ("holds/bypass", {"account": "111122223333"}, 400, "reason is needed"),
        ("holds/000000000000-1/release", {"reason": "x"}, 404, "no hold"),
        ("holds/000000000000-1/extend", {}, 400, "until when"),
        ("holds/drain", {"mode": "away"}, 400, "release or hand-over"),
        ("holds/drain", {"mode": "release", "apply": True}, 400, "reason is needed"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would(operator, path, body, status, says):
    assert says in operator.refused(path, body, status)


def test_the_past_is_refused_and_operators_only(operator):
    account = operator.free()
    assert "in the future" in operator.refused("holds", {"account": account, "reason": "x", "due_at": 1})
    for method, path in [("GET", "holds"), ("POST", "holds/drain"), ("GET", "doctor"), ("POST", "doctor")]:
        assert operator.server.client().request(method, "/v1/ops/" + path).status == 401


# X19, X20.


def test_x19_a_bypass_is_used_once_and_x20_recorded_with_who_and_why(operator):
    lease = operator.pool.active(operator.pool.person())
    account = lease["awsAccountId"]
    operator.run("hold", "bypass", account, "--reason", "a course tomorrow", "--email", "ann@example.com")
    operator.pool.manager.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    operator.until_phase(account, "Available")
    record = operator.holds(account)[0]
    assert record["state"] == "bypassed" and record["closed_at"]
    words = " ".join(str(record[m]) for m in ("created_by", "note", "closed_by", "closed_why"))
    assert "admin/ann@example.com" in words and "a course tomorrow" in words
    told = operator.ops.events("type=HoldBypassSet&subject=account/" + account)
    assert [e["actor"] for e in told] == ["admin/ann@example.com"]
    assert operator.act("doctor")["found"] == 0, "it is on record"
    for _ in range(20):  # until the same account is lent again
        lease = operator.pool.active(operator.pool.person())
        if lease["awsAccountId"] == account:
            break
        operator.order(lease["awsAccountId"], "eject")
    assert lease["awsAccountId"] == account
    operator.pool.manager.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    operator.until_phase(account, "Cooldown")
    assert operator.open_hold(account)["reason"] == "billing"


# The doctor.


def test_x18_the_doctor_shows_and_heals_and_says_so_by_its_exit_code(start):
    operator = start()
    assert "nothing is wrong" in operator.out("doctor")
    account = operator.free()
    operator.move(account, "Quarantine")
    said = operator.out("doctor", code=FOUND)
    assert "unrecorded-rest" in said and account in said and "--fix repairs it" in said
    assert operator.account(account)["phase"] == "Available", "a look changes nothing"
    assert "repaired" in operator.out("doctor", "--fix")
    assert operator.account(account)["phase"] == "Cooldown"
    hold = operator.open_hold(account)
    assert hold["created_by"] == "reconciler" and hold["due_at"] - hold["created_at"] == 72 * HOUR
    operator.until(lambda: "pool-mismatch#" + account in operator.alarms(), "it is told of")
    assert "nothing is wrong" in operator.out("doctor", "--fix")
    operator.until(lambda: "pool-mismatch#" + account not in operator.alarms(), "it is over")


def test_x18_with_a_lease_the_doctor_only_tells(start):
    operator = start()
    lease = operator.pool.active(operator.pool.person())
    operator.move(lease["awsAccountId"], "Quarantine")
    report = operator.until(lambda: (lambda seen: seen if seen["findings"] else None)(operator.act("doctor")), "what has just changed is settled")
    assert [(f["kind"], f["account_id"], f["healed"]) for f in report["findings"]] == [("lent-at-rest", lease["awsAccountId"], False)]
    assert "needs a person" in operator.out("doctor", "--fix", code=FOUND)
    assert operator.pool.show(lease)["status"] == "Active"


def test_the_reconciler_heals_by_itself_without_any_event(start):
    operator = start()
    account = operator.free()
    operator.move(account, "Quarantine")
    operator.act("jobs/reconcile/resume")
    operator.pool.pass_hours(1)
    operator.until_phase(account, "Cooldown")
    assert "reconcile" in [j["name"] for j in operator.ops.read("jobs")["jobs"]]


# X6, X7.


def test_x6_the_first_account_that_is_not_released_raises_an_alarm_and_x7_its_release_clears_it(start):
    operator = start(QUARANTINE_GRACE_HOURS="1")
    account = operator.resting()
    hold = operator.open_hold(account)
    hold = operator.act("holds/%s/extend" % hold["id"], {"hours": 1, "reason": "a test cannot wait"})
    assert operator.ops.request("DELETE", "/v1/ops/timers/" + segment(hold["schedule"])).status == 200
    operator.pool.pass_hours(3)
    name = "hold-overdue#" + hold["id"]
    alarm = operator.until(lambda: operator.alarms().get(name), "one account is enough for an alarm")
    assert account in alarm["evidence"] and hold["id"] in alarm["evidence"]
    assert operator.account(account)["phase"] == "Cooldown", "what is not released stays at rest"
    assert "no-timer" in operator.out("doctor", code=FOUND)
    operator.run("doctor", "--fix")
    operator.until_phase(account, "Available")
    assert operator.holds(account)[0]["state"] == "released"
    operator.until(lambda: name not in operator.alarms(), "the alarm is over")
    told = [e["detail-type"] for e in operator.ops.events("subject=" + segment("alarm/" + name) + "&order=oldest")]
    assert told[0] == "AlarmRaised" and told[-1] == "AlarmCleared"


# Removal.


def test_removal_strands_nothing_when_holds_are_released(start):
    operator = start()
    operator.until(lambda: operator.ops.read("holds/safe-to-remove")["safe"], "nothing is under way")
    assert operator.out("hold", "safe-to-remove").startswith("yes")
    accounts = [operator.resting() for _ in range(3)]
    said = operator.out("hold", "safe-to-remove", code=FOUND)
    assert said.startswith("no:") and "holds that end by themselves: 3;" in said and ("due in 2 d" in said or "due in 3 d" in said)
    dry = operator.act("holds/drain", {"mode": "release"})
    assert dry["dry_run"] and dry["done"] == 0 and {h["account_id"] for h in dry["holds"]} == set(accounts)
    assert all(operator.account(a)["phase"] == "Cooldown" for a in accounts), "a dry run changes nothing"
    done, cursor = 0, ""
    while cursor is not None:
        page = operator.act("holds/drain?limit=1" + cursor, {"mode": "release", "reason": "replaced", "apply": True})
        done += page["done"]
        cursor = "&cursor=" + page["cursor"] if page["cursor"] else None
    assert done == 3
    for account in accounts:
        operator.until_phase(account, "Available")
    operator.until(lambda: operator.ops.read("holds/safe-to-remove")["safe"], "nothing is left")


def test_removal_strands_nothing_when_holds_are_handed_over(start):
    operator = start()
    account = operator.resting()
    hold = operator.open_hold(account)
    assert operator.run("hold", "drain", "hand-over", "--yes", code=USAGE).stderr
    listed = list(csv.DictReader(io.StringIO(operator.out("hold", "drain", "hand-over", "--csv"))))
    assert [(r["account"], r["schedule"], r["reason"]) for r in listed] == [(account, hold["schedule"], "billing")]
    assert listed[0]["due"].endswith("Z") and operator.open_hold(account)
    done = operator.run("hold", "drain", "hand-over", "--yes", "--reason", "version 2 does it")
    assert "1 closed, 0 refused" in done.stderr
    assert operator.holds(account)[0]["state"] == "handed-over"
    assert operator.act("doctor")["found"] == 0, "it is another system's now"
    assert (operator.account(account)["phase"], operator.pool.place(account)) == ("Cooldown", "Quarantine"), "nothing was moved"
    operator.until(lambda: operator.ops.read("holds/safe-to-remove")["safe"], "nothing is left")


def test_an_account_with_all_holds_that_it_may_have_can_still_be_cleaned_locked_away_and_ejected(start):
    operator = start(QUARANTINE_METADATA_HOURS="2184", QUARANTINE_QUOTA_HOURS="2184", LEASEHOLD_LOG_EVENTS="*", LEASEHOLD_MAIL_EVENTS="*",
                     LEASEHOLD_SMTP_URL="smtp://127.0.0.1:9", LEASEHOLD_MAIL_FROM="us@example.com", LEASEHOLD_MAIL_TO="ops@example.com",
                     LEASEHOLD_WEBHOOK_PRIVATE="true")
    hook = operator.ops.act("webhooks", {"url": "http://127.0.0.1:9/", "filter": "*"})
    assert hook.status == 201, hook
    lease = operator.pool.active(operator.pool.person())
    account = lease["awsAccountId"]
    added = 0
    while operator.ops.act("holds", {"account": account, "reason": "audit", "hours": 4000}).status == 201:
        added += 1
    assert added >= 4
    operator.pool.manager.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    operator.until_phase(account, "Cooldown")
    operator.order(account, "quarantine", {"reason": "looks odd"})
    assert len([h for h in operator.holds(account) if h["state"] == "open"]) == added + 4
    operator.order(account, "eject")
    assert not [h for h in operator.holds(account) if h["state"] == "open"]
