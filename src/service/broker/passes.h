/* passes.h - the broker's background work: sync, cleanup, expiry, removals. */
#pragma once

#include <stdint.h>

#include "service/pass/pass.h"

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

/* How many the vendor still lists of those that were removed long ago; its text names one. */
#define FACT_STILL_LISTED "vendor/still-listed"

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
