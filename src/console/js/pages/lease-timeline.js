// SPDX-License-Identifier: Apache-2.0
// Who has what until when: a bar for each lease, from its start to its end, on one line of days. Managers see everybody's.
import * as api from "../api.js";
import { h } from "../dom.js";
import { ago, day, time, toDate } from "../format.js";
import { card, empty, field, heading, kindOf, loader, select } from "../parts.js";
import { isDenied, isPending, isRunning, leaseBadge, leaseHref } from "./lease-parts.js";

const MOST = 2000, SHOWN = 300, FRESH_MS = 15000, DAY_MS = 86400000, TICKS = 6;
const spans = [["7", "A week"], ["14", "Two weeks"], ["30", "A month"], ["90", "Three months"]];
const orders = {
	end: ["End", (a, b) => a.end - b.end], owner: ["Owner", (a, b) => a.l.userEmail.localeCompare(b.l.userEmail) || a.end - b.end],
	start: ["Start", (a, b) => a.start - b.start], template: ["Template", (a, b) => a.l.originalLeaseTemplateName.localeCompare(b.l.originalLeaseTemplateName) || a.end - b.end],
};

// A third of what is shown lies behind us.
function windowOf(days) {
	const now = api.now(), from = now - (days * DAY_MS) / 3;
	return { now, from, to: from + days * DAY_MS };
}

// Those that have, or had, an account within what is shown. One without an end goes on for good.
function bars(leases, w) {
	return leases.filter((l) => !isPending(l) && !isDenied(l) && !l.queuedSince && l.startDate).map((l) => ({
		l, start: toDate(l.startDate).getTime(), end: (toDate(l.endDate) ?? toDate(l.expirationDate))?.getTime() ?? Infinity,
	})).filter((b) => b.end > w.from && b.start < w.to);
}

const place = (at, w) => `${(100 * (Math.min(Math.max(at, w.from), w.to) - w.from)) / (w.to - w.from)}%`;

function until(b) {
	if (b.end === Infinity) return "no end";
	const at = new Date(b.end).toISOString();
	return [isRunning(b.l) ? "until " : "ended ", time(at), ", ", ago(at)];
}

function row(ctx, b, w) {
	const kind = isRunning(b.l) ? kindOf(b.l.status) : "plain";
	return h("li", {},
		h("div", { class: "span-who" },
			h("a", { href: leaseHref(b.l.leaseId) }, ctx.rights.approve ? b.l.userEmail : b.l.originalLeaseTemplateName), " ", leaseBadge(b.l),
			h("span", { class: "sub-line" }, [ctx.rights.approve && b.l.originalLeaseTemplateName, b.l.awsAccountId].filter(Boolean).join(", "))),
		h("div", { class: "span-line" },
			h("span", { class: "span-now", style: { left: place(w.now, w) }, "aria-hidden": "true" }),
			h("span", { class: `span-bar ${kind} ${b.end > w.to ? "goes-on" : ""}`, style: { left: place(b.start, w), width: `calc(${place(b.end, w)} - ${place(b.start, w)})` }, "aria-hidden": "true" })),
		h("div", { class: "span-until" }, until(b)));
}

function axis(w) {
	const first = Math.ceil(w.from / DAY_MS) * DAY_MS, step = Math.max(1, Math.round((w.to - w.from) / DAY_MS / TICKS)) * DAY_MS, ticks = [];
	for (let at = first; at < w.to - step / 3; at += step) ticks.push(at);
	return h("div", { class: "span-axis", "aria-hidden": "true" }, h("div", { class: "span-line" },
		ticks.map((at) => h("span", { style: { left: place(at, w) } }, day(new Date(at)))), h("span", { class: "span-today", style: { left: place(w.now, w) } }, "now")));
}

function drawing(ctx, leases, days, order) {
	const w = windowOf(days), all = bars(leases, w).sort(orders[order][1]);
	if (!all.length) return empty("No leases in this time", "Choose a longer time, or request a lease.", h("a", { class: "button", href: "/leases/new" }, "Request a lease"));
	return [
		axis(w), h("ol", { class: "spans" }, all.slice(0, SHOWN).map((b) => row(ctx, b, w))),
		all.length > SHOWN && h("p", { class: "dim" }, `The first ${SHOWN} of ${all.length} are shown.`),
	];
}

export default async function page(ctx) {
	const days = spans.some(([n]) => n === ctx.query.days) ? Number(ctx.query.days) : 14, order = orders[ctx.query.order] ? ctx.query.order : "end";
	const list = h("div");
	ctx.every(FRESH_MS, loader(list, async () => {
		const userEmail = ctx.rights.approve ? undefined : ctx.session.email;
		return drawing(ctx, await api.all("/api/leases", "result", { pageSize: MOST, userEmail }, MOST, { signal: ctx.signal }), days, order);
	}));
	return [
		heading("Timeline", { back: { href: "/leases", text: "Leases" }, sub: ctx.rights.approve ? "Who has what, until when" : "What you have, until when" }),
		h("form", { class: "filters", on: { submit: (e) => e.preventDefault() } },
			field("Show", select("days", spans, String(days), (value) => ctx.setQuery({ days: value }))),
			field("Sort by", select("order", Object.entries(orders).map(([name, [text]]) => [name, text]), order, (value) => ctx.setQuery({ order: value })))),
		card("Leases", { class: "spans-card" }, list),
	];
}
