// SPDX-License-Identifier: Apache-2.0
// One box for everything: people, accounts, leases and sandboxes that have the text in a name, an id or an address. Each part is asked for only
// where the reader may see it.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { ago } from "../format.js";
import { badge, card, empty, heading, loader, table } from "../parts.js";
import { leaseBadge, leaseHref } from "./lease-parts.js";
import { stateBadge } from "./sandboxes.js";

const SHOWN = 20, MOST = 2000;

const has = (text, ...values) => values.some((v) => v && String(v).toLowerCase().includes(text));

async function sandboxes(q, options) {
	const items = [];
	let cursor;
	do {
		const got = await api.page("/v1/admin/sandboxes", "sandboxes", { q, limit: 100, cursor }, options);
		items.push(...got.items);
		cursor = got.next;
	} while (cursor && items.length < SHOWN);
	return items;
}

const kinds = [
	{ title: "Sandboxes", right: "sandboxes", find: (q, text, options) => sandboxes(q, options), columns: [
		{ title: "Name", lead: true, cell: (s) => h("a", { href: `/sandboxes/${part(s.sandbox_id)}` }, s.name) },
		{ title: "State", cell: stateBadge }, { title: "Held by", cell: (s) => s.allocated_to_track }, { title: "Id", cell: (s) => h("code", {}, s.sandbox_id) }] },
	{ title: "Leases", right: "leases", find: async (q, text, options, ctx) => (await api.all("/api/leases", "result", { pageSize: MOST, userEmail: ctx.rights.approve ? undefined : ctx.session.email }, MOST, options))
		.filter((l) => has(text, l.userEmail, l.uuid, l.originalLeaseTemplateName, l.awsAccountId, l.comments)), columns: [
		{ title: "Lease", lead: true, cell: (l) => h("a", { href: leaseHref(l.leaseId) }, l.originalLeaseTemplateName) },
		{ title: "Owner", cell: (l) => l.userEmail }, { title: "Status", cell: leaseBadge }, { title: "Account", cell: (l) => l.awsAccountId && h("code", {}, l.awsAccountId) },
		{ title: "Requested", cell: (l) => ago(l.meta.createdTime) }] },
	{ title: "Accounts", right: "accounts", find: async (q, text, options) => (await api.all("/api/accounts", "result", { pageSize: MOST }, MOST, options))
		.filter((a) => has(text, a.awsAccountId, a.name, a.email, a.leaseUuid)), columns: [
		{ title: "Account", lead: true, cell: (a) => h("a", { href: `/accounts/${part(a.awsAccountId)}` }, a.awsAccountId) },
		{ title: "Name", cell: (a) => a.name }, { title: "Status", cell: (a) => badge(a.phase ?? a.status) }] },
	{ title: "People", right: "operations", find: async (q, text, options) => (await api.all("/v1/ops/people", "people", { limit: 100 }, MOST, options))
		.filter((p) => has(text, p.email, p.display_name)), columns: [
		{ title: "Email", lead: true, cell: (p) => h("a", { href: `/leases?owner=${encodeURIComponent(p.email)}` }, p.email) },
		{ title: "Name", cell: (p) => p.display_name }, { title: "Roles", cell: (p) => (Array.isArray(p.roles) ? p.roles.join(", ") : p.roles) }] },
];

export default function page(ctx) {
	const q = (ctx.query.q ?? "").trim();
	ctx.title(q ? `Search for ${q}` : "Search");
	if (!q) return [heading("Search"), empty("Nothing to search for yet", "Type a name, an address or an id into the box above.")];
	const place = h("div", { class: "stack" });
	loader(place, async () => {
		const shown = kinds.filter((k) => ctx.rights[k.right]);
		const found = await Promise.all(shown.map((k) => k.find(q, q.toLowerCase(), { signal: ctx.signal }, ctx)));
		const boxes = shown.map((k, i) => found[i].length > 0 && card(k.title, { class: "flush", more: found[i].length > SHOWN ? `the first ${SHOWN}` : `${found[i].length}` },
			table(k.columns, found[i].slice(0, SHOWN), { caption: `${k.title} that match` })));
		return boxes.some(Boolean) ? boxes : empty("Nothing matches", `No name, address or id you can see contains "${q}".`);
	});
	return [heading(`Search for ${q}`), place];
}
