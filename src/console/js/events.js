// SPDX-License-Identifier: Apache-2.0
// Events as people read them: what happened, to what, by whom. Shared by the overview, the details' timelines and the list of events.
import { h, part } from "./dom.js";
import { ago, stamp, words } from "./format.js";
import { empty } from "./parts.js";

// Where an event's subject is shown, by the first word of the subject ("sandbox/ID"). A page that shows a kind adds its row.
const places = {
	sandbox: { right: "sandboxes", href: (id) => `/sandboxes/${part(id)}` },
	lease: { right: "leases", href: (id) => `/leases/${part(id)}` },
	account: { right: "accounts", href: (id) => `/accounts/${part(id)}` },
	instance: { right: "instances", href: (id) => `/instances/${part(id)}` },
	tenant: { right: "instances", href: (id) => `/instances?tenant=${part(id)}` },
	saga: { right: "operations", href: (id) => `/operations/sagas/${part(id)}` },
	job: { right: "operations", href: () => "/operations/jobs" },
	alarm: { right: "operations", href: () => "/operations/alarms" },
	webhook: { right: "operations", href: () => "/operations/webhooks" },
	policy: { right: "operations", href: (id) => `/operations/configuration?document=${part(id)}` },
};

const split = (subject) => /^([^/]+)\/(.+)$/.exec(subject ?? "")?.slice(1) ?? ["", subject ?? ""];

// A link to a subject where there is a page of it. text: what to call it, instead of its id.
export function subjectLink(subject, rights, text) {
	const [kind, id] = split(subject);
	const place = places[kind];
	return place && rights[place.right] ? h("a", { href: place.href(id) }, text || id) : (text || subject || "");
}

// Members of a detail that are worth a word, and how they read.
const shown = [
	["reason", (v) => (typeof v === "string" ? (/^[A-Z_]+$/.test(v) ? words(v).toLowerCase() : v) : (v.comment ?? v.type ?? ""))],
	["operation", (v) => v],
	["status", (v, detail) => (detail.eventType ? words(v).toLowerCase() : `now ${words(v).toLowerCase()}`)],
	["error", (v) => (typeof v === "string" ? v : `${v.code}: ${v.message}`)],
	["expiresAt", (v) => ["until ", stamp(v)]],
	["userEmail", (v) => `of ${v}`],
	["templateName", (v) => `from ${v}`],
];

function detailParts(event) {
	const detail = event.detail ?? {};
	return shown.filter(([name]) => detail[name]).map(([name, read]) => read(detail[name], detail)).filter((text) => text.length);
}

// withSubject: false on the page of that very subject.
export function eventItem(event, rights, { withSubject = true } = {}) {
	const [kind, id] = split(event.subject);
	const by = event.actor && event.actor !== event.subject && !event.actor.startsWith("operation/") && `by ${event.actor}`;
	const more = [by, ...detailParts(event)].filter(Boolean).flatMap((p, i) => (i ? [", ", p] : [p]));
	const name = event.detail?.name ?? (kind === "job" ? id : null);
	return h("li", { data: { event: event.id } },
		withSubject ? stamp(event.time) : ago(event.time),
		h("span", { class: "what" }, words(event["detail-type"])),
		withSubject && h("span", { class: "about" }, subjectLink(event.subject, rights, name)),
		more.length > 0 && h("span", { class: "more" }, more));
}

// The newest first.
export function timeline(events, rights, options) {
	if (!events.length) return empty("Nothing has happened yet");
	return h("ol", { class: "timeline" }, events.map((e) => eventItem(e, rights, options)));
}
