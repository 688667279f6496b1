// SPDX-License-Identifier: Apache-2.0
// The queues by which instances are made, changed and removed, and the table of what they have.
import { aws_cloudwatch as cloudwatch, aws_dynamodb as dynamodb, aws_events as events, aws_events_targets as targets, aws_sqs as sqs, Duration, type Environment } from "aws-cdk-lib";
import type { Construct } from "constructs";
import type { Context } from "./context.js";
import { AlertTopic, Alarms, dashboard, LeaseholdStack, MINUTE_MAX, queueWithDeadLetters, removal } from "./parts.js";

// Names as deploy/aws/task.json allows them; the last is sent to, the others are read.
const QUEUES: { name: string; setting: string; visibility: number; days: number; receives: number }[] = [
	{ name: "bbws-instance-provision", setting: "LEASEHOLD_PROVISION_QUEUE_URL", visibility: 900, days: 4, receives: 3 },
	{ name: "bbws-instance-lifecycle", setting: "LEASEHOLD_LIFECYCLE_QUEUE_URL", visibility: 300, days: 4, receives: 3 },
	{ name: "bbws-instance-deprovision", setting: "LEASEHOLD_DEPROVISION_QUEUE_URL", visibility: 900, days: 14, receives: 3 },
	{ name: "bbws-instance-ecs", setting: "LEASEHOLD_ECS_QUEUE_URL", visibility: 60, days: 4, receives: 5 },
	{ name: "bbws-tenant-events", setting: "LEASEHOLD_TENANT_EVENTS_QUEUE_URL", visibility: 30, days: 4, receives: 5 },
];

// Not by cluster: deployment events do not name one, and the program ignores what is not a tenant's.
const ECS: events.EventPattern = { source: ["aws.ecs"], detailType: ["ECS Service Action", "ECS Deployment State Change", "ECS Task State Change"] };

export function queueUrls(context: Context): Record<string, string> {
	return Object.fromEntries(QUEUES.map((row) => [row.setting, `https://sqs.${context.region}.amazonaws.com/${context.account}/${row.name}-${context.env}`]));
}

// As the program names it by LEASEHOLD_ENV.
export function tenantTable(context: Context): string {
	return `${context.env}-tenant-resources`;
}

export class InstancesStack extends LeaseholdStack {
	constructor(scope: Construct, context: Context, env: Environment) {
		super(scope, `LeaseholdInstances-${context.env}`, context, { env, description: "Leasehold: queues and table of instances" });
		const alarms = new Alarms(this, "bbws", new AlertTopic(this, `bbws-instance-alerts-${context.env}`));
		const queues = QUEUES.map((row) => {
			const made = queueWithDeadLetters(this, row.name, `${row.name}-${context.env}`, `${row.name}-dlq-${context.env}`, row);
			alarms.deadLetters(made.dead, row.name);
			if (row.setting === "LEASEHOLD_ECS_QUEUE_URL") {
				new events.Rule(this, "Ecs", {
					ruleName: `${row.name}-${context.env}`, eventPattern: ECS, targets: [new targets.SqsQueue(made.queue, { deadLetterQueue: made.dead })],
				});
			}
			return made.queue;
		});
		const resources = new dynamodb.Table(this, "Resources", {
			tableName: tenantTable(context), partitionKey: { name: "PK", type: dynamodb.AttributeType.STRING },
			sortKey: { name: "SK", type: dynamodb.AttributeType.STRING }, billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
			removalPolicy: removal(context), deletionProtection: context.retain, pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
		});
		resources.addGlobalSecondaryIndex({ // as src/store/dynamodb/ddb_tables.c
			indexName: "GSI1", partitionKey: { name: "GSI1PK", type: dynamodb.AttributeType.STRING }, sortKey: { name: "GSI1SK", type: dynamodb.AttributeType.STRING },
		});
		alarms.add({ heading: "instance-failed", metric: figure("ProvisioningFailures", "Sum"), over: 0, silence: "good" });
		alarms.add({ heading: "instance-failed", what: "rolled-back", metric: figure("RollbackCount", "Sum"), over: 0, silence: "good" });
		alarms.add({ heading: "instance-failed", what: "below-99-percent", metric: figure("ProvisioningSuccess", "Average"), below: 99, silence: "good" });
		alarms.add({ heading: "instance-slow", metric: figure("ProvisioningDuration", "Maximum"), over: 900, silence: "good" });
		alarms.add({ heading: "instance-slow", what: "20-minutes", metric: figure("ProvisioningDuration", "Maximum"), over: 1200, silence: "good" });
		dashboard(this, "bbws-instances", alarms, [
			[["Made, percent", [figure("ProvisioningSuccess", "Average")]], ["Failed and rolled back", [figure("ProvisioningFailures", "Sum"), figure("RollbackCount", "Sum")]],
				["Seconds to make one", [figure("ProvisioningDuration", "Average"), figure("ProvisioningDuration", "Maximum")]]],
			[["Oldest message, seconds", queues.map((queue: sqs.Queue) => queue.metricApproximateAgeOfOldestMessage(MINUTE_MAX))]],
		]);
	}
}

// From the program's own line of figures.
function figure(metricName: string, statistic: string): cloudwatch.Metric {
	return new cloudwatch.Metric({ namespace: "BBWS/Instance", metricName, statistic, period: Duration.minutes(1) });
}
