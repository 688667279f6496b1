// SPDX-License-Identifier: Apache-2.0
// Alarms: what is wrong now, since when, by what evidence, and what the runbook says to do about it.
import * as api from "../api.js";
import { h } from "../dom.js";
import { ago, time } from "../format.js";
import { badge, card, copyable, empty } from "../parts.js";
import { alarmPlace, alarmTitle } from "./alarms-parts.js";
import { live, more, opsHeading } from "./operations-parts.js";

// --- the runbook ---

let runbook; // one file, read once

async function section(rule) {
	runbook ??= fetch(new URL("../../runbook.md", import.meta.url)).then((r) => (r.ok ? r.text() : "")).catch(() => "");
	const text = await runbook, begin = text.indexOf(`\n### ${rule}\n`);
	if (begin < 0) return [];
	const rest = text.slice(begin + rule.length + 6), end = rest.search(/\n##/);
	return (end < 0 ? rest : rest.slice(0, end)).split(/\n\n+/).map((p) => p.replaceAll("\n", " ").trim()).filter(Boolean);
}

// **bold**, `code` and [links](...) of a paragraph; links become their text.
function paragraph(text) {
	const pieces = text.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").split(/(\*\*[^*]+\*\*|`[^`]+`)/);
	return h("p", {}, pieces.map((p) => (p.startsWith("**") ? h("b", {}, p.slice(2, -2)) : p.startsWith("`leasehold ") ? copyable(p.slice(1, -1)) : p.startsWith("`") ? h("code", {}, p.slice(1, -1)) : p)));
}

// --- the page ---

function alarmCard({ text, ...a }) {
	const place = alarmPlace(a);
	return card(alarmTitle(a), { class: `alarm ${a.state === "raised" ? a.severity : ""}`, more: h("span", { class: "row" },
		badge(a.severity, a.severity === "page" ? { text: "Page: act now" } : { text: "Warning" }), badge(a.state, { text: a.state === "raised" ? "Raised" : "Not yet raised", kind: a.state === "raised" ? "bad" : "plain" })) },
	h("div", { class: "stack" },
		h("p", {}, a.evidence),
		h("p", { class: "dim" }, "Since ", time(a.since_at), ", ", ago(a.since_at), a.checked_at > a.since_at && ["; last change ", ago(a.checked_at)], "."),
		text.length > 0 && more("What it means and what to do", a.name, h("div", { class: "runbook" }, text.map(paragraph))),
		h("div", { class: "row" }, place && h("a", { class: "button small", href: place.href }, place.label),
			h("a", { class: "button small", href: `/operations/events?subject=${encodeURIComponent(`alarm/${a.name}`)}` }, "History"))));
}

const rank = (a) => (a.state === "raised" ? 0 : 2) + (a.severity === "page" ? 0 : 1);

export default async function page(ctx) {
	const read = async () => Promise.all((await api.get("/v1/ops/alarms", {}, { signal: ctx.signal })).alarms.map(async (a) => ({ ...a, text: await section(a.rule) })));
	const shown = live(ctx, read, (alarms) =>
		(alarms.length ? alarms.sort((a, b) => rank(a) - rank(b)).map(alarmCard)
			: card("Alarms", {}, empty("No alarms", "Every rule passes. Rules are checked every 30 seconds."))));
	return [opsHeading("/operations/alarms", "Alarms", { sub: "Current problems. An alarm clears by itself once its cause is gone; there is nothing to acknowledge." }), shown.place];
}
