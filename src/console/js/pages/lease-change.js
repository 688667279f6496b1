// SPDX-License-Identifier: Apache-2.0
// A manager changes what a running lease was given: its end, its budget, what happens on the way there, who pays.
import * as api from "../api.js";
import { h } from "../dom.js";
import { money, time, toDate } from "../format.js";
import { ask, button, confirm, field, select, toast } from "../parts.js";
import { hours, numberOf, thresholdsEditor } from "./lease-parts.js";

const HOUR_MS = 3600000;

// What a datetime-local field has: the reader's own time, to the minute.
const localText = (date) => new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 16);

// The latest end that the policy allows, to the minute; null: there is no limit.
function latestEnd(l, policy) {
	const start = toDate(l.startDate), most = policy.leases.maxDurationHours;
	return start && most ? new Date(Math.floor((start.getTime() + most * HOUR_MS) / 60000) * 60000) : null;
}

const steps = [["+ 1 hour", 1], ["+ 1 day", 24], ["+ 1 week", 168]];

// Below the bar of time, for who may: more of it in two clicks, and how much there can be.
export function extendRow(l, path, policy, again) {
	const end = toDate(l.expirationDate), last = latestEnd(l, policy);
	if (!end) return null;
	const more = steps.map(([text, count]) => [text, new Date(end.getTime() + count * HOUR_MS)]).filter(([, at]) => !last || at <= last);
	if (last && last > end) more.push(["Latest possible", last]);
	const extend = (at) => confirm({ title: "Extend this lease?", label: "Extend", done: "Extended.", text: h("p", {}, "It then ends ", time(at), "."),
		run: () => api.patch(path, { expirationDate: at.toISOString() }) }).then((did) => did && again());
	return h("div", { class: "extend" },
		h("p", { class: "dim" }, last ? [last > end ? "It can be extended until " : "It cannot be extended any further: the limit is ", last > end ? [time(last), ": "] : "", hours(policy.leases.maxDurationHours), " from its start (leases.maxDurationHours)."]
			: "There is no limit on its duration."),
		more.length > 0 && h("div", { class: "row" }, more.map(([text, at]) => button(text, { size: "small", title: `Extend: ${text}`, run: () => extend(at) }))));
}

function endField(l, policy) {
	const end = toDate(l.expirationDate);
	const input = h("input", { name: "expirationDate", type: "datetime-local", value: end ? localText(end) : "" });
	const most = policy.leases.maxDurationHours, last = latestEnd(l, policy);
	const after = (count) => new Date((input.value ? new Date(input.value).getTime() : api.now()) + count * HOUR_MS);
	const more = steps.map(([text, count]) =>
		[count, button(text, { size: "small", run: () => set(after(count)) })]);
	const until = last && button("Latest possible", { size: "small", run: () => set(last) });
	function set(date) {
		input.value = localText(date);
		offer();
	}
	// Only what the policy allows is offered.
	function offer() {
		for (const [count, one] of more) one.hidden = !!last && after(count) > last;
		if (until) until.hidden = !!input.value && new Date(input.value) >= last;
	}
	input.addEventListener("input", offer);
	offer();
	const help = most ? ["At most ", hours(most), " from its start (leases.maxDurationHours)", last && [": until ", time(last)], "."] : "In your local time.";
	const box = field("Ends", input, { help });
	input.after(h("div", { class: "row" }, more.map(([, one]) => one), until));
	return box;
}

export function groupField(value, policy) {
	const groups = policy.costReportGroups;
	if (!groups.length && !value) return null;
	const known = groups.includes(value) || !value ? groups : [value, ...groups];
	return field("Cost group", select("costReportGroup", [["", "none"], ...known.map((g) => [g, g])], value ?? ""),
		{ help: policy.requireCostReportGroup ? "Required: which group pays." : "Which group pays, in the monthly report." });
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
				{ help: most ? `At most ${money(most)} (leases.maxBudget).` : null }),
			groupField(l.costReportGroup, policy), budgets.element, durations.element,
		],
		run: (data) => {
			const body = changes(l, data, budgets.read(), durations.read());
			if (!Object.keys(body).length) throw new api.ApiError(400, "Nothing has changed.");
			return api.patch(path, body).then(() => toast("Saved."));
		},
	});
}
