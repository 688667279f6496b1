// SPDX-License-Identifier: Apache-2.0
// The simulated world, in development only: have things fail on purpose and see what becomes of it.
import * as api from "../api.js";
import { h } from "../dom.js";
import { number, percent, words } from "../format.js";
import { ask, button, card, empty, field, select, table, toast } from "../parts.js";
import { due, live, opsHeading, tickDue } from "./operations-parts.js";

const calls = ["any", "list-ous", "find-parent", "move", "list-accounts", "describe", "get-tags", "set-tags", "remove-tag", "grant", "revoke", "list-assignments", "issue",
	"withdraw", "find-secret", "spend", "clean", "check-run", "create-resource", "check-resource", "delete-resource", "scale-workers", "list-tasks", "csp-list", "csp-delete"];

// name, what happens, whether it happens to a call
const faults = [
	["outage", "Calls fail; nothing happened", true],
	["throttle", "Calls are refused: too many requests", true],
	["latency", "Calls take longer", true],
	["timeout-before", "Calls time out; nothing happened", true],
	["timeout-after", "Calls time out, but it happened", true],
	["clean-fails", "Cleanups fail", false],
	["clean-lies", "Cleanups report success but delete nothing", false],
	["duplicate-events", "Move events arrive twice", false],
	["reorder-events", "Move events arrive late", false],
	["lose-events", "Move events are lost at first", false],
];
const isOfCalls = (name) => faults.find((f) => f[0] === name)?.[2];
const whatHappens = (name) => faults.find((f) => f[0] === name)?.[1] ?? words(name);

const scenes = [
	{ title: "The cloud is down", text: "Every call fails. Leases wait, sagas retry, alarms are raised.", rules: [{ fault: "outage", call: "any", for_sec: 300 }] },
	{ title: "Access cannot be granted", text: "A new lease gets its account, but no access: its saga is stuck at a step.", rules: [{ fault: "outage", call: "grant" }] },
	{ title: "Everything is slow", text: "Each call takes two seconds longer.", rules: [{ fault: "latency", latency_ms: 2000, for_sec: 600 }] },
	{ title: "Too many requests", text: "A third of all calls are refused.", rules: [{ fault: "throttle", per_mille: 333, for_sec: 600 }] },
	{ title: "Cleanups fail", text: "Returned accounts go to quarantine after a few tries.", rules: [{ fault: "clean-fails" }] },
	{ title: "No tasks can be created", text: "A new tenant's instance fails at its tasks, and what was created of it is rolled back.", rules: [{ fault: "outage", call: "create-resource", resource: "workers" }], of: "instances" },
	{ title: "Answers get lost", text: "A fifth of the moves time out although they happened.", rules: [{ fault: "timeout-after", call: "move", per_mille: 200 }] },
];

const put = (rules) => api.put("/v1/sim/faults", { faults: rules });

// A rule in force, as one that can be set again.
function asRule(f) {
	const rule = { fault: f.fault, call: f.call, per_mille: f.per_mille, resource: f.resource };
	if (f.count) rule.count = f.count;
	if (f.latency_ms) rule.latency_ms = f.latency_ms;
	if (f.until) rule.for_sec = Math.max(1, Math.round((new Date(f.until).getTime() - Date.now()) / 1000));
	return rule;
}

const ruleColumns = (world, again) => [
	{ title: "What", lead: true, cell: (f) => [whatHappens(f.fault), h("span", { class: "sub-line" }, f.fault)] },
	{ title: "Call", cell: (f) => (f.resource ? `${f.call} of ${f.resource}` : f.call) },
	{ title: "How often", by: (f) => f.per_mille, cell: (f) => (f.per_mille === 1000 ? "always" : percent(f.per_mille / 1000)) },
	{ title: "Times left", by: (f) => f.count || Infinity, num: true, cell: (f) => (f.count ? number(f.count) : "no limit") },
	{ title: "Ends", cell: (f) => (f.until ? due(f.until) : "when switched off") },
	{ title: "Slower by", by: (f) => f.latency_ms, cell: (f) => f.latency_ms && `${number(f.latency_ms)} ms` },
	{ title: "Actions", hidden: true, cell: (f) => button("Switch off", { size: "small", title: `Switch off ${f.fault} of ${f.call}`, run: async () => {
		await put(world.faults.filter((other) => other !== f).map(asRule));
		toast("Switched off.");
		again();
	} }) },
];

function add(world, again) {
	const amount = (name, label, max, help) => field(label, h("input", { name, type: "number", min: 1, max, step: 1, inputmode: "numeric" }), { help });
	return ask({
		title: "Inject a fault", label: "Switch on",
		fields: [field("What", select("fault", faults.map(([name, text]) => [name, `${text} (${name})`]), "outage")), field("Of which call", select("call", calls.map((c) => [c, c]), "any"), { help: "Only for the first five; the others do not concern a call." }),
			amount("percent", "How often, in percent", 100, "Leave empty for always."), amount("count", "How many times", 1000000, "Leave empty for no limit."), amount("for_sec", "For how many seconds", 86400, "Leave empty for until switched off."),
			amount("latency_ms", "Slower by, in ms", 60000, "Only for calls that take longer.")],
		run: async (data) => {
			const fault = data.get("fault"), value = (name) => Number(data.get(name)) || undefined;
			await put([...world.faults.map(asRule), { fault, call: isOfCalls(fault) ? data.get("call") : "any", per_mille: value("percent") && value("percent") * 10, count: value("count"), for_sec: value("for_sec"),
				latency_ms: fault === "latency" ? (value("latency_ms") ?? 1000) : undefined }]);
			toast("Switched on.");
		},
	}).then((did) => did && again());
}

function faultsCard(world, again) {
	return card("Injected faults", { more: world.faults.length > 0 ? button("Clear all faults", { size: "small", run: async () => {
		await put([]);
		toast("All faults cleared.");
		again();
	} }) : null }, table(ruleColumns(world, again), world.faults, { caption: "Faults in force", none: empty("No faults", "The simulated cloud works normally. Pick a fault below.") }));
}

function scenesCard(world, again) {
	return card("Try one of these", {}, h("ul", { class: "scenes" }, scenes.filter((s) => !s.of || api.service[s.of]).map((s) => h("li", {}, h("h3", {}, s.title), h("p", { class: "dim" }, s.text),
		button("Switch on", { size: "small", title: `Switch on: ${s.title}`, run: async () => {
			await put([...world.faults.map(asRule), ...s.rules]);
			toast(`Switched on: ${s.title.toLowerCase()}.`);
			again();
		} })))));
}

const notClean = (ou) => ou.accounts.filter((a) => a.dirty > 0).length;
const sum = (figures) => Object.values(figures).reduce((a, b) => a + b, 0);

function worldCard(world) {
	return card("The simulated cloud", { more: `${number(sum(world.calls))} calls, ${number(sum(world.refused))} refused, ${number(sum(world.injected))} failed on purpose` },
		table([
			{ title: "OU", lead: true, cell: (ou) => ou.name },
			{ title: "Accounts", by: (ou) => ou.count, num: true, cell: (ou) => number(ou.count) },
			{ title: "Not clean", by: notClean, num: true, cell: (ou) => number(notClean(ou)) },
			{ title: "Accounts in it", cell: (ou) => ou.accounts.slice(0, 6).map((a) => a.name).join(", ") + (ou.count > 6 ? ", …" : "") },
		], world.ous, { caption: "Organisational units" }));
}

function more(again) {
	return ask({
		title: "More accounts", label: "Add", text: "They appear in the OU Entry and can be registered from there.",
		fields: [field("How many", h("input", { name: "count", type: "number", min: 1, max: 100, step: 1, value: "5", required: true, inputmode: "numeric" }))],
		run: async (data) => {
			await api.post("/v1/sim/accounts", { count: Number(data.get("count")) });
			toast("Added to the OU Entry.");
		},
	}).then((did) => did && again());
}

export default async function page(ctx) {
	let world = null;
	const read = async () => (world = await api.get("/v1/sim", {}, { signal: ctx.signal }));
	await read();
	const again = () => shown.again();
	const shown = live(ctx, read, (got) => [faultsCard(got, again), scenesCard(got, again), worldCard(got)]);
	tickDue(ctx);
	return [opsHeading("/operations/world", "World", { sub: "The simulated cloud: inject faults and watch what happens.", actions: [
		button("Add accounts", { run: () => more(again) }), button("Inject a fault", { kind: "primary", run: () => add(world, again) }),
	] }), shown.place];
}
