// SPDX-License-Identifier: Apache-2.0
// Webhooks: who is told of which events over HTTP. The secret of one is shown once, when it is made.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { ago, number } from "../format.js";
import { ask, badge, button, card, confirm, empty, field, table, toast } from "../parts.js";
import { live, opsHeading, showOnce } from "./operations-parts.js";

const TEST_MS = 8000, POLL_MS = 400;

function fields(w) {
	return [
		field("URL", h("input", { name: "url", type: "url", required: true, maxlength: 2000, value: w?.url ?? "", autocomplete: "off" }), { help: "An https address. Events are posted there as JSON, signed." }),
		field("Events", h("input", { name: "filter", required: true, maxlength: 1000, value: w?.filter ?? "*", autocomplete: "off" }), { help: "Event types separated by commas; a trailing * matches anything: Lease*, AlarmRaised" }),
		field("Description (optional)", h("input", { name: "description", maxlength: 200, value: w?.description ?? "", autocomplete: "off" })),
	];
}

const given = (data) => ({ url: data.get("url").trim(), filter: data.get("filter").trim(), description: data.get("description").trim() });

async function create(again) {
	const made = await ask({ title: "New webhook", label: "Create", fields: fields(), run: (data) => api.post("/v1/ops/webhooks", given(data)) });
	if (!made) return;
	again();
	await showOnce({ title: "Save its secret now", text: "The receiver uses it to check that an event comes from here. It is shown only here: copy it before you close this.", secret: made.secret });
}

const path = (w, verb = "") => `/v1/ops/webhooks/${part(w.id)}${verb}`;

const edit = (w, again) => ask({ title: "Change this webhook", fields: fields(w), run: (data) => api.patch(path(w), given(data)) }).then((did) => did && (toast("Changed."), again()));

const pause = async (w, again) => {
	await api.patch(path(w), { paused: !w.paused });
	toast(w.paused ? "It receives events again." : "Paused: events in the meantime are not sent to it.");
	again();
};

const remove = (w, again) => confirm({ title: "Remove this webhook?", label: "Remove", danger: true, done: "Removed.", text: `${w.url} receives no more events, and waiting deliveries are dropped.`,
	run: () => api.remove(path(w)) }).then((did) => did && again());

// --- a test ---

// What became of the test: null when it was delivered, or else what is said of it. It is known by the line of this webhook alone. It goes from the queue
// "webhook", where its receivers are found, to "webhook-out", and maybe to the dead letters: whoever reads in this order does not miss it on its way.
async function outcome(w, ctx) {
	const subject = `webhook/${w.id}`, options = { signal: ctx.signal }, end = Date.now() + TEST_MS;
	for (;;) {
		const before = await api.page("/v1/ops/queues/webhook/lanes", "lanes", { limit: 100 }, options);
		const out = await api.page("/v1/ops/queues/webhook-out/lanes", "lanes", { limit: 100 }, options);
		const dead = await api.page("/v1/ops/dead-letters", "dead_letters", { queue: "webhook-out", limit: 100 }, options);
		const line = out.items.find((l) => l.subject === subject && l.target === w.id), died = dead.items.find((d) => d.subject === subject && d.target === w.id && d.died_at * 1000 > api.now() - TEST_MS * 2);
		const error = line?.last_error ?? died?.error;
		if (error) return `The test did not arrive: ${error}`;
		const isWaiting = line || before.items.some((l) => l.subject === subject);
		if (!isWaiting && !before.next && !out.next && !dead.next) return null;
		if (Date.now() > end) return isWaiting ? "The test did not arrive: no answer yet; it keeps trying" : "It is unknown whether the test arrived: more is waiting than can be looked through.";
		await new Promise((done) => setTimeout(done, POLL_MS));
	}
}

async function test(w, ctx, again) {
	await api.post(path(w, "/test"));
	const trouble = await outcome(w, ctx);
	if (trouble) toast(trouble, "bad");
	else toast("The test arrived: the receiver answered with success.");
	again();
}

// --- the page ---

const columns = (ctx, again) => [
	{ title: "URL", lead: true, cell: (w) => [w.url, w.description && h("span", { class: "sub-line" }, w.description)] },
	{ title: "Events", cell: (w) => (w.filter === "*" ? "all" : h("code", {}, w.filter)) },
	{ title: "State", cell: (w) => (w.paused ? badge("paused") : w.dead ? badge("failing", { text: `${number(w.dead)} not delivered`, kind: "bad" }) : badge("ok", { text: "On" })) },
	{ title: "Since", cell: (w) => [ago(w.created_at), w.created_by && h("span", { class: "sub-line" }, `by ${w.created_by}`)] },
	{ title: "Actions", hidden: true, class: "nowrap", cell: (w) => h("span", { class: "row" },
		button("Test", { size: "small", title: `Test ${w.url}`, run: () => test(w, ctx, again) }),
		button("Change", { size: "small", title: `Change ${w.url}`, run: () => edit(w, again) }),
		button(w.paused ? "Resume" : "Pause", { size: "small", title: `${w.paused ? "Resume" : "Pause"} ${w.url}`, run: () => pause(w, again) }),
		button("Remove", { size: "small", kind: "quiet-danger", title: `Remove ${w.url}`, run: () => remove(w, again) })) },
];

export default async function page(ctx) {
	const options = { signal: ctx.signal };
	const read = async () => {
		const [{ webhooks }, { dead_letters: dead }] = await Promise.all([api.get("/v1/ops/webhooks", {}, options), api.get("/v1/ops/dead-letters", { queue: "webhook-out", limit: 100 }, options)]);
		return webhooks.map((w) => ({ ...w, dead: dead.filter((d) => d.target === w.id).length }));
	};
	const add = () => button("New webhook", { kind: "primary", run: () => create(() => shown.again()) });
	const shown = live(ctx, read, (webhooks) => card("Receivers", {}, table(columns(ctx, () => shown.again()), webhooks, { caption: "Webhooks",
		none: empty("No webhooks", "A webhook sends events to another program as they happen: signed, in order, and retried until it answers.") })));
	return [opsHeading("/operations/webhooks", "Webhooks", { sub: "Programs that receive events over HTTP.", actions: add() }), shown.place];
}
