/* pool_listing.h - which account is in which OU of the pool, as the organisation has it at one time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

struct organisation;

/* An account as the organisation has it. */
struct pool_member {
	struct str id, name, email;
	struct str ou;       /* its name */
	bool       is_known; /* for those who compare: we have a record of it */
};

struct pool_listing {
	struct pool_member *members; /* by id */
	size_t              count, room;
	struct arena        arena; /* of all texts */
	struct str          below; /* set by the caller: only OUs right below this one count; empty: all do */
};

/* All accounts in the pool's OUs; blocks. *ret is all zeroes before, but for below. go_on, which may be NULL, is asked after each page. After a failure
 * nothing may be concluded from what was listed. RC_LIMITED, RC_UNAVAILABLE, ...: as the organisation answers. */
MUST_CHECK enum rc pool_list(struct organisation *o, bool (*go_on)(void *arg), void *arg, struct pool_listing *ret,
                             struct err *e);
void               pool_listing_fini(struct pool_listing *l);

/* NULL: it is in none of the OUs. */
struct pool_member *pool_find(const struct pool_listing *l, struct str id);
