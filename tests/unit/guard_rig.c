/* SPDX-License-Identifier: Apache-2.0 */
/* guard_rig.c - see guard_rig.h. */
#include "guard_rig.h"

#include <limits.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "domain/world.h"
#include "kernel/event.h"
#include "kernel/edge/intake.h"
#include "kernel/timer.h"
#include "providers/sim/faults.h"
#include "providers/sim/records.h"
#include "store/memory/memory.h"
#include "test.h"
#include "truth/sim_truth.h"
#include "truth/test_clock.h"

enum { STEP_MS = 1000 };

/* --- open and close --- */

static void open_cloud(struct guard_rig *r)
{
	struct sim_cloud_options o = { .clock = &r->rig.clock,
		                       .random = rig_random,
		                       .random_arg = &r->chance,
		                       .event_delay_ms = r->event_delay_ms,
		                       .accounts = GUARD_RIG_ACCOUNTS,
		                       .available = GUARD_RIG_ACCOUNTS };

	r->rig.clock = clock_test(1700000000000);
	r->sim_store = store_memory_open(sim_types, sim_type_count, &r->rig.clock);
	o.store = r->sim_store;
	CHECK(sim_cloud_open(&o, &r->sim, &r->err) == RC_OK);
}

/* In the state before the end of a cleanup, and nobody has heard of how they got there. */
static void prepare_accounts(struct guard_rig *r)
{
	struct organisation      *o = sim_cloud_ports(r->sim).organisation;
	struct cloud_account_page page = { 0 };
	struct sim_due_event     *events;
	size_t                    n = 0, count;

	do {
		CHECK(o->ops->list_accounts(o, sim_cloud_ou(r->sim, SIM_OU_AVAILABLE), page.next, &r->rig.arena, &page,
		                            &r->err) == RC_OK);
		for (size_t i = 0; i < page.count && n < GUARD_RIG_ACCOUNTS; i++)
			r->accounts[n++] = page.items[i].id;
	} while (page.next.n);
	CHECK(n == GUARD_RIG_ACCOUNTS);
	for (size_t i = 0; i < n; i++)
		CHECK(sim_isb_change(r->sim, r->accounts[i], SIM_OU_CLEANUP, &r->err) == RC_OK);
	r->rig.clock.test_ms += HOUR_MS;
	CHECK(sim_cloud_take_events(r->sim, SIM_EVENTS_MAX, &r->rig.arena, &events, &count, &r->err) == RC_OK);
	CHECK(sim_cloud_drop_events(r->sim, events, count, &r->err) == RC_OK);
}

static void open_guard(struct guard_rig *r)
{
	r->guard = guard_new(&(struct guard_options){ .store = r->rig.store,
	                                              .cloud = sim_cloud_ports(r->sim),
	                                              .table = sim_isb_table(r->sim),
	                                              .rules = &r->rules,
	                                              .metrics = r->metrics });
	guard_queues(r->guard, r->queues);
	guard_kinds(r->guard, r->kinds);
}

void guard_rig_open(struct guard_rig *r)
{
	struct wall now;

	log_setup(LOG_ERROR, LOG_JSON);
	open_cloud(r);
	prepare_accounts(r);
	now = clock_now(&r->rig.clock);
	if (!r->rules.grace_hours)
		hold_rules_defaults(&r->rules);
	r->metrics = metrics_new();
	r->queues[GUARD_QUEUES] = hold_queue();
	for (size_t i = 0; i < GUARD_KINDS; i++)
		r->kind_list[i] = &r->kinds[i];
	r->routes[0] = (struct route){ GUARD_EVENTS, GUARD_QUEUE };
	r->routes[1] = (struct route){ GUARD_LOG_EVENTS, GUARD_LOG_QUEUE };
	r->routes[2] = (struct route){ EVENT_HOLD_DUE, HOLD_QUEUE };
	r->faults.next = FAULT_RERUN; /* every transaction that writes is run twice, as after a conflict */
	r->faults.count = INT_MAX;
	r->rig.faults = &r->faults;
	r->rig.options.queues = r->queues;
	r->rig.options.queue_count = ARRAY_LEN(r->queues);
	r->rig.options.routes = r->routes;
	r->rig.options.route_count = ARRAY_LEN(r->routes);
	r->rig.options.sagas = r->kind_list;
	r->rig.options.saga_count = GUARD_KINDS;
	rig_open(&r->rig);
	r->rig.clock.test_ms = now.ms;
	open_guard(r);
}

void guard_rig_restart(struct guard_rig *r)
{
	guard_free(r->guard);
	kernel_free(r->rig.kernel);
	r->rig.kernel = kernel_new(&r->rig.options);
	open_guard(r);
}

void guard_rig_close(struct guard_rig *r)
{
	rig_close(&r->rig);
	guard_free(r->guard);
	metrics_free(r->metrics);
	sim_cloud_close(r->sim);
	store_close(r->sim_store);
}

/* --- time --- */

size_t send_body(struct guard_rig *r, struct str body)
{
	struct intake_record *records;
	size_t                count, accepted = 0;

	err_clear(&r->err);
	if (intake_parse(STR("cloudtrail"), body, &r->rig.arena, &records, &count, &r->err))
		return 0;
	for (size_t i = 0; i < count; i++) {
		struct intake_call call = { .source = STR("cloudtrail"), .record = &records[i] };

		if (records[i].verdict == INTAKE_REJECTED)
			r->err = records[i].e;
		else
			rig_run(&r->rig, intake_store, &call);
		accepted += records[i].verdict == INTAKE_ACCEPTED;
	}
	return accepted;
}

static void bring_events(struct guard_rig *r)
{
	struct arena          a = { 0 };
	struct sim_due_event *due;
	size_t                count;

	if (!r->drops_events) {
		CHECK(sim_cloud_take_events(r->sim, SIM_EVENTS_MAX, &a, &due, &count, &r->err) == RC_OK);
		for (size_t i = 0; i < count; i++)
			(void)send_body(r, due[i].body);
		CHECK(sim_cloud_drop_events(r->sim, due, count, &r->err) == RC_OK);
	}
	arena_fini(&a);
}

void pass(struct guard_rig *r, int64_t ms)
{
	int64_t until = r->rig.clock.test_ms + ms;

	bring_events(r);
	(void)rig_turn(&r->rig);
	while (r->rig.clock.test_ms < until) {
		/* Finely in the first minutes, in which events are under way; then in great steps. */
		int64_t left = until - r->rig.clock.test_ms;
		int64_t step = ms - left < 30 * MINUTE_MS ? 10 * STEP_MS : 10 * MINUTE_MS;

		rig_pass(&r->rig, left < step ? left : step);
		bring_events(r);
		(void)rig_turn(&r->rig);
	}
}

void pass_until_retry(struct guard_rig *r)
{
	for (int i = 0; i < 60 && !count_timers(r, "guard-retry/"); i++)
		pass(r, MINUTE_MS);
	CHECK(count_timers(r, "guard-retry/") == 1);
}

/* --- the other system --- */

void isb_ends_cleanup(struct guard_rig *r, struct str account)
{
	CHECK(sim_isb_change(r->sim, account, SIM_OU_AVAILABLE, &r->err) == RC_OK);
}

void isb_moves(struct guard_rig *r, struct str account, enum sim_ou_name to)
{
	CHECK(sim_isb_move(r->sim, account, to, &r->err) == RC_OK);
}

void isb_writes(struct guard_rig *r, struct str account, const char *status)
{
	CHECK(sim_isb_write(r->sim, account, str_from(status), &r->err) == RC_OK);
}

struct str isb_status(struct guard_rig *r, struct str account)
{
	struct str status = STR("");

	CHECK(sim_isb_status(r->sim, account, &r->rig.arena, &status, &r->err) == RC_OK);
	return status;
}

struct str event_text(struct guard_rig *r, const char *id, struct str account, enum sim_ou_name from,
                      enum sim_ou_name to, int64_t at_ms, const char *more)
{
	char       text[ISO_TIME_SIZE];
	struct str at = iso_time(at_ms / 1000, text);
	struct str source = sim_cloud_ou(r->sim, from), destination = sim_cloud_ou(r->sim, to);

	return str_format(
	        &r->rig.arena,
	        "{\"version\":\"0\",\"id\":\"%s\",\"detail-type\":\"AWS API Call via CloudTrail\","
	        "\"source\":\"aws.organizations\",\"account\":\"999988887777\",\"time\":\"%.*s\","
	        "\"region\":\"us-east-1\",\"resources\":[],\"detail\":{\"eventTime\":\"%.*s\",\"eventSource\":"
	        "\"organizations.amazonaws.com\",\"eventName\":\"MoveAccount\",\"eventID\":\"trail-%s\","
	        "\"requestParameters\":{\"accountId\":\"%.*s\",\"sourceParentId\":\"%.*s\","
	        "\"destinationParentId\":\"%.*s\"}%s}}",
	        id, STR_ARG(at), STR_ARG(at), id, STR_ARG(account), STR_ARG(source), STR_ARG(destination), more);
}

/* --- the truth --- */

static struct sim_truth inspect(struct guard_rig *r, struct str account)
{
	struct sim_truth truth = { 0 };

	CHECK(sim_cloud_inspect(r->sim, account, &truth, &r->err) == RC_OK);
	return truth;
}

enum sim_ou_name place_of(struct guard_rig *r, struct str account)
{
	return inspect(r, account).ou;
}

int64_t moves_of(struct guard_rig *r, struct str account)
{
	return inspect(r, account).moves;
}

uint64_t calls_of(struct guard_rig *r, enum world_call call)
{
	return sim_faults_counts(sim_cloud_faults(r->sim)).calls[call];
}

bool is_with(struct guard_rig *r, struct str account, enum sim_ou_name ou, const char *status)
{
	return place_of(r, account) == ou && str_eq(isb_status(r, account), str_from(status));
}

void set_tag(struct guard_rig *r, struct str account, const char *value)
{
	struct organisation *o = sim_cloud_ports(r->sim).organisation;
	struct cloud_tag     tag = { STR(HOLD_BYPASS_TAG), str_from(value) };

	CHECK(o->ops->set_tags(o, account, &tag, 1, &r->err) == RC_OK);
}

struct member_look {
	struct str        id;
	struct sim_member member;
};

static enum rc read_member(struct session *s, void *arg, struct err *e)
{
	struct member_look *l = arg;

	return session_get(s, &sim_member_type, l->id, &l->member, e);
}

bool has_tag(struct guard_rig *r, struct str account)
{
	struct member_look l = { .id = account };

	CHECK(store_read(r->sim_store, read_member, &l, &r->rig.arena, &r->err) == RC_OK);
	return text_has(l.member.tags, HOLD_BYPASS_TAG);
}

void goes_wrong(struct guard_rig *r, enum world_fault fault, enum world_call call, int64_t count)
{
	struct sim_faults *f = sim_cloud_faults(r->sim);
	struct world_rules rules = sim_faults_get(f);

	rules.rules[rules.count++] = (struct world_rule){
		.fault = fault, .call = call, .per_mille = 1000, .count = count
	};
	sim_faults_set(f, &rules);
}

void goes_well(struct guard_rig *r)
{
	sim_faults_set(sim_cloud_faults(r->sim), &(struct world_rules){ .count = 0 });
}

/* --- our records --- */

struct open_look {
	struct str   account;
	struct holds open;
};

static enum rc read_open(struct session *s, void *arg, struct err *e)
{
	struct open_look *l = arg;

	return hold_list_open(s, l->account, &l->open, e);
}

struct holds open_holds(struct guard_rig *r, struct str account)
{
	struct open_look l = { .account = account };

	CHECK(store_read(r->rig.store, read_open, &l, &r->rig.arena, &r->err) == RC_OK);
	return l.open;
}

static struct page list_holds(struct guard_rig *r, struct str account)
{
	struct hold_list l = { .account = account, .limit = 100 };

	CHECK(store_read(r->rig.store, hold_list, &l, &r->rig.arena, &r->err) == RC_OK);
	return l.page;
}

bool is_held(struct guard_rig *r, struct str account)
{
	struct holds open = open_holds(r, account);

	return is_with(r, account, SIM_OU_QUARANTINE, "Quarantine") && open.count == 1 &&
	       str_eq(open.items[0].placement, STR("held"));
}

struct hold last_hold(struct guard_rig *r, struct str account)
{
	struct page page = list_holds(r, account);

	CHECK(page.count > 0);
	return *(struct hold *)page_record(&page, &hold_type, 0);
}

size_t count_holds(struct guard_rig *r, struct str account)
{
	return list_holds(r, account).count;
}

size_t count_timers(struct guard_rig *r, const char *prefix)
{
	struct timer_list l = { .prefix = str_from(prefix), .limit = 1000 };

	CHECK(store_read(r->rig.store, timer_list, &l, &r->rig.arena, &r->err) == RC_OK);
	return l.page.count;
}

size_t count_dead(struct guard_rig *r)
{
	struct dead_list l = { .queue = STR(GUARD_QUEUE), .limit = 100 };

	CHECK(store_read(r->rig.store, dead_list, &l, &r->rig.arena, &r->err) == RC_OK);
	return l.page.count;
}

static struct event_list list_events(struct guard_rig *r, const char *action)
{
	struct event_list l = { .limit = EVENT_PAGE_MAX, .is_newest_first = true };

	l.type = str_format(&r->rig.arena, EVENT_GUARD_PREFIX "%s", action);
	CHECK(store_read(r->rig.store, event_list, &l, &r->rig.arena, &r->err) == RC_OK);
	return l;
}

size_t count_actions(struct guard_rig *r, const char *action)
{
	return list_events(r, action).count;
}

struct event last_action(struct guard_rig *r, const char *action)
{
	struct event_list l = list_events(r, action);

	CHECK(l.count > 0);
	return l.events[0];
}

enum rc release_early(struct guard_rig *r, struct str hold_id)
{
	struct hold_call c = { .id = hold_id, .reason = STR("needed now"), .by = { .email = STR("ann@example.com") } };

	err_clear(&r->err);
	return rig_try(&r->rig, hold_release, &c, &r->err);
}

/* --- crashes --- */

/* A saga up to its call number n, whose outcome is lost. */
static void lose_call(struct guard_rig *r, struct work *w, int n)
{
	work_perform(w);
	for (int i = 1; i < n; i++) {
		rig_run(&r->rig, work_settle, w);
		CHECK(w->has_more);
		work_perform(w);
	}
}

/* True: this was what ends the process. */
static bool do_or_crash(struct guard_rig *r, struct work *w, int saga_calls)
{
	bool is_victim = w->needs_call && (!saga_calls || w->kind == WORK_SAGA);

	if (w->needs_call)
		rig_run(&r->rig, work_claim, w);
	if (w->needs_call && !w->is_claimed)
		return false;
	if (is_victim) {
		lose_call(r, w, saga_calls);
		return true;
	}
	if (w->needs_call)
		work_perform(w);
	rig_run(&r->rig, work_settle, w);
	return false;
}

/* One round over what is due. *ret_done: how many were done. */
static bool crash_once(struct guard_rig *r, int saga_calls, size_t *ret_done)
{
	struct arena     a = { 0 };
	struct work_list list;
	bool             has_crashed = false;

	*ret_done = 0;
	CHECK(work_find(r->rig.kernel, 100, (struct work_skips){ 0 }, &a, &list, &r->err) == RC_OK);
	for (size_t i = 0; i < list.count && !has_crashed; i++) {
		struct work w = { 0 };

		work_copy(&w, &list.items[i]);
		has_crashed = do_or_crash(r, &w, saga_calls);
		*ret_done += !has_crashed;
		work_fini(&w);
	}
	arena_fini(&a);
	return has_crashed;
}

bool crash_after_call(struct guard_rig *r, int saga_calls)
{
	size_t done;

	do {
		if (crash_once(r, saga_calls, &done)) {
			guard_rig_restart(r);
			r->rig.clock.test_ms += 5 * MINUTE_MS;
			return true;
		}
	} while (done);
	return false;
}
