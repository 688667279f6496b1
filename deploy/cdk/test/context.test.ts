// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { ContextError, readContext, ROWS } from "../lib/context.js";
import { pathOf, read } from "./rig.js";

const prod = read("test/prod.json"), dev = read("test/dev.json"), whole = read("test/whole.json");

function problems(given: Record<string, unknown>): string[] {
	try {
		readContext(given);
	} catch (e) {
		if (e instanceof ContextError)
			return e.problems;
		throw e;
	}
	return [];
}

test("D2: wrong, missing and unknown context is named at once, with what would be right", () => {
	const { account: _, ...rest } = prod;
	const found = problems({ ...rest, region: "Europe", imageDigest: "latest", tasksMin: 1, colour: "blue", "settings.NO_SUCH": "1", "settings.CSP_API_TOKEN": "x" });
	for (const name of ["account", "region", "imageDigest", "tasksMin", "colour", "settings.NO_SUCH", "settings.CSP_API_TOKEN"])
		assert.equal(found.filter((p) => p.startsWith(`${name}: `)).length, 1, `${name}: ${found.join("\n")}`);
	assert.match(found.find((p) => p.startsWith("account:"))!, /is missing; right is: the hub account, 12 digits/);
	assert.match(found.find((p) => p.startsWith("imageDigest:"))!, /"latest" is wrong; right is: sha256:/);
});

test("D2: an empty context names everything that the service needs", () => {
	const found = problems({}).map((p) => p.split(":")[0]);
	for (const name of ["env", "account", "region", "alertEmail", "imageDigest", "certificateArn", "allowedCidrs"])
		assert.ok(found.includes(name), name);
	for (const name of ["orgAccount", "functionKey", "repository"]) // of parts that are not asked for
		assert.ok(!found.includes(name), name);
});

// One wrong thing each, and the name that is blamed.
const WRONG: [Record<string, unknown>, string][] = [
	[{ retain: false }, "retain"],
	[{ tasksMin: 9, tasksMax: 3 }, "tasksMax"],
	[{ cpu: 256, memory: 8192 }, "memory"],
	[{ scheduler: "external" }, "scheduler"],
	[{ architecture: "x86" }, "architecture"],
	[{ azs: ["eu-west-1a"] }, "azs"],
	[{ azs: ["us-east-1a", "us-east-1b"] }, "azs"],
	[{ parts: ["instances"] }, "parts"],
	[{ parts: "service,nonsense" }, "parts"],
	[{ parts: "service,guard" }, "parts"], // its driver has no table
	[{ "settings.LEASEHOLD_INSTANCE_DRIVER": "" }, "settings.LEASEHOLD_INSTANCE_DRIVER"],
	[{ vpcId: "vpc-0123456789abcdef0" }, "privateSubnetIds"],
	[{ cspTokenSecretArn: "" }, "cspTokenSecretArn"],
	[{ accountTableArn: "arn:aws:dynamodb:us-east-1:222222222222:table/other" }, "accountTableArn"],
	[{ orgAccount: "222222222222" }, "orgAccount"],
	[{ home: "lambda" }, "functionBucket"],
	[{ "settings.LEASEHOLD_STORE": "sqlite" }, "settings.LEASEHOLD_STORE"],
	[{ "settings.LEASEHOLD_SMTP_PASSWORD": "plain" }, "settings.LEASEHOLD_SMTP_PASSWORD"],
	[{ "settings.LEASEHOLD_SMTP_PASSWORD": "secretsmanager:*" }, "settings.LEASEHOLD_SMTP_PASSWORD"],
	[{ "settings.LEASEHOLD_ENV": "test" }, "settings.LEASEHOLD_ENV"],
	[{ "settings.TENANT_TABLE_NAME": "tenants" }, "settings.TENANT_TABLE_NAME"],
	[{ "settings.LEASEHOLD_CREDENTIALS": true }, "settings.LEASEHOLD_CREDENTIALS_KEY_ARN"],
	[{ "settings.LEASEHOLD_CREDENTIALS": true, "settings.LEASEHOLD_CREDENTIALS_KEY_ARN": "alias/tenants" }, "settings.LEASEHOLD_CREDENTIALS_KEY_ARN"],
	[{ sandboxOuId: "r-ABCD" }, "sandboxOuId"],
	[{ "guardSettings.BROKER_ADMIN_TOKEN": "0123456789abcdef0123" }, "guardSettings.BROKER_ADMIN_TOKEN"],
	[{ account: ["222222222222"] }, "account"],
	[{ region: { name: "eu-west-1" } }, "region"],
	[{ file: "/nowhere/at-all.json" }, "file"],
	[{ file: pathOf("cdk.json") }, "app"],
];

for (const [change, blamed] of WRONG)
	test(`D2: ${JSON.stringify(change).slice(0, 60)} is refused by name`, () => {
		const found = problems({ ...prod, ...change });
		assert.ok(found.some((p) => p.split(/[:,]/)[0] === blamed), found.join("\n"));
	});

test("D2: the driver of AWS names all settings that it lacks, with what else is wrong", () => {
	const found = problems({ ...prod, region: "Europe", settings: { LEASEHOLD_INSTANCE_DRIVER: "aws", LEASEHOLD_CREDENTIALS: true } }).map((p) => p.split(":")[0]);
	for (const name of ["ECS_CLUSTER", "EFS_ID", "VPC_ID", "SUBNETS", "SECURITY_GROUPS", "LISTENER_ARN", "EXECUTION_ROLE_ARN", "TASK_ROLE_ARN", "WORDPRESS_IMAGE",
		"SITE_DOMAIN", "ARCHIVE_BUCKET", "DB_HOST", "DB_ADMIN_SECRET", "CREDENTIALS_KEY_ARN"])
		assert.ok(found.includes(`settings.LEASEHOLD_${name}`), name);
	assert.ok(found.includes("region"));
	for (const name of ["WORDPRESS_VERSIONS", "DB_CA_FILE"]) // without these it works
		assert.ok(!found.includes(`settings.LEASEHOLD_${name}`), name);
});

test("D2: nothing is asked of a right context; -c wins over the file, lists may be texts", () => {
	assert.deepEqual(problems(prod), []);
	assert.deepEqual(problems(dev), []);
	assert.deepEqual(problems(whole), []);
	const context = readContext({ file: pathOf("test/prod.json"), tasksMin: "4", parts: "service, instances", "settings.LEASEHOLD_LOW_WATER": "7", "@aws-cdk/x:y": true });
	assert.equal(context.tasksMin, 4);
	assert.deepEqual(context.parts, ["service", "instances"]);
	assert.equal(context.settings.LEASEHOLD_LOW_WATER, "7");
	assert.equal(context.settings.LEASEHOLD_MAIL, "ses");
});

test("FR26: a secret may be named, not given", () => {
	for (const value of ["secretsmanager:mail", "secretsmanager:leasehold/mail#password", "secretsmanager:arn:aws:secretsmanager:eu-west-1:222222222222:secret:mail-AbCdEf"])
		assert.deepEqual(problems({ ...prod, "settings.LEASEHOLD_SMTP_PASSWORD": value }), []);
});

test("every row says what would be right", () => {
	for (const row of ROWS)
		assert.ok(row.right.length > 3, row.name);
});
