// SPDX-License-Identifier: Apache-2.0
// The editor of templates; which of the leases' pages a role has; all of them on a phone.
import { assert, fits, gone, isAccessible, shared, shot, test, until } from "./rig.mjs";

const world = shared({ args: ["--dev"], env: { LEASEHOLD_SIM_SANDBOXES: "0", LEASEHOLD_SIM_ACCOUNTS: "1" } });
const main = (page) => page.locator("main");
const confirm = (page, name) => page.getByRole("dialog").getByRole("button", { name, exact: true }).click();
const badge = (page, text) => page.locator("main .stand .badge", { hasText: text }).waitFor();
const phone = { viewport: { width: 390, height: 800 } };

async function lease({ comments, ...fields }) {
	const template = { requiresApproval: true, visibility: "PUBLIC", maxSpend: 40, leaseDurationInHours: 160, ...fields };
	const made = await world.call("POST", "/api/leaseTemplates", template, { as: "Manager" });
	return world.call("POST", "/api/leases", { leaseTemplateUuid: made.uuid, comments }, { as: "User" });
}

const show = (l) => world.call("GET", `/api/leases/${l.leaseId}`, undefined, { as: "Admin" });
const href = (l) => `/leases/${l.leaseId.replace(/=+$/, "")}`;

test("templates: made, corrected, changed, deleted", async (t) => {
	const page = await world.open(t, { as: "Manager", path: "/templates", allow: [/status of 400/] });
	await page.getByRole("link", { name: "Playground" }).waitFor();
	await isAccessible(page, "templates");
	await shot(page, "templates");
	await page.getByRole("link", { name: "New template" }).click();
	await page.getByRole("button", { name: "Add a budget threshold" }).click();
	await page.getByRole("button", { name: "Create template" }).click();
	await page.locator('[data-field="name"] .problem:not(:empty)').waitFor();
	await page.locator('[data-field="budgetThresholds.0.dollarsSpent"] .problem:not(:empty)').waitFor();
	await isAccessible(page, "a template with mistakes");
	await shot(page, "template-problems");
	await page.getByLabel("Name").fill("Workshop");
	await page.getByLabel("Description").fill("An afternoon with the whole class.");
	await page.getByLabel("Budget in dollars").fill("20");
	await page.getByLabel("Duration in hours").fill("48");
	await page.getByLabel("When spend reaches ($)").fill("15");
	await page.getByRole("button", { name: "Add a time threshold" }).click();
	await page.getByLabel("When hours left reach").fill("4");
	await page.getByLabel("Then").last().selectOption("FREEZE_ACCOUNT");
	await shot(page, "template");
	await page.getByRole("button", { name: "Create template" }).click();
	await page.getByRole("link", { name: "Workshop" }).click();
	await page.getByLabel("A manager has to approve each request").uncheck();
	await page.getByRole("button", { name: "Remove" }).first().click();
	await page.getByRole("button", { name: "Save changes" }).click();
	await page.getByRole("row", { name: /Workshop.*automatic/ }).waitFor();
	const kept = (await world.call("GET", "/api/leaseTemplates/Workshop", undefined, { as: "Manager" }));
	assert.deepEqual([kept.budgetThresholds ?? [], kept.durationThresholds], [[], [{ hoursRemaining: 4, action: "FREEZE_ACCOUNT" }]]);
	await page.getByRole("link", { name: "Workshop" }).click();
	await page.getByRole("button", { name: "Delete" }).click();
	await confirm(page, "Delete");
	await page.getByRole("link", { name: "Playground" }).waitFor();
	await gone(page.getByRole("link", { name: "Workshop" }));
});

test("what a role may not do is not offered", async (t) => {
	const words = async (page) => {
		await page.getByRole("heading", { name: "Leases", exact: true }).waitFor();
		return page.locator("#nav a").allTextContents();
	};
	const user = await world.open(t, { as: "User", path: "/leases" });
	const seen = await words(user);
	for (const word of ["Approvals", "Templates", "Accounts", "Reports"]) assert.ok(!seen.includes(word), word);
	for (const path of ["/approvals", "/templates", "/accounts", "/reports"]) {
		await user.goto(world.url + path);
		await user.getByText("Not allowed").waitFor();
	}
	const manager = await words(await world.open(t, { as: "Manager", path: "/leases" }));
	assert.ok(manager.includes("Approvals") && manager.includes("Templates") && manager.includes("Reports") && manager.includes("Accounts") && !manager.includes("Operations"));
});

test("on a phone, in the dark", async (t) => {
	const l = await lease({ name: "Pocket", requiresApproval: false, budgetThresholds: [{ dollarsSpent: 20, action: "ALERT" }] });
	await lease({ name: "Pocket asked", comments: "On the way" });
	await until(async () => (await show(l)).status === "Active", "it is active");
	const page = await world.open(t, { as: "Manager", path: href(l), ...phone, colorScheme: "dark" });
	await badge(page, "Active");
	await isAccessible(page, "a lease on a phone");
	await shot(page, "lease-phone");
	for (const [path, role, name] of [["/leases", "link", "Pocket asked"], ["/leases/new", "heading", "Project"], ["/approvals", "link", "Pocket asked"],
		["/templates", "link", "Project"], ["/templates/new", "heading", "New template"]]) {
		await page.goto(world.url + path);
		await main(page).getByRole(role, { name }).waitFor();
		await fits(page, path);
		await shot(page, `phone${path.replaceAll("/", "-")}`);
	}
});
