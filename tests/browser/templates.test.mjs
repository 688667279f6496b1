// SPDX-License-Identifier: Apache-2.0
// The editor of templates.
import { assert, isAccessible, shared, shot, test } from "./rig.mjs";

const world = shared({ args: ["--dev"], env: { LEASEHOLD_SIM_SANDBOXES: "0", LEASEHOLD_SIM_ACCOUNTS: "1" } });
const confirm = (page, name) => page.getByRole("dialog").getByRole("button", { name, exact: true }).click();

test("templates: made, corrected, changed, deleted", async (t) => {
	const page = await world.open(t, { as: "Manager", path: "/templates", allow: [/status of 400/] });
	await page.getByRole("link", { name: "Playground" }).waitFor();
	await isAccessible(page, "templates");
	await shot(page, "templates");
	await page.getByRole("link", { name: "New template" }).click();
	await page.getByRole("button", { name: "Add a budget threshold" }).click();
	await page.getByRole("button", { name: "Make template" }).click();
	await page.locator('[data-field="name"] .problem:not(:empty)').waitFor();
	await page.locator('[data-field="budgetThresholds.0.dollarsSpent"] .problem:not(:empty)').waitFor();
	await isAccessible(page, "a template with mistakes");
	await shot(page, "template-problems");
	await page.getByLabel("Name").fill("Workshop");
	await page.getByLabel("Description").fill("An afternoon with the whole class.");
	await page.getByLabel("Budget in dollars").fill("20");
	await page.getByLabel("Duration in hours").fill("48");
	await page.getByLabel("When so much is spent ($)").fill("15");
	await page.getByRole("button", { name: "Add a time threshold" }).click();
	await page.getByLabel("When so many hours are left").fill("4");
	await page.getByLabel("Then").last().selectOption("FREEZE_ACCOUNT");
	await shot(page, "template");
	await page.getByRole("button", { name: "Make template" }).click();
	await page.getByRole("link", { name: "Workshop" }).click();
	await page.getByLabel("A manager has to approve each request").uncheck();
	await page.getByRole("button", { name: "Remove" }).first().click();
	await page.getByRole("button", { name: "Save changes" }).click();
	await page.getByRole("row", { name: /Workshop.*at once/ }).waitFor();
	const kept = (await world.call("GET", "/api/leaseTemplates/Workshop", undefined, { as: "Manager" }));
	assert.deepEqual([kept.budgetThresholds ?? [], kept.durationThresholds], [[], [{ hoursRemaining: 4, action: "FREEZE_ACCOUNT" }]]);
	await page.getByRole("link", { name: "Workshop" }).click();
	await page.getByRole("button", { name: "Delete" }).click();
	await confirm(page, "Delete");
	await page.getByRole("link", { name: "Playground" }).waitFor();
	assert.equal(await page.getByRole("link", { name: "Workshop" }).count(), 0);
});
