// SPDX-License-Identifier: Apache-2.0
// Deliveries that were given up: what could not be told to whom, and why; deliver them again, or drop them.
import * as api from "../api.js";
import { h } from "../dom.js";
import { ago, number, words } from "../format.js";
import { card, empty, field, pager, select, table } from "../parts.js";
import { count, live, noun, opsHeading } from "./operations-parts.js";
import { addressee, dropButton, letterHref, replayAllButton, replayButton } from "./deadletters-parts.js";

const PAGE = 50;

const columns = (webhooks, again) => [
	{ title: "What", lead: true, cell: (d) => [h("a", { href: letterHref(d.id) }, d.type ? words(d.type) : d.subject), d.type && h("span", { class: "sub-line" }, d.subject)] },
	{ title: "Not delivered to", class: "url-cell", cell: (d) => [addressee(d, webhooks), h("span", { class: "sub-line" }, `queue ${d.queue}`)] },
	{ title: "Why", class: "text-cell", cell: (d) => [d.error, h("span", { class: "sub-line" }, `after ${count(d.tries, "try")}`)] },
	{ title: "Given up", cell: (d) => ago(d.died_at) },
	{ title: "Actions", hidden: true, class: "nowrap", cell: (d) => h("span", { class: "row" }, replayButton(d, again, { size: "small" }), dropButton(d, again, { size: "small" })) },
];

function nothing(ctx) {
	return ctx.query.queue ? empty("No dead letters in this queue", null, h("a", { class: "button", href: "/operations/dead-letters" }, "Show all"))
		: empty("No dead letters", "A delivery that has used up its queue's tries is kept here until you replay or drop it. Nothing is lost.");
}

export default async function page(ctx) {
	const options = { signal: ctx.signal }, { queue, cursor } = ctx.query;
	const read = () => Promise.all([
		api.page("/v1/ops/dead-letters", "dead_letters", { queue, limit: PAGE, cursor }, options),
		api.get("/v1/ops/webhooks", {}, options), api.get("/v1/ops/queues", {}, options),
	]);
	const part = live(ctx, read, ([found, { webhooks }, { queues }]) => {
		const again = () => part.again(), full = queues.filter((q) => q.dead > 0 && (!queue || q.name === queue));
		return [
			found.items.length > 0 && h("div", { class: "filters" },
				field("Queue", select("queue", [["", "All queues"], ...queues.filter((q) => q.dead > 0 || q.name === queue).map((q) => [q.name, `${q.name} (${number(q.dead)})`])], queue ?? "",
					(value) => ctx.setQuery({ queue: value, cursor: "" }))),
				full.map((q) => replayAllButton(q.name, again))),
			card("Given up", {}, table(columns(webhooks, again), found.items, { caption: "Dead letters", none: nothing(ctx) })),
			pager({ cursor, next: found.next, count: found.items.length, what: noun(found.items.length, "dead letter"), href: (c) => ctx.hrefWith({ cursor: c }) }),
		];
	});
	return [opsHeading("/operations/dead-letters", "Dead letters", { sub: "What could not be delivered, and why. Fix the cause, then replay." }), part.place];
}
