// SPDX-License-Identifier: Apache-2.0
// A class: a sandbox for each student of a roster, the list to hand out, and all of them given back. Nothing is stored of a class: a track that
// holds a sandbox gets the same one again.
import * as api from "../api.js";
import { fill, h, part } from "../dom.js";
import { number, stamp } from "../format.js";
import { badge, button, card, confirm, copyable, empty, field, heading, table, toast } from "../parts.js";
import { each } from "../pick.js";

const headings = ["track", "student", "email"], TRACK_MAX = 128, STUDENTS_MAX = 1000;

// The cells of a line of CSV. What ends the first one ends all: spreadsheets of many countries write semicolons, copied cells have tabs.
function cells(line) {
	const mark = /^(?:"[^"]*"|[^",;\t])*([,;\t])/.exec(line)?.[1] ?? ",";
	const found = [...line.matchAll(new RegExp(`(?:^|${mark}) *(?:"((?:[^"]|"")*)"|([^${mark}]*))`, "g"))];
	return found.map(([, quoted, plain]) => (quoted?.replaceAll('""', '"') ?? plain).trim());
}

// [{ track, student }]; throws what is wrong with it.
export function readRoster(text) {
	const rows = text.split(/\r?\n/).map((line) => line.replace(/^[^\S\t]+|\s+$/g, "")).filter(Boolean).map(cells); // a tab at the beginning ends an empty cell
	if (rows.length && headings.includes(rows[0][0].toLowerCase())) rows.shift();
	const wrong = (message) => new api.ApiError(400, message, { fields: [{ field: "roster", message }] });
	const seen = new Set();
	for (const [track] of rows) {
		if (!/^[!-~]+$/.test(track) || track.length > TRACK_MAX) throw wrong(`"${track}" is not a track: use an email address or an id, without blanks.`);
		if (seen.has(track)) throw wrong(`"${track}" is listed twice.`);
		seen.add(track);
	}
	if (!rows.length || rows.length > STUDENTS_MAX) throw wrong(rows.length ? `At most ${STUDENTS_MAX} students.` : "Enter one line per student.");
	return rows.map(([track, student]) => ({ track, student: student ?? "" }));
}

const columns = [
	{ title: "Track", lead: true, cell: (r) => r.track },
	{ title: "Student", cell: (r) => r.student },
	{ title: "Sandbox", cell: (r) => (r.sandbox_id ? h("a", { href: `/sandboxes/${part(r.sandbox_id)}` }, r.name) : h("b", {}, r.problem)) },
	{ title: "At the vendor", cell: (r) => r.external_id && copyable(r.external_id) },
	{ title: "Ends", cell: (r) => r.expires_at && stamp(r.expires_at) }, // on paper "in 3 h" would soon be wrong
];

function asCsv(rows) {
	const safe = (text) => (/^[=+@|%\t\r-]/.test(text) ? `'${text}` : text); // no formula for a spreadsheet, as with the command's --csv
	const quote = (text) => (/[",\n]/.test(text) ? `"${safe(text).replaceAll('"', '""')}"` : safe(text));
	const line = (r) => [r.track, r.student, r.sandbox_id ?? "", r.name ?? "", r.external_id ?? "", r.expires_at ? new Date(r.expires_at * 1000).toISOString() : ""].map(quote).join(",");
	return ["track,student,sandbox_id,name,external_id,expires_at", ...rows.map(line)].join("\n") + "\n";
}

function save(rows) {
	const url = URL.createObjectURL(new Blob([asCsv(rows)], { type: "text/csv" }));
	const link = h("a", { href: url, download: "class.csv" });
	link.click();
	URL.revokeObjectURL(url);
}

function handOut(rows) {
	return card("To hand out", { class: "flush handout", more: h("div", { class: "row no-print" },
		button("Print", { size: "small", run: () => print() }), button("Save as CSV", { size: "small", run: () => save(rows) })) },
	table(columns, rows, { caption: "The class" }));
}

async function claim(rows, lab) {
	const headers = (track) => ({ "X-Track-ID": track, ...(lab && { "X-Instruqt-Track-ID": lab }) });
	const list = rows.map((row) => ({ ...row, problem: "" }));
	await each(list, async (row) => {
		try {
			Object.assign(row, await api.call("POST", "/v1/admin/allocate", { headers: headers(row.track) }));
		} catch (error) {
			row.problem = error.code === "NO_SANDBOXES_AVAILABLE" ? "none free" : error.message;
			throw error;
		}
	}, (count) => `${count} of ${list.length} have a sandbox.`);
	return list;
}

async function giveBack(rows) {
	const held = new Map((await api.all("/v1/admin/sandboxes", "sandboxes", { status: "allocated", limit: 100 }, 100000)).map((s) => [s.allocated_to_track, s.sandbox_id]));
	const holders = rows.filter((r) => held.has(r.track));
	if (!holders.length) return toast("Nobody of this class holds a sandbox.");
	return each(holders, (r) => api.post(`/v1/admin/sandboxes/${part(held.get(r.track))}/delete`), (count) => `${count} given back. The next cleanup deletes them.`);
}

const verdicts = { yes: "Yes", likely: "Likely", no: "No" };

// "Enough for 30 tomorrow at nine?"
function forecastCard() {
	const need = h("input", { name: "need", type: "number", min: 1, value: 30, required: true }), at = h("input", { name: "at", type: "datetime-local" });
	const said = h("p", { "aria-live": "polite" });
	const run = async () => {
		const f = await api.get("/v1/admin/forecast", { need: need.value, at: at.value ? new Date(at.value).toISOString().replace(/\.\d+/, "") : "" });
		fill(said, badge(f.enough, { text: verdicts[f.enough], kind: { yes: "good", likely: "warn", no: "bad" }[f.enough] }),
			` ${number(f.available)} are free now${f.waiting ? `, ${number(f.waiting)} are waiting in line` : ""}; ${number(f.ending)} end before then, and ${number(f.expected_refill)} new ones can be expected: ${number(f.expected)} in all. What others claim is not counted.`);
	};
	return card("Enough?", { class: "no-print" }, h("form", { class: "filters", on: { submit: (e) => e.preventDefault() } }, field("Sandboxes needed", need), field("When", at), button("Check", { run })), said);
}

export default async function page(ctx) {
	const stats = await api.get("/v1/admin/stats", {}, { signal: ctx.signal });
	const roster = h("textarea", { name: "roster", rows: 10, spellcheck: "false", placeholder: "ada@school.example,Ada Lovelace\nalan@school.example,Alan Turing" });
	const lab = h("input", { name: "lab", maxlength: 128, autocomplete: "off" });
	const place = h("div", {}, card("To hand out", {}, empty("No list yet", "Claim for the class, and the list appears here.")));
	const rosterField = field("Students", roster, { help: "A line for each: a track of their own, such as an email address, then a comma and a name if you like. A CSV file can be pasted as it is." });
	const labField = field("Lab (optional)", lab, { help: "Kept with each sandbox. No accents, no blanks." });
	const tell = (place, message) => (place.querySelector(".problem").textContent = message);
	const withRoster = (run) => async () => {
		tell(rosterField, "");
		try {
			await run(readRoster(roster.value));
		} catch (error) {
			if (!error.fields?.length) throw error;
			tell(rosterField, error.message);
			roster.focus();
		}
	};
	const claimAll = withRoster(async (rows) => {
		const name = lab.value.trim(), isGood = /^[!-~]*$/.test(name);
		tell(labField, isGood ? "" : "Use letters without accents, digits and signs, without blanks, such as intro-1.");
		if (isGood) fill(place, handOut(await claim(rows, name)));
		else lab.focus();
	});
	const form = card("Roster", { class: "no-print", more: `${number(stats.available)} sandboxes free` }, rosterField, labField,
		h("div", { class: "row" },
			button("Claim for all", { kind: "primary", run: claimAll }),
			button("Give all back", { kind: "quiet-danger", run: withRoster((rows) => confirm({ title: "Give back what this class holds?", label: "Give all back", danger: true,
				text: `${rows.length} students lose their sandboxes, and the next cleanup deletes them. This cannot be undone.`, run: () => giveBack(rows) })) })));
	return [heading("Class", { back: { href: "/sandboxes", text: "Sandboxes" }, sub: "A sandbox for each student; claiming again shows the same list" }), h("div", { class: "stack" }, forecastCard(), form, place)];
}
