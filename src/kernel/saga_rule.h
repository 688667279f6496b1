/* saga_rule.h - what a saga does next, as pure functions from its record, a call's outcome and the time. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "kernel/records.h"

struct saga_step;

enum { SAGA_TIMEOUT_MS = 30000, SAGA_TRIES = 5, SAGA_BACKOFF_MS = 1000, SAGA_BACKOFF_MAX_MS = 60000 };

/* The lease outlives the calls of a step by this much, so that the next owner does not meet one that is still under
 * way. Half of it is for what passes between claim and call, half for clocks that do not agree. */
enum { SAGA_LEASE_MARGIN_MS = 5000, SAGA_SKEW_MAX_MS = SAGA_LEASE_MARGIN_MS / 2 };

/* Names of all steps must fit into saga.leftovers. */
enum { SAGA_STEP_NAME_MAX = 64 };

/* One decision: changes *saga, whose new texts are in the arena. */
struct saga_rule {
	const struct saga_kind *kind; /* fits the record: see saga_rule_fits() */
	struct saga            *saga;
	int64_t                 now_ms;
	int64_t scale; /* of the clock that now_ms is from; all that follows, and the kind's times, are the machine's */
	int64_t lease_ms;   /* how long its owner may be silent, at least */
	int64_t backoff_ms; /* the wait, should this try have failed */
	struct arena *arena;
};

/* What its owner has to call. */
enum saga_todo {
	SAGA_TODO_NOTHING, /* settle it: there is nothing left to undo */
	SAGA_TODO_ACT,
	SAGA_TODO_CHECK, /* it may have happened: check, and act only when it has not */
	SAGA_TODO_UNDO,
};

/* How it goes on after a change. */
enum saga_next {
	SAGA_NEXT_CALL, /* there is a step to do or to undo now */
	SAGA_NEXT_WAIT, /* the same one again, when it is due */
	SAGA_NEXT_END,  /* done, undone or parked */
};

/* What a call said. */
struct saga_outcome {
	bool       has_failed;
	enum rc    rc;    /* of a failure */
	struct str error; /* of a failure */
	struct str data;  /* of a success */
};

/* The record of a saga that starts now: state, step, marks and times. */
void saga_rule_start(const struct saga_rule *r);

/* Can the record be understood with this table? RC_CORRUPT says why not; an older program may have written it. */
MUST_CHECK enum rc saga_rule_fits(const struct saga *saga, const struct saga_kind *kind, struct err *e);

/* Note the intent of what is to be done now, and lease it to its owner. Over a deadline it turns back. */
enum saga_todo saga_rule_intend(const struct saga_rule *r);

/* How long the lease for this is. */
int64_t saga_rule_lease(const struct saga_rule *r, enum saga_todo todo);

/* Note the outcome of what was intended. */
enum saga_next saga_rule_settle(const struct saga_rule *r, const struct saga_outcome *o);

/* Its end was refused by the service whose records it belongs to: later again, or parked. */
enum saga_next saga_rule_refuse(const struct saga_rule *r, const struct saga_outcome *o);

/* Give it to a person. kind may be NULL here. */
void saga_rule_park(const struct saga_rule *r, struct str reason);

/* --- operators; RC_CONFLICT when its state does not allow it. Nothing is changed then --- */
MUST_CHECK enum rc saga_rule_retry(const struct saga_rule *r, struct err *e); /* kind may be NULL here */
MUST_CHECK enum rc saga_rule_skip(const struct saga_rule *r, enum saga_next *ret, struct err *e);
MUST_CHECK enum rc saga_rule_abort(const struct saga_rule *r, struct str reason, enum saga_next *ret, struct err *e);

/* The name of the step under way; "step 3" when the kind does not have it, or is NULL. */
struct str saga_rule_step_name(const struct saga *saga, const struct saga_kind *kind, struct arena *a);

/* With the default. */
int64_t saga_step_timeout(const struct saga_step *step);

/* Under way, in either direction. */
static inline bool saga_is_active(enum saga_state state)
{
	return state == SAGA_RUNNING || state == SAGA_UNDOING;
}
