// SPDX-License-Identifier: Apache-2.0
// What the browser tests share: a server of their own, people of every role, a browser, and what must hold on every page.
//
//   import { test, shared } from "./rig.mjs";
//   const world = shared({ env: { LEASEHOLD_SIM_SANDBOXES: "20" } });
//   test("name", async (t) => { const page = await world.open(t, { as: "Admin", path: "/sandboxes" }); ... });
//
// A message on the browser's error console, or an exception in the page, fails the test that had it open.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { chromium } from "playwright-core";

export { assert, test };

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const BINARY = resolve(ROOT, process.env.LEASEHOLD_BIN ?? "build/leasehold");
const SHOTS = join(ROOT, "build/screenshots");
export const SECRET = "browser-tests-secret-0123456789abcdef";
const OPERATOR = "admin-token-0123456789abcdef", TRACK = "track-token-0123456789abcdef";
const PASSWORD = "correct horse battery";
const START_MS = 90000, STEP_MS = 60000; // a machine under load is several times slower
const SHAKE = process.env.LEASEHOLD_SHAKE === "1";
const OURS = /^(LEASEHOLD_|BROKER_|CSP_|DDB_|AWS_|CLEANUP_|NIOSXAAS_|CIRCUIT_|BACKOFF_|LOG_)/;

export const people = { Admin: "admin@example.com", Manager: "manager@example.com", User: "user@example.com" };

const QUIET = {
	BROKER_API_TOKEN: TRACK, BROKER_ADMIN_TOKEN: OPERATOR, LEASEHOLD_JWT_SECRET: SECRET, SYNC_INTERVAL_SEC: "3600",
	CLEANUP_INTERVAL_SEC: "3600", AUTO_EXPIRY_INTERVAL_SEC: "3600", CLEANUP_BATCH_DELAY_SEC: "0", LEASEHOLD_RATE_LIMIT_PER_SEC: "0",
};

// A session's token, as the server itself makes them.
export function tokenOf(email, roles, minutes = 60) {
	const now = Math.floor(Date.now() / 1000), part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
	const body = `${part({ alg: "HS256", typ: "JWT" })}.${part({ user: { email, displayName: email.split("@")[0], roles }, iat: now, exp: now + minutes * 60 })}`;
	return `${body}.${createHmac("sha256", SECRET).update(body).digest("base64url")}`;
}

// Waits until f answers something true; no fixed pause.
export async function until(f, what, timeout = STEP_MS) {
	const end = Date.now() + timeout;
	for (;;) {
		const got = await f();
		if (got) return got;
		assert.ok(Date.now() < end, `waited ${timeout} ms for: ${what}`);
		await new Promise((done) => setTimeout(done, 20));
	}
}

// Waits until f answers what is wanted; tells what it answers instead.
export async function same(f, wanted, what, timeout = STEP_MS) {
	const end = Date.now() + timeout;
	for (;;) {
		const got = await f();
		if (isDeepStrictEqual(got, wanted)) return;
		if (Date.now() >= end) assert.deepEqual(got, wanted, what);
		await new Promise((done) => setTimeout(done, 20));
	}
}

// What is there now is taken away.
export const gone = (locator, what) => same(() => locator.count(), 0, what ?? `${locator} is gone`);

// The page that was asked for is there, with all its parts. A page draws itself anew at any time: whatever is read from it is waited for.
export const loaded = (page) => until(() => page.evaluate(() => document.querySelector("main > *") && !document.querySelector("main[aria-busy], main .loading")), "the page is loaded");

// A button of the page, which takes no click while it is still at work on the last one.
export const press = (page, name) => page.locator("main").getByRole("button", { name, exact: true }).and(page.locator(':not([aria-busy="true"])')).first().click();

// Nothing is wider than the screen.
export async function fits(page, what) {
	await loaded(page);
	const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
	assert.ok(wide <= screen, `${what}: ${wide} pixels of ${screen}`);
}

// For a server that comes back at the same address. One that the system chose could be given to anybody meanwhile; below 32768 it chooses none.
export async function steadyPort() {
	for (;;) {
		const port = 16000 + Math.floor(Math.random() * 16000), server = createServer();
		const isFree = await new Promise((done) => server.once("error", () => done(false)).listen(port, "127.0.0.1", () => server.close(() => done(true))));
		if (isFree) return port;
	}
}

function writePeople(folder) {
	const path = join(folder, "people.jsonl");
	const password = execFileSync(BINARY, ["token", "hash-password"], { input: `${PASSWORD}\n`, encoding: "utf8" }).trim();
	const lines = Object.entries(people).map(([role, email]) => JSON.stringify({ email, roles: [role], password }));
	writeFileSync(path, `${lines.join("\n")}\n`, { mode: 0o600 });
	return path;
}

export class World {
	constructor(env, args = [], port = 0) {
		this.env = env;
		this.port = port;
		this.args = args;
		this.folder = mkdtempSync(join(tmpdir(), "leasehold-browser-"));
		this.password = PASSWORD; // everybody's, on the sign-in page
		this.said = [];
		this.contexts = new Set();
	}

	async start() {
		const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OURS.test(name)));
		const env = { ...inherited, ...QUIET, LEASEHOLD_USERS_FILE: writePeople(this.folder), ...this.env };
		this.server = spawn(BINARY, ["serve", "--listen", `127.0.0.1:${this.port}`, "--data", this.folder, "--init", ...this.args], { env, stdio: ["ignore", "pipe", "pipe"] });
		this.server.stderr.on("data", (text) => this.said.push(String(text)));
		this.ended = new Promise((done) => this.server.once("exit", done));
		const address = new Promise((done) => {
			createInterface({ input: this.server.stdout }).on("line", (line) => {
				if (line.includes('"message":"listening"')) done(JSON.parse(line).address);
			});
		});
		const late = new Promise((_, fail) => setTimeout(fail, START_MS, new Error("the server does not listen")).unref());
		const dead = this.ended.then((status) => assert.fail(`the server ended with ${status}: ${this.said.join("")}`));
		this.url = await Promise.race([address, late, dead]);
		dead.catch(() => {}); // from now on its end is ours to judge
		const wanted = Number(this.env.LEASEHOLD_SIM_SANDBOXES ?? 0);
		if (wanted) await until(async () => (await this.call("GET", "/v1/admin/stats")).available >= wanted, "the pool is filled", START_MS);
		return this;
	}

	async stopServer() {
		this.server.kill("SIGTERM");
		assert.equal(await this.ended, 0, this.said.join(""));
	}

	async stop() {
		for (const context of this.contexts) await context.close();
		if (this.server.exitCode === null && this.server.signalCode === null) await this.stopServer();
		rmSync(this.folder, { recursive: true, force: true });
	}

	// A call of the API past the browser, by an operator or by { as: role }; the answer's body, which must be a good one.
	async call(method, path, body, { as, headers } = {}) {
		const response = await fetch(this.url + path, {
			method, headers: { Authorization: `Bearer ${this.token(as ?? "operator")}`, ...(body && { "Content-Type": "application/json" }), ...headers },
			body: body && JSON.stringify(body),
		});
		const text = await response.text();
		assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
		const answer = text ? JSON.parse(text) : null;
		return path.startsWith("/api/") ? answer.data : answer;
	}

	// A track claims a sandbox.
	claim(track) {
		return this.call("POST", "/v1/allocate", undefined, { as: "track", headers: { "X-Track-ID": track } });
	}

	token(as) {
		if (as === "operator") return OPERATOR;
		if (as === "track") return TRACK;
		return tokenOf(people[as], [as]);
	}

	// A page of the console, signed in as a role, as "operator" (a token of BROKER_ADMIN_TOKEN), or as nobody. allow: error messages
	// that the test expects.
	async open(t, { as, path = "/", allow = [], ...options } = {}) {
		const context = await (await browser()).newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
		const page = await context.newPage(), errors = [];
		this.contexts.add(context);
		page.setDefaultTimeout(STEP_MS);
		page.on("console", (m) => m.type() === "error" && errors.push(`${m.text()} ${m.location().url ?? ""}`));
		page.on("pageerror", (e) => errors.push(String(e.stack ?? e)));
		page.on("request", (r) => r.url().startsWith(this.url) || r.url().startsWith("data:") || errors.push(`a request to elsewhere: ${r.url()}`));
		t.after(async () => {
			if (!page.isClosed()) await page.unrouteAll({ behavior: "ignoreErrors" }); // an answer that a test changes may be on its way
			await context.close();
			this.contexts.delete(context);
			assert.deepEqual(errors.filter((e) => !allow.some((pattern) => pattern.test(e))), [], "errors in the browser");
		});
		if (SHAKE) await shake(context, page);
		if (as) await page.addInitScript((token) => sessionStorage.getItem("leasehold.token") ?? sessionStorage.setItem("leasehold.token", token), this.token(as));
		await page.goto(this.url + path);
		return page;
	}
}

// With LEASEHOLD_SHAKE=1 everything that may happen between two lines of a test does: pages are slow, draw themselves anew up to fifteen times as often,
// and each answer takes its own time.
async function shake(context, page) {
	await page.addInitScript(() => {
		const every = window.setInterval, get = window.fetch, some = (most) => new Promise((done) => setTimeout(done, Math.random() * most));
		window.setInterval = (run, ms, ...more) => every(run, Math.min(ms, Math.max(ms / 15, 400)), ...more);
		window.fetch = async (...call) => {
			await some(100);
			const answer = await get(...call);
			await some(200);
			return answer;
		};
	});
	await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: 4 });
}

let shownBrowser;
function browser() {
	shownBrowser ??= chromium.launch({
		executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
		args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
	});
	return shownBrowser;
}

// One server for all tests of a file. args: more words for `leasehold serve`, such as --dev; port: a steadyPort(), if it is stopped and started again.
export function shared({ env = {}, args = [], port } = {}) {
	const world = new World(env, args, port);
	before(() => Promise.all([world.start(), browser()]));
	after(async () => {
		await world.stop();
		await (await shownBrowser)?.close();
	});
	return world;
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

async function violations(page) {
	await page.evaluate(axe);
	const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
	return found.violations.filter((v) => ["serious", "critical"].includes(v.impact))
		.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => `${n.target} (${n.failureSummary})`).join("; ")}`);
}

// Nothing that axe calls serious or critical. What it says of parts that were replaced while it looked is gone when it looks again.
export async function isAccessible(page, what) {
	await loaded(page);
	await same(() => violations(page), [], `accessibility of ${what}`, 20000);
}

// Kept as build/screenshots/NAME.png.
export async function shot(page, name) {
	mkdirSync(SHOTS, { recursive: true });
	await page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: true });
}
