// SPDX-License-Identifier: Apache-2.0
// The overview's part about leases: one's own with their money and time; for managers, what waits for their decision.
import * as api from "../api.js";
import { h } from "../dom.js";
import { ago, money } from "../format.js";
import { card, empty, meter, table } from "../parts.js";
import { isOpen, leaseBadge, leaseHref } from "./lease-parts.js";

const OWN = 50, WAITING = 20;

const spend = (l) => meter(l.totalCostAccrued ?? 0, l.maxSpend ?? 0, {
	label: `Spend of ${l.originalLeaseTemplateName}`,
	text: l.maxSpend ? `${money(l.totalCostAccrued ?? 0)} of ${money(l.maxSpend)}` : `${money(l.totalCostAccrued ?? 0)}, no limit`,
});

const columns = [
	{ title: "Template", lead: true, cell: (l) => h("a", { href: leaseHref(l.leaseId) }, l.originalLeaseTemplateName) },
	{ title: "Status", cell: leaseBadge },
	{ title: "Account", cell: (l) => l.awsAccountId && h("code", {}, l.awsAccountId) },
	{ title: "Spend", by: (l) => l.totalCostAccrued, cell: (l) => l.awsAccountId && spend(l) },
	{ title: "Ends", cell: (l) => l.expirationDate && ago(l.expirationDate) },
];

const waitingColumns = [
	{ title: "Who", lead: true, cell: (l) => h("a", { href: leaseHref(l.leaseId) }, l.userEmail) },
	{ title: "Template", cell: (l) => l.originalLeaseTemplateName },
	{ title: "Purpose", cell: (l) => l.comments },
	{ title: "Requested", cell: (l) => l.meta?.createdTime && ago(l.meta.createdTime) },
];

export async function leasesPart(ctx) {
	const options = { signal: ctx.signal };
	const [own, waiting] = await Promise.all([
		api.page("/api/leases", "result", { userEmail: ctx.session.email, pageSize: OWN }, options),
		ctx.rights.approve ? api.page("/api/leases", "result", { status: "PendingApproval", pageSize: WAITING }, options) : null,
	]);
	const mine = own.items.filter(isOpen);
	// Who sees the machine too is not told twice that there is nothing.
	const isBrief = ctx.rights.operations;
	const cards = [
		waiting && (waiting.items.length || !isBrief) && card("Waiting for approval", { more: waiting.items.length ? h("a", { href: "/approvals" }, `Review ${waiting.items.length}${waiting.next ? " or more" : ""} ${waiting.items.length === 1 && !waiting.next ? "request" : "requests"}`) : null },
			table(waitingColumns, waiting.items, { caption: "Requests to review", none: empty("No requests to review") })),
		(mine.length || !isBrief) && card("My leases", { more: mine.length ? h("a", { href: "/leases/new" }, "Request a lease") : null }, table(columns, mine, { caption: "My leases", none: empty("You have no leases", "A lease gives you an account of your own for a limited time.", h("a", { class: "button primary", href: "/leases/new" }, "Request a lease")) })),
	].filter(Boolean);
	return cards.length > 0 && h("div", { class: "stack" }, cards);
}
