// SPDX-License-Identifier: Apache-2.0
// What each queue is for, in words.
import { words } from "../format.js";

const names = {
	jobs: ["Jobs", "runs the periodic jobs"],
	webhook: ["Webhooks: routing", "finds the webhooks that want an event"],
	"webhook-alarm": ["Webhooks: alarms", "posts alarms to webhooks, ahead of everything else"],
	"webhook-out": ["Webhooks", "posts events to webhooks"],
	mail: ["Mail: routing", "finds the people to notify of an event"],
	"mail-alarm": ["Mail: alarms", "sends emails about alarms, ahead of everything else"],
	"mail-out": ["Mail", "sends emails"],
	log: ["Log", "writes events into the log"],
	cloudtrail: ["Organisation events", "receives what was done in the organisation"],
	cleanup: ["Cleanups", "starts and watches the cleaning of accounts"],
	"account-drift": ["Drift", "moves accounts back to the expected OU"],
	reports: ["Reports", "creates statements and cost reports"],
	holds: ["Holds", "ends holds when they are due"],
	"account-moved": ["Account moves", "compares what was moved in the organisation with the records"],
	leases: ["Leases", "ends leases, and warns before they end"],
	line: ["Waiting line", "assigns free accounts to leases waiting in line"],
};

export const queueName = (name) => names[name]?.[0] ?? words(name);
export const queueDoes = (name) => names[name]?.[1] ?? "";
