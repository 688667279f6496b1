/* SPDX-License-Identifier: Apache-2.0 */
/* test_instance.c - the life of an instance: the whole table against the contract's, the coarse view, what may be
 * asked for, names. */
#include "test.h"

#include <string.h>

#include "base/arena.h"
#include "domain/instance.h"

#define S(name) INSTANCE_##name
#define T(name) INSTANCE_ON_##name

/* The contract's section 3.1, one line for each from-state. */
static const struct {
	int                   number;
	enum instance_state   from, to;
	enum instance_trigger on;
} contract[] = {
	{ 1, S(NONE), S(PENDING_PROVISIONING), T(CREATE) },
	{ 1, S(DEPROVISIONED), S(PENDING_PROVISIONING), T(CREATE) },
	{ 2, S(PENDING_PROVISIONING), S(PROVISIONING_EFS), T(BEGIN) },
	{ 3, S(PROVISIONING_EFS), S(PROVISIONING_RDS), T(STORAGE_READY) },
	{ 4, S(PROVISIONING_RDS), S(PROVISIONING_ECS), T(DATABASE_READY) },
	{ 5, S(PROVISIONING_ECS), S(CONFIGURING_ALB), T(STABLE) },
	{ 6, S(CONFIGURING_ALB), S(PROVISIONING_COGNITO), T(ROUTED) },
	{ 7, S(PROVISIONING_COGNITO), S(CONFIGURING_WORDPRESS), T(IDENTITY_READY) },
	{ 8, S(CONFIGURING_WORDPRESS), S(ACTIVE), T(CONFIGURED) },
	{ 9, S(PENDING_PROVISIONING), S(FAILED), T(ROLLED_BACK) },
	{ 9, S(PROVISIONING_EFS), S(FAILED), T(ROLLED_BACK) },
	{ 9, S(PROVISIONING_RDS), S(FAILED), T(ROLLED_BACK) },
	{ 9, S(PROVISIONING_ECS), S(FAILED), T(ROLLED_BACK) },
	{ 9, S(CONFIGURING_ALB), S(FAILED), T(ROLLED_BACK) },
	{ 9, S(PROVISIONING_COGNITO), S(FAILED), T(ROLLED_BACK) },
	{ 9, S(CONFIGURING_WORDPRESS), S(FAILED), T(ROLLED_BACK) },
	{ 10, S(FAILED), S(PENDING_PROVISIONING), T(RETRY) },
	{ 11, S(FAILED), S(PENDING_DEPROVISIONING), T(DELETE) },
	{ 12, S(ACTIVE), S(SCALING), T(SCALE) },
	{ 13, S(SCALING), S(ACTIVE), T(SCALED) },
	{ 14, S(SCALING), S(FAILED), T(SCALE_FAILED) },
	{ 15, S(ACTIVE), S(SUSPENDING), T(SUSPEND) },
	{ 16, S(SUSPENDING), S(SUSPENDED), T(DRAINED) },
	{ 17, S(SUSPENDING), S(ACTIVE), T(DRAIN_FAILED) },
	{ 18, S(SUSPENDED), S(RESUMING), T(RESUME) },
	{ 19, S(RESUMING), S(ACTIVE), T(RESUMED) },
	{ 20, S(RESUMING), S(SUSPENDED), T(RESUME_FAILED) },
	{ 21, S(ACTIVE), S(PARKING), T(PARK) },
	{ 22, S(PARKING), S(PARKED), T(RELEASED) },
	{ 23, S(PARKED), S(UNPARKING), T(UNPARK) },
	{ 24, S(UNPARKING), S(ACTIVE), T(REBUILT) },
	{ 25, S(UNPARKING), S(PARKED), T(REBUILD_FAILED) },
	{ 26, S(PARKING), S(ACTIVE), T(RELEASE_FAILED) },
	{ 27, S(ACTIVE), S(PENDING_DEPROVISIONING), T(DELETE) },
	{ 27, S(SUSPENDED), S(PENDING_DEPROVISIONING), T(DELETE) },
	{ 27, S(PARKED), S(PENDING_DEPROVISIONING), T(DELETE) },
	{ 28, S(PENDING_DEPROVISIONING), S(DEPROVISIONING), T(REMOVE) },
	{ 29, S(DEPROVISIONING), S(DEPROVISIONED), T(REMOVED) },
	{ 30, S(DEPROVISIONING), S(PENDING_DEPROVISIONING), T(REMOVE_FAILED) },
	{ 31, S(ACTIVE), S(FAILED), T(BREAK) },
	{ 32, S(FAILED), S(ACTIVE), T(RECOVER) },
	{ 33, S(PENDING_PROVISIONING), S(PENDING_DEPROVISIONING), T(DELETE) },
};

static int find(enum instance_state from, enum instance_trigger on)
{
	for (size_t i = 0; i < ARRAY_LEN(contract); i++)
		if (contract[i].from == from && contract[i].on == on)
			return (int)i;
	return -1;
}

TEST(an_instance_follows_the_contracts_table_and_nothing_else)
{
	for (int from = 0; from <= INSTANCE_NONE; from++)
		for (int on = 0; on < INSTANCE_TRIGGER_COUNT; on++) {
			const struct instance_step *s = instance_step((enum instance_state)from,
			                                              (enum instance_trigger)on);
			int                         row = find((enum instance_state)from, (enum instance_trigger)on);

			CASE(instance_state_name((enum instance_state)from));
			CASE(instance_trigger_texts[on]);
			CHECK((s != NULL) == (row >= 0));
			CHECK(!s || (s->to == contract[row].to && s - instance_steps + 1 == contract[row].number));
		}
}

TEST(every_state_is_reached_and_leads_to_the_end)
{
	bool ends[INSTANCE_STATE_COUNT] = { [INSTANCE_DEPROVISIONED] = true }, is_reached[INSTANCE_STATE_COUNT] = { 0 };

	for (int round = 0; round < INSTANCE_STATE_COUNT; round++)
		for (size_t i = 0; i < ARRAY_LEN(contract); i++) {
			is_reached[contract[i].to] = true;
			if (contract[i].from != INSTANCE_NONE && ends[contract[i].to])
				ends[contract[i].from] = true;
		}
	for (int s = 0; s < INSTANCE_STATE_COUNT; s++) {
		CASE(instance_state_names[s]);
		CHECK(is_reached[s] && ends[s]);
	}
}

TEST(the_seven_steps_of_provisioning_read_provisioning)
{
	int count = 0;

	for (int s = 0; s < INSTANCE_STATE_COUNT; s++) {
		const char *status = instance_status((enum instance_state)s);

		CASE(instance_state_names[s]);
		count += !strcmp(status, "PROVISIONING");
		CHECK(!strcmp(status, "PROVISIONING") || !strcmp(status, instance_state_names[s]));
	}
	CHECK(count == 7);
}

TEST(a_refusal_says_whether_to_wait)
{
	struct instance i = { .id = STR("inst-1"), .state = INSTANCE_SUSPENDED };
	struct err      e = { 0 };

	CHECK(instance_apply(&i, INSTANCE_ON_PARK, 5, &e) == RC_UNFIT && !strcmp(e.code, "INVALID_STATUS_TRANSITION"));
	CHECK(strstr(e.msg, "inst-1 is SUSPENDED: park"));
	i.state = INSTANCE_SCALING;
	err_clear(&e);
	CHECK(instance_apply(&i, INSTANCE_ON_PARK, 5, &e) == RC_UNFIT && !strcmp(e.code, "OPERATION_IN_PROGRESS"));
	CHECK(i.state == INSTANCE_SCALING && i.updated_ms == 0);
	CHECK(instance_apply(&i, INSTANCE_ON_SCALED, 5, &e) == RC_OK && i.state == INSTANCE_ACTIVE &&
	      i.updated_ms == 5);
	CHECK(rc_http_status(RC_UNFIT) == 422);
}

TEST(the_commands_that_are_allowed_are_named)
{
	static const struct {
		enum instance_state state;
		const char         *json;
	} cases[] = {
		{ INSTANCE_ACTIVE, "[\"delete\",\"scale\",\"suspend\",\"park\"]" },
		{ INSTANCE_SUSPENDED, "[\"delete\",\"resume\"]" },
		{ INSTANCE_PARKED, "[\"delete\",\"unpark\"]" },
		{ INSTANCE_FAILED, "[\"create\",\"delete\",\"recover\"]" },
		{ INSTANCE_DEPROVISIONED, "[\"create\"]" },
		{ INSTANCE_SCALING, "[]" },
		{ INSTANCE_PENDING_PROVISIONING, "[\"delete\"]" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf      b;
		struct json_out o;

		CASE(instance_state_names[cases[i].state]);
		buf_init(&b, 1000);
		o = JSON_OUT(&b);
		json_open_object(&o);
		instance_put_allowed(&o, "a", cases[i].state);
		json_close_object(&o);
		CHECK(text_has(buf_str(&b), cases[i].json));
		buf_fini(&b);
	}
}

/* --- bodies --- */

static const struct {
	const char        *label, *body;
	enum instance_body kind;
	const char        *codes; /* field:code of each problem */
} bodies[] = {
	{ "the least", "{\"organizationName\":\"Acme\",\"contactEmail\":\"a@acme.example\"}", BODY_CREATE, "" },
	{ "the most",
	  "{\"organizationName\":\"Müller's Café-2\",\"contactEmail\":\"a@acme.example\",\"tier\":\"ENTERPRISE\","
	  "\"configuration\":{\"desiredCount\":10,\"wordpressVersion\":\"6.5\"},\"opportunityId\":\"op-1\"}",
	  BODY_CREATE, "" },
	{ "nothing", "{}", BODY_CREATE, "organizationName:REQUIRED contactEmail:REQUIRED " },
	{ "a list", "[]", BODY_CREATE, "body:INVALID_TYPE " },
	{ "one letter", "{\"organizationName\":\"A\",\"contactEmail\":\"a@acme.example\"}", BODY_CREATE,
	  "organizationName:INVALID_FORMAT " },
	{ "one letter and a blank, which is not kept",
	  "{\"organizationName\":\" A\",\"contactEmail\":\"a@acme.example\"}", BODY_CREATE,
	  "organizationName:INVALID_FORMAT " },
	{ "other characters", "{\"organizationName\":\"A<b>\",\"contactEmail\":\"acme.example\"}", BODY_CREATE,
	  "organizationName:INVALID_FORMAT contactEmail:INVALID_FORMAT " },
	{ "types", "{\"organizationName\":1,\"contactEmail\":true,\"tier\":1,\"configuration\":1}", BODY_CREATE,
	  "organizationName:INVALID_TYPE contactEmail:INVALID_TYPE tier:INVALID_TYPE configuration:INVALID_TYPE " },
	{ "unknown members",
	  "{\"organizationName\":\"Acme\",\"contactEmail\":\"a@acme.example\",\"x\":1,\"configuration\":{\"y\":1}}",
	  BODY_CREATE, "body:UNKNOWN_FIELD configuration:UNKNOWN_FIELD " },
	{ "eleven", "{\"desiredCount\":11}", BODY_SIZE, "desiredCount:SCALE_LIMIT_EXCEEDED " },
	{ "one", "{\"desiredCount\":1}", BODY_SIZE, "desiredCount:SCALE_LIMIT_EXCEEDED " },
	{ "two", "{\"desiredCount\":2}", BODY_SIZE, "" },
	{ "a half", "{\"desiredCount\":2.5}", BODY_SIZE, "desiredCount:INVALID_TYPE " },
	{ "no size", "{}", BODY_SIZE, "desiredCount:REQUIRED " },
	{ "suspend without a reason", "{\"action\":\"suspend\"}", BODY_STATUS, "reason:REQUIRED " },
	{ "park without a reason", "{\"action\":\"park\",\"reason\":\" \"}", BODY_STATUS, "reason:REQUIRED " },
	{ "resume", "{\"action\":\"resume\"}", BODY_STATUS, "" },
	{ "another action", "{\"action\":\"explode\"}", BODY_STATUS, "action:INVALID_FORMAT " },
	{ "the size is not changed by PUT", "{\"configuration\":{\"desiredCount\":3}}", BODY_CHANGE,
	  "configuration:UNKNOWN_FIELD " },
	{ "nothing to change", "{}", BODY_CHANGE, "body:REQUIRED " },
	{ "a version", "{\"configuration\":{\"wordpressVersion\":\"6.4; rm\"}}", BODY_CHANGE,
	  "configuration.wordpressVersion:INVALID_FORMAT " },
	{ "data are archived", "{\"archiveData\":false}", BODY_DELETE, "archiveData:INVALID_VALUE " },
	{ "which backup", "{}", BODY_RESTORE, "backupId:REQUIRED " },
};

TEST(a_body_is_read_strictly_and_everything_wrong_is_told)
{
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		struct arena             a = { 0 };
		struct instance_problems p = { .arena = &a };
		struct instance_want     w;
		json_t                  *body = NULL;
		char                     found[400] = "";

		CASE(bodies[i].label);
		CHECK(json_parse(str_from(bodies[i].body), &body, NULL) == RC_OK);
		instance_want_read(body, bodies[i].kind, &w, &p);
		for (size_t k = 0; k < p.count; k++)
			snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s:%s ", p.items[k].field,
			         p.items[k].code);
		CHECK(!strcmp(found, bodies[i].codes));
		json_decref(body);
		arena_fini(&a);
	}
}

/* --- names --- */

TEST(a_tenants_id_is_checked)
{
	CHECK(tenant_id_is_ok(STR("tenant-abc123")) && tenant_id_is_ok(STR("abc")));
	CHECK(!tenant_id_is_ok(STR("ab")) && !tenant_id_is_ok(STR("-abc")) && !tenant_id_is_ok(STR("Abc")));
	CHECK(!tenant_id_is_ok(STR("a/b")) && !tenant_id_is_ok(STR("a_b")));
	CHECK(!tenant_id_is_ok(STR("0123456789012345678901234567890123456789012345678901234567890123")));
}

TEST(names_have_the_prefix_once_and_fit)
{
	struct arena a = { 0 };
	char         one[INSTANCE_NAME_SIZE], two[INSTANCE_NAME_SIZE];

	CHECK(str_eq(instance_resource_name(STR("tenant-abc123"), INSTANCE_STORAGE, &a), STR("/tenant-abc123")));
	CHECK(str_eq(instance_resource_name(STR("tenant-a-b"), INSTANCE_DATABASE, &a), STR("tenant_a_b_db")));
	CHECK(str_eq(instance_resource_name(STR("tenant-abc123"), INSTANCE_WORKERS, &a),
	             STR("tenant-abc123-wordpress")));
	instance_short_name(STR("tenant-123e4567-e89b-12d3-a456-426614174000"), one);
	instance_short_name(STR("tenant-123e4567-e89b-12d3-a456-426614174001"), two);
	CHECK(strlen(one) == INSTANCE_NAME_SIZE - 1 && strcmp(one, two) != 0);
	instance_short_name(STR("tenant-abc"), one);
	instance_short_name(STR("abc"), two);
	CHECK(!strcmp(one, "abc") && strcmp(one, two) != 0);
	arena_fini(&a);
}

TEST(versions_and_tiers)
{
	int64_t cpu, memory;

	CHECK(str_eq(instance_version(STR(""), "6.5 6.4"), STR("6.5")));
	CHECK(str_eq(instance_version(STR("latest"), "6.5 6.4"), STR("6.5")));
	CHECK(str_eq(instance_version(STR("6.4"), "6.5 6.4"), STR("6.4")));
	CHECK(instance_version(STR("6"), "6.5 6.4").n == 0);
	instance_tier_size(TIER_STANDARD, &cpu, &memory);
	CHECK(cpu == 512 && memory == 1024);
	instance_tier_size(TIER_ENTERPRISE, &cpu, &memory);
	CHECK(cpu == 2048 && memory == 4096);
}
