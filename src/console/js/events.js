// SPDX-License-Identifier: Apache-2.0
// Events as people read them: what happened, to what, by whom. Shared by the overview, the details' timelines and the list of events.
import { h, part } from "./dom.js";
import { ago, clock, words } from "./format.js";
import { empty } from "./parts.js";

// Where an event's subject is shown, by the first word of the subject ("sandbox/ID"). A page that shows a kind adds its row.
const places = {
	sandbox: { right: "sandboxes", href: (id) => `/sandboxes/${part(id)}` },
	lease: { right: "leases", href: (id) => `/leases/${part(id)}` },
	account: { right: "accounts", href: (id) => `/accounts/${part(id)}` },
};

export function subjectLink(subject, rights) {
	const [, kind, id] = /^([^/]+)\/(.+)$/.exec(subject ?? "") ?? [];
	const place = places[kind];
	return place && rights[place.right] ? h("a", { href: place.href(id) }, subject) : (subject ?? "");
}

const shownDetail = ["reason", "error", "track", "status", "job", "expiresAt"];

// The part of a detail that is worth a line.
export function eventDetail(event) {
	const detail = event.detail ?? {};
	return shownDetail.filter((name) => detail[name] !== undefined && detail[name] !== null && detail[name] !== "")
		.map((name) => `${words(name).toLowerCase()} ${typeof detail[name] === "object" ? JSON.stringify(detail[name]) : detail[name]}`)
		.join(", ");
}

export function eventItem(event, rights, { withSubject = true } = {}) {
	const more = [event.actor && `by ${event.actor}`, eventDetail(event)].filter(Boolean).join("; ");
	return h("li", { data: { event: event.id } },
		withSubject ? clock(event.time) : ago(event.time),
		h("div", { class: "what" }, h("b", {}, words(event["detail-type"])), withSubject && [" ", subjectLink(event.subject, rights)],
			more && h("span", { class: "more" }, more)));
}

// The newest first.
export function timeline(events, rights, options) {
	if (!events.length) return empty("Nothing has happened yet");
	return h("ol", { class: "timeline" }, events.map((e) => eventItem(e, rights, options)));
}
