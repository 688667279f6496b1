// SPDX-License-Identifier: Apache-2.0
// The lines that the tasks of an instance have written, the newest last. Read when somebody wants to see them, and kept fresh while he does.
import * as api from "../api.js";
import { fill, h } from "../dom.js";
import { clock } from "../format.js";
import { button, empty, loader } from "../parts.js";

const LINES = 200, MOST = 2000, FRESH_MS = 5000;

const line = (l) => h("li", {}, clock(l.timestamp), h("span", { class: "log-task", title: `Task ${l.taskId}` }, l.taskId), h("span", {}, l.message));
const keyOf = (l) => `${l.timestamp} ${l.taskId} ${l.message}`;

// path: the instance's. The element stays the same while the page around it is drawn again.
export function logsPanel(ctx, path) {
	const place = h("div");
	let lines = [], older = null;
	const read = (nextToken) => api.get(`${path}/logs`, { limit: LINES, nextToken }, { signal: ctx.signal });

	function fresh(found) {
		const seen = new Set(lines.map(keyOf));
		return found.filter((l) => !seen.has(keyOf(l)));
	}
	function takeOlder(got) {
		const found = fresh(got.logs);
		lines = [...found, ...lines];
		older = found.length ? got.nextToken : null;
	}
	// The newest lines. Where none of them is known there may be others in between: what was read before is left to "Older lines".
	function takeNewest(got) {
		const found = fresh(got.logs);
		if (found.length === got.logs.length && (found.length || !lines.length)) [lines, older] = [found, got.nextToken];
		else lines = [...lines, ...found].slice(-MOST);
		return found.length > 0;
	}
	function draw() {
		if (!lines.length) return empty("No log lines yet", "Tasks write here what they do: requests, warnings, errors.");
		const more = older && lines.length < MOST && button("Older lines", { size: "small", run: async () => {
			takeOlder(await read(older));
			fill(place, draw());
		} });
		return [more, h("div", { class: "log", tabindex: 0, role: "region", "aria-label": "Log lines" }, h("ol", {}, lines.map(line)))];
	}
	const panel = h("details", { class: "card explain logs" }, h("summary", {}, h("h2", {}, "Logs"), h("span", { class: "dim" }, "what its tasks have written")), place);
	let run = null;
	panel.addEventListener("toggle", () => {
		if (!panel.open) return;
		run ??= loader(place, async () => {
			takeNewest(await read());
			return draw();
		});
	});
	ctx.every(FRESH_MS, async () => {
		if (!panel.open || !run || document.querySelector("dialog[open]")) return;
		const got = await read().catch(() => null); // a server that is away is told above the page
		if (got && takeNewest(got)) fill(place, draw());
	});
	return panel;
}
