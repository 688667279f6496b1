// SPDX-License-Identifier: Apache-2.0
// Operations at a glance: what needs a person now, with the way there; then how the machine is.
import * as api from "../api.js";
import { h } from "../dom.js";
import { ago, duration, millis, number } from "../format.js";
import { badge, card, figure, table } from "../parts.js";
import { count, live, noun, opsHeading } from "./operations-parts.js";
import { progress, sagaBadge, sagaHref, sagaTitle } from "./sagas-parts.js";

const SHOWN = 8;

const need = (kind, what, text, href) => ({ kind, what, text, href });

// In the order in which a person should look at it.
function needs({ alarms, parked, parkedCount, queues, jobs, holds, hasMoreHolds }) {
	const raised = alarms.filter((a) => a.state === "raised"), dead = queues.filter((q) => q.dead > 0), byHand = holds.filter((x) => !x.due_at && !x.locks);
	return [
		raised.length && need("bad", count(raised.length, "alarm"), raised[0].evidence, "/operations/alarms"),
		parked.length && need("bad", count(Math.max(parkedCount, parked.length), "parked saga"), parked[0].reason ?? parked[0].last_error, "/operations/sagas"),
		dead.length && need("bad", count(dead.reduce((s, q) => s + q.dead, 0), "dead letter"), `in ${dead.map((q) => q.name).join(", ")}: not delivered; replay or drop them`, "/operations/dead-letters"),
		...jobs.filter((j) => j.last_error && !j.running).map((j) => need("warn", `Job ${j.name} failed`, j.last_error, "/operations/jobs")),
		...jobs.filter((j) => j.paused).map((j) => need("warn", `Job ${j.name} is paused`, "It does not run until someone resumes it.", "/operations/jobs")),
		byHand.length && need("warn", `${number(byHand.length)}${hasMoreHolds ? " or more" : ""} ${noun(byHand.length, "hold")}`, "with no end: someone has to release them", "/operations/holds"),
	].filter(Boolean);
}

function needsCard(list) {
	if (!list.length) return card("Needs attention", {}, h("p", { class: "all-well" }, badge("ok", { text: "All is well" }), " Nothing needs your attention."));
	return card("Needs attention", {}, h("ul", { class: "needs" }, list.map((n) => h("li", {}, h("a", { href: n.href }, badge(n.kind, { text: n.what, kind: n.kind })), h("span", {}, n.text)))));
}

function figures({ queues, nodes, runningCount, jobs }) {
	const waiting = queues.reduce((s, q) => s + q.lanes, 0), failing = queues.reduce((s, q) => s + q.failing, 0), dead = queues.reduce((s, q) => s + q.dead, 0);
	const oldest = Math.max(0, ...queues.map((q) => q.oldest_age_sec ?? 0)), silent = nodes.filter((n) => n.silent).length;
	return h("div", { class: "figures" },
		figure("Running sagas", number(runningCount), { sub: runningCount ? "see below" : "none", href: "/operations/sagas" }),
		figure("Waiting deliveries", number(waiting), { sub: waiting ? `oldest for ${duration(oldest)}` : "none", href: "/operations/queues" }),
		figure("Failing deliveries", number(failing), { sub: failing ? "being retried" : "none", kind: failing ? "warn" : "", href: "/operations/queues" }),
		figure("Dead letters", number(dead), { sub: dead ? "given up" : "none", kind: dead ? "bad" : "", href: "/operations/dead-letters" }),
		figure("Jobs", number(jobs.length), { sub: jobs.some((j) => j.running) ? `${jobs.filter((j) => j.running).length} running` : "all idle", href: "/operations/jobs" }),
		figure("Nodes", number(nodes.length), { sub: silent ? `${silent} silent` : "all healthy", kind: silent ? "bad" : "" }));
}

const sagaColumns = [
	{ title: "Saga", lead: true, cell: (s) => [h("a", { href: sagaHref(s.id) }, sagaTitle(s)), h("span", { class: "sub-line" }, s.id)] },
	{ title: "State", cell: (s) => sagaBadge(s.state) },
	{ title: "Progress", class: "wide-cell", cell: progress },
	{ title: "Since", cell: (s) => ago(s.step_since_at) },
];

const nodeColumns = [
	{ title: "Node", lead: true, cell: (n) => h("code", {}, n.id) },
	{ title: "State", cell: (n) => (n.silent ? badge("silent", { text: "Silent", kind: "bad" }) : badge("ok", { text: "Healthy" })) },
	{ title: "Started", cell: (n) => ago(n.started_at) },
	{ title: "Last heartbeat", cell: (n) => ago(n.beat_at) },
	{ title: "Slowest transaction", by: (n) => n.slowest_ms, num: true, cell: (n) => millis(n.slowest_ms) },
	{ title: "Failed commits", by: (n) => n.failed_commits, num: true, cell: (n) => number(n.failed_commits) },
];

async function read(signal) {
	const get = (path, query) => api.get(`/v1/ops/${path}`, query, { signal });
	const [alarms, parked, running, undoing, queues, jobs, nodes, holds, { kernel }] = await Promise.all([get("alarms"), get("sagas", { state: "parked", limit: SHOWN }),
		get("sagas", { state: "running", limit: SHOWN }), get("sagas", { state: "undoing", limit: SHOWN }), get("queues"), get("jobs"), get("nodes"), get("holds", { limit: 50 }), get("overview")]);
	return {
		alarms: alarms.alarms, parked: parked.sagas, parkedCount: kernel.sagas_parked, running: [...undoing.sagas, ...running.sagas], runningCount: kernel.sagas_running,
		queues: queues.queues, jobs: jobs.jobs, nodes: nodes.nodes, holds: holds.holds,
		hasMoreHolds: !!holds.cursor && !holds.holds.at(-1).due_at, // those without an end come first
	};
}

export default async function page(ctx) {
	const shown = live(ctx, () => read(ctx.signal), (got) => [
		needsCard(needs(got)), figures(got),
		got.running.length > 0 && card("Running sagas", { more: h("a", { href: "/operations/sagas" }, "all sagas") }, table(sagaColumns, got.running.slice(0, SHOWN), { caption: "Running sagas" })),
		card("Nodes", {}, table(nodeColumns, got.nodes, { caption: "Nodes" })),
	]);
	return [opsHeading("/operations", "Operations", { sub: "What needs attention, and the health of the server." }), shown.place];
}
