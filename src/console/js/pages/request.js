// SPDX-License-Identifier: Apache-2.0
// Ask for a lease: choose a template, say what for, accept the terms. Managers may also give one to somebody else, without an approval.
import * as api from "../api.js";
import { h } from "../dom.js";
import { ask, badge, button, card, empty, facts, field, heading, toast } from "../parts.js";
import { budget, hours, isOpen, leaseHref } from "./lease-parts.js";

const COMMENTS_MAX = 1000;

const whenGranted = (t) => (t.requiresApproval ? "After a manager's approval" : "Immediately");

// The terms are a text of the operator's, in simple Markdown: only headings and paragraphs are drawn.
function terms(text) {
	return text.split(/\n{2,}/).map((block) => block.trim()).filter(Boolean).map((block) => {
		const [, title] = /^#+\s+(.*)$/.exec(block) ?? [];
		return title ? h("h3", {}, title) : h("p", {}, block);
	});
}

function termsField(text) {
	if (!text.trim()) return null;
	const box = h("input", { type: "checkbox", name: "terms", id: "accept-terms", required: true });
	return [
		h("div", { class: "terms", tabindex: 0, role: "region", "aria-label": "Terms of service" }, terms(text)),
		h("label", { class: "check", for: "accept-terms" }, box, "I accept these terms"),
	];
}

function forWhom(ctx) {
	return ctx.rights.approve && field("For", h("input", { name: "userEmail", type: "email", value: "", placeholder: ctx.session.email, autocomplete: "off", maxlength: 254 }),
		{ help: "Leave empty for yourself. A lease for someone else is granted without approval." });
}

function request(ctx, template, policy) {
	return ask({
		title: `Request ${template.name}`, label: "Request", wide: true,
		text: `${hours(template.leaseDurationInHours)}, with a budget of ${budget(template.maxSpend)}. ${template.requiresApproval ? "A manager reviews your request first." : "You get it immediately if an account is free."}`,
		fields: [
			field("What is it for? (optional)", h("textarea", { name: "comments", maxlength: COMMENTS_MAX, rows: 3 }), { help: template.requiresApproval ? "The approver reads this." : null }),
			forWhom(ctx), termsField(policy.termsOfService),
		],
		run: async (data) => {
			const userEmail = (data.get("userEmail") ?? "").trim();
			const lease = await api.post("/api/leases", { leaseTemplateUuid: template.uuid, comments: data.get("comments").trim() || undefined, userEmail: userEmail || undefined });
			toast(lease.queuedSince ? "All accounts are in use: your request is waiting in line." : lease.status === "PendingApproval" ? "Requested. A manager will review it." : "Granted. The account is being set up.");
			ctx.go(leaseHref(lease.leaseId));
		},
	});
}

function choice(ctx, template, policy) {
	return card(template.name, { class: "third choice", more: template.visibility === "PRIVATE" && badge("private", { text: "Private" }) },
		h("p", { class: "choice-text" }, template.description || "No description."),
		facts([["Budget", budget(template.maxSpend)], ["Duration", hours(template.leaseDurationInHours)], ["Granted", whenGranted(template)],
			["Cost group", template.costReportGroup ?? undefined]]),
		button(`Request ${template.name}`, { kind: "primary wide", run: () => request(ctx, template, policy) }));
}

// How many of the leases that a person may have are used; managers and admins have the same limit.
function standing(own, policy) {
	const most = policy.leases.maxLeasesPerUser, used = own.filter(isOpen).length;
	if (!most) return null;
	return used < most ? `You have ${used} of at most ${most} leases.`
		: h("span", { class: "note warn" }, `You have ${used} leases, the most allowed: end one before you request another.`);
}

export default async function page(ctx) {
	const options = { signal: ctx.signal };
	const [policy, templates, own] = await Promise.all([
		api.get("/api/configurations", {}, options),
		api.all("/api/leaseTemplates", "result", {}, 500, options),
		api.all("/api/leases", "result", { userEmail: ctx.session.email, pageSize: 200 }, 1000, options),
	]);
	return [
		heading("Request a lease", { back: { href: "/leases", text: "Leases" }, sub: standing(own, policy) }),
		templates.length ? h("div", { class: "grid stretch" }, templates.map((t) => choice(ctx, t, policy)))
			: card("Templates", {}, empty("No templates yet", ctx.rights.templates ? "Leases are created from templates: create the first one." : "A manager has to create a template first.",
				ctx.rights.templates && h("a", { class: "button primary", href: "/templates/new" }, "New template"))),
	];
}
