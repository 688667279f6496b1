// SPDX-License-Identifier: Apache-2.0
// One box for everything: people, accounts, leases and sandboxes that have the text in a name, an id or an address. Each part is asked for only
// where the reader may see it.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { ago, number } from "../format.js";
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
	} while (cursor && items.length <= SHOWN);
	return { items, next: null };
}

// What matches among the first of a list that the server does not search.
async function among(options, isFound, path, key, query) {
	const { items, next } = await api.upTo(MOST, path, key, query, options);
	return { items: items.filter(isFound), next };
}

const kinds = [
	{ title: "Sandboxes", right: "sandboxes", find: (q, text, options) => sandboxes(q, options), columns: [
		{ title: "Name", lead: true, cell: (s) => h("a", { href: `/sandboxes/${part(s.sandbox_id)}` }, s.name) },
		{ title: "State", cell: stateBadge }, { title: "Held by", cell: (s) => s.allocated_to_track }, { title: "Id", cell: (s) => h("code", {}, s.sandbox_id) }] },
	{ title: "Leases", right: "leases", find: (q, text, options, ctx) => among(options, (l) => has(text, l.userEmail, l.uuid, l.originalLeaseTemplateName, l.awsAccountId, l.comments),
		"/api/leases", "result", { pageSize: MOST, userEmail: ctx.rights.approve ? undefined : ctx.session.email }), columns: [
		{ title: "Lease", lead: true, cell: (l) => h("a", { href: leaseHref(l.leaseId) }, l.originalLeaseTemplateName) },
		{ title: "Owner", cell: (l) => l.userEmail }, { title: "Status", cell: leaseBadge }, { title: "Account", cell: (l) => l.awsAccountId && h("code", {}, l.awsAccountId) },
		{ title: "Requested", cell: (l) => ago(l.meta.createdTime) }] },
	{ title: "Accounts", right: "accounts", find: (q, text, options) => among(options, (a) => has(text, a.awsAccountId, a.name, a.email, a.leaseUuid),
		"/api/accounts", "result", { pageSize: MOST }), columns: [
		{ title: "Account", lead: true, cell: (a) => h("a", { href: `/accounts/${part(a.awsAccountId)}` }, a.awsAccountId) },
		{ title: "Name", cell: (a) => a.name }, { title: "Status", cell: (a) => badge(a.phase ?? a.status) }] },
	{ title: "People", right: "operations", find: (q, text, options) => among(options, (p) => has(text, p.email, p.display_name),
		"/v1/ops/people", "people", { limit: 100 }), columns: [
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
		const boxes = shown.map((k, i) => found[i].items.length > 0 && card(k.title, { class: "flush", more: found[i].items.length > SHOWN ? `the first ${SHOWN}` : `${found[i].items.length}` },
			table(k.columns, found[i].items.slice(0, SHOWN), { caption: `${k.title} that match` })));
		const cut = shown.filter((k, i) => found[i].next).map((k) => k.title.toLowerCase());
		return [boxes.some(Boolean) ? boxes : empty("Nothing matches", `No name, address or id you can see contains "${q}".`),
			cut.length > 0 && h("p", { class: "dim" }, `Only the first ${number(MOST)} were searched of: ${cut.join(", ")}.`)];
	});
	return [heading(`Search for ${q}`), place];
}
