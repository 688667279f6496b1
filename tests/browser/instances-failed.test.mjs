// SPDX-License-Identifier: Apache-2.0
// Instances that cannot be made. A minute of the simulated world is a second here, so that tries are soon over.
import { isAccessible, shared, shot, test, until } from "./rig.mjs";
import { ENV, NO_TASKS, badge, confirm, instancesOf, offers, press } from "./instances-rig.mjs";

const world = shared({ args: ["--dev"], env: { ...ENV, LEASEHOLD_TIME_SCALE: "60", LEASEHOLD_ALARM_INTERVAL_SEC: "1" } }), instances = instancesOf(world);

test("why it failed and what to do, and it is provisioned again", async (t) => {
	await instances.faults(NO_TASKS);
	await instances.create("tenant-elm", "Elm");
	await instances.is("tenant-elm", "FAILED");
	const page = await world.open(t, { as: "Admin", path: "/instances/tenant-elm" });
	await page.getByText("PROV-008 at the step workers").first().waitFor();
	await page.getByText("It could not be provisioned.").waitFor();
	await page.locator(".explain .note.bad").getByText("PROV-008").first().waitFor();
	await page.getByText("When the cause is gone", { exact: false }).waitFor();
	await offers(page, ["Provision again", "Delete"]);
	await isAccessible(page, "a failed instance");
	await shot(page, "instance-failed");
	await until(async () => (await world.call("GET", "/v1/ops/alarms")).alarms.some((a) => a.rule === "instance-failed"), "the alarm is there");
	await page.goto(`${world.url}/`);
	await page.getByRole("link", { name: /^Instance failed/ }).click();
	await page.waitForURL(/\/instances\/tenant-elm$/);
	await instances.faults();
	await press(page, "Provision again");
	await confirm(page, "Provision again");
	await badge(page, "Active");
});
