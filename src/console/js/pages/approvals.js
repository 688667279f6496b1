// SPDX-License-Identifier: Apache-2.0
// What waits for a manager: requests to approve or deny, and below them those that are approved and wait in line for an account.
import * as api from "../api.js";
import { fill, h } from "../dom.js";
import { ago, number } from "../format.js";
import { button, card, confirm, empty, field, heading, showProblems, table, toast } from "../parts.js";
import { each, picker } from "../pick.js";
import { recount } from "../waiting.js";
import { budget, countdown, hours, isInLine, leaseHref, leasePath, tick } from "./lease-parts.js";

const MOST = 200, MOST_IN_LINE = 2000, SHOWN_IN_LINE = 25, REASON_MAX = 1000, FRESH_MS = 5000;

const about = (l) => `${l.originalLeaseTemplateName} for ${l.userEmail}`;

const columns = (templates) => [
	{ title: "Who", lead: true, cell: (l) => h("a", { href: leaseHref(l.leaseId) }, l.userEmail) },
	{ title: "Wants", cell: (l) => h("a", { href: leaseHref(l.leaseId) }, l.originalLeaseTemplateName) },
	{ title: "Budget", by: (l) => l.maxSpend ?? Infinity, cell: (l) => budget(l.maxSpend) },
	{ title: "Duration", by: (l) => l.leaseDurationInHours ?? Infinity, cell: (l) => hours(l.leaseDurationInHours) },
	{ title: "Cost group", cell: (l) => l.costReportGroup ?? templates.find((t) => t.uuid === l.originalLeaseTemplateUuid)?.costReportGroup },
	{ title: "For", class: "text-cell", cell: (l) => l.comments },
	{ title: "Requested", cell: (l) => ago(l.meta.createdTime) },
];

// One reason for all that are chosen: welcome with a yes, needed with a no. Who is alone when the page is opened is chosen already; nobody is later,
// when a second click or a reason is still meant for somebody else.
function requests(templates, done) {
	const reason = h("input", { name: "reason", maxlength: REASON_MAX, autocomplete: "off", placeholder: "optional to approve, required to deny" });
	const yes = button("Approve", { kind: "primary", run: () => decide("Approve") }), no = button("Deny", { kind: "quiet-danger", run: () => decide("Deny") });
	const picked = picker({ idOf: (l) => l.uuid, nameOf: about, changed: (count) => {
		fill(yes, count > 1 ? `Approve ${count}` : "Approve");
		fill(no, count > 1 ? `Deny ${count}` : "Deny");
	} });
	let isBusy = false, isFirst = true;
	async function decide(action) {
		if (isBusy) return;
		isBusy = true;
		await judge(action).finally(() => (isBusy = false));
	}
	async function judge(action) {
		const text = reason.value.trim(), rows = picked.rows();
		if (action === "Deny" && !text)
			return showProblems(form, { fields: [{ field: "reason", message: "Give a reason: the requester will see it." }] });
		if (!rows.length) return toast("Select the requests first.", "bad");
		let inLine = 0;
		const count = await each(rows, async (l) => {
			const now = await api.post(`${leasePath(l.leaseId)}/review`, { action, reason: text || undefined });
			inLine += now?.queuedSince ? 1 : 0;
		}, (n) => [action === "Deny" ? "Denied" : "Approved", ": ", n === 1 ? about(rows[0]) : `${n} requests`, ".", inLine ? ` ${inLine} are waiting in line for an account.` : ""].join(""));
		if (count) reason.value = "";
		recount();
		return done();
	}
	const box = h("div", { class: "rows" }), form = h("form", { class: "decide", on: { submit: (e) => e.preventDefault() } }, field("Reason", reason), h("div", { class: "row" }, yes, no));
	const element = card("Requests", { class: "flush requests" }, h("div", { class: "bulk" }, picked.all, form), box);
	return { element, show(open) {
		picked.show(open);
		if (isFirst && open.length === 1) picked.choose(open);
		isFirst = false;
		fill(box, table([picked.column, ...columns(templates)], open, { caption: "Requests, the oldest first" }));
	} };
}

const lineColumns = (done) => [
	{ title: "Place", by: (l) => l.queuePosition, cell: (l) => l.queuePosition },
	{ title: "Who", lead: true, cell: (l) => h("a", { href: leaseHref(l.leaseId) }, l.userEmail) },
	{ title: "Template", cell: (l) => l.originalLeaseTemplateName },
	{ title: "Waiting since", cell: (l) => ago(l.queuedSince) },
	{ title: "Account expected", cell: (l) => (l.queueEstimate ? countdown(l.queueEstimate) : "no estimate yet") },
	{ title: "Actions", hidden: true, cell: (l) => button("Remove", { size: "small", title: `Remove ${l.originalLeaseTemplateName} for ${l.userEmail} from the line`, run: () => confirm({
		title: `Remove ${l.userEmail} from the line?`, text: "The request was approved. Removing it ends the lease before it starts.", label: "Remove", danger: true,
		run: () => api.post(`${leasePath(l.leaseId)}/terminate`, {}), done: "Removed from the line.",
	}).then((did) => did && done()) }) },
];

// The first of the line, and how many are in it.
async function inLine(signal) {
	const { items, next } = await api.upTo(MOST_IN_LINE, "/api/leases", "result", { status: "InLine", pageSize: MOST_IN_LINE }, { signal });
	const first = items.sort((a, b) => (a.queuedSince < b.queuedSince ? -1 : 1)).slice(0, SHOWN_IN_LINE);
	const whole = await Promise.all(first.map((l) => api.get(leasePath(l.leaseId), {}, { signal })));
	const shown = whole.filter(isInLine).sort((a, b) => (a.queuePosition ?? 0) - (b.queuePosition ?? 0));
	return { shown, said: items.length > first.length ? `${number(shown.length)} of ${number(items.length)}${next ? " or more" : ""}` : number(shown.length) };
}

export default async function page(ctx) {
	const options = { signal: ctx.signal };
	const templates = await api.all("/api/leaseTemplates", "result", {}, 500, options);
	const waiting = h("div", { class: "stack" }), line = h("div"), list = requests(templates, again);
	let seen = "", queued = [], said = "";
	const showLine = () => queued.length > 0 && card("Approved, waiting in line for an account", { class: "flush", more: said },
		table(lineColumns(again), queued, { caption: "Waiting in line" }));

	// Drawn again only when something changed: whoever types a reason goes on typing.
	async function load() {
		const { items, next } = await api.page("/api/leases", "result", { status: "PendingApproval", pageSize: MOST }, options);
		const open = items.reverse();
		({ shown: queued, said } = await inLine(ctx.signal));
		const now = JSON.stringify([open.map((l) => l.uuid), queued.map((l) => [l.uuid, l.queuePosition]), said]);
		if (now === seen) return;
		seen = now;
		list.show(open);
		waiting.replaceChildren(...(open.length ? [list.element]
			: [card("Requests", {}, empty("No requests to review", queued.length ? "All requests have been reviewed; those below are waiting for an account." : "Requests for templates that require approval appear here.",
				h("a", { class: "button", href: "/leases" }, "All leases")))]));
		if (next) waiting.append(h("p", { class: "dim" }, `The newest ${MOST} are shown; more appear as you review these.`));
		line.replaceChildren(...[showLine()].filter(Boolean));
	}
	function again() {
		seen = "";
		return load();
	}
	await load();
	ctx.every(FRESH_MS, () => load().catch(() => {}));
	tick(ctx);
	return [heading("Approvals", { sub: "Requests to review, oldest first" }), h("div", { class: "stack" }, waiting, line)];
}
