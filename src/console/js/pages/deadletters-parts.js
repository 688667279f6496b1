// SPDX-License-Identifier: Apache-2.0
// What the list and the page of a dead letter share: who it was for in words, and the two ways out: deliver again, or drop.
import * as api from "../api.js";
import { part } from "../dom.js";
import { button, confirm } from "../parts.js";
import { queueName } from "./queues-parts.js";

export const letterHref = (id) => `/operations/dead-letters/${part(id)}`;

// A webhook is known by its URL, a mail by its address, everything else by its queue.
export function addressee(letter, webhooks) {
	if (letter.queue === "webhook-out" || letter.queue === "webhook-alarm") return webhooks.find((w) => w.id === letter.target)?.url ?? "a deleted webhook";
	return letter.target ?? queueName(letter.queue);
}

export function replayButton(letter, then, { size, kind = "primary" } = {}) {
	return button("Replay", { size, kind, title: `Replay ${letter.type ?? ""} of ${letter.subject}`, run: () => confirm({
		title: "Deliver it again?", label: "Replay", done: "It is back in its queue. If it fails again, it comes back here.",
		text: "It goes to the end of its lane with a fresh set of tries. Fix the cause of its error first.",
		run: () => api.post(`/v1/ops/dead-letters/${part(letter.id)}/replay`),
	}).then((did) => did && then()) });
}

export function dropButton(letter, then, { size } = {}) {
	return button("Drop", { size, kind: "quiet-danger", title: `Drop ${letter.type ?? ""} of ${letter.subject}`, run: () => confirm({
		title: "Drop it for good?", label: "Drop", danger: true, reason: "required", done: "Dropped. The event itself stays in the log.",
		text: "The receiver will never get this event. This cannot be undone.",
		run: (reason) => api.post(`/v1/ops/dead-letters/${part(letter.id)}/drop`, { reason }),
	}).then((did) => did && then()) });
}

// A hundred at a time, until none is left.
async function replayAll(queue) {
	let sum = 0, left = 1;
	while (left > 0) {
		const got = await api.call("POST", "/v1/ops/dead-letters/replay", { query: { queue }, body: {} });
		sum += got.replayed;
		left = got.replayed ? got.left : 0;
	}
	return sum;
}

export function replayAllButton(queue, then) {
	return button(`Replay all of ${queue}`, { run: () => confirm({
		title: `Deliver all dead letters of ${queue} again?`, label: "Replay all", done: (sum) => `${sum} are back in their queue. Those that fail again come back here.`,
		text: `Everything that ${queueName(queue).toLowerCase()} could not deliver is tried again. Fix the cause first.`,
		run: () => replayAll(queue),
	}).then((did) => did !== undefined && then()) });
}
