/* account_clean.h - empties accounts until they are clean, or says that they are not: contract 4.4 as a queue and a
 * timer.
 *
 * Wiring: account_clean_queue(&options) with CLEANUP_EVENTS. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/account.h"
#include "domain/ports/cloud.h"
#include "domain/hold.h"
#include "domain/policy.h"
#include "kernel/queue.h"
#include "service/account/account_follow.h"

#define CLEANUP_QUEUE     "cleanup"
#define EVENT_CLEANUP_DUE "CleanupDue" /* ours: a cleanup's next stage */
#define CLEANUP_EVENTS    EVENT_CLEAN_REQUEST "," EVENT_CLEANUP_DUE

enum {
	CLEAN_POLL_MS = 30000,         /* how often a run is asked how it goes */
	CLEAN_RUN_LIMIT_MS = 3600000,  /* one run */
	CLEAN_LIMIT_MS = 12 * 3600000, /* all of it */
	CLEAN_AT_ONCE = 4,
};

/* Everything stays the caller's, and is there as long as the kernel. */
struct account_clean_options {
	struct store   *store;
	struct cleaner *cleaner;
	unsigned        at_once; /* cleanups at once on all nodes together; 0: CLEAN_AT_ONCE; up to CLEAN_AT_ONCE_MAX */

	const struct hold_rules *rules; /* how long accounts rest */

	/* The operator's configuration as it is now. Any thread; looked at before anything else is called. */
	const struct policy *(*policy)(void *arg);
	void *policy_arg;
};
struct queue account_clean_queue(struct account_clean_options *o);

/* Is it being cleaned? A cleanup that has not moved for longer than it may take no longer counts. */
bool account_clean_is_running(const struct account *a, struct wall now);
