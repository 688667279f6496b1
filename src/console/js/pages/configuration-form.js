// SPDX-License-Identifier: Apache-2.0
// The keys of a document that are changed most, as a form. It writes into the text of the editor, line by line, so that comments and everything
// else stay; what is wrong with a value the server says.
import { h } from "../dom.js";
import { field, select } from "../parts.js";

const overrun = [["alert", "Tell the owner"], ["freeze", "Freeze the lease"], ["end", "End the lease"]];
const yesNo = [["true", "Yes"], ["false", "No"]];

// { key, label, options (else a number), help }
const groups = {
	global: [
		["Limits of a lease", [
			{ key: "leases.maxBudget", label: "Largest budget ($)" },
			{ key: "leases.requireMaxBudget", label: "Must have a budget", options: yesNo },
			{ key: "leases.maxDurationHours", label: "Longest duration (hours)", help: "168 is a week." },
			{ key: "leases.requireMaxDuration", label: "Must have an end", options: yesNo },
			{ key: "leases.maxLeasesPerUser", label: "Leases per person", help: "Requests count too." },
			{ key: "leases.allowSelfApproval", label: "Managers may approve their own requests", options: yesNo },
		]],
		["When the budget is at risk", [
			{ key: "leases.onProjectedOverrun", label: "It will be exceeded by the end, at the current rate", options: overrun },
			{ key: "leases.onEstimatedOverrun", label: "It is probably exceeded, with what is not billed yet", options: overrun },
		]],
		["Cleanup and records", [
			{ key: "cleanup.numberOfFailedAttemptsToCancelCleanup", label: "Failed cleanups before quarantine" },
			{ key: "cleanup.numberOfSuccessfulAttemptsToFinishCleanup", label: "Clean runs in a row to be clean" },
			{ key: "leases.ttl", label: "Days the record of an ended lease is kept" },
		]],
	],
	reporting: [["Cost reports", [{ key: "requireCostReportGroup", label: "Every lease must have a cost group", options: yesNo }]]],
};

const line = (name) => new RegExp(`^(\\s*)(["']?)${name}\\2\\s*:(.*)$`);
const indentOf = (text) => /^\s*/.exec(text)[0].length;

// The lines of a section from its first to behind its last; of the whole document when there is none.
function sectionOf(lines, section) {
	if (!section) return { from: 0, to: lines.length, indent: 0 };
	const head = lines.findIndex((text) => indentOf(text) === 0 && line(section).test(text));
	if (head < 0) return null;
	let to = head + 1;
	while (to < lines.length && (/^\s*(#.*)?$/.test(lines[to]) || indentOf(lines[to]) > 0)) to++;
	while (to > head + 1 && /^\s*(#.*)?$/.test(lines[to - 1])) to--;
	const first = lines.slice(head + 1, to).find((text) => !/^\s*(#.*)?$/.test(text));
	return { from: head + 1, to, indent: first ? indentOf(first) : 2, isInline: !/^\s*(#.*)?$/.test(line(section).exec(lines[head])[3]) };
}

function find(lines, key) {
	const [name, section] = key.split(".").reverse(), within = sectionOf(lines, section);
	const at = within && !within.isInline ? lines.findIndex((text, i) => i >= within.from && i < within.to && indentOf(text) === within.indent && line(name).test(text)) : -1;
	return { name, section, within, at };
}

// What the text says of "leases.maxBudget"; undefined when it says nothing, or not in a line of its own.
export function valueIn(text, key) {
	const lines = text.split("\n"), { name, at } = find(lines, key);
	const found = at >= 0 ? line(name).exec(lines[at])[3].replace(/\s#.*$/, "").trim() : "";
	return found === "" ? undefined : found.replace(/^(["'])(.*)\1$/, "$2");
}

// The text with another value. null: the section is written in braces, on one line, and has to be changed there.
export function withValue(text, key, value) {
	const lines = text.split("\n"), { name, section, within, at } = find(lines, key);
	if (within?.isInline) return null;
	if (at >= 0) {
		const [, space, quote, rest] = line(name).exec(lines[at]), comment = /\s+#.*$/.exec(rest)?.[0] ?? "";
		lines[at] = `${space}${quote}${name}${quote}: ${value}${comment}`;
	} else if (within && section) lines.splice(within.to, 0, `${" ".repeat(within.indent)}${name}: ${value}`);
	else {
		while (lines.length && lines.at(-1) === "") lines.pop();
		lines.push(...(section ? [`${section}:`, `  ${name}: ${value}`] : [`${name}: ${value}`]), "");
	}
	return lines.join("\n");
}

function valueOf(values, key) {
	return key.split(".").reduce((at, name) => at?.[name], values);
}

// values: what is in force, for keys that the text does not have. change(text): take this text. Answers null, or { element, show(text, problems) }.
export function limitsForm(name, values, { text, change }) {
	if (!groups[name]) return null;
	const controls = new Map();

	function set(key, value, box) {
		const now = withValue(text(), key, value);
		box.querySelector(".problem").textContent = now === null ? "This part is written on one line: change it in the text." : "";
		if (now !== null) change(now);
	}
	function one({ key, label, options, help }) {
		const listen = (value) => set(key, value, box);
		const control = options ? select(key, options, "", listen)
			: h("input", { name: key, type: "number", min: 0, step: 1, inputmode: "numeric", autocomplete: "off", on: { input: (e) => listen(e.target.value.trim()) } });
		const box = field(label, control, { help });
		controls.set(key, { control, box });
		return box;
	}
	const element = h("form", { class: "limits", on: { submit: (e) => e.preventDefault() } },
		groups[name].map(([title, fields]) => h("fieldset", { class: "limits-group" }, h("legend", {}, title), fields.map(one))));
	return {
		element,
		show(now, problems = []) {
			for (const [key, { control, box }] of controls) {
				const value = String(valueIn(now, key) ?? valueOf(values, key) ?? "");
				if (control !== document.activeElement && control.value !== value) control.value = value;
				const wrong = problems.find((p) => p.field === key);
				box.querySelector(".problem").textContent = wrong?.message ?? "";
				control.setAttribute("aria-invalid", String(!!wrong));
			}
		},
	};
}
