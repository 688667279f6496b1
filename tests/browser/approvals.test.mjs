// SPDX-License-Identifier: Apache-2.0
// Deciding about requests: nobody is approved or denied who was not chosen for it.
import { assert, people, press, same, shared, test, until } from "./rig.mjs";

const world = shared({ args: ["--dev"], env: { LEASEHOLD_SIM_SANDBOXES: "0", LEASEHOLD_SIM_ACCOUNTS: "4" } });

const main = (page) => page.locator("main");
const boxes = (page) => main(page).getByLabel(/^Select .* for /);
const pending = async () => (await world.call("GET", "/api/leases?status=PendingApproval&pageSize=100", undefined, { as: "Admin" })).result;
const review = (l, action) => world.call("POST", `/api/leases/${l.leaseId}/review`, { action, reason: "a test's" }, { as: "Admin" });

// Each test has a person of its own: how many leases one may have is limited.
async function ask(as, ...names) {
	for (const l of await pending()) await review(l, "Deny");
	for (const name of names) {
		const made = await world.call("POST", "/api/leaseTemplates", { name, requiresApproval: true, visibility: "PUBLIC", maxSpend: 40, leaseDurationInHours: 160 }, { as: "Manager" });
		await world.call("POST", "/api/leases", { leaseTemplateUuid: made.uuid }, { as });
	}
}

const decided = (page, handler) => page.route(/\/review$/, handler);

test("who is left after a decision is not chosen: a second click decides about nobody", async (t) => {
	await ask("User", "First", "Second", "Third");
	const page = await world.open(t, { as: "Manager", path: "/approvals" });
	for (const name of ["First", "Second"]) await main(page).getByLabel(`Select ${name} for ${people.User}`).check();
	await main(page).getByRole("button", { name: "Approve 2" }).click();
	await same(() => boxes(page).count(), 1, "one is left");
	assert.equal(await boxes(page).isChecked(), false, "it is not chosen");
	await press(page, "Approve");
	await page.getByText("Select the requests first.").waitFor();
	assert.deepEqual((await pending()).map((l) => l.originalLeaseTemplateName), ["Third"]);
	await page.reload();
	await until(() => boxes(page).isChecked(), "who is alone when the page is opened is chosen");
});

test("who is left when others decide is not chosen for the reason that was typed", async (t) => {
	await ask("Manager", "Mine", "Theirs");
	const page = await world.open(t, { as: "Admin", path: "/approvals" });
	await main(page).getByLabel(`Select Mine for ${people.Manager}`).check();
	await page.getByLabel("Reason").fill("Not for this");
	await review((await pending()).find((l) => l.originalLeaseTemplateName === "Mine"), "Approve");
	await same(() => boxes(page).count(), 1, "one is left");
	await press(page, "Deny");
	await page.getByText("Select the requests first.").waitFor();
	assert.deepEqual((await pending()).map((l) => l.originalLeaseTemplateName), ["Theirs"]);
	assert.equal(await page.getByLabel("Reason").inputValue(), "Not for this");
});

test("while one decision is under way there is no other, and what failed keeps its reason", async (t) => {
	await ask("Admin", "Only");
	const page = await world.open(t, { as: "Manager", path: "/approvals", allow: [/status of 503/] }), sent = [];
	let letGo;
	const gate = new Promise((done) => (letGo = done));
	await decided(page, async (route) => {
		sent.push(route.request().postDataJSON().action);
		await gate;
		await route.fulfill({ status: 503, json: { error: { code: "UNAVAILABLE", message: "the store is away" } } });
	});
	await until(() => boxes(page).isChecked(), "it is chosen");
	await page.getByLabel("Reason").fill("Welcome");
	await press(page, "Approve");
	await until(() => sent.length, "the approval is under way");
	await press(page, "Deny");
	letGo();
	await page.getByText(/could not be done: the store is away/).waitFor();
	await until(() => page.evaluate(() => !document.querySelector('main .decide [aria-busy="true"]')), "both buttons are at rest");
	assert.deepEqual(sent, ["Approve"]);
	assert.equal(await page.getByLabel("Reason").inputValue(), "Welcome");
});
