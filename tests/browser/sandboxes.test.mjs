// SPDX-License-Identifier: Apache-2.0
// The pool: found, filtered, paged, looked at, acted on.
import { assert, fits, isAccessible, loaded, people, same, shared, shot, test, until } from "./rig.mjs";

const world = shared({ env: { LEASEHOLD_SIM_SANDBOXES: "230" } });
const rows = (page) => page.locator("tbody tr");
const allNames = async () => {
	const names = [];
	for (let cursor = ""; cursor !== null;) {
		const page = await world.call("GET", `/v1/admin/sandboxes?limit=100${cursor && `&cursor=${cursor}`}`);
		names.push(...page.sandboxes.map((s) => s.name));
		cursor = page.cursor;
	}
	return names;
};

test("the pool is shown page by page, and the way back works", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/sandboxes" });
	await until(async () => (await rows(page).count()) === 100, "a page of 100");
	const first = await rows(page).first().textContent(), seen = new Set(await rows(page).locator("td.lead").allTextContents());
	for (const wanted of [100, 30]) {
		await page.getByRole("link", { name: "Next" }).click();
		await until(async () => (await rows(page).count()) === wanted && !seen.has(await rows(page).locator("td.lead").first().textContent()), `a page of ${wanted}`);
		for (const name of await rows(page).locator("td.lead").allTextContents()) seen.add(name);
	}
	assert.deepEqual([...seen].sort(), (await allNames()).sort());
	await page.getByRole("button", { name: "Previous" }).click();
	await until(async () => (await rows(page).count()) === 100, "the page before");
	await page.getByRole("link", { name: "First page" }).click();
	await until(async () => (await rows(page).first().textContent()) === first, "the first page");
	await isAccessible(page, "the list of sandboxes");
	await shot(page, "sandboxes");
});

test("search finds by name, id and who holds it; states filter", async (t) => {
	const held = await world.claim("student-of-the-search");
	const page = await world.open(t, { as: "operator", path: "/sandboxes" });
	const search = page.getByLabel("Search", { exact: true });
	for (const text of ["OF-THE-search", held.sandbox_id, held.name]) {
		await search.fill(text);
		await page.waitForURL((url) => url.searchParams.get("q") === text);
		await loaded(page);
		await until(async () => ((found) => found.length === 1 && found[0].includes(held.sandbox_id))(await rows(page).allTextContents()), `one row for ${text}`);
		await until(() => search.evaluate((e) => e === document.activeElement), "the search keeps the focus");
	}
	await page.getByLabel("State").selectOption("available");
	await page.getByText("No matching sandboxes").waitFor();
	await search.fill("");
	await until(async () => (await rows(page).count()) === 100, "all available ones");
	assert.ok(page.url().endsWith("/sandboxes?status=available"), page.url());
});

test("one is set aside and released, with what happened", async (t) => {
	const [{ sandbox_id: id, name }] = (await world.call("GET", "/v1/admin/sandboxes?status=available&limit=1")).sandboxes;
	const page = await world.open(t, { as: "Admin", path: `/sandboxes/${id}` });
	await page.getByRole("heading", { name, level: 1 }).waitFor();
	await same(() => page.title(), `${name} – Leasehold`, "the title");
	await page.getByRole("button", { name: "Quarantine" }).click();
	const dialog = page.getByRole("dialog");
	await dialog.getByLabel("Reason (optional)").fill("a disk looks odd");
	await isAccessible(page, "the dialog");
	await shot(page, "sandbox-quarantine-dialog");
	await dialog.getByRole("button", { name: "Quarantine" }).click();
	await page.getByText("a disk looks odd").first().waitFor();
	await page.locator(".timeline").getByText(`by ${people.Admin}`).waitFor();
	for (const place of [".facts .badge", ".explain-body .badge"]) await same(() => page.locator(place).textContent(), "Stale", "its state has one name");
	await shot(page, "sandbox");
	await page.getByRole("button", { name: "Release" }).click();
	await page.getByRole("dialog").getByRole("button", { name: "Release" }).click();
	await page.getByText(`${name} is released.`).waitFor();
	await page.locator(".facts").getByText("Available").waitFor();
	await isAccessible(page, "one sandbox");
	assert.equal((await world.call("GET", `/v1/admin/sandboxes/${id}`)).status, "available");
});

test("deletions are paused and resumed, passes are run", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/sandboxes" });
	await page.getByRole("button", { name: "Pause deletions" }).click();
	await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
	await page.getByText("Deletions are paused: returned sandboxes wait").waitFor();
	assert.equal((await world.call("GET", "/v1/admin/jobs")).jobs.find((j) => j.name === "cleanup").paused, true);
	await page.getByRole("button", { name: "Resume deletions" }).click();
	await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
	await page.getByRole("button", { name: "Pause deletions" }).waitFor();
	for (const [label, done] of [["Sync now", /Synced \d/], ["Clean up now", /Deleted \d/], ["Expire now", /Ended \d/]]) {
		await page.getByRole("button", { name: label }).click();
		await page.getByRole("dialog").getByRole("button", { name: label }).click();
		await page.locator("#toasts").getByText(done).waitFor();
	}
});

test("one that somebody holds is deleted", async (t) => {
	const held = await world.claim("student-who-loses-it");
	const page = await world.open(t, { as: "Admin", path: `/sandboxes/${held.sandbox_id}` });
	await page.getByRole("button", { name: "Delete" }).click();
	await page.getByRole("dialog").getByText("student-who-loses-it holds it now and will lose it").waitFor();
	await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
	await page.locator(".facts").getByText("Pending deletion").waitFor();
	assert.equal((await world.call("GET", `/v1/admin/sandboxes/${held.sandbox_id}`)).status, "pending_deletion");
	await same(() => page.getByRole("button", { name: "Delete" }).count(), 0, "it can be deleted once");
});

test("the list can be read on a phone", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/sandboxes?q=sandbox-00001", viewport: { width: 390, height: 844 } });
	await until(async () => (await rows(page).count()) > 5, "rows");
	await fits(page, "the list");
	await isAccessible(page, "the list on a phone");
	await shot(page, "sandboxes-phone");
});

test("what is not there is said", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/sandboxes/no-such-one", allow: [/status of 404/] });
	await page.getByText("Nothing here", { exact: true }).waitFor();
});
