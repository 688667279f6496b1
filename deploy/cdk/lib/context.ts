// SPDX-License-Identifier: Apache-2.0
// What is deployed where: the context, from a file (-c file=prod.json) and from -c NAME=VALUE, which wins. Every problem is named at once, and nothing is
// synthesized while there is one.
import { readFileSync } from "node:fs";

export type Part = "service" | "guard" | "instances" | "pipeline";

export interface Context {
	readonly env: string;
	readonly parts: Part[];
	readonly account: string;
	readonly region: string;
	readonly azs: string[];
	readonly alertEmail: string;
	readonly logDays: number;
	readonly retain: boolean;
	readonly cmk: boolean;
	readonly imageRepository: string;
	readonly imageDigest: string;
	readonly architecture: "arm64" | "amd64";
	readonly cidr: string;
	readonly nats: number;
	readonly vpcId: string;
	readonly privateSubnetIds: string[];
	readonly publicSubnetIds: string[];
	readonly certificateArn: string;
	readonly allowedCidrs: string[];
	readonly monitoringCidrs: string[];
	readonly tasksMin: number;
	readonly tasksMax: number;
	readonly cpu: number;
	readonly memory: number;
	readonly deployment: "rolling" | "blue-green";
	readonly waf: boolean;
	readonly poolTableName: string;
	readonly cspTokenSecretArn: string;
	readonly orgAccount: string;
	readonly organizationId: string;
	readonly sandboxOuId: string;
	readonly sandboxChildOuIds: string[];
	readonly accountTableArn: string;
	readonly accountTableKeyArn: string;
	readonly home: "fargate" | "lambda";
	readonly scheduler: "internal" | "external";
	readonly functionBucket: string;
	readonly functionKey: string;
	readonly repository: string;
	readonly oidcProviderArn: string;
	readonly settings: Record<string, string>; // of the service
	readonly guardSettings: Record<string, string>;
}

type Kind = "text" | "list" | "number" | "boolean";

interface Row {
	readonly name: keyof Context;
	readonly kind: Kind;
	readonly like: RegExp;
	readonly right: string; // what would be right
	readonly fallback?: string | string[] | number | boolean;
	readonly neededBy?: (has: Asked) => boolean; // else: always needed, unless there is a fallback
}

interface Asked {
	part(name: Part): boolean;
	is(name: keyof Context, value: string): boolean;
	given(name: keyof Context): boolean;
}

const ACCOUNT = /^\d{12}$/;
const REGION = /^[a-z]{2}(-[a-z]+)+-\d$/;
const CIDR = /^(\d{1,3}\.){3}\d{1,3}\/([89]|[12]\d|3[0-2])$/;
const OU = /^ou-[a-z0-9]{4,32}-[a-z0-9]{8,32}$/;
const OU_OR_ROOT = /^(ou-[a-z0-9]{4,32}-[a-z0-9]{8,32}|r-[a-z0-9]{4,32})$/;
const ARN = (service: string, rest: string) => new RegExp(`^arn:aws:${service}:[a-z0-9-]+:\\d{12}:${rest}$`);
const KEY = ARN("kms", "key/(mrk-)?[0-9a-f-]{32,36}");
const ENV = /^[a-z][a-z0-9-]{0,14}[a-z0-9]$/;
const NEVER = () => false;
const runsImage = (has: Asked) => has.part("service") || (has.part("guard") && !has.is("home", "lambda"));
const inService = (has: Asked) => has.part("service");
const inGuard = (has: Asked) => has.part("guard");
const isFunction = (has: Asked) => has.part("guard") && has.is("home", "lambda");
const inGivenNetwork = (has: Asked) => has.given("vpcId");

export const ROWS: Row[] = [
	{ name: "env", kind: "text", like: ENV, right: "2 to 16 of a-z, 0-9 and -, such as prod or dev-2" },
	{ name: "parts", kind: "list", like: /^(service|guard|instances|pipeline)$/, right: "service, guard, instances, pipeline", fallback: ["service"] },
	{ name: "account", kind: "text", like: ACCOUNT, right: "the hub account, 12 digits" },
	{ name: "region", kind: "text", like: REGION, right: "a region such as eu-west-1" },
	{ name: "azs", kind: "list", like: /^[a-z]{2}(-[a-z]+)+-\d[a-z]$/, right: "two or more zones of the region", neededBy: NEVER },
	{ name: "alertEmail", kind: "text", like: /^[^@\s]+@[^@\s]+\.[^@\s]+$/, right: "an address that is told of alarms" },
	{ name: "logDays", kind: "number", like: /^(1|3|5|7|14|30|60|90|120|150|180|365|400|545|731)$/, right: "days as CloudWatch knows them: 7, 30, 90, 365 ...", fallback: 30 },
	{ name: "retain", kind: "boolean", like: /^(true|false)$/, right: "true, or false with an env that begins with dev", fallback: true },
	{ name: "cmk", kind: "boolean", like: /^(true|false)$/, right: "true or false", fallback: false },
	{ name: "imageRepository", kind: "text", like: /^[a-z0-9]+([._/-][a-z0-9]+)*$/, right: "a repository of ECR in the hub account", fallback: "leasehold" },
	{ name: "imageDigest", kind: "text", like: /^sha256:[0-9a-f]{64}$/, right: "sha256: and 64 hexadecimal digits", neededBy: runsImage },
	{ name: "architecture", kind: "text", like: /^(arm64|amd64)$/, right: "arm64 or amd64, as the image or the function is", fallback: "arm64" },
	{ name: "cidr", kind: "text", like: CIDR, right: "a network such as 10.40.0.0/16", fallback: "10.40.0.0/16" },
	{ name: "nats", kind: "number", like: /^[12]$/, right: "1, or 2 to survive the loss of a zone", fallback: 1 },
	{ name: "vpcId", kind: "text", like: /^vpc-[0-9a-f]{8,17}$/, right: "vpc-...", neededBy: NEVER },
	{ name: "privateSubnetIds", kind: "list", like: /^subnet-[0-9a-f]{8,17}$/, right: "subnet-..., one in each zone", neededBy: inGivenNetwork },
	{ name: "publicSubnetIds", kind: "list", like: /^subnet-[0-9a-f]{8,17}$/, right: "subnet-..., one in each zone", neededBy: inGivenNetwork },
	{ name: "certificateArn", kind: "text", like: ARN("acm", "certificate/[0-9a-f-]{36}"), right: "the ARN of a certificate of ACM", neededBy: inService },
	{ name: "allowedCidrs", kind: "list", like: CIDR, right: "networks that may call the service, such as 198.51.100.0/24", neededBy: inService },
	{ name: "monitoringCidrs", kind: "list", like: CIDR, right: "networks that may read /metrics on port 9090", neededBy: NEVER },
	{ name: "tasksMin", kind: "number", like: /^([2-9]|[1-9]\d)$/, right: "2 to 99", fallback: 2 },
	{ name: "tasksMax", kind: "number", like: /^([2-9]|[1-9]\d)$/, right: "2 to 99", fallback: 10 },
	{ name: "cpu", kind: "number", like: /^(256|512|1024|2048|4096)$/, right: "256, 512, 1024, 2048 or 4096", fallback: 256 },
	{ name: "memory", kind: "number", like: /^\d{3,5}$/, right: "memory that Fargate has for that cpu", fallback: 512 },
	{ name: "deployment", kind: "text", like: /^(rolling|blue-green)$/, right: "rolling or blue-green", fallback: "rolling" },
	{ name: "waf", kind: "boolean", like: /^(true|false)$/, right: "true or false", fallback: false },
	{ name: "poolTableName", kind: "text", like: /^[\w.-]{3,255}$/, right: "an existing table of the pool", neededBy: NEVER },
	{ name: "cspTokenSecretArn", kind: "text", like: ARN("secretsmanager", "secret:[\\w/+=.@-]+"), right: "the ARN of the secret with the vendor's token", neededBy: NEVER },
	{ name: "orgAccount", kind: "text", like: ACCOUNT, right: "the organisation's management account, 12 digits", neededBy: inGuard },
	{ name: "organizationId", kind: "text", like: /^o-[a-z0-9]{10,32}$/, right: "o-...", neededBy: inGuard },
	{ name: "sandboxOuId", kind: "text", like: OU_OR_ROOT, right: "ou-xxxx-xxxxxxxx, or the root: r-xxxx", neededBy: inGuard },
	{ name: "sandboxChildOuIds", kind: "list", like: OU, right: "the OUs below it: Available, CleanUp, Quarantine ...", neededBy: inGuard },
	{ name: "accountTableArn", kind: "text", like: ARN("dynamodb", "table/[\\w.-]{3,255}"), right: "the ARN of the other system's account table", neededBy: inGuard },
	{ name: "accountTableKeyArn", kind: "text", like: KEY, right: "the ARN of that table's key", neededBy: NEVER },
	{ name: "home", kind: "text", like: /^(fargate|lambda)$/, right: "fargate or lambda", fallback: "fargate" },
	{ name: "scheduler", kind: "text", like: /^(internal|external)$/, right: "internal, or external with home=lambda", fallback: "internal" },
	{ name: "functionBucket", kind: "text", like: /^[a-z0-9.-]{3,63}$/, right: "the bucket with the function's package", neededBy: isFunction },
	{ name: "functionKey", kind: "text", like: /^[\w./-]{1,512}\.zip$/, right: "the package's key, with its version, ending with .zip", neededBy: isFunction },
	{ name: "repository", kind: "text", like: /^[\w.-]+\/[\w.-]+$/, right: "OWNER/REPOSITORY whose workflows deploy", neededBy: (has) => has.part("pipeline") },
	{ name: "oidcProviderArn", kind: "text", like: /^arn:aws:iam::\d{12}:oidc-provider\/[\w./-]+$/, right: "the provider that the account has already", neededBy: NEVER },
];

// What Fargate has: for each cpu the memory from, to, and in which steps.
const FARGATE: Record<number, [number, number, number]> = {
	256: [512, 2048, 512], 512: [1024, 4096, 1024], 1024: [2048, 8192, 1024], 2048: [4096, 16384, 1024], 4096: [8192, 30720, 1024],
};

// The settings of the program, as its own table has them: name and whether it is a secret.
const TABLE = readFileSync(new URL("../../../../src/app/config/config.def", import.meta.url), "utf8");
const SETTINGS = new Map([...TABLE.matchAll(/^SETTING\(\w+,\s*"(\w+)",\s*(\w+)/gm)].map((m) => [m[1]!, m[2]!]));
const isSecret = (name: string) => ["SECRET", "TOKENS"].includes(SETTINGS.get(name) ?? "");

// What the driver "aws" cannot do without: docs/instances-aws.md.
const OF_AWS_DRIVER = [...TABLE.matchAll(/^SETTING\(\w+,\s*"(\w+)",\s*TEXT,\s*"",.*"aws: /gm)].map((m) => m[1]!).filter((name) => name !== "LEASEHOLD_DB_CA_FILE");

// A secret setting by its name at Secrets Manager, and by one member of it.
const REFERENCE = /^secretsmanager:([\w/+=.@!:-]+)(#.+)?$/;

export function secretNames(settings: Record<string, string>): string[] {
	return [...new Set(Object.keys(settings).filter(isSecret).map((name) => REFERENCE.exec(settings[name]!)![1]!))];
}

// Those that the stacks decide.
const OURS = /^(LEASEHOLD_(LISTEN|DATA|ENV|STORE|DDB_KERNEL_TABLE|TLS_\w+|DRAIN_DELAY_MS|IDLE_TIMEOUT_MS|TRUSTED_PROXIES|METRICS_EMF|LOG_METRICS_SEC|QUARANTINE|WAKE|\w+_QUEUE_URL|SCHEDULER_DLQ_ARN|SIM_\w+|TIME_SCALE)|DDB_\w+|TENANT_TABLE_NAME|AWS_REGION|METRICS_PORT|SNS_ALERT_TOPIC_ARN|SCHEDULER_\w+|BROKER_\w+_TOKEN|CSP_API_TOKEN|LEASEHOLD_INBOX_TOKENS|LEASEHOLD_JWT_SECRET|UNQUARANTINE_LAMBDA_ARN)$/;

const RULES: [(c: Context) => boolean, string][] = [
	[(c) => !c.retain && !c.env.startsWith("dev"), "retain: false is for an env that begins with dev; others keep their data"],
	[(c) => c.tasksMax < c.tasksMin, "tasksMax: is smaller than tasksMin"],
	[(c) => !fits(c.cpu, c.memory), "memory: Fargate has no such memory for that cpu; right for 256 is 512, 1024 and so on"],
	[(c) => c.scheduler === "external" && c.home !== "lambda", "scheduler: external is for home=lambda; a task has its own timers"],
	[(c) => c.azs.length < 2, "azs: two or more zones are needed"],
	[(c) => c.azs.some((az) => !az.startsWith(c.region)), "azs: a zone is not in the region"],
	[(c) => c.parts.includes("instances") && !c.parts.includes("service"), "parts: instances needs service, which reads its queues"],
	[(c) => c.parts.includes("instances") && !hasDriver(c),
		"settings.LEASEHOLD_INSTANCE_DRIVER: is needed with instances: without a driver nobody reads their queues"],
	[(c) => hasDriver(c) && !c.parts.includes("instances"),
		"parts: settings.LEASEHOLD_INSTANCE_DRIVER needs instances: without its table no instance can be changed"],
	...OF_AWS_DRIVER.map((name): [(c: Context) => boolean, string] => [(c) => c.settings.LEASEHOLD_INSTANCE_DRIVER === "aws" && !c.settings[name],
		`settings.${name}: is needed with settings.LEASEHOLD_INSTANCE_DRIVER=aws; docs/settings.md says what it is`]),
	[(c) => c.settings.LEASEHOLD_CREDENTIALS === "true" && !KEY.test(c.settings.LEASEHOLD_CREDENTIALS_KEY_ARN ?? ""),
		"settings.LEASEHOLD_CREDENTIALS_KEY_ARN: is needed with settings.LEASEHOLD_CREDENTIALS=true; right is: the ARN of a customer managed key of KMS"],
	[(c) => !!c.vpcId && (c.privateSubnetIds.length < 2 || c.privateSubnetIds.length !== c.publicSubnetIds.length),
		"privateSubnetIds, publicSubnetIds: two or more each, as many of one as of the other"],
	[(c) => !!c.vpcId && c.azs.length !== c.privateSubnetIds.length, "azs: as many as there are private subnets, in their order"],
	[(c) => !!c.settings.CSP_BASE_URL && !c.cspTokenSecretArn, "cspTokenSecretArn: is needed with settings.CSP_BASE_URL"],
	[(c) => !!c.accountTableArn && !c.accountTableArn.startsWith(`arn:aws:dynamodb:${c.region}:${c.account}:`),
		"accountTableArn: the table must be in the hub account and its region"],
	[(c) => !!c.account && c.account === c.orgAccount, "orgAccount: is the hub account; the service does not belong into the management account"],
];

function hasDriver(c: Context): boolean {
	return !["", "off"].includes(c.settings.LEASEHOLD_INSTANCE_DRIVER ?? "");
}

function fits(cpu: number, memory: number): boolean {
	const [from, to, step] = FARGATE[cpu] ?? [0, 0, 1];
	return memory >= from && memory <= to && memory % step === 0;
}

export class ContextError extends Error {
	constructor(readonly problems: string[]) {
		super(`the context has problems:\n${problems.map((p) => `  ${p}`).join("\n")}`);
	}
}

// One value as its row wants it; lists are also texts with commas, since -c has nothing else.
function read(row: Row, raw: unknown, problems: string[]): unknown {
	const values = row.kind === "list" && typeof raw === "string" ? raw.split(",").map((v) => v.trim()) : Array.isArray(raw) ? raw : [raw];
	for (const value of values)
		if ((row.kind !== "list" && Array.isArray(raw)) || !["string", "number", "boolean"].includes(typeof value) || !row.like.test(String(value)))
			problems.push(`${row.name}: ${JSON.stringify(value)} is wrong; right is: ${row.right}`);
	switch (row.kind) {
	case "list": return values;
	case "number": return Number(raw);
	case "boolean": return String(raw) === "true";
	default: return String(raw);
	}
}

// Of "settings" or "guardSettings", an object, and of "settings.NAME" and the like.
function readSettings(all: Record<string, unknown>, of: string, problems: string[]): Record<string, string> {
	const ret: Record<string, string> = {};
	const single = Object.entries(all).filter(([name]) => name.startsWith(`${of}.`)).map(([name, value]) => [name.slice(of.length + 1), value] as const);
	for (const [name, value] of [...Object.entries((all[of] as object) ?? {}), ...single]) {
		const kind = SETTINGS.get(name);
		if (!kind)
			problems.push(`${of}.${name}: there is no such setting; docs/settings.md has all`);
		else if (OURS.test(name))
			problems.push(`${of}.${name}: is decided by the stacks`);
		else if (isSecret(name) && !REFERENCE.test(String(value)))
			problems.push(`${of}.${name}: is a secret; right is: secretsmanager:NAME`);
		else
			ret[name] = String(value);
	}
	return ret;
}

function readFileOf(path: unknown, problems: string[]): Record<string, unknown> {
	try {
		const found: unknown = JSON.parse(readFileSync(String(path), "utf8"));
		if (found && typeof found === "object" && !Array.isArray(found))
			return found as Record<string, unknown>;
		problems.push(`file: ${path} is not a JSON object`);
	} catch (e) {
		problems.push(`file: ${(e as Error).message}`);
	}
	return {};
}

// given: all of CDK's context; its own flags have a colon.
export function readContext(given: Record<string, unknown>): Context {
	const problems: string[] = [];
	const { file, ...direct } = Object.fromEntries(Object.entries(given).filter(([name]) => !name.includes(":")));
	const all: Record<string, unknown> = { ...(file === undefined ? {} : readFileOf(file, problems)), ...direct };

	for (const name of Object.keys(all))
		if (!/^(settings|guardSettings)(\.|$)/.test(name) && !ROWS.some((row) => row.name === name))
			problems.push(`${name}: is not known; known are ${ROWS.map((row) => row.name).join(", ")}, settings.NAME and guardSettings.NAME`);

	const value = (name: string) => all[name] ?? ROWS.find((row) => row.name === name)!.fallback;
	const asked: Asked = {
		part: (name) => String(value("parts")).split(",").includes(name),
		is: (name, wanted) => value(name) === wanted,
		given: (name) => all[name] !== undefined,
	};
	const ret: Record<string, unknown> = {
		settings: readSettings(all, "settings", problems), guardSettings: readSettings(all, "guardSettings", problems),
	};
	for (const row of ROWS) {
		const raw = value(row.name);
		if (raw !== undefined && raw !== "")
			ret[row.name] = read(row, raw, problems);
		else {
			ret[row.name] = row.kind === "list" ? [] : "";
			if (row.neededBy ? row.neededBy(asked) : true)
				problems.push(`${row.name}: is missing; right is: ${row.right}`);
		}
	}
	if (!(ret.azs as string[]).length)
		ret.azs = ["a", "b"].map((zone) => String(ret.region) + zone);
	const context = ret as unknown as Context;
	for (const [isWrong, problem] of RULES)
		if (isWrong(context))
			problems.push(problem);
	if (problems.length)
		throw new ContextError(problems);
	return context;
}
