// SPDX-License-Identifier: Apache-2.0
// The JavaScript SDK against the front: node scenario.mjs URL KEY SECRET. Says "good" at the end.
import assert from "node:assert/strict";
import { CostExplorerClient, GetCostAndUsageCommand } from "@aws-sdk/client-cost-explorer";
import * as org from "@aws-sdk/client-organizations";
import * as scheduler from "@aws-sdk/client-scheduler";
import * as sqs from "@aws-sdk/client-sqs";
import * as sso from "@aws-sdk/client-sso-admin";
import { GetCallerIdentityCommand, STSClient } from "@aws-sdk/client-sts";

const [endpoint, accessKeyId, secretAccessKey] = process.argv.slice(2);
const options = { endpoint, region: "us-east-1", credentials: { accessKeyId, secretAccessKey }, maxAttempts: 1 };

const sts = new STSClient(options);
assert.equal((await sts.send(new GetCallerIdentityCommand({}))).Account, "100000000001");

const o = new org.OrganizationsClient(options);
const account = "200000000001";
const [{ Id: available }] = (await o.send(new org.ListParentsCommand({ ChildId: account }))).Parents;
const { OrganizationalUnits: ous } = await o.send(new org.ListOrganizationalUnitsForParentCommand({ ParentId: "ou-frnt-sandbox0" }));
const active = ous.find((u) => u.Name === "Active").Id;
await o.send(new org.MoveAccountCommand({ AccountId: account, SourceParentId: available, DestinationParentId: active }));
await assert.rejects(o.send(new org.MoveAccountCommand({ AccountId: account, SourceParentId: available, DestinationParentId: active })),
	{ name: "DuplicateAccountException" });
await o.send(new org.TagResourceCommand({ ResourceId: account, Tags: [{ Key: "a b", Value: "ä/ö" }] }));
assert.deepEqual((await o.send(new org.ListTagsForResourceCommand({ ResourceId: account }))).Tags, [{ Key: "a b", Value: "ä/ö" }]);
assert.equal((await o.send(new org.DescribeAccountCommand({ AccountId: account }))).Account.State, "ACTIVE");

const q = new sqs.SQSClient(options);
const { QueueUrl } = await q.send(new sqs.CreateQueueCommand({ QueueName: "js", Attributes: { VisibilityTimeout: "5" } }));
await q.send(new sqs.SendMessageCommand({ QueueUrl, MessageBody: "hello", MessageAttributes: { k: { DataType: "String", StringValue: "v" } } }));
const { Messages } = await q.send(new sqs.ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
	MessageSystemAttributeNames: ["ApproximateReceiveCount"], MessageAttributeNames: ["All"] }));
assert.equal(Messages[0].Body, "hello");
assert.equal(Messages[0].Attributes.ApproximateReceiveCount, "1");
const gone = await q.send(new sqs.DeleteMessageBatchCommand({ QueueUrl, Entries: [{ Id: "a", ReceiptHandle: Messages[0].ReceiptHandle }] }));
assert.deepEqual(gone.Successful, [{ Id: "a" }]);
await assert.rejects(q.send(new sqs.GetQueueUrlCommand({ QueueName: "none" })), { name: "QueueDoesNotExist" });

const s = new sso.SSOAdminClient(options);
const [{ InstanceArn }] = (await s.send(new sso.ListInstancesCommand({}))).Instances;
const { PermissionSets } = await s.send(new sso.ListPermissionSetsCommand({ InstanceArn }));
assert.equal(PermissionSets.length, 3);

const c = new scheduler.SchedulerClient(options);
const when = { ScheduleExpression: "at(2030-01-02T03:04:05)", ScheduleExpressionTimezone: "UTC", FlexibleTimeWindow: { Mode: "OFF" } };
const Target = { Arn: "arn:aws:lambda:us-east-1:100000000002:function:f", RoleArn: "arn:aws:iam::100000000002:role/r", Input: "{}" };
await c.send(new scheduler.CreateScheduleCommand({ Name: "js-1", ...when, Target, ActionAfterCompletion: "DELETE" }));
assert.equal((await c.send(new scheduler.GetScheduleCommand({ Name: "js-1" }))).ScheduleExpression, when.ScheduleExpression);
assert.equal((await c.send(new scheduler.ListSchedulesCommand({ NamePrefix: "js" }))).Schedules.length, 1);
await c.send(new scheduler.DeleteScheduleCommand({ Name: "js-1" }));
await assert.rejects(c.send(new scheduler.GetScheduleCommand({ Name: "js-1" })), { name: "ResourceNotFoundException" });

const ce = new CostExplorerClient(options);
const bill = await ce.send(new GetCostAndUsageCommand({ TimePeriod: { Start: process.argv[5], End: process.argv[6] }, Granularity: "DAILY",
	Metrics: ["UnblendedCost"], GroupBy: [{ Type: "DIMENSION", Key: "LINKED_ACCOUNT" }, { Type: "DIMENSION", Key: "SERVICE" }] }));
assert.equal(bill.ResultsByTime[0].Groups[0].Metrics.UnblendedCost.Amount, "0.0000000001");
console.log("good");
