# SPDX-License-Identifier: Apache-2.0
"""botocore against the front, every service: python3 scenario.py URL. Says its version at the end. Needs nothing but botocore, so any Python with one runs it."""

import datetime
import json
import sys

import botocore
import botocore.config
import botocore.session

USER, TASK = ("AKIAFRONTUSER0000001", "front-user-secret-0123456789abcdef", None), (
    "ASIAFRONTTASK0000001", "front-task-secret-0123456789abcdef", "front-task-token-0123456789abcdef")
ACCOUNT, SANDBOX = "200000000001", "ou-frnt-sandbox0"


class Clients:
    def __init__(self, url):
        self.url, self.session = url, botocore.session.Session()

    def __call__(self, service, keys=USER, region="us-east-1"):
        return self.session.create_client(
            service, region_name=region, endpoint_url=self.url, aws_access_key_id=keys[0], aws_secret_access_key=keys[1],
            aws_session_token=keys[2], config=botocore.config.Config(retries={"max_attempts": 0}))


def refusal(call, **members):
    """The code of an error that must come."""
    try:
        call(**members)
    except botocore.exceptions.ClientError as e:
        return e.response["Error"]["Code"]
    raise AssertionError("was not refused: %r" % members)


def organisation(client):
    o = client("organizations")
    assert o.list_roots()["Roots"][0]["Id"] == "r-frnt"
    ous = {u["Name"]: u["Id"] for u in o.list_organizational_units_for_parent(ParentId=SANDBOX)["OrganizationalUnits"]}
    assert o.list_parents(ChildId=ACCOUNT)["Parents"] == [{"Id": ous["Available"], "Type": "ORGANIZATIONAL_UNIT"}]
    move = {"AccountId": ACCOUNT, "SourceParentId": ous["Available"], "DestinationParentId": ous["Active"]}
    o.move_account(**move)
    assert refusal(o.move_account, **move) == "DuplicateAccountException"
    assert refusal(o.move_account, **{**move, "DestinationParentId": ous["Frozen"]}) == "SourceParentNotFoundException"
    assert refusal(o.move_account, **{**move, "AccountId": "200000000099"}) == "AccountNotFoundException"
    assert refusal(o.move_account, **{**move, "DestinationParentId": "ou-frnt-99999999"}) == "DestinationParentNotFoundException"
    pages = o.get_paginator("list_accounts_for_parent").paginate(ParentId=ous["Available"])
    assert [len(page["Accounts"]) for page in pages] == [20, 20, 4]
    o.tag_resource(ResourceId=ACCOUNT, Tags=[{"Key": "k", "Value": "v"}, {"Key": "l", "Value": ""}])
    o.untag_resource(ResourceId=ACCOUNT, TagKeys=["l", "m"])
    assert o.list_tags_for_resource(ResourceId=ACCOUNT)["Tags"] == [{"Key": "k", "Value": "v"}]
    assert o.describe_account(AccountId=ACCOUNT)["Account"]["Status"] == "ACTIVE"
    assert refusal(client("organizations", TASK).list_roots) == "AccessDeniedException"
    return "organizations"


def roles(client):
    keys = client("sts", TASK).assume_role(RoleArn="arn:aws:iam::100000000002:role/isb-billing-sep-intermediate", RoleSessionName="a-b", DurationSeconds=900)
    keys = tuple(keys["Credentials"][k] for k in ("AccessKeyId", "SecretAccessKey", "SessionToken"))
    chained = client("sts", keys)
    org = "arn:aws:iam::100000000001:role/isb-billing-sep-org"
    assert refusal(chained.assume_role, RoleArn=org, RoleSessionName="a-b", DurationSeconds=3601) == "ValidationError"
    assert refusal(client("sts", TASK).assume_role, RoleArn=org, RoleSessionName="a-b") == "AccessDenied"
    keys = chained.assume_role(RoleArn=org, RoleSessionName="a-b", DurationSeconds=3600)["Credentials"]
    keys = tuple(keys[k] for k in ("AccessKeyId", "SecretAccessKey", "SessionToken"))
    assert client("sts", keys).get_caller_identity()["Arn"] == "arn:aws:sts::100000000001:assumed-role/isb-billing-sep-org/a-b"
    assert client("organizations", keys).list_roots()["Roots"]
    assert refusal(client("sts", (keys[0], keys[1], None)).get_caller_identity) == "InvalidClientTokenId"
    assert refusal(client("sts", (keys[0], "wrong", keys[2])).get_caller_identity) == "SignatureDoesNotMatch"
    return "sts"


def access(client):
    s, d = client("sso-admin"), client("identitystore")
    instance = s.list_instances()["Instances"][0]
    arn, store = instance["InstanceArn"], instance["IdentityStoreId"]
    sets = {s.describe_permission_set(InstanceArn=arn, PermissionSetArn=p)["PermissionSet"]["Name"]: p
            for p in s.list_permission_sets(InstanceArn=arn)["PermissionSets"]}
    user = d.get_user_id(IdentityStoreId=store, AlternateIdentifier={"UniqueAttribute": {"AttributePath": "emails.value", "AttributeValue": "one@example.com"}})
    assert d.describe_user(IdentityStoreId=store, UserId=user["UserId"])["Emails"][0]["Value"] == "one@example.com"
    group = d.get_group_id(IdentityStoreId=store, AlternateIdentifier={"UniqueAttribute": {"AttributePath": "displayName", "AttributeValue": "front_IsbUsers"}})
    assert len(d.list_group_memberships(IdentityStoreId=store, GroupId=group["GroupId"])["GroupMemberships"]) == 1
    assert len(d.list_group_memberships_for_member(IdentityStoreId=store, MemberId={"UserId": user["UserId"]})["GroupMemberships"]) == 1
    assert len(d.list_users(IdentityStoreId=store)["Users"]) == 1
    what = {"InstanceArn": arn, "TargetId": ACCOUNT, "TargetType": "AWS_ACCOUNT", "PermissionSetArn": sets["front_IsbUsersPS"], "PrincipalType": "USER",
            "PrincipalId": user["UserId"]}
    made = s.create_account_assignment(**what)["AccountAssignmentCreationStatus"]
    assert made["Status"] == "IN_PROGRESS"
    assert refusal(s.delete_account_assignment, **what) == "ConflictException"
    looked = s.describe_account_assignment_creation_status(InstanceArn=arn, AccountAssignmentCreationRequestId=made["RequestId"])
    assert looked["AccountAssignmentCreationStatus"]["Status"] == "SUCCEEDED"
    assert len(s.list_account_assignments(InstanceArn=arn, AccountId=ACCOUNT, PermissionSetArn=sets["front_IsbUsersPS"])["AccountAssignments"]) == 1
    gone = s.delete_account_assignment(**what)["AccountAssignmentDeletionStatus"]
    s.describe_account_assignment_deletion_status(InstanceArn=arn, AccountAssignmentDeletionRequestId=gone["RequestId"])
    assert refusal(s.delete_account_assignment, **what) == "ResourceNotFoundException"
    return "sso-admin and identitystore"


def queues(client):
    q = client("sqs")
    dead = q.create_queue(QueueName="dead")["QueueUrl"]
    arn = q.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    rule = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 2})
    url = q.create_queue(QueueName="work", Attributes={"VisibilityTimeout": "0", "RedrivePolicy": rule})["QueueUrl"]
    q.send_message(QueueUrl=url, MessageBody="bad", MessageAttributes={"n": {"DataType": "Number", "StringValue": "1"}})
    for count in ("1", "2"):
        got = q.receive_message(QueueUrl=url, AttributeNames=["ApproximateReceiveCount"], MessageAttributeNames=["All"])["Messages"][0]
        assert got["Attributes"] == {"ApproximateReceiveCount": count} and got["MessageAttributes"]["n"]["StringValue"] == "1"
    assert "Messages" not in q.receive_message(QueueUrl=url)
    assert q.receive_message(QueueUrl=dead)["Messages"][0]["Body"] == "bad"
    sent = q.send_message_batch(QueueUrl=url, Entries=[{"Id": str(i), "MessageBody": "m%d" % i} for i in range(10)])
    assert len(sent["Successful"]) == 10
    got = q.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60, WaitTimeSeconds=20)["Messages"]
    assert len(got) == 10
    q.change_message_visibility(QueueUrl=url, ReceiptHandle=got[0]["ReceiptHandle"], VisibilityTimeout=30)
    gone = q.delete_message_batch(QueueUrl=url, Entries=[{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(got)])
    assert len(gone["Successful"]) == 10
    assert refusal(q.delete_message, QueueUrl=url, ReceiptHandle="nonsense") == "ReceiptHandleIsInvalid"
    assert refusal(q.get_queue_url, QueueName="none") in ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
    return "sqs"


def costs(client):
    ce, today = client("ce"), datetime.datetime.now(datetime.timezone.utc).date()
    question = {"TimePeriod": {"Start": str(today - datetime.timedelta(2)), "End": str(today + datetime.timedelta(1))}, "Granularity": "DAILY",
                "Metrics": ["UnblendedCost"], "GroupBy": [{"Type": "DIMENSION", "Key": "LINKED_ACCOUNT"}, {"Type": "DIMENSION", "Key": "SERVICE"}],
                "Filter": {"And": [{"Dimensions": {"Key": "LINKED_ACCOUNT", "Values": [ACCOUNT]}},
                                   {"Not": {"Dimensions": {"Key": "RECORD_TYPE", "Values": ["Credit", "Refund"], "MatchOptions": ["EQUALS"]}}}]}}
    got = ce.get_cost_and_usage(**question)
    assert len(got["ResultsByTime"]) == 3
    assert got["ResultsByTime"][0]["Groups"][0]["Metrics"]["UnblendedCost"] == {"Amount": "0.0000000001", "Unit": "USD"}
    assert refusal(ce.get_cost_and_usage, **question, NextPageToken="none") == "InvalidNextTokenException"
    return "ce"


def builds(client):
    b = client("codebuild", TASK)
    start = {"projectName": "cleaner", "idempotencyToken": "once", "timeoutInMinutesOverride": 60,
             "environmentVariablesOverride": [{"name": "CLEANUP_ACCOUNT_ID", "value": ACCOUNT, "type": "PLAINTEXT"}]}
    id = b.start_build(**start)["build"]["id"]
    assert b.start_build(**start)["build"]["id"] == id
    assert b.list_builds_for_project(projectName="cleaner")["ids"] == [id]
    got = b.batch_get_builds(ids=[id, "cleaner:none"])
    assert got["builds"][0]["buildStatus"] == "SUCCEEDED" and got["buildsNotFound"] == ["cleaner:none"]
    return "codebuild"


def messages(client):
    entry = {"Source": "leasehold", "DetailType": "t", "Detail": "{}", "EventBusName": "leases", "Time": datetime.datetime.now(datetime.timezone.utc)}
    got = client("events", TASK).put_events(Entries=[entry, {**entry, "Detail": "no"}])
    assert got["FailedEntryCount"] == 1 and got["Entries"][1]["ErrorCode"] == "MalformedDetail"
    sns = client("sns", TASK)
    assert sns.publish(TopicArn="arn:aws:sns:us-east-1:100000000002:alerts", Subject="s", Message="m & <n>")["MessageId"]
    assert refusal(sns.publish, TopicArn="arn:aws:sns:us-east-1:100000000002:none", Message="m") == "NotFound"
    ses = client("sesv2", TASK)
    assert ses.get_account()["ProductionAccessEnabled"] is True
    mail = {"Destination": {"ToAddresses": ["a@example.com"]}, "Content": {"Simple": {"Subject": {"Data": "s"}, "Body": {"Text": {"Data": "t"}}}}}
    assert ses.send_email(FromEmailAddress="leasehold@example.com", **mail)["MessageId"]
    assert refusal(ses.send_email, FromEmailAddress="other@example.com", **mail) == "MessageRejected"
    return "events, sns and sesv2"


def keeping(client):
    s = client("secretsmanager", TASK)
    s.create_secret(Name="n/1", SecretString="one", ClientRequestToken="0" * 32, Tags=[{"Key": "k", "Value": "v"}])
    assert refusal(s.create_secret, Name="n/1", SecretString="two", ClientRequestToken="1" * 32) == "ResourceExistsException"
    s.put_secret_value(SecretId="n/1", SecretString="two", ClientRequestToken="1" * 32)
    assert s.get_secret_value(SecretId="n/1")["SecretString"] == "two"
    s.put_resource_policy(SecretId="n/1", ResourcePolicy="{}", BlockPublicPolicy=True)
    s.delete_secret(SecretId="n/1")
    assert refusal(s.create_secret, Name="n/1", SecretString="x") == "InvalidRequestException"
    s.restore_secret(SecretId="n/1")
    assert s.describe_secret(SecretId="n/1")["Tags"] == [{"Key": "k", "Value": "v"}]
    s.delete_secret(SecretId="n/1", ForceDeleteWithoutRecovery=True)
    assert refusal(s.describe_secret, SecretId="n/1") == "ResourceNotFoundException"
    assert refusal(client("ssm", TASK).get_parameter, Name="/none") == "ParameterNotFound"
    client("iam").put_role_policy(RoleName="r", PolicyName="p", PolicyDocument="{}")
    table, key = client("dynamodb", TASK), {"awsAccountId": {"S": ACCOUNT}}
    update = {"TableName": "accounts", "Key": key, "UpdateExpression": "SET #s = :n", "ConditionExpression": "#s = :o",
              "ExpressionAttributeNames": {"#s": "status"}, "ExpressionAttributeValues": {":n": {"S": "Quarantine"}, ":o": {"S": "Available"}}}
    table.update_item(**update)
    assert refusal(table.update_item, **update) == "ConditionalCheckFailedException"
    assert table.get_item(TableName="accounts", Key=key, ConsistentRead=True)["Item"]["status"] == {"S": "Quarantine"}
    return "secretsmanager, ssm, iam and dynamodb"


def schedules(client):
    s = client("scheduler", TASK)
    wanted = {"Name": "n.1", "GroupName": "isb-billing-separator", "ScheduleExpression": "at(2030-01-02T03:04:05)", "ScheduleExpressionTimezone": "UTC",
              "FlexibleTimeWindow": {"Mode": "OFF"}, "Target": {"Arn": "arn:aws:lambda:us-east-1:100000000002:function:f", "Input": "{}",
                                                                "RoleArn": "arn:aws:iam::100000000002:role/r"}}
    s.create_schedule(**wanted)
    assert refusal(s.create_schedule, **wanted) == "ConflictException"
    assert refusal(s.create_schedule, **{**wanted, "Name": "n.2", "ScheduleExpression": "at(soon)"}) == "ValidationException"
    assert refusal(s.create_schedule, **{**wanted, "GroupName": "none"}) == "ResourceNotFoundException"
    assert s.get_schedule(Name="n.1", GroupName="isb-billing-separator")["Target"]["Input"] == "{}"
    assert [x["Name"] for x in s.list_schedules(GroupName="isb-billing-separator", NamePrefix="n")["Schedules"]] == ["n.1"]
    s.delete_schedule(Name="n.1", GroupName="isb-billing-separator")
    assert refusal(s.get_schedule, Name="n.1", GroupName="isb-billing-separator") == "ResourceNotFoundException"
    return "scheduler"


TAGS = {"bbws:tenant-id": "one", "bbws:managed-by": "instance-management"}
LISTENER = "arn:aws:elasticloadbalancing:us-east-1:100000000002:listener/app/tenants/0123456789abcdef/0123456789abcdef"
FILE_SYSTEM, CLUSTER = "fs-0123456789abcdef0", "tenants"


def listed(tags, key="Key", value="Value"):
    return [{key: k, value: v} for k, v in tags.items()]


def storage(client):
    e = client("efs", TASK)
    wanted = {"ClientToken": "a" * 32, "FileSystemId": FILE_SYSTEM, "PosixUser": {"Uid": 33, "Gid": 33}, "Tags": listed(TAGS),
              "RootDirectory": {"Path": "/tenant-one", "CreationInfo": {"OwnerUid": 33, "OwnerGid": 33, "Permissions": "755"}}}
    made = e.create_access_point(**wanted)
    assert made["LifeCycleState"] == "creating"
    try:
        e.create_access_point(**wanted)
    except e.exceptions.AccessPointAlreadyExists as again:
        assert again.response["AccessPointId"] == made["AccessPointId"]
    states = [e.describe_access_points(AccessPointId=made["AccessPointId"])["AccessPoints"][0]["LifeCycleState"] for _ in range(2)]
    assert states == ["creating", "available"]
    assert refusal(e.create_access_point, **{**wanted, "FileSystemId": "fs-00000000000000000"}) == "FileSystemNotFound"
    assert e.describe_access_points(FileSystemId=FILE_SYSTEM)["AccessPoints"][0]["RootDirectory"] == wanted["RootDirectory"]
    e.delete_access_point(AccessPointId=made["AccessPointId"])
    assert e.describe_access_points(AccessPointId=made["AccessPointId"])["AccessPoints"][0]["LifeCycleState"] == "deleting"
    assert refusal(e.describe_access_points, AccessPointId=made["AccessPointId"]) == "AccessPointNotFound"
    return "efs"


def routing(client):
    """Answers the target group, which a closed rule uses."""
    b = client("elbv2", TASK)
    wanted = {"Name": "t-0123456789-tg", "Protocol": "HTTP", "Port": 80, "VpcId": "vpc-0123456789abcdef0", "TargetType": "ip", "HealthCheckPath": "/",
              "HealthCheckIntervalSeconds": 30, "Matcher": {"HttpCode": "200-399"}, "Tags": listed(TAGS)}
    group = b.create_target_group(**wanted)["TargetGroups"][0]["TargetGroupArn"]
    assert b.create_target_group(**wanted)["TargetGroups"][0]["TargetGroupArn"] == group
    assert refusal(b.create_target_group, **{**wanted, "Port": 81}) == "DuplicateTargetGroupName"
    rule = {"ListenerArn": LISTENER, "Priority": 1000, "Actions": [{"Type": "forward", "TargetGroupArn": group}], "Tags": listed(TAGS), "Conditions": [
        {"Field": "path-pattern", "PathPatternConfig": {"Values": ["/tenant/one", "/tenant/one/*"]}},
        {"Field": "http-header", "HttpHeaderConfig": {"HttpHeaderName": "X-Probe", "Values": ["secret"]}}]}
    arn = b.create_rule(**rule)["Rules"][0]["RuleArn"]
    assert refusal(b.create_rule, **rule) == "PriorityInUse"
    assert [r["Priority"] for r in b.describe_rules(ListenerArn=LISTENER, PageSize=400)["Rules"]] == ["1000", "default"]
    assert [len(page["Rules"]) for page in b.get_paginator("describe_rules").paginate(ListenerArn=LISTENER, PaginationConfig={"PageSize": 1})] == [1, 1]
    assert b.describe_tags(ResourceArns=[arn, group])["TagDescriptions"][0]["Tags"] == listed(TAGS)
    assert b.describe_target_groups(Names=[wanted["Name"]])["TargetGroups"][0]["LoadBalancerArns"]
    assert refusal(b.describe_target_groups, Names=["none"]) == "TargetGroupNotFound"
    assert b.describe_target_health(TargetGroupArn=group)["TargetHealthDescriptions"] == []
    b.modify_rule(RuleArn=arn, Conditions=rule["Conditions"][:1])
    assert refusal(b.delete_target_group, TargetGroupArn=group) == "ResourceInUse"
    b.delete_rule(RuleArn=arn)
    assert refusal(b.delete_rule, RuleArn=arn) == "RuleNotFound"
    b.delete_target_group(TargetGroupArn=group)
    b.delete_target_group(TargetGroupArn=group)
    return "elbv2"


def service(client):
    e, logs, s = client("ecs", TASK), client("logs", TASK), client("secretsmanager", TASK)
    group, role = "/aws/ecs/one", "arn:aws:iam::100000000002:role/tenants-execution"
    logs.create_log_group(logGroupName=group, tags=TAGS)
    assert refusal(logs.create_log_group, logGroupName=group) == "ResourceAlreadyExistsException"
    secret = s.create_secret(Name="one/db", SecretString='{"username": "u", "password": "p"}')["ARN"]
    container = {"name": "wordpress", "image": "wordpress:6.5", "essential": True, "portMappings": [{"containerPort": 80, "protocol": "tcp"}],
                 "secrets": [{"name": "WORDPRESS_DB_USER", "valueFrom": secret + ":username::"}],
                 "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": group, "awslogs-region": "us-east-1", "awslogs-stream-prefix": "w"}}}
    wanted = {"family": "tenant-one", "cpu": "512", "memory": "1024", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"],
              "executionRoleArn": role, "containerDefinitions": [container], "tags": listed(TAGS, "key", "value")}
    definition = e.register_task_definition(**wanted)["taskDefinition"]["taskDefinitionArn"]
    assert e.register_task_definition(**wanted)["taskDefinition"]["revision"] == 2
    assert refusal(e.register_task_definition, **{**wanted, "memory": "512"}) == "ClientException"
    assert len(e.describe_task_definition(taskDefinition="tenant-one", include=["TAGS"])["tags"]) == 2
    network = {"awsvpcConfiguration": {"subnets": ["subnet-0123456789abcdef0"], "securityGroups": ["sg-0123456789abcdef0"], "assignPublicIp": "DISABLED"}}
    asked = {"cluster": CLUSTER, "serviceName": "tenant-one", "taskDefinition": definition, "desiredCount": 2, "launchType": "FARGATE", "clientToken": "t" * 32,
             "networkConfiguration": network, "deploymentConfiguration": {"deploymentCircuitBreaker": {"enable": True, "rollback": True}},
             "tags": listed(TAGS, "key", "value")}
    e.create_service(**asked)
    assert e.create_service(**asked)["service"]["serviceName"] == "tenant-one"
    assert refusal(e.create_service, **{**asked, "clientToken": "u" * 32}) == "InvalidParameterException"
    counts = [e.describe_services(cluster=CLUSTER, services=["tenant-one", "none"])["services"][0]["runningCount"] for _ in range(2)]
    assert counts == [0, 2]
    tasks = e.list_tasks(cluster=CLUSTER, serviceName="tenant-one")["taskArns"]
    assert len(e.describe_tasks(cluster=CLUSTER, tasks=tasks)["tasks"]) == 2
    e.update_service(cluster=CLUSTER, service="tenant-one", forceNewDeployment=True)
    looked = [len(e.describe_services(cluster=CLUSTER, services=["tenant-one"])["services"][0]["deployments"]) for _ in range(2)]
    assert looked == [2, 1]
    one_off = {"cluster": CLUSTER, "taskDefinition": definition, "launchType": "FARGATE", "networkConfiguration": network, "startedBy": "leasehold",
               "overrides": {"containerOverrides": [{"name": "wordpress", "command": ["wp", "core", "install"], "environment": [{"name": "A", "value": "b"}]}]}}
    task = e.run_task(**one_off)["tasks"][0]["taskArn"]
    ends = [e.describe_tasks(cluster=CLUSTER, tasks=[task])["tasks"][0] for _ in range(3)]
    assert [t["lastStatus"] for t in ends] == ["RUNNING", "RUNNING", "STOPPED"] and ends[2]["containers"][0]["exitCode"] == 0
    assert refusal(e.delete_service, cluster=CLUSTER, service="tenant-one") == "InvalidParameterException"
    assert e.delete_service(cluster=CLUSTER, service="tenant-one", force=True)["service"]["status"] == "DRAINING"
    states = [e.describe_services(cluster=CLUSTER, services=["tenant-one"])["services"][0]["status"] for _ in range(2)]
    assert states == ["DRAINING", "INACTIVE"]
    assert refusal(e.describe_services, cluster="none", services=["x"]) == "ClusterNotFoundException"
    tagged = client("resourcegroupstaggingapi", TASK).get_resources(TagFilters=[{"Key": "bbws:managed-by", "Values": ["instance-management"]}])
    assert len(tagged["ResourceTagMappingList"]) == 3 and tagged["PaginationToken"] == ""
    for n in e.list_task_definitions(familyPrefix="tenant-one")["taskDefinitionArns"]:
        e.deregister_task_definition(taskDefinition=n)
    assert e.list_task_definitions(familyPrefix="tenant-one")["taskDefinitionArns"] == []
    if hasattr(e, "delete_task_definitions"):
        assert e.delete_task_definitions(taskDefinitions=[definition])["taskDefinitions"][0]["status"] == "DELETE_IN_PROGRESS"
    lines = logs.filter_log_events(logGroupName=group, startTime=0)["events"]
    assert lines and lines[-1]["message"] == "done: wp core install"
    logs.put_retention_policy(logGroupName=group, retentionInDays=30)
    assert logs.describe_log_groups(logGroupNamePrefix="/aws/ecs/")["logGroups"][0]["retentionInDays"] == 30
    logs.delete_log_group(logGroupName=group)
    return "ecs, logs and resourcegroupstaggingapi"


def people(client):
    c = client("cognito-idp", TASK)
    wanted = {"PoolName": "one", "AutoVerifiedAttributes": ["email"], "UsernameAttributes": ["email"], "UserPoolTags": TAGS, "MfaConfiguration": "OFF"}
    assert refusal(c.create_user_pool, **{**wanted, "MfaConfiguration": "OPTIONAL"}) == "InvalidParameterException"
    pool = c.create_user_pool(**wanted)["UserPool"]["Id"]
    c.set_user_pool_mfa_config(UserPoolId=pool, MfaConfiguration="OPTIONAL", SoftwareTokenMfaConfiguration={"Enabled": True})
    assert c.describe_user_pool(UserPoolId=pool)["UserPool"]["MfaConfiguration"] == "OPTIONAL"
    assert [p["Name"] for p in c.list_user_pools(MaxResults=60)["UserPools"]] == ["one"]
    made = c.create_user_pool_client(UserPoolId=pool, ClientName="one", GenerateSecret=True, CallbackURLs=["https://a.example/cb"], AllowedOAuthFlows=["code"],
                                     AllowedOAuthScopes=["openid"], AllowedOAuthFlowsUserPoolClient=True)["UserPoolClient"]
    assert c.describe_user_pool_client(UserPoolId=pool, ClientId=made["ClientId"])["UserPoolClient"]["ClientSecret"] == made["ClientSecret"]
    c.create_user_pool_domain(UserPoolId=pool, Domain="bbws-one")
    assert refusal(c.create_user_pool_domain, UserPoolId=pool, Domain="bbws-one") == "InvalidParameterException"
    assert c.describe_user_pool_domain(Domain="bbws-one")["DomainDescription"]["UserPoolId"] == pool
    assert c.describe_user_pool_domain(Domain="none")["DomainDescription"] == {}
    user = {"UserPoolId": pool, "Username": "a@example.com"}
    c.admin_create_user(**user, TemporaryPassword="Aa1!aaaa", MessageAction="SUPPRESS", UserAttributes=[{"Name": "name", "Value": "A"}])
    assert refusal(c.admin_create_user, **user) == "UsernameExistsException"
    c.admin_set_user_password(**user, Password="Bb2!bbbb", Permanent=False)
    assert c.list_users(UserPoolId=pool, Filter='email = "a@example.com"')["Users"][0]["UserStatus"] == "FORCE_CHANGE_PASSWORD"
    c.admin_user_global_sign_out(**user)
    c.admin_delete_user(**user)
    assert refusal(c.admin_get_user, **user) == "UserNotFoundException"
    assert refusal(c.delete_user_pool, UserPoolId=pool) == "InvalidParameterException"
    c.delete_user_pool_domain(UserPoolId=pool, Domain="bbws-one")
    c.delete_user_pool(UserPoolId=pool)
    assert refusal(c.describe_user_pool, UserPoolId=pool) == "ResourceNotFoundException"
    return "cognito-idp"


ALL = (organisation, roles, access, queues, costs, builds, messages, keeping, schedules, storage, routing, service, people)


def main(url):
    for scenario in ALL:
        scenario(Clients(url))
    print(botocore.__version__)


if __name__ == "__main__":
    main(sys.argv[1])
