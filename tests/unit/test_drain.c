/* SPDX-License-Identifier: Apache-2.0 */
/* test_drain.c - the kernel's work on one thread, and calls that ask to wait. */
#include "test.h"

#include <string.h>

#include "kernel/drain.h"
#include "kernel/event.h"
#include "kernel/saga.h"
#include "kernel/timer.h"
#include "kernel_rig.h"
#include "store/session.h"

enum { MANY = 100, STEPS = 3, LONG_MS = 60000 };

struct rig {
	struct kernel_rig       base;
	struct queue            queues[2];
	struct route            routes[2];
	struct saga_kind        kind;
	const struct saga_kind *kinds[1];
	struct drain            drain;
	int                     handled, called, acted;
	int64_t                 wait_ms;     /* what the call asks for; it fails then */
	bool                    fails;       /* the call does */
	int                     ends_after;  /* the time is up after so many acts of the saga; 0: never */
	bool                    was_told_no; /* go_on() said so */
};

static enum rc handle(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	struct rig *r = arg;

	(void)s, (void)d, (void)e;
	r->handled++;
	return RC_OK;
}

static enum rc call(struct call *c, struct err *e)
{
	struct rig *r = c->arg;

	r->called++;
	r->was_told_no = !c->go_on(c);
	c->wait_ms = r->wait_ms;
	return r->wait_ms || r->fails ? err_set(e, RC_UNAVAILABLE, "closed for now") : RC_OK;
}

static enum rc act(struct saga_call *c, struct err *e)
{
	struct rig *r = c->world;

	(void)e;
	if (++r->acted == r->ends_after)
		r->drain.until.ms = 0;
	return RC_OK;
}

static const struct saga_step steps[STEPS] = { { .name = "one", .act = act },
	                                       { .name = "two", .act = act },
	                                       { .name = "three", .act = act } };

static void open_rig(struct rig *r)
{
	r->queues[0] = (struct queue){ .name = "handler", .handle = handle, .arg = r };
	r->queues[1] = (struct queue){ .name = "caller", .call = call, .arg = r, .tries = 2 };
	r->routes[0] = (struct route){ "Handled", "handler" };
	r->routes[1] = (struct route){ "Called", "caller" };
	r->kind = (struct saga_kind){ .name = "walk", .steps = steps, .step_count = STEPS, .world = r };
	r->kinds[0] = &r->kind;
	r->base.options.queues = r->queues;
	r->base.options.queue_count = 2;
	r->base.options.routes = r->routes;
	r->base.options.route_count = 2;
	r->base.options.sagas = r->kinds;
	r->base.options.saga_count = 1;
	rig_open(&r->base);
	r->drain = (struct drain){ .kernel = r->base.kernel, .until = { mono_now().ms + LONG_MS } };
}

static void run_drain(struct rig *r)
{
	struct err e = { 0 };

	CHECK(drain(&r->drain, &e) == RC_OK);
}

static char handled_type[] = "Handled", called_type[] = "Called";

static enum rc emit_some(struct session *s, void *arg, struct err *e)
{
	const char *type = arg;
	enum rc     rc = RC_OK;

	for (int i = 0; !rc && i < MANY / 4; i++) {
		struct event event = { .type = str_from(type),
			               .subject = str_format(session_arena(s), "thing/%d", i % 5),
			               .detail = STR("{}") };

		rc = session_emit(s, &event, e);
	}
	return rc;
}

static enum rc emit_one(struct session *s, void *arg, struct err *e)
{
	struct event event = { .type = str_from(arg), .subject = STR("thing/1"), .detail = STR("{}") };

	return session_emit(s, &event, e);
}

static enum rc arm_one(struct session *s, void *arg, struct err *e)
{
	struct timer timer = { .name = STR("alarm-clock"),
		               .due_ms = session_now(s).ms,
		               .type = STR("Handled"),
		               .subject = STR("thing/9") };

	(void)arg;
	return session_arm(s, &timer, e);
}

static enum rc start_walk(struct session *s, void *arg, struct err *e)
{
	(void)arg;
	return session_start(s, "walk", STR("walk/1"), STR("thing/1"), STR("{}"), STR("test"), e);
}

static enum rc read_walk(struct session *s, void *arg, struct err *e)
{
	return session_get(s, &saga_type, STR("walk/1"), arg, e);
}

static enum rc read_lane(struct session *s, void *arg, struct err *e)
{
	return session_get(s, &lane_type, STR("caller#thing/1"), arg, e);
}

/* --- */

TEST(all_that_is_due_is_done_handlers_calls_timers_and_sagas)
{
	struct rig  r = { 0 };
	struct saga saga;

	open_rig(&r);
	rig_run(&r.base, emit_some, handled_type);
	rig_run(&r.base, emit_some, called_type);
	rig_run(&r.base, arm_one, NULL);
	rig_run(&r.base, start_walk, NULL);
	run_drain(&r);
	CHECK(!r.drain.has_left);
	CHECK(r.handled == MANY / 4 + 1);
	CHECK(r.called == MANY / 4);
	CHECK(r.acted == STEPS);
	rig_run(&r.base, read_walk, &saga);
	CHECK(saga.state == SAGA_DONE);
	rig_close(&r.base);
}

TEST(nothing_is_begun_when_the_time_is_up)
{
	struct rig r = { 0 };

	open_rig(&r);
	rig_run(&r.base, emit_one, handled_type);
	r.drain.until.ms = 0;
	run_drain(&r);
	CHECK(r.drain.has_left && r.drain.done == 0 && r.handled == 0);
	r.drain.until.ms = mono_now().ms + LONG_MS;
	run_drain(&r);
	CHECK(!r.drain.has_left && r.handled == 1);
	rig_close(&r.base);
}

TEST(a_saga_that_is_not_done_in_time_is_given_back_and_goes_on_later)
{
	struct rig  r = { .ends_after = 2 };
	struct saga saga;

	open_rig(&r);
	rig_run(&r.base, start_walk, NULL);
	run_drain(&r);
	CHECK(r.acted == 2);
	rig_run(&r.base, read_walk, &saga);
	CHECK(saga.state == SAGA_RUNNING && saga.step == 2);
	CHECK(saga.owner.n == 0 && saga.due_ms == clock_now(&r.base.clock).ms); /* nobody has to wait for a lease */
	r.drain.until.ms = mono_now().ms + LONG_MS;
	run_drain(&r);
	CHECK(r.acted == STEPS);
	rig_run(&r.base, read_walk, &saga);
	CHECK(saga.state == SAGA_DONE);
	rig_close(&r.base);
}

TEST(a_failed_try_waits_for_the_next_drain)
{
	struct rig r = { .fails = true };

	open_rig(&r);
	rig_run(&r.base, emit_one, called_type);
	run_drain(&r);
	CHECK(r.called == 1 && !r.was_told_no);
	run_drain(&r);
	CHECK(r.called == 1); /* its back-off is not over */
	r.fails = false;
	r.base.clock.test_ms += LONG_MS;
	run_drain(&r);
	CHECK(r.called == 2);
	rig_close(&r.base);
}

TEST(a_call_that_asks_to_wait_is_not_counted_as_a_try)
{
	struct rig  r = { .wait_ms = CALL_WAIT_MAX_MS };
	struct lane lane;

	open_rig(&r);
	rig_run(&r.base, emit_one, called_type);
	for (int i = 1; i <= 5; i++) { /* more often than it has tries */
		run_drain(&r);
		CHECK(r.called == i);
		rig_run(&r.base, read_lane, &lane);
		CHECK(lane.tries == 0 && lane.owner.n == 0 && str_eq(lane.last_error, STR("closed for now")));
		CHECK(lane.due_ms == clock_now(&r.base.clock).ms + CALL_WAIT_MAX_MS);
		rig_run(&r.base, queue_rearm, r.base.kernel); /* such a wait is no clock's mistake */
		run_drain(&r);
		CHECK(r.called == i);
		r.base.clock.test_ms += CALL_WAIT_MAX_MS;
	}
	r.wait_ms = 0;
	run_drain(&r);
	CHECK(r.called == 6);
	run_drain(&r);
	CHECK(r.called == 6); /* delivered */
	rig_close(&r.base);
}
