/* SPDX-License-Identifier: Apache-2.0 */
/* test_passes.c - the jobs of docs/broker.md, rule by rule, against a vendor that does what the test says. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "kernel/saga.h"
#include "kernel/alarm/node.h"
#include "pool.h"
#include "providers/csp/accounts.h"
#include "service/broker/broker.h"
#include "service/broker/passes.h"
#include "store/session.h"

enum { HOUR = 3600, DAY = 24 * HOUR, WAITS_MAX = 64 };

static const struct broker_settings plain = {
	.lab_hours = 4,
	.grace_sec = 1800,
	.deletion_max_attempts = 3,
	.deletion_backoff_sec = 300,
	.cleanup_batch_size = 10,
	.cleanup_batch_delay_ms = 2000,
	.cleanup_sandbox_delay_ms = 7,
	.sync_max_stale_percent = 25,
};

/* One pass and what it said. */
struct work {
	struct pool           *pool;
	struct fake_csp        csp;
	struct broker_settings settings;
	struct pass            pass;
	struct pass_result     result;
	struct err             e;
	int64_t                waits[WAITS_MAX];
	int                    wait_count;
	int                    waits_allowed; /* then `wait` says stop */
};

static bool note_wait(void *arg, int64_t ms)
{
	struct work *w = arg;

	if (w->wait_count < WAITS_MAX)
		w->waits[w->wait_count] = ms;
	return ++w->wait_count <= w->waits_allowed;
}

static void work_init(struct work *w, struct pool *p)
{
	memset(w, 0, sizeof(*w));
	w->pool = p;
	w->settings = plain;
	w->waits_allowed = 1000000;
	fake_csp_init(&w->csp);
	w->csp.arg = w;
	w->pass = (struct pass){ .store = p->store,
		                 .csp = &w->csp.csp,
		                 .clock = &p->clock,
		                 .settings = &w->settings,
		                 .wait = note_wait,
		                 .wait_arg = w };
}

static enum rc run(struct work *w, pass_fn *pass)
{
	w->result = (struct pass_result){ 0 };
	w->wait_count = 0;
	err_clear(&w->e);
	return pass(&w->pass, &w->result, &w->e);
}

static int64_t figure(const struct work *w, const char *name)
{
	for (int i = 0; i < w->result.count; i++)
		if (strcmp(w->result.counts[i].name, name) == 0)
			return w->result.counts[i].value;
	return -1;
}

static struct sandbox get(struct work *w, int n)
{
	return pool_get(w->pool, pool_id(&w->pool->arena, n));
}

static bool has(struct work *w, int n)
{
	return pool_has(w->pool, pool_id(&w->pool->arena, n));
}

static bool has_tombstone(struct work *w, int n)
{
	return pool_has_tombstone(w->pool, pool_id(&w->pool->arena, n));
}

static void pass_time(struct work *w, int64_t sec)
{
	w->pool->clock.test_ms += sec * 1000;
}

/* Claim one by its exact name. */
static void claim(struct work *w, int n, const char *owner)
{
	struct claim c = { .ask = { .owner = str_from(owner), .lab_hours = 4 },
		           .prefix = pool_account(&w->pool->arena, n).name };

	CHECK(store_run(w->pool->store, broker_claim, &c, &w->pool->arena, NULL) == RC_OK && c.is_new);
}

static void give_back(struct work *w, int n, const char *owner)
{
	struct sandbox_call c = { .id = pool_id(&w->pool->arena, n), .owner = str_from(owner) };

	CHECK(store_run(w->pool->store, broker_give_back, &c, &w->pool->arena, NULL) == RC_OK);
}

/* Claimed and given back: [from, to) wait for their deletion. */
static void make_pending(struct work *w, int from, int to)
{
	pool_fill(w->pool, from, to);
	for (int n = from; n < to; n++) {
		const char *owner = str_format(&w->pool->arena, "track-%d", n).p;

		claim(w, n, owner);
		give_back(w, n, owner);
	}
}

static void operate(struct work *w, txn_fn *what, int n)
{
	struct sandbox_call c = { .id = pool_id(&w->pool->arena, n) };

	CHECK(store_run(w->pool->store, what, &c, &w->pool->arena, NULL) == RC_OK);
}

/* --- sync --- */

static void check_sync_adds(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	fake_csp_list(&w.csp, &p->arena, 0, 7);
	CHECK(run(&w, pass_sync) == RC_OK);
	CHECK(figure(&w, "added") == 7 && figure(&w, "synced") == 7 && figure(&w, "marked_stale") == 0);
	CHECK(pool_count(p, SANDBOX_AVAILABLE) == 7 && get(&w, 3).last_synced == POOL_NOW_SEC);
	CHECK(get(&w, 3).lab_duration_hours == 4);
	CHECK(run(&w, pass_sync) == RC_OK);
	CHECK(figure(&w, "added") == 0 && figure(&w, "synced") == 7 && get(&w, 3).version == 1);
}

TEST(sync_adds_new_accounts_once)
{
	each_pool(check_sync_adds);
}

static void check_sync_refreshes(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	fake_csp_list(&w.csp, &p->arena, 0, 3);
	CHECK(run(&w, pass_sync) == RC_OK);
	w.csp.accounts[1].name = STR("renamed");
	CHECK(run(&w, pass_sync) == RC_OK);
	CHECK(str_eq(get(&w, 1).name, STR("renamed")) && get(&w, 1).version == 2 && get(&w, 0).version == 1);
	pass_time(&w, HOUR);
	CHECK(run(&w, pass_sync) == RC_OK && get(&w, 0).last_synced == POOL_NOW_SEC + HOUR);
}

TEST(sync_takes_over_new_names)
{
	each_pool(check_sync_refreshes);
}

static void check_renamed_while_held(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	fake_csp_list(&w.csp, &p->arena, 0, 3);
	CHECK(run(&w, pass_sync) == RC_OK);
	claim(&w, 1, "t1");
	w.csp.accounts[1].name = STR("renamed");
	pass_time(&w, 2 * HOUR);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "synced") == 2);
	CHECK(str_eq(get(&w, 1).name, STR("lab-0001")) && get(&w, 1).version == 2);
}

TEST(sync_does_not_touch_what_is_lent)
{
	each_pool(check_renamed_while_held);
}

static void check_new_id(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	fake_csp_list(&w.csp, &p->arena, 0, 2);
	w.csp.accounts[1].sandbox_id = w.csp.accounts[1].external_id; /* it has no csp_id yet */
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 2);
	claim(&w, 1, "t1");
	w.csp.accounts[1].sandbox_id = STR("x");
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 0 && figure(&w, "synced") == 1);
	CHECK(!pool_has(p, STR("x")) && pool_count(p, SANDBOX_AVAILABLE) == 1);
	CASE("what is lent no longer, and still listed");
	CHECK(store_run(p->store, broker_discard, &(struct sandbox_call){ .id = w.csp.accounts[1].external_id },
	                &p->arena, NULL) == RC_OK);
	for (int day = 0; day < 3; day++) {
		CHECK(run(&w, pass_cleanup) == RC_OK);
		CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 0);
		pass_time(&w, DAY);
	}
	CHECK(!pool_has(p, w.csp.accounts[1].external_id));
	CHECK(pool_has_tombstone(p, w.csp.accounts[1].external_id) && !pool_has(p, STR("x")));
}

TEST(an_account_that_gets_a_new_sandbox_id_is_not_lent_again)
{
	each_pool(check_new_id);
}

static void check_sync_sets_aside(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	pool_fill(p, 0, 8);
	fake_csp_list(&w.csp, &p->arena, 2, 8);
	CHECK(run(&w, pass_sync) == RC_OK);
	CHECK(figure(&w, "marked_stale") == 2 && figure(&w, "synced") == 6);
	CHECK(get(&w, 0).status == SANDBOX_STALE && get(&w, 1).status == SANDBOX_STALE);
	CHECK(get(&w, 0).quarantine_reason.n == 0);
	fake_csp_list(&w.csp, &p->arena, 1, 8);
	CHECK(run(&w, pass_sync) == RC_OK);
	CHECK(figure(&w, "restored") == 1 && figure(&w, "added") == 0 && figure(&w, "synced") == 7);
	CHECK(get(&w, 0).status == SANDBOX_STALE && get(&w, 1).status == SANDBOX_AVAILABLE);
}

TEST(sync_sets_missing_ones_aside_and_brings_them_back)
{
	each_pool(check_sync_sets_aside);
}

static void check_quarantined(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	pool_fill(p, 0, 4);
	operate(&w, broker_quarantine, 1);
	fake_csp_list(&w.csp, &p->arena, 0, 4);
	pass_time(&w, 2 * HOUR);
	CHECK(run(&w, pass_sync) == RC_OK);
	CHECK(figure(&w, "restored") == 0 && get(&w, 1).status == SANDBOX_STALE);
}

TEST(sync_does_not_end_a_quarantine)
{
	each_pool(check_quarantined);
}

static void check_other_states(struct pool *p)
{
	struct work    w;
	struct sandbox failed;

	work_init(&w, p);
	make_pending(&w, 0, 2);
	pool_fill(p, 2, 8);
	claim(&w, 2, "holder");
	failed = get(&w, 1);
	failed.status = SANDBOX_DELETION_FAILED;
	pool_put(p, failed);
	fake_csp_list(&w.csp, &p->arena, 3, 8);
	pass_time(&w, 2 * HOUR);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "marked_stale") == 0);
	CHECK(get(&w, 0).status == SANDBOX_PENDING_DELETION && get(&w, 1).status == SANDBOX_DELETION_FAILED);
	CHECK(get(&w, 2).status == SANDBOX_ALLOCATED);
	fake_csp_list(&w.csp, &p->arena, 0, 8);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 0 && figure(&w, "restored") == 0);
	CHECK(get(&w, 0).status == SANDBOX_PENDING_DELETION && get(&w, 1).status == SANDBOX_DELETION_FAILED);
}

TEST(sync_never_touches_other_states)
{
	each_pool(check_other_states);
}

static void check_bad_listings(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	pool_fill(p, 0, 2);
	CHECK(run(&w, pass_sync) == RC_UNAVAILABLE && strstr(w.e.msg, "no sandbox at all"));
	w.pass.is_forced = true;
	CHECK(run(&w, pass_sync) == RC_UNAVAILABLE);
	fake_csp_list(&w.csp, &p->arena, 5, 6);
	w.csp.list_rc = RC_TIMEOUT;
	CHECK(run(&w, pass_sync) == RC_TIMEOUT && strstr(w.e.msg, "no listing today"));
	CHECK(pool_count(p, SANDBOX_AVAILABLE) == 2 && figure(&w, "synced") == 0);
}

TEST(an_empty_or_failed_listing_changes_nothing)
{
	each_pool(check_bad_listings);
}

static void check_share(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	pool_fill(p, 0, 12);
	fake_csp_list(&w.csp, &p->arena, 4, 14);
	CHECK(run(&w, pass_sync) == RC_UNAVAILABLE && strstr(w.e.msg, "4 of 12"));
	CHECK(pool_count(p, SANDBOX_STALE) == 0 && figure(&w, "marked_stale") == 0);
	CHECK(figure(&w, "added") == 2);
	fake_csp_list(&w.csp, &p->arena, 3, 14); /* 3 of 14 are exactly what 25 % allow */
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "marked_stale") == 3);
	fake_csp_list(&w.csp, &p->arena, 13, 14);
	CHECK(run(&w, pass_sync) == RC_UNAVAILABLE);
	w.pass.is_forced = true;
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "marked_stale") == 10);
	CHECK(pool_count(p, SANDBOX_AVAILABLE) == 1);
}

TEST(more_than_the_allowed_share_is_set_aside_only_by_force)
{
	each_pool(check_share);
}

static void check_at_least_one(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	w.settings.sync_max_stale_percent = 0;
	pool_fill(p, 0, 3);
	fake_csp_list(&w.csp, &p->arena, 2, 3);
	CHECK(run(&w, pass_sync) == RC_UNAVAILABLE);
	fake_csp_list(&w.csp, &p->arena, 1, 3);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "marked_stale") == 1);
}

TEST(one_missing_sandbox_may_always_go)
{
	each_pool(check_at_least_one);
}

static void claim_while_listing(struct fake_csp *f)
{
	struct work *w = f->arg;

	if (f->lists == 1)
		claim(w, 1, "quick");
}

static void check_claim_in_between(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	pool_fill(p, 0, 8);
	fake_csp_list(&w.csp, &p->arena, 2, 8);
	w.csp.on_list = claim_while_listing;
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "marked_stale") == 1);
	CHECK(get(&w, 1).status == SANDBOX_ALLOCATED && str_eq(get(&w, 1).allocated_to_track, STR("quick")));
	CHECK(get(&w, 0).status == SANDBOX_STALE);
}

TEST(a_claim_during_the_listing_stands)
{
	each_pool(check_claim_in_between);
}

/* Before the next write of a pass, something else happens. */
static void happen_once(struct pool *p, void (*what)(void *arg), void *arg)
{
	p->plan.before_write = what;
	p->plan.before_write_arg = arg;
}

static void claim_number_1(void *arg)
{
	struct work *w = arg;

	w->pool->plan.before_write = NULL;
	claim(w, 1, "quick");
}

static void check_claim_after_look(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	pool_fill(p, 0, 8);
	fake_csp_list(&w.csp, &p->arena, 2, 8);
	happen_once(p, claim_number_1, &w);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "marked_stale") == 1);
	CHECK(get(&w, 1).status == SANDBOX_ALLOCATED && get(&w, 0).status == SANDBOX_STALE);
}

TEST(a_sandbox_claimed_after_sync_looked_at_it_stays_claimed)
{
	each_pool(check_claim_after_look);
}

static void check_claim_before_refresh(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	pool_fill(p, 0, 4);
	fake_csp_list(&w.csp, &p->arena, 0, 4);
	w.csp.accounts[1].name = STR("renamed");
	happen_once(p, claim_number_1, &w);
	CHECK(run(&w, pass_sync) == RC_OK);
	CHECK(get(&w, 1).status == SANDBOX_ALLOCATED && str_eq(get(&w, 1).name, STR("lab-0001")));
}

TEST(a_sandbox_claimed_before_its_refresh_is_left_alone)
{
	each_pool(check_claim_before_refresh);
}

static void check_longest_account(struct pool *p)
{
	static char        id[SANDBOX_ID_MAX], external_id[SANDBOX_EXTERNAL_ID_MAX], name[SANDBOX_NAME_MAX];
	struct csp_account longest = { .sandbox_id = str_of(id, sizeof(id)),
		                       .external_id = str_of(external_id, sizeof(external_id)),
		                       .name = str_of(name, sizeof(name)) };
	struct claim       c = { .ask = { .owner = STR("t"), .lab_hours = 4 } };
	struct csp_listing listing;
	struct work        w;
	struct str         json;

	memset(id, 'i', sizeof(id));
	memset(external_id, 'e', sizeof(external_id));
	memset(name, 'n', sizeof(name));
	json = str_format(&p->arena,
	                  "{\"results\": [{\"account_type\": \"sandbox\", \"state\": \"active\", \"csp_id\": \"%.*s\","
	                  " \"id\": \"%.*s\", \"name\": \"%.*s\"}]}",
	                  STR_ARG(longest.sandbox_id), STR_ARG(longest.external_id), STR_ARG(longest.name));
	CHECK(csp_read_accounts(json, &p->arena, &listing, NULL) == RC_OK && listing.count == 1);
	work_init(&w, p);
	w.csp.accounts = listing.accounts;
	w.csp.count = 1;
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 1);
	CHECK(str_eq(pool_get(p, longest.sandbox_id).external_id, longest.external_id));
	CHECK(store_run(p->store, broker_claim, &c, &p->arena, NULL) == RC_OK);
	w.pass.status = SANDBOX_ALLOCATED;
	CHECK(run(&w, pass_bulk_delete) == RC_OK && pool_has_tombstone(p, longest.sandbox_id));
}

TEST(the_longest_account_that_is_read_can_be_kept)
{
	each_pool(check_longest_account);
}

static void see_number_1(void *arg)
{
	struct work   *w = arg;
	struct sandbox s;

	w->pool->plan.before_write = NULL;
	s = get(w, 1);
	s.last_synced = POOL_NOW_SEC + 1;
	pool_put(w->pool, s);
}

static void check_seen_meanwhile(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	pool_fill(p, 0, 8);
	fake_csp_list(&w.csp, &p->arena, 2, 8);
	happen_once(p, see_number_1, &w);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "marked_stale") == 1);
	CHECK(get(&w, 1).status == SANDBOX_AVAILABLE && get(&w, 0).status == SANDBOX_STALE);
}

TEST(a_sandbox_seen_after_the_listing_began_is_not_set_aside)
{
	each_pool(check_seen_meanwhile);
}

/* --- tombstones --- */

static void check_tombstone(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	make_pending(&w, 0, 1);
	pool_fill(p, 1, 3);
	fake_csp_list(&w.csp, &p->arena, 0, 3);
	CHECK(run(&w, pass_cleanup) == RC_OK && figure(&w, "deleted") == 1);
	CHECK(!has(&w, 0) && has_tombstone(&w, 0));
	for (int day = 0; day < 3; day++) {
		CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 0 && !has(&w, 0));
		pass_time(&w, DAY - 1);
	}
	CHECK(run(&w, pass_sync) == RC_OK && has_tombstone(&w, 0));
	fake_csp_list(&w.csp, &p->arena, 1, 3);
	CHECK(run(&w, pass_sync) == RC_OK && has_tombstone(&w, 0)); /* missed from now on */
	pass_time(&w, DAY - 1);
	CHECK(run(&w, pass_sync) == RC_OK && has_tombstone(&w, 0));
	pass_time(&w, 1);
	CHECK(run(&w, pass_sync) == RC_OK && !has_tombstone(&w, 0));
	fake_csp_list(&w.csp, &p->arena, 0, 3);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 1);
}

static int64_t still_listed(struct pool *p)
{
	struct fact fact = { .name = STR(FACT_STILL_LISTED) };
	enum rc     rc = store_read(p->store, fact_get, &fact, &p->arena, NULL);

	CHECK(!rc || rc == RC_NOT_FOUND);
	return rc ? -1 : fact.value;
}

static void check_still_listed(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	make_pending(&w, 0, 1);
	pool_fill(p, 1, 3);
	fake_csp_list(&w.csp, &p->arena, 0, 3);
	CHECK(run(&w, pass_cleanup) == RC_OK && figure(&w, "deleted") == 1);
	CHECK(run(&w, pass_sync) == RC_OK && still_listed(p) == -1); /* a listing may be late */
	pass_time(&w, 2 * 3600);
	CHECK(run(&w, pass_sync) == RC_OK && still_listed(p) == 1);
	fake_csp_list(&w.csp, &p->arena, 1, 3);
	CHECK(run(&w, pass_sync) == RC_OK && still_listed(p) == 0);
}

TEST(a_deleted_sandbox_that_is_still_listed_is_noted_until_it_is_gone)
{
	each_pool(check_still_listed);
}

TEST(a_deleted_sandbox_that_is_still_listed_does_not_come_back)
{
	each_pool(check_tombstone);
}

static void check_refused_listing(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	make_pending(&w, 0, 1);
	pool_fill(p, 1, 12);
	fake_csp_list(&w.csp, &p->arena, 0, 12);
	CHECK(run(&w, pass_cleanup) == RC_OK && figure(&w, "deleted") == 1);
	CHECK(run(&w, pass_sync) == RC_OK && has_tombstone(&w, 0));
	pass_time(&w, DAY + HOUR);
	fake_csp_list(&w.csp, &p->arena, 8, 12);
	CHECK(run(&w, pass_sync) == RC_UNAVAILABLE && strstr(w.e.msg, "7 of 11"));
	CHECK(has_tombstone(&w, 0));
	fake_csp_list(&w.csp, &p->arena, 0, 12);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 0 && !has(&w, 0));
}

TEST(a_listing_that_is_refused_ends_no_tombstone)
{
	each_pool(check_refused_listing);
}

/* After a long time without a sync, one listing that lacks it is not enough. */
static void check_one_miss(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	make_pending(&w, 0, 1);
	pool_fill(p, 1, 12);
	fake_csp_list(&w.csp, &p->arena, 0, 12);
	CHECK(run(&w, pass_cleanup) == RC_OK && run(&w, pass_sync) == RC_OK && has_tombstone(&w, 0));
	pass_time(&w, 30 * DAY);
	fake_csp_list(&w.csp, &p->arena, 1, 12);
	CHECK(run(&w, pass_sync) == RC_OK && has_tombstone(&w, 0));
	fake_csp_list(&w.csp, &p->arena, 0, 12);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 0 && !has(&w, 0));
	fake_csp_list(&w.csp, &p->arena, 1, 12);
	pass_time(&w, DAY);
	CHECK(run(&w, pass_sync) == RC_OK && has_tombstone(&w, 0)); /* the count began anew */
}

TEST(one_listing_without_it_does_not_end_a_tombstone)
{
	each_pool(check_one_miss);
}

static void remove_number_1(void *arg)
{
	struct work   *w = arg;
	struct work    other;
	struct sandbox s;

	w->pool->plan.before_write = NULL;
	s = get(w, 1);
	s.status = SANDBOX_PENDING_DELETION;
	s.deletion_requested_at = 1;
	pool_put(w->pool, s);
	work_init(&other, w->pool);
	CHECK(run(&other, pass_cleanup) == RC_OK && figure(&other, "deleted") == 1);
}

static void check_removed_in_between(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	pool_fill(p, 0, 4);
	fake_csp_list(&w.csp, &p->arena, 0, 4);
	w.csp.accounts[1].name = STR("renamed"); /* so that sync means to write it */
	happen_once(p, remove_number_1, &w);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 0);
	CHECK(!has(&w, 1) && has_tombstone(&w, 1));
}

TEST(a_sandbox_deleted_after_sync_looked_at_it_does_not_come_back)
{
	each_pool(check_removed_in_between);
}

/* --- cleanup --- */

static void check_cleanup(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	make_pending(&w, 0, 3);
	pool_fill(p, 3, 5);
	CHECK(run(&w, pass_cleanup) == RC_OK);
	CHECK(figure(&w, "deleted") == 3 && figure(&w, "failed") == 0 && figure(&w, "postponed") == 0);
	CHECK(w.csp.deletes == 3 && pool_count(p, SANDBOX_PENDING_DELETION) == 0);
	CHECK(pool_count(p, SANDBOX_AVAILABLE) == 2);
}

TEST(cleanup_deletes_what_is_pending_and_nothing_else)
{
	each_pool(check_cleanup);
}

/* While the first is deleted at the vendor, an operator takes the other one of the page out. */
static void quarantine_the_other(struct fake_csp *f, struct str external_id)
{
	struct work *w = f->arg;

	if (f->deletes == 1)
		operate(w, broker_quarantine, str_eq(external_id, STR("acc/0")) ? 1 : 0);
}

static void check_quarantined_in_between(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	make_pending(&w, 0, 2);
	w.csp.on_delete = quarantine_the_other;
	CHECK(run(&w, pass_cleanup) == RC_OK);
	CHECK(w.csp.deletes == 1 && figure(&w, "deleted") == 1 && figure(&w, "failed") == 0);
	CHECK(pool_count(p, SANDBOX_PENDING_DELETION) == 0 && pool_count(p, SANDBOX_STALE) == 1);
}

TEST(a_sandbox_quarantined_after_cleanup_read_its_page_is_not_deleted)
{
	each_pool(check_quarantined_in_between);
}

static void check_backoff(struct pool *p)
{
	struct work w;
	int64_t     wait = 300;

	work_init(&w, p);
	make_pending(&w, 0, 1);
	w.csp.delete_rc = RC_DENIED;
	for (int64_t failures = 1; failures <= 3; failures++, wait *= 2) {
		CHECK(run(&w, pass_cleanup) == RC_OK && figure(&w, "failed") == 1);
		CHECK(get(&w, 0).deletion_retry_count == failures && get(&w, 0).status == SANDBOX_PENDING_DELETION);
		CHECK(strstr(get(&w, 0).last_error.p, "will not delete acc/0") != NULL);
		pass_time(&w, wait - 1);
		CHECK(run(&w, pass_cleanup) == RC_OK && figure(&w, "postponed") == 1 && figure(&w, "failed") == 0);
		CHECK(w.csp.deletes == failures && w.wait_count == 0);
		pass_time(&w, 1);
	}
	CHECK(run(&w, pass_cleanup) == RC_OK && figure(&w, "failed") == 1);
	CHECK(get(&w, 0).status == SANDBOX_DELETION_FAILED && get(&w, 0).deletion_retry_count == 4);
	pass_time(&w, DAY);
	CHECK(run(&w, pass_cleanup) == RC_OK && w.csp.deletes == 4);
	w.csp.delete_rc = RC_OK;
	CHECK(run(&w, pass_retry_failed) == RC_OK && figure(&w, "retried") == 1);
	CHECK(run(&w, pass_cleanup) == RC_OK && figure(&w, "deleted") == 1 && has_tombstone(&w, 0));
}

TEST(a_failed_deletion_waits_longer_each_time_and_is_given_up)
{
	each_pool(check_backoff);
}

static void check_trouble_counts(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	make_pending(&w, 0, 2);
	w.csp.delete_rc = RC_UNAVAILABLE;
	CHECK(run(&w, pass_cleanup) == RC_OK && figure(&w, "failed") == 2 && w.csp.deletes == 2);
}

TEST(one_failure_does_not_keep_others_from_being_deleted)
{
	each_pool(check_trouble_counts);
}

static void open_circuit_at_third(struct fake_csp *f, struct str external_id)
{
	(void)external_id;
	if (f->deletes < 3)
		return;
	f->delete_rc = RC_UNAVAILABLE;
	f->delete_code = "CIRCUIT_OPEN";
}

static void check_circuit(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	make_pending(&w, 0, 6);
	w.csp.on_delete = open_circuit_at_third;
	CHECK(run(&w, pass_cleanup) == RC_UNAVAILABLE && strstr(w.e.msg, "will not delete"));
	CHECK(figure(&w, "deleted") == 2 && figure(&w, "failed") == 0 && figure(&w, "postponed") == 4);
	CHECK(w.csp.deletes == 3 && pool_count(p, SANDBOX_PENDING_DELETION) == 4);
	for (int n = 2; n < 6; n++)
		CHECK(get(&w, n).deletion_retry_count == 0 && get(&w, n).next_deletion_at == 0);
}

TEST(an_open_circuit_ends_the_pass_and_counts_against_nobody)
{
	each_pool(check_circuit);
}

static void check_pace(struct pool *p)
{
	static const int64_t expected[] = { 0, 7, 7, 2000, 7, 7, 2000 };
	struct work          w;

	work_init(&w, p);
	w.settings.cleanup_batch_size = 3;
	make_pending(&w, 0, 7);
	CHECK(run(&w, pass_cleanup) == RC_OK && w.wait_count == ARRAY_LEN(expected));
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		CHECK(w.waits[i] == expected[i]);
}

TEST(cleanup_keeps_its_pace)
{
	each_pool(check_pace);
}

static void check_stop(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	make_pending(&w, 0, 5);
	w.waits_allowed = 2;
	CHECK(run(&w, pass_cleanup) == RC_OK && w.wait_count == 3 && w.csp.deletes == 2);
	CHECK(figure(&w, "deleted") == 2 && figure(&w, "postponed") == 3 && figure(&w, "failed") == 0);
	CHECK(pool_count(p, SANDBOX_PENDING_DELETION) == 3);
	w.waits_allowed = 0;
	CHECK(run(&w, pass_cleanup) == RC_OK && w.csp.deletes == 2);
}

TEST(a_wait_that_says_stop_ends_the_pass)
{
	each_pool(check_stop);
}

static void set_aside_meanwhile(struct fake_csp *f, struct str external_id)
{
	(void)external_id;
	operate(f->arg, broker_quarantine, 0);
}

static void check_operator_in_between(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	make_pending(&w, 0, 1);
	w.csp.on_delete = set_aside_meanwhile;
	CHECK(run(&w, pass_cleanup) == RC_OK && figure(&w, "deleted") == 0 && figure(&w, "failed") == 0);
	CHECK(get(&w, 0).status == SANDBOX_STALE && get(&w, 0).quarantine_reason.n > 0 && !has_tombstone(&w, 0));
}

TEST(what_an_operator_sets_aside_during_its_deletion_stays_aside)
{
	each_pool(check_operator_in_between);
}

static void check_lost_outcome(struct pool *p)
{
	struct work w;

	if (p->plan.count)
		return; /* the plan is taken: these pools run everything twice */
	work_init(&w, p);
	make_pending(&w, 0, 2);
	p->plan.next = FAULT_BEFORE;
	p->plan.count = 1;
	CHECK(run(&w, pass_cleanup) == RC_UNAVAILABLE && figure(&w, "deleted") == 0);
	CHECK(pool_count(p, SANDBOX_PENDING_DELETION) == 2);
	CHECK(run(&w, pass_cleanup) == RC_OK && figure(&w, "deleted") == 2 && w.csp.deletes == 3);
}

TEST(a_deletion_that_could_not_be_recorded_is_done_again)
{
	each_pool(check_lost_outcome);
}

/* --- expiry --- */

static void check_expiry(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	pool_fill(p, 0, 3);
	claim(&w, 0, "t0");
	pass_time(&w, 1);
	claim(&w, 1, "t1");
	pass_time(&w, 4 * HOUR + 1800 - 1);
	CHECK(run(&w, pass_expire) == RC_OK && figure(&w, "expired") == 0);
	pass_time(&w, 1);
	CHECK(run(&w, pass_expire) == RC_OK && figure(&w, "expired") == 1);
	CHECK(get(&w, 0).status == SANDBOX_PENDING_DELETION && get(&w, 1).status == SANDBOX_ALLOCATED);
	CHECK(get(&w, 0).deletion_requested_at == POOL_NOW_SEC + 4 * HOUR + 1801);
	CHECK(get(&w, 2).status == SANDBOX_AVAILABLE);
}

TEST(expiry_takes_back_what_is_over_its_grace)
{
	each_pool(check_expiry);
}

static void set_number_1_aside(void *arg)
{
	struct work *w = arg;

	w->pool->plan.before_write = NULL;
	operate(w, broker_quarantine, 1);
}

static void check_expiry_in_between(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	pool_fill(p, 0, 2);
	claim(&w, 0, "t0");
	claim(&w, 1, "t1");
	pass_time(&w, DAY);
	happen_once(p, set_number_1_aside, &w);
	CHECK(run(&w, pass_expire) == RC_OK && figure(&w, "expired") == 1);
	CHECK(get(&w, 1).status == SANDBOX_STALE && get(&w, 0).status == SANDBOX_PENDING_DELETION);
}

TEST(expiry_judges_a_record_as_it_is_when_it_is_written)
{
	each_pool(check_expiry_in_between);
}

/* --- removals --- */

static void check_remove_stale(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	w.pass.stale_hours = 24;
	pool_fill(p, 0, 12);
	fake_csp_list(&w.csp, &p->arena, 2, 12);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "marked_stale") == 2);
	operate(&w, broker_quarantine, 1);
	pass_time(&w, DAY - 1);
	CHECK(run(&w, pass_remove_stale) == RC_OK && figure(&w, "deleted") == 0);
	CHECK(figure(&w, "grace_period_hours") == 24);
	pass_time(&w, 1);
	CHECK(run(&w, pass_remove_stale) == RC_OK && figure(&w, "deleted") == 1);
	CHECK(!has(&w, 0) && has(&w, 1) && !has_tombstone(&w, 0) && w.csp.deletes == 0);
}

TEST(stale_records_are_removed_when_old_and_not_in_quarantine)
{
	each_pool(check_remove_stale);
}

/* As an earlier deployment may have left it: with an owner, but without a time. */
static void check_half_used(struct pool *p)
{
	struct work    w;
	struct sandbox s;

	work_init(&w, p);
	w.pass.stale_hours = 24;
	pool_fill(p, 0, 2);
	s = get(&w, 0);
	s.status = SANDBOX_STALE;
	s.allocated_to_track = STR("t1");
	pool_put(p, s);
	fake_csp_list(&w.csp, &p->arena, 0, 2);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "restored") == 0 && get(&w, 0).status == SANDBOX_STALE);
	pass_time(&w, DAY);
	CHECK(run(&w, pass_remove_stale) == RC_OK && figure(&w, "deleted") == 1 && has_tombstone(&w, 0));
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 0 && !has(&w, 0));
}

TEST(a_stale_record_with_an_owner_but_no_time_is_never_lent_again)
{
	each_pool(check_half_used);
}

static void check_bulk_delete(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	make_pending(&w, 0, 2);
	pool_fill(p, 2, 8);
	claim(&w, 2, "t2");
	w.pass.status = SANDBOX_PENDING_DELETION;
	CHECK(run(&w, pass_bulk_delete) == RC_OK && figure(&w, "deleted") == 2);
	w.pass.status = SANDBOX_ALLOCATED;
	CHECK(run(&w, pass_bulk_delete) == RC_OK && figure(&w, "deleted") == 1);
	w.pass.status = SANDBOX_AVAILABLE;
	CHECK(run(&w, pass_bulk_delete) == RC_OK && figure(&w, "deleted") == 5);
	CHECK(w.csp.deletes == 0 && has_tombstone(&w, 0) && has_tombstone(&w, 2) && !has_tombstone(&w, 5));
	fake_csp_list(&w.csp, &p->arena, 0, 8);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 5);
	CHECK(!has(&w, 0) && !has(&w, 1) && !has(&w, 2) && has(&w, 3));
}

TEST(bulk_delete_forgets_the_unused_and_remembers_the_used)
{
	each_pool(check_bulk_delete);
}

static void check_bulk_in_between(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	pool_fill(p, 0, 4);
	w.pass.status = SANDBOX_AVAILABLE;
	happen_once(p, claim_number_1, &w);
	CHECK(run(&w, pass_bulk_delete) == RC_OK && figure(&w, "deleted") == 3);
	CHECK(get(&w, 1).status == SANDBOX_ALLOCATED);
}

TEST(bulk_delete_does_not_remove_what_was_claimed_meanwhile)
{
	each_pool(check_bulk_in_between);
}

static void check_retry_failed(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	w.settings.deletion_max_attempts = 0;
	make_pending(&w, 0, 3);
	w.csp.delete_rc = RC_DENIED;
	CHECK(run(&w, pass_cleanup) == RC_OK && pool_count(p, SANDBOX_DELETION_FAILED) == 3);
	CHECK(run(&w, pass_retry_failed) == RC_OK && figure(&w, "retried") == 3);
	CHECK(pool_count(p, SANDBOX_PENDING_DELETION) == 3 && get(&w, 1).deletion_retry_count == 0);
	CHECK(get(&w, 1).next_deletion_at == 0);
}

TEST(all_failed_deletions_can_be_retried_at_once)
{
	each_pool(check_retry_failed);
}

/* --- size --- */

enum { MANY = 2500 };

TEST(every_record_of_a_large_pool_is_seen)
{
	struct pool p;
	struct work w;

	pool_open_sqlite(&p);
	work_init(&w, &p);
	fake_csp_list(&w.csp, &p.arena, 0, MANY);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == MANY);
	w.csp.count = 1;
	w.pass.is_forced = true;
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "marked_stale") == MANY - 1);
	w.csp.count = MANY;
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "restored") == MANY - 1);
	for (int n = 0; n < MANY; n++)
		claim(&w, n, str_format(&p.arena, "track-%d", n).p);
	pass_time(&w, DAY);
	CHECK(run(&w, pass_expire) == RC_OK && figure(&w, "expired") == MANY);
	w.settings.deletion_max_attempts = 0;
	w.csp.delete_rc = RC_DENIED;
	CHECK(run(&w, pass_cleanup) == RC_OK && figure(&w, "failed") == MANY);
	CHECK(run(&w, pass_retry_failed) == RC_OK && figure(&w, "retried") == MANY);
	w.csp.delete_rc = RC_OK;
	CHECK(run(&w, pass_cleanup) == RC_OK && figure(&w, "deleted") == MANY && w.csp.deletes == 2 * MANY);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 0);
	w.csp.accounts += MANY - 1;
	w.csp.count = 1;
	CHECK(run(&w, pass_sync) == RC_OK);
	pass_time(&w, DAY);
	CHECK(run(&w, pass_sync) == RC_OK);
	CHECK(!has_tombstone(&w, 0) && !has_tombstone(&w, MANY / 2) && has_tombstone(&w, MANY - 1));
	pool_close(&p);
}

/* --- events --- */

static void check_sync_events(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	w.pass.by = (struct actor){ STR("job/sync"), STR("req-1") };
	fake_csp_list(&w.csp, &p->arena, 0, 4);
	CHECK(run(&w, pass_sync) == RC_OK);
	CHECK(pool_events(p, "SandboxAdded") == 4 && pool_events(p, "*") == 4);
	CHECK(str_eq(pool_event(p, "SandboxAdded").actor, STR("job/sync")));
	CHECK(str_eq(pool_event(p, "SandboxAdded").request_id, STR("req-1")));
	pass_time(&w, HOUR);
	CHECK(run(&w, pass_sync) == RC_OK);
	CHECK(pool_events(p, "*") == 4); /* seen again: no news */
	fake_csp_list(&w.csp, &p->arena, 1, 4);
	pass_time(&w, HOUR);
	CHECK(run(&w, pass_sync) == RC_OK);
	CHECK(str_eq(pool_event(p, "SandboxStale").subject, STR("sandbox/sb-0000")));
	fake_csp_list(&w.csp, &p->arena, 0, 4);
	pass_time(&w, HOUR);
	CHECK(run(&w, pass_sync) == RC_OK);
	CHECK(str_eq(pool_event(p, "SandboxRestored").subject, STR("sandbox/sb-0000")));
	CHECK(pool_events(p, "*") == 6);
}

TEST(sync_tells_what_is_added_missing_and_back)
{
	each_pool(check_sync_events);
}

static void check_cleanup_events(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	w.pass.by.name = STR("job/cleanup");
	w.settings.deletion_max_attempts = 1;
	make_pending(&w, 0, 1);
	w.csp.delete_rc = RC_UNAVAILABLE;
	CHECK(run(&w, pass_cleanup) == RC_OK);
	CHECK(strstr(pool_event(p, "SandboxDeletionPostponed").detail.p, "\"attempts\":1,\"nextAttemptAt\":"));
	CHECK(strstr(pool_event(p, "SandboxDeletionPostponed").detail.p, "\"error\":\"fake: will not delete acc/0\""));
	pass_time(&w, HOUR);
	CHECK(run(&w, pass_cleanup) == RC_OK);
	CHECK(strstr(pool_event(p, "SandboxDeletionFailed").detail.p, "\"attempts\":2"));
	CHECK(run(&w, pass_retry_failed) == RC_OK);
	CHECK(pool_events(p, "SandboxDeletionRetried") == 1);
	w.csp.delete_rc = RC_OK;
	CHECK(run(&w, pass_cleanup) == RC_OK);
	CHECK(str_eq(pool_event(p, "SandboxDeleted").actor, STR("job/cleanup")));
	CHECK(pool_events(p, "*") == 6); /* with those of the claim and the giving back */
}

TEST(cleanup_tells_how_each_deletion_went)
{
	each_pool(check_cleanup_events);
}

static void check_sweep_events(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	pool_fill(p, 0, 2);
	claim(&w, 0, "t");
	pass_time(&w, DAY);
	CHECK(run(&w, pass_expire) == RC_OK && run(&w, pass_expire) == RC_OK);
	CHECK(pool_events(p, "SandboxExpired") == 1);
	w.pass.status = SANDBOX_AVAILABLE;
	CHECK(run(&w, pass_bulk_delete) == RC_OK);
	CHECK(str_eq(pool_event(p, "SandboxRemoved").subject, STR("sandbox/sb-0001")));
	CHECK(pool_events(p, "*") == 3);
}

TEST(expiry_and_removals_are_told)
{
	each_pool(check_sweep_events);
}

static void check_many_queues(struct pool *p)
{
	static const struct queue queues[NEWS_QUEUES_MAX] = { { .name = "a" }, { .name = "b" }, { .name = "c" } };
	static const struct route routes[] = { { "Sandbox*", "a" }, { "Sandbox*", "b" }, { "Sandbox*", "c" } };
	struct work               w;

	work_init(&w, p);
	pool_route(p, queues, ARRAY_LEN(queues), routes, ARRAY_LEN(routes));
	fake_csp_list(&w.csp, &p->arena, 0, 60);
	CHECK(run(&w, pass_sync) == RC_OK && figure(&w, "added") == 60);
	for (int n = 0; n < 60; n++)
		claim(&w, n, pool_id(&p->arena, n).p);
	pass_time(&w, DAY);
	CHECK(run(&w, pass_expire) == RC_OK && figure(&w, "expired") == 60);
	w.pass.status = SANDBOX_PENDING_DELETION;
	CHECK(run(&w, pass_bulk_delete) == RC_OK && figure(&w, "deleted") == 60);
	CHECK(pool_events(p, "*") == 240);
}

static void check_pruned(struct pool *p)
{
	struct work w;

	work_init(&w, p);
	w.settings.event_days = 30;
	fake_csp_list(&w.csp, &p->arena, 0, 100);
	CHECK(run(&w, pass_sync) == RC_OK && pool_events(p, "*") == 100);
	pass_time(&w, 29 * DAY);
	claim(&w, 1, "t");
	pass_time(&w, 2 * DAY);
	CHECK(run(&w, pass_prune_events) == RC_OK && figure(&w, "removed") == 100);
	CHECK(pool_events(p, "*") == 1 && pool_events(p, "SandboxAllocated") == 1);
	w.settings.event_days = 0;
	pass_time(&w, 1000 * DAY);
	CHECK(run(&w, pass_prune_events) == RC_OK && pool_events(p, "*") == 1); /* kept for ever */
}

TEST(old_events_are_removed_and_no_others)
{
	each_pool(check_pruned);
}

static enum rc add_ended_saga(struct session *s, void *arg, struct err *e)
{
	const int64_t *ended_ms = arg;
	struct saga    saga = { .id = str_format(session_arena(s), "s-%lld", (long long)*ended_ms),
		                .kind = STR("follow"),
		                .subject = STR("account/1"),
		                .state = SAGA_DONE,
		                .marks = STR("d"),
		                .started_ms = *ended_ms,
		                .ended_ms = *ended_ms,
		                .due_ms = *ended_ms };

	(void)e;
	session_add(s, &saga_type, &saga);
	return RC_OK;
}

static enum rc count_done_sagas(struct session *s, void *arg, struct err *e)
{
	return session_count(s, &saga_type, SAGA_BY_STATE, value_int(SAGA_DONE), arg, e);
}

static void check_sagas_pruned(struct pool *p)
{
	struct work w;
	int64_t     left = 0;

	work_init(&w, p);
	w.settings.event_days = 30;
	for (int day = 0; day < 50; day++) {
		int64_t ended_ms = clock_now(&p->clock).ms - (day * DAY + 1) * 1000ll;

		CHECK(store_run(p->store, add_ended_saga, &ended_ms, &p->arena, NULL) == RC_OK);
	}
	CHECK(run(&w, pass_prune_events) == RC_OK && figure(&w, "removed") == 20);
	CHECK(store_read(p->store, count_done_sagas, &left, &p->arena, NULL) == RC_OK && left == 30);
}

TEST(old_sagas_that_ended_are_removed_with_the_events_of_their_time)
{
	each_pool(check_sagas_pruned);
}

TEST(each_transaction_of_a_pass_has_room_for_its_events)
{
	each_pool(check_many_queues);
}
