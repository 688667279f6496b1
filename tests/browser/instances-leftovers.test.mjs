// SPDX-License-Identifier: Apache-2.0
// An instance that could not be made, nor taken back. A minute of the simulated world is a second here, so that tries are soon over.
import { isAccessible, shared, shot, test, until } from "./rig.mjs";
import { ENV, NO_TASKS, badge, confirm, instancesOf, press } from "./instances-rig.mjs";

const world = shared({ args: ["--dev"], env: { ...ENV, LEASEHOLD_TIME_SCALE: "60" } }), instances = instancesOf(world);

test("what a rollback left waits for a person, and is cleared by deleting", async (t) => {
	await instances.faults(NO_TASKS, { fault: "outage", call: "delete-resource", resource: "storage" });
	await instances.create("tenant-fir", "Fir");
	await until(async () => (await instances.show("tenant-fir")).operation?.parked, "its rollback is parked", 120000);
	const page = await world.open(t, { as: "Admin", path: "/instances/tenant-fir" });
	await page.getByText("May be left behind").waitFor();
	await page.getByText("It is waiting for a person: fix the cause").waitFor();
	await isAccessible(page, "an instance with leftovers");
	await shot(page, "instance-leftovers");
	await instances.faults();
	await press(page, "Delete");
	await confirm(page, "Delete");
	await badge(page, "Deprovisioned");
});

