// SPDX-License-Identifier: Apache-2.0
// What the board and the page of an account share: the phases of an account, and the reasons why it is held back.
import { badge } from "../parts.js";

// In the order of an account's way. kind: its colour.
export const phases = [
	{ name: "Available", kind: "good", what: "clean and rested: can be lent" },
	{ name: "Active", kind: "info", what: "lent: its holder has access" },
	{ name: "Frozen", kind: "warn", what: "lent, but nobody has access" },
	{ name: "CleanUp", kind: "info", what: "everything in it is being deleted", title: "Clean-up" },
	{ name: "Cooldown", kind: "warn", what: "clean, and rests until its holds end" },
	{ name: "Quarantine", kind: "bad", what: "locked away until a person acts" },
];

export const phaseOf = (a) => a.phase ?? a.status;
const known = (name) => phases.find((p) => p.name === name);
export const phaseTitle = (name) => known(name)?.title ?? name;
export const phaseBadge = (name) => badge(name, { text: phaseTitle(name), kind: known(name)?.kind });

export const holdReasons = {
	billing: "Billing: the last lease's bill is not complete yet",
	metadata: "Metadata: it still remembers its last tenant",
	quota: "Quotas: rolling quotas are not fresh yet",
	"failed-cleanup": "It could not be cleaned",
	drift: "It was not where it should be",
	manual: "Held by a person",
	"new-account": "New account",
};
export const holdReason = (name) => holdReasons[name] ?? name;
