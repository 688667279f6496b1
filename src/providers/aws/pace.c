/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.c - how often AWS is called, by all nodes together.
 *
 * The limits apply to the organisation, not to a node. So each class of calls has a record in the store that says when
 * the next call may begin. A call takes that moment in a transaction, which moves it on by one gap, and then waits for
 * it: one write per call, no polling, and nodes are served in the order in which they asked. A moment in the past means
 * that nobody called for a while: then as many calls as the burst may begin at once.
 *
 * Always true:
 *   1. In any span of time t, no more than burst + t / gap calls begin, whatever the number of nodes, as far as their
 *      clocks agree.
 *   2. A moment beyond the caller's time is not taken: RC_LIMITED, and nothing is stored.         [take()]
 *   3. After a throttle the gap is doubled for SLOW_MS.
 *
 * A node that dies while it waits has used up its moment; nothing else is lost.
 */
#include "providers/aws/pace.h"

#include <inttypes.h>

#include "base/arena.h"
#include "service/record/aws_records.h"
#include "store/session.h"
#include "store/store.h"

enum { SLOW_MS = 60 * 1000 };

/* clang-format off */
const struct aws_rate aws_rates[AWS_PACE_COUNT] = {
	[AWS_PACE_ORG_READ]  = { "org-read",  250,  8 },
	[AWS_PACE_ORG_WRITE] = { "org-write", 1000, 2 },
	[AWS_PACE_IDC_READ]  = { "idc-read",  125,  8 },
	[AWS_PACE_IDC_WRITE] = { "idc-write", 1000, 2 },
	[AWS_PACE_COSTS]     = { "costs",     1000, 1 },
};
/* clang-format on */

static struct aws_rate rate_of(const struct aws_pacer *p, enum aws_pace pace)
{
	struct aws_rate rate = aws_rates[pace];

	if (p->org_times > 1 && (pace == AWS_PACE_ORG_READ || pace == AWS_PACE_ORG_WRITE)) {
		rate.gap_ms /= p->org_times;
		rate.burst *= p->org_times;
	}
	return rate;
}

struct wish {
	struct aws_rate rate;
	int64_t         left_ms;
	int64_t         wait_ms; /* the answer */
};

static enum rc take(struct session *s, void *arg, struct err *e)
{
	struct wish      *w = arg;
	int64_t           now_ms = session_now(s).ms, start_ms;
	struct aws_bucket bucket;
	enum rc           rc = session_find_or_new(s, &aws_bucket_type, str_from(w->rate.name), &bucket, e);

	if (rc)
		return rc;
	if (bucket.next_ms < now_ms)
		bucket.next_ms = now_ms;
	start_ms = bucket.next_ms - (w->rate.burst - 1) * w->rate.gap_ms;
	w->wait_ms = start_ms > now_ms ? start_ms - now_ms : 0;
	if (w->wait_ms >= w->left_ms)
		return err_set(e, RC_LIMITED, "our own pace (%s) leaves no room for %" PRId64 " ms", w->rate.name,
		               w->wait_ms);
	bucket.next_ms += now_ms < bucket.slow_ms ? 2 * w->rate.gap_ms : w->rate.gap_ms;
	session_put(s, &aws_bucket_type, &bucket);
	return RC_OK;
}

enum rc aws_pacer_take(const struct aws_pacer *p, enum aws_pace pace, long left_ms, struct err *e)
{
	struct wish w = { .left_ms = left_ms };
	struct err  why = { 0 };
	enum rc     rc;

	if (pace == AWS_PACE_NONE || !p)
		return RC_OK;
	w.rate = rate_of(p, pace);
	rc = store_run(p->store, take, &w, NULL, &why);
	if (rc) /* whatever the store's reason, AWS was not called */
		return err_set(e, rc == RC_LIMITED ? rc : RC_UNAVAILABLE, "%s", why.msg);
	if (!w.wait_ms)
		return RC_OK;
	if (p->wait)
		p->wait(p->wait_arg, w.wait_ms);
	else
		mono_sleep(w.wait_ms);
	return RC_OK;
}

/* --- throttles --- */

static enum rc slow_down(struct session *s, void *arg, struct err *e)
{
	const struct aws_rate *rate = arg;
	int64_t                now_ms = session_now(s).ms;
	struct aws_bucket      bucket;
	struct str             rest;
	size_t                 kept = 1;
	enum rc                rc = session_find_or_new(s, &aws_bucket_type, str_from(rate->name), &bucket, e);

	if (rc)
		return rc;
	rest = bucket.throttles;
	for (size_t i = 0; i < rest.n; i++)
		kept += rest.p[i] == ',';
	if (kept >= AWS_THROTTLES_MAX)
		(void)str_cut(&rest, ',');
	bucket.throttles = str_format(session_arena(s), "%.*s%s%" PRId64, STR_ARG(rest), rest.n ? "," : "", now_ms);
	bucket.slow_ms = now_ms + SLOW_MS;
	session_put(s, &aws_bucket_type, &bucket);
	return RC_OK;
}

void aws_pacer_throttled(const struct aws_pacer *p, enum aws_pace pace)
{
	struct aws_rate rate = aws_rates[pace];

	if (p && pace != AWS_PACE_NONE)
		rc_ignore(store_run(p->store, slow_down, &rate, NULL, NULL));
}

static enum rc find_bucket(struct session *s, void *arg, struct err *e)
{
	struct aws_bucket *bucket = arg;

	return session_find_or_new(s, &aws_bucket_type, bucket->name, bucket, e);
}

enum rc aws_pacer_count(const struct aws_pacer *p, enum aws_pace pace, int64_t now_ms, size_t *ret, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct aws_bucket                bucket = { .name = str_from(aws_rates[pace].name) };
	enum rc                          rc = store_read(p->store, find_bucket, &bucket, &a, e);
	struct str                       rest = bucket.throttles;
	int64_t                          ms;

	*ret = 0;
	while (!rc && rest.n)
		*ret += str_to_int(str_cut(&rest, ','), 0, INT64_MAX, &ms) && ms > now_ms - AWS_THROTTLE_WINDOW_MS;
	return rc;
}
