// SPDX-License-Identifier: Apache-2.0
// The life of tenants' instances, clicked through: from the form to the archive that is left.
import { assert, gone, isAccessible, same, shared, shot, test, until } from "./rig.mjs";
import { ENV, badge, confirm, dialog, instancesOf, main, offers, press } from "./instances-rig.mjs";

const world = shared({ args: ["--dev"], env: ENV }), instances = instancesOf(world);

test("one is made by the form, and what is under way is told step by step", async (t) => {
	await instances.faults({ fault: "outage", call: "list-tasks" }); // waited for longer than a test lasts
	const page = await world.open(t, { as: "Admin", path: "/instances", allow: [/status of 400/] });
	await page.getByText("No instances yet").waitFor();
	await main(page).getByRole("button", { name: "New instance" }).first().click();
	await dialog(page).getByLabel("Tenant").fill("tenant-acme");
	await dialog(page).getByLabel("Organisation").fill("Acme & Sons");
	await dialog(page).getByLabel("Contact").fill("it@acme.example");
	await isAccessible(page, "the form of a new instance");
	await confirm(page, "Create");
	await dialog(page).locator('[data-field="organizationName"] .problem').getByText("must be 2 to 100 letters", { exact: false }).waitFor();
	await shot(page, "instance-new");
	await dialog(page).getByLabel("Organisation").fill("Acme and Sons");
	await dialog(page).getByLabel("Tasks").fill("3");
	await confirm(page, "Create");
	await page.getByRole("heading", { name: "In progress: create" }).waitFor();
	await page.locator('.step[aria-current="step"]').getByText("failing, retrying").waitFor();
	await same(() => page.locator('.step[aria-current="step"] .step-name').allTextContents(), ["Stable"], "the step that it is at");
	await same(async () => (await page.locator(".step.done .step-name").allTextContents())[0], "Prepare", "the first step");
	await offers(page, ["Site password"]); // nothing can be asked while something is under way
	await isAccessible(page, "an instance under way");
	await shot(page, "instance-under-way");
	await instances.faults();
	await badge(page, "Active");
	await page.getByText("3 of 3", { exact: true }).waitFor();
	assert.equal(await page.getByRole("link", { name: "Open the site" }).getAttribute("href"), "http://127.0.0.1/tenant/tenant-acme/");
	await page.getByText("Cluster creation complete").waitFor();
	await gone(page.getByRole("heading", { name: "In progress: create" }));
});

test("suspend, resume, scale, park and unpark, with reasons, and only what the state allows", async (t) => {
	await instances.active("tenant-birch", "Birch");
	const page = await world.open(t, { as: "Admin", path: "/instances/tenant-birch" });
	await badge(page, "Active");
	await offers(page, ["Scale", "Change", "Suspend", "Park", "Back up", "New database password", "Site password", "Delete"]);
	await isAccessible(page, "an active instance");
	await shot(page, "instance");
	await press(page, "Suspend");
	await dialog(page).getByLabel("Reason").fill("the bill is not paid");
	await confirm(page, "Suspend");
	await badge(page, "Suspended");
	await page.getByText("visitors get 503: the bill is not paid.").waitFor();
	await offers(page, ["Resume", "Back up", "Site password", "Delete"]);
	await gone(page.getByRole("link", { name: "Open the site" }));
	await press(page, "Resume");
	await confirm(page, "Resume");
	await badge(page, "Active");
	await press(page, "Scale");
	await dialog(page).getByLabel("Tasks").fill("5");
	await confirm(page, "Scale");
	await page.getByText("5 of 5", { exact: true }).waitFor();
	await press(page, "Park");
	await dialog(page).getByLabel("Reason").fill("not used until May");
	await confirm(page, "Park");
	await badge(page, "Parked");
	await page.getByText("its data is kept: not used until May.").waitFor();
	await offers(page, ["Unpark", "Back up", "Site password", "Delete"]);
	await press(page, "Unpark");
	await confirm(page, "Unpark");
	await badge(page, "Active");
	assert.equal((await instances.show("tenant-birch")).requestedBy, "admin@example.com");
});

test("version, tier and contact are changed by a form, and its tasks' logs are read", async (t) => {
	await instances.active("tenant-alder", "Alder");
	const before = await instances.show("tenant-alder");
	const page = await world.open(t, { as: "Admin", path: "/instances/tenant-alder", allow: [/status of 4\d\d/] });
	await badge(page, "Active");
	await press(page, "Change");
	await confirm(page, "Save");
	await dialog(page).getByText("Nothing has changed.").waitFor();
	await dialog(page).getByLabel("WordPress").fill("0.0.1");
	await confirm(page, "Save");
	await dialog(page).getByText("there is no WordPress 0.0.1 here").waitFor();
	await dialog(page).getByLabel("WordPress").fill(before.configuration.wordpressVersion);
	await dialog(page).getByLabel("Tier").selectOption("PROFESSIONAL");
	await dialog(page).getByLabel("Contact").fill("web@alder.example");
	await isAccessible(page, "the change of an instance");
	await shot(page, "instance-change");
	await confirm(page, "Save");
	await page.getByText("web@alder.example").waitFor();
	await until(async () => (await instances.show("tenant-alder")).tier === "PROFESSIONAL" && !(await instances.show("tenant-alder")).operation, "it is changed");
	await page.getByText("Logs", { exact: true }).click();
	await page.locator(".log li").first().waitFor();
	const { logs } = await world.call("GET", "/v1.0/tenants/-/instances/tenant-alder/logs");
	await page.locator(".log").getByText(logs.at(-1).message).last().waitFor();
	await isAccessible(page, "the logs of an instance");
	await shot(page, "instance-logs");
});

test("archives, the passwords, and the end", async (t) => {
	await instances.active("tenant-cedar", "Cedar");
	const page = await world.open(t, { as: "operator", path: "/instances/tenant-cedar" });
	await page.getByText("No archives yet").waitFor();
	await press(page, "Back up");
	await confirm(page, "Back up");
	await page.getByRole("row", { name: /Manual Kept 2.2 MB/ }).waitFor();
	await page.getByRole("button", { name: "Restore" }).click();
	await confirm(page, "Restore");
	await page.getByRole("row", { name: /Before a restore Kept/ }).waitFor();
	await page.getByText("Cluster restore complete").waitFor();
	await press(page, "New database password");
	await confirm(page, "New database password");
	await page.getByText("Cluster rotation complete").waitFor();
	await press(page, "Site password");
	assert.match(await dialog(page).getByLabel("Password").inputValue(), /^Sim-[0-9a-f]{16}$/); // waits for the field, and is not changed
	await confirm(page, "Done");
	await page.getByText("Instance secret shown").waitFor();
	assert.doesNotMatch(await main(page).textContent(), /Sim-[0-9a-f]{16}/, "a password stays in its dialog");
	await press(page, "Delete");
	await dialog(page).getByText("Files and database are archived first").waitFor();
	await dialog(page).getByLabel("Reason (optional)").fill("contract ended");
	await confirm(page, "Delete");
	await badge(page, "Deprovisioned");
	await page.getByText("for good").first().waitFor();
	await page.getByRole("row", { name: /Before removal Kept/ }).waitFor();
	await page.getByText("No resources").waitFor();
	await offers(page, []);
	await isAccessible(page, "a removed instance");
	await shot(page, "instance-removed");
});

