/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passes.c - the passes that only look at our own records: expiry, removals, retries, old events.
 *
 * Sync and cleanup, which talk to the vendor, have files of their own.
 */
#include "service/passes.h"

#include <assert.h>

#include "base/arena.h"
#include "kernel/event.h"
#include "kernel/saga.h"
#include "service/sweep.h"
#include "store/store.h"

void pass_count(struct pass_result *r, const char *name, int64_t value, enum metric metric)
{
	assert(r->count < PASS_COUNTS_MAX);
	r->counts[r->count].name = name;
	r->counts[r->count].value = value;
	r->counts[r->count++].metric = metric;
}

static enum sweep_verdict expire_orphan(struct sandbox *s, const struct pass *p, struct wall now)
{
	if (!sandbox_is_orphaned(s, p->settings->grace_sec, now))
		return SWEEP_LEAVE;
	return sandbox_apply(s, SANDBOX_ON_EXPIRE, now, NULL) ? SWEEP_LEAVE : SWEEP_PUT;
}

enum rc pass_expire(const struct pass *p, struct pass_result *ret, struct err *e)
{
	int64_t expired;
	enum rc rc = sweep(p, SANDBOX_ALLOCATED, expire_orphan, NEWS_SANDBOX_EXPIRED, &expired, e);

	pass_count(ret, "expired", expired, METRIC_EXPIRY_ORPHANED);
	return rc;
}

static enum sweep_verdict remove_if_old(struct sandbox *s, const struct pass *p, struct wall now)
{
	bool is_old = wall_sec(now) - s->updated_at >= p->stale_hours * 3600;

	return is_old && s->quarantine_reason.n == 0 ? SWEEP_REMOVE : SWEEP_LEAVE;
}

enum rc pass_remove_stale(const struct pass *p, struct pass_result *ret, struct err *e)
{
	int64_t removed;
	enum rc rc = sweep(p, SANDBOX_STALE, remove_if_old, NEWS_SANDBOX_REMOVED, &removed, e);

	pass_count(ret, "deleted", removed, METRIC__COUNT);
	pass_count(ret, "grace_period_hours", p->stale_hours, METRIC__COUNT);
	return rc;
}

static enum sweep_verdict remove_any(struct sandbox *s, const struct pass *p, struct wall now)
{
	(void)p;
	return sandbox_apply(s, SANDBOX_ON_REMOVE, now, NULL) ? SWEEP_LEAVE : SWEEP_REMOVE;
}

enum rc pass_bulk_delete(const struct pass *p, struct pass_result *ret, struct err *e)
{
	int64_t removed;
	enum rc rc = sweep(p, p->status, remove_any, NEWS_SANDBOX_REMOVED, &removed, e);

	pass_count(ret, "deleted", removed, METRIC__COUNT);
	return rc;
}

static enum sweep_verdict retry(struct sandbox *s, const struct pass *p, struct wall now)
{
	(void)p;
	return sandbox_retry_deletion(s, now, NULL) ? SWEEP_LEAVE : SWEEP_PUT;
}

enum rc pass_retry_failed(const struct pass *p, struct pass_result *ret, struct err *e)
{
	int64_t retried;
	enum rc rc = sweep(p, SANDBOX_DELETION_FAILED, retry, NEWS_SANDBOX_DELETION_RETRIED, &retried, e);

	pass_count(ret, "retried", retried, METRIC__COUNT);
	return rc;
}

enum { DAY_MS = 86400000 };

/* One page of each; how many were removed. */
static enum rc prune_page(const struct pass *p, int64_t before_ms, struct arena *a, int64_t *ret, struct err *e)
{
	struct event_prune events = { .before_ms = before_ms };
	struct saga_prune  sagas = { .before_ms = before_ms };
	enum rc            rc = store_run(p->store, event_prune, &events, a, e);

	if (!rc)
		rc = store_run(p->store, saga_prune, &sagas, a, e);
	*ret = (int64_t)(events.removed + sagas.removed);
	return rc;
}

enum rc pass_prune_events(const struct pass *p, struct pass_result *ret, struct err *e)
{
	int64_t      before_ms = clock_now(p->clock).ms - p->settings->event_days * DAY_MS;
	struct arena a = { 0 };
	int64_t      removed = 0, count;
	enum rc      rc;

	do {
		arena_reset(&a);
		count = 0;
		rc = go_on(p, e);
		if (!rc && p->settings->event_days > 0)
			rc = prune_page(p, before_ms, &a, &count, e);
		removed += count;
	} while (!rc && count);
	arena_fini(&a);
	pass_count(ret, "removed", removed, METRIC__COUNT);
	return rc;
}
