// SPDX-License-Identifier: Apache-2.0
// What each queue is for, in words.
import { words } from "../format.js";

const names = {
	jobs: ["Jobs", "runs the periodic jobs"],
	webhook: ["Webhooks: for whom", "finds the webhooks that an event is for"],
	"webhook-out": ["Webhooks", "posts events to webhooks"],
	mail: ["Mail: for whom", "finds the people that an event is for"],
	"mail-out": ["Mail", "sends mails"],
	log: ["Log", "writes events into the log"],
	cloudtrail: ["Organisation's events", "hears what was done in the organisation"],
	cleanup: ["Cleanups", "starts and watches the cleaning of accounts"],
	"account-drift": ["Drift", "puts right what is not where it should be"],
	reports: ["Reports", "makes statements and cost reports"],
	holds: ["Holds", "ends holds when their time has come"],
	"account-moved": ["Moves of accounts", "compares what was moved in the organisation with the records"],
	leases: ["Leases", "ends leases, warns before"],
	line: ["Waiting line", "gives free accounts to those who wait"],
};

export const queueName = (name) => names[name]?.[0] ?? words(name);
export const queueDoes = (name) => names[name]?.[1] ?? "";
