/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_copy.c - a copy can be made again while the source goes on. */
#include "test.h"

#include "app/store/store_copy.h"
#include "pool.h"
#include "service/broker/broker.h"

enum { COUNT = 60 }; /* some pages of a copy */

/* The track holds number n: taken by its exact name. */
static void claim(struct pool *p, int n, const char *owner)
{
	struct claim c = { .ask = { .owner = str_from(owner), .lab_hours = 4 },
		           .prefix = pool_account(&p->arena, n).name };

	CHECK(store_run(p->store, broker_claim, &c, &p->arena, NULL) == RC_OK && c.is_new);
}

static void give_back(struct pool *p, int n, const char *owner)
{
	struct sandbox_call c = { .id = pool_id(&p->arena, n), .owner = str_from(owner) };

	CHECK(store_run(p->store, broker_give_back, &c, &p->arena, NULL) == RC_OK);
}

/* All of it arrives; how many writes that took. */
static int64_t copy(struct pool *from, struct pool *to)
{
	struct store_sum source, target;
	struct err       e = { 0 };
	int64_t          written = -1;
	enum rc          rc = store_copy(from->store, to->store, &sandbox_type, &written, &e);

	if (rc)
		print_error("%s\n", e.msg);
	CHECK(rc == RC_OK);
	CHECK(store_sum(from->store, &sandbox_type, &source, NULL) == RC_OK);
	CHECK(store_sum(to->store, &sandbox_type, &target, NULL) == RC_OK);
	CHECK(source.count == COUNT && target.count == COUNT && source.checksum == target.checksum);
	return written;
}

static void check_moved_track(struct pool *from, int before, int after)
{
	struct pool to;

	pool_open_memory(&to);
	pool_fill(from, 0, COUNT);
	claim(from, before, "t1");
	CHECK(copy(from, &to) == COUNT && copy(from, &to) == 0);
	give_back(from, before, "t1");
	claim(from, after, "t1");
	CHECK(copy(from, &to) >= 2 && copy(from, &to) == 0);
	CHECK(pool_get(&to, pool_id(&to.arena, after)).status == SANDBOX_ALLOCATED);
	CHECK(pool_get(&to, pool_id(&to.arena, before)).status == SANDBOX_PENDING_DELETION);
	pool_close(&to);
}

TEST(a_second_copy_follows_a_track_that_moved)
{
	static const struct {
		const char *label;
		int         before, after;
	} moves[] = {
		{ "to an earlier sandbox", COUNT - 1, 0 },
		{ "to a later sandbox", 0, COUNT - 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(moves); i++) {
		struct pool from;

		CASE(moves[i].label);
		pool_open_memory(&from);
		check_moved_track(&from, moves[i].before, moves[i].after);
		pool_close(&from);
	}
	CASE("");
}
