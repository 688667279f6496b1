// SPDX-License-Identifier: Apache-2.0
import { aws_sqs as sqs, Stack } from "aws-cdk-lib";
import { Match } from "aws-cdk-lib/assertions";
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { source, type Statement } from "../lib/policies.js";
import { Deployment, HERE, read, ROOT, synthesize, type Resource } from "./rig.js";

const prod = new Deployment("prod"), dev = new Deployment("dev");
const BOTH = [prod, dev];

// With everything that a task may be allowed, and settings in their other form: ARNs for names, the root for an OU.
const whole = new Deployment("whole");
const HUB = "eu-west-1:222222222222", OIDC_SECRET = `arn:aws:secretsmanager:${HUB}:secret:oidc-AbCdEf`, SANDBOX_ROOT = "arn:aws:organizations::111111111111:root/o-abcdefghij/r-abcd";
const ALL = [...BOTH, whole];

// A value of a template as text: references by their logical ids.
function flat(value: unknown): string {
	return typeof value === "string" ? value : JSON.stringify(value);
}

function named(r: Resource): string {
	const key = Object.keys(r.Properties).find((k) => /^(Name|\w+Name|Family)$/.test(k) && typeof r.Properties[k] === "string" && !/^(Attribute|Metric|Policy)Name$/.test(k));
	return key ? r.Properties[key] : "-";
}

/* --- D1 --- */

for (const [env, deployment] of [["prod", prod], ["dev", dev]] as const)
	test(`D1: ${env} has the resources that it had, under the same ids, names and removal policies`, () => {
		const lines = deployment.resources().map((r) => `${r.stack} ${r.id} ${r.Type} ${named(r)} ${r.DeletionPolicy ?? "Delete"}`).sort();
		const file = new URL(`test/${env}.resources`, HERE);
		if (process.env.UPDATE)
			writeFileSync(file, `${lines.join("\n")}\n`);
		assert.deepEqual(lines, readFileSync(file, "utf8").trimEnd().split("\n"), "UPDATE=1 npm test takes the new ones over: look at git diff");
	});

test("D1: no look-up, no nested stack, no custom resource, no asset but templates", () => {
	for (const d of BOTH) {
		const manifest = JSON.parse(readFileSync(`${d.folder}/manifest.json`, "utf8"));
		assert.equal(manifest.missing, undefined);
		assert.deepEqual(d.resources().filter((r) => r.Type.startsWith("Custom::") || /::(CustomResource|Stack)$/.test(r.Type)), []);
		const hand = d.context.parts.includes("pipeline") ? /^isb-billing-sep-org-/ : /^isb-billing-sep-/; // those need no bootstrap
		for (const [name, template] of d.templates)
			assert.equal(hand.test(name), template.Parameters?.BootstrapVersion === undefined, name);
	}
});

/* --- D3 --- */

test("D3: cdk-nag and CloudFormation's own rules find nothing that is not acknowledged with a reason, and something where there is something", () => {
	for (const d of BOTH)
		assert.deepEqual(JSON.parse(readFileSync(`${d.folder}/validation-report.json`, "utf8")).pluginReports.flatMap((r: any) => r.violations), []);
	assert.throws(() => synthesize(read("test/dev.json"), (app) => {
		new sqs.Queue(new Stack(app, "Careless"), "NoDeadLetters");
	}), { name: "ValidationFailed" });
	process.exitCode = 0;
});

/* --- D4 --- */

test("D4: every queue has dead letters, TLS and encryption; dead letters are kept for 14 days", () => {
	for (const d of BOTH) {
		const queues = d.resources("AWS::SQS::Queue");
		const policies = d.resources("AWS::SQS::QueuePolicy");
		assert.ok(queues.length >= 5);
		const dead = new Set(queues.flatMap((q) => (q.Properties.RedrivePolicy ? [`${q.stack}/${q.Properties.RedrivePolicy.deadLetterTargetArn["Fn::GetAtt"][0]}`] : [])));
		for (const q of queues) {
			const isDead = dead.has(`${q.stack}/${q.id}`) || /dlq/.test(q.Properties.QueueName);
			assert.equal(!!q.Properties.RedrivePolicy, !isDead, q.Properties.QueueName);
			assert.equal(q.Properties.SqsManagedSseEnabled, true, q.Properties.QueueName);
			if (isDead)
				assert.equal(q.Properties.MessageRetentionPeriod, 14 * 86400, q.Properties.QueueName);
			const mine = policies.filter((p) => p.stack === q.stack && p.Properties.Queues.some((ref: any) => ref.Ref === q.id));
			const denied = mine.flatMap((p) => p.Properties.PolicyDocument.Statement).filter((s: any) => s.Effect === "Deny" && s.Condition?.Bool?.["aws:SecureTransport"] === "false");
			assert.ok(denied.length, `${q.Properties.QueueName} takes plain HTTP`);
		}
	}
});

test("FR38: every rule's target has dead letters", () => {
	for (const d of BOTH) {
		const targets = d.resources("AWS::Events::Rule").flatMap((r) => r.Properties.Targets);
		assert.ok(targets.length >= 2);
		for (const t of targets)
			assert.ok(t.DeadLetterConfig?.Arn, flat(t));
	}
});

test("D4: every log group has a retention", () => {
	for (const d of BOTH)
		for (const group of d.resources("AWS::Logs::LogGroup"))
			assert.equal(group.Properties.RetentionInDays, 30, group.id);
});

test("D4: every alarm tells somebody, of its end too, and says what silence means", () => {
	for (const d of BOTH) {
		const alarms = d.resources("AWS::CloudWatch::Alarm");
		assert.ok(alarms.length > 15);
		for (const { Properties: p } of alarms) {
			assert.equal(p.AlarmActions.length, 1, p.AlarmName);
			assert.deepEqual(p.OKActions, p.AlarmActions, p.AlarmName);
			assert.match(p.TreatMissingData, /^(breaching|notBreaching)$/, p.AlarmName);
		}
		const silent = alarms.filter((a) => a.Properties.TreatMissingData === "breaching").map((a) => a.Properties.AlarmDescription.split("#")[1]);
		assert.deepEqual(silent.sort(), ["figures-silent", "guard-silent", "targets-unhealthy", "tasks-missing"]);
	}
});

test("FR25: every name has the env, and those of the guard the prefix", () => {
	for (const d of BOTH)
		for (const r of d.resources()) {
			const name = named(r);
			if (name === "-" || ["AWS::ECR::Repository"].includes(r.Type) || /^(StatusIndex|Index\d)$/.test(name))
				continue;
			if (r.Type === "AWS::Logs::MetricFilter")
				continue;
			assert.ok(name.includes(d.context.env), `${r.Type} ${name}`);
			if (r.stack.startsWith("isb-billing-sep-"))
				assert.match(name, /^(\/|alias\/)?isb-billing-sep/, `${r.Type} ${name}`);
		}
});

test("FR22: the guard stands alone: its stacks import from no stack of the service, and it reads no resource of the other system but its table", () => {
	for (const d of BOTH) {
		const guards = [...d.templates].filter(([name]) => name.startsWith("isb-billing-sep-"));
		assert.equal(guards.length, 3);
		for (const [, template] of guards)
			assert.doesNotMatch(JSON.stringify(template), /LeaseholdData|LeaseholdService/);
	}
});

/* --- D5 --- */

const FILES = ["task", "task-credentials", "instances", "intermediate", "management"];
const LISTED: Statement[] = FILES.flatMap((name) => source(name).Statement);

// "arn:aws:x:{WORD}:y" as a pattern.
function like(text: string): RegExp {
	return new RegExp(`^${text.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{[A-Z_]+\}/g, "[^*]+")}$`);
}

function statements(role: Resource): [string, any][] {
	return (role.Properties.Policies ?? []).flatMap((p: any) => p.PolicyDocument.Statement.map((s: any) => [p.PolicyName, s]));
}

test("D5: every statement of the program's roles is one of deploy/aws, with its actions, resources and conditions", () => {
	let seen = 0;
	for (const d of ALL)
		for (const role of d.resources("AWS::IAM::Role"))
			for (const [name, s] of statements(role).filter(([policyName]) => ["calls", "credentials", "instances"].includes(policyName))) {
				if (s.Sid === "Bootstrap") // of the role that deploys
					continue;
				const listed = LISTED.filter((l) => l.Sid === s.Sid && JSON.stringify([l.Action].flat()) === JSON.stringify([s.Action].flat()));
				assert.ok(listed.length, `${role.id} ${name} ${s.Sid}`);
				for (const arn of [s.Resource].flat().filter((text) => ![OIDC_SECRET, SANDBOX_ROOT].includes(flat(text)))) // those stand for the whole line
					assert.ok(listed.some((l) => [l.Resource!].flat().some((pattern) => like(pattern).test(flat(arn)))), `${s.Sid}: ${flat(arn)}`);
				const conditions = listed.map((l) => JSON.stringify(l.Condition ?? null).replace(/\{\w+\}/g, "X"));
				const mine = JSON.stringify(s.Condition ?? null).replace(d.context.organizationId, "X").replaceAll(d.context.region, "X").replace(`${d.context.account}:cluster/tenants`, "X:cluster/X");
				assert.ok(conditions.includes(mine), `${s.Sid}: ${mine}`);
				seen++;
			}
	assert.ok(seen > 65, `${seen}`);
});

test("D5: the management role has all of management.json, so that nothing is missing on the first day", () => {
	for (const d of ALL) {
		const [org] = d.resources("AWS::IAM::Role").filter((r) => r.Properties.RoleName === `isb-billing-sep-org-${d.context.env}`);
		assert.deepEqual(statements(org!).map(([, s]) => s.Sid), source("management").Statement.map((s) => s.Sid));
		const listing = statements(org!).map(([, s]) => s).find((s) => s.Sid === "Listing");
		assert.equal(listing.Resource.length, 1 + d.context.sandboxChildOuIds.length);
	}
});

test("D5: on our own tables a task may do what docs/dynamodb.md says, and no more", () => {
	const text = readFileSync(new URL("docs/dynamodb.md", ROOT), "utf8");
	const wanted = /A node needs these permissions on both tables: ([\w, ]+);/.exec(text)![1]!.split(", ");
	for (const d of BOTH) {
		const roles = d.resources("AWS::IAM::Role").filter((r) => /-task-/.test(r.Properties.RoleName ?? ""));
		assert.equal(roles.length, 2);
		for (const role of roles) {
			const own = statements(role).filter(([name]) => name === "tables").map(([, s]) => s);
			assert.deepEqual(own[0].Action.map((a: string) => a.replace("dynamodb:", "")), [...wanted, "DescribeTable"]);
			assert.deepEqual([own[1].Action].flat(), ["dynamodb:Query"]);
			assert.equal(own[0].Resource.length, 2);
		}
	}
});

test("D5: no role may do everything, and * as a resource is only where AWS knows none", () => {
	const free = new Set(["ecr:GetAuthorizationToken", ...LISTED.filter((s) => s.Resource === "*").flatMap((s) => s.Action)]);
	for (const d of ALL)
		for (const r of d.resources()) {
			if (!["AWS::IAM::Role", "AWS::IAM::Policy"].includes(r.Type))
				continue;
			const all = [...statements(r).map(([, s]) => s), ...(r.Properties.PolicyDocument?.Statement ?? [])];
			for (const s of all) {
				for (const action of [s.Action].flat())
					assert.ok(!/\*/.test(action), `${r.id}: ${action}`);
				if ([s.Resource].flat().includes("*"))
					for (const action of [s.Action].flat())
						assert.ok(free.has(action), `${r.id}: ${action} on everything`);
			}
		}
});

// Of one of the program's roles: what a statement is about.
function resourcesOf(d: Deployment, roleName: string, sid: string): string[] | undefined {
	const [role] = d.resources("AWS::IAM::Role").filter((r) => r.Properties.RoleName === `${roleName}-${d.context.env}`);
	const found = statements(role!).map(([, s]) => s).find((s) => s.Sid === sid);
	return found && [found.Resource].flat();
}

test("D5: a secret that a setting names may be read by the task that has the setting", () => {
	assert.deepEqual(resourcesOf(whole, "leasehold-task", "Secrets"),
		[`arn:aws:secretsmanager:${HUB}:secret:/InnovationSandbox/myisb/*`, `arn:aws:secretsmanager:${HUB}:secret:leasehold/mail-*`, OIDC_SECRET]);
	assert.deepEqual(resourcesOf(whole, "isb-billing-sep-task", "Secrets"), [`arn:aws:secretsmanager:${HUB}:secret:leasehold/metrics-*`]);
	const one = new Deployment("dev", { settings: { LEASEHOLD_METRICS_TOKENS: "secretsmanager:leasehold/metrics" } });
	assert.deepEqual(resourcesOf(one, "leasehold-task", "Secrets"), ["arn:aws:secretsmanager:us-east-1:222222222222:secret:leasehold/metrics-*"]);
	for (const role of ["leasehold-task", "isb-billing-sep-task"])
		assert.equal(resourcesOf(prod, role, "Secrets"), undefined);
});

test("D5: a bus that is named by its ARN is the one that events may be put on", () => {
	assert.deepEqual(resourcesOf(whole, "leasehold-task", "Bus"), [whole.context.settings.ISB_EVENT_BUS]);
	assert.deepEqual(resourcesOf(whole, "isb-billing-sep-task", "Bus"), [`arn:aws:events:${HUB}:event-bus/billing`]);
});

test("D5: the OUs of the pool may be listed below the root, too", () => {
	const [parent] = resourcesOf(whole, "isb-billing-sep-org", "Listing")!;
	assert.equal(parent, SANDBOX_ROOT);
	assert.equal(resourcesOf(prod, "isb-billing-sep-org", "Listing")![0], "arn:aws:organizations::111111111111:ou/o-abcdefghij/ou-abcd-12345678");
});

test("D5: with credentials for owners a task may use the key that encrypts them", () => {
	assert.deepEqual(resourcesOf(whole, "leasehold-task", "KeyOfCredentials"), [whole.context.settings.LEASEHOLD_CREDENTIALS_KEY_ARN]);
	assert.equal(resourcesOf(prod, "leasehold-task", "KeyOfCredentials"), undefined);
});

test("D5: instances: the driver of AWS has all of instances.json, any driver writes the table of tenants, and one without has neither", () => {
	const taskOf = (d: Deployment) => d.resources("AWS::IAM::Role").find((r) => r.Properties.RoleName === `leasehold-task-${d.context.env}`)!;
	assert.deepEqual(statements(taskOf(whole)).filter(([name]) => name === "instances").map(([, s]) => s.Sid), source("instances").Statement.map((s) => s.Sid));
	assert.deepEqual(resourcesOf(whole, "leasehold-task", "Services"), [`arn:aws:ecs:${HUB}:service/tenants/tenant-*`]);
	assert.equal(resourcesOf(prod, "leasehold-task", "Services"), undefined);
	const text = readFileSync(new URL("docs/dynamodb.md", ROOT), "utf8");
	const wanted = /A node needs (\w+) and (\w+) there\./.exec(text)!.slice(1).map((action) => `dynamodb:${action}`);
	for (const d of [prod, whole]) {
		assert.deepEqual(statements(taskOf(d)).map(([, s]) => s).find((s) => s.Sid === "TenantTable")?.Action, wanted);
		assert.deepEqual(resourcesOf(d, "leasehold-task", "TenantTable"), [`arn:aws:dynamodb:${HUB}:table/${d.context.env}-tenant-resources`]);
	}
	assert.equal(resourcesOf(dev, "leasehold-task", "TenantTable"), undefined);
});

test("D5: the policies of a role are no longer together than AWS allows", () => {
	for (const d of ALL)
		for (const role of d.resources("AWS::IAM::Role")) {
			const length = (role.Properties.Policies ?? []).map((p: any) => JSON.stringify(p.PolicyDocument).length).reduce((a: number, b: number) => a + b, 0);
			assert.ok(length <= 10240, `${role.Properties.RoleName}: ${length}`);
		}
});

test("FR37: the chain's trust is that of trust.json: the hop before, of this organisation, for an hour at most", () => {
	for (const d of BOTH) {
		const env = d.context.env;
		for (const [name, account, before] of [["intermediate", "222222222222", "task"], ["org", "222222222222", "intermediate"]]) {
			const [role] = d.resources("AWS::IAM::Role").filter((r) => r.Properties.RoleName === `isb-billing-sep-${name}-${env}`);
			const expected = JSON.parse(JSON.stringify(source("trust")).replaceAll("{TRUSTED_ACCOUNT_ID}", account!)
				.replaceAll("{TRUSTED_ROLE_ARN}", `arn:aws:iam::${account}:role/isb-billing-sep-${before}-${env}`).replaceAll("{ORGANIZATION_ID}", d.context.organizationId));
			assert.deepEqual(role!.Properties.AssumeRolePolicyDocument, expected);
			assert.equal(role!.Properties.MaxSessionDuration, 3600);
		}
	}
});

/* --- D8 --- */

const STATEFUL = ["AWS::DynamoDB::Table", "AWS::SecretsManager::Secret", "AWS::Backup::BackupVault", "AWS::ECR::Repository", "AWS::S3::Bucket", "AWS::Logs::LogGroup"];

test("D8: in prod what has a state is kept and protected; in dev it goes", () => {
	for (const type of STATEFUL) {
		const found = prod.resources(type);
		assert.ok(found.length, type);
		for (const r of found) {
			assert.equal(r.DeletionPolicy, "Retain", `${r.stack}/${r.id}`);
			assert.equal(r.UpdateReplacePolicy, "Retain", `${r.stack}/${r.id}`);
			if (type === "AWS::DynamoDB::Table")
				assert.equal(r.Properties.DeletionProtectionEnabled, true);
		}
	}
	for (const type of ["AWS::DynamoDB::Table", "AWS::SecretsManager::Secret", "AWS::Logs::LogGroup"])
		for (const r of dev.resources(type))
			assert.equal(r.DeletionPolicy, "Delete", `${r.stack}/${r.id}`);
	const kept = JSON.parse(readFileSync(`${prod.folder}/manifest.json`, "utf8")).artifacts;
	for (const name of ["LeaseholdData-prod", "isb-billing-sep-data-prod", "LeaseholdPipeline-prod"])
		assert.equal(kept[name].properties.terminationProtection, true, name);
});

/* --- the parts, one by one --- */

test("the tables are those that the program makes and checks", () => {
	const t = prod.template("LeaseholdData");
	t.hasResourceProperties("AWS::DynamoDB::Table", {
		TableName: "sandbox-broker-pool-prod", BillingMode: "PAY_PER_REQUEST", TimeToLiveSpecification: { AttributeName: "ttl", Enabled: true },
		PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true, RecoveryPeriodInDays: 35 }, OnDemandThroughput: Match.objectLike({}),
		GlobalSecondaryIndexes: Match.arrayWith([Match.objectLike({ IndexName: "TrackIndex", Projection: { ProjectionType: "ALL" } })]),
	});
	t.hasResourceProperties("AWS::Backup::BackupPlan", { BackupPlan: { BackupPlanRule: [Match.objectLike({ Lifecycle: { DeleteAfterDays: 35 } })] } });
});

test("an existing table of the pool is used as it is", () => {
	const d = new Deployment("dev", { poolTableName: "SandboxPool" });
	assert.ok(!d.resources("AWS::DynamoDB::Table").some((t) => t.Properties.TableName === "sandbox-broker-pool-dev"));
	d.template("LeaseholdService").hasResourceProperties("AWS::ECS::TaskDefinition", {
		ContainerDefinitions: [Match.objectLike({ Environment: Match.arrayWith([{ Name: "DDB_TABLE_NAME", Value: "SandboxPool" }]) })],
	});
});

test("a task is as closed as the image test runs it, and by digest", () => {
	for (const [d, stack] of [[prod, "LeaseholdService"], [prod, "isb-billing-sep-hub"], [dev, "LeaseholdService"]] as const)
		d.template(stack).hasResourceProperties("AWS::ECS::TaskDefinition", {
			RuntimePlatform: { CpuArchitecture: "ARM64" },
			ContainerDefinitions: [Match.objectLike({
				User: "10001:10001", ReadonlyRootFilesystem: true, StopTimeout: 60, LinuxParameters: Match.objectLike({ Capabilities: { Drop: ["ALL"] } }),
				Image: Match.objectLike({ "Fn::Join": Match.anyValue() }), HealthCheck: Match.objectLike({ Command: ["CMD", "/usr/bin/leasehold", "health"] }),
				Ulimits: [{ Name: "nofile", SoftLimit: 65536, HardLimit: 65536 }],
			})],
		});
	for (const r of prod.resources("AWS::ECS::TaskDefinition"))
		assert.match(JSON.stringify(r.Properties.ContainerDefinitions[0].Image), /leasehold@sha256:[0-9a-f]{64}/);
});

test("tasks and function are for the processor that the context names", () => {
	const d = new Deployment("dev", { architecture: "amd64" });
	d.template("LeaseholdService").hasResourceProperties("AWS::ECS::TaskDefinition", { RuntimePlatform: { CpuArchitecture: "X86_64" } });
	d.template("isb-billing-sep-hub").hasResourceProperties("AWS::Lambda::Function", { Architectures: ["x86_64"] });
});

test("FR26: no secret stands in a template, and every setting comes from outside", () => {
	for (const d of BOTH)
		for (const r of d.resources("AWS::ECS::TaskDefinition")) {
			const [c] = r.Properties.ContainerDefinitions;
			const secrets = c.Secrets.map((s: any) => s.Name);
			assert.ok(secrets.includes("BROKER_API_TOKEN") && secrets.includes("BROKER_ADMIN_TOKEN"));
			for (const e of c.Environment)
				assert.ok(!/TOKEN|SECRET|PASSWORD/.test(e.Name), e.Name);
		}
	const guard = dev.resources("AWS::Lambda::Function")[0]!.Properties.Environment.Variables;
	for (const name of ["ACCOUNT_TABLE_NAME", "SANDBOX_OU_ID", "INTERMEDIATE_ROLE_ARN", "ORG_MGT_ROLE_ARN", "SNS_ALERT_TOPIC_ARN", "QUARANTINE_DURATION_HOURS"])
		assert.ok(guard[name], name);
});

test("the balancer speaks TLS only, hides the probes, and waits longer than a claim may", () => {
	const t = prod.template("LeaseholdService");
	t.hasResourceProperties("AWS::ElasticLoadBalancingV2::Listener", { Port: 443, Protocol: "HTTPS", SslPolicy: Match.stringLikeRegexp("TLS13") });
	t.hasResourceProperties("AWS::ElasticLoadBalancingV2::Listener", { Port: 80, DefaultActions: [Match.objectLike({ Type: "redirect" })] });
	t.hasResourceProperties("AWS::ElasticLoadBalancingV2::ListenerRule", {
		Priority: 10, Actions: [Match.objectLike({ FixedResponseConfig: { StatusCode: "404" } })],
		Conditions: [Match.objectLike({ PathPatternConfig: { Values: ["/metrics", "/healthz", "/readyz"] } })],
	});
	t.hasResourceProperties("AWS::ElasticLoadBalancingV2::TargetGroup", { HealthCheckPath: "/healthz", HealthCheckIntervalSeconds: 5, UnhealthyThresholdCount: 2 });
	const [balancer] = prod.resources("AWS::ElasticLoadBalancingV2::LoadBalancer");
	const attributes = Object.fromEntries(balancer!.Properties.LoadBalancerAttributes.map((a: any) => [a.Key, a.Value]));
	assert.equal(attributes["idle_timeout.timeout_seconds"], "310");
	assert.equal(attributes["routing.http.drop_invalid_header_fields.enabled"], "true");
	const [service] = prod.resources("AWS::ECS::TaskDefinition").filter((r) => r.stack.startsWith("LeaseholdService"));
	const idle = service!.Properties.ContainerDefinitions[0].Environment.find((e: any) => e.Name === "LEASEHOLD_IDLE_TIMEOUT_MS").Value;
	assert.ok(Number(idle) > 310000);
});

test("a deployment keeps all tasks, is undone by its alarms, and is blue and green when asked", () => {
	prod.template("LeaseholdService").hasResourceProperties("AWS::ECS::Service", {
		DesiredCount: 2, DeploymentConfiguration: Match.objectLike({
			Strategy: "BLUE_GREEN", MinimumHealthyPercent: 100, Alarms: { AlarmNames: ["leasehold-service-errors-prod", "leasehold-pool-low-empty-prod"], Enable: true, Rollback: true },
		}),
	});
	prod.template("LeaseholdService").resourceCountIs("AWS::ElasticLoadBalancingV2::TargetGroup", 2);
	dev.template("LeaseholdService").hasResourceProperties("AWS::ECS::Service", {
		DeploymentConfiguration: Match.objectLike({ MinimumHealthyPercent: 100, MaximumPercent: 200, DeploymentCircuitBreaker: { Enable: true, Rollback: true } }),
	});
	dev.template("LeaseholdService").resourceCountIs("AWS::ElasticLoadBalancingV2::TargetGroup", 1);
});

test("FR13: moves come from the management account's bus in us-east-1 over the hub's bus into the queue, from nobody else", () => {
	const pattern = { source: ["aws.organizations"], "detail-type": ["AWS API Call via CloudTrail"], detail: { eventSource: ["organizations.amazonaws.com"], eventName: ["MoveAccount"] } };
	const org = prod.template("isb-billing-sep-org"), hub = prod.template("isb-billing-sep-hub");
	org.hasResourceProperties("AWS::Events::Rule", {
		EventPattern: pattern, Targets: [Match.objectLike({ Arn: "arn:aws:events:eu-west-1:222222222222:event-bus/isb-billing-sep-bus-prod" })],
	});
	hub.hasResourceProperties("AWS::Events::Rule", { EventPattern: pattern, EventBusName: Match.anyValue(), Name: "isb-billing-sep-move-rule-prod" });
	const [policy] = prod.resources("AWS::Events::EventBusPolicy");
	assert.deepEqual(policy!.Properties.Statement.Principal, { AWS: "arn:aws:iam::111111111111:root" });
	assert.deepEqual(policy!.Properties.Statement.Condition, {
		ArnEquals: { "aws:PrincipalArn": "arn:aws:iam::111111111111:role/isb-billing-sep-forward-prod" },
		StringEquals: { "events:source": "aws.organizations", "events:detail-type": "AWS API Call via CloudTrail" },
	});
	const [forward] = prod.resources("AWS::IAM::Role").filter((r) => r.Properties.RoleName === "isb-billing-sep-forward-prod");
	assert.deepEqual(forward!.Properties.AssumeRolePolicyDocument.Statement.map((s: any) => s.Principal), [{ Service: "events.amazonaws.com" }]);
	hub.hasResourceProperties("AWS::SQS::Queue", {
		QueueName: "isb-billing-sep-event-queue-prod", VisibilityTimeout: 300, MessageRetentionPeriod: 7 * 86400, RedrivePolicy: Match.objectLike({ maxReceiveCount: 5 }),
	});
	const manifest = JSON.parse(readFileSync(`${prod.folder}/manifest.json`, "utf8")).artifacts;
	assert.equal(manifest["isb-billing-sep-org-prod"].environment, "aws://111111111111/us-east-1");
	assert.ok(manifest["isb-billing-sep-org-prod"].dependencies.includes("isb-billing-sep-hub-prod"));
});

test("guard: with home=lambda a function that reads the queue and is woken every five minutes, with home=fargate one task that nobody can call", () => {
	const t = dev.template("isb-billing-sep-hub");
	t.resourceCountIs("AWS::ECS::Service", 0);
	t.hasResourceProperties("AWS::Lambda::Function", {
		Runtime: "provided.al2023", Architectures: ["arm64"], Timeout: 30, MemorySize: 256, Code: { S3Bucket: "leasehold-releases", S3Key: dev.context.functionKey },
	});
	t.hasResourceProperties("AWS::Lambda::EventSourceMapping", { BatchSize: 10, FunctionResponseTypes: ["ReportBatchItemFailures"], ScalingConfig: { MaximumConcurrency: 2 } });
	t.hasResourceProperties("AWS::Events::Rule", { ScheduleExpression: "rate(5 minutes)", Targets: [Match.objectLike({ Input: '{"leasehold":"tick"}' })] });
	const hub = prod.template("isb-billing-sep-hub");
	hub.resourceCountIs("AWS::Lambda::Function", 0);
	hub.hasResourceProperties("AWS::ECS::Service", { DesiredCount: 1 });
	for (const group of prod.resources("AWS::EC2::SecurityGroup").filter((r) => r.stack.includes("-hub-")))
		assert.equal(group.Properties.SecurityGroupIngress, undefined);
	hub.resourceCountIs("AWS::EC2::NatGateway", 0);
});

test("guard: a burst in the queue throttles neither itself nor the tick and the bells", () => {
	const [guard] = dev.resources("AWS::Lambda::Function"), [queue] = dev.resources("AWS::Lambda::EventSourceMapping");
	assert.equal(guard!.Properties.ReservedConcurrentExecutions, queue!.Properties.ScalingConfig.MaximumConcurrency + 2);
});

test("FR36: a schedule group and its role exist only when asked for; the role is for that group and wakes that function only", () => {
	prod.template("isb-billing-sep-hub").resourceCountIs("AWS::Scheduler::ScheduleGroup", 0);
	const t = dev.template("isb-billing-sep-hub");
	t.hasResourceProperties("AWS::Scheduler::ScheduleGroup", { Name: "isb-billing-sep-schedules-dev" });
	const [role] = dev.resources("AWS::IAM::Role").filter((r) => r.Properties.RoleName === "isb-billing-sep-scheduler-dev");
	const [trust] = role!.Properties.AssumeRolePolicyDocument.Statement;
	assert.deepEqual(trust.Principal, { Service: "scheduler.amazonaws.com" });
	assert.equal(trust.Condition.StringEquals["aws:SourceAccount"], "222222222222");
	assert.deepEqual(statements(role!).map(([, s]) => [s.Action].flat()), [["lambda:InvokeFunction"], ["sqs:SendMessage"]]);
	const variables = dev.resources("AWS::Lambda::Function")[0]!.Properties.Environment.Variables;
	assert.equal(variables.SCHEDULER_ROLE_ARN, "arn:aws:iam::222222222222:role/isb-billing-sep-scheduler-dev");
	assert.equal(variables.LEASEHOLD_WAKE, "scheduler");
});

test("FR23: only jobs of one environment of one repository may deploy, by OIDC, for an hour", () => {
	const roles = prod.resources("AWS::IAM::Role").filter((r) => r.stack.startsWith("LeaseholdPipeline"));
	assert.equal(roles.length, 2);
	for (const [name, environment] of [["leasehold-deploy-prod", "prod"], ["leasehold-publish-prod", "release"]]) {
		const role = roles.find((r) => r.Properties.RoleName === name)!;
		const [trust] = role.Properties.AssumeRolePolicyDocument.Statement;
		assert.equal(trust.Action, "sts:AssumeRoleWithWebIdentity");
		assert.deepEqual(trust.Condition, { StringEquals: {
			"token.actions.githubusercontent.com:aud": "sts.amazonaws.com", "token.actions.githubusercontent.com:sub": `repo:example/leasehold:environment:${environment}`,
		} });
		assert.equal(role.Properties.MaxSessionDuration, 3600);
	}
	prod.template("LeaseholdPipeline").hasResourceProperties("AWS::ECR::Repository", { ImageTagMutability: "IMMUTABLE", ImageScanningConfiguration: { ScanOnPush: true } });
});

test("instances: five queues, each with dead letters, which the service's settings name", () => {
	const names = prod.resources("AWS::SQS::Queue").filter((r) => r.stack.startsWith("LeaseholdInstances")).map((r) => r.Properties.QueueName);
	assert.equal(names.length, 10);
	const [service] = prod.resources("AWS::ECS::TaskDefinition").filter((r) => r.stack.startsWith("LeaseholdService"));
	const urls = service!.Properties.ContainerDefinitions[0].Environment.filter((e: any) => e.Name.endsWith("_QUEUE_URL")).map((e: any) => e.Value.split("/").pop());
	assert.deepEqual(urls.sort(), names.filter((n) => !n.includes("dlq")).sort());
	prod.template("LeaseholdInstances").hasResourceProperties("AWS::Events::Rule", {
		EventPattern: { source: ["aws.ecs"], "detail-type": ["ECS Service Action", "ECS Deployment State Change", "ECS Task State Change"] },
	});
});

test("instances: the program is told the env that their table has in its name", () => {
	const [table] = prod.resources("AWS::DynamoDB::Table").filter((r) => r.stack.startsWith("LeaseholdInstances"));
	const [service] = prod.resources("AWS::ECS::TaskDefinition").filter((r) => r.stack.startsWith("LeaseholdService"));
	const env = service!.Properties.ContainerDefinitions[0].Environment.find((e: any) => e.Name === "LEASEHOLD_ENV")?.Value;
	assert.equal(`${env}-tenant-resources`, table!.Properties.TableName);
});

test("instances: the driver of AWS reaches the tenants' MariaDB, at its port", () => {
	const ports = (d: Deployment) => d.resources("AWS::EC2::SecurityGroup").filter((r) => r.stack.startsWith("LeaseholdService"))
		.flatMap((r) => r.Properties.SecurityGroupEgress ?? []).map((rule: any) => rule.ToPort);
	assert.ok(ports(whole).includes(3306));
	assert.ok(!ports(prod).includes(3306));
	const other = new Deployment("whole", { settings: { ...whole.context.settings, LEASEHOLD_DB_HOST: "db.example.com:3307" } });
	assert.ok(ports(other).includes(3307) && !ports(other).includes(3306));
});

test("an existing network is used, without a look-up", () => {
	const d = new Deployment("dev", {
		vpcId: "vpc-0123456789abcdef0", privateSubnetIds: ["subnet-11111111", "subnet-22222222"], publicSubnetIds: ["subnet-33333333", "subnet-44444444"],
	});
	assert.deepEqual(d.resources("AWS::EC2::VPC"), []);
	d.template("LeaseholdService").hasResourceProperties("AWS::ECS::Service", {
		NetworkConfiguration: { AwsvpcConfiguration: Match.objectLike({ Subnets: ["subnet-11111111", "subnet-22222222"] }) },
	});
});

/* --- D22 --- */

test("D22: every alarm has a heading in the runbook", () => {
	const runbook = readFileSync(new URL("docs/runbook.md", ROOT), "utf8");
	const headings = new Set([...runbook.matchAll(/^### ([a-z-]+)$/gm)].map((m) => m[1]));
	for (const d of BOTH)
		for (const { Properties: p } of d.resources("AWS::CloudWatch::Alarm")) {
			const [file, heading] = p.AlarmDescription.split("#");
			assert.equal(file, "docs/runbook.md");
			assert.ok(headings.has(heading), heading);
			assert.ok(p.AlarmName.includes(heading), p.AlarmName);
		}
});

test("D22: the dashboards ask only for figures that the program writes or AWS has", () => {
	const written = readFileSync(new URL("src/providers/aws/messages/emf.c", ROOT), "utf8");
	const boards = BOTH.flatMap((d) => d.resources("AWS::CloudWatch::Dashboard")).map((r) => JSON.stringify(r.Properties.DashboardBody));
	assert.equal(boards.length, 5);
	let seen = 0;
	for (const board of boards)
		for (const [, metric] of board.matchAll(/(?:ISB\/BillingSeparator|BBWS\/Instance)\\+",\\+"(\w+)/g)) {
			assert.ok(written.includes(`"${metric}"`), metric);
			seen++;
		}
	assert.ok(seen >= 10, `${seen}`);
});

test("D22: figures of the service's log are metrics of the program, which writes them each minute", () => {
	const known = new Set([...readFileSync(new URL("src/base/metrics.def", ROOT), "utf8").matchAll(/^METRIC\(\w+, (?:READ_)?(?:COUNTER|GAUGE), "(\w+)"/gm)].map((m) => m[1]));
	for (const d of BOTH) {
		const figures = d.resources("AWS::Logs::MetricFilter").filter((r) => r.Properties.FilterPattern === '{ $.logger = "metrics" }');
		assert.ok(figures.length >= 10);
		for (const { Properties: p } of figures) {
			const [to] = p.MetricTransformations;
			assert.ok(known.has(to.MetricName), to.MetricName);
			assert.equal(to.MetricValue, `$.${to.MetricName}`);
		}
		const [service] = d.resources("AWS::ECS::TaskDefinition").filter((r) => r.stack.startsWith("LeaseholdService"));
		assert.ok(service!.Properties.ContainerDefinitions[0].Environment.some((e: any) => e.Name === "LEASEHOLD_LOG_METRICS_SEC" && e.Value === "60"));
	}
});
