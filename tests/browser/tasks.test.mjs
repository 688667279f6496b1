// SPDX-License-Identifier: Apache-2.0
// What people come for, in the console: each task with the number of clicks that it may take. tests/api/test_tasks.py has the same at a terminal;
// thirty requests, a class of thirty and a broken sandbox are in class.test.mjs, the costs of last month in reports.test.mjs.
import { assert, fits, gone, isAccessible, loaded, shared, shot, test, until } from "./rig.mjs";

const world = shared({ args: ["--dev"], env: { LEASEHOLD_SIM_SANDBOXES: "0", LEASEHOLD_SIM_ACCOUNTS: "6" } });
const main = (page) => page.locator("main");
const dialog = (page) => page.getByRole("dialog");

function counting() {
	let clicks = 0;
	return { click: (locator) => (clicks++, locator.click()), count: () => clicks };
}

let names = 0;
async function lease(fields = {}, as = "User") {
	const template = { name: `Task ${++names}`, requiresApproval: false, visibility: "PUBLIC", maxSpend: 40, leaseDurationInHours: 24, ...fields };
	const made = await world.call("POST", "/api/leaseTemplates", template, { as: "Manager" });
	const asked = await world.call("POST", "/api/leases", { leaseTemplateUuid: made.uuid }, { as });
	return fields.requiresApproval ? asked : until(async () => (await show(asked)).status === "Active" && show(asked), "it is active");
}
const show = (l) => world.call("GET", `/api/leases/${l.leaseId}`, undefined, { as: "Admin" });
const href = (l) => `/leases/${l.leaseId.replace(/=+$/, "")}`;

test("a manager finds in 2 clicks why an account is not free, and changes nothing there", async (t) => {
	const { result } = await world.call("GET", "/api/accounts?pageSize=100", undefined, { as: "Admin" });
	const held = result.find((a) => a.phase === "Available");
	await world.call("POST", "/v1/ops/holds", { account: held.awsAccountId, reason: "the auditors look at it", hours: 48 });
	const page = await world.open(t, { as: "Manager" }), hand = counting();
	await hand.click(page.getByRole("link", { name: "Accounts" }));
	await hand.click(page.getByRole("region", { name: /^Cooldown/ }).getByRole("link").first());
	await page.locator(".explain-summary", { hasText: "is in cooldown until" }).waitFor();
	await main(page).getByText("the auditors look at it").first().waitFor();
	assert.ok(hand.count() <= 2, `${hand.count()} clicks`);
	assert.equal(await main(page).locator(".heading .actions button").count(), 0, "an account is the admins' to change");
	assert.equal(await main(page).getByText("hold release").count(), 0, "what he may not do is not offered");
	await isAccessible(page, "an account as a manager sees it");
	await shot(page, "account-manager");
});

test("a lease is extended within the policy in 2 clicks, and the limit is told", async (t) => {
	const l = await lease();
	const page = await world.open(t, { as: "Manager", path: href(l) }), hand = counting();
	await page.getByText(/It can be extended until .*: 7 days from its start \(leases.maxDurationHours\)/).waitFor();
	await hand.click(main(page).getByRole("button", { name: "+ 1 day" }));
	await hand.click(dialog(page).getByRole("button", { name: "Extend", exact: true }));
	await until(async () => Date.parse((await show(l)).expirationDate) - Date.parse(l.expirationDate) === 86400000, "it has a day more");
	assert.ok(hand.count() <= 2, `${hand.count()} clicks`);
	await main(page).getByRole("button", { name: "Latest possible" }).click();
	await dialog(page).getByRole("button", { name: "Extend", exact: true }).click();
	await page.getByText(/It cannot be extended any further: the limit is 7 days from its start/).waitFor();
	await gone(main(page).getByRole("button", { name: "+ 1 hour" }), "nothing is offered that would be refused");
});

test("an approval's reason is kept and shown to everybody concerned", async (t) => {
	const l = await lease({ requiresApproval: true });
	const page = await world.open(t, { as: "Manager", path: "/approvals" });
	await page.getByLabel("Reason").fill("For the course on Friday");
	await main(page).getByRole("button", { name: "Approve", exact: true }).click();
	await until(async () => (await show(l)).approvalReason === "For the course on Friday", "it is kept");
	const user = await world.open(t, { as: "User", path: href(l) });
	await user.getByText("by manager@example.com: For the course on Friday").first().waitFor();
	await user.getByText("approved by manager@example.com: For the course on Friday").waitFor();
	const admin = await world.open(t, { as: "Admin", path: href(l) });
	await admin.locator(".timeline").getByText("For the course on Friday").first().waitFor();
});

test("the timeline shows who has what until when", async (t) => {
	const long = await lease({ name: "A template whose name is as long as names may be", leaseDurationInHours: 160 }, "Manager");
	const brief = await lease({ name: "A day" });
	const page = await world.open(t, { as: "Manager", path: "/leases" });
	await page.getByRole("link", { name: "Timeline" }).click();
	const mine = main(page).getByRole("listitem").filter({ hasText: long.originalLeaseTemplateName });
	await mine.getByText("manager@example.com").waitFor();
	await mine.getByText(/until .*in 6 d/).waitFor();
	const bar = (row) => until(() => row.locator(".span-bar").evaluate((e) => e.getBoundingClientRect().width), "its bar is drawn"); // 0: being replaced
	const short = main(page).getByRole("listitem").filter({ hasText: brief.originalLeaseTemplateName });
	const [longer, shorter] = [await bar(mine), await bar(short)];
	assert.ok(longer > 2 * shorter, `${longer} and ${shorter} pixels`);
	await page.getByLabel("Show").selectOption("90");
	await page.waitForURL(/days=90/);
	await until(async () => (await bar(mine)) < longer / 3, "the same time is shorter among more days");
	await isAccessible(page, "the timeline");
	await page.getByLabel("Show").selectOption("14");
	await page.getByLabel("Sort by").selectOption("owner");
	await mine.waitFor();
	await shot(page, "lease-timeline");
	await page.setViewportSize({ width: 390, height: 800 });
	await fits(page, "the timeline");
	await shot(page, "phone-lease-timeline");
	await mine.getByRole("link").click();
	await page.getByRole("heading", { name: "Status" }).waitFor();
	const user = await world.open(t, { as: "User", path: "/leases/timeline" });
	await user.getByRole("link", { name: "A day" }).waitFor();
	assert.equal(await main(user).getByText(long.originalLeaseTemplateName).count(), 0, "a user sees his own");
});

// What was in sight before is in sight afterwards, and not under the message.
test("a message covers nothing, in the middle of a long page and at its ends", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/operations/configuration", viewport: { width: 1000, height: 500 } });
	await page.getByLabel("Text of Lease policy").waitFor();
	await loaded(page);
	const whole = await page.evaluate(() => document.body.scrollHeight);
	assert.ok(whole > 1200, `${whole} pixels are not a long page`);
	const places = () => page.evaluate(() => [...document.querySelectorAll("main label, main h2, main legend")].map((e) => e.getBoundingClientRect().toJSON()));
	for (const at of [0, whole / 2, whole]) {
		await page.evaluate((y) => scrollTo(0, y), at);
		const before = await places();
		await page.evaluate(async () => (await import(document.querySelector('script[type="module"]').src.replace("app.js", "parts.js"))).toast("Saved.", "bad"));
		await page.locator(".toast").waitFor();
		const edge = await page.evaluate(() => document.querySelector("#toasts").getBoundingClientRect().bottom), after = await places();
		before.forEach((box, i) => box.top >= 0 && box.bottom <= 500 - edge && assert.ok(after[i].top >= edge - 1, `${JSON.stringify(box)} is under the message at ${at}: ${after[i].top} of ${edge}`));
		await page.getByRole("button", { name: "Close this message" }).click();
	}
});

test("limits and thresholds are changed by a form, and comments of the text stay", async (t) => {
	const was = await world.call("GET", "/v1/ops/policy");
	await world.call("PUT", "/v1/ops/policy", { document: `# ours\n${was.text.replace(/maxBudget: *(\d+)/, "maxBudget: $1 # dollars")}`, version: was.version });
	const page = await world.open(t, { as: "Admin", path: "/operations/configuration" });
	const budget = page.getByLabel("Largest budget ($)");
	await budget.fill("75");
	await page.getByLabel("It will be exceeded by the end, at the current rate").selectOption("freeze");
	const changes = page.locator("#verdict");
	await changes.getByText("leases.maxBudget").waitFor();
	await changes.getByText("leases.onProjectedOverrun").waitFor();
	await isAccessible(page, "the form of limits");
	await shot(page, "configuration-form");
	await budget.fill("-1");
	await page.locator('.field[data-field="leases.maxBudget"] .problem:not(:empty)').waitFor();
	assert.ok(await main(page).getByRole("button", { name: "Save" }).isDisabled());
	await budget.fill("80");
	await changes.getByText("80", { exact: true }).waitFor();
	await main(page).getByRole("button", { name: "Save" }).click();
	await page.getByText(/is now in effect/).waitFor();
	const now = await world.call("GET", "/v1/ops/policy");
	assert.equal(now.values.leases.maxBudget, 80);
	assert.equal(now.values.leases.onProjectedOverrun, "freeze");
	assert.match(now.text, /^# ours\n[^]*maxBudget: 80 # dollars\n/);
	await page.getByLabel("Text of Lease policy").fill(now.text.replace("maxBudget: 80", "maxBudget: 60"));
	await until(async () => (await budget.inputValue()) === "60", "the form follows the text");
});
