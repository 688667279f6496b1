// SPDX-License-Identifier: Apache-2.0
// Sagas: long operations in steps. Those that wait for a person come first, then those under way; ended ones on demand.
import * as api from "../api.js";
import { h } from "../dom.js";
import { subjectLink } from "../events.js";
import { ago, duration } from "../format.js";
import { card, empty, field, pager, select, table } from "../parts.js";
import { live, noun, opsHeading } from "./operations-parts.js";
import { progress, sagaActions, sagaBadge, sagaHref, sagaTitle } from "./sagas-parts.js";

const PAGE = 50;

const name = (s) => [h("a", { href: sagaHref(s.id) }, sagaTitle(s)), h("span", { class: "sub-line" }, s.id)];

const openColumns = (again) => [
	{ title: "Saga", lead: true, cell: name },
	{ title: "State", cell: (s) => sagaBadge(s.state) },
	{ title: "Progress", class: "wide-cell", cell: (s) => h("div", {}, progress(s), (s.reason || s.last_error) && h("span", { class: "step-error" }, s.reason || s.last_error)) },
	{ title: "Since", cell: (s) => ago(s.step_since_at) },
	{ title: "Actions", hidden: true, class: "nowrap", cell: (s) => h("span", { class: "row" }, sagaActions(s, () => again(), { size: "small" })) },
];

const endedColumns = (ctx) => [
	{ title: "Saga", lead: true, cell: name },
	{ title: "About", cell: (s) => subjectLink(s.subject, ctx.rights) },
	{ title: "Outcome", cell: (s) => sagaBadge(s.state) },
	{ title: "When", cell: (s) => ago(s.ended_at) },
	{ title: "Took", by: (s) => (s.ended_at && s.started_at ? s.ended_at - s.started_at : null), cell: (s) => s.ended_at && s.started_at ? duration(s.ended_at - s.started_at) : null },
	{ title: "Reason", class: "text-cell", cell: (s) => s.reason },
];

const list = (state, signal, cursor) => api.page("/v1/ops/sagas", "sagas", { state, limit: PAGE, cursor }, { signal });

const tail = (got) => (got.next ? `${got.items.length} or more` : got.items.length ? String(got.items.length) : null);

function openPart(ctx) {
	const read = () => Promise.all(["parked", "running", "undoing"].map((state) => list(state, ctx.signal)));
	const part = live(ctx, read, ([parked, running, undoing]) => {
		const under = { items: [...undoing.items, ...running.items], next: undoing.next || running.next };
		return [
			parked.items.length > 0 && card("Needs attention", { more: tail(parked) },
				h("p", { class: "note bad" }, "These can neither continue nor roll back by themselves. Fix the cause and retry, skip a step you have done by hand, or abort."),
				table(openColumns(() => part.again()), parked.items, { caption: "Parked sagas" })),
			card("Running", { more: tail(under) }, table(openColumns(() => part.again()), under.items, {
				caption: "Running sagas", none: empty("Nothing is running", "A saga starts when a change outside takes several steps: lending, freezing or reclaiming an account.") })),
		];
	});
	return part.place;
}

async function endedPart(ctx, state) {
	const got = await list(state, ctx.signal, ctx.query.cursor);
	return [
		card(state === "done" ? "Done" : "Undone", {}, table(endedColumns(ctx), got.items, { caption: "Ended sagas", none: empty("None", "Ended sagas are kept as long as the event log.") })),
		pager({ cursor: ctx.query.cursor, next: got.next, count: got.items.length, what: noun(got.items.length, "saga"), href: (cursor) => ctx.hrefWith({ cursor }) }),
	];
}

export default async function page(ctx) {
	const state = ctx.query.state ?? "";
	return [
		opsHeading("/operations/sagas", "Sagas", { sub: "Changes made outside in several steps: each ends done, undone, or parked for a person." }),
		h("form", { class: "filters", on: { submit: (e) => e.preventDefault() } },
			field("Show", select("state", [["", "Open"], ["done", "Done"], ["undone", "Undone"]], state, (value) => ctx.setQuery({ state: value, cursor: "" })))),
		["done", "undone"].includes(state) ? await endedPart(ctx, state) : openPart(ctx),
	];
}
