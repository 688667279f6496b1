# SPDX-License-Identifier: Apache-2.0
"""What of tenants is left on AWS that no instance has, and what never comes about: with a date that can be moved."""

import json

import pytest

from aws.test_instance_driver import ACME, Site, mariadb, start  # noqa: F401 pylint: disable=unused-import
from lib.clouds import Jump
from lib.ops import Ops
from lib.server import ADMIN_TOKEN, run
from lib.wait import until

TAGS = {"bbws:tenant-id": "tenant-lost", "bbws:managed-by": "instance-management", "bbws:environment": "test", "leasehold:key": "inst-lost"}
SECRET = "bbws/test/tenant-lost/db"


class Lost(Site):
    """The site of a tenant of whom nobody knows."""

    def __init__(self, server, front, database, jump):
        super().__init__(server, front, database, "tenant-lost")
        self.jump = jump

    def scan(self):
        assert Ops(self.server).post("/v1/ops/jobs/instance-orphans/run").status == 200

    def doctor(self, *options):
        """Exit status, and what it found."""
        got = run("doctor", "--json", *options, env={"LEASEHOLD_ADDRESS": self.server.url, "BROKER_ADMIN_TOKEN": ADMIN_TOKEN}, timeout=180)
        return got.returncode, json.loads(got.stdout)["findings"]

    def leave(self, *kinds):
        if "storage" in kinds:
            self.front.do("efs", "add", path="/tenant-lost", tags=TAGS)
        if "database" in kinds:
            self.mariadb.ask("CREATE DATABASE tenant_lost_db COMMENT 'leasehold test tenant-lost inst-lost'; CREATE USER tenant_lost_user@'%'")
        if "secret" in kinds:
            self.front.do("secretsmanager", "put", name=SECRET, value=json.dumps({"username": "tenant_lost_user", "password": "p"}), tags=TAGS)

    def archives(self):
        return [t for t in self.front.state("ecs")["tasks"] if t["command"][1:] == ["archive"]]


@pytest.fixture
def jump(front, tmp_path, jumpclock):
    return Jump(front, tmp_path / "jump", jumpclock)


@pytest.fixture
def lost(front, mariadb, make, jump):  # noqa: F811
    server = start(front, mariadb, make, **jump.env()).server

    def has_run():
        job = next(j for j in Ops(server).read("jobs")["jobs"] if j["name"] == "instance-orphans")
        return job["last_finished_at"] and not job["running"]

    until(has_run, "the job has run at the start")
    return Lost(server, front, mariadb, jump)


def test_C46_what_nobody_knows_of_is_named_by_the_job_and_removed_by_a_person_after_an_hour(front, lost):
    """Its definitions are gone: the archive is made with one of its own."""
    lost.leave("storage", "database", "secret")
    front.do("efs", "add", path="/foreign", tags={**TAGS, "bbws:managed-by": "somebody else"})
    lost.scan()
    code, found = lost.doctor("--fix")
    assert code == 7 and [(f["kind"], f["can_be_healed"], f["healed"]) for f in found] == [("orphan-resources", False, False)], found
    assert "tenant-lost" in found[0]["text"] and "not removed in the hour after that" in found[0]["text"]
    lost.jump.leap(lost.server, minutes=64)
    lost.scan()
    assert lost.doctor()[1][0]["can_be_healed"] and len(front.state("efs")["access_points"]) == 2 and lost.left()["secrets"] == [SECRET]
    code, found = lost.doctor("--fix")
    assert code == 0 and found[0]["healed"], found
    lost.reaches("DEPROVISIONED")
    left = lost.left()
    assert [p["path"] for p in left.pop("points")] == ["/foreign"] and left == {}, left
    assert len(lost.archives()) == 1 and lost.doctor() == (0, [])


def test_data_that_cannot_be_archived_stay_until_a_person_says_otherwise(front, lost):
    """A database and no storage: no task could dump it."""
    lost.leave("database", "secret")
    lost.scan()
    lost.jump.leap(lost.server, minutes=64)
    code, found = lost.doctor("--fix")
    assert code == 7 and not found[0]["healed"] and "--without-archive" in found[0]["text"], found
    assert lost.mariadb.names() == ["tenant_lost_db", "tenant_lost_user"]
    code, found = lost.doctor("--fix", "--without-archive")
    assert code == 0 and found[0]["healed"], found
    lost.reaches("DEPROVISIONED")
    assert lost.left() == {} and lost.archives() == []


@pytest.mark.parametrize("break_it", [lambda front: front.do("ecs", "pace", looks=1, seconds=0, outcome="never"),
                                      lambda front: front.do("elbv2", "health", state="unhealthy")], ids=["a service that never gets stable", "targets that stay unhealthy"])
def test_what_does_not_get_stable_in_time_fails_and_leaves_nothing(front, mariadb, make, jump, break_it):  # noqa: F811
    site = start(front, mariadb, make, **jump.env())
    break_it(front)
    assert site.call("POST", "", ACME).status == 202
    until(lambda: len(front.log("elbv2", "DescribeTargetHealth")) > 3, "it is looked at again and again", 180, 0.1)
    assert site.show()["status"] == "PROVISIONING" and site.visit()[0] == 404
    jump.leap(site.server, minutes=12)
    until(lambda: site.show()["status"] == "FAILED", "it fails", 300, 0.1)
    error = site.show()["lastError"]
    assert (error["code"], error["step"]) == ("PROV-003", "stable") and "600 s" in error["message"] and not error.get("leftovers"), error
    assert site.left() == {}
    assert [e["detail"]["status"] for e in Ops(site.server).events("type=CLUSTER_CREATION_COMPLETE")] == ["FAILED"]
