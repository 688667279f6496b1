// SPDX-License-Identifier: Apache-2.0
// What the overview and the page of alarms share: an alarm's name in words, and where one looks and acts.
import { part } from "../dom.js";
import { words } from "../format.js";

// By the beginning of the rule's name.
const places = [
	["dead-letters", "/operations/dead-letters", "View dead letters"], ["queue", "/operations/queues", "View queues"], ["saga", "/operations/sagas", "View sagas"],
	["timer", "/operations/timers", "View timers"], ["job", "/operations/jobs", "View jobs"], ["hold", "/operations/holds", "View holds"],
	["pool-low", "/sandboxes", "View sandboxes"], ["account", "/accounts", "View accounts"], ["cleanup", "/accounts", "View accounts"],
	["instance", "/instances", "View instances"], ["webhook", "/operations/webhooks", "View webhooks"], ["pool-mismatch", "/accounts", "View accounts"],
	["deletion-failed", "/sandboxes?status=deletion_failed", "View sandboxes"], ["line-waiting", "/leases?status=InLine", "View leases"],
];

const aboutOf = (a) => (a.name.includes("#") ? a.name.slice(a.name.indexOf("#") + 1) : "");

export const alarmTitle = (a) => (aboutOf(a) ? `${words(a.rule)}: ${aboutOf(a)}` : words(a.rule));

// { href, label }: the one account, or the tenant's instance, that it is about, else the list where such things are; undefined when there is none.
export function alarmPlace(a) {
	const found = places.find(([rule]) => a.rule.startsWith(rule)), about = aboutOf(a);
	if (found?.[1] === "/accounts" && /^\d{12}$/.test(about)) return { href: `/accounts/${part(about)}`, label: "View account" };
	if (found?.[1] === "/instances" && about && a.rule !== "instance-orphans") return { href: `/instances/${part(about)}`, label: "View instance" };
	return found && { href: found[1], label: found[2] };
}
