/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs_api.c - the routes that run, pause and show jobs.
 *
 * A call that runs a job writes down that it shall be run, then waits for the end of the pass, but not longer than
 * API_JOB_WAIT_MS: then it is answered 202, and the pass goes on, whatever becomes of this process. What waits
 * (struct job_call) is told on the loop; it is freed when it was told, or has been answered before and is no longer
 * expected to be.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "http/api.h"
#include "service/jobs.h"

enum { NAMES_MAX = 200 };

struct job_call {
	struct job_request wish;
	struct job_ask     ask;
	struct api        *api;
	struct request    *request; /* NULL: answered already */
	bool               is_async;
	struct completion  completion;
	uv_timer_t         timer;
};

static void free_call(uv_handle_t *timer)
{
	free(CONTAINER_OF(timer, struct job_call, timer));
}

/* The figures of a result, which is a flat JSON object. */
static void put_counts(struct json_out *o, struct str result)
{
	CLEANUP(json_freep) json_t *counts = NULL;
	const char                 *name;
	json_t                     *value;

	if (json_parse(result, &counts, NULL))
		return; /* none were kept */
	json_object_foreach(counts, name, value)
	{
		json_put_int(o, name, json_integer_value(value));
	}
}

static struct request *take_request(struct job_call *c)
{
	struct request *r = c->request;

	c->request = NULL;
	r->call->on_gone = NULL;
	return r;
}

static void reply_running(struct job_call *c)
{
	struct request *r = take_request(c);
	struct json_out o = reply_begin(r);

	json_put_str(&o, "status", STR("running"));
	json_put_str(&o, "job", str_from(jobs_name(c->wish.id)));
	reply_send(r, 202);
}

static void reply_result(struct job_call *c)
{
	struct request *r = take_request(c);
	struct err      e = { 0 };
	struct json_out o;

	if (c->ask.rc) { /* whatever kept the pass from its work, the caller can only try again later */
		rc_ignore(err_set(&e, RC_UNAVAILABLE, "%s", c->ask.e.msg)); /* noted in e */
		request_fail(r, &e);
		return;
	}
	o = reply_begin(r);
	json_put_str(&o, "status", STR("completed"));
	put_counts(&o, str_from(c->ask.result));
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

/* On a thread of the jobs. */
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
	if (jobs_forget(api_jobs(c->api), &c->ask))
		uv_close((uv_handle_t *)&c->timer, free_call);
}

static void on_gone(struct http_call *call)
{
	struct job_call *c = ((struct request *)call->user)->arg;

	uv_timer_start(&c->timer, on_too_long, 0, 0); /* an answer into the void; the pass goes on */
}

static void wait_for_end(struct job_call *c)
{
	struct request *r = c->request;

	c->ask.id = c->wish.id;
	memcpy(c->ask.event_id, c->wish.event_id, sizeof(c->ask.event_id));
	c->ask.done = on_ask_done;
	c->completion.run = on_pass_over;
	r->call->on_gone = on_gone;
	if (uv_timer_init(api_options(r->api)->loop, &c->timer))
		abort(); /* never fails */
	uv_timer_start(&c->timer, on_too_long, API_JOB_WAIT_MS, 0);
	jobs_expect(api_jobs(r->api), &c->ask);
}

static void on_requested(struct request *r)
{
	struct job_call *c = r->arg;

	if (!r->txn.rc && !c->is_async) {
		wait_for_end(c);
		return;
	}
	if (r->txn.rc)
		request_fail(take_request(c), &r->txn.e);
	else
		reply_running(c);
	free(c);
}

static void run_job(struct request *r, const struct job_request *wish)
{
	struct job_call *c = mem_new(struct job_call);
	int64_t          wait_sec;

	c->wish = *wish;
	c->wish.actor = r->actor;
	c->wish.request_id = str_of(r->id, ID_UUID_SIZE - 1);
	c->api = r->api;
	c->request = r;
	r->arg = c;
	request_prefer(r, &wait_sec, &c->is_async);
	request_submit(r, job_request, &c->wish, false, on_requested);
}

static void run_plain(struct request *r, enum job_id id)
{
	run_job(r, &(struct job_request){ .id = id });
}

void handle_sync(struct request *r)
{
	struct job_request wish = { .id = JOB_SYNC };
	struct err         e = { 0 };
	struct str         force;

	if (request_query(r, "force", &force, &e) ||
	    (force.n && !str_eq(force, STR("true")) && !str_eq(force, STR("false")) &&
	     err_set(&e, RC_INVALID, "force must be true or false, not '%.*s'", STR_ARG(force)))) {
		request_fail(r, &e);
		return;
	}
	wish.is_forced = wish.has_own_terms = str_eq(force, STR("true"));
	run_job(r, &wish);
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
	struct job_request wish = { .id = JOB_STALE_REMOVAL, .has_own_terms = true };
	struct err         e = { 0 };

	if (request_query_int(r, "grace_period_hours", 1, SANDBOX_HOURS_MAX, 24, &wish.stale_hours, &e))
		request_fail(r, &e);
	else
		run_job(r, &wish);
}

void handle_bulk_delete(struct request *r)
{
	struct job_request wish = { .id = JOB_BULK_DELETE, .has_own_terms = true };
	struct err         e = { 0 };
	struct str         status;
	enum rc            rc = request_query(r, "status", &status, &e);

	if (!rc && !sandbox_state_parse(status, &wish.status))
		rc = err_set(&e, RC_INVALID,
		             "status is required: available, allocated, pending_deletion, stale or deletion_failed");
	if (rc)
		request_fail(r, &e);
	else
		run_job(r, &wish);
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

static void put_job(struct json_out *o, const struct job_status *s)
{
	static const char *const outcomes[] = { [JOB_SUCCESS] = "success", [JOB_ERROR] = "error" };

	json_put_str(o, "name", s->record.name);
	json_put_bool(o, "paused", s->record.is_paused);
	json_put_bool(o, "running", s->is_running);
	json_put_int(o, "interval_sec", s->interval_sec);
	put_time(o, "last_started_at", s->record.last_started_at);
	put_time(o, "last_finished_at", s->record.last_finished_at);
	if (s->record.last_outcome == JOB_NEVER_RAN)
		json_put_null(o, "last_outcome");
	else
		json_put_str(o, "last_outcome", str_from(outcomes[s->record.last_outcome]));
	if (s->record.last_error.n)
		json_put_str(o, "last_error", s->record.last_error);
	else
		json_put_null(o, "last_error");
	json_put_raw(o, "last_result", s->record.last_result.n ? s->record.last_result : STR("null"));
	put_time(o, "next_run_at", s->next_run_at);
}

static void on_listed(struct request *r)
{
	const struct job_list *l = r->arg;
	struct json_out        o;

	if (r->txn.rc) {
		request_fail(r, &r->txn.e);
		return;
	}
	o = reply_begin(r);
	json_put_array(&o, "jobs");
	for (int i = 0; i < l->count; i++) {
		json_open_object(&o);
		put_job(&o, &l->items[i]);
		json_close_object(&o);
	}
	json_close_array(&o);
	reply_send(r, 200);
}

void handle_jobs(struct request *r)
{
	struct job_list *l = arena_alloc(&r->call->arena, sizeof(*l));

	l->jobs = api_jobs(r->api);
	r->arg = l;
	request_submit(r, job_list, l, true, on_listed);
}

/* "sync, cleanup and expiry" */
static void list_names(const struct jobs *j, struct buf *b)
{
	int last = JOB_SCHEDULED - 1;

	while (last > 0 && !jobs_has(j, (enum job_id)last))
		last--;
	for (int id = 0; id <= last; id++)
		if (jobs_has(j, (enum job_id)id))
			buf_addf(b, "%s%s", b->n == 0 ? "" : id == last ? " and " : ", ", jobs_name((enum job_id)id));
}

static bool find_job(struct request *r, enum job_id *ret)
{
	struct jobs *j = api_jobs(r->api);
	struct err   e = { 0 };
	struct buf   names;

	if (jobs_find(j, r->params[0], ret))
		return true;
	buf_init(&names, NAMES_MAX);
	list_names(j, &names);
	rc_ignore(err_set_code(&e, RC_NOT_FOUND, "JOB_NOT_FOUND", "there is no job '%.*s'; there are %.*s",
	                       STR_ARG(r->params[0]), (int)names.n, names.p)); /* noted in e */
	buf_fini(&names);
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

	if (r->txn.rc) {
		request_fail(r, &r->txn.e);
		return;
	}
	jobs_look_again(api_jobs(r->api));
	o = reply_begin(r);
	put_job(&o, &p->status);
	reply_send(r, 200);
}

static void set_paused(struct request *r, bool is_paused)
{
	struct job_pause *p = arena_alloc(&r->call->arena, sizeof(*p));

	if (!find_job(r, &p->id))
		return;
	p->jobs = api_jobs(r->api);
	p->is_paused = is_paused;
	p->actor = r->actor;
	p->request_id = str_of(r->id, ID_UUID_SIZE - 1);
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
