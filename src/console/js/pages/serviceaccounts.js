// SPDX-License-Identifier: Apache-2.0
// Service accounts: programs with a key of their own for /api. A key is shown once, when it is made.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { ago } from "../format.js";
import { ask, badge, button, card, confirm, empty, field, table } from "../parts.js";
import { due, live, opsHeading, showOnce, tickDue } from "./operations-parts.js";

const OVERLAP_MAX = 43200;

const scopes = [
	["read", "Read leases, accounts and templates"], ["approve", "Approve and deny requests"],
	["pool-admin", "Register, clean and eject accounts"], ["cost", "Read costs and reports"],
];

const path = (a, verb = "") => `/v1/ops/service-accounts/${part(a.name)}${verb}`;
const keep = (made) => showOnce({ title: `Save the key of ${made.name} now`, text: "The program sends it as its bearer token. It is shown only here: copy it before you close this.", secret: made.key });

function scopeFields() {
	const problem = h("p", { class: "problem", "aria-live": "polite" });
	return h("fieldset", { class: "field", data: { field: "scopes" }, on: { change: () => (problem.textContent = "") } }, h("legend", {}, "What it may do"),
		scopes.map(([name, text]) => h("label", { class: "check" }, h("input", { type: "checkbox", name: "scopes", value: name, checked: name === "read" }), h("span", {}, text, h("span", { class: "sub-line" }, name)))),
		problem);
}

async function create(again) {
	const made = await ask({
		title: "New service account", label: "Create",
		fields: [field("Name", h("input", { name: "name", required: true, maxlength: 64, autocomplete: "off", placeholder: "billing-export" })), scopeFields(),
			field("Description (optional)", h("input", { name: "description", maxlength: 200, autocomplete: "off" }))],
		run: (data) => {
			const chosen = data.getAll("scopes").join(",");
			if (!chosen) throw new api.ApiError(0, "", { fields: [{ field: "scopes", message: "Choose at least one." }] });
			return api.post("/v1/ops/service-accounts", { name: data.get("name").trim(), scopes: chosen, description: data.get("description").trim() || undefined });
		},
	});
	if (!made) return;
	again();
	await keep(made);
}

async function rotate(a, again) {
	const made = await ask({
		title: `A new key for ${a.name}?`, label: "Create a new key", text: "The old key keeps working for a while, so the program can switch without interruption.",
		fields: [field("Minutes the old key keeps working", h("input", { name: "minutes", type: "number", min: 0, max: OVERLAP_MAX, step: 1, value: "60", required: true, inputmode: "numeric" }), { help: "0 ends it immediately." })],
		run: (data) => api.post(path(a, "/rotate"), { overlap_minutes: Number(data.get("minutes")) }),
	});
	if (!made) return;
	again();
	await keep(made);
}

const revoke = (a, again) => confirm({ title: `Revoke ${a.name}?`, label: "Revoke", danger: true, done: `${a.name} is revoked.`, text: "Its keys stop working immediately. This cannot be undone.",
	run: () => api.remove(path(a)) }).then((did) => did && again());

function state(a) {
	if (a.revoked_at) return [badge("revoked", { text: "Revoked", kind: "plain" }), h("span", { class: "sub-line" }, ago(a.revoked_at))];
	const isOverlap = a.old_key_until && a.old_key_until * 1000 > api.now();
	return [badge("ok", { text: "Active" }), isOverlap && h("span", { class: "sub-line" }, "its old key ends ", due(a.old_key_until))];
}

const columns = (again) => [
	{ title: "Name", lead: true, cell: (a) => [a.name, a.description && h("span", { class: "sub-line" }, a.description)] },
	{ title: "May", cell: (a) => a.scopes.split(",").join(", ") },
	{ title: "State", cell: state },
	{ title: "Created", cell: (a) => [ago(a.created_at), a.created_by && h("span", { class: "sub-line" }, `by ${a.created_by}`)] },
	{ title: "Key changed", cell: (a) => a.rotated_at && ago(a.rotated_at) },
	{ title: "Actions", hidden: true, class: "nowrap", cell: (a) => !a.revoked_at && h("span", { class: "row" },
		button("New key", { size: "small", title: `New key for ${a.name}`, run: () => rotate(a, again) }),
		button("Revoke", { size: "small", kind: "quiet-danger", title: `Revoke ${a.name}`, run: () => revoke(a, again) })) },
];

export default async function page(ctx) {
	const shown = live(ctx, () => api.get("/v1/ops/service-accounts", {}, { signal: ctx.signal }), ({ service_accounts: list }) =>
		card("Programs", {}, table(columns(() => shown.again()), [...list].sort((a, b) => !!a.revoked_at - !!b.revoked_at), { caption: "Service accounts",
			none: empty("No service accounts", "A program that reads leases or costs, or reviews requests, gets its own key here.") })));
	tickDue(ctx);
	return [opsHeading("/operations/service-accounts", "Service accounts", { sub: "Programs that use the API with their own key.",
		actions: button("New service account", { kind: "primary", run: () => create(() => shown.again()) }) }), shown.place];
}
