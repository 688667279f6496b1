// SPDX-License-Identifier: Apache-2.0
// Every page on a phone: with the longest of names nothing is wider than the screen, and axe finds nothing.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, isAccessible, loaded, shared, shot, test, until } from "./rig.mjs";

const LONG = "a-very-long-address-that-goes-on-and-on-without-any-break@department-of-long-names.university.example.com";
const file = join(mkdtempSync(join(tmpdir(), "leasehold-phone-")), "people.jsonl");
writeFileSync(file, [["admin@example.com", "Admin"], ["manager@example.com", "Manager"], ["user@example.com", "User"], [LONG, "User"]]
	.map(([email, role]) => `${JSON.stringify({ email, roles: [role] })}\n`).join(""), { mode: 0o600 });
const world = shared({ args: ["--dev"], env: { LEASEHOLD_USERS_FILE: file, LEASEHOLD_SIM_SANDBOXES: "5", LEASEHOLD_SIM_ACCOUNTS: "4" } });
const main = (page) => page.locator("main");

async function longLived() {
	const made = await world.call("POST", "/api/leaseTemplates", { name: "ATemplateWhoseNameIsAsLongAsItMayBeWithoutABreak50", description: "d".repeat(200), requiresApproval: true, visibility: "PUBLIC", maxSpend: 40, leaseDurationInHours: 160,
		budgetThresholds: [{ dollarsSpent: 20, action: "ALERT" }] }, { as: "Manager" });
	const given = await world.call("POST", "/api/leases", { leaseTemplateUuid: made.uuid, userEmail: LONG, comments: "c".repeat(300) }, { as: "Manager" });
	await world.call("POST", "/api/leases", { leaseTemplateUuid: made.uuid, comments: "w".repeat(300) }, { as: "User" });
	await until(async () => (await world.call("GET", `/api/leases/${given.leaseId}`, undefined, { as: "Admin" })).status === "Active", "it is active");
	await world.claim(LONG);
	const [free] = (await world.call("GET", "/api/accounts?status=Available", undefined, { as: "Admin" })).result;
	await world.call("POST", "/v1/ops/holds", { account: free.awsAccountId, reason: "r".repeat(200), hours: 48 });
	await world.call("POST", "/v1.0/tenants/tenant-with-a-name-that-is-as-long-as-a-name-of-a-tenant-may-be/instances", { organizationName: "Organisation ".repeat(7).trim(), contactEmail: LONG });
	return { lease: `/leases/${given.leaseId.replace(/=+$/, "")}`, account: `/accounts/${free.awsAccountId}` };
}

test("no page is wider than the screen, with the longest of names", async (t) => {
	const made = await longLived();
	const page = await world.open(t, { as: "Admin", viewport: { width: 390, height: 800 } });
	const wrong = [], operations = ["", "/alarms", "/sagas", "/dead-letters", "/queues", "/timers", "/jobs", "/holds", "/events", "/webhooks", "/configuration", "/people", "/service-accounts", "/world"].map((path) => `/operations${path}`);
	for (const path of ["/", "/sandboxes", "/leases", "/leases/timeline", "/leases/new", made.lease, "/approvals", "/templates", "/templates/new", "/accounts", made.account, "/instances", "/instances/states",
		"/instances/tenant-with-a-name-that-is-as-long-as-a-name-of-a-tenant-may-be", "/reports", `/search?q=${LONG.slice(0, 40)}`, ...operations]) {
		await page.goto(world.url + path);
		await main(page).getByRole("heading", { level: 1 }).first().waitFor();
		await loaded(page);
		const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
		if (wide > screen) wrong.push(`${path} is ${wide} pixels wide`);
		await isAccessible(page, `${path} on a phone`);
	}
	assert.deepEqual(wrong, []);
	await page.goto(world.url + made.account);
	const explain = page.locator(".explain h2");
	await until(() => explain.evaluate((e) => e.offsetHeight < 1.5 * parseFloat(getComputedStyle(e).lineHeight)).catch(() => false), "the heading Explain is one line");
	await page.goto(world.url + made.lease);
	await page.getByRole("heading", { name: "Spend over time" }).waitFor();
	await shot(page, "phone-lease-long-names");
});
