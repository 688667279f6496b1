// SPDX-License-Identifier: Apache-2.0
// What the board and the page of an account share: the phases of an account, and the reasons why it is held back.
import { badge } from "../parts.js";

// In the order of an account's way. kind: its colour.
export const phases = [
	{ name: "Available", kind: "good", what: "clean and ready to lend" },
	{ name: "Active", kind: "info", what: "lent: its owner has access" },
	{ name: "Frozen", kind: "warn", what: "lent, but access is suspended" },
	{ name: "CleanUp", kind: "info", what: "everything in it is being deleted", title: "Clean-up" },
	{ name: "Cooldown", kind: "warn", what: "clean, not lent until its holds end" },
	{ name: "Quarantine", kind: "bad", what: "not lent until someone acts" },
];

export const phaseOf = (a) => a.phase ?? a.status;
const known = (name) => phases.find((p) => p.name === name);
export const phaseTitle = (name) => known(name)?.title ?? name;
export const phaseBadge = (name) => badge(name, { text: phaseTitle(name), kind: known(name)?.kind });

export const holdReasons = {
	billing: "Billing: the last lease's bill is not complete yet",
	metadata: "Metadata: traces of the last owner have not expired yet",
	quota: "Quotas: rolling quotas have not reset yet",
	"failed-cleanup": "Cleanup failed",
	drift: "Drift: it was not in the expected OU",
	manual: "Placed manually",
	"new-account": "New account",
};
export const holdReason = (name) => holdReasons[name] ?? name;
