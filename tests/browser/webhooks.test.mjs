// SPDX-License-Identifier: Apache-2.0
// What the test of a webhook says: never more than is known; and its secret, which is told once.
import { press, shared, test, until } from "./rig.mjs";

const world = shared({ args: ["--dev"], env: { LEASEHOLD_SIM_SANDBOXES: "0", LEASEHOLD_SIM_ACCOUNTS: "0" } });

// One webhook, whose test is started. answers(queue, webhook): the lanes of a queue when it is read, and the cursor of what is left of them.
async function testing(t, answers) {
	const hook = await world.call("POST", "/v1/ops/webhooks", { url: "http://127.0.0.1:9/", filter: "Lease*" });
	t.after(() => world.call("DELETE", `/v1/ops/webhooks/${hook.id}`));
	const page = await world.open(t, { as: "Admin", path: "/operations/webhooks" });
	await page.route(/\/v1\/ops\/webhooks\/[^/]+\/test$/, (route) => route.fulfill({ status: 202, json: {} }));
	await page.route(/\/v1\/ops\/queues\/[^/]+\/lanes/, (route) => {
		const queue = /queues\/([^/]+)\//.exec(route.request().url())[1], [lanes, cursor = null] = answers(queue, hook);
		return route.fulfill({ json: { lanes, count: lanes.length, cursor } });
	});
	await press(page, "Test");
	return page;
}
const told = (page, text) => page.locator("#toasts").getByText(text).waitFor();

test("a test that goes from one queue to the next while they are read is not taken for one that has arrived", async (t) => {
	let reads = 0;
	const page = await testing(t, (queue, { id }) => {
		const is = reads++ ? "webhook-out" : "webhook"; // it is sent on as soon as anything was read
		return [queue === is ? [{ subject: `webhook/${id}`, target: queue === "webhook-out" ? id : "", last_error: queue === "webhook-out" ? "the receiver is being repaired" : null }] : []];
	});
	await told(page, "The test did not arrive: the receiver is being repaired");
});

test("while not all that waits was looked through, it is unknown whether a test has arrived", async (t) => {
	const page = await testing(t, (queue) => [[], queue === "webhook-out" ? "more" : null]);
	await told(page, "It is unknown whether the test arrived");
});

test("a dialog whose call is under way cannot be cancelled: a secret that is told only once would be lost", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/operations/webhooks" }), dialog = page.getByRole("dialog");
	let letGo, isSent = false;
	const gate = new Promise((done) => (letGo = done));
	await page.route(/\/v1\/ops\/webhooks$/, async (route) => {
		if (route.request().method() === "POST") {
			isSent = true;
			await gate;
		}
		await route.continue();
	});
	await press(page, "New webhook");
	await dialog.getByLabel("URL").fill("http://127.0.0.1:9/");
	await dialog.getByRole("button", { name: "Create" }).click();
	await until(() => isSent, "it is being made");
	for (let i = 0; i < 3; i++) await page.keyboard.press("Escape");
	await dialog.getByRole("button", { name: "Cancel" }).click();
	letGo();
	await dialog.getByText("Save its secret now").waitFor();
	for (let i = 0; i < 3; i++) await page.keyboard.press("Escape");
	await until(() => dialog.locator(".secret code").isVisible(), "the secret is there until it was saved");
	await dialog.getByRole("button", { name: "I have saved it" }).click();
	await dialog.waitFor({ state: "detached" });
});
