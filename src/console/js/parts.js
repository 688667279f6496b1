// SPDX-License-Identifier: Apache-2.0
// The parts that pages are made of. Each function answers an element; none keeps state outside of it.
import { ApiError } from "./api.js";
import { focusAgain, fill, h, icon, keepingFocus, keepingOpen, newId, released, svg } from "./dom.js";
import { hourMinute, none, number, words } from "./format.js";

// --- the frame of a page ---

// The heading of a page. back: { href, text }; actions: buttons.
export function heading(title, { back, sub, actions } = {}) {
	return h("div", { class: "heading" },
		h("div", {},
			back && h("a", { class: "back", href: back.href }, back.text),
			h("h1", {}, title),
			sub && h("p", { class: "sub" }, sub)),
		actions && h("div", { class: "actions" }, actions));
}

// A box with a title. more: what stands at the right of the title.
export function card(title, { more, class: extra, id } = {}, ...children) {
	const label = newId("card");
	return h("section", { class: `card ${extra ?? ""}`, "aria-labelledby": label, id },
		h("div", { class: "card-head" }, h("h2", { id: label }, title), more && h("div", { class: "card-more" }, more)),
		children);
}

// [["Name", value], ...]; a row whose value is undefined is left out, null is shown as a dash.
export function facts(rows) {
	const shown = rows.filter(([, value]) => value !== undefined);
	return h("dl", { class: "facts" },
		shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value ?? none()))));
}

// One figure with what it is. kind: "bad" or "warn" colour it.
export function figure(name, value, { sub, kind, href } = {}) {
	const inner = [h("span", { class: "figure-name" }, name), h("span", { class: "figure-value" }, value),
		sub && h("span", { class: "figure-sub" }, sub)];
	return h(href ? "a" : "div", { class: `figure ${kind ?? ""}`, href }, inner);
}

// --- states: every page and every card has one of these when it has nothing to show ---

export const loading = (text = "Loading") =>
	h("div", { class: "state loading", role: "status" }, h("span", { class: "spinner", "aria-hidden": "true" }), text);

export const empty = (title, text, action) =>
	h("div", { class: "state" }, h("p", { class: "state-title" }, title), text && h("p", {}, text), action);

export function failed(error, retry) {
	if (error instanceof ApiError && error.status === 403) return denied(error.message);
	if (error instanceof ApiError && error.status === 404) return empty("Nothing here", error.message);
	return h("div", { class: "state bad", role: "alert" },
		h("p", { class: "state-title" }, "This could not be loaded"),
		h("p", {}, error.message),
		error.requestId && h("p", { class: "dim" }, "Request ", h("code", {}, error.requestId), ", as in the server's log"),
		retry && button("Try again", { run: retry }));
}

export const denied = (text) =>
	h("div", { class: "state" }, h("p", { class: "state-title" }, "Not allowed"),
		h("p", {}, text ?? "Your role does not include this page."),
		h("p", { class: "dim" }, "If you need it, ask an administrator for the role."));

// Fill the element with what make() answers; until then it says that it loads, and when it fails, why. A second run keeps what is
// shown until the new is there, also while the server is away: the banner says so. Answers a function that runs it again.
// Parts that are kept from one drawing to the next can only be on one: make() then answers a function, called for a drawing that is shown.
export function loader(element, make) {
	let turn = 0, drawn = 0, isFilled = false;
	async function run() {
		const mine = ++turn;
		if (!element.firstChild) fill(element, loading());
		element.setAttribute("aria-busy", "true");
		try {
			const made = await make();
			await released();
			const draw = () => fill(element, typeof made === "function" ? made() : made);
			if (mine < drawn) return; // not what is older than what is shown; what a newer run finds may take long
			drawn = mine;
			if (!keepingOpen(element, () => keepingFocus(element, draw))) document.getElementById("main").focus({ preventScroll: true });
			isFilled = true;
		} catch (error) {
			const isKept = error.name === "AbortError" || (isFilled && error.status === 0);
			if (!isKept && mine === turn) fill(element, failed(error, run));
			if (!(error instanceof ApiError) && error.name !== "AbortError") console.error(error);
		}
		if (mine === turn) element.removeAttribute("aria-busy");
	}
	run();
	return run;
}

// --- tables ---

// By caption: the column by which a reader wants it, also when it is drawn again.
const sorting = new Map();
const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

function byCell(at, isDown) {
	const amount = (row) => row.cells[at].dataset.by, key = (row) => row.cells[at].querySelector("time")?.dateTime || row.cells[at].querySelector("[aria-valuenow]")?.ariaValueNow || row.cells[at].textContent;
	return (a, b) => (isDown ? -1 : 1) * (amount(a) === undefined ? collator.compare(key(a), key(b)) : amount(a) - amount(b) || 0);
}

function sortBy(table, caption, at, title) {
	const was = sorting.get(caption), isDown = was?.title === title && !was.isDown;
	sorting.set(caption, { title, isDown });
	[...table.tHead.rows[0].cells].forEach((th, i) => (i === at ? th.setAttribute("aria-sort", isDown ? "descending" : "ascending") : th.removeAttribute("aria-sort")));
	table.tBodies[0].append(...[...table.tBodies[0].rows].sort(byCell(at, isDown)));
}

// A table with a caption can be sorted by its columns; this sorts what is shown, not the pages after it.
// columns: { title, cell(row), by(row), num, class, hidden } (by: the number that it is sorted by, where the text says another order: money, counts,
// durations; hidden: the title is for screen readers only). On a phone each row becomes
// a block with the titles beside the values, without those that have none; lead: the column that heads it.
export function table(columns, rows, { caption, none: nothing, id } = {}) {
	if (!rows.length) return nothing ?? empty("Nothing to show");
	const sorted = sorting.get(caption), canSort = rows.length > 1 && caption;
	const head = columns.map((c, i) => h("th", { scope: "col", class: c.num && "num", "aria-sort": sorted?.title === c.title && (sorted.isDown ? "descending" : "ascending") },
		c.hidden ? h("span", { class: "unseen" }, c.title)
			: canSort ? h("button", { type: "button", class: "sort", title: `Sort by ${c.title}`, on: { click: (e) => sortBy(e.currentTarget.closest("table"), caption, i, c.title) } }, c.title) : c.title));
	const cell = (c, row, content = c.cell(row)) => h("td", {
		class: [c.num && "num", c.class, c.lead && "lead", (content ?? "") === "" && "blank"].filter(Boolean).join(" ") || null,
		data: { title: c.hidden ? "" : c.title, ...(c.by && { by: c.by(row) ?? -Infinity }) } }, (content ?? "") === "" ? none() : Array.isArray(content) ? h("div", {}, content) : content);
	const body = rows.map((row) => h("tr", {}, columns.map((c) => cell(c, row))));
	const at = sorted ? columns.findIndex((c) => c.title === sorted.title) : -1;
	if (at >= 0) body.sort(byCell(at, sorted.isDown));
	return h("div", { class: "table-box", id },
		h("table", {}, caption && h("caption", { class: "unseen" }, caption), h("thead", {}, h("tr", {}, head)),
			h("tbody", {}, body)));
}

// Cursors lead only forward, so "Previous" is the browser's way back. href(cursor): the address of a page; said: what stands in place of the count.
export function pager({ cursor, next, count, href, what = "rows", said }) {
	if (!cursor && !next) return h("p", { class: "pager dim" }, said ?? `${number(count)} ${what}`);
	return h("nav", { class: "pager", "aria-label": "Pages" },
		h("span", { class: "dim" }, said ?? `${number(count)} ${what} on this page`),
		cursor && h("a", { class: "button small", href: href("") }, "First page"),
		cursor && button("Previous", { size: "small", run: () => history.back() }),
		next ? h("a", { class: "button small", href: href(next), rel: "next" }, "Next")
			: h("span", { class: "dim" }, "last page"));
}

// --- words and colours ---

const kinds = {
	good: ["available", "Available", "Active", "done", "success", "ok", "ready", "Approved", "final"],
	info: ["allocated", "running", "Provisioning", "doing", "in_flight", "provisional", "CleanUp", "PendingApproval"],
	warn: ["pending_deletion", "undoing", "pending", "waiting", "Frozen", "warning", "stale", "paused", "amended"],
	bad: ["deletion_failed", "parked", "raised", "page", "failed", "error", "Quarantine", "BudgetExceeded", "ProvisioningFailed",
		"AccountQuarantined", "ApprovalDenied", "dead"],
};

export const kindOf = (name) => Object.keys(kinds).find((kind) => kinds[kind].includes(name)) ?? "plain";

// The state of something. The word is always there: colour alone says nothing.
export function badge(name, { text, kind } = {}) {
	return h("span", { class: `badge ${kind ?? kindOf(name)}` }, text ?? words(name));
}

// --- buttons, forms, dialogs ---

// run may be async: until it ends further clicks do nothing, and a failure is told. The button is not disabled meanwhile, so that a dialog
// can give the focus back to it.
export function button(text, { run, kind, size, title, type = "button", icon: drawing, disabled } = {}) {
	const element = h("button", { type, class: `button ${kind ?? ""} ${size ?? ""}`, title, disabled },
		drawing && icon(drawing), text);
	if (run)
		element.addEventListener("click", async () => {
			if (element.ariaBusy === "true") return;
			element.ariaBusy = "true";
			try {
				await run();
			} catch (error) {
				if (error.name !== "AbortError") toast(error.message, "bad");
			}
			element.ariaBusy = null;
		});
	return element;
}

// A control with its label, and a place for what is wrong with it. Names match the API's fields: see showProblems().
export function field(label, control, { help } = {}) {
	const id = control.id || newId("field");
	const helpId = `${id}-help`, errorId = `${id}-error`;
	control.id = id;
	control.setAttribute("aria-describedby", `${help ? helpId : ""} ${errorId}`.trim());
	return h("div", { class: "field", data: { field: control.name ?? "" } },
		h("label", { for: id }, label), control, help && h("p", { class: "help", id: helpId }, help),
		h("p", { class: "problem", id: errorId, "aria-live": "polite" }));
}

// options: ["value", ...] or [["value", "text"], ...]
export function select(name, options, value, listen) {
	return h("select", { name, value, on: listen && { change: (e) => listen(e.target.value) } },
		options.map((o) => (Array.isArray(o) ? h("option", { value: o[0] }, o[1]) : h("option", { value: o }, words(o)))));
}

// Put the API's complaints beside their fields; answers those that have no place, as one text.
export function showProblems(form, error) {
	for (const box of form.querySelectorAll(".field")) {
		box.querySelector(".problem").textContent = "";
		box.querySelector("input, select, textarea")?.removeAttribute("aria-invalid");
	}
	if (!error) return "";
	const left = [];
	for (const { field: name, message } of error.fields?.length ? error.fields : [{ message: error.message }]) {
		const box = name && form.querySelector(`.field[data-field="${CSS.escape(name)}"]`);
		if (!box) left.push(name && name !== "input" ? `${name}: ${message}` : message);
		else {
			box.querySelector(".problem").textContent = message;
			box.querySelector("input, select, textarea")?.setAttribute("aria-invalid", "true");
		}
	}
	form.querySelector("[aria-invalid=true]")?.focus();
	return left.join(" ");
}

// A dialog with a form. fields: elements. run(FormData) is called when it is confirmed; its failure is shown inside and the dialog stays.
// Answers what run answered, or undefined when it was cancelled; it cannot be while run is under way, whose answer may be told only once. canCancel: false
// for what is only to be read, once. Focus is held inside and goes back to where it was.
export function ask({ title, text, fields = [], label = "Save", danger, run, wide, canCancel = true }) {
	const heading = newId("dialog"), trouble = h("p", { class: "problem", role: "alert" });
	const go = h("button", { type: "submit", class: `button ${danger ? "danger" : "primary"}` }, label);
	const stop = h("button", { type: "button", class: "button" }, "Cancel");
	const form = h("form", { method: "dialog" },
		h("h2", { id: heading }, title),
		text && h("div", { class: "dialog-text" }, typeof text === "string" ? h("p", {}, text) : text),
		fields, trouble, h("div", { class: "dialog-foot" }, canCancel && stop, go));
	const dialog = h("dialog", { "aria-labelledby": heading, class: wide && "wide" }, form);
	const before = document.activeElement;
	return new Promise((resolve) => {
		let answer;
		const mayStop = () => canCancel && !go.disabled;
		form.addEventListener("submit", async (event) => {
			event.preventDefault();
			if (go.disabled) return;
			go.disabled = true;
			trouble.textContent = showProblems(form, null);
			try {
				const got = (await run?.(new FormData(form))) ?? true;
				if (!dialog.isConnected) return;
				answer = got;
				dialog.close();
			} catch (error) {
				trouble.textContent = showProblems(form, error);
				if (!(error instanceof ApiError)) console.error(error);
			}
			go.disabled = false;
		});
		stop.addEventListener("click", () => mayStop() && dialog.close());
		dialog.addEventListener("cancel", (event) => mayStop() || event.preventDefault());
		dialog.addEventListener("close", () => {
			if (answer === undefined && !mayStop()) return dialog.showModal(); // browsers do not ask at a second Escape
			dialog.remove();
			focusAgain(before);
			resolve(answer);
		});
		document.body.append(dialog);
		dialog.showModal();
	});
}

// Something that should be thought about first. reason: "required" or "optional" asks for one; run gets it as text.
export function confirm({ title, text, label, danger, reason, run, done }) {
	const input = reason && h("input", { name: "reason", maxlength: 400, required: reason === "required", autocomplete: "off" });
	return ask({
		title, text, label, danger,
		fields: input ? [field(reason === "required" ? "Reason" : "Reason (optional)", input, { help: "Kept in the event log." })] : [],
		run: async (data) => {
			const answer = await run((data.get("reason") ?? "").trim());
			if (done) toast(typeof done === "function" ? done(answer) : done);
			return answer ?? true;
		},
	});
}

const TOAST_MS = 6000;
const toasts = document.getElementById("toasts");
const measure = () => document.documentElement.style.setProperty("--toasts", `${toasts.offsetHeight}px`); // what sticks to the top sticks below them

// Says what has happened, also to screen readers.
export function toast(text, kind = "good") {
	const remove = () => {
		element.remove();
		measure();
	};
	const close = h("button", { type: "button", class: "plain", "aria-label": "Close this message" }, icon("close"));
	const element = h("div", { class: `toast ${kind}` }, h("span", {}, text), close);
	close.addEventListener("click", remove);
	toasts.append(element);
	if (toasts.children.length > 4) toasts.firstChild.remove();
	measure();
	if (kind !== "bad") setTimeout(remove, TOAST_MS);
}

// Takes away what is above the page: who has left may have left a secret there. A dialog that was taken away answers nobody.
export function clear() {
	for (const dialog of document.querySelectorAll("dialog")) dialog.remove();
	fill(toasts);
	measure();
}

// A text that is copied by a click: ids and commands. href: where the text leads.
export function copyable(text, { href } = {}) {
	return h("span", { class: "copyable" }, href ? h("a", { href }, h("code", {}, text)) : h("code", {}, text),
		h("button", { type: "button", class: "plain", "aria-label": `Copy ${text}`, title: "Copy", on: {
			click: async () => {
				try {
					await navigator.clipboard.writeText(text);
					toast("Copied.");
				} catch {
					toast("The browser does not allow copying here; select the text instead.", "bad");
				}
			},
		} }, icon("copy")));
}

// --- drawings ---

// A bar of parts [{ name, value, kind, href }], with a legend that says the same in words. mark: { value, text } draws a line at
// that place of the whole; only the parts from the left up to it count.
export function bar(parts, { total, mark, label, format = number } = {}) {
	const sum = total ?? parts.reduce((s, p) => s + p.value, 0);
	const width = (value) => `${sum ? Math.min(100, (value / sum) * 100) : 0}%`;
	const said = parts.map((p) => `${p.name} ${format(p.value)}`).join(", ");
	return h("div", { class: "bar-box" },
		h("div", { class: "bar", role: "img", "aria-label": `${label ? `${label}: ` : ""}${said}${mark ? `; ${mark.text}` : ""}` },
			parts.filter((p) => p.value > 0).map((p) => h("span", { class: `fill ${p.kind}`, style: { width: width(p.value) }, title: `${p.name}: ${format(p.value)}` })),
			mark && sum > 0 && h("span", { class: "mark", style: { left: width(mark.value) }, title: mark.text })),
		h("ul", { class: "legend" }, parts.map((p) => h("li", {}, h("span", { class: `dot ${p.kind}`, "aria-hidden": "true" }),
			p.href ? h("a", { href: p.href }, p.name) : p.name, h("b", {}, format(p.value)))),
		mark && h("li", { class: "dim" }, h("span", { class: "dot mark-dot", "aria-hidden": "true" }), mark.text)));
}

// A share of a whole with marks: spend against a budget, time of a lease. marks: [{ value, text }].
export function meter(value, most, { label, text, marks = [], kind } = {}) {
	const share = most > 0 ? value / most : 0;
	const colour = kind ?? (share >= 1 ? "bad" : share >= 0.8 ? "warn" : "good");
	return h("div", { class: "meter-box" },
		h("div", { class: "bar thin", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": most || 0,
			"aria-valuenow": Math.min(value, most || 0), "aria-valuetext": text },
			share > 0 && h("span", { class: `fill ${colour}`, style: { width: `${Math.min(100, share * 100)}%` } }),
			marks.map((m) => h("span", { class: "mark", style: { left: `${most > 0 ? Math.min(100, (m.value / most) * 100) : 0}%` }, title: m.text }))),
		text && h("span", { class: "meter-text" }, text));
}

const W = 560, H = 132, LEFT_LEAST = 44, LETTER = 6.4, RIGHT = 8, TOP = 8, BOTTOM = 20;

function niceTop(most) {
	if (!(most > 0)) return 1;
	const power = 10 ** Math.floor(Math.log10(most));
	return [1, 2, 2.5, 5, 10].map((step) => step * power).find((top) => top >= most);
}

// One line over time. points: [{ at: Date, value: number or null }], the oldest first; null is a gap. The same is told in words to
// who cannot see it, and a pointer over it reads one point. when: how a point's time is written. ahead: a point in the future that the line is
// heading for; mark: { value, text }, a limit.
export function plot(points, { label, format = number, when = hourMinute, ahead, mark, none: nothing = "Not enough data yet: the first points appear within half a minute." } = {}) {
	const known = points.filter((p) => p.value !== null);
	if (known.length < 2) return h("p", { class: "plot-none" }, nothing);
	const first = points[0].at.getTime(), end = ahead ?? points.at(-1), last = end.at.getTime();
	const highestKnown = Math.max(...known.map((p) => p.value), ahead?.value ?? 0);
	const isNear = mark && mark.value <= 3 * highestKnown; // a limit far away would make a flat line of all the rest
	const top = niceTop(isNear ? Math.max(highestKnown, mark.value) : highestKnown);
	const LEFT = Math.max(LEFT_LEAST, Math.max(...[0, 0.5, 1].map((share) => format(top * share).length)) * LETTER + 8);
	const x = (at) => LEFT + ((at.getTime() - first) / Math.max(1, last - first)) * (W - LEFT - RIGHT);
	const y = (value) => TOP + (1 - value / top) * (H - TOP - BOTTOM);
	let path = "", isDown = false;
	for (const p of points) {
		if (p.value !== null) path += `${isDown ? "L" : "M"}${x(p.at).toFixed(1)} ${y(p.value).toFixed(1)}`;
		isDown = p.value !== null;
	}
	const newest = known.at(-1), highest = known.reduce((a, b) => (b.value > a.value ? b : a));
	const said = `${label}: ${format(newest.value)} at ${when(newest.at)}, at most ${format(highest.value)} at ${when(highest.at)}${ahead ? `, ${format(ahead.value)} expected at ${when(ahead.at)}` : ""}${mark ? `; ${mark.text}` : ""}`;
	const cursor = svg("circle", { r: 3.5, class: "plot-point", visibility: "hidden" });
	const reading = h("span", { class: "plot-reading" });
	const drawing = svg("svg", { viewBox: `0 0 ${W} ${H}`, class: "plot", role: "img", "aria-label": said },
		[0, 0.5, 1].map((part) => [
			svg("line", { x1: LEFT, x2: W - RIGHT, y1: y(top * part), y2: y(top * part), class: "plot-grid" }),
			svg("text", { x: LEFT - 6, y: y(top * part) + 3.5, "text-anchor": "end" }, format(top * part)),
		]),
		svg("text", { x: LEFT, y: H - 4 }, when(points[0].at)),
		svg("text", { x: W - RIGHT, y: H - 4, "text-anchor": "end" }, when(end.at)),
		isNear && [svg("line", { x1: LEFT, x2: W - RIGHT, y1: y(mark.value), y2: y(mark.value), class: "plot-mark" }),
			svg("text", { x: LEFT + 4, y: y(mark.value) < TOP + 14 ? y(mark.value) + 12 : y(mark.value) - 4 }, mark.text)],
		ahead && svg("line", { x1: x(newest.at), y1: y(newest.value), x2: x(ahead.at), y2: y(ahead.value), class: "plot-ahead" }),
		svg("path", { d: path, class: "plot-line" }), cursor);
	drawing.addEventListener("pointermove", (event) => {
		const box = drawing.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * W;
		const near = known.reduce((a, b) => (Math.abs(x(b.at) - at) < Math.abs(x(a.at) - at) ? b : a));
		cursor.setAttribute("cx", x(near.at));
		cursor.setAttribute("cy", y(near.value));
		cursor.setAttribute("visibility", "visible");
		reading.textContent = `${when(near.at)}  ${format(near.value)}`;
	});
	drawing.addEventListener("pointerleave", () => {
		cursor.setAttribute("visibility", "hidden");
		reading.textContent = "";
	});
	return h("div", { class: "plot-box" }, drawing, reading);
}
