// SPDX-License-Identifier: Apache-2.0
// All accounts as a board: a column for each phase, with what each account waits for; before them those that are not registered yet.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { ago, elapsed, number } from "../format.js";
import { badge, button, card, confirm, copyable, empty, failed, field, heading, loader, table } from "../parts.js";
import { phaseBadge, phaseOf, phases, phaseTitle } from "./account-parts.js";
import { countdown, tick } from "./lease-parts.js";

const MOST = 5000, MOST_NEW = 1000, SHOWN = 12, LISTED = 500, FRESH_MS = 5000, TYPING_MS = 250;

const link = (a) => h("a", { href: `/accounts/${part(a.awsAccountId)}` }, a.name || a.awsAccountId);

// What an account waits for, in a few words.
function waitsFor(a) {
	switch (phaseOf(a)) {
	case "Available": return a.lastRestedTime ? ["free for ", elapsed(a.lastRestedTime)] : null;
	case "Active": case "Frozen": return a.leaseUuid && h("a", { href: `/leases/${part(a.leaseUuid)}` }, "its lease");
	case "CleanUp": return a.cleanupExecutionContext ? ["started ", ago(a.cleanupExecutionContext.stateMachineExecutionStartTime)] : "waiting for its turn";
	case "Cooldown": return a.restingUntil ? ["free ", countdown(a.restingUntil)] : "until someone releases it";
	default: return a.reason;
	}
}

function tile(a) {
	return h("li", { class: "tile" }, h("div", { class: "tile-name" }, link(a), a.driftAtLastScan && badge("drift", { text: "Drift", kind: "bad" })),
		a.name && h("code", {}, a.awsAccountId), h("div", { class: "tile-more" }, waitsFor(a)));
}

// Who comes next stands first.
const order = {
	Cooldown: (a, b) => (a.restingUntil ?? "9") < (b.restingUntil ?? "9") ? -1 : 1,
	Available: (a, b) => (a.lastRestedTime ?? "") < (b.lastRestedTime ?? "") ? -1 : 1,
};

function column(ctx, phase, accounts) {
	const mine = accounts.filter((a) => phaseOf(a) === phase.name).sort(order[phase.name] ?? ((a, b) => (a.name ?? "").localeCompare(b.name ?? "")));
	const label = `column-${phase.name}`;
	return h("section", { class: `lane ${phase.kind}`, "aria-labelledby": label },
		h("h2", { id: label }, phaseTitle(phase.name), h("span", { class: "lane-count" }, number(mine.length))), h("p", { class: "lane-what" }, phase.what),
		h("ul", {}, mine.slice(0, SHOWN).map(tile)),
		!mine.length && h("p", { class: "lane-none" }, "none"),
		mine.length > SHOWN && h("a", { class: "lane-more", href: ctx.hrefWith({ phase: phase.name }) }, `all ${number(mine.length)}`));
}

const columns = [
	{ title: "Account", lead: true, cell: link },
	{ title: "Id", cell: (a) => copyable(a.awsAccountId) },
	{ title: "Phase", cell: (a) => phaseBadge(phaseOf(a)) },
	{ title: "Now", cell: waitsFor },
	{ title: "Open holds", by: (a) => a.openHolds ?? 0, num: true, cell: (a) => number(a.openHolds ?? 0) },
	{ title: "Last cleaned", cell: (a) => a.lastCleanedTime && ago(a.lastCleanedTime) },
];

// --- newcomers ---

function register(a, again) {
	return confirm({
		title: `Register ${a.Name || a.Id}?`, label: "Register", danger: true, done: "Registered. It is being cleaned.",
		text: `Everything in account ${a.Id} is deleted; after that it can be lent. This cannot be undone.`,
		run: () => api.post("/api/accounts", { awsAccountId: a.Id }),
	}).then((did) => did && again());
}

// The cloud is asked for these: when it does not answer, the board is there without them.
function newcomers({ items, next, error }, q, again) {
	if (error) return card("Not registered", { id: "unregistered" }, failed(error, again));
	const found = items.filter((a) => matches({ awsAccountId: a.Id, name: a.Name, email: a.Email }, q));
	if (!found.length && !next) return null;
	return card("Not registered", { class: "flush", id: "unregistered", more: next ? `${number(found.length)} among the first ${number(items.length)} in the OU Entry` : `${number(found.length)} in the OU Entry` }, table([
		{ title: "Account", lead: true, cell: (a) => a.Name },
		{ title: "Id", cell: (a) => h("code", {}, a.Id) },
		{ title: "Email", cell: (a) => a.Email },
		{ title: "Actions", hidden: true, cell: (a) => button("Register", { size: "small", title: `Register ${a.Name || a.Id}`, run: () => register(a, again) }) },
	], found, { caption: "Accounts that are not registered" }));
}

// --- the page ---

function filters(ctx) {
	let timer;
	const search = h("input", { name: "q", type: "search", value: ctx.query.q ?? "", placeholder: "Part of a name, id or email", autocomplete: "off", maxlength: 64, on: {
		input: (e) => {
			clearTimeout(timer);
			timer = setTimeout(() => ctx.setQuery({ q: e.target.value.trim() }, { replace: true }), TYPING_MS);
		},
	} });
	ctx.signal.addEventListener("abort", () => clearTimeout(timer));
	const grown = field("Account", search);
	grown.classList.add("grow");
	return h("form", { class: "filters", role: "search", on: { submit: (e) => e.preventDefault() } }, grown,
		ctx.query.phase && h("a", { class: "button", href: ctx.hrefWith({ phase: "" }) }, "Back to the board"));
}

function matches(a, q) {
	return !q || [a.awsAccountId, a.name, a.email].some((text) => text?.toLowerCase().includes(q.toLowerCase()));
}

function drawing(ctx, accounts) {
	const found = accounts.filter((a) => matches(a, ctx.query.q));
	if (!accounts.length) return card("Pool", {}, empty("No accounts registered", "Accounts in the OU Entry can be registered; they are cleaned before they are lent."));
	if (!found.length) return card("Pool", {}, empty("No matching accounts", `No name, id or email contains “${ctx.query.q}”.`, h("a", { class: "button", href: "/accounts" }, "Show all")));
	if (!ctx.query.phase) return h("div", { class: "board" }, phases.map((p) => column(ctx, p, found)));
	const listed = found.filter((a) => phaseOf(a) === ctx.query.phase);
	return card(phaseTitle(ctx.query.phase), { class: "flush", more: number(listed.length) },
		table(columns, listed.sort(order[ctx.query.phase]).slice(0, LISTED), { caption: `Accounts in ${phaseTitle(ctx.query.phase)}` }),
		listed.length > LISTED && h("p", { class: "dim" }, `The first ${number(LISTED)} are shown; search for others.`));
}

export default async function page(ctx) {
	const options = { signal: ctx.signal }, place = h("div", { class: "stack" }), sub = h("span");
	const again = loader(place, async () => {
		const [accounts, entry, counts] = await Promise.all([
			api.all("/api/accounts", "result", { pageSize: 2000 }, MOST, options),
			ctx.rights.pool ? api.upTo(MOST_NEW, "/api/accounts/unregistered", "result", {}, options).catch((error) => ({ error })) : { items: [] },
			ctx.rights.operations ? api.get("/v1/ops/overview", {}, options) : null,
		]);
		const leaving = counts?.accounts.by_status.Exit;
		sub.textContent = `${number(accounts.length)} registered${leaving ? `, ${number(leaving)} leaving the pool` : ""}`;
		return [drawing(ctx, accounts), newcomers(entry, ctx.query.q, again)];
	});
	ctx.every(FRESH_MS, again);
	tick(ctx);
	return [heading("Accounts", { sub }), filters(ctx), place];
}
