// SPDX-License-Identifier: Apache-2.0
// One lease: where it stands, its money and its time, what happened, what it cost in the end, and what may be done about it by whom.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { timeline } from "../events.js";
import { explainPanel } from "../explain.js";
import { ago, money, time, words } from "../format.js";
import { button, card, confirm, copyable, facts, heading, loader } from "../parts.js";
import { budget, countdown, hours, isDenied, isEnded, isInLine, isOpen, isPending, isRunning, isWithdrawn, isWorthTelling, leaseBadge, leaseIdOf, leasePath, spendBar, tick, timeBar } from "./lease-parts.js";
import { changeLease } from "./lease-change.js";
import { statementCard } from "./lease-statement.js";

const EVENTS = 100, FRESH_MS = 3000;
const isUuid = (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);

// Events and accounts name a lease by its uuid alone; its owner, who is a part of the API's id, is in its events.
async function idOf(ctx, text) {
	if (!isUuid(text)) return text;
	const { events } = await api.get("/v1/ops/events", { subject: `lease/${text}`, limit: 20 }, { signal: ctx.signal });
	const owner = events.map((e) => e.detail.userEmail ?? e.detail.leaseId?.userEmail).find(Boolean);
	if (!owner) throw new api.ApiError(404, `Nothing is known any more of lease ${text}.`);
	return leaseIdOf(owner, text);
}

const isOwner = (ctx, l) => l.userEmail.toLowerCase() === ctx.session.email.toLowerCase();

// --- in a sentence ---

const ends = {
	Expired: "Its time was over.", BudgetExceeded: "Its budget was used up.", AccountQuarantined: "Its account was put into quarantine.",
	Ejected: "Its account was taken out of the pool.", ProvisioningFailed: "The account could not be made ready.",
};

function sentence(l, isOwn) {
	const who = isOwn ? "You have" : "Its owner has";
	if (isInLine(l))
		return ["Approved, but no account is free: it waits in line", l.queuePosition ? `, at place ${l.queuePosition}` : "", ". An account is expected ",
			l.queueEstimate ? countdown(l.queueEstimate) : "when one comes back; when, cannot be told", "."];
	if (isPending(l)) return ["It waits for a manager to approve it.", isOwn && " There is nothing to do for you: this page changes by itself."];
	if (isDenied(l)) return isWithdrawn(l) ? `${who} withdrawn the request.` : [`Denied by ${l.deniedBy ?? "a manager"}`, l.denyReason && `: ${l.denyReason}`, "."];
	if (l.status === "Provisioning") return "Approved: access to its account is being set up. This takes a moment.";
	if (l.status === "Frozen") return ["Nobody has access, and what runs in the account goes on and costs money. It ends ", l.expirationDate ? countdown(l.expirationDate) : "when somebody ends it", "."];
	if (l.status === "Active") return [`${who} access. It ends `, l.expirationDate ? countdown(l.expirationDate) : "when somebody ends it", "."];
	return l.status === "ManuallyTerminated" ? `Ended by ${l.terminatedBy ?? "somebody"}. The account is cleaned and rests before somebody else gets it.` : ends[l.status];
}

// --- what can be done ---

function act(ctx, again, label, { path, kind, body, ...dialog }) {
	const run = () => confirm({ label, ...dialog, run: (reason) => api.post(path, body ? body(reason) : {}) }).then((did) => did && again());
	return button(label, { kind, run });
}

function pendingActions(ctx, l, path, again) {
	return [
		ctx.rights.approve && !isInLine(l) && act(ctx, again, "Approve", { path: `${path}/review`, kind: "primary", reason: "optional", body: (reason) => ({ action: "Approve", reason: reason || undefined }),
			title: "Approve this lease?", text: `${l.userEmail} gets an account for ${hours(l.leaseDurationInHours)}, with a budget of ${budget(l.maxSpend)}.`, done: "Approved." }),
		ctx.rights.approve && act(ctx, again, "Deny", { path: `${path}/review`, kind: "quiet-danger", danger: true, reason: "required", body: (reason) => ({ action: "Deny", reason }),
			title: "Deny this lease?", text: `${l.userEmail} is told the reason.`, done: "Denied." }),
		isOwner(ctx, l) && act(ctx, again, "Withdraw", { path: `${path}/withdraw`, title: "Withdraw your request?", text: "You can ask again at any time.", done: "Withdrawn." }),
	];
}

function runningActions(ctx, l, path, again, policy) {
	return [
		ctx.rights.approve && button("Extend or change", { run: () => changeLease(l, path, policy).then((did) => did && again()) }),
		ctx.rights.approve && l.status === "Active" && act(ctx, again, "Freeze", { path: `${path}/freeze`, title: "Freeze this lease?", done: "Frozen.",
			text: `${l.userEmail} loses access until you unfreeze it. What runs in the account goes on and costs money, and the time goes on too.` }),
		ctx.rights.approve && l.status === "Frozen" && act(ctx, again, "Unfreeze", { path: `${path}/unfreeze`, kind: "primary", title: "Unfreeze this lease?", text: `${l.userEmail} gets access again.`, done: "Unfrozen." }),
		act(ctx, again, "End lease", { path: `${path}/terminate`, kind: "quiet-danger", danger: true, title: "End this lease now?", done: "Ended. The account is being cleaned.",
			text: "Access ends at once, and everything in the account is deleted. This cannot be undone." }),
	];
}

function actions(ctx, l, path, again, policy) {
	if (isPending(l)) return pendingActions(ctx, l, path, again);
	if (isRunning(l)) return runningActions(ctx, l, path, again, policy);
	return [h("a", { class: "button", href: "/leases/new" }, "Request another")];
}

// --- what is known ---

function portal(l, policy) {
	const url = policy.auth.awsAccessPortalUrl;
	if (l.status !== "Active") return null;
	return /^https?:\/\//.test(url) ? h("a", { class: "button primary", href: url, target: "_blank", rel: "noopener noreferrer" }, "Open the access portal")
		: h("p", { class: "dim" }, "Sign in to the account as your organisation does; no access portal is configured here.");
}

function stateCard(ctx, l, policy) {
	return card("Where it stands", {}, h("div", { class: "stand" }, h("p", { class: "row" }, leaseBadge(l), h("span", {}, sentence(l, isOwner(ctx, l)))), portal(l, policy)));
}

function bars(l) {
	const age = isEnded(l) ? "as last seen while it ran; bills come later" : l.costAsOf ? ["as of ", ago(l.costAsOf)] : l.lastCheckedDate ? ["no figure yet, looked ", ago(l.lastCheckedDate)] : null;
	return !isPending(l) && !isDenied(l) && h("div", { class: "grid" },
		card("Spend", { class: "half", more: age }, spendBar(l)),
		card("Time", { class: "half", more: l.expirationDate && [isOpen(l) ? "ends " : "would have ended ", time(l.expirationDate)] }, timeBar(l)));
}

function factsCard(ctx, l) {
	const template = ctx.rights.templates ? h("a", { href: `/templates/${part(l.originalLeaseTemplateUuid)}` }, l.originalLeaseTemplateName) : l.originalLeaseTemplateName;
	const account = l.awsAccountId && (ctx.rights.accounts ? h("a", { href: `/accounts/${part(l.awsAccountId)}` }, h("code", {}, l.awsAccountId)) : copyable(l.awsAccountId));
	return card("About it", {}, facts([
		["Owner", l.userEmail],
		["Account", account ?? undefined],
		["From template", template],
		["What for", l.comments || undefined],
		["Asked for by", l.createdBy && l.createdBy !== l.userEmail ? l.createdBy : undefined],
		["Budget", budget(l.maxSpend)],
		["Duration", hours(l.leaseDurationInHours)],
		["Cost group", l.costReportGroup ?? undefined],
		["Approved", l.approvedBy ? (l.approvedBy === "AUTO_APPROVED" ? "by rule" : `by ${l.approvedBy}`) : undefined],
		["Removed from here", l.ttl ? ago(l.ttl) : undefined],
		["Id", copyable(l.uuid)],
	]));
}

// What the record itself tells, for those who do not see the log of events; the newest first.
function history(l) {
	const rows = [
		[l.meta.createdTime, "Requested", `by ${l.createdBy ?? l.userEmail}`],
		[l.queuedSince, "Waits in line", "approved, no account was free"],
		[l.startDate, "Started", l.approvedBy === "AUTO_APPROVED" ? "approved by rule" : l.approvedBy ? `approved by ${l.approvedBy}` : ""],
		[isDenied(l) ? l.meta.lastEditTime : null, isWithdrawn(l) ? "Withdrawn" : "Denied", [l.deniedBy && `by ${l.deniedBy}`, l.denyReason].filter(Boolean).join(": ")],
		[l.status === "Frozen" ? l.meta.lastEditTime : null, "Frozen", ""],
		[l.endDate, words(l.status), l.terminatedBy ? `by ${l.terminatedBy}` : ""],
	].filter(([at]) => at).sort((a, b) => (a[0] < b[0] ? 1 : -1));
	return h("ol", { class: "timeline" }, rows.map(([at, what, more]) => h("li", {}, time(at), h("span", { class: "what" }, what), more && h("span", { class: "more" }, more))));
}

async function historyCard(ctx, l) {
	if (!ctx.rights.operations) return card("What happened", {}, history(l));
	const { events } = await api.get("/v1/ops/events", { subject: `lease/${l.uuid}`, limit: EVENTS }, { signal: ctx.signal });
	return card("What happened", {}, timeline(events.filter(isWorthTelling), ctx.rights, { withSubject: false }));
}

export default async function page(ctx) {
	const path = leasePath(await idOf(ctx, ctx.params.id)), options = { signal: ctx.signal };
	const [policy, first] = await Promise.all([api.get("/api/configurations", {}, options), api.get(path, {}, options)]);
	let lease = first;
	const place = h("div");
	const explained = explainPanel("lease", ctx.rights.operations ? first.uuid : first.leaseId, ctx, { isOpen: false });
	const again = loader(place, async () => {
		lease = await api.get(path, {}, options);
		const [happened, statement] = await Promise.all([historyCard(ctx, lease), isEnded(lease) ? statementCard(ctx, lease, path) : null]);
		return [
			heading(lease.originalLeaseTemplateName, { back: { href: "/leases", text: "Leases" }, sub: lease.userEmail, actions: actions(ctx, lease, path, again, policy) }),
			h("div", { class: "grid" },
				h("div", { class: "two-thirds stack" }, stateCard(ctx, lease, policy), explained, bars(lease), statement, happened),
				h("div", { class: "third stack" }, factsCard(ctx, lease))),
		];
	});
	ctx.title(`${first.originalLeaseTemplateName} of ${first.userEmail}`);
	ctx.every(FRESH_MS, async () => {
		const now = await api.get(path, {}, options).catch(() => null); // whether the server is away is told above the page
		if (now && JSON.stringify(now) !== JSON.stringify(lease)) again();
	});
	tick(ctx);
	return place;
}
