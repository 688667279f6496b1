// SPDX-License-Identifier: Apache-2.0
// Instances of all tenants: where each stands and how many of its tasks run.
import * as api from "../api.js";
import { h } from "../dom.js";
import { ago, words } from "../format.js";
import { button, card, empty, field, heading, loader, pager, select, table, toast } from "../parts.js";
import { createInstance, instanceHref, siteLink, stateBadge, statuses, tasks } from "./instance-parts.js";

const PAGE = 50, LOOKS = 20, FRESH_MS = 3000;

const columns = [
	{ title: "Tenant", lead: true, cell: (i) => [h("a", { href: instanceHref(i.instanceId) }, i.tenantId), h("span", { class: "sub-line" }, i.organizationName)] },
	{ title: "State", cell: (i) => [stateBadge(i), i.provisioningState !== i.status && h("span", { class: "sub-line" }, words(i.provisioningState))] },
	{ title: "Tasks", class: "wide-cell", cell: tasks },
	{ title: "Tier", cell: (i) => words(i.tier) },
	{ title: "Site", class: "text-cell", cell: (i) => siteLink(i) || undefined },
	{ title: "Changed", cell: (i) => ago(i.updatedAt) },
];

// The server passes over what does not match, so a page of its may be short, or empty, and not the last.
async function find(ctx) {
	const { status, tenant } = ctx.query, items = [];
	let cursor = ctx.query.cursor;
	for (let looks = 0; looks < LOOKS; looks++) {
		const got = await api.page("/v1/ops/instances", "instances", { status, tenant, limit: PAGE - items.length, cursor }, { signal: ctx.signal });
		items.push(...got.items);
		cursor = got.next;
		if (!cursor || items.length >= PAGE) break;
	}
	return { items, next: cursor };
}

const filters = (ctx) => h("form", { class: "filters", role: "search", on: { submit: (e) => e.preventDefault() } },
	field("Tenant", h("input", { name: "tenant", type: "search", value: ctx.query.tenant ?? "", placeholder: "Full name of a tenant", autocomplete: "off", maxlength: 63,
		on: { change: (e) => ctx.setQuery({ tenant: e.target.value.trim(), cursor: "" }) } })),
	field("State", select("status", [["", "All"], ...statuses.map((s) => [s, words(s)])], ctx.query.status ?? "", (status) => ctx.setQuery({ status, cursor: "" }))));

const create = (ctx) => button("New instance", { kind: "primary", run: async () => {
	const made = await createInstance();
	if (!made) return;
	toast(`${made.tenantId} is being provisioned.`);
	ctx.go(instanceHref(made.instanceId));
} });

const nothing = (ctx) => (ctx.query.status || ctx.query.tenant
	? empty("No matching instances", "Choose another state or tenant.", h("a", { class: "button", href: "/instances" }, "Show all"))
	: empty("No instances yet", "An instance is a WordPress site of its own for one tenant.", create(ctx)));

export default async function page(ctx) {
	const list = h("div");
	ctx.every(FRESH_MS, loader(list, async () => {
		const found = await find(ctx);
		return [
			card(ctx.query.status || ctx.query.tenant ? "Matching instances" : "All instances", { class: "flush" }, table(columns, found.items, { caption: "Instances", none: nothing(ctx) })),
			(found.items.length > 0 || found.next) && pager({ cursor: ctx.query.cursor, next: found.next, count: found.items.length, what: found.items.length === 1 ? "instance" : "instances",
				href: (cursor) => ctx.hrefWith({ cursor }) }),
		];
	}));
	return [heading("Instances", { sub: "A WordPress site for each tenant", actions: [h("a", { class: "button", href: "/instances/states" }, "States"), create(ctx)] }), filters(ctx), list];
}
