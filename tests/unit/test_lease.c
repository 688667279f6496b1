/* SPDX-License-Identifier: Apache-2.0 */
/* test_lease.c - which node runs a job: grants, time-outs and fencing numbers, on a clock that the test moves. */
#include "test.h"

#include "base/arena.h"
#include "base/clock.h"
#include "service/job_lease.h"
#include "store/memory.h"
#include "store/session.h"

enum { NOW_SEC = 1000000, LEASE_SEC = 30, INTERVAL_SEC = 600 };

struct desk {
	struct clock  clock;
	struct arena  arena;
	struct store *store;
};

static void desk_open(struct desk *d)
{
	d->clock = clock_test(NOW_SEC * 1000ll);
	arena_init(&d->arena);
	d->store = store_memory_open(service_types, service_type_count, &d->clock);
}

static void desk_close(struct desk *d)
{
	store_close(d->store);
	arena_fini(&d->arena);
}

static struct lease_claim take(struct desk *d, const char *node, bool was_asked, bool is_alone)
{
	struct lease_claim c = { .name = STR("sync"),
		                 .node = str_from(node),
		                 .lease_sec = LEASE_SEC,
		                 .interval_sec = INTERVAL_SEC,
		                 .was_asked = was_asked,
		                 .is_alone = is_alone };

	CHECK(store_run(d->store, lease_take, &c, &d->arena, NULL) == RC_OK);
	return c;
}

static bool extend(struct desk *d, const char *node, int64_t fence)
{
	struct lease_beat b = { .name = STR("sync"), .node = str_from(node), .lease_sec = LEASE_SEC, .fence = fence };

	CHECK(store_run(d->store, lease_extend, &b, &d->arena, NULL) == RC_OK);
	return !b.is_lost;
}

static bool finish(struct desk *d, const char *node, int64_t fence)
{
	struct lease_end end = { .node = str_from(node),
		                 .fence = fence,
		                 .outcome = { .name = STR("sync"),
		                              .last_started_at = wall_sec(clock_now(&d->clock)),
		                              .last_finished_at = wall_sec(clock_now(&d->clock)),
		                              .last_outcome = JOB_SUCCESS } };

	CHECK(store_run(d->store, lease_finish, &end, &d->arena, NULL) == RC_OK);
	return !end.is_lost;
}

TEST(one_node_at_a_time_has_the_job)
{
	struct desk        d;
	struct lease_claim a, b;

	desk_open(&d);
	a = take(&d, "a", false, false);
	CHECK(a.verdict == LEASE_GRANTED && a.record.fence == 1);
	b = take(&d, "b", true, false);
	CHECK(b.verdict == LEASE_HELD && b.retry_at == NOW_SEC + LEASE_SEC + 1);
	CHECK(finish(&d, "a", 1));
	b = take(&d, "b", true, false);
	CHECK(b.verdict == LEASE_GRANTED && b.record.fence == 2);
	desk_close(&d);
}

TEST(a_silent_node_is_replaced_when_its_lease_is_over_and_finds_its_number_gone)
{
	struct desk        d;
	struct lease_claim b;

	desk_open(&d);
	CHECK(take(&d, "a", false, false).verdict == LEASE_GRANTED);
	d.clock.test_ms += LEASE_SEC * 1000 - 1;
	CHECK(take(&d, "b", false, false).verdict == LEASE_HELD);
	d.clock.test_ms += 1;
	b = take(&d, "b", false, false);
	CHECK(b.verdict == LEASE_GRANTED && b.record.fence == 2);
	CHECK(!extend(&d, "a", 1));
	CHECK(!finish(&d, "a", 1));
	CHECK(take(&d, "c", false, false).verdict == LEASE_HELD); /* a's late end did not free b's lease */
	CHECK(finish(&d, "b", 2));
	desk_close(&d);
}

TEST(a_node_that_beats_keeps_the_job)
{
	struct desk d;

	desk_open(&d);
	CHECK(take(&d, "a", false, false).verdict == LEASE_GRANTED);
	for (int i = 0; i < 10; i++) {
		d.clock.test_ms += LEASE_SEC * 1000 - 1;
		CHECK(extend(&d, "a", 1));
		CHECK(take(&d, "b", true, false).verdict == LEASE_HELD);
	}
	desk_close(&d);
}

TEST(what_another_node_has_just_run_is_not_run_again_unless_asked_for)
{
	struct desk        d;
	struct lease_claim b;

	desk_open(&d);
	CHECK(take(&d, "a", false, false).verdict == LEASE_GRANTED && finish(&d, "a", 1));
	b = take(&d, "b", false, false);
	CHECK(b.verdict == LEASE_RECENT && b.retry_at == NOW_SEC + INTERVAL_SEC);
	d.clock.test_ms += INTERVAL_SEC / 2 * 1000ll;
	CHECK(take(&d, "b", false, false).verdict == LEASE_GRANTED);
	desk_close(&d);
}

static enum rc put_paused(struct session *s, void *arg, struct err *e)
{
	struct job_record record;
	enum rc           rc = job_load(s, ((struct job_record *)arg)->name, &record, e);

	if (!rc)
		session_put(s, &job_type, arg);
	return rc;
}

TEST(a_paused_job_is_only_run_when_asked_for)
{
	struct desk       d;
	struct job_record paused = { .name = STR("sync"), .is_paused = 1 };

	desk_open(&d);
	CHECK(store_run(d.store, put_paused, &paused, &d.arena, NULL) == RC_OK);
	CHECK(take(&d, "a", false, false).verdict == LEASE_PAUSED);
	CHECK(take(&d, "a", true, false).verdict == LEASE_GRANTED);
	desk_close(&d);
}

TEST(a_process_that_is_alone_takes_a_dead_ones_job_at_once)
{
	struct desk d;

	desk_open(&d);
	CHECK(take(&d, "before the crash", false, true).verdict == LEASE_GRANTED);
	CHECK(take(&d, "after the crash", false, true).verdict == LEASE_GRANTED);
	desk_close(&d);
}
