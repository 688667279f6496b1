// SPDX-License-Identifier: Apache-2.0
// The pictures of the README, of a world that has lived for a while: scripts/readme-images runs this and puts them into docs/images.
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { ROOT, SECRET, shared, shot, test, until, World } from "./rig.mjs";

const owners = ["biology", "chemistry", "economics", "history", "physics"].map((name) => `${name}@example.com`);
const people = join(tmpdir(), `leasehold-readme-${process.pid}.jsonl`);
writeFileSync(people, [["admin@example.com", "Admin"], ["manager@example.com", "Manager"], ...owners.map((email) => [email, "User"])]
	.map(([email, role]) => `${JSON.stringify({ email, roles: [role] })}\n`).join(""), { mode: 0o600 });

// An hour is a third of a second.
const world = shared({ args: ["--dev"], env: { LEASEHOLD_USERS_FILE: people, LEASEHOLD_SIM_ACCOUNTS: "14", LEASEHOLD_TIME_SCALE: "10000" } });
const show = (l) => world.call("GET", `/api/leases/${l.leaseId}`, undefined, { as: "Admin" });
const days = (count) => count * 24;

async function template(name, fields) {
	return world.call("POST", "/api/leaseTemplates", { name, visibility: "PUBLIC", requiresApproval: true, maxSpend: 400, ...fields }, { as: "Manager" });
}

async function give(made, email, rate) {
	const l = await world.call("POST", "/api/leases", { leaseTemplateUuid: made.uuid, userEmail: email }, { as: "Manager" });
	const active = await until(async () => (await show(l)).status === "Active" && show(l), "it is active");
	await world.call("PUT", `/v1/sim/accounts/${active.awsAccountId}/cost-rate`, { usd_per_hour: rate });
	return active;
}

test("the pictures", async (t) => {
	const policy = await world.call("GET", "/v1/ops/policy");
	const text = [["maxDurationHours", 2000], ["maxBudget", 5000], ["maxLeasesPerUser", 20]].reduce((now, [key, value]) => now.replace(new RegExp(`${key}: *\\d+`), `${key}: ${value}`), policy.text);
	await world.call("PUT", "/v1/ops/policy", { document: text, version: policy.version });
	const [project, course, trial] = [await template("Project", { leaseDurationInHours: days(14), budgetThresholds: [{ dollarsSpent: 300, action: "ALERT" }] }),
		await template("Course", { leaseDurationInHours: days(7) }), await template("Trial", { leaseDurationInHours: days(3), maxSpend: 50 })];
	const held = await give(project, owners[0], 1.4), gone = await give(trial, owners[1], 0.3);
	const others = [];
	for (const [made, owner, rate] of [[course, 2, 0.4], [project, 3, 0.6], [course, 4, 0.2], [trial, 2, 0.1]]) others.push(await give(made, owners[owner], rate));
	await world.call("POST", `/api/leases/${others[2].leaseId}/freeze`, { reason: "not used for days" }, { as: "Manager" });
	// Its three days are 26 seconds here: this picture comes first.
	await until(async () => (await world.call("GET", `/api/accounts/${gone.awsAccountId}`, undefined, { as: "Admin" })).phase === "Cooldown", "an account is in cooldown", 120000);
	const page = await world.open(t, { as: "Admin", path: `/accounts/${gone.awsAccountId}`, viewport: { width: 1280, height: 720 } });
	await page.getByText("Explain", { exact: true }).click();
	await page.locator(".explain-summary", { hasText: "is in cooldown until" }).waitFor();
	await page.evaluate(() => scrollTo(0, 0));
	await shot(page, "console-account");
	await until(async () => (await show(held)).totalCostAccrued > 150, "it has spent for some days", 120000);
	await give(course, owners[1], 0.3);
	await world.call("POST", "/api/leases", { leaseTemplateUuid: project.uuid, userEmail: owners[4] }, { as: "Manager" });
	await page.goto(`${world.url}/leases/${held.leaseId.replace(/=+$/, "")}`);
	await page.locator(".plot-ahead").waitFor();
	await shot(page, "console-lease");
	await page.goto(`${world.url}/leases/timeline?days=14`);
	await page.locator(".span-bar").first().waitFor();
	await shot(page, "console-timeline");
});

// As "make run" and "leasehold demo" show it, ten hours later.
test("the overview", async (t) => {
	const day = await new World({ LEASEHOLD_USERS_FILE: undefined, LEASEHOLD_TIME_SCALE: "360", CLEANUP_INTERVAL_SEC: "300", SYNC_INTERVAL_SEC: "600", AUTO_EXPIRY_INTERVAL_SEC: "300" }, ["--dev"]).start();
	t.after(() => day.stop());
	const env = { HOME: day.folder, LEASEHOLD_ADDRESS: day.url, BROKER_ADMIN_TOKEN: day.token("operator"), BROKER_API_TOKEN: day.token("track"), LEASEHOLD_JWT_SECRET: SECRET };
	await promisify(execFile)(resolve(ROOT, process.env.LEASEHOLD_BIN ?? "build/leasehold"), ["demo", "--for", "100s"], { env });
	const page = await day.open(t, { as: "Admin", viewport: { width: 1280, height: 720 } });
	await page.getByRole("img", { name: /^Claims per minute/ }).waitFor();
	await page.locator("#events .live.on").waitFor();
	await shot(page, "console-overview");
});
