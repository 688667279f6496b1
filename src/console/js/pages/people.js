// SPDX-License-Identifier: Apache-2.0
// People: who can sign in, or has done so with the sign-in provider.
import * as api from "../api.js";
import { part } from "../dom.js";
import { ago } from "../format.js";
import { badge, button, card, confirm, empty, table } from "../parts.js";
import { live, opsHeading } from "./operations-parts.js";

const remove = (p, again) => confirm({ title: `Remove ${p.email}?`, label: "Remove", danger: true, done: `${p.email} is removed.`,
	text: "Their leases continue. Anyone who signs in with the provider again is added again.", run: () => api.remove(`/v1/ops/people/${part(p.email)}`) }).then((did) => did && again());

const columns = (again) => [
	{ title: "Email", lead: true, cell: (p) => p.email },
	{ title: "Name", cell: (p) => p.display_name || p.user_name },
	{ title: "Roles", cell: (p) => p.roles.map((role) => badge(role, { text: role, kind: "plain" })) },
	{ title: "Source", cell: (p) => p.source },
	{ title: "Last sign-in", cell: (p) => p.signed_in_at && ago(p.signed_in_at) },
	{ title: "Actions", hidden: true, class: "nowrap", cell: (p) => p.source === "provider" && button("Remove", { size: "small", kind: "quiet-danger", title: `Remove ${p.email}`, run: () => remove(p, again) }) },
];

async function readAll(ctx) {
	const people = [];
	for (let cursor = ""; cursor !== null;) {
		const page = await api.get("/v1/ops/people", { limit: 100, cursor: cursor || undefined }, { signal: ctx.signal });
		people.push(...page.people);
		cursor = page.cursor;
	}
	return people;
}

export default async function page(ctx) {
	const shown = live(ctx, () => readAll(ctx), (people) => card("Directory", {}, table(columns(() => shown.again()), people, { caption: "People",
		none: empty("Nobody yet", "People appear here from the users file, or when they sign in with the provider.") })));
	return [opsHeading("/operations/people", "People", { sub: "Who can request leases, be assigned one, and be notified." }), shown.place];
}
