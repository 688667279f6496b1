// SPDX-License-Identifier: Apache-2.0
// Every page: its path (":name" is a parameter), its title, who may see it, where its code is. nav: its word in the navigation; the
// first page whose nav is set for a path decides which word is lit (by `of`, the nav of a page below).

import { service } from "./api.js";

// What a person may do. The server decides; this only keeps the console from offering what would be refused.
export function rightsOf(session) {
	const has = (...roles) => roles.some((role) => session.roles.includes(role));
	const isPerson = !session.isOperator;
	return {
		sandboxes: session.isOperator || has("Admin"),
		operations: session.isOperator || has("Admin"),
		leases: isPerson,
		approve: isPerson && has("Manager", "Admin"),
		templates: isPerson && has("Manager", "Admin"),
		accounts: isPerson && has("Manager", "Admin"),
		pool: isPerson && has("Admin"),
		reports: isPerson && has("Manager", "Admin"),
		instances: service.instances && (session.isOperator || has("Admin")),
	};
}

export const pages = [
	{ path: "/", nav: "Overview", title: "Overview", load: () => import("./pages/overview.js") },
	{ path: "/sandboxes", nav: "Sandboxes", title: "Sandboxes", right: "sandboxes", load: () => import("./pages/sandboxes.js") },
	{ path: "/sandboxes/class", of: "/sandboxes", title: "Class", right: "sandboxes", load: () => import("./pages/class.js") },
	{ path: "/sandboxes/:id", of: "/sandboxes", title: "Sandbox", right: "sandboxes", load: () => import("./pages/sandbox.js") },
	{ path: "/leases", nav: "Leases", title: "Leases", right: "leases", load: () => import("./pages/leases.js") },
	{ path: "/leases/new", of: "/leases", title: "Request a lease", right: "leases", load: () => import("./pages/request.js") },
	{ path: "/leases/timeline", of: "/leases", title: "Timeline of leases", right: "leases", load: () => import("./pages/lease-timeline.js") },
	{ path: "/leases/:id", of: "/leases", title: "Lease", right: "leases", load: () => import("./pages/lease.js") },
	{ path: "/approvals", nav: "Approvals", title: "Approvals", right: "approve", load: () => import("./pages/approvals.js") },
	{ path: "/templates", nav: "Templates", title: "Templates", right: "templates", load: () => import("./pages/templates.js") },
	{ path: "/templates/new", of: "/templates", title: "New template", right: "templates", load: () => import("./pages/template.js") },
	{ path: "/templates/:id", of: "/templates", title: "Template", right: "templates", load: () => import("./pages/template.js") },
	{ path: "/accounts", nav: "Accounts", title: "Accounts", right: "accounts", load: () => import("./pages/accounts.js") },
	{ path: "/accounts/:id", of: "/accounts", title: "Account", right: "accounts", load: () => import("./pages/account.js") },
	{ path: "/instances", nav: "Instances", title: "Instances", right: "instances", load: () => import("./pages/instances.js") },
	{ path: "/instances/states", of: "/instances", title: "States of an instance", right: "instances", load: () => import("./pages/instance-states.js") },
	{ path: "/instances/:id", of: "/instances", title: "Instance", right: "instances", load: () => import("./pages/instance.js") },
	{ path: "/reports", nav: "Reports", title: "Reports", right: "reports", load: () => import("./pages/reports.js") },
	{ path: "/search", title: "Search", load: () => import("./pages/search.js") },
	{ path: "/operations", nav: "Operations", title: "Operations", right: "operations", load: () => import("./pages/operations.js") },
	{ path: "/operations/alarms", of: "/operations", title: "Alarms", right: "operations", load: () => import("./pages/alarms.js") },
	{ path: "/operations/sagas", of: "/operations", title: "Sagas", right: "operations", load: () => import("./pages/sagas.js") },
	{ path: "/operations/sagas/:id", of: "/operations", title: "Saga", right: "operations", load: () => import("./pages/saga.js") },
	{ path: "/operations/dead-letters", of: "/operations", title: "Dead letters", right: "operations", load: () => import("./pages/deadletters.js") },
	{ path: "/operations/dead-letters/:id", of: "/operations", title: "Dead letter", right: "operations", load: () => import("./pages/deadletters-one.js") },
	{ path: "/operations/queues", of: "/operations", title: "Queues", right: "operations", load: () => import("./pages/queues.js") },
	{ path: "/operations/queues/:queue", of: "/operations", title: "Queue", right: "operations", load: () => import("./pages/queues-one.js") },
	{ path: "/operations/timers", of: "/operations", title: "Timers", right: "operations", load: () => import("./pages/timers.js") },
	{ path: "/operations/jobs", of: "/operations", title: "Jobs", right: "operations", load: () => import("./pages/jobs.js") },
	{ path: "/operations/holds", of: "/operations", title: "Holds", right: "operations", load: () => import("./pages/holds.js") },
	{ path: "/operations/events", of: "/operations", title: "Events", right: "operations", load: () => import("./pages/events.js") },
	{ path: "/operations/webhooks", of: "/operations", title: "Webhooks", right: "operations", load: () => import("./pages/webhooks.js") },
	{ path: "/operations/configuration", of: "/operations", title: "Configuration", right: "operations", load: () => import("./pages/configuration.js") },
	{ path: "/operations/people", of: "/operations", title: "People", right: "operations", load: () => import("./pages/people.js") },
	{ path: "/operations/service-accounts", of: "/operations", title: "Service accounts", right: "operations", load: () => import("./pages/serviceaccounts.js") },
	{ path: "/operations/world", of: "/operations", title: "World", right: "operations", load: () => import("./pages/world.js") },
];
