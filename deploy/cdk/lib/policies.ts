// SPDX-License-Identifier: Apache-2.0
// The policies in deploy/aws, with their words in braces filled in. They are the only source: no permission of a call to AWS is written down here, except
// those on our own two tables (docs/dynamodb.md), whose names the deployment decides.
import { readFileSync } from "node:fs";

export type Words = Record<string, string | string[]>;

export interface Statement {
	Sid: string;
	Effect: string;
	Action: string[];
	Resource?: string | string[];
	Principal?: unknown;
	Condition?: unknown;
}

export interface Document {
	Version: string;
	Statement: Statement[];
}

const WORD = /\{([A-Z_]+)\}/g;

export function source(name: string): Document {
	return JSON.parse(readFileSync(new URL(`../../../aws/${name}.json`, import.meta.url), "utf8")) as Document;
}

// The texts that this one stands for: several when a word has several values, none when one has no value. A value that is an ARN already stands for the whole.
function expand(text: string, words: Words): string[] {
	const word = [...text.matchAll(WORD)][0];
	if (!word)
		return [text];
	return [words[word[1]!] ?? []].flat().flatMap((value) => expand(value.startsWith("arn:") ? value : text.replaceAll(word[0], value), words));
}

function fill(value: unknown, words: Words): unknown {
	if (typeof value === "string") {
		const found = expand(value, words);
		if (found.length !== 1)
			throw new Error(`a policy has ${value}, for which there is no value`);
		return found[0];
	}
	if (Array.isArray(value))
		return value.flatMap((entry) => (typeof entry === "string" ? expand(entry, words) : [fill(entry, words)]));
	if (value && typeof value === "object")
		return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, fill(v, words)]));
	return value;
}

// The policy, or those of its statements that are named. Resources whose words have no value are left out; a statement that has none left is a mistake.
export function policy(name: string, words: Words, sids?: string[], resources?: (arn: string) => boolean): Document {
	const document = source(name);
	const unknown = sids?.filter((sid) => !document.Statement.some((s) => s.Sid === sid)) ?? [];
	if (unknown.length)
		throw new Error(`deploy/aws/${name}.json has no statement ${unknown.join(", ")}`);
	const filled = document.Statement.filter((s) => !sids || sids.includes(s.Sid)).map((s) => fill(s, words) as Statement);
	for (const s of filled) {
		if (Array.isArray(s.Resource)) {
			s.Resource = s.Resource.filter((arn) => !resources || resources(arn));
			if (!s.Resource.length)
				throw new Error(`deploy/aws/${name}.json: nothing is left of the resources of ${s.Sid}`);
		}
	}
	return { Version: document.Version, Statement: filled };
}

// Our own tables, and that of tenants where there is one: what docs/dynamodb.md says a node needs.
export function tables(arns: string[], key?: string, tenants?: string): Document {
	const actions = ["GetItem", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem", "Query", "Scan", "DescribeTable"].map((a) => `dynamodb:${a}`);
	const statements: Statement[] = [
		{ Sid: "OwnTables", Effect: "Allow", Action: actions, Resource: arns },
		{ Sid: "OwnIndexes", Effect: "Allow", Action: ["dynamodb:Query"], Resource: arns.map((arn) => `${arn}/index/*`) },
	];
	if (tenants)
		statements.push({ Sid: "TenantTable", Effect: "Allow", Action: ["PutItem", "DeleteItem"].map((a) => `dynamodb:${a}`), Resource: [tenants] });
	if (key)
		statements.push({ Sid: "OwnTablesKey", Effect: "Allow", Action: ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:DescribeKey"], Resource: [key] });
	return { Version: "2012-10-17", Statement: statements };
}
