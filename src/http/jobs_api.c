/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs_api.c - the routes that run, pause and show jobs.
 *
 * A call that runs a job waits for the end of the pass, but not longer than API_JOB_WAIT_MS: then it is answered 202 and
 * the pass goes on. So what belongs to the pass (struct job_call) must outlive the request; it is freed when the pass is
 * over, and forgets the request when that has been answered.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "http/api.h"
#include "service/jobs.h"

struct job_call {
	struct job_ask    ask;
	enum job_id       id;
	struct api       *api;
	struct request   *request; /* NULL: answered already */
	struct completion completion;
	uv_timer_t        timer;
};

static void free_call(uv_handle_t *timer)
{
	free(CONTAINER_OF(timer, struct job_call, timer));
}

static void put_counts(struct json_out *o, const struct pass_result *result)
{
	for (int i = 0; i < result->count; i++)
		json_put_int(o, result->counts[i].name, result->counts[i].value);
}

static void reply_running(struct job_call *c)
{
	struct request *r = c->request;
	struct json_out o = reply_begin(r);

	c->request = NULL;
	r->call->on_gone = NULL;
	json_put_str(&o, "status", STR("running"));
	json_put_str(&o, "job", str_from(jobs_name(c->id)));
	reply_send(r, 202);
}

static void reply_result(struct job_call *c)
{
	struct request *r = c->request;
	struct err      e = { 0 };
	struct json_out o;

	c->request = NULL;
	r->call->on_gone = NULL;
	if (c->ask.rc) { /* whatever kept the pass from its work, the caller can only try again later */
		rc_ignore(err_set(&e, RC_UNAVAILABLE, "%s", c->ask.e.msg)); /* noted in e */
		request_fail(r, &e);
		return;
	}
	o = reply_begin(r);
	json_put_str(&o, "status", STR("completed"));
	put_counts(&o, &c->ask.result);
	json_put_int(&o, "duration_ms", c->ask.duration_ms);
	reply_send(r, 200);
}

/* On the loop, after the pass. */
static void on_pass_over(struct completion *completion)
{
	struct job_call *c = CONTAINER_OF(completion, struct job_call, completion);

	if (c->request)
		reply_result(c);
	uv_close((uv_handle_t *)&c->timer, free_call);
}

/* On the job's thread. */
static void on_ask_done(struct job_ask *ask)
{
	struct job_call *c = CONTAINER_OF(ask, struct job_call, ask);

	api_complete_later(c->api, &c->completion);
}

static void on_too_long(uv_timer_t *timer)
{
	struct job_call *c = CONTAINER_OF(timer, struct job_call, timer);

	if (c->request)
		reply_running(c);
}

static void on_gone(struct http_call *call)
{
	struct job_call *c = ((struct request *)call->user)->arg;

	uv_timer_start(&c->timer, on_too_long, 0, 0); /* an answer into the void; the pass goes on */
}

static void run_job(struct request *r, enum job_id id, const struct job_ask *terms)
{
	struct job_call *c = mem_new(struct job_call);
	int64_t          wait_sec;
	bool             is_async;

	c->ask = *terms;
	c->ask.done = on_ask_done;
	c->id = id;
	c->api = r->api;
	c->request = r;
	c->completion.run = on_pass_over;
	r->arg = c;
	r->call->on_gone = on_gone;
	request_prefer(r, &wait_sec, &is_async);
	if (uv_timer_init(api_options(r->api)->loop, &c->timer))
		abort(); /* never fails */
	uv_timer_start(&c->timer, on_too_long, is_async ? 0 : API_JOB_WAIT_MS, 0);
	jobs_ask(api_jobs(r->api), id, &c->ask);
}

static void run_plain(struct request *r, enum job_id id)
{
	struct job_ask terms = { 0 };

	run_job(r, id, &terms);
}

void handle_sync(struct request *r)
{
	struct job_ask terms = { 0 };
	struct err     e = { 0 };
	struct str     force;

	if (request_query(r, "force", &force, &e) ||
	    (force.n && !str_eq(force, STR("true")) && !str_eq(force, STR("false")) &&
	     err_set(&e, RC_INVALID, "force must be true or false, not '%.*s'", STR_ARG(force)))) {
		request_fail(r, &e);
		return;
	}
	terms.is_forced = terms.has_own_terms = str_eq(force, STR("true"));
	run_job(r, JOB_SYNC, &terms);
}

void handle_cleanup(struct request *r)
{
	run_plain(r, JOB_CLEANUP);
}

void handle_expire(struct request *r)
{
	run_plain(r, JOB_EXPIRY);
}

void handle_remove_stale(struct request *r)
{
	struct job_ask terms = { .has_own_terms = true };
	struct err     e = { 0 };

	if (request_query_int(r, "grace_period_hours", 1, SANDBOX_HOURS_MAX, 24, &terms.stale_hours, &e))
		request_fail(r, &e);
	else
		run_job(r, JOB_STALE_REMOVAL, &terms);
}

void handle_bulk_delete(struct request *r)
{
	struct job_ask terms = { .has_own_terms = true };
	struct err     e = { 0 };
	struct str     status;
	enum rc        rc = request_query(r, "status", &status, &e);

	if (!rc && !sandbox_state_parse(status, &terms.status))
		rc = err_set(&e, RC_INVALID,
		             "status is required: available, allocated, pending_deletion, stale or deletion_failed");
	if (rc)
		request_fail(r, &e);
	else
		run_job(r, JOB_BULK_DELETE, &terms);
}

void handle_retry_failed(struct request *r)
{
	run_plain(r, JOB_RETRY_FAILED);
}

/* --- the jobs themselves --- */

static void put_time(struct json_out *o, const char *name, int64_t sec)
{
	if (sec)
		json_put_int(o, name, sec);
	else
		json_put_null(o, name);
}

static void put_job(struct json_out *o, struct request *r, enum job_id id)
{
	static const char *const outcomes[] = { [JOB_SUCCESS] = "success", [JOB_ERROR] = "error" };
	struct job_status        s;

	jobs_status(api_jobs(r->api), id, &r->call->arena, &s);
	json_put_str(o, "name", s.record.name);
	json_put_bool(o, "paused", s.record.is_paused);
	json_put_bool(o, "running", s.is_running);
	json_put_int(o, "interval_sec", s.interval_sec);
	put_time(o, "last_started_at", s.record.last_started_at);
	put_time(o, "last_finished_at", s.record.last_finished_at);
	if (s.record.last_outcome == JOB_NEVER_RAN)
		json_put_null(o, "last_outcome");
	else
		json_put_str(o, "last_outcome", str_from(outcomes[s.record.last_outcome]));
	if (s.record.last_error.n)
		json_put_str(o, "last_error", s.record.last_error);
	else
		json_put_null(o, "last_error");
	json_put_raw(o, "last_result", s.record.last_result.n ? s.record.last_result : STR("null"));
	put_time(o, "next_run_at", s.next_run_at);
}

void handle_jobs(struct request *r)
{
	struct json_out o = reply_begin(r);

	json_put_array(&o, "jobs");
	for (int id = 0; id < JOB_SCHEDULED; id++) {
		json_open_object(&o);
		put_job(&o, r, (enum job_id)id);
		json_close_object(&o);
	}
	json_close_array(&o);
	reply_send(r, 200);
}

static bool find_job(struct request *r, enum job_id *ret)
{
	struct err e = { 0 };

	if (jobs_find(r->params[0], ret))
		return true;
	rc_ignore(err_set_code(&e, RC_NOT_FOUND, "JOB_NOT_FOUND",
	                       "there is no job '%.*s'; there are sync, cleanup, expiry and stale-removal",
	                       STR_ARG(r->params[0]))); /* noted in e */
	request_fail(r, &e);
	return false;
}

void handle_job_run(struct request *r)
{
	enum job_id id;

	if (find_job(r, &id))
		run_plain(r, id);
}

static void on_paused(struct request *r)
{
	struct job_pause *p = r->arg;
	struct json_out   o;
	enum job_id       id;

	if (r->txn.rc) {
		request_fail(r, &r->txn.e);
		return;
	}
	if (!find_job(r, &id))
		return;
	jobs_set_paused(api_jobs(r->api), id, p);
	o = reply_begin(r);
	put_job(&o, r, id);
	reply_send(r, 200);
}

static void set_paused(struct request *r, bool is_paused)
{
	struct job_pause *p = arena_alloc(&r->call->arena, sizeof(*p));
	enum job_id       id;

	if (!find_job(r, &id))
		return;
	*p = (struct job_pause){ .name = r->params[0], .is_paused = is_paused };
	r->arg = p;
	request_submit(r, job_pause, p, false, on_paused);
}

void handle_job_pause(struct request *r)
{
	set_paused(r, true);
}

void handle_job_resume(struct request *r)
{
	set_paused(r, false);
}
