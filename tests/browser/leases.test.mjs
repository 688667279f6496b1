// SPDX-License-Identifier: Apache-2.0
// The life of leases, clicked through by everybody who may. An hour of the simulated world is a second here.
import { assert, isAccessible, people, shared, shot, test, until } from "./rig.mjs";

const world = shared({ args: ["--dev"], env: { LEASEHOLD_SIM_SANDBOXES: "0", LEASEHOLD_SIM_ACCOUNTS: "5", LEASEHOLD_SIM_ENTRY_ACCOUNTS: "2", LEASEHOLD_TIME_SCALE: "3600" } });

const main = (page) => page.locator("main");
const dialog = (page) => page.getByRole("dialog");
const press = (page, name) => main(page).getByRole("button", { name, exact: true }).click();
const confirm = (page, name) => dialog(page).getByRole("button", { name, exact: true }).click();
const badge = (page, text) => page.locator("main .stand .badge", { hasText: text }).waitFor();

async function template(fields) {
	return world.call("POST", "/api/leaseTemplates", { requiresApproval: true, visibility: "PUBLIC", maxSpend: 40, leaseDurationInHours: 160, ...fields }, { as: "Manager" });
}

async function lease({ comments, ...fields }, as = "User") {
	const made = await template(fields);
	return world.call("POST", "/api/leases", { leaseTemplateUuid: made.uuid, comments }, { as });
}

const show = (l) => world.call("GET", `/api/leases/${l.leaseId}`, undefined, { as: "Admin" });
const href = (l) => `/leases/${l.leaseId.replace(/=+$/, "")}`;
const end = (l) => world.call("POST", `/api/leases/${l.leaseId}/terminate`, {}, { as: "Admin" });
const deny = (l) => world.call("POST", `/api/leases/${l.leaseId}/review`, { action: "Deny" }, { as: "Admin" });

test("from the request to the end", async (t) => {
	const user = await world.open(t, { as: "User", path: "/leases" });
	await user.getByText("You have no lease yet").waitFor();
	await shot(user, "leases-empty");
	await user.getByRole("link", { name: "Request a lease" }).first().click();
	await user.getByRole("heading", { name: "Project" }).waitFor();
	await isAccessible(user, "the choice of templates");
	await shot(user, "lease-request");
	await press(user, "Request Project");
	await dialog(user).getByLabel("What is it for?").fill("To try the new queue service");
	await isAccessible(user, "the request");
	await shot(user, "lease-request-form");
	await dialog(user).getByLabel("I accept these terms").check();
	await confirm(user, "Request");
	await user.getByText("It waits for a manager to approve it.").waitFor();
	assert.equal(await main(user).getByRole("button", { name: "Approve" }).count(), 0, "a user does not approve");
	await isAccessible(user, "a pending lease");
	await shot(user, "lease-pending");

	const manager = await world.open(t, { as: "Manager", path: "/", allow: [/status of 400/] });
	await manager.getByRole("link", { name: "Approvals" }).click();
	await manager.getByText("To try the new queue service").waitFor();
	await isAccessible(manager, "approvals");
	await press(manager, "Deny");
	await manager.getByText("Say why: the requester reads it.").waitFor();
	await shot(manager, "approvals");
	await press(manager, "Approve");
	await manager.getByText("Nothing waits for you").waitFor();
	await shot(manager, "approvals-empty");

	await badge(user, "Active");
	await user.getByText("You have access.").waitFor();
	for (const name of ["Freeze", "Extend or change"]) assert.equal(await main(user).getByRole("button", { name }).count(), 0, `a user is not offered: ${name}`);

	await manager.getByRole("link", { name: "Leases", exact: true }).click();
	await manager.getByRole("link", { name: "Project" }).click();
	await press(manager, "Freeze");
	await confirm(manager, "Freeze");
	await badge(manager, "Frozen");
	await badge(user, "Frozen");
	await shot(manager, "lease-frozen");
	await press(manager, "Unfreeze");
	await confirm(manager, "Unfreeze");
	await badge(manager, "Active");

	await press(manager, "Extend or change");
	await dialog(manager).getByLabel("Budget in dollars").fill("5000");
	await dialog(manager).getByRole("button", { name: "Add a budget threshold" }).click();
	await dialog(manager).getByLabel("When so much is spent ($)").last().fill("30");
	await dialog(manager).getByLabel("Then").nth(1).selectOption("FREEZE_ACCOUNT");
	await isAccessible(manager, "the change of a lease");
	await confirm(manager, "Save");
	await dialog(manager).locator('[data-field="maxSpend"] .problem:not(:empty)').waitFor();
	await shot(manager, "lease-change");
	await dialog(manager).getByLabel("Budget in dollars").fill("45");
	await confirm(manager, "Save");
	await manager.getByText("At $30.00 the lease is frozen").waitFor();
	await manager.getByText("of $45.00").waitFor();
	await isAccessible(manager, "an active lease");
	await shot(manager, "lease");

	await press(user, "End lease");
	await shot(user, "lease-end");
	await confirm(user, "End lease");
	await badge(user, "Manually terminated");
	await user.getByRole("heading", { name: "Statement" }).waitFor();
	await user.getByText(/Ended by user@example.com/).waitFor();
	await isAccessible(user, "an ended lease");
	await shot(user, "lease-ended");
}, { timeout: 60000 });

// A lease that spends, so that there is something to see some tests later.
async function spender() {
	const l = await lease({ name: "Training", requiresApproval: false, maxSpend: 45, budgetThresholds: [{ dollarsSpent: 8, action: "ALERT" }, { dollarsSpent: 35, action: "FREEZE_ACCOUNT" }] }, "Manager");
	await world.call("PUT", `/v1/sim/accounts/${l.awsAccountId}/cost-rate`, { usd_per_hour: 1 });
	return l;
}

let spends;
test("a manager denies with a reason, a user withdraws", async (t) => {
	spends = await spender();
	const first = await lease({ name: "Deny me", comments: "mining" }), second = await lease({ name: "Withdraw me" });
	const manager = await world.open(t, { as: "Manager", path: href(first) });
	await press(manager, "Deny");
	await dialog(manager).getByLabel("Reason").fill("Not for this");
	await confirm(manager, "Deny");
	await manager.getByText("Denied by manager@example.com: Not for this.").waitFor();
	const user = await world.open(t, { as: "User", path: href(first) });
	await user.getByText("Denied by manager@example.com: Not for this.").waitFor();
	await isAccessible(user, "a denied lease");
	await user.goto(world.url + href(second));
	await press(user, "Withdraw");
	await confirm(user, "Withdraw");
	await user.getByText("You have withdrawn the request.").waitFor();
	assert.equal((await show(second)).status, "ApprovalDenied");
});

test("a manager gives a lease to somebody else, and finds it again", async (t) => {
	await template({ name: "Given", requiresApproval: true });
	const page = await world.open(t, { as: "Manager", path: "/leases/new" });
	await press(page, "Request Given");
	await dialog(page).getByLabel("For", { exact: true }).fill("nobody@example.com");
	await dialog(page).getByLabel("I accept these terms").check();
	await dialog(page).getByLabel("For", { exact: true }).fill(people.User);
	await confirm(page, "Request");
	await badge(page, "Active");
	await page.goto(`${world.url}/leases?owner=user&status=Active`);
	await page.getByRole("link", { name: "Given" }).waitFor();
	await page.getByLabel("Template").selectOption({ label: "Playground" });
	await page.getByText("No lease matches").waitFor();
	await page.getByRole("link", { name: "Show all" }).click();
	await page.getByRole("link", { name: "Given" }).waitFor();
	await isAccessible(page, "the list of leases");
	await shot(page, "leases");
	const [given] = (await world.call("GET", "/api/leases?status=Active", undefined, { as: "Admin" })).result;
	await end(given);
});

test("who is approved while all accounts are lent waits in line", async (t) => {
	const made = [];
	for (const name of ["Line 1", "Line 2", "Line 3", "Line 4"]) made.push(await lease({ name, requiresApproval: false }, name === "Line 4" ? "Manager" : "User"));
	const last = await until(async () => (await Promise.all(made.map(show))).find((l) => l.queuedSince), "one waits in line");
	const page = await world.open(t, { as: "Manager", path: "/approvals" });
	const row = page.getByRole("row", { name: new RegExp(last.originalLeaseTemplateName) });
	await row.waitFor();
	await isAccessible(page, "the line");
	await shot(page, "approvals-line");
	await page.goto(world.url + href(last));
	await page.getByText(/waits in line, at place 1/).waitFor();
	await shot(page, "lease-in-line");
	await deny(last);
	await page.getByText("Denied by").first().waitFor();
	for (const l of made) if (l.uuid !== last.uuid && (await show(l)).awsAccountId) await end(l);
});

test("spend against the budget, with what has been passed", async (t) => {
	await until(async () => (await show(spends)).totalCostAccrued >= 8, "8 dollars are spent", 40000);
	const page = await world.open(t, { as: "Admin", path: `/leases/${spends.uuid}` });
	await page.getByText("At $8.00 a mail is sent – passed").waitFor();
	await page.getByText(/as of/).waitFor();
	await isAccessible(page, "a lease that spends");
	await shot(page, "lease-spend");
	await end(spends);
});
