// SPDX-License-Identifier: Apache-2.0
// Elements from data. Text only ever becomes a text node, so nothing that the server sends can become markup.

const SVG = "http://www.w3.org/2000/svg";

function apply(element, props) {
	for (const [name, value] of Object.entries(props)) {
		if (value === undefined || value === null || value === false) continue;
		if (name === "on") for (const [type, listen] of Object.entries(value)) element.addEventListener(type, listen);
		else if (name === "style") for (const [key, v] of Object.entries(value)) element.style.setProperty(key, v);
		else if (name === "data") Object.assign(element.dataset, value);
		else if (name === "value" || name === "checked" || name === "selected") element[name] = value;
		else element.setAttribute(name, value === true ? "" : value);
	}
}

function add(element, children) {
	for (const child of children.flat(Infinity))
		if (child !== undefined && child !== null && child !== false)
			element.append(child instanceof Node ? child : String(child));
	return element;
}

// h("a", { href: "/x", class: "y", on: { click } }, "text", child, [more]). null, undefined and false are passed over, in
// props and among the children.
export function h(name, props, ...children) {
	const element = document.createElement(name);
	// A select's value is one of its options: those come first.
	const { value, ...rest } = props ?? {};
	apply(element, rest);
	add(element, children);
	if (value !== undefined && value !== null) element.value = value;
	return element;
}

export function svg(name, props, ...children) {
	const element = document.createElementNS(SVG, name);
	apply(element, props ?? {});
	return add(element, children);
}

// A form that a script has changed counts as one that was typed into: see app.js.
export const touch = (element) => element.dispatchEvent(new Event("input", { bubbles: true }));

// Put these children in place of what is there.
export function fill(element, ...children) {
	element.replaceChildren();
	return add(element, children);
}

// A part of a path: also dots and slashes are escaped, so that an id is never taken for a file or a folder.
export function part(text) {
	return encodeURIComponent(text).replaceAll(".", "%2E");
}

let ids = 0;
export function newId(prefix = "id") {
	return `${prefix}-${++ids}`;
}

const shapes = {
	sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1",
	moon: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7",
	menu: "M2 4h12M2 8h12M2 12h12",
	search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.5 10.5 14 14",
	copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
	alarm: "M8 2 15 14H1zM8 6.5V10M8 11.8v.2",
	check: "M3 8.5 6.5 12 13 4.5",
	close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
	arrow: "M6 3l5 5-5 5",
};

// A small drawing beside a text that says the same; screen readers pass it over.
export function icon(name) {
	return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" },
		svg("path", { d: shapes[name] }));
}

const focusable = "a[href], button, input, select, textarea, summary";
const nameOf = (element) => `${element.tagName} ${element.name || element.getAttribute("aria-label") || element.title || element.textContent}`;

// Focus the element, or what has its name now, if it was drawn anew meanwhile; not if the reader has gone elsewhere.
export function focusAgain(element) {
	if (!element || element === document.body || document.activeElement !== document.body) return;
	(element.isConnected ? element : [...document.querySelectorAll(focusable)].find((e) => nameOf(e) === nameOf(element)))?.focus();
}

// Change what the element shows, and give the focus back to what has the same name as before, if that was inside. False: it was, and there is
// nothing of that name any more.
export function keepingFocus(element, change) {
	const before = element.contains(document.activeElement) && document.activeElement !== element ? document.activeElement : null;
	const named = (name) => [...element.querySelectorAll(focusable)].filter((e) => nameOf(e) === name);
	const name = before && nameOf(before), at = before ? named(name).indexOf(before) : -1;
	change();
	if (!before || document.activeElement === before) return true;
	const now = named(name), same = before.isConnected ? before : (now[at] ?? now.at(-1));
	same?.focus({ preventScroll: true });
	return !!same;
}

const keyOf = (details) => details.dataset.key ?? details.querySelector("summary").textContent.replace(/ \(\d+\)$/, "");

// Change what the element shows; what was opened in it is open afterwards.
export function keepingOpen(element, change) {
	const opened = new Set([...element.querySelectorAll("details[open]")].map(keyOf)), answer = change();
	for (const details of element.querySelectorAll("details:not([open])")) if (opened.has(keyOf(details))) details.open = true;
	return answer;
}

let isPressed = false;
const waiting = [];
for (const type of ["pointerdown", "pointermove", "pointerup", "pointercancel"])
	document.addEventListener(type, (event) => {
		isPressed = (event.buttons & 1) === 1;
		if (!isPressed && waiting.length) setTimeout(() => waiting.splice(0).forEach((go) => go())); // the click comes first
	}, { capture: true, passive: true });

// A click is pressed and released on one element: nothing may be drawn anew between the two. Null: nothing is pressed; otherwise a promise,
// kept when it is released and the click has happened.
export const released = () => (isPressed ? new Promise((go) => waiting.push(go)) : null);
