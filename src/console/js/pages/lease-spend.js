// SPDX-License-Identifier: Apache-2.0
// What a running lease has spent, day by day, and what it comes to at its end at this rate.
import * as api from "../api.js";
import { h } from "../dom.js";
import { day, moment, money, toDate } from "../format.js";
import { card, loader, plot } from "../parts.js";
import { isRunning } from "./lease-parts.js";

const DAY_MS = 86400000;

// The sum so far at the end of each day, up to when the figures are complete.
function sums(l, spend) {
	const start = toDate(l.startDate).getTime(), known = Math.max(start, toDate(spend.complete_until)?.getTime() ?? start);
	const costs = new Map(spend.days.map((d) => [Date.parse(`${d.from}T00:00:00Z`), d]));
	const points = [{ at: new Date(start), value: 0 }];
	let sum = 0;
	for (let at = Date.parse(spend.from); at < known; at += DAY_MS) {
		const found = costs.get(at);
		sum += found?.usd ?? 0;
		const end = new Date(Math.min(at + (found?.days ?? 1) * DAY_MS, known));
		if (end.getTime() > start) points.push({ at: end, value: sum });
		if (found) at += (found.days - 1) * DAY_MS;
	}
	return points;
}

function drawing(l, spend) {
	const points = sums(l, spend), end = toDate(l.expirationDate);
	const ahead = end && l.projectedSpend !== undefined && end > points.at(-1).at ? { at: end, value: Math.max(l.projectedSpend, points.at(-1).value) } : null;
	const span = (ahead ?? points.at(-1)).at - points[0].at;
	return [
		plot(points, { label: "Spend so far", format: money, when: span > 3 * DAY_MS ? day : moment, ahead, mark: l.maxSpend ? { value: l.maxSpend, text: `Budget ${money(l.maxSpend)}` } : null,
			none: "The first figures arrive some hours after the lease starts." }),
		ahead && points.length > 1 && h("ul", { class: "legend" }, h("li", {}, h("span", { class: "dash", "aria-hidden": "true" }), `At this rate ${money(ahead.value)} at its end`)),
	];
}

// Asked for anew only when the figures of the lease have changed: each time the cloud is asked, and that may cost something.
export function spendChart(ctx, path) {
	const place = h("div");
	let seen = null, lease = null, again = null;
	const box = card("Spend over time", {}, place);
	return (l) => {
		if (!isRunning(l) || !l.startDate) return null;
		const now = JSON.stringify([l.costAsOf, l.totalCostAccrued, l.maxSpend, l.expirationDate]);
		lease = l;
		if (now !== seen) {
			seen = now;
			if (again) again();
			else again = loader(place, async () => drawing(lease, await api.get(`${path}/spend`, {}, { signal: ctx.signal })));
		}
		return box;
	};
}
