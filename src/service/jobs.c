/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.c - when the passes run.
 *
 * Each job has a thread that sleeps until its pass is due or asked for, so a slow cleanup never delays a sync, and a pass
 * is never run twice at the same time: not on this node (the thread), not on two (the lease, see job_lease.c). Whether a job is paused and how its last pass went are records of the store;
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
#include "base/id.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "service/job_lease.h"
#include "store/session.h"

enum {
	DEFAULT_STALE_HOURS = 24,
	LEASE_POLL_MS = 500,
	STORE_RETRY_MS = 5000,
	FAILED_RETRY_SEC = 10,
	BEATS_PER_LEASE = 3
};

static const struct {
	const char *name, *actor;
	pass_fn    *run;
	const char *action; /* in the log */
	enum metric outcome, duration;
} table[JOB_COUNT] = {
	/* clang-format off */
	[JOB_SYNC]          = { "sync", "job/sync",          pass_sync,         "background_sync",              METRIC_SYNC,    METRIC_SYNC_DURATION },
	[JOB_CLEANUP]       = { "cleanup", "job/cleanup",       pass_cleanup,      "background_cleanup",           METRIC_CLEANUP, METRIC_CLEANUP_DURATION },
	[JOB_EXPIRY]        = { "expiry", "job/expiry",        pass_expire,       "background_expiry",            METRIC_EXPIRY,  METRIC__COUNT },
	[JOB_STALE_REMOVAL] = { "stale-removal", "job/stale-removal", pass_remove_stale, "background_auto_delete_stale", METRIC__COUNT,  METRIC__COUNT },
	[JOB_BULK_DELETE]   = { "bulk-delete", "job/bulk-delete",   pass_bulk_delete,  "bulk_delete",                  METRIC__COUNT,  METRIC__COUNT },
	[JOB_RETRY_FAILED]  = { "retry-failed", "job/retry-failed",  pass_retry_failed, "retry_failed_deletions",       METRIC__COUNT,  METRIC__COUNT },
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
	bool              has_lease;                            /* while a pass is under way */
	bool              is_lost;                              /* but another node has taken over */
	int               failures;                             /* passes that failed in a row */
	int64_t           next_run_ms;                          /* monotonic */
	struct arena      texts;                                /* of the record */
	struct job_record record;
};

struct jobs {
	struct jobs_options options;
	pthread_mutex_t     lock;
	bool                is_stopping;
	char                node[ID_UUID_SIZE];
	pthread_t           heart;
	pthread_cond_t      heart_wakes;
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

static enum rc read_record(struct session *s, void *arg, struct err *e)
{
	struct job_record *record = arg;

	return job_load(s, record->name, record, e);
}

enum rc job_pause(struct session *s, void *arg, struct err *e)
{
	struct job_pause *p = arg;
	struct job_record record;
	enum rc           rc = job_load(s, p->name, &record, e);

	if (rc)
		return rc;
	record.is_paused = p->is_paused;
	session_put(s, &job_type, &record);
	p->version = record.version;
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
		may_go_on = !job->jobs->is_stopping && !job->is_lost && (job->was_asked || !job->record.is_paused);
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

/* What is known of the job from now on, unless something newer is known already. With the lock held. */
static void remember_locked(struct job *job, const struct job_record *record)
{
	struct arena      old = job->texts;
	struct job_record known = job->record;

	if (record->version < known.version)
		return;
	arena_init(&job->texts);
	record_copy(&job_type, &job->record, record, &job->texts);
	arena_fini(&old);
}

static void remember(struct job *job, const struct job_record *record)
{
	pthread_mutex_lock(&job->jobs->lock);
	remember_locked(job, record);
	pthread_mutex_unlock(&job->jobs->lock);
}

static void keep_outcome(struct job *job, struct job_record *done)
{
	struct lease_end end = { .node = str_from(job->jobs->node), .outcome = *done };
	struct arena     a = { 0 };
	enum rc          rc = RC_UNAVAILABLE;

	pthread_mutex_lock(&job->jobs->lock);
	end.fence = job->record.fence;
	pthread_mutex_unlock(&job->jobs->lock);
	if (job->id < JOB_SCHEDULED)
		rc = store_run(job->jobs->options.store, lease_finish, &end, &a, NULL);
	pthread_mutex_lock(&job->jobs->lock);
	if (!rc && !end.is_lost) {
		remember_locked(job, &end.record);
	} else { /* the store is down or another node has it: at least this process shows what happened */
		done->is_paused = job->record.is_paused;
		done->fence = job->record.fence;
		done->version = job->record.version;
		remember_locked(job, done);
	}
	pthread_mutex_unlock(&job->jobs->lock);
	arena_fini(&a);
}

/* Run the pass on these terms and keep its outcome; the lock is not held. */
static void run_pass(struct job *job, struct job_ask *terms)
{
	const struct jobs_options *o = &job->jobs->options;
	struct pass                p = { .store = o->store,
		                         .csp = o->csp,
		                         .settings = o->settings,
		                         .clock = o->clock,
		                         .by = { .name = str_from(table[job->id].actor) },
		                         .is_forced = terms->is_forced,
		                         .status = terms->status,
		                         .stale_hours = terms->stale_hours ? terms->stale_hours : DEFAULT_STALE_HOURS,
		                         .wait = wait_in_pass,
		                         .wait_arg = job };
	struct job_record          done = { .name = str_from(table[job->id].name) };
	struct buf                 result;
	int64_t                    started = mono_now().ms;

	done.last_started_at = wall_sec(clock_now(job->jobs->options.clock));
	terms->rc = table[job->id].run(&p, &terms->result, &terms->e);
	terms->duration_ms = mono_now().ms - started;
	done.last_finished_at = wall_sec(clock_now(job->jobs->options.clock));
	done.last_outcome = terms->rc ? JOB_ERROR : JOB_SUCCESS;
	done.last_error = terms->rc ? str_from(terms->e.msg) : STR("");
	buf_init(&result, JOB_RESULT_MAX);
	write_result(&terms->result, &result);
	done.last_result = buf_str(&result);
	feed_metrics(job, terms);
	log_pass(job, terms, done.last_result);
	keep_outcome(job, &done);
	buf_fini(&result);
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

/* Without the lock: may this node run the pass? An ask waits for another node's pass to end. RC_UNAVAILABLE: stopping, or
 * the store does not answer. *ret_retry_ms: when to try again (monotonic), if not. */
static enum rc obtain_lease(struct job *job, bool *ret_is_granted, int64_t *ret_retry_ms, struct err *e)
{
	const struct jobs_options *o = &job->jobs->options;
	struct lease_claim         c = { .name = str_from(table[job->id].name),
		                         .node = str_from(job->jobs->node),
		                         .lease_sec = o->lease_sec,
		                         .interval_sec = o->interval_sec[job->id],
		                         .is_alone = o->is_alone,
		                         .was_asked = job->was_asked };
	struct arena               a = { 0 };
	bool                       is_stopping = false;
	enum rc                    rc;

	do {
		arena_reset(&a);
		rc = store_run(o->store, lease_take, &c, &a, e);
		if (rc || c.verdict != LEASE_HELD || !job->was_asked)
			break;
		pthread_mutex_lock(&job->jobs->lock);
		wait_until(job, mono_now().ms + LEASE_POLL_MS);
		is_stopping = job->jobs->is_stopping;
		pthread_mutex_unlock(&job->jobs->lock);
	} while (!is_stopping);
	if (is_stopping)
		rc = err_set(e, RC_UNAVAILABLE, "the server is stopping");
	if (!rc)
		remember(job, &c.record);
	*ret_is_granted = !rc && c.verdict == LEASE_GRANTED;
	*ret_retry_ms = mono_now().ms + (rc ? STORE_RETRY_MS : (c.retry_at - wall_sec(clock_now(o->clock))) * 1000);
	arena_fini(&a);
	return rc;
}

static void set_lease(struct job *job, bool has_lease)
{
	pthread_mutex_lock(&job->jobs->lock);
	job->has_lease = has_lease && job->id < JOB_SCHEDULED;
	job->is_lost = false;
	pthread_mutex_unlock(&job->jobs->lock);
}

/* The store did not even say whether the job may run: told once, and visible until the next pass. */
static void note_no_lease(struct job *job, const struct job_ask *terms)
{
	struct job_record failed;
	struct arena      a = { 0 };
	bool              is_news;

	pthread_mutex_lock(&job->jobs->lock);
	record_copy(&job_type, &failed, &job->record, &a);
	is_news = !str_eq(failed.last_error, str_from(terms->e.msg));
	failed.last_outcome = JOB_ERROR;
	failed.last_error = str_from(terms->e.msg);
	remember_locked(job, &failed);
	pthread_mutex_unlock(&job->jobs->lock);
	arena_fini(&a);
	if (table[job->id].outcome != METRIC__COUNT)
		metrics_add(job->jobs->options.metrics, table[job->id].outcome, "error", 1);
	if (is_news)
		log_write(LOG_WARNING, "jobs", NULL, 0, "%s cannot begin: %s", table[job->id].name, terms->e.msg);
}

/* Without the lock: run the pass if this node may. False: nothing was run; try again at *ret_retry_ms. */
static bool run_leased(struct job *job, struct job_ask *terms, int64_t *ret_retry_ms)
{
	bool is_granted = true;

	if (job->id < JOB_SCHEDULED)
		terms->rc = obtain_lease(job, &is_granted, ret_retry_ms, &terms->e);
	if (terms->rc)
		note_no_lease(job, terms);
	if (terms->rc || !is_granted)
		return false;
	set_lease(job, true);
	run_pass(job, terms);
	set_lease(job, false);
	job->jobs->options.on_pass(job->jobs->options.on_pass_arg);
	return true;
}

/* Until the next pass: the interval; after a failure sooner, twice as late each time. */
static int64_t pause_sec(const struct job *job)
{
	int64_t interval = job->jobs->options.interval_sec[job->id];
	int64_t sooner;

	if (!job->failures)
		return interval;
	sooner = (int64_t)FAILED_RETRY_SEC << (job->failures < 10 ? job->failures - 1 : 10);
	return sooner < interval ? sooner : interval;
}

static void *run_job(void *arg)
{
	struct job  *job = arg;
	struct jobs *jobs = job->jobs;

	pthread_mutex_lock(&jobs->lock);
	while (wait_for_work(job)) {
		struct job_ask  terms = take_terms(job);
		struct job_ask *ask;
		int64_t         retry_ms = 0;
		bool            has_run;

		job->is_running = true;
		pthread_mutex_unlock(&jobs->lock);
		has_run = run_leased(job, &terms, &retry_ms);
		pthread_mutex_lock(&jobs->lock);
		job->is_running = false;
		if (has_run)
			job->failures = terms.rc ? job->failures + 1 : 0;
		if (job->id < JOB_SCHEDULED)
			job->next_run_ms = has_run ? mono_now().ms + pause_sec(job) * 1000 : retry_ms;
		while (!has_run && !terms.rc && (ask = ask_list_take(&job->joined)))
			ask_list_add(&job->pending, ask); /* joined a pass that another node has: wants its own */
		while ((ask = ask_list_take(&job->joined))) {
			pthread_mutex_unlock(&jobs->lock);
			answer(ask, &terms);
			pthread_mutex_lock(&jobs->lock);
		}
	}
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

/* --- the heart: holds the leases of running passes, and looks what other nodes did --- */

static void extend_lease(struct job *job, int64_t fence, struct arena *a)
{
	struct lease_beat beat = { .name = str_from(table[job->id].name),
		                   .node = str_from(job->jobs->node),
		                   .lease_sec = job->jobs->options.lease_sec,
		                   .fence = fence };

	if (store_run(job->jobs->options.store, lease_extend, &beat, a, NULL))
		return; /* the store does not answer; the lease lasts for two more beats */
	pthread_mutex_lock(&job->jobs->lock);
	if (beat.is_lost && job->has_lease && job->record.fence == fence)
		job->is_lost = true;
	pthread_cond_broadcast(&job->is_changed);
	pthread_mutex_unlock(&job->jobs->lock);
}

static void look_at_record(struct job *job, struct arena *a)
{
	struct job_record record = { .name = str_from(table[job->id].name) };

	if (job->jobs->options.is_alone || store_read(job->jobs->options.store, read_record, &record, a, NULL))
		return; /* nobody else writes it, or the store does not answer */
	pthread_mutex_lock(&job->jobs->lock);
	if (!job->is_running)
		remember_locked(job, &record);
	pthread_mutex_unlock(&job->jobs->lock);
}

static void *beat(void *arg)
{
	struct jobs *jobs = arg;
	struct arena a = { 0 };

	pthread_mutex_lock(&jobs->lock);
	while (!jobs->is_stopping) {
		int64_t         until_ms = mono_now().ms + jobs->options.lease_sec * 1000 / BEATS_PER_LEASE;
		struct timespec until = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };

		pthread_cond_timedwait(&jobs->heart_wakes, &jobs->lock, &until);
		for (int id = 0; !jobs->is_stopping && id < JOB_SCHEDULED; id++) {
			bool    has_lease = jobs->job[id].has_lease;
			int64_t fence = jobs->job[id].record.fence;

			pthread_mutex_unlock(&jobs->lock);
			arena_reset(&a);
			if (has_lease)
				extend_lease(&jobs->job[id], fence, &a);
			else
				look_at_record(&jobs->job[id], &a);
			pthread_mutex_lock(&jobs->lock);
		}
	}
	pthread_mutex_unlock(&jobs->lock);
	arena_fini(&a);
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
	} else if (!jobs->options
	                    .is_alone) { /* the store is away: the heart will look again, and the lease asks anyway */
		err_clear(e);
		rc = RC_OK;
	}
	arena_fini(&a);
	return rc;
}

static void init_condition(pthread_cond_t *condition)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static void init_job(struct jobs *jobs, enum job_id id)
{
	init_condition(&jobs->job[id].is_changed);
	jobs->job[id].jobs = jobs;
	jobs->job[id].id = id;
}

static void free_jobs(struct jobs *j)
{
	for (int id = 0; id < JOB_COUNT; id++) {
		pthread_cond_destroy(&j->job[id].is_changed);
		arena_fini(&j->job[id].texts);
	}
	pthread_cond_destroy(&j->heart_wakes);
	pthread_mutex_destroy(&j->lock);
	free(j);
}

enum rc jobs_open(const struct jobs_options *o, struct jobs **ret, struct err *e)
{
	struct jobs *j = mem_new(struct jobs);
	enum rc      rc = RC_OK;

	j->options = *o;
	id_uuid(j->node);
	pthread_mutex_init(&j->lock, NULL);
	init_condition(&j->heart_wakes);
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
	if (pthread_create(&j->heart, NULL, beat, j))
		abort();
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
	pthread_cond_broadcast(&j->heart_wakes);
	pthread_mutex_unlock(&j->lock);
	pthread_join(j->heart, NULL);
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
		ret->next_run_at = wall_sec(clock_now(j->options.clock)) + (until_run > 0 ? until_run / 1000 : 0);
}

void jobs_set_paused(struct jobs *j, enum job_id id, const struct job_pause *done)
{
	pthread_mutex_lock(&j->lock);
	if (done->version >= j->job[id].record.version) {
		j->job[id].record.is_paused = done->is_paused;
		j->job[id].record.version = done->version;
	}
	pthread_cond_broadcast(&j->job[id].is_changed);
	pthread_mutex_unlock(&j->lock);
}
