// SPDX-License-Identifier: Apache-2.0
// Operations: each thing that an operator does, clicked through: dead letters, sagas, timers, jobs, events, webhooks, alarms, holds, configuration,
// service accounts, the switches of the simulated world; and the panel that explains.
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before } from "node:test";
import { assert, gone, isAccessible, people, press, same, shared, shot, steadyPort, test, until } from "./rig.mjs";

const world = shared({ args: ["--dev"], port: await steadyPort(), env: {
	LEASEHOLD_SIM_SANDBOXES: "8", LEASEHOLD_SIM_ACCOUNTS: "6", LEASEHOLD_SINK_TRIES: "2", LEASEHOLD_SINK_BACKOFF_SEC: "0.01", LEASEHOLD_ALARM_INTERVAL_SEC: "1",
} });

const main = (page) => page.locator("main");
const dialog = (page) => page.getByRole("dialog");
const confirm = (page, name) => dialog(page).getByRole("button", { name, exact: true }).click();
const row = (page, name) => page.getByRole("row", { name });
const told = (page, text) => page.locator("#toasts").getByText(text).waitFor();
const events = async (query) => (await world.call("GET", `/v1/ops/events?${query}`)).events;

// --- a receiver of webhooks, which refuses until it is told otherwise ---

const receiver = { status: 500, got: [] };
const server = createServer((request, response) => {
	let body = "";
	request.on("data", (data) => (body += data)).on("end", () => {
		receiver.got.push(JSON.parse(body));
		response.writeHead(receiver.status).end(receiver.status === 200 ? "" : "the receiver is being repaired");
	});
});
before(() => new Promise((done) => server.listen(0, "127.0.0.1", done)));
after(() => new Promise((done) => {
	server.close(done);
	server.closeAllConnections();
}));
const hookUrl = (path) => `http://127.0.0.1:${server.address().port}/${path}`;

async function deadLetters(path) {
	receiver.status = 500;
	const hook = await world.call("POST", "/v1/ops/webhooks", { url: hookUrl(path), filter: "SandboxQuarantined,SandboxReleased", description: "the class room's board" });
	const { sandboxes } = await world.call("GET", "/v1/admin/sandboxes?status=available&limit=2");
	for (const s of sandboxes) {
		await world.call("POST", `/v1/admin/sandboxes/${s.sandbox_id}/quarantine`, { reason: "broken" });
		await world.call("POST", `/v1/admin/sandboxes/${s.sandbox_id}/release`, {});
	}
	await until(async () => (await world.call("GET", "/v1/ops/dead-letters")).count >= 4, "four deliveries are given up");
	return hook;
}

test("who has never seen it replays a dead letter, starting at the overview", async (t) => {
	const hook = await deadLetters("board"), page = await world.open(t, { as: "Admin", allow: [/status of 404/] }); // a letter may be looked at once more when it is replayed
	await page.getByRole("link", { name: "Operations" }).click();
	await page.getByRole("link", { name: "4 dead letters" }).waitFor();
	await isAccessible(page, "operations at a glance");
	await shot(page, "operations");
	await page.getByRole("link", { name: "4 dead letters" }).click();
	await row(page, /the receiver is being repaired/).first().waitFor();
	await isAccessible(page, "dead letters");
	await shot(page, "dead-letters");

	await page.getByRole("link", { name: "Sandbox quarantined" }).first().click();
	await page.getByRole("heading", { name: "Sandbox quarantined" }).waitFor();
	await page.getByText('"detail-type": "SandboxQuarantined"').waitFor();
	await isAccessible(page, "a dead letter");
	await shot(page, "dead-letter");
	receiver.status = 200;
	receiver.got.length = 0;
	await press(page, "Replay");
	await confirm(page, "Replay");
	await told(page, "back in its queue");
	await until(() => receiver.got.some((e) => e["detail-type"] === "SandboxQuarantined"), "the receiver has it");
	await same(() => main(page).getByRole("button", { name: "Replay", exact: true }).count(), 3, "three are left in the list");

	await press(page, "Drop");
	await confirm(page, "Drop");
	assert.equal(await dialog(page).count(), 1, "a reason is required");
	await dialog(page).getByLabel("Reason").fill("The board is gone");
	await confirm(page, "Drop");
	await told(page, "Dropped");
	assert.equal((await events("type=DeadLetterDropped"))[0].detail.reason, "The board is gone");
	await press(page, "Replay all of webhook-out");
	await confirm(page, "Replay all");
	await page.getByText("No dead letters").waitFor();
	await until(() => receiver.got.length >= 3, "the others arrive too");
	await shot(page, "dead-letters-none");
	await world.call("DELETE", `/v1/ops/webhooks/${hook.id}`);
});

test("an alarm says what it means and what to do", async (t) => {
	const hook = await deadLetters("alarm"), page = await world.open(t, { as: "Admin", path: "/operations/alarms" });
	await page.getByRole("heading", { name: "Dead letters: webhook-out" }).waitFor();
	await page.getByText("What it means and what to do").first().click();
	await page.getByText(/fix the cause first/).first().waitFor();
	await isAccessible(page, "alarms");
	await shot(page, "alarms");
	await page.getByRole("link", { name: "View dead letters" }).click();
	await row(page, /the receiver is being repaired/).first().waitFor();
	for (const d of (await world.call("GET", "/v1/ops/dead-letters")).dead_letters) await world.call("POST", `/v1/ops/dead-letters/${d.id}/drop`, { reason: "a test's" });
	await world.call("DELETE", `/v1/ops/webhooks/${hook.id}`);
});

test("a webhook is made, tested, changed, paused and removed", async (t) => {
	receiver.status = 200;
	const page = await world.open(t, { as: "Admin", path: "/operations/webhooks", allow: [/status of 400/] });
	await page.getByText("No webhooks").waitFor();
	await press(page, "New webhook");
	await dialog(page).getByLabel("URL").fill("http://169.254.169.254/");
	await confirm(page, "Create");
	await dialog(page).getByText(/no webhook may call/).waitFor();
	await dialog(page).getByLabel("URL").fill(hookUrl("chat"));
	await dialog(page).getByLabel("Events").fill("Lease*");
	await shot(page, "webhook-new");
	await confirm(page, "Create");
	await dialog(page).getByText("Save its secret now").waitFor();
	assert.match(await dialog(page).locator(".secret code").textContent(), /^\S{20,}$/);
	await isAccessible(page, "a secret that is shown once");
	await shot(page, "webhook-secret");
	await confirm(page, "I have saved it");
	await row(page, /\/chat/).waitFor();

	await press(page, "Test");
	await told(page, "The test arrived");
	assert.ok(receiver.got.some((e) => e["detail-type"] === "WebhookTest"));
	receiver.status = 500;
	await press(page, "Test");
	await told(page, /did not arrive: .*repaired/);
	await isAccessible(page, "webhooks");
	await shot(page, "webhooks");

	await press(page, "Change");
	await dialog(page).getByLabel("Events").fill("AlarmRaised");
	await confirm(page, "Save");
	await row(page, /AlarmRaised/).waitFor();
	await press(page, "Pause");
	await row(page, /Paused/).waitFor();
	await press(page, "Remove");
	await confirm(page, "Remove");
	await page.getByText("No webhooks").waitFor();
	for (const d of (await world.call("GET", "/v1/ops/dead-letters")).dead_letters) await world.call("POST", `/v1/ops/dead-letters/${d.id}/drop`, { reason: "a test's" });
});

// --- sagas ---

async function newLease() {
	const { result } = await world.call("GET", "/api/leaseTemplates", undefined, { as: "Admin" });
	return world.call("POST", "/api/leases", { leaseTemplateUuid: result.find((x) => x.name === "Project").uuid, userEmail: people.User }, { as: "Admin" });
}

// Its undoing would take an hour of tries until it is parked: the record is put as it would be then, while the server is away.
async function park(id) {
	await world.stopServer();
	execFileSync("/usr/bin/python3", ["-c", "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); n = d.execute(\"UPDATE saga SET state = 2, reason = 'the step grant failed for good: its tries are used up', leftovers = '[\\\"move\\\"]' WHERE id = ?\", (sys.argv[2],)).rowcount; d.commit(); sys.exit(n != 1)",
		join(world.folder, "leasehold.db"), id]);
	await world.start();
}

test("a saga that is stuck is found, explained, retried when the cause is gone", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/operations/world", allow: [/ERR_CONNECTION_RE|ERR_INCOMPLETE|ERR_EMPTY/] });
	await page.getByText("No faults", { exact: true }).waitFor();
	await page.getByTitle("Switch on: Access cannot be granted").click();
	await row(page, /grant/).waitFor();
	await isAccessible(page, "the simulated world");
	await shot(page, "world");

	const lease = await newLease(), id = `account-follow/${lease.awsAccountId}/1`;
	await page.getByRole("navigation", { name: "Operations" }).getByRole("link", { name: "Sagas" }).click();
	await row(page, /simulated outage of grant/).waitFor();
	await isAccessible(page, "sagas");
	await shot(page, "sagas");
	await page.getByRole("link", { name: "Account follows its record" }).click();
	await page.getByText("failing, retrying").waitFor();
	await page.getByText(/is lent to user@example.com/).waitFor();
	await page.getByText("What happens next").waitFor();
	await isAccessible(page, "a saga that is stuck");
	await shot(page, "saga");

	await park(id);
	await page.getByText("May be left behind").waitFor();
	await shot(page, "saga-parked");
	await page.getByRole("link", { name: "Sagas" }).first().click();
	await page.getByRole("heading", { name: "Needs attention" }).waitFor();
	await row(page, /tries are used up/).waitFor();
	await shot(page, "sagas-parked");
	await press(page, "Retry"); // the switches live in memory: after the restart all is well
	await confirm(page, "Retry");
	await told(page, "Retrying.");
	await page.getByText("Nothing is running").waitFor();
	await page.getByLabel("Show").selectOption("done");
	await row(page, /Done/).first().waitFor();
	await until(async () => (await world.call("GET", `/api/leases/${lease.leaseId}`, undefined, { as: "Admin" })).status === "Active", "the lease is active");
});

test("a step is skipped and a saga aborted only with a reason", async (t) => {
	await world.call("PUT", "/v1/sim/faults", { faults: [{ fault: "outage", call: "grant" }] });
	const lease = await newLease(), page = await world.open(t, { as: "Admin", path: "/operations/sagas" });
	await row(page, /simulated outage of grant/).waitFor();
	await press(page, "Skip step");
	await confirm(page, "Skip step");
	assert.equal(await dialog(page).count(), 1, "a reason is required");
	await dialog(page).getByRole("button", { name: "Cancel" }).click();
	await press(page, "Abort");
	await dialog(page).getByLabel("Reason").fill("Not wanted any more");
	await confirm(page, "Abort");
	await told(page, "Rolling back.");
	await world.call("PUT", "/v1/sim/faults", { faults: [] });
	const [aborted] = await events("type=SagaAborted");
	assert.deepEqual([aborted.actor, aborted.detail.reason], [people.Admin, "Not wanted any more"]);
	assert.ok(lease.uuid);
});

// --- what runs by itself ---

test("a timer fires by hand, another is cancelled", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/operations/timers" });
	await row(page, /report\/costs/).waitFor();
	await page.getByLabel("Name starts with").fill("job/");
	await row(page, /report\/costs/).waitFor({ state: "detached" });
	assert.ok(page.url().endsWith("?prefix=job%2F"));
	await isAccessible(page, "timers");
	await shot(page, "timers");
	await page.getByTitle("Fire now: job/stale-removal").click();
	await confirm(page, "Fire now");
	await told(page, "It has fired.");
	await until(async () => (await events("type=TimerFiredByHand")).length === 1, "it is told");
	await page.getByLabel("Name starts with").fill("report/");
	await page.getByTitle("Cancel: report/costs").click();
	await confirm(page, "Cancel the timer");
	await page.getByText("No timer's name starts with this").waitFor();
});

test("a job is run, paused and resumed", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/operations/jobs" });
	await page.getByTitle("Run now: sync").click();
	await confirm(page, "Run now");
	await told(page, /sync (is running|has finished|was already running)/);
	await page.getByTitle("Pause: expiry").click();
	await confirm(page, "Pause");
	await row(page, /^expiry.*Paused/).waitFor();
	await isAccessible(page, "jobs");
	await shot(page, "jobs");
	await page.getByRole("link", { name: "Summary" }).click();
	await page.getByRole("link", { name: "Job expiry is paused" }).click();
	await page.getByTitle("Resume: expiry").click();
	await confirm(page, "Resume");
	await told(page, "expiry is resumed.");
});

test("events are found, followed live and exported", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/operations/events" });
	await page.getByText("live", { exact: true }).waitFor();
	await page.getByLabel("Type").fill("Sandbox*");
	await page.getByLabel("By").fill("admin@example.com");
	await page.getByRole("button", { name: "Search" }).click();
	await page.getByText("No event matches").waitFor();
	await page.getByText("live", { exact: true }).waitFor();
	const { sandboxes } = await world.call("GET", "/v1/admin/sandboxes?status=available&limit=1");
	await world.call("POST", `/v1/admin/sandboxes/${sandboxes[0].sandbox_id}/quarantine`, { reason: "live" }, { as: "Admin" });
	await page.locator(".event", { hasText: "Sandbox quarantined" }).first().click();
	await page.getByText('"reason": "live"').waitFor();
	await isAccessible(page, "events");
	await shot(page, "events");
	const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
	assert.equal(file.suggestedFilename(), "events.jsonl");
	await page.getByRole("link", { name: "Clear" }).click();
	await page.locator(".event").nth(3).waitFor();

	await page.goto(`${world.url}/sandboxes/${sandboxes[0].sandbox_id}`);
	await page.getByRole("heading", { name: "Explain" }).waitFor();
	await page.locator(".explain-summary").waitFor();
	await isAccessible(page, "a sandbox that is explained");
	await shot(page, "sandbox-explained");
});

test("queues and holds are looked at, a hold is extended and released", async (t) => {
	const accounts = (await world.call("GET", "/api/accounts", undefined, { as: "Admin" })).result, free = accounts.find((a) => a.status === "Available");
	await world.call("POST", "/v1/ops/holds", { account: free.awsAccountId, reason: "For the workshop on Friday" });
	const page = await world.open(t, { as: "Admin", path: "/operations/queues" });
	await row(page, /webhook-out/).waitFor();
	await isAccessible(page, "queues");
	await shot(page, "queues");
	await page.getByRole("link", { name: "Leases", exact: true }).last().click();
	await page.getByText("Nothing is waiting").waitFor();
	await page.goto(`${world.url}/operations/holds`);
	await row(page, /For the workshop on Friday/).waitFor();
	await isAccessible(page, "holds");
	await row(page, /For the workshop on Friday/).getByTitle(/^Extend the hold/).click();
	await dialog(page).getByLabel("Hours from now").fill("48");
	await dialog(page).getByLabel("Reason").fill("The workshop ends on Sunday");
	await confirm(page, "Extend");
	await row(page, /in 1 d 23 h|in 2 d/).waitFor();
	await shot(page, "holds");
	await row(page, /For the workshop on Friday/).getByTitle(/^Release the hold/).click();
	await dialog(page).getByLabel("Reason").fill("The workshop is over");
	await confirm(page, "Release");
	await row(page, /For the workshop on Friday/).waitFor({ state: "detached" });
});

// --- configuration ---

const text = (page) => page.getByLabel("Text of Lease policy");
const change = async (page, from, to) => text(page).fill((await text(page).inputValue()).replace(from, to));

test("configuration is edited: wrong, then right, then against somebody else", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/operations/configuration", allow: [/status of 409/] });
	await page.getByText("No changes").waitFor();
	await change(page, "maxBudget: 50", "maxBudget: many");
	await page.locator("#verdict").getByText(/must be a whole number/).waitFor();
	assert.ok(await page.getByRole("button", { name: "Save" }).isDisabled());
	const line = (await text(page).inputValue()).split("\n").findIndex((l) => l.includes("maxBudget: many")) + 1;
	assert.equal(await page.locator(".editor-lines .bad").textContent(), String(line));
	await isAccessible(page, "configuration with a mistake");
	await page.getByRole("button", { name: `Line ${line}` }).click();
	await shot(page, "configuration-wrong");
	assert.match(await text(page).evaluate((e) => e.value.slice(e.selectionStart, e.selectionEnd)), /maxBudget: many/);

	await change(page, "maxBudget: many", "maxBudget: 75");
	await row(page, /leases\.maxBudget.*50.*75/).waitFor();
	await shot(page, "configuration-change");
	await press(page, "Save");
	await told(page, "version 1 is now in effect");
	await page.locator(".edits").getByText("leases.maxBudget").waitFor();

	const now = await world.call("GET", "/v1/ops/policy");
	await world.call("PUT", "/v1/ops/policy", { document: now.text.replace("maxLeasesPerUser: 3", "maxLeasesPerUser: 4"), version: now.version });
	await change(page, "maxBudget: 75", "maxBudget: 80");
	await row(page, /leases\.maxBudget.*75.*80/).waitFor();
	await press(page, "Save");
	await page.getByText("Someone else has saved a newer version.").waitFor();
	await page.getByText("leases.maxLeasesPerUser").first().waitFor();
	await isAccessible(page, "a conflict");
	await shot(page, "configuration-conflict");
	await press(page, "Keep my text");
	await row(page, /leases\.maxLeasesPerUser.*4.*3/).waitFor();
	await change(page, "maxLeasesPerUser: 3", "maxLeasesPerUser: 4");
	await row(page, /leases\.maxLeasesPerUser/).waitFor({ state: "detached" });
	await press(page, "Save");
	await told(page, "version 3 is now in effect");
	const { values } = await world.call("GET", "/v1/ops/policy");
	assert.deepEqual([values.leases.maxBudget, values.leases.maxLeasesPerUser], [80, 4]);
	for (const name of ["Approval", "Reporting"]) {
		await page.getByRole("navigation", { name: "Documents" }).getByRole("link", { name }).click();
		await page.getByLabel(`Text of ${name}`).waitFor();
	}
});

test("a service account is made, gets a new key and is revoked", async (t) => {
	const page = await world.open(t, { as: "Admin", path: "/operations/service-accounts" });
	await page.getByText("No service accounts").waitFor();
	await press(page, "New service account");
	await dialog(page).getByLabel("Name").fill("billing-export");
	await dialog(page).getByLabel(/Read leases/).uncheck();
	await confirm(page, "Create");
	await dialog(page).getByText("Choose at least one.").waitFor();
	await dialog(page).getByLabel(/Read costs/).check();
	await shot(page, "service-account-new");
	await confirm(page, "Create");
	const first = await dialog(page).locator(".secret code").textContent();
	await confirm(page, "I have saved it");
	await press(page, "New key");
	await confirm(page, "Create a new key");
	await dialog(page).getByText("Save the key of billing-export now").waitFor();
	assert.notEqual(await dialog(page).locator(".secret code").textContent(), first);
	await confirm(page, "I have saved it");
	await row(page, /its old key ends in/).waitFor();
	await isAccessible(page, "service accounts");
	await shot(page, "service-accounts");
	await press(page, "Revoke");
	await confirm(page, "Revoke");
	await row(page, /billing-export.*Revoked/).waitFor();
});

test("who is no operator is not offered operations", async (t) => {
	const page = await world.open(t, { as: "Manager", path: "/operations/dead-letters" });
	await page.getByText("Not allowed").waitFor();
	assert.equal(await page.getByRole("link", { name: "Operations" }).count(), 0);
});

// The panel that explains opens by itself when something is wrong.
const open = (page) => until(() => page.locator(".explain").evaluate((e) => e.open || (e.querySelector("summary").click(), false)), "the explanation is open");

test("a lease is explained to its owner, an account to an admin", async (t) => {
	const lease = await newLease(), mine = await world.open(t, { as: "User", path: "/leases" });
	await until(async () => (await world.call("GET", `/api/leases/${lease.leaseId}`, undefined, { as: "Admin" })).status === "Active", "the lease is active");
	await mine.goto(`${world.url}/leases/${encodeURIComponent(lease.leaseId).replaceAll(".", "%2E")}`);
	await open(mine);
	await mine.locator(".explain-summary").getByText(/^Lease /).waitFor();
	await isAccessible(mine, "a lease that is explained");
	await shot(mine, "lease-explained");
	const page = await world.open(t, { as: "Admin", path: `/accounts/${lease.awsAccountId}` });
	await open(page);
	await page.locator(".explain-summary").getByText(`Account ${lease.awsAccountId} is lent to ${people.User}`).waitFor();
	await page.getByText(/Commands you can run/).click();
	await shot(page, "account-explained");
});

test("an alarm leads to where one looks", async (t) => {
	const places = { "webhook-behind#01a1f9e0-49ac-7000-9914-79487a84d1d2": ["View webhooks", "/operations/webhooks"], "pool-mismatch#111122223333": ["View account", "/accounts/111122223333"],
		"deletion-failed": ["View sandboxes", "/sandboxes?status=deletion_failed"], "line-waiting": ["View leases", "/leases?status=InLine"], "pool-low": ["View sandboxes", "/sandboxes"] };
	const page = await world.open(t, { as: "Admin", path: "/operations/jobs" });
	await page.route("**/v1/ops/alarms", async (route) => {
		const response = await route.fetch(), got = await response.json();
		got.alarms = Object.keys(places).map((name) => ({ name, rule: name.split("#")[0], state: "raised", severity: "warning", evidence: name, value: 1, since_at: 1, raised_at: 1, checked_at: 1, runbook: "docs/runbook.md" }));
		await route.fulfill({ response, json: got });
	});
	await page.getByRole("link", { name: "Alarms", exact: true }).click();
	for (const [name, [label, href]] of Object.entries(places)) {
		const link = page.getByRole("region", { name: new RegExp(name.split("#")[0].replace("-", " "), "i") }).getByRole("link", { name: label, exact: true });
		await same(() => link.getAttribute("href"), href, name);
	}
});
