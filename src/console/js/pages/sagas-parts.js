// SPDX-License-Identifier: Apache-2.0
// A saga as people read it: its steps as progress, and what can be done about it.
import * as api from "../api.js";
import { h, icon, part } from "../dom.js";
import { words } from "../format.js";
import { badge, button, confirm } from "../parts.js";

export const sagaHref = (id) => `/operations/sagas/${part(id)}`;

const states = { running: "Running", undoing: "Undoing", parked: "Parked", done: "Done", undone: "Undone" };
const stateKinds = { running: "info", undoing: "warn", parked: "bad", done: "good", undone: "plain" };
export const sagaBadge = (state) => badge(state, { text: states[state] ?? words(state), kind: stateKinds[state] });

const kinds = { "account-follow": "Account follows its record" };
export const sagaTitle = (s) => kinds[s.kind] ?? words(s.kind);

const marks = {
	not_begun: "not started", doing: "in progress", done: "done", skipped: "skipped", undoing: "being undone", undone: "undone",
};

// The steps in a row, each with its word: colour says nothing alone.
export function steps(saga) {
	return h("ol", { class: "steps", "aria-label": "Steps" }, saga.steps.map((step, i) => {
		const isHere = i + 1 === saga.step && ["doing", "undoing"].includes(step.mark);
		const isStuck = isHere && (saga.state === "parked" || saga.last_error);
		return h("li", { class: `step ${step.mark} ${isStuck ? "stuck" : ""}`, "aria-current": isHere && "step" },
			h("span", { class: "step-mark", "aria-hidden": "true" }, step.mark === "done" ? icon("check") : isStuck ? icon("alarm") : String(i + 1)),
			h("span", { class: "step-name" }, words(step.name)),
			h("span", { class: "step-word" }, isStuck ? (saga.state === "parked" ? "stopped here" : "failing, retrying") : marks[step.mark]));
	}));
}

// How far it is, in a list.
export function progress(saga) {
	const share = saga.step_count ? (saga.state === "done" ? 1 : Math.max(0, saga.step - 1) / saga.step_count) : 0;
	return h("div", { class: "meter-box" },
		h("div", { class: "bar thin", "aria-hidden": "true" }, h("span", { class: `fill ${stateKinds[saga.state]}`, style: { width: `${share * 100}%` } })),
		h("span", { class: "meter-text" }, saga.state === "done" ? `all ${saga.step_count} steps` : `step ${saga.step} of ${saga.step_count}: ${saga.step_name}`,
			saga.tries > 1 && `, try ${saga.tries}`));
}

const orders = {
	retry: {
		label: "Retry", done: "Retrying.", title: () => "Retry the step now?",
		text: (s) => `The step "${s.step_name}" is tried again now, with a fresh set of tries. Use this once the cause is fixed.`,
	},
	skip: {
		label: "Skip step", reason: "required", danger: true, done: "Step skipped.", title: (s) => `Skip the step "${s.step_name}"?`,
		text: (s) => `It counts as ${s.state === "undoing" ? "undone" : "done"} and the next one starts. Only do this if you have done it by hand, or it is not needed.`,
	},
	abort: {
		label: "Abort", reason: "required", danger: true, done: "Rolling back.", title: () => "Abort and undo?",
		text: () => "Every step that was done, or may have been, is undone, starting with the last.",
	},
};

// Only what the state allows.
const allowed = { running: ["retry", "skip", "abort"], undoing: ["retry", "skip"], parked: ["retry", "skip", "abort"] };

export function sagaActions(saga, again, { size } = {}) {
	return (allowed[saga.state] ?? []).map((verb) => {
		const o = orders[verb];
		return button(verb === "retry" && saga.state !== "parked" ? "Retry now" : o.label, {
			size, title: `${o.label}: ${saga.id}`, kind: verb === "retry" ? (saga.state === "parked" ? "primary" : "") : verb === "abort" ? "quiet-danger" : "",
			run: () => confirm({
				title: o.title(saga), text: o.text(saga), label: verb === "retry" ? "Retry" : o.label, danger: o.danger, reason: o.reason, done: o.done,
				run: (reason) => api.post(`/v1/ops/sagas/${part(saga.id)}/${verb}`, o.reason ? { reason } : {}),
			}).then((did) => did && again()),
		});
	});
}
