// SPDX-License-Identifier: Apache-2.0
// What must outlive everything else: tables, secrets, backups. Nothing here is ever removed by removing the stack, unless the env is one for development.
import {
	aws_backup as backup, aws_dynamodb as dynamodb, aws_events as events, aws_kms as kms, aws_secretsmanager as secretsmanager,
	CfnOutput, Duration, RemovalPolicy, type Environment,
} from "aws-cdk-lib";
import type { Construct } from "constructs";
import type { Context } from "./context.js";
import { acknowledge, GUARD_PREFIX, guardSynthesizer, LeaseholdStack, removal, SERVICE_PREFIX } from "./parts.js";

const UNITS_MAX = 10000; // reads and writes a second that on-demand capacity may grow to: a mistake has a price limit
const MAXIMUM = { maxReadRequestUnits: UNITS_MAX, maxWriteRequestUnits: UNITS_MAX };
const DAYS = 35;

const TEXT = dynamodb.AttributeType.STRING;

// As src/store/dynamodb/ddb_tables.c makes and checks them.
const POOL_INDEXES: [string, string][] = [["StatusIndex", "status"], ["TrackIndex", "allocated_to_track"], ["IdempotencyIndex", "idempotency_key"]];

export class DataStack extends LeaseholdStack {
	readonly poolName: string;
	readonly kernelName: string;
	readonly secrets: Record<string, secretsmanager.ISecret> = {};
	readonly key: kms.Key | undefined;

	constructor(scope: Construct, context: Context, env: Environment, private readonly prefix: string) {
		super(scope, prefix === SERVICE_PREFIX ? `LeaseholdData-${context.env}` : `${prefix}-data-${context.env}`, context, {
			env, terminationProtection: context.retain, description: "Leasehold: tables and secrets; keep it",
			...(prefix === GUARD_PREFIX ? { synthesizer: guardSynthesizer(context) } : {}),
		});
		if (context.cmk)
			this.key = new kms.Key(this, "Key", { alias: `${prefix}-${context.env}`, enableKeyRotation: true, removalPolicy: removal(context) });
		const isGuards = prefix === GUARD_PREFIX;
		this.kernelName = `${prefix}-kernel-${context.env}`;
		this.poolName = isGuards ? `${prefix}-pool-${context.env}` : context.poolTableName || `sandbox-broker-pool-${context.env}`;
		const kernel = this.table("Kernel", this.kernelName);
		for (const n of [1, 2, 3])
			kernel.addGlobalSecondaryIndex({
				indexName: `Index${n}`, partitionKey: { name: `g${n}h`, type: TEXT }, sortKey: { name: `g${n}s`, type: TEXT }, ...MAXIMUM,
			});
		const pool = !isGuards && context.poolTableName ? dynamodb.Table.fromTableName(this, "Pool", context.poolTableName) : this.poolTable(this.poolName);
		for (const name of ["api-token", "admin-token", ...(isGuards ? [] : ["inbox-token", "jwt-secret"])])
			this.secrets[name] = this.secret(name);
		if (!isGuards && context.cspTokenSecretArn)
			this.secrets["csp-token"] = secretsmanager.Secret.fromSecretCompleteArn(this, "csp-token", context.cspTokenSecretArn);
		if (context.retain)
			this.backups([kernel, pool]);
		new CfnOutput(this, "KernelTable", { value: kernel.tableName });
		new CfnOutput(this, "PoolTable", { value: pool.tableName });
	}

	// By their names: a table that another stack imports could not be replaced.
	get tableArns(): string[] {
		return [this.poolName, this.kernelName].map((name) => `arn:aws:dynamodb:${this.region}:${this.account}:table/${name}`);
	}

	private table(id: string, name: string): dynamodb.Table {
		return new dynamodb.Table(this, id, {
			tableName: name, partitionKey: { name: "PK", type: TEXT }, sortKey: { name: "SK", type: TEXT }, billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
			...MAXIMUM, timeToLiveAttribute: "ttl", removalPolicy: removal(this.context), deletionProtection: this.context.retain,
			pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true, recoveryPeriodInDays: DAYS },
			...(this.key ? { encryption: dynamodb.TableEncryption.CUSTOMER_MANAGED, encryptionKey: this.key } : {}),
		});
	}

	private poolTable(name: string): dynamodb.Table {
		const table = this.table("Pool", name);
		for (const [index, attribute] of POOL_INDEXES)
			table.addGlobalSecondaryIndex({
				indexName: index, partitionKey: { name: attribute, type: TEXT }, sortKey: { name: "allocated_at", type: dynamodb.AttributeType.NUMBER }, ...MAXIMUM,
			});
		return table;
	}

	private secret(name: string): secretsmanager.Secret {
		const secret = new secretsmanager.Secret(this, name, {
			secretName: `${this.prefix}/${this.context.env}/${name}`, generateSecretString: { passwordLength: 48, excludePunctuation: true },
			removalPolicy: removal(this.context),
		});
		acknowledge(secret, "two tokens are valid at once, so they are changed by hand, callers first: docs/settings.md", "SMG4");
		return secret;
	}

	private backups(tables: dynamodb.ITable[]): void {
		const vault = new backup.BackupVault(this, "Vault", { backupVaultName: `${this.prefix}-${this.context.env}`, removalPolicy: RemovalPolicy.RETAIN });
		const plan = new backup.BackupPlan(this, "Backups", {
			backupPlanName: `${this.prefix}-${this.context.env}`, backupVault: vault, backupPlanRules: [new backup.BackupPlanRule({
				ruleName: "daily", scheduleExpression: events.Schedule.cron({ hour: "3", minute: "10" }), deleteAfter: Duration.days(DAYS),
			})],
		});
		const selection = plan.addSelection("Tables", {
			resources: tables.map((table) => backup.BackupResource.fromDynamoDbTable(table)),
		});
		acknowledge(selection, "AWS's own policy for its backup service",
			"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSBackupServiceRolePolicyForBackup]");
	}
}
