// SPDX-License-Identifier: Apache-2.0
// What a teacher and a manager do by the dozen: thirty requests, a class of thirty, one that is broken, and finding one of them.
import { assert, fits, gone, isAccessible, loaded, people, same, shared, shot, test, until } from "./rig.mjs";

const world = shared({ args: ["--dev"], env: { LEASEHOLD_SIM_SANDBOXES: "33", LEASEHOLD_SIM_ACCOUNTS: "12" } });
const main = (page) => page.locator("main");
const dialog = (page) => page.getByRole("dialog");
const LONG = "a-very-long-name-of-a-student-that-goes-on-and-on-without-any-place-to-break@department-of-long-names.university.example.com";

// Clicks are counted: each task has a number that it may take.
function counting(page) {
	let clicks = 0;
	return { click: (locator) => (clicks++, locator.click()), count: () => clicks };
}

const ask = (made, comments) => world.call("POST", "/api/leases", { leaseTemplateUuid: made.uuid, comments }, { as: "User" });

const template = (fields) => world.call("POST", "/api/leaseTemplates", { requiresApproval: true, visibility: "PUBLIC", maxSpend: 40, leaseDurationInHours: 160, ...fields }, { as: "Manager" });
const pending = async () => (await world.call("GET", "/api/leases?status=PendingApproval&pageSize=100", undefined, { as: "Admin" })).result;

// The limit of leases of one person is lifted: thirty people would only make the test longer.
async function request30() {
	const { version, text } = await world.call("GET", "/v1/ops/policy");
	await world.call("PUT", "/v1/ops/policy", { document: text.replace(/maxLeasesPerUser: *\d+/, "maxLeasesPerUser: 100"), version });
	const course = await template({ name: "Course" });
	for (let i = 0; i < 30; i++) await ask(course, `student ${i}`);
}

test("thirty requests are approved in at most 4 clicks, and ended with one reason", async (t) => {
	await request30();
	const page = await world.open(t, { as: "Manager", path: "/" }), hand = counting(page);
	await page.locator("#nav .count", { hasText: "30" }).waitFor();
	await hand.click(page.getByRole("link", { name: "Approvals" }));
	await page.getByText("Select all 30").waitFor();
	assert.ok((await page.evaluate(() => document.body.scrollHeight)) < 3000, "thirty requests fit some screens");
	await hand.click(page.getByText("Select all 30"));
	await isAccessible(page, "requests to decide together");
	await shot(page, "approvals-many");
	await hand.click(main(page).getByRole("button", { name: "Approve 30" }));
	await page.getByText(/Approved: 30 requests/).waitFor();
	assert.ok(hand.count() <= 4, `${hand.count()} clicks`);
	assert.equal((await pending()).length, 0);
	await until(async () => page.locator("#nav .count").isHidden(), "nothing is counted any more");

	await page.getByRole("link", { name: "Leases", exact: true }).click();
	await page.getByRole("heading", { name: "Leases", level: 1 }).waitFor();
	await page.getByText(/^Select all \d+/).click();
	await main(page).getByRole("button", { name: /^End \d+ leases/ }).click();
	await dialog(page).getByLabel("Reason (optional)").fill("The course is over");
	await dialog(page).getByRole("button", { name: /^End \d+ leases/ }).click();
	await page.getByText(/leases ended/).waitFor();
	const ended = (await world.call("GET", "/api/leases?status=ManuallyTerminated&pageSize=100", undefined, { as: "Admin" })).result;
	assert.ok(ended.length > 1 && ended.every((l) => l.endReason.comment === "The course is over" && l.terminatedBy === people.Manager));
	await page.goto(`${world.url}/leases/${ended[0].leaseId.replace(/=+$/, "")}`);
	await page.getByText(`by ${people.Manager}: The course is over`).first().waitFor();
});

test("some are denied, the others stay", async (t) => {
	const other = await template({ name: "Other" });
	for (let i = 0; i < 3; i++) await ask(other, `student ${i}`);
	const page = await world.open(t, { as: "Manager", path: "/approvals" });
	const boxes = main(page).getByLabel(/^Select Other for/);
	await boxes.first().check();
	await boxes.nth(1).check();
	await main(page).getByRole("button", { name: "Deny 2" }).click();
	await page.getByText("Give a reason: the requester will see it.").waitFor();
	await page.getByLabel("Reason").fill("Next term");
	await main(page).getByRole("button", { name: "Deny 2" }).click();
	await page.getByText("Denied: 2 requests.").waitFor();
	assert.equal((await pending()).length, 1);
	await same(() => boxes.count(), 1, "one is left");
});

const roster = ["track,name", `${LONG},"Long, Ada"`, ...Array.from({ length: 29 }, (_, i) => `s${i}@school.example,Student ${i}`)].join("\n");

test("a class of thirty gets its sandboxes in at most 4 clicks, and the list can be printed", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/" }), hand = counting(page);
	await hand.click(page.getByRole("link", { name: "Sandboxes", exact: true }));
	await hand.click(main(page).getByRole("link", { name: "Class" }));
	await main(page).getByRole("button", { name: "Check" }).click();
	await page.getByText(/Yes.*33 are free now/).waitFor();
	await page.getByLabel("Sandboxes needed").fill("34");
	await main(page).getByRole("button", { name: "Check" }).click();
	await page.getByText(/No.*33 are free now/).waitFor();
	await page.getByLabel("Students").fill("two words,x");
	await main(page).getByRole("button", { name: "Claim for all" }).click();
	await page.getByText('"two words" is not a track').waitFor();
	await page.getByLabel("Students").fill("\tAda\n"); // a name is no track
	await main(page).getByRole("button", { name: "Claim for all" }).click();
	await page.getByText('"" is not a track').waitFor();
	await page.getByLabel("Students").fill(roster);
	await hand.click(main(page).getByRole("button", { name: "Claim for all" }));
	await page.getByText("30 of 30 have a sandbox.").waitFor();
	await same(() => main(page).getByRole("row").count(), 31, "a row for each, and the heading");
	await isAccessible(page, "the list of a class");
	await shot(page, "class");
	await page.evaluate(() => (window.print = () => (document.title = "printed")));
	await hand.click(main(page).getByRole("button", { name: "Print" }));
	await same(() => page.title(), "printed", "it is printed");
	assert.ok(hand.count() <= 4, `${hand.count()} clicks`);
	assert.equal((await world.call("GET", "/v1/admin/stats")).allocated, 30);
});

test("a broken one is replaced in 2 clicks, and found by its student in the box for everything", async (t) => {
	const [held] = (await world.call("GET", "/v1/admin/sandboxes?q=s7@school")).sandboxes;
	const page = await world.open(t, { as: "Admin", path: `/sandboxes/${held.sandbox_id}` });
	await main(page).getByRole("button", { name: "Replace" }).click();
	await dialog(page).getByLabel("Reason (optional)").fill("login fails");
	await dialog(page).getByRole("button", { name: "Replace" }).click();
	await page.getByText(/s7@school.example has .* now/).waitFor();
	assert.equal((await world.call("GET", `/v1/admin/sandboxes/${held.sandbox_id}`)).quarantine_reason, "login fails");
	await gone(dialog(page));
	await page.waitForURL((url) => !url.pathname.endsWith(held.sandbox_id));
	await loaded(page);
	await page.keyboard.press("/");
	await page.keyboard.type("s7@school");
	await page.keyboard.press("Enter");
	await page.getByRole("heading", { name: "Search for s7@school" }).waitFor();
	await main(page).getByRole("row", { name: /s7@school.example/ }).first().waitFor();
	await isAccessible(page, "what was found");
	await page.getByLabel("Search everything").fill(people.User);
	await page.keyboard.press("Enter");
	await main(page).getByRole("heading", { name: "Leases" }).waitFor();
	await shot(page, "search");
});

test("ids are copied by a click", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/sandboxes?status=allocated" });
	const copy = main(page).getByRole("button", { name: /^Copy / }).first(), id = (await copy.getAttribute("aria-label")).slice(5);
	await page.evaluate(() => (navigator.clipboard.writeText = async (text) => (window.copied = text)));
	await copy.click();
	await page.getByText("Copied.").waitFor();
	assert.equal(await page.evaluate(() => window.copied), id);
});

test("columns are sorted, also after the table is drawn again", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/sandboxes" });
	const names = () => main(page).locator("tbody tr td.lead").allTextContents();
	const sort = main(page).getByRole("button", { name: "Name", exact: true });
	await sort.click();
	await main(page).locator('th[aria-sort="ascending"]').waitFor();
	const up = await names();
	await sort.click();
	await main(page).locator('th[aria-sort="descending"]').waitFor();
	assert.deepEqual(await names(), [...up].reverse());
	await page.getByLabel("State", { exact: true }).selectOption("allocated");
	const now = await until(async () => ((found) => found.length === 30 && found)(await names()), "only what is allocated");
	assert.deepEqual(now, [...now].sort((a, b) => b.localeCompare(a, undefined, { numeric: true })));
});

test("the focus stays where it was after an action, and a toast covers nothing that has it", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/sandboxes" });
	const pause = main(page).getByRole("button", { name: "Sync now" });
	await pause.focus();
	await page.keyboard.press("Enter");
	await dialog(page).getByRole("button", { name: "Sync now" }).click();
	await page.locator(".toast").waitFor();
	await until(() => page.evaluate(() => document.activeElement?.textContent === "Sync now" &&
		document.activeElement.getBoundingClientRect().top >= document.querySelector("#toasts").getBoundingClientRect().bottom), "the button has the focus again, and is not under the message");
});

test("on a phone nothing is wider than the screen, with the longest of names", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/", viewport: { width: 390, height: 800 } });
	const [held] = (await world.call("GET", "/v1/admin/sandboxes?q=a-very-long")).sandboxes;
	for (const path of ["/", "/sandboxes", `/sandboxes/${held.sandbox_id}`, "/sandboxes/class", `/search?q=${LONG.slice(0, 60)}`, "/leases", "/approvals", "/accounts"]) {
		await page.goto(world.url + path);
		await main(page).getByRole("heading", { level: 1 }).first().waitFor();
		await fits(page, path);
	}
	await shot(page, "phone-long-names");
});

test("a whole class is given back", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/sandboxes/class" });
	await page.getByLabel("Students").fill(roster);
	await main(page).getByRole("button", { name: "Give all back" }).click();
	await dialog(page).getByRole("button", { name: "Give all back" }).click();
	await page.getByText("30 given back").waitFor();
	assert.equal((await world.call("GET", "/v1/admin/stats")).allocated, 0);
});

test("a list of a spreadsheet that writes semicolons, a lab with a name that cannot be kept, and no formulas in what is saved", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/sandboxes/class" });
	await page.getByLabel("Students").fill('track;name\n=cmd@school.example;"Lovelace; Ada"');
	await page.getByLabel("Lab (optional)").fill("Einführung");
	await main(page).getByRole("button", { name: "Claim for all" }).click();
	await page.getByText("Use letters without accents").waitFor();
	await page.getByLabel("Lab (optional)").fill("intro-1");
	await main(page).getByRole("button", { name: "Claim for all" }).click();
	await page.getByText("1 of 1 have a sandbox.").waitFor();
	const [row] = await main(page).locator("tbody tr").allTextContents();
	assert.match(row, /=cmd@school\.exampleLovelace; Ada/);
	assert.doesNotMatch(row, /in \d/, "a list on paper has the time itself");
	await page.evaluate(() => {
		URL.createObjectURL = (file) => {
			file.text().then((text) => (document.title = text));
			return "#";
		};
	});
	await main(page).getByRole("button", { name: "Save as CSV" }).click();
	await until(async () => /'=cmd@school\.example,Lovelace; Ada,/.test(await page.title()), "no cell begins like a formula");
});
