/* gauges.h - those metrics that nobody feeds: they are counted, or read from elsewhere, when somebody wants to see
 * them. */
#pragma once

#include "base/str.h"
#include "kernel/alarm/alarm.h"
#include "kernel/queue.h"
#include "kernel/saga.h"
#include "kernel/timer.h"
#include "service/broker/broker.h"
#include "store/store.h"

struct metrics;

/* The pool, and the kernel's work. */
struct gauges {
	struct pool_counts  pool;
	struct queue_counts queues;
	struct timer_list   timers; /* the first one */
	struct page         alarms;
	int64_t             sagas[SAGA_OPEN_STATES];
	int64_t             timers_armed;
};

void gauges_init(struct gauges *g, struct kernel *k);

/* Count them; arg is the gauges. Read-only. */
txn_fn gauges_count;

/* Show what was counted, and what the store and the log say of themselves. */
void gauges_set(struct metrics *m, const struct gauges *g);
void gauges_read(struct metrics *m, struct store *store);
