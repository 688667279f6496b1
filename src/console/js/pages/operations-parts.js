// SPDX-License-Identifier: Apache-2.0
// What the pages of operations share: their tabs, lists that stay fresh, data as text, things that are shown once.
import { now, service } from "../api.js";
import { h } from "../dom.js";
import { bothTimes, duration, number, toDate } from "../format.js";
import { ask, copyable, heading, loader } from "../parts.js";

const FRESH_MS = 3000, TICK_MS = 1000;

const tabs = [
	["/operations", "Summary"], ["/operations/alarms", "Alarms"], ["/operations/sagas", "Sagas"], ["/operations/dead-letters", "Dead letters"],
	["/operations/queues", "Queues"], ["/operations/timers", "Timers"], ["/operations/jobs", "Jobs"], ["/operations/holds", "Holds"],
	["/operations/events", "Events"], ["/operations/webhooks", "Webhooks"], ["/operations/configuration", "Configuration"],
	["/operations/people", "People"], ["/operations/service-accounts", "Service accounts"], ["/operations/world", "World"],
];

// On a phone the tabs scroll sideways: the one that is lit is brought into sight as soon as they are on the page.
function showLit(nav) {
	new ResizeObserver((_, observer) => {
		const lit = nav.querySelector("[aria-current]");
		nav.scrollLeft = lit.offsetLeft - (nav.clientWidth - lit.offsetWidth) / 2;
		observer.disconnect();
	}).observe(nav);
}

// The head of a page of operations: the tabs, then its own heading.
export function opsHeading(path, title, options) {
	const shown = tabs.filter(([href]) => href !== "/operations/world" || service.simulated);
	const nav = h("nav", { class: "tabs ops-tabs", "aria-label": "Operations" }, shown.map(([href, text]) => h("a", { href, "aria-current": href === path && "page" }, text)));
	showLit(nav);
	return [nav, heading(title, options)];
}

const isRead = (place) => place.contains(document.activeElement) || (!getSelection().isCollapsed && place.contains(getSelection().anchorNode));

// A part of a page that is read again and again. read() answers data, draw(data) elements. Unchanged data is drawn anew only for its ages, and
// not while somebody is at it. Answers { place, again }.
export function live(ctx, read, draw, ms = FRESH_MS) {
	const place = h("div", { class: "stack" });
	let seen = null, next = null;
	const again = loader(place, async () => {
		const got = next ?? (await read());
		next = null;
		return () => (seen = JSON.stringify(got), draw(got));
	});
	ctx.every(ms, async () => {
		if (document.querySelector("dialog[open]")) return;
		const got = await read().catch(() => null); // a server that is away is told above the page
		if (!got || (JSON.stringify(got) === seen && isRead(place))) return;
		next = got;
		return again();
	});
	return { place, again };
}

// "in 3 min 5 s", counted down without a new call.
export function due(value) {
	const date = toDate(value);
	if (!date) return "–";
	return h("time", { datetime: date.toISOString(), title: bothTimes(date), data: { due: String(date.getTime()) } }, dueText(date.getTime()));
}

function dueText(at) {
	const seconds = Math.round((at - now()) / 1000);
	if (Math.abs(seconds) < 1) return "now";
	return seconds > 0 ? `in ${duration(seconds)}` : `${duration(-seconds)} ago`;
}

export function tickDue(ctx) {
	ctx.every(TICK_MS, () => {
		for (const e of document.querySelectorAll("time[data-due]")) e.textContent = dueText(Number(e.dataset.due));
	});
}

// Data as it is, for those who want to see all of it.
export const json = (data) => h("pre", { tabindex: 0 }, JSON.stringify(data, null, 2));

export const more = (summary, key, ...children) => h("details", { class: "more-box", data: { key } }, h("summary", {}, summary), children);

// A secret that the server tells only once.
export function showOnce({ title, text, secret }) {
	return ask({ title, label: "I have saved it", canCancel: false, text: [h("p", {}, text), h("p", { class: "secret once" }, copyable(secret))] });
}

export const noun = (n, one) => (n === 1 ? one : one.replace(/y$/, "ie") + "s");
export const count = (n, one) => `${number(n)} ${noun(n, one)}`;
