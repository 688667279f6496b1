// SPDX-License-Identifier: Apache-2.0
// Every page: its path (":name" is a parameter), its title, who may see it, where its code is. nav: its word in the navigation; the
// first page whose nav is set for a path decides which word is lit (by `of`, the nav of a page below).

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
		accounts: isPerson && has("Admin"),
		reports: isPerson && has("Admin"),
	};
}

export const pages = [
	{ path: "/", nav: "Overview", title: "Overview", load: () => import("./pages/overview.js") },
	{ path: "/sandboxes", nav: "Sandboxes", title: "Sandboxes", right: "sandboxes", load: () => import("./pages/sandboxes.js") },
	{ path: "/sandboxes/:id", of: "/sandboxes", title: "Sandbox", right: "sandboxes", load: () => import("./pages/sandbox.js") },
	{ path: "/leases", nav: "Leases", title: "Leases", right: "leases", load: () => import("./pages/leases.js") },
	{ path: "/leases/new", of: "/leases", title: "Request a lease", right: "leases", load: () => import("./pages/request.js") },
	{ path: "/leases/:id", of: "/leases", title: "Lease", right: "leases", load: () => import("./pages/lease.js") },
	{ path: "/approvals", nav: "Approvals", title: "Approvals", right: "approve", load: () => import("./pages/approvals.js") },
	{ path: "/templates", nav: "Templates", title: "Templates", right: "templates", load: () => import("./pages/templates.js") },
	{ path: "/templates/new", of: "/templates", title: "New template", right: "templates", load: () => import("./pages/template.js") },
	{ path: "/templates/:id", of: "/templates", title: "Template", right: "templates", load: () => import("./pages/template.js") },
	{ path: "/accounts", nav: "Accounts", title: "Accounts", right: "accounts", load: () => import("./pages/accounts.js") },
	{ path: "/accounts/:id", of: "/accounts", title: "Account", right: "accounts", load: () => import("./pages/account.js") },
	{ path: "/reports", nav: "Reports", title: "Reports", right: "reports", load: () => import("./pages/reports.js") },
];
