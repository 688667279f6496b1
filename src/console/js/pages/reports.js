// SPDX-License-Identifier: Apache-2.0
// What leases have cost in a month, by day, cost group, owner, template and lease, and what it comes to by its end.
import * as api from "../api.js";
import { h } from "../dom.js";
import { day, money } from "../format.js";
import { badge, button, card, empty, field, heading, loader, plot, select, table } from "../parts.js";
import { leaseHref, leaseIdOf } from "./lease-parts.js";

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

// --- what a month cost ---

const kinds = [["group", "Cost group"], ["owner", "Owner"], ["template", "Template"], ["lease", "Lease"]];

// A lease's line of the report; see the headings of the API's CSV.
const leaseOf = ([uuid, owner, template, group, account, from, to, cost, projected, , state]) =>
	({ uuid, owner, template, group, account, from, to, cost: Number(cost), projected: Number(projected), state });

const sum = (rows, member) => rows.reduce((total, r) => total + r[member], 0);

// Those of one group, owner or template together, the dearest first.
function summed(leases, by) {
	const all = new Map();
	for (const l of leases) {
		const row = all.get(l[by]) ?? { name: l[by], cost: 0, projected: 0, count: 0 };
		all.set(l[by], { ...row, cost: row.cost + l.cost, projected: row.projected + l.projected, count: row.count + 1 });
	}
	return [...all.values()].sort((a, b) => b.cost - a.cost);
}

const amounts = (isNow) => [
	{ title: "Cost", by: (r) => r.cost, num: true, cell: (r) => money(r.cost) },
	isNow && { title: "By month's end", by: (r) => r.projected, num: true, cell: (r) => money(r.projected) },
];

const sumColumns = (ctx, by, isNow) => [
	{ title: kinds.find(([name]) => name === by)[1], lead: true, cell: (r) => h("a", { href: ctx.hrefWith({ by: "lease", of: by, name: r.name }) }, r.name) },
	{ title: "Leases", by: (r) => r.count, num: true, cell: (r) => r.count }, ...amounts(isNow),
].filter(Boolean);

const leaseColumns = (isNow) => [
	{ title: "Lease", lead: true, cell: (r) => h("a", { href: leaseHref(leaseIdOf(r.owner, r.uuid)) }, r.template) },
	{ title: "Owner", cell: (r) => r.owner }, { title: "Cost group", cell: (r) => r.group }, { title: "Days", cell: (r) => `${r.from} to ${r.to}` },
	{ title: "State", cell: (r) => badge(r.state) }, ...amounts(isNow),
].filter(Boolean);

async function costs(ctx, month, isNow) {
	const read = async (by) => parseCsv(await api.text("/api/reports/costs", { month, by }, { signal: ctx.signal })).slice(1);
	const [lines, days] = await Promise.all([read("lease"), read("day")]);
	const by = kinds.some(([name]) => name === ctx.query.by) ? ctx.query.by : "group", of = kinds.some(([name]) => name === ctx.query.of) ? ctx.query.of : null;
	const all = lines.map(leaseOf), shown = (of ? all.filter((l) => l[of] === ctx.query.name) : all).sort((a, b) => b.cost - a.cost);
	const nothing = empty("No costs yet", "A lease appears here after its first midnight (UTC), with what it cost in this month.");
	return [
		all.length > 0 && h("p", { class: "report-sum" }, of ? `${ctx.query.name}: ` : "Total ", h("b", {}, money(sum(shown, "cost"))),
			isNow && [", at the current rate ", h("b", {}, money(sum(shown, "projected"))), " by the end of the month"],
			of && [" ", h("a", { href: ctx.hrefWith({ of: "", name: "", by: of }) }, "Show all")]),
		all.length > 0 && !of && plot(days.map(([at, cost]) => ({ at: new Date(Date.parse(`${at}T00:00:00Z`)), value: Number(cost) })),
			{ label: `Spend by day in ${month}`, format: money, when: day, none: "The chart starts on the second day of the month." }),
		h("p", { class: "dim" }, "A day counts when its midnight (UTC) is in the lease, so the rest of its first day is left out. The statement of a lease has all of it."),
		by === "lease" ? table(leaseColumns(isNow), shown, { caption: `Costs of ${month} by lease`, none: nothing })
			: table(sumColumns(ctx, by, isNow), summed(all, by), { caption: `Costs of ${month} by ${by}`, none: nothing }),
	];
}

export default async function page(ctx) {
	const known = months(), month = known.some(([name]) => name === ctx.query.month) ? ctx.query.month : known[0][0];
	const by = ctx.query.by ?? "group", list = h("div");
	loader(list, () => costs(ctx, month, month === known[0][0]));
	const save = button("Download as CSV", { size: "small", run: () => api.download("/api/reports/costs", { month, by }, `cost-report-${month}-${by}.csv`) });
	return [
		heading("Reports"),
		h("div", { class: "stack" },
			card("Monthly costs", { more: save },
				h("form", { class: "filters", on: { submit: (e) => e.preventDefault() } },
					field("Month", select("month", known, month, (value) => ctx.setQuery({ month: value }))),
					field("By", select("by", kinds, by, (value) => ctx.setQuery({ by: value, of: "", name: "" })))), list),
			ctx.rights.operations && h("p", { class: "dim" }, "A program can read these figures with a key of its own: see ", h("a", { href: "/operations/service-accounts" }, "Service accounts"), ".")),
	];
}
