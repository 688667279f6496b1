/* SPDX-License-Identifier: Apache-2.0 */
/* test_intake.c - what becomes of events from outside. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "kernel/event.h"
#include "kernel/edge/intake.h"
#include "kernel_rig.h"
#include "service/instance/instances.h"

/* The members of a MoveAccount as CloudTrail reports it; %s is put at the end of its detail. */
#define MOVE                                                                                                        \
	"\"version\":\"0\",\"detail-type\":\"AWS API Call via CloudTrail\",\"source\":\"aws.organizations\","       \
	"\"account\":\"999988887777\",\"time\":\"2026-01-28T10:00:00Z\",\"region\":\"us-east-1\",\"resources\":[]," \
	"\"detail\":{\"eventSource\":\"organizations.amazonaws.com\",\"eventName\":\"MoveAccount\","                \
	"\"requestParameters\":{\"accountId\":\"111122223333\",\"sourceParentId\":\"ou-abcd-cleanup00\","           \
	"\"destinationParentId\":\"ou-abcd-availabl0\"}"

static const char move_event[] = "{\"id\":\"e-1\"," MOVE "}}";

struct parsed {
	struct arena          arena;
	struct err            e;
	enum rc               rc;
	struct intake_record *records;
	size_t                count;
};

static void parse(struct parsed *p, const char *body)
{
	*p = (struct parsed){ 0 };
	p->rc = intake_parse(STR("cloudtrail"), str_from(body), &p->arena, &p->records, &p->count, &p->e);
}

static void forget(struct parsed *p)
{
	arena_fini(&p->arena);
}

TEST(a_move_of_an_account_is_read_from_cloudtrails_form)
{
	struct parsed p;

	parse(&p, move_event);
	CHECK(p.rc == RC_OK && p.count == 1);
	CHECK(p.records[0].verdict == INTAKE_ACCEPTED);
	CHECK(str_eq(p.records[0].id, STR("e-1")));
	CHECK(str_eq(p.records[0].event.type, STR("cloudtrail:MoveAccount")));
	CHECK(str_eq(p.records[0].event.subject, STR("account/111122223333")));
	CHECK(str_eq(p.records[0].event.source, STR("aws.organizations")));
	CHECK(str_eq(p.records[0].event.account, STR("999988887777")));
	CHECK(str_eq(p.records[0].event.region, STR("us-east-1")));
	CHECK(str_eq(p.records[0].event.actor, STR("inbox/cloudtrail")));
	CHECK(str_eq(p.records[0].event.detail, STR(move_event)));
	CHECK(p.records[0].event.time_ms == 0 && p.records[0].event.id.n == 0);
	forget(&p);
}

TEST(a_call_that_failed_is_not_taken_for_one_that_happened)
{
	struct parsed p;

	parse(&p, "{\"id\":\"e-1\"," MOVE ",\"errorCode\":\"AccessDenied\"}}");
	CHECK(str_eq(p.records[0].event.type, STR("cloudtrail:MoveAccount.Failed")));
	CHECK(str_eq(p.records[0].event.subject, STR("account/111122223333")));
	forget(&p);
	parse(&p, "{\"id\":\"e-1\"," MOVE ",\"errorCode\":null}}");
	CHECK(str_eq(p.records[0].event.type, STR("cloudtrail:MoveAccount")));
	forget(&p);
}

static const struct {
	const char *label, *body, *type, *subject;
} accepted[] = {
	{ "the least", "{\"id\":\"7\",\"detail-type\":\"Thing Sold\"}", "cloudtrail:Thing Sold", "cloudtrail/7" },
	{ "a subject of its own", "{\"id\":\"7\",\"detail-type\":\"T\",\"subject\":\"thing/1\"}", "cloudtrail:T",
	  "thing/1" },
	{ "null is as good as missing",
	  "{\"id\":\"7\",\"detail-type\":\"T\",\"subject\":null,\"detail\":null,\"resources\":null}", "cloudtrail:T",
	  "cloudtrail/7" },
	{ "a move without a proper account",
	  "{\"id\":\"7\",\"detail-type\":\"T\",\"detail\":{\"eventName\":\"MoveAccount\",\"requestParameters\":{\"accountId\":"
	  "\"12345678901a\"}}}",
	  "cloudtrail:T", "cloudtrail/7" },
	{ "CloudTrail without a call's name", "{\"id\":\"7\",\"detail-type\":\"AWS API Call via CloudTrail\"}",
	  "cloudtrail:AWS API Call via CloudTrail", "cloudtrail/7" },
};

TEST(type_and_subject_come_from_what_is_there)
{
	for (size_t i = 0; i < ARRAY_LEN(accepted); i++) {
		struct parsed p;

		CASE(accepted[i].label);
		parse(&p, accepted[i].body);
		CHECK(p.rc == RC_OK && p.count == 1 && p.records[0].verdict == INTAKE_ACCEPTED);
		CHECK(str_eq(p.records[0].event.type, str_from(accepted[i].type)));
		CHECK(str_eq(p.records[0].event.subject, str_from(accepted[i].subject)));
		CHECK(str_eq(p.records[0].event.source, STR("cloudtrail")));
		forget(&p);
	}
}

static const struct {
	const char *label, *record, *says;
} rejected[] = {
	{ "not an object", "7", "object" },
	{ "no id", "{\"detail-type\":\"T\"}", "id:" },
	{ "an empty id", "{\"id\":\"\",\"detail-type\":\"T\"}", "id:" },
	{ "a number as id", "{\"id\":7,\"detail-type\":\"T\"}", "id:" },
	{ "a blank in the id", "{\"id\":\"a b\",\"detail-type\":\"T\"}", "id:" },
	{ "an id that is too long",
	  "{\"id\":\"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
	  "0123456789012345678901234567890\",\"detail-type\":\"T\"}",
	  "id:" },
	{ "no detail-type", "{\"id\":\"7\"}", "detail-type:" },
	{ "an odd letter in the detail-type", "{\"id\":\"7\",\"detail-type\":\"a*\"}", "detail-type:" },
	{ "a comma in the detail-type", "{\"id\":\"7\",\"detail-type\":\"a,b\"}", "detail-type:" },
	{ "a detail-type that is too long",
	  "{\"id\":\"7\",\"detail-type\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}",
	  "detail-type:" },
	{ "a line break in the subject", "{\"id\":\"7\",\"detail-type\":\"T\",\"subject\":\"a\\nb\"}", "subject:" },
	{ "a number as subject", "{\"id\":\"7\",\"detail-type\":\"T\",\"subject\":1}", "subject:" },
	{ "a list as source", "{\"id\":\"7\",\"detail-type\":\"T\",\"source\":[]}", "source:" },
	{ "a text as resources", "{\"id\":\"7\",\"detail-type\":\"T\",\"resources\":\"x\"}", "resources:" },
	{ "a text as detail", "{\"id\":\"7\",\"detail-type\":\"T\",\"detail\":\"x\"}", "detail:" },
};

TEST(a_bad_record_is_rejected_alone_and_says_why)
{
	for (size_t i = 0; i < ARRAY_LEN(rejected); i++) {
		struct parsed p;
		struct arena  a = { 0 };

		CASE(rejected[i].label);
		parse(&p,
		      str_format(&a, "[{\"id\":\"1\",\"detail-type\":\"T\"},%s,{\"id\":\"3\",\"detail-type\":\"T\"}]",
		                 rejected[i].record)
		              .p);
		CHECK(p.rc == RC_OK && p.count == 3);
		CHECK(p.records[0].verdict == INTAKE_ACCEPTED && p.records[2].verdict == INTAKE_ACCEPTED);
		CHECK(p.records[1].verdict == INTAKE_REJECTED);
		CHECK(strstr(p.records[1].e.msg, rejected[i].says) != NULL);
		arena_fini(&a);
		forget(&p);
	}
}

TEST(records_as_a_queue_wraps_them_are_unwrapped)
{
	struct parsed p;

	parse(&p, "{\"Records\":["
	          "{\"messageId\":\"m-1\",\"body\":\"{\\\"id\\\":\\\"e-1\\\",\\\"detail-type\\\":\\\"T\\\"}\"},"
	          "{\"messageId\":\"m-2\",\"body\":\"{broken\"},"
	          "{\"messageId\":\"m-3\"},"
	          "{\"messageId\":\"m-4\",\"body\":\"{\\\"id\\\":\\\"e-4\\\",\\\"detail-type\\\":\\\"T\\\"}\"}]}");
	CHECK(p.rc == RC_OK && p.count == 4);
	CHECK(p.records[0].verdict == INTAKE_ACCEPTED && str_eq(p.records[0].id, STR("e-1")));
	CHECK(p.records[1].verdict == INTAKE_REJECTED && str_eq(p.records[1].id, STR("m-2")));
	CHECK(p.records[2].verdict == INTAKE_REJECTED);
	CHECK(strstr(p.records[2].e.msg, "body:") != NULL);
	CHECK(p.records[3].verdict == INTAKE_ACCEPTED && str_eq(p.records[3].id, STR("e-4")));
	forget(&p);
}

TEST(a_body_that_cannot_be_read_at_all_is_invalid)
{
	static const char *const bodies[] = {
		"", "{", "7", "\"x\"", "[]", "{\"Records\":[]}", "{\"Records\":7}", "null"
	};

	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		struct parsed p;

		CASE(bodies[i]);
		parse(&p, bodies[i]);
		CHECK(p.rc == RC_INVALID && p.e.msg[0]);
		forget(&p);
	}
}

TEST(there_are_limits_on_records_bytes_and_the_inboxs_name)
{
	struct arena          a = { 0 };
	struct intake_record *records;
	struct buf            b;
	size_t                count;

	buf_init(&b, 2 * INTAKE_BODY_MAX);
	buf_add_char(&b, '[');
	for (int i = 0; i < INTAKE_RECORDS_MAX; i++)
		buf_add_text(&b, i ? ",7" : "7");
	buf_add_char(&b, ']');
	CHECK(intake_parse(STR("x"), buf_str(&b), &a, &records, &count, NULL) == RC_OK && count == INTAKE_RECORDS_MAX);
	b.n--;
	buf_add_text(&b, ",7]");
	CHECK(intake_parse(STR("x"), buf_str(&b), &a, &records, &count, NULL) == RC_INVALID);
	buf_reset(&b);
	buf_add_text(&b, "{\"id\":\"1\",\"detail-type\":\"T\",\"detail\":{\"x\":\"");
	while (b.n < DETAIL_MAX)
		buf_add_char(&b, 'x');
	buf_add_text(&b, "\"}}");
	CHECK(intake_parse(STR("x"), buf_str(&b), &a, &records, &count, NULL) == RC_OK);
	CHECK(records[0].verdict == INTAKE_REJECTED);
	while (b.n <= INTAKE_BODY_MAX)
		buf_add_char(&b, ' ');
	CHECK(intake_parse(STR("x"), buf_str(&b), &a, &records, &count, NULL) == RC_TOO_LARGE);
	CHECK(intake_parse(STR(""), STR("7"), &a, &records, &count, NULL) == RC_INVALID);
	CHECK(intake_parse(STR("a#b"), STR("{}"), &a, &records, &count, NULL) == RC_INVALID);
	CHECK(intake_parse(STR("a:b"), STR("{}"), &a, &records, &count, NULL) == RC_INVALID);
	buf_fini(&b);
	arena_fini(&a);
}

/* An event, as deep as that. */
static struct str nested_event(struct arena *a, int depth)
{
	struct buf b = BUF(4096);

	buf_add_text(&b, "{\"id\":\"1\",\"detail-type\":\"T\",\"detail\":{\"x\":");
	for (int i = 2; i < depth; i++)
		buf_add_char(&b, '[');
	for (int i = 2; i < depth; i++)
		buf_add_char(&b, ']');
	buf_add_text(&b, "}}");
	return buf_take(&b, a);
}

/* --- store --- */

static enum rc note_handled(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	int *handled = arg;

	(void)s, (void)d, (void)e;
	++*handled;
	return RC_OK;
}

struct rig {
	struct kernel_rig base;
	struct queue      queues[1];
	struct route      routes[1];
	int               handled;
};

/* Queue and route are there. */
static void open_with(struct rig *r)
{
	r->base.options = (struct kernel_options){
		.queues = r->queues, .queue_count = 1, .routes = r->routes, .route_count = 1
	};
	rig_open(&r->base);
}

static void open_rig(struct rig *r)
{
	*r = (struct rig){ 0 };
	r->queues[0] = (struct queue){ .name = "moves", .handle = note_handled, .arg = &r->handled };
	r->routes[0] = (struct route){ "cloudtrail:MoveAccount", "moves" };
	open_with(r);
}

static enum intake_verdict take_in(struct rig *r, const char *source, const char *body)
{
	struct intake_call call = { .source = str_from(source), .request_id = STR("req-1") };
	size_t             count = 0;

	CHECK(intake_parse(call.source, str_from(body), &r->base.arena, &call.record, &count, NULL) == RC_OK);
	CHECK(count == 1);
	rig_run(&r->base, intake_store, &call);
	return call.record->verdict;
}

static struct event_list events_of(struct rig *r, const char *type)
{
	struct event_list list = { .type = str_from(type), .limit = 100 };

	CHECK(store_read(r->base.store, event_list, &list, &r->base.arena, NULL) == RC_OK);
	return list;
}

TEST(an_event_that_comes_twice_is_taken_once)
{
	struct rig        r;
	struct event_list list;

	open_rig(&r);
	CHECK(take_in(&r, "cloudtrail", move_event) == INTAKE_ACCEPTED);
	CHECK(take_in(&r, "cloudtrail", move_event) == INTAKE_DUPLICATE);
	rig_turn(&r.base);
	CHECK(r.handled == 1);
	list = events_of(&r, "cloudtrail:MoveAccount");
	CHECK(list.count == 1);
	CHECK(list.events[0].time_ms == r.base.clock.test_ms);
	CHECK(str_eq(list.events[0].request_id, STR("req-1")));
	CHECK(str_eq(list.events[0].detail, STR(move_event)));
	rig_close(&r.base);
}

TEST(the_same_id_from_another_inbox_is_another_event)
{
	struct rig r;

	open_rig(&r);
	CHECK(take_in(&r, "cloudtrail", move_event) == INTAKE_ACCEPTED);
	CHECK(take_in(&r, "other", move_event) == INTAKE_ACCEPTED);
	CHECK(events_of(&r, "other:MoveAccount").count == 1);
	rig_turn(&r.base);
	CHECK(r.handled == 1);
	rig_close(&r.base);
}

static enum rc always_fail(struct session *s UNUSED, const struct delivery *d UNUSED, void *arg UNUSED, struct err *e)
{
	return err_set(e, RC_UNAVAILABLE, "not now");
}

/* Takes the event in, lets its delivery die and replays it. RC_INVALID: it was not taken in. */
static enum rc take_in_and_replay(const char *body)
{
	struct rig          r = { 0 };
	struct dead_list    dead = { .limit = 10 };
	struct dead_call    call = { .actor = STR("admin") };
	enum intake_verdict verdict;
	enum rc             rc;

	r.queues[0] = (struct queue){ .name = "moves", .handle = always_fail, .tries = 1 };
	r.routes[0] = (struct route){ "cloudtrail:*", "moves" };
	open_with(&r);
	verdict = take_in(&r, "cloudtrail", body);
	rig_turn(&r.base);
	CHECK(store_read(r.base.store, dead_list, &dead, &r.base.arena, NULL) == RC_OK);
	CHECK(dead.page.count == (verdict == INTAKE_ACCEPTED));
	rc = RC_INVALID;
	if (verdict == INTAKE_ACCEPTED) {
		call.id = ((struct dead *)page_record(&dead.page, &dead_type, 0))->id;
		rc = rig_try(&r.base, dead_replay, &call, NULL);
		CHECK(rc == RC_OK);
	}
	rig_close(&r.base);
	return rc;
}

/* It was taken in, and the envelope around it was too deep to be read again. */
TEST(what_is_taken_in_can_be_replayed_however_deep_it_is)
{
	struct arena a = { 0 };

	CHECK(take_in_and_replay(nested_event(&a, INTAKE_DEPTH_MAX).p) == RC_OK);
	CHECK(take_in_and_replay(nested_event(&a, INTAKE_DEPTH_MAX + 1).p) == RC_INVALID);
	CHECK(take_in_and_replay(nested_event(&a, JSON_DEPTH_MAX).p) == RC_INVALID);
	arena_fini(&a);
}

/* It was taken in, and the detail around it was too deep for its handler. */
TEST(a_command_that_is_taken_in_can_be_read_however_deep_it_is)
{
	struct arena          a = { 0 };
	struct intake_record *record;
	json_t               *detail = NULL;
	size_t                count;
	int                   taken = 0;

	for (int depth = 4; depth <= JSON_DEPTH_MAX; depth++) {
		struct str command = str_format(&a,
		                                "{\"eventType\":\"START_CLUSTER_CREATION\",\"tenantId\":\"acme\","
		                                "\"correlationId\":\"c\",\"x\":%s}",
		                                nested_event(&a, depth - 1).p);

		CHECK(instance_intake(command, &a, &record, &count, NULL) == RC_OK && count == 1);
		if (record->verdict == INTAKE_REJECTED)
			continue;
		taken++;
		CHECK(json_parse(record->event.detail, &detail, NULL) == RC_OK);
		json_decref(detail);
	}
	CHECK(taken == INTAKE_DEPTH_MAX - 4);
	arena_fini(&a);
}

TEST(a_rejected_record_leaves_nothing_in_the_store)
{
	struct rig r;

	open_rig(&r);
	CHECK(take_in(&r, "cloudtrail", "{\"id\":\"1\"}") == INTAKE_REJECTED);
	CHECK(events_of(&r, "*").count == 0);
	rig_close(&r.base);
}

TEST(an_outsider_cannot_make_an_event_of_ours)
{
	struct rig r;

	open_rig(&r);
	CHECK(take_in(&r, "cloudtrail", "{\"id\":\"1\",\"detail-type\":\"AlarmRaised\"}") == INTAKE_ACCEPTED);
	CHECK(events_of(&r, "AlarmRaised").count == 0);
	CHECK(events_of(&r, "cloudtrail:AlarmRaised").count == 1);
	rig_close(&r.base);
}
