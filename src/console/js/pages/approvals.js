// SPDX-License-Identifier: Apache-2.0
// What waits for a manager: requests to approve or deny, and below them those that are approved and wait in line for an account.
import * as api from "../api.js";
import { h } from "../dom.js";
import { ago } from "../format.js";
import { button, card, confirm, empty, facts, field, heading, showProblems, table, toast } from "../parts.js";
import { budget, countdown, hours, isInLine, leaseHref, leasePath, tick } from "./lease-parts.js";

const MOST = 200, SHOWN_IN_LINE = 25, REASON_MAX = 1000, FRESH_MS = 5000;

// One click approves; a reason is welcome with a yes and needed with a no.
function request(lease, templates, done) {
	const reason = h("input", { name: "reason", maxlength: REASON_MAX, autocomplete: "off", placeholder: "optional to approve, needed to deny" });
	const about = `${lease.originalLeaseTemplateName} for ${lease.userEmail}`;
	async function decide(action) {
		const text = reason.value.trim();
		if (action === "Deny" && !text)
			return showProblems(form, { fields: [{ field: "reason", message: "Say why: the requester reads it." }] });
		const now = await api.post(`${leasePath(lease.leaseId)}/review`, { action, reason: text || undefined });
		toast(action === "Deny" ? `Denied: ${about}.` : now?.status === "PendingApproval" ? `Approved: ${about}. No account is free, so it waits in line.` : `Approved: ${about}.`);
		done();
	}
	const template = templates.find((t) => t.uuid === lease.originalLeaseTemplateUuid);
	const form = h("form", { class: "decide", on: { submit: (e) => e.preventDefault() } }, field("Reason", reason),
		h("div", { class: "row" },
			button("Approve", { kind: "primary", run: () => decide("Approve"), title: `Approve ${about}` }),
			button("Deny", { kind: "quiet-danger", run: () => decide("Deny"), title: `Deny ${about}` })));
	return card(lease.userEmail, { class: "request", more: ["asked ", ago(lease.meta.createdTime)] },
		facts([["Wants", h("a", { href: leaseHref(lease.leaseId) }, lease.originalLeaseTemplateName)], ["Budget", budget(lease.maxSpend)],
			["Duration", hours(lease.leaseDurationInHours)], ["Cost group", lease.costReportGroup ?? template?.costReportGroup ?? undefined],
			["For", lease.comments || null]]),
		form);
}

const lineColumns = (done) => [
	{ title: "Place", cell: (l) => l.queuePosition },
	{ title: "Who", lead: true, cell: (l) => h("a", { href: leaseHref(l.leaseId) }, l.userEmail) },
	{ title: "Template", cell: (l) => l.originalLeaseTemplateName },
	{ title: "Waits since", cell: (l) => ago(l.queuedSince) },
	{ title: "Account expected", cell: (l) => (l.queueEstimate ? countdown(l.queueEstimate) : "cannot be told yet") },
	{ title: "Actions", hidden: true, cell: (l) => button("Deny", { size: "small", title: `Deny ${l.originalLeaseTemplateName} for ${l.userEmail}`, run: () => confirm({
		title: `Deny ${l.userEmail}?`, text: "The request leaves the line and is over.", label: "Deny", danger: true, reason: "required",
		run: (reason) => api.post(`${leasePath(l.leaseId)}/review`, { action: "Deny", reason }), done: "Denied.",
	}).then((did) => did && done()) }) },
];

async function inLine(leases, signal) {
	const first = leases.filter(isInLine).sort((a, b) => (a.queuedSince < b.queuedSince ? -1 : 1)).slice(0, SHOWN_IN_LINE);
	const whole = await Promise.all(first.map((l) => api.get(leasePath(l.leaseId), {}, { signal })));
	return whole.filter(isInLine).sort((a, b) => (a.queuePosition ?? 0) - (b.queuePosition ?? 0));
}

export default async function page(ctx) {
	const options = { signal: ctx.signal };
	const templates = await api.all("/api/leaseTemplates", "result", {}, 500, options);
	const waiting = h("div", { class: "stack" }), line = h("div");
	let seen = "", queued = [];
	const showLine = () => queued.length > 0 && card("Approved, waiting in line for an account", { class: "flush", more: `${queued.length}` },
		table(lineColumns(again), queued, { caption: "Waiting in line" }));

	// Drawn again only when something changed: whoever types a reason goes on typing.
	async function load() {
		const { items, next } = await api.page("/api/leases", "result", { status: "PendingApproval", pageSize: MOST }, options);
		const open = items.filter((l) => !isInLine(l)).reverse();
		queued = await inLine(items, ctx.signal);
		const now = JSON.stringify([open.map((l) => l.uuid), queued.map((l) => [l.uuid, l.queuePosition])]);
		if (now === seen) return;
		seen = now;
		waiting.replaceChildren(...(open.length ? open.map((l) => request(l, templates, again))
			: [card("Requests", {}, empty("Nothing waits for you", queued.length ? "All requests are decided; those below wait for an account." : "Requests for templates that need an approval appear here.",
				h("a", { class: "button", href: "/leases" }, "All leases")))]));
		if (next) waiting.append(h("p", { class: "dim" }, `The newest ${MOST} are shown; more come when these are decided.`));
		line.replaceChildren(...[showLine()].filter(Boolean));
	}
	function again() {
		seen = "";
		return load();
	}
	await load();
	ctx.every(FRESH_MS, () => load().catch(() => {}));
	tick(ctx);
	return [heading("Approvals", { sub: "Requests that wait for a decision, the oldest first" }), h("div", { class: "stack" }, waiting, line)];
}
