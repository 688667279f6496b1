// SPDX-License-Identifier: Apache-2.0
// The periodic jobs: what each does, how its last run went, when the next is; run it now, pause it, resume it.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { ago, duration, number, words } from "../format.js";
import { badge, button, card, confirm, table, toast } from "../parts.js";
import { due, live, opsHeading, tickDue } from "./operations-parts.js";

const jobs = {
	sync: "Compares the pool of sandboxes with the vendor's listing",
	cleanup: "Deletes returned sandboxes at the vendor",
	expiry: "Ends sandbox allocations that have expired",
	"stale-removal": "Removes records of sandboxes the vendor no longer has",
	"event-retention": "Removes old events and ended sagas",
	"lease-monitor": "Checks spend and time of every lease",
	"lease-line": "Assigns free accounts to leases waiting in line",
	"lease-orphans": "Finds leases and accounts that no longer match",
	"lease-purge": "Removes records of leases that ended long ago",
	"account-drift": "Checks that accounts are in the expected OU",
	"instance-watch": "Counts the tasks of every instance",
	"instance-orphans": "Names resources of no instance, and instances that lack one; removes nothing",
	reconcile: "Compares accounts, records and holds; repairs what is safe to repair",
};

function state(j) {
	if (j.running) return badge("running");
	if (j.paused) return badge("paused");
	if (j.last_outcome === null) return badge("never", { text: "Never ran", kind: "plain" });
	return j.last_outcome === "success" ? badge("ok", { text: "OK" }) : badge("failed", { text: words(j.last_outcome) });
}

const result = (counts) => Object.entries(counts ?? {}).map(([name, value]) => `${words(name).toLowerCase()} ${number(value)}`).join(", ");

function lastRun(j) {
	if (!j.last_finished_at) return null;
	return [ago(j.last_finished_at), h("span", { class: `sub-line ${j.last_error ? "bad-text" : ""}` }, j.last_error ?? result(j.last_result))];
}

async function runNow(j) {
	const got = await api.post(`/v1/ops/jobs/${part(j.name)}/run`, undefined, { headers: { Prefer: "respond-async" } });
	toast(got?.joined ? `${j.name} was already running: this is that run.` : got?.status === "running" ? `${j.name} is running.` : `${j.name} has finished.`);
}

const runButton = (j, again) => button("Run now", { size: "small", title: `Run now: ${j.name}`, run: () => confirm({
	title: `Run ${j.name} now?`, label: "Run now", text: `${jobs[j.name] ?? ""}. It runs once, regardless of its schedule.`,
	run: () => runNow(j),
}).then((did) => did && again()) });

const pauseButton = (j, again) => button(j.paused ? "Resume" : "Pause", { size: "small", title: `${j.paused ? "Resume" : "Pause"}: ${j.name}`, run: () => confirm({
	title: j.paused ? `Resume ${j.name}?` : `Pause ${j.name}?`, label: j.paused ? "Resume" : "Pause", done: j.paused ? `${j.name} is resumed.` : `${j.name} is paused.`,
	text: j.paused ? "It runs on its schedule again." : `It does not run until you resume it, even after a restart. What it does: ${(jobs[j.name] ?? j.name).toLowerCase()}.`,
	run: () => api.post(`/v1/ops/jobs/${part(j.name)}/${j.paused ? "resume" : "pause"}`, undefined),
}).then((did) => did && again()) });

const columns = (again) => [
	{ title: "Job", lead: true, cell: (j) => [j.name, h("span", { class: "sub-line" }, jobs[j.name])] },
	{ title: "State", cell: state },
	{ title: "Last run", cell: lastRun },
	{ title: "Every", by: (j) => j.interval_sec, class: "nowrap", cell: (j) => duration(j.interval_sec) },
	{ title: "Next run", cell: (j) => (j.paused ? "when resumed" : j.next_run_at && due(j.next_run_at)) },
	{ title: "Actions", hidden: true, class: "nowrap", cell: (j) => h("span", { class: "row" }, runButton(j, again), pauseButton(j, again)) },
];

export default async function page(ctx) {
	const shown = live(ctx, () => api.get("/v1/ops/jobs", {}, { signal: ctx.signal }), ({ jobs: list }) =>
		card("Schedule", {}, table(columns(() => shown.again()), list, { caption: "Jobs" })));
	tickDue(ctx);
	return [opsHeading("/operations/jobs", "Jobs", { sub: "Recurring jobs." }), shown.place];
}
