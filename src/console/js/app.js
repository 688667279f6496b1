// SPDX-License-Identifier: Apache-2.0
// The shell: who is signed in, which page is shown, what surrounds it. A page is a function of a context; when it is left, everything
// that it began (streams, timers, calls) ends with its signal.
import * as api from "./api.js";
import { fill, h, icon } from "./dom.js";
import { pages, rightsOf } from "./pages.js";
import { denied, empty, failed, loading } from "./parts.js";
import { signIn } from "./signin.js";

const main = document.getElementById("main"), top = document.getElementById("top");
const banner = document.getElementById("banner"), foot = document.getElementById("foot");

let session = null; // who is signed in, with .rights
let leave = new AbortController();

// --- the address ---

// The token of a sign-in comes in the address, as the contract says, and is taken out of it before anything else happens.
function takeToken() {
	const url = new URL(location.href);
	const token = url.searchParams.get("token");
	if (token === null) return;
	url.searchParams.delete("token");
	api.setToken(token);
	history.replaceState(null, "", api.takeWayBack() ?? url.pathname + url.search);
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

// --- a page ---

// What a page gets. signal ends when it is left; every(ms, f) repeats until then, but not while nobody looks; go(href) leads elsewhere;
// setQuery({...}) changes the address's query and shows the page again; reload() shows it again.
function context(params) {
	const signal = leave.signal;
	const query = Object.fromEntries(new URLSearchParams(location.search));
	return {
		main, params, query, session, signal, go,
		rights: session.rights,
		title: (text) => (document.title = `${text} – Leasehold`),
		every(ms, run) {
			const timer = setInterval(() => document.visibilityState === "visible" && run(), ms);
			signal.addEventListener("abort", () => clearInterval(timer));
		},
		setQuery(changes, options) {
			go(location.pathname + withQuery({ ...query, ...changes }), options);
		},
		hrefWith: (changes) => location.pathname + withQuery({ ...query, ...changes }),
		reload: () => show({ keepFocus: true }),
	};
}

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
	if (!found) fill(main, empty("There is no such page", `Nothing is at ${location.pathname}.`, h("a", { class: "button", href: "/" }, "To the overview")));
	else if (found.page.right && !session.rights[found.page.right]) fill(main, denied());
	else await run(found, mine);
	if (mine !== leave) return;
	// Who moved here by keyboard or screen reader starts at the page's beginning; who was typing goes on typing.
	const same = wasFocused && main.querySelector(`[name="${CSS.escape(wasFocused)}"]`);
	if (same) same.focus();
	else if (!keepFocus && shown !== location.pathname && shown !== null) main.focus({ preventScroll: true });
	shown = location.pathname;
}
let shown = null;

async function run({ page, params }, mine) {
	const slow = setTimeout(() => mine === leave && fill(main, loading()), 150);
	try {
		const module = await page.load();
		if (mine !== leave) return;
		const made = await module.default(context(params));
		if (mine === leave) fill(main, made);
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

function drawTop(page) {
	if (!session) return fill(top, brand(), h("div", { class: "who" }, themeButton()));
	const lit = page?.of ?? page?.path;
	const shownPages = pages.filter((p) => p.nav && (!p.right || session.rights[p.right]));
	const role = session.isOperator ? "Operator token" : session.roles.join(", ");
	return fill(top, brand(), menuButton(),
		h("nav", { id: "nav", "aria-label": "Main" },
			h("ul", {}, shownPages.map((p) => h("li", {}, h("a", { href: p.path, "aria-current": p.path === lit && "page" }, p.nav))))),
		h("div", { class: "who" },
			h("span", { class: "who-name", title: session.email || null }, session.name, h("span", { class: "who-role" }, role)),
			themeButton(),
			h("button", { type: "button", class: "button small", on: { click: signOut } }, "Sign out")));
}

function showSignIn(message) {
	document.title = "Sign in – Leasehold";
	drawTop(null);
	fill(main, signIn({ message, use: begin }));
}

function signOut() {
	api.setToken("");
	session = null;
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
	return true;
}

api.on("down", (isDown) => {
	banner.hidden = !isDown;
	fill(banner, isDown ? "The server cannot be reached. What you see may be out of date; this page goes on by itself when it is back." : "");
	if (!isDown && session) show({ keepFocus: true });
});

api.on("expired", () => {
	if (!session) return;
	leave.abort();
	leave = new AbortController(); // what the page that was left still has to say is not shown any more
	session = null;
	api.setToken("");
	showSignIn("Your session has ended. Sign in again to go on where you were.");
});

async function start() {
	takeToken();
	try {
		await api.discover();
		fill(foot, h("span", {}, `Leasehold ${api.service.version}`), h("a", { href: `${api.service.base}/openapi.json` }, "API"));
		if (!api.hasToken()) showSignIn();
		else if (!(await begin())) showSignIn("This session is no longer good. Sign in again.");
	} catch (error) {
		drawTop(null);
		fill(main, failed(error, start));
	}
}

start();
