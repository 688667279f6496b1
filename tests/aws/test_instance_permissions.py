# SPDX-License-Identifier: Apache-2.0
"""The probe of what the instance driver may do: at the start, and as `leasehold doctor aws`."""

import json
from pathlib import Path

import pytest

from aws.front import names
from lib.aws_front import actions_of
from lib.mariadb import PASSWORD
from lib.ops import Ops
from lib.server import ADMIN_TOKEN, run
from lib.sites import AwsSites

POLICY = json.loads((Path(__file__).parents[2] / "deploy/aws/instances.json").read_text())
PERMISSIONS = {action for statement in POLICY["Statement"] for action in actions_of(statement)}


class NoDatabase:
    """Nothing of the probe asks it."""

    host = "localhost:1"

    class certificate:
        cert = "/dev/null"

    def clear(self):
        pass


@pytest.fixture
def sites(front):
    return AwsSites(front, NoDatabase())


def rows_of(server):
    return Ops(server).read("doctor/aws")["rows"]


def test_there_is_a_row_for_each_permission_of_the_policy(front, sites, make):
    since = front.count()
    server = sites.start(make)
    rows = rows_of(server)
    assert {r["permission"] for r in rows} == PERMISSIONS | {"sts:GetCallerIdentity"}
    assert {r["verdict"] for r in rows} == {"ok", "not tried"} and sum(r["verdict"] == "ok" for r in rows) >= 20, rows
    got = run("doctor", "aws", env={"LEASEHOLD_ADDRESS": server.url, "BROKER_ADMIN_TOKEN": ADMIN_TOKEN}, timeout=120)
    assert got.returncode == 0 and "ecs:DescribeServices" in got.stdout
    # Nothing has changed by that, and the answer of the one that tells a secret is nowhere.
    assert not [e for e in front.log(since=since) if e["operation"].startswith(("Create", "Register", "Run", "Modify", "Admin"))]
    assert PASSWORD not in server.output() + json.dumps(rows) + got.stdout


@pytest.mark.parametrize("permission", ["elasticfilesystem:DescribeAccessPoints", "secretsmanager:PutSecretValue", "logs:DeleteLogGroup", "ecs:UpdateService",
                                        "elasticloadbalancing:DescribeRules", "cognito-idp:ListUserPools"])
def test_what_is_refused_keeps_it_from_starting_and_is_named(front, sites, make, permission):
    front.do("sts", "deny", role="*", action=permission)
    said = make.server(start=False, **sites.env()).refusal()
    assert permission in said and "deploy/aws/instances.json" in said and "denied" in said


@pytest.mark.parametrize("setting,value,permission", [("LEASEHOLD_EFS_ID", "fs-0000000000000000f", "elasticfilesystem:DescribeAccessPoints"),
                                                      ("LEASEHOLD_ECS_CLUSTER", "nobody", "ecs:DescribeServices")])
def test_what_is_named_wrongly_is_told_at_the_start(front, sites, make, setting, value, permission):
    front.do("sts", "policy", role=names.role_name(names.TASK_ROLE), statements=[{"Effect": "Allow", "Action": "*", "Resource": "*"}])
    said = make.server(start=False, **{**sites.env(), setting: value}).refusal()
    assert permission in said and "missing" in said


def test_the_scan_may_be_refused(front, sites, make):
    """It is not needed for work: an alarm."""
    front.do("sts", "deny", role="*", action="tag:GetResources")
    server = sites.start(make)
    row = next(r for r in rows_of(server) if r["permission"] == "tag:GetResources")
    assert row["verdict"] == "denied" and "instances.json" in row["change"]
