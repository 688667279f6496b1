// SPDX-License-Identifier: Apache-2.0
// Pages draw themselves anew while somebody is at them. Nothing of what he does may be lost by that: not a click, nor what he opened or typed.
import { assert, gone, loaded, press, shared, test, until } from "./rig.mjs";

const world = shared({ args: ["--dev"], env: { LEASEHOLD_SIM_SANDBOXES: "20", LEASEHOLD_SIM_ACCOUNTS: "3" } });
const main = (page) => page.locator("main");
const seconds = (name) => new RegExp(`${name}[^/]*$`);

// Every answer to a GET of this address is counted.
function counting(page, pattern) {
	let count = 0;
	page.on("response", (r) => r.request().method() === "GET" && pattern.test(r.url()) && count++);
	return (more) => {
		const from = count;
		return until(() => count >= from + more, `${more} more answers to ${pattern}`);
	};
}

async function account() {
	const { result } = await world.call("GET", "/api/accounts", undefined, { as: "Admin" });
	return result.find((a) => a.phase === "Available").awsAccountId;
}
const hold = (id, reason) => world.call("POST", "/v1/ops/holds", { account: id, reason, hours: 48 });

// Timers tick twenty times as fast, and are counted.
const hurry = (page) => page.addInitScript(() => {
	const every = window.setInterval;
	window.ticks = 0;
	window.setInterval = (run, ms) => every(() => (window.ticks++, run()), ms / 20);
});
const ticks = (page) => page.evaluate(() => window.ticks);
async function timeGoesBy(page) {
	const from = await ticks(page);
	await until(async () => (await ticks(page)) > from + 40, "time goes by");
}

test("a click during which the page would be drawn anew is a click", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/sandboxes" }), answers = counting(page, seconds("/api/accounts"));
	await loaded(page);
	await hurry(page);
	await page.goto(`${world.url}/accounts`);
	const link = main(page).locator(".tile a").first();
	await link.waitFor();
	await loaded(page);
	const box = await until(() => link.boundingBox(), "it has its place");
	await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
	await page.mouse.down();
	await answers(1);
	await timeGoesBy(page);
	await page.mouse.up();
	await page.waitForURL(/\/accounts\/\d{12}$/);
});

test("what is opened stays open when the page has news", async (t) => {
	const id = await account(), { id: first } = await hold(id, "the auditors");
	await world.call("POST", `/v1/ops/holds/${encodeURIComponent(first)}/release`, { reason: "they have gone" });
	const page = await world.open(t, { as: "Admin", path: `/accounts/${id}` });
	await page.getByText("Past holds").click();
	await page.getByRole("cell", { name: "they have gone" }).waitFor();
	await hold(id, "the electricians");
	await page.getByRole("row", { name: /the electricians/ }).waitFor();
	assert.ok(await page.locator("details", { hasText: "Past holds" }).evaluate((e) => e.open));
});

test("an answer that comes late takes nothing off the page", async (t) => {
	const id = await account(), page = await world.open(t, { as: "Admin", path: `/accounts/${id}` });
	await page.locator(".explain").waitFor();
	let letGo, held = null;
	const gate = new Promise((done) => (letGo = done));
	await page.route(seconds(`/v1/ops/events`), async (route) => {
		held ??= route.request();
		if (held === route.request()) await gate;
		await route.continue();
	});
	await hold(id, "the first");
	await until(() => held, "the page reads the account again");
	await press(page, "Place hold");
	await page.getByRole("dialog").getByLabel("Reason").fill("the second");
	await page.getByRole("dialog").getByRole("button", { name: "Hold", exact: true }).click();
	await page.getByRole("row", { name: /the second/ }).waitFor();
	const late = page.waitForResponse((r) => r.request() === held);
	letGo();
	await (await late).finished();
	await loaded(page);
	assert.equal(await page.locator(".explain").count(), 1);
});

test("what is typed while the answer is on its way is searched for too", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/sandboxes" }), field = page.getByLabel("Search", { exact: true });
	await field.click();
	let letGo;
	const gate = new Promise((done) => (letGo = done)), asked = page.waitForRequest(/\/v1\/admin\/sandboxes\?.*q=s(&|$)/);
	await page.route(/\/v1\/admin\/sandboxes\?.*q=s(&|$)/, async (route) => {
		await gate;
		await route.continue();
	});
	await page.keyboard.type("s");
	await asked;
	await page.keyboard.type("andbox-00001");
	letGo();
	await page.waitForURL(/q=sandbox-00001$/);
	await loaded(page);
	assert.equal(await field.inputValue(), "sandbox-00001");
	assert.ok(await field.evaluate((e) => e === document.activeElement), "the field keeps the focus");
});

// The server is away until the answer is called.
async function away(page) {
	const url = (u) => !u.pathname.startsWith("/assets/");
	await page.route(url, (route) => route.abort("connectionrefused"));
	await page.evaluate(() => import(document.querySelector("script[type=module]").src.replace("app.js", "api.js")).then((api) => api.get("/v1/admin/stats").catch(() => {})));
	await page.locator("#banner").getByText("The server cannot be reached").waitFor();
	return async () => {
		await page.unroute(url);
		await page.locator("#banner").waitFor({ state: "hidden" });
		await loaded(page);
	};
}

const unsaved = [
	["/operations/configuration", "Text of Lease policy", "# in the middle of a sentence", { as: "Admin" }],
	["/templates/new", "Description", "For the afternoon", { as: "Manager" }],
	["/sandboxes/class", "Students", "ada@school.example", { as: "Admin" }],
];
for (const [path, label, text, options] of unsaved)
	test(`a server that was away takes nothing that was typed: ${path}`, async (t) => {
		const page = await world.open(t, { path, allow: [/ERR_CONNECTION_REFUSED/], ...options });
		await page.getByLabel(label).fill(text);
		const back = await away(page);
		await back();
		assert.equal(await page.getByLabel(label).inputValue(), text);
		await page.getByRole("link", { name: "Overview" }).click();
		await page.getByRole("heading", { name: "Overview" }).waitFor();
		const again = await away(page);
		await page.evaluate(() => (document.querySelector("main > *").id = "as-it-was"));
		await again();
		await gone(page.locator("#as-it-was"), "a page that nothing was typed into is built again");
	});

test("a form that was changed by a button counts as one that was typed into", async (t) => {
	const page = await world.open(t, { as: "Manager", path: "/templates/new", allow: [/ERR_CONNECTION_REFUSED/] });
	await page.getByRole("button", { name: "Add a budget threshold" }).click();
	await page.getByLabel("When spend reaches ($)").waitFor();
	const back = await away(page);
	await back();
	assert.equal(await page.getByLabel("When spend reaches ($)").count(), 1);
});

for (const [path, address, wanted] of [["/accounts", /\/api\/accounts\?/, ".tile"], ["/operations/queues", /\/v1\/ops\/queues$/, "tbody tr"]])
	test(`a page that is slower than its interval shows what it gets, and asks for no more meanwhile: ${path}`, async (t) => {
		const page = await world.open(t, { as: "Admin", path: "/sandboxes" }), held = [];
		await loaded(page);
		await hurry(page);
		await page.route(address, (route) => new Promise((go) => held.push(go)).then(() => route.continue()));
		await page.goto(world.url + path);
		await until(() => held.length === 2, "it is read, and read again");
		await timeGoesBy(page);
		assert.equal(held.length, 2, "the last call has not ended");
		held[0]();
		await main(page).locator(wanted).first().waitFor();
		held[1]();
	});
