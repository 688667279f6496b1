/* SPDX-License-Identifier: Apache-2.0 */
/* test_aws_alarms.c - costs that are late and people that cannot be read, told from what was stored last. */
#include "test.h"

#include "kernel/alarm/alarm.h"
#include "kernel_rig.h"
#include "lease_rig.h"
#include "service/alarms/alarms.h"
#include "service/record/aws_records.h"
#include "store/session.h"

#define MINUTE INT64_C(60000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

struct told {
	int64_t    count;
	int        severity;
	struct str evidence;
};

/* What a rule finds now, of the alarms that begin so. */
static struct told look(struct kernel_rig *r, alarm_rule_fn *find, bool has_aws)
{
	const struct alarm_rule     rule = { "rule", find, 0, "docs/runbook.md#rule", "a rule" };
	struct broker_alarm_context context = { .has_leases = true, .has_aws = has_aws };
	struct alarm_check          check = { .kernel = r->kernel, .rules = &rule, .rule_count = 1, .arg = &context };
	struct page                 list = { 0 };
	struct told                 told = { 0 };

	CHECK(alarm_check(&check, NULL) == RC_OK);
	rig_run(r, alarm_list, &list);
	told.count = (int64_t)list.count;
	if (list.count) {
		const struct alarm *alarm = page_record(&list, &alarm_type, 0);

		told.severity = (int)alarm->severity;
		told.evidence = alarm->evidence;
	}
	return told;
}

static enum rc put_directory(struct session *s, void *arg, struct err *e)
{
	struct aws_directory_record *wanted = arg, known;
	enum rc                      rc = session_find_or_new(s, &aws_directory_type, STR(AWS_DIRECTORY), &known, e);

	wanted->name = STR(AWS_DIRECTORY);
	wanted->version = known.version;
	if (!rc)
		session_put(s, &aws_directory_type, wanted);
	return rc;
}

static enum rc put_book(struct session *s, void *arg, struct err *e)
{
	struct aws_cost_book *wanted = arg, known;
	enum rc               rc = session_find_or_new(s, &aws_cost_book_type, STR(AWS_COST_BOOK), &known, e);

	wanted->name = STR(AWS_COST_BOOK);
	wanted->version = known.version;
	if (!rc)
		session_put(s, &aws_cost_book_type, wanted);
	return rc;
}

static enum rc put_account(struct session *s, void *arg, struct err *e)
{
	struct aws_cost_account *wanted = arg, known;
	enum rc                  rc = session_find_or_new(s, &aws_cost_account_type, wanted->account_id, &known, e);

	wanted->version = known.version;
	if (!rc)
		session_put(s, &aws_cost_account_type, wanted);
	return rc;
}

TEST(a_directory_that_is_not_read_is_told_after_half_an_hour_and_pages_after_a_day)
{
	struct kernel_rig           r = { 0 };
	struct aws_directory_record head = { 0 };

	rig_open(&r);
	CASE("never read: the job says so");
	CHECK(look(&r, alarm_directory_unread, true).count == 0);
	CASE("30 minutes are fine");
	head.read_ms = r.clock.test_ms;
	rig_run(&r, put_directory, &head);
	r.clock.test_ms += 30 * MINUTE;
	CHECK(look(&r, alarm_directory_unread, true).count == 0);
	CASE("more are not");
	r.clock.test_ms += 1;
	CHECK(look(&r, alarm_directory_unread, true).severity == ALARM_WARNING);
	CHECK(look(&r, alarm_directory_unread, true).count == 1);
	CASE("a day is a page");
	r.clock.test_ms += DAY;
	CHECK(look(&r, alarm_directory_unread, true).severity == ALARM_PAGE);
	CHECK(mentions(look(&r, alarm_directory_unread, true).evidence, "nobody can sign in"));
	CASE("read again");
	head.read_ms = r.clock.test_ms;
	rig_run(&r, put_directory, &head);
	CHECK(look(&r, alarm_directory_unread, true).count == 0);
	CASE("a group that is not there");
	head.missing = STR("ns_IsbManagers");
	rig_run(&r, put_directory, &head);
	CHECK(mentions(look(&r, alarm_directory_unread, true).evidence, "ns_IsbManagers"));
	CASE("where nothing of AWS is lent, nobody is told");
	CHECK(look(&r, alarm_directory_unread, false).count == 0);
	rig_close(&r);
}

TEST(costs_that_are_not_asked_for_are_told_after_a_day)
{
	struct kernel_rig    r = { 0 };
	struct aws_cost_book book = { 0 };

	rig_open(&r);
	book.refreshed_ms = r.clock.test_ms;
	rig_run(&r, put_book, &book);
	r.clock.test_ms += 26 * HOUR;
	CHECK(look(&r, alarm_costs_late, true).count == 0);
	r.clock.test_ms += 1;
	CHECK(mentions(look(&r, alarm_costs_late, true).evidence, "was last asked at"));
	CHECK(look(&r, alarm_costs_late, false).count == 0);
	rig_close(&r);
}

TEST(an_account_whose_costs_are_five_days_behind_is_told)
{
	struct kernel_rig       r = { 0 };
	int64_t                 now;
	struct aws_cost_account account = { .account_id = STR("200000000001") };

	rig_open(&r);
	now = r.clock.test_ms;
	account.first_ms = account.from_ms = now - 30 * DAY;
	account.recent_ms = account.whole_ms = account.asked_ms = now;
	account.complete_ms = now - 5 * DAY;
	CASE("five days are fine");
	rig_run(&r, put_account, &account);
	CHECK(look(&r, alarm_costs_late, true).count == 0);
	CASE("more are not");
	account.complete_ms--;
	rig_run(&r, put_account, &account);
	CHECK(mentions(look(&r, alarm_costs_late, true).evidence, "200000000001"));
	CASE("of a new account nothing needs to be complete");
	account.first_ms = now - 5 * DAY;
	rig_run(&r, put_account, &account);
	CHECK(look(&r, alarm_costs_late, true).count == 0);
	CASE("nor of one that nobody asks for");
	account.first_ms = now - 60 * DAY;
	account.asked_ms = now - 31 * DAY;
	rig_run(&r, put_account, &account);
	CHECK(look(&r, alarm_costs_late, true).count == 0);
	rig_close(&r);
}
