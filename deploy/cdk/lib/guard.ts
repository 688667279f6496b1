// SPDX-License-Identifier: Apache-2.0
// The guard beside another system: what is in the hub account, and what is in the organisation's management account. Standalone: neither changes anything of
// the other system, and both can be removed without a trace in it.
import {
	aws_cloudwatch as cloudwatch, aws_ec2 as ec2, aws_ecs as ecs, aws_events as events, aws_events_targets as targets, aws_iam as iam, aws_lambda as lambda,
	aws_lambda_event_sources as sources, aws_logs as logs, aws_s3 as s3, aws_scheduler as scheduler, aws_sqs as sqs,
	BootstraplessSynthesizer, CfnOutput, Duration, RemovalPolicy, Validations, type Environment,
} from "aws-cdk-lib";
import type { Construct } from "constructs";
import { secretNames, type Context } from "./context.js";
import type { DataStack } from "./data.js";
import {
	acknowledgeWildcards, AlertTopic, Alarms, commonEnvironment, dashboard, deadLetters, documentOf, GUARD_PREFIX, guardSynthesizer, LeaseholdStack, logGroup, MINUTE_MAX,
	network, 	queueWithDeadLetters, task,
} from "./parts.js";
import { policy, tables, type Document, type Words } from "./policies.js";

const MINUTE = Duration.minutes(1);

// Lambda's pollers do not look at the function's reserve: what they take beyond it is throttled, and goes to the dead letters after five receives. So they are
// limited themselves, and the reserve leaves room for the tick and a bell.
const BATCHES_AT_ONCE = 2; // the least that AWS allows

const MOVES: events.EventPattern = {
	source: ["aws.organizations"], detailType: ["AWS API Call via CloudTrail"],
	detail: { eventSource: ["organizations.amazonaws.com"], eventName: ["MoveAccount"] },
};

export function nameOf(context: Context, what: string): string {
	return `${GUARD_PREFIX}-${what}-${context.env}`;
}

function roleArn(account: string, context: Context, what: string): string {
	return `arn:aws:iam::${account}:role/${nameOf(context, what)}`;
}

function busArn(context: Context): string {
	return `arn:aws:events:${context.region}:${context.account}:event-bus/${nameOf(context, "bus")}`;
}

function functionArn(context: Context): string {
	return `arn:aws:lambda:${context.region}:${context.account}:function:${nameOf(context, "guard")}`;
}

// A role of the chain, with the policy of that name, that only the hop before may assume; for an hour at most.
function chained(scope: LeaseholdStack, id: string, name: string, document: Document, trusted: { account: string; role: string }): iam.CfnRole {
	const role = new iam.CfnRole(scope, id, {
		roleName: name, maxSessionDuration: 3600, policies: [{ policyName: "calls", policyDocument: document }],
		assumeRolePolicyDocument: policy("trust", {
			TRUSTED_ACCOUNT_ID: trusted.account, TRUSTED_ROLE_ARN: trusted.role, ORGANIZATION_ID: scope.context.organizationId,
		}),
	});
	acknowledgeWildcards(role, [document]);
	return role;
}

export class HubStack extends LeaseholdStack {
	private readonly alerts: AlertTopic;
	private readonly group: logs.LogGroup;
	private readonly queue: sqs.Queue;
	private readonly alarms: Alarms;

	constructor(scope: Construct, context: Context, env: Environment, private readonly data: DataStack) {
		super(scope, nameOf(context, "hub"), context, { env, synthesizer: guardSynthesizer(context), description: "Leasehold: the guard" });
		this.group = logGroup(this, "Log", `/${GUARD_PREFIX}/${context.env}`);
		this.alerts = new AlertTopic(this, nameOf(context, "alerts"));
		this.alarms = new Alarms(this, GUARD_PREFIX, this.alerts);
		const made = queueWithDeadLetters(this, "Events", nameOf(context, "event-queue"), nameOf(context, "event-dlq"), { visibility: 300, days: 7, receives: 5 });
		this.queue = made.queue;
		this.alarms.deadLetters(made.dead, "event-dlq");
		this.alarms.deadLetters(this.bus(), "rule-dlq");
		chained(this, "Intermediate", nameOf(context, "intermediate"), policy("intermediate", {
			ORG_MGT_ROLE_ARN: roleArn(context.orgAccount, context, "org"), ORGANIZATION_ID: context.organizationId,
		}, undefined, (arn) => !arn.includes("::*:")), { account: context.account, role: roleArn(context.account, context, "task") });
		if (context.home === "lambda")
			this.function();
		else
			this.service();
		this.watch();
		new CfnOutput(this, "BusArn", { value: busArn(context) });
	}

	// Moves come from the management account's forwarder alone; its region has no other way here than a bus. The role is named by a condition: as a principal it
	// would have to exist already, and its stack comes after this one.
	private bus(): sqs.Queue {
		const { context } = this;
		const bus = new events.EventBus(this, "Bus", { eventBusName: nameOf(context, "bus") });
		bus.addToResourcePolicy(new iam.PolicyStatement({
			sid: "management-account", principals: [new iam.AccountPrincipal(context.orgAccount)], actions: ["events:PutEvents"], resources: [busArn(context)],
			conditions: {
				ArnEquals: { "aws:PrincipalArn": roleArn(context.orgAccount, context, "forward") },
				StringEquals: { "events:source": MOVES.source![0], "events:detail-type": MOVES.detailType![0] },
			},
		}));
		const dead = deadLetters(this, "RuleDead", nameOf(context, "rule-dlq"));
		new events.Rule(this, "Moves", {
			ruleName: nameOf(context, "move-rule"), eventBus: bus, eventPattern: MOVES, targets: [new targets.SqsQueue(this.queue, { deadLetterQueue: dead })],
		});
		return dead;
	}

	private environmentOf(): Record<string, string> {
		const { context } = this;
		return {
			...context.guardSettings, ...commonEnvironment(context, this.alerts.arn),
			LEASEHOLD_QUARANTINE: "guard", LEASEHOLD_CLOUD: "aws",
			DDB_TABLE_NAME: this.data.poolName, LEASEHOLD_DDB_KERNEL_TABLE: this.data.kernelName,
			ACCOUNT_TABLE_NAME: context.accountTableArn.split("/")[1]!, SANDBOX_OU_ID: context.sandboxOuId, ORG_MGT_ACCOUNT_ID: context.orgAccount,
			INTERMEDIATE_ROLE_ARN: roleArn(context.account, context, "intermediate"), ORG_MGT_ROLE_ARN: roleArn(context.orgAccount, context, "org"),
			QUARANTINE_DURATION_HOURS: context.guardSettings.QUARANTINE_DURATION_HOURS ?? "72",
		};
	}

	private policies(more: string[], words: Words = {}): Record<string, Document> {
		const { context } = this;
		const sids = [
			"Chain", "AccountTable", "QueuesIn", "Alerts", ...(context.guardSettings.EJECT_AFTER_CLEANUP === "true" ? ["AccountTableEject"] : []),
			...(context.accountTableKeyArn ? ["KeyOfTableAndQueues"] : []), ...(context.guardSettings.ISB_EVENT_BUS ? ["Bus"] : []),
			...(secretNames(context.guardSettings).length ? ["Secrets"] : []), ...more,
		];
		return {
			tables: tables(this.data.tableArns, this.data.key?.keyArn),
			calls: policy("task", {
				...context.guardSettings, ...words, AWS_REGION: context.region, HUB_ACCOUNT_ID: context.account, LEASEHOLD_ENV: context.env,
				INTERMEDIATE_ROLE_ARN: roleArn(context.account, context, "intermediate"), ACCOUNT_TABLE_NAME: context.accountTableArn.split("/")[1]!,
				SNS_ALERT_TOPIC_ARN: this.alerts.arn, KEY_ID: context.accountTableKeyArn.split("/")[1] ?? [], SECRET_NAME: secretNames(context.guardSettings),
			}, sids, (arn) => !arn.includes(":sqs:") || arn.includes("-event-queue-")),
		};
	}

	/* --- at home in a task --- */

	private service(): void {
		const { context } = this;
		const vpc = network(this, false, this.group);
		const definition = task(this, {
			prefix: GUARD_PREFIX, cpu: 256, memory: 512, group: this.group, policies: this.policies([]),
			environment: { ...this.environmentOf(), LEASEHOLD_GUARD_QUEUE_URL: `https://sqs.${context.region}.amazonaws.com/${context.account}/${nameOf(context, "event-queue")}` },
			secrets: { BROKER_API_TOKEN: this.data.secrets["api-token"]!, BROKER_ADMIN_TOKEN: this.data.secrets["admin-token"]! },
		});
		this.alerts.allow(definition.taskRole);
		const group = new ec2.SecurityGroup(this, "TaskGroup", { vpc, allowAllOutbound: false, description: "Leasehold: guard, which nobody calls" });
		group.addEgressRule(ec2.Peer.anyIpv4(), ec2.Port.tcp(443), "AWS");
		new ecs.FargateService(this, "Service", {
			serviceName: nameOf(context, "guard"), taskDefinition: definition, desiredCount: 1, minHealthyPercent: 100, maxHealthyPercent: 200, securityGroups: [group],
			cluster: new ecs.Cluster(this, "Cluster", { clusterName: nameOf(context, "guard"), vpc, containerInsightsV2: ecs.ContainerInsights.ENABLED }),
			circuitBreaker: { rollback: true }, propagateTags: ecs.PropagatedTagSource.SERVICE, assignPublicIp: true, vpcSubnets: { subnetType: ec2.SubnetType.PUBLIC },
		});
	}

	/* --- at home in a function --- */

	private function(): void {
		const { context } = this;
		const isRung = context.scheduler === "external";
		const bells = { SCHEDULER_GROUP: nameOf(context, "schedules"), SCHEDULER_ROLE_ARN: roleArn(context.account, context, "scheduler") };
		const dead = deadLetters(this, "WakeDead", nameOf(context, "wake-dlq"));
		const policies = this.policies(isRung ? ["Bells", "BellsList", "BellsRole"] : [], bells);
		const role = new iam.Role(this, "TaskRole", {
			roleName: nameOf(context, "task"), assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
			inlinePolicies: Object.fromEntries(Object.entries(policies).map(([k, v]) => [k, documentOf(v)])),
		});
		acknowledgeWildcards(role, Object.values(policies));
		this.alerts.allow(role);
		this.group.grantWrite(role);
		const made = new lambda.Function(this, "Guard", {
			functionName: nameOf(context, "guard"), runtime: lambda.Runtime.PROVIDED_AL2023, handler: "bootstrap",
			architecture: context.architecture === "arm64" ? lambda.Architecture.ARM_64 : lambda.Architecture.X86_64,
			code: lambda.Code.fromBucket(s3.Bucket.fromBucketName(this, "Package", context.functionBucket), context.functionKey), role, memorySize: 256,
			timeout: Duration.seconds(30), reservedConcurrentExecutions: BATCHES_AT_ONCE + 2, logGroup: this.group,
			environment: omit({
				...this.environmentOf(), ...(isRung ? {
					...bells, LEASEHOLD_WAKE: "scheduler", UNQUARANTINE_LAMBDA_ARN: functionArn(context),
					LEASEHOLD_SCHEDULER_DLQ_ARN: `arn:aws:sqs:${context.region}:${context.account}:${nameOf(context, "wake-dlq")}`,
				} : {}),
			}, ["AWS_REGION", "LEASEHOLD_LISTEN", "LEASEHOLD_DATA"]), // Lambda sets the first, a function has no use for the others
		});
		Validations.of(this).acknowledge({ id: "Annotation::@aws-cdk/aws-lambda:codeFromBucketObjectVersionNotSpecified", reason: "the key has the release in its name" });
		made.addEventSource(new sources.SqsEventSource(this.queue, { batchSize: 10, reportBatchItemFailures: true, maxConcurrency: BATCHES_AT_ONCE }));
		new events.Rule(this, "Tick", {
			ruleName: nameOf(context, "tick"), schedule: events.Schedule.rate(Duration.minutes(5)),
			targets: [new targets.LambdaFunction(made, { event: events.RuleTargetInput.fromObject({ leasehold: "tick" }), deadLetterQueue: dead })],
		});
		if (isRung)
			this.bells(made, dead);
		this.alarms.deadLetters(dead, "wake-dlq");
		this.alarms.add({ heading: "guard-failing", metric: made.metricErrors({ period: MINUTE, statistic: "Sum" }), over: 0, minutes: 5, silence: "good" });
	}

	private bells(made: lambda.Function, dead: sqs.Queue): void {
		const { context } = this;
		const group = new scheduler.CfnScheduleGroup(this, "Schedules", { name: nameOf(context, "schedules") });
		const role = new iam.Role(this, "SchedulerRole", {
			roleName: nameOf(context, "scheduler"), assumedBy: new iam.ServicePrincipal("scheduler.amazonaws.com", {
				conditions: { StringEquals: { "aws:SourceAccount": this.account, "aws:SourceArn": group.attrArn } },
			}),
			inlinePolicies: { wake: documentOf({ Version: "2012-10-17", Statement: [
				{ Sid: "Wake", Effect: "Allow", Action: ["lambda:InvokeFunction"], Resource: [made.functionArn] },
				{ Sid: "Dead", Effect: "Allow", Action: ["sqs:SendMessage"], Resource: [dead.queueArn] },
			] }) },
		});
		role.applyRemovalPolicy(RemovalPolicy.DESTROY);
	}

	/* --- watching --- */

	private watch(): void {
		const { alarms, queue } = this;
		const figure = (metricName: string, statistic: string) =>
			new cloudwatch.Metric({ namespace: "ISB/BillingSeparator", metricName, statistic, period: MINUTE });
		const overdue = figure("AccountsInQuarantineOverThreshold", "Maximum");
		alarms.add({ heading: "queue-old", metric: queue.metricApproximateAgeOfOldestMessage(MINUTE_MAX), over: 600, silence: "good" });
		alarms.add({ heading: "hold-overdue", metric: overdue, over: 0, silence: "good" });
		// A task tells its figures every minute; a function with each tick.
		alarms.add({ heading: "guard-silent", metric: overdue, below: 0, minutes: this.context.home === "lambda" ? 15 : 5, silence: "bad" });
		for (const rule of ["hold-bypass", "hold-broken", "pool-mismatch", "events-silent", "cloud-throttled", "dead-letters", "aws-permission"])
			alarms.own(this.group, rule);
		dashboard(this, GUARD_PREFIX, alarms, [
			[
				["Held and released", ["QuarantineSuccessCount", "UnquarantineSuccessCount", "QuarantineBypassTagCount", "EjectSuccessCount"].map((m) => figure(m, "Sum"))],
				["Held for too long", [overdue]],
			],
			[
				["Events waiting", [queue.metricApproximateNumberOfMessagesVisible(MINUTE_MAX)]],
				["Oldest event, seconds", [queue.metricApproximateAgeOfOldestMessage(MINUTE_MAX)]],
			],
		]);
	}
}

function omit(from: Record<string, string>, names: string[]): Record<string, string> {
	return Object.fromEntries(Object.entries(from).filter(([name]) => !names.includes(name)));
}

// In the management account, in the only region where an organisation's events appear.
export class OrgStack extends LeaseholdStack {
	constructor(scope: Construct, context: Context) {
		super(scope, nameOf(context, "org"), context, {
			env: { account: context.orgAccount, region: "us-east-1" }, synthesizer: new BootstraplessSynthesizer(), description: "Leasehold: the guard's way into the organisation",
		});
		const { orgAccount, organizationId, sandboxOuId } = context;
		chained(this, "Org", nameOf(context, "org"), policy("management", {
			ORG_MGT_ACCOUNT_ID: orgAccount, ORGANIZATION_ID: organizationId, SANDBOX_CHILD_OU_ID: context.sandboxChildOuIds,
			SANDBOX_OU_ID: sandboxOuId.startsWith("r-") ? `arn:aws:organizations::${orgAccount}:root/${organizationId}/${sandboxOuId}` : sandboxOuId,
		}), { account: context.account, role: roleArn(context.account, context, "intermediate") });

		const dead = deadLetters(this, "ForwardDead", nameOf(context, "forward-dlq"));
		const role = new iam.Role(this, "ForwardRole", { roleName: nameOf(context, "forward"), assumedBy: new iam.ServicePrincipal("events.amazonaws.com", {
			conditions: { StringEquals: { "aws:SourceAccount": context.orgAccount } },
		}) });
		new events.Rule(this, "Forward", {
			ruleName: nameOf(context, "forward-rule"), eventPattern: MOVES,
			targets: [new targets.EventBus(events.EventBus.fromEventBusArn(this, "HubBus", busArn(context)), { role, deadLetterQueue: dead })],
		});
		const alarms = new Alarms(this, GUARD_PREFIX, new AlertTopic(this, nameOf(context, "org-alerts")));
		alarms.deadLetters(dead, "forward-dlq");
	}
}
