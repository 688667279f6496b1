// SPDX-License-Identifier: Apache-2.0
// How many requests wait for a manager, beside the word Approvals in the navigation.
import * as api from "./api.js";
import { fill, h } from "./dom.js";

const FRESH_MS = 30000, MOST = 100;
const places = new Set();
let count = 0;

function show(place) {
	place.hidden = count === 0;
	fill(place, count >= MOST ? `${MOST}+` : count, h("span", { class: "unseen" }, " waiting"));
}

// The element that has the number; it is kept up to date while it is there.
export function waitingCount() {
	const place = h("span", { class: "count", hidden: true });
	places.clear();
	places.add(place);
	show(place);
	return place;
}

// Who has signed out is told nothing.
export function stopCounting() {
	places.clear();
	count = 0;
}

export async function recount() {
	if (!places.size || document.visibilityState !== "visible") return;
	const { items } = await api.page("/api/leases", "result", { status: "PendingApproval", pageSize: MOST }).catch(() => ({ items: null }));
	if (items) count = items.length;
	for (const place of places) show(place);
}

setInterval(recount, FRESH_MS);
