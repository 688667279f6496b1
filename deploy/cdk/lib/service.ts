// SPDX-License-Identifier: Apache-2.0
// The service behind a balancer: nothing here has a state, all of it can be made again.
import {
	aws_cloudwatch as cloudwatch, aws_ec2 as ec2, aws_ecs as ecs, aws_elasticloadbalancingv2 as elb, aws_logs as logs, aws_s3 as s3, aws_ssm as ssm, aws_wafv2 as waf,
	CfnOutput, Duration, RemovalPolicy, type Environment,
} from "aws-cdk-lib";
import type { Construct } from "constructs";
import { secretNames, type Context } from "./context.js";
import type { DataStack } from "./data.js";
import { queueUrls, tenantTable } from "./instances.js";
import { acknowledge, AlertTopic, Alarms, commonEnvironment, dashboard, figure, LeaseholdStack, logGroup, network, SERVICE_PREFIX, task } from "./parts.js";
import { policy, tables, type Document, type Words } from "./policies.js";

const PORT = 8080, METRICS_PORT = 9090;
const WAIT_SEC = 310; // "Prefer: wait" lasts up to 300; our own idle time must be longer than the balancer's
const PRIVATE_PATHS = ["/metrics", "/healthz", "/readyz"];
const MINUTE = Duration.minutes(1);

// Statements of deploy/aws/task.json, each with what asks for it.
const ASKED: [string, (c: Context) => boolean][] = [
	["Alerts", () => true],
	["Chain", (c) => !!c.settings.INTERMEDIATE_ROLE_ARN],
	["Bus", (c) => !!c.settings.ISB_EVENT_BUS],
	["Mail", (c) => c.settings.LEASEHOLD_MAIL === "ses"],
	["MailProbe", (c) => c.settings.LEASEHOLD_MAIL === "ses"],
	["Cleaner", (c) => c.settings.LEASEHOLD_CLEANER === "codebuild"],
	["PoolConfig", (c) => !!c.settings.ACCOUNT_POOL_CONFIG_PARAM_ARN],
	["Secrets", (c) => !!c.settings.ISB_NAMESPACE || secretNames(c.settings).length > 0],
	["QueuesIn", (c) => c.parts.includes("instances")],
	["TenantEvents", (c) => c.parts.includes("instances")],
];

export class ServiceStack extends LeaseholdStack {
	private readonly alerts: AlertTopic;
	private readonly cluster: ecs.Cluster;
	private readonly vpc: ec2.IVpc;

	constructor(scope: Construct, context: Context, env: Environment, private readonly data: DataStack) {
		super(scope, `LeaseholdService-${context.env}`, context, { env, description: "Leasehold: the service" });
		const group = logGroup(this, "Log", `/leasehold/${context.env}`);
		this.alerts = new AlertTopic(this, `leasehold-alerts-${context.env}`);
		this.vpc = network(this, true, group);
		this.cluster = new ecs.Cluster(this, "Cluster", {
			clusterName: `leasehold-${context.env}`, vpc: this.vpc, containerInsightsV2: ecs.ContainerInsights.ENABLED,
		});
		const definition = task(this, {
			prefix: SERVICE_PREFIX, cpu: context.cpu, memory: context.memory, group, environment: this.environmentOf(), policies: this.policies(),
			secrets: {
				BROKER_API_TOKEN: data.secrets["api-token"]!, BROKER_ADMIN_TOKEN: data.secrets["admin-token"]!, LEASEHOLD_INBOX_TOKENS: data.secrets["inbox-token"]!,
				LEASEHOLD_JWT_SECRET: data.secrets["jwt-secret"]!, ...(data.secrets["csp-token"] ? { CSP_API_TOKEN: data.secrets["csp-token"] } : {}),
			},
		});
		this.alerts.allow(definition.taskRole);

		const front = this.balancer();
		const service = this.service(definition, front);
		const alarms = new Alarms(this, SERVICE_PREFIX, this.alerts);
		this.watch(alarms, front, service);
		this.watchFigures(alarms, group);
		service.enableDeploymentAlarms([{ heading: "service-errors" }, { heading: "pool-low", what: "empty" }].map((row) => alarms.nameOf(row)), {
			behavior: ecs.AlarmBehavior.ROLLBACK_ON_ALARM,
		});
		if (context.waf)
			this.firewall(front.balancer);
		this.show(alarms, front, service, group);
		new CfnOutput(this, "Address", { value: front.balancer.loadBalancerDnsName });
		new ssm.StringParameter(this, "AddressParameter", { parameterName: `/leasehold/${context.env}/address`, stringValue: front.balancer.loadBalancerDnsName });
		new ssm.StringParameter(this, "TopicParameter", { parameterName: `/leasehold/${context.env}/alerts`, stringValue: this.alerts.arn });
	}

	private environmentOf(): Record<string, string> {
		const { context } = this;
		return {
			...context.settings, ...commonEnvironment(context, this.alerts.arn),
			DDB_TABLE_NAME: this.data.poolName, LEASEHOLD_DDB_KERNEL_TABLE: this.data.kernelName,
			LEASEHOLD_LOG_METRICS_SEC: "60", LEASEHOLD_DRAIN_DELAY_MS: "10000", LEASEHOLD_IDLE_TIMEOUT_MS: String((WAIT_SEC + 10) * 1000), LEASEHOLD_TRUSTED_PROXIES: context.cidr,
			...(context.monitoringCidrs.length ? { METRICS_PORT: String(METRICS_PORT) } : {}),
			...(context.parts.includes("instances") ? { LEASEHOLD_ENV: context.env, ...queueUrls(context) } : {}),
		};
	}

	private policies(): Record<string, Document> {
		const { context } = this;
		const words: Words = {
			...context.settings, AWS_REGION: context.region, HUB_ACCOUNT_ID: context.account, LEASEHOLD_ENV: context.env, SNS_ALERT_TOPIC_ARN: this.alerts.arn,
			SECRET_NAME: secretNames(context.settings), LEASEHOLD_ECS_CLUSTER: context.settings.LEASEHOLD_ECS_CLUSTER?.split("/").pop() ?? [],
		};
		const ret: Record<string, Document> = {
			tables: tables(this.data.tableArns, this.data.key?.keyArn,
				context.parts.includes("instances") ? `arn:aws:dynamodb:${this.region}:${this.account}:table/${tenantTable(context)}` : undefined),
			calls: policy("task", words, ASKED.filter(([, isAsked]) => isAsked(context)).map(([sid]) => sid), (arn) => !arn.includes(":sqs:") || arn.includes(":bbws-")),
		};
		if (context.settings.LEASEHOLD_CREDENTIALS === "true")
			ret.credentials = policy("task-credentials", words);
		if (isOnEcs(context))
			ret.instances = policy("instances", words);
		return ret;
	}

	/* --- the balancer --- */

	private balancer(): Front {
		const { context, vpc } = this;
		const group = new ec2.SecurityGroup(this, "BalancerGroup", { vpc, allowAllOutbound: false, description: "Leasehold: balancer" });
		for (const range of context.allowedCidrs)
			for (const port of [443, 80])
				group.addIngressRule(ec2.Peer.ipv4(range), ec2.Port.tcp(port), "callers");
		if (context.allowedCidrs.includes("0.0.0.0/0"))
			acknowledge(group, "allowedCidrs of the context says so: it is a public service", "EC23");
		const balancer = new elb.ApplicationLoadBalancer(this, "Balancer", {
			loadBalancerName: `leasehold-${context.env}`, vpc, internetFacing: true, securityGroup: group, dropInvalidHeaderFields: true,
			idleTimeout: Duration.seconds(WAIT_SEC), deletionProtection: context.retain,
		});
		balancer.logAccessLogs(this.accessLogs());
		balancer.addListener("Plain", { port: 80, open: false, defaultAction: elb.ListenerAction.redirect({ protocol: "HTTPS", port: "443", permanent: true }) });
		const listener = balancer.addListener("Secure", {
			port: 443, open: false, certificates: [elb.ListenerCertificate.fromArn(context.certificateArn)], sslPolicy: elb.SslPolicy.RECOMMENDED_TLS,
			defaultAction: elb.ListenerAction.fixedResponse(404),
		});
		new elb.ApplicationListenerRule(this, "Private", {
			listener, priority: 10, conditions: [elb.ListenerCondition.pathPatterns(PRIVATE_PATHS)], action: elb.ListenerAction.fixedResponse(404),
		});
		const targets = this.targets("Targets");
		const rule = new elb.ApplicationListenerRule(this, "All", {
			listener, priority: 100, conditions: [elb.ListenerCondition.pathPatterns(["/*"])], action: elb.ListenerAction.forward([targets]),
		});
		return { balancer, group, targets, rule };
	}

	// By /healthz, not /readyz: ECS replaces what is unhealthy, and an outage of the store must not restart all nodes.
	private targets(id: string): elb.ApplicationTargetGroup {
		return new elb.ApplicationTargetGroup(this, id, {
			vpc: this.vpc, port: PORT, protocol: elb.ApplicationProtocol.HTTP, targetType: elb.TargetType.IP, deregistrationDelay: Duration.seconds(15),
			healthCheck: { path: "/healthz", interval: Duration.seconds(5), timeout: Duration.seconds(3), healthyThresholdCount: 2, unhealthyThresholdCount: 2 },
		});
	}

	private accessLogs(): s3.Bucket {
		const bucket = new s3.Bucket(this, "AccessLogs", {
			encryption: s3.BucketEncryption.S3_MANAGED, enforceSSL: true, blockPublicAccess: s3.BlockPublicAccess.BLOCK_ALL, removalPolicy: RemovalPolicy.RETAIN,
			lifecycleRules: [{ expiration: Duration.days(this.context.logDays) }],
			bucketName: `leasehold-access-logs-${this.context.env}-${this.context.account}-${this.context.region}`,
		});
		acknowledge(bucket, "it holds access logs itself", "S1");
		return bucket;
	}

	private firewall(balancer: elb.ApplicationLoadBalancer): void {
		const metrics = (metricName: string) => ({ cloudWatchMetricsEnabled: true, metricName, sampledRequestsEnabled: false });
		const acl = new waf.CfnWebACL(this, "Firewall", {
			name: `leasehold-${this.context.env}`, scope: "REGIONAL", defaultAction: { allow: {} }, visibilityConfig: metrics(`leasehold-${this.context.env}`),
			rules: [{
				name: "rate", priority: 1, action: { block: {} }, visibilityConfig: metrics(`leasehold-rate-${this.context.env}`),
				statement: { rateBasedStatement: { aggregateKeyType: "IP", limit: 2000, evaluationWindowSec: 300 } },
			}],
		});
		new waf.CfnWebACLAssociation(this, "FirewallOfBalancer", { resourceArn: balancer.loadBalancerArn, webAclArn: acl.attrArn });
	}

	/* --- the service --- */

	private service(definition: ecs.FargateTaskDefinition, front: Front): ecs.FargateService {
		const { context, vpc } = this;
		const group = new ec2.SecurityGroup(this, "TaskGroup", { vpc, allowAllOutbound: false, description: "Leasehold: tasks" });
		group.addIngressRule(front.group, ec2.Port.tcp(PORT), "balancer");
		front.group.addEgressRule(group, ec2.Port.tcp(PORT), "tasks");
		for (const range of context.monitoringCidrs)
			group.addIngressRule(ec2.Peer.ipv4(range), ec2.Port.tcp(METRICS_PORT), "monitoring");
		group.addEgressRule(ec2.Peer.anyIpv4(), ec2.Port.tcp(443), "AWS, the vendor, webhooks");
		if (context.settings.LEASEHOLD_SMTP_URL)
			group.addEgressRule(ec2.Peer.anyIpv4(), ec2.Port.tcp(mailPort(context.settings.LEASEHOLD_SMTP_URL)), "mail");
		if (isOnEcs(context))
			group.addEgressRule(ec2.Peer.anyIpv4(), ec2.Port.tcp(Number(context.settings.LEASEHOLD_DB_HOST!.split(":")[1] ?? 3306)), "MariaDB of the tenants");
		const isBlueGreen = context.deployment === "blue-green";
		const service = new ecs.FargateService(this, "Service", {
			serviceName: `leasehold-${context.env}`, cluster: this.cluster, taskDefinition: definition, desiredCount: context.tasksMin, securityGroups: [group],
			vpcSubnets: { subnetType: ec2.SubnetType.PRIVATE_WITH_EGRESS }, minHealthyPercent: 100, maxHealthyPercent: 200, circuitBreaker: { rollback: true },
			healthCheckGracePeriod: Duration.seconds(30), availabilityZoneRebalancing: ecs.AvailabilityZoneRebalancing.ENABLED, propagateTags: ecs.PropagatedTagSource.SERVICE,
			...(isBlueGreen ? { deploymentStrategy: ecs.DeploymentStrategy.BLUE_GREEN, bakeTime: Duration.minutes(10) } : {}),
		});
		const target = service.loadBalancerTarget({
			containerName: "leasehold", containerPort: PORT,
			...(isBlueGreen ? { alternateTarget: new ecs.AlternateTarget("Green", {
				alternateTargetGroup: this.targets("GreenTargets"), productionListener: ecs.ListenerRuleConfiguration.applicationListenerRule(front.rule),
			}) } : {}),
		});
		front.targets.addTarget(target);
		if (!isBlueGreen)
			service.node.addDependency(front.rule);
		else
			acknowledge(service, "AWS's own policy for moving its balancer's rule from one colour to the other",
				"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/AmazonECSInfrastructureRolePolicyForLoadBalancers]");
		const scaling = service.autoScaleTaskCount({ minCapacity: context.tasksMin, maxCapacity: context.tasksMax });
		const pace = { scaleInCooldown: Duration.seconds(300), scaleOutCooldown: Duration.seconds(60) };
		scaling.scaleOnCpuUtilization("Cpu", { targetUtilizationPercent: 60, ...pace });
		scaling.scaleOnRequestCount("Requests", { requestsPerTarget: 500 * 60, targetGroup: front.targets, ...pace });
		return service;
	}

	/* --- watching --- */

	private watch(alarms: Alarms, front: Front, service: ecs.FargateService): void {
		const { tasksMin } = this.context;
		alarms.add({ heading: "service-errors", metric: errorShare(front), over: 0.1, minutes: 5, silence: "good" });
		alarms.add({ heading: "service-slow", metric: latency(front), over: 0.3, minutes: 5, silence: "good" });
		alarms.add({ heading: "targets-unhealthy", metric: front.targets.metrics.healthyHostCount({ period: MINUTE, statistic: "Minimum" }), below: 2, minutes: 3, silence: "bad" });
		alarms.add({ heading: "tasks-missing", metric: this.insight("RunningTaskCount", service, "Minimum"), below: tasksMin, minutes: 10, silence: "bad" });
		for (const [what, table] of [["pool", this.data.poolName], ["kernel", this.data.kernelName]] as const) {
			alarms.add({ heading: "table-throttled", what, metric: tableMetric("ThrottledRequests", table, ["PutItem", "UpdateItem", "TransactWriteItems", "Query", "GetItem"]), over: 0, minutes: 5, silence: "good" });
			alarms.add({ heading: "table-errors", what, metric: tableMetric("SystemErrors", table, ["TransactWriteItems", "Query", "GetItem"]), over: 0, minutes: 5, silence: "good" });
		}
	}

	private watchFigures(alarms: Alarms, group: logs.ILogGroup): void {
		const available = figure(this, group, "broker_pool_available"), total = figure(this, group, "broker_pool_total");
		alarms.add({ heading: "figures-silent", metric: total, below: 0, minutes: 5, silence: "bad" });
		alarms.add({ heading: "pool-low", what: "empty", over: 0, silence: "good", metric: new cloudwatch.MathExpression({
			label: "empty", period: MINUTE, expression: "IF(total > 0 AND available < 1, 1, 0)", usingMetrics: { total, available },
		}) });
		for (const [heading, name, over] of [
			["dead-letters", "leasehold_dead_letters", 0], ["timer-overdue", "leasehold_timer_lag_seconds", 60], ["deletion-failed", "broker_pool_deletion_failed", 0],
		] as const)
			alarms.add({ heading, metric: figure(this, group, name), over, minutes: 5, silence: "good" });
		for (const rule of ["pool-low", "store-trouble", "node-silent"])
			alarms.own(group, rule);
	}

	private insight(metricName: string, service: ecs.FargateService, statistic: string): cloudwatch.Metric {
		return new cloudwatch.Metric({
			namespace: "ECS/ContainerInsights", metricName, statistic, period: MINUTE,
			dimensionsMap: { ClusterName: this.cluster.clusterName, ServiceName: service.serviceName },
		});
	}

	private show(alarms: Alarms, front: Front, service: ecs.FargateService, group: logs.ILogGroup): void {
		const figures = (...names: string[]) => names.map((name) => figure(this, group, name));
		const capacity = (table: string, name: string) =>
			new cloudwatch.Metric({ namespace: "AWS/DynamoDB", metricName: name, dimensionsMap: { TableName: table }, statistic: "Sum", period: MINUTE });
		dashboard(this, SERVICE_PREFIX, alarms, [
			[
				["Requests", [front.targets.metrics.requestCount({ period: MINUTE })]],
				["Errors, percent", [errorShare(front)]],
				["Time, 99th percentile", [latency(front)]],
			],
			[
				["Pool", figures("broker_pool_available", "broker_pool_allocated", "broker_pool_total", "broker_waiting_claims")],
				["Leases, accounts and holds", figures("leasehold_leases", "leasehold_accounts", "leasehold_holds_open")],
			],
			[
				["Kernel", figures("leasehold_dead_letters", "leasehold_timer_lag_seconds", "leasehold_sagas")],
				["Nodes", figures("leasehold_http_connections", "leasehold_loop_longest_turn_seconds")],
			],
			[
				["Tasks", [this.insight("RunningTaskCount", service, "Minimum"), front.targets.metrics.healthyHostCount({ period: MINUTE })]],
				["Processor and memory, percent", [service.metricCpuUtilization({ period: MINUTE }), service.metricMemoryUtilization({ period: MINUTE })]],
			],
			[
				["Pool table", [capacity(this.data.poolName, "ConsumedReadCapacityUnits"), capacity(this.data.poolName, "ConsumedWriteCapacityUnits")]],
				["Kernel table", [capacity(this.data.kernelName, "ConsumedReadCapacityUnits"), capacity(this.data.kernelName, "ConsumedWriteCapacityUnits")]],
			],
		]);
	}
}

interface Front {
	readonly balancer: elb.ApplicationLoadBalancer;
	readonly group: ec2.SecurityGroup;
	readonly targets: elb.ApplicationTargetGroup;
	readonly rule: elb.ApplicationListenerRule;
}

function isOnEcs(context: Context): boolean {
	return context.settings.LEASEHOLD_INSTANCE_DRIVER === "aws";
}

function mailPort(url: string): number {
	const parsed = new URL(url);
	return Number(parsed.port) || (parsed.protocol === "smtps:" ? 465 : 587);
}

// Of answers, percent.
function errorShare(front: Front): cloudwatch.MathExpression {
	const own = { period: MINUTE, statistic: "Sum" };
	return new cloudwatch.MathExpression({
		label: "5xx", period: MINUTE, expression: "100 * (FILL(ours, 0) + FILL(balancers, 0)) / all", usingMetrics: {
			ours: front.targets.metrics.httpCodeTarget(elb.HttpCodeTarget.TARGET_5XX_COUNT, own),
			balancers: front.balancer.metrics.httpCodeElb(elb.HttpCodeElb.ELB_5XX_COUNT, own),
			all: front.balancer.metrics.requestCount(own),
		},
	});
}

function latency(front: Front): cloudwatch.Metric {
	return front.targets.metrics.targetResponseTime({ period: MINUTE, statistic: "p99" });
}

function tableMetric(metricName: string, table: string, operations: string[]): cloudwatch.MathExpression {
	const metrics = Object.fromEntries(operations.map((operation) => [operation.charAt(0).toLowerCase() + operation.slice(1), new cloudwatch.Metric({
		namespace: "AWS/DynamoDB", metricName, statistic: "Sum", period: MINUTE, dimensionsMap: { TableName: table, Operation: operation },
	})]));
	return new cloudwatch.MathExpression({
		label: metricName, period: MINUTE, expression: Object.keys(metrics).map((m) => `FILL(${m}, 0)`).join(" + "), usingMetrics: metrics,
	});
}

