// SPDX-License-Identifier: Apache-2.0
// What the pages of instances share: states and their colours, how many tasks run, and what can be asked of an instance in which state.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { words } from "../format.js";
import { ask, badge, button, confirm, field, meter, select, toast } from "../parts.js";

export const statuses = ["PROVISIONING", "ACTIVE", "SCALING", "SUSPENDING", "SUSPENDED", "RESUMING", "PARKING", "PARKED", "UNPARKING", "FAILED",
	"PENDING_DEPROVISIONING", "DEPROVISIONING", "DEPROVISIONED"];
const kinds = { ACTIVE: "good", FAILED: "bad", SUSPENDED: "warn", PARKED: "warn", DEPROVISIONED: "plain" };
export const kindOfState = (status) => kinds[status] ?? "info"; // what is none of these is under way

export const instanceHref = (id) => `/instances/${part(id)}`;
export const stateBadge = (i) => badge(i.status, { text: words(i.status), kind: kindOfState(i.status) });

const wanted = (i) => i.desiredCount ?? i.configuration.desiredCount;
const shallRun = (i) => !["SUSPENDED", "PARKED", "DEPROVISIONED"].includes(i.status);

export function tasks(i) {
	if (!shallRun(i)) return `none; ${wanted(i)} when it runs`;
	const isShort = i.runningCount < wanted(i);
	return meter(i.runningCount, wanted(i), { label: `Tasks of ${i.tenantId}`, text: `${i.runningCount} of ${wanted(i)}`, kind: isShort ? (i.status === "ACTIVE" ? "bad" : "warn") : "good" });
}

// Only addresses that a browser should go to.
export const siteLink = (i, text) => i.status === "ACTIVE" && /^https?:\/\//.test(i.endpoint ?? "") &&
	h("a", { class: text && "button primary", href: i.endpoint, target: "_blank", rel: "noopener noreferrer" }, text ?? i.endpoint);

// --- to make one ---

const tiers = ["STANDARD", "PROFESSIONAL", "ENTERPRISE"];
const numberOf = (text) => (String(text ?? "").trim() === "" ? undefined : Number(text));
const countField = (name, value) => field("Tasks", h("input", { name, type: "number", min: 2, max: 10, step: 1, value, inputmode: "numeric" }), { help: "2 to 10." });

const tenantField = (tenant) => field("Tenant", h("input", { name: "tenant", value: tenant ?? "", required: true, minlength: 3, maxlength: 63, pattern: "[a-z0-9][a-z0-9\\-]*", autocomplete: "off" }),
	{ help: "a to z, 0 to 9 and hyphens, such as tenant-acme. A tenant has one instance at a time." });

const post = (tenant, body) => api.post(`/v1.0/tenants/${part(tenant)}/instances`, body);

// Answers what was accepted, or undefined.
export function createInstance() {
	return ask({
		title: "New instance", label: "Create", text: "A WordPress site of its own for one tenant: storage, database, secret, tasks, route, and sign-in for its people.",
		fields: [tenantField(),
			field("Organisation", h("input", { name: "organizationName", required: true, maxlength: 100, autocomplete: "off" })),
			field("Contact", h("input", { name: "contactEmail", type: "email", required: true, maxlength: 254, autocomplete: "off" }), { help: "Who is asked about the site." }),
			field("Tier", select("tier", tiers, "STANDARD"), { help: "How large each task is." }),
			countField("configuration.desiredCount", 2),
			field("WordPress", h("input", { name: "configuration.wordpressVersion", placeholder: "newest", maxlength: 16, autocomplete: "off" }), { help: "A version; leave empty for the newest." })],
		run: (data) => {
			const text = (name) => data.get(name).trim();
			return post(text("tenant"), { organizationName: text("organizationName"), contactEmail: text("contactEmail"), tier: data.get("tier"),
				configuration: { desiredCount: numberOf(data.get("configuration.desiredCount")), wordpressVersion: text("configuration.wordpressVersion") || undefined } });
		},
	});
}

const again = (i) => post(i.tenantId, { organizationName: i.organizationName, contactEmail: i.contactEmail, tier: i.tier, opportunityId: i.opportunityId ?? undefined,
	configuration: { desiredCount: i.configuration.desiredCount, wordpressVersion: i.configuration.wordpressVersion } }); // PHP's version is shown, not asked for

// --- what can be done about one ---

const pathOf = (i, below = "") => `/v1.0/tenants/${part(i.tenantId)}/instances/${part(i.instanceId)}${below}`;
const status = (action) => (i, reason) => api.put(pathOf(i, "/status"), { action, reason: reason || undefined });

// Of one that failed the operation may be a rollback that waits for a person: the next command takes over.
const isBusy = (i) => i.operation && !(i.status === "FAILED" && i.operation.parked);
const isIn = (...names) => (i) => !isBusy(i) && names.includes(i.status);
const allows = (word) => (i) => i.allowedTransitions.includes(word) && (!isBusy(i) || (word === "delete" && i.provisioningState === "PENDING_PROVISIONING"));
const isHalfRemoved = (i) => !i.operation && i.status === "PENDING_DEPROVISIONING";
const canRestore = isIn("ACTIVE", "SUSPENDED");

function scale(i) {
	return ask({
		title: "Change the number of tasks", label: "Scale", text: `Now ${wanted(i)}. Visitors notice nothing.`, fields: [countField("desiredCount", wanted(i))],
		run: (data) => api.put(pathOf(i, "/size"), { desiredCount: numberOf(data.get("desiredCount")) }),
	});
}

// Only what was changed is sent.
function change(i) {
	const version = i.configuration.wordpressVersion;
	return ask({
		title: "Change version, tier or contact", label: "Save", text: "Tasks are replaced one by one, so the site keeps answering.",
		fields: [
			field("WordPress", h("input", { name: "configuration.wordpressVersion", value: version, required: true, maxlength: 16, autocomplete: "off" }), { help: "A version, such as 6.4.2." }),
			field("Tier", select("tier", tiers, i.tier), { help: "How large each task is." }),
			field("Contact", h("input", { name: "contactEmail", type: "email", value: i.contactEmail, required: true, maxlength: 254, autocomplete: "off" }), { help: "Who is asked about the site." })],
		run: (data) => {
			const given = { version: data.get("configuration.wordpressVersion").trim(), tier: data.get("tier"), contact: data.get("contactEmail").trim() };
			const body = { contactEmail: given.contact === i.contactEmail ? undefined : given.contact, tier: given.tier === i.tier ? undefined : given.tier,
				configuration: given.version === version ? undefined : { wordpressVersion: given.version } };
			if (Object.values(body).every((value) => value === undefined)) throw new api.ApiError(400, "Nothing has changed.");
			return api.put(pathOf(i), body);
		},
	});
}

async function password(i) {
	const got = await api.post(pathOf(i, "/secret"));
	const show = (label, text) => field(label, h("input", { readonly: true, value: text, name: label }));
	await ask({ title: "The site's administrator", label: "Done", canCancel: false, text: "The event log notes that you have seen it.", fields: [show("Name", got.user), show("Password", got.password)] });
}

// A row: when it is offered, its label, what is said first, and the call. reason: whether one is asked for.
const orders = [
	{ is: (i) => allows("create")(i) && !i.activatedAt, label: "Provision again", kind: "primary", run: again, title: "Provision it again?", text: "With the same tenant, size and version. Do this once the cause is fixed." },
	{ is: (i) => allows("recover")(i) && Boolean(i.activatedAt), label: "Recover", kind: "primary", run: status("recover"), title: "Check and start it?",
		text: "Its resources are checked and its tasks started; it becomes reachable once they answer." },
	{ is: allows("resume"), label: "Resume", kind: "primary", run: status("resume"), title: "Start it again?", text: "It gets as many tasks as before; then the site answers again." },
	{ is: allows("unpark"), label: "Unpark", kind: "primary", run: status("unpark"), title: "Rebuild it?", text: "Its tasks are created again, with the data that was kept." },
	{ is: allows("scale"), label: "Scale", ask: scale },
	{ is: isIn("ACTIVE"), label: "Change", ask: change },
	{ is: allows("suspend"), label: "Suspend", reason: "required", run: status("suspend"), title: "Suspend it?", text: "Its tasks stop, and visitors get 503. Everything else stays, so resuming is quick." },
	{ is: allows("park"), label: "Park", reason: "required", run: status("park"), title: "Park it?", text: "Its tasks are released; data, passwords and people stay. Unparking takes longer than resuming." },
	{ is: isIn("ACTIVE", "SUSPENDED", "PARKED"), label: "Back up", run: (i) => api.post(pathOf(i, "/backup")), title: "Archive files and database now?", text: "The archive is kept as long as all archives are kept here." },
	{ is: isIn("ACTIVE"), label: "New database password", run: (i) => api.post(pathOf(i, "/rotate")), title: "Give the database a new password?", text: "Task by task. Nobody needs to know it." },
	{ is: (i) => Boolean(i.resources.secret), label: "Site password", ask: password },
	{ is: (i) => allows("delete")(i) || isHalfRemoved(i), label: (i) => (isHalfRemoved(i) ? "Continue removal" : "Delete"), kind: "quiet-danger", danger: true, reason: "optional",
		run: (i, reason) => api.call("DELETE", pathOf(i), { body: { reason: reason || undefined } }), title: "Remove this instance?",
		text: (i) => (i.activatedAt ? "The site goes offline immediately. Files and database are archived first, then everything is deleted." : "Whatever exists of it is deleted. It was never active, so there is no data to keep.") },
];

const said = (accepted) => `${accepted.message[0].toUpperCase()}${accepted.message.slice(1)}.`;

export function instanceActions(i, done) {
	return orders.filter((o) => o.is(i)).map((o) => {
		const label = typeof o.label === "function" ? o.label(i) : o.label;
		const { run, ask: form, is, kind, ...dialog } = o;
		return button(label, { kind, run: async () => {
			const did = await (form ? form(i) : confirm({ ...dialog, label, text: typeof o.text === "function" ? o.text(i) : o.text, run: (reason) => run(i, reason) }));
			if (did?.message) toast(said(did));
			if (did) done();
		} });
	});
}

export function restoreButton(i, backup, done) {
	return canRestore(i) && backup.state === "KEPT" && button("Restore", { size: "small", title: `Restore ${backup.backupId}`, run: () => confirm({
		title: "Restore this archive?", label: "Restore", danger: true, text: "Files and database become what they were then. The current ones are archived first, so you can undo this.",
		run: () => api.post(pathOf(i, "/restore"), { backupId: backup.backupId }), done: said,
	}).then((did) => did && done()) });
}
