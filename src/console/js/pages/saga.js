// SPDX-License-Identifier: Apache-2.0
// One saga: its steps, where it stands and why, what may be left over, what it was given; what an operator can do.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { subjectLink, timeline } from "../events.js";
import { canExplain, explainPanel } from "../explain.js";
import { ago, time } from "../format.js";
import { card, copyable, facts, heading } from "../parts.js";
import { count, due, json, live, more, tickDue } from "./operations-parts.js";
import { sagaActions, sagaBadge, sagaTitle, steps } from "./sagas-parts.js";

const EVENTS = 50;

function sentence(s) {
	switch (s.state) {
	case "running": return s.last_error ? ["The step ", h("b", {}, s.step_name), " failed and will be retried ", due(s.due_at), "."] : ["The step ", h("b", {}, s.step_name), " is in progress."];
	case "undoing": return ["It is rolling back. The step ", h("b", {}, s.step_name), " is being undone", s.last_error && [", which failed; it will be retried ", due(s.due_at)], "."];
	case "parked": return "It needs a person: it can neither continue nor roll back by itself.";
	case "done": return "All steps are done.";
	default: return "Everything it did has been undone.";
	}
}

function stand(s) {
	return card("Progress", {}, h("div", { class: "stack" },
		h("div", { class: "stand" }, h("div", { class: "row" }, sagaBadge(s.state), h("div", {}, sentence(s)))),
		steps(s),
		s.reason && h("p", { class: s.state === "parked" ? "note bad" : "note" }, h("b", {}, "Reason: "), s.reason),
		s.last_error && s.state !== "done" && h("p", { class: "note warn" }, h("b", {}, `Last error${s.tries ? `, after ${count(s.tries, "try")}` : ""}: `), s.last_error),
		s.leftovers?.length > 0 && h("div", { class: "note bad" }, h("h3", {}, "May be left behind"), h("ul", { class: "why" }, s.leftovers.map((step) => h("li", {}, `what "${step}" did`))))));
}

const about = (ctx, s) => card("Details", {}, facts([
	["Subject", subjectLink(s.subject, ctx.rights)],
	["Kind", s.kind],
	["Started", time(s.started_at)],
	["By", s.actor ?? undefined],
	["In this step since", s.ended_at ? undefined : ago(s.step_since_at)],
	["Must end by", s.deadline_at ? time(s.deadline_at) : undefined],
	["Ended", s.ended_at ? time(s.ended_at) : undefined],
	["Owned by node", s.owner ? h("code", {}, s.owner) : undefined],
	["Id", copyable(s.id)],
]));

export default async function page(ctx) {
	const path = `/v1/ops/sagas/${part(ctx.params.id)}`, options = { signal: ctx.signal };
	const read = () => api.get(path, {}, options);
	const first = await read(), title = sagaTitle(first);
	const log = () => api.get("/v1/ops/events", { subject: first.subject, limit: EVENTS }, options);
	const [kind, id] = first.subject.split(/\/(.*)/s);
	ctx.title(title);
	const shown = live(ctx, () => Promise.all([read(), log()]), ([s, { events }]) => [
		heading(title, { back: { href: "/operations/sagas", text: "Sagas" }, sub: s.id, actions: sagaActions(s, () => shown.again()) }),
		h("div", { class: "grid" },
			h("div", { class: "two-thirds stack" }, stand(s),
				card("History", {}, timeline(events.filter((e) => /^Saga/.test(e["detail-type"])), ctx.rights, { withSubject: false })),
				card("Data", {}, more("Input", "input", json(s.input)), more("Collected data", "data", json(s.data)))),
			h("div", { class: "third stack" }, about(ctx, s))),
	]);
	tickDue(ctx);
	return h("div", { class: "stack" }, shown.place, canExplain(kind) && explainPanel(kind, id, ctx, { title: `Explain ${kind} ${id}` }));
}
