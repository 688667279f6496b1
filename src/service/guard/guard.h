/* guard.h - stands beside another system's account pool: what it declares Available after a cleanup is held until the
 * bills have settled.
 *
 * Wiring: guard_queues() and guard_kinds(), and hold_queue(). */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/ports/account_table.h"
#include "domain/ports/cloud.h"
#include "domain/hold.h"
#include "kernel/kernel.h"
#include "kernel/queue.h"
#include "kernel/saga.h"
#include "store/record.h"
#include "store/session.h"

#define GUARD_QUEUE         "guard"     /* moves of accounts, and our own timers */
#define GUARD_LOG_QUEUE     "guard-log" /* what was done, one line each */
#define EVENT_GUARD_PREFIX  "guard:"    /* and the action: guard:QUARANTINE_START */
#define EVENT_GUARD_RETRY   "GuardRetryDue"
#define EVENT_GUARD_CONFIRM "GuardConfirmDue"
#define EVENT_GUARD_UNTOLD  "GuardMoveUntold" /* the reconciler's; the detail is a move whose event was lost */

/* What the two queues hear. */
#define GUARD_EVENTS     "cloudtrail:MoveAccount*," EVENT_GUARD_UNTOLD "," EVENT_GUARD_RETRY "," EVENT_GUARD_CONFIRM
#define GUARD_LOG_EVENTS EVENT_GUARD_PREFIX "*"

enum { GUARD_QUEUES = 2, GUARD_KINDS = 4 };

/* What is known of each account that was ever moved: one record. */
struct guard_mark {
	struct str account;
	struct str event_id; /* of the move that was decided about last */
	int64_t    event_ms; /* when the newest move that we know of happened */
	struct str outcome;  /* what was decided about it: the action */
	int64_t    at_ms;
	int64_t    number;  /* of the last saga that moves it: one at a time */
	struct str saga_id; /* its id; the end of any other changes nothing */
	struct str untag;   /* id of the hold whose tag is used up and may still be there */
	uint64_t   version;
};
extern const struct record_type guard_mark_type;

/* Copied; what it points to stays the caller's, and is there as long as the guard. */
struct guard_options {
	struct store            *store;
	struct cloud             cloud; /* organisation is used, and access when there is one */
	struct account_table    *table;
	const struct hold_rules *rules;
	struct str               sandbox_ou; /* its OUs are right below this one; empty: anywhere */
	struct metrics          *metrics;    /* may be NULL */
};

/* Handler of the queue "cloudtrail": notes that the trail is alive and when it last spoke, as FACT_CLOUDTRAIL. */
queue_handle_fn cloudtrail_note;

struct guard *guard_new(const struct guard_options *o);
void          guard_free(struct guard *g);

void guard_queues(struct guard *g, struct queue ret[GUARD_QUEUES]);
void guard_kinds(struct guard *g, struct saga_kind ret[GUARD_KINDS]);

/* How a guard's hold comes to its end, by its time or by a person: it is closed once nothing stands against it
 * outside. While the account has other open holds that is at once; the last one brings the account back first.
 * RC_CONFLICT: that is under way already, or the account is still on its way to Quarantine. */
extern const struct hold_mode_ops guard_hold_mode;
