// SPDX-License-Identifier: Apache-2.0
// A manager changes what a running lease was given: its end, its budget, what happens on the way there, who pays.
import * as api from "../api.js";
import { h } from "../dom.js";
import { duration, money, toDate } from "../format.js";
import { ask, button, field, select, toast } from "../parts.js";
import { numberOf, thresholdsEditor } from "./lease-parts.js";

const HOUR_MS = 3600000;

// What a datetime-local field has: the reader's own time, to the minute.
const localText = (date) => new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 16);

function endField(l, policy) {
	const end = toDate(l.expirationDate), start = toDate(l.startDate);
	const input = h("input", { name: "expirationDate", type: "datetime-local", value: end ? localText(end) : "" });
	const most = policy.leases.maxDurationHours;
	const add = (text, count) => button(text, { size: "small", run: () => {
		const from = input.value ? new Date(input.value) : new Date(api.now());
		input.value = localText(new Date(from.getTime() + count * HOUR_MS));
	} });
	const help = most ? `At most ${duration(most * 3600)} from its start${start ? `: until ${new Date(start.getTime() + most * HOUR_MS).toLocaleString()}` : ""}.` : "In your own time.";
	const box = field("Ends", input, { help });
	input.after(h("div", { class: "row" }, add("+ 1 hour", 1), add("+ 1 day", 24), add("+ 1 week", 168)));
	return box;
}

export function groupField(value, policy) {
	const groups = policy.costReportGroups;
	if (!groups.length && !value) return null;
	const known = groups.includes(value) || !value ? groups : [value, ...groups];
	return field("Cost group", select("costReportGroup", [["", "none"], ...known.map((g) => [g, g])], value ?? ""),
		{ help: policy.requireCostReportGroup ? "Required: who pays." : "Who pays, in the report of a month." });
}

// Only what was changed is sent.
function changes(l, data, budgets, durations) {
	const body = {}, end = data.get("expirationDate");
	const given = { maxSpend: numberOf(data.get("maxSpend")), costReportGroup: data.has("costReportGroup") ? data.get("costReportGroup") || null : undefined,
		budgetThresholds: budgets, durationThresholds: durations };
	for (const [name, value] of Object.entries(given))
		if (value !== undefined && JSON.stringify(value) !== JSON.stringify(l[name] ?? (Array.isArray(value) ? [] : null))) body[name] = value;
	const was = toDate(l.expirationDate);
	if (end !== (was ? localText(was) : "")) body.expirationDate = end ? new Date(end).toISOString() : null;
	return body;
}

// Answers what ask() answers: something when it was changed.
export function changeLease(l, path, policy) {
	const budgets = thresholdsEditor("budgetThresholds", l.budgetThresholds), durations = thresholdsEditor("durationThresholds", l.durationThresholds);
	const most = policy.leases.maxBudget;
	return ask({
		title: "Extend or change this lease", label: "Save", wide: true,
		fields: [
			endField(l, policy),
			field("Budget in dollars", h("input", { name: "maxSpend", type: "number", min: 0, step: "any", value: l.maxSpend ?? "", inputmode: "decimal" }),
				{ help: most ? `At most ${money(most)}.` : null }),
			groupField(l.costReportGroup, policy), budgets.element, durations.element,
		],
		run: (data) => {
			const body = changes(l, data, budgets.read(), durations.read());
			if (!Object.keys(body).length) throw new api.ApiError(400, "Nothing is changed yet.");
			return api.patch(path, body).then(() => toast("Saved."));
		},
	});
}
