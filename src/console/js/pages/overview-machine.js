// SPDX-License-Identifier: Apache-2.0
// The overview's part for operators: the pool, the claims, what is wrong, what happens right now.
import * as api from "../api.js";
import { fill, h } from "../dom.js";
import { eventItem } from "../events.js";
import { ago, duration, millis, money, number, percent, words } from "../format.js";
import { badge, bar, card, empty, figure, loader, meter, plot, table } from "../parts.js";
import { phaseTitle } from "./account-parts.js";
import { alarmPlace, alarmTitle } from "./alarms-parts.js";
import { kindOfState } from "./instance-parts.js";

const FRESH_MS = 5000, SOON_MS = 1100, EVENTS = 15; // the server gives the same answer for a second

const poolParts = (pool) => [
	{ name: "Available", value: pool.available, kind: "good", href: "/sandboxes?status=available" },
	{ name: "Allocated", value: pool.allocated, kind: "info", href: "/sandboxes?status=allocated" },
	{ name: "Pending deletion", value: pool.pending_deletion, kind: "warn", href: "/sandboxes?status=pending_deletion" },
	{ name: "Stale", value: pool.stale, kind: "plain", href: "/sandboxes?status=stale" },
	{ name: "Deletion failed", value: pool.deletion_failed, kind: "bad", href: "/sandboxes?status=deletion_failed" },
];

function poolCard({ pool }) {
	const mark = pool.low_water > 0 ? { value: pool.low_water, text: `low-water mark ${number(pool.low_water)}` } : null;
	return card("Sandboxes", { more: `${number(pool.total)} in the pool` }, pool.total
		? bar(poolParts(pool), { label: "The pool by state", mark })
		: empty("The pool is empty", "Sandboxes appear after the first sync with the vendor."));
}

// Claims that wait for a sandbox, and leases that wait for an account.
function lineFigure(line, inLine) {
	const waiting = line.waiting + inLine;
	const sandboxes = line.waiting && `${number(line.waiting)} for a sandbox${line.estimate_sec === null ? "" : `, about ${duration(line.estimate_sec)}`}`;
	return figure("Waiting in line", number(waiting), { kind: waiting ? "warn" : "", href: inLine ? "/leases?status=InLine" : undefined,
		sub: [sandboxes, inLine && `${number(inLine)} for an account`].filter(Boolean).join("; ") || "nobody is waiting" });
}

function figures({ pool, line, leases, claims, alarms, kernel }) {
	const raised = alarms.filter((a) => a.state === "raised");
	return h("div", { class: "figures" },
		figure("Free sandboxes", number(pool.available), {
			sub: pool.low_water > 0 ? `low-water mark ${number(pool.low_water)}` : `of ${number(pool.total)}`,
			kind: pool.low_water > 0 && pool.available < pool.low_water ? "bad" : "", href: "/sandboxes?status=available" }),
		lineFigure(line, leases.in_line ?? 0),
		figure("Claims per minute", number(claims.per_minute), claims.paused
			? { sub: "paused: nothing is handed out", kind: "bad", href: "/operations/alarms" }
			: { sub: `p99 ${millis(claims.p99_ms)}` }),
		figure("Alarms", number(raised.length), { kind: raised.length ? "bad" : "", sub: raised.length ? words(raised[0].rule) : "all is well", href: "/operations/alarms" }),
		figure("Dead letters", number(kernel.dead_letters), { kind: kernel.dead_letters ? "bad" : "", sub: kernel.dead_letters ? "not delivered" : "none", href: "/operations/dead-letters" }),
		figure("Sagas", number(kernel.sagas_running), { sub: kernel.sagas_parked ? `${number(kernel.sagas_parked)} parked` : "running", kind: kernel.sagas_parked ? "bad" : "" }));
}

const points = (series, value) => series.map((p) => ({ at: new Date(p.at * 1000), value: value(p) }));

// Claims are counted by the machine's clock, also where the world's runs faster.
function plots({ series, step_sec: step }) {
	const more = api.isOtherTime() && "in real time";
	return [
		card("Claims per minute", { class: "half", more }, plot(points(series, (p) => ((p.granted + p.refused) * 60) / step), { label: "Claims per minute" })),
		card("Claim time, p99", { class: "half", more }, plot(points(series, (p) => p.p99_ms), { label: "p99 of claims", format: millis })),
	];
}

function leasesCard({ leases }) {
	const kinds = { PendingApproval: "warn", Provisioning: "info", Active: "good", Frozen: "plain" };
	const parts = Object.entries(kinds).map(([name, kind]) => ({ name: name === "PendingApproval" ? "Pending approval" : name, value: leases.by_status[name] ?? 0, kind }));
	parts.splice(1, 0, { name: "In line", value: leases.in_line ?? 0, kind: "info" });
	const sum = parts.reduce((s, p) => s + p.value, 0);
	return card("Leases", { class: "half" },
		sum ? bar(parts, { label: "Open leases by status" }) : empty("No open leases"),
		leases.budget_usd > 0 && h("div", { class: "spend" },
			h("p", {}, "Spend of running leases: ", h("b", {}, money(leases.spend_usd)), ` of ${money(leases.budget_usd)} (${percent(leases.spend_usd / leases.budget_usd)})${leases.partial ? ", not all counted" : ""}`),
			meter(leases.spend_usd, leases.budget_usd, { label: "Spend against budget" })));
}

function accountsCard({ accounts }) {
	const kinds = { Available: "good", Active: "info", Frozen: "warn", CleanUp: "info", Cooldown: "plain", Quarantine: "bad" };
	const parts = Object.entries(kinds).map(([name, kind]) => ({ name: phaseTitle(name), value: accounts.by_status[name] ?? 0, kind }));
	const sum = parts.reduce((s, p) => s + p.value, 0);
	return card("Accounts", { class: "half", more: `${number(sum)} registered` }, sum ? bar(parts, { label: "Accounts by status" }) : empty("No accounts are registered"));
}

// In the order of the states, which is the server's; those that are gone are history.
function instancesCard({ instances }) {
	const parts = Object.entries(instances.by_status).filter(([name]) => name !== "DEPROVISIONED")
		.map(([name, value]) => ({ name: words(name), value, kind: kindOfState(name), href: `/instances?status=${name}` }));
	const sum = parts.reduce((s, p) => s + p.value, 0), shown = parts.filter((p) => p.value > 0);
	return card("Instances", { more: h("a", { href: "/instances" }, `${number(sum)} in all`) }, sum ? bar(shown, { label: "Instances by status" }) : empty("No instances yet"));
}

const alarmColumns = [
	{ title: "Alarm", lead: true, cell: (a) => h("a", { href: alarmPlace(a)?.href ?? "/operations/alarms" }, alarmTitle(a)) },
	{ title: "Severity", cell: (a) => badge(a.severity, a.severity === "page" ? { text: "Page" } : {}) },
	{ title: "State", cell: (a) => badge(a.state) },
	{ title: "What", cell: (a) => a.evidence },
	{ title: "Since", cell: (a) => ago(a.since_at) },
];

function alarmsCard({ alarms }) {
	return card("Alarms", {}, table(alarmColumns, alarms, { caption: "Alarms", none: empty("No alarms", "Every rule passes.") }));
}

// The latest events, and those that come; heard() is called for each of these.
export async function eventsPart(ctx, heard) {
	const list = h("ol", { class: "timeline" }), live = h("span", { class: "live" }, "connecting");
	const { events } = await api.get("/v1/ops/events", { jobs: "no", limit: EVENTS }, { signal: ctx.signal });
	const seen = new Set(events.map((e) => e.id));
	fill(list, events.map((e) => eventItem(e, ctx.rights)));
	api.follow("/v1/ops/events/stream", { jobs: "no", last_event_id: events[0]?.id }, (event) => {
		if (seen.has(event.id)) return;
		seen.add(event.id);
		heard();
		list.prepend(eventItem(event, ctx.rights));
		while (list.children.length > EVENTS) {
			seen.delete(list.lastChild.dataset.event);
			list.lastChild.remove();
		}
	}, { signal: ctx.signal, state: (isLive) => {
		live.textContent = isLive ? "live" : "connecting";
		live.classList.toggle("on", isLive);
	} }).catch((error) => (live.textContent = error.message));
	return card("Latest events", { more: live, id: "events" }, list);
}

// { element, soon }: soon() has the figures counted again in a moment, because something has happened.
export function machinePart(ctx) {
	const element = h("div", { class: "stack" });
	let timer = null;
	const again = loader(element, async () => {
		const got = await api.get("/v1/ops/overview", {}, { signal: ctx.signal });
		return [figures(got), got.alarms.length > 0 && alarmsCard(got), poolCard(got), h("div", { class: "grid" }, plots(got), leasesCard(got), accountsCard(got), ctx.rights.instances && instancesCard(got))];
	});
	const soon = () => (timer ??= setTimeout(() => {
		timer = null;
		again();
	}, SOON_MS));
	ctx.every(FRESH_MS, again);
	ctx.signal.addEventListener("abort", () => clearTimeout(timer));
	return { element, soon };
}
