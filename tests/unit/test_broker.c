/* SPDX-License-Identifier: Apache-2.0 */
/* test_broker.c - every transaction of the pool, on each back end, also when it is run twice or its answer is lost. */
#include "test.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "pool.h"
#include "service/broker/broker.h"
#include "service/broker/claims_pause.h"

enum { LAB_HOURS = 4, LAB_SEC = LAB_HOURS * 3600 };

static struct claim ask(const char *owner)
{
	return (struct claim){ .ask = { .owner = str_from(owner), .lab_hours = LAB_HOURS } };
}

static enum rc run_claim(struct pool *p, struct claim *c, struct err *e)
{
	return store_run(p->store, broker_claim, c, &p->arena, e);
}

static struct sandbox claim(struct pool *p, const char *owner)
{
	struct claim c = ask(owner);

	CHECK(run_claim(p, &c, NULL) == RC_OK);
	return c.sandbox;
}

static enum rc call(struct pool *p, txn_fn *run, struct str id, const char *owner, struct sandbox *ret, struct err *e)
{
	struct sandbox_call c = { .id = id, .owner = str_from(owner), .reason = STR("because") };
	bool                is_read = run == broker_show || run == broker_inspect;
	enum rc             rc = (is_read ? store_read : store_run)(p->store, run, &c, &p->arena, e);

	if (ret)
		*ret = c.sandbox;
	return rc;
}

/* --- claims --- */

static void check_repeat(struct pool *p)
{
	struct claim first = ask("t1"), again = ask("t1");

	pool_fill(p, 0, 5);
	first.ask.idempotency_key = STR("k1");
	first.ask.track_name = STR("lab");
	CHECK(run_claim(p, &first, NULL) == RC_OK && first.is_new);
	CHECK(first.sandbox.allocated_at == POOL_NOW_SEC && first.sandbox.version == 2);
	p->clock.test_ms += (LAB_SEC - 1) * 1000ll;
	again.ask.idempotency_key = STR("another key");
	again.ask.lab_hours = 99;
	CHECK(run_claim(p, &again, NULL) == RC_OK && !again.is_new);
	CHECK(record_changes(&sandbox_type, &first.sandbox, &again.sandbox) == 0);
	CHECK(pool_count(p, SANDBOX_ALLOCATED) == 1 && pool_count(p, SANDBOX_AVAILABLE) == 4);
}

TEST(a_track_that_asks_again_gets_the_one_it_holds)
{
	each_pool(check_repeat);
}

static void check_anothers_key(struct pool *p)
{
	struct claim mine = ask("t1"), other = ask("t2");

	pool_fill(p, 0, 2);
	mine.ask.idempotency_key = other.ask.idempotency_key = STR("same");
	CHECK(run_claim(p, &mine, NULL) == RC_OK && run_claim(p, &other, NULL) == RC_OK);
	CHECK(other.is_new && !str_eq(mine.sandbox.sandbox_id, other.sandbox.sandbox_id));
}

TEST(a_key_never_gives_one_track_anothers_sandbox)
{
	each_pool(check_anothers_key);
}

static void check_after_give_back(struct pool *p)
{
	struct sandbox first, second;

	pool_fill(p, 0, 3);
	first = claim(p, "t1");
	CHECK(call(p, broker_give_back, first.sandbox_id, "t1", NULL, NULL) == RC_OK);
	second = claim(p, "t1");
	CHECK(!str_eq(first.sandbox_id, second.sandbox_id));
	CHECK(str_eq(claim(p, "t1").sandbox_id, second.sandbox_id));
	CHECK(pool_count(p, SANDBOX_ALLOCATED) == 1 && pool_count(p, SANDBOX_PENDING_DELETION) == 1);
	CHECK(pool_count(p, SANDBOX_AVAILABLE) == 1);
}

TEST(after_giving_back_a_track_gets_one_new_sandbox)
{
	each_pool(check_after_give_back);
}

static void check_expired(struct pool *p)
{
	struct sandbox first, second, old;

	pool_fill(p, 0, 3);
	first = claim(p, "t1");
	p->clock.test_ms += LAB_SEC * 1000ll;
	second = claim(p, "t1");
	CHECK(!str_eq(first.sandbox_id, second.sandbox_id) && second.allocated_at == POOL_NOW_SEC + LAB_SEC);
	old = pool_get(p, first.sandbox_id);
	CHECK(old.status == SANDBOX_PENDING_DELETION && old.deletion_requested_at == POOL_NOW_SEC + LAB_SEC);
	CHECK(pool_count(p, SANDBOX_ALLOCATED) == 1);
}

TEST(an_expired_sandbox_is_replaced_in_one_transaction)
{
	each_pool(check_expired);
}

static void check_expired_and_exhausted(struct pool *p)
{
	struct claim   again = ask("t1");
	struct sandbox first;

	pool_fill(p, 0, 1);
	first = claim(p, "t1");
	p->clock.test_ms += LAB_SEC * 1000ll;
	CHECK(run_claim(p, &again, NULL) == RC_EXHAUSTED);
	CHECK(pool_get(p, first.sandbox_id).status == SANDBOX_ALLOCATED);
}

TEST(an_expired_sandbox_stays_as_it_is_when_there_is_no_new_one)
{
	each_pool(check_expired_and_exhausted);
}

static void check_exhausted(struct pool *p)
{
	struct claim late = ask("late");
	struct err   e = { 0 };

	CHECK(run_claim(p, &late, &e) == RC_EXHAUSTED && strcmp(err_code(&e), "NO_SANDBOXES_AVAILABLE") == 0);
	pool_fill(p, 0, 2);
	claim(p, "t1");
	claim(p, "t2");
	CHECK(run_claim(p, &late, NULL) == RC_EXHAUSTED);
	CHECK(str_eq(claim(p, "t1").allocated_to_track, STR("t1")));
}

TEST(an_empty_pool_says_so_but_still_knows_its_tracks)
{
	each_pool(check_exhausted);
}

static void check_prefix(struct pool *p)
{
	struct claim c = ask("t1"), late = ask("t4");
	struct err   e = { 0 };

	pool_fill(p, 0, 6);
	c.prefix = STR("lab-0003");
	CHECK(run_claim(p, &c, NULL) == RC_OK && str_eq(c.sandbox.name, STR("lab-0003")));
	c.prefix = STR("exam");
	CHECK(run_claim(p, &c, NULL) == RC_OK && !c.is_new && str_eq(c.sandbox.name, STR("lab-0003")));
	late.prefix = STR("lab-0003");
	CHECK(run_claim(p, &late, NULL) == RC_EXHAUSTED);
	late.prefix = STR("LAB");
	CHECK(run_claim(p, &late, &e) == RC_EXHAUSTED);
	CHECK(strcmp(e.msg, "no sandbox whose name begins with 'LAB' is free") == 0);
	late.prefix = STR("exam-");
	CHECK(run_claim(p, &late, NULL) == RC_OK && str_eq(late.sandbox.name, STR("exam-0000")));
}

TEST(a_prefix_limits_a_new_claim_and_not_the_one_held)
{
	each_pool(check_prefix);
}

static void check_reserved(struct pool *p)
{
	static const struct str exams[] = { STR_INIT("lab-0001"), STR_INIT("exam") };
	static const struct str all[] = { STR_INIT("") };
	struct claim            c = ask("t1"), d = ask("t2"), first_in_line = ask("t3");
	struct err              e = { 0 };

	pool_fill(p, 0, 60);
	c.reserved = exams;
	c.reserved_count = 2;
	CHECK(run_claim(p, &c, NULL) == RC_OK && str_eq(c.sandbox.name, STR("lab-0003")));
	d.reserved = exams;
	d.reserved_count = 2;
	d.prefix = STR("exam");
	CHECK(run_claim(p, &d, &e) == RC_EXHAUSTED);
	CHECK(strcmp(e.msg, "no sandbox whose name begins with 'exam' is free") == 0);
	d.prefix = STR("");
	d.reserved = all;
	d.reserved_count = 1;
	err_clear(&e);
	CHECK(run_claim(p, &d, &e) == RC_EXHAUSTED);
	CHECK(strcmp(e.msg, "no sandbox is free") == 0);
	first_in_line.prefix = STR("exam");
	CHECK(run_claim(p, &first_in_line, NULL) == RC_OK && str_eq(first_in_line.sandbox.name, STR("exam-0000")));
	c.reserved = all;
	c.reserved_count = 1;
	CHECK(run_claim(p, &c, NULL) == RC_OK && !c.is_new);
}

TEST(beside_the_line_one_gets_only_what_nobody_waits_for)
{
	each_pool(check_reserved);
}

static void check_reserved_far(struct pool *p)
{
	static const struct str exams[] = { STR_INIT("exam") };
	struct claim            c = ask("t1");

	for (int n = 0; n < 100; n += 2)
		pool_fill(p, n, n + 1);
	pool_fill(p, 101, 102);
	c.reserved = exams;
	c.reserved_count = 1;
	CHECK(run_claim(p, &c, NULL) == RC_OK && str_eq(c.sandbox.name, STR("lab-0101")));
}

TEST(what_nobody_waits_for_is_found_behind_several_pages)
{
	each_pool(check_reserved_far);
}

/* --- one sandbox --- */

static void check_give_back(struct pool *p)
{
	struct sandbox s, back, again;
	struct err     e = { 0 };

	pool_fill(p, 0, 3);
	s = claim(p, "t1");
	CHECK(call(p, broker_give_back, s.sandbox_id, "t2", NULL, &e) == RC_DENIED);
	CHECK(strcmp(err_code(&e), "NOT_SANDBOX_OWNER") == 0 && !strstr(e.msg, "t1"));
	CHECK(call(p, broker_give_back, pool_id(&p->arena, 2), "t1", NULL, NULL) == RC_DENIED);
	CHECK(call(p, broker_give_back, s.sandbox_id, "t1", &back, NULL) == RC_OK);
	CHECK(back.status == SANDBOX_PENDING_DELETION && back.deletion_requested_at == POOL_NOW_SEC);
	p->clock.test_ms += 5000;
	CHECK(call(p, broker_give_back, s.sandbox_id, "t1", &again, NULL) == RC_OK);
	CHECK(again.deletion_requested_at == POOL_NOW_SEC && again.version == back.version);
	CHECK(pool_get(p, s.sandbox_id).version == back.version);
}

TEST(giving_back_again_changes_nothing)
{
	each_pool(check_give_back);
}

static void check_give_back_late(struct pool *p)
{
	struct sandbox s;
	struct err     e = { 0 };

	pool_fill(p, 0, 1);
	s = claim(p, "t1");
	p->clock.test_ms += LAB_SEC * 1000ll;
	CHECK(call(p, broker_give_back, s.sandbox_id, "t1", NULL, &e) == RC_DENIED);
	CHECK(strcmp(err_code(&e), "ALLOCATION_EXPIRED") == 0);
	CHECK(pool_get(p, s.sandbox_id).status == SANDBOX_ALLOCATED);
	p->clock.test_ms -= 1000;
	CHECK(call(p, broker_give_back, s.sandbox_id, "t1", NULL, NULL) == RC_OK);
}

TEST(giving_back_too_late_is_refused)
{
	each_pool(check_give_back_late);
}

static void check_show(struct pool *p)
{
	struct sandbox s, shown;

	pool_fill(p, 0, 2);
	s = claim(p, "t1");
	CHECK(call(p, broker_show, s.sandbox_id, "t1", &shown, NULL) == RC_OK);
	CHECK(record_changes(&sandbox_type, &s, &shown) == 0);
	CHECK(call(p, broker_show, s.sandbox_id, "t2", NULL, NULL) == RC_DENIED);
	CHECK(call(p, broker_show, pool_id(&p->arena, 1), "t1", NULL, NULL) == RC_DENIED);
	CHECK(call(p, broker_inspect, pool_id(&p->arena, 1), "", &shown, NULL) == RC_OK);
	CHECK(shown.status == SANDBOX_AVAILABLE);
	CHECK(call(p, broker_give_back, s.sandbox_id, "t1", NULL, NULL) == RC_OK);
	CHECK(call(p, broker_show, s.sandbox_id, "t1", &shown, NULL) == RC_OK);
	CHECK(shown.status == SANDBOX_PENDING_DELETION);
}

TEST(an_owner_sees_its_own_and_an_operator_sees_all)
{
	each_pool(check_show);
}

static void check_quarantine(struct pool *p)
{
	struct sandbox held, aside;

	pool_fill(p, 0, 3);
	held = claim(p, "t1");
	CHECK(call(p, broker_release, held.sandbox_id, "", NULL, NULL) == RC_CONFLICT);
	CHECK(call(p, broker_quarantine, held.sandbox_id, "", &aside, NULL) == RC_OK);
	CHECK(aside.status == SANDBOX_STALE && str_eq(aside.quarantine_reason, STR("because")));
	CHECK(!str_eq(claim(p, "t1").sandbox_id, held.sandbox_id));
	CHECK(call(p, broker_give_back, held.sandbox_id, "t1", NULL, NULL) == RC_CONFLICT);
	CHECK(call(p, broker_release, held.sandbox_id, "", &aside, NULL) == RC_OK);
	CHECK(aside.status == SANDBOX_PENDING_DELETION && aside.quarantine_reason.n == 0);

	CHECK(call(p, broker_quarantine, pool_id(&p->arena, 2), "", NULL, NULL) == RC_OK);
	CHECK(pool_count(p, SANDBOX_AVAILABLE) == 0);
	CHECK(call(p, broker_release, pool_id(&p->arena, 2), "", &aside, NULL) == RC_OK);
	CHECK(aside.status == SANDBOX_AVAILABLE && pool_count(p, SANDBOX_AVAILABLE) == 1);
}

TEST(a_quarantine_takes_a_sandbox_away_and_a_release_never_lends_a_used_one)
{
	each_pool(check_quarantine);
}

static void check_retry(struct pool *p)
{
	struct sandbox s;

	pool_fill(p, 0, 1);
	s = claim(p, "t1");
	CHECK(call(p, broker_retry_deletion, s.sandbox_id, "", NULL, NULL) == RC_CONFLICT);
	s.status = SANDBOX_DELETION_FAILED;
	s.deletion_requested_at = POOL_NOW_SEC;
	s.deletion_retry_count = 4;
	s.next_deletion_at = POOL_NOW_SEC + 100;
	pool_put(p, s);
	CHECK(call(p, broker_retry_deletion, s.sandbox_id, "", &s, NULL) == RC_OK);
	s = pool_get(p, s.sandbox_id);
	CHECK(s.status == SANDBOX_PENDING_DELETION && s.deletion_retry_count == 0 && s.next_deletion_at == 0);
}

TEST(a_failed_deletion_can_be_retried)
{
	each_pool(check_retry);
}

static void check_unknown(struct pool *p)
{
	static txn_fn *const calls[] = { broker_show,       broker_inspect, broker_give_back,
		                         broker_quarantine, broker_release, broker_retry_deletion };

	pool_fill(p, 0, 1);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct err e = { 0 };

		CHECK(call(p, calls[i], STR("nobody"), "t1", NULL, &e) == RC_NOT_FOUND);
		CHECK(strcmp(err_code(&e), "SANDBOX_NOT_FOUND") == 0 && strstr(e.msg, "nobody"));
	}
	CHECK(!pool_has(p, STR("nobody")));
}

TEST(an_unknown_id_is_not_found_by_any_call)
{
	each_pool(check_unknown);
}

/* --- list and count --- */

static size_t list_all(struct pool *p, bool has_status, enum sandbox_state status, size_t limit)
{
	struct sandbox_list l = { .has_status = has_status, .status = status, .limit = limit };
	size_t              seen = 0;

	do {
		CHECK(store_read(p->store, broker_list, &l, &p->arena, NULL) == RC_OK);
		CHECK(l.page.count <= limit);
		for (size_t i = 0; has_status && i < l.page.count; i++)
			CHECK(((struct sandbox *)page_record(&l.page, &sandbox_type, i))->status == status);
		seen += l.page.count;
		l.cursor = l.page.next;
	} while (l.cursor.n);
	return seen;
}

static void check_list(struct pool *p)
{
	struct pool_counts c;

	pool_fill(p, 0, 25);
	for (int i = 0; i < 7; i++)
		claim(p, str_format(&p->arena, "t%d", i).p);
	CHECK(call(p, broker_quarantine, pool_id(&p->arena, 20), "", NULL, NULL) == RC_OK);
	CHECK(store_read(p->store, broker_count, &c, &p->arena, NULL) == RC_OK);
	CHECK(c.total == 25 && c.by_state[SANDBOX_AVAILABLE] == 17 && c.by_state[SANDBOX_ALLOCATED] == 7);
	CHECK(c.by_state[SANDBOX_STALE] == 1 && c.by_state[SANDBOX_PENDING_DELETION] == 0);
	for (size_t limit = 1; limit <= 30; limit += 4) {
		CHECK(list_all(p, false, 0, limit) == 25);
		for (int state = 0; state < SANDBOX_STATE_COUNT; state++)
			CHECK((int64_t)list_all(p, true, (enum sandbox_state)state, limit) == c.by_state[state]);
	}
}

TEST(lists_and_counts_agree)
{
	each_pool(check_list);
}

static void check_stats(struct pool *p)
{
	enum { GONE_AT_VENDOR = 600, SET_ASIDE = 3 }; /* more than one page of stale ones */
	struct pool_stats stats;

	pool_fill(p, 0, GONE_AT_VENDOR + SET_ASIDE + 1);
	CHECK(store_read(p->store, broker_stats, &stats, &p->arena, NULL) == RC_OK);
	CHECK(stats.quarantined == 0 && stats.counts.total == GONE_AT_VENDOR + SET_ASIDE + 1);
	for (int i = 0; i < GONE_AT_VENDOR; i++) {
		struct sandbox s = pool_get(p, pool_id(&p->arena, i));

		s.status = SANDBOX_STALE;
		pool_put(p, s);
	}
	for (int i = GONE_AT_VENDOR; i < GONE_AT_VENDOR + SET_ASIDE; i++)
		CHECK(call(p, broker_quarantine, pool_id(&p->arena, i), "", NULL, NULL) == RC_OK);
	CHECK(store_read(p->store, broker_stats, &stats, &p->arena, NULL) == RC_OK);
	CHECK(stats.quarantined == SET_ASIDE);
	CHECK(stats.counts.by_state[SANDBOX_STALE] == GONE_AT_VENDOR + SET_ASIDE);
	CHECK(stats.counts.by_state[SANDBOX_AVAILABLE] == 1);
}

TEST(stats_tell_the_quarantined_from_the_other_stale_ones)
{
	each_pool(check_stats);
}

/* --- lost answers --- */

static void lose_next_answer(struct pool *p)
{
	p->plan.next = FAULT_AFTER;
	p->plan.count = 1;
}

static void check_lost_answers(struct pool *p)
{
	struct claim   c = ask("t1");
	struct sandbox back;

	if (p->plan.count)
		return; /* the plan is taken: these pools run everything twice */
	pool_fill(p, 0, 3);
	lose_next_answer(p);
	CHECK(run_claim(p, &c, NULL) == RC_UNAVAILABLE);
	CHECK(run_claim(p, &c, NULL) == RC_OK && !c.is_new && pool_count(p, SANDBOX_ALLOCATED) == 1);
	lose_next_answer(p);
	CHECK(call(p, broker_give_back, c.sandbox.sandbox_id, "t1", NULL, NULL) == RC_UNAVAILABLE);
	p->clock.test_ms += 5000;
	CHECK(call(p, broker_give_back, c.sandbox.sandbox_id, "t1", &back, NULL) == RC_OK);
	CHECK(back.deletion_requested_at == POOL_NOW_SEC);
	lose_next_answer(p);
	CHECK(call(p, broker_quarantine, pool_id(&p->arena, 2), "", NULL, NULL) == RC_UNAVAILABLE);
	CHECK(call(p, broker_quarantine, pool_id(&p->arena, 2), "", NULL, NULL) == RC_OK);
	lose_next_answer(p);
	CHECK(call(p, broker_release, pool_id(&p->arena, 2), "", NULL, NULL) == RC_UNAVAILABLE);
	CHECK(call(p, broker_release, pool_id(&p->arena, 2), "", NULL, NULL) == RC_CONFLICT);
	CHECK(pool_get(p, pool_id(&p->arena, 2)).status == SANDBOX_AVAILABLE);
	CHECK(p->plan.injected == 4);
}

TEST(who_repeats_a_call_whose_answer_was_lost_gets_the_same_end)
{
	each_pool(check_lost_answers);
}

/* --- many at once --- */

enum { THREADS = 8, TRACKS = 16 };

struct crowd {
	pthread_t     thread;
	struct store *store;
	char          got[TRACKS][16];
	int           failed, made;
};

static void *claim_for_all_tracks(void *arg)
{
	struct crowd *c = arg;

	for (int track = 0; track < TRACKS; track++) {
		struct arena a = { 0 };
		char         owner[16];
		struct claim claim_of_track;

		snprintf(owner, sizeof(owner), "track-%d", track);
		claim_of_track = ask(owner);
		if (store_run(c->store, broker_claim, &claim_of_track, &a, NULL))
			c->failed++;
		else
			snprintf(c->got[track], sizeof(c->got[track]), "%.*s",
			         STR_ARG(claim_of_track.sandbox.sandbox_id));
		c->made += claim_of_track.is_new;
		arena_fini(&a);
	}
	return NULL;
}

TEST(a_crowd_never_shares_a_sandbox_nor_gets_two)
{
	static struct crowd crowd[THREADS];
	struct pool         p;
	int                 made = 0;

	pool_open_sqlite(&p);
	pool_fill(&p, 0, 40);
	for (int i = 0; i < THREADS; i++) {
		crowd[i].store = p.store;
		CHECK(pthread_create(&crowd[i].thread, NULL, claim_for_all_tracks, &crowd[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK(pthread_join(crowd[i].thread, NULL) == 0);
		made += crowd[i].made;
	}
	for (int track = 0; track < TRACKS; track++) {
		for (int i = 0; i < THREADS; i++)
			CHECK(crowd[i].failed == 0 && strcmp(crowd[i].got[track], crowd[0].got[track]) == 0);
		for (int other = 0; other < track; other++)
			CHECK(strcmp(crowd[0].got[track], crowd[0].got[other]) != 0);
	}
	CHECK(made == TRACKS && pool_count(&p, SANDBOX_ALLOCATED) == TRACKS);
	pool_close(&p);
}

/* --- records that other hands have damaged --- */

static void run_sql(struct pool *p, const char *statement, int changes)
{
	sqlite3   *db = NULL;
	struct str path = str_format(&p->arena, "%s/store.db", p->folder);

	CHECK(sqlite3_open(path.p, &db) == SQLITE_OK);
	CHECK(sqlite3_exec(db, statement, NULL, NULL, NULL) == SQLITE_OK && sqlite3_total_changes(db) == changes);
	CHECK(sqlite3_close(db) == SQLITE_OK);
}

TEST(an_available_record_with_an_owner_is_left_out)
{
	struct pool  p;
	struct claim late = ask("t2");

	pool_open_sqlite(&p);
	pool_fill(&p, 0, 4);
	run_sql(&p, "UPDATE sandbox SET allocated_to_track = 'old' WHERE sandbox_id < 'sb-0003'", 3);
	pool_reopen(&p);
	CHECK(str_eq(claim(&p, "t1").sandbox_id, STR("sb-0003")));
	CHECK(run_claim(&p, &late, NULL) == RC_EXHAUSTED);
	CHECK(call(&p, broker_inspect, STR("sb-0000"), "", NULL, NULL) == RC_CORRUPT);
	pool_close(&p);
}

TEST(a_track_whose_sandbox_another_program_has_deleted_gets_a_new_one)
{
	struct pool  p;
	struct claim again = ask("t1");
	struct err   e = { 0 };

	pool_open_sqlite(&p);
	pool_fill(&p, 0, 4);
	CHECK(str_eq(claim(&p, "t1").sandbox_id, STR("sb-0000")));
	run_sql(&p, "DELETE FROM sandbox_row WHERE sandbox_id = 'sb-0000'", 1);
	CHECK(run_claim(&p, &again, &e) == RC_UNAVAILABLE && strstr(e.msg, "read again") != NULL);
	CHECK(str_eq(claim(&p, "t1").sandbox_id, STR("sb-0001")));
	pool_close(&p);
}

/* --- events --- */

static void check_told(struct pool *p, const char *type, const char *actor, const char *detail_part)
{
	struct event e = pool_event(p, type);

	CASE(type);
	CHECK(str_eq(e.actor, str_from(actor)));
	CHECK(str_starts_with(e.subject, STR("sandbox/sb-")));
	CHECK(strstr(e.detail.p, detail_part));
	CHECK(strstr(e.detail.p, "\"sandboxId\":\"sb-"));
	CASE("");
}

static void check_track_events(struct pool *p)
{
	struct claim   c = ask("t1");
	struct sandbox second;

	pool_fill(p, 0, 3);
	c.by.request_id = STR("req-1");
	CHECK(run_claim(p, &c, NULL) == RC_OK);
	check_told(p, "SandboxAllocated", "track/t1", "\"track\":\"t1\",\"expiresAt\":1000014400}");
	CHECK(str_eq(pool_event(p, "SandboxAllocated").request_id, STR("req-1")));
	CHECK(run_claim(p, &c, NULL) == RC_OK && !c.is_new);
	CHECK(pool_events(p, "*") == 1); /* the same again is no news */
	p->clock.test_ms += LAB_SEC * 1000ll;
	second = claim(p, "t1");
	CHECK(pool_events(p, "*") == 3);
	check_told(p, "SandboxExpired", "track/t1", "\"sandboxId\":\"sb-0000\"");
	CHECK(call(p, broker_give_back, second.sandbox_id, "t1", NULL, NULL) == RC_OK);
	CHECK(call(p, broker_give_back, second.sandbox_id, "t1", NULL, NULL) == RC_OK);
	check_told(p, "SandboxMarkedForDeletion", "track/t1", "\"name\":\"");
	CHECK(pool_events(p, "*") == 4);
	CHECK(call(p, broker_give_back, second.sandbox_id, "t2", NULL, NULL) == RC_DENIED);
	CHECK(pool_events(p, "*") == 4);
}

TEST(what_a_track_does_is_told_once)
{
	each_pool(check_track_events);
}

static enum rc operate(struct pool *p, txn_fn *run, struct str id)
{
	struct sandbox_call c = { .id = id, .reason = STR("because"), .by = { STR("admin"), STR("req-2") } };

	return store_run(p->store, run, &c, &p->arena, NULL);
}

static void check_operator_events(struct pool *p)
{
	struct str     id = pool_id(&p->arena, 0);
	struct sandbox failed;

	pool_fill(p, 0, 1);
	CHECK(operate(p, broker_quarantine, id) == RC_OK);
	check_told(p, "SandboxQuarantined", "admin", "\"reason\":\"because\"");
	CHECK(operate(p, broker_release, id) == RC_OK);
	check_told(p, "SandboxReleased", "admin", "\"status\":\"available\"");
	CHECK(operate(p, broker_retry_deletion, id) == RC_CONFLICT);
	failed = pool_get(p, id);
	failed.status = SANDBOX_DELETION_FAILED;
	failed.allocated_at = failed.deletion_requested_at = POOL_NOW_SEC;
	failed.allocated_to_track = STR("t1");
	pool_put(p, failed);
	CHECK(operate(p, broker_retry_deletion, id) == RC_OK);
	check_told(p, "SandboxDeletionRetried", "admin", "\"track\":\"t1\"}");
	CHECK(str_eq(pool_event(p, "SandboxDeletionRetried").request_id, STR("req-2")));
	CHECK(pool_events(p, "*") == 3);
}

TEST(what_an_operator_does_is_told_once)
{
	each_pool(check_operator_events);
}

static void check_longest_detail(struct pool *p)
{
	struct csp_account account = pool_account(&p->arena, 0);
	struct sandbox     s;
	char               text[SANDBOX_EXTERNAL_ID_MAX];

	memset(text, '\x01', sizeof(text));
	account.name = str_of(text, SANDBOX_NAME_MAX);
	account.external_id = str_of(text, SANDBOX_EXTERNAL_ID_MAX);
	s = sandbox_from_account(&account, 4, (struct wall){ POOL_NOW_SEC * 1000ll });
	pool_put(p, s);
	CHECK(str_eq(claim(p, "t1").sandbox_id, account.sandbox_id));
	CHECK(pool_event(p, "SandboxAllocated").detail.n > 6 * (SANDBOX_NAME_MAX + SANDBOX_EXTERNAL_ID_MAX));
}

TEST(the_longest_texts_fit_into_an_event)
{
	each_pool(check_longest_detail);
}

/* --- the switch of all claims --- */

static struct claims_pause turn(struct pool *p, bool is_paused)
{
	struct claims_pause c = { .is_paused = is_paused, .reason = STR("a restore"), .by = { STR("admin"), STR("") } };

	CHECK(store_run(p->store, claims_pause_set, &c, &p->arena, NULL) == RC_OK);
	return c;
}

/* A reading takes its time, and a change may come in between. */
static void check_switch(struct pool *p)
{
	struct claims_switch w = { 0 };
	struct claims_pause  before = { 0 }, paused, again, resumed;
	struct claim         c = ask("t1");

	pool_fill(p, 0, 1);
	c.lending = &w;
	CHECK(store_read(p->store, claims_pause_get, &before, &p->arena, NULL) == RC_OK);
	paused = turn(p, true);
	claims_switch_note(&w, &paused);
	claims_switch_note(&w, &before);
	CHECK(claims_switch_is_paused(&w) && run_claim(p, &c, NULL) != RC_OK);
	CHECK(store_read(p->store, claims_pause_get, &again, &p->arena, NULL) == RC_OK);
	CHECK(again.version == paused.version && again.is_paused);
	resumed = turn(p, false);
	claims_switch_note(&w, &resumed);
	claims_switch_note(&w, &again);
	CHECK(!claims_switch_is_paused(&w) && run_claim(p, &c, NULL) == RC_OK);
	CHECK(claims_switch_refresh(&w, p->store, NULL) == RC_OK && !claims_switch_is_paused(&w));
}

TEST(an_older_reading_of_the_switch_undoes_no_change)
{
	each_pool(check_switch);
}
