/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_rig.c - see kernel_rig.h. */
#include "kernel_rig.h"

#include "service/services.h"
#include "store/memory/memory.h"
#include "test.h"
#include "truth/test_clock.h"

enum { TURNS_MAX = 10000 };

uint64_t rig_random(void *arg)
{
	uint64_t *seed = arg;

	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed ^ *seed >> 29;
}

void rig_open(struct kernel_rig *r)
{
	r->clock = clock_test(1700000000000);
	r->seed = 1;
	r->store = store_memory_open(service_types, service_type_count, &r->clock);
	if (r->faults)
		r->store = store_fault_open(r->store, r->faults);
	r->options.store = r->store;
	r->options.clock = &r->clock;
	r->options.random = rig_random;
	r->options.random_arg = &r->seed;
	r->options.node = STR("node-1");
	r->options.source = STR("leasehold");
	r->options.account = STR("000000000000");
	r->options.region = STR("local");
	r->options.hooks = service_hooks;
	r->options.hook_count = service_hook_count;
	if (!r->options.lease_ms)
		r->options.lease_ms = 30000;
	if (!r->options.timers_per_sec)
		r->options.timers_per_sec = 1000;
	r->kernel = kernel_new(&r->options);
}

void rig_close(struct kernel_rig *r)
{
	kernel_free(r->kernel);
	store_close(r->store);
	arena_fini(&r->arena);
}

enum rc rig_try(struct kernel_rig *r, txn_fn *run, void *arg, struct err *e)
{
	return store_run(r->store, run, arg, &r->arena, e);
}

void rig_run(struct kernel_rig *r, txn_fn *run, void *arg)
{
	struct err e = { 0 };
	enum rc    rc = rig_try(r, run, arg, &e);

	if (rc)
		print_error("%s\n", e.msg);
	CHECK(rc == RC_OK);
}

static void do_work(struct kernel_rig *r, struct work *w)
{
	struct err e = { 0 };
	enum rc    rc = RC_OK;

	if (w->needs_call) {
		rig_run(r, work_claim, w);
		if (!w->is_claimed)
			return;
	}
	do {
		if (w->needs_call)
			work_perform(w);
		err_clear(&e);
		rc = rig_try(r, work_settle, w, &e);
		if (work_is_to_blame(w, rc, &e))
			rig_run(r, work_refuse, w);
		else
			CHECK(rc == RC_OK || r->faults); /* the store failed: it stays due */
	} while (!rc && w->has_more && w->kind != WORK_LANE);
	work_over(w);
}

static int do_due(struct kernel_rig *r, int64_t *ret_next_due_ms)
{
	struct arena     a = { 0 };
	struct work_list list;
	struct err       e = { 0 };
	int              done;

	CHECK(work_find(r->kernel, 100, (struct work_skips){ 0 }, &a, &list, &e) == RC_OK);
	done = (int)list.count;
	for (size_t i = 0; i < list.count; i++) {
		struct work w = { 0 };

		work_copy(&w, &list.items[i]);
		do_work(r, &w);
		work_fini(&w);
	}
	*ret_next_due_ms = list.next_due_ms;
	arena_fini(&a);
	return done;
}

int rig_turn(struct kernel_rig *r)
{
	int     sum = 0, done;
	int64_t next;

	do {
		done = do_due(r, &next);
		sum += done;
		CHECK(sum < TURNS_MAX);
	} while (done);
	return sum;
}

void rig_pass(struct kernel_rig *r, int64_t ms)
{
	int64_t until = r->clock.test_ms + ms, next;

	for (int turn = 0; turn < TURNS_MAX; turn++) {
		if (do_due(r, &next))
			continue;
		if (next > until)
			break;
		if (next > r->clock.test_ms)
			r->clock.test_ms = next;
	}
	r->clock.test_ms = until;
	(void)rig_turn(r);
}
