/* explain.h - one thing in words: where it is and since when, why, what led there, what happens next, what can be done
 * about it.
 *
 * Read-only. Everything is read by key or by an index, and no more than a stated number of records: asking costs the
 * same in a pool of ten accounts as in one of ten thousand. */
#pragma once

#include "base/str.h"
#include "store/store.h"

/* A route of the API by its name: the path has parameters in braces, "{base}" is the operators' base path. */
struct explain_route {
	const char *method, *path;
	unsigned    roles; /* who may call it; 0: operators */
};
typedef struct explain_route explain_route_fn(const char *name);

struct explain {
	struct str           kind;        /* account, lease or sandbox */
	struct str           id;          /* a lease: its uuid, or as much of its beginning as no other has */
	explain_route_fn    *route;       /* what is offered is called by */
	struct str           base_path;   /* of the operators' routes */
	const struct caller *by;          /* NULL: an operator, who is told everything */
	const struct policy *policy;      /* in force; NULL: there are no leases */
	struct str           owner_email; /* a lease: must be its owner; empty: whoever it is */

	struct str json; /* the answer: one object, see docs/explain.md */
};

/* RC_NOT_FOUND: nothing is known, not even events; RC_INVALID: no such kind. */
txn_fn explain;
