/* broker.h - what callers can do with the pool: transaction functions, each with its argument; each change emits an
 * event. See docs/broker.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "domain/sandbox.h"
#include "service/sandbox_events.h"
#include "store/session.h"
#include "store/store.h"

enum { BROKER_RETRY_AFTER_SEC = 30 };

/* Claim a sandbox for an owner, or find the one it holds. RC_EXHAUSTED. */
struct claim {
	struct sandbox_claim ask;
	struct str           prefix;         /* of the name; empty: any */
	const struct str    *reserved;       /* prefixes that people wait for: what they match is not for this caller */
	size_t               reserved_count; /* 0: nobody waits, or this caller is first in line */
	struct str           request_id;     /* for the event */

	struct sandbox sandbox; /* the answer */
	bool           is_new;  /* false: it had it already */
};
txn_fn broker_claim;

/* One sandbox, by id. */
struct sandbox_call {
	struct str   id;
	struct str   owner;  /* track calls */
	struct str   reason; /* quarantine */
	struct actor by;     /* an operator's call; of a track's, the request alone */

	struct sandbox sandbox; /* the answer */
};
txn_fn broker_show;       /* for its owner; read-only */
txn_fn broker_inspect;    /* for an operator; read-only */
txn_fn broker_give_back;  /* by its owner */
txn_fn broker_quarantine; /* by an operator, as the rest */
txn_fn broker_release;
txn_fn broker_retry_deletion;
txn_fn broker_discard; /* the next cleanup deletes it */

/* A page of the pool; read-only. With `find` only those whose name, id, external id or track has this text in it (any case): no index
 * helps with that, so a call looks at a part of the pool only, and a page can be short, or empty, and not the last. */
struct sandbox_list {
	bool               has_status;
	enum sandbox_state status;
	struct str         find; /* empty: all */
	size_t             limit;
	struct str         cursor;

	struct page page; /* the answer: struct sandbox records */
};
txn_fn broker_list;

/* How many are in each state; read-only. */
struct pool_counts {
	int64_t by_state[SANDBOX_STATE_COUNT];
	int64_t total;
};
txn_fn broker_count;

/* The same, and how many of the stale ones an operator has set aside. Reads every stale record: for people, not for a
 * gauge; read-only. */
struct pool_stats {
	struct pool_counts counts;
	int64_t            quarantined;
};
txn_fn broker_stats;
