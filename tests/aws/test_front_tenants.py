# SPDX-License-Identifier: Apache-2.0
"""The machines of the front that tenants live on, where they do not do as they are told: seen with botocore, so that what the driver meets is what a client of
AWS meets."""

import json

import botocore.exceptions
import pytest

from aws.front import names

NETWORK = {"awsvpcConfiguration": {"subnets": [names.SUBNETS[0]], "securityGroups": list(names.SECURITY_GROUPS), "assignPublicIp": "DISABLED"}}
BREAKER = {"deploymentCircuitBreaker": {"enable": True, "rollback": True}}


def refused(call, **members):
    with pytest.raises(botocore.exceptions.ClientError) as e:
        call(**members)
    return e.value.response["Error"]["Code"]


class Site:
    """A service of one tenant, made by hand."""

    def __init__(self, front):
        front.do("sts", "allow_all")
        self.front, self.ecs, self.elb = front, front.client("ecs", "task"), front.client("elbv2", "task")
        self.group = self.elb.create_target_group(Name="t-tg", Protocol="HTTP", Port=80, VpcId=names.VPC, TargetType="ip")["TargetGroups"][0]["TargetGroupArn"]
        self.count = 0

    def rule(self, priority=1000):
        return self.elb.create_rule(ListenerArn=names.LISTENER, Priority=priority, Actions=[{"Type": "forward", "TargetGroupArn": self.group}],
                                    Conditions=[{"Field": "path-pattern", "Values": ["/tenant/t/*"]}])["Rules"][0]["RuleArn"]

    def define(self, **container):
        return self.ecs.register_task_definition(
            family="t", cpu="512", memory="1024", networkMode="awsvpc", requiresCompatibilities=["FARGATE"], executionRoleArn=names.EXECUTION_ROLE,
            containerDefinitions=[{"name": "wordpress", "image": "w", "essential": True, **container}])["taskDefinition"]["taskDefinitionArn"]

    def serve(self, **more):
        return self.ecs.create_service(cluster=names.CLUSTER, serviceName="t", taskDefinition="t", desiredCount=2, launchType="FARGATE",
                                       networkConfiguration=NETWORK, deploymentConfiguration=BREAKER,
                                       loadBalancers=[{"targetGroupArn": self.group, "containerName": "wordpress", "containerPort": 80}], **more)

    def look(self, times=1):
        """The service after so many looks."""
        for _ in range(times):
            got = self.ecs.describe_services(cluster=names.CLUSTER, services=["t"])["services"][0]
        return got

    def run(self, *command):
        got = self.ecs.run_task(cluster=names.CLUSTER, taskDefinition="t", launchType="FARGATE", networkConfiguration=NETWORK,
                                overrides={"containerOverrides": [{"name": "wordpress", "command": list(command)}]})
        return got["tasks"][0]["taskArn"] if got["tasks"] else got["failures"][0]["reason"]

    def end(self, task, looks=5):
        for _ in range(looks):
            got = self.ecs.describe_tasks(cluster=names.CLUSTER, tasks=[task])["tasks"][0]
        return got


@pytest.fixture
def site(front):
    return Site(front)


def test_a_service_needs_a_target_group_that_a_rule_uses(site):
    site.define()
    assert refused(site.serve) == "InvalidParameterException"
    site.rule()
    site.serve()
    site.look(3)
    health = site.elb.describe_target_health(TargetGroupArn=site.group)["TargetHealthDescriptions"]
    assert [h["TargetHealth"]["State"] for h in health] == ["healthy", "healthy"]
    assert site.front.do("elbv2", "visit", path="/tenant/t/x")[0] == 200


def test_a_service_that_never_gets_stable_and_targets_that_stay_unhealthy(site):
    site.define()
    site.rule()
    site.front.do("ecs", "pace", outcome="never")
    site.serve()
    got = site.look(20)
    assert (got["runningCount"], got["pendingCount"], got["deployments"][0]["rolloutState"]) == (0, 2, "IN_PROGRESS")
    site.ecs.delete_service(cluster=names.CLUSTER, service="t", force=True)
    site.look(2)
    site.front.do("ecs", "pace")
    site.front.do("elbv2", "health", state="unhealthy")
    site.serve()
    assert site.look(20)["deployments"][0]["rolloutState"] == "IN_PROGRESS"
    assert site.front.do("elbv2", "visit", path="/tenant/t/x")[0] == 503


def test_the_circuit_breaker_ends_a_deployment_and_the_one_before_serves(site):
    site.define()
    site.rule()
    site.front.do("ecs", "pace", outcome="failed")
    site.serve()
    got = site.look(2)["deployments"][0]
    assert got["rolloutState"] == "FAILED" and got["failedTasks"] == 1 and site.look()["runningCount"] == 0
    site.ecs.delete_service(cluster=names.CLUSTER, service="t", force=True)
    site.look(2)
    site.front.do("ecs", "pace")
    site.serve()
    assert site.look(3)["runningCount"] == 2
    old = site.look()["taskDefinition"]
    site.define(command=["new"])
    site.front.do("ecs", "pace", outcome="failed")
    site.ecs.update_service(cluster=names.CLUSTER, service="t", taskDefinition="t")
    got = site.look(3)
    assert (got["taskDefinition"], got["runningCount"], len(got["deployments"])) == (old, 2, 1), "rolled back"


def test_a_task_whose_secret_or_log_group_is_missing_does_not_start(site):
    secret = "arn:aws:secretsmanager:us-east-1:%s:secret:none-AbCdEf:username::" % names.HUB
    site.define(secrets=[{"name": "A", "valueFrom": secret}])
    got = site.end(site.run("x"))
    assert got["stopCode"] == "TaskFailedToStart" and "unable to pull secrets" in got["stoppedReason"] and "exitCode" not in got["containers"][0]
    site.define(logConfiguration={"logDriver": "awslogs", "options": {"awslogs-group": "/none"}})
    assert "log group does not exist" in site.end(site.run("x"))["stoppedReason"]


def test_tasks_end_as_the_test_wants(site):
    site.define()
    site.front.do("ecs", "exit", command="*install*", code=3, times=1)
    assert site.end(site.run("wp", "install"))["containers"][0]["exitCode"] == 3
    assert site.end(site.run("wp", "install"))["containers"][0]["exitCode"] == 0
    site.front.do("ecs", "failures", reasons=["RESOURCE:ENI"])
    assert site.run("wp", "other") == "RESOURCE:ENI"
    site.front.do("ecs", "task_pace", looks=-1, seconds=120)
    task = site.run("wp", "long")
    assert site.end(task)["lastStatus"] == "RUNNING"
    site.front.advance(121)
    assert site.end(task, 1)["lastStatus"] == "STOPPED"
    commands = [t["command"] for t in site.front.state("ecs")["tasks"]]
    assert commands == [["wp", "install"], ["wp", "install"], ["wp", "long"]]


def test_priorities_and_limits_of_a_listener(site):
    site.front.do("elbv2", "take", priority=1000)
    assert refused(site.rule) == "PriorityInUse"
    site.front.do("elbv2", "race", count=2)
    assert [refused(site.rule, priority=p) for p in (1001, 1002)] == ["PriorityInUse"] * 2
    site.rule(1003)
    site.front.do("elbv2", "limit", rules=4)
    assert refused(site.rule, priority=1004) == "TooManyRules"
    site.front.do("elbv2", "limit", groups=1)
    assert refused(site.elb.create_target_group, Name="u-tg", Protocol="HTTP", Port=80, VpcId=names.VPC, TargetType="ip") == "TooManyTargetGroups"


def test_a_closed_rule_lets_nobody_in_but_who_has_the_header(site):
    arn, path = site.rule(), [{"Field": "path-pattern", "Values": ["/tenant/t/*"]}]
    site.elb.modify_rule(RuleArn=arn, Conditions=[*path, {"Field": "http-header", "HttpHeaderConfig": {"HttpHeaderName": "X-Probe", "Values": ["secret"]}}])
    assert site.front.do("elbv2", "visit", path="/tenant/t/") == [404, ""]
    assert site.front.do("elbv2", "visit", path="/tenant/t/", headers={"x-probe": "secret"})[0] == 503, "there is no target yet"
    site.elb.modify_rule(RuleArn=arn, Conditions=path, Actions=[{"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "503", "MessageBody": "parked"}}])
    assert site.front.do("elbv2", "visit", path="/tenant/t/") == [503, "parked"]


def test_what_is_left_over_is_found_by_its_tag_and_what_is_gone_for_a_while_longer(site):
    site.front.do("efs", "add", path="/tenant-old", tags={"bbws:managed-by": "instance-management"})
    site.front.do("cognito-idp", "add", name="old", tags={"bbws:managed-by": "instance-management"})
    site.front.do("logs", "add", name="/aws/ecs/foreign", tags={"bbws:managed-by": "somebody"})
    api, logs = site.front.client("resourcegroupstaggingapi", "task"), site.front.client("logs", "task")
    ask = {"TagFilters": [{"Key": "bbws:managed-by"}], "ResourcesPerPage": 1}
    pages = [p["ResourceTagMappingList"][0]["ResourceARN"].split(":")[2] for p in api.get_paginator("get_resources").paginate(**ask)]
    assert pages == ["cognito-idp", "elasticfilesystem", "logs"]
    assert len(api.get_resources(TagFilters=[{"Key": "bbws:managed-by", "Values": ["instance-management"]}])["ResourceTagMappingList"]) == 2
    assert len(api.get_resources(ResourceTypeFilters=["elasticfilesystem:access-point"])["ResourceTagMappingList"]) == 1
    site.front.do("resourcegroupstaggingapi", "lag", looks=1)
    logs.delete_log_group(logGroupName="/aws/ecs/foreign")
    counts = [len(api.get_resources(TagFilters=ask["TagFilters"])["ResourceTagMappingList"]) for _ in range(2)]
    assert counts == [3, 2]


def test_pools_have_a_limit_and_a_domain_may_be_anothers(site):
    cognito = site.front.client("cognito-idp", "task")
    site.front.do("cognito-idp", "limit", pools=1)
    pool = cognito.create_user_pool(PoolName="one")["UserPool"]["Id"]
    assert refused(cognito.create_user_pool, PoolName="one") == "LimitExceededException"
    site.front.do("cognito-idp", "take_domain", name="bbws-x")
    assert refused(cognito.create_user_pool_domain, Domain="bbws-x", UserPoolId=pool) == "InvalidParameterException"


def test_a_pool_tells_upper_case_from_lower_unless_it_is_told_not_to(site):
    cognito = site.front.client("cognito-idp", "task")
    for is_sensitive in (True, False):
        pool = cognito.create_user_pool(PoolName="p", UsernameAttributes=["email"], **({} if is_sensitive else {"UsernameConfiguration": {"CaseSensitive": False}}))
        pool = pool["UserPool"]["Id"]
        cognito.admin_create_user(UserPoolId=pool, Username="Ann@example.com")
        if is_sensitive:
            assert refused(cognito.admin_get_user, UserPoolId=pool, Username="ann@example.com") == "UserNotFoundException"
        else:
            assert refused(cognito.admin_create_user, UserPoolId=pool, Username="ann@example.com") == "UsernameExistsException"


def test_what_happens_to_a_service_is_told_to_its_queue(site):
    site.front.do("sqs", "add_queue", name="ecs")
    site.front.do("ecs", "events", queue="ecs")
    site.define()
    site.rule()
    site.serve()
    site.look(4)
    told = [json.loads(m["body"]) for m in site.front.state("sqs")["ecs"]["messages"]]
    assert [t["detail"].get("eventName") or t["detail"]["lastStatus"] for t in told] == [
        "SERVICE_DEPLOYMENT_IN_PROGRESS", "RUNNING", "RUNNING", "SERVICE_DEPLOYMENT_COMPLETED", "SERVICE_STEADY_STATE"]
    assert all(t["source"] == "aws.ecs" and t["resources"][0].startswith("arn:aws:ecs:") for t in told)
    deployment = told[0]
    assert deployment["detail-type"] == "ECS Deployment State Change" and "clusterArn" not in deployment["detail"], "so no rule may filter by it"
