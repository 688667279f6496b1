// SPDX-License-Identifier: Apache-2.0
// Every page of operations on a phone, in the dark, for who has an operator's token only.
import { fits, isAccessible, shared, shot, test, until } from "./rig.mjs";

const world = shared({ args: ["--dev"], env: { LEASEHOLD_SIM_SANDBOXES: "4", LEASEHOLD_SIM_ACCOUNTS: "4", LEASEHOLD_SINK_TRIES: "1" } });

const paths = ["", "/alarms", "/sagas", "/dead-letters", "/queues", "/timers", "/jobs", "/holds", "/events", "/webhooks", "/configuration", "/service-accounts", "/world"];

test("on a phone and in the dark every page fits and is accessible", async (t) => {
	// Nobody listens at port 9, so there is something in most lists.
	await world.call("POST", "/v1/ops/webhooks", { url: "http://127.0.0.1:9/board", filter: "SandboxQuarantined" });
	const { sandboxes } = await world.call("GET", "/v1/admin/sandboxes?limit=1");
	await world.call("POST", `/v1/admin/sandboxes/${sandboxes[0].sandbox_id}/quarantine`, { reason: "broken" });
	await world.call("PUT", "/v1/sim/faults", { faults: [{ fault: "outage", call: "grant" }] });
	await until(async () => (await world.call("GET", "/v1/ops/dead-letters")).count === 1, "a delivery is given up");
	const page = await world.open(t, { as: "operator", colorScheme: "dark", viewport: { width: 390, height: 844 } });
	for (const path of paths) {
		await page.goto(`${world.url}/operations${path}`);
		await page.locator("main h1").waitFor();
		await fits(page, `/operations${path}`);
		await isAccessible(page, `/operations${path} on a phone`);
		await shot(page, `phone-operations${path.replace("/", "-")}`);
	}
});
