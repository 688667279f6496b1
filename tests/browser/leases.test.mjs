// SPDX-License-Identifier: Apache-2.0
// The life of leases, clicked through by everybody who may. An hour of the simulated world takes ten seconds: no lease ends, and no account is free again,
// before its test has ended.
import { assert, gone, isAccessible, people, press, same, shared, shot, test, until } from "./rig.mjs";

const world = shared({ args: ["--dev"], env: { LEASEHOLD_SIM_SANDBOXES: "0", LEASEHOLD_SIM_ACCOUNTS: "4", LEASEHOLD_SIM_ENTRY_ACCOUNTS: "2", LEASEHOLD_TIME_SCALE: "360" } });

const main = (page) => page.locator("main");
const dialog = (page) => page.getByRole("dialog");
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

test("from the request to the end", async (t) => {
	const user = await world.open(t, { as: "User", path: "/leases" });
	await user.getByText("You have no leases yet").waitFor();
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
	await user.getByText("Waiting for a manager's approval.").waitFor();
	assert.equal(await main(user).getByRole("button", { name: "Approve" }).count(), 0, "a user does not approve");
	await isAccessible(user, "a pending lease");
	await shot(user, "lease-pending");

	const manager = await world.open(t, { as: "Manager", path: "/", allow: [/status of 400/] });
	await manager.getByRole("link", { name: "Approvals" }).click();
	await manager.getByText("To try the new queue service").waitFor();
	await isAccessible(manager, "approvals");
	await press(manager, "Deny");
	await manager.getByText("Give a reason: the requester will see it.").waitFor();
	await shot(manager, "approvals");
	await press(manager, "Approve");
	await manager.getByText("No requests to review").waitFor();
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
	const later = dialog(manager).getByRole("button", { name: /^\+ 1 |^Latest possible$/ });
	await dialog(manager).getByText("At most 7 days from its start (leases.maxDurationHours)").waitFor();
	assert.equal(await later.count(), 0, "a lease at its limit is not offered more time");
	const end = dialog(manager).getByLabel("Ends"), was = await end.inputValue();
	await end.fill(new Date(new Date(`${was}Z`).getTime() - 2 * 86400000).toISOString().slice(0, 16));
	await same(() => later.allTextContents(), ["+ 1 hour", "+ 1 day", "Latest possible"], "the times that are offered");
	await dialog(manager).getByRole("button", { name: "Latest possible" }).click();
	await same(() => end.inputValue(), was, "the end as it was");
	await dialog(manager).getByLabel("Budget in dollars").fill("5000");
	await dialog(manager).getByRole("button", { name: "Add a budget threshold" }).click();
	await dialog(manager).getByLabel("When spend reaches ($)").last().fill("30");
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
});

test("a manager denies with a reason, a user withdraws", async (t) => {
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
	await manager.goto(`${world.url}/leases?status=Withdrawn`);
	await manager.getByRole("row", { name: /Withdraw me.*Withdrawn/ }).waitFor();
	await gone(manager.getByRole("link", { name: "Deny me" }));
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
	await page.getByText("No matching leases").waitFor();
	await page.getByRole("link", { name: "Show all" }).click();
	await page.getByRole("link", { name: "Given" }).waitFor();
	await isAccessible(page, "the list of leases");
	await shot(page, "leases");
	await end((await world.call("GET", "/api/leases?status=Active", undefined, { as: "Admin" })).result.find((l) => l.originalLeaseTemplateName === "Given"));
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
	await page.getByText(/is waiting in line, at position 1/).waitFor();
	await shot(page, "lease-in-line");
	const admin = await world.open(t, { as: "Admin" });
	const figure = admin.locator(".figure", { hasText: "Waiting in line" });
	await figure.getByText(/\d for an account/).waitFor();
	await figure.click();
	await admin.getByRole("row", { name: new RegExp(`${last.originalLeaseTemplateName}.*In line`) }).waitFor();
	await end(last);
	await page.getByText("Denied by").first().waitFor();
	for (const l of made) if (l.uuid !== last.uuid && (await show(l)).awsAccountId) await end(l);
});
