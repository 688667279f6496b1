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
		title: "Extend this hold", label: "Extend", fields: [hoursField("Hours from now", "24 is a day, 168 a week.", true), reasonField(!hold.due_at)],
		run: async (data) => {
			const hours = Number(data.get("hours"));
			await api.post(holdPath(hold, "extend"), { hours, reason: data.get("reason").trim() || undefined, by: ctx.session.email });
			toast(`Extended: it now ends in ${duration(hours * 3600)}.`);
		},
	}).then((did) => did && again());
}

function close(ctx, hold, again) {
	return confirm({
		title: "Release this hold early?", label: "Release", danger: true, reason: "required", done: "Released.",
		text: hold.reason === "billing" ? "Late costs of the last lease may then end up on the next one's bill. If this is the last hold, the account can be lent immediately."
			: "If this is the last hold, the account can be lent immediately.",
		run: (reason) => api.post(holdPath(hold, "release"), { reason, by: ctx.session.email }),
	}).then((did) => did && again());
}

const openColumns = (ctx, again) => [
	{ title: "Why", lead: true, cell: (hold) => h("span", {}, holdReason(hold.reason), hold.note && h("span", { class: "sub-line" }, hold.note)) },
	{ title: "Ends", cell: (hold) => (hold.due_at ? h("span", {}, countdown(hold.due_at), h("span", { class: "sub-line" }, time(hold.due_at))) : hold.locks ? "when a cleanup succeeds" : "when someone releases it") },
	{ title: "Since", cell: (hold) => ago(hold.created_at) },
	{ title: "Actions", hidden: true, class: "nowrap", cell: (hold) => !hold.locks && h("span", { class: "row still" },
		button("Extend", { size: "small", title: `Extend the hold: ${holdReason(hold.reason)}`, run: () => extend(ctx, hold, again) }),
		button("Release", { size: "small", title: `Release the hold: ${holdReason(hold.reason)}`, run: () => close(ctx, hold, again) })) },
];

const closedColumns = [
	{ title: "Why", lead: true, cell: (hold) => holdReason(hold.reason) },
	{ title: "Outcome", cell: (hold) => badge(hold.state, { text: words(hold.state) }) },
	{ title: "When", cell: (hold) => hold.closed_at && ago(hold.closed_at) },
	{ title: "By", cell: (hold) => hold.closed_by },
	{ title: "Reason", cell: (hold) => hold.closed_why },
];

export function holdsCard(ctx, holds, again) {
	const open = holds.filter((hold) => hold.state === "open"), closed = holds.filter((hold) => hold.state !== "open");
	return card("Holds", { id: "holds" },
		open.length ? table(openColumns(ctx, again), open, { caption: "Open holds" })
			: empty("No open holds", "Holds are placed automatically after a cleanup, or manually."),
		closed.length > 0 && h("details", { class: "more-box" }, h("summary", {}, `Past holds (${closed.length})`), table(closedColumns, closed, { caption: "Closed holds" })));
}

// --- by hand ---

function hold(ctx, a, again) {
	return ask({
		title: `Hold ${a.name || a.awsAccountId}`, label: "Hold",
		text: a.phase === "Available" ? "It goes into cooldown now and is not lent until the hold ends." : "After its next cleanup it is not lent until the hold ends; whatever is in progress continues.",
		fields: [reasonField(true), hoursField("Hours", "Leave empty to hold it until someone releases it.", false)],
		run: async (data) => {
			const hours = Number(data.get("hours")) || undefined;
			await api.post("/v1/ops/holds", { account: a.awsAccountId, reason: data.get("reason").trim(), hours, by: ctx.session.email });
			toast("Hold placed.");
		},
	}).then((did) => did && again());
}

function bypass(ctx, a, again) {
	return confirm({
		title: "Skip the next cooldown?", label: "Skip cooldown", danger: true, reason: "required", done: "No cooldown after its next cleanup.",
		text: "After its next cleanup the account can be lent immediately, this one time. Late costs of the previous lease may then end up on the next one's bill.",
		run: (reason) => api.post("/v1/ops/holds/bypass", { account: a.awsAccountId, reason, by: ctx.session.email }),
	}).then((did) => did && again());
}

export function holdActions(ctx, a, again) {
	const phase = a.phase;
	return [
		phase !== "Quarantine" && button("Place hold", { run: () => hold(ctx, a, again) }),
		["Active", "Frozen", "CleanUp"].includes(phase) && button("Skip next cooldown", { run: () => bypass(ctx, a, again) }),
	];
}
