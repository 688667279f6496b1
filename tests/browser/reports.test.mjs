// SPDX-License-Identifier: Apache-2.0
// Costs: of a running lease over time, and of last month by team, down to the dearest leases. A month takes half a minute here, and leases last
// for many, so that each has days in the month before, whatever the day is when this runs.
import { assert, isAccessible, loaded, same, shared, shot, test, until } from "./rig.mjs";

const world = shared({ args: ["--dev"], env: { LEASEHOLD_SIM_SANDBOXES: "0", LEASEHOLD_SIM_ACCOUNTS: "8", LEASEHOLD_TIME_SCALE: "100000" } });
const main = (page) => page.locator("main");
const show = (l) => world.call("GET", `/api/leases/${l.leaseId}`, undefined, { as: "Admin" });

async function lease(name, group, rate) {
	const made = await world.call("POST", "/api/leaseTemplates", { name, requiresApproval: false, visibility: "PUBLIC", maxSpend: 90000, leaseDurationInHours: 14000, costReportGroup: group, budgetThresholds: [{ dollarsSpent: 8, action: "ALERT" }] }, { as: "Manager" });
	const l = await world.call("POST", "/api/leases", { leaseTemplateUuid: made.uuid }, { as: "User" });
	const active = await until(async () => (await show(l)).status === "Active" && show(l), `${name} is active`);
	await world.call("PUT", `/v1/sim/accounts/${active.awsAccountId}/cost-rate`, { usd_per_hour: rate });
	return active;
}

const leases = [];
let made = null;
const prepared = () => (made ??= prepare());

async function prepare() {
	const policy = await world.call("GET", "/v1/ops/policy");
	const text = [["maxDurationHours", 14000], ["maxBudget", 90000], ["maxLeasesPerUser", 50]].reduce((t, [key, value]) => t.replace(new RegExp(`${key}: *\\d+`), `${key}: ${value}`), policy.text);
	await world.call("PUT", "/v1/ops/policy", { document: text, version: policy.version });
	await world.call("PUT", "/v1/ops/reporting", { document: "costReportGroups: [research, teaching]\n", version: 0 });
	for (const [name, group, rate] of [["Genome", "research", 4], ["Weather", "research", 2], ["Ocean", "research", 6], ["Maps", "research", 0.1], ["Course", "teaching", 3]]) leases.push(await lease(name, group, rate));
}

// The month before the one that the world is in.
async function lastMonth() {
	const response = await fetch(`${world.url}/v1/admin/stats`, { headers: { Authorization: `Bearer ${world.token("operator")}` } });
	const now = new Date(response.headers.get("Leasehold-Time"));
	return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1)).toISOString().slice(0, 7);
}

async function csv(month) {
	const response = await fetch(`${world.url}/api/reports/costs?by=lease&month=${month}`, { headers: { Authorization: `Bearer ${world.token("Manager")}` } });
	return response.text();
}

test("a running lease shows its spend over time, and where it leads", async (t) => {
	await prepared();
	await until(async () => (await show(leases[0])).projectedSpend > 0, "there is a forecast", 90000);
	const page = await world.open(t, { as: "User", path: `/leases/${leases[0].leaseId.replace(/=+$/, "")}` });
	const chart = page.getByRole("region", { name: "Spend over time" });
	await chart.getByRole("img", { name: /^Spend so far: \$[\d,.]+ at .*, \$[\d,.]+ expected at .*; Budget \$90,000/ }).waitFor();
	await chart.getByText(/^At this rate \$[\d,.]+ at its end/).waitFor();
	await same(() => chart.locator(".plot-ahead").count(), 1, "where it leads");
	await isAccessible(page, "a lease with its spend over time");
	await shot(page, "lease-spend-over-time");
});

test("what a lease has passed of its thresholds", async (t) => {
	await prepared();
	await until(async () => (await show(leases[0])).totalCostAccrued >= 8, "8 dollars are spent", 90000);
	const page = await world.open(t, { as: "Admin", path: `/leases/${leases[0].uuid}` });
	await page.getByText("At $8.00 an email is sent – passed").waitFor();
	await page.getByText(/as of/).first().waitFor();
	await isAccessible(page, "a lease that spends");
	await shot(page, "lease-spend");
});

test("last month's cost of a team and its three dearest leases, in 3 clicks", async (t) => {
	await prepared();
	await until(async () => ((text) => leases.every((l) => text.includes(l.uuid)))(await csv(await lastMonth())), "last month has costs of all leases", 120000);
	const page = await world.open(t, { as: "Manager" });
	let clicks = 0;
	const click = (locator) => (clicks++, locator.click());
	await click(page.getByRole("link", { name: "Reports" }));
	clicks++;
	await page.getByLabel("Month", { exact: true }).selectOption({ index: 1 });
	await page.getByRole("row", { name: /^research 4/ }).waitFor();
	await page.getByRole("row", { name: /^teaching 1/ }).waitFor();
	await page.getByRole("img", { name: /^Spend by day in / }).waitFor();
	await isAccessible(page, "the costs of a month");
	await shot(page, "reports-groups");
	await click(page.getByRole("link", { name: "research" }));
	await page.getByText(/^research: \$/).waitFor();
	const shown = await until(async () => ((rows) => rows.length === 4 && rows)(await main(page).locator("tbody tr").allTextContents()), "its four leases");
	assert.ok(shown[0].includes("Ocean") && shown[1].includes("Genome") && shown[2].includes("Weather"), shown.join("\n"));
	assert.ok(clicks <= 3, `${clicks} clicks`);
	await isAccessible(page, "the costs of a team by lease");
	await page.getByLabel("By", { exact: true }).selectOption("owner");
	await page.waitForURL(/by=owner/);
	await page.getByRole("columnheader", { name: "Leases" }).waitFor();
	await shot(page, "reports");
	await main(page).locator("tbody a").first().click();
	await page.getByRole("link", { name: "Show all" }).waitFor();
	await loaded(page);
	await main(page).locator("tbody a").first().click();
	await page.getByRole("heading", { name: "Status" }).waitFor();
	assert.equal(await main(page).getByRole("heading", { name: "Service accounts" }).count(), 0);
});
