// SPDX-License-Identifier: Apache-2.0
// The shell: who is signed in, which page is shown, what surrounds it. A page is a function of a context; when it is left, everything
// that it began (streams, timers, calls) ends with its signal.
import * as api from "./api.js";
import { fill, h, icon, keepingFocus, touch } from "./dom.js";
import { pages, rightsOf } from "./pages.js";
import { clear, denied, empty, failed, loading } from "./parts.js";
import { signIn } from "./signin.js";
import { recount, stopCounting, waitingCount } from "./waiting.js";

const main = document.getElementById("main"), top = document.getElementById("top");
const banner = document.getElementById("banner"), foot = document.getElementById("foot"), notice = document.getElementById("notice");

let session = null; // who is signed in, with .rights
let leave = new AbortController();
let typed = null; // the signal of the last page that something was typed into

// --- the address ---

// The token of a sign-in comes in the address, as the contract says, and is taken out of it before anything else happens. Only one that
// was asked for from this tab is used: anybody can make a link with a token of his own. False: it was not.
function takeToken() {
	const url = new URL(location.href);
	const token = url.searchParams.get("token");
	if (token === null) return true;
	url.searchParams.delete("token");
	const way = api.takeWayBack();
	if (way !== null) api.setToken(token);
	history.replaceState(null, "", way ?? url.pathname + url.search);
	return way !== null;
}

function match(path) {
	const given = path.split("/").filter(Boolean);
	for (const page of pages) {
		const wanted = page.path.split("/").filter(Boolean);
		if (wanted.length !== given.length) continue;
		const params = {};
		if (wanted.every((w, i) => (w.startsWith(":") ? ((params[w.slice(1)] = decode(given[i])), true) : w === given[i])))
			return { page, params };
	}
	return null;
}

function decode(text) {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

export function go(href, { replace } = {}) {
	history[replace ? "replaceState" : "pushState"](null, "", href);
	show();
}

document.addEventListener("click", (event) => {
	const link = event.target.closest?.("a[href]");
	if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
	const url = new URL(link.href);
	if (url.origin !== location.origin || link.target || link.hasAttribute("download") || !match(url.pathname)) return;
	if (link.getAttribute("href").startsWith("#")) return;
	event.preventDefault();
	closeMenu();
	go(url.pathname + url.search);
	scrollTo(0, 0);
});
addEventListener("popstate", () => show());
main.addEventListener("input", (event) => event.target.closest(".filters") || (typed = leave.signal));

// --- a page ---

// What a page gets. signal ends when it is left; every(ms, f) repeats until then, but not while nobody looks, nor before the promise that f answered
// is kept; go(href) leads elsewhere; setQuery({...}) changes the address's query and shows the page again; reload() shows it again.
function context(params) {
	const signal = leave.signal, path = location.pathname, query = currentQuery();
	return {
		main, params, query, session, signal, go,
		rights: session.rights,
		title: (text) => (document.title = `${text} – Leasehold`),
		every(ms, run) {
			let isRunning = false;
			const timer = setInterval(async () => {
				if (isRunning || document.visibilityState !== "visible") return;
				isRunning = true;
				try {
					await run();
				} finally {
					isRunning = false;
				}
			}, ms);
			signal.addEventListener("abort", () => clearInterval(timer));
		},
		setQuery(changes, options) {
			if (location.pathname === path) go(path + withQuery({ ...currentQuery(), ...changes }), options); // this page may be shown while its next query is read
		},
		hrefWith: (changes) => location.pathname + withQuery({ ...query, ...changes }),
		reload: () => show({ keepFocus: true }),
	};
}

const currentQuery = () => Object.fromEntries(new URLSearchParams(location.search));

function withQuery(query) {
	const given = Object.entries(query).filter(([, v]) => v !== undefined && v !== null && v !== "");
	return given.length ? `?${new URLSearchParams(given)}` : "";
}

async function show({ keepFocus = false } = {}) {
	leave.abort();
	leave = new AbortController();
	const mine = leave;
	if (!session) return showSignIn();
	const found = match(location.pathname);
	const wasFocused = document.activeElement?.name && document.activeElement.closest("main") ? document.activeElement.name : null;
	document.title = `${found?.page.title ?? "Not found"} – Leasehold`;
	drawTop(found?.page);
	main.setAttribute("aria-busy", "true");
	if (!found) fill(main, empty("Page not found", `There is nothing at ${location.pathname}.`, h("a", { class: "button", href: "/" }, "Go to the overview")));
	else if (found.page.right && !session.rights[found.page.right]) fill(main, denied());
	else await run(found, mine, keepFocus);
	if (mine !== leave) return;
	main.removeAttribute("aria-busy");
	// Who moved here by keyboard or screen reader starts at the page's beginning; who was typing goes on typing.
	const same = wasFocused && main.querySelector(`[name="${CSS.escape(wasFocused)}"]`);
	if (same) same.focus();
	else if (!keepFocus && !isFinding() && shown !== location.pathname && shown !== null) main.focus({ preventScroll: true });
	shown = location.pathname;
}
let shown = null;

// What was typed while the page was read belongs to the field that stands there now.
function goOnTyping(name, text) {
	const now = document.activeElement;
	if (now.name !== name || !("value" in now)) return;
	now.value = text;
	touch(now);
}

async function run({ page, params }, mine, keepFocus) {
	const field = main.contains(document.activeElement) ? document.activeElement : null, begun = field?.value;
	const slow = setTimeout(() => mine === leave && !keepFocus && shown !== location.pathname && fill(main, loading()), 150);
	try {
		const module = await page.load();
		if (mine !== leave) return;
		const made = await module.default(context(params));
		if (mine !== leave) return;
		if (!keepingFocus(main, () => fill(main, made)) && keepFocus) main.focus({ preventScroll: true });
		if (field && field.value !== begun) goOnTyping(field.name, field.value);
	} catch (error) {
		if (mine !== leave || error.name === "AbortError") return;
		if (!(error instanceof api.ApiError)) console.error(error);
		fill(main, failed(error, () => show()));
	} finally {
		clearTimeout(slow);
	}
}

// --- around it ---

const themes = { light: "dark", dark: "light" };

function currentTheme() {
	return document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function switchTheme() {
	const next = themes[currentTheme()];
	document.documentElement.dataset.theme = next;
	try {
		localStorage.setItem("leasehold.theme", next);
	} catch {
		// it lasts until the page is left, then
	}
	drawTop(match(location.pathname)?.page);
	document.getElementById("theme").focus();
}

function themeButton() {
	const other = themes[currentTheme()];
	return h("button", { type: "button", id: "theme", class: "plain", "aria-label": `Switch to ${other} colours`, title: `Switch to ${other} colours`,
		on: { click: switchTheme } }, icon(other === "dark" ? "moon" : "sun"));
}

function closeMenu() {
	top.classList.remove("open");
	top.querySelector("#menu")?.setAttribute("aria-expanded", "false");
}

function menuButton() {
	return h("button", { type: "button", id: "menu", class: "plain", "aria-label": "Menu", "aria-expanded": "false", "aria-controls": "nav",
		on: { click: (e) => e.currentTarget.setAttribute("aria-expanded", String(top.classList.toggle("open"))) } }, icon("menu"));
}

function brand() {
	return h("a", { class: "brand", href: "/" }, h("span", { class: "logo", "aria-hidden": "true" }), "Leasehold");
}

// One box for people, accounts, leases and sandboxes; "/" leads to it from anywhere. It stays the same when the page around it changes: whoever types
// in it goes on typing.
const find = h("input", { type: "search", id: "find", name: "find", placeholder: "Search", "aria-label": "Search everything", autocomplete: "off", maxlength: 128 });
const findBox = h("form", { role: "search", class: "find", on: { submit: (event) => {
	event.preventDefault();
	closeMenu();
	find.blur();
	go(`/search${withQuery({ q: find.value.trim() })}`);
} } }, find);
const isFinding = () => document.activeElement === find;

function drawTop(page) {
	const wasFinding = isFinding();
	if (!wasFinding) find.value = location.pathname === "/search" ? new URLSearchParams(location.search).get("q") ?? "" : "";
	fillTop(page);
	if (wasFinding && find.isConnected) find.focus();
}

document.addEventListener("keydown", (event) => {
	if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, dialog, [contenteditable]")) return;
	if (!find.isConnected) return;
	event.preventDefault();
	find.focus();
});

function fillTop(page) {
	if (!session) stopCounting();
	if (!session) return fill(top, brand(), h("div", { class: "who" }, themeButton()));
	const lit = page?.of ?? page?.path;
	const shownPages = pages.filter((p) => p.nav && (!p.right || session.rights[p.right]));
	const role = session.isOperator ? "Operator token" : session.roles.join(", ");
	return fill(top, brand(), menuButton(),
		h("nav", { id: "nav", "aria-label": "Main" },
			h("ul", {}, shownPages.map((p) => h("li", {}, h("a", { href: p.path, "aria-current": p.path === lit && "page" }, p.nav), p.path === "/approvals" && waitingCount())))),
		findBox,
		h("div", { class: "who" },
			h("span", { class: "who-name", title: session.email || null }, session.name, h("span", { class: "who-role" }, role)),
			themeButton(),
			h("button", { type: "button", class: "button small", on: { click: signOut } }, "Sign out")));
}

function showSignIn(message) {
	document.title = "Sign in – Leasehold";
	drawTop(null);
	main.removeAttribute("aria-busy");
	fill(main, signIn({ message, use: begin }));
}

function signOut() {
	api.setToken("");
	session = null;
	clear();
	history.replaceState(null, "", "/");
	show();
}

async function begin() {
	session = await api.whoami();
	if (!session) {
		api.setToken("");
		return false;
	}
	session.rights = rightsOf(session);
	await show();
	recount();
	return true;
}

api.on("down", (isDown) => {
	banner.hidden = !isDown;
	fill(banner, isDown ? "The server cannot be reached. What you see may be out of date; this page reconnects by itself." : "");
	if (!isDown && session && typed !== leave.signal) show({ keepFocus: true }); // what was typed would be lost
});

api.on("expired", () => {
	if (!session) return;
	leave.abort();
	leave = new AbortController(); // what the page that was left still has to say is not shown any more
	session = null;
	clear();
	api.setToken("");
	showSignIn("Your session has expired. Sign in again to continue where you were.");
});

async function start() {
	const isOwn = takeToken();
	try {
		await api.discover();
		notice.hidden = !api.service.notice;
		notice.textContent = api.service.notice;
		fill(foot, h("span", {}, `Leasehold ${api.service.version}`), h("a", { href: `${api.service.base}/openapi.json` }, "API"));
		if (!api.hasToken()) showSignIn(isOwn ? undefined : "This sign-in was not started in this tab. Start again here.");
		else if (!(await begin())) showSignIn("This session has expired. Sign in again.");
	} catch (error) {
		drawTop(null);
		fill(main, failed(error, start));
	}
}

start();
