// SPDX-License-Identifier: Apache-2.0
// A text field with line numbers and marks, and where a key of a YAML document stands in its text.
import { fill, h } from "../dom.js";

// The line (from 1) of "leases.maxBudget" or "rules.short-tries"; that of its nearest parent when it is not there itself, 0 when none is.
export function lineOf(text, path) {
	const wanted = path.replace(/\[(\d+)\]/g, ".$1").split("."), stack = [];
	let best = 0, depth = 0;
	text.split("\n").forEach((line, i) => {
		const [, space, key] = /^(\s*(?:- )?)["']?([^\s"':#][^"':]*)["']?\s*:(?:\s|$)/.exec(line) ?? [];
		if (!key) return;
		while (stack.length && stack.at(-1).indent >= space.length) stack.pop();
		stack.push({ indent: space.length, key });
		const keys = stack.map((s) => s.key), same = keys.every((k, n) => k === wanted[n]) ? keys.length : 0;
		if (same > depth) [best, depth] = [i + 1, same];
	});
	return best;
}

// A problem of the API with its line: a mistake in YAML itself names it, one of a key is looked up.
export function located(text, problem) {
	const told = /at line (\d+)/.exec(problem.message);
	return { ...problem, line: told ? Number(told[1]) : problem.field === "input" ? 0 : lineOf(text, problem.field) };
}

// { element, area, value(), setValue(text), mark(lines), goTo(line) }
export function editor(text, { label, listen }) {
	const area = h("textarea", { class: "code editor-text", name: "document", spellcheck: "false", autocomplete: "off", wrap: "off", "aria-label": label, value: text, rows: 24 });
	const gutter = h("div", { class: "editor-lines", "aria-hidden": "true" });
	let marked = new Set();
	const number = () => fill(gutter, area.value.split("\n").map((_, i) => h("div", { class: marked.has(i + 1) ? "bad" : null }, String(i + 1))));
	area.addEventListener("input", () => {
		number();
		listen(area.value);
	});
	area.addEventListener("scroll", () => (gutter.scrollTop = area.scrollTop));
	number();
	return {
		element: h("div", { class: "editor" }, gutter, area), area,
		value: () => area.value,
		setValue(value) {
			area.value = value;
			number();
		},
		mark(lines) {
			marked = new Set(lines);
			number();
		},
		goTo(line) {
			const lines = area.value.split("\n"), begin = lines.slice(0, line - 1).reduce((s, l) => s + l.length + 1, 0);
			area.focus();
			area.setSelectionRange(begin, begin + (lines[line - 1]?.length ?? 0));
			area.scrollTop = Math.max(0, (line - 6) * parseFloat(getComputedStyle(area).lineHeight));
		},
	};
}
