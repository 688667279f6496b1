/* bell.h - EventBridge Scheduler rings when a hold is due, for a guard that does not run all the time: what the queue
 * "bell" calls.
 *
 * The timer in our store is the truth; a schedule only wakes somebody who then looks for what is due. Late, lost,
 * doubled and early bells do no harm. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "kernel/queue.h"
#include "store/store.h"

#define BELL_QUEUE       "bell"
#define EVENT_BELL_SWEEP "BellSweepDue" /* of a timer of its own, once a day */

/* What the queue hears: changes of holds, whose detail has holdId; and the sweep. */
#define BELL_EVENTS "HoldCreated,HoldExtended,HoldClosed," EVENT_BELL_SWEEP

/* An open hold with an end. */
struct bell_due {
	struct str name;    /* of its schedule, which is also its timer's */
	struct str account; /* 12 digits */
	int64_t    created_ms, due_ms;
};

/* Borrowed. */
struct bell {
	struct aws_caller  *caller;
	const struct clock *clock;
	struct str          group, target_arn, role_arn, dlq_arn;

	/* As the holds are now. find: RC_NOT_FOUND when there is none with an end that is open; the name is set all
	 * the same. list: all of them. */
	enum rc (*find)(void *arg, struct str hold_id, struct arena *a, struct bell_due *ret, struct err *e);
	enum rc (*list)(void *arg, struct arena *a, struct bell_due **ret, size_t *ret_count, struct err *e);
	void *arg;
};

/* The row of the table of queues. */
struct queue bell_queue(struct bell *b);

/* Arm the sweep, unless it is armed. arg is unused. */
txn_fn bell_arm;

/* "at(2026-11-19T17:00:01)": the first whole second that is not before it. */
struct str bell_expression(int64_t due_ms, struct arena *a);
