// SPDX-License-Identifier: Apache-2.0
// The holds of an account: why it is not lent yet, until when, and what an admin may do about it.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { ago, duration, time, words } from "../format.js";
import { ask, badge, button, card, confirm, empty, field, table, toast } from "../parts.js";
import { holdReason } from "./account-parts.js";
import { countdown } from "./lease-parts.js";

const HOURS_MAX = 87600;

const holdPath = (hold, verb) => `/v1/ops/holds/${part(hold.id)}/${verb}`;

function hoursField(label, help, isRequired) {
	return field(label, h("input", { name: "hours", type: "number", min: 1, max: HOURS_MAX, step: 1, required: isRequired, inputmode: "numeric" }), { help });
}

const reasonField = (isRequired) => field(isRequired ? "Reason" : "Reason (optional)",
	h("input", { name: "reason", maxlength: 400, required: isRequired, autocomplete: "off" }), { help: "Kept with the hold." });

function extend(ctx, hold, again) {
	return ask({
		title: "Let this hold last longer", label: "Extend", fields: [hoursField("Hours from now", "24 is a day, 168 a week.", true), reasonField(false)],
		run: async (data) => {
			const hours = Number(data.get("hours"));
			await api.post(holdPath(hold, "extend"), { hours, reason: data.get("reason").trim() || undefined, by: ctx.session.email });
			toast(`It lasts for another ${duration(hours * 3600)}.`);
		},
	}).then((did) => did && again());
}

function close(ctx, hold, again) {
	return confirm({
		title: "End this hold before its time?", label: "Release", danger: true, reason: "required", done: "Released.",
		text: hold.reason === "billing" ? "Costs of the last lease may then land in the next one's bill. When it was the last hold, the account can be lent at once."
			: "When it was the last hold, the account can be lent at once.",
		run: (reason) => api.post(holdPath(hold, "release"), { reason, by: ctx.session.email }),
	}).then((did) => did && again());
}

const openColumns = (ctx, again) => [
	{ title: "Why", lead: true, cell: (hold) => h("span", {}, holdReason(hold.reason), hold.note && h("span", { class: "sub-line" }, hold.note)) },
	{ title: "Ends", cell: (hold) => (hold.due_at ? h("span", {}, countdown(hold.due_at), h("span", { class: "sub-line" }, time(hold.due_at))) : "when a person ends it") },
	{ title: "Since", cell: (hold) => ago(hold.created_at) },
	{ title: "Actions", hidden: true, class: "nowrap", cell: (hold) => !hold.locks && h("span", { class: "row still" },
		button("Extend", { size: "small", title: `Extend the hold: ${holdReason(hold.reason)}`, run: () => extend(ctx, hold, again) }),
		button("Release", { size: "small", title: `Release the hold: ${holdReason(hold.reason)}`, run: () => close(ctx, hold, again) })) },
];

const closedColumns = [
	{ title: "Why", lead: true, cell: (hold) => holdReason(hold.reason) },
	{ title: "How it ended", cell: (hold) => badge(hold.state, { text: words(hold.state) }) },
	{ title: "When", cell: (hold) => hold.closed_at && ago(hold.closed_at) },
	{ title: "By", cell: (hold) => hold.closed_by },
	{ title: "Reason", cell: (hold) => hold.closed_why },
];

export function holdsCard(ctx, holds, again) {
	const open = holds.filter((hold) => hold.state === "open"), closed = holds.filter((hold) => hold.state !== "open");
	return card("Holds", { id: "holds" },
		open.length ? table(openColumns(ctx, again), open, { caption: "Open holds" })
			: empty("Nothing holds it back", "Holds come by themselves after a cleanup, or by hand."),
		closed.length > 0 && h("details", { class: "more-box" }, h("summary", {}, `Holds before (${closed.length})`), table(closedColumns, closed, { caption: "Closed holds" })));
}

// --- by hand ---

function hold(ctx, a, again) {
	return ask({
		title: `Hold ${a.name || a.awsAccountId} back`, label: "Hold",
		text: a.phase === "Available" ? "It rests at once and is not lent until the hold ends." : "It is not lent after its next cleanup until the hold ends; what is under way goes on.",
		fields: [reasonField(true), hoursField("Hours", "Empty: until a person ends it.", false)],
		run: async (data) => {
			const hours = Number(data.get("hours")) || undefined;
			await api.post("/v1/ops/holds", { account: a.awsAccountId, reason: data.get("reason").trim(), hours, by: ctx.session.email });
			toast("It is held back.");
		},
	}).then((did) => did && again());
}

function bypass(ctx, a, again) {
	return confirm({
		title: "Skip the next rest?", label: "Skip the rest", danger: true, reason: "required", done: "Its next cleanup is not followed by a rest.",
		text: "After its next cleanup the account can be lent at once, this one time. Costs of the lease before may then land in the next one's bill.",
		run: (reason) => api.post("/v1/ops/holds/bypass", { account: a.awsAccountId, reason, by: ctx.session.email }),
	}).then((did) => did && again());
}

export function holdActions(ctx, a, again) {
	const phase = a.phase;
	return [
		phase !== "Quarantine" && button("Hold back", { run: () => hold(ctx, a, again) }),
		["Active", "Frozen", "CleanUp"].includes(phase) && button("Skip next rest", { run: () => bypass(ctx, a, again) }),
	];
}
