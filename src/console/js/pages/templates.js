// SPDX-License-Identifier: Apache-2.0
// What leases are made from.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { number } from "../format.js";
import { card, empty, heading, pager, table } from "../parts.js";
import { budget, hours } from "./lease-parts.js";

const PAGE = 100;

const count = (t) => (t.budgetThresholds?.length ?? 0) + (t.durationThresholds?.length ?? 0);

const columns = [
	{ title: "Name", lead: true, cell: (t) => h("a", { href: `/templates/${part(t.uuid)}` }, t.name) },
	{ title: "Description", class: "text-cell", cell: (t) => t.description },
	{ title: "Visible to", cell: (t) => (t.visibility === "PRIVATE" ? "managers only" : "everyone") },
	{ title: "Approval", cell: (t) => (t.requiresApproval ? "by a manager" : "automatic") },
	{ title: "Budget", by: (t) => t.maxSpend ?? Infinity, num: true, cell: (t) => budget(t.maxSpend) },
	{ title: "Duration", by: (t) => t.leaseDurationInHours ?? Infinity, num: true, cell: (t) => hours(t.leaseDurationInHours) },
	{ title: "Thresholds", by: count, num: true, cell: (t) => number(count(t)) },
	{ title: "Cost group", cell: (t) => t.costReportGroup },
];

const make = () => h("a", { class: "button primary", href: "/templates/new" }, "New template");

export default async function page(ctx) {
	const found = await api.page("/api/leaseTemplates", "result", { pageSize: PAGE, cursor: ctx.query.cursor }, { signal: ctx.signal });
	return [
		heading("Templates", { sub: "What people can request: duration, budget and approval", actions: make() }),
		card("Templates", { class: "flush" }, table(columns, found.items, { caption: "Templates",
			none: empty("No templates", "People can only request a lease from a template.", make()) })),
		found.items.length > 0 && pager({ cursor: ctx.query.cursor, next: found.next, count: found.items.length, what: found.items.length === 1 ? "template" : "templates",
			href: (cursor) => ctx.hrefWith({ cursor }) }),
	];
}
