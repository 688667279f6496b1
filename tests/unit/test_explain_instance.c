/* SPDX-License-Identifier: Apache-2.0 */
/* test_explain_instance.c - instances in words, in each situation that somebody would ask about. */
#include "test.h"

#include "account_rig.h"
#include "explained.h"
#include "kernel/records.h"
#include "kernel/timer.h"
#include "service/instance/instance_records.h"

static enum rc add_instance(struct session *s, void *arg, struct err *e UNUSED)
{
	session_add(s, &instance_type, arg);
	return RC_OK;
}

static enum rc add_operation(struct session *s, void *arg, struct err *e UNUSED)
{
	session_add(s, &operation_type, arg);
	return RC_OK;
}

static enum rc add_saga(struct session *s, void *arg, struct err *e UNUSED)
{
	session_add(s, &saga_type, arg);
	return RC_OK;
}

static enum rc put_backup(struct session *s, void *arg, struct err *e)
{
	struct backup *b = arg, old;
	enum rc        rc = session_find_or_new(s, &backup_type, b->id, &old, e);

	b->version = old.version;
	if (!rc)
		session_put(s, &backup_type, b);
	return rc;
}

static enum rc arm(struct session *s, void *arg, struct err *e)
{
	return session_arm(s, arg, e);
}

/* One that has all its resources; the test changes it and puts it into the store. */
static struct instance open_rig(struct account_rig *r)
{
	struct instance i = { .id = STR("inst-1"),
		              .tenant = STR("tenant-acme"),
		              .organization = STR("Acme"),
		              .contact_email = STR("a@acme.example"),
		              .wordpress_version = STR("6.5"),
		              .desired_count = 2,
		              .running_count = 2,
		              .state = INSTANCE_ACTIVE,
		              .has_data = 1 };

	account_rig_open(r);
	hold_rules_defaults(&r->rules);
	i.created_ms = i.updated_ms = r->rig.clock.test_ms;
	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		i.outputs[kind] = STR("{}");
	return i;
}

static json_t *instance_explained(struct account_rig *r)
{
	return explained(r->rig.store, &r->rig.arena, "instance", STR("inst-1"));
}

TEST(an_instance_is_explained_in_each_of_its_states)
{
	static const struct {
		enum instance_state state;
		int                 has_data;
		const char         *summary, *command;
	} rows[] = {
		{ INSTANCE_ACTIVE, 1, "is active: 2 of 2 tasks run, at http://acme.example", "instance suspend" },
		{ INSTANCE_SUSPENDED, 1, "is SUSPENDED: unpaid", "instance resume" },
		{ INSTANCE_PARKED, 1, "is PARKED: unpaid", "instance unpark" },
		{ INSTANCE_FAILED, 1, "has failed; its data are there", "instance recover" },
		{ INSTANCE_FAILED, 0, "has failed before it ever ran", "instance delete" },
		{ INSTANCE_PENDING_DEPROVISIONING, 1, "is PENDING_DEPROVISIONING: unpaid", "instance delete" },
	};

	for (size_t n = 0; n < ARRAY_LEN(rows); n++) {
		CLEANUP(json_freep) json_t *answer = NULL;
		struct account_rig          r = { 0 };
		struct instance             i = open_rig(&r);

		CASE(rows[n].summary);
		i.state = rows[n].state;
		i.has_data = rows[n].has_data;
		i.reason = STR("unpaid");
		i.endpoint = STR("http://acme.example");
		rig_run(&r.rig, add_instance, &i);
		answer = instance_explained(&r);
		CHECK(says(answer, "where", instance_state_name(i.state)) && says(answer, "summary", rows[n].summary));
		CHECK(lists(answer, "can", "command", rows[n].command));
		CHECK(count_of(answer, "why", NULL, "instance create tenant-acme") ==
		      (i.state == INSTANCE_FAILED && !i.has_data));
		account_rig_close(&r);
	}
}

TEST(an_instance_below_its_number_of_tasks_says_since_when)
{
	CLEANUP(json_freep) json_t *answer = NULL;
	struct account_rig          r = { 0 };
	struct instance             i = open_rig(&r);

	i.running_count = 1;
	i.below_since_ms = i.created_ms;
	rig_run(&r.rig, add_instance, &i);
	answer = instance_explained(&r);
	CHECK(lists(answer, "problems", NULL, "1 of 2 tasks run since 2023-11-"));
	account_rig_close(&r);
}

TEST(an_instance_whose_provisioning_is_parked_says_where_why_and_what_may_be_left)
{
	CLEANUP(json_freep) json_t *answer = NULL;
	struct account_rig          r = { 0 };
	struct instance             i = open_rig(&r);
	struct operation            op = { .id = STR("op-1"), .kind = OP_CREATE, .requested_by = STR("admin") };
	struct saga                 saga = { .id = STR("op-1"),
		                             .kind = STR("instance-create"),
		                             .subject = STR("instance/inst-1"),
		                             .state = SAGA_PARKED,
		                             .is_back = 1,
		                             .step = 1,
		                             .marks = STR("ddd"),
		                             .input = STR("{}"),
		                             .data = STR("{}"),
		                             .reason = STR("no disk"),
		                             .leftovers = STR("[\"storage\"]") };

	i.state = INSTANCE_FAILED;
	i.has_data = 0;
	i.operation = op.instance = STR("op-1");
	i.last_error = STR("{\"code\":\"PROV-002\",\"message\":\"no disk\",\"step\":\"storage\","
	                   "\"leftovers\":[\"storage fs-1\"]}");
	op.instance = i.id;
	op.tenant = i.tenant;
	op.started_ms = saga.started_ms = saga.step_since_ms = i.created_ms;
	rig_run(&r.rig, add_instance, &i);
	rig_run(&r.rig, add_operation, &op);
	rig_run(&r.rig, add_saga, &saga);
	answer = instance_explained(&r);
	CHECK(lists(answer, "problems", NULL, "PROV-002 at the step storage: no disk.") &&
	      lists(answer, "problems", NULL, "May be left over: storage fs-1."));
	CHECK(lists(answer, "why", NULL, "Operation create (op-1) was requested by admin at 2023-11-"));
	CHECK(lists(answer, "problems", NULL, "op-1 is parked while undoing step 2 of 3"));
	CHECK(lists(answer, "can", "command", "saga retry op-1"));
	account_rig_close(&r);
}

TEST(a_removed_instance_says_what_becomes_of_its_data)
{
	CLEANUP(json_freep) json_t *kept = NULL;
	CLEANUP(json_freep) json_t *removed = NULL;
	struct account_rig          r = { 0 };
	struct instance             i = open_rig(&r);
	struct backup               b = { .id = STR("final-inst-1"), .instance = i.id, .tenant = i.tenant };
	struct timer                timer = { .name = STR("instance-archive/final-inst-1"),
		                              .type = STR("InstanceArchiveDue"),
		                              .subject = STR("instance/inst-1"),
		                              .detail = STR("{}") };

	i.state = INSTANCE_DEPROVISIONED;
	i.removed_ms = i.created_ms;
	i.archive = b.id;
	i.archive_until_ms = b.until_ms = timer.due_ms = i.created_ms + 24 * HOUR_MS;
	b.kind = BACKUP_FINAL;
	b.state = BACKUP_KEPT;
	rig_run(&r.rig, add_instance, &i);
	rig_run(&r.rig, put_backup, &b);
	rig_run(&r.rig, arm, &timer);
	kept = instance_explained(&r);
	CHECK(says(kept, "summary", "was removed"));
	CHECK(lists(kept, "why", NULL, "Its data is kept in archive final-inst-1 until 2023-11-"));
	CHECK(lists(kept, "next", "what", "its archive is removed for good"));

	b.state = BACKUP_REMOVED;
	rig_run(&r.rig, put_backup, &b);
	removed = instance_explained(&r);
	CHECK(count_of(removed, "why", NULL, "is kept") == 0);
	CHECK(lists(removed, "why", NULL, "Its data was kept in archive final-inst-1 until 2023-11-"));
	account_rig_close(&r);
}

TEST(an_instance_that_never_ran_says_that_there_was_nothing_to_archive)
{
	CLEANUP(json_freep) json_t *answer = NULL;
	struct account_rig          r = { 0 };
	struct instance             i = open_rig(&r);

	i.state = INSTANCE_DEPROVISIONED;
	i.removed_ms = i.created_ms;
	i.has_data = 0;
	rig_run(&r.rig, add_instance, &i);
	answer = instance_explained(&r);
	CHECK(lists(answer, "why", NULL, "It was never active, so there was no data to archive."));
	account_rig_close(&r);
}
