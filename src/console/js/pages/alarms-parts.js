// SPDX-License-Identifier: Apache-2.0
// What the overview and the page of alarms share: an alarm's name in words, and where one looks and acts.
import { part } from "../dom.js";
import { words } from "../format.js";

// By the beginning of the rule's name.
const places = [
	["dead-letters", "/operations/dead-letters", "To the dead letters"], ["queue", "/operations/queues", "To the queues"], ["saga", "/operations/sagas", "To the sagas"],
	["timer", "/operations/timers", "To the timers"], ["job", "/operations/jobs", "To the jobs"], ["hold", "/operations/holds", "To the holds"],
	["pool-low", "/sandboxes", "To the sandboxes"], ["account", "/accounts", "To the accounts"], ["cleanup", "/accounts", "To the accounts"],
];

const aboutOf = (a) => (a.name.includes("#") ? a.name.slice(a.name.indexOf("#") + 1) : "");

export const alarmTitle = (a) => (aboutOf(a) ? `${words(a.rule)}: ${aboutOf(a)}` : words(a.rule));

// { href, label }: the one account that it is about, else the list where such things are; undefined when there is none.
export function alarmPlace(a) {
	const found = places.find(([rule]) => a.rule.startsWith(rule)), about = aboutOf(a);
	if (found?.[1] === "/accounts" && /^\d{12}$/.test(about)) return { href: `/accounts/${part(about)}`, label: "To the account" };
	return found && { href: found[1], label: found[2] };
}
