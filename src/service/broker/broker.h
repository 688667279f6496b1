/* broker.h - what callers can do with the pool: transaction functions; each change emits an event. See
 * docs/broker.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "domain/sandbox.h"
#include "service/broker/sandbox_events.h"
#include "store/session.h"
#include "store/store.h"

struct claims_switch;

enum { BROKER_RETRY_AFTER_SEC = 30 };

/* Claim a sandbox for an owner, or find the one it holds. RC_EXHAUSTED; RC_UNAVAILABLE while claims are paused. */
struct claim {
	struct sandbox_claim ask;
	struct str           prefix;         /* of the name; empty: any */
	const struct str    *reserved;       /* prefixes that people wait for: what they match is not for this caller */
	size_t               reserved_count; /* 0: nobody waits, or this caller is first in line */
	struct actor         by; /* an operator who claims for the owner; of a track's own claim, the request alone */
	const struct claims_switch *lending; /* is anything lent at all? NULL: yes */

	struct sandbox sandbox; /* the answer */
	bool           is_new;  /* false: it had it already */
};
txn_fn broker_claim;

/* An operator sets aside what a track holds and gives it another, both or neither. Of the claim only prefix,
 * reserved, lending and by are asked for. RC_NOT_FOUND; RC_CONFLICT: no track holds it; RC_EXHAUSTED. */
struct replacement {
	struct str   id; /* of the broken one */
	struct str   reason;
	struct claim claim;
};
txn_fn broker_replace;

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

/* A page of the pool; read-only. With `find` only those with this text in name, id, external id or track (any case): no
 * index helps, so a call looks at a part of the pool, and a page can be short, or empty, and not the last. */
struct sandbox_list {
	bool               has_status;
	enum sandbox_state status;
	struct str         find; /* empty: all */
	size_t             limit;
	struct str         cursor;

	struct page page; /* the answer: struct sandbox records */
};
txn_fn broker_list;

/* Will so many be free at that time? Counts those free now and, as far as the vendor has kept up within the last day,
 * new ones for those that are gone or end before. Reads every record: for people; read-only. */
struct forecast {
	int64_t at;   /* Unix seconds */
	int64_t need; /* 0: only tell */

	int64_t available, ending, pending; /* free now; lent and over by then; waiting for their deletion */
	int64_t added;                      /* that the vendor has made within the last day */
	int64_t refill;                     /* new ones that can be expected by then */
};
txn_fn broker_forecast;

/* How many are in each state; read-only. */
struct pool_counts {
	int64_t by_state[SANDBOX_STATE_COUNT];
	int64_t total;
};
txn_fn broker_count;

/* The same, and how many stale ones an operator has set aside. Reads every stale record: for people; read-only. */
struct pool_stats {
	struct pool_counts counts;
	int64_t            quarantined;
};
txn_fn broker_stats;
