/* SPDX-License-Identifier: Apache-2.0 */
/* test_instances.c - instances on the simulated cloud: each operation, each failure of it, what is left, what is
 * told. */
#include "test.h"

#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "domain/world.h"
#include "kernel/edge/intake.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/saga.h"
#include "kernel_rig.h"
#include "truth/sim_truth.h"
#include "providers/sim/faults.h"
#include "providers/sim/records.h"
#include "service/instance/instances.h"
#include "store/memory/memory.h"
#include "truth/test_clock.h"

#define ACME   STR("tenant-acme")
#define MINUTE 60000ll
#define DAY    (24 * 60 * MINUTE)

struct fixture {
	struct kernel_rig       rig;
	struct fault_plan       faults;
	uint64_t                chance;
	struct store           *sim_store;
	struct sim_cloud       *sim;
	struct instance_world   world;
	struct saga_kind        kinds[OP_COUNT];
	const struct saga_kind *kind_list[OP_COUNT];
	struct queue            queues[INSTANCE_QUEUES];
	struct route            routes[INSTANCE_QUEUES];
	struct instance_call    call; /* the last one */
	struct err              e;
};

/* Every transaction that writes is run twice, as after a conflict. */
static void set_up(struct fixture *f)
{
	const char *events[INSTANCE_QUEUES];

	*f = (struct fixture){ .rig.clock = clock_test(1700000000000) };
	f->sim_store = store_memory_open(sim_types, sim_type_count, &f->rig.clock);
	CHECK(sim_cloud_open(&(struct sim_cloud_options){ .store = f->sim_store,
	                                                  .clock = &f->rig.clock,
	                                                  .random = rig_random,
	                                                  .random_arg = &f->chance,
	                                                  .accounts = -1 },
	                     &f->sim, &f->e) == RC_OK);
	f->world = (struct instance_world){ .driver = sim_cloud_driver(f->sim), .archive_ms = 90 * DAY };
	instance_kinds(&f->world, f->kinds);
	for (int i = 0; i < OP_COUNT; i++)
		f->kind_list[i] = &f->kinds[i];
	instance_queues(&f->world, f->queues, events);
	for (int i = 0; i < INSTANCE_QUEUES; i++)
		f->routes[i] = (struct route){ events[i], f->queues[i].name };
	f->faults.next = FAULT_RERUN;
	f->faults.count = INT_MAX;
	f->rig.faults = &f->faults;
	f->rig.options.queues = f->queues;
	f->rig.options.queue_count = INSTANCE_QUEUES;
	f->rig.options.routes = f->routes;
	f->rig.options.route_count = INSTANCE_QUEUES;
	f->rig.options.sagas = f->kind_list;
	f->rig.options.saga_count = OP_COUNT;
	rig_open(&f->rig);
	f->world.store = f->rig.store;
}

static void tear_down(struct fixture *f)
{
	rig_close(&f->rig);
	sim_cloud_close(f->sim);
	store_close(f->sim_store);
}

/* --- what tests do --- */

static void goes_wrong(struct fixture *f, struct world_rule rule)
{
	struct world_rules rules = { .rules = { rule }, .count = 1 };

	sim_faults_set(sim_cloud_faults(f->sim), &rules);
}

static void goes_well(struct fixture *f)
{
	sim_faults_set(sim_cloud_faults(f->sim), &(struct world_rules){ 0 });
}

static enum rc ask(struct fixture *f, txn_fn *run, struct instance_want want)
{
	f->call = (struct instance_call){
		.world = &f->world, .tenant = ACME, .want = want, .actor = STR("admin"), .request_id = STR("req-1")
	};
	f->call.want.tier = want.tier ? want.tier : -1;
	err_clear(&f->e);
	return rig_try(&f->rig, run, &f->call, &f->e);
}

static const struct instance_want acme = { .organization = { "Acme", 4 }, .contact_email = { "a@acme.example", 14 } };

static enum rc ask_for_one(struct fixture *f)
{
	return ask(f, instance_create, acme);
}

static struct instance now(struct fixture *f)
{
	struct instance_call c = { .world = &f->world, .tenant = ACME };

	CHECK(rig_try(&f->rig, instance_get, &c, &f->e) == RC_OK);
	return c.instance;
}

static struct instance make_one(struct fixture *f)
{
	CHECK(ask_for_one(f) == RC_OK);
	rig_turn(&f->rig);
	rig_pass(&f->rig, MINUTE);
	CHECK(now(f).state == INSTANCE_ACTIVE);
	return now(f);
}

static void do_it(struct fixture *f, txn_fn *run, struct instance_want want)
{
	CHECK(ask(f, run, want) == RC_OK);
	rig_turn(&f->rig);
	rig_pass(&f->rig, 2 * MINUTE);
}

static struct sim_tenant_truth truth(struct fixture *f)
{
	struct sim_tenant_truth t;

	CHECK(sim_cloud_inspect_tenant(f->sim, ACME, &f->rig.arena, &t, NULL) == RC_OK);
	return t;
}

static size_t count_events(struct fixture *f, const char *type, struct event *ret_last)
{
	struct event_list l = { .type = str_from(type), .limit = 1000 };

	rig_run(&f->rig, event_list, &l);
	if (l.count && ret_last)
		*ret_last = l.events[l.count - 1];
	return l.count;
}

static const struct instance_want why = { .reason = { "unpaid", 6 } };

/* --- create --- */

TEST(an_instance_is_provisioned_and_told_once)
{
	struct fixture  f;
	struct instance i;
	struct event    event;

	set_up(&f);
	i = make_one(&f);
	CHECK(f.call.instance.state == INSTANCE_PENDING_PROVISIONING && f.call.operation.id.n);
	CHECK(i.has_data && i.activated_ms && !i.operation.n && i.running_count == 2 && i.endpoint.n &&
	      !i.last_error.n);
	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		CHECK(i.outputs[kind].n > 0);
	CHECK(truth(&f).resources == INSTANCE_RESOURCE_COUNT && truth(&f).route == ROUTE_OPEN &&
	      truth(&f).is_configured);
	CHECK(count_events(&f, "CLUSTER_CREATION_COMPLETE", &event) == 1);
	CHECK(text_has(event.detail, "\"status\":\"SUCCESS\"") && text_has(event.detail, "efsAccessPointId") &&
	      text_has(event.detail, "\"correlationId\":\"req-1\""));
	CHECK(ask_for_one(&f) == RC_CONFLICT);
	tear_down(&f);
}

TEST(the_same_key_gets_the_same_answer)
{
	struct fixture       f;
	struct instance_call c;
	struct str           first;

	set_up(&f);
	c = (struct instance_call){ .world = &f.world, .tenant = ACME, .want = acme, .once = STR("key-1"), .body = 7 };
	c.want.tier = -1;
	rig_run(&f.rig, instance_create, &c);
	first = str_dup(&f.rig.arena, c.operation.id);
	rig_pass(&f.rig, MINUTE);
	rig_run(&f.rig, instance_create, &c);
	CHECK(c.is_repeat && str_eq(c.operation.id, first) && c.instance.state == INSTANCE_ACTIVE);
	c.body = 8;
	CHECK(rig_try(&f.rig, instance_create, &c, &f.e) == RC_CONFLICT);
	tear_down(&f);
}

/* Each step of provisioning that cannot succeed, its code; nothing is left, and the next try works. */
static const struct {
	const char            *code;
	enum world_call        call;
	enum instance_resource resource;
} failures[] = {
	{ "PROV-001", WORLD_CREATE_RESOURCE, INSTANCE_STORAGE },
	{ "PROV-002", WORLD_CREATE_RESOURCE, INSTANCE_DATABASE },
	{ "PROV-007", WORLD_CREATE_RESOURCE, INSTANCE_SECRET },
	{ "PROV-004", WORLD_CREATE_RESOURCE, INSTANCE_ROUTE },
	{ "PROV-008", WORLD_CREATE_RESOURCE, INSTANCE_WORKERS },
	{ "PROV-003", WORLD_LIST_TASKS, INSTANCE_WORKERS },
	{ "PROV-005", WORLD_CREATE_RESOURCE, INSTANCE_IDENTITY },
	{ "PROV-009", WORLD_CONFIGURE, INSTANCE_WORKERS },
	{ "PROV-004", WORLD_SET_ROUTE, INSTANCE_ROUTE },
};

TEST(a_step_that_fails_is_named_and_leaves_nothing)
{
	for (size_t n = 0; n < ARRAY_LEN(failures); n++) {
		struct fixture  f;
		struct instance i;
		struct event    event;

		CASE(failures[n].code);
		set_up(&f);
		goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, failures[n].call, 1000, 0, 0, 0,
		                                    1 + failures[n].resource });
		if (failures[n].call == WORLD_SET_ROUTE) /* its undo, too: only as often as it is tried */
			goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, failures[n].call, 1000, 4, 0, 0,
			                                    1 + failures[n].resource });
		CHECK(ask_for_one(&f) == RC_OK);
		rig_turn(&f.rig);
		rig_pass(&f.rig, 16 * MINUTE);
		i = now(&f);
		CHECK(i.state == INSTANCE_FAILED && text_has(i.last_error, failures[n].code) && !i.operation.n);
		CHECK(truth(&f).resources == 0);
		for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
			CHECK(!i.outputs[kind].n);
		CHECK(count_events(&f, "CLUSTER_CREATION_COMPLETE", &event) == 1 &&
		      text_has(event.detail, failures[n].code));
		goes_well(&f);
		CHECK(str_eq(make_one(&f).id, i.id));
		tear_down(&f);
	}
}

TEST(provisioning_has_fifteen_minutes)
{
	struct fixture f;

	set_up(&f);
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_LIST_TASKS, 1000, 0, 0, 0, 0 });
	CHECK(ask_for_one(&f) == RC_OK);
	rig_pass(&f.rig, 9 * MINUTE);
	CHECK(now(&f).state == INSTANCE_PROVISIONING_ECS);
	rig_pass(&f.rig, 2 * MINUTE);
	CHECK(now(&f).state == INSTANCE_FAILED && truth(&f).resources == 0);
	tear_down(&f);
}

static struct saga parked_saga(struct fixture *f)
{
	struct saga_list l = { .has_state = true, .state = SAGA_PARKED, .limit = 10 };

	rig_run(&f->rig, saga_list, &l);
	CHECK(l.page.count == 1);
	return *(struct saga *)page_record(&l.page, &saga_type, 0);
}

/* The identity cannot be made, and the database cannot be taken away again. */
static void fail_to_roll_back(struct fixture *f)
{
	struct world_rules rules = {
		.rules = { { WORLD_OUTAGE, WORLD_CREATE_RESOURCE, 1000, 0, 0, 0, 1 + INSTANCE_IDENTITY },
		           { WORLD_OUTAGE, WORLD_DELETE_RESOURCE, 1000, 0, 0, 0, 1 + INSTANCE_DATABASE } },
		.count = 2
	};

	set_up(f);
	sim_faults_set(sim_cloud_faults(f->sim), &rules);
	CHECK(ask_for_one(f) == RC_OK);
	rig_pass(&f->rig, 3 * MINUTE);
	CHECK(now(f).state == INSTANCE_FAILED && text_has(now(f).last_error, "PROV-006"));
	CHECK(text_has(now(f).last_error, "[\"storage\",\"database\"]") && truth(f).resources == 2);
}

TEST(a_rollback_that_fails_names_what_is_left_and_a_person_can_have_it_go_on)
{
	struct fixture f;

	fail_to_roll_back(&f);
	goes_well(&f);
	rig_run(&f.rig, saga_retry, &(struct saga_action){ .id = parked_saga(&f).id, .actor = STR("admin") });
	rig_pass(&f.rig, MINUTE);
	CHECK(truth(&f).resources == 0 && now(&f).state == INSTANCE_FAILED &&
	      text_has(now(&f).last_error, "\"leftovers\":[]"));
	CHECK(count_events(&f, "CLUSTER_CREATION_COMPLETE", NULL) == 1 &&
	      count_events(&f, "InstanceLeftoversRemoved", NULL) == 1);
	tear_down(&f);
}

TEST(delete_clears_what_a_rollback_left)
{
	struct fixture   f;
	struct saga_list l = { .has_state = true, .state = SAGA_PARKED, .limit = 10 };

	fail_to_roll_back(&f);
	goes_well(&f);
	do_it(&f, instance_delete, (struct instance_want){ 0 });
	CHECK(now(&f).state == INSTANCE_DEPROVISIONED && truth(&f).resources == 0 && truth(&f).archives == 0);
	rig_run(&f.rig, saga_list, &l);
	CHECK(l.page.count == 0);
	tear_down(&f);
}

TEST(a_sender_with_a_long_name_can_take_over_what_a_rollback_left)
{
	static char    sender[INSTANCE_EMAIL_MAX];
	struct fixture f;

	memset(sender, 's', sizeof(sender));
	fail_to_roll_back(&f);
	goes_well(&f);
	f.call = (struct instance_call){ .world = &f.world, .tenant = ACME, .actor = str_of(sender, sizeof(sender)) };
	f.call.want.tier = -1;
	rig_run(&f.rig, instance_delete, &f.call);
	rig_turn(&f.rig);
	rig_pass(&f.rig, 2 * MINUTE);
	CHECK(now(&f).state == INSTANCE_DEPROVISIONED && truth(&f).resources == 0);
	tear_down(&f);
}

TEST(a_new_try_adopts_what_a_rollback_left)
{
	struct fixture f;

	fail_to_roll_back(&f);
	goes_well(&f);
	CHECK(make_one(&f).state == INSTANCE_ACTIVE && truth(&f).resources == INSTANCE_RESOURCE_COUNT);
	rig_pass(&f.rig, 10 * MINUTE);
	CHECK(now(&f).state == INSTANCE_ACTIVE && truth(&f).resources == INSTANCE_RESOURCE_COUNT);
	tear_down(&f);
}

TEST(nothing_else_begins_while_a_rollback_that_failed_goes_on)
{
	struct fixture f;

	fail_to_roll_back(&f);
	rig_run(&f.rig, saga_retry, &(struct saga_action){ .id = parked_saga(&f).id, .actor = STR("admin") });
	CHECK(ask_for_one(&f) == RC_UNFIT && !strcmp(f.e.code, "OPERATION_IN_PROGRESS"));
	CHECK(f.call.refused == INSTANCE_FAILED && f.call.requested == OP_CREATE);
	CHECK(ask(&f, instance_delete, (struct instance_want){ 0 }) == RC_UNFIT &&
	      !strcmp(f.e.code, "OPERATION_IN_PROGRESS"));
	goes_well(&f);
	rig_pass(&f.rig, MINUTE);
	CHECK(truth(&f).resources == 0);
	CHECK(make_one(&f).state == INSTANCE_ACTIVE && truth(&f).resources == INSTANCE_RESOURCE_COUNT);
	tear_down(&f);
}

TEST(a_second_try_that_fails_takes_away_what_the_first_has_left)
{
	struct fixture f;

	fail_to_roll_back(&f);
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_CREATE_RESOURCE, 1000, 0, 0, 0, 1 + INSTANCE_STORAGE });
	CHECK(ask_for_one(&f) == RC_OK);
	rig_pass(&f.rig, 3 * MINUTE);
	CHECK(now(&f).state == INSTANCE_FAILED && text_has(now(&f).last_error, "PROV-001") && truth(&f).resources == 0);
	tear_down(&f);
}

TEST(a_second_try_that_is_given_up_before_it_begins_takes_that_away_too)
{
	struct fixture     f;
	struct saga_action order = { .actor = STR("admin"), .reason = STR("not wanted") };

	fail_to_roll_back(&f);
	goes_well(&f);
	CHECK(ask_for_one(&f) == RC_OK);
	order.id = str_dup(&f.rig.arena, f.call.operation.id);
	rig_run(&f.rig, saga_abort, &order);
	CHECK(ask(&f, instance_delete, (struct instance_want){ 0 }) == RC_UNFIT &&
	      !strcmp(f.e.code, "OPERATION_IN_PROGRESS"));
	rig_pass(&f.rig, MINUTE);
	CHECK(now(&f).state == INSTANCE_FAILED && !now(&f).operation.n && truth(&f).resources == 0);
	tear_down(&f);
}

TEST(who_skips_a_step_that_makes_something_does_not_get_an_active_instance)
{
	struct fixture     f;
	struct saga_action order = { .actor = STR("admin"), .reason = STR("made by hand") };

	set_up(&f);
	goes_wrong(&f,
	           (struct world_rule){ WORLD_OUTAGE, WORLD_CREATE_RESOURCE, 1000, 0, 0, 0, 1 + INSTANCE_IDENTITY });
	CHECK(ask_for_one(&f) == RC_OK);
	order.id = str_dup(&f.rig.arena, f.call.operation.id);
	rig_turn(&f.rig);
	rig_run(&f.rig, saga_skip, &order);
	rig_pass(&f.rig, MINUTE);
	CHECK(now(&f).state == INSTANCE_CONFIGURING_WORDPRESS || now(&f).state == INSTANCE_PROVISIONING_COGNITO);
	CHECK(str_eq(parked_saga(&f).id, order.id));
	rig_run(&f.rig, saga_abort, &order);
	rig_pass(&f.rig, MINUTE);
	CHECK(now(&f).state == INSTANCE_FAILED && truth(&f).resources == 0);
	tear_down(&f);
}

TEST(it_can_be_cancelled_before_it_begins)
{
	struct fixture f;
	struct event   event;

	set_up(&f);
	CHECK(ask_for_one(&f) == RC_OK);
	CHECK(ask(&f, instance_delete, (struct instance_want){ 0 }) == RC_OK);
	rig_pass(&f.rig, 5 * MINUTE);
	CHECK(now(&f).state == INSTANCE_DEPROVISIONED && truth(&f).resources == 0);
	CHECK(count_events(&f, "CLUSTER_CREATION_COMPLETE", &event) == 1 && text_has(event.detail, "CANCELLED"));
	tear_down(&f);
}

/* --- the others --- */

TEST(suspend_and_resume)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	do_it(&f, instance_suspend, why);
	CHECK(now(&f).state == INSTANCE_SUSPENDED && str_eq(now(&f).reason, STR("unpaid")) &&
	      now(&f).desired_count == 2);
	CHECK(truth(&f).desired == 0 && truth(&f).route == ROUTE_SUSPENDED &&
	      truth(&f).resources == INSTANCE_RESOURCE_COUNT);
	CHECK(ask(&f, instance_park, why) == RC_UNFIT && f.call.refused == INSTANCE_SUSPENDED);
	do_it(&f, instance_resume, why);
	CHECK(now(&f).state == INSTANCE_ACTIVE && truth(&f).desired == 2 && truth(&f).route == ROUTE_OPEN);
	CHECK(count_events(&f, "CLUSTER_SUSPEND_COMPLETE", NULL) == 1 &&
	      count_events(&f, "CLUSTER_RESUME_COMPLETE", NULL) == 1);
	tear_down(&f);
}

TEST(park_and_unpark)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	do_it(&f, instance_park, why);
	CHECK(now(&f).state == INSTANCE_PARKED && truth(&f).route == ROUTE_PARKED &&
	      truth(&f).resources == INSTANCE_RESOURCE_COUNT - 1);
	CHECK(ask(&f, instance_suspend, why) == RC_UNFIT);
	do_it(&f, instance_unpark, why);
	CHECK(now(&f).state == INSTANCE_ACTIVE && truth(&f).route == ROUTE_OPEN && truth(&f).desired == 2);
	tear_down(&f);
}

TEST(a_size_is_changed_and_taken_back)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	do_it(&f, instance_scale, (struct instance_want){ .desired_count = 5 });
	CHECK(now(&f).state == INSTANCE_ACTIVE && now(&f).desired_count == 5 && now(&f).previous_count == 2 &&
	      now(&f).running_count == 5);
	CHECK(ask(&f, instance_scale, (struct instance_want){ .desired_count = 5 }) == RC_CONFLICT);
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_LIST_TASKS, 1000, 0, 0, 0, 0 });
	CHECK(ask(&f, instance_scale, (struct instance_want){ .desired_count = 7 }) == RC_OK);
	CHECK(ask(&f, instance_suspend, why) == RC_UNFIT && !strcmp(f.e.code, "OPERATION_IN_PROGRESS"));
	rig_pass(&f.rig, 6 * MINUTE);
	CHECK(now(&f).state == INSTANCE_ACTIVE && now(&f).desired_count == 5 && truth(&f).desired == 5 &&
	      text_has(now(&f).last_error, "PROV-003"));
	tear_down(&f);
}

TEST(a_suspend_that_fails_is_taken_back)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_LIST_TASKS, 1000, 0, 0, 0, 0 });
	do_it(&f, instance_suspend, why);
	rig_pass(&f.rig, 3 * MINUTE);
	CHECK(now(&f).state == INSTANCE_ACTIVE && truth(&f).desired == 2 && truth(&f).route == ROUTE_OPEN &&
	      now(&f).last_error.n);
	tear_down(&f);
}

TEST(who_is_refused_for_a_parked_operation_is_told_that_it_is)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_LIST_TASKS, 1000, 0, 0, 0, 0 });
	CHECK(ask(&f, instance_suspend, why) == RC_OK);
	CHECK(ask(&f, instance_backup, why) == RC_UNFIT && text_has(str_from(f.e.msg), "wait until it has ended"));
	rig_pass(&f.rig, MINUTE);
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_ANY_CALL, 1000, 0, 0, 0, 0 });
	rig_pass(&f.rig, 5 * MINUTE);
	CHECK(now(&f).state == INSTANCE_SUSPENDING && now(&f).operation.n);
	CHECK(ask(&f, instance_backup, why) == RC_UNFIT && text_has(str_from(f.e.msg), "is parked") &&
	      !text_has(str_from(f.e.msg), "wait until"));
	tear_down(&f);
}

TEST(versions_are_changed_and_those_that_are_not_there_are_refused)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	CHECK(ask(&f, instance_update, (struct instance_want){ .wordpress_version = STR("1.0") }) == RC_INVALID);
	do_it(&f, instance_update, (struct instance_want){ .wordpress_version = STR("6.4"), .tier = TIER_ENTERPRISE });
	CHECK(str_eq(now(&f).wordpress_version, STR("6.4")) && now(&f).tier == TIER_ENTERPRISE &&
	      now(&f).deployment == DEPLOYMENT_COMPLETED);
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_CONFIGURE, 1000, 4, 0, 0, 0 });
	do_it(&f, instance_update, (struct instance_want){ .wordpress_version = STR("6.5") });
	CHECK(str_eq(now(&f).wordpress_version, STR("6.4")) && now(&f).deployment == DEPLOYMENT_FAILED &&
	      now(&f).state == INSTANCE_ACTIVE);
	do_it(&f, instance_rotate, (struct instance_want){ 0 });
	CHECK(count_events(&f, "CLUSTER_ROTATION_COMPLETE", NULL) == 1);
	tear_down(&f);
}

TEST(an_update_that_fails_takes_back_all_of_it)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_CONFIGURE, 1000, 4, 0, 0, 0 });
	do_it(&f, instance_update,
	      (struct instance_want){ .contact_email = STR("b@acme.example"), .tier = TIER_ENTERPRISE });
	CHECK(now(&f).deployment == DEPLOYMENT_FAILED && now(&f).tier == TIER_STANDARD &&
	      str_eq(now(&f).contact_email, acme.contact_email));
	tear_down(&f);
}

TEST(a_reason_is_why_it_is_as_it_is)
{
	static const struct instance_want paid = { .reason = { "paid", 4 } };
	struct fixture                    f;

	set_up(&f);
	make_one(&f);
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_LIST_TASKS, 1000, 0, 0, 0, 0 });
	do_it(&f, instance_suspend, why);
	rig_pass(&f.rig, 3 * MINUTE);
	CHECK(now(&f).state == INSTANCE_ACTIVE && !now(&f).reason.n);
	goes_well(&f);
	do_it(&f, instance_rotate, paid);
	CHECK(now(&f).state == INSTANCE_ACTIVE && !now(&f).reason.n);
	do_it(&f, instance_suspend, why);
	CHECK(str_eq(now(&f).reason, why.reason));
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_SET_ROUTE, 1000, 4, 0, 0, 0 });
	do_it(&f, instance_resume, paid);
	CHECK(now(&f).state == INSTANCE_SUSPENDED && str_eq(now(&f).reason, why.reason));
	goes_well(&f);
	do_it(&f, instance_resume, paid);
	CHECK(now(&f).state == INSTANCE_ACTIVE && !now(&f).reason.n);
	tear_down(&f);
}

/* --- data --- */

TEST(backups_are_made_restored_and_end)
{
	struct fixture     f;
	struct backup_list l;
	struct str         id;

	set_up(&f);
	make_one(&f);
	do_it(&f, instance_backup, (struct instance_want){ 0 });
	id = str_dup(&f.rig.arena, f.call.operation.backup);
	CHECK(truth(&f).archives == 1);
	CHECK(ask(&f, instance_restore, (struct instance_want){ .backup_id = STR("bkp-none") }) == RC_NOT_FOUND);
	do_it(&f, instance_restore, (struct instance_want){ .backup_id = id });
	CHECK(truth(&f).archives == 2 && now(&f).state == INSTANCE_ACTIVE);
	l = (struct backup_list){ .instance = now(&f).id, .limit = 10 };
	rig_run(&f.rig, backup_list, &l);
	CHECK(l.page.count == 2 && ((struct backup *)page_record(&l.page, &backup_type, 0))->state == BACKUP_KEPT);
	rig_pass(&f.rig, 91 * DAY);
	CHECK(truth(&f).archives == 0 && count_events(&f, "InstanceArchiveRemoved", NULL) == 2);
	CHECK(ask(&f, instance_restore, (struct instance_want){ .backup_id = id }) == RC_NOT_FOUND);
	tear_down(&f);
}

TEST(a_removal_archives_first_and_the_archive_is_kept_for_its_time)
{
	struct fixture  f;
	struct instance i;

	set_up(&f);
	make_one(&f);
	do_it(&f, instance_delete, why);
	i = now(&f);
	CHECK(i.state == INSTANCE_DEPROVISIONED && i.archive.n && i.archive_until_ms > i.removed_ms + 89 * DAY &&
	      truth(&f).archives == 1);
	CHECK(truth(&f).resources == 0 && count_events(&f, "CLUSTER_DELETION_COMPLETE", NULL) == 1);
	CHECK(ask(&f, instance_delete, why) == RC_UNFIT && f.call.refused == INSTANCE_DEPROVISIONED);
	CHECK(!str_eq(make_one(&f).id, i.id)); /* and there can be another */
	rig_pass(&f.rig, 91 * DAY);
	CHECK(truth(&f).archives == 0);
	tear_down(&f);
}

TEST(nothing_is_deleted_while_it_cannot_be_archived_and_the_removal_goes_on_by_itself)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_ARCHIVE, 1000, 0, 0, 0, 0 });
	CHECK(ask(&f, instance_delete, why) == RC_OK);
	rig_pass(&f.rig, 12 * MINUTE);
	CHECK(now(&f).state == INSTANCE_PENDING_DEPROVISIONING && now(&f).last_error.n &&
	      truth(&f).resources == INSTANCE_RESOURCE_COUNT);
	CHECK(truth(&f).route == ROUTE_CLOSED);
	goes_well(&f);
	rig_pass(&f.rig, 16 * MINUTE);
	CHECK(now(&f).state == INSTANCE_DEPROVISIONED && truth(&f).resources == 0 && truth(&f).archives == 1);
	tear_down(&f);
}

TEST(a_removal_that_failed_goes_on_when_it_is_asked_for_again)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	do_it(&f, instance_park, why);
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_DELETE_RESOURCE, 1000, 0, 0, 0, 1 + INSTANCE_SECRET });
	CHECK(ask(&f, instance_delete, why) == RC_OK);
	rig_pass(&f.rig, 12 * MINUTE);
	CHECK(now(&f).state == INSTANCE_PENDING_DEPROVISIONING && text_has(now(&f).last_error, "secret"));
	goes_well(&f);
	do_it(&f, instance_delete, why);
	CHECK(now(&f).state == INSTANCE_DEPROVISIONED && truth(&f).resources == 0 && truth(&f).archives == 1);
	tear_down(&f);
}

TEST(what_a_backup_that_failed_may_have_left_is_removed)
{
	struct fixture     f;
	struct backup_list l;

	set_up(&f);
	make_one(&f);
	goes_wrong(&f, (struct world_rule){ WORLD_TIMEOUT_AFTER, WORLD_ARCHIVE, 1000, 0, 0, 0, 0 });
	do_it(&f, instance_backup, (struct instance_want){ 0 });
	CHECK(now(&f).last_error.n && !now(&f).operation.n);
	goes_well(&f);
	rig_pass(&f.rig, 91 * DAY);
	CHECK(truth(&f).archives == 0 && count_events(&f, "InstanceArchiveRemoved", NULL) == 0);
	l = (struct backup_list){ .instance = now(&f).id, .limit = 10 };
	rig_run(&f.rig, backup_list, &l);
	CHECK(l.page.count == 1 && ((struct backup *)page_record(&l.page, &backup_type, 0))->state == BACKUP_BROKEN);
	tear_down(&f);
}

/* As a start with LEASEHOLD_INSTANCE_DRIVER=off has them, and one with a driver again. */
static void has_driver(struct fixture *f, bool has)
{
	for (size_t i = 0; i < INSTANCE_TIMED_QUEUES; i++)
		f->queues[i].arg = has ? &f->world : NULL;
}

TEST(the_time_of_an_archive_ends_without_a_driver)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	do_it(&f, instance_backup, (struct instance_want){ 0 });
	has_driver(&f, false);
	rig_pass(&f.rig, 95 * DAY);
	CHECK(truth(&f).archives == 1 && count_events(&f, "InstanceArchiveDue", NULL) == 1 &&
	      count_events(&f, "DeadLetter*", NULL) == 0);
	has_driver(&f, true);
	rig_pass(&f.rig, 16 * MINUTE);
	CHECK(truth(&f).archives == 0 && count_events(&f, "InstanceArchiveRemoved", NULL) == 1);
	tear_down(&f);
}

TEST(a_removal_that_failed_goes_on_once_there_is_a_driver_again)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_ARCHIVE, 1000, 0, 0, 0, 0 });
	CHECK(ask(&f, instance_delete, why) == RC_OK);
	rig_pass(&f.rig, 12 * MINUTE);
	CHECK(now(&f).state == INSTANCE_PENDING_DEPROVISIONING && !now(&f).operation.n);
	goes_well(&f);
	has_driver(&f, false);
	rig_pass(&f.rig, 2 * DAY);
	CHECK(now(&f).state == INSTANCE_PENDING_DEPROVISIONING && truth(&f).resources == INSTANCE_RESOURCE_COUNT);
	has_driver(&f, true);
	rig_pass(&f.rig, 18 * MINUTE);
	CHECK(now(&f).state == INSTANCE_DEPROVISIONED && truth(&f).resources == 0 && truth(&f).archives == 1);
	tear_down(&f);
}

/* --- what comes in --- */

static void send(struct fixture *f, const char *source, const char *body)
{
	struct intake_record *records;
	struct intake_call    call = { .source = str_from(source) };
	size_t                count;

	CHECK(intake_parse(call.source, str_from(body), &f->rig.arena, &records, &count, &f->e) == RC_OK);
	for (size_t i = 0; i < count; i++) {
		call.record = &records[i];
		CHECK(records[i].verdict != INTAKE_REJECTED);
		rig_run(&f->rig, intake_store, &call);
	}
	rig_turn(&f->rig);
	rig_pass(&f->rig, 2 * MINUTE);
}

#define COMMAND(id, type, more)                                                   \
	"{\"id\":\"" id "\",\"detail-type\":\"" type                              \
	"\",\"subject\":\"tenant/tenant-acme\",\"detail\":{\"eventType\":\"" type \
	"\",\"tenantId\":\"tenant-acme\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"correlationId\":\"c-1\"" more "}}"

TEST(commands_are_done_and_refused_with_a_completion)
{
	struct fixture f;
	struct event   event;

	set_up(&f);
	send(&f, "instances",
	     COMMAND("1", "START_CLUSTER_CREATION",
	             ",\"organizationName\":\"Acme\",\"contactEmail\":\"a@acme.example\""));
	CHECK(now(&f).state == INSTANCE_ACTIVE && str_eq(now(&f).correlation_id, STR("c-1")));
	send(&f, "instances", COMMAND("2", "START_CLUSTER_PARK", ",\"reason\":\"quiet\""));
	CHECK(now(&f).state == INSTANCE_PARKED);
	send(&f, "instances", COMMAND("3", "SUSPEND_CLUSTER", ""));
	CHECK(now(&f).state == INSTANCE_PARKED);
	CHECK(count_events(&f, "CLUSTER_SUSPEND_COMPLETE", &event) == 1 &&
	      text_has(event.detail, "INVALID_STATUS_TRANSITION"));
	send(&f, "instances", COMMAND("4", "START_CLUSTER_UNPARK", ""));
	send(&f, "instances", COMMAND("5", "START_CLUSTER_SCALE", ",\"desiredCount\":4"));
	CHECK(now(&f).desired_count == 4 && now(&f).state == INSTANCE_ACTIVE);
	send(&f, "instances", COMMAND("6", "START_CLUSTER_DELETION", ""));
	CHECK(now(&f).state == INSTANCE_DEPROVISIONED);
	tear_down(&f);
}

#define ECS(id, name, time)                                                                                                                 \
	"{\"id\":\"" id "\",\"detail-type\":\"ECS Service Action\",\"time\":\"" time                                                        \
	"\",\"resources\":[\"arn:aws:ecs:eu-west-1:111122223333:service/cluster/tenant-acme-wordpress\"],\"detail\":{\"eventName\":\"" name \
	"\"}}"

TEST(events_of_the_container_service_are_hints)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	send(&f, "ecs", ECS("1", "SERVICE_TASK_START_IMPAIRED", "2023-11-14T22:00:10Z"));
	CHECK(now(&f).state == INSTANCE_ACTIVE && text_has(now(&f).last_error, "SERVICE_TASK_START_IMPAIRED"));
	send(&f, "ecs", ECS("2", "SERVICE_DEPLOYMENT_COMPLETED", "2023-11-14T22:00:05Z")); /* older: nothing */
	CHECK(now(&f).deployment == DEPLOYMENT_NONE);
	send(&f, "ecs", ECS("3", "SERVICE_DEPLOYMENT_COMPLETED", "2023-11-14T22:00:15Z"));
	CHECK(now(&f).deployment == DEPLOYMENT_COMPLETED);
	CHECK(f.world.driver->ops->scale(f.world.driver, ACME, 0, NULL) == RC_OK);
	send(&f, "ecs", ECS("4", "SERVICE_TASK_START_IMPAIRED", "2023-11-14T22:00:20Z"));
	CHECK(now(&f).state == INSTANCE_FAILED);
	CHECK(ask_for_one(&f) == RC_CONFLICT); /* there are data in it */
	CHECK(f.world.driver->ops->scale(f.world.driver, ACME, 2, NULL) == RC_OK);
	send(&f, "ecs", ECS("5", "SERVICE_STEADY_STATE", "2023-11-14T22:00:30Z"));
	CHECK(now(&f).state == INSTANCE_ACTIVE);
	do_it(&f, instance_suspend, why);
	send(&f, "ecs", ECS("6", "SERVICE_STEADY_STATE", "2023-11-14T22:00:40Z"));
	CHECK(now(&f).state == INSTANCE_SUSPENDED); /* steady at zero is not active */
	tear_down(&f);
}

/* A task names its service in its group, and has the tags of it. */
#define TASK(id, status, about, time)                                                                          \
	"{\"id\":\"" id "\",\"detail-type\":\"ECS Task State Change\",\"time\":\"" time                        \
	"\",\"resources\":[\"arn:aws:ecs:eu-west-1:111122223333:task/cluster/0123456789abcdef\"],\"detail\":{" \
	"\"lastStatus\":\"" status "\"," about "}}"
#define TAGGED(tenant) \
	"\"tags\":[{\"key\":\"managed-by\",\"value\":\"x\"},{\"key\":\"bbws:tenant-id\",\"value\":\"" tenant "\"}]"

TEST(an_event_of_a_clock_that_was_ahead_makes_no_later_one_old)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	send(&f, "ecs", ECS("1", "SERVICE_DEPLOYMENT_IN_PROGRESS", "2099-01-01T00:00:00Z"));
	CHECK(now(&f).deployment == DEPLOYMENT_IN_PROGRESS);
	send(&f, "ecs", ECS("2", "SERVICE_DEPLOYMENT_COMPLETED", "2023-11-14T22:00:05Z"));
	CHECK(now(&f).deployment == DEPLOYMENT_COMPLETED);
	tear_down(&f);
}

TEST(an_event_is_about_the_tenant_of_its_tag_or_the_service_of_its_task)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	CHECK(f.world.driver->ops->scale(f.world.driver, ACME, 1, NULL) == RC_OK);
	send(&f, "ecs", TASK("1", "STOPPED", TAGGED("tenant-acme"), "2023-11-14T22:00:10Z"));
	CHECK(now(&f).running_count == 1 && text_has(now(&f).last_ecs_event, "TASK_STOPPED"));
	CHECK(f.world.driver->ops->scale(f.world.driver, ACME, 2, NULL) == RC_OK);
	send(&f, "ecs", TASK("2", "RUNNING", "\"group\":\"service:tenant-acme-wordpress\"", "2023-11-14T22:00:20Z"));
	CHECK(now(&f).running_count == 2 && text_has(now(&f).last_ecs_event, "TASK_RUNNING"));
	send(&f, "ecs", TASK("3", "STOPPED", TAGGED("tenant-other"), "2023-11-14T22:00:30Z"));
	send(&f, "ecs", TASK("4", "STOPPED", TAGGED("No Tenant"), "2023-11-14T22:00:30Z"));
	send(&f, "ecs", TASK("5", "STOPPED", "\"tags\":[{\"key\":7},9,{}]", "2023-11-14T22:00:30Z"));
	CHECK(text_has(now(&f).last_ecs_event, "TASK_RUNNING")); /* nobody's */
	tear_down(&f);
}

TEST(an_event_about_one_that_was_removed_changes_nothing)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	do_it(&f, instance_delete, why);
	CHECK(now(&f).state == INSTANCE_DEPROVISIONED);
	send(&f, "ecs", ECS("1", "SERVICE_TASK_START_IMPAIRED", "2023-11-14T22:00:10Z"));
	CHECK(now(&f).last_error.n == 0 && now(&f).last_ecs_event.n == 0);
	tear_down(&f);
}

/* It would wait for ten minutes else. */
TEST(a_deployment_that_failed_ends_a_provisioning)
{
	struct fixture f;

	set_up(&f);
	goes_wrong(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_CHECK_RESOURCE, 1000, 3, 0, 0, 1 + INSTANCE_WORKERS });
	CHECK(ask_for_one(&f) == RC_OK);
	rig_pass(&f.rig, 500);
	CHECK(now(&f).state == INSTANCE_PROVISIONING_ECS);
	send(&f, "ecs", ECS("1", "SERVICE_DEPLOYMENT_FAILED", "2023-11-14T22:00:10Z"));
	CHECK(now(&f).state == INSTANCE_FAILED && truth(&f).resources == 0);
	CHECK(text_has(now(&f).last_error, "PROV-003") && text_has(now(&f).last_error, "deployment failed"));
	do_it(&f, instance_create, acme);
	CHECK(now(&f).state == INSTANCE_ACTIVE && now(&f).deployment == DEPLOYMENT_NONE); /* the next try begins anew */
	tear_down(&f);
}

TEST(one_that_failed_is_recovered_by_hand)
{
	struct fixture f;

	set_up(&f);
	make_one(&f);
	CHECK(f.world.driver->ops->scale(f.world.driver, ACME, 0, NULL) == RC_OK);
	send(&f, "ecs", ECS("1", "SERVICE_TASK_START_IMPAIRED", "2023-11-14T22:00:10Z"));
	CHECK(now(&f).state == INSTANCE_FAILED);
	do_it(&f, instance_recover, (struct instance_want){ 0 });
	CHECK(now(&f).state == INSTANCE_ACTIVE && truth(&f).desired == 2);
	tear_down(&f);
}

/* --- passes --- */

TEST(tasks_that_are_missing_are_noted_since_when)
{
	struct fixture        f;
	struct instance_watch w;

	set_up(&f);
	make_one(&f);
	CHECK(f.world.driver->ops->scale(f.world.driver, ACME, 1, NULL) == RC_OK);
	CHECK(instance_watch(&f.world, &w, &f.e) == RC_OK && w.looked == 1 && w.below == 1);
	CHECK(now(&f).running_count == 1 && now(&f).below_since_ms > 0);
	CHECK(f.world.driver->ops->scale(f.world.driver, ACME, 2, NULL) == RC_OK);
	CHECK(instance_watch(&f.world, &w, &f.e) == RC_OK && w.below == 0 && now(&f).below_since_ms == 0);
	tear_down(&f);
}

static struct instance_scan_result scan(struct fixture *f, enum instance_scan_mode mode)
{
	struct instance_scan_result r = { 0 };

	CHECK(instance_scan(&f->world, mode, STR("ann@example.com"), &f->rig.arena, &r, &f->e) == RC_OK);
	return r;
}

/* What somebody else has left behind for a tenant: these kinds. */
static void leave_behind(struct fixture *f, unsigned kinds)
{
	struct instance_driver *d = f->world.driver;
	struct instance_spec    lost = { .tenant = ACME, .instance = STR("inst-lost"), .desired_count = 2 };
	struct str              outputs;

	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		if (kinds & 1u << kind)
			CHECK(d->ops->create(d, &lost, (enum instance_resource)kind, &f->rig.arena, &outputs, NULL) ==
			      RC_OK);
}

enum { ALL = (1 << INSTANCE_RESOURCE_COUNT) - 1, HOUR = 60 * MINUTE };

TEST(orphans_are_only_named_until_somebody_has_them_removed_with_an_archive)
{
	struct fixture              f;
	struct instance_scan_result r;

	set_up(&f);
	leave_behind(&f, ALL);
	r = scan(&f, SCAN_KEEPS);
	CHECK(r.orphans == 1 && r.healed == 0 && text_has(r.findings, "tenant-acme") && text_has(r.findings, "young"));
	rig_pass(&f.rig, 25ll * HOUR);
	CHECK(scan(&f, SCAN_KEEPS).healed == 0 && text_has(scan(&f, SCAN_LOOKS).findings, "removable"));
	CHECK(truth(&f).resources == INSTANCE_RESOURCE_COUNT);
	r = scan(&f, SCAN_REMOVES);
	CHECK(r.orphans == 1 && r.healed == 1 && text_has(r.findings, "removed"));
	rig_pass(&f.rig, MINUTE);
	CHECK(truth(&f).resources == 0 && truth(&f).archives == 1 && now(&f).state == INSTANCE_DEPROVISIONED);
	CHECK(str_eq(now(&f).requested_by, STR("ann@example.com")));
	tear_down(&f);
}

TEST(a_scan_of_which_a_read_fails_is_an_error_whichever_it_is)
{
	struct fixture              f;
	struct instance_scan_result r = { 0 };

	set_up(&f);
	leave_behind(&f, ALL);
	f.faults.next = FAULT_READ;
	for (f.faults.read = 1; instance_scan(&f.world, SCAN_KEEPS, STR("ann@example.com"), &f.rig.arena, &r, &f.e);
	     f.faults.read++)
		CHECK(text_has(str_from(f.e.msg), "cannot be read"));
	CHECK(f.faults.read > 1 && r.orphans == 1);
	tear_down(&f);
}

TEST(an_orphan_is_not_removed_within_an_hour_of_when_it_was_seen_first)
{
	struct fixture f;

	set_up(&f);
	leave_behind(&f, 1 << INSTANCE_ROUTE);
	CHECK(scan(&f, SCAN_REMOVES).healed == 0); /* this is when */
	rig_pass(&f.rig, HOUR - MINUTE);
	CHECK(scan(&f, SCAN_REMOVES).healed == 0);
	leave_behind(&f, 1 << INSTANCE_IDENTITY); /* younger than the rest */
	rig_pass(&f.rig, 2 * MINUTE);
	CHECK(scan(&f, SCAN_REMOVES).healed == 0);
	rig_pass(&f.rig, HOUR - MINUTE);
	CHECK(scan(&f, SCAN_REMOVES).healed == 0 && truth(&f).resources == 2);
	rig_pass(&f.rig, MINUTE);
	CHECK(scan(&f, SCAN_REMOVES).healed == 1);
	rig_pass(&f.rig, MINUTE);
	CHECK(truth(&f).resources == 0 && truth(&f).archives == 0);
	leave_behind(&f, 1 << INSTANCE_ROUTE);
	CHECK(scan(&f, SCAN_REMOVES).healed == 0); /* another one */
	tear_down(&f);
}

TEST(data_of_an_orphan_that_cannot_be_archived_stay_until_somebody_says_otherwise)
{
	struct fixture              f;
	struct instance_scan_result r;

	set_up(&f);
	leave_behind(&f, 1 << INSTANCE_DATABASE | 1 << INSTANCE_SECRET);
	scan(&f, SCAN_KEEPS);
	rig_pass(&f.rig, HOUR);
	r = scan(&f, SCAN_REMOVES);
	CHECK(r.orphans == 1 && r.healed == 0 && text_has(r.findings, "unarchivable"));
	CHECK(scan(&f, SCAN_REMOVES_UNARCHIVED).healed == 1);
	rig_pass(&f.rig, MINUTE);
	CHECK(truth(&f).resources == 0 && truth(&f).archives == 0 && now(&f).state == INSTANCE_DEPROVISIONED);
	leave_behind(&f, ALL); /* what can be archived is */
	scan(&f, SCAN_KEEPS);
	rig_pass(&f.rig, HOUR);
	CHECK(scan(&f, SCAN_REMOVES_UNARCHIVED).healed == 1);
	rig_pass(&f.rig, MINUTE);
	CHECK(truth(&f).resources == 0 && truth(&f).archives == 1);
	tear_down(&f);
}

TEST(what_an_instance_lacks_is_named)
{
	struct fixture              f;
	struct instance_scan_result r;

	set_up(&f);
	make_one(&f);
	r = scan(&f, SCAN_REMOVES);
	CHECK(r.orphans == 0 && r.missing == 0);
	CHECK(f.world.driver->ops->delete (f.world.driver, ACME, INSTANCE_IDENTITY, NULL) == RC_OK);
	r = scan(&f, SCAN_REMOVES);
	CHECK(r.missing == 1 && text_has(r.findings, "identity"));
	tear_down(&f);
}

/* --- secrets --- */

TEST(no_password_is_in_any_record_or_event)
{
	struct fixture    f;
	struct event_list l = { .limit = 1000 };
	struct str        user, password;
	struct instance   i;

	set_up(&f);
	i = make_one(&f);
	CHECK(f.world.driver->ops->get_secret(f.world.driver, ACME, &f.rig.arena, &user, &password, NULL) == RC_OK);
	do_it(&f, instance_backup, (struct instance_want){ 0 });
	CHECK(ask(&f, instance_note_secret, (struct instance_want){ 0 }) == RC_OK);
	CHECK(count_events(&f, "InstanceSecretShown", NULL) == 1);
	rig_run(&f.rig, event_list, &l);
	CHECK(l.count > 7);
	for (size_t n = 0; n < l.count; n++)
		CHECK(!text_has(l.events[n].detail, password.p));
	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		CHECK(!text_has(i.outputs[kind], password.p));
	tear_down(&f);
}
