/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs_api.c - the routes that run, pause and show jobs.
 *
 * A call that runs a job stores that it is to run, then waits for the end of the pass, for at most API_JOB_WAIT_MS:
 * then it is answered 202, and the pass continues, even if this process ends. A struct job_call is freed on the loop,
 * when the pass is over or when nobody expects its end any more.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "http/api/ops.h"
#include "service/jobs/jobs.h"

struct job_call {
	struct job_request job;
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

static struct request *take_request(struct job_call *c)
{
	struct request *r = c->request;

	c->request = NULL;
	r->call->on_gone = NULL;
	return r;
}

static void reply_running(struct job_call *c)
{
	REPLY(take_request(c), 202, member_word("status", "running"), member_word("job", jobs_name(c->job.id)),
	      member_if(c->job.is_joined, member_bool("joined", true)));
}

/* With the figures of the pass, which are a flat JSON object. */
static void reply_result(struct job_call *c)
{
	CLEANUP(json_freep) json_t *counts = NULL;
	struct request             *r = take_request(c);
	struct json_out             o;
	const char                 *name;
	json_t                     *value;

	if (c->ask.rc) { /* whatever kept the pass from its work, the caller can only try again later */
		request_refuse(r, RC_UNAVAILABLE, "%s", c->ask.e.msg);
		return;
	}
	o = reply_begin(r);
	json_put_str(&o, "status", STR("completed"));
	if (json_parse(str_from(c->ask.result), &counts, NULL) == RC_OK) /* otherwise none were kept */
		json_object_foreach(counts, name, value)
		{
			json_put_int(&o, name, json_integer_value(value));
		}
	JSON_PUT(&o, member_int("duration_ms", c->ask.duration_ms),
	         member_if(c->job.is_joined, member_bool("joined", true)));
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
	if (jobs_forget(c->api->options.jobs, &c->ask))
		uv_close((uv_handle_t *)&c->timer, free_call);
}

static void on_gone(struct http_call *call)
{
	struct job_call *c = ((struct request *)call->user)->arg;

	uv_timer_start(&c->timer, on_too_long, 0, 0); /* nobody reads the answer; the pass continues */
}

static void wait_for_end(struct job_call *c)
{
	struct request *r = c->request;

	c->ask.id = c->job.id;
	memcpy(c->ask.event_id, c->job.event_id, sizeof(c->ask.event_id));
	c->ask.done = on_ask_done;
	c->completion.run = on_pass_over;
	r->call->on_gone = on_gone;
	if (uv_timer_init(r->api->options.loop, &c->timer))
		abort(); /* never fails */
	uv_timer_start(&c->timer, on_too_long, API_JOB_WAIT_MS, 0);
	jobs_expect(r->api->options.jobs, &c->ask);
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

static void run_job(struct request *r, const struct job_request *job)
{
	struct job_call *c = mem_new(struct job_call);
	int64_t          wait_sec;

	c->job = *job;
	c->job.actor = r->actor;
	c->job.request_id = str_of(r->id, ID_UUID_SIZE - 1);
	c->api = r->api;
	c->request = r;
	r->arg = c;
	request_prefer(r, &wait_sec, &c->is_async);
	request_submit(r, job_request, &c->job, false, on_requested);
}

HANDLER(cleanup, run_job(r, &(struct job_request){ .id = JOB_CLEANUP }))
HANDLER(expire, run_job(r, &(struct job_request){ .id = JOB_EXPIRY }))
HANDLER(retry_failed, run_job(r, &(struct job_request){ .id = JOB_RETRY_FAILED }))

void handle_sync(struct request *r)
{
	struct job_request job = { .id = JOB_SYNC };
	int                force;

	if (!request_is_good(r, ops_read_word(r, "force", (const char *const[]){ "false", "true" }, 2, "true or false",
	                                      &force, &r->e)))
		return;
	job.is_forced = job.has_own_terms = force == 1;
	run_job(r, &job);
}

void handle_remove_stale(struct request *r)
{
	struct job_request job = { .id = JOB_STALE_REMOVAL, .has_own_terms = true };

	if (request_is_good(r, request_query_int(r, "grace_period_hours", 1, SANDBOX_HOURS_MAX, 24, &job.stale_hours,
	                                         &r->e)))
		run_job(r, &job);
}

void handle_bulk_delete(struct request *r)
{
	struct job_request job = { .id = JOB_BULK_DELETE, .has_own_terms = true };
	struct str         status;
	enum rc            rc = request_query(r, "status", &status, &r->e);

	if (!rc && !sandbox_state_parse(status, &job.status))
		rc = err_set(&r->e, RC_INVALID, "status is required: " SANDBOX_STATES_TEXT);
	if (request_is_good(r, rc))
		run_job(r, &job);
}

/* --- the jobs themselves --- */

static const char *const outcomes[] = { [JOB_NEVER_RAN] = "", [JOB_SUCCESS] = "success", [JOB_ERROR] = "error" };

PUT_OF(put_job, struct job_status, s, member_str("name", s->record.name), member_bool("paused", s->record.is_paused),
       member_bool("running", s->is_running), member_int("interval_sec", s->interval_sec),
       member_sec("last_started_at", s->record.last_started_at * 1000),
       member_sec("last_finished_at", s->record.last_finished_at * 1000),
       member_text("last_outcome", str_from(outcomes[s->record.last_outcome])),
       member_text("last_error", s->record.last_error), member_raw("last_result", s->record.last_result),
       member_sec("next_run_at", s->next_run_at * 1000))

static void put_jobs(struct json_out *o, struct request *r, const void *thing)
{
	const struct job_list *l = thing;

	view_put_all(r, o, "jobs", l->items, sizeof(*l->items), (size_t)l->count, put_job);
}

void handle_jobs(struct request *r)
{
	struct job_list *l = NEW_OF(r, struct job_list);

	l->jobs = r->api->options.jobs;
	view_submit(r, job_list, l, READS, 200, put_jobs);
}

/* The error for an unknown one names all jobs: "sync, cleanup and expiry". */
static bool find_job(struct request *r, enum job_id *ret)
{
	struct jobs *j = r->api->options.jobs;
	struct str   names = STR("");
	int          last = JOB_SCHEDULED - 1;

	if (jobs_find(j, r->params[0], ret))
		return true;
	while (last > 0 && !jobs_has(j, (enum job_id)last))
		last--;
	for (int id = 0; id <= last; id++)
		if (jobs_has(j, (enum job_id)id))
			names = str_format(&r->call->arena, "%.*s%s%s", STR_ARG(names),
			                   names.n == 0 ? ""
			                   : id == last ? " and "
			                                : ", ",
			                   jobs_name((enum job_id)id));
	return request_is_good(r, err_set_code(&r->e, RC_NOT_FOUND, "JOB_NOT_FOUND",
	                                       "there is no job '%.*s'; there are %.*s", STR_ARG(r->params[0]),
	                                       STR_ARG(names)));
}

void handle_job_run(struct request *r)
{
	enum job_id id;

	if (find_job(r, &id))
		run_job(r, &(struct job_request){ .id = id });
}

static void put_paused(struct json_out *o, struct request *r, const void *thing)
{
	jobs_look_again(r->api->options.jobs);
	put_job(o, r, &((const struct job_pause *)thing)->status);
}

static void set_paused(struct request *r, bool is_paused)
{
	struct job_pause *p = NEW_OF(r, struct job_pause);

	*p = (struct job_pause){ .jobs = r->api->options.jobs, .is_paused = is_paused, .actor = r->actor };
	p->request_id = str_of(r->id, ID_UUID_SIZE - 1);
	if (find_job(r, &p->id))
		view_submit(r, job_pause, p, WRITES, 200, put_paused);
}

HANDLER(job_pause, set_paused(r, true))
HANDLER(job_resume, set_paused(r, false))
