// SPDX-License-Identifier: Apache-2.0
// Service accounts: programs with a key for the API. A key is shown once, to who makes it.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { ago } from "../format.js";
import { ask, badge, button, card, confirm, copyable, empty, field, table } from "../parts.js";

const PATH = "/v1/ops/service-accounts";
const scopes = [["read", "Read leases, templates and accounts"], ["approve", "Approve and deny requests"], ["pool-admin", "Manage accounts"], ["cost", "Read cost reports"]];

const showKey = (made) => ask({
	title: `The key of ${made.name}`, label: "I have kept it",
	text: h("div", {}, h("p", {}, "Keep it now: it is shown only this once."), h("p", { class: "secret" }, copyable(made.key))),
});

function scopeFields() {
	return h("fieldset", { class: "field", data: { field: "scopes" } }, h("legend", {}, "May"), h("p", { class: "problem", "aria-live": "polite" }),
		scopes.map(([name, text]) => h("label", { class: "check", for: `scope-${name}` }, h("input", { type: "checkbox", name: "scopes", value: name, id: `scope-${name}` }), text)));
}

async function make(ctx) {
	const made = await ask({
		title: "New service account", label: "Make it", fields: [
			field("Name", h("input", { name: "name", required: true, maxlength: 64, autocomplete: "off" }), { help: "Small letters, digits and dashes; it stands in the log of events." }),
			field("Description (optional)", h("input", { name: "description", maxlength: 200, autocomplete: "off" })), scopeFields(),
		],
		run: (data) => api.post(PATH, { name: data.get("name").trim(), scopes: data.getAll("scopes").join(","), description: data.get("description").trim() || undefined }),
	});
	if (made) await showKey(made);
	if (made) ctx.reload();
}

async function rotate(ctx, a) {
	let made;
	await confirm({ title: `A new key for ${a.name}?`, label: "Make a new key", text: "The old key is accepted for one more hour.",
		run: async () => (made = await api.post(`${PATH}/${part(a.name)}/rotate`)) });
	if (made) await showKey(made);
	if (made) ctx.reload();
}

const remove = (ctx, a) => confirm({
	title: `Revoke ${a.name}?`, label: "Revoke", danger: true, text: "Its key is refused from now on.", run: () => api.remove(`${PATH}/${part(a.name)}`), done: `${a.name} is revoked.`,
}).then((did) => did && ctx.reload());

const columns = (ctx) => [
	{ title: "Name", lead: true, cell: (a) => a.name },
	{ title: "May", cell: (a) => a.scopes },
	{ title: "Description", cell: (a) => a.description },
	{ title: "State", cell: (a) => (a.revoked_at ? badge("revoked", { text: "Revoked", kind: "plain" }) : badge("good", { text: "In use", kind: "good" })) },
	{ title: "Key made", cell: (a) => ago(a.rotated_at ?? a.created_at) },
	{ title: "Actions", hidden: true, cell: (a) => !a.revoked_at && h("span", { class: "row" },
		button("New key", { size: "small", title: `A new key for ${a.name}`, run: () => rotate(ctx, a) }),
		button("Revoke", { size: "small", title: `Revoke ${a.name}`, run: () => remove(ctx, a) })) },
];

export async function keysCard(ctx) {
	const { service_accounts: found } = await api.get(PATH, {}, { signal: ctx.signal });
	return card("Service accounts", { class: "flush", more: button("New service account", { size: "small", run: () => make(ctx) }) },
		table(columns(ctx), found, { caption: "Service accounts", none: empty("No program has a key", "A service account lets a program use the API, for reports for example.") }));
}
