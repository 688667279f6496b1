/* SPDX-License-Identifier: Apache-2.0 */
/* test_schedule.c - when jobs run, on a clock that the test moves: timers, jitter, catching up, pauses, failures,
 * dead and slow nodes. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "kernel_rig.h"
#include "pool.h"
#include "service/jobs/jobs.h"
#include "store/session.h"
#include "store/walk.h"

enum { INTERVAL_SEC = 600, INTERVAL_MS = INTERVAL_SEC * 1000, LEASE_SEC = 30, DAY_MS = 86400000 };

/* Only the sync is scheduled, so that each listing is a pass of it. */
struct desk {
	struct kernel_rig      base;
	struct fake_csp        csp;
	struct broker_settings settings;
	struct queue           queue;
	struct jobs           *jobs;
	int64_t                interval_sec;
};

static const struct route routes[] = { { EVENT_JOB_DUE, JOBS_QUEUE }, { EVENT_JOB_REQUESTED, JOBS_QUEUE } };

/* As a program that starts: its memory is new, the store is not. */
static void start(struct desk *d)
{
	struct jobs_options o = { .pass.store = d->base.store,
		                  .pass.csp = &d->csp.csp,
		                  .pass.settings = &d->settings,
		                  .pass.clock = &d->base.clock,
		                  .interval_sec = { [JOB_SYNC] = d->interval_sec },
		                  .lease_sec = LEASE_SEC };

	jobs_free(d->jobs);
	d->jobs = jobs_new(&o);
	d->queue = jobs_queue(d->jobs);
	rig_run(&d->base, jobs_arm, d->jobs);
}

static void desk_open(struct desk *d)
{
	*d = (struct desk){ .interval_sec = INTERVAL_SEC };
	log_setup(LOG_ERROR, LOG_TEXT);
	d->settings = (struct broker_settings){ .lab_hours = 4, .sync_max_stale_percent = 25 };
	d->queue.name = JOBS_QUEUE;
	d->base.options = (struct kernel_options){
		.queues = &d->queue, .queue_count = 1, .routes = routes, .route_count = ARRAY_LEN(routes)
	};
	rig_open(&d->base);
	fake_csp_init(&d->csp);
	fake_csp_list(&d->csp, &d->base.arena, 0, 4);
	start(d);
}

static void desk_close(struct desk *d)
{
	jobs_free(d->jobs);
	rig_close(&d->base);
}

static struct job_status status_of(struct desk *d)
{
	struct job_list l = { .jobs = d->jobs };

	rig_run(&d->base, job_list, &l);
	CHECK(l.count == 1);
	return l.items[0];
}

static void set_paused(struct desk *d, bool is_paused)
{
	struct job_pause p = { .jobs = d->jobs, .id = JOB_SYNC, .is_paused = is_paused };

	rig_run(&d->base, job_pause, &p);
}

static struct job_request request(struct desk *d, bool is_forced)
{
	struct job_request r = { .id = JOB_SYNC, .has_own_terms = is_forced, .is_forced = is_forced };

	rig_run(&d->base, job_request, &r);
	return r;
}

static int count_events(struct desk *d, const char *type)
{
	struct event_list l = { .type = str_from(type), .limit = EVENT_PAGE_MAX };

	rig_run(&d->base, event_list, &l);
	return (int)l.count;
}

/* When the timer is set to, in ms from now; -1: it is not armed. */
static int64_t armed_in(struct desk *d)
{
	struct timer_call c = { .name = STR("job/sync") };
	enum rc           rc = rig_try(&d->base, timer_get, &c, NULL);

	CHECK(!rc || rc == RC_NOT_FOUND);
	return rc ? -1 : c.timer.due_ms - d->base.clock.test_ms;
}

TEST(a_job_runs_at_once_and_then_every_interval_give_or_take_a_tenth)
{
	struct desk d;
	int64_t     shortest = INT64_MAX, longest = 0;

	desk_open(&d);
	CHECK(armed_in(&d) == 0);
	for (int i = 1; i <= 50; i++) {
		int64_t in;

		rig_turn(&d.base);
		CHECK(d.csp.lists == i);
		in = armed_in(&d);
		shortest = in < shortest ? in : shortest;
		longest = in > longest ? in : longest;
		d.base.clock.test_ms += in - 1;
		CHECK(rig_turn(&d.base) == 0);
		d.base.clock.test_ms += 1;
	}
	CHECK(shortest >= INTERVAL_MS * 9 / 10 && longest <= INTERVAL_MS * 11 / 10);
	CHECK(longest - shortest > INTERVAL_MS / 10); /* not all the same */
	desk_close(&d);
}

TEST(what_was_missed_is_caught_up_once)
{
	struct desk d;

	desk_open(&d);
	rig_turn(&d.base);
	d.base.clock.test_ms += 100ll * DAY_MS;
	start(&d);
	rig_turn(&d.base);
	CHECK(d.csp.lists == 2);
	CHECK(armed_in(&d) >= INTERVAL_MS * 9 / 10);
	desk_close(&d);
}

TEST(a_start_arms_what_is_missing_and_leaves_what_is_armed)
{
	struct desk d;
	int64_t     in;

	desk_open(&d);
	rig_turn(&d.base);
	in = armed_in(&d);
	start(&d);
	CHECK(armed_in(&d) == in);
	rig_run(&d.base, timer_cancel, &(struct timer_call){ .name = STR("job/sync"), .actor = STR("admin") });
	CHECK(armed_in(&d) == -1);
	start(&d);
	CHECK(armed_in(&d) == INTERVAL_MS); /* after its last pass */
	desk_close(&d);
}

TEST(a_shorter_interval_holds_from_the_next_start_on)
{
	struct desk d;

	desk_open(&d);
	rig_turn(&d.base);
	d.interval_sec = 60;
	start(&d);
	CHECK(armed_in(&d) >= 54000 && armed_in(&d) <= 66000);
	CHECK(status_of(&d).record.interval_sec == 60);
	d.interval_sec = 0; /* no longer a job here */
	start(&d);
	CHECK(armed_in(&d) == -1);
	desk_close(&d);
}

/* --- failures --- */

TEST(after_a_failure_it_runs_sooner_twice_as_late_each_time)
{
	static const int64_t wanted_sec[] = { 10, 20, 40, 80, 160, 320, 600, 600 };
	struct desk          d;

	desk_open(&d);
	d.csp.list_rc = RC_TIMEOUT;
	for (size_t i = 0; i < ARRAY_LEN(wanted_sec); i++) {
		int64_t in;

		rig_turn(&d.base);
		CHECK(d.csp.lists == (int)i + 1 && status_of(&d).record.failures == (int64_t)i + 1);
		in = armed_in(&d);
		CHECK(in >= wanted_sec[i] * 900 && in <= wanted_sec[i] * 1100);
		d.base.clock.test_ms += in;
	}
	CHECK(status_of(&d).record.last_outcome == JOB_ERROR);
	CHECK(count_events(&d, "DeadLettered") == 0); /* a pass that failed is a delivery that succeeded */
	d.csp.list_rc = RC_OK;
	rig_turn(&d.base);
	CHECK(status_of(&d).record.failures == 0 && armed_in(&d) >= INTERVAL_MS * 9 / 10);
	CHECK(count_events(&d, EVENT_JOB_FAILED) == (int)ARRAY_LEN(wanted_sec));
	CHECK(count_events(&d, EVENT_JOB_FINISHED) == 1);
	desk_close(&d);
}

/* --- pauses --- */

TEST(a_job_that_is_not_scheduled_any_more_neither_fails_nor_is_silent)
{
	struct desk       d;
	struct job_record record;
	bool              is_there;

	desk_open(&d);
	d.csp.list_rc = RC_TIMEOUT;
	for (int i = 0; i < 3; i++) {
		rig_turn(&d.base);
		d.base.clock.test_ms += INTERVAL_MS;
	}
	CHECK(status_of(&d).record.failures == 3);
	d.interval_sec = 0;
	start(&d);
	CHECK(store_find(d.base.store, &job_type, STR("sync"), &d.base.arena, &record, &is_there, NULL) == RC_OK);
	CHECK(is_there && record.interval_sec == 0 && record.failures == 0 && armed_in(&d) == -1);
	desk_close(&d);
}

TEST(a_paused_job_does_not_run_until_it_is_resumed)
{
	struct desk d;

	desk_open(&d);
	rig_turn(&d.base);
	set_paused(&d, true);
	set_paused(&d, true);
	CHECK(armed_in(&d) == -1 && status_of(&d).next_run_at == 0);
	CHECK(count_events(&d, EVENT_JOB_PAUSED) == 1);
	start(&d);
	rig_pass(&d.base, DAY_MS);
	CHECK(d.csp.lists == 1);
	set_paused(&d, false);
	set_paused(&d, false);
	CHECK(armed_in(&d) == 0); /* long overdue */
	CHECK(count_events(&d, EVENT_JOB_RESUMED) == 1);
	rig_turn(&d.base);
	CHECK(d.csp.lists == 2);
	set_paused(&d, true);
	set_paused(&d, false);
	CHECK(armed_in(&d) == INTERVAL_MS); /* not overdue: as before */
	desk_close(&d);
}

TEST(what_came_due_just_before_a_pause_is_passed_over)
{
	struct desk      d;
	struct arena     a = { 0 };
	struct work_list list;
	struct work      timer = { 0 };

	desk_open(&d);
	CHECK(work_find(d.base.kernel, 10, (struct work_skips){ 0 }, &a, &list, NULL) == RC_OK && list.count == 1);
	work_copy(&timer, &list.items[0]);
	rig_run(&d.base, work_settle, &timer); /* fires: JobDue is in the lane */
	set_paused(&d, true);
	rig_turn(&d.base);
	CHECK(d.csp.lists == 0 && armed_in(&d) == -1);
	CHECK(!status_of(&d).is_running && status_of(&d).record.last_outcome == JOB_NEVER_RAN);
	set_paused(&d, false);
	rig_turn(&d.base);
	CHECK(d.csp.lists == 1);
	work_fini(&timer);
	arena_fini(&a);
	desk_close(&d);
}

TEST(a_paused_job_runs_when_asked_and_arms_nothing)
{
	struct desk d;

	desk_open(&d);
	set_paused(&d, true);
	(void)request(&d, false);
	CHECK(status_of(&d).is_running); /* due, and nobody has said no */
	rig_turn(&d.base);
	CHECK(d.csp.lists == 1 && armed_in(&d) == -1);
	CHECK(status_of(&d).record.is_paused && status_of(&d).record.last_outcome == JOB_SUCCESS);
	desk_close(&d);
}

/* --- requests --- */

TEST(requests_without_terms_share_a_pass_and_others_wait_in_line)
{
	struct desk        d;
	struct job_request first, same, forced, after;

	desk_open(&d);
	set_paused(&d, true);
	first = request(&d, false);
	same = request(&d, false);
	CHECK(!first.is_joined && same.is_joined && strcmp(first.event_id, same.event_id) == 0);
	forced = request(&d, true);
	after = request(&d, false);
	CHECK(!forced.is_joined && after.is_joined);
	rig_turn(&d.base);
	CHECK(d.csp.lists == 2);
	CHECK(str_eq(status_of(&d).record.last_event_id, str_from(forced.event_id)));
	after = request(&d, false);
	CHECK(!after.is_joined);
	desk_close(&d);
}

TEST(a_request_puts_the_next_pass_off)
{
	struct desk d;

	desk_open(&d);
	rig_turn(&d.base);
	d.base.clock.test_ms += INTERVAL_MS / 2;
	(void)request(&d, false);
	rig_turn(&d.base);
	CHECK(d.csp.lists == 2 && armed_in(&d) >= INTERVAL_MS * 9 / 10);
	desk_close(&d);
}

TEST(a_line_that_is_too_long_is_refused)
{
	struct desk        d;
	struct job_request one_more = { .id = JOB_SYNC, .has_own_terms = true, .is_forced = true };

	desk_open(&d);
	set_paused(&d, true);
	for (int i = 0; i < 101; i++)
		(void)request(&d, true);
	CHECK(rig_try(&d.base, job_request, &one_more, NULL) == RC_UNAVAILABLE);
	desk_close(&d);
}

/* --- nodes --- */

/* The delivery that is due, claimed by a node that is then silent. */
static void claim_due(struct desk *d, struct work *ret)
{
	struct arena     a = { 0 };
	struct work_list list;

	CHECK(work_find(d->base.kernel, 10, (struct work_skips){ 0 }, &a, &list, NULL) == RC_OK && list.count == 1);
	CHECK(list.items[0].kind == WORK_LANE);
	*ret = (struct work){ 0 };
	work_copy(ret, &list.items[0]);
	rig_run(&d->base, work_claim, ret);
	CHECK(ret->is_claimed);
	arena_fini(&a);
}

TEST(when_a_node_dies_in_a_pass_it_is_run_again_after_the_lease)
{
	struct desk d;
	struct work dead;

	desk_open(&d);
	set_paused(&d, true);
	(void)request(&d, false);
	claim_due(&d, &dead);
	CHECK(status_of(&d).is_running);
	d.base.clock.test_ms += LEASE_SEC * 1000 - 1;
	CHECK(rig_turn(&d.base) == 0 && d.csp.lists == 0);
	d.base.clock.test_ms += 1;
	rig_turn(&d.base);
	CHECK(d.csp.lists == 1 && !status_of(&d).is_running);
	work_fini(&dead);
	desk_close(&d);
}

TEST(a_job_is_never_given_up)
{
	struct desk d;
	struct work w;

	desk_open(&d);
	set_paused(&d, true);
	(void)request(&d, false);
	for (int i = 0; i < 1100; i++) { /* each time the process ends */
		claim_due(&d, &w);
		work_fini(&w);
		d.base.clock.test_ms += LEASE_SEC * 1000;
	}
	rig_turn(&d.base);
	CHECK(d.csp.lists == 1 && count_events(&d, "DeadLettered") == 0);
	desk_close(&d);
}

TEST(a_node_that_was_only_slow_keeps_nothing_of_its_pass)
{
	struct desk       d;
	struct work       slow;
	struct job_record record;

	desk_open(&d);
	set_paused(&d, true);
	(void)request(&d, false);
	claim_due(&d, &slow);
	d.base.clock.test_ms += LEASE_SEC * 1000;
	rig_turn(&d.base);
	record = status_of(&d).record;
	d.base.clock.test_ms += 5000;
	d.csp.list_rc = RC_TIMEOUT;
	work_perform(&slow);
	rig_run(&d.base, work_settle, &slow);
	CHECK(slow.is_lost);
	CHECK(status_of(&d).record.last_outcome == JOB_SUCCESS);
	CHECK(status_of(&d).record.version == record.version);
	work_fini(&slow);
	desk_close(&d);
}

TEST(a_pass_longer_than_its_lease_keeps_it_by_going_on)
{
	struct desk d;
	struct work w;

	desk_open(&d);
	set_paused(&d, true);
	(void)request(&d, false);
	claim_due(&d, &w);
	for (int i = 0; i < 10; i++) {
		d.base.clock.test_ms += LEASE_SEC * 1000 * 2 / 3;
		CHECK(w.call.go_on(&w.call));
		CHECK(rig_turn(&d.base) == 0);
	}
	work_perform(&w);
	rig_run(&d.base, work_settle, &w);
	CHECK(!w.is_lost && status_of(&d).record.last_outcome == JOB_SUCCESS);
	CHECK(d.csp.lists == 1);
	work_fini(&w);
	desk_close(&d);
}

static bool may_go_on(void *arg)
{
	int *left = arg;

	return --*left >= 0;
}

TEST(a_pass_that_is_stopped_was_not_run)
{
	struct desk d;
	struct work w;
	int         stops_after;

	desk_open(&d);
	set_paused(&d, true);
	(void)request(&d, false);
	claim_due(&d, &w);
	stops_after = 3;
	w.may_go_on = may_go_on;
	w.may_go_on_arg = &stops_after;
	work_perform(&w);
	CHECK(w.has_failed && d.csp.lists == 1);
	rig_run(&d.base, work_settle, &w);
	CHECK(status_of(&d).record.last_outcome == JOB_NEVER_RAN && status_of(&d).record.failures == 0);
	rig_pass(&d.base, 1000);
	CHECK(status_of(&d).record.last_outcome == JOB_SUCCESS && d.csp.lists == 2);
	work_fini(&w);
	desk_close(&d);
}

TEST(a_job_that_this_program_does_not_know_is_passed_over)
{
	struct desk        d;
	struct job_request r = { .id = JOB_EXPIRY };

	desk_open(&d);
	rig_run(&d.base, job_request, &r); /* it has no interval here */
	rig_turn(&d.base);
	CHECK(count_events(&d, "DeadLettered") == 0 && rig_turn(&d.base) == 0);
	desk_close(&d);
}
