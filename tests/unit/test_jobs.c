/* SPDX-License-Identifier: Apache-2.0 */
/* test_jobs.c - passes on the pump's threads, and who gets their result. The vendor stops at a gate that the test
 * opens; see test_schedule.c for when they run. */
#include "test.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "kernel/event.h"
#include "kernel/pump.h"
#include "pool.h"
#include "service/broker/broker.h"
#include "service/jobs/jobs.h"
#include "store/session.h"

enum { INTERVAL_SEC = 3600, DEADLINE_SEC = 120, A_MINUTE_MS = 60 * 1000, AN_HOUR_MS = 3600 * 1000 };

/* Everything that the test's thread and the jobs' threads share is under one lock. */
struct floor {
	struct pool            pool;
	struct fake_csp        csp;
	struct broker_settings settings;
	struct metrics        *metrics;
	struct queue           queue;
	struct jobs           *jobs;
	struct pump           *pump;
	pthread_mutex_t        lock;
	pthread_cond_t         is_changed;
	bool                   is_shut; /* the gate at the vendor */
	int                    at_gate; /* calls that have come to it, ever */
	int                    passes;
};

static void note(struct floor *f, int *what)
{
	pthread_mutex_lock(&f->lock);
	++*what;
	pthread_cond_broadcast(&f->is_changed);
	pthread_mutex_unlock(&f->lock);
}

static void on_pass(void *arg)
{
	struct floor *f = arg;

	note(f, &f->passes);
}

static void stop_at_gate(struct floor *f)
{
	note(f, &f->at_gate);
	pthread_mutex_lock(&f->lock);
	while (f->is_shut)
		pthread_cond_wait(&f->is_changed, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

static void on_list(struct fake_csp *csp)
{
	stop_at_gate(csp->arg);
}

static void on_delete(struct fake_csp *csp, struct str external_id)
{
	(void)external_id;
	stop_at_gate(csp->arg);
}

static void set_gate(struct floor *f, bool is_shut)
{
	pthread_mutex_lock(&f->lock);
	f->is_shut = is_shut;
	pthread_cond_broadcast(&f->is_changed);
	pthread_mutex_unlock(&f->lock);
}

/* Wait until *what is at least this. */
static void wait_for(struct floor *f, const int *what, int least)
{
	struct timespec until;
	int             late = 0, seen;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_SEC;
	pthread_mutex_lock(&f->lock);
	while (*what < least && !late)
		late = pthread_cond_timedwait(&f->is_changed, &f->lock, &until);
	seen = *what;
	pthread_mutex_unlock(&f->lock);
	CHECK(seen >= least);
}

static void make_jobs(struct floor *f)
{
	struct jobs_options o = { .pass.store = f->pool.store,
		                  .pass.csp = &f->csp.csp,
		                  .pass.settings = &f->settings,
		                  .pass.clock = &f->pool.clock,
		                  .lease_sec = 30,
		                  .pass.metrics = f->metrics,
		                  .on_pass = on_pass,
		                  .on_pass_arg = f };

	for (int id = 0; id < JOB_SCHEDULED; id++)
		o.interval_sec[id] = INTERVAL_SEC;
	f->jobs = jobs_new(&o);
}

static void floor_open(struct floor *f)
{
	memset(f, 0, sizeof(*f));
	log_setup(LOG_ERROR, LOG_TEXT); /* passes that fail here do so on purpose */
	pool_open_sqlite(&f->pool);
	f->metrics = metrics_new();
	fake_csp_init(&f->csp);
	f->csp.arg = f;
	f->csp.on_list = on_list;
	f->csp.on_delete = on_delete;
	fake_csp_list(&f->csp, &f->pool.arena, 0, 4);
	f->settings = (struct broker_settings){ .lab_hours = 4,
		                                .deletion_max_attempts = 3,
		                                .deletion_backoff_sec = 300,
		                                .cleanup_batch_size = 1000,
		                                .sync_max_stale_percent = 25 };
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->is_changed, NULL);
	make_jobs(f);
}

static void poke(void *arg)
{
	pump_poke(arg);
}

static void start(struct floor *f)
{
	static const struct route routes[] = { { EVENT_JOB_DUE, JOBS_QUEUE }, { EVENT_JOB_REQUESTED, JOBS_QUEUE } };

	f->queue = jobs_queue(f->jobs);
	pool_route(&f->pool, &f->queue, 1, routes, ARRAY_LEN(routes));
	CHECK(jobs_start(f->jobs, NULL) == RC_OK);
	f->pump = pump_start(&(struct pump_options){ f->pool.kernel, JOB_COUNT, 1000 });
	kernel_on_news(f->pool.kernel, poke, f->pump);
}

static void stop(struct floor *f)
{
	kernel_on_news(f->pool.kernel, NULL, NULL);
	pump_stop(f->pump);
	f->pump = NULL;
	jobs_free(f->jobs);
	f->jobs = NULL;
}

/* As after a restart of the program. */
static void start_anew(struct floor *f)
{
	stop(f);
	f->pool.clock.test_ms += A_MINUTE_MS; /* a pass that this stopped before it began is due again later */
	pool_reopen(&f->pool);
	make_jobs(f);
	start(f);
}

static void floor_close(struct floor *f)
{
	if (f->jobs)
		stop(f);
	metrics_free(f->metrics);
	pool_close(&f->pool);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->is_changed);
}

struct asker {
	struct job_request target;
	struct job_ask     ask;
	struct floor      *floor;
	int                times_done;
};

static void on_done(struct job_ask *ask)
{
	struct asker *a = CONTAINER_OF(ask, struct asker, ask);

	note(a->floor, &a->times_done);
}

static void send(struct floor *f, enum job_id id, struct asker *a)
{
	a->floor = f;
	a->target.id = a->ask.id = id;
	CHECK(store_run(f->pool.store, job_request, &a->target, &f->pool.arena, NULL) == RC_OK);
	memcpy(a->ask.event_id, a->target.event_id, sizeof(a->ask.event_id));
	a->ask.done = on_done;
	jobs_expect(f->jobs, &a->ask);
}

static void await(struct asker *a)
{
	wait_for(a->floor, &a->times_done, 1);
	CHECK(a->times_done == 1);
}

static enum rc ask_and_wait(struct floor *f, enum job_id id)
{
	struct asker a = { 0 };

	send(f, id, &a);
	await(&a);
	return a.ask.rc;
}

static int64_t figure(const struct asker *a, const char *name)
{
	CLEANUP(json_freep) json_t *result = NULL;
	json_t                     *value;

	CHECK(json_parse(str_from(a->ask.result), &result, NULL) == RC_OK);
	value = json_object_get(result, name);
	return value ? json_integer_value(value) : -1;
}

static struct job_status status_of(struct floor *f, enum job_id id)
{
	struct job_list l = { .jobs = f->jobs };

	CHECK(store_read(f->pool.store, job_list, &l, &f->pool.arena, NULL) == RC_OK);
	CHECK((int)id < l.count);
	return l.items[id];
}

static void pause_job(struct floor *f, enum job_id id, bool is_paused)
{
	struct job_pause p = { .jobs = f->jobs, .id = id, .is_paused = is_paused };

	CHECK(store_run(f->pool.store, job_pause, &p, &f->pool.arena, NULL) == RC_OK);
	CHECK(!!p.status.record.is_paused == is_paused);
	jobs_look_again(f->jobs);
}

static enum rc emit(struct session *s, void *arg, struct err *e)
{
	return session_emit(s, arg, e);
}

static void pause_all(struct floor *f)
{
	for (int id = 0; id < JOB_SCHEDULED; id++)
		pause_job(f, (enum job_id)id, true);
}

/* So many sandboxes that wait for their deletion. */
static void make_pending(struct floor *f, int count)
{
	pool_fill(&f->pool, 0, count);
	for (int n = 0; n < count; n++) {
		struct sandbox s = pool_get(&f->pool, pool_id(&f->pool.arena, n));

		s.status = SANDBOX_PENDING_DELETION;
		s.allocated_to_track = STR("t");
		s.allocated_at = s.deletion_requested_at = POOL_NOW_SEC;
		pool_put(&f->pool, s);
	}
}

/* --- schedule --- */

/* Those before the ones about leases, which need a cloud. */
TEST(every_scheduled_job_runs_at_the_first_start)
{
	struct floor      f;
	struct job_status s;

	floor_open(&f);
	start(&f);
	wait_for(&f, &f.passes, JOB_LEASE_MONITOR);
	for (int id = 0; id < JOB_LEASE_MONITOR; id++) {
		CASE(jobs_name((enum job_id)id));
		s = status_of(&f, (enum job_id)id);
		CHECK(s.record.last_outcome == JOB_SUCCESS && s.interval_sec == INTERVAL_SEC);
		CHECK(s.record.last_started_at == POOL_NOW_SEC && s.record.last_finished_at == POOL_NOW_SEC);
		CHECK(!s.is_running && s.next_run_at >= POOL_NOW_SEC + INTERVAL_SEC * 9 / 10);
	}
	CHECK(pool_count(&f.pool, SANDBOX_AVAILABLE) == 4);
	start_anew(&f);
	CHECK(ask_and_wait(&f, JOB_EXPIRY) == RC_OK);
	wait_for(&f, &f.passes, JOB_LEASE_MONITOR + 1); /* counted after the answer */
	CHECK(f.passes == JOB_LEASE_MONITOR + 1);       /* nothing was due, so nothing ran but what was asked for */
	floor_close(&f);
}

TEST(names_are_found_of_scheduled_jobs_only)
{
	struct floor f;
	enum job_id  id;

	floor_open(&f);
	for (int i = 0; i < JOB_LEASE_MONITOR; i++) {
		CHECK(jobs_find(f.jobs, str_from(jobs_name((enum job_id)i)), &id));
		CHECK(id == (enum job_id)i);
	}
	CHECK(!jobs_find(f.jobs, STR("lease-monitor"), &id)); /* no leases here */
	CHECK(!jobs_find(f.jobs, STR("bulk-delete"), &id) && !jobs_find(f.jobs, STR(""), &id));
	start(&f);
	floor_close(&f);
}

/* --- asks --- */

TEST(who_asks_during_a_pass_gets_its_result)
{
	struct floor f;
	struct asker a[3] = { 0 };

	floor_open(&f);
	f.is_shut = true;
	start(&f);
	wait_for(&f, &f.at_gate, 1);
	CHECK(status_of(&f, JOB_SYNC).is_running && status_of(&f, JOB_SYNC).next_run_at == 0);
	for (size_t i = 0; i < ARRAY_LEN(a); i++)
		send(&f, JOB_SYNC, &a[i]);
	set_gate(&f, false);
	for (size_t i = 0; i < ARRAY_LEN(a); i++) {
		await(&a[i]);
		CHECK(a[i].ask.rc == RC_OK && figure(&a[i], "added") == 4);
	}
	stop(&f);
	CHECK(f.csp.lists == 1);
	floor_close(&f);
}

TEST(who_asks_on_own_terms_gets_a_pass_of_its_own)
{
	struct floor f;
	struct asker forced = { .target = { .has_own_terms = true, .is_forced = true } }, plain = { 0 };

	floor_open(&f);
	pool_fill(&f.pool, 0, 12);
	f.is_shut = true;
	start(&f);
	wait_for(&f, &f.at_gate, 1);
	send(&f, JOB_SYNC, &forced);
	send(&f, JOB_SYNC, &plain);
	set_gate(&f, false);
	await(&plain);
	await(&forced);
	CHECK(plain.ask.rc == RC_UNAVAILABLE && strstr(plain.ask.e.msg, "8 of 12"));
	CHECK(forced.ask.rc == RC_OK && figure(&forced, "marked_stale") == 8);
	stop(&f);
	CHECK(f.csp.lists == 2);
	floor_close(&f);
}

TEST(nobody_joins_a_pass_on_anothers_terms)
{
	struct floor f;
	struct asker forced = { .target = { .has_own_terms = true, .is_forced = true } }, plain = { 0 };

	floor_open(&f);
	pause_all(&f);
	start(&f);
	set_gate(&f, true);
	send(&f, JOB_SYNC, &forced);
	wait_for(&f, &f.at_gate, 1);
	send(&f, JOB_SYNC, &plain);
	set_gate(&f, false);
	await(&forced);
	await(&plain);
	stop(&f);
	CHECK(f.csp.lists == 2);
	floor_close(&f);
}

TEST(terms_reach_the_pass)
{
	struct floor f;
	struct asker stale = { .target = { .has_own_terms = true, .stale_hours = 7 } }, by_default = { 0 };
	struct asker bulk = { .target = { .has_own_terms = true, .status = SANDBOX_PENDING_DELETION } };

	floor_open(&f);
	make_pending(&f, 3);
	pool_fill(&f.pool, 3, 5);
	pause_all(&f);
	start(&f);
	send(&f, JOB_STALE_REMOVAL, &stale);
	await(&stale);
	send(&f, JOB_STALE_REMOVAL, &by_default);
	await(&by_default);
	CHECK(figure(&stale, "grace_period_hours") == 7 && figure(&by_default, "grace_period_hours") == 24);
	send(&f, JOB_BULK_DELETE, &bulk);
	await(&bulk);
	CHECK(bulk.ask.rc == RC_OK && figure(&bulk, "deleted") == 3 && pool_count(&f.pool, SANDBOX_AVAILABLE) == 2);
	CHECK(ask_and_wait(&f, JOB_RETRY_FAILED) == RC_OK);
	floor_close(&f);
}

/* --- pause --- */

TEST(a_paused_job_stays_paused_when_everything_is_opened_again)
{
	struct floor      f;
	struct job_status s;

	floor_open(&f);
	pause_all(&f);
	pause_job(&f, JOB_EXPIRY, false);
	start(&f);
	start_anew(&f);
	wait_for(&f, &f.passes, 1);
	CHECK(ask_and_wait(&f, JOB_STALE_REMOVAL) == RC_OK);
	s = status_of(&f, JOB_SYNC);
	CHECK(s.record.is_paused && s.record.last_outcome == JOB_NEVER_RAN && s.next_run_at == 0 && !s.is_running);
	CHECK(!status_of(&f, JOB_EXPIRY).record.is_paused);
	CHECK(status_of(&f, JOB_EXPIRY).record.last_outcome == JOB_SUCCESS);
	stop(&f);
	CHECK(f.csp.lists == 0 && f.passes == 2);
	floor_close(&f);
}

TEST(a_paused_job_runs_when_asked_and_stays_paused)
{
	struct floor f;

	floor_open(&f);
	pause_all(&f);
	start(&f);
	CHECK(ask_and_wait(&f, JOB_SYNC) == RC_OK);
	CHECK(status_of(&f, JOB_SYNC).record.is_paused && status_of(&f, JOB_SYNC).next_run_at == 0);
	start_anew(&f);
	CHECK(status_of(&f, JOB_SYNC).record.is_paused);
	CHECK(status_of(&f, JOB_SYNC).record.last_outcome == JOB_SUCCESS);
	floor_close(&f);
}

TEST(a_job_that_is_resumed_runs_by_itself_again)
{
	struct floor f;

	floor_open(&f);
	pause_all(&f);
	start(&f);
	pause_job(&f, JOB_SYNC, false);
	wait_for(&f, &f.passes, 1);
	CHECK(!status_of(&f, JOB_SYNC).record.is_paused && pool_count(&f.pool, SANDBOX_AVAILABLE) == 4);
	floor_close(&f);
}

TEST(a_pause_ends_a_scheduled_pass_in_its_wait)
{
	struct floor f;

	floor_open(&f);
	make_pending(&f, 5);
	f.settings.cleanup_sandbox_delay_ms = AN_HOUR_MS;
	pause_all(&f);
	pause_job(&f, JOB_CLEANUP, false);
	start(&f);
	wait_for(&f, &f.at_gate, 1);
	pause_job(&f, JOB_CLEANUP, true);
	wait_for(&f, &f.passes, 1);
	CHECK(pool_count(&f.pool, SANDBOX_PENDING_DELETION) == 4);
	CHECK(status_of(&f, JOB_CLEANUP).record.last_outcome == JOB_SUCCESS);
	floor_close(&f);
}

TEST(a_pause_does_not_end_a_pass_that_was_asked_for)
{
	struct floor f;
	struct asker a = { 0 };

	floor_open(&f);
	make_pending(&f, 5);
	f.settings.cleanup_sandbox_delay_ms = 1;
	pause_all(&f);
	f.is_shut = true;
	start(&f);
	send(&f, JOB_CLEANUP, &a);
	wait_for(&f, &f.at_gate, 1);
	pause_job(&f, JOB_CLEANUP, true);
	set_gate(&f, false);
	await(&a);
	CHECK(a.ask.rc == RC_OK && figure(&a, "deleted") == 5 && figure(&a, "postponed") == 0);
	floor_close(&f);
}

/* --- the end --- */

static void *close_jobs(void *arg)
{
	stop(arg);
	return NULL;
}

TEST(who_waits_at_the_end_is_told_and_the_pass_is_run_at_the_next_start)
{
	struct floor f;
	struct asker waiting = { .target = { .has_own_terms = true, .is_forced = true } };
	pthread_t    closer;

	floor_open(&f);
	make_pending(&f, 2);
	f.settings.cleanup_sandbox_delay_ms = AN_HOUR_MS;
	pause_all(&f);
	pause_job(&f, JOB_CLEANUP, false);
	start(&f);
	wait_for(&f, &f.at_gate, 1); /* the first deletion; now it waits for an hour */
	set_gate(&f, true);
	send(&f, JOB_SYNC, &waiting);
	wait_for(&f, &f.at_gate, 2);
	CHECK(pthread_create(&closer, NULL, close_jobs, &f) == 0);
	set_gate(&f, false); /* the listing is over; the sync finds out at its next step, or is over before */
	CHECK(pthread_join(closer, NULL) == 0);
	CHECK(waiting.times_done == 1);
	CHECK(pool_count(&f.pool, SANDBOX_PENDING_DELETION) == 1);
	f.settings.cleanup_sandbox_delay_ms = 0;
	f.pool.clock.test_ms += 1000;
	pool_reopen(&f.pool);
	make_jobs(&f);
	start(&f);
	wait_for(&f, &f.at_gate, 3); /* by itself: its delivery was not taken away */
	CHECK(ask_and_wait(&f, JOB_CLEANUP) == RC_OK);
	CHECK(pool_count(&f.pool, SANDBOX_PENDING_DELETION) == 0);
	floor_close(&f);
}

/* The end of a pass at another node. */
static void tell_end(struct floor *f, const char *type, const struct asker *a)
{
	struct event end = { .type = str_from(type),
		             .subject = STR("job/sync"),
		             .detail = str_format(&f->pool.arena,
		                                  "{\"job\":\"sync\",\"event\":\"%s\",\"durationMs\":7,"
		                                  "\"result\":{\"synced\":3},\"error\":\"no listing over there\"}",
		                                  a->target.event_id) };

	CHECK(store_run(f->pool.store, emit, &end, &f->pool.arena, NULL) == RC_OK);
}

TEST(who_asked_is_told_also_when_another_node_ran_the_pass)
{
	struct floor f;
	struct asker good = { 0 }, bad = { .target = { .has_own_terms = true } };

	floor_open(&f);
	CHECK(jobs_start(f.jobs, NULL) == RC_OK); /* and nobody here who would run it */
	send(&f, JOB_SYNC, &good);
	send(&f, JOB_SYNC, &bad);
	tell_end(&f, EVENT_JOB_FINISHED, &good);
	tell_end(&f, EVENT_JOB_FAILED, &bad); /* before anybody has looked for the first */
	await(&good);
	await(&bad);
	CHECK(good.ask.rc == RC_OK && figure(&good, "synced") == 3 && good.ask.duration_ms == 7);
	CHECK(bad.ask.rc == RC_UNAVAILABLE && strcmp(bad.ask.e.msg, "no listing over there") == 0);
	floor_close(&f);
}

TEST(who_no_longer_waits_is_not_told)
{
	struct floor f;
	struct asker a = { 0 };

	floor_open(&f);
	pause_all(&f);
	f.is_shut = true;
	start(&f);
	send(&f, JOB_SYNC, &a);
	wait_for(&f, &f.at_gate, 1);
	CHECK(jobs_forget(f.jobs, &a.ask));
	CHECK(!jobs_forget(f.jobs, &a.ask));
	set_gate(&f, false);
	wait_for(&f, &f.passes, 1);
	stop(&f);
	CHECK(a.times_done == 0);
	floor_close(&f);
}

/* --- the record --- */

TEST(how_the_last_pass_went_is_kept)
{
	struct floor      f;
	struct job_status s;

	floor_open(&f);
	pause_all(&f);
	start(&f);
	f.csp.list_rc = RC_TIMEOUT;
	CHECK(ask_and_wait(&f, JOB_SYNC) == RC_TIMEOUT);
	for (int round = 0; round < 2; round++) {
		s = status_of(&f, JOB_SYNC);
		CHECK(s.record.last_outcome == JOB_ERROR && strstr(s.record.last_error.p, "no listing today"));
		CHECK(str_eq(s.record.last_result,
		             STR("{\"synced\":0,\"added\":0,\"restored\":0,\"marked_stale\":0}")));
		start_anew(&f);
	}
	f.csp.list_rc = RC_OK;
	CHECK(ask_and_wait(&f, JOB_SYNC) == RC_OK);
	s = status_of(&f, JOB_SYNC);
	CHECK(s.record.last_outcome == JOB_SUCCESS && s.record.last_error.n == 0);
	CHECK(str_eq(s.record.last_result, STR("{\"synced\":4,\"added\":4,\"restored\":0,\"marked_stale\":0}")));
	floor_close(&f);
}

TEST(a_pass_feeds_its_metrics)
{
	struct floor f;
	struct buf   text;

	floor_open(&f);
	pause_all(&f);
	start(&f);
	CHECK(ask_and_wait(&f, JOB_SYNC) == RC_OK);
	f.csp.list_rc = RC_TIMEOUT;
	CHECK(ask_and_wait(&f, JOB_SYNC) == RC_TIMEOUT);
	buf_init(&text, 1 << 20);
	metrics_write(f.metrics, &text);
	CHECK(strstr(text.p, "outcome=\"success\"} 1") && strstr(text.p, "outcome=\"error\"} 1"));
	buf_fini(&text);
	floor_close(&f);
}
