/* account_clean.h - empties accounts until they are clean, or says that they are not: contract 4.4 as a queue and a timer.
 *
 * Wiring: account_clean_queue(&options) into the table of queues, with the routes
 *     { EVENT_CLEAN_REQUEST, CLEANUP_QUEUE }, { EVENT_CLEANUP_DUE, CLEANUP_QUEUE }
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/account.h"
#include "domain/cloud.h"
#include "domain/hold.h"
#include "domain/policy.h"
#include "kernel/queue.h"
#include "store/session.h"

struct store;

#define CLEANUP_QUEUE       "cleanup"
#define EVENT_CLEAN_REQUEST "CleanAccountRequest"
#define EVENT_CLEANUP_DUE   "CleanupDue" /* ours: a cleanup's next stage */

/* Why a cleanup is asked for. */
#define CLEAN_FOR_REGISTRATION "ACCOUNT_REGISTRATION"
#define CLEAN_AFTER_LEASE      "LEASE_TERMINATION"
#define CLEAN_AFTER_FAILURE    "RETRY_FAILED_CLEANUP"
#define CLEAN_AFTER_RESET      "LEASE_RESET"

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
	unsigned at_once; /* cleanups at once on all nodes together; 0: CLEAN_AT_ONCE; CLEAN_AT_ONCE_MAX are the most */

	const struct hold_rules *rules; /* how long accounts rest */

	/* The operator's configuration as it is now. Any thread; looked at before anything else is called. */
	const struct policy *(*policy)(void *arg);
	void *policy_arg;
};
struct queue account_clean_queue(struct account_clean_options *o);

/* Is it being cleaned? A cleanup that has not moved for longer than it may take is not under way any more. */
bool account_clean_is_running(const struct account *a, struct wall now);

/* Emit CleanAccountRequest with the account's clean_reason. While a cleanup runs, nothing follows from it. */
MUST_CHECK enum rc account_clean_ask(struct session *s, const struct account *a, struct str actor, struct err *e);

/* The cleanup has succeeded: the account rests from now on, and the world follows. Stores it. */
MUST_CHECK enum rc account_cleaned(struct session *s, const struct hold_rules *rules, struct account *a,
                                   struct str actor, struct err *e);
