// SPDX-License-Identifier: Apache-2.0
import { App } from "aws-cdk-lib";
import { build } from "../lib/app.js";
import { ContextError } from "../lib/context.js";

try {
	build(new App());
} catch (e) {
	if (!(e instanceof ContextError))
		throw e;
	console.error(`leasehold: ${e.message}`);
	process.exit(2);
}
