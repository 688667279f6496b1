/* SPDX-License-Identifier: Apache-2.0 */
/* account_rig.c - see account_rig.h. */
#include "account_rig.h"

#include <limits.h>
#include <string.h>

#include "domain/world.h"
#include "kernel/event.h"
#include "kernel/saga.h"
#include "providers/sim/records.h"
#include "service/pool/accounts.h"
#include "service/reconcile/reconcile.h"
#include "service/record/lease_records.h"
#include "store/memory/memory.h"
#include "test.h"
#include "truth/sim_truth.h"
#include "truth/test_clock.h"

enum { ENTRY_ACCOUNTS = 12 };

static const struct route routes[] = {
	{ EVENT_CLEAN_REQUEST, CLEANUP_QUEUE },
	{ EVENT_CLEANUP_DUE, CLEANUP_QUEUE },
	{ EVENT_DRIFT_DETECTED, DRIFT_QUEUE },
	{ EVENT_HOLD_DUE, HOLD_QUEUE },
};

static const struct policy *policy_of(void *arg)
{
	return &((struct account_rig *)arg)->policy;
}

static void open_cloud(struct account_rig *r)
{
	r->rig.clock = clock_test(1700000000000);
	r->sim_store = store_memory_open(sim_types, sim_type_count, &r->rig.clock);
	r->sim_options.store = r->sim_store;
	r->sim_options.clock = &r->rig.clock;
	r->sim_options.random = rig_random;
	r->sim_options.random_arg = &r->chance;
	if (!r->sim_options.accounts)
		r->sim_options.accounts = ENTRY_ACCOUNTS;
	CHECK(sim_cloud_open(&r->sim_options, &r->sim, &r->err) == RC_OK);
	r->cloud = sim_cloud_ports(r->sim);
}

/* The kernel has the addresses of queues and kind before they are filled in: the store is made with it. Every
 * transaction that writes is run twice, as after a conflict. */
static void open_kernel(struct account_rig *r)
{
	r->faults.next = FAULT_RERUN;
	r->faults.count = INT_MAX;
	r->rig.faults = &r->faults;
	r->kinds[0] = &r->kind;
	r->rig.options.queues = r->queues;
	r->rig.options.queue_count = ARRAY_LEN(r->queues);
	r->rig.options.routes = routes;
	r->rig.options.route_count = ARRAY_LEN(routes);
	r->rig.options.sagas = r->kinds;
	r->rig.options.saga_count = 1;
	r->queues[0] = account_clean_queue(&r->clean);
	r->queues[1] = account_drift_queue();
	r->queues[2] = hold_queue();
	rig_open(&r->rig);
}

void account_rig_open(struct account_rig *r)
{
	open_cloud(r);
	policy_defaults(&r->policy);
	open_kernel(r);
	r->world = account_world_new(&(struct account_world_options){ .store = r->rig.store,
	                                                              .cloud = r->cloud,
	                                                              .user_permissions = STR("SandboxUser"),
	                                                              .manager_group = STR("managers"),
	                                                              .manager_permissions = STR("SandboxManager"),
	                                                              .admin_group = STR("admins"),
	                                                              .admin_permissions = STR("SandboxAdmin") });
	r->kind = account_follow_kind(r->world);
	r->clean.store = r->rig.store;
	r->clean.cleaner = r->cloud.cleaner;
	r->clean.rules = &r->rules;
	r->clean.policy = policy_of;
	r->clean.policy_arg = r;
}

void account_rig_close(struct account_rig *r)
{
	rig_close(&r->rig);
	account_world_free(r->world);
	sim_cloud_close(r->sim);
	store_close(r->sim_store);
}

struct str nth_account(struct account_rig *r, size_t n)
{
	struct organisation      *o = r->cloud.organisation;
	struct cloud_account_page page;

	CHECK(o->ops->list_accounts(o, sim_cloud_ou(r->sim, SIM_OU_ENTRY), STR(""), &r->rig.arena, &page, &r->err) ==
	      RC_OK);
	CHECK(n < page.count);
	return page.items[n].id;
}

/* --- operators --- */

static struct account_call call_for(struct str id)
{
	return (struct account_call){ .id = id,
		                      .name = STR("sandbox"),
		                      .reason = STR("it looks odd"),
		                      .by = { .email = STR("root@example.com") } };
}

enum rc try_account(struct account_rig *r, txn_fn *run, struct str id)
{
	struct account_call c = call_for(id);

	err_clear(&r->err);
	return rig_try(&r->rig, run, &c, &r->err);
}

void do_account(struct account_rig *r, txn_fn *run, struct str id)
{
	struct account_call c = call_for(id);

	rig_run(&r->rig, run, &c);
}

bool has_account(struct account_rig *r, struct str id)
{
	return try_account(r, account_get, id) == RC_OK;
}

struct account get_account(struct account_rig *r, struct str id)
{
	struct account_call c = call_for(id);

	rig_run(&r->rig, account_get, &c);
	return c.account;
}

struct str add_free_account(struct account_rig *r, size_t n)
{
	struct str id = nth_account(r, n);

	do_account(r, account_register, id);
	rig_pass(&r->rig, 2 * HOUR_MS);
	CHECK(get_account(r, id).status == ACCOUNT_AVAILABLE);
	return id;
}

/* --- leases --- */

struct lending {
	struct str   email, approver;
	struct lease lease;
};

static struct lease new_lease(struct session *s, struct str email)
{
	char id[KERNEL_ID_SIZE];

	kernel_id(kernel_of(s), session_now(s).ms, id);
	return (struct lease){ .uuid = str_dup(session_arena(s), str_from(id)),
		               .user_email = email,
		               .user_key = email_key(email, session_arena(s)),
		               .template_uuid = STR("11111111-2222-3333-4444-555555555555"),
		               .template_name = STR("small"),
		               .created_by = email,
		               .created_ms = session_now(s).ms };
}

static enum rc lend_one(struct session *s, void *arg, struct err *e)
{
	struct lending *l = arg;
	struct lessee   lessee;
	struct account  account;
	enum rc         rc;

	l->lease = new_lease(s, l->email);
	if ((rc = account_lend(s, &l->lease, l->approver, &account, e)) ||
	    (rc = lease_apply(&l->lease, LEASE_ON_APPROVE, session_now(s), e)))
		return rc;
	l->lease.account_id = account.id;
	l->lease.approved_by = l->approver;
	CHECK(lease_ok(&l->lease));
	session_add(s, &lease_type, &l->lease);
	if (session_get(s, &lessee_type, l->lease.user_key, &lessee, NULL))
		lessee = (struct lessee){ .email_key = l->lease.user_key };
	lessee.live++;
	session_put(s, &lessee_type, &lessee);
	return RC_OK;
}

enum rc try_lend(struct account_rig *r, struct str email, struct str approver, struct lease *ret)
{
	struct lending l = { .email = email, .approver = approver };
	enum rc        rc;

	err_clear(&r->err);
	rc = rig_try(&r->rig, lend_one, &l, &r->err);
	*ret = l.lease;
	return rc;
}

struct lease lend(struct account_rig *r, struct str email)
{
	struct lease lease;

	CHECK(try_lend(r, email, STR("boss@example.com"), &lease) == RC_OK);
	return lease;
}

struct lease_change {
	struct str       uuid;
	enum lease_event event;
	struct lease     lease;
};

static enum rc read_lease(struct session *s, void *arg, struct err *e)
{
	struct lease_change *c = arg;

	return session_get(s, &lease_type, c->uuid, &c->lease, e);
}

struct lease get_lease(struct account_rig *r, struct str uuid)
{
	struct lease_change c = { .uuid = uuid };

	rig_run(&r->rig, read_lease, &c);
	return c.lease;
}

static enum rc change_account(struct session *s, const struct lease *l, enum lease_event event, struct err *e)
{
	enum account_event change = event == LEASE_ON_FREEZE     ? ACCOUNT_ON_FREEZE
	                            : event == LEASE_ON_UNFREEZE ? ACCOUNT_ON_UNFREEZE
	                                                         : ACCOUNT_ON_TAKE_BACK;

	return account_change(s, l, change, STR(CLEAN_AFTER_LEASE), STR("boss@example.com"), e);
}

static enum rc change_lease(struct session *s, void *arg, struct err *e)
{
	struct lease_change *c = arg;
	enum rc              rc = read_lease(s, c, e);

	if (rc || (rc = change_account(s, &c->lease, c->event, e)) ||
	    (rc = lease_apply(&c->lease, c->event, session_now(s), e)))
		return rc;
	if (c->event == LEASE_ON_TERMINATE)
		c->lease.ttl_sec = wall_sec(session_now(s)) + 1;
	session_put(s, &lease_type, &c->lease);
	return RC_OK;
}

enum rc try_lease(struct account_rig *r, struct str uuid, enum lease_event event)
{
	struct lease_change c = { .uuid = uuid, .event = event };

	err_clear(&r->err);
	return rig_try(&r->rig, change_lease, &c, &r->err);
}

static void apply(struct account_rig *r, struct str uuid, enum lease_event event)
{
	CHECK(try_lease(r, uuid, event) == RC_OK);
}

void freeze(struct account_rig *r, struct str uuid)
{
	apply(r, uuid, LEASE_ON_FREEZE);
}

void unfreeze(struct account_rig *r, struct str uuid)
{
	apply(r, uuid, LEASE_ON_UNFREEZE);
}

void take_back(struct account_rig *r, struct str uuid)
{
	apply(r, uuid, LEASE_ON_TERMINATE);
}

/* --- outside --- */

enum sim_ou_name where_is(struct account_rig *r, struct str id)
{
	struct sim_truth truth = { 0 };

	CHECK(sim_cloud_inspect(r->sim, id, &truth, &r->err) == RC_OK);
	return truth.ou;
}

struct access_list {
	struct str  id;
	struct page page;
};

/* From the cloud's own records: what is asked of its ports may be disturbed. */
static enum rc read_access(struct session *s, void *arg, struct err *e)
{
	struct access_list *l = arg;
	struct query        q = { .type = &sim_assignment_type,
		                  .index = SIM_ASSIGNMENT_BY_ACCOUNT,
		                  .hash = value_text(l->id),
		                  .limit = 100 };

	return session_query(s, &q, &l->page, e);
}

static struct page list_access(struct account_rig *r, struct str id)
{
	struct access_list l = { .id = id };

	CHECK(store_read(r->sim_store, read_access, &l, &r->rig.arena, &r->err) == RC_OK);
	return l.page;
}

bool may_use(struct account_rig *r, struct str id, enum cloud_principal kind, struct str who)
{
	struct page page = list_access(r, id);

	for (size_t i = 0; i < page.count; i++) {
		const struct sim_assignment *x = page_record(&page, &sim_assignment_type, i);

		if (x->kind == (int64_t)kind && str_eq(x->principal, who))
			return true;
	}
	return false;
}

size_t count_access(struct account_rig *r, struct str id)
{
	return list_access(r, id).count;
}

void outsider_moves(struct account_rig *r, struct str id, enum sim_ou_name to)
{
	struct world *w = sim_cloud_world(r->sim);

	CHECK(w->ops->move(w, id, sim_cloud_ou(r->sim, where_is(r, id)), sim_cloud_ou(r->sim, to), &r->err) == RC_OK);
}

void goes_wrong(struct account_rig *r, enum world_fault fault, enum world_call call, int64_t count)
{
	struct world      *w = sim_cloud_world(r->sim);
	struct world_rules rules = { .rules = { { .fault = fault, .call = call, .per_mille = 1000, .count = count } },
		                     .count = 1 };

	w->ops->set_rules(w, &rules);
}

void goes_well(struct account_rig *r)
{
	struct world      *w = sim_cloud_world(r->sim);
	struct world_rules rules = { .count = 0 };

	w->ops->set_rules(w, &rules);
}

/* --- the kernel --- */

static struct event_list list_events(struct account_rig *r, const char *type)
{
	struct event_list l = { .type = str_from(type), .limit = EVENT_PAGE_MAX, .is_newest_first = true };

	rig_run(&r->rig, event_list, &l);
	return l;
}

size_t count_events(struct account_rig *r, const char *type)
{
	return list_events(r, type).count;
}

struct event last_event(struct account_rig *r, const char *type)
{
	struct event_list l = list_events(r, type);

	CHECK(l.count > 0);
	return l.events[0];
}

int64_t count_sagas(struct account_rig *r, enum saga_state state)
{
	int64_t counts[SAGA_OPEN_STATES];

	CHECK(state < SAGA_OPEN_STATES);
	rig_run(&r->rig, saga_count, counts);
	return counts[state];
}

/* One round over what is due. *ret_settled: how many were done that need no call. */
static bool crash_once(struct account_rig *r, size_t *ret_settled)
{
	struct arena     a = { 0 };
	struct work_list list;
	bool             has_crashed = false;

	*ret_settled = 0;
	CHECK(work_find(r->rig.kernel, 100, (struct work_skips){ 0 }, &a, &list, &r->err) == RC_OK);
	for (size_t i = 0; i < list.count && !has_crashed; i++) {
		struct work w = { 0 };

		work_copy(&w, &list.items[i]);
		rig_run(&r->rig, w.needs_call ? work_claim : work_settle, &w);
		*ret_settled += !w.needs_call;
		has_crashed = w.is_claimed;
		if (has_crashed)
			work_perform(&w);
		work_fini(&w);
	}
	arena_fini(&a);
	return has_crashed;
}

bool crash_after_call(struct account_rig *r)
{
	size_t settled;

	do {
		if (crash_once(r, &settled))
			return true;
	} while (settled);
	return false;
}

void clean_resting(struct account_rig *r, struct str id)
{
	struct account_call c = { .id = id, .by = { .email = STR("ops@example.org") }, .restarts_rest = true };

	rig_run(&r->rig, account_retry_cleanup, &c);
}
