// SPDX-License-Identifier: Apache-2.0
// What is going on. Operators and admins see the pool and the machine, live; everybody who has leases sees his own, and what waits for him.
import { h } from "../dom.js";
import { heading } from "../parts.js";
import { leasesPart } from "./overview-leases.js";
import { eventsPart, machinePart } from "./overview-machine.js";

export default async function page(ctx) {
	const machine = ctx.rights.operations ? machinePart(ctx) : null;
	const [leases, events] = await Promise.all([
		ctx.rights.leases && leasesPart(ctx),
		machine && eventsPart(ctx, machine.soon),
	]);
	return [heading("Overview"), h("div", { class: "stack" }, machine?.element, leases, events)];
}
