// SPDX-License-Identifier: Apache-2.0
// The pool, page by page: search by name, id or holder; filter by state; what can be run on all of it.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { ago, number } from "../format.js";
import { badge, button, card, confirm, copyable, empty, field, heading, pager, select, table } from "../parts.js";

const states = ["available", "allocated", "pending_deletion", "stale", "deletion_failed"];
const PAGE = 100, TYPING_MS = 250;

export const stateBadge = (s) => [badge(s.status), s.quarantine_reason && h("span", { class: "sub-line" }, "in quarantine")];

const columns = [
	{ title: "Name", lead: true, cell: (s) => h("a", { href: `/sandboxes/${part(s.sandbox_id)}` }, s.name) },
	{ title: "State", cell: stateBadge },
	{ title: "Held by", cell: (s) => s.allocated_to_track },
	{ title: "Lab", cell: (s) => s.track_name },
	{ title: "Since", cell: (s) => s.allocated_at && ago(s.allocated_at) },
	{ title: "Ends", cell: (s) => s.expires_at && ago(s.expires_at) },
	{ title: "Id", cell: (s) => copyable(s.sandbox_id) },
];

// With a search the server looks at a part of the pool at a time: go on until there is a page's worth, or the end.
async function find({ q, status, cursor }, signal) {
	const items = [];
	let next = cursor;
	do {
		const got = await api.page("/v1/admin/sandboxes", "sandboxes", { limit: PAGE, status, q, cursor: next }, { signal });
		items.push(...got.items);
		next = got.next;
	} while (next && q && items.length < PAGE / 2);
	return { items, next };
}

// --- what can be done to the whole pool ---

const passes = [
	{ job: "sync", label: "Sync now", path: "/v1/admin/sync", title: "Sync with the vendor now?",
		text: "Compares the pool with the vendor's listing: new sandboxes are added, missing ones are marked stale.",
		done: (r) => (r.status === "running" ? "The sync continues in the background." : `Synced ${number(r.synced)}: ${number(r.added)} added, ${number(r.marked_stale)} stale.`) },
	{ job: "cleanup", label: "Clean up now", path: "/v1/admin/cleanup", danger: true, title: "Run the cleanup now?",
		text: "Every sandbox waiting for deletion is deleted at the vendor. This cannot be undone.",
		done: (r) => (r.status === "running" ? "The cleanup continues in the background." : `Deleted ${number(r.deleted)}, ${number(r.failed)} failed, ${number(r.postponed)} postponed.`) },
	{ job: "expiry", label: "Expire now", path: "/v1/admin/expire", title: "End overdue allocations now?",
		text: "Expired allocations that were not given back are marked for deletion.",
		done: (r) => (r.status === "running" ? "The expiry run continues in the background." : `Ended ${number(r.expired)} allocations.`) },
];

const passButton = (pass, ctx) => button(pass.label, {
	run: () => confirm({ ...pass, label: pass.label, run: () => api.post(pass.path) }).then((did) => did && ctx.reload()),
});

function pauseButton(job, ctx) {
	const verb = job.paused ? "resume" : "pause";
	return button(job.paused ? "Resume deletions" : "Pause deletions", {
		run: () => confirm({
			title: job.paused ? "Resume deletions?" : "Pause deletions?",
			text: job.paused ? "Sandboxes waiting for deletion are deleted on schedule again."
				: "Nothing is deleted at the vendor until you resume; returned sandboxes wait. This persists across restarts.",
			label: job.paused ? "Resume" : "Pause",
			run: () => api.post(`/v1/admin/jobs/cleanup/${verb}`),
			done: job.paused ? "Deletions are resumed." : "Deletions are paused.",
		}).then((did) => did && ctx.reload()),
	});
}

// For those in one state; offered while these are shown.
const ofState = {
	deletion_failed: { label: "Retry all deletions", path: "/v1/admin/retry-failed-deletions", title: "Retry all failed deletions?",
		text: "Each is queued for deletion again, with a fresh set of tries.",
		done: (r) => (r.status === "running" ? "This continues in the background." : `${number(r.retried)} will be retried.`) },
	stale: { label: "Remove old stale records", path: "/v1/admin/auto-delete-stale", danger: true, title: "Remove stale records?",
		text: "Records that have been stale for 24 hours or more are removed from the pool; nothing is deleted at the vendor. Quarantined ones stay.",
		done: (r) => (r.status === "running" ? "This continues in the background." : `Removed ${number(r.deleted)} records.`) },
};

function pausedNote(job) {
	return job.paused && h("p", { class: "note warn", role: "status" }, "Deletions are paused: returned sandboxes wait until they are resumed.");
}

// --- finding ---

function filters(ctx) {
	let timer;
	const search = h("input", { name: "q", type: "search", value: ctx.query.q ?? "", placeholder: "Name, id or who holds it", autocomplete: "off", maxlength: 128, on: {
		input: (e) => {
			clearTimeout(timer);
			timer = setTimeout(() => ctx.setQuery({ q: e.target.value.trim(), cursor: "" }, { replace: true }), TYPING_MS);
		},
	} });
	ctx.signal.addEventListener("abort", () => clearTimeout(timer));
	const grown = field("Search", search);
	grown.classList.add("grow");
	return h("form", { class: "filters", role: "search", on: { submit: (e) => e.preventDefault() } }, grown,
		field("State", select("status", [["", "All states"], ...states], ctx.query.status ?? "", (status) => ctx.setQuery({ status, cursor: "" }))));
}

function nothing(ctx) {
	return ctx.query.q || ctx.query.status
		? empty("No matching sandboxes", "Names, ids and holders are searched.", h("a", { class: "button", href: "/sandboxes" }, "Show all"))
		: empty("The pool is empty", "Sandboxes appear here after the first sync with the vendor.");
}

export default async function page(ctx) {
	const [found, { jobs }] = await Promise.all([find(ctx.query, ctx.signal), api.get("/v1/admin/jobs", {}, { signal: ctx.signal })]);
	const cleanup = jobs.find((j) => j.name === "cleanup");
	return [
		heading("Sandboxes", { actions: [h("a", { class: "button", href: "/sandboxes/class" }, "Class"), ofState[ctx.query.status] && passButton(ofState[ctx.query.status], ctx), passes.map((p) => passButton(p, ctx)), pauseButton(cleanup, ctx)] }),
		pausedNote(cleanup),
		filters(ctx),
		card("Pool", { class: "flush" }, table(columns, found.items, { caption: "Sandboxes", none: nothing(ctx) })),
		pager({ cursor: ctx.query.cursor, next: found.next, count: found.items.length, what: "sandboxes", href: (cursor) => ctx.hrefWith({ cursor }) }),
	];
}
