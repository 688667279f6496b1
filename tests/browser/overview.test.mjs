// SPDX-License-Identifier: Apache-2.0
// The overview, for those who run it and for those who lend.
import { assert, isAccessible, people, shared, shot, test, until } from "./rig.mjs";

const world = shared({ env: { LEASEHOLD_SIM_SANDBOXES: "40", LEASEHOLD_LOW_WATER: "10" } });
const figure = (page, name) => page.locator(".figure", { hasText: name }).locator(".figure-value");

async function template(name, more = {}) {
	return world.call("POST", "/api/leaseTemplates", { name, requiresApproval: true, visibility: "PUBLIC", maxSpend: 50, leaseDurationInHours: 24, ...more }, { as: "Manager" });
}

test("an admin sees the pool, the claims and the events as they happen", async (t) => {
	for (let i = 0; i < 12; i++) await world.claim(`student-${i}`);
	const page = await world.open(t, { as: "Admin" });
	await page.getByRole("heading", { name: "Overview" }).waitFor();
	await page.getByRole("img", { name: /The pool by state: Available 28, Allocated 12.*low-water mark 10/ }).waitFor();
	assert.equal(await figure(page, "Free sandboxes").textContent(), "28");
	await page.locator("#events .live.on").waitFor();
	await world.claim("student-live");
	await page.locator("#events li", { hasText: "student-live" }).first().waitFor();
	await until(async () => (await figure(page, "Free sandboxes").textContent()) === "27", "the figures follow", 9000);
	await isAccessible(page, "the overview");
	await shot(page, "overview-admin");
});

test("an operator sees the machine and no leases of his own", async (t) => {
	const page = await world.open(t, { as: "operator", colorScheme: "dark" });
	await page.getByRole("heading", { name: "Latest events" }).waitFor();
	await figure(page, "Free sandboxes").waitFor();
	assert.equal(await page.getByRole("heading", { name: "My leases" }).count(), 0);
	await isAccessible(page, "the overview in dark");
	await shot(page, "overview-operator-dark");
});

test("a manager sees what waits for approval, a user his own lease", async (t) => {
	const made = await template("Data lab");
	await world.call("POST", "/api/leases", { leaseTemplateUuid: made.uuid, comments: "For the course on Friday" }, { as: "User" });
	const manager = await world.open(t, { as: "Manager" });
	await manager.getByRole("row", { name: /user@example.com Data lab For the course on Friday/ }).waitFor();
	assert.equal(await manager.getByRole("heading", { name: "Sandboxes" }).count(), 0);
	await shot(manager, "overview-manager");
	const user = await world.open(t, { as: "User" });
	await user.getByRole("row", { name: /Data lab Pending approval/ }).waitFor();
	assert.equal(await user.getByRole("heading", { name: "Waiting for approval" }).count(), 0);
	await isAccessible(user, "a user's overview");
	await shot(user, "overview-user");
});

test("it can be read on a phone", async (t) => {
	const page = await world.open(t, { as: "Admin", viewport: { width: 390, height: 844 } });
	await figure(page, "Free sandboxes").waitFor();
	const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
	assert.ok(wide <= 0, `${wide} px too wide`);
	await page.getByRole("button", { name: "Menu" }).click();
	await page.getByRole("link", { name: "Sandboxes", exact: true }).waitFor();
	await shot(page, "overview-phone");
});
