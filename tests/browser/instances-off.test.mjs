// SPDX-License-Identifier: Apache-2.0
// Without a driver there is nothing of instances in the console.
import { assert, loaded, shared, test } from "./rig.mjs";

const world = shared({ env: { LEASEHOLD_SIM_SANDBOXES: "4" } });

test("without instances neither the menu nor the overview speaks of them", async (t) => {
	const page = await world.open(t, { as: "Admin" });
	await page.getByRole("heading", { name: "Accounts" }).waitFor();
	await loaded(page);
	assert.equal(await page.getByText("Instances").count(), 0);
});
