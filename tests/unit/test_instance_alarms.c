/* SPDX-License-Identifier: Apache-2.0 */
/* test_instance_alarms.c - what is wrong with instances is an alarm, and stops being one. */
#include "test.h"

#include <string.h>

#include "kernel/alarm/alarm.h"
#include "kernel_rig.h"
#include "service/alarms/alarms.h"
#include "service/instance/instance_records.h"
#include "store/session.h"
#include "truth/test_clock.h"

#define MINUTE 60000ll

static const struct alarm_rule rules[] = {
	{ "instance-failed", alarm_instance_failed, 0, "", "" },
	{ "instance-slow", alarm_instance_slow, 0, "", "" },
	{ "instance-below", alarm_instance_below, 0, "", "" },
	{ "instance-removal", alarm_instance_removal, 0, "", "" },
	{ "instance-orphans", alarm_instance_orphans, 0, "", "" },
};

static enum rc put_instance(struct session *s, void *arg, struct err *e)
{
	struct instance i = *(struct instance *)arg, old = { 0 };
	bool            is_there;
	enum rc         rc = session_find(s, &instance_type, i.id, &old, &is_there, e);

	i.version = old.version;
	session_put(s, &instance_type, &i);
	return rc;
}

static enum rc put_scan(struct session *s, void *arg, struct err *e)
{
	struct instance_scan_result r = *(struct instance_scan_result *)arg, old = { 0 };
	bool                        is_there;
	enum rc                     rc = session_find(s, &instance_scan_type, r.name, &old, &is_there, e);

	r.version = old.version;
	session_put(s, &instance_scan_type, &r);
	return rc;
}

/* The alarm of this rule as it is now, or none. */
static bool find_alarm(struct kernel_rig *r, const char *rule, struct alarm *ret)
{
	struct alarm_check check = { .kernel = r->kernel, .rules = rules, .rule_count = ARRAY_LEN(rules) };
	struct page        page;

	CHECK(alarm_check(&check, NULL) == RC_OK && check.failed == 0);
	rig_run(r, alarm_list, &page);
	for (size_t i = 0; i < page.count; i++) {
		const struct alarm *a = page_record(&page, &alarm_type, i);

		if (str_eq(a->rule, str_from(rule))) {
			*ret = *a;
			return true;
		}
	}
	return false;
}

static struct instance some(struct kernel_rig *r, enum instance_state state)
{
	struct instance i = { .id = STR("inst-1"),
		              .tenant = STR("tenant-acme"),
		              .organization = STR("Acme"),
		              .contact_email = STR("a@acme.example"),
		              .wordpress_version = STR("6.5"),
		              .desired_count = 2,
		              .running_count = 2,
		              .state = state,
		              .has_data = 1,
		              .created_ms = r->clock.test_ms,
		              .updated_ms = r->clock.test_ms,
		              .started_ms = r->clock.test_ms };

	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		i.outputs[kind] = STR("{}");
	return i;
}

TEST(each_thing_that_is_wrong_with_an_instance_is_an_alarm_until_it_is_not)
{
	struct kernel_rig           r = { .clock = clock_test(1700000000000) };
	struct instance             i;
	struct alarm                a;
	struct instance_scan_result scan = { .name = STR("last"), .at_ms = 1, .orphans = 1 };

	rig_open(&r);
	i = some(&r, INSTANCE_FAILED);
	i.last_error = STR("{\"code\":\"PROV-003\",\"message\":\"not stable\"}");
	rig_run(&r, put_instance, &i);
	CHECK(find_alarm(&r, "instance-failed", &a) && a.severity == ALARM_PAGE && text_has(a.evidence, "PROV-003"));

	i = some(&r, INSTANCE_PROVISIONING_ECS);
	rig_run(&r, put_instance, &i);
	CHECK(!find_alarm(&r, "instance-failed", &a) && !find_alarm(&r, "instance-slow", &a));
	rig_pass(&r, 16 * MINUTE);
	CHECK(find_alarm(&r, "instance-slow", &a) && a.severity == ALARM_WARNING);
	rig_pass(&r, 5 * MINUTE);
	CHECK(find_alarm(&r, "instance-slow", &a) && a.severity == ALARM_PAGE);

	i = some(&r, INSTANCE_ACTIVE);
	i.running_count = 1;
	i.below_since_ms = r.clock.test_ms;
	rig_run(&r, put_instance, &i);
	CHECK(!find_alarm(&r, "instance-slow", &a) && !find_alarm(&r, "instance-below", &a));
	rig_pass(&r, 5 * MINUTE);
	CHECK(find_alarm(&r, "instance-below", &a) && a.severity == ALARM_PAGE && text_has(a.evidence, "1 of 2"));

	i = some(&r, INSTANCE_PENDING_DEPROVISIONING);
	rig_run(&r, put_instance, &i);
	CHECK(!find_alarm(&r, "instance-below", &a) && !find_alarm(&r, "instance-removal", &a));
	i.last_error = STR("{\"code\":\"OPERATION_FAILED\",\"message\":\"secret\"}");
	rig_run(&r, put_instance, &i);
	CHECK(find_alarm(&r, "instance-removal", &a) && a.severity == ALARM_WARNING);

	rig_run(&r, put_scan, &scan);
	CHECK(find_alarm(&r, "instance-orphans", &a) && a.value == 1);
	scan.healed = 1; /* a person has had it removed */
	rig_run(&r, put_scan, &scan);
	CHECK(!find_alarm(&r, "instance-orphans", &a));
	rig_close(&r);
}

TEST(an_instance_below_its_tasks_is_an_alarm_however_many_others_are_well)
{
	struct kernel_rig r = { .clock = clock_test(1700000000000) };
	struct instance   i;
	struct alarm      a;

	rig_open(&r);
	i = some(&r, INSTANCE_ACTIVE);
	for (int n = 0; n <= 200; n++) {
		i.id = str_format(&r.arena, "inst-%03d", n);
		i.tenant = str_format(&r.arena, "tenant-%03d", n);
		i.running_count = n < 200 ? 2 : 1;
		i.below_since_ms = n < 200 ? 0 : r.clock.test_ms;
		rig_run(&r, put_instance, &i);
	}
	rig_pass(&r, 6 * MINUTE);
	CHECK(find_alarm(&r, "instance-below", &a) && str_eq(a.name, STR("instance-below#tenant-200")));
	rig_close(&r);
}
