// SPDX-License-Identifier: Apache-2.0
// The log of events: what happened, to what, by whom; filtered, page by page, or as it happens; and all of it as a file.
import * as api from "../api.js";
import { fill, h } from "../dom.js";
import { subjectLink } from "../events.js";
import { number, stamp, words } from "../format.js";
import { button, card, empty, field, pager, toast } from "../parts.js";
import { json, opsHeading } from "./operations-parts.js";

const PAGE = 50, MOST = 300;
const filterNames = ["type", "subject", "actor", "since", "until"];

// Jobs that went well and timers that fired: left out, unless they are asked for.
const jobs = (ctx) => (ctx.query.routine === "yes" || ctx.query.type || ctx.query.subject ? undefined : "no");

// --- the filter ---

// The inputs have the reader's own time; the API and the address have UTC.
function toLocal(iso) {
	const date = iso ? new Date(iso) : null;
	if (!date || Number.isNaN(date.getTime())) return "";
	return new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
}
const toUtc = (local) => (local ? new Date(local).toISOString().replace(/\.\d+Z$/, "Z") : "");

function filters(ctx) {
	const input = (name, label, props, help) => field(label, h("input", { name, value: ctx.query[name] ?? "", autocomplete: "off", ...props }), { help });
	const when = (name, label) => field(label, h("input", { name, type: "datetime-local", value: toLocal(ctx.query[name]) }));
	const form = h("form", { class: "filters many", role: "search", on: { submit: (e) => {
		e.preventDefault();
		const data = new FormData(form), text = (name) => data.get(name).trim();
		ctx.setQuery({ type: text("type"), subject: text("subject"), actor: text("actor"), since: toUtc(text("since")), until: toUtc(text("until")), cursor: "" });
	} } },
	input("type", "Type", { placeholder: "Sandbox*", maxlength: 64 }), input("subject", "About", { placeholder: "job/cleanup", maxlength: 200 }),
	input("actor", "By", { placeholder: "admin@example.com", maxlength: 160 }), when("since", "From"), when("until", "Until"),
	h("div", { class: "row" }, button("Search", { type: "submit", kind: "primary" }), isFiltered(ctx) && h("a", { class: "button", href: "/operations/events" }, "Clear"),
		h("a", { class: "button", href: ctx.hrefWith({ routine: ctx.query.routine ? "" : "yes", cursor: "" }) }, ctx.query.routine ? "Hide routine jobs" : "Show routine jobs")));
	return form;
}

const isFiltered = (ctx) => filterNames.some((name) => ctx.query[name]);
const filterOf = (ctx) => Object.fromEntries(filterNames.map((name) => [name, ctx.query[name]]));

// --- one event ---

function row(event, rights) {
	return h("li", { class: "event", data: { event: event.id } },
		h("details", { data: { key: event.id } },
			h("summary", {}, h("span", { class: "event-time" }, stamp(event.time)), h("span", { class: "what" }, words(event["detail-type"])),
				h("span", { class: "about" }, event.subject), h("span", { class: "more" }, event.actor && `by ${event.actor}`)),
			h("div", { class: "event-body" }, h("p", { class: "row" }, ["About ", subjectLink(event.subject, rights)],
				h("a", { href: `/operations/events?subject=${encodeURIComponent(event.subject)}` }, "all about this"),
				h("a", { href: `/operations/events?type=${encodeURIComponent(event["detail-type"])}` }, "all of this type"),
				event.actor && h("a", { href: `/operations/events?actor=${encodeURIComponent(event.actor)}` }, "all by this actor")),
			json(event))));
}

// --- as it happens ---

// heard() is called when there is one more.
function tail(ctx, list, first, note, heard) {
	const { type, subject, actor } = ctx.query, isThere = (event) => [...list.children].some((row) => row.dataset.event === event.id); // a stream that comes back may repeat
	api.follow("/v1/ops/events/stream", { type, subject, jobs: jobs(ctx), last_event_id: first[0]?.id }, (event) => {
		if (isThere(event) || (actor && event.actor !== actor)) return;
		list.querySelector(".state")?.remove();
		list.prepend(row(event, ctx.rights));
		while (list.children.length > MOST) list.lastChild.remove();
		heard();
	}, { signal: ctx.signal, state: (isLive) => {
		note.textContent = isLive ? "live" : "connecting";
		note.classList.toggle("on", isLive);
	} }).catch((error) => (note.textContent = error.message));
}

function exportButton(ctx) {
	return button("Export", { title: "All events matching this filter, one JSON object per line, oldest first", run: async () => {
		await api.download("/v1/ops/events/export", filterOf(ctx), "events.jsonl");
		toast("Saved to your downloads.");
	} });
}

export default async function page(ctx) {
	const { cursor } = ctx.query, canFollow = !cursor && !ctx.query.until;
	const found = await api.page("/v1/ops/events", "events", { ...filterOf(ctx), jobs: jobs(ctx), limit: PAGE, cursor }, { signal: ctx.signal });
	const list = h("ol", { class: "events" }), note = h("span", { class: "live" }, canFollow ? "connecting" : "not live: an older page");
	fill(list, found.items.map((e) => row(e, ctx.rights)));
	if (!found.items.length)
		fill(list, h("li", { class: "state" }, isFiltered(ctx) ? empty(found.next ? "No matches so far" : "No event matches", found.next ? "Searching by actor looks at a few thousand events at a time: go on to the next page." : "Try a type that ends with *, or a longer period.") : empty(found.next ? "Only routine jobs so far" : "Nothing has happened yet", found.next && "Go on to the next page.")));
	const said = h("span"), count = () => (said.textContent = `${number(list.querySelectorAll(".event").length)} events on this page${jobs(ctx) === "no" ? ", routine ones left out" : ""}`);
	count();
	if (canFollow) tail(ctx, list, found.items, note, count);
	return [
		opsHeading("/operations/events", "Events", { sub: "Everything that happened, and who did it. Read-only.", actions: exportButton(ctx) }),
		filters(ctx),
		card("Log", { more: note }, list),
		(found.items.length > 0 || cursor || found.next) && pager({ cursor, next: found.next, said, href: (c) => ctx.hrefWith({ cursor: c }) }),
	];
}
