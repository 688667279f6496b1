/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alarms.c - the table of alarms, and those of the broker, read from the pool and from the records of the jobs.
 *
 * A hold time suppresses what passes without help. It is 0 where the condition includes a time of its own, or does not
 * go away until somebody acts. The runbook's section has the name of the rule.
 *
 * A paused job is neither failing nor silent. A record without an interval is not a scheduled job's; only its failures
 * in a row count. As in alarm_rules.c, evidence names times, not ages.
 */
#include "service/alarms/alarms.h"

#include "base/attr.h"
#include "base/clock.h"
#include "domain/sandbox.h"
#include "kernel/kernel.h"
#include "service/broker/claims_pause.h"
#include "service/broker/passes.h"
#include "service/broker/records.h"

enum { MINUTE_MS = 60000, FAILURES_MAX = 3, FAILING_INTERVALS = 2, SILENT_INTERVALS = 3, SILENT_GRACE_SEC = 300 };

#define RULE(name, find, hold_ms, summary)                            \
	{                                                             \
		name, find, hold_ms, "docs/runbook.md#" name, summary \
	}

const struct alarm_rule service_alarms[] = {
	RULE("dead-letters", alarm_dead_letters, 0, "deliveries were given up"),
	RULE("queue-stuck", alarm_queue_stuck, 0, "nobody takes what is due"),
	RULE("webhook-behind", alarm_webhook_behind, 0, "a webhook does not take what is sent"),
	RULE("saga-parked", alarm_saga_parked, 0, "a saga waits for a person"),
	RULE("saga-overdue", alarm_saga_overdue, MINUTE_MS, "a saga is over its deadline"),
	RULE("timer-overdue", alarm_timer_overdue, MINUTE_MS, "timers do not fire in time"),
	RULE("circuit-open", alarm_circuit_open, MINUTE_MS, "calls to a far side are held back"),
	RULE("inbox-silent", alarm_inbox_silent, MINUTE_MS, "a queue of events or commands cannot be read"),
	RULE("aws-permission", alarm_refused, 0, "AWS refuses what we need"),
	RULE("aws-throttled", alarm_throttled, 0, "AWS is asked too often"),
	RULE("clock-differs", alarm_clock_differs, 0, "the machine's date has jumped"),
	RULE("store-trouble", alarm_store_trouble, MINUTE_MS, "the store is slow or refuses commits"),
	RULE("node-silent", alarm_node_silent, 0, "a node has died or hangs"),
	RULE("pool-low", alarm_pool_low, MINUTE_MS, "few sandboxes are free, or none"),
	RULE("deletion-failed", alarm_deletion_failed, 0, "sandboxes could not be deleted"),
	RULE("still-listed", alarm_still_listed, 0, "what was deleted is still there"),
	RULE("claims-paused", alarm_claims_paused, 0, "no sandbox is lent until a person says so"),
	RULE("job-failing", alarm_job_failing, 0, "a job fails again and again"),
	RULE("job-silent", alarm_job_silent, 2 * MINUTE_MS, "a job does not run"),

	RULE("accounts-low", alarm_accounts_low, MINUTE_MS, "few accounts are free, or none"),
	RULE("line-waiting", alarm_line_waiting, 0, "requests wait in line for an account"),
	RULE("account-quarantined", alarm_account_quarantined, 0, "an account is in quarantine"),
	RULE("cleanup-stuck", alarm_cleanup_stuck, 0, "an account does not come back from cleanup"),

	RULE("hold-overdue", alarm_hold_overdue, 0, "an account is in cooldown for longer than it should be"),
	RULE("hold-bypass", alarm_hold_bypass, 0, "an account had no cooldown after a cleanup"),
	RULE("hold-broken", alarm_hold_broken, 0, "a cooldown had no hold, or a hold no timer"),
	RULE("pool-mismatch", alarm_pool_mismatch, 0, "an account is not where its record says"),
	RULE("events-silent", alarm_events_silent, 0, "the audit trail has gone silent"),
	RULE("cloud-throttled", alarm_cloud_throttled, 0, "the organisation is asked too often"),
	RULE("accounts-runway", alarm_accounts_runway, MINUTE_MS, "free accounts run out before others come back"),

	RULE("costs-late", alarm_costs_late, 0, "the costs of accounts are not known in time"),
	RULE("directory-unread", alarm_directory_unread, 0, "Identity Center cannot be read"),

	RULE("instance-failed", alarm_instance_failed, 0, "an instance was not provisioned, or does not answer"),
	RULE("instance-slow", alarm_instance_slow, 0, "an instance is not provisioned in its time"),
	RULE("instance-below", alarm_instance_below, 0, "fewer tasks of an instance run than should"),
	RULE("instance-removal", alarm_instance_removal, 0, "an instance cannot be removed"),
	RULE("instance-orphans", alarm_instance_orphans, 0, "resources without an instance, or the reverse"),
};
const size_t service_alarm_count = ARRAY_LEN(service_alarms);

/* --- the pool --- */

/* An installation that never had a sandbox lends accounts only. One that used up its pool has their tombstones. */
static enum rc was_ever_filled(struct session *s, bool *ret, struct err *e)
{
	const struct record_type *const types[] = { &sandbox_type, &tombstone_type };
	enum rc                         rc = RC_OK;

	*ret = false;
	for (size_t i = 0; !rc && !*ret && i < ARRAY_LEN(types); i++) {
		struct records all = { .query = query_of(types[i], QUERY_ALL, value_int(0), 1) };

		*ret = session_next(s, &all, &rc, e) != NULL;
	}
	return rc;
}

enum rc alarm_pool_low(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct broker_alarm_context *context = arg;
	long long                          mark = context->settings->low_water;
	int64_t                            free_count;
	bool                               is_pool = true;
	enum rc                            rc;

	if (mark <= 0)
		return RC_OK;
	rc = session_count(s, &sandbox_type, SANDBOX_BY_STATUS, value_int(SANDBOX_AVAILABLE), &free_count, e);
	if (!rc && free_count == 0)
		rc = was_ever_filled(s, &is_pool, e);
	if (rc || free_count >= mark || !is_pool)
		return rc;
	findings_add(ret, STR(""), free_count == 0 ? ALARM_PAGE : ALARM_WARNING, free_count,
	             "%lld sandboxes are free; the low-water mark is %lld", (long long)free_count, mark);
	return RC_OK;
}

enum rc alarm_deletion_failed(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	struct query          q = query_of(&sandbox_type, SANDBOX_BY_STATUS, value_int(SANDBOX_DELETION_FAILED), 1);
	struct records        all = { .query = q };
	const struct sandbox *first;
	int64_t               count;
	enum rc               rc = session_count(s, q.type, q.index, q.hash, &count, e);

	if (rc || count == 0 || !(first = session_next(s, &all, &rc, e)))
		return rc;
	findings_add(ret, STR(""), ALARM_WARNING, count,
	             "deletions of %lld sandbox%s given up, such as %.*s after %lld tries: %.*s", (long long)count,
	             count == 1 ? " was" : "es were", STR_ARG(first->sandbox_id),
	             (long long)first->deletion_retry_count, STR_ARG(first->last_error));
	return RC_OK;
}

enum rc alarm_still_listed(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	struct fact fact;
	enum rc     rc = session_find_or_new(s, &fact_type, STR(FACT_STILL_LISTED), &fact, e);

	if (!rc && fact.value > 0)
		findings_add(ret, STR(""), ALARM_WARNING, fact.value,
		             "the vendor still lists %lld sandbox%s that we removed hours ago, such as %.*s",
		             (long long)fact.value, fact.value == 1 ? "" : "es", STR_ARG(fact.text));
	return rc;
}

/* --- jobs --- */

static const struct records all_jobs = { .query = { .type = &job_type, .index = QUERY_KEYS, .limit = QUERY_LIMIT_MAX },
	                                 .pages_max = 1 };

enum rc alarm_job_failing(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	struct records           all = all_jobs;
	const struct job_record *job;
	enum rc                  rc;

	while ((job = session_next(s, &all, &rc, e))) {
		int64_t age = wall_sec(session_now(s)) - job->last_finished_at;
		bool    is_unmended = job->interval_sec > 0 && age > FAILING_INTERVALS * job->interval_sec;

		if (!job->is_paused && job->last_outcome == JOB_ERROR && (job->failures >= FAILURES_MAX || is_unmended))
			findings_add(ret, job->name, ALARM_WARNING, job->failures,
			             "job %.*s failed %lld time%s in a row, last %s: %.*s", STR_ARG(job->name),
			             (long long)job->failures, job->failures == 1 ? "" : "s",
			             alarm_time(s, 1000 * job->last_finished_at), STR_ARG(job->last_error));
	}
	return rc;
}

/* A job that has never ended a run is silent since its first one began. */
enum rc alarm_job_silent(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	struct records           all = all_jobs;
	const struct job_record *job;
	enum rc                  rc;

	while ((job = session_next(s, &all, &rc, e))) {
		int64_t since = job->last_finished_at ? job->last_finished_at : job->last_started_at;
		int64_t limit = SILENT_INTERVALS * job->interval_sec + kernel_span_ms(kernel_of(s), SILENT_GRACE_SEC);

		if (!job->is_paused && job->interval_sec > 0 && since && wall_sec(session_now(s)) - since > limit)
			findings_add(ret, job->name, ALARM_PAGE, since,
			             "job %.*s, every %lld s, has not ended a run since %s%s%.*s", STR_ARG(job->name),
			             (long long)job->interval_sec, alarm_time(s, 1000 * since),
			             job->owner.n ? "; one is under way at node " : "", STR_ARG(job->owner));
	}
	return rc;
}
