// SPDX-License-Identifier: Apache-2.0
// What waits in one queue: a line for each subject, with what is at its head.
import * as api from "../api.js";
import { part } from "../dom.js";
import { subjectLink } from "../events.js";
import { ago, number } from "../format.js";
import { badge, card, empty, heading, pager, table } from "../parts.js";
import { due, live, noun, tickDue } from "./operations-parts.js";
import { queueDoes, queueName } from "./queues-parts.js";

const PAGE = 50;
const states = { ready: ["Ready", "info"], waiting: ["Waiting to retry", "warn"], in_flight: ["Being delivered", "info"] };

const columns = (ctx) => [
	{ title: "About", lead: true, cell: (l) => subjectLink(l.subject, ctx.rights, l.subject) },
	{ title: "For", cell: (l) => l.target },
	{ title: "State", cell: (l) => badge(l.state, { text: states[l.state]?.[0], kind: states[l.state]?.[1] }) },
	{ title: "Behind it", by: (l) => l.behind, num: true, cell: (l) => number(l.behind) },
	{ title: "Tries", by: (l) => l.tries, num: true, cell: (l) => number(l.tries) },
	{ title: "Next", cell: (l) => due(l.due_at) },
	{ title: "Since", cell: (l) => ago(l.since_at) },
	{ title: "Last error", class: "text-cell", cell: (l) => l.last_error },
];

export default async function page(ctx) {
	const name = ctx.params.queue, path = `/v1/ops/queues/${part(name)}/lanes`, { cursor } = ctx.query;
	const read = () => api.page(path, "lanes", { limit: PAGE, cursor }, { signal: ctx.signal });
	await read();
	ctx.title(queueName(name));
	const shown = live(ctx, read, (found) => [
		card("Waiting", {}, table(columns(ctx), found.items, { caption: "Waiting deliveries", none: empty("Nothing is waiting", "Everything in this queue has been delivered.") })),
		pager({ cursor, next: found.next, count: found.items.length, what: noun(found.items.length, "lane"), href: (c) => ctx.hrefWith({ cursor: c }) }),
	]);
	tickDue(ctx);
	return [heading(queueName(name), { back: { href: "/operations/queues", text: "Queues" }, sub: `${name}: ${queueDoes(name)}` }), shown.place];
}
