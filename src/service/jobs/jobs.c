/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.c - runs the passes that are due.
 *
 * When a job is due is stored (see job_schedule.c). The kernel's queue hands it to one node at a time, with a claim
 * that expires when the node is silent. Here the pass runs between two transactions: one that stores its beginning, and
 * one that removes the delivery, stores the outcome and arms the next timer. A pass that fails has run: its delivery is
 * done. A pass that was stopped, because this node ends or has lost its claim, has not: the delivery stays, and the job
 * is run again, here or on another node.
 *
 * Only this process knows the passes under way here (a table by job), who waits for a result, and the last few results.
 * One mutex guards these, held for moments and never while the store is asked. A thread, the heart, extends the claims
 * of passes that wait for the vendor, stops scheduled ones that are paused, and looks whether another node has run what
 * somebody here waits for.
 */
#include "service/jobs/jobs.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernel/event.h"
#include "service/instance/instances.h"
#include "service/jobs/job_schedule.h"
#include "service/lease/lease_passes.h"
#include "service/reconcile/reconcile.h"
#include "store/walk.h"

enum {
	DEFAULT_STALE_HOURS = 24,
	SLICE_MS = 100, /* how often a waiting pass looks whether it should stop */
	POLL_MS = 500,  /* for results of other nodes: */
	ENDS_LOOKED_AT = 50,
	ENDS_SINCE_MS = 30 * 60000, /* longer than anybody waits, and than clocks differ */
	BEATS_PER_LEASE = 3,
	RESULTS_KEPT = 32,
	TRIES = INT32_MAX, /* a job given up would have neither a timer nor a place in its lane */
	RETRY_MS = 500,
};

#define NOT_MEASURED METRIC__COUNT, METRIC__COUNT

static const struct {
	const char *subject; /* of its events, and their actor: "job/" and its name */
	pass_fn    *run;
	const char *action; /* in the log */
	enum metric outcome, duration;
} table[JOB_COUNT] = {
	[JOB_SYNC] = { "job/sync", pass_sync, "background_sync", METRIC_SYNC, METRIC_SYNC_DURATION },
	[JOB_CLEANUP] = { "job/cleanup", pass_cleanup, "background_cleanup", METRIC_CLEANUP, METRIC_CLEANUP_DURATION },
	[JOB_EXPIRY] = { "job/expiry", pass_expire, "background_expiry", METRIC_EXPIRY, METRIC__COUNT },
	[JOB_STALE_REMOVAL] = { "job/stale-removal", pass_remove_stale, "background_auto_delete_stale", NOT_MEASURED },
	[JOB_EVENT_RETENTION] = { "job/event-retention", pass_prune_events, "background_event_retention",
	                          NOT_MEASURED },
	[JOB_LEASE_MONITOR] = { "job/lease-monitor", pass_watch_leases, "lease_monitor", NOT_MEASURED },
	[JOB_LEASE_LINE] = { "job/lease-line", pass_tend_line, "lease_line", NOT_MEASURED },
	[JOB_LEASE_ORPHANS] = { "job/lease-orphans", pass_find_orphans, "lease_orphans", NOT_MEASURED },
	[JOB_LEASE_PURGE] = { "job/lease-purge", pass_purge_leases, "lease_purge", NOT_MEASURED },
	[JOB_ACCOUNT_DRIFT] = { "job/account-drift", pass_find_drift, "account_drift", NOT_MEASURED },
	[JOB_RECONCILE] = { "job/reconcile", pass_reconcile, "reconcile", NOT_MEASURED },
	[JOB_INSTANCE_WATCH] = { "job/instance-watch", pass_watch_instances, "instance_watch", NOT_MEASURED },
	[JOB_INSTANCE_ORPHANS] = { "job/instance-orphans", pass_find_orphan_resources, "instance_orphans",
	                           NOT_MEASURED },
	[JOB_COST_REFRESH] = { "job/cost-refresh", pass_refresh_run, "cost_refresh", NOT_MEASURED },
	[JOB_DIRECTORY_REFRESH] = { "job/directory-refresh", pass_refresh_run, "directory_refresh", NOT_MEASURED },
	[JOB_CREDENTIAL_RENEWAL] = { "job/credential-renewal", pass_refresh_run, "credential_renewal", NOT_MEASURED },
	[JOB_BULK_DELETE] = { "job/bulk-delete", pass_bulk_delete, "bulk_delete", NOT_MEASURED },
	[JOB_RETRY_FAILED] = { "job/retry-failed", pass_retry_failed, "retry_failed_deletions", NOT_MEASURED },
};

/* How a pass ended, for those who wait. */
struct outcome {
	char       event_id[KERNEL_ID_SIZE];
	enum rc    rc;
	struct err e;
	char       result[JOB_RESULT_MAX + 1];
	int64_t    duration_ms;
};

/* One pass under way. Lives in the call's arena. */
struct run {
	struct jobs       *jobs;
	struct call       *call;
	enum job_id        id;
	bool               was_asked;
	struct job_request terms;
	bool               is_asking;  /* somebody asks the kernel whether it may go on; one at a time */
	bool               is_stopped; /* and it said no */
	bool               is_paused;  /* an operator has paused the job */
	bool               was_told;   /* the pass was asked to stop, not because of a pause */
	bool               is_skipped; /* nothing was run */
	int64_t            started_ms, finished_ms;
	struct outcome     outcome;
};

struct jobs {
	struct jobs_options options;
	pthread_mutex_t     lock;
	pthread_cond_t      is_changed;
	struct run         *runs[JOB_COUNT];
	struct job_ask     *asks;
	struct outcome      results[RESULTS_KEPT];
	size_t              result_count; /* ever */
	pthread_t           heart;
	bool                has_heart, is_ending, must_look;
};

/* NULL: it is none that refreshes. */
static const struct pass_refresh *refresh_of(const struct jobs *j, enum job_id id)
{
	return id >= JOB_COST_REFRESH && id < JOB_SCHEDULED ? &j->options.refresh[id - JOB_COST_REFRESH] : NULL;
}

int64_t jobs_interval_sec(const struct jobs *j, enum job_id id)
{
	const struct pass_refresh *refresh = refresh_of(j, id);
	bool                       is_about_leases = id >= JOB_LEASE_MONITOR && id <= JOB_ACCOUNT_DRIFT;

	if (id >= JOB_SCHEDULED || (is_about_leases && !j->options.pass.leases) ||
	    (id == JOB_RECONCILE && !j->options.pass.reconcile) || (refresh && !refresh->run) ||
	    ((id == JOB_INSTANCE_WATCH || id == JOB_INSTANCE_ORPHANS) && !j->options.pass.instances))
		return 0;
	return j->options.interval_sec[id];
}

struct str jobs_subject(enum job_id id)
{
	return str_from(table[id].subject);
}

const char *jobs_name(enum job_id id)
{
	return table[id].subject + sizeof("job/") - 1;
}

bool jobs_has(const struct jobs *j, enum job_id id)
{
	return jobs_interval_sec(j, id) > 0;
}

bool jobs_find(const struct jobs *j, struct str name, enum job_id *ret)
{
	int id = 0;

	while (id < JOB_SCHEDULED &&
	       !(jobs_has(j, (enum job_id)id) && str_eq(name, str_from(jobs_name((enum job_id)id)))))
		id++;
	*ret = (enum job_id)id;
	return id < JOB_SCHEDULED;
}

/* --- who waits for a result --- */

/* With the lock held: take those who wait for this event (NULL: all) off the list. */
static struct job_ask *take_asks(struct jobs *j, const char *event_id)
{
	struct job_ask **at = &j->asks, *taken = NULL;

	while (*at) {
		struct job_ask *ask = *at;

		if (event_id && strcmp(ask->event_id, event_id) != 0) {
			at = &ask->next;
			continue;
		}
		*at = ask->next;
		ask->next = taken;
		taken = ask;
	}
	return taken;
}

static void answer_all(struct job_ask *asks, const struct outcome *o)
{
	while (asks) {
		struct job_ask *ask = asks;

		asks = ask->next;
		ask->rc = o->rc;
		ask->e = o->e;
		ask->duration_ms = o->duration_ms;
		memcpy(ask->result, o->result, sizeof(ask->result));
		ask->done(ask);
	}
}

void jobs_expect(struct jobs *j, struct job_ask *ask)
{
	const struct outcome *known = NULL;
	struct outcome        copy;

	ask->next = NULL;
	pthread_mutex_lock(&j->lock);
	for (size_t i = 0; !known && i < RESULTS_KEPT; i++)
		if (strcmp(j->results[i].event_id, ask->event_id) == 0)
			known = &j->results[i];
	if (known) {
		copy = *known;
	} else {
		ask->next = j->asks;
		j->asks = ask;
		pthread_cond_broadcast(&j->is_changed);
	}
	pthread_mutex_unlock(&j->lock);
	if (known)
		answer_all(ask, &copy);
}

bool jobs_forget(struct jobs *j, struct job_ask *ask)
{
	struct job_ask **at;
	bool             is_there;

	LOCKED(&j->lock);
	for (at = &j->asks; *at && *at != ask; at = &(*at)->next)
		;
	is_there = *at != NULL;
	if (is_there)
		*at = ask->next;
	return is_there;
}

/* --- may it go on? --- */

/* Ask the kernel, unless somebody does so at this moment. Extends the claim. With the lock held, which is given up
 * meanwhile. */
static void ask_kernel(struct run *r)
{
	struct jobs *j = r->jobs;
	bool         may;

	if (r->is_asking || r->is_stopped)
		return;
	r->is_asking = true;
	pthread_mutex_unlock(&j->lock);
	may = r->call->go_on(r->call);
	pthread_mutex_lock(&j->lock);
	r->is_asking = false;
	r->is_stopped = !may;
	pthread_cond_broadcast(&j->is_changed);
}

/* Between two steps of a pass. A pause stops a scheduled pass, not one that somebody asked for. */
static bool wait_in_pass(void *arg, int64_t ms)
{
	struct run *r = arg;
	int64_t     until_ms = mono_now().ms + ms;
	bool        may;

	LOCKED(&r->jobs->lock);
	for (;;) {
		int64_t now_ms;

		ask_kernel(r);
		may = !r->is_stopped && !(r->is_paused && !r->was_asked);
		now_ms = mono_now().ms;
		if (!may || now_ms >= until_ms)
			break;
		(void)cond_wait_until(&r->jobs->is_changed, &r->jobs->lock,
		                      until_ms - now_ms > SLICE_MS ? now_ms + SLICE_MS : until_ms);
	}
	r->was_told |= r->is_stopped;
	return may;
}

/* --- a pass --- */

static void write_result(const struct pass_result *counts, char ret[JOB_RESULT_MAX + 1])
{
	struct buf      b = { .p = ret, .room = JOB_RESULT_MAX + 1, .max = JOB_RESULT_MAX };
	struct json_out o = JSON_OUT(&b);

	json_open_object(&o);
	for (int i = 0; i < counts->count; i++)
		json_put_int(&o, counts->counts[i].name, counts->counts[i].value);
	json_close_object(&o);
	assert(!b.is_full);
}

static void feed_metrics(const struct run *r, const struct pass_result *counts)
{
	struct metrics *m = r->jobs->options.pass.metrics;

	if (!m)
		return;
	if (table[r->id].outcome != METRIC__COUNT)
		metrics_add(m, table[r->id].outcome, r->outcome.rc ? "error" : "success", 1);
	if (table[r->id].duration != METRIC__COUNT)
		metrics_observe(m, table[r->id].duration, "", (double)r->outcome.duration_ms / 1000);
	for (int i = 0; i < counts->count; i++)
		if (counts->counts[i].metric != METRIC__COUNT)
			metrics_add(m, counts->counts[i].metric, "", counts->counts[i].value);
}

static void log_pass(const struct run *r)
{
	const struct outcome *o = &r->outcome;
	struct log_field      fields[] = {
		     LOG_STR("action", str_from(table[r->id].action)),
		     LOG_STR("outcome", o->rc ? STR("failure") : STR("success")),
		     LOG_NUM("latency_ms", o->duration_ms),
		     LOG_STR("result", str_from(o->result)),
		     LOG_STR("error", str_from(o->e.msg)),
		     LOG_STR("request_id", r->call->delivery->event.request_id),
	};

	log_write(o->rc ? LOG_WARNING : LOG_INFO, "jobs", fields, ARRAY_LEN(fields), "%s %s", jobs_name(r->id),
	          o->rc ? "failed" : "done");
}

static void run_pass(struct run *r)
{
	struct pass        p = r->jobs->options.pass;
	struct pass_result counts = { 0 };

	p.by = (struct actor){ jobs_subject(r->id), r->call->delivery->event.request_id };
	p.refresh = refresh_of(r->jobs, r->id);
	p.was_asked = r->was_asked;
	p.is_forced = r->terms.is_forced;
	p.status = r->terms.status;
	p.stale_hours = r->terms.stale_hours ? r->terms.stale_hours : DEFAULT_STALE_HOURS;
	p.wait = wait_in_pass;
	p.wait_arg = r;
	if (!r->outcome.rc) /* the terms could be read */
		r->outcome.rc = table[r->id].run(&p, &counts, &r->outcome.e);
	r->finished_ms = clock_now(p.clock).ms;
	r->outcome.duration_ms = clock_wait_ms(p.clock, r->finished_ms - r->started_ms);
	write_result(&counts, r->outcome.result);
	if (r->was_told)
		return;
	feed_metrics(r, &counts);
	log_pass(r);
}

/* --- the call --- */

/* Notes that a pass begins, unless the job is paused and nobody asked for it. */
static enum rc begin(struct session *s, void *arg, struct err *e)
{
	struct run       *r = arg;
	struct job_record record;
	enum rc           rc = session_find_or_new(s, &job_type, str_from(jobs_name(r->id)), &record, e);

	if (rc)
		return rc;
	r->is_skipped = record.is_paused && !r->was_asked;
	r->started_ms = session_now(s).ms;
	if (r->is_skipped)
		return RC_OK;
	record.owner = kernel_options(kernel_of(s))->node;
	record.last_started_at = r->started_ms / 1000;
	session_put(s, &job_type, &record);
	return RC_OK;
}

static struct run *run_new(struct call *c, enum job_id id)
{
	const struct event *event = &c->delivery->event;
	struct run         *r = arena_alloc(c->arena, sizeof(*r));

	r->jobs = c->arg;
	r->call = c;
	r->id = id;
	(void)snprintf(r->outcome.event_id, sizeof(r->outcome.event_id), "%.*s", STR_ARG(event->id)); /* fits */
	r->was_asked = str_eq(event->type, STR(EVENT_JOB_REQUESTED));
	if (r->was_asked)
		r->outcome.rc = job_terms(event, &r->terms, &r->outcome.e);
	return r;
}

static bool enter(struct run *r)
{
	struct jobs *j = r->jobs;
	bool         is_free;

	LOCKED(&j->lock);
	is_free = j->runs[r->id] == NULL;
	if (is_free)
		j->runs[r->id] = r;
	return is_free;
}

static void leave(struct run *r)
{
	struct jobs *j = r->jobs;

	LOCKED(&j->lock);
	while (r->is_asking)
		pthread_cond_wait(&j->is_changed, &j->lock);
	j->runs[r->id] = NULL;
}

static enum rc run_call(struct call *c, struct err *e)
{
	struct jobs *j = c->arg;
	struct run  *r;
	enum job_id  id;
	enum rc      rc;

	if (!job_of_subject(c->delivery->event.subject, &id) || (id < JOB_SCHEDULED && !jobs_has(j, id)))
		return RC_OK; /* of an older or newer program: nothing to run here, and nothing to keep */
	if (!c->go_on(c))     /* before the record says that this node is at it */
		return err_set(e, RC_UNAVAILABLE, "the claim is lost, or this node ends");
	r = run_new(c, id);
	if ((rc = store_run(j->options.pass.store, begin, r, c->arena, e)))
		return err_wrap(e, rc, "%s cannot begin", jobs_name(id));
	if (r->is_skipped) {
		r->outcome.rc = err_set(&r->outcome.e, RC_UNAVAILABLE, "%s was paused before the pass began",
		                        jobs_name(id));
		c->result = r;
		return RC_OK;
	}
	if (!enter(r))
		return err_set(e, RC_UNAVAILABLE, "%s is already under way here", jobs_name(id));
	run_pass(r);
	leave(r);
	if (r->was_told)
		return err_set(e, RC_UNAVAILABLE, "the pass was stopped before its end");
	c->result = r;
	return RC_OK;
}

/* So that whoever asked at another node hears of it. */
static enum rc tell_end(struct session *s, const struct run *r, struct err *e)
{
	return session_tell(s, r->outcome.rc ? EVENT_JOB_FAILED : EVENT_JOB_FINISHED, jobs_subject(r->id),
	                    jobs_subject(r->id), r->call->delivery->event.request_id,
	                    JSON_OF(session_arena(s), member_word("job", jobs_name(r->id)),
	                            member_word("event", r->outcome.event_id),
	                            member_int("durationMs", r->outcome.duration_ms),
	                            member_raw("result", str_from(r->outcome.result)),
	                            member_if(r->outcome.rc, member_word("error", r->outcome.e.msg))),
	                    e);
}

static enum rc settle(struct session *s, const struct call *c, struct err *e)
{
	const struct run *r = c->result;
	struct job_record record;
	enum rc           rc;

	if (!r || r->is_skipped)
		return RC_OK;
	if ((rc = session_find_or_new(s, &job_type, str_from(jobs_name(r->id)), &record, e)))
		return rc;
	record.owner = STR("");
	record.ran_by = kernel_options(kernel_of(s))->node;
	record.last_started_at = r->started_ms / 1000;
	record.last_finished_at = r->finished_ms / 1000;
	record.last_duration_ms = r->outcome.duration_ms;
	record.last_outcome = r->outcome.rc ? JOB_ERROR : JOB_SUCCESS;
	record.last_error = r->outcome.rc ? str_from(r->outcome.e.msg) : STR("");
	record.last_result = str_from(r->outcome.result);
	record.last_event_id = str_from(r->outcome.event_id);
	record.failures = r->outcome.rc ? record.failures + 1 : 0;
	record.interval_sec = jobs_interval_sec(r->jobs, r->id);
	session_put(s, &job_type, &record);
	if ((rc = tell_end(s, r, e)))
		return rc;
	return job_arm_next(s, r->id, &record, e);
}

static void end_call(const struct call *c)
{
	const struct run *r = c->result;
	struct jobs      *j;
	struct job_ask   *asks;

	if (!r)
		return; /* stopped: it will be run again */
	j = r->jobs;
	pthread_mutex_lock(&j->lock);
	j->results[j->result_count++ % RESULTS_KEPT] = r->outcome;
	asks = take_asks(j, r->outcome.event_id);
	pthread_mutex_unlock(&j->lock);
	answer_all(asks, &r->outcome);
	if (!r->is_skipped && j->options.on_pass)
		j->options.on_pass(j->options.on_pass_arg);
}

struct queue jobs_queue(struct jobs *j)
{
	return (struct queue){ .name = JOBS_QUEUE,
		               .call = run_call,
		               .settle = settle,
		               .over = end_call,
		               .arg = j,
		               .tries = TRIES,
		               .backoff_ms = RETRY_MS,
		               .backoff_max_ms = RETRY_MS,
		               .visibility_ms = j->options.lease_sec * 1000,
		               .concurrency = JOB_COUNT };
}

/* --- the heart --- */

/* With the lock held, which is given up meanwhile. False: the store does not answer. */
static bool read_unlocked(struct jobs *j, enum job_id id, struct arena *a, struct job_record *ret)
{
	bool    is_there;
	enum rc rc;

	*ret = (struct job_record){ .is_paused = false };
	pthread_mutex_unlock(&j->lock);
	arena_reset(a);
	rc = store_find(j->options.pass.store, &job_type, str_from(jobs_name(id)), a, ret, &is_there, NULL);
	pthread_mutex_lock(&j->lock);
	return rc == RC_OK;
}

/* With the lock held: keep the claim of a pass, and see whether it was paused, at whatever node. */
static void beat_for(struct jobs *j, enum job_id id, struct arena *a)
{
	struct job_record record;

	if (j->runs[id])
		ask_kernel(j->runs[id]);
	if (!j->runs[id] || j->runs[id]->was_asked || !read_unlocked(j, id, a, &record) || !j->runs[id])
		return;
	j->runs[id]->is_paused = record.is_paused;
	pthread_cond_broadcast(&j->is_changed);
}

/* What the event of an end says. False: nothing that can be used. */
static bool outcome_of(const struct event *event, struct outcome *ret)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	struct str                  id, error;
	char                       *result;

	*ret = (struct outcome){ 0 };
	if (json_parse(event->detail, &detail, NULL) || !json_is_object(detail) ||
	    !json_get_text(detail, "event", &id) || !json_get_text(detail, "error", &error) ||
	    !json_get_number(detail, "durationMs", 0, &ret->duration_ms))
		return false;
	if (str_eq(event->type, STR(EVENT_JOB_FAILED)))
		ret->rc = err_set(&ret->e, RC_UNAVAILABLE, "%.*s", STR_ARG(error));
	(void)snprintf(ret->event_id, sizeof(ret->event_id), "%.*s", STR_ARG(id)); /* fits */
	result = json_dumps(json_object_get(detail, "result"), JSON_COMPACT);
	(void)snprintf(ret->result, sizeof(ret->result), "%s", result ? result : "{}"); /* fits */
	free(result);
	return true;
}

/* Another node may have run what somebody here waits for: its end is in the log. */
static void look_elsewhere(struct jobs *j, enum job_id id, struct arena *a)
{
	struct event_list l = { .type = STR("JobF*"), /* finished, failed */
		                .subject = jobs_subject(id),
		                .since_ms = clock_now(j->options.pass.clock).ms - ENDS_SINCE_MS,
		                .is_newest_first = true,
		                .limit = ENDS_LOOKED_AT };
	struct outcome    o;

	arena_reset(a);
	if (store_read(j->options.pass.store, event_list, &l, a, NULL))
		return; /* the store does not answer: later */
	for (size_t i = 0; i < l.count; i++) {
		struct job_ask *asks;

		if (!outcome_of(&l.events[i], &o))
			continue;
		pthread_mutex_lock(&j->lock);
		asks = take_asks(j, o.event_id);
		pthread_mutex_unlock(&j->lock);
		answer_all(asks, &o);
	}
}

/* With the lock held, which is given up meanwhile. */
static void look_for_asks(struct jobs *j, struct arena *a)
{
	for (int id = 0; id < JOB_COUNT; id++) {
		const struct job_ask *ask = j->asks;

		while (ask && (int)ask->id != id)
			ask = ask->next;
		if (!ask)
			continue;
		pthread_mutex_unlock(&j->lock);
		look_elsewhere(j, (enum job_id)id, a);
		pthread_mutex_lock(&j->lock);
	}
}

static void *beat(void *arg)
{
	struct jobs                     *j = arg;
	CLEANUP(arena_fini) struct arena a = { 0 };
	int64_t every_ms = j->options.lease_sec * 1000 / BEATS_PER_LEASE, next_beat_ms = 0, next_look_ms = 0;

	LOCKED(&j->lock);
	while (!j->is_ending) {
		int64_t now_ms = mono_now().ms;
		bool    must_beat = j->must_look || now_ms >= next_beat_ms;
		bool    must_poll = now_ms >= next_look_ms;

		j->must_look = false;
		for (int id = 0; must_beat && id < JOB_COUNT; id++)
			beat_for(j, (enum job_id)id, &a);
		if (must_poll)
			look_for_asks(j, &a);
		if (must_beat)
			next_beat_ms = now_ms + every_ms;
		if (must_poll)
			next_look_ms = now_ms + POLL_MS;
		if (!j->must_look && !j->is_ending)
			(void)cond_wait_until(&j->is_changed, &j->lock,
			                      j->asks && next_look_ms < next_beat_ms ? next_look_ms : next_beat_ms);
	}
	return NULL;
}

void jobs_look_again(struct jobs *j)
{
	LOCKED(&j->lock);
	j->must_look = true;
	pthread_cond_broadcast(&j->is_changed);
}

/* --- start and end --- */

struct jobs *jobs_new(const struct jobs_options *o)
{
	struct jobs *j = mem_new(struct jobs);

	j->options = *o;
	pthread_mutex_init(&j->lock, NULL);
	cond_init(&j->is_changed);
	return j;
}

enum rc jobs_start(struct jobs *j, struct err *e)
{
	enum rc rc = store_run(j->options.pass.store, jobs_arm, j, NULL, e);

	if (rc)
		return err_wrap(e, rc, "the jobs' timers cannot be armed");
	mem_must(j->has_heart || !pthread_create(&j->heart, NULL, beat, j), "a thread");
	j->has_heart = true;
	return RC_OK;
}

void jobs_free(struct jobs *j)
{
	struct outcome stopped = { .rc = RC_UNAVAILABLE };

	if (!j)
		return;
	pthread_mutex_lock(&j->lock);
	j->is_ending = true;
	pthread_cond_broadcast(&j->is_changed);
	pthread_mutex_unlock(&j->lock);
	if (j->has_heart)
		pthread_join(j->heart, NULL);
	rc_ignore(err_set(&stopped.e, RC_UNAVAILABLE, "the server is stopping")); /* noted in stopped.e */
	answer_all(take_asks(j, NULL), &stopped);
	pthread_cond_destroy(&j->is_changed);
	pthread_mutex_destroy(&j->lock);
	free(j);
}
