// SPDX-License-Identifier: Apache-2.0
// Logs that grow while they are read: the page keeps what it shows and no more, and joins no lines that others were between.
import { assert, same, shared, test, until } from "./rig.mjs";
import { ENV, instancesOf } from "./instances-rig.mjs";

const world = shared({ args: ["--dev"], env: ENV }), instances = instancesOf(world);

test("the log of events remembers only what it shows, and shows nothing twice", async (t) => {
	const page = await world.open(t, { as: "Admin" });
	const event = (i) => ({ id: `event-${i}`, time: new Date().toISOString(), "detail-type": "SandboxQuarantined", subject: `sandbox/${i}`, actor: "", detail: {} });
	const stream = (...numbers) => numbers.map((i) => `id: ${i}\ndata: ${JSON.stringify(event(i))}\n\n`).join("");
	const parts = [stream(...Array.from({ length: 301 }, (_, i) => i)), stream(300, 0)];
	await page.route(/\/v1\/ops\/events\/stream/, (route) => route.fulfill({ contentType: "text/event-stream", body: parts.shift() ?? "" }));
	await page.goto(`${world.url}/operations/events`);
	const shown = () => page.locator("ol.events > li").evaluateAll((rows) => rows.map((row) => row.dataset.event));
	await until(async () => (await shown()).includes("event-300"), "the last one is there");
	await until(async () => (await shown())[0] === "event-0", "the first one, which had left the list, is there again");
	const ids = await shown();
	assert.deepEqual([ids.length, new Set(ids).size], [300, 300]);
});

test("log lines after a gap are not joined to those before it", async (t) => {
	await instances.active("tenant-oak", "Oak");
	const page = await world.open(t, { as: "Admin", path: "/instances/tenant-oak" });
	const line = (i) => ({ timestamp: new Date(1700000000000 + 1000 * i).toISOString(), taskId: "task-1", message: `line ${i}` });
	let first = 1, tokens = [];
	await page.route(/\/logs\?/, (route) => {
		const token = new URL(route.request().url()).searchParams.get("nextToken"), from = token ? Number(token) - 3 : first;
		tokens.push(token);
		return route.fulfill({ json: { logs: [from, from + 1, from + 2].map(line), nextToken: String(from) } });
	});
	const lines = () => page.locator(".log li > :last-child").allTextContents();
	await page.getByText("Logs", { exact: true }).click();
	await same(lines, ["line 1", "line 2", "line 3"], "what is there at first");
	first = 3;
	await same(lines, ["line 1", "line 2", "line 3", "line 4", "line 5"], "what is joined");
	first = 20;
	await same(lines, ["line 20", "line 21", "line 22"], "what is not");
	await page.getByRole("button", { name: "Older lines" }).click();
	await same(lines, ["line 17", "line 18", "line 19", "line 20", "line 21", "line 22"], "what was missed can be read");
	assert.equal(tokens.filter(Boolean).join(), "20");
});
