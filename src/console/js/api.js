// SPDX-License-Identifier: Apache-2.0
// Calls of the public API. The token travels in the Authorization header and nowhere else; it is kept for this tab only.
// There are no cookies, so another site cannot make the browser do anything here.

const KEY = "leasehold.token";
const RETRY_MIN_MS = 1000, RETRY_MAX_MS = 15000, HEALTH_MS = 2000;

let token = read();
let base = "/v1";
let clockAhead = 0; // the server's clock may be another one, in development
let isDown = false;
const listeners = { down: [], expired: [] };

function read() {
	try {
		return sessionStorage.getItem(KEY) ?? "";
	} catch {
		return "";
	}
}

export function setToken(text) {
	token = text;
	try {
		if (text) sessionStorage.setItem(KEY, text);
		else sessionStorage.removeItem(KEY);
	} catch {
		// the token lives as long as the page, then
	}
}

export const hasToken = () => token !== "";

// on("down", (isDown) => ...): the server cannot be reached, or can again. on("expired", () => ...): the token is good no longer.
export function on(what, listen) {
	listeners[what].push(listen);
}

// The server's time in milliseconds.
export const now = () => Date.now() + clockAhead;

// It is not the real time: it runs faster, or is that of a world that was ahead.
export const isOtherTime = () => clockAhead !== 0;

// What went wrong, whatever the shape of the answer: message is for people, fields are { field, message } of a form.
export class ApiError extends Error {
	constructor(status, message, more = {}) {
		super(message);
		Object.assign(this, { status, code: "", fields: [], requestId: "", retryAfter: 0, problems: [] }, more);
	}
}

function toError(status, body, response) {
	const requestId = response.headers.get("X-Request-ID") ?? "";
	const retryAfter = Number(response.headers.get("Retry-After")) || 0;
	const more = { requestId, retryAfter };
	if (body?.error?.message)
		return new ApiError(status, body.error.message, { ...more, code: body.error.code, problems: body.error.problems ?? [], fields: body.error.details?.errors ?? [] });
	if (body?.status === "fail" && body.data?.errors) {
		const fields = body.data.errors;
		return new ApiError(status, fields.map((f) => f.message).join(" "), { ...more, fields });
	}
	const text = body?.detail ?? body?.title ?? body?.message;
	return new ApiError(status, text ?? `The server answered ${status} without saying why.`, more);
}

function setDown(value) {
	if (isDown === value) return;
	isDown = value;
	for (const listen of listeners.down) listen(value);
	if (value) watchHealth();
}

async function watchHealth() {
	while (isDown) {
		await new Promise((done) => setTimeout(done, HEALTH_MS));
		try {
			if ((await fetch("/healthz", { cache: "no-store" })).ok) setDown(false);
		} catch {
			// still away
		}
	}
}

// "/v1/x" with the base path that this server has, and a query of what is not empty.
function address(path, query) {
	const url = path.startsWith("/v1/") ? base + path.slice(3) : path;
	const given = Object.entries(query ?? {}).filter(([, v]) => v !== undefined && v !== null && v !== "");
	return given.length ? `${url}?${new URLSearchParams(given)}` : url;
}

function noteClock(response) {
	const text = response.headers.get("Leasehold-Time");
	if (text) clockAhead = new Date(text).getTime() - Date.now();
}

async function send(method, path, { query, body, headers, signal, accept = "application/json" } = {}) {
	const sent = { Accept: accept, ...headers };
	if (token) sent.Authorization = `Bearer ${token}`;
	if (body !== undefined) sent["Content-Type"] = "application/json";
	let response;
	try {
		response = await fetch(address(path, query), {
			method, headers: sent, signal, cache: "no-store", credentials: "omit",
			body: body === undefined ? undefined : JSON.stringify(body),
		});
	} catch (error) {
		if (error.name === "AbortError") throw error;
		setDown(true);
		throw new ApiError(0, "The server cannot be reached.");
	}
	setDown(false);
	noteClock(response);
	return response;
}

async function refuse(response) {
	let body = null;
	try {
		body = await response.json();
	} catch {
		// not JSON: the status has to do
	}
	const error = toError(response.status, body, response);
	if (response.status === 401 && token) for (const listen of listeners.expired) listen(error);
	throw error;
}

// A call; what it answers, without the envelope that /api has. Throws an ApiError.
export async function call(method, path, options) {
	const response = await send(method, path, options);
	if (!response.ok) await refuse(response);
	const text = await response.text();
	const body = text ? JSON.parse(text) : null;
	const isEnvelope = path.startsWith("/api/") && body?.status === "success";
	return isEnvelope ? (body.data ?? null) : body;
}

export const get = (path, query, options) => call("GET", path, { query, ...options });
export const post = (path, body = {}, options) => call("POST", path, { body, ...options });
export const put = (path, body, options) => call("PUT", path, { body, ...options });
export const patch = (path, body, options) => call("PATCH", path, { body, ...options });
export const remove = (path, options) => call("DELETE", path, options);

// One page of a list in one shape, whichever family the list is of: { items, next }; next goes into the next call's cursor.
// key: the member of a /v1 answer that has the records.
export async function page(path, key, { cursor, ...query } = {}, options) {
	if (path.startsWith("/api/")) {
		const data = await get(path, { ...query, pageIdentifier: cursor }, options);
		return { items: data[key ?? "result"], next: data.nextPageIdentifier ?? null };
	}
	const data = await get(path, { ...query, cursor }, options);
	return { items: data[key], next: data.cursor ?? null };
}

// The pages of a list until there are most records, as one: next is null when these are all.
export async function upTo(most, path, key, query, options) {
	const items = [];
	let next = null;
	do {
		const got = await page(path, key, { ...query, cursor: next ?? undefined }, options);
		items.push(...got.items);
		next = got.next;
	} while (next && items.length < most);
	return { items, next };
}

// All of a list, where what is beyond most records does not matter.
export const all = async (path, key, query = {}, most = 2000, options) => (await upTo(most, path, key, query, options)).items;

// An answer that is a text of its own: a table for spreadsheets.
export async function text(path, query, options) {
	const response = await send("GET", path, { query, accept: "*/*", ...options });
	if (!response.ok) await refuse(response);
	return response.text();
}

// A file that the API makes, handed to the browser to be saved.
export async function download(path, query, name) {
	const response = await send("GET", path, { query, accept: "*/*" });
	if (!response.ok) await refuse(response);
	const url = URL.createObjectURL(await response.blob());
	const link = document.createElement("a");
	link.href = url;
	link.download = name;
	link.click();
	URL.revokeObjectURL(url);
}

// Server-sent events by fetch, because EventSource cannot send a token. Comes back by itself after a break, after the last event
// seen, until the signal is aborted. take(event) gets the parsed JSON; state(isLive) hears whether it is connected.
export async function follow(path, query, take, { signal, state = () => {} }) {
	let last = "", wait = RETRY_MIN_MS;
	while (!signal.aborted) {
		try {
			const headers = last ? { "Last-Event-ID": last } : {};
			const response = await send("GET", path, { query, headers, signal, accept: "text/event-stream" });
			if (!response.ok) await refuse(response);
			state(true);
			wait = RETRY_MIN_MS;
			last = await readStream(response.body.getReader(), last, take, (id) => (last = id));
		} catch (error) {
			if (signal.aborted) return;
			if (error instanceof ApiError && (error.status === 401 || error.status === 403)) throw error;
		}
		if (signal.aborted) return;
		state(false);
		await new Promise((done) => setTimeout(done, wait));
		wait = Math.min(wait * 2, RETRY_MAX_MS);
	}
}

async function readStream(reader, last, take, seen) {
	const decoder = new TextDecoder();
	let rest = "";
	for (;;) {
		const { done, value } = await reader.read();
		if (done) return last;
		rest += decoder.decode(value, { stream: true });
		const blocks = rest.split("\n\n");
		rest = blocks.pop();
		for (const block of blocks) {
			const event = parseBlock(block);
			if (event.id) seen((last = event.id));
			if (event.data) take(JSON.parse(event.data));
		}
	}
}

function parseBlock(block) {
	const event = { id: "", data: "" };
	for (const line of block.split("\n")) {
		const [, name, value] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
		if (name === "data") event.data += event.data ? `\n${value}` : value;
		else if (name) event[name] = value;
	}
	return event;
}

// --- who is it ---

// simulated: the cloud is a simulated one, whose faults can be switched on. instances: there are tenants' instances here. notice: what is not
// real here, for every page.
export const service = { version: "", base, simulated: false, instances: false, notice: "" };

// What runs here, and below which path: once, before anything else.
export async function discover() {
	const root = await get("/");
	service.version = root.version;
	service.simulated = root.simulated === true;
	service.notice = root.notice ?? "";
	service.instances = root.instances === true;
	base = service.base = root.docs.replace(/\/openapi\.json$/, "");
}

// Who this token belongs to: { email, name, roles, isOperator, until }, or null. An operator's token is no person: /api does not know it.
export async function whoami() {
	if (!token) return null;
	const status = await get("/api/auth/login/status");
	if (status.authenticated) {
		const { user, exp } = status.session;
		return { email: user.email, name: user.displayName || user.email, roles: user.roles, isOperator: false, until: exp ?? null };
	}
	const response = await send("GET", "/v1/admin/stats");
	if (response.status === 401 || response.status === 403) return null;
	if (!response.ok) await refuse(response); // that says nothing about the token
	return { email: "", name: "Operator", roles: [], isOperator: true, until: null };
}

// --- the way to the sign-in and back ---

const WAY = "leasehold.way", WAY_MS = 15 * 60 * 1000;

// A sign-in begins: where we are now, to come back to after it.
export function noteWayBack() {
	try {
		sessionStorage.setItem(WAY, JSON.stringify({ path: location.pathname + location.search, begun: Date.now() }));
	} catch {
		// then only a token that is pasted signs in
	}
}

// The path to come back to, once; null when no sign-in was begun in this tab, or too long ago.
export function takeWayBack() {
	try {
		const { path, begun } = JSON.parse(sessionStorage.getItem(WAY));
		sessionStorage.removeItem(WAY);
		if (Date.now() - begun > WAY_MS) return null;
		// Only a path of our own: with two slashes in front it would be another place.
		return /^\/(?!\/)/.test(path) ? path : "/";
	} catch {
		return null;
	}
}
