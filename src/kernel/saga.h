/* saga.h - long operations on the outside: a table of steps with do, check and undo. Ends done, undone or parked. */
#pragma once

#include "base/err.h"
#include "kernel/records.h"
#include "store/session.h"
#include "store/store.h"

/* What a step is given. Blocks, on a worker thread. */
struct saga_call {
	const struct saga *saga;
	struct str         key;  /* the same for every try of this step: for the far side to recognise a repeat */
	struct str         data; /* JSON object; a step that finds something out replaces it (text in the arena) */
	struct arena      *arena;
	void              *world; /* the kind's */
	int64_t            now_ms;
	int64_t            timeout_ms; /* for the call */
};

/* RC_OK: it is so. RC_UNAVAILABLE, RC_TIMEOUT, RC_LIMITED: try again later (after a time-out it is checked first).
 * Anything else: this will never work, go back. */
typedef enum rc saga_step_fn(struct saga_call *c, struct err *e);

/* Has the step's effect happened? RC_OK with the answer, or why that cannot be said now. */
typedef enum rc saga_check_fn(struct saga_call *c, bool *ret_has_happened, struct err *e);

struct saga_step {
	const char    *name;
	saga_step_fn  *act;
	saga_check_fn *check;      /* NULL: acting twice is harmless, and says so with the same result */
	saga_step_fn  *undo;       /* NULL: nothing to undo */
	int64_t        timeout_ms; /* of one call; 0: 30 s */
	int64_t        tries;      /* 0: 5; undoing has twice as many */
	int64_t        backoff_ms, backoff_max_ms; /* 0: 1 s, 1 min */
	int64_t        deadline_ms;                /* for all tries together; 0: none */
	bool           is_patient; /* RC_DENIED is a right that somebody will give: tried again as an outage is */
	bool           clears;     /* its undo removes what others left, too: called even if the step was not begun */
};

/* Runs in the transaction that ends the saga (done, undone or parked), or NULL. */
typedef enum rc saga_end_fn(struct session *s, const struct saga *saga, struct err *e);

struct saga_kind {
	const char             *name;
	const struct saga_step *steps;
	size_t                  step_count;  /* up to SAGA_STEPS_MAX */
	int64_t                 deadline_ms; /* for all of it, until it goes back; 0: none */
	saga_end_fn            *on_end;
	void                   *world;
};

/* A step's letter in saga.marks. Intent is stored before a call, the outcome after it. */
enum saga_mark {
	SAGA_MARK_NONE = '.',   /* not begun */
	SAGA_MARK_INTENT = 'i', /* about to be done: may have happened */
	SAGA_MARK_DONE = 'd',
	SAGA_MARK_SKIPPED = 's', /* by an operator */
	SAGA_MARK_UNDOING = 'u', /* about to be undone: may have happened */
	SAGA_MARK_UNDONE = 'x',
};

/* Start one, in the caller's transaction. The caller makes the id, and never uses it again: a second start with it is
 * RC_CONFLICT until the first has been removed by age. Emits SagaStarted. */
MUST_CHECK enum rc session_start(struct session *s, const char *kind, struct str id, struct str subject,
                                 struct str input, struct str actor, struct err *e);

/* --- for operators --- */

/* Read-only. Set state or subject, not both. */
struct saga_list {
	bool            has_state;
	enum saga_state state;
	struct str      subject;
	size_t          limit;
	struct str      cursor;

	struct page page; /* the answer: struct saga records */
};
txn_fn saga_list;
txn_fn saga_get; /* arg is a struct saga with its id set; read-only */

/* Each is audited. RC_NOT_FOUND, RC_CONFLICT when its state does not allow it. */
struct saga_action {
	struct str id, actor, request_id;
	struct str reason; /* skip, abort: required */

	struct saga saga; /* the answer */
};
txn_fn saga_retry; /* a parked one goes on where it stopped; one that waits for its next try does it now */
txn_fn saga_skip;  /* count the step as done (or undone) and go on */
txn_fn saga_abort; /* go back */

/* Remove those that ended, done or undone, before this time; at most one transaction's worth. Parked ones stay. */
struct saga_prune {
	int64_t before_ms;

	size_t removed; /* the answer: 0: nothing left to remove */
};
txn_fn saga_prune;

/* Is it under way, in either direction? Never with an empty id. */
MUST_CHECK enum rc saga_is_under_way(struct session *s, struct str id, bool *ret, struct err *e);

/* How many are in each state, except the ended, which are many. Read-only; arg is int64_t[SAGA_OPEN_STATES]. */
txn_fn saga_count;
