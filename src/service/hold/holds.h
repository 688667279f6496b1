/* holds.h - holds of accounts: made, extended, released. An account becomes free when its last one is closed, and in no
 * other way.
 *
 * Wiring: hold_queue() into the table of queues, with the route { EVENT_HOLD_DUE, HOLD_QUEUE }.
 *
 * The account's open holds are listed in its account_holds record, read and written in the same transaction as the
 * holds themselves: so whether one is the last never depends on an index. The release timer is armed in the
 * transaction that makes the hold. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/account.h"
#include "domain/ports/caller.h"
#include "domain/hold.h"
#include "kernel/queue.h"
#include "store/record.h"
#include "store/session.h"
#include "store/store.h"

#define HOLD_QUEUE          "holds"
#define EVENT_HOLD_DUE      "HoldDue" /* of a timer, named hold_schedule_name(): {"holdId": ...} */
#define EVENT_HOLD_CREATED  "HoldCreated"
#define EVENT_HOLD_CLOSED   "HoldClosed" /* {"holdId", "reason", "state", "why", ...} */
#define EVENT_HOLD_EXTENDED "HoldExtended"
#define EVENT_BYPASS_SET    "HoldBypassSet"

enum hold_index {
	HOLD_BY_ACCOUNT, /* hash account, sort created_ms */
	HOLD_OPEN_ONES,  /* hash is_open (1), sort due_ms: those without a due time first */
};
extern const struct record_type hold_type;

/* One for each account that ever had a hold. */
struct account_holds {
	struct str account;
	struct str open;                  /* ids of the open holds, blanks between */
	int64_t    last_ms;               /* when the last one was made */
	struct str bypass_by, bypass_why; /* the next cleanup is not followed by a rest, once; empty: it is */
	int64_t    bypass_ms;
	int64_t    handed_ms; /* when a hold was handed over: until the next cleanup we do not free the account */
	uint64_t   version;
};
extern const struct record_type account_holds_type;

/* What a mode of holds does differently from the native one; registered by the code that adds the mode. */
#define HOLD_GUARD_MODE "hold-guard" /* of holds with mode HOLD_GUARD */
struct hold_mode_ops {
	/* End an open hold, and what follows from it for the account: now, or once the world has followed. */
	enum rc (*end)(struct session *s, struct hold *hold, enum hold_state how, struct str by, struct str why,
	               struct err *e);
};

/* --- for those who decide about accounts; inside their transaction --- */

/* Make a hold: sets id, created_ms and the like; the caller sets account, reason, mode, due_ms or locks, created_by,
 * note and what it knows else. Open: arms the timer when it has a due time; HoldCreated. RC_CONFLICT: the account
 * has HOLDS_OPEN_MAX. In another state (bypassed, ejected, exempt) it was never open, and is the record of why there
 * is none; closed_by and closed_why are who made it and its note, unless the caller sets them; HoldClosed. */
MUST_CHECK enum rc hold_make(struct session *s, struct hold *hold, enum hold_state state, struct err *e);

/* The account was cleaned and rests from now on: the holds of the rules, or a record of why there is none (new,
 * bypassed, no hours). Stores the account; when nothing holds it, it is free at once. */
MUST_CHECK enum rc hold_rest(struct session *s, const struct hold_rules *rules, struct account *account,
                             struct str actor, struct err *e);

/* Lock it away: a hold without a due time, in place of an earlier one for the same reason. */
MUST_CHECK enum rc hold_lock(struct session *s, struct str account, enum hold_reason reason, struct str note,
                             struct str actor, struct err *e);

/* Close one, without what follows for the account: for guard.c. HoldClosed; its timer is gone. RC_CONFLICT: closed. */
MUST_CHECK enum rc hold_end(struct session *s, struct hold *hold, enum hold_state how, struct str by, struct str why,
                            struct err *e);

/* Close those that end when the account is cleaned again (all but a person's) or leaves the pool (all). */
MUST_CHECK enum rc hold_close_all(struct session *s, struct str account, enum hold_state how, struct str actor,
                                  struct str why, struct err *e);

/* The account's open holds, at most HOLDS_OPEN_MAX. */
struct holds {
	struct hold items[HOLDS_OPEN_MAX];
	size_t      count;
};
MUST_CHECK enum rc hold_list_open(struct session *s, struct str account, struct holds *ret, struct err *e);

/* When it can be free at the earliest: the latest due time; 0: nothing holds it; INT64_MAX: until a person says so. */
int64_t holds_until(const struct holds *h);

/* Natively: a resting account that nothing holds any longer becomes free. Notes in the account what holds it.
 * RC_OK also when there is no such account. */
MUST_CHECK enum rc hold_free_account(struct session *s, struct str account, struct str actor, struct err *e);

/* Was it handed over to another system, and not cleaned since? */
MUST_CHECK enum rc hold_is_handed_over(struct session *s, struct str account, bool *ret, struct err *e);

/* Arm the timer of an open hold that has an end: for its own time (at once when that is past) or for a later one. */
MUST_CHECK enum rc hold_arm(struct session *s, const struct hold *hold, int64_t due_ms, struct err *e);

/* --- for operators --- */

/* Read-only. Of one account, closed ones too, newest first; or all open ones: until a person first, then by due
 * time. */
struct hold_list {
	struct str account; /* empty: all open ones */
	size_t     limit;
	struct str cursor;

	struct page page; /* the answer: struct hold records */
};
txn_fn hold_list;

/* Each is audited by its event. RC_NOT_FOUND; RC_CONFLICT: closed, being released, or the account is locked and
 * needs a cleanup. */
struct hold_call {
	struct str    id;      /* of the hold; hold_add and hold_set_bypass: empty */
	struct str    account; /* hold_add, hold_set_bypass */
	struct caller by;
	struct str    reason; /* required by all but hold_get, and hold_extend_until when that makes it longer */
	int64_t       due_ms; /* hold_extend, hold_add; 0: until a person closes it (hold_add) */

	struct hold hold; /* the answer */
};
txn_fn hold_get; /* read-only */
/* A person's own: an Available account rests at once, others after their next cleanup. At most HOLDS_BY_PERSONS_MAX. */
txn_fn hold_add;
txn_fn hold_extend_until;
txn_fn hold_release; /* before its time; those that are due release themselves */
txn_fn hold_cancel;  /* it should never have been */

/* Another system releases it from now on: closed without a move, the account stays where it is, and only a cleanup
 * brings it back to us. RC_CONFLICT also for what locks an account away. */
txn_fn hold_hand_over;
txn_fn hold_set_bypass;

struct queue hold_queue(void);

/* --- may we be removed, or would that strand an account? (hold_safety.c) --- */

/* Nothing stands against it when all counts are 0. Read-only. */
struct hold_safety {
	bool    is_safe;
	int64_t open;                     /* holds; of these */
	int64_t timed;                    /* end by themselves */
	int64_t by_person;                /* until a person closes them */
	int64_t locked;                   /* lock an account away */
	int64_t moving;                   /* are on their way in or out: a guard's move is not done */
	int64_t sagas;                    /* long operations under way, parked ones too */
	int64_t waiting;                  /* subjects with events from outside, or due holds, that are not handled */
	int64_t dead;                     /* dead letters of these */
	int64_t next_due_ms, last_due_ms; /* of the timed ones; 0: none */
};
txn_fn hold_safety;
