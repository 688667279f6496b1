/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.c - when the passes run.
 *
 * Each job has a thread that sleeps until its pass is due or asked for, so a slow cleanup never delays a sync, and a pass
 * is never run twice at the same time. Whether a job is paused and how its last pass went are records of the store;
 * what is under way is known only here and is simply begun again after a crash, which every pass allows.
 *
 * One mutex guards all of it. It is held for moments only, never while a pass runs.
 */
#include "service/jobs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/session.h"

enum { DEFAULT_STALE_HOURS = 24 };

static const struct {
	const char *name;
	pass_fn    *run;
	const char *action; /* in the log */
	enum metric outcome, duration;
} table[JOB_COUNT] = {
	/* clang-format off */
	[JOB_SYNC]          = { "sync",          pass_sync,         "background_sync",              METRIC_SYNC,    METRIC_SYNC_DURATION },
	[JOB_CLEANUP]       = { "cleanup",       pass_cleanup,      "background_cleanup",           METRIC_CLEANUP, METRIC_CLEANUP_DURATION },
	[JOB_EXPIRY]        = { "expiry",        pass_expire,       "background_expiry",            METRIC_EXPIRY,  METRIC__COUNT },
	[JOB_STALE_REMOVAL] = { "stale-removal", pass_remove_stale, "background_auto_delete_stale", METRIC__COUNT,  METRIC__COUNT },
	[JOB_BULK_DELETE]   = { "bulk-delete",   pass_bulk_delete,  "bulk_delete",                  METRIC__COUNT,  METRIC__COUNT },
	[JOB_RETRY_FAILED]  = { "retry-failed",  pass_retry_failed, "retry_failed_deletions",       METRIC__COUNT,  METRIC__COUNT },
	/* clang-format on */
};

struct ask_list {
	struct job_ask *first, *last;
};

struct job {
	struct jobs      *jobs;
	enum job_id       id;
	pthread_t         thread;
	pthread_cond_t    is_changed;
	struct ask_list   pending;                              /* wait for a pass of their own */
	struct ask_list   joined;                               /* served by the pass under way */
	bool              is_running, has_own_terms, was_asked; /* of the pass under way */
	int64_t           next_run_ms;                          /* monotonic */
	struct arena      texts;                                /* of the record */
	struct job_record record;
};

struct jobs {
	struct jobs_options options;
	pthread_mutex_t     lock;
	bool                is_stopping;
	struct job          job[JOB_COUNT];
};

const char *jobs_name(enum job_id id)
{
	return table[id].name;
}

bool jobs_find(struct str name, enum job_id *ret)
{
	for (int id = 0; id < JOB_SCHEDULED; id++)
		if (str_eq(name, str_from(table[id].name))) {
			*ret = (enum job_id)id;
			return true;
		}
	return false;
}

static void ask_list_add(struct ask_list *l, struct job_ask *ask)
{
	ask->next = NULL;
	if (l->last)
		l->last->next = ask;
	else
		l->first = ask;
	l->last = ask;
}

static struct job_ask *ask_list_take(struct ask_list *l)
{
	struct job_ask *ask = l->first;

	if (!ask)
		return NULL;
	l->first = ask->next;
	if (!l->first)
		l->last = NULL;
	return ask;
}

/* --- records --- */

static enum rc load_record(struct session *s, struct str name, struct job_record *ret, struct err *e)
{
	enum rc rc = session_get(s, &job_type, name, ret, NULL);

	if (rc == RC_NOT_FOUND) {
		*ret = (struct job_record){ .name = name };
		return RC_OK;
	}
	return rc ? err_set(e, rc, "job %.*s cannot be read", STR_ARG(name)) : RC_OK;
}

static enum rc read_record(struct session *s, void *arg, struct err *e)
{
	struct job_record *record = arg;

	return load_record(s, record->name, record, e);
}

enum rc job_pause(struct session *s, void *arg, struct err *e)
{
	struct job_pause *p = arg;
	struct job_record record;
	enum rc           rc = load_record(s, p->name, &record, e);

	if (rc)
		return rc;
	record.is_paused = p->is_paused;
	session_put(s, &job_type, &record);
	return RC_OK;
}

/* How a pass went, into the record; whether it is paused is not ours to write. */
static enum rc note_outcome(struct session *s, void *arg, struct err *e)
{
	const struct job_record *done = arg;
	struct job_record        record;
	enum rc                  rc = load_record(s, done->name, &record, e);

	if (rc)
		return rc;
	record.last_started_at = done->last_started_at;
	record.last_finished_at = done->last_finished_at;
	record.last_outcome = done->last_outcome;
	record.last_error = done->last_error;
	record.last_result = done->last_result;
	session_put(s, &job_type, &record);
	return RC_OK;
}

/* --- a pass --- */

static void wait_until(struct job *job, int64_t mono_ms)
{
	struct timespec until = { .tv_sec = mono_ms / 1000, .tv_nsec = mono_ms % 1000 * 1000000 };

	pthread_cond_timedwait(&job->is_changed, &job->jobs->lock, &until);
}

/* Between two deletions. A pause stops a scheduled pass, not one that somebody asked for. */
static bool wait_in_pass(void *arg, int64_t ms)
{
	struct job *job = arg;
	int64_t     until = mono_now().ms + ms;
	bool        may_go_on;

	pthread_mutex_lock(&job->jobs->lock);
	for (;;) {
		may_go_on = !job->jobs->is_stopping && (job->was_asked || !job->record.is_paused);
		if (!may_go_on || mono_now().ms >= until)
			break;
		wait_until(job, until);
	}
	pthread_mutex_unlock(&job->jobs->lock);
	return may_go_on;
}

static void write_result(const struct pass_result *r, struct buf *b)
{
	struct json_out o;

	json_out_init(&o, b);
	json_open_object(&o);
	for (int i = 0; i < r->count; i++)
		json_put_int(&o, r->counts[i].name, r->counts[i].value);
	json_close_object(&o);
}

static void feed_metrics(struct job *job, const struct job_ask *a)
{
	struct metrics *m = job->jobs->options.metrics;

	if (table[job->id].outcome != METRIC__COUNT)
		metrics_add(m, table[job->id].outcome, a->rc ? "error" : "success", 1);
	if (table[job->id].duration != METRIC__COUNT)
		metrics_observe(m, table[job->id].duration, "", (double)a->duration_ms / 1000);
	for (int i = 0; i < a->result.count; i++)
		if (a->result.counts[i].metric != METRIC__COUNT)
			metrics_add(m, a->result.counts[i].metric, "", a->result.counts[i].value);
}

static void log_pass(struct job *job, const struct job_ask *a, struct str result)
{
	struct log_field fields[] = {
		LOG_STR("action", str_from(table[job->id].action)),
		LOG_STR("outcome", a->rc ? STR("failure") : STR("success")),
		LOG_NUM("latency_ms", a->duration_ms),
		LOG_STR("result", result),
		LOG_STR("error", str_from(a->e.msg)),
	};

	log_write(a->rc ? LOG_WARNING : LOG_INFO, "jobs", fields, ARRAY_LEN(fields), "%s %s", table[job->id].name,
	          a->rc ? "failed" : "done");
}

/* Run the pass on these terms and keep its outcome; the lock is not held. */
static void run_pass(struct job *job, struct job_ask *terms)
{
	const struct jobs_options *o = &job->jobs->options;
	struct pass                p = { .store = o->store,
		                         .csp = o->csp,
		                         .clock = &clock_real,
		                         .settings = o->settings,
		                         .is_forced = terms->is_forced,
		                         .status = terms->status,
		                         .stale_hours = terms->stale_hours ? terms->stale_hours : DEFAULT_STALE_HOURS,
		                         .wait = wait_in_pass,
		                         .wait_arg = job };
	struct job_record          done = { .name = str_from(table[job->id].name) };
	struct arena               a = { 0 };
	struct buf                 result;
	int64_t                    started = mono_now().ms;

	done.last_started_at = wall_sec(clock_now(&clock_real));
	terms->rc = table[job->id].run(&p, &terms->result, &terms->e);
	terms->duration_ms = mono_now().ms - started;
	done.last_finished_at = wall_sec(clock_now(&clock_real));
	done.last_outcome = terms->rc ? JOB_ERROR : JOB_SUCCESS;
	done.last_error = terms->rc ? str_from(terms->e.msg) : STR("");
	buf_init(&result, JOB_RESULT_MAX);
	write_result(&terms->result, &result);
	done.last_result = buf_str(&result);
	feed_metrics(job, terms);
	log_pass(job, terms, done.last_result);
	if (job->id < JOB_SCHEDULED)
		/* When the store is down the pass has failed already; this record is only the memory of it. */
		rc_ignore(store_run(o->store, note_outcome, &done, &a, NULL));

	pthread_mutex_lock(&job->jobs->lock);
	done.is_paused = job->record.is_paused;
	arena_reset(&job->texts);
	record_copy(&job_type, &job->record, &done, &job->texts);
	pthread_mutex_unlock(&job->jobs->lock);
	buf_fini(&result);
	arena_fini(&a);
}

static void answer(struct job_ask *ask, const struct job_ask *terms)
{
	ask->rc = terms->rc;
	ask->e = terms->e;
	ask->result = terms->result;
	ask->duration_ms = terms->duration_ms;
	ask->done(ask);
}

/* --- the thread --- */

/* With the lock held: wait until there is a reason to run. False: stop. */
static bool wait_for_work(struct job *job)
{
	for (;;) {
		bool is_scheduled = job->id < JOB_SCHEDULED && !job->record.is_paused;

		if (job->jobs->is_stopping)
			return false;
		if (job->pending.first || (is_scheduled && mono_now().ms >= job->next_run_ms))
			return true;
		if (is_scheduled)
			wait_until(job, job->next_run_ms);
		else
			pthread_cond_wait(&job->is_changed, &job->jobs->lock);
	}
}

/* With the lock held: on whose terms the next pass runs, and who joins it. */
static struct job_ask take_terms(struct job *job)
{
	struct job_ask  terms = { 0 };
	struct job_ask *ask = ask_list_take(&job->pending);

	job->was_asked = ask != NULL;
	job->has_own_terms = ask && ask->has_own_terms;
	if (ask) {
		terms.is_forced = ask->is_forced;
		terms.stale_hours = ask->stale_hours;
		terms.status = ask->status;
		ask_list_add(&job->joined, ask);
	}
	while (!job->has_own_terms && job->pending.first && !job->pending.first->has_own_terms)
		ask_list_add(&job->joined, ask_list_take(&job->pending));
	return terms;
}

static void *run_job(void *arg)
{
	struct job  *job = arg;
	struct jobs *jobs = job->jobs;

	pthread_mutex_lock(&jobs->lock);
	while (wait_for_work(job)) {
		struct job_ask  terms = take_terms(job);
		struct job_ask *ask;

		job->is_running = true;
		pthread_mutex_unlock(&jobs->lock);
		run_pass(job, &terms);
		jobs->options.on_pass(jobs->options.on_pass_arg);
		pthread_mutex_lock(&jobs->lock);
		job->is_running = false;
		if (job->id < JOB_SCHEDULED)
			job->next_run_ms = mono_now().ms + jobs->options.interval_sec[job->id] * 1000;
		while ((ask = ask_list_take(&job->joined))) {
			pthread_mutex_unlock(&jobs->lock);
			answer(ask, &terms);
			pthread_mutex_lock(&jobs->lock);
		}
	}
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

static enum rc load_job(struct jobs *jobs, struct job *job, struct err *e)
{
	struct arena a = { 0 };
	enum rc      rc;

	job->record.name = str_from(table[job->id].name);
	rc = store_read(jobs->options.store, read_record, &job->record, &a, e);
	if (!rc) {
		struct job_record loaded = job->record;

		record_copy(&job_type, &job->record, &loaded, &job->texts);
	}
	arena_fini(&a);
	return rc;
}

static void init_job(struct jobs *jobs, enum job_id id)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&jobs->job[id].is_changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	jobs->job[id].jobs = jobs;
	jobs->job[id].id = id;
}

static void free_jobs(struct jobs *j)
{
	for (int id = 0; id < JOB_COUNT; id++) {
		pthread_cond_destroy(&j->job[id].is_changed);
		arena_fini(&j->job[id].texts);
	}
	pthread_mutex_destroy(&j->lock);
	free(j);
}

enum rc jobs_open(const struct jobs_options *o, struct jobs **ret, struct err *e)
{
	struct jobs *j = mem_new(struct jobs);
	enum rc      rc = RC_OK;

	j->options = *o;
	pthread_mutex_init(&j->lock, NULL);
	for (int id = 0; id < JOB_COUNT; id++)
		init_job(j, (enum job_id)id);
	for (int id = 0; !rc && id < JOB_SCHEDULED; id++)
		rc = load_job(j, &j->job[id], e);
	if (rc) {
		free_jobs(j);
		return rc;
	}
	for (int id = 0; id < JOB_COUNT; id++)
		if (pthread_create(&j->job[id].thread, NULL, run_job, &j->job[id]))
			abort(); /* without threads there is no program */
	*ret = j;
	return RC_OK;
}

void jobs_close(struct jobs *j)
{
	struct job_ask  stopped = { .rc = RC_UNAVAILABLE };
	struct job_ask *ask;

	if (!j)
		return;
	rc_ignore(err_set(&stopped.e, RC_UNAVAILABLE, "the server is stopping")); /* noted in stopped.e */
	pthread_mutex_lock(&j->lock);
	j->is_stopping = true;
	for (int id = 0; id < JOB_COUNT; id++)
		pthread_cond_broadcast(&j->job[id].is_changed);
	pthread_mutex_unlock(&j->lock);
	for (int id = 0; id < JOB_COUNT; id++) {
		pthread_join(j->job[id].thread, NULL);
		while ((ask = ask_list_take(&j->job[id].pending)))
			answer(ask, &stopped);
	}
	free_jobs(j);
}

void jobs_ask(struct jobs *j, enum job_id id, struct job_ask *ask)
{
	struct job *job = &j->job[id];

	pthread_mutex_lock(&j->lock);
	if (job->is_running && !job->has_own_terms && !ask->has_own_terms)
		ask_list_add(&job->joined, ask);
	else
		ask_list_add(&job->pending, ask);
	pthread_cond_broadcast(&job->is_changed);
	pthread_mutex_unlock(&j->lock);
}

void jobs_status(struct jobs *j, enum job_id id, struct arena *a, struct job_status *ret)
{
	struct job *job = &j->job[id];
	int64_t     until_run;

	pthread_mutex_lock(&j->lock);
	record_copy(&job_type, &ret->record, &job->record, a);
	ret->is_running = job->is_running;
	ret->interval_sec = j->options.interval_sec[id];
	until_run = job->next_run_ms - mono_now().ms;
	pthread_mutex_unlock(&j->lock);
	ret->next_run_at = 0;
	if (!ret->is_running && !ret->record.is_paused)
		ret->next_run_at = wall_sec(clock_now(&clock_real)) + (until_run > 0 ? until_run / 1000 : 0);
}

void jobs_set_paused(struct jobs *j, enum job_id id, bool is_paused)
{
	pthread_mutex_lock(&j->lock);
	j->job[id].record.is_paused = is_paused;
	pthread_cond_broadcast(&j->job[id].is_changed);
	pthread_mutex_unlock(&j->lock);
}
