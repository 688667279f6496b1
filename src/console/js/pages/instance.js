// SPDX-License-Identifier: Apache-2.0
// One instance: where it stands and why, what is under way step by step, what it is made of, its archives, what happened, what can be done.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { timeline } from "../events.js";
import { explainPanel } from "../explain.js";
import { ago, number, time, words } from "../format.js";
import { badge, card, copyable, empty, facts, heading, table } from "../parts.js";
import { due, live, tickDue } from "./operations-parts.js";
import { sagaBadge, sagaHref, steps } from "./sagas-parts.js";
import { logsPanel } from "./instance-logs.js";
import { instanceActions, restoreButton, siteLink, stateBadge, tasks } from "./instance-parts.js";

const EVENTS = 60, ARCHIVES = 50, FRESH_MS = 1500;

const because = (i) => i.reason && `: ${i.reason}`;

function sentence(i) {
	switch (i.status) {
	case "PROVISIONING": return ["It is being set up: ", words(i.provisioningState).toLowerCase(), ". It becomes reachable at the very end."];
	case "ACTIVE": return i.belowDesiredSince ? ["The site answers, but with fewer tasks than it should have, since ", time(i.belowDesiredSince), "."] : "The site answers, and all its tasks run.";
	case "SUSPENDED": return ["Everything is kept, no tasks run, and visitors get 503", because(i), "."];
	case "PARKED": return ["Its tasks are released and its data is kept", because(i), "."];
	case "FAILED": return i.activatedAt ? "It was active and no longer answers. Its data is still there." : "It could not be provisioned.";
	case "PENDING_DEPROVISIONING": return i.operation ? "It is about to be removed." : "The removal has stopped at a step. It continues by itself, or immediately when you ask for it.";
	case "DEPROVISIONED": return ["It was removed ", time(i.removedAt), i.archivedUntil ? [". Its data is kept until ", time(i.archivedUntil), ", then deleted for good."] : "; there was no data to keep."];
	default: return "In progress.";
	}
}

const errorNote = (e) => h("div", { class: "note bad" },
	h("p", {}, h("b", {}, e.code, e.step && ` at the step ${e.step}`, ": "), e.message, " ", e.at && h("span", { class: "dim" }, ago(e.at))),
	e.leftovers?.length > 0 && [h("h3", {}, "May be left behind"), h("ul", { class: "why" }, e.leftovers.map((text) => h("li", {}, text)))]);

const hasRun = (i) => i.activatedAt || i.status === "PROVISIONING";

const stateCard = (i) => card("Status", {}, h("div", { class: "stack" },
	h("div", { class: "stand" }, h("p", { class: "row" }, stateBadge(i), h("span", {}, sentence(i))), siteLink(i, "Open the site")),
	i.lastError && errorNote(i.lastError), hasRun(i) && tasks(i)));

// --- what is under way ---

const isTried = (s) => s.last_error && ["running", "undoing"].includes(s.state);

function underWay(i, saga) {
	if (!i.operation) return null;
	return card(`In progress: ${i.operation.operation}`, { more: h("a", { href: sagaHref(i.operation.operationId) }, "View saga") }, h("div", { class: "stack" },
		saga && h("p", { class: "row" }, sagaBadge(saga.state), h("span", {}, `step ${i.operation.stepNumber} of ${i.operation.stepCount}: ${i.operation.step}, started `, ago(i.operation.startedAt))),
		saga && steps(saga),
		saga?.state === "parked" && h("p", { class: "note bad" }, "It is waiting for a person: fix the cause and retry its saga, or delete the instance."),
		saga && isTried(saga) && h("p", { class: "note warn" }, h("b", {}, `Attempt ${saga.tries}: `), saga.last_error, ". Next attempt ", due(saga.due_at), ".")));
}

// --- what it is, what is kept ---

const about = (i) => card("Details", {}, facts([
	["Tenant", h("a", { href: `/instances?tenant=${part(i.tenantId)}` }, i.tenantId)],
	["Organisation", i.organizationName],
	["Contact", i.contactEmail],
	["Opportunity", i.opportunityId ?? undefined],
	["Tier", words(i.tier)],
	["WordPress", i.configuration.wordpressVersion],
	["Deployment", i.deploymentStatus === "NONE" ? undefined : words(i.deploymentStatus)],
	["Created", time(i.createdAt)],
	["Active since", i.activatedAt ? time(i.activatedAt) : undefined],
	["Last requested by", i.requestedBy ?? undefined],
	["State", [words(i.provisioningState), " (", h("a", { href: `/instances/states?state=${i.status}` }, "all states"), ")"]],
	["Id", copyable(i.instanceId)],
]));

const resourcesCard = (i) => card("Resources", {}, table([
	{ title: "Resource", lead: true, cell: ([kind]) => words(kind) },
	{ title: "Name", cell: ([, r]) => h("code", {}, r.name) },
	{ title: "Id", cell: ([, r]) => h("code", {}, r.id) },
], Object.entries(i.resources), { caption: "Resources", none: empty("No resources") }));

const megabytes = (bytes) => (bytes === null ? undefined : `${number(Math.max(0.1, Math.round(bytes / 1e5) / 10))} MB`);
const archiveKinds = { BACKUP: "Manual", FINAL: "Before removal", BEFORE_RESTORE: "Before a restore" };
const archiveColours = { KEPT: "good", MAKING: "info", FAILED: "bad" };

const archivesCard = (i, backups, again) => card("Archives", {}, table([
	{ title: "Created", lead: true, cell: (b) => time(b.createdAt) },
	{ title: "Why", cell: (b) => archiveKinds[b.kind] ?? words(b.kind) },
	{ title: "State", cell: (b) => badge(b.state, { kind: archiveColours[b.state] }) },
	{ title: "Size", by: (b) => b.bytes, num: true, cell: (b) => megabytes(b.bytes) },
	{ title: "Kept until", cell: (b) => b.keptUntil && time(b.keptUntil) },
	{ title: "Actions", hidden: true, cell: (b) => restoreButton(i, b, again) || undefined },
], backups, { caption: "Archives", none: empty("No archives yet", "One is made when you back it up, before a restore, and before removal.") }));

// --- the page ---

// A saga's beginning and end are those of the operation, which tells more.
const isWorthTelling = (e) => !/^Saga(Started|Done|Undone)$/.test(e["detail-type"]);

// All at once; the saga of an operation may have ended meanwhile.
async function read(path, options) {
	const i = await api.get(path, {}, options);
	const [backups, { events }, saga] = await Promise.all([
		api.get(`${path}/backups`, { pageSize: ARCHIVES }, options),
		api.get("/v1/ops/events", { subject: `instance/${i.instanceId}`, limit: EVENTS }, options),
		i.operation && api.get(`/v1/ops/sagas/${part(i.operation.operationId)}`, {}, options).catch((error) => (error.status === 404 ? null : Promise.reject(error))),
	]);
	return { i, backups: backups.items, events, saga };
}

export default async function page(ctx) {
	const path = `/v1.0/tenants/-/instances/${part(ctx.params.id)}`, options = { signal: ctx.signal };
	const first = await api.get(path, {}, options);
	const explained = explainPanel("instance", first.instanceId, ctx, { isOpen: first.status === "FAILED" });
	const logs = logsPanel(ctx, path);
	const again = () => shown.again();
	const shown = live(ctx, () => read(path, options), ({ i, backups, events, saga }) => [
		heading(i.organizationName, { back: { href: "/instances", text: "Instances" }, sub: i.tenantId, actions: instanceActions(i, again) }),
		h("div", { class: "grid" },
			h("div", { class: "two-thirds stack" }, stateCard(i), underWay(i, saga), explained, (i.activatedAt || backups.length > 0) && archivesCard(i, backups, again), resourcesCard(i), hasRun(i) && logs,
				card("History", {}, timeline(events.filter(isWorthTelling), ctx.rights, { withSubject: false }))),
			h("div", { class: "third stack" }, about(i))),
	], FRESH_MS);
	ctx.title(`${first.organizationName} (${first.tenantId})`);
	tickDue(ctx);
	return shown.place;
}
