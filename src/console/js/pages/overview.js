// SPDX-License-Identifier: Apache-2.0
// What is going on. Operators and admins see the pool and the machine, live; everybody who has leases sees his own, and what waits for him.
import * as api from "../api.js";
import { h } from "../dom.js";
import { heading } from "../parts.js";
import { leasesPart } from "./overview-leases.js";
import { machinePart } from "./overview-machine.js";

export default async function page(ctx) {
	const parts = await Promise.all([
		ctx.rights.operations && machinePart(ctx),
		ctx.rights.leases && leasesPart(ctx),
	]);
	return [heading("Overview", { sub: `Leasehold ${api.service.version}` }), h("div", { class: "stack wide-gap" }, parts)];
}
