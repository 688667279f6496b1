// SPDX-License-Identifier: Apache-2.0
// All stacks of one env. Their order of deployment is that of their names here; they are removed in reverse.
import { Validations, type App } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import { readContext, type Context } from "./context.js";
import { DataStack } from "./data.js";
import { HubStack, OrgStack } from "./guard.js";
import { InstancesStack } from "./instances.js";
import { GUARD_PREFIX, SERVICE_PREFIX, type LeaseholdStack } from "./parts.js";
import { PipelineStack } from "./pipeline.js";
import { ServiceStack } from "./service.js";

export function build(app: App): LeaseholdStack[] {
	const context: Context = readContext(app.node.getAllContext());
	const env = { account: context.account, region: context.region };
	const made: LeaseholdStack[] = [];

	if (context.parts.includes("pipeline"))
		made.push(new PipelineStack(app, context, env));
	if (context.parts.includes("service")) {
		const data = new DataStack(app, context, env, SERVICE_PREFIX);
		made.push(data, new ServiceStack(app, context, env, data));
	}
	if (context.parts.includes("instances"))
		made.push(new InstancesStack(app, context, env));
	if (context.parts.includes("guard")) {
		const data = new DataStack(app, context, env, GUARD_PREFIX);
		const hub = new HubStack(app, context, env, data);
		const org = new OrgStack(app, context);
		org.addStackDependency(hub, "its trust names a role of the hub, and it sends to its bus");
		made.push(data, hub, org);
	}
	Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
	return made;
}

