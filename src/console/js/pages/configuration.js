// SPDX-License-Identifier: Apache-2.0
// The editor of the three documents of configuration: each change is checked while it is typed, shown as what would change, and saved only when
// nobody has changed the document meanwhile.
import * as api from "../api.js";
import { fill, h } from "../dom.js";
import { ago, time } from "../format.js";
import { badge, button, card, empty, loader, pager, table, toast } from "../parts.js";
import { editor, located } from "./configuration-editor.js";
import { limitsForm } from "./configuration-form.js";
import { opsHeading } from "./operations-parts.js";

const TYPING_MS = 350, EDITS = 20;

const documents = {
	global: { title: "Lease policy", path: "/v1/ops/policy", what: "Terms of service, maintenance, lease limits, cleanup, sign-in, mail." },
	approval: { title: "Approval", path: "/v1/ops/policy/approval", what: "Which requests are approved automatically, reviewed by a person, or denied. The first matching rule decides." },
	reporting: { title: "Reporting", path: "/v1/ops/reporting", what: "The groups used in cost reports." },
};

const changeColumns = [
	{ title: "Key", lead: true, cell: (c) => h("code", {}, c.key) },
	{ title: "From", class: "text-cell", cell: (c) => h("code", { class: "was" }, c.from) },
	{ title: "To", class: "text-cell", cell: (c) => h("code", { class: "becomes" }, c.to) },
];
const changes = (list, caption) => table(changeColumns, list, { caption });

// --- what the check says ---

function problemList(problems, edit) {
	return h("div", {}, h("p", { class: "note bad" }, problems.length === 1 ? "One problem. Fix it to save." : `${problems.length} problems. Fix them to save.`),
		h("ul", { class: "problems" }, problems.map((p) => h("li", {},
			p.line > 0 ? button(`Line ${p.line}`, { size: "small", title: `Go to line ${p.line}`, run: () => edit.goTo(p.line) }) : badge("line", { text: "Text", kind: "bad" }),
			h("span", {}, p.field !== "input" && [h("code", {}, p.field), " "], p.message)))));
}

function verdict(state, edit) {
	const { check, isDirty } = state;
	if (!isDirty) return empty("No changes", "Change a field or the text: the result is shown here before you save.");
	if (!check) return h("p", { class: "dim", role: "status" }, "Checking …");
	if (!check.ok) return problemList(check.problems, edit);
	return check.changes.length ? changes(check.changes, "What would change") : empty("No effective changes", "Only comments or whitespace differ; they are kept when you save.");
}

// --- a conflict ---

// What the others have changed since the version that was read.
async function theirChanges(doc, since) {
	const { edits } = await api.get(`${doc.path}/history`, { limit: EDITS });
	return edits.filter((e) => e.new_version > since);
}

async function conflictNote(doc, state, takeTheirs, keepMine) {
	const [now, theirs] = await Promise.all([api.get(doc.path), theirChanges(doc, state.version)]);
	return h("div", { class: "note warn conflict", role: "alert" },
		h("p", {}, h("b", {}, "Someone else has saved a newer version. "), `You started from version ${state.version}; it is now version ${now.version}`, now.edited_by && `, by ${now.edited_by}`, now.edited_at && [", ", ago(now.edited_at)], ". Your changes are neither lost nor saved."),
		theirs.map((e) => h("ul", { class: "why" }, e.changes.map((c) => h("li", {}, h("code", {}, c.key), ` was ${c.from}, is now ${c.to}`)))),
		h("div", { class: "row" }, button("Use theirs", { title: "Discard my text and show the newest version", run: () => takeTheirs(now) }),
			button("Keep my text", { title: "Compare my text with the newest version; saving it then replaces theirs", run: () => keepMine(now) })));
}

// --- the editor ---

// saved: called when the history has grown.
function editCard(name, doc, found, saved) {
	const state = { version: found.version, text: found.text, isDirty: false, check: null };
	const says = h("div", { class: "verdict", "aria-live": "polite" }), conflict = h("div");
	const about = h("span");
	let timer, turn = 0;
	const save = button("Save", { kind: "primary", run: () => store() });
	const undo = button("Undo my changes", { run: () => take({ text: state.text, version: state.version, edited_by: null }) });
	const edit = editor(found.text, { label: `Text of ${doc.title}`, listen: () => soon() });
	const form = limitsForm(name, found.values, { text: edit.value, change: (text) => {
		edit.setValue(text);
		soon();
	} });

	function draw() {
		fill(says, verdict(state, edit));
		edit.mark(state.check?.problems?.map((p) => p.line).filter(Boolean) ?? []);
		edit.area.setAttribute("aria-invalid", String(state.isDirty && state.check?.ok === false));
		form?.show(edit.value(), state.isDirty ? state.check?.problems : []);
		save.disabled = !state.isDirty || !state.check?.ok;
		undo.disabled = !state.isDirty;
	}
	function soon() {
		clearTimeout(timer);
		state.isDirty = edit.value() !== state.text;
		timer = setTimeout(check, TYPING_MS);
		if (!state.isDirty) state.check = null;
		draw();
	}
	async function check() {
		const mine = ++turn, text = edit.value();
		if (!state.isDirty) return;
		const got = await api.post(`${doc.path}/check`, { document: text }).catch((error) => ({ ok: false, problems: [{ field: "input", message: error.message }], changes: [] }));
		if (mine !== turn) return;
		state.check = { ...got, problems: got.problems.map((p) => located(text, p)) };
		draw();
	}
	function take(now) {
		Object.assign(state, { version: now.version, text: now.text, isDirty: false, check: null });
		edit.setValue(now.text);
		fill(about, aboutVersion(now.edited_at === undefined ? found : now));
		fill(conflict);
		draw();
	}
	function keep(now) {
		Object.assign(state, { version: now.version, text: now.text, isDirty: edit.value() !== now.text, check: null });
		fill(about, aboutVersion(now));
		fill(conflict, h("p", { class: "note" }, `Below is your text against version ${now.version}. Saving it replaces theirs.`));
		draw();
		check();
	}
	async function store() {
		try {
			const now = await api.put(doc.path, { document: edit.value(), version: state.version });
			take(now);
			toast(`Saved: version ${now.version} is now in effect.`);
			saved();
		} catch (error) {
			if (error.status !== 409) throw error;
			fill(conflict, await conflictNote(doc, state, take, keep));
			saved();
			conflict.querySelector("button")?.focus();
		}
	}
	take(found);
	if (found.problems?.length) fill(conflict, h("p", { class: "note bad", role: "alert" }, "The stored text cannot be read; the previous version remains in effect. ", found.problems.map((p) => `${p.field}: ${p.message} `)));
	return h("div", { class: "grid" },
		h("div", { class: "two-thirds stack" }, conflict, form && card("Limits and thresholds", { more: "the text below has every setting" }, form.element), card("Text", { more: about }, edit.element)),
		card("What would change", { class: "third pinned", id: "verdict" }, says, h("div", { class: "form-foot" }, undo, save)));
}

const aboutVersion = (found) => (found.version ? [`version ${found.version}`, found.edited_by && `, by ${found.edited_by}`, found.edited_at && [", ", ago(found.edited_at)]] : "defaults: never changed");

// --- what was changed before ---

function historyCard(doc, ctx) {
	const place = h("div");
	const again = loader(place, async () => {
		const got = await api.page(`${doc.path}/history`, "edits", { limit: EDITS, cursor: ctx.query.cursor }, { signal: ctx.signal });
		return [
			got.items.length ? h("ol", { class: "edits" }, got.items.map((e) => h("li", {}, h("p", {}, h("b", {}, `Version ${e.new_version}`), " ", time(e.at), e.by && ` by ${e.by}`),
				h("ul", { class: "why" }, e.changes.map((c) => h("li", {}, h("code", {}, c.key), ": ", h("code", { class: "was" }, c.from), " → ", h("code", { class: "becomes" }, c.to))))))
			) : empty("Never changed", "Every change is listed here: who, when, and the old and new values."),
			(ctx.query.cursor || got.next) && pager({ cursor: ctx.query.cursor, next: got.next, count: got.items.length, what: "changes", href: (cursor) => ctx.hrefWith({ cursor }) }),
		];
	});
	return { card: card("History", {}, place), again };
}

export default async function page(ctx) {
	const name = documents[ctx.query.document] ? ctx.query.document : "global", doc = documents[name];
	const found = await api.get(doc.path, {}, { signal: ctx.signal });
	const past = historyCard(doc, ctx);
	return [
		opsHeading("/operations/configuration", "Configuration", { sub: doc.what }),
		h("nav", { class: "tabs", "aria-label": "Documents" }, Object.entries(documents).map(([key, d]) => h("a", { href: `/operations/configuration?document=${key}`, "aria-current": key === name && "page" }, d.title))),
		h("div", { class: "stack" }, editCard(name, doc, found, past.again), past.card),
	];
}
