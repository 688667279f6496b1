/* SPDX-License-Identifier: Apache-2.0 */
/* How often AWS is asked: the moments that calls get, with a clock that the test moves. */
#include "test.h"

#include "kernel_rig.h"
#include "providers/aws/pace.h"

enum { NEVER = 1 << 30 };

struct fixture {
	struct kernel_rig rig;
	struct aws_pacer  pacer;
	int64_t           waited_ms; /* by the last one */
};

static void note_wait(void *arg, int64_t ms)
{
	((struct fixture *)arg)->waited_ms = ms;
}

static void set_up(struct fixture *f)
{
	*f = (struct fixture){ .waited_ms = 0 };
	rig_open(&f->rig);
	f->pacer = (struct aws_pacer){ .store = f->rig.store, .wait = note_wait, .wait_arg = f };
}

/* How long the next call has to wait; the clock stays where it is. */
static int64_t take(struct fixture *f, enum aws_pace pace)
{
	struct err e = { 0 };

	f->waited_ms = 0;
	CHECK(aws_pacer_take(&f->pacer, pace, NEVER, &e) == RC_OK);
	return f->waited_ms;
}

TEST(a_burst_goes_at_once_and_then_each_in_its_time)
{
	struct fixture f;

	set_up(&f);
	CHECK(take(&f, AWS_PACE_ORG_WRITE) == 0 && take(&f, AWS_PACE_ORG_WRITE) == 0);
	for (int64_t i = 1; i <= 5; i++)
		CHECK(take(&f, AWS_PACE_ORG_WRITE) == i * 1000);
	for (int i = 0; i < 8; i++)
		CHECK(take(&f, AWS_PACE_ORG_READ) == 0); /* of its own */
	CHECK(take(&f, AWS_PACE_ORG_READ) == 250);
	CHECK(take(&f, AWS_PACE_COSTS) == 0 && take(&f, AWS_PACE_COSTS) == 1000);
	CHECK(take(&f, AWS_PACE_NONE) == 0 && take(&f, AWS_PACE_NONE) == 0);
	rig_close(&f.rig);
}

TEST(organizations_may_be_asked_more_often_and_nothing_else)
{
	struct fixture f;

	set_up(&f);
	f.pacer.org_times = 10;
	for (int i = 0; i < 20; i++)
		CHECK(take(&f, AWS_PACE_ORG_WRITE) == 0);
	CHECK(take(&f, AWS_PACE_ORG_WRITE) == 100 && take(&f, AWS_PACE_ORG_WRITE) == 200);
	for (int i = 0; i < 80; i++)
		CHECK(take(&f, AWS_PACE_ORG_READ) == 0);
	CHECK(take(&f, AWS_PACE_ORG_READ) == 25);
	CHECK(take(&f, AWS_PACE_COSTS) == 0 && take(&f, AWS_PACE_COSTS) == 1000);
	rig_close(&f.rig);
}

TEST(in_no_span_of_time_are_there_more_than_burst_and_rate)
{
	struct fixture f;
	int64_t        begun[100];

	set_up(&f);
	for (size_t i = 0; i < ARRAY_LEN(begun); i++) {
		begun[i] = f.rig.clock.test_ms + take(&f, AWS_PACE_ORG_READ);
		if (i % 10 == 9) /* pauses let the burst come back, but never more than that */
			f.rig.clock.test_ms += (int64_t)(i * 77) % 3000;
	}
	for (size_t from = 0; from < ARRAY_LEN(begun); from++)
		for (size_t to = from; to < ARRAY_LEN(begun); to++)
			CHECK((int64_t)(to - from + 1) <= 8 + (begun[to] - begun[from]) / 250);
	rig_close(&f.rig);
}

TEST(a_moment_beyond_the_callers_time_is_not_taken)
{
	struct fixture f;
	struct err     e = { 0 };

	set_up(&f);
	CHECK(take(&f, AWS_PACE_COSTS) == 0);
	for (int i = 0; i < 3; i++) {
		err_clear(&e);
		CHECK(aws_pacer_take(&f.pacer, AWS_PACE_COSTS, 1000, &e) == RC_LIMITED && strstr(e.msg, "costs"));
	}
	CHECK(take(&f, AWS_PACE_COSTS) == 1000);
	rig_close(&f.rig);
}

TEST(after_a_throttle_the_rate_is_halved_for_a_minute)
{
	struct fixture f;

	set_up(&f);
	aws_pacer_throttled(&f.pacer, AWS_PACE_COSTS);
	CHECK(take(&f, AWS_PACE_COSTS) == 0 && take(&f, AWS_PACE_COSTS) == 2000 && take(&f, AWS_PACE_COSTS) == 4000);
	f.rig.clock.test_ms += 60000;
	CHECK(take(&f, AWS_PACE_COSTS) == 0 && take(&f, AWS_PACE_COSTS) == 1000);
	rig_close(&f.rig);
}

TEST(throttles_are_counted_within_five_minutes)
{
	struct fixture f;
	size_t         count;

	set_up(&f);
	CHECK(aws_pacer_count(&f.pacer, AWS_PACE_ORG_READ, f.rig.clock.test_ms, &count, NULL) == RC_OK && count == 0);
	for (int i = 0; i < 25; i++) {
		f.rig.clock.test_ms += 1000;
		aws_pacer_throttled(&f.pacer, AWS_PACE_ORG_READ);
	}
	aws_pacer_throttled(&f.pacer, AWS_PACE_ORG_WRITE);
	CHECK(aws_pacer_count(&f.pacer, AWS_PACE_ORG_READ, f.rig.clock.test_ms, &count, NULL) == RC_OK && count == 10);
	CHECK(aws_pacer_count(&f.pacer, AWS_PACE_ORG_READ, f.rig.clock.test_ms + 295000, &count, NULL) == RC_OK);
	CHECK(count == 5);
	CHECK(aws_pacer_count(&f.pacer, AWS_PACE_ORG_READ, f.rig.clock.test_ms + AWS_THROTTLE_WINDOW_MS, &count,
	                      NULL) == RC_OK);
	CHECK(count == 0);
	rig_close(&f.rig);
}
