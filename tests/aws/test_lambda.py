# SPDX-License-Identifier: Apache-2.0
"""The guard as a function of AWS Lambda, and the scheduler's bell. Contract, sections 9 and 10."""

import json
import os
import sqlite3
import struct
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from aws.front import names
from lib.lambda_runtime import Function, Runtime
from lib.server import binary
from lib.wait import until

HOUR = 3600
REST_HOURS = 40
TABLE = "SandboxAccounts"
AVAILABLE, CLEANUP, QUARANTINE = (names.OUS[n] for n in ("Available", "CleanUp", "Quarantine"))
ACCOUNTS = ["11112222%04d" % i for i in range(10)]
JUMPCLOCK = Path(__file__).parents[1] / "crash/jumpclock.c"
GROUP = "isb-billing-separator"


@pytest.fixture(scope="session")
def jumpclock(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jumpclock")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(folder / "jumpclock.so"), str(JUMPCLOCK)], check=True)
    return folder / "jumpclock.so"


def moved(account, source=CLEANUP, to=AVAILABLE):
    """The trail's event of a move."""
    at = "2026-11-16T17:00:00Z"
    return {"version": "0", "id": str(uuid.uuid4()), "detail-type": "AWS API Call via CloudTrail", "source": "aws.organizations",
            "account": names.MANAGEMENT, "time": at, "region": "us-east-1", "resources": [],
            "detail": {"eventVersion": "1.08", "eventTime": at, "eventSource": "organizations.amazonaws.com", "eventName": "MoveAccount",
                       "eventID": str(uuid.uuid4()), "requestParameters": {"accountId": account, "sourceParentId": source, "destinationParentId": to}}}


def record(body):
    """A message as Lambda hands it over."""
    return {"messageId": str(uuid.uuid4()), "receiptHandle": "r", "body": body if isinstance(body, str) else json.dumps(body), "attributes": {},
            "messageAttributes": {}, "md5OfBody": "", "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:us-east-1:100000000002:q",
            "awsRegion": "us-east-1"}


class Guard:
    """The function beside an organisation of the front."""

    def __init__(self, front, tmp_path, jumpclock, **env):
        self.front, self.clock_file = front, tmp_path / "jump"
        self.ahead = 0
        self.jump(0)
        front.do("organizations", "add_accounts", ids=ACCOUNTS)
        front.do("dynamodb", "add_table", name=TABLE, items={a: "Available" for a in ACCOUNTS})
        checks = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
        self.env = {**front.env(), "LEASEHOLD_QUARANTINE": "guard", "ACCOUNT_TABLE_NAME": TABLE, "QUARANTINE_DURATION_HOURS": REST_HOURS,
                    "LEASEHOLD_RECONCILE_INTERVAL_SEC": 3600, "LD_PRELOAD": str(jumpclock), "JUMPCLOCK_FILE": str(self.clock_file),
                    "ASAN_OPTIONS": checks, **env}
        self.runtime = Runtime()
        self.function = Function(self.runtime, tmp_path / "data", self.env)

    def jump(self, seconds):
        with open(self.clock_file, "r+b" if self.clock_file.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))

    def pass_time(self, seconds):
        """For the function and for AWS."""
        self.ahead += seconds
        self.front.advance(seconds)
        self.jump(self.ahead)

    def start(self):
        self.function.start().wait_ready()
        return self

    def tick(self, seconds=90):
        return self.runtime.good({"leasehold": "tick"}, self.seconds(seconds))

    def seconds(self, seconds):
        """Deadlines are by the function's date."""
        return seconds + self.ahead

    def batch(self, *bodies, seconds=90):
        records = [record(b) for b in bodies]
        got = self.runtime.good({"Records": records}, self.seconds(seconds))
        failed = [f["itemIdentifier"] for f in got["batchItemFailures"]]
        return [r["messageId"] in failed for r in records]

    def bell(self, schedule):
        return self.runtime.good(json.loads(schedule["input"]), self.seconds(90))

    def place(self, account):
        parent = self.front.state("organizations")["accounts"][account]["parent"]
        return next(name for name, id in names.OUS.items() if id == parent)

    def wait_held(self, *accounts):
        """In the end. What one invocation leaves, such as the moves that the pace has no room for, a tick takes up."""

        def is_held():
            return all((self.place(a), self.status(a)) == ("Quarantine", "Quarantine") for a in accounts) or (self.tick() and False)

        until(is_held, "%s are held" % (accounts,), 120, 0.5)

    def status(self, account):
        return self.front.state("dynamodb")[TABLE][account]["status"]["S"]

    def schedules(self):
        return self.front.state("scheduler")["schedules"]

    def lanes(self):
        """What is still to be delivered. Only between two invocations."""
        db = sqlite3.connect("file:%s?mode=ro" % (self.function.data / "leasehold.db"), uri=True)
        try:
            return [row[0] for row in db.execute("SELECT key FROM lane")]
        finally:
            db.close()

    def schedule(self):
        """The only one, once it is made."""
        (made,) = until(lambda: self.schedules() or (self.tick() and None), "there is a schedule", 120, 0.5)
        return made

    def moves(self, account):
        return [(m["from"], m["to"]) for m in self.front.state("organizations")["moves"] if m["account"] == account]

    def close(self):
        self.function.kill()
        self.runtime.close()
        assert not self.function.complaints(), self.function.complaints()


@pytest.fixture
def make_guard(front, tmp_path, jumpclock):
    made = []

    def build(**env):
        made.append(Guard(front, tmp_path, jumpclock, **env))
        return made[-1]

    yield build
    for guard in made:
        guard.close()


@pytest.fixture
def guard(make_guard):
    return make_guard().start()


@pytest.fixture
def ringing(make_guard):
    """With the scheduler."""
    return make_guard(LEASEHOLD_WAKE="scheduler", SCHEDULER_ROLE_ARN="arn:aws:iam::100000000002:role/isb-billing-sep-scheduler",
                      UNQUARANTINE_LAMBDA_ARN="arn:aws:lambda:us-east-1:100000000002:function:guard",
                      LEASEHOLD_SCHEDULER_DLQ_ARN="arn:aws:sqs:us-east-1:100000000002:bells-dead").start()


# A batch.


def test_C40_one_bad_message_of_ten_is_named_and_the_others_are_taken(guard):
    bodies = [moved(a) for a in ACCOUNTS]
    bodies[4] = '{"id": 7'
    failed = guard.batch(*bodies)
    assert failed == [i == 4 for i in range(10)]
    guard.wait_held(*[a for i, a in enumerate(ACCOUNTS) if i != 4])
    assert (guard.place(ACCOUNTS[4]), guard.status(ACCOUNTS[4])) == ("Available", "Available")


def test_C40_the_same_message_twice_has_one_effect(guard):
    body = moved(ACCOUNTS[0])
    assert guard.batch(body, body) == [False, False]
    assert guard.batch(body) == [False]
    guard.wait_held(ACCOUNTS[0])
    assert guard.moves(ACCOUNTS[0]) == [(AVAILABLE, QUARANTINE)]


def test_C40_a_tick_ends_what_was_begun(guard):
    front = guard.front
    denied = front.fault("error", "organizations", "MoveAccount", status=400, code="ConcurrentModificationException", count=-1)
    assert guard.batch(moved(ACCOUNTS[0])) == [False]
    assert front.hits(denied) > 0 and guard.place(ACCOUNTS[0]) == "Available"
    front.clear()
    guard.pass_time(10 * 60)  # its next try is due by then
    guard.tick()
    guard.wait_held(ACCOUNTS[0])
    assert guard.moves(ACCOUNTS[0]) == [(AVAILABLE, QUARANTINE)]


def test_C40_at_the_deadline_what_hangs_is_given_up_and_what_is_stored_is_done_later(guard):
    front = guard.front
    held = front.fault("hold_before", "organizations", "MoveAccount", count=1)
    began = time.monotonic()
    assert guard.batch(moved(ACCOUNTS[0]), seconds=9) == [False]
    assert time.monotonic() - began < 100  # not as long as it hangs, which is for ever
    until(lambda: not front.is_holding(held), "the front sees that the caller is gone")
    front.clear()
    assert guard.place(ACCOUNTS[0]) == "Available"
    guard.pass_time(10 * 60)
    guard.wait_held(ACCOUNTS[0])


def test_C40_without_time_nothing_is_taken_and_all_comes_again(guard):
    assert guard.batch(moved(ACCOUNTS[0]), moved(ACCOUNTS[1]), seconds=1) == [True, True]
    assert guard.place(ACCOUNTS[0]) == "Available"
    assert guard.batch(moved(ACCOUNTS[0])) == [False]
    guard.wait_held(ACCOUNTS[0])


def test_C40_after_ten_minutes_in_ice_it_goes_on(guard):
    assert guard.batch(moved(ACCOUNTS[0])) == [False]
    guard.function.freeze()
    guard.pass_time(10 * 60)
    asked = guard.runtime.ask({"Records": [record(moved(ACCOUNTS[1]))]}, guard.seconds(90))
    guard.function.thaw()
    assert guard.runtime.answer(asked).body == {"batchItemFailures": []}
    guard.wait_held(ACCOUNTS[1])


def test_C40_a_cold_start_goes_on_where_the_last_one_was_killed(guard):
    front = guard.front
    held = front.fault("hold_after", "organizations", "MoveAccount")
    guard.runtime.ask({"Records": [record(moved(ACCOUNTS[0]))]}, guard.seconds(60))
    front.wait_held(held)
    guard.function.kill()
    until(lambda: not front.is_holding(held), "the front sees that the caller is gone")
    front.clear()
    guard.pass_time(10 * 60)
    guard.function.start().wait_ready()
    guard.wait_held(ACCOUNTS[0])
    assert guard.moves(ACCOUNTS[0]) == [(AVAILABLE, QUARANTINE)]


def test_C40_what_it_is_asked_must_make_sense(guard):
    for payload in ({"hello": "world"}, [], "nonsense", {"accountId": "1", "schedulerName": "x"}, {"leasehold": "tock"}):
        got = guard.runtime.invoke(payload if isinstance(payload, str) else json.dumps(payload))
        assert got.error and got.error_type == "Leasehold.Invalid", payload
    assert guard.batch("{}", "[]", "7", "") == [True] * 4
    got = guard.runtime.good({"Records": [{**record(moved(ACCOUNTS[0])), "eventSource": "aws:kinesis", "messageId": "m"}]})
    assert got == {"batchItemFailures": [{"itemIdentifier": "m"}]}
    guard.tick()


def test_C40_settings_that_are_wrong_are_an_init_error(make_guard):
    guard = make_guard(LEASEHOLD_QUARANTINE="native", LEASEHOLD_CLOUD="sim")
    guard.function.start()
    assert guard.function.end() == 1
    said = guard.runtime.init_error
    assert said["errorType"] == said["header"] == "Leasehold.Settings"
    assert "LEASEHOLD_QUARANTINE: must be guard" in said["errorMessage"] and "LEASEHOLD_CLOUD: must be aws" in said["errorMessage"]
    assert guard.runtime.nexts == 0


def test_a_setting_may_be_kept_by_secrets_manager(front, make_guard):
    guard = make_guard(LEASEHOLD_SMTP_PASSWORD="secretsmanager:/InnovationSandbox/front/smtp#password")
    guard.function.start()
    assert guard.function.end() == 1
    said = guard.runtime.init_error
    assert said["errorType"] == "Leasehold.Settings" and "LEASEHOLD_SMTP_PASSWORD: " in said["errorMessage"] and guard.runtime.nexts == 0, said
    front.do("secretsmanager", "put", name="/InnovationSandbox/front/smtp", value='{"password": "kept-elsewhere-0123456789"}')
    since = front.count()
    guard.start().tick()
    assert [e["code"] for e in front.log("secretsmanager", "GetSecretValue", since=since)] == [None]


def test_C40_as_bootstrap_it_needs_no_word_and_no_folder(make_guard, tmp_path):
    guard = make_guard()
    (tmp_path / "bootstrap").symlink_to(binary())
    guard.function.command = [str(tmp_path / "bootstrap")]
    guard.function.start()
    assert guard.function.end() == 1
    assert "LEASEHOLD_STORE: must be dynamodb" in guard.runtime.init_error["errorMessage"]


def test_outside_of_lambda_the_command_says_so(tmp_path):
    got = subprocess.run([binary(), "lambda"], env={}, capture_output=True, text=True, timeout=60, check=False)
    assert got.returncode == 2 and "AWS_LAMBDA_RUNTIME_API is not set" in got.stderr


# Time.


def test_a_hold_ends_with_the_first_tick_after_its_time(guard):
    account = ACCOUNTS[0]
    guard.batch(moved(account))
    guard.wait_held(account)
    guard.pass_time((REST_HOURS - 1) * HOUR)
    guard.tick()
    assert guard.place(account) == "Quarantine"
    guard.pass_time(HOUR + 60)
    guard.tick()
    assert (guard.place(account), guard.status(account)) == ("Available", "Available")


def test_a_tick_compares_records_with_the_organisation(guard):
    """An event that never came: the reconciler's pass finds the account."""
    guard.tick()
    account = ACCOUNTS[3]
    guard.front.do("organizations", "move", id=account, to=QUARANTINE)
    guard.front.do("dynamodb", "set_status", table=TABLE, account=account, status="Quarantine")
    for _ in range(3):
        guard.pass_time(2 * HOUR)
        guard.tick()
    passes = [json.loads(line["result"]) for line in guard.function.log("reconcile done")]
    assert passes[0] == {"accounts": 10, "holds": 0, "found": 0, "healed": 0} and passes[-1]["found"] == 1, passes


# The bell.


def test_C39_a_schedule_is_made_with_the_hold_and_gone_with_it(ringing):
    account = ACCOUNTS[0]
    ringing.batch(moved(account))
    ringing.wait_held(account)
    made = ringing.schedule()
    hold_ms = int(made["name"].rsplit("-", 1)[1])
    assert made["group"] == GROUP and made["name"] == "isb-billing-sep-unquarantine-%s-%d" % (account, hold_ms) and len(made["name"]) <= 64
    assert 0 <= made["at"] * 1000 - (hold_ms + REST_HOURS * HOUR * 1000) < 1000  # rounded up
    assert json.loads(made["input"])["accountId"] == account and json.loads(made["input"])["schedulerName"] == made["name"]
    asked = ringing.front.log("scheduler", "CreateSchedule")[0]["params"]
    assert asked["ActionAfterCompletion"] == "DELETE" and asked["FlexibleTimeWindow"] == {"Mode": "OFF"} and asked["ScheduleExpressionTimezone"] == "UTC"
    assert asked["Target"]["RetryPolicy"] == {"MaximumRetryAttempts": 20, "MaximumEventAgeInSeconds": 86400}
    assert asked["Target"]["DeadLetterConfig"] == {"Arn": "arn:aws:sqs:us-east-1:100000000002:bells-dead"}
    ringing.pass_time(REST_HOURS * HOUR + 60)
    assert ringing.front.do("scheduler", "ring") == [made["name"]]
    ringing.bell(made)
    assert (ringing.place(account), ringing.status(account)) == ("Available", "Available")
    assert ringing.schedules() == []


def test_C39_a_bell_that_is_early_or_comes_twice_or_after_the_hold_does_nothing(ringing):
    account = ACCOUNTS[0]
    ringing.batch(moved(account))
    ringing.wait_held(account)
    made = ringing.schedule()
    ringing.bell(made)
    assert ringing.place(account) == "Quarantine"  # early
    ringing.pass_time(REST_HOURS * HOUR + 60)
    ringing.bell(made)
    ringing.bell(made)
    assert ringing.moves(account) == [(AVAILABLE, QUARANTINE), (QUARANTINE, AVAILABLE)]
    ringing.front.do("organizations", "move", id=account, to=CLEANUP)
    ringing.front.do("organizations", "move", id=account, to=AVAILABLE)
    ringing.batch(moved(account))
    ringing.wait_held(account)
    ringing.bell(made)  # of the hold before
    assert ringing.place(account) == "Quarantine"


def test_C39_a_bell_that_never_rings_is_not_missed(ringing):
    account = ACCOUNTS[0]
    ringing.batch(moved(account))
    ringing.wait_held(account)
    ringing.pass_time(REST_HOURS * HOUR + 60)
    ringing.tick()
    assert ringing.place(account) == "Available"
    assert ringing.schedules() == []


def test_C39_a_schedule_that_exists_already_or_is_gone_already_is_fine(ringing):
    front, account = ringing.front, ACCOUNTS[0]
    front.fault("done_error", "scheduler", "CreateSchedule", status=500)  # it is made, and we are told otherwise
    ringing.batch(moved(account))
    ringing.wait_held(account)
    ringing.pass_time(10 * 60)
    ringing.tick()
    assert len(ringing.schedules()) == 1
    assert "ConflictException" in [e["code"] for e in front.log("scheduler", "CreateSchedule")]
    assert ringing.lanes() == []
    front.do("scheduler", "remove", name=ringing.schedules()[0]["name"])
    ringing.pass_time(REST_HOURS * HOUR + 60)
    ringing.tick()
    assert ringing.place(account) == "Available"
    assert "ResourceNotFoundException" in [e["code"] for e in front.log("scheduler", "DeleteSchedule")]
    assert ringing.lanes() == []


def test_C39_once_a_day_schedules_without_a_hold_are_swept_and_missing_ones_are_made(ringing):
    front, account = ringing.front, ACCOUNTS[0]
    ringing.tick()  # the sweep is armed
    ringing.batch(moved(account))
    ringing.wait_held(account)
    made = ringing.schedule()
    other = front.client("scheduler")
    other.delete_schedule(Name=made["name"], GroupName=GROUP)
    target = {"Arn": "arn:aws:lambda:us-east-1:100000000002:function:guard", "RoleArn": "arn:aws:iam::100000000002:role/x"}
    for name in ("isb-billing-sep-unquarantine-%s-1700000000000" % ACCOUNTS[5], "somebody-elses"):
        other.create_schedule(Name=name, GroupName=GROUP, ScheduleExpression="at(2030-01-01T00:00:00)", FlexibleTimeWindow={"Mode": "OFF"}, Target=target)
    ringing.pass_time(24 * HOUR + 60)
    ringing.tick()
    assert sorted(s["name"] for s in ringing.schedules()) == sorted([made["name"], "somebody-elses"])
    asked = front.log("scheduler", "ListSchedules")[-1]["params"]
    assert asked["NamePrefix"] == "isb-billing-sep-unquarantine-" and asked["GroupName"] == GROUP
