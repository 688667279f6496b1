/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_lease.c - one node at a time runs a job.
 *
 * The lease is in the job's record: who, until when, and a number that grows with every grant (the fence). A node that runs a
 * pass holds the lease by extending it; when it dies, the lease runs out and another node is granted the next number. A node
 * that was only slow finds its number gone, stops its pass, and can no longer write the outcome. What a pass writes is safe
 * without that: each of its transactions looks again before it changes anything.
 */
#include "service/job_lease.h"

#include "store/session.h"

enum rc job_load(struct session *s, struct str name, struct job_record *ret, struct err *e)
{
	enum rc rc = session_get(s, &job_type, name, ret, NULL);

	if (rc == RC_NOT_FOUND) {
		*ret = (struct job_record){ .name = name };
		return RC_OK;
	}
	return rc ? err_set(e, rc, "job %.*s cannot be read", STR_ARG(name)) : RC_OK;
}

static enum lease_verdict judge(struct lease_claim *c, int64_t now_ms)
{
	const struct job_record *r = &c->record;
	bool                     is_others = r->owner.n > 0 && !str_eq(r->owner, c->node);
	bool                     ran_elsewhere = r->ran_by.n > 0 && !str_eq(r->ran_by, c->node);

	if (!c->is_alone && is_others && r->lease_until_ms > now_ms) {
		c->retry_at = r->lease_until_ms / 1000 + 1;
		return LEASE_HELD;
	}
	if (c->was_asked)
		return LEASE_GRANTED;
	if (r->is_paused)
		return LEASE_PAUSED;
	if (!c->is_alone && ran_elsewhere && r->last_finished_at + c->interval_sec / 2 > now_ms / 1000) {
		c->retry_at = r->last_finished_at + c->interval_sec;
		return LEASE_RECENT;
	}
	return LEASE_GRANTED;
}

enum rc lease_take(struct session *s, void *arg, struct err *e)
{
	struct lease_claim *c = arg;
	enum rc             rc = job_load(s, c->name, &c->record, e);

	if (rc)
		return rc;
	c->verdict = judge(c, session_now(s).ms);
	if (c->verdict != LEASE_GRANTED)
		return RC_OK;
	c->record.owner = c->node;
	c->record.lease_until_ms = session_now(s).ms + c->lease_sec * 1000;
	c->record.fence++;
	session_put(s, &job_type, &c->record);
	return RC_OK;
}

static bool is_ours(const struct job_record *r, struct str node, int64_t fence)
{
	return str_eq(r->owner, node) && r->fence == fence;
}

enum rc lease_extend(struct session *s, void *arg, struct err *e)
{
	struct lease_beat *b = arg;
	struct job_record  record;
	enum rc            rc = job_load(s, b->name, &record, e);

	if (rc)
		return rc;
	b->is_lost = !is_ours(&record, b->node, b->fence);
	if (b->is_lost)
		return RC_OK;
	record.lease_until_ms = session_now(s).ms + b->lease_sec * 1000;
	session_put(s, &job_type, &record);
	return RC_OK;
}

enum rc lease_finish(struct session *s, void *arg, struct err *e)
{
	struct lease_end        *end = arg;
	const struct job_record *outcome = &end->outcome;
	struct job_record        record;
	enum rc                  rc = job_load(s, outcome->name, &record, e);

	if (rc)
		return rc;
	end->is_lost = !is_ours(&record, end->node, end->fence);
	if (end->is_lost)
		return RC_OK;
	record.owner = STR("");
	record.lease_until_ms = 0;
	record.ran_by = end->node;
	record.last_started_at = outcome->last_started_at;
	record.last_finished_at = outcome->last_finished_at;
	record.last_outcome = outcome->last_outcome;
	record.last_error = outcome->last_error;
	record.last_result = outcome->last_result;
	session_put(s, &job_type, &record);
	end->record = record;
	return RC_OK;
}
