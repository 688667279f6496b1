// SPDX-License-Identifier: Apache-2.0
// The stacks of prod.json, dev.json and whole.json, synthesized once for all tests of a file.
import { App } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "../lib/app.js";

export const HERE = new URL("../../", import.meta.url); // deploy/cdk
export const ROOT = new URL("../../", HERE);

export interface Resource {
	stack: string;
	id: string;
	Type: string;
	Properties: Record<string, any>;
	DeletionPolicy?: string;
	UpdateReplacePolicy?: string;
}

export function read(path: string): any {
	return JSON.parse(readFileSync(new URL(path, HERE), "utf8"));
}

export const FLAGS: Record<string, unknown> = { ...read("cdk.json").context, "aws:cdk:enable-path-metadata": false };

let made = 0;

export function synthesize(context: Record<string, unknown>, change?: (app: App) => void) {
	const app = new App({ context: { ...FLAGS, ...context }, analyticsReporting: false, outdir: pathOf(`build/out/${made++}`) });
	const stacks = build(app);
	change?.(app);
	const assembly = app.synth();
	const templates = new Map(stacks.map((s) => [s.stackName, assembly.getStackByName(s.stackName).template as any]));
	return { stacks, templates, folder: assembly.directory };
}

// Of one env: its templates by the stack's name, and all their resources.
export class Deployment {
	readonly context: any;
	readonly templates: Map<string, any>;
	readonly folder: string;

	constructor(env: string, change: Record<string, unknown> = {}) {
		this.context = { ...read(`test/${env}.json`), ...change };
		({ templates: this.templates, folder: this.folder } = synthesize(this.context));
	}

	template(name: string): Template {
		return Template.fromJSON(this.templates.get(`${name}-${this.context.env}`));
	}

	resources(type?: string): Resource[] {
		return [...this.templates].flatMap(([stack, t]) => Object.entries<any>(t.Resources).map(([id, r]) => ({ Properties: {}, ...r, stack, id })))
			.filter((r) => !type || r.Type === type);
	}
}

export const pathOf = (name: string) => fileURLToPath(new URL(name, HERE));
