/* SPDX-License-Identifier: Apache-2.0 */
/* test_account_clean.c - cleanups that succeed, fail, lie still, never end, wait for their turn, and go on after a
 * crash. */
#include "test.h"

#include <string.h>

#include "account_rig.h"
#include "providers/sim/records.h"
#include "service/account/account_report.h"
#include "service/pool/account_slots.h"
#include "service/record/lease_records.h"
#include "store/session.h"

static enum rc read_runs(struct session *s, void *arg, struct err *e)
{
	return session_count(s, &sim_run_type, QUERY_ALL, value_int(0), arg, e);
}

/* How many runs there were, at the cleaner. */
static int64_t count_runs(struct account_rig *r)
{
	int64_t count = -1;

	CHECK(store_read(r->sim_store, read_runs, &count, &r->rig.arena, &r->err) == RC_OK);
	return count;
}

/* Register number n and let it arrive in CleanUp: its cleanup begins. */
static struct str begin_cleanup(struct account_rig *r, size_t n)
{
	struct str id = nth_account(r, n);

	do_account(r, account_register, id);
	(void)rig_turn(&r->rig);
	CHECK(where_is(r, id) == SIM_OU_CLEANUP);
	return id;
}

/* Let time pass until the cleanup is over. */
static struct account finish_cleanup(struct account_rig *r, struct str id, int64_t minutes)
{
	struct account a = get_account(r, id);

	for (int64_t i = 0; i < minutes && (a.status == ACCOUNT_CLEANUP || a.is_following); i++) {
		rig_pass(&r->rig, MINUTE_MS);
		a = get_account(r, id);
	}
	return a;
}

TEST(two_failures_are_forgiven_and_the_successes_must_be_in_a_row)
{
	struct account_rig r = { 0 };
	struct account     a;
	struct str         id;

	account_rig_open(&r);
	r.policy.clean_successes = 3;
	goes_wrong(&r, WORLD_CLEAN_FAILS, WORLD_ANY_CALL, 2);
	id = begin_cleanup(&r, 0);
	a = finish_cleanup(&r, id, 300);
	CHECK(a.status == ACCOUNT_AVAILABLE && where_is(&r, id) == SIM_OU_AVAILABLE);
	CHECK(a.clean_failures == 2 && a.clean_successes == 3);
	CHECK(text_has(a.clean_log, "attempt 2 failed: 3 resources could not be deleted\nattempt 3 succeeded\n"));
	CHECK(text_has(a.clean_log, "attempt 5 succeeded\n") && !text_has(a.clean_log, "attempt 6"));
	CHECK(count_runs(&r) == 5);
	CHECK(count_events(&r, "AccountCleanupSucceeded") == 1 && count_events(&r, "AccountCleanupFailed") == 0);
	account_rig_close(&r);
}

/* A cleaner that reports: the first run of the two finds two resources, the second one nothing. */
struct reporting {
	struct cleaner  base;
	struct cleaner *inner;
	int             over;
};

static enum rc report_start(struct cleaner *base, struct str account_id, struct str key, struct arena *a,
                            struct str *ret_run_id, struct err *e)
{
	struct cleaner *inner = CONTAINER_OF(base, struct reporting, base)->inner;

	return inner->ops->start(inner, account_id, key, a, ret_run_id, e);
}

static enum rc report_check(struct cleaner *base, struct str run_id, struct arena *a, struct cloud_run *ret,
                            struct err *e)
{
	static const struct cloud_run_report reports[] = {
		{ .exit_code = 0,
		  .found = 3,
		  .filtered = 1,
		  .removed = 2,
		  .removed_list = STR_INIT("r - A - 1\nr - A - 2\n"),
		  .kept_list = STR_INIT("r - B - 1 - filtered\n"),
		  .log = STR_INIT("first\n") },
		{ .found = 1,
		  .filtered = 1,
		  .kept_list = STR_INIT("r - B - 1 - filtered\n"),
		  .log = STR_INIT("second\n") },
	};
	struct reporting *w = CONTAINER_OF(base, struct reporting, base);
	enum rc           rc = w->inner->ops->check(w->inner, run_id, a, ret, e);

	if (!rc && ret->state != CLOUD_RUNNING)
		ret->report = &reports[w->over++ % 2];
	return rc;
}

static const struct cleaner_ops reporting_ops = { report_start, report_check };

struct wanted_report {
	struct str            id;
	struct account_report report;
};

static enum rc read_report(struct session *s, void *arg, struct err *e)
{
	struct wanted_report *w = arg;

	return session_get(s, &account_report_type, w->id, &w->report, e);
}

TEST(what_the_runs_of_one_cleanup_removed_adds_up_and_the_next_cleanup_begins_anew)
{
	struct reporting     w = { .base = { &reporting_ops } };
	struct account_rig   r = { 0 };
	struct wanted_report got = { 0 };

	account_rig_open(&r);
	w.inner = r.clean.cleaner;
	r.clean.cleaner = &w.base;
	got.id = begin_cleanup(&r, 0);
	CHECK(store_read(r.rig.store, read_report, &got, &r.rig.arena, NULL) == RC_NOT_FOUND);
	for (int round = 0; round < 2; round++) {
		CHECK(finish_cleanup(&r, got.id, 300).status == ACCOUNT_AVAILABLE);
		CHECK(store_read(r.rig.store, read_report, &got, &r.rig.arena, NULL) == RC_OK);
		CHECK(got.report.runs == 2 && got.report.removed == 2 && got.report.found == 1);
		CHECK(str_eq(got.report.removed_list, STR("r - A - 1\nr - A - 2\n")));
		CHECK(str_eq(got.report.kept_list, STR("r - B - 1 - filtered\n")));
		CHECK(str_eq(got.report.log, STR("second\n")));
		CHECK(str_eq(got.report.cleanup, get_account(&r, got.id).clean_run));
		if (round == 0)
			take_back(&r, lend(&r, ANN).uuid);
	}
	account_rig_close(&r);
}

TEST(a_failure_between_two_successes_begins_the_row_anew)
{
	struct account_rig r = { 0 };
	struct account     a;
	struct str         id;

	account_rig_open(&r);
	id = begin_cleanup(&r, 0);
	for (int i = 0; i < 60 && get_account(&r, id).clean_successes < 1; i++)
		rig_pass(&r.rig, MINUTE_MS / 4);
	goes_wrong(&r, WORLD_CLEAN_FAILS, WORLD_ANY_CALL, 1);
	a = finish_cleanup(&r, id, 300);
	CHECK(a.status == ACCOUNT_AVAILABLE && a.clean_failures == 1 && a.clean_successes == 2);
	CHECK(text_has(a.clean_log, "attempt 1 succeeded\nattempt 2 failed") &&
	      text_has(a.clean_log, "attempt 4 succeeded"));
	account_rig_close(&r);
}

TEST(what_fails_too_often_is_quarantined_with_the_reason)
{
	struct account_rig r = { 0 };
	struct event       told;
	struct account     a;
	struct str         id;

	account_rig_open(&r);
	goes_wrong(&r, WORLD_CLEAN_FAILS, WORLD_ANY_CALL, 0);
	id = begin_cleanup(&r, 0);
	a = finish_cleanup(&r, id, 300);
	CHECK(a.status == ACCOUNT_QUARANTINE && where_is(&r, id) == SIM_OU_QUARANTINE);
	CHECK(text_has(a.reason, "3 attempts failed") && text_has(a.reason, "3 resources could not be deleted"));
	told = last_event(&r, "AccountCleanupFailed");
	CHECK(str_eq(told.source, STR("account-cleaner")) && text_has(told.detail, "ACCOUNT_REGISTRATION"));
	CHECK(text_has(told.detail, "stateMachineExecutionStartTime\":\"2023-11-14T22:13:2"));
	CHECK(count_events(&r, "AccountCleanupSucceeded") == 0);

	goes_well(&r);
	do_account(&r, account_retry_cleanup, id);
	a = finish_cleanup(&r, id, 300);
	CHECK(a.status == ACCOUNT_AVAILABLE && a.reason.n == 0 && a.clean_failures == 0);
	CHECK(text_has(last_event(&r, "CleanAccountRequest").detail, "RETRY_FAILED_CLEANUP"));
	CHECK(try_account(&r, account_retry_cleanup, id) == RC_CONFLICT);
	account_rig_close(&r);
}

TEST(a_run_that_does_not_end_counts_as_failed_after_an_hour)
{
	struct account_rig r = { .sim_options = { .clean_min_ms = 20 * HOUR_MS, .clean_max_ms = 20 * HOUR_MS } };
	struct account     a;
	struct str         id;

	account_rig_open(&r);
	id = begin_cleanup(&r, 0);
	rig_pass(&r.rig, 59 * MINUTE_MS);
	CHECK(get_account(&r, id).clean_failures == 0);
	rig_pass(&r.rig, 2 * MINUTE_MS);
	CHECK(get_account(&r, id).clean_failures == 1);
	a = finish_cleanup(&r, id, 150);
	CHECK(a.status == ACCOUNT_QUARANTINE && text_has(a.reason, "did not end within 60 min"));
	account_rig_close(&r);
}

TEST(a_cleanup_that_never_ends_is_given_up_after_twelve_hours)
{
	struct account_rig r = { .sim_options = { .clean_min_ms = 20 * HOUR_MS, .clean_max_ms = 20 * HOUR_MS } };
	struct account     a;
	struct str         id;

	account_rig_open(&r);
	r.policy.clean_failures_max = 1000;
	id = begin_cleanup(&r, 0);
	rig_pass(&r.rig, 12 * HOUR_MS - MINUTE_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_CLEANUP && count_events(&r, "AccountCleanupFailed") == 0);
	a = finish_cleanup(&r, id, 5);
	CHECK(a.status == ACCOUNT_QUARANTINE && text_has(a.reason, "not clean within 12 h"));
	CHECK(count_events(&r, "AccountCleanupFailed") == 1);
	account_rig_close(&r);
}

TEST(a_cleaner_out_of_reach_is_no_failure_but_not_for_ever)
{
	struct account_rig r = { 0 };
	struct account     a;
	struct str         id, other;

	account_rig_open(&r);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_CLEAN, 0);
	id = begin_cleanup(&r, 0);
	rig_pass(&r.rig, 3 * HOUR_MS);
	CHECK(get_account(&r, id).clean_failures == 0 && get_account(&r, id).status == ACCOUNT_CLEANUP);
	goes_well(&r);
	CHECK(finish_cleanup(&r, id, 120).status == ACCOUNT_AVAILABLE);

	goes_wrong(&r, WORLD_OUTAGE, WORLD_CHECK_RUN, 0);
	other = begin_cleanup(&r, 0);
	a = finish_cleanup(&r, other, 13 * 60);
	CHECK(a.status == ACCOUNT_QUARANTINE && count_events(&r, "AccountCleanupFailed") == 1);
	account_rig_close(&r);
}

TEST(a_second_request_while_one_runs_is_refused)
{
	struct account_rig r = { 0 };
	struct account     before, a;
	struct str         id;

	account_rig_open(&r);
	id = begin_cleanup(&r, 0);
	rig_pass(&r.rig, MINUTE_MS);
	before = get_account(&r, id);
	CHECK(try_account(&r, account_retry_cleanup, id) == RC_CONFLICT);
	(void)rig_turn(&r.rig);
	a = get_account(&r, id);
	CHECK(before.clean_run.n && str_eq(a.clean_run, before.clean_run) &&
	      a.clean_started_ms == before.clean_started_ms);
	CHECK(count_events(&r, "CleanAccountRequest") == 1);
	CHECK(finish_cleanup(&r, id, 120).status == ACCOUNT_AVAILABLE);
	CHECK(count_runs(&r) == 2 && count_events(&r, "AccountCleanupSucceeded") == 1);
	account_rig_close(&r);
}

TEST(a_start_that_timed_out_after_its_effect_is_the_same_run)
{
	struct account_rig r = { 0 };
	struct account     a;
	struct str         id;

	account_rig_open(&r);
	goes_wrong(&r, WORLD_TIMEOUT_AFTER, WORLD_CLEAN, 1);
	id = begin_cleanup(&r, 0);
	a = finish_cleanup(&r, id, 120);
	CHECK(a.status == ACCOUNT_AVAILABLE && a.clean_failures == 0);
	CHECK(count_runs(&r) == 2);
	CHECK(text_has(a.clean_log, "attempt 2 succeeded") && !text_has(a.clean_log, "attempt 3"));
	account_rig_close(&r);
}

TEST(a_crash_after_any_call_is_survived)
{
	struct account_rig r = { 0 };
	struct str         id;
	int                crashes = 0;

	account_rig_open(&r);
	goes_wrong(&r, WORLD_CLEAN_FAILS, WORLD_ANY_CALL, 1);
	id = nth_account(&r, 0);
	do_account(&r, account_register, id);
	for (int i = 0; i < 2000 && get_account(&r, id).status != ACCOUNT_AVAILABLE; i++) {
		if (crash_after_call(&r)) {
			crashes++;
			r.rig.clock.test_ms += 3 * MINUTE_MS; /* the claim of the dead process runs out */
			(void)rig_turn(&r.rig);
		}
		r.rig.clock.test_ms += MINUTE_MS / 12;
	}
	CHECK(get_account(&r, id).status == ACCOUNT_AVAILABLE && crashes > 10);
	CHECK(get_account(&r, id).clean_failures == 1 && get_account(&r, id).clean_successes == 2);
	CHECK(count_events(&r, "AccountCleanupSucceeded") == 1 && count_runs(&r) == 3);
	account_rig_close(&r);
}

TEST(an_account_that_is_quarantined_meanwhile_is_not_declared_clean)
{
	struct account_rig r = { 0 };
	struct str         id, other;

	account_rig_open(&r);
	r.clean.at_once = 1;
	id = begin_cleanup(&r, 0);
	other = begin_cleanup(&r, 0);
	do_account(&r, account_quarantine, id);
	rig_pass(&r.rig, 5 * MINUTE_MS);
	CHECK(get_account(&r, other).clean_run.n > 0); /* its slot is free again */
	rig_pass(&r.rig, 2 * HOUR_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_QUARANTINE && get_account(&r, other).status == ACCOUNT_AVAILABLE);
	CHECK(count_events(&r, "AccountCleanupSucceeded") == 1);
	account_rig_close(&r);
}

/* --- how many at once --- */

static size_t count_cleaning(struct account_rig *r, const struct str *ids, size_t count)
{
	size_t running = 0;

	for (size_t i = 0; i < count; i++) {
		struct account a = get_account(r, ids[i]);

		running += account_clean_is_running(&a, clock_now(&r->rig.clock));
	}
	return running;
}

TEST(so_many_at_once_and_everyone_s_turn_comes)
{
	enum { ACCOUNTS = 7, AT_ONCE = 2 };
	struct account_rig r = { .clean = { .at_once = AT_ONCE } };
	struct str         ids[ACCOUNTS];
	size_t             most = 0, free = 0;

	account_rig_open(&r);
	for (size_t i = 0; i < ACCOUNTS; i++)
		ids[i] = nth_account(&r, i);
	for (size_t i = 0; i < ACCOUNTS; i++)
		do_account(&r, account_register, ids[i]);
	for (int i = 0; i < 600 && free < ACCOUNTS; i++) {
		size_t running;

		rig_pass(&r.rig, MINUTE_MS);
		running = count_cleaning(&r, ids, ACCOUNTS);
		most = running > most ? running : most;
		free = 0;
		for (size_t j = 0; j < ACCOUNTS; j++)
			free += get_account(&r, ids[j]).status == ACCOUNT_AVAILABLE;
		CHECK(running == AT_ONCE || free + AT_ONCE > ACCOUNTS); /* no slot is idle while somebody waits */
	}
	CHECK(free == ACCOUNTS && most == AT_ONCE);
	account_rig_close(&r);
}

struct leaving {
	struct str id, behind, next;
};

/* One leaves its slot while the index is behind: it shows the other as it was before its cleanup began. */
static enum rc leave_with_old_index(struct session *s, void *arg, struct err *e)
{
	struct leaving *l = arg;
	struct account  a;
	enum rc         rc = session_get(s, &account_type, l->behind, &a, e);

	if (rc)
		return rc;
	a.clean_run = STR("");
	session_put(s, &account_type, &a);
	return account_slots_leave(s, l->id, &l->next, e);
}

TEST(who_has_a_slot_is_not_called_again_when_the_index_is_behind)
{
	struct account_rig r = { .clean = { .at_once = 2 } };
	struct leaving     l;

	account_rig_open(&r);
	l.id = begin_cleanup(&r, 0);
	l.behind = begin_cleanup(&r, 1);
	rig_run(&r.rig, leave_with_old_index, &l);
	CHECK(l.next.n == 0);
	account_rig_close(&r);
}
