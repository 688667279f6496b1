# SPDX-License-Identifier: Apache-2.0
"""The front is right: other people's clients pass it, whatever they speak. If one fails here, the front is wrong, not the client."""

import datetime
import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import scenario
from aws.front import names

HERE = Path(__file__).parent
AWS = "/usr/bin/aws"
# Signed wrongly on purpose by the scenario: everything else must be well-formed.
MEANT = ("the session token is missing", "the signature we calculated")


@pytest.fixture
def filled(front):
    front.do("organizations", "add_accounts", ids=["2000000000%02d" % i for i in range(1, 46)])
    front.do("identitystore", "add_user", email="one@example.com", groups=["front_IsbUsers"])
    front.do("dynamodb", "add_table", name="accounts", items={scenario.ACCOUNT: "Available"})
    front.do("ce", "add", account=scenario.ACCOUNT, day=str(today(-2)), amount="0.0000000001")
    front.do("sts", "allow_all")
    front.do("sso-admin", "pace", looks=1, seconds=3600)
    front.may_break = True  # judged below
    yield front
    broken = [e for e in front.broken() if not e["broken"].startswith(MEANT)]
    assert not broken, broken


def today(days):
    return datetime.datetime.now(datetime.timezone.utc).date() + datetime.timedelta(days)


@pytest.mark.parametrize("run", scenario.ALL, ids=lambda f: f.__name__)
def test_botocore_passes_the_front(filled, run):
    assert run(scenario.Clients(filled.url))
    assert len(filled.log()) >= 2


def test_another_botocore_passes_the_front(filled):
    """The one of the first python3 on PATH, if it is not Debian's: newer, and speaks JSON with SQS."""
    python = shutil.which("python3")
    got = subprocess.run([python, str(HERE / "scenario.py"), filled.url], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                         cwd="/")
    if "No module named 'botocore'" in got.stderr:
        pytest.skip("%s has no botocore" % python)
    assert got.returncode == 0, got.stderr
    assert got.stdout.strip()


def cli(front, *words):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_ACCESS_KEY_ID": names.USER_KEY, "AWS_SECRET_ACCESS_KEY": names.USER_SECRET,
           "AWS_DEFAULT_REGION": "us-east-1", "AWS_PAGER": "", "AWS_EC2_METADATA_DISABLED": "true"}
    got = subprocess.run([AWS, "--endpoint-url", front.url, "--output", "json", *words], env=env, capture_output=True, text=True, timeout=120,
                         stdin=subprocess.DEVNULL)
    assert got.returncode == 0, (words, got.stderr)
    return json.loads(got.stdout) if got.stdout.strip() else None


def test_the_command_line_of_aws_passes_the_front(filled):
    assert os.path.exists(AWS), "scripts/setup test installs it"
    assert len(cli(filled, "organizations", "list-accounts-for-parent", "--parent-id", names.OUS["Available"])["Accounts"]) == 45
    cli(filled, "organizations", "move-account", "--account-id", scenario.ACCOUNT, "--source-parent-id", names.OUS["Available"],
        "--destination-parent-id", names.OUS["Active"])
    assert cli(filled, "sts", "get-caller-identity")["Account"] == names.MANAGEMENT
    url = cli(filled, "sqs", "create-queue", "--queue-name", "cli")["QueueUrl"]
    cli(filled, "sqs", "send-message", "--queue-url", url, "--message-body", "a b&c=d")
    assert cli(filled, "sqs", "receive-message", "--queue-url", url)["Messages"][0]["Body"] == "a b&c=d"
    cli(filled, "scheduler", "create-schedule", "--name", "cli-1", "--schedule-expression", "at(2030-01-02T03:04:05)", "--flexible-time-window",
        "Mode=OFF", "--target", "Arn=arn:aws:lambda:us-east-1:100000000002:function:f,RoleArn=arn:aws:iam::100000000002:role/r")
    assert cli(filled, "scheduler", "list-schedules", "--name-prefix", "cli")["Schedules"][0]["Name"] == "cli-1"
    assert filled.calls()[-1] == "scheduler:ListSchedules"


def javascript():
    """The folder of the SDK, fetched once as package-lock.json has it, or None where npm cannot."""
    folder = HERE / "js"
    have = folder / "node_modules/.package-lock.json"
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not have.exists() or have.stat().st_mtime < (folder / "package-lock.json").stat().st_mtime:
            try:
                subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"], cwd=folder, stdin=subprocess.DEVNULL, timeout=120,
                               check=True)
            except subprocess.SubprocessError:
                return None
            os.utime(have)
    return folder


def test_the_javascript_sdk_passes_the_front(filled):
    folder = javascript()
    if not folder:
        pytest.skip("npm cannot fetch the JavaScript SDK here")
    got = subprocess.run(["node", "scenario.mjs", filled.url, names.USER_KEY, names.USER_SECRET, str(today(-2)), str(today(1))], cwd=folder,
                         capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert got.returncode == 0 and got.stdout.strip() == "good", got.stderr
