/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker_alarms.c - the broker's alarms, read from the pool and from the records of the jobs.
 *
 * A job that is paused does what it was told: it is neither failing nor silent. A record without an interval is not of a scheduled
 * job; only its failures in a row count. As in alarm_rules.c, an evidence names times, not ages.
 */
#include "service/broker_alarms.h"

#include "base/clock.h"
#include "domain/sandbox.h"
#include "kernel/kernel.h"
#include "service/passes.h"
#include "service/records.h"

enum {
	FAILURES_MAX = 3,
	FAILING_INTERVALS = 2,
	SILENT_INTERVALS = 3,
	SILENT_GRACE_SEC = 300,
};

static const char *at(struct session *s, int64_t sec)
{
	char text[ISO_TIME_SIZE];

	return str_dup(session_arena(s), iso_time(sec, text)).p;
}

enum rc alarm_pool_low(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct broker_alarm_context *context = arg;
	long long                          mark = context->settings->low_water;
	int64_t                            free_count;
	enum rc                            rc;

	if (mark <= 0)
		return RC_OK;
	rc = session_count(s, &sandbox_type, SANDBOX_BY_STATUS, value_int(SANDBOX_AVAILABLE), &free_count, e);
	if (rc || free_count >= mark)
		return rc;
	findings_add(ret,
	             &(struct finding){ .severity = free_count == 0 ? ALARM_PAGE : ALARM_WARNING,
	                                .value = free_count,
	                                .evidence = str_format(session_arena(s),
	                                                       "%lld sandboxes are free; the low-water mark is %lld",
	                                                       (long long)free_count, mark) });
	return RC_OK;
}

/* --- jobs --- */

typedef void job_judge_fn(struct session *s, const struct job_record *job, struct findings *ret);

static enum rc each_job(struct session *s, job_judge_fn *judge, struct findings *ret, struct err *e)
{
	struct query q = { .type = &job_type, .index = QUERY_KEYS, .limit = QUERY_LIMIT_MAX };
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < page.count; i++) {
		const struct job_record *job = page_record(&page, &job_type, i);

		if (!job->is_paused)
			judge(s, job, ret);
	}
	return RC_OK;
}

static void judge_failing(struct session *s, const struct job_record *job, struct findings *ret)
{
	int64_t age = wall_sec(session_now(s)) - job->last_finished_at;
	bool    is_unmended = job->interval_sec > 0 && age > FAILING_INTERVALS * job->interval_sec;

	if (job->last_outcome != JOB_ERROR || (job->failures < FAILURES_MAX && !is_unmended))
		return;
	findings_add(ret, &(struct finding){
	                          .instance = job->name,
	                          .severity = ALARM_WARNING,
	                          .value = job->failures,
	                          .evidence = str_format(session_arena(s),
	                                                 "job %.*s failed %lld time%s in a row, last %s: %.*s",
	                                                 STR_ARG(job->name), (long long)job->failures,
	                                                 job->failures == 1 ? "" : "s", at(s, job->last_finished_at),
	                                                 STR_ARG(job->last_error)) });
}

enum rc alarm_job_failing(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	(void)arg;
	return each_job(s, judge_failing, ret, e);
}

/* A job that has never ended a run is silent since its first one began. */
static void judge_silent(struct session *s, const struct job_record *job, struct findings *ret)
{
	int64_t since = job->last_finished_at ? job->last_finished_at : job->last_started_at;
	int64_t limit = SILENT_INTERVALS * job->interval_sec + kernel_span_ms(kernel_of(s), SILENT_GRACE_SEC);

	if (job->interval_sec <= 0 || !since || wall_sec(session_now(s)) - since <= limit)
		return;
	findings_add(ret, &(struct finding){
	                          .instance = job->name,
	                          .severity = ALARM_PAGE,
	                          .value = since,
	                          .evidence = str_format(session_arena(s),
	                                                 "job %.*s, every %lld s, has not ended a run since %s%s%.*s",
	                                                 STR_ARG(job->name), (long long)job->interval_sec, at(s, since),
	                                                 job->owner.n ? "; one is under way at node " : "",
	                                                 STR_ARG(job->owner)) });
}

enum rc alarm_job_silent(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	(void)arg;
	return each_job(s, judge_silent, ret, e);
}
