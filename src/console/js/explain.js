// SPDX-License-Identifier: Apache-2.0
// The panel that explains one thing: where it is and since when, why, what is wrong, what led there, what comes next, what can be done. Everything
// in it is the server's own words (docs/explain.md); nothing is concluded here.
//
//   explainPanel("sandbox", id, ctx)                       "account", "lease", "sandbox" or "instance"
//   explainPanel("account", id, ctx, { isOpen: false })    where the page itself says the most: it opens by itself when something is wrong
//
// Of a lease the id is its uuid for who has operations, and its leaseId for everybody else, who is told less of it. Accounts are explained to
// managers too, sandboxes and instances only to who has operations.
import * as api from "./api.js";
import { fill, h, part } from "./dom.js";
import { ago, time, words } from "./format.js";
import { badge, copyable, loader } from "./parts.js";

const FRESH_MS = 5000;
export const canExplain = (kind) => ["account", "lease", "sandbox", "instance"].includes(kind);

function ask(kind, id, ctx) {
	const path = ctx.rights.operations ? `/v1/ops/explain/${part(kind)}/${part(id)}` : `/api/${kind}s/${part(id)}/explain`;
	return api.get(path, {}, { signal: ctx.signal });
}

const list = (title, items) => items.length > 0 && h("div", {}, h("h3", {}, title), h("ul", { class: "why" }, items.map((text) => h("li", {}, text))));

function comingNext(next) {
	return next.length > 0 && h("div", {}, h("h3", {}, "What happens next"),
		h("ul", { class: "explain-next" }, next.map((n) => h("li", {}, h("b", {}, n.at ? ago(n.at) : "Then"), " ", n.what, n.by && h("span", { class: "sub-line" }, n.by)))));
}

// Drawn when it is opened: most pages have a timeline of their own.
function ledThere(events) {
	if (!events.length) return null;
	const list = h("ol", { class: "timeline" });
	const draw = () => fill(list, events.map((e) => h("li", {}, ago(e.time), h("span", { class: "what" }, e.text === e.type ? words(e.type) : e.text),
		e.actor && h("span", { class: "more" }, `by ${e.actor}`))));
	return h("details", { class: "more-box", on: { toggle: draw } }, h("summary", {}, `History (${events.length})`), list);
}

function orders(can) {
	return can.length > 0 && h("details", { class: "more-box" }, h("summary", {}, `Commands you can run (${can.length})`),
		h("ul", { class: "explain-can" }, can.map((c) => h("li", {}, h("span", {}, c.do), copyable(c.command)))));
}

function content(s) {
	return h("div", { class: "stack explain-body" },
		h("p", { class: "explain-summary" }, s.summary),
		h("p", { class: "dim" }, badge(s.where, { text: words(s.where), kind: "plain" }), s.since && [" since ", time(s.since), ", ", ago(s.since)]),
		s.problems.length > 0 && h("div", { class: "note bad" }, h("h3", {}, "What is wrong"), h("ul", { class: "why" }, s.problems.map((text) => h("li", {}, text)))),
		list("Why", s.why), comingNext(s.next), ledThere(s.events), orders(s.can));
}

export function explainPanel(kind, id, ctx, { title = "Explain", isOpen = true } = {}) {
	const place = h("div");
	const panel = h("details", { class: "card explain", open: isOpen, data: { explain: kind } },
		h("summary", {}, h("h2", {}, title), h("span", { class: "dim" }, "why, what comes next, what you can do")), place);
	let said = "", wasOpened = isOpen;
	const again = loader(place, async () => {
		const got = await ask(kind, id, ctx);
		said = JSON.stringify(got);
		if (got.problems.length && !wasOpened) wasOpened = panel.open = true;
		return panel.open && content(got);
	});
	panel.addEventListener("toggle", () => panel.open && again());
	ctx.every(FRESH_MS, async () => {
		if (place.contains(document.activeElement)) return;
		const got = await ask(kind, id, ctx).catch(() => null); // a server that is away is told above the page
		if (got && JSON.stringify(got) !== said) return again();
	});
	return panel;
}
