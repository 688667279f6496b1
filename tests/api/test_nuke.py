# SPDX-License-Identifier: Apache-2.0
"""Accounts emptied by the real aws-nuke: against a small AWS of our own always, against moto where it is installed."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from lib import jwt, leases, moto
from lib import server as process
from lib.fake_aws import FakeAws
from lib.leases import Pool
from lib.ops import Ops
from lib.wait import until

pytestmark = pytest.mark.skipif(not shutil.which("aws-nuke"), reason="aws-nuke is not installed: scripts/setup test")

SCALE = 60  # a minute of waiting is a second; aws-nuke itself takes its time
CONFIG = """
regions: [us-east-1]
account-blocklist: ["999999999999"]
resource-types:
  targets: [SQSQueue]
accounts:
  "%CLEANUP_ACCOUNT_ID%":
    filters:
      SQSQueue:
        - {type: contains, value: stays}
"""
ENDPOINTS = """
endpoints:
  - region: us-east-1
    services:
      - {service: sqs, url: "URL"}
      - {service: sts, url: "URL"}
      - {service: iam, url: "URL"}
      - {service: "", url: "URL"}
"""


@pytest.fixture(params=["own", "moto"])
def each_aws(request, capsys):
    version = moto.version()
    if request.param == "moto" and not version:
        pytest.skip("moto is not installed for the first python3 on PATH: only our own AWS was used")
    with capsys.disabled():
        print("\nnuke: against %s" % ("moto " + version if request.param == "moto" else "our own AWS"))
    aws = moto.Moto() if request.param == "moto" else FakeAws()
    yield aws
    aws.close()


@pytest.fixture
def aws():
    aws = FakeAws()
    yield aws
    aws.close()


def nuke_env(folder, aws, config=None, **more):
    path = folder / "nuke.yaml"
    path.write_text((config or CONFIG) + ENDPOINTS.replace("URL", aws.url))
    return {
        **leases.env(folder),
        **aws.env(),
        "LEASEHOLD_CLEANER": "nuke",
        "LEASEHOLD_NUKE_CONFIG": path,
        "LEASEHOLD_NUKE_ROLE": "LeaseholdCleanup",
        "LEASEHOLD_NUKE_STS_URL": aws.url,
        "LEASEHOLD_NUKE_WAIT_RETRIES": 2,
        "LEASEHOLD_TIME_SCALE": SCALE,
        "QUARANTINE_DURATION_HOURS": 0,
        **more,
    }


def open_pool(make, aws, policy=None, **more):
    pool = Pool(make.server(args=["--dev"], **nuke_env(make.folder, aws, **more)))
    if policy:
        assert Ops(pool.server).request("PUT", "/v1/ops/policy", body={"document": policy, "version": 0}).status == 200
    return pool


def lend_and_end(pool, aws, *names):
    """A lease whose owner made queues of these names, and which is over; the account."""
    lease = pool.active(pool.person())
    aws.fill(lease["awsAccountId"], *names)
    pool.manager.data("POST", "/leases/%s/terminate" % lease["leaseId"])
    return lease["awsAccountId"]


def account(pool, account_id):
    return pool.admin.data("GET", "/accounts/" + account_id)


def until_account(pool, account_id, status, timeout=90):
    return until(lambda: (lambda a: a if a["status"] == status else None)(account(pool, account_id)),
                 "account %s is %s" % (account_id, status), timeout, 0.1)


def folders(pool):
    return sorted((pool.server.data / "nuke").iterdir())


def processes(folder):
    """Ids of the processes of a run: its supervisor, and aws-nuke."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(folder).encode() in words:
                found["supervisor"] = int(entry.name)
            if (str(folder) + "/config").encode() in words:
                found["aws-nuke"] = int(entry.name)
    return found


# The journey.


def test_a_lease_ends_and_its_account_comes_back_empty_with_a_list_of_what_was_removed(make, each_aws):
    pool = open_pool(make, each_aws)
    id_ = lend_and_end(pool, each_aws, "first", "second", "stays-here")
    got = until_account(pool, id_, "Available")
    assert each_aws.left(id_) == ["stays-here"]
    report = got["lastCleanup"]
    assert (report["runs"], report["exitCode"], report["removed"], report["failed"], report["filtered"]) == (2, 0, 2, 0, 1), report
    assert [line.rsplit("/", 1)[1] for line in sorted(report["removedResources"])] == ["first", "second"], report
    assert all(line.startswith("us-east-1 - SQSQueue - ") for line in report["removedResources"])
    assert len(report["keptResources"]) == 1 and "stays-here - filtered" in report["keptResources"][0], report
    assert "Scan complete: 1 total, 0 nukeable, 1 filtered." in report["log"]
    assert got["cleanupFailedAttempts"] == 0 and got["cleanupSucceededAttempts"] == 2
    shown = process.run("account", "show", id_, env={"LEASEHOLD_ADDRESS": pool.server.url, "LEASEHOLD_TOKEN": jwt.token(leases.ADMIN, "Admin")})
    assert shown.returncode == 0, shown
    assert "Removed by the last cleanup:" in shown.stdout and "/second" in shown.stdout and "stays-here" in shown.stdout


def test_what_cannot_be_emptied_is_locked_away_with_the_reason_and_others_are_not_held_up(make, aws):
    pool = open_pool(make, aws, "cleanup: {numberOfFailedAttemptsToCancelCleanup: 1}\n")
    good = lend_and_end(pool, aws, "a")
    kept = lend_and_end(pool, aws, "b", "keep-me")
    aws.no_list.add(unlisted := lend_and_end(pool, aws, "c"))
    aws.no_role.add(closed := lend_and_end(pool, aws, "d"))

    got = until_account(pool, kept, "Quarantine")
    assert "1 resource could not be removed" in got["reason"] and "/keep-me" in got["reason"], got
    assert "AccessDenied: explicit deny in a service control policy" in got["reason"], got
    report = got["lastCleanup"]
    assert (report["exitCode"], report["failed"], report["removed"]) == (255, 1, 1), report
    assert any(line.endswith("/keep-me - failed") for line in report["keptResources"]), report
    assert aws.left(kept) == ["keep-me"]

    got = until_account(pool, unlisted, "Quarantine")
    assert "could not list 1 kind of resources" in got["reason"] and "Listing SQSQueue failed" in got["reason"], got
    assert got["lastCleanup"]["exitCode"] == 0, "aws-nuke itself calls that a success"

    got = until_account(pool, closed, "Quarantine")
    assert "AccessDenied" in got["reason"] and "role/LeaseholdCleanup" in got["reason"], got
    assert "lastCleanup" not in got and aws.left(closed) == ["d"]

    assert until_account(pool, good, "Available")["lastCleanup"]["removed"] == 1
    hidden = [secret for key, secret in aws.secrets.items() if key.startswith("ASIA")]
    texts = [path.read_text() for folder in folders(pool) for path in folder.iterdir()] + [pool.server.output()]
    assert len(hidden) >= 4 and not any(secret in text for secret in hidden for text in texts), "credentials stay in memory"
    assert not any("token-of-" in text for text in texts)


# Ends in the middle.


def begin_hanging(pool, aws):
    """A cleanup whose run waits for the gate."""
    id_ = lend_and_end(pool, aws, "hang-on", "other")
    until(lambda: aws.count(id_, "DeleteQueue") >= 1, "aws-nuke removes", 60, 0.05)
    return id_


def test_a_server_that_is_killed_in_the_middle_finds_the_run_again_and_starts_no_second_one(make, aws):
    pool = open_pool(make, aws)
    id_ = begin_hanging(pool, aws)
    [folder] = folders(pool)
    before = processes(folder)
    assert set(before) == {"supervisor", "aws-nuke"}
    pool.server.kill()
    assert processes(folder) == before, "the run goes on without us"
    pool.server.start()
    pool = Pool(pool.server)
    assert account(pool, id_)["status"] == "CleanUp" and processes(folder) == before and folders(pool) == [folder]
    aws.gate.set()
    got = until_account(pool, id_, "Available")
    assert got["cleanupFailedAttempts"] == 0 and got["lastCleanup"]["runs"] == 2, got
    assert aws.sessions_of(id_) == 2 == len(folders(pool)), "one for each run"
    assert got["lastCleanup"]["removed"] == 2 and aws.left(id_) == []


def test_a_run_that_lost_its_process_has_failed_and_is_tried_again(make, aws):
    pool = open_pool(make, aws)
    id_ = begin_hanging(pool, aws)
    [folder] = folders(pool)
    lost = processes(folder)
    os.kill(lost["supervisor"], signal.SIGKILL)
    until(lambda: "aws-nuke" not in processes(folder), "aws-nuke does not outlive its supervisor")
    aws.gate.set()
    got = until_account(pool, id_, "Available")
    assert got["cleanupFailedAttempts"] == 1 and got["cleanupSucceededAttempts"] == 2, got
    assert aws.left(id_) == [] and len(folders(pool)) == 3
    assert not (folder / "result").exists()


def test_a_run_that_does_not_end_is_killed_and_the_account_is_locked_away(make, aws):
    pool = open_pool(make, aws, "cleanup: {numberOfFailedAttemptsToCancelCleanup: 1}\n", LEASEHOLD_NUKE_RUN_SEC=12)
    id_ = begin_hanging(pool, aws)
    [folder] = folders(pool)
    got = until_account(pool, id_, "Quarantine")
    assert "aws-nuke was ended after 12 s" in got["reason"], got
    assert got["lastCleanup"]["exitCode"] == 128 + signal.SIGKILL
    assert processes(folder) == {}


# Starting.


@pytest.mark.parametrize("change,words", [
    ({"config": CONFIG.replace("%CLEANUP_ACCOUNT_ID%", "%ACCOUNT%")}, "there is no placeholder %ACCOUNT%"),
    ({"config": CONFIG.replace("%CLEANUP_ACCOUNT_ID%", "111111111111")}, 'accounts: must have "%CLEANUP_ACCOUNT_ID%"'),
    ({"config": CONFIG.replace('["999999999999"]', "[]")}, "account-blocklist: must name the accounts"),
    ({"config": CONFIG.replace('["999999999999"]', "[999999999999]")}, "12 digits, in quotes"),
    ({"config": CONFIG.replace("[us-east-1]", "[]")}, "regions: must list"),
    ({"config": CONFIG.replace("[SQSQueue]", "[SQSQueues]")}, "knows no kind of resources 'SQSQueues'"),
    ({"config": CONFIG.replace("resource-types", "resource-kinds")}, "aws-nuke has no 'resource-kinds'"),
    ({"LEASEHOLD_NUKE_PROGRAM": "no-such-nuke"}, "no program no-such-nuke on PATH"),
    ({"LEASEHOLD_NUKE_PROGRAM": "/bin/true"}, "does not answer 'resource-types'"),
    ({"LEASEHOLD_NUKE_ROLE": "a b"}, "LEASEHOLD_NUKE_ROLE: must be the name of a role"),
    ({"LEASEHOLD_NUKE_CONFIG": None}, "LEASEHOLD_NUKE_CONFIG: must name the file"),
    ({"LEASEHOLD_NUKE_PROTECTED": "12"}, "LEASEHOLD_NUKE_PROTECTED: must be account ids"),
    ({"LEASEHOLD_CLEANER": "broom"}, "LEASEHOLD_CLEANER: must be one of sim, nuke"),
    ({"LEASEHOLD_STORE": "dynamodb"}, "right is LEASEHOLD_STORE=sqlite"),
])
def test_a_start_with_what_cannot_work_is_refused_with_the_reason(tmp_path, aws, change, words):
    env = nuke_env(tmp_path, aws, **change)
    got = process.run("serve", "--dev", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"), env=env)
    assert got.returncode == 2 and words in got.stderr, got
