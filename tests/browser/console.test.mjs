// SPDX-License-Identifier: Apache-2.0
// The shell, the way in, and the sandboxes' pages.
import { assert, isAccessible, people, shared, shot, test } from "./rig.mjs";

const world = shared({ env: { LEASEHOLD_SIM_SANDBOXES: "30" } });
const nav = (page) => page.locator("#nav a").allTextContents();

test("who has no token is asked to sign in", async (t) => {
	const page = await world.open(t);
	await page.getByRole("heading", { name: "Sign in to Leasehold" }).waitFor();
	assert.equal(await page.title(), "Sign in – Leasehold");
	await isAccessible(page, "the sign-in page");
	await shot(page, "sign-in");
});

test("an operator's token is good for sandboxes and operations, not for leases", async (t) => {
	const page = await world.open(t, { allow: [/status of 401/] });
	await page.getByText("Use a token instead").click();
	await page.getByLabel("Token").fill("wrong");
	await page.getByRole("button", { name: "Use this token" }).click();
	await page.getByText("This token is not good here").waitFor();
	await page.getByLabel("Token").fill(world.token("operator"));
	await page.getByRole("button", { name: "Use this token" }).click();
	await page.getByRole("heading", { name: "Overview" }).waitFor();
	assert.ok((await nav(page)).includes("Sandboxes"));
	assert.equal(await page.getByRole("heading", { name: "My leases" }).count(), 0);
});

test("a session's token is taken out of the address at once", async (t) => {
	const page = await world.open(t, { path: `/?token=${world.token("User")}` });
	await page.getByRole("heading", { name: "My leases" }).waitFor();
	assert.equal(page.url(), `${world.url}/`);
	assert.deepEqual(await nav(page), ["Overview", "Leases"]);
});

test("a page that the role does not include is not allowed", async (t) => {
	const page = await world.open(t, { as: "User", path: "/sandboxes" });
	await page.getByText("Not allowed").waitFor();
	await isAccessible(page, "a page that is not allowed");
	await shot(page, "not-allowed");
});
