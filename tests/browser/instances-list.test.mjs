// SPDX-License-Identifier: Apache-2.0
// All instances: the list, the overview, the drawing of the states, and all of it on a phone.
import { assert, fits, gone, isAccessible, same, shared, shot, test } from "./rig.mjs";
import { ENV, instancesOf, path } from "./instances-rig.mjs";

const world = shared({ args: ["--dev"], env: ENV }), instances = instancesOf(world);

test("the list is filtered by state and tenant, the overview counts them", async (t) => {
	await instances.active("tenant-gorse", "Gorse");
	await instances.active("tenant-hazel", "Hazel");
	await world.call("PUT", `${path("tenant-hazel")}/status`, { action: "suspend", reason: "unpaid" });
	await instances.is("tenant-hazel", "SUSPENDED");
	const page = await world.open(t, { as: "Admin" });
	await page.getByRole("img", { name: /^Instances by status: .*Suspended 1/ }).waitFor();
	await page.getByRole("link", { name: "Suspended", exact: true }).click();
	await page.getByRole("row", { name: /tenant-hazel Hazel Suspended none; 2 when it runs/ }).waitFor();
	await gone(page.getByRole("link", { name: "tenant-gorse" }));
	await page.getByLabel("State").selectOption("");
	await page.getByRole("row", { name: /tenant-gorse Gorse Active .*2 of 2 Standard/ }).waitFor();
	await isAccessible(page, "the list of instances");
	await shot(page, "instances");
	await page.getByRole("searchbox", { name: "Tenant" }).fill("tenant-gorse");
	await page.getByRole("searchbox", { name: "Tenant" }).press("Enter");
	await page.getByText("1 instance", { exact: true }).waitFor();
	await page.getByRole("searchbox", { name: "Tenant" }).fill("tenant-none");
	await page.getByRole("searchbox", { name: "Tenant" }).press("Enter");
	await page.getByText("No matching instances").waitFor();
});

test("the drawing and the table have every change that the server knows", async (t) => {
	const { transitions } = await world.call("GET", "/v1/ops/instances/states");
	const page = await world.open(t, { as: "Admin", path: "/instances/states?state=ACTIVE" });
	await page.getByRole("img", { name: /^13 states and \d+ transitions/ }).waitFor();
	await same(() => page.locator("tbody tr").count(), transitions.length, "a row for each");
	await same(() => page.locator(".state-arrow.lit").count(), 5, "from ACTIVE: scale, suspend, park, delete, and it may break");
	await isAccessible(page, "the states");
	await shot(page, "instance-states");
});

test("on a phone all of it fits, in the dark too", async (t) => {
	const page = await world.open(t, { as: "operator", path: "/instances", colorScheme: "dark", viewport: { width: 390, height: 844 } });
	await instances.active("tenant-iris", "Iris");
	for (const [place, name] of [["/instances", "instances"], ["/instances/tenant-iris", "instance"], ["/instances/states", "instance-states"]]) {
		await page.goto(world.url + place);
		await page.locator("main h1").waitFor();
		await fits(page, place);
		await isAccessible(page, `${place} on a phone`);
		await shot(page, `phone-${name}`);
	}
});

test("only administrators see them", async (t) => {
	const page = await world.open(t, { as: "Manager", path: "/instances" });
	await page.getByText("Not allowed").waitFor();
	assert.equal(await page.getByRole("link", { name: "Instances" }).count(), 0);
});
