/* SPDX-License-Identifier: Apache-2.0 */
/* test_guard_parse.c - the conformance cases P1 to P20: what is read of a MoveAccount, bare and as a queue wraps it. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "domain/lease.h"
#include "domain/move_event.h"
#include "kernel/edge/intake.h"

/* What is not given is as in a good event. */
struct form {
	const char *source, *name, *account, *from, *to;
};

static struct str write_event(struct arena *a, const char *id, const struct form *f)
{
	return str_format(
	        a,
	        "{\"version\":\"0\",\"id\":\"%s\",\"detail-type\":\"AWS API Call via CloudTrail\",\"source\":\"%s\","
	        "\"account\":\"999988887777\",\"time\":\"2026-01-28T10:00:00Z\",\"region\":\"us-east-1\","
	        "\"resources\":[],\"detail\":{\"eventVersion\":\"1.08\",\"userIdentity\":{\"arn\":\"arn:aws:sts::1\"},"
	        "\"eventTime\":\"2026-01-28T09:59:58Z\",\"eventSource\":\"organizations.amazonaws.com\","
	        "\"eventName\":\"%s\",\"requestParameters\":{%s%s%s\"sourceParentId\":\"%s\","
	        "\"destinationParentId\":\"%s\"},\"responseElements\":null,\"eventID\":\"trail-%s\"}}",
	        id, f->source ? f->source : "aws.organizations", f->name ? f->name : "MoveAccount",
	        f->account && !*f->account ? "" : "\"accountId\":\"", f->account ? f->account : "111122223333",
	        f->account && !*f->account ? "" : "\",", f->from ? f->from : "ou-abcd-cleanup00",
	        f->to ? f->to : "ou-abcd-availabl0", id);
}

/* As a member "body" of a record: the event as text. */
static struct str wrap(struct arena *a, const char *message_id, struct str event)
{
	json_t    *record = json_pack("{s:s, s:s%}", "messageId", message_id, "body", event.p, event.n);
	char      *text = json_dumps(record, JSON_COMPACT);
	struct str copy = str_dup(a, str_from(text));

	free(text);
	json_decref(record);
	return copy;
}

struct reading {
	struct arena          arena;
	struct intake_record *records;
	size_t                count;
	struct err            e;
	enum rc               rc;
};

static void read_body(struct reading *r, struct str body)
{
	r->rc = intake_parse(STR("cloudtrail"), body, &r->arena, &r->records, &r->count, &r->e);
}

static struct str batch(struct arena *a, int count)
{
	struct str all = STR("");

	for (int i = 0; i < count; i++) {
		char       id[16];
		struct str record;

		snprintf(id, sizeof(id), "e-%d", i);
		record = wrap(a, id, write_event(a, id, &(struct form){ 0 }));
		all = str_format(a, "%.*s%s%.*s", STR_ARG(all), i ? "," : "", STR_ARG(record));
	}
	return str_format(a, "{\"Records\":[%.*s]}", STR_ARG(all));
}

/* The event as the guard finds it in the log. */
static enum rc read_move(struct reading *r, size_t i, struct move_event *ret, struct move_problem *p)
{
	CHECK(i < r->count && r->records[i].verdict == INTAKE_ACCEPTED);
	return move_event_parse(r->records[i].event.detail, &r->arena, ret, p);
}

static enum rc parse(struct arena *a, const struct form *f, struct move_event *ret, struct move_problem *p)
{
	return move_event_parse(write_event(a, "e-1", f), a, ret, p);
}

static bool has_five_fields(const struct move_event *m, const char *trail_id)
{
	return str_eq(m->account, STR("111122223333")) && str_eq(m->source, STR("ou-abcd-cleanup00")) &&
	       str_eq(m->destination, STR("ou-abcd-availabl0")) && str_eq(m->time, STR("2026-01-28T09:59:58Z")) &&
	       str_eq(m->id, str_from(trail_id));
}

TEST(p1_a_wrapped_valid_event_gives_the_five_fields)
{
	struct reading    r = { 0 };
	struct move_event m;

	read_body(&r, batch(&r.arena, 1));
	CHECK(r.rc == RC_OK && r.count == 1 && read_move(&r, 0, &m, NULL) == RC_OK);
	CHECK(has_five_fields(&m, "trail-e-0"));
	CHECK(m.time_ms == 1769594398000 && !m.error_code.n && str_eq(m.by, STR("arn:aws:sts::1")));
	CHECK(str_eq(r.records[0].event.subject, STR("account/111122223333")));
	arena_reset(&r.arena);

	read_body(&r, wrap(&r.arena, "m-1", write_event(&r.arena, "e-0", &(struct form){ 0 }))); /* one record alone */
	CHECK(r.rc == RC_OK && r.count == 1 && read_move(&r, 0, &m, NULL) == RC_OK && has_five_fields(&m, "trail-e-0"));
	arena_fini(&r.arena);
}

TEST(p2_no_records_is_an_error)
{
	struct reading r = { 0 };

	read_body(&r, STR("{\"Records\":[]}"));
	CHECK(r.rc == RC_INVALID && strstr(r.e.msg, "0 events"));
	arena_fini(&r.arena);
}

TEST(p3_a_body_that_is_not_json_is_an_error)
{
	struct reading r = { 0 };

	read_body(&r, STR("{\"Records\":[{\"messageId\":\"m-1\",\"body\":\"not json\"}]}"));
	CHECK(r.rc == RC_OK && r.records[0].verdict == INTAKE_REJECTED && r.records[0].e.rc == RC_INVALID);
	CHECK(str_eq(r.records[0].id, STR("m-1")) && strstr(r.records[0].e.msg, "body"));
	arena_fini(&r.arena);
}

TEST(p4_an_event_without_an_account_is_an_error)
{
	struct arena        a = { 0 };
	struct move_event   m;
	struct move_problem p;
	struct str          text = write_event(&a, "e-1", &(struct form){ .account = "" });

	CHECK(!text_has(text, "accountId"));
	CHECK(move_event_parse(text, &a, &m, &p) == RC_INVALID);
	CHECK(p.kind == MOVE_MISSING && strstr(p.details, "accountId"));
	arena_fini(&a);
}

TEST(p5_another_source_is_an_error)
{
	struct arena        a = { 0 };
	struct move_event   m;
	struct move_problem p;

	CHECK(parse(&a, &(struct form){ .source = "aws.ec2" }, &m, &p) == RC_INVALID);
	CHECK(p.kind == MOVE_OTHER_EVENT && strstr(p.details, "aws.organizations") && strstr(p.details, "aws.ec2"));
	arena_fini(&a);
}

TEST(p6_another_call_is_an_error)
{
	struct arena        a = { 0 };
	struct move_event   m;
	struct move_problem p;

	CHECK(parse(&a, &(struct form){ .name = "CreateAccount" }, &m, &p) == RC_INVALID);
	CHECK(p.kind == MOVE_OTHER_EVENT && strstr(p.details, "detail.eventName") &&
	      strstr(p.details, "CreateAccount"));
	arena_fini(&a);
}

TEST(p7_eleven_records_are_an_error_that_states_11_and_10)
{
	struct reading r = { 0 };

	read_body(&r, batch(&r.arena, 11));
	CHECK(r.rc == RC_INVALID && strstr(r.e.msg, "11") && strstr(r.e.msg, "10"));
	err_clear(&r.e);
	read_body(&r, batch(&r.arena, 10));
	CHECK(r.rc == RC_OK && r.count == 10);
	arena_fini(&r.arena);
}

TEST(p8_a_root_is_a_valid_source)
{
	struct arena      a = { 0 };
	struct move_event m;

	CHECK(parse(&a, &(struct form){ .from = "r-abcd" }, &m, NULL) == RC_OK && str_eq(m.source, STR("r-abcd")));
	arena_fini(&a);
}

TEST(p9_two_records_are_read_in_order_with_their_own_ids)
{
	struct reading    r = { 0 };
	struct move_event first, second;

	read_body(&r, batch(&r.arena, 2));
	CHECK(r.rc == RC_OK && r.count == 2);
	CHECK(read_move(&r, 0, &first, NULL) == RC_OK && read_move(&r, 1, &second, NULL) == RC_OK);
	CHECK(str_eq(first.id, STR("trail-e-0")) && str_eq(second.id, STR("trail-e-1")));
	CHECK(str_eq(r.records[0].id, STR("e-0")) && str_eq(r.records[1].id, STR("e-1")));
	arena_fini(&r.arena);
}

TEST(p10_an_unwrapped_valid_event_is_read)
{
	struct reading    r = { 0 };
	struct move_event m;

	read_body(&r, write_event(&r.arena, "e-1", &(struct form){ 0 }));
	CHECK(r.rc == RC_OK && r.count == 1 && read_move(&r, 0, &m, NULL) == RC_OK && has_five_fields(&m, "trail-e-1"));
	arena_fini(&r.arena);
}

TEST(p11_unwrapped_junk_is_an_error)
{
	static const char *const junk[] = {
		"", "7", "[]", "{}", "null", "\"text\"", "{\"detail\":7}", "{\"detail\":{}}"
	};
	struct arena        a = { 0 };
	struct move_event   m;
	struct move_problem p;

	for (size_t i = 0; i < ARRAY_LEN(junk); i++) {
		CASE(junk[i]);
		memset(&p, 0, sizeof(p));
		CHECK(move_event_parse(str_from(junk[i]), &a, &m, &p) == RC_INVALID && p.details[0]);
	}
	arena_fini(&a);
}

TEST(p12_a_problem_carries_kind_action_and_details)
{
	struct move_problem p;

	move_problem_set(&p, MOVE_BAD_ID, "HANDLER_ERROR", "account %d", 7);
	CHECK(p.kind == MOVE_BAD_ID && strcmp(move_problem_names[p.kind], "bad-id") == 0);
	CHECK(strcmp(p.action, "HANDLER_ERROR") == 0 && strcmp(p.details, "account 7") == 0);
}

TEST(p13_the_default_action_is_parse_error)
{
	struct arena        a = { 0 };
	struct move_event   m;
	struct move_problem p;

	CHECK(move_event_parse(STR("{"), &a, &m, &p) == RC_INVALID);
	CHECK(p.kind == MOVE_NOT_JSON && strcmp(p.action, "PARSE_ERROR") == 0);
	arena_fini(&a);
}

TEST(p14_the_first_and_the_last_account_are_valid)
{
	struct arena      a = { 0 };
	struct move_event m;

	CHECK(account_id_is_ok(STR("000000000000")) && account_id_is_ok(STR("999999999999")));
	CHECK(parse(&a, &(struct form){ .account = "000000000000" }, &m, NULL) == RC_OK);
	arena_fini(&a);
}

static void check_each(const char *const *ids, size_t count, bool (*is_ok)(struct str), bool expected)
{
	for (size_t i = 0; i < count; i++) {
		CASE(ids[i]);
		CHECK(is_ok(str_from(ids[i])) == expected);
	}
}

TEST(p15_what_has_not_twelve_digits_is_no_account)
{
	static const char *const ids[] = { "11112222333",   "1111222233334", "11112222333a", "",
		                           "111122223333 ", "-11122223333" };
	struct arena             a = { 0 };
	struct move_event        m;
	struct move_problem      p;

	check_each(ids, ARRAY_LEN(ids), account_id_is_ok, false);
	CHECK(parse(&a, &(struct form){ .account = "11112222333a" }, &m, &p) == RC_INVALID && p.kind == MOVE_BAD_ID);
	arena_fini(&a);
}

TEST(p16_ous_are_accepted)
{
	static const char *const ids[] = { "ou-abcd-12345678", "ou-abcd-cleanup00",
		                           "ou-a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6-a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6" };

	check_each(ids, ARRAY_LEN(ids), move_is_ou, true);
}

TEST(p17_what_is_no_ou_is_rejected)
{
	static const char *const ids[] = {
		"r-abcd",           "ou-abcd",          "ou-abcd-",        "111122223333",    "",
		"OU-ABCD-12345678", "ou-ABCD-12345678", "ou-abc-12345678", "ou-abcd-1234567", "ou-abcd-1234567-",
		"ou-abcd-12345678-"
	};

	check_each(ids, ARRAY_LEN(ids), move_is_ou, false);
}

TEST(p18_an_ou_is_a_parent)
{
	CHECK(move_is_parent(STR("ou-abcd-12345678")));
}

TEST(p19_a_root_of_4_or_10_characters_is_a_parent)
{
	CHECK(move_is_parent(STR("r-ab12")) && move_is_parent(STR("r-abcde12345")));
}

TEST(p20_what_is_no_parent_is_rejected)
{
	static const char *const ids[] = { "111122223333", "", "ou-abcd-1234567", "R-abcd", "r-abc", "r-ABCD", "r-" };

	check_each(ids, ARRAY_LEN(ids), move_is_parent, false);
}

TEST(a_call_that_failed_is_a_good_event_that_says_so)
{
	struct arena      a = { 0 };
	struct move_event m;
	struct str        text = write_event(&a, "e-1", &(struct form){ .name = "MoveAccount\",\"errorCode\":\"X" });

	CHECK(move_event_parse(text, &a, &m, NULL) == RC_OK && str_eq(m.error_code, STR("X")));
	text = write_event(&a, "e-1", &(struct form){ .name = "MoveAccount\",\"errorCode\":7,\"x\":\"" });
	CHECK(move_event_parse(text, &a, &m, NULL) == RC_OK && m.error_code.n); /* a code that we cannot read is one */
	arena_fini(&a);
}
