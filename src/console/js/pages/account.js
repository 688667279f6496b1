// SPDX-License-Identifier: Apache-2.0
// One account: where it is and why, until when; its holds, its last cleanup, its lease, what happened; what an admin can do.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { timeline } from "../events.js";
import { explainPanel } from "../explain.js";
import { ago, number, time, words } from "../format.js";
import { badge, button, card, confirm, copyable, empty, facts, heading, loader } from "../parts.js";
import { holdReason, phaseBadge, phaseOf } from "./account-parts.js";
import { holdActions, holdsCard } from "./account-holds.js";
import { countdown, isWorthTelling, tick } from "./lease-parts.js";

const PAGE = 100, EVENTS = 300, SHOWN_EVENTS = 60, FRESH_MS = 3000;

const leaseLink = (uuid, text) => h("a", { href: `/leases/${part(uuid)}` }, text);
const leaseId = (uuid) => copyable(uuid, { href: `/leases/${part(uuid)}` });

// --- in a sentence ---

function resting(a, open) {
	return [
		a.restingUntil ? ["It is clean and in cooldown. It can be lent again ", countdown(a.restingUntil), ", at ", time(a.restingUntil), "."]
			: "It is clean and in cooldown until someone releases it.",
		h("ul", { class: "why" }, open.map((hold) => h("li", {}, hold.note && hold.reason === "manual" ? `${holdReason(hold.reason)}: ${hold.note}` : holdReason(hold.reason),
			hold.due_at && [", until ", time(hold.due_at)]))),
	];
}

function sentence(a, open) {
	switch (phaseOf(a)) {
	case "Available": return "It is clean and ready to lend.";
	case "Active": return ["It is lent, and its owner has access. See ", leaseLink(a.leaseUuid, "its lease"), "."];
	case "Frozen": return ["It is lent, but its lease is frozen: access is suspended. See ", leaseLink(a.leaseUuid, "its lease"), "."];
	case "CleanUp": return "Everything in it is being deleted. After a cooldown it can be lent again.";
	case "Cooldown": return resting(a, open);
	case "Quarantine": return ["It is in quarantine", a.reason && `: ${a.reason}`, ". Clean it again to return it to the pool, or eject it."];
	default: return "It is leaving the pool.";
	}
}

// --- what can be done ---

function act(label, then, { kind, path, body = () => ({}), ...dialog }) {
	return button(label, { kind, run: () => confirm({ label, ...dialog, run: (reason) => api.post(path, body(reason)) }).then((did) => did && then()) });
}

function actions(ctx, a, again) {
	const path = `/api/accounts/${part(a.awsAccountId)}`, phase = phaseOf(a), name = a.name || a.awsAccountId;
	if (!ctx.rights.pool) return null;
	return [
		["Quarantine", "CleanUp"].includes(phase) && act("Clean again", again, { path: `${path}/retryCleanup`, title: `Clean ${name} again?`, kind: phase === "Quarantine" ? "primary" : "",
			text: "Everything in it is deleted again; after a cooldown it can be lent.", done: "It is being cleaned." }),
		holdActions(ctx, a, again),
		phase !== "Quarantine" && act("Quarantine", again, { path: `${path}/quarantine`, kind: "quiet-danger", danger: true, reason: "required", body: (reason) => ({ reason }),
			title: `Put ${name} in quarantine?`, done: `${name} is in quarantine.`,
			text: a.leaseUuid ? "Its lease ends immediately, nobody has access, and nothing is deleted until it is cleaned again." : "It is not lent until it is cleaned again." }),
		phase !== "CleanUp" && act("Eject", () => ctx.go("/accounts"), { path: `${path}/eject`, kind: "quiet-danger", danger: true, title: `Eject ${name}?`, done: `${name} leaves the pool.`,
			text: a.leaseUuid ? "It leaves the pool as it is, with everything in it; its lease ends immediately." : "It leaves the pool as it is." }),
	];
}

// --- what is known ---

function cleanupCard(a) {
	const run = a.cleanupExecutionContext, report = a.lastCleanup;
	if (!run && !a.lastCleanedTime) return card("Cleanup", {}, empty("Never cleaned"));
	return card("Cleanup", {},
		facts([
			["Trigger", a.cleanupReason ? words(a.cleanupReason.toLowerCase()) : undefined],
			["Started", run ? time(run.stateMachineExecutionStartTime) : undefined],
			["Successful runs", run ? number(a.cleanupSucceededAttempts) : undefined],
			["Failed runs", run ? number(a.cleanupFailedAttempts) : undefined],
			["Last cleaned", a.lastCleanedTime ? time(a.lastCleanedTime) : "never"],
			["Deleted", report ? `${number(report.removed)} of ${number(report.found)} resources` : undefined],
			["Kept on purpose", report?.filtered ? number(report.filtered) : undefined],
			["Could not be deleted", report?.failed ? number(report.failed) : undefined],
		]),
		report && more("Deleted resources", report.removedResources), report && more("Remaining resources", report.keptResources),
		report?.log && h("details", { class: "more-box" }, h("summary", {}, "Log of the last run"), h("pre", { tabindex: 0 }, report.log)));
}

function more(title, lines) {
	return lines?.length > 0 && h("details", { class: "more-box" }, h("summary", {}, `${title} (${number(lines.length)})`), h("pre", { tabindex: 0 }, lines.join("\n")));
}

function factsCard(a) {
	return card("Details", {}, facts([
		["Account", copyable(a.awsAccountId)],
		["Email", a.email ?? undefined],
		["Lease", a.leaseUuid ? leaseId(a.leaseUuid) : "none"],
		["Previous lease", a.lastLeaseUuid ? leaseId(a.lastLeaseUuid) : undefined],
		["In the expected OU", a.driftAtLastScan ? badge("drift", { text: "No: it was moved elsewhere", kind: "bad" }) : "yes"],
		["Last cooldown ended", a.lastRestedTime ? ago(a.lastRestedTime) : undefined],
		["Registered", time(a.meta.createdTime)],
	]));
}

function stateCard(a, open) {
	return card("Status", {}, h("div", { class: "stand" }, h("div", { class: "row top" }, phaseBadge(phaseOf(a)), h("div", {}, sentence(a, open)))));
}

export default async function page(ctx) {
	const id = ctx.params.id, path = `/api/accounts/${part(id)}`, options = { signal: ctx.signal };
	let seen = "";
	const place = h("div");
	// Holds and events are the operators'; to a manager the explanation tells of them.
	const ofOperators = (get, none) => (ctx.rights.operations ? get() : none);
	const read = () => Promise.all([api.get(path, {}, options), ofOperators(() => api.page("/v1/ops/holds", "holds", { account: id, limit: PAGE }, options), { items: [] })]);
	const first = await read();
	ctx.title(first[0].name || id);
	const explained = explainPanel("account", id, ctx, { isOpen: !ctx.rights.operations });
	const again = loader(place, async () => {
		const [[a, holds], log] = await Promise.all([read(), ofOperators(() => api.all("/v1/ops/events", "events", { subject: `account/${id}`, limit: PAGE }, EVENTS, options), [])]);
		const open = holds.items.filter((hold) => hold.state === "open");
		return () => (seen = JSON.stringify([a, holds.items]), [
			heading(a.name || id, { back: { href: "/accounts", text: "Accounts" }, sub: a.name ? id : null, actions: actions(ctx, a, again) }),
			h("div", { class: "grid" },
				h("div", { class: "two-thirds stack" }, stateCard(a, open), explained, ctx.rights.operations && holdsCard(ctx, holds.items, again), cleanupCard(a),
					ctx.rights.operations && card("History", {}, timeline(log.filter(isWorthTelling).slice(0, SHOWN_EVENTS), ctx.rights, { withSubject: false }))),
				h("div", { class: "third stack" }, factsCard(a))),
		]);
	});
	ctx.every(FRESH_MS, async () => {
		const now = await read().catch(() => null); // whether the server is away is told above the page
		if (now && JSON.stringify([now[0], now[1].items]) !== seen) return again();
	});
	tick(ctx);
	return place;
}
