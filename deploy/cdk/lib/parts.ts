// SPDX-License-Identifier: Apache-2.0
// What the stacks share: queues, the topic, alarms with their heading in the runbook, a task of Fargate.
import {
	aws_cloudwatch as cloudwatch, aws_cloudwatch_actions as actions, aws_ec2 as ec2, aws_ecr as ecr, aws_ecs as ecs, aws_iam as iam, aws_kms as kms,
	aws_logs as logs, aws_secretsmanager as secretsmanager, aws_sns as sns, aws_sns_subscriptions as subscriptions, aws_sqs as sqs,
	BootstraplessSynthesizer, DefaultStackSynthesizer, Duration, RemovalPolicy, Stack, Tags, Validations, type IStackSynthesizer, type StackProps,
} from "aws-cdk-lib";
import type { Construct, IConstruct } from "constructs";
import type { Context } from "./context.js";
import type { Document } from "./policies.js";

export const SERVICE_PREFIX = "leasehold";
export const GUARD_PREFIX = "isb-billing-sep";
const UID = "10001:10001"; // of the image

// Whose tags are newer than cfn-lint's knowledge; they go with what they belong to.
const UNTAGGED = ["AWS::CloudWatch::Dashboard", "AWS::ElasticLoadBalancingV2::Listener", "AWS::ElasticLoadBalancingV2::ListenerRule",
	"AWS::ApplicationAutoScaling::ScalableTarget"];

// Zones are told, not looked up, so that a synthesis needs nothing but its context.
export class LeaseholdStack extends Stack {
	constructor(scope: Construct, id: string, readonly context: Context, props: StackProps) {
		super(scope, id, props);
		Tags.of(this).add("leasehold-env", context.env, { excludeResourceTypes: UNTAGGED });
		Validations.of(this).acknowledge({ id: "CloudFormation-Validate::W3010", reason: "the zones are those of the context" });
	}

	override get availabilityZones(): string[] {
		return this.context.azs;
	}
}

// A finding of cdk-nag that is meant to be so, and why.
export function acknowledge(what: IConstruct, reason: string, ...ids: string[]): void {
	for (const id of ids)
		Validations.of(what).acknowledge({ id: `AwsSolutions-${id}`, reason });
}

// Wildcards of a role's policies, one by one: those that stand in deploy/aws, and indexes of our own tables.
export function acknowledgeWildcards(role: IConstruct, documents: Document[]): void {
	for (const { Sid, Resource } of documents.flatMap((document) => document.Statement))
		for (const arn of [Resource ?? []].flat().filter((r) => r.includes("*")))
			acknowledge(role, `statement ${Sid}, as deploy/aws or docs/dynamodb.md has it; tests/aws/test_policies.py says that each is needed`, `IAM5[Resource::${arn}]`);
}

export function removal(context: Context): RemovalPolicy {
	return context.retain ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY;
}

export function documentOf(document: Document): iam.PolicyDocument {
	return iam.PolicyDocument.fromJson(document);
}

/* --- queues --- */

interface QueueRow {
	readonly visibility: number; // seconds
	readonly days: number;
	readonly receives?: number;
}

// Encrypted, by TLS only. What is neither taken nor dead letter is what its producer keeps.
function bareQueue(scope: Construct, id: string, name: string, row: QueueRow, dead?: sqs.Queue): sqs.Queue {
	return new sqs.Queue(scope, id, {
		queueName: name, encryption: sqs.QueueEncryption.SQS_MANAGED, enforceSSL: true, visibilityTimeout: Duration.seconds(row.visibility),
		retentionPeriod: Duration.days(row.days), removalPolicy: RemovalPolicy.DESTROY,
		...(dead ? { deadLetterQueue: { queue: dead, maxReceiveCount: row.receives ?? 5 } } : {}),
	});
}

export function deadLetters(scope: Construct, id: string, name: string): sqs.Queue {
	const queue = bareQueue(scope, id, name, { visibility: 30, days: 14 });
	acknowledge(queue, "it is a dead-letter queue itself", "SQS3");
	return queue;
}

export function queueWithDeadLetters(scope: Construct, id: string, name: string, deadName: string, row: QueueRow): { queue: sqs.Queue; dead: sqs.Queue } {
	const dead = deadLetters(scope, `${id}Dead`, deadName);
	return { queue: bareQueue(scope, id, name, row, dead), dead };
}

/* --- alarms --- */

// Where alarms go. CloudWatch cannot publish to a topic with AWS's own key, so there is one of ours. publishers: roles of the program.
export class AlertTopic {
	readonly topic: sns.Topic;
	readonly arn: string; // by its name: the key's policy names roles whose policies name the topic
	private readonly key: kms.Key;

	constructor(scope: LeaseholdStack, name: string) {
		this.key = new kms.Key(scope, "AlertKey", { description: `topic ${name}`, enableKeyRotation: true, removalPolicy: RemovalPolicy.DESTROY });
		this.key.addToResourcePolicy(new iam.PolicyStatement({
			sid: "Alarms", principals: [new iam.ServicePrincipal("cloudwatch.amazonaws.com")], actions: ["kms:Decrypt", "kms:GenerateDataKey"], resources: ["*"],
			conditions: { StringEquals: { "aws:SourceAccount": scope.account } },
		}));
		this.arn = `arn:aws:sns:${scope.region}:${scope.account}:${name}`;
		this.topic = new sns.Topic(scope, "Alerts", { topicName: name, masterKey: this.key, enforceSSL: true });
		this.topic.addSubscription(new subscriptions.EmailSubscription(scope.context.alertEmail));
		this.topic.addToResourcePolicy(new iam.PolicyStatement({
			sid: "Alarms", principals: [new iam.ServicePrincipal("cloudwatch.amazonaws.com")], actions: ["sns:Publish"], resources: [this.topic.topicArn],
			conditions: { StringEquals: { "aws:SourceAccount": scope.account } },
		}));
	}

	allow(role: iam.IRole): void {
		this.key.addToResourcePolicy(new iam.PolicyStatement({
			principals: [new iam.ArnPrincipal(role.roleArn)], actions: ["kms:Decrypt", "kms:GenerateDataKey"], resources: ["*"],
			conditions: { StringEquals: { "kms:ViaService": `sns.${Stack.of(this.topic).region}.amazonaws.com` } },
		}));
	}
}

export interface AlarmRow {
	readonly heading: string; // in docs/runbook.md
	readonly what?: string; // tells several with one heading apart
	readonly metric: cloudwatch.IMetric;
	readonly over?: number; // more than this is bad,
	readonly below?: number; // or less than this
	readonly minutes?: number; // for so long; at once
	readonly silence: "bad" | "good"; // what it means when there is no data
}

const RUNBOOK = "docs/runbook.md";

export class Alarms {
	readonly made: cloudwatch.Alarm[] = [];

	constructor(private readonly scope: LeaseholdStack, private readonly prefix: string, private readonly alerts: AlertTopic) {}

	nameOf(row: { heading: string; what?: string }): string {
		return [this.prefix, row.heading, row.what, this.scope.context.env].filter(Boolean).join("-");
	}

	add(row: AlarmRow): void {
		const name = row.what ? `${row.heading}-${row.what}` : row.heading;
		const alarm = new cloudwatch.Alarm(this.scope, `Alarm-${name}`, {
			alarmName: this.nameOf(row), alarmDescription: `${RUNBOOK}#${row.heading}`, metric: row.metric,
			threshold: row.over ?? row.below!, evaluationPeriods: row.minutes ?? 1,
			comparisonOperator: row.below === undefined ? cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD : cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
			treatMissingData: row.silence === "bad" ? cloudwatch.TreatMissingData.BREACHING : cloudwatch.TreatMissingData.NOT_BREACHING,
		});
		const action = new actions.SnsAction(this.alerts.topic);
		alarm.addAlarmAction(action);
		alarm.addOkAction(action);
		this.made.push(alarm);
	}

	deadLetters(queue: sqs.Queue, what: string): void {
		this.add({ heading: "queue-dead-letters", what, metric: queue.metricApproximateNumberOfMessagesVisible(MINUTE_MAX), over: 0, silence: "good" });
	}

	// The program raises its alarms from stored facts and logs each once. Here they are seen from outside, by their names, which are the runbook's headings.
	own(group: logs.ILogGroup, rule: string): void {
		const filter = new logs.MetricFilter(this.scope, `Raised-${rule}`, {
			logGroup: group, metricNamespace: namespaceOf(this.prefix, this.scope.context), metricName: rule, metricValue: "1", filterPattern: raised(rule),
		});
		this.add({ heading: rule, metric: filter.metric({ period: Duration.minutes(1), statistic: "Sum" }), over: 0, silence: "good" });
	}
}

// A figure of the log line that a server writes each minute (LEASEHOLD_LOG_METRICS_SEC); of several nodes the highest.
export function figure(scope: LeaseholdStack, group: logs.ILogGroup, name: string): cloudwatch.Metric {
	const id = `Figure-${name}`;
	const filter = scope.node.tryFindChild(id) as logs.MetricFilter | undefined ?? new logs.MetricFilter(scope, id, {
		logGroup: group, metricNamespace: namespaceOf(SERVICE_PREFIX, scope.context), metricName: name, metricValue: `$.${name}`,
		filterPattern: logs.FilterPattern.stringValue("$.logger", "=", "metrics"),
	});
	return filter.metric(MINUTE_MAX);
}

export const MINUTE_MAX = { period: Duration.minutes(1), statistic: "Maximum" };

export function namespaceOf(prefix: string, context: Context): string {
	return `${prefix}/${context.env}`;
}

function raised(rule: string): logs.IFilterPattern {
	return logs.FilterPattern.literal(
		`{ $.logger = "event" && ($.type = "AlarmRaised" || $.type = "AlarmChanged") && ($.subject = "alarm/${rule}" || $.subject = "alarm/${rule}#*") }`);
}

export function dashboard(scope: LeaseholdStack, prefix: string, alarms: Alarms, rows: [string, cloudwatch.IMetric[]][][]): void {
	const board = new cloudwatch.Dashboard(scope, "Dashboard", { dashboardName: `${prefix}-${scope.context.env}`, defaultInterval: Duration.hours(3) });
	for (const row of rows)
		board.addWidgets(...row.map(([title, left]) => new cloudwatch.GraphWidget({ title, left, width: Math.floor(24 / row.length) })));
	board.addWidgets(new cloudwatch.AlarmStatusWidget({ title: `Alarms: ${RUNBOOK}`, alarms: alarms.made, width: 24 }));
}

// Without a bootstrap by hand; a pipeline, whose role may only assume those of the bootstrap, deploys the guard like the rest.
export function guardSynthesizer(context: Context): IStackSynthesizer {
	return context.parts.includes("pipeline") ? new DefaultStackSynthesizer() : new BootstraplessSynthesizer();
}

export function logGroup(scope: LeaseholdStack, id: string, name: string): logs.LogGroup {
	return new logs.LogGroup(scope, id, {
		logGroupName: name, retention: scope.context.logDays as logs.RetentionDays, removalPolicy: removal(scope.context),
	});
}

/* --- network and tasks --- */

// Tasks are in private subnets, or, for the guard alone, which nobody calls, in public ones without a way in: that saves the NAT.
export function network(scope: LeaseholdStack, hasPrivate: boolean, flowLog: logs.ILogGroup): ec2.IVpc {
	const { context } = scope;
	if (context.vpcId)
		return ec2.Vpc.fromVpcAttributes(scope, "Network", {
			vpcId: context.vpcId, availabilityZones: context.azs, privateSubnetIds: context.privateSubnetIds, publicSubnetIds: context.publicSubnetIds,
			vpcCidrBlock: context.cidr,
		});
	const vpc = new ec2.Vpc(scope, "Network", {
		ipAddresses: ec2.IpAddresses.cidr(context.cidr), availabilityZones: context.azs, natGateways: hasPrivate ? context.nats : 0,
		restrictDefaultSecurityGroup: false, // would be a custom resource; nothing is in that group
		subnetConfiguration: [
			{ name: "public", subnetType: ec2.SubnetType.PUBLIC, cidrMask: 24, mapPublicIpOnLaunch: false },
			...(hasPrivate ? [{ name: "private", subnetType: ec2.SubnetType.PRIVATE_WITH_EGRESS, cidrMask: 20 }] : []),
		],
		gatewayEndpoints: { tables: { service: ec2.GatewayVpcEndpointAwsService.DYNAMODB } },
	});
	vpc.addFlowLog("Refused", { destination: ec2.FlowLogDestination.toCloudWatchLogs(flowLog), trafficType: ec2.FlowLogTrafficType.REJECT });
	return vpc;
}

interface TaskRow {
	readonly prefix: string;
	readonly cpu: number;
	readonly memory: number;
	readonly environment: Record<string, string>;
	readonly secrets: Record<string, secretsmanager.ISecret>;
	readonly policies: Record<string, Document>;
	readonly group: logs.ILogGroup;
}

// As the image test runs it: its own user, a read-only root, no capabilities; the folder of the store is all it writes to.
export function task(scope: LeaseholdStack, row: TaskRow): ecs.FargateTaskDefinition {
	const { context } = scope;
	const role = new iam.Role(scope, "TaskRole", {
		roleName: `${row.prefix}-task-${context.env}`, assumedBy: new iam.ServicePrincipal("ecs-tasks.amazonaws.com", {
			conditions: { StringEquals: { "aws:SourceAccount": scope.account } },
		}),
		inlinePolicies: Object.fromEntries(Object.entries(row.policies).map(([name, document]) => [name, documentOf(document)])),
	});
	const definition = new ecs.FargateTaskDefinition(scope, "Task", {
		family: `${row.prefix}-${context.env}`, cpu: row.cpu, memoryLimitMiB: row.memory, taskRole: role,
		runtimePlatform: { cpuArchitecture: context.architecture === "arm64" ? ecs.CpuArchitecture.ARM64 : ecs.CpuArchitecture.X86_64, operatingSystemFamily: ecs.OperatingSystemFamily.LINUX },
		volumes: [{ name: "data" }],
	});
	const image = ecr.Repository.fromRepositoryAttributes(scope, "Image", {
		repositoryName: context.imageRepository, repositoryArn: `arn:aws:ecr:${context.region}:${context.account}:repository/${context.imageRepository}`,
	});
	const linux = new ecs.LinuxParameters(scope, "Linux", { initProcessEnabled: false });
	linux.dropCapabilities(ecs.Capability.ALL);
	const container = definition.addContainer("leasehold", {
		image: ecs.ContainerImage.fromEcrRepository(image, context.imageDigest), user: UID, readonlyRootFilesystem: true, linuxParameters: linux,
		stopTimeout: Duration.seconds(60), // 10 of delay, 30 of drain, and a reserve
		environment: row.environment,
		secrets: Object.fromEntries(Object.entries(row.secrets).map(([name, secret]) => [name, ecs.Secret.fromSecretsManager(secret)])),
		logging: ecs.LogDrivers.awsLogs({ logGroup: row.group, streamPrefix: "leasehold", mode: ecs.AwsLogDriverMode.NON_BLOCKING }),
		healthCheck: { command: ["CMD", "/usr/bin/leasehold", "health"], interval: Duration.seconds(10), timeout: Duration.seconds(3), retries: 3 },
		portMappings: [{ containerPort: 8080 }],
	});
	container.addUlimits({ name: ecs.UlimitName.NOFILE, softLimit: 65536, hardLimit: 65536 });
	container.addMountPoints({ containerPath: "/var/lib/leasehold", sourceVolume: "data", readOnly: false });
	acknowledge(definition, "settings are no secrets; those are named by reference", "ECS2");
	acknowledge(definition.obtainExecutionRole(), "GetAuthorizationToken knows no resource", "IAM5[Resource::*]");
	acknowledgeWildcards(role, Object.values(row.policies));
	return definition;
}

export function commonEnvironment(context: Context, topic: string): Record<string, string> {
	return {
		LEASEHOLD_STORE: "dynamodb", AWS_REGION: context.region, LEASEHOLD_LISTEN: "0.0.0.0:8080", LEASEHOLD_DATA: "/var/lib/leasehold",
		LOG_FORMAT: "json", LEASEHOLD_METRICS_EMF: "true", LEASEHOLD_EVENT_ACCOUNT: context.account, LEASEHOLD_EVENT_REGION: context.region,
		HUB_ACCOUNT_ID: context.account, SNS_ALERT_TOPIC_ARN: topic,
	};
}
