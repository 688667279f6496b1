/* SPDX-License-Identifier: Apache-2.0 */
/* test_account_alarms.c - when too few accounts are free, who waits too long, what is locked away and what does not get
 * clean. */
#include "test.h"

#include <string.h>

#include "kernel/alarm/alarm.h"
#include "lease_rig.h"
#include "service/alarms/alarms.h"
#include "service/record/lease_records.h"
#include "store/session.h"

enum { STUCK_HOURS = 13, LONG_REASON = 990 };

static struct broker_alarm_context context_of(int64_t mark)
{
	return (struct broker_alarm_context){ .has_leases = true, .accounts_low_water = mark };
}

static bool says(const struct alarm *alarm, int severity, int64_t value, const char *part)
{
	return alarm && (int)alarm->severity == severity && alarm->value == value && mentions(alarm->evidence, part);
}

static enum rc lock_away(struct lease_rig *r, struct str id, const char *reason)
{
	struct account_call c = { .by = manager, .id = id, .reason = str_from(reason), .is_of_pool = true };

	return rig_try(&r->k, account_quarantine, &c, NULL);
}

static enum rc put_account(struct session *s, void *arg, struct err *e)
{
	struct account *changed = arg, stored;
	enum rc         rc = session_get(s, &account_type, changed->id, &stored, e);

	if (rc)
		return rc;
	stored.status = changed->status;
	stored.clean_started_ms = changed->clean_started_ms;
	stored.edited_ms = changed->edited_ms;
	session_put(s, &account_type, &stored);
	return RC_OK;
}

TEST(few_free_accounts_are_a_warning_and_none_with_somebody_in_line_is_a_page)
{
	static const struct {
		const char *label;
		int         free, mark, asked;
		int         severity; /* -1: no alarm */
	} rows[] = {
		{ "at the mark", 2, 2, 0, -1 },
		{ "below the mark", 1, 2, 0, ALARM_WARNING },
		{ "none free, nobody waits", 0, 2, 0, ALARM_WARNING },
		{ "none free, somebody waits", 0, 2, 1, ALARM_PAGE },
		{ "no mark", 0, 0, 1, -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct alarm *alarm;
		struct lease_rig    r;

		CASE(rows[i].label);
		lease_rig_open(&r, rows[i].free);
		if (rows[i].asked)
			(void)ask(&r, &ann, r.by_rule);
		alarm = find_alarm(&r, alarm_accounts_low, context_of(rows[i].mark), STR(""));
		CHECK(rows[i].severity < 0 ? !alarm
		                           : says(alarm, rows[i].severity, rows[i].free, "the low-water mark is 2"));
		lease_rig_close(&r);
	}
}

TEST(nobody_waits_in_line_for_more_than_an_hour_unseen)
{
	struct lease_rig r;

	lease_rig_open(&r, 0);
	CHECK(!find_alarm(&r, alarm_line_waiting, context_of(0), STR("")));
	(void)ask(&r, &ann, r.by_rule);
	r.k.clock.test_ms += HOUR_MS;
	CHECK(!find_alarm(&r, alarm_line_waiting, context_of(0), STR("")));
	(void)ask(&r, &bob, r.by_rule);
	r.k.clock.test_ms += 1;
	CHECK(says(find_alarm(&r, alarm_line_waiting, context_of(0), STR("")), ALARM_WARNING, 2, "the first since "));
	lease_rig_close(&r);
}

TEST(each_account_in_quarantine_is_an_alarm_with_its_reason)
{
	char             reason[LONG_REASON + 1];
	struct lease_rig r;

	memset(reason, 'x', LONG_REASON);
	reason[LONG_REASON] = '\0';
	lease_rig_open(&r, 3);
	CHECK(lock_away(&r, r.accounts[0], "a bill that nobody can explain") == RC_OK);
	CHECK(lock_away(&r, r.accounts[1], reason) == RC_OK);
	CHECK(mentions(find_alarm(&r, alarm_account_quarantined, context_of(0), r.accounts[0])->evidence,
	               "nobody can explain"));
	CHECK(mentions(find_alarm(&r, alarm_account_quarantined, context_of(0), r.accounts[1])->evidence, "xxx"));
	CHECK(!find_alarm(&r, alarm_account_quarantined, context_of(0), r.accounts[2]));
	lease_rig_close(&r);
}

TEST(an_account_that_stays_in_cleanup_is_stuck)
{
	static const struct {
		const char *label;
		int64_t     started_ago, edited_ago; /* ms; started 0: not */
		const char *evidence;                /* NULL: not stuck */
	} rows[] = {
		{ "just begun", 1, 1, NULL },
		{ "begun 13 hours ago", STUCK_HOURS * HOUR_MS, 1, NULL },
		{ "begun longer ago", STUCK_HOURS * HOUR_MS + 1, 1, "its cleanup has not ended" },
		{ "waits for 13 hours", 0, STUCK_HOURS * HOUR_MS, NULL },
		{ "waits for longer", 0, STUCK_HOURS * HOUR_MS + 1, "its cleanup has not begun" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct alarm *alarm;
		struct lease_rig    r;
		struct account      a;
		int64_t             now_ms;

		CASE(rows[i].label);
		lease_rig_open(&r, 1);
		now_ms = r.k.clock.test_ms;
		a = (struct account){ .id = r.accounts[0],
			              .status = ACCOUNT_CLEANUP,
			              .clean_started_ms = rows[i].started_ago ? now_ms - rows[i].started_ago : 0,
			              .edited_ms = now_ms - rows[i].edited_ago };
		rig_run(&r.k, put_account, &a);
		alarm = find_alarm(&r, alarm_cleanup_stuck, context_of(0), r.accounts[0]);
		CHECK(rows[i].evidence ? alarm && mentions(alarm->evidence, rows[i].evidence) : !alarm);
		lease_rig_close(&r);
	}
}

TEST(without_leases_there_is_none_of_these_alarms)
{
	static alarm_rule_fn *const rules[] = { alarm_accounts_low, alarm_line_waiting, alarm_account_quarantined,
		                                alarm_cleanup_stuck };
	struct broker_alarm_context off = { .accounts_low_water = 2 };
	struct lease_rig            r;

	lease_rig_open(&r, 1);
	CHECK(lock_away(&r, r.accounts[0], "for the test") == RC_OK);
	(void)ask(&r, &ann, r.by_rule);
	r.k.clock.test_ms += 2 * HOUR_MS;
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		CHECK(!find_alarm(&r, rules[i], off, STR("")) && !find_alarm(&r, rules[i], off, r.accounts[0]));
	lease_rig_close(&r);
}

TEST(only_what_is_in_the_pool_can_be_locked_away_by_hand)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	CHECK(lock_away(&r, STR("111122223333"), "not ours") == RC_NOT_FOUND);
	uuid = make_active(&r, &ann);
	CHECK(lock_away(&r, r.accounts[0], "a bill that nobody can explain") == RC_OK);
	CHECK(account_of(&r, r.accounts[0]).status == ACCOUNT_QUARANTINE);
	CHECK(status_of(&r, uuid) == LEASE_ACCOUNT_QUARANTINED);
	CHECK(mentions(last_detail(&r, "LeaseTerminated", uuid), "nobody can explain"));
	lease_rig_close(&r);
}
