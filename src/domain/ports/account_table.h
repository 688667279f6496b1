/* account_table.h - the accounts of another system, in its own table: a port, implemented in providers/. We read it and
 * change the status of an account that is as we expect; nothing else is written, and no field is added.
 *
 * All calls block: worker threads only. Any may answer RC_UNAVAILABLE, RC_LIMITED, RC_TIMEOUT as those of cloud.h. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct account_table;

enum { TABLE_STATUS_MAX = 64, TABLE_NAME_MAX = 255 };

struct table_account {
	struct str status; /* the other system's word: Available, Active, CleanUp, Quarantine, Frozen */
	struct str name;   /* may be empty */
};

struct account_table_ops {
	/* RC_NOT_FOUND: the other system does not know it. */
	enum rc (*get)(struct account_table *t, struct str account, struct arena *a, struct table_account *ret,
	               struct err *e);

	/* RC_CONFLICT: it is not there, or its status is not the expected one; nothing was written. */
	enum rc (*set_status)(struct account_table *t, struct str account, struct str expected, struct str status,
	                      struct err *e);

	/* The same. */
	enum rc (*delete)(struct account_table *t, struct str account, struct str expected, struct err *e);
};

struct account_table { /* first member of every implementation */
	const struct account_table_ops *ops;
};
