// SPDX-License-Identifier: Apache-2.0
// Lists that are longer than what is read of them, and what is found by its id alone: nothing is told as all that is not.
import { assert, people, same, shared, test } from "./rig.mjs";

const world = shared({ args: ["--dev"], env: { LEASEHOLD_SIM_SANDBOXES: "0", LEASEHOLD_SIM_ACCOUNTS: "4", LEASEHOLD_SIM_ENTRY_ACCOUNTS: "2" } });

const main = (page) => page.locator("main");

let shownLease;
const lease = () => (shownLease ??= world.call("GET", "/api/leaseTemplates", undefined, { as: "Admin" })
	.then(({ result }) => world.call("POST", "/api/leases", { leaseTemplateUuid: result.find((x) => x.name === "Project").uuid, userEmail: people.User }, { as: "Admin" })));

// What the server answers, changed.
const changed = (page, url, change) => page.route(url, async (route) => {
	const response = await route.fetch(), body = await response.json();
	await route.fulfill({ response, json: change(body, new URL(route.request().url())) ?? body });
});

test("who sees no events finds a lease by its uuid too", async (t) => {
	const { uuid } = await lease();
	for (const as of ["Manager", "User"]) {
		const page = await world.open(t, { as, path: `/leases/${uuid}` });
		await page.getByRole("heading", { name: "Project", level: 1 }).waitFor();
		await page.goto(`${world.url}/leases/${uuid.replace(/^.{8}/, "00000000")}`);
		await page.getByText("is no longer on record").waitFor();
	}
});
