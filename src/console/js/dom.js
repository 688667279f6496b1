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
