// SPDX-License-Identifier: Apache-2.0
// Leases: one's own, or for managers everybody's. The API filters by status and owner; by template, or by a part of an owner's address,
// we filter here, among the newest that match the rest.
import * as api from "../api.js";
import { h } from "../dom.js";
import { ago } from "../format.js";
import { card, empty, field, heading, loader, pager, select, table } from "../parts.js";
import { isDenied, isOpen, isPending, leaseBadge, leaseHref, spendMeter, statuses } from "./lease-parts.js";

const PAGE = 50, SEARCHED = 2000, FRESH_MS = 10000;
const isEmail = (text) => /^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(text ?? "");

const columns = (ctx) => [
	{ title: "Lease", lead: true, cell: (l) => h("a", { href: leaseHref(l.leaseId) }, l.originalLeaseTemplateName) },
	ctx.rights.approve && { title: "Owner", cell: (l) => l.userEmail },
	{ title: "Status", cell: leaseBadge },
	{ title: "Account", cell: (l) => l.awsAccountId && h("code", {}, l.awsAccountId) },
	{ title: "Spend", class: "wide-cell", cell: (l) => (isPending(l) || isDenied(l) ? undefined : spendMeter(l)) },
	{ title: "Ends", cell: (l) => (isOpen(l) ? l.expirationDate && ago(l.expirationDate) : l.endDate && ago(l.endDate)) },
	{ title: "Asked", cell: (l) => ago(l.meta.createdTime) },
].filter(Boolean);

async function find(ctx) {
	const { status, owner, template, cursor } = ctx.query;
	const options = { signal: ctx.signal };
	const userEmail = ctx.rights.approve ? (isEmail(owner) ? owner : undefined) : ctx.session.email;
	const hasPart = ctx.rights.approve && owner && !userEmail;
	if (!template && !hasPart) return api.page("/api/leases", "result", { status, userEmail, pageSize: PAGE, cursor }, options);
	const all = await api.all("/api/leases", "result", { status, userEmail, pageSize: SEARCHED }, SEARCHED, options);
	return {
		items: all.filter((l) => (!template || l.originalLeaseTemplateUuid === template) &&
			(!hasPart || l.userEmail.toLowerCase().includes(owner.toLowerCase()))).slice(0, PAGE * 4),
		next: null,
	};
}

function filters(ctx, templates) {
	const owner = ctx.rights.approve && field("Owner", h("input", { name: "owner", type: "search", value: ctx.query.owner ?? "",
		placeholder: "all, or a part of an address", autocomplete: "off", maxlength: 254,
		on: { change: (e) => ctx.setQuery({ owner: e.target.value.trim(), cursor: "" }) } }));
	if (owner) owner.classList.add("grow");
	return h("form", { class: "filters", role: "search", on: { submit: (e) => e.preventDefault() } },
		owner,
		field("Status", select("status", [["", "All"], ...statuses], ctx.query.status ?? "", (status) => ctx.setQuery({ status, cursor: "" }))),
		field("Template", select("template", [["", "All"], ...templates.map((t) => [t.uuid, t.name])], ctx.query.template ?? "",
			(template) => ctx.setQuery({ template, cursor: "" }))),
		ctx.rights.approve && ctx.query.owner !== ctx.session.email && h("a", { class: "button", href: ctx.hrefWith({ owner: ctx.session.email, cursor: "" }) }, "Only mine"));
}

const ask = () => h("a", { class: "button primary", href: "/leases/new" }, "Request a lease");

const isFiltered = (ctx) => ctx.query.status || ctx.query.owner || ctx.query.template;

function nothing(ctx) {
	return isFiltered(ctx)
		? empty("No lease matches", "Choose another status, owner or template.", h("a", { class: "button", href: "/leases" }, "Show all"))
		: empty(ctx.rights.approve ? "Nobody has asked for a lease yet" : "You have no lease yet", "A lease gives you a cloud account of your own for a while, with a budget.", ask());
}

export default async function page(ctx) {
	const templates = await api.all("/api/leaseTemplates", "result", {}, 500, { signal: ctx.signal });
	const list = h("div");
	ctx.every(FRESH_MS, loader(list, async () => {
		const found = await find(ctx);
		return [
			card(ctx.rights.approve ? (isFiltered(ctx) ? "Leases that match" : "All leases") : "My leases", { class: "flush" }, table(columns(ctx), found.items, { caption: "Leases, the newest first", none: nothing(ctx) })),
			found.items.length > 0 && pager({ cursor: ctx.query.cursor, next: found.next, count: found.items.length, what: found.items.length === 1 ? "lease" : "leases",
				href: (cursor) => ctx.hrefWith({ cursor }) }),
		];
	}));
	return [heading("Leases", { sub: ctx.rights.approve ? "Of everybody, the newest first" : "Yours, the newest first", actions: ask() }), filters(ctx, templates), list];
}
