// SPDX-License-Identifier: Apache-2.0
// The overview's part about leases: one's own with their money and time; for managers, what waits for their decision.
import * as api from "../api.js";
import { h } from "../dom.js";
import { ago, money } from "../format.js";
import { badge, card, empty, meter, table } from "../parts.js";
import { leaseHref } from "./lease-parts.js";

const OWN = 50, WAITING = 20;
const open = ["PendingApproval", "Provisioning", "Active", "Frozen"];

const spend = (l) => meter(l.totalCostAccrued ?? 0, l.maxSpend ?? 0, {
	label: `Spend of ${l.originalLeaseTemplateName}`,
	text: l.maxSpend ? `${money(l.totalCostAccrued ?? 0)} of ${money(l.maxSpend)}` : `${money(l.totalCostAccrued ?? 0)}, no limit`,
});

const columns = [
	{ title: "From template", lead: true, cell: (l) => h("a", { href: leaseHref(l.leaseId) }, l.originalLeaseTemplateName) },
	{ title: "Status", cell: (l) => badge(l.status) },
	{ title: "Account", cell: (l) => l.awsAccountId && h("code", {}, l.awsAccountId) },
	{ title: "Spend", cell: spend },
	{ title: "Ends", cell: (l) => l.expirationDate && ago(l.expirationDate) },
];

const waitingColumns = [
	{ title: "Who", lead: true, cell: (l) => h("a", { href: leaseHref(l.leaseId) }, l.userEmail) },
	{ title: "From template", cell: (l) => l.originalLeaseTemplateName },
	{ title: "Why", cell: (l) => l.comments },
	{ title: "Asked", cell: (l) => l.meta?.createdTime && ago(l.meta.createdTime) },
];

export async function leasesPart(ctx) {
	const options = { signal: ctx.signal };
	const [own, waiting] = await Promise.all([
		api.page("/api/leases", "result", { userEmail: ctx.session.email, pageSize: OWN }, options),
		ctx.rights.approve ? api.page("/api/leases", "result", { status: "PendingApproval", pageSize: WAITING }, options) : null,
	]);
	const mine = own.items.filter((l) => open.includes(l.status));
	// Who sees the machine too is not told twice that there is nothing.
	const isBrief = ctx.rights.operations;
	const cards = [
		waiting && (waiting.items.length || !isBrief) && card("Waiting for approval", { more: waiting.items.length ? h("a", { href: "/approvals" }, `Decide ${waiting.items.length}${waiting.next ? " or more" : ""}`) : null },
			table(waitingColumns, waiting.items, { caption: "Requests that wait for approval", none: empty("Nothing waits for approval") })),
		(mine.length || !isBrief) && card("My leases", {}, table(columns, mine, { caption: "My leases", none: empty("You have no lease", "A lease gives you an account of your own for a while.", h("a", { class: "button primary", href: "/leases/new" }, "Request a lease")) })),
	].filter(Boolean);
	return cards.length > 0 && h("div", { class: "stack" }, cards);
}
