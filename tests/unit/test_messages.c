/* SPDX-License-Identifier: Apache-2.0 */
/* test_messages.c - what the sinks and queues of AWS write and read, without AWS. */
#include "test.h"

#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "kernel/records.h"
#include "providers/aws/messages/bell.h"
#include "providers/aws/messages/bus.h"
#include "providers/aws/messages/emf.h"
#include "providers/aws/messages/sink.h"
#include "providers/aws/messages/sqs.h"
#include "providers/aws/messages/topic.h"

enum { TEN = 10 };

static json_t *parse(struct str text)
{
	json_t    *value = NULL;
	struct err e = { 0 };

	CHECK(json_parse(text, &value, &e) == RC_OK);
	return value;
}

static struct str text_of(const json_t *object, const char *name)
{
	struct str text = STR("");

	CHECK(json_get_text(object, name, &text));
	return text;
}

static const struct event cleaned = { .id = STR_INIT("e-1"),
	                              .type = STR_INIT("AccountCleanupFailed"),
	                              .subject = STR_INIT("account/111122223333"),
	                              .actor = STR_INIT("cleanup"),
	                              .time_ms = 1700000000123,
	                              .schema = 1,
	                              .detail = STR_INIT("{\"accountId\":\"111122223333\"}") };

/* --- the bus --- */

TEST(C36_an_entry_of_a_guard_has_our_source_and_says_which_event_it_is)
{
	struct bus_options o = { .bus = STR("leases"), .names = BUS_GUARD, .source = STR("InnovationSandbox-x") };
	struct arena       a = { 0 };
	struct bus_entry   entry;
	json_t            *json, *detail;

	CHECK(bus_write_entry(&o, &cleaned, &a, &entry, NULL) == RC_OK);
	json = parse(entry.json);
	CHECK(str_eq(text_of(json, "EventBusName"), STR("leases")));
	CHECK(str_eq(text_of(json, "Source"), STR("leasehold")));
	CHECK(str_eq(text_of(json, "DetailType"), STR("AccountCleanupFailed")));
	CHECK(json_real_value(json_object_get(json, "Time")) == 1700000000.123);
	detail = parse(text_of(json, "Detail"));
	CHECK(str_eq(text_of(detail, "accountId"), STR("111122223333")));
	CHECK(str_eq(text_of(json_object_get(detail, "leasehold"), "eventId"), STR("e-1")));
	CHECK(str_eq(text_of(json_object_get(detail, "leasehold"), "subject"), STR("account/111122223333")));
	json_decref(detail);
	json_decref(json);
	arena_fini(&a);
}

TEST(C36_where_the_names_are_ours_the_source_is_the_settings)
{
	struct bus_options o = { .bus = STR("leases"), .names = BUS_OURS, .source = STR("our-source") };
	struct event       frozen = cleaned;
	struct arena       a = { 0 };
	struct bus_entry   entry;
	json_t            *json;

	frozen.type = STR("LeaseFrozen");
	CHECK(bus_write_entry(&o, &frozen, &a, &entry, NULL) == RC_OK);
	json = parse(entry.json);
	CHECK(str_eq(text_of(json, "Source"), STR("our-source")));
	json_decref(json);
	CHECK(bus_write_entry(&o, &cleaned, &a, &entry, NULL) == RC_OK);
	json = parse(entry.json);
	CHECK(str_eq(text_of(json, "Source"), STR("account-cleaner"))); /* as in the envelope */
	json_decref(json);
	arena_fini(&a);
}

TEST(C36_where_the_names_are_isbs_results_of_cleanups_have_a_source_of_their_own_and_details_are_bare)
{
	struct bus_options o = { .bus = STR("leases"), .names = BUS_ISB, .isb_namespace = STR("myisb") };
	struct event       ended = cleaned;
	struct arena       a = { 0 };
	struct bus_entry   entry;
	json_t            *json;

	ended.type = STR("LeaseTerminated");
	CHECK(bus_write_entry(&o, &cleaned, &a, &entry, NULL) == RC_OK);
	json = parse(entry.json);
	CHECK(str_eq(text_of(json, "Source"), STR("account-cleaner")));
	CHECK(str_eq(text_of(json, "Detail"), cleaned.detail));
	json_decref(json);
	CHECK(bus_write_entry(&o, &ended, &a, &entry, NULL) == RC_OK);
	json = parse(entry.json);
	CHECK(str_eq(text_of(json, "Source"), STR("InnovationSandbox-myisb")));
	json_decref(json);
	arena_fini(&a);
}

static void link_entries(struct bus_entry *list, size_t count, size_t bytes)
{
	for (size_t i = 0; i < count; i++)
		list[i] = (struct bus_entry){ .json = STR("{}"),
			                      .bytes = bytes,
			                      .rc = RC_INTERNAL,
			                      .next = i + 1 < count ? &list[i + 1] : NULL };
}

TEST(C35_a_request_has_ten_entries_at_most_and_less_than_256_KB)
{
	struct bus_options o = { .bus = STR("b"), .names = BUS_ISB, .isb_namespace = STR("abc") };
	struct bus_entry   list[TEN + 2];
	struct arena       a = { 0 };
	struct event       large = cleaned;
	struct err         e = { 0 };
	char              *text = arena_alloc(&a, BUS_BYTES_MAX);

	link_entries(list, TEN + 2, 100);
	CHECK(bus_fitting(list) == TEN);
	link_entries(list, TEN, BUS_BYTES_MAX / 4);
	CHECK(bus_fitting(list) == 3); /* four would be 256 KB, and it must be less */
	link_entries(list, TEN, BUS_BYTES_MAX / 4 - 1);
	CHECK(bus_fitting(list) == 4);
	link_entries(list, 2, BUS_BYTES_MAX - 1);
	CHECK(bus_fitting(list) == 1);
	memset(text, 'x', BUS_BYTES_MAX);
	large.detail = str_of(text, BUS_BYTES_MAX);
	CHECK(bus_write_entry(&o, &large, &a, list, &e) == RC_INVALID);
	arena_fini(&a);
}

TEST(C35_two_of_ten_fail_one_comes_again_and_one_is_dead)
{
	struct bus_entry list[TEN];
	struct arena     a = { 0 };
	json_t          *answer, *entries = json_array(), *request;

	link_entries(list, TEN, 100);
	request = parse(bus_write_request(list, TEN, &a));
	CHECK(json_array_size(json_object_get(request, "Entries")) == TEN);
	for (int i = 0; i < TEN; i++)
		json_array_append_new(entries, i == 3   ? json_pack("{s:s,s:s}", "ErrorCode", "InternalFailure",
		                                                    "ErrorMessage", "again")
		                               : i == 7 ? json_pack("{s:s,s:s}", "ErrorCode", "MalformedDetail",
		                                                    "ErrorMessage", "no")
		                                        : json_pack("{s:s}", "EventId", "id"));
	answer = json_pack("{s:i,s:o}", "FailedEntryCount", 2, "Entries", entries);
	bus_read_answer(answer, list, TEN);
	for (int i = 0; i < TEN; i++)
		CHECK(list[i].rc == (i == 3 ? RC_UNAVAILABLE : i == 7 ? RC_INVALID : RC_OK));
	CHECK(strstr(list[7].e.msg, "MalformedDetail: no") != NULL);
	json_decref(answer);
	json_decref(request);
	arena_fini(&a);
}

TEST(an_answer_with_fewer_entries_than_were_asked_leaves_the_rest_to_another_try)
{
	struct bus_entry list[2];
	json_t          *answer = json_pack("{s:i,s:[{s:s}]}", "FailedEntryCount", 0, "Entries", "EventId", "id");

	link_entries(list, 2, 100);
	bus_read_answer(answer, list, 2);
	CHECK(list[0].rc == RC_OK && list[1].rc == RC_UNAVAILABLE);
	bus_read_answer(NULL, list, 2);
	CHECK(list[0].rc == RC_UNAVAILABLE);
	json_decref(answer);
}

/* --- topic, queues, schedules --- */

TEST(the_subject_of_a_topic_is_short_and_ascii)
{
	struct arena a = { 0 };
	char         text[300];

	memset(text, 'x', sizeof(text));
	CHECK(topic_subject(str_of(text, sizeof(text)), &a).n == 99);
	CHECK(str_eq(topic_subject(STR("Alarm \xe2\x80\x94 gr\xc3\xbc\xc3\x9f"
	                               "e\n"),
	                           &a),
	             STR("Alarm ? gr??e?")));
	CHECK(str_eq(str_from(arn_region(STR("arn:aws:sns:eu-west-1:123456789012:alerts"), &a)), STR("eu-west-1")));
	CHECK(arn_region(STR("nonsense"), &a) == NULL);
	arena_fini(&a);
}

TEST(the_region_of_a_queue_is_in_its_url)
{
	static const struct {
		const char *url, *region;
	} rows[] = { { "https://sqs.eu-west-1.amazonaws.com/123456789012/q", "eu-west-1" },
		     { "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/q", "cn-north-1" },
		     { "https://us-west-2.queue.amazonaws.com/123456789012/q", "us-west-2" },
		     { "https://queue.amazonaws.com/123456789012/q", NULL },
		     { "http://127.0.0.1:5000/123456789012/q", NULL } };
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *region = sqs_region(str_from(rows[i].url), &a);

		CASE(rows[i].url);
		CHECK(region && rows[i].region ? strcmp(region, rows[i].region) == 0 : region == rows[i].region);
		CHECK(sqs_check_url(str_from(rows[i].url), NULL) == RC_OK);
	}
	CHECK(sqs_check_url(STR("arn:aws:sqs:us-east-1:123456789012:q"), NULL) == RC_INVALID);
	CHECK(sqs_check_url(STR("https://sqs.us-east-1.amazonaws.com/"), NULL) == RC_INVALID);
	CHECK(sqs_check_url(STR("https://sqs.us-east-1.amazonaws.com/123456789012/a b"), NULL) == RC_INVALID);
	arena_fini(&a);
}

TEST(C39_a_schedule_rings_at_the_first_whole_second_that_is_not_before_the_holds_end)
{
	struct arena a = { 0 };

	CHECK(str_eq(bell_expression(1700000000000, &a), STR("at(2023-11-14T22:13:20)")));
	CHECK(str_eq(bell_expression(1700000000001, &a), STR("at(2023-11-14T22:13:21)")));
	CHECK(str_eq(bell_expression(1700000000999, &a), STR("at(2023-11-14T22:13:21)")));
	arena_fini(&a);
}

/* --- figures --- */

static const json_t *directive(const json_t *line, size_t i)
{
	return json_array_get(json_object_get(json_object_get(line, "_aws"), "CloudWatchMetrics"), i);
}

TEST(C38_a_line_of_figures_names_each_metric_that_it_has_a_value_of)
{
	struct metrics *m = metrics_new();
	struct emf      emf = { .metrics = m, .has_guard = true, .has_instances = true };
	struct arena    a = { 0 };
	json_t         *line;

	metrics_add(m, METRIC_GUARD, "QUARANTINE_COMPLETE", 3);
	metrics_add(m, METRIC_INSTANCE_OPERATIONS, "create,success", 3);
	metrics_add(m, METRIC_INSTANCE_OPERATIONS, "create,failure", 1);
	metrics_observe(m, METRIC_INSTANCE_DURATION, "create", 10);
	metrics_observe(m, METRIC_INSTANCE_DURATION, "create", 20);
	line = parse(emf_line(&emf, 1700000000123, 2, &a));
	CHECK(json_integer_value(json_object_get(json_object_get(line, "_aws"), "Timestamp")) == 1700000000123);
	CHECK(str_eq(text_of(directive(line, 0), "Namespace"), STR("ISB/BillingSeparator")));
	CHECK(str_eq(text_of(directive(line, 1), "Namespace"), STR("BBWS/Instance")));
	for (size_t i = 0; i < 2; i++) {
		const json_t *metrics = json_object_get(directive(line, i), "Metrics");

		CHECK(json_array_size(json_object_get(directive(line, i), "Dimensions")) == 1);
		CHECK(json_array_size(metrics) == (i ? 4 : 5));
		for (size_t j = 0; j < json_array_size(metrics); j++)
			CHECK(json_is_number(json_object_get(line, text_of(json_array_get(metrics, j), "Name").p)));
	}
	CHECK(json_number_value(json_object_get(line, "QuarantineSuccessCount")) == 3);
	CHECK(json_number_value(json_object_get(line, "AccountsInQuarantineOverThreshold")) == 2);
	CHECK(json_number_value(json_object_get(line, "ProvisioningSuccess")) == 75);
	CHECK(json_number_value(json_object_get(line, "ProvisioningFailures")) == 1);
	CHECK(json_number_value(json_object_get(line, "ProvisioningDuration")) == 15);
	json_decref(line);
	arena_fini(&a);
	metrics_free(m);
}

TEST(C38_the_next_line_has_what_was_counted_since_and_no_share_of_nothing)
{
	struct metrics *m = metrics_new();
	struct emf      emf = { .metrics = m, .has_instances = true };
	struct arena    a = { 0 };
	json_t         *line;

	metrics_add(m, METRIC_INSTANCE_OPERATIONS, "create,success", 3);
	(void)emf_line(&emf, 1, 0, &a); /* counted there */
	line = parse(emf_line(&emf, 2, 0, &a));
	CHECK(!json_object_get(line, "ProvisioningSuccess") && !json_object_get(line, "ProvisioningDuration"));
	CHECK(json_number_value(json_object_get(line, "ProvisioningFailures")) == 0);
	CHECK(!json_object_get(line, "QuarantineSuccessCount")); /* nothing is guarded here */
	CHECK(json_array_size(json_object_get(directive(line, 0), "Metrics")) == 2);
	json_decref(line);
	emf.has_instances = false;
	CHECK(emf_line(&emf, 3, 0, &a).n == 0);
	arena_fini(&a);
	metrics_free(m);
}
