// SPDX-License-Identifier: Apache-2.0
// Choosing rows of a table, to do something with all of them. What is chosen stays chosen while the table is drawn again.
import { fill, h } from "./dom.js";
import { toast } from "./parts.js";

// idOf(row) and nameOf(row) say what a row is; can(row), whether it may be chosen; label(count) is said beside "Select all".
export function picker({ idOf, nameOf, can = () => true, changed = () => {} }) {
	const chosen = new Set();
	let rows = [];
	const master = h("input", { type: "checkbox", name: "pick-all", on: { change: () => set(rows.filter(can), master.checked) } });
	const said = h("span", { "aria-live": "polite" });
	const all = h("label", { class: "pick-all" }, master, said);

	function tell() {
		const most = rows.filter(can).length;
		master.checked = most > 0 && chosen.size === most;
		master.indeterminate = chosen.size > 0 && chosen.size < most;
		fill(said, chosen.size ? `${chosen.size} of ${most} selected` : `Select all ${most}`);
		changed(chosen.size);
	}
	function set(which, isOn) {
		for (const row of which) chosen[isOn ? "add" : "delete"](idOf(row));
		for (const box of document.querySelectorAll("input[data-pick]")) box.checked = chosen.has(box.dataset.pick);
		tell();
	}
	return {
		all,
		choose: (which) => set(which, true),
		rows: () => rows.filter((row) => chosen.has(idOf(row))),
		// The rows that are there now; what is gone is no longer chosen.
		show(now) {
			rows = now;
			const there = new Set(now.filter(can).map(idOf));
			for (const id of chosen) if (!there.has(id)) chosen.delete(id);
			tell();
		},
		column: { title: "Select", hidden: true, class: "pick", cell: (row) => can(row) && h("input", { type: "checkbox", name: `pick-${idOf(row)}`, "aria-label": `Select ${nameOf(row)}`, data: { pick: idOf(row) },
			checked: chosen.has(idOf(row)), on: { change: (e) => set([row], e.target.checked) } }) },
	};
}

const AT_ONCE = 4;

// Does it with every row, a few at a time; says how many were done and why others were not. Answers how many were done.
export async function each(rows, run, did) {
	const left = [...rows], failures = [];
	let done = 0;
	async function work() {
		for (let row = left.shift(); row; row = left.shift())
			await run(row).then(() => done++, (error) => failures.push(error.message));
	}
	await Promise.all(Array.from({ length: AT_ONCE }, work));
	if (done) toast(did(done));
	if (failures.length) toast(`${failures.length} could not be done: ${[...new Set(failures)].slice(0, 3).join(" ")}`, "bad");
	return done;
}
