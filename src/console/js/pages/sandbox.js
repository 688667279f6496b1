// SPDX-License-Identifier: Apache-2.0
// One sandbox: what is known of it, what happened to it, what can be done.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { timeline } from "../events.js";
import { explainPanel } from "../explain.js";
import { ago, duration, time } from "../format.js";
import { button, card, confirm, copyable, facts, heading } from "../parts.js";
import { stateBadge } from "./sandboxes.js";

const EVENTS = 100;

function act(ctx, label, { path, kind, ...dialog }) {
	const run = () => confirm({ label, ...dialog, run: (reason) => api.post(path, dialog.reason ? { reason } : {}) })
		.then((did) => did && ctx.reload());
	return button(label, { kind, run });
}

// Only what the state allows is offered.
function actions(ctx, s) {
	const path = `/v1/admin/sandboxes/${part(s.sandbox_id)}`;
	const isAside = !!s.quarantine_reason;
	const list = [];
	if (isAside)
		list.push(act(ctx, "Release", { path: `${path}/release`, title: `Release ${s.name}?`, done: `${s.name} is released.`,
			text: "One that was never claimed becomes available; any other is deleted." }));
	if (s.status === "allocated")
		list.push(button("Replace", { run: async () => {
			const made = await confirm({ title: `Replace ${s.name}?`, label: "Replace", reason: "optional", text: `${s.allocated_to_track} gets another sandbox at once, and this one is quarantined. If none is free, nothing changes.`,
				run: (reason) => api.post(`${path}/replace`, { reason }), done: (now) => `${s.allocated_to_track} has ${now.name} now.` });
			if (made) ctx.go(`/sandboxes/${part(made.sandbox_id)}`);
		} }));
	if (!isAside && s.status !== "stale")
		list.push(act(ctx, "Quarantine", { path: `${path}/quarantine`, kind: "quiet-danger", danger: true, reason: "optional", title: `Quarantine ${s.name}?`,
			done: `${s.name} is in quarantine.`, text: "It is neither handed out nor deleted until it is released." }));
	if (["available", "allocated", "stale"].includes(s.status))
		list.push(act(ctx, "Delete", { path: `${path}/delete`, kind: "quiet-danger", danger: true, title: `Delete ${s.name}?`, done: `${s.name} will be deleted.`,
			text: s.status === "allocated"
				? `${s.allocated_to_track} holds it now and will lose it. The next cleanup deletes it at the vendor; this cannot be undone.`
				: "The next cleanup deletes it at the vendor; this cannot be undone." }));
	if (s.status === "deletion_failed")
		list.push(act(ctx, "Retry deletion", { path: `${path}/retry-deletion`, title: `Try to delete ${s.name} again?`, done: "It will be retried.",
			text: "It is queued for deletion again, with a fresh set of tries." }));
	return list;
}

export default async function page(ctx) {
	const path = `/v1/admin/sandboxes/${part(ctx.params.id)}`;
	const [s, log] = await Promise.all([
		api.get(path, {}, { signal: ctx.signal }),
		api.get("/v1/ops/events", { subject: `sandbox/${ctx.params.id}`, limit: EVENTS }, { signal: ctx.signal }),
	]);
	ctx.title(s.name);
	return [
		heading(s.name, { back: { href: "/sandboxes", text: "Sandboxes" }, actions: actions(ctx, s) }),
		h("div", { class: "grid" },
			h("div", { class: "two-thirds stack" }, card("State", {}, facts([
				["State", stateBadge(s)],
				["Quarantined because", s.quarantine_reason || undefined],
				["Held by", s.allocated_to_track ?? undefined],
				["Lab", s.track_name ?? undefined],
				["Since", s.allocated_at ? time(s.allocated_at) : undefined],
				["Ends", s.expires_at ? ago(s.expires_at) : undefined],
				["Lab time", s.allocated_at ? duration(s.lab_duration_hours * 3600) : undefined],
				["Last seen by sync", s.last_synced ? ago(s.last_synced) : undefined],
				["Given back", s.deletion_requested_at ? time(s.deletion_requested_at) : undefined],
				["Deletion attempts", s.deletion_retry_count || undefined],
				["Last error", s.last_error || undefined],
			])), explainPanel("sandbox", ctx.params.id, ctx)),
			h("div", { class: "third stack" }, card("Names", {}, facts([
				["Id", copyable(s.sandbox_id)],
				["At the vendor", s.external_id && copyable(s.external_id)],
				["Account", s.sfdc_account_id ?? undefined],
				["Idempotency key", s.idempotency_key ?? undefined],
				["Created", s.created_at ? time(s.created_at) : undefined],
			]))),
			card("History", {}, timeline(log.events, ctx.rights, { withSubject: false }))),
	];
}
