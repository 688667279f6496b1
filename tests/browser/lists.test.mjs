// SPDX-License-Identifier: Apache-2.0
// Lists that are longer than what is read of them, and what is found by its id alone: nothing is told as all that is not.
import { assert, people, same, shared, shot, test, until } from "./rig.mjs";

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

const many = (one, count) => Array.from({ length: count }, (_, i) => ({ ...one, uuid: one.uuid.replace(/.{4}$/, String(i).padStart(4, "0")) }));

test("operations at a glance counts all that is there, not what it shows", async (t) => {
	const page = await world.open(t, { as: "Admin" });
	await changed(page, /\/v1\/ops\/overview$/, (body) => ({ ...body, kernel: { ...body.kernel, sagas_running: 40, sagas_parked: 12 } }));
	await changed(page, /\/v1\/ops\/sagas\?.*state=parked/, () => ({ sagas: [{ id: "account-follow/1/1", kind: "account-follow", subject: "account/1", state: "parked", reason: "its tries are used up", steps: [] }], count: 1, cursor: "more" }));
	await changed(page, /\/v1\/ops\/holds\?/, () => ({ holds: [1, 2].map((id) => ({ id, account: "1", reason: "x", due_at: null })), count: 2, cursor: "more" }));
	await page.goto(`${world.url}/operations`);
	await page.getByRole("link", { name: "12 parked sagas" }).waitFor();
	await page.getByRole("link", { name: "2 or more holds" }).waitFor();
	await page.locator(".figure", { hasText: "Running sagas" }).getByText("40", { exact: true }).waitFor();
});

test("accounts that are not registered are read page by page, and the board is there without them", async (t) => {
	const page = await world.open(t, { as: "Admin", allow: [/status of 503/] }), card = page.getByRole("region", { name: "Not registered" });
	const entry = (from) => Array.from({ length: 20 }, (_, i) => ({ Id: String(900000000000 + from + i), Name: `new-${from + i}`, Email: `new-${from + i}@example.com` }));
	let pages = 3;
	await page.route(/\/api\/accounts\/unregistered/, (route) => {
		const at = Number(new URL(route.request().url()).searchParams.get("pageIdentifier") ?? 0);
		return route.fulfill({ json: { status: "success", data: { result: entry(20 * at), nextPageIdentifier: at + 1 < pages ? String(at + 1) : null } } });
	});
	await page.goto(`${world.url}/accounts`);
	await card.getByText("60 in the OU Entry").waitFor();
	await same(() => card.locator("tbody tr").count(), 60, "all of them");
	pages = 100;
	await card.getByText("1,000 among the first 1,000 in the OU Entry").waitFor();
	await page.unroute(/\/api\/accounts\/unregistered/);
	await page.route(/\/api\/accounts\/unregistered/, (route) => route.fulfill({ status: 503, json: { status: "error", message: "the organization does not answer" } }));
	await page.reload();
	await card.getByText("the organization does not answer").waitFor();
	await main(page).locator(".tile").first().waitFor();
});

test("leases that are found are told as the first, and as found among the newest", async (t) => {
	const one = await lease(), page = await world.open(t, { as: "Manager" });
	await changed(page, /\/api\/leases\?/, (body) => ({ ...body, data: { result: many(one, 2000), nextPageIdentifier: "more" } }));
	await page.goto(`${world.url}/leases?template=${one.originalLeaseTemplateUuid}`);
	await page.getByText("These are the first 200. Only the newest 2,000 leases were searched.").waitFor();
	await shot(page, "leases-cut");
	await page.getByLabel("Search everything").fill("nobody has this");
	await page.keyboard.press("Enter");
	await page.getByText("Nothing matches").waitFor();
	await page.getByText("Only the first 2,000 were searched of: leases.").waitFor();
});

test("an empty page of leases leads to the next one", async (t) => {
	const page = await world.open(t, { as: "Manager" });
	await changed(page, /\/api\/leases\?/, (body) => ({ ...body, data: { result: [], nextPageIdentifier: "more" } }));
	await page.goto(`${world.url}/leases?status=Active`);
	await page.getByText("No matches so far").waitFor();
	assert.match(await main(page).getByRole("link", { name: "Next" }).getAttribute("href"), /cursor=more/);
});

test("the line says how many are in it", async (t) => {
	const one = { ...(await lease()), status: "PendingApproval", queuedSince: new Date().toISOString(), queuePosition: 1 }, page = await world.open(t, { as: "Manager" });
	await changed(page, /\/api\/leases\?.*status=InLine/, (body) => ({ ...body, data: { result: many(one, 30), nextPageIdentifier: null } }));
	await changed(page, /\/api\/leases\/[^/?]+$/, (body) => ({ ...body, data: one }));
	await page.goto(`${world.url}/approvals`);
	await page.getByRole("region", { name: "Approved, waiting in line" }).getByText("25 of 30").waitFor();
});

test("money, counts and durations are sorted by what they are, not by how they are written", async (t) => {
	const page = await world.open(t, { as: "Manager" });
	const rows = [["a", 1200, 12], ["b", 40, 72], ["c", null, null], ["d", 999.5, 0.5], ["e", 12000, 100]];
	await changed(page, /\/api\/leaseTemplates\?/, (body) => ({ ...body, data: { nextPageIdentifier: null,
		result: rows.map(([name, maxSpend, leaseDurationInHours]) => ({ ...body.data.result[0], uuid: name, name, maxSpend, leaseDurationInHours })) } }));
	await page.goto(`${world.url}/templates`);
	const names = () => main(page).locator("tbody td.lead").allTextContents().then((all) => all.join(""));
	for (const [column, up] of [["Budget", "bdaec"], ["Duration", "dabec"]]) {
		await main(page).getByRole("button", { name: column, exact: true }).click();
		await same(names, up, `${column}, the smallest first`);
		await main(page).getByRole("button", { name: column, exact: true }).click();
		await same(names, [...up].reverse().join(""), `${column}, the largest first`);
	}
});

test("events have their day, and the sentence below them counts those that are shown", async (t) => {
	const page = await world.open(t, { as: "Admin" });
	await changed(page, /\/v1\/ops\/events\?/, (body) => ({ ...body, cursor: "more", events: body.events.slice(0, 2).map((e) => ({ ...e, time: "2026-11-16T09:14:03.000Z" })) }));
	await page.goto(`${world.url}/operations/events`);
	const counts = (least) => until(() => page.evaluate((least) => {
		const shown = document.querySelectorAll(".event").length, said = document.querySelector(".pager")?.textContent;
		return shown >= least && said?.startsWith(`${shown} events on this page, routine ones left out`);
	}, least), `${least} or more events, counted`);
	await counts(2);
	assert.match(await page.locator(".event-time").last().textContent(), /1[567].*:03/);
	await page.getByText("live", { exact: true }).waitFor();
	const free = (await world.call("GET", "/api/accounts?status=Available", undefined, { as: "Admin" })).result[0];
	await world.call("POST", "/v1/ops/holds", { account: free.awsAccountId, reason: "For the workshop on Friday" });
	await counts(3);
});

test("an empty bar is empty, and what a lease may cost above its budget is said in a sentence", async (t) => {
	const one = { ...(await lease()), totalCostAccrued: 0, maxSpend: 50, estimatedSpend: 10, projectedSpend: 92.4, possibleOverrun: 10.27 }, page = await world.open(t, { as: "Manager" });
	await changed(page, /\/api\/leases\/[^/?]+$/, (body) => ({ ...body, data: one }));
	await page.goto(`${world.url}/leases/${one.uuid}`);
	await page.getByText("The lease ends when its known spend reaches the budget of $50.00. Bills come late: by then it may have spent up to $10.27 more.").waitFor();
	await same(() => page.getByRole("meter", { name: /^Spend/ }).locator(".fill").count(), 0, "nothing is drawn for nothing");
	one.totalCostAccrued = 25;
	await same(() => page.getByRole("meter", { name: /^Spend/ }).locator(".fill").count(), 1, "something is");
});

test("the tabs of operations are one row on a laptop", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/operations", viewport: { width: 1366, height: 768 } }), tabs = page.locator(".ops-tabs a");
	await page.locator(".ops-tabs").getByRole("link", { name: "World" }).waitFor();
	await same(() => tabs.evaluateAll((all) => new Set(all.map((a) => a.offsetTop)).size), 1, "their rows");
});
