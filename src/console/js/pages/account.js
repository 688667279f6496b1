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

// --- in a sentence ---

function resting(a, open) {
	return [
		a.restingUntil ? ["It is clean and rests. It can be lent again ", countdown(a.restingUntil), ", at ", time(a.restingUntil), "."]
			: "It is clean and rests until a person releases it.",
		h("ul", { class: "why" }, open.map((hold) => h("li", {}, hold.note && hold.reason === "manual" ? `${holdReason(hold.reason)}: ${hold.note}` : holdReason(hold.reason),
			hold.due_at && [", until ", time(hold.due_at)]))),
	];
}

function sentence(a, open) {
	switch (phaseOf(a)) {
	case "Available": return "It is clean and rested, and can be lent.";
	case "Active": return ["It is lent: its holder has access. See ", leaseLink(a.leaseUuid, "its lease"), "."];
	case "Frozen": return ["It is lent, but its lease is frozen: nobody has access. See ", leaseLink(a.leaseUuid, "its lease"), "."];
	case "CleanUp": return "Everything in it is being deleted. After that it rests, and then it can be lent again.";
	case "Cooldown": return resting(a, open);
	case "Quarantine": return ["It is locked away", a.reason && `: ${a.reason}`, ". Clean it again to bring it back, or eject it."];
	default: return "It is on its way out of the pool.";
	}
}

// --- what can be done ---

function act(label, then, { kind, path, body = () => ({}), ...dialog }) {
	return button(label, { kind, run: () => confirm({ label, ...dialog, run: (reason) => api.post(path, body(reason)) }).then((did) => did && then()) });
}

function actions(ctx, a, again) {
	const path = `/api/accounts/${part(a.awsAccountId)}`, phase = phaseOf(a), name = a.name || a.awsAccountId;
	return [
		["Quarantine", "CleanUp", "Cooldown"].includes(phase) && act("Clean again", again, { path: `${path}/retryCleanup`, title: `Clean ${name} again?`, kind: phase === "Quarantine" ? "primary" : "",
			text: "Everything in it is deleted once more; then it rests and can be lent again.", done: "It is being cleaned." }),
		holdActions(ctx, a, again),
		phase !== "Quarantine" && act("Quarantine", again, { path: `${path}/quarantine`, kind: "quiet-danger", danger: true, reason: "required", body: (reason) => ({ reason }),
			title: `Put ${name} into quarantine?`, done: `${name} is in quarantine.`,
			text: a.leaseUuid ? "Its lease ends at once, nobody has access, and nothing is deleted until it is cleaned again." : "Nobody gets it until it is cleaned again." }),
		phase !== "CleanUp" && act("Eject", () => ctx.go("/accounts"), { path: `${path}/eject`, kind: "quiet-danger", danger: true, title: `Eject ${name}?`, done: `${name} leaves the pool.`,
			text: a.leaseUuid ? "It leaves the pool as it is, with everything in it; its lease ends at once." : "It leaves the pool as it is." }),
	];
}

// --- what is known ---

function cleanupCard(a) {
	const run = a.cleanupExecutionContext, report = a.lastCleanup;
	if (!run && !a.lastCleanedTime) return card("Cleanup", {}, empty("It was never cleaned here"));
	return card("Cleanup", {},
		facts([
			["Because of", a.cleanupReason ? words(a.cleanupReason.toLowerCase()) : undefined],
			["Begun", run ? time(run.stateMachineExecutionStartTime) : undefined],
			["Runs that succeeded", run ? number(a.cleanupSucceededAttempts) : undefined],
			["Runs that failed", run ? number(a.cleanupFailedAttempts) : undefined],
			["Last cleaned", a.lastCleanedTime ? time(a.lastCleanedTime) : "never"],
			["Deleted", report ? `${number(report.removed)} of ${number(report.found)} things` : undefined],
			["Left in place on purpose", report?.filtered ? number(report.filtered) : undefined],
			["Could not be deleted", report?.failed ? number(report.failed) : undefined],
		]),
		report && more("What was deleted", report.removedResources), report && more("What was left", report.keptResources),
		report?.log && h("details", { class: "more-box" }, h("summary", {}, "Log of the last run"), h("pre", { tabindex: 0 }, report.log)));
}

function more(title, lines) {
	return lines?.length > 0 && h("details", { class: "more-box" }, h("summary", {}, `${title} (${number(lines.length)})`), h("pre", { tabindex: 0 }, lines.join("\n")));
}

function factsCard(a) {
	return card("About it", {}, facts([
		["Account", copyable(a.awsAccountId)],
		["Email", a.email ?? undefined],
		["Lease", a.leaseUuid ? leaseLink(a.leaseUuid, "the one it is lent by") : "none"],
		["Lease before", a.lastLeaseUuid ? leaseLink(a.lastLeaseUuid, "the last one") : undefined],
		["Where it should be", a.driftAtLastScan ? badge("drift", { text: "No: it was moved outside", kind: "bad" }) : "yes"],
		["Last rested", a.lastRestedTime ? ago(a.lastRestedTime) : undefined],
		["Registered", time(a.meta.createdTime)],
	]));
}

function stateCard(a, open) {
	return card("Where it is, and why", {}, h("div", { class: "stand" }, h("div", { class: "row top" }, phaseBadge(phaseOf(a)), h("div", {}, sentence(a, open)))));
}

export default async function page(ctx) {
	const id = ctx.params.id, path = `/api/accounts/${part(id)}`, options = { signal: ctx.signal };
	let seen = "";
	const place = h("div");
	const read = () => Promise.all([api.get(path, {}, options), api.page("/v1/ops/holds", "holds", { account: id, limit: PAGE }, options)]);
	const first = await read();
	ctx.title(first[0].name || id);
	const explained = explainPanel("account", id, ctx, { isOpen: false });
	const again = loader(place, async () => {
		const [[a, holds], log] = await Promise.all([read(), api.all("/v1/ops/events", "events", { subject: `account/${id}`, limit: PAGE }, EVENTS, options)]);
		const open = holds.items.filter((hold) => hold.state === "open");
		seen = JSON.stringify([a, holds.items]);
		return [
			heading(a.name || id, { back: { href: "/accounts", text: "Accounts" }, sub: a.name ? id : null, actions: actions(ctx, a, again) }),
			h("div", { class: "grid" },
				h("div", { class: "two-thirds stack" }, stateCard(a, open), explained, holdsCard(ctx, holds.items, again), cleanupCard(a),
					card("What happened", {}, timeline(log.filter(isWorthTelling).slice(0, SHOWN_EVENTS), ctx.rights, { withSubject: false }))),
				h("div", { class: "third stack" }, factsCard(a))),
		];
	});
	ctx.every(FRESH_MS, async () => {
		const now = await read().catch(() => null); // whether the server is away is told above the page
		if (now && JSON.stringify([now[0], now[1].items]) !== seen) again();
	});
	tick(ctx);
	return place;
}
