// SPDX-License-Identifier: Apache-2.0
// The shell and the way in.
import { assert, isAccessible, loaded, people, same, shared, shot, steadyPort, test, World } from "./rig.mjs";

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
	await page.getByText("This token is not valid here").waitFor();
	await page.getByLabel("Token").fill(world.token("operator"));
	await page.getByRole("button", { name: "Use this token" }).click();
	await page.getByRole("heading", { name: "Overview" }).waitFor();
	assert.ok((await nav(page)).includes("Sandboxes"));
	assert.equal(await page.getByRole("heading", { name: "My leases" }).count(), 0);
});

// From the console's own link to the server's page, without sending its form; then as if that page had led back.
async function comeBack(page, token) {
	await page.getByRole("link", { name: "Sign in" }).click();
	await page.getByLabel("Password").waitFor();
	await page.goto(`${world.url}/?token=${token}`);
}

test("a session's token is taken out of the address at once", async (t) => {
	const page = await world.open(t);
	await comeBack(page, world.token("User"));
	await page.getByRole("heading", { name: "My leases" }).waitFor();
	assert.equal(page.url(), `${world.url}/`);
	assert.deepEqual(await nav(page), ["Overview", "Leases"]);
});

test("a link with somebody's token signs nobody in: the sign-in was not started in this tab", async (t) => {
	const page = await world.open(t, { path: `/leases?token=${world.token("User")}` });
	await page.getByText("This sign-in was not started in this tab").waitFor();
	assert.equal(page.url(), `${world.url}/leases`);
	assert.equal(await page.evaluate(() => sessionStorage.getItem("leasehold.token")), null);
	await isAccessible(page, "a sign-in that was not begun here");
});

test("a link with somebody's token does not change who is signed in", async (t) => {
	const page = await world.open(t, { as: "Admin", path: `/?token=${world.token("User")}` });
	await page.getByRole("heading", { name: "Overview" }).waitFor();
	assert.ok((await nav(page)).includes("Sandboxes"));
	assert.equal(page.url(), `${world.url}/`);
});

test("a sign-in that was begun is good for one token, and not for long", async (t) => {
	const page = await world.open(t);
	await comeBack(page, world.token("User"));
	await page.getByRole("button", { name: "Sign out" }).click();
	await page.goto(`${world.url}/?token=${world.token("User")}`);
	await page.getByText("This sign-in was not started in this tab").waitFor();
	await page.evaluate(() => (Date.now = ((real) => () => real() - 3600_000)(Date.now)));
	await comeBack(page, world.token("User"));
	await page.getByText("This sign-in was not started in this tab").waitFor();
});

test("a page that the role does not include is not allowed", async (t) => {
	const page = await world.open(t, { as: "User", path: "/sandboxes" });
	await page.getByText("Not allowed").waitFor();
	await isAccessible(page, "a page that is not allowed");
	await shot(page, "not-allowed");
});

test("the colours can be switched, and the choice stays", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/sandboxes" });
	await page.getByRole("button", { name: "Switch to dark colours" }).click();
	await page.getByRole("button", { name: "Switch to light colours" }).waitFor();
	await page.reload();
	await page.getByRole("button", { name: "Switch to light colours" }).waitFor();
	assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
	await page.getByRole("heading", { name: "Sandboxes" }).waitFor();
	await isAccessible(page, "sandboxes in dark");
});

test("a keyboard gets along: skip link, visible focus, a dialog that holds it and gives it back", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/sandboxes" });
	await page.getByRole("heading", { name: "Sandboxes" }).waitFor();
	await loaded(page);
	await page.keyboard.press("Tab");
	await same(() => page.evaluate(() => document.activeElement.textContent), "Skip to the content");
	await page.keyboard.press("Enter");
	await same(() => page.evaluate(() => document.activeElement.id), "main");
	const pause = page.getByRole("button", { name: "Pause deletions" });
	await pause.focus();
	await page.keyboard.press("Enter");
	const dialog = page.getByRole("dialog", { name: "Pause deletions?" });
	await dialog.waitFor();
	for (let i = 0; i < 6; i++) {
		await page.keyboard.press("Tab");
		assert.ok(await page.evaluate(() => document.activeElement === document.body || document.querySelector("dialog").contains(document.activeElement)), "focus left the dialog");
	}
	await page.keyboard.press("Escape");
	await dialog.waitFor({ state: "detached" });
	await same(() => page.evaluate(() => document.activeElement.textContent), "Pause deletions");
});

test("a session that ends leads to the sign-in, and back to where one was", async (t) => {
	const page = await world.open(t, { as: "Admin", allow: [/status of 401/] });
	await page.locator("#events li").first().waitFor();
	await page.route("**/v1/admin/sandboxes*", (route) => route.fulfill({ status: 401, json: { error: { code: "UNAUTHORIZED", message: "the token is not known here" } } }));
	await page.getByRole("link", { name: "Sandboxes", exact: true }).click();
	await page.getByText("Your session has expired").waitFor();
	assert.equal(await page.evaluate(() => sessionStorage.getItem("leasehold.token")), null);
	await page.unrouteAll();
	await page.getByText("Use a token instead").click();
	await page.getByLabel("Token").fill(world.token("Admin"));
	await page.getByLabel("Token").press("Enter");
	await page.getByRole("heading", { name: "Sandboxes", level: 1 }).waitFor();
});

test("signing out forgets the token", async (t) => {
	const page = await world.open(t);
	await comeBack(page, world.token("Manager"));
	await page.getByRole("button", { name: "Sign out" }).click();
	await page.getByRole("heading", { name: "Sign in to Leasehold" }).waitFor();
	assert.equal(await page.evaluate(() => sessionStorage.getItem("leasehold.token")), null);
});

test("the sign-in page of the server leads into the console", async (t) => {
	const page = await world.open(t, { path: "/sandboxes?status=available", allow: [/status of 401/] });
	await page.getByRole("link", { name: "Sign in" }).click();
	await page.getByLabel("Email").fill(people.Admin);
	await page.getByLabel("Password").fill("wrong");
	await page.keyboard.press("Enter");
	await page.getByRole("alert").waitFor();
	await same(() => page.evaluate(() => document.activeElement.id), "password", "the focus is where something has to be typed again");
	await page.keyboard.type(world.password);
	await page.getByRole("button", { name: "Sign in" }).click();
	await page.getByRole("heading", { name: "Sandboxes", level: 1 }).waitFor();
	assert.equal(page.url(), `${world.url}/sandboxes?status=available`);
});

test("a server that is away is told, and the page goes on when it is back", async (t) => {
	const own = new World({ LEASEHOLD_SIM_SANDBOXES: "3" }, [], await steadyPort());
	await own.start();
	t.after(() => own.stop());
	const page = await own.open(t, { as: "Admin", path: "/sandboxes", allow: [/ERR_|Failed to fetch/] });
	await page.getByRole("heading", { name: "Sandboxes" }).waitFor();
	await own.stopServer();
	await page.getByLabel("State").selectOption("allocated");
	await page.getByRole("alert").getByText("The server cannot be reached.").first().waitFor();
	await shot(page, "server-away");
	await own.start();
	await page.getByText("No matching sandboxes").waitFor();
	await page.locator("#banner").waitFor({ state: "hidden" });
});

for (const status of [429, 503])
	test(`an operator's token that cannot be looked at now is kept: ${status}`, async (t) => {
		const page = await world.open(t, { as: "operator", path: "/sandboxes", allow: [new RegExp(`status of ${status}`)] }), stats = /\/v1\/admin\/stats$/;
		await page.getByRole("heading", { name: "Sandboxes", level: 1 }).waitFor();
		await page.route(stats, (route) => route.fulfill({ status, json: { error: { code: "UNAVAILABLE", message: "the server is busy" } } }));
		await page.reload();
		await page.getByText("the server is busy").waitFor();
		await page.unroute(stats);
		await page.getByRole("button", { name: "Try again" }).click();
		await page.getByRole("heading", { name: "Sandboxes", level: 1 }).waitFor();
	});

// A dialog with a secret that was just made, and a message above the page.
async function withSecret(t, name) {
	const page = await world.open(t, { as: "Admin", path: "/operations/service-accounts", allow: [/status of 401/] }), dialog = page.getByRole("dialog");
	await page.evaluate(() => (navigator.clipboard.writeText = async () => {}));
	await page.getByRole("button", { name: "New service account" }).first().click();
	await dialog.getByLabel("Name").fill(name);
	await dialog.getByRole("button", { name: "Create" }).click();
	await dialog.locator(".secret").getByRole("button").click();
	await page.locator(".toast").waitFor();
	return page;
}

test("who was signed out by the server leaves no secret on the screen", async (t) => {
	const page = await withSecret(t, "left-open");
	await page.route("**/v1/ops/**", (route) => route.fulfill({ status: 401, json: { error: { code: "UNAUTHORIZED", message: "the token is not known here" } } }));
	await page.evaluate(() => import(document.querySelector("script[type=module]").src.replace("app.js", "api.js")).then((api) => api.get("/v1/ops/jobs").catch(() => {})));
	await page.getByText("Your session has expired").waitFor();
	assert.deepEqual([await page.getByRole("dialog").count(), await page.locator(".toast").count()], [0, 0]);
});

test("who signs out leaves no message of before", async (t) => {
	const page = await withSecret(t, "said-before");
	await page.getByRole("dialog").getByRole("button", { name: "I have saved it" }).click();
	await page.getByRole("button", { name: "Sign out" }).click();
	await page.getByRole("heading", { name: "Sign in to Leasehold" }).waitFor();
	assert.equal(await page.locator(".toast").count(), 0);
});
