// SPDX-License-Identifier: Apache-2.0
// One lease: where it stands, its money and its time, what happened, what it cost in the end, and what may be done about it by whom.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { timeline } from "../events.js";
import { explainPanel } from "../explain.js";
import { ago, money, number, time, words } from "../format.js";
import { button, card, confirm, copyable, facts, heading, loader } from "../parts.js";
import { budget, countdown, hours, isDenied, isEnded, isInLine, isOpen, isPending, isRunning, isWithdrawn, isWorthTelling, leaseBadge, leaseIdOf, leasePath, spendBar, tick, timeBar } from "./lease-parts.js";
import { changeLease, extendRow } from "./lease-change.js";
import { spendChart } from "./lease-spend.js";
import { statementCard } from "./lease-statement.js";

const EVENTS = 100, SEARCHED = 2000, FRESH_MS = 3000;
const isUuid = (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);

// Events and accounts name a lease by its uuid alone; its owner, who is a part of the API's id, is in its events. Who does not see these looks through
// the leases.
async function idOf(ctx, text) {
	if (!isUuid(text)) return text;
	if (!ctx.rights.operations) return idAmongAll(ctx, text);
	const { events } = await api.get("/v1/ops/events", { subject: `lease/${text}`, limit: 20 }, { signal: ctx.signal });
	const owner = events.map((e) => e.detail.userEmail ?? e.detail.leaseId?.userEmail).find(Boolean);
	if (!owner) throw new api.ApiError(404, `Lease ${text} is no longer on record.`);
	return leaseIdOf(owner, text);
}

async function idAmongAll(ctx, uuid) {
	const userEmail = ctx.rights.approve ? undefined : ctx.session.email;
	const { items, next } = await api.upTo(SEARCHED, "/api/leases", "result", { userEmail, pageSize: SEARCHED }, { signal: ctx.signal });
	const found = items.find((l) => l.uuid === uuid);
	if (!found) throw new api.ApiError(404, next ? `Lease ${uuid} is not among the newest ${number(SEARCHED)}.` : `Lease ${uuid} is no longer on record.`);
	return found.leaseId;
}

const isOwner = (ctx, l) => l.userEmail.toLowerCase() === ctx.session.email.toLowerCase();

// --- in a sentence ---

const ends = {
	Expired: "It reached its end date.", BudgetExceeded: "Its budget was used up.", AccountQuarantined: "Its account was put in quarantine.",
	Ejected: "Its account was taken out of the pool.", ProvisioningFailed: "The account could not be set up.",
};

function sentence(l, isOwn) {
	const who = isOwn ? "You have" : "Its owner has";
	if (isInLine(l))
		return ["Approved, but no account is free: it is waiting in line", l.queuePosition ? `, at position ${l.queuePosition}` : "", ". An account is expected ",
			l.queueEstimate ? countdown(l.queueEstimate) : "as soon as one is returned; no estimate yet", "."];
	if (isPending(l)) return ["Waiting for a manager's approval.", isOwn && " No need to do anything: this page updates by itself."];
	if (isDenied(l)) return isWithdrawn(l) ? `${who} withdrawn the request.` : [`Denied by ${l.deniedBy ?? "a manager"}`, l.denyReason && `: ${l.denyReason}`, "."];
	if (l.status === "Provisioning") return "Approved. Access to the account is being set up; this takes a moment.";
	if (l.status === "Frozen") return ["Access is suspended, but whatever runs in the account keeps running and costs money. It ends ", l.expirationDate ? countdown(l.expirationDate) : "when someone ends it", "."];
	if (l.status === "Active") return [`${who} access. It ends `, l.expirationDate ? countdown(l.expirationDate) : "when someone ends it", "."];
	return l.status === "ManuallyTerminated" ? `Ended by ${l.terminatedBy ?? "someone"}. The account is cleaned, and goes through a cooldown before it is lent again.` : ends[l.status];
}

// --- what can be done ---

function act(ctx, again, label, { path, kind, body, ...dialog }) {
	const run = () => confirm({ label, ...dialog, run: (reason) => api.post(path, body ? body(reason) : {}) }).then((did) => did && again());
	return button(label, { kind, run });
}

const withdraw = (ctx, l, path, again) => isOwner(ctx, l) && act(ctx, again, "Withdraw", { path: `${path}/withdraw`, title: "Withdraw your request?", text: "You can request it again at any time.", done: "Withdrawn." });

function lineActions(ctx, l, path, again) {
	return [
		ctx.rights.approve && act(ctx, again, "Remove from line", { path: `${path}/terminate`, kind: "quiet-danger", danger: true, title: `Remove ${l.userEmail} from the line?`,
			text: "The request was approved. Removing it ends the lease before it starts.", done: "Removed from the line." }),
		withdraw(ctx, l, path, again),
	];
}

function pendingActions(ctx, l, path, again) {
	return [
		ctx.rights.approve && act(ctx, again, "Approve", { path: `${path}/review`, kind: "primary", reason: "optional", body: (reason) => ({ action: "Approve", reason: reason || undefined }),
			title: "Approve this lease?", text: `${l.userEmail} gets an account for ${hours(l.leaseDurationInHours)}, with a budget of ${budget(l.maxSpend)}.`, done: "Approved." }),
		ctx.rights.approve && act(ctx, again, "Deny", { path: `${path}/review`, kind: "quiet-danger", danger: true, reason: "required", body: (reason) => ({ action: "Deny", reason }),
			title: "Deny this lease?", text: `${l.userEmail} will see the reason.`, done: "Denied." }),
		withdraw(ctx, l, path, again),
	];
}

function runningActions(ctx, l, path, again, policy) {
	return [
		ctx.rights.approve && button("Extend or change", { run: () => changeLease(l, path, policy).then((did) => did && again()) }),
		ctx.rights.approve && l.status === "Active" && act(ctx, again, "Freeze", { path: `${path}/freeze`, reason: "optional", body: (reason) => ({ reason: reason || undefined }), title: "Freeze this lease?", done: "Frozen.",
			text: `${l.userEmail} loses access until you unfreeze it. Whatever runs in the account keeps running and costs money, and the lease's time keeps running too.` }),
		ctx.rights.approve && l.status === "Frozen" && act(ctx, again, "Unfreeze", { path: `${path}/unfreeze`, kind: "primary", title: "Unfreeze this lease?", text: `${l.userEmail} gets access again.`, done: "Unfrozen." }),
		act(ctx, again, "End lease", { path: `${path}/terminate`, reason: "optional", body: (reason) => ({ reason: reason || undefined }), kind: "quiet-danger", danger: true, title: "End this lease now?", done: "Ended. The account is being cleaned.",
			text: "Access ends immediately, and everything in the account is deleted. This cannot be undone." }),
	];
}

function actions(ctx, l, path, again, policy) {
	if (isInLine(l)) return lineActions(ctx, l, path, again);
	if (isPending(l)) return pendingActions(ctx, l, path, again);
	if (isRunning(l)) return runningActions(ctx, l, path, again, policy);
	return [h("a", { class: "button", href: "/leases/new" }, "Request another")];
}

// --- what is known ---

function portal(l, policy) {
	const url = policy.auth.awsAccessPortalUrl;
	if (l.status !== "Active") return null;
	return /^https?:\/\//.test(url) ? h("a", { class: "button primary", href: url, target: "_blank", rel: "noopener noreferrer" }, "Open the access portal")
		: h("p", { class: "dim" }, "No access portal is configured here: sign in to the account the way your organisation does.");
}

function stateCard(ctx, l, policy) {
	return card("Status", {}, h("div", { class: "stand" }, h("p", { class: "row" }, leaseBadge(l), h("span", {}, sentence(l, isOwner(ctx, l)))), portal(l, policy)));
}

const costAge = (l) => ({ final: "final: the bills are complete", amended: "final, and corrected since", provisional: "not final: bills come late" }[l.costState] ??
	"not final: as last seen while it ran");

function bars(ctx, l, path, policy, again) {
	const age = isEnded(l) ? costAge(l) : l.costAsOf ? ["as of ", time(l.costAsOf), ", ", ago(l.costAsOf)] : l.lastCheckedDate ? ["no figure yet, checked ", ago(l.lastCheckedDate)] : null;
	return !isPending(l) && !isInLine(l) && !isDenied(l) && h("div", { class: "grid" },
		card("Spend", { class: "half", more: age }, spendBar(l)),
		card("Time", { class: "half", more: l.expirationDate && [isOpen(l) ? "ends " : "would have ended ", time(l.expirationDate)] }, timeBar(l), ctx.rights.approve && isRunning(l) && extendRow(l, path, policy, again)));
}

// Who did it and, if that was said, why.
const byWhom = (who, reason) => (who && who.includes("@") ? [`by ${who}`, reason?.comment && `: ${reason.comment}`].filter(Boolean).join("") : undefined);

const approval = (l) => (l.approvedBy ? [l.approvedBy === "AUTO_APPROVED" ? "by rule" : `by ${l.approvedBy}`, l.approvalReason && `: ${l.approvalReason}`].filter(Boolean).join("") : undefined);

function factsCard(ctx, l) {
	const template = ctx.rights.templates ? h("a", { href: `/templates/${part(l.originalLeaseTemplateUuid)}` }, l.originalLeaseTemplateName) : l.originalLeaseTemplateName;
	const account = l.awsAccountId && copyable(l.awsAccountId, { href: ctx.rights.accounts && `/accounts/${part(l.awsAccountId)}` });
	return card("Details", {}, facts([
		["Owner", l.userEmail],
		["Account", account ?? undefined],
		["Template", template],
		["Purpose", l.comments || undefined],
		["Requested by", l.createdBy && l.createdBy !== l.userEmail ? l.createdBy : undefined],
		["Budget", budget(l.maxSpend)],
		["Duration", hours(l.leaseDurationInHours)],
		["Cost group", l.costReportGroup ?? undefined],
		["Approved", approval(l)],
		["Frozen", byWhom(l.frozenBy, l.freezeReason)],
		["Ended", byWhom(l.terminatedBy, l.endReason)],
		["Record removed", l.ttl ? ago(l.ttl) : undefined],
		["Id", copyable(l.uuid)],
	]));
}

// What the record itself tells, for those who do not see the log of events; the newest first.
function history(l) {
	const rows = [
		[l.meta.createdTime, "Requested", `by ${l.createdBy ?? l.userEmail}`],
		[l.queuedSince, "Waiting in line", "approved, no account was free"],
		[l.startDate, "Started", l.approvedBy ? `approved ${approval(l)}` : ""],
		[isDenied(l) ? l.meta.lastEditTime : null, isWithdrawn(l) ? "Withdrawn" : "Denied", [l.deniedBy && `by ${l.deniedBy}`, l.denyReason].filter(Boolean).join(": ")],
		[l.status === "Frozen" ? l.meta.lastEditTime : null, "Frozen", byWhom(l.frozenBy, l.freezeReason) ?? ""],
		[l.endDate, words(l.status), byWhom(l.terminatedBy, l.endReason) ?? (l.terminatedBy ? `by ${l.terminatedBy}` : "")],
	].filter(([at]) => at).sort((a, b) => (a[0] < b[0] ? 1 : -1));
	return h("ol", { class: "timeline" }, rows.map(([at, what, more]) => h("li", {}, time(at), h("span", { class: "what" }, what), more && h("span", { class: "more" }, more))));
}

async function historyCard(ctx, l) {
	if (!ctx.rights.operations) return card("History", {}, history(l));
	const { events } = await api.get("/v1/ops/events", { subject: `lease/${l.uuid}`, limit: EVENTS }, { signal: ctx.signal });
	return card("History", {}, timeline(events.filter(isWorthTelling), ctx.rights, { withSubject: false }));
}

export default async function page(ctx) {
	const path = leasePath(await idOf(ctx, ctx.params.id)), options = { signal: ctx.signal };
	const [policy, first] = await Promise.all([api.get("/api/configurations", {}, options), api.get(path, {}, options)]);
	let lease = first;
	const place = h("div");
	const chart = spendChart(ctx, path);
	const explained = explainPanel("lease", ctx.rights.operations ? first.uuid : first.leaseId, ctx, { isOpen: false });
	const again = loader(place, async () => {
		const now = await api.get(path, {}, options);
		const [happened, statement] = await Promise.all([historyCard(ctx, now), isEnded(now) ? statementCard(ctx, now, path) : null]);
		return () => (lease = now, [
			heading(lease.originalLeaseTemplateName, { back: { href: "/leases", text: "Leases" }, sub: lease.userEmail, actions: actions(ctx, lease, path, again, policy) }),
			h("div", { class: "grid" },
				h("div", { class: "two-thirds stack" }, stateCard(ctx, lease, policy), explained, bars(ctx, lease, path, policy, again), chart(lease), statement, happened),
				h("div", { class: "third stack" }, factsCard(ctx, lease))),
		]);
	});
	ctx.title(`${first.originalLeaseTemplateName} of ${first.userEmail}`);
	ctx.every(FRESH_MS, async () => {
		const now = await api.get(path, {}, options).catch(() => null); // whether the server is away is told above the page
		if (now && JSON.stringify(now) !== JSON.stringify(lease)) return again();
	});
	tick(ctx);
	return place;
}
