// SPDX-License-Identifier: Apache-2.0
// The accounts: the board, why one rests and until when, what an admin does about it; and the reports. An hour of the simulated world is a
// second here; what is looked at lasts for thousands of them.
import { assert, fits, gone, isAccessible, people, press, same, shared, shot, test, until } from "./rig.mjs";

const world = shared({ args: ["--dev"], env: { LEASEHOLD_SIM_SANDBOXES: "0", LEASEHOLD_SIM_ACCOUNTS: "6", LEASEHOLD_SIM_ENTRY_ACCOUNTS: "2", LEASEHOLD_TIME_SCALE: "3600", QUARANTINE_DURATION_HOURS: "2000", QUARANTINE_QUOTA_HOURS: "2500" } });

const main = (page) => page.locator("main");
const dialog = (page) => page.getByRole("dialog");
const confirm = (page, name) => dialog(page).getByRole("button", { name, exact: true }).click();
const lane = (page, name) => page.getByRole("region", { name: new RegExp(`^${name}`) });
const badge = (page, text) => page.locator("main .stand .badge", { hasText: text }).waitFor();
const account = (id) => world.call("GET", `/api/accounts/${id}`, undefined, { as: "Admin" });
const untilPhase = (id, phase) => until(async () => (await account(id)).phase === phase, `account ${id} is ${phase}`);

// An account that is lent.
async function lent() {
	const [template] = (await world.call("GET", "/api/leaseTemplates", undefined, { as: "Admin" })).result.filter((t) => t.name === "Project");
	const lease = await world.call("POST", "/api/leases", { leaseTemplateUuid: template.uuid, userEmail: people.User }, { as: "Admin" });
	await world.call("PUT", `/v1/sim/accounts/${lease.awsAccountId}/cost-rate`, { usd_per_hour: 0.05 });
	await untilPhase(lease.awsAccountId, "Active");
	await until(async () => (await world.call("GET", `/api/leases/${lease.leaseId}`, undefined, { as: "Admin" })).status === "Active", "it is active");
	return lease;
}

async function resting() {
	const lease = await lent();
	await world.call("POST", `/api/leases/${lease.leaseId}/terminate`, {}, { as: "Admin" });
	await untilPhase(lease.awsAccountId, "Cooldown");
	return account(lease.awsAccountId);
}

let ended;
test("why an account rests and until when, found from the board", async (t) => {
	const running = await lent(), a = await resting();
	ended = running.uuid;
	const page = await world.open(t, { as: "Admin", path: "/" });
	await page.getByRole("region", { name: "Claims per minute" }).getByText("in real time").waitFor();
	await page.getByRole("link", { name: "Accounts" }).first().click();
	await lane(page, "Cooldown").getByText(/free in/).waitFor();
	await lane(page, "Active").getByRole("link", { name: "its lease" }).waitFor();
	await isAccessible(page, "the board");
	await shot(page, "accounts");
	await lane(page, "Cooldown").getByRole("link", { name: a.name }).click();
	await page.getByText(/It is clean and in cooldown\. It can be lent again/).waitFor();
	await page.getByRole("row", { name: /Billing: the last lease's bill/ }).waitFor();
	await isAccessible(page, "an account that rests");
	await shot(page, "account-resting");

	await page.getByRole("button", { name: "Extend the hold: Billing" }).or(page.getByTitle(/^Extend the hold: Billing/)).first().click();
	await dialog(page).getByLabel("Hours from now").fill("5000");
	await confirm(page, "Extend");
	await page.getByText(/Extended: it now ends in/).waitFor();
	for (const what of ["Billing", "Quotas"]) {
		await page.getByTitle(new RegExp(`^Release the hold: ${what}`)).click();
		await dialog(page).getByLabel("Reason").fill("The bill is there");
		await shot(page, "account-release");
		await confirm(page, "Release");
		await page.getByRole("row", { name: new RegExp(what) }).locator("visible=true").waitFor({ state: "detached" });
	}
	await badge(page, "Available");
	await page.getByRole("link", { name: a.lastLeaseUuid, exact: true }).waitFor();
	await page.getByText("Past holds").click();
	await page.getByText("The bill is there").first().waitFor();

	await press(page, "Place hold");
	await dialog(page).getByLabel("Reason").fill("For the workshop on Friday");
	await confirm(page, "Hold");
	await badge(page, "Cooldown");
	await page.getByText("It is clean and in cooldown until someone releases it.").waitFor();
	await shot(page, "account-held");
	await world.call("POST", `/api/leases/${running.leaseId}/terminate`, {}, { as: "Admin" });
});

test("quarantine, clean again, eject", async (t) => {
	const lease = await lent();
	const page = await world.open(t, { as: "Admin", path: `/accounts/${lease.awsAccountId}`, allow: [/status of 404/] }); // looked at once more when it has left
	await page.getByText("It is lent, and its owner has access.").waitFor();
	await page.getByRole("main").getByRole("link", { name: "its lease" }).click();
	await page.getByText("Its owner has access.").waitFor();
	await page.goBack();
	await press(page, "Skip next cooldown");
	await dialog(page).getByLabel("Reason").fill("Needed at once");
	await confirm(page, "Skip cooldown");
	await page.getByText("No cooldown after its next cleanup.").waitFor();
	await press(page, "Quarantine");
	await dialog(page).getByLabel("Reason").fill("Keys were leaked");
	await confirm(page, "Quarantine");
	await badge(page, "Quarantine");
	await page.getByText(/It is in quarantine: .*Keys were leaked/).waitFor();
	await page.getByRole("region", { name: "Holds" }).getByText("when a cleanup succeeds").waitFor();
	await isAccessible(page, "an account in quarantine");
	await shot(page, "account-quarantine");
	await press(page, "Clean again");
	await confirm(page, "Clean again");
	await badge(page, "Available");
	await shot(page, "account");
	await press(page, "Eject");
	await confirm(page, "Eject");
	await page.getByRole("heading", { name: "Accounts" }).waitFor();
	await gone(page.locator("main code", { hasText: lease.awsAccountId }), "it is not on the board any more");
});

test("register an account that is not in the pool yet", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/accounts" });
	const card = page.getByRole("region", { name: "Not registered" });
	await card.getByRole("button", { name: "Register" }).first().waitFor();
	const name = await card.locator("tbody tr").first().locator("td").first().textContent();
	await card.getByRole("button", { name: "Register" }).first().click();
	await dialog(page).getByText("is deleted; after that it can be lent").waitFor();
	await confirm(page, "Register");
	await page.getByText("Registered. It is being cleaned.").waitFor();
	await main(page).getByRole("link", { name, exact: true }).waitFor();
	await page.getByLabel("Account").fill(name);
	await same(() => page.locator(".tile").count(), 1, "the board has only this one");
});

test("reports: costs of a month", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/reports" });
	await page.getByRole("heading", { name: "Monthly costs" }).waitFor();
	await isAccessible(page, "reports");
	const saved = page.waitForEvent("download");
	await press(page, "Download as CSV");
	assert.match((await saved).suggestedFilename(), /^cost-report-\d{4}-\d{2}-group\.csv$/);
	await page.getByRole("link", { name: "Service accounts" }).click();
	await page.getByRole("heading", { name: "Service accounts", level: 1 }).waitFor();
});

test("the statement of a lease", async (t) => {
	await until(async () => (await world.call("GET", `/v1/ops/leases/${ended}/statement`)).rows.length, "the statement has figures", 120000);
	const page = await world.open(t, { as: "Admin", path: `/leases/${ended}` });
	const card = page.getByRole("region", { name: "Statement" });
	await card.getByRole("columnheader", { name: "Service" }).waitFor();
	await card.getByRole("img", { name: /^Spend by day: / }).or(card.getByText("All of it was spent on one day.")).waitFor();
	await isAccessible(page, "a statement");
	await shot(page, "lease-statement");
	const saved = page.waitForEvent("download");
	await press(page, "Download as CSV");
	assert.equal((await saved).suggestedFilename(), `statement-${ended}.csv`);
});

test("the board on a phone, in the dark", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/accounts", viewport: { width: 390, height: 800 }, colorScheme: "dark" });
	await lane(page, "Available").waitFor();
	await fits(page, "the board");
	await isAccessible(page, "the board on a phone");
	await shot(page, "phone-accounts");
	await page.locator(".tile a").first().click();
	await page.getByRole("heading", { name: "Status" }).waitFor();
	await shot(page, "phone-account");
});
