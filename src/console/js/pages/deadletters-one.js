// SPDX-License-Identifier: Apache-2.0
// One dead letter: what it was about, for whom, what went wrong, and its whole payload.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { subjectLink } from "../events.js";
import { time, words } from "../format.js";
import { card, copyable, empty, facts, heading } from "../parts.js";
import { count, json } from "./operations-parts.js";
import { addressee, dropButton, replayButton } from "./deadletters-parts.js";

export default async function page(ctx) {
	const options = { signal: ctx.signal };
	const [letter, { webhooks }] = await Promise.all([api.get(`/v1/ops/dead-letters/${part(ctx.params.id)}`, {}, options), api.get("/v1/ops/webhooks", {}, options)]);
	const back = () => ctx.go("/operations/dead-letters"), type = letter.event?.["detail-type"];
	ctx.title(`Dead letter of ${letter.subject}`);
	return [
		heading(type ? words(type) : "Dead letter", { back: { href: "/operations/dead-letters", text: "Dead letters" }, sub: `could not be delivered to ${addressee(letter, webhooks)}`,
			actions: [replayButton(letter, back), dropButton(letter, back)] }),
		h("div", { class: "grid" },
			h("div", { class: "two-thirds stack" },
				card("What went wrong", { more: `after ${count(letter.tries, "try")}` }, h("p", { class: "note bad" }, letter.error ?? "No error was reported.")),
				card("Undelivered event", {}, letter.event ? json(letter.event) : empty("The event is no longer in the log", "It is older than the log's retention. It can only be dropped."))),
			h("div", { class: "third stack" }, card("Details", {}, facts([
				["Subject", subjectLink(letter.subject, ctx.rights)],
				["Queue", h("a", { href: `/operations/queues/${part(letter.queue)}` }, letter.queue)],
				["For", addressee(letter, webhooks)],
				["Waiting since", time(letter.since_at)],
				["Given up", time(letter.died_at)],
				["Event", h("a", { href: `/operations/events?subject=${encodeURIComponent(letter.subject)}` }, "all events of this subject")],
				["Id", copyable(letter.id)],
			])))),
	];
}
