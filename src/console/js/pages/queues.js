// SPDX-License-Identifier: Apache-2.0
// The queues: how much waits in each, how old the oldest is, what fails.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { duration, number } from "../format.js";
import { badge, card, table } from "../parts.js";
import { live, opsHeading } from "./operations-parts.js";
import { queueDoes, queueName } from "./queues-parts.js";

const WITHOUT_END = 1000;

function state(q) {
	if (q.failing) return badge("failing", { text: "Failing", kind: "warn" });
	return q.lanes ? badge("working", { text: "Working", kind: "info" }) : badge("ok", { text: "Idle", kind: "plain" });
}

const columns = [
	{ title: "Queue", lead: true, cell: (q) => [h("a", { href: `/operations/queues/${part(q.name)}` }, queueName(q.name)), h("span", { class: "sub-line" }, `${q.name}: ${queueDoes(q.name)}`)] },
	{ title: "State", cell: state },
	{ title: "Waiting", by: (q) => q.lanes, num: true, cell: (q) => number(q.lanes) },
	{ title: "Oldest", by: (q) => q.oldest_age_sec, num: true, cell: (q) => (q.oldest_age_sec === null ? null : duration(q.oldest_age_sec)) },
	{ title: "Failing", by: (q) => q.failing, num: true, cell: (q) => number(q.failing) },
	{ title: "Dead letters", by: (q) => q.dead, num: true, cell: (q) => (q.dead ? h("a", { href: `/operations/dead-letters?queue=${encodeURIComponent(q.name)}` }, number(q.dead)) : number(0)) },
	{ title: "Tries", by: (q) => q.tries, num: true, cell: (q) => (q.tries >= WITHOUT_END ? "no limit" : number(q.tries)) },
];

export default async function page(ctx) {
	const shown = live(ctx, () => api.get("/v1/ops/queues", {}, { signal: ctx.signal }), ({ queues }) =>
		card("Queues", {}, table(columns, queues, { caption: "Queues" })));
	return [opsHeading("/operations/queues", "Queues", { sub: "How events reach their handlers, in order for each subject." }), shown.place];
}
