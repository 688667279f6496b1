/* isb_items.h - accounts and leases of an Innovation Sandbox, as records of ours. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/account.h"
#include "domain/lease.h"

struct aws_client;

enum { ISB_ITEMS_MAX = 200000 };

/* What one item becomes. why: it is not taken over, and why not; empty: it is. */
struct isb_account {
	struct account account;
	struct str     why;
};
struct isb_lease {
	struct lease lease;
	struct str   why;
};

/* What the two tables hold. An account in use has the lease that says so, and the other way round; else neither is
 * taken over. RC_NOT_FOUND: no such table; RC_TOO_LARGE; RC_UNAVAILABLE. */
struct isb_tables {
	struct isb_account *accounts;
	size_t              account_count;
	struct isb_lease   *leases;
	size_t              lease_count;
};
MUST_CHECK enum rc isb_tables_read(struct aws_client *client, const char *account_table, const char *lease_table,
                                   int64_t now_ms, struct arena *a, struct isb_tables *ret, struct err *e);
