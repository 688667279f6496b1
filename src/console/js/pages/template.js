// SPDX-License-Identifier: Apache-2.0
// One template: make it, change it, delete it. What the API finds wrong stands beside the field it is about.
import * as api from "../api.js";
import { h, part } from "../dom.js";
import { duration, money, time } from "../format.js";
import { button, card, confirm, field, heading, select, showProblems, toast } from "../parts.js";
import { groupField } from "./lease-change.js";
import { numberOf, thresholdsEditor } from "./lease-parts.js";

const NEW = { name: "", description: "", requiresApproval: true, visibility: "PUBLIC", maxSpend: null, leaseDurationInHours: null };

function limitHelp(isRequired, most, written) {
	return [isRequired ? "Required." : "Leave empty for no limit.", most ? `At most ${written}.` : ""].join(" ").trim();
}

function durationField(t, limits) {
	const input = h("input", { name: "leaseDurationInHours", type: "number", min: 0, step: "any", value: t.leaseDurationInHours ?? "", inputmode: "decimal" });
	const shown = h("b", { "aria-live": "polite" });
	const say = () => (shown.textContent = Number(input.value) > 24 ? ` That is ${duration(Number(input.value) * 3600)}.` : "");
	input.addEventListener("input", say);
	say();
	const box = field("Duration in hours", input, { help: limitHelp(limits.requireMaxDuration, limits.maxDurationHours, `${limits.maxDurationHours} hours (${duration(limits.maxDurationHours * 3600)})`) });
	box.querySelector(".help").append(shown);
	return box;
}

function choice(name, label, checked, help) {
	const id = `choice-${name}`;
	return h("div", { class: "field", data: { field: name } }, h("label", { class: "check", for: id }, h("input", { type: "checkbox", name, id, checked }), label),
		h("p", { class: "help" }, help), h("p", { class: "problem" }));
}

function bodyOf(form, t, budgets, durations) {
	const data = new FormData(form), text = (name) => (data.get(name) ?? "").trim() || undefined;
	return {
		name: (data.get("name") ?? "").trim(), description: text("description"), requiresApproval: data.has("requiresApproval"), visibility: data.get("visibility"),
		maxSpend: numberOf(data.get("maxSpend")) ?? undefined, leaseDurationInHours: numberOf(data.get("leaseDurationInHours")) ?? undefined,
		createdBy: t.createdBy, costReportGroup: text("costReportGroup"), budgetThresholds: budgets.read(), durationThresholds: durations.read(),
	};
}

function removeButton(ctx, t) {
	return button("Delete", { kind: "quiet-danger", run: () => confirm({
		title: `Delete ${t.name}?`, text: "It can no longer be requested. Existing leases stay as they are.", label: "Delete", danger: true,
		run: () => api.remove(`/api/leaseTemplates/${part(t.uuid)}`), done: `${t.name} is deleted.`,
	}).then((did) => did && ctx.go("/templates")) });
}

function fields(t, policy, budgets, durations) {
	const limits = policy.leases;
	return [
		card("Details", { class: "half" },
			field("Name", h("input", { name: "name", value: t.name, maxlength: 50, autocomplete: "off" })),
			field("Description", h("textarea", { name: "description", rows: 3, value: t.description ?? "", maxlength: 1000 }), { help: "Helps people choose a template." }),
			field("Visible to", select("visibility", [["PUBLIC", "Everyone"], ["PRIVATE", "Managers and admins only"]], t.visibility)),
			choice("requiresApproval", "A manager has to approve each request", t.requiresApproval, "Otherwise leases are granted immediately, unless an approval rule says otherwise.")),
		card("Limits", { class: "half" },
			field("Budget in dollars", h("input", { name: "maxSpend", type: "number", min: 0, step: "any", value: t.maxSpend ?? "", inputmode: "decimal" }),
				{ help: limitHelp(limits.requireMaxBudget, limits.maxBudget, money(limits.maxBudget)) }),
			durationField(t, limits), groupField(t.costReportGroup, policy)),
		card("Thresholds", {}, h("div", { class: "grid" },
			h("div", { class: "half" }, budgets.element), h("div", { class: "half" }, durations.element))),
	];
}

export default async function page(ctx) {
	const isNew = ctx.params.id === undefined, options = { signal: ctx.signal };
	const [t, policy] = await Promise.all([
		isNew ? NEW : api.get(`/api/leaseTemplates/${part(ctx.params.id)}`, {}, options),
		api.get("/api/configurations", {}, options),
	]);
	const budgets = thresholdsEditor("budgetThresholds", t.budgetThresholds), durations = thresholdsEditor("durationThresholds", t.durationThresholds);
	const trouble = h("p", { class: "problem", role: "alert" }), save = button(isNew ? "Create template" : "Save changes", { type: "submit", kind: "primary" });
	const form = h("form", { novalidate: true }, h("div", { class: "grid" }, fields(t, policy, budgets, durations)),
		h("div", { class: "form-foot" }, trouble, h("a", { class: "button", href: "/templates" }, "Cancel"), save));
	form.addEventListener("submit", async (event) => {
		event.preventDefault();
		save.disabled = true;
		trouble.textContent = showProblems(form, null);
		try {
			const body = bodyOf(form, t, budgets, durations);
			if (isNew) await api.post("/api/leaseTemplates", body);
			else await api.put(`/api/leaseTemplates/${part(t.uuid)}`, body);
			toast(isNew ? `${body.name} can now be requested.` : "Saved. Existing leases stay as they are.");
			ctx.go("/templates");
		} catch (error) {
			trouble.textContent = showProblems(form, error) || "Fix the highlighted fields.";
		}
		save.disabled = false;
	});
	ctx.title(isNew ? "New template" : t.name);
	return [
		heading(isNew ? "New template" : t.name, { back: { href: "/templates", text: "Templates" },
			sub: isNew ? "What people can request" : ["Created by ", t.createdBy, ", last changed ", time(t.meta.lastEditTime)], actions: !isNew && removeButton(ctx, t) }),
		form,
	];
}
