// SPDX-License-Identifier: Apache-2.0
// Armed timers, the next due first: what will happen by itself, and when. Have it happen now, or not at all.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { subjectLink } from "../events.js";
import { ago, words } from "../format.js";
import { button, card, confirm, empty, field, pager, table } from "../parts.js";
import { due, live, noun, opsHeading, tickDue } from "./operations-parts.js";

const PAGE = 50, TYPING_MS = 250;

const act = (timer, again, label, { method, path = "", ...dialog }) => button(label, {
	size: "small", kind: dialog.danger ? "quiet-danger" : "", title: `${label}: ${timer.name}`,
	run: () => confirm({ label, ...dialog, run: () => api.call(method, `/v1/ops/timers/${part(timer.name)}${path}`) }).then((did) => did && again()),
});

const columns = (ctx, again) => [
	{ title: "Timer", lead: true, cell: (t) => [words(t.type), h("span", { class: "sub-line" }, t.name)] },
	{ title: "About", cell: (t) => subjectLink(t.subject, ctx.rights) },
	{ title: "Fires", cell: (t) => due(t.due_at) },
	{ title: "Set", cell: (t) => ago(t.armed_at) },
	{ title: "Actions", hidden: true, class: "nowrap", cell: (t) => h("span", { class: "row" },
		act(t, again, "Fire now", { method: "POST", path: "/fire", title: "Fire this timer now?", done: "It has fired.",
			text: `"${words(t.type)}" of ${t.subject} happens now, as if it were due.` }),
		act(t, again, "Cancel", { method: "DELETE", danger: true, title: "Cancel this timer?", done: "It will not fire.", label: "Cancel the timer",
			text: `"${words(t.type)}" of ${t.subject} will not happen by itself. Anything waiting for it will need a person.` })) },
];

function filters(ctx) {
	let timer;
	ctx.signal.addEventListener("abort", () => clearTimeout(timer));
	const input = h("input", { name: "prefix", type: "search", value: ctx.query.prefix ?? "", placeholder: "job/", autocomplete: "off", maxlength: 240, on: { input: (e) => {
		clearTimeout(timer);
		timer = setTimeout(() => ctx.setQuery({ prefix: e.target.value.trim(), cursor: "" }, { replace: true }), TYPING_MS);
	} } });
	const box = field("Name starts with", input);
	box.classList.add("grow");
	return h("form", { class: "filters", role: "search", on: { submit: (e) => e.preventDefault() } }, box);
}

export default async function page(ctx) {
	const { prefix, cursor } = ctx.query;
	const shown = live(ctx, () => api.page("/v1/ops/timers", "timers", { prefix, limit: PAGE, cursor }, { signal: ctx.signal }), (found) => [
		card("Timers", {}, table(columns(ctx, () => shown.again()), found.items, { caption: "Timers", none: prefix
			? empty("No timer's name starts with this", null, h("a", { class: "button", href: "/operations/timers" }, "Show all"))
			: empty("No timers", "Jobs, leases and holds set them.") })),
		pager({ cursor, next: found.next, count: found.items.length, what: noun(found.items.length, "timer"), href: (c) => ctx.hrefWith({ cursor: c }) }),
	]);
	tickDue(ctx);
	return [opsHeading("/operations/timers", "Timers", { sub: "What will happen by itself, soonest first." }), filters(ctx), shown.place];
}
