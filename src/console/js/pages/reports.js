// SPDX-License-Identifier: Apache-2.0
// What leases have cost in a month, by cost group; and the programs that have a key for reports and more.
import * as api from "../api.js";
import { h } from "../dom.js";
import { money } from "../format.js";
import { button, card, empty, field, heading, loader, select, table } from "../parts.js";
import { keysCard } from "./reports-keys.js";

const MONTHS = 18;
const monthName = new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric", timeZone: "UTC" });

// This month and those before, as the API names them.
function months() {
	const now = new Date(api.now());
	return Array.from({ length: MONTHS }, (_, i) => {
		const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - i, 1));
		return [month.toISOString().slice(0, 7), monthName.format(month)];
	});
}

// Lines of cells; a cell in quotes may have commas, quotes and line ends.
export function parseCsv(text) {
	const lines = [[]];
	for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
		lines.at(-1).push(quoted !== undefined ? quoted.replaceAll('""', '"') : plain);
		if (end === "") break;
		if (end !== ",") lines.push([]);
	}
	return lines.filter((cells) => cells.some((cell) => cell !== ""));
}

const columns = [
	{ title: "Cost group", lead: true, cell: (r) => r[0] },
	{ title: "From", cell: (r) => r[1] },
	{ title: "To", cell: (r) => r[2] },
	{ title: "Cost", num: true, cell: (r) => `${money(Number(r[3]))}${r[4] && r[4] !== "USD" ? ` ${r[4]}` : ""}` },
];

async function costs(ctx, month) {
	const rows = parseCsv(await api.text("/api/reports/costs", { month }, { signal: ctx.signal })).slice(1);
	const sum = rows.reduce((total, r) => total + Number(r[3]), 0);
	return [
		rows.length > 0 && h("p", { class: "report-sum" }, "Total ", h("b", {}, money(sum))),
		table(columns, rows, { caption: `Costs of ${month} by group`, none: empty("No costs yet", "A lease appears here after its first midnight (UTC), with what it cost in this month, by cost group.") }),
	];
}

export default async function page(ctx) {
	const known = months(), month = known.some(([name]) => name === ctx.query.month) ? ctx.query.month : known[0][0];
	const list = h("div"), keys = h("div");
	loader(list, () => costs(ctx, month));
	loader(keys, () => keysCard(ctx));
	return [
		heading("Reports"),
		h("div", { class: "stack" },
			card("Costs of a month", { more: button("Download as CSV", { size: "small", run: () => api.download("/api/reports/costs", { month }, `cost-report-${month}.csv`) }) },
				h("form", { class: "filters", on: { submit: (e) => e.preventDefault() } }, field("Month", select("month", known, month, (value) => ctx.setQuery({ month: value })))), list),
			keys),
	];
}
