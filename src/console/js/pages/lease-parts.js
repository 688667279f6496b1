// SPDX-License-Identifier: Apache-2.0
// What the pages of leases, templates and accounts share: how a lease is named and linked, its bars with their thresholds, the editor of
// thresholds, and countdowns.
import { now } from "../api.js";
import { fill, h, part, touch } from "../dom.js";
import { bothTimes, duration, money, toDate } from "../format.js";
import { badge, button, facts, field, meter, select } from "../parts.js";

export const statuses = ["PendingApproval", "InLine", "Provisioning", "Active", "Frozen", "Expired", "BudgetExceeded", "ManuallyTerminated",
	"AccountQuarantined", "Ejected", "ProvisioningFailed", "ApprovalDenied", "Withdrawn"];

export const isPending = (l) => l.status === "PendingApproval";
export const isInLine = (l) => !!l.queuedSince;
export const isRunning = (l) => !isInLine(l) && ["Provisioning", "Active", "Frozen"].includes(l.status);
export const isOpen = (l) => isPending(l) || isInLine(l) || isRunning(l);
export const isDenied = (l) => l.status === "ApprovalDenied";
export const isEnded = (l) => !isOpen(l) && !isDenied(l);

// An id is base64 and may have slashes; the API takes the other alphabet too, which looks better in an address.
const slug = (leaseId) => leaseId.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
export const leaseHref = (leaseId) => `/leases/${part(slug(leaseId))}`;
export const leasePath = (leaseId) => `/api/leases/${part(slug(leaseId))}`;
export const leaseIdOf = (userEmail, uuid) => btoa(JSON.stringify({ userEmail, uuid }));

export const isWithdrawn = (l) => isDenied(l) && l.deniedBy === l.userEmail;

export function leaseBadge(l) {
	if (isInLine(l)) return badge("waiting", { text: "In line", kind: "info" });
	return isWithdrawn(l) ? badge("withdrawn", { text: "Withdrawn" }) : badge(l.status);
}

// "7 days", "6 d 16 h"
export function hours(count) {
	if (count === undefined || count === null) return "no limit";
	return count % 24 === 0 && count > 0 ? `${count / 24} ${count === 24 ? "day" : "days"}` : duration(count * 3600);
}
export const budget = (dollars) => (dollars === undefined || dollars === null ? "no limit" : money(dollars));

// --- bars ---

const deeds = { ALERT: "an email is sent", FREEZE_ACCOUNT: "the lease is frozen" };

// Where the spend stands. costAsOf is up to when the figure is complete: bills come late.
export function spendMeter(l) {
	const spent = l.totalCostAccrued ?? 0;
	return meter(spent, l.maxSpend ?? 0, {
		label: `Spend of ${l.originalLeaseTemplateName}`,
		text: [l.maxSpend ? `${money(spent)} of ${money(l.maxSpend)}` : `${money(spent)}, no limit`, shortForecast(l)].filter(Boolean).join(", "),
		marks: budgetMarks(l),
	});
}

const isSettled = (l) => ["final", "amended"].includes(l.costState);

function shortForecast(l) {
	if (l.costState) return isSettled(l) ? "final" : "not final";
	return l.possibleOverrun ? `${money(l.projectedSpend)} by its end` : "";
}

// What the known figure leaves out: bills come late.
export function spendForecast(l) {
	if (isSettled(l)) return null;
	const rows = [
		["With what is not billed yet", l.estimatedSpend !== undefined ? `about ${money(l.estimatedSpend)}` : undefined],
		["At its end date, at this rate", l.projectedSpend !== undefined ? money(l.projectedSpend) : undefined],
	];
	return rows.some(([, value]) => value !== undefined) && [facts(rows), l.possibleOverrun && h("p", { class: "help" }, `The lease ends when its known spend reaches the budget of ${money(l.maxSpend)}. Bills come late: by then it may have spent up to `,
		h("b", {}, money(l.possibleOverrun)), " more.")];
}

function budgetMarks(l) {
	return (l.budgetThresholds ?? []).map((t) => ({ value: t.dollarsSpent, text: `At ${money(t.dollarsSpent)} ${deeds[t.action]}` }));
}

// The points of a bar in words; the bar itself only has lines.
function markList(marks, value) {
	return h("ul", { class: "marks" }, marks.map((m) => h("li", { class: value >= m.value ? "passed" : null },
		h("span", { class: "dot mark-dot", "aria-hidden": "true" }), m.text, value >= m.value && h("b", {}, " – passed"))));
}

export function spendBar(l) {
	const spent = l.totalCostAccrued ?? 0, marks = budgetMarks(l);
	const end = l.maxSpend ? [{ value: l.maxSpend, text: `At ${money(l.maxSpend)} the lease ends` }] : [];
	return [spendMeter(l), spendForecast(l), markList([...marks].sort((a, b) => a.value - b.value).concat(end), spent)];
}

// Runs from the start to the end, also while frozen.
export function timeBar(l) {
	const start = toDate(l.startDate)?.getTime(), end = toDate(l.expirationDate)?.getTime();
	const at = toDate(l.endDate)?.getTime() ?? now();
	if (!start || !end) return h("p", {}, end ? "Starts once access is ready." : "No end date: it lasts until someone ends it.");
	const whole = (end - start) / 1000, used = Math.max(0, (at - start) / 1000);
	const marks = (l.durationThresholds ?? []).map((t) => ({
		value: whole - t.hoursRemaining * 3600, text: `With ${hours(t.hoursRemaining)} left ${deeds[t.action]}`,
	})).filter((m) => m.value > 0).sort((a, b) => a.value - b.value);
	const left = (end - at) / 1000;
	return [
		meter(used, whole, { label: "Time of the lease", marks,
			text: isEnded(l) ? `${duration(used)} of ${duration(whole)} used` : `${duration(used)} of ${duration(whole)}, ${left > 0 ? `${duration(left)} left` : "over"}` }),
		markList([...marks, { value: whole, text: `After ${duration(whole)} the lease ends` }], used),
	];
}

// --- events ---

// Wake-up calls of timers, steps of the machinery and echoes from outside are not worth a line on a page: what came of them is. What went
// wrong always is.
export const isWorthTelling = (e) => !/Due$|^Saga(Started|Done)$|^cloudtrail:/.test(e["detail-type"]);

// --- countdowns ---

function left(date, over) {
	const seconds = Math.round((date.getTime() - now()) / 1000);
	return seconds > 0 ? `in ${duration(seconds)}` : over;
}

// "in 2 d 3 h", and it counts; see tick(). over: what it says when the time has come.
export function countdown(value, over = "any moment") {
	const date = toDate(value);
	return date && h("time", { datetime: date.toISOString(), title: bothTimes(date),
		data: { over } }, left(date, over));
}

// Has all countdowns of this page count.
export function tick(ctx) {
	ctx.every(1000, () => {
		for (const e of ctx.main.querySelectorAll("time[data-over]")) {
			const text = left(new Date(e.dateTime), e.dataset.over);
			if (e.textContent !== text) e.textContent = text;
		}
	});
}

// --- the editor of thresholds ---

const editors = {
	budgetThresholds: { member: "dollarsSpent", title: "Budget thresholds", amount: "When spend reaches ($)", add: "Add a budget threshold",
		help: "The lease ends when its budget is used up; set what happens before that." },
	durationThresholds: { member: "hoursRemaining", title: "Time thresholds", amount: "When hours left reach", add: "Add a time threshold",
		help: "The lease ends when its time is up; set what happens before that." },
};
const MOST = 20;

// name: budgetThresholds or durationThresholds. Answers { element, read() }; read() answers what the API takes, rows as they stand. The
// names of the controls are the API's paths, so that its complaints find their fields.
export function thresholdsEditor(name, list = []) {
	const { member, title, amount, add, help } = editors[name];
	const rows = h("div", { class: "thresholds" });
	const more = button(add, { size: "small", run: () => {
		if (rows.children.length === MOST) throw new Error(`At most ${MOST} thresholds.`);
		rows.append(row({}));
		renumber();
		touch(rows);
		rows.lastChild.querySelector("input").focus();
	} });

	function row(threshold) {
		const number = h("input", { type: "number", min: 0, step: "any", value: threshold[member] ?? "", inputmode: "decimal" });
		const action = select("", [["ALERT", "Send an email"], ["FREEZE_ACCOUNT", "Freeze the lease"]], threshold.action ?? "ALERT");
		const element = h("div", { class: "threshold", role: "group" }, field(amount, number), field("Then", action),
			button("Remove", { size: "small", run: () => {
				const next = element.nextSibling ?? element.previousSibling;
				element.remove();
				renumber();
				touch(rows);
				(next?.querySelector("input") ?? more).focus();
			} }));
		return element;
	}

	function renumber() {
		[...rows.children].forEach((element, i) => {
			element.setAttribute("aria-label", `Threshold ${i + 1}`);
			[member, "action"].forEach((part, k) => {
				const box = element.querySelectorAll(".field")[k];
				box.dataset.field = `${name}.${i}.${part}`;
				box.querySelector("input, select").name = box.dataset.field;
			});
		});
	}

	fill(rows, list.map(row));
	renumber();
	return {
		element: h("fieldset", { class: "field thresholds-box", data: { field: name } }, h("legend", {}, title),
			h("p", { class: "problem", "aria-live": "polite" }), h("p", { class: "help" }, help), rows, more),
		read: () => [...rows.children].map((element) => ({
			[member]: numberOf(element.querySelector("input").value) ?? undefined, action: element.querySelector("select").value,
		})),
	};
}

// What a number field has; null when it is empty.
export const numberOf = (text) => (text.trim() === "" ? null : Number(text));
