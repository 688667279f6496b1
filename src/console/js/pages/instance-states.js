// SPDX-License-Identifier: Apache-2.0
// The states of an instance, as the server has them: a drawing of where each leads, and the table itself. Places are fixed here; arrows come
// from the table, and a state without a place gets one below.
import * as api from "../api.js";
import { h, svg } from "../dom.js";
import { words } from "../format.js";
import { badge, card, heading, table } from "../parts.js";
import { kindOfState } from "./instance-parts.js";

const places = {
	"(none)": [0, 1.5], PROVISIONING: [1, 1.5], ACTIVE: [2, 1.5], SCALING: [2, 0], SUSPENDING: [3, 0], RESUMING: [3, 0.9], SUSPENDED: [4, 0.45], PARKING: [3, 2.1],
	UNPARKING: [3, 3], PARKED: [4, 2.55], FAILED: [2, 3.9], PENDING_DEPROVISIONING: [5, 1.5], DEPROVISIONING: [5, 2.7], DEPROVISIONED: [5, 3.9],
};
// Arrows that would run through another state go by here.
const bends = { "PROVISIONING>PENDING_DEPROVISIONING": [3, -3.2], "DEPROVISIONED>PROVISIONING": [1, 6.2], "FAILED>PENDING_DEPROVISIONING": [4.3, 3.9], "SCALING>FAILED": [1.35, 1.6] };
const WIDTH = 152, HEIGHT = 34, COLUMN = 200, ROW = 74, LEFT = 80, TOP = 96, ROWS = 5.2;

const at = ([x, y]) => [LEFT + x * COLUMN, TOP + y * ROW];

// Where the line from the box's middle towards a point leaves the box.
function border([x, y], [toX, toY]) {
	const dx = toX - x, dy = toY - y, share = Math.min((WIDTH / 2 + 3) / Math.abs(dx || 1e-9), (HEIGHT / 2 + 3) / Math.abs(dy || 1e-9));
	return [x + dx * share, y + dy * share];
}

// There and back are two arrows: each keeps a little to its own side.
function arrow(from, to, bend, isLit) {
	const side = 14, [a, b] = [at(from), at(to)], length = Math.hypot(b[0] - a[0], b[1] - a[1]);
	const middle = bend ? at(bend) : [(a[0] + b[0]) / 2 + (side * (b[1] - a[1])) / length, (a[1] + b[1]) / 2 - (side * (b[0] - a[0])) / length];
	const [start, end] = [border(a, middle), border(b, middle)];
	return svg("path", { d: `M${start.map(Math.round)} Q${middle.map(Math.round)} ${end.map(Math.round)}`, class: `state-arrow ${isLit ? "lit" : ""}`, "marker-end": "url(#state-head)" });
}

function box(name, place, isLit) {
	const [x, y] = at(place);
	return svg("g", { class: `state-box ${name === "(none)" ? "plain" : kindOfState(name)} ${isLit ? "lit" : ""}` },
		svg("rect", { x: x - WIDTH / 2, y: y - HEIGHT / 2, width: WIDTH, height: HEIGHT, rx: 6 }),
		svg("text", { x, y: y + 4, "text-anchor": "middle" }, name === "(none)" ? "No instance" : words(name).replace("deprovisioning", "removal")));
}

function drawing({ states, transitions }, lit) {
	const coarse = Object.fromEntries(states.map((s) => [s.state, s.status])), of = (state) => coarse[state] ?? state;
	const names = ["(none)", ...new Set(states.map((s) => s.status))], unknown = names.filter((name) => !places[name]);
	const place = (name) => places[name] ?? [unknown.indexOf(name), ROWS];
	const pairs = new Map(transitions.map((t) => [of(t.from), of(t.to)]).filter(([from, to]) => from !== to).map((pair) => [pair.join(">"), pair]));
	const height = TOP + (ROWS + (unknown.length ? 0.7 : 0)) * ROW;
	return h("div", { class: "states-box", tabindex: 0, role: "region", "aria-label": "Diagram of the states" },
		svg("svg", { viewBox: `0 0 ${LEFT * 2 + 5 * COLUMN} ${height}`, class: "states", role: "img", "aria-label": `${names.length - 1} states and ${pairs.size} transitions; the table below lists them` },
			svg("defs", {}, svg("marker", { id: "state-head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, svg("path", { d: "M0 0L8 4L0 8z" }))),
			[...pairs].map(([key, [from, to]]) => arrow(place(from), place(to), bends[key], from === lit)),
			names.map((name) => box(name, place(name), name === lit))));
}

const state = (name) => (name === "(none)" ? "No instance" : badge(name, { text: name, kind: kindOfState(/^(PENDING_)?PROV|^CONF/.test(name) ? "PROVISIONING" : name) }));

export default async function page(ctx) {
	const got = await api.get("/v1/ops/instances/states", {}, { signal: ctx.signal });
	return [
		heading("States of an instance", { back: { href: "/instances", text: "Instances" }, sub: "Every state, and every change the server allows" }),
		h("div", { class: "stack" },
			card("Transitions", { more: ctx.query.state ? `from ${words(ctx.query.state).toLowerCase()}` : "the steps of provisioning are drawn as one state" }, drawing(got, ctx.query.state)),
			card("All transitions", {}, table([
				{ title: "#", num: true, cell: (t) => String(t.number) },
				{ title: "From", lead: true, cell: (t) => state(t.from) },
				{ title: "To", cell: (t) => state(t.to) },
				{ title: "When", cell: (t) => [t.trigger, t.guard && h("span", { class: "sub-line" }, t.guard)] },
			], got.transitions, { caption: "Transitions" }))),
	];
}
