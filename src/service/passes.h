/* passes.h - the broker's background work, one pass at a time: sync, cleanup, expiry, removals. Blocks: worker threads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/metrics.h"
#include "domain/csp.h"
#include "domain/sandbox.h"
#include "service/sandbox_events.h"

struct lease_world;
struct reconcile_world;
struct store;

struct broker_settings {
	int64_t lab_hours;
	int64_t grace_sec;
	int64_t deletion_max_attempts;
	int64_t deletion_backoff_sec;
	int64_t cleanup_batch_size;
	int64_t cleanup_batch_delay_ms;
	int64_t cleanup_sandbox_delay_ms;
	int64_t sync_max_stale_percent;
	int64_t low_water;  /* an alarm when fewer are free; 0: never */
	int64_t event_days; /* events are kept so long; 0: for ever */
};

/* What a pass needs and is told. */
struct pass {
	struct store                 *store;
	struct csp                   *csp;
	const struct clock           *clock;
	const struct broker_settings *settings;
	struct actor                  by;        /* for the events */
	const struct lease_world     *leases;    /* passes about leases; NULL: there are none */
	const struct reconcile_world *reconcile; /* NULL: there is no pool of accounts */

	bool               is_forced;   /* sync: no limit on stale ones */
	int64_t            stale_hours; /* stale removal: not younger than this */
	enum sandbox_state status;      /* bulk delete: which */

	/* Wait between two deletions. False: stop now. */
	bool (*wait)(void *arg, int64_t ms);
	void *wait_arg;
};

enum { PASS_COUNTS_MAX = 6 };

/* What a pass did, in the words of its reply. */
struct pass_result {
	struct {
		const char *name;
		int64_t     value;
		enum metric metric; /* METRIC__COUNT: none */
	} counts[PASS_COUNTS_MAX];
	int count;
};

typedef enum rc pass_fn(const struct pass *p, struct pass_result *ret, struct err *e);

/* Lists the CSP and brings the pool in line. RC_UNAVAILABLE when the listing cannot be had or believed. */
pass_fn pass_sync;

/* Deletes what is pending at the CSP. RC_UNAVAILABLE when the circuit is open: nothing was tried, nothing counted. */
pass_fn pass_cleanup;

/* Ends allocations that nobody gave back in time. */
pass_fn pass_expire;

/* Removes records of stale sandboxes older than stale_hours. */
pass_fn pass_remove_stale;

/* Removes all records of one state. */
pass_fn pass_bulk_delete;

/* Puts every failed deletion back to be tried again. */
pass_fn pass_retry_failed;

/* Removes events, and sagas that ended, that are older than event_days. */
pass_fn pass_prune_events;

/* For the passes themselves: add a count to the result. */
void pass_count(struct pass_result *r, const char *name, int64_t value, enum metric metric);
