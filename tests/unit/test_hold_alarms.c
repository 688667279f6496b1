/* SPDX-License-Identifier: Apache-2.0 */
/* test_hold_alarms.c - who rests for too long, who was free too early, what is not where it should be, and when
 * accounts run out. */
#include "test.h"

#include "kernel/alarm/alarm.h"
#include "lease_rig.h"
#include "service/account/account_ous.h"
#include "service/alarms/alarms.h"
#include "service/hold/holds.h"
#include "service/record/lease_records.h"
#include "service/reconcile/reconcile.h"
#include "store/session.h"

enum { GRACE_HOURS = 8 };

static const struct alarm *look(struct lease_rig *r, alarm_rule_fn *find, struct str instance)
{
	struct broker_alarm_context context = { .has_leases = true, .rules = &r->rules };

	return find_alarm(r, find, context, instance);
}

static bool says(const struct alarm *alarm, int severity, const char *part)
{
	return alarm && (int)alarm->severity == severity && mentions(alarm->evidence, part);
}

static void open_rig(struct lease_rig *r, int accounts)
{
	lease_rig_open(r, accounts);
	hold_rules_defaults(&r->rules);
}

static struct hold hold_back(struct lease_rig *r, struct str account, int64_t hours)
{
	struct hold_call c = { .account = account,
		               .by = manager,
		               .reason = STR("an audit"),
		               .due_ms = hours ? r->k.clock.test_ms + hours * HOUR_MS : 0 };

	rig_run(&r->k, hold_add, &c);
	return c.hold;
}

struct said_fact {
	const char *name;
	int64_t     value;
	const char *text; /* NULL: take it away */
};

static enum rc say(struct session *s, void *arg, struct err *e)
{
	const struct said_fact *said = arg;
	struct fact             fact = { 0 };
	enum rc                 rc = session_get(s, &fact_type, str_from(said->name), &fact, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "the fact cannot be read");
	if (!said->text) {
		session_delete(s, &fact_type, str_from(said->name));
		return RC_OK;
	}
	fact.name = str_from(said->name);
	fact.value = said->value;
	fact.text = str_from(said->text);
	fact.since_ms = fact.at_ms = session_now(s).ms;
	session_put(s, &fact_type, &fact);
	return RC_OK;
}

static void state(struct lease_rig *r, const char *name, int64_t value, const char *text)
{
	struct said_fact said = { name, value, text };

	rig_run(&r->k, say, &said);
}

TEST(fr17_a_hold_is_overdue_when_its_grace_is_over_and_worse_a_day_later)
{
	struct lease_rig r;
	struct hold      timed;
	int64_t          due_ms;

	open_rig(&r, 2);
	timed = hold_back(&r, r.accounts[0], 72);
	due_ms = timed.due_ms;
	(void)hold_back(&r, r.accounts[1], 0); /* until a person: never overdue */
	r.k.clock.test_ms = due_ms + GRACE_HOURS * HOUR_MS;
	CHECK(!look(&r, alarm_hold_overdue, timed.id));
	r.k.clock.test_ms += 1;
	CHECK(says(look(&r, alarm_hold_overdue, timed.id), ALARM_WARNING, "was due "));
	r.k.clock.test_ms += 24 * HOUR_MS;
	CHECK(says(look(&r, alarm_hold_overdue, timed.id), ALARM_PAGE, "was due "));
	(void)rig_turn(&r.k); /* its timer fires, late */
	CHECK(!look(&r, alarm_hold_overdue, timed.id));
	CHECK(account_of(&r, r.accounts[0]).status == ACCOUNT_AVAILABLE);
	lease_rig_close(&r);
}

TEST(an_overdue_hold_stays_an_alarm_when_there_are_more_of_them_than_alarms)
{
	struct lease_rig r;
	struct hold      first, last = { 0 };

	open_rig(&r, FINDINGS_MAX + 1);
	first = hold_back(&r, r.accounts[0], 72);
	for (int i = 1; i <= FINDINGS_MAX; i++) {
		r.k.clock.test_ms += 1;
		last = hold_back(&r, r.accounts[i], 72);
	}
	r.k.clock.test_ms = last.due_ms + GRACE_HOURS * HOUR_MS; /* the last one is overdue in a moment */
	CHECK(look(&r, alarm_hold_overdue, first.id) && !look(&r, alarm_hold_overdue, last.id));
	r.k.clock.test_ms += 1;
	CHECK(look(&r, alarm_hold_overdue, first.id) && told(&r, "AlarmCleared", STR("")) == 0);
	CHECK(told(&r, "AlarmRaised", STR("")) == FINDINGS_MAX);
	lease_rig_close(&r);
}

TEST(what_the_reconciler_finds_is_an_alarm_until_it_is_not_found_any_more)
{
	static const struct {
		const char    *label, *fact;
		alarm_rule_fn *rule;
		int            severity;
	} rows[] = {
		{ "free without a rest", "bypass/111122223333", alarm_hold_bypass, ALARM_WARNING },
		{ "and lent already", "lent-bypass/111122223333", alarm_hold_bypass, ALARM_PAGE },
		{ "a rest without a hold", "no-hold/111122223333", alarm_hold_broken, ALARM_WARNING },
		{ "a hold without a timer", "no-timer/111122223333", alarm_hold_broken, ALARM_WARNING },
		{ "in Quarantine, said to be free", "unrecorded-rest/111122223333", alarm_pool_mismatch,
		  ALARM_WARNING },
		{ "in Quarantine, with a lease", "lent-at-rest/111122223333", alarm_pool_mismatch, ALARM_PAGE },
		{ "rests elsewhere", "rest-elsewhere/111122223333", alarm_pool_mismatch, ALARM_WARNING },
		{ "elsewhere", "misplaced/111122223333", alarm_pool_mismatch, ALARM_WARNING },
	};
	struct lease_rig r;

	open_rig(&r, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *name = str_format(&r.k.arena, FACT_DISCREPANCY "%s", rows[i].fact).p;

		CASE(rows[i].label);
		CHECK(!look(&r, rows[i].rule, STR("111122223333")));
		state(&r, name, 0, "it is so");
		CHECK(says(look(&r, rows[i].rule, STR("111122223333")), rows[i].severity, "it is so; seen since "));
		state(&r, name, 1, "it was so");
		CHECK(says(look(&r, rows[i].rule, STR("111122223333")), rows[i].severity, ", put right"));
		state(&r, name, 0, NULL);
		CHECK(!look(&r, rows[i].rule, STR("111122223333")));
	}
	lease_rig_close(&r);
}

TEST(what_was_found_stays_an_alarm_when_there_is_more_of_it_than_alarms)
{
	struct lease_rig r;

	open_rig(&r, 0);
	for (int i = FINDINGS_MAX; i >= 0; i--) { /* the first by its id comes last */
		state(&r, str_format(&r.k.arena, FACT_DISCREPANCY "misplaced/1111222233%02d", i).p, 0, "it is so");
		CHECK(look(&r, alarm_pool_mismatch, STR("111122223332")));
	}
	CHECK(told(&r, "AlarmCleared", STR("")) == 0 && told(&r, "AlarmRaised", STR("")) == FINDINGS_MAX);
	lease_rig_close(&r);
}

TEST(silence_of_the_trail_and_throttled_passes_in_a_row_are_alarms)
{
	struct lease_rig r;

	open_rig(&r, 0);
	CHECK(!look(&r, alarm_events_silent, STR("")));
	state(&r, FACT_DISCREPANCY "events-silent/", 0, "3 accounts were cleaned, and nothing was told");
	CHECK(says(look(&r, alarm_events_silent, STR("")), ALARM_WARNING, "3 accounts were cleaned"));

	state(&r, FACT_THROTTLED, 1, "asked too often");
	CHECK(!look(&r, alarm_cloud_throttled, STR("")));
	state(&r, FACT_THROTTLED, 2, "asked too often");
	CHECK(says(look(&r, alarm_cloud_throttled, STR("")), ALARM_WARNING, "2 passes"));
	state(&r, FACT_THROTTLED, 4, "asked too often");
	CHECK(says(look(&r, alarm_cloud_throttled, STR("")), ALARM_PAGE, "4 passes"));
	lease_rig_close(&r);
}

TEST(a_burst_of_throttled_moves_is_an_alarm_until_it_is_over)
{
	struct lease_rig r;

	open_rig(&r, 0);
	state(&r, FACT_MOVES_THROTTLED, 9, "");
	CHECK(!look(&r, alarm_cloud_throttled, STR("")));
	state(&r, FACT_MOVES_THROTTLED, 10, "");
	CHECK(says(look(&r, alarm_cloud_throttled, STR("")), ALARM_WARNING, "has refused 10 moves"));
	r.k.clock.test_ms += 900000;
	CHECK(!look(&r, alarm_cloud_throttled, STR("")));
	lease_rig_close(&r);
}

TEST(an_alarm_tells_when_the_free_accounts_are_used_up_before_others_are_back)
{
	struct lease_rig r;

	open_rig(&r, 2);
	CHECK(!look(&r, alarm_accounts_runway, STR(""))); /* nobody asks */
	state(&r, FACT_DEMAND, 7, "");
	CHECK(says(look(&r, alarm_accounts_runway, STR("")), ALARM_WARNING, "none is due to come back"));
	(void)hold_back(&r, r.accounts[0], 12);
	CHECK(!look(&r, alarm_accounts_runway, STR(""))); /* one is left, for a day, and the other back before */
	state(&r, FACT_DEMAND, 70, "");
	CHECK(says(look(&r, alarm_accounts_runway, STR("")), ALARM_WARNING, "the next one is back "));
	lease_rig_close(&r);
}
