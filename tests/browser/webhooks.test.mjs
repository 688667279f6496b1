// SPDX-License-Identifier: Apache-2.0
// What the test of a webhook says: never more than is known.
import { press, shared, test } from "./rig.mjs";

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
