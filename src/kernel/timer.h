/* timer.h - durable one-shot timers: armed and cancelled in the caller's transaction, never early. */
#pragma once

#include "base/err.h"
#include "kernel/records.h"
#include "store/session.h"
#include "store/store.h"

/* Arm it, or set it again: a name has one timer. When due, an event of its type and subject with its detail is
 * emitted; its actor is "timer/NAME". Sets state and armed_ms. One action. */
MUST_CHECK enum rc session_arm(struct session *s, struct timer *timer, struct err *e);

/* Cancel it. RC_OK also when it is not armed. One action. */
MUST_CHECK enum rc session_disarm(struct session *s, struct str name, struct err *e);

/* Armed timers, the next due first; read-only. */
struct timer_list {
	struct str prefix; /* of the name; empty: all */
	size_t     limit;
	struct str cursor;

	struct page page; /* the answer: struct timer records */
};
txn_fn timer_list;

struct timer_call {
	struct str name, actor, request_id;

	struct timer timer; /* the answer: as it was */
};
txn_fn timer_get;      /* read-only */
txn_fn timer_fire_now; /* an operator does not want to wait: due now; audited */
txn_fn timer_cancel;   /* audited */
