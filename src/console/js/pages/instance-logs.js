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
	const place = h("div"), seen = new Set();
	let lines = [], older = null;
	const read = (nextToken) => api.get(`${path}/logs`, { limit: LINES, nextToken }, { signal: ctx.signal });

	function take(found, isOlder) {
		const fresh = found.filter((l) => !seen.has(keyOf(l)));
		for (const l of fresh) seen.add(keyOf(l));
		lines = isOlder ? [...fresh, ...lines] : [...lines, ...fresh];
		return fresh.length > 0;
	}
	function draw() {
		if (!lines.length) return empty("No log lines yet", "Tasks write here what they do: requests, warnings, errors.");
		const more = older && lines.length < MOST && button("Older lines", { size: "small", run: async () => {
			const got = await read(older);
			older = take(got.logs, true) ? got.nextToken : null;
			fill(place, draw());
		} });
		return [more, h("div", { class: "log", tabindex: 0, role: "region", "aria-label": "Log lines" }, h("ol", {}, lines.map(line)))];
	}
	const panel = h("details", { class: "card explain logs" }, h("summary", {}, h("h2", {}, "Logs"), h("span", { class: "dim" }, "what its tasks have written")), place);
	let run = null;
	panel.addEventListener("toggle", () => {
		if (!panel.open) return;
		run ??= loader(place, async () => {
			const got = await read();
			if (!lines.length) older = got.nextToken;
			take(got.logs, false);
			return draw();
		});
	});
	ctx.every(FRESH_MS, async () => {
		if (!panel.open || !run || document.querySelector("dialog[open]")) return;
		const got = await read().catch(() => null); // a server that is away is told above the page
		if (got && take(got.logs, false)) fill(place, draw());
	});
	return panel;
}
