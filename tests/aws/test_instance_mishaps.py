# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with a tenant's instance on AWS by itself: others are quicker, AWS is slow, a task fails."""

import hashlib
import json

import pytest

from aws.test_instance_driver import ACME, SECRETS, mariadb, site  # noqa: F401 pylint: disable=unused-import
from lib.mariadb import ADMIN
from lib.wait import until


def fails(site):
    assert site.call("POST", "", ACME).status == 202
    until(lambda: site.show()["status"] == "FAILED", "it fails", 300, 0.1)
    return site.show()["lastError"]


@pytest.mark.parametrize("taken", [3, 5])
def test_priorities_that_others_take_meanwhile(front, site, taken):
    """Four times the next one is tried within a call; after the fifth the step is tried again."""
    front.do("elbv2", "race", count=taken)
    site.active()
    assert site.visit()[0] == 200 and len([r for r in front.state("elbv2")["rules"] if r["tags"].get("bbws:tenant-id") == "tenant-acme"]) == 1


def test_targets_that_are_not_healthy_keep_it_closed(front, site):
    front.do("elbv2", "health", state="unhealthy")
    assert site.call("POST", "", ACME).status == 202
    until(lambda: front.state("ecs")["services"], "the service is made", 180, 0.1)
    until(lambda: len(front.log("elbv2", "DescribeTargetHealth")) > 3, "its health is asked for again and again", 180, 0.1)
    assert site.show()["status"] == "PROVISIONING" and site.visit()[0] == 404
    front.do("elbv2", "health", state="healthy")
    site.reaches("ACTIVE")
    assert site.visit()[0] == 200


def test_a_throttled_burst(front, site):
    """Each service says three times that it is too fast."""
    rules = [front.fault("throttle", service, count=3) for service in ("efs", "secretsmanager", "elbv2", "ecs", "cognito-idp", "logs")]
    site.active()
    assert [front.hits(number) for number in rules] == [3] * len(rules)
    assert [len(site.left()[k]) for k in ("points", "secrets", "groups", "rules", "services", "pools", "logs")] == [1, 3, 1, 1, 1, 1, 1]


def test_a_route_that_ecs_has_not_heard_of_yet(front, site):
    """ECS asks the load balancer, which may not have told all of itself that there is a rule."""
    arn = "arn:aws:elasticloadbalancing:us-east-1:100000000002:targetgroup/t-0123456789-tg/73e2d6bc24d8a067"
    refused = front.fault("error", "ecs", "CreateService", code="InvalidParameterException", status=400, count=2,
                          message="The target group with targetGroupArn %s does not have an associated load balancer." % arn)
    site.active()
    assert front.hits(refused) == 2 and len(site.left()["services"]) == 1


def test_a_domain_that_another_account_has(front, site):
    name = "bbws-test-" + hashlib.sha256(b"tenant-acme").hexdigest()[:10]
    front.do("cognito-idp", "take_domain", name=name)
    error = fails(site)
    assert error["code"] == "PROV-005" and "Domain" in error["message"] and not error.get("leftovers"), error
    assert site.left() == {}


@pytest.mark.parametrize("service,operation,word,code", [
    ("secretsmanager", "CreateSecret", "LimitExceededException", "PROV-007"), ("elbv2", "CreateRule", "TooManyUniqueTargetGroupsPerLoadBalancer", "PROV-004"),
    ("logs", "CreateLogGroup", "LimitExceededException", "PROV-008"), ("cognito-idp", "CreateUserPoolClient", "LimitExceededException", "PROV-005"),
    ("ecs", "RunTask", "ClientException", "PROV-009")])
def test_limits_of_other_things_are_named_and_all_is_undone(front, site, service, operation, word, code):
    """Refused once, and not tried again."""
    refused = front.fault("error", service, operation, code=word, status=400)
    error = fails(site)
    assert error["code"] == code and word in error["message"] and not error.get("leftovers"), error
    assert front.hits(refused) == 1 and site.left() == {}


def test_a_database_server_that_makes_no_databases(front, site, mariadb):  # noqa: F811
    mariadb.ask("REVOKE CREATE ON *.* FROM %s@'%%'" % ADMIN)
    try:
        error = fails(site)
    finally:
        mariadb.ask("GRANT ALL ON *.* TO %s@'%%' WITH GRANT OPTION" % ADMIN)
    assert error["code"] == "PROV-002" and "tenant_acme_db" in error["message"] and not error.get("leftovers"), error
    assert site.left() == {}


def test_a_task_that_does_not_install_and_tells_no_secret(front, site, mariadb):  # noqa: F811
    front.do("ecs", "exit", family="tenant-acme-install", code=1)
    held = front.fault("hold_before", "ecs", "DeleteService")
    assert site.call("POST", "", ACME).status == 202
    front.wait_held(held, 300)
    secrets = [json.loads(front.state("secretsmanager")[name]["value"])["password"] for name in SECRETS if name.endswith(("/db", "/wp-admin"))]
    front.release(held)
    until(lambda: site.show()["status"] == "FAILED", "it fails", 300, 0.1)
    error = site.show()["lastError"]
    assert error["code"] == "PROV-009" and "exit code 1" in error["message"] and "/aws/ecs/tenant-acme-wordpress" in error["message"], error
    assert site.left() == {} and not [s for s in secrets if s in site.server.output() + json.dumps(error)]


def test_a_task_that_finds_no_room_at_first(front, site):
    front.do("ecs", "failures", reasons=["RESOURCE:ENI"])
    site.active()
    assert len([t for t in front.state("ecs")["tasks"] if t["command"][1:] == ["install"]]) == 1


def test_a_task_that_ecs_has_not_told_all_of_itself_of(front, site):
    held = front.fault("hold_after", "ecs", "RunTask")
    assert site.call("POST", "", ACME).status == 202
    front.wait_held(held, 300)
    unseen = front.fault("reply", "ecs", "DescribeTasks", body={"tasks": [], "failures": [{"reason": "MISSING"}]}, count=3)
    front.release(held)
    site.reaches("ACTIVE")
    assert front.hits(unseen) == 3 and len([t for t in front.state("ecs")["tasks"] if t["command"][1:] == ["install"]]) == 1


def test_a_secret_that_somebody_has_put_into_its_recovery_window(front, site):
    site.front.client("secretsmanager").create_secret(Name=SECRETS[0], SecretString="{}")
    site.front.client("secretsmanager").delete_secret(SecretId=SECRETS[0], RecoveryWindowInDays=7)
    site.active()
    assert json.loads(front.state("secretsmanager")[SECRETS[0]]["value"])["username"] == "tenant_acme_user"


@pytest.mark.parametrize("when", ["with the instance", "of the one before"])
def test_a_domain_that_takes_its_time_to_go(front, site, when):
    """Cognito has a status for that, DELETING: until it is over the pool stays, and the name is taken."""
    site.active()
    if when == "with the instance":
        refused = front.fault("error", "cognito-idp", "DeleteUserPool", code="InvalidParameterException", status=400, count=2,
                              message="User pool cannot be deleted. It has a domain configured that should be deleted first.")
    removal = site.on("", "DELETE")
    assert site.ends(removal) == "SUCCEEDED" and site.left() == {}
    if when == "of the one before":
        refused = front.fault("reply", "cognito-idp", "DescribeUserPoolDomain", count=2, body={
            "DomainDescription": {"UserPoolId": "us-east-1_Before000", "Domain": "bbws-test-0123456789", "Status": "DELETING"}})
        site.active()
    assert front.hits(refused) == 2
