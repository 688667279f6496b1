// SPDX-License-Identifier: Apache-2.0
// Leases: one's own, or for managers everybody's. The API filters by status and owner; by template, or by a part of an owner's address,
// we filter here, among the newest that match the rest.
import * as api from "../api.js";
import { h } from "../dom.js";
import { ago, number } from "../format.js";
import { button, card, confirm, copyable, empty, field, heading, loader, pager, select, table } from "../parts.js";
import { each, picker } from "../pick.js";
import { isDenied, isInLine, isOpen, isPending, isRunning, leaseBadge, leaseHref, leasePath, spendMeter, statuses } from "./lease-parts.js";

const PAGE = 50, SEARCHED = 2000, FOUND = 200, FRESH_MS = 10000;
const isEmail = (text) => /^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(text ?? "");

const columns = (ctx) => [
	{ title: "Lease", lead: true, cell: (l) => h("a", { href: leaseHref(l.leaseId) }, l.originalLeaseTemplateName) },
	ctx.rights.approve && { title: "Owner", cell: (l) => l.userEmail },
	{ title: "Status", cell: leaseBadge },
	{ title: "Account", cell: (l) => l.awsAccountId && copyable(l.awsAccountId) },
	{ title: "Spend", by: (l) => l.totalCostAccrued, class: "wide-cell", cell: (l) => (isPending(l) || isInLine(l) || isDenied(l) ? undefined : spendMeter(l)) },
	{ title: "Ends", cell: (l) => (isOpen(l) ? l.expirationDate && ago(l.expirationDate) : l.endDate && ago(l.endDate)) },
	{ title: "Requested", cell: (l) => ago(l.meta.createdTime) },
].filter(Boolean);

async function find(ctx) {
	const { status, owner, template, cursor } = ctx.query;
	const options = { signal: ctx.signal };
	const userEmail = ctx.rights.approve ? (isEmail(owner) ? owner : undefined) : ctx.session.email;
	const hasPart = ctx.rights.approve && owner && !userEmail;
	if (!template && !hasPart) return api.page("/api/leases", "result", { status, userEmail, pageSize: PAGE, cursor }, options);
	const all = await api.upTo(SEARCHED, "/api/leases", "result", { status, userEmail, pageSize: SEARCHED }, options);
	const found = all.items.filter((l) => (!template || l.originalLeaseTemplateUuid === template) &&
			(!hasPart || l.userEmail.toLowerCase().includes(owner.toLowerCase())));
	const said = [found.length > FOUND && `These are the first ${number(FOUND)}.`, all.next && `Only the newest ${number(all.items.length)} leases were searched.`].filter(Boolean).join(" ");
	return { items: found.slice(0, FOUND), next: null, said };
}

function filters(ctx, templates) {
	const owner = ctx.rights.approve && field("Owner", h("input", { name: "owner", type: "search", value: ctx.query.owner ?? "",
		placeholder: "Part of an email address", autocomplete: "off", maxlength: 254,
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
		? empty("No matching leases", "Choose another status, owner or template.", h("a", { class: "button", href: "/leases" }, "Show all"))
		: empty(ctx.rights.approve ? "No leases yet" : "You have no leases yet", "A lease gives you a cloud account of your own for a limited time and budget.", ask());
}

// For managers: end all that are chosen, with one reason.
function ending(again) {
	const end = button("End lease", { kind: "quiet-danger", run: () => {
		const rows = picked.rows();
		return confirm({ title: rows.length === 1 ? "End this lease now?" : `End ${rows.length} leases now?`, label: rows.length === 1 ? "End lease" : `End ${rows.length} leases`, danger: true, reason: "optional",
			text: "Access ends at once, and everything in the accounts is deleted. This cannot be undone.",
			run: (reason) => each(rows, (l) => api.post(`${leasePath(l.leaseId)}/terminate`, { reason: reason || undefined }), (count) => (count === 1 ? "Ended. The account is being cleaned." : `${count} leases ended. Their accounts are being cleaned.`)) })
			.then((did) => did && again());
	} });
	const bar = h("div", { class: "bulk", hidden: true });
	const picked = picker({ idOf: (l) => l.uuid, nameOf: (l) => `${l.originalLeaseTemplateName} of ${l.userEmail}`, can: (l) => isRunning(l) || isInLine(l), changed: (count) => {
		end.disabled = count === 0;
		end.textContent = count > 1 ? `End ${count} leases` : "End lease";
	} });
	bar.append(picked.all, end);
	return { bar, column: picked.column, show(items) {
		picked.show(items);
		bar.hidden = !items.some((l) => isRunning(l) || isInLine(l));
	} };
}

export default async function page(ctx) {
	const templates = await api.all("/api/leaseTemplates", "result", {}, 500, { signal: ctx.signal });
	const list = h("div");
	const many = ctx.rights.approve && ending(() => again());
	const again = loader(list, async () => {
		const found = await find(ctx);
		return () => (many && many.show(found.items), [
			card(ctx.rights.approve ? (isFiltered(ctx) ? "Matching leases" : "All leases") : "My leases", { class: "flush" }, many && many.bar, table([many && many.column, ...columns(ctx)].filter(Boolean), found.items, { caption: "Leases, newest first", none: found.next ? empty("No matches so far", "There may be some on the next page.") : nothing(ctx) })),
			found.said && h("p", { class: "dim" }, found.said),
			(found.items.length > 0 || found.next || ctx.query.cursor) && pager({ cursor: ctx.query.cursor, next: found.next, count: found.items.length, what: found.items.length === 1 ? "lease" : "leases",
				href: (cursor) => ctx.hrefWith({ cursor }) }),
		]);
	});
	ctx.every(FRESH_MS, again);
	return [heading("Leases", { sub: ctx.rights.approve ? "All leases, newest first" : "Your leases, newest first", actions: [h("a", { class: "button", href: "/leases/timeline" }, "Timeline"), ask()] }), filters(ctx, templates), list];
}
