// SPDX-License-Identifier: Apache-2.0
// Open holds of all accounts: why each rests and until when; end one early, have it last longer, or strike one that should never have been.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { subjectLink } from "../events.js";
import { ago, duration } from "../format.js";
import { ask, badge, button, card, confirm, empty, field, pager, table, toast } from "../parts.js";
import { holdReason } from "./account-parts.js";
import { due, live, noun, opsHeading, tickDue } from "./operations-parts.js";

const PAGE = 50, HOURS_MAX = 87600;

const path = (hold, verb) => `/v1/ops/holds/${part(hold.id)}/${verb}`;

const end = (hold, again, verb, dialog) => confirm({ ...dialog, danger: true, reason: "required", run: (reason) => api.post(path(hold, verb), { reason }) }).then((did) => did && again());

const release = (hold, again) => end(hold, again, "release", { title: "Release this hold early?", label: "Release", done: "Released.",
	text: hold.reason === "billing" ? "Late costs of the last lease may then end up on the next one's bill. If this is the last hold, the account can be lent immediately."
		: "If this is the last hold, the account can be lent immediately." });

const cancel = (hold, again) => end(hold, again, "cancel", { title: "Cancel this hold?", label: "Cancel the hold", done: "Cancelled.",
	text: "For a hold placed by mistake. If this is the last one, the account can be lent immediately." });

function extend(hold, again) {
	return ask({
		title: "Extend this hold", label: "Extend",
		fields: [field("Hours from now", h("input", { name: "hours", type: "number", min: 1, max: HOURS_MAX, step: 1, required: true, inputmode: "numeric" }), { help: "24 is a day, 168 a week." }),
			field(hold.due_at ? "Reason (optional)" : "Reason", h("input", { name: "reason", maxlength: 400, required: !hold.due_at, autocomplete: "off" }), { help: "Kept with the hold." })],
		run: async (data) => {
			const hours = Number(data.get("hours"));
			await api.post(path(hold, "extend"), { hours, reason: data.get("reason").trim() || undefined });
			toast(`Extended: it now ends in ${duration(hours * 3600)}.`);
		},
	}).then((did) => did && again());
}

const columns = (ctx, again) => [
	{ title: "Account", lead: true, class: "nowrap", cell: (hold) => subjectLink(`account/${hold.account_id}`, ctx.rights, hold.account_id) },
	{ title: "Reason", cell: (hold) => [holdReason(hold.reason), hold.note && h("span", { class: "sub-line" }, hold.note), hold.last_error && h("span", { class: "sub-line bad-text" }, hold.last_error)] },
	{ title: "Ends", cell: (hold) => (hold.due_at ? due(hold.due_at) : badge("manual", { text: hold.locks ? "When a cleanup succeeds" : "When someone releases it", kind: "warn" })) },
	{ title: "Since", cell: (hold) => [ago(hold.created_at), h("span", { class: "sub-line" }, `by ${hold.created_by}`)] },
	{ title: "Actions", hidden: true, class: "nowrap", cell: (hold) => (hold.locks ? h("span", {}, "Locked: ", subjectLink(`account/${hold.account_id}`, ctx.rights, "see the account")) : h("span", { class: "row" },
		button("Extend", { size: "small", title: `Extend the hold of ${hold.account_id}: ${hold.reason}`, run: () => extend(hold, again) }),
		button("Release", { size: "small", title: `Release the hold of ${hold.account_id}: ${hold.reason}`, run: () => release(hold, again) }),
		button("Cancel", { size: "small", kind: "quiet-danger", title: `Cancel the hold of ${hold.account_id}: ${hold.reason}`, run: () => cancel(hold, again) }))) },
];

export default async function page(ctx) {
	const { cursor } = ctx.query;
	const shown = live(ctx, () => api.page("/v1/ops/holds", "holds", { limit: PAGE, cursor }, { signal: ctx.signal }), (found) => [
		card("Open holds", {}, table(columns(ctx, () => shown.again()), found.items, { caption: "Open holds",
			none: empty("No open holds", "After its cleanup an account is held until its bill is complete. You can also place a hold on an account's page.") })),
		pager({ cursor, next: found.next, count: found.items.length, what: noun(found.items.length, "hold"), href: (c) => ctx.hrefWith({ cursor: c }) }),
	]);
	tickDue(ctx);
	return [opsHeading("/operations/holds", "Holds", { sub: "Why accounts are not lent yet, and until when. Holds without an end come first." }), shown.place];
}
