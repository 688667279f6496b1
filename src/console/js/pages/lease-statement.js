// SPDX-License-Identifier: Apache-2.0
// What a lease has cost: there from its end on, and final when the bills are.
import * as api from "../api.js";
import { h } from "../dom.js";
import { ago, day, money, time } from "../format.js";
import { badge, button, card, empty, facts, plot, table } from "../parts.js";

const states = {
	pending: "No bills yet: the first figures arrive about a day after the lease ends.",
	provisional: "Figures may still grow as late bills arrive.",
	final: "The bills are complete.",
	amended: "The provider changed its figures after the statement was final.",
};

const DAY_MS = 86400000;

// Each day of the window; those that are not in the statement cost nothing.
function daily(statement) {
	const costs = new Map(statement.days.map((d) => [Date.parse(`${d.from}T00:00:00Z`), d.usd / d.days]));
	const step = Math.max(...statement.days.map((d) => d.days)) * DAY_MS, points = [];
	for (let at = Date.parse(statement.from); at < Date.parse(statement.to); at += step) points.push({ at: new Date(at), value: costs.get(at) ?? 0 });
	return points;
}

export async function statementCard(ctx, lease, path) {
	let statement;
	try {
		statement = await api.get(`${path}/statement`, {}, { signal: ctx.signal });
	} catch (error) {
		if (!(error instanceof api.ApiError) || error.status !== 404) throw error;
		return card("Statement", {}, empty("No statement", "The account was never used, or the statement is too old."));
	}
	const save = button("Download as CSV", { size: "small", run: () => api.download(`${path}/statement`, { format: "csv" }, `statement-${lease.uuid}.csv`) });
	return card("Statement", { class: "spaced", more: statement.state !== "pending" && save },
		h("p", { class: "row" }, badge(statement.state), h("span", { class: "dim" }, states[statement.state])),
		statement.state === "pending" && statement.estimated_usd !== undefined && facts([["Estimate", `about ${money(statement.estimated_usd)}`]]),
		statement.state !== "pending" && facts([
			["Total", h("b", {}, money(statement.total_usd))], ["Over its budget by", statement.over_budget_usd ? money(statement.over_budget_usd) : undefined], ["From", time(statement.from)], ["To", time(statement.to)],
			["Complete until", statement.complete_until ? time(statement.complete_until) : undefined], ["Created", statement.made_at ? ago(statement.made_at) : undefined],
		]),
		statement.days.length > 0 && plot(daily(statement), { label: "Spend by day", format: money, when: day, none: "All of it was spent on one day." }),
		statement.rows.length > 0 && table([
			{ title: "Service", lead: true, cell: (r) => r.service }, { title: "Cost", by: (r) => r.usd, num: true, cell: (r) => money(r.usd) },
		], statement.rows, { caption: "Cost by service" }));
}
