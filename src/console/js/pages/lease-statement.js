// SPDX-License-Identifier: Apache-2.0
// What a lease has cost: there from its end on, and final when the bills are.
import * as api from "../api.js";
import { h } from "../dom.js";
import { ago, money, time } from "../format.js";
import { badge, button, card, empty, facts, table } from "../parts.js";

const states = {
	pending: "The bills are not there yet: the first figures come about a day after the end.",
	provisional: "The figures may still grow: bills come late.",
	final: "The bills are complete.",
	amended: "The provider has changed its figures after the statement was final.",
};

export async function statementCard(ctx, lease, path) {
	let statement;
	try {
		statement = await api.get(`${path}/statement`, {}, { signal: ctx.signal });
	} catch (error) {
		if (!(error instanceof api.ApiError) || error.status !== 404) throw error;
		return card("Statement", {}, empty("There is no statement", "The account was never used, or it is too long ago."));
	}
	const save = button("Download as CSV", { size: "small", run: () => api.download(`${path}/statement`, { format: "csv" }, `statement-${lease.uuid}.csv`) });
	return card("Statement", { class: "spaced", more: statement.state !== "pending" && save },
		h("p", { class: "row" }, badge(statement.state), h("span", { class: "dim" }, states[statement.state])),
		statement.state !== "pending" && facts([
			["Total", h("b", {}, money(statement.total_usd))], ["From", time(statement.from)], ["To", time(statement.to)],
			["Complete until", statement.complete_until ? time(statement.complete_until) : undefined], ["Made", statement.made_at ? ago(statement.made_at) : undefined],
		]),
		statement.rows.length > 0 && table([
			{ title: "Service", lead: true, cell: (r) => r.service }, { title: "Cost", num: true, cell: (r) => money(r.usd) },
		], statement.rows, { caption: "Cost by service" }));
}
