/* SPDX-License-Identifier: Apache-2.0 */
/* lease_rig.c - see lease_rig.h. */
#include "lease_rig.h"

#include <string.h>

#include "base/json.h"
#include "domain/account.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "providers/sim/records.h"
#include "service/record/lease_records.h"
#include "store/memory/memory.h"
#include "test.h"

enum { CLEAN_MS = 300000 };

const struct caller ann = { .email = STR_INIT("Ann@example.com"), .roles = ROLE_USER, .request_id = STR_INIT("r-1") };
const struct caller bob = { .email = STR_INIT("bob@example.com"), .roles = ROLE_USER };
const struct caller manager = { .email = STR_INIT("max@example.com"), .roles = ROLE_USER | ROLE_MANAGER };
static const struct caller deputy = { .email = STR_INIT("mia@example.com"), .roles = ROLE_USER | ROLE_MANAGER };

/* --- the world --- */

static enum rc answer_cost(struct costs *c, struct str account_id, int64_t from_ms, int64_t to_ms,
                           struct cloud_spend *ret, struct err *e)
{
	struct lease_rig *r = CONTAINER_OF(c, struct lease_rig, costs);

	CHECK(from_ms % (24 * HOUR_MS) == 0 && from_ms <= to_ms);
	if (r->before_cost)
		r->before_cost(r);
	if (str_eq(account_id, r->cost_fails_for))
		return err_set(e, RC_UNAVAILABLE, "no figures today");
	*ret = (struct cloud_spend){ .micro_usd = r->cost, .complete_until_ms = r->cost_at_ms ? r->cost_at_ms : to_ms };
	return RC_OK;
}

static const struct policy *policy_now(void *arg)
{
	return &((struct lease_rig *)arg)->policy;
}

static void open_sim(struct lease_rig *r, int accounts)
{
	struct sim_cloud_options o = { .clock = &r->k.clock,
		                       .random = rig_random,
		                       .random_arg = &r->k.seed,
		                       .accounts = accounts ? accounts : -1,
		                       .available = accounts,
		                       .clean_min_ms = CLEAN_MS,
		                       .clean_max_ms = CLEAN_MS };

	r->sim_store = o.store = store_memory_open(sim_types, sim_type_count, &r->k.clock);
	CHECK(sim_cloud_open(&o, &r->sim, NULL) == RC_OK);
	r->cloud = sim_cloud_ports(r->sim);
}

static enum rc add_account(struct session *s, void *arg, struct err *e)
{
	struct account *a = arg;

	(void)e;
	session_add(s, &account_type, a);
	return RC_OK;
}

/* The accounts of one page, from number `first` on. */
static void fill_page(struct lease_rig *r, const struct cloud_account_page *page, size_t first)
{
	for (size_t i = 0; i < page->count; i++) {
		struct account a = { .id = page->items[i].id,
			             .name = page->items[i].name,
			             .status = ACCOUNT_AVAILABLE,
			             .placed_ou = STR("Available"),
			             .cleaned_ms = (int64_t)(first + i) + 1,
			             .rested_ms = (int64_t)(first + i) + 1,
			             .created_ms = 1,
			             .edited_ms = 1 };

		r->accounts[first + i] = a.id;
		rig_run(&r->k, add_account, &a);
	}
}

static void fill_pool(struct lease_rig *r, int accounts)
{
	struct cloud_account_page page = { 0 };
	size_t                    count = 0;

	do {
		CHECK(r->cloud.organisation->ops->list_accounts(r->cloud.organisation,
		                                                sim_cloud_ou(r->sim, SIM_OU_AVAILABLE), page.next,
		                                                &r->k.arena, &page, NULL) == RC_OK);
		fill_page(r, &page, count);
		count += page.count;
	} while (page.next.n);
	CHECK(count == (size_t)accounts);
}

static struct str add_template(struct lease_rig *r, const char *name, bool requires_approval)
{
	struct template_call c = { .by = manager, .policy = &r->policy, .is_new = true };

	c.fields = (struct lease_template){
		.name = str_from(name),
		.created_by = manager.email,
		.requires_approval = requires_approval,
		.max_spend = 50 * USD,
		.budget_thresholds = STR(
		        "[{\"dollarsSpent\":10,\"action\":\"ALERT\"},{\"dollarsSpent\":40,\"action\":\"FREEZE_ACCOUNT\"}]"),
		.duration_ms = 48 * HOUR_MS,
		.duration_thresholds = STR("[{\"hoursRemaining\":4,\"action\":\"ALERT\"}]"),
	};
	rig_run(&r->k, template_put, &c);
	return c.template.uuid;
}

static void lay_tables(struct lease_rig *r)
{
	r->clean = (struct account_clean_options){ .rules = &r->rules, .policy = policy_now, .policy_arg = r };
	r->kind = (struct saga_kind){ .name = ACCOUNT_FOLLOW };
	r->kinds[0] = &r->kind;
	r->queues[0] = leases_queue;
	r->queues[1] = line_queue;
	r->queues[2] = account_clean_queue(&r->clean);
	r->queues[3] = hold_queue();
	r->queues[4] = reports_queue(&r->reports);
	r->routes[0] = (struct route){ LEASES_EVENTS, LEASES_QUEUE };
	r->routes[1] = (struct route){ LINE_EVENTS, LINE_QUEUE };
	r->routes[2] = (struct route){ CLEANUP_EVENTS, CLEANUP_QUEUE };
	r->routes[3] = (struct route){ EVENT_HOLD_DUE, HOLD_QUEUE };
	r->routes[4] = (struct route){ EVENT_STATEMENT_DUE, REPORTS_QUEUE };
	r->k.options.queues = r->queues;
	r->k.options.queue_count = ARRAY_LEN(r->queues);
	r->k.options.routes = r->routes;
	r->k.options.route_count = ARRAY_LEN(r->routes);
	r->k.options.sagas = r->kinds;
	r->k.options.saga_count = 1;
	r->k.faults = &r->faults;
}

void lease_rig_open(struct lease_rig *r, int accounts)
{
	static const struct costs_ops costs_ops = { answer_cost };

	CHECK(accounts <= RIG_ACCOUNTS_MAX);
	*r = (struct lease_rig){ .costs = { &costs_ops } };
	policy_defaults(&r->policy);
	lay_tables(r);
	rig_open(&r->k);
	open_sim(r, accounts);
	r->world_options = (struct account_world_options){ .store = r->k.store,
		                                           .cloud = r->cloud,
		                                           .user_permissions = STR("user") };
	r->world = account_world_new(&r->world_options);
	r->kind = account_follow_kind(r->world);
	r->clean.store = r->k.store;
	r->clean.cleaner = r->cloud.cleaner;
	r->reports = (struct reports){ .store = r->k.store, .costs = r->cloud.costs };
	fill_pool(r, accounts);
	r->by_request = add_template(r, "By request", true);
	r->by_rule = add_template(r, "By rule", false);
}

void lease_rig_close(struct lease_rig *r)
{
	rig_close(&r->k);
	account_world_free(r->world);
	sim_cloud_close(r->sim);
	store_close(r->sim_store);
}

/* --- orders --- */

enum rc try_ask(struct lease_rig *r, struct lease_request *request, struct err *e)
{
	request->policy = &r->policy;
	if (!request->owner_email.n)
		request->owner_email = request->by.email;
	return rig_try(&r->k, lease_request, request, e);
}

struct str ask(struct lease_rig *r, const struct caller *who, struct str template_uuid)
{
	struct lease_request request = { .by = *who, .template_uuid = template_uuid };
	struct err           e = { 0 };
	enum rc              rc = try_ask(r, &request, &e);

	if (rc)
		print_error("%s\n", e.msg);
	CHECK(rc == RC_OK);
	return request.lease.uuid;
}

enum rc order(struct lease_rig *r, txn_fn *run, struct str uuid, const struct caller *by, struct err *e)
{
	struct lease_call c = { .by = *by,
		                .policy = &r->policy,
		                .owner_email = lease_of(r, uuid).user_email,
		                .uuid = uuid,
		                .reason = STR("because") };

	return rig_try(&r->k, run, &c, e);
}

struct str make_active(struct lease_rig *r, const struct caller *who)
{
	struct str uuid = ask(r, who, r->by_request);

	CHECK(order(r, lease_approve, uuid, who == &manager ? &deputy : &manager, NULL) == RC_OK); /* not by himself */
	(void)rig_turn(&r->k);
	CHECK(status_of(r, uuid) == LEASE_ACTIVE);
	return uuid;
}

/* --- looking --- */

struct look {
	const struct record_type *type;
	struct str                key;
	void                     *ret;
};

static enum rc look(struct session *s, void *arg, struct err *e)
{
	struct look *l = arg;

	return session_get(s, l->type, l->key, l->ret, e);
}

static enum rc find(struct lease_rig *r, const struct record_type *type, struct str key, void *ret)
{
	struct look l = { type, key, ret };

	return store_read(r->k.store, look, &l, &r->k.arena, NULL);
}

struct lease lease_of(struct lease_rig *r, struct str uuid)
{
	struct lease l;

	CHECK(find(r, &lease_type, uuid, &l) == RC_OK);
	return l;
}

struct account account_of(struct lease_rig *r, struct str id)
{
	struct account a;

	CHECK(find(r, &account_type, id, &a) == RC_OK);
	return a;
}

enum lease_status status_of(struct lease_rig *r, struct str uuid)
{
	return lease_of(r, uuid).status;
}

static enum rc drop_account(struct session *s, void *arg, struct err *e)
{
	struct account a;
	enum rc        rc = session_get(s, &account_type, *(struct str *)arg, &a, e);

	if (!rc)
		session_delete(s, &account_type, a.id);
	return rc;
}

void forget_account(struct lease_rig *r, struct str id)
{
	rig_run(&r->k, drop_account, &id);
}

int64_t live_of(struct lease_rig *r, const struct caller *who)
{
	struct lessee lessee;

	return find(r, &lessee_type, email_key(who->email, &r->k.arena), &lessee) == RC_OK ? lessee.live : 0;
}

static struct event_list events(struct lease_rig *r, const char *type, struct str uuid)
{
	struct event_list l = { .type = str_from(type), .limit = EVENT_PAGE_MAX };

	if (uuid.n)
		l.subject = str_format(&r->k.arena, "lease/%.*s", STR_ARG(uuid));
	CHECK(store_read(r->k.store, event_list, &l, &r->k.arena, NULL) == RC_OK);
	return l;
}

int told(struct lease_rig *r, const char *type, struct str uuid)
{
	return (int)events(r, type, uuid).count;
}

struct str last_detail(struct lease_rig *r, const char *type, struct str uuid)
{
	struct event_list l = events(r, type, uuid);

	CHECK(l.count > 0);
	return l.events[l.count - 1].detail;
}

bool mentions(struct str text, const char *part)
{
	bool is_there = text_has(text, part);

	if (!is_there)
		print_error("%.*s does not mention %s\n", STR_ARG(text), part);
	return is_there;
}

bool is_armed(struct lease_rig *r, const char *kind, struct str uuid)
{
	struct timer timer;

	return find(r, &timer_type, str_format(&r->k.arena, "lease-%s/%.*s", kind, STR_ARG(uuid)), &timer) == RC_OK;
}

static const struct policy *policy_of(void *arg)
{
	const struct lease_rig *r = arg;

	return &r->policy;
}

const struct alarm *find_alarm(struct lease_rig *r, alarm_rule_fn *finds, struct broker_alarm_context context,
                               struct str instance)
{
	const struct alarm_rule rule = { "rule", finds, 0, "docs/runbook.md#rule", "a rule" };
	struct alarm_check      check = { .kernel = r->k.kernel, .rules = &rule, .rule_count = 1, .arg = &context };
	struct page             list = { 0 };

	CHECK(alarm_check(&check, NULL) == RC_OK);
	rig_run(&r->k, alarm_list, &list);
	for (size_t i = 0; i < list.count; i++) {
		const struct alarm *alarm = page_record(&list, &alarm_type, i);
		struct str          name = alarm->name;

		(void)str_cut(&name, '#');
		if (str_eq(instance.n ? name : STR(""), instance))
			return alarm;
	}
	return NULL;
}

int64_t run_pass(struct lease_rig *r, pass_fn *pass, const char *count)
{
	struct lease_world world = { .cloud.costs = &r->costs,
		                     .projects = r->projects,
		                     .line_limit_ms = 24 * HOUR_MS,
		                     .policy = policy_of,
		                     .policy_arg = r };
	struct pass        p = { .store = r->k.store, .clock = &r->k.clock, .leases = &world };
	struct pass_result result = { 0 };
	struct err         e = { 0 };
	enum rc            rc = pass(&p, &result, &e);

	if (rc)
		print_error("%s\n", e.msg);
	CHECK(rc == RC_OK);
	for (int i = 0; i < result.count; i++)
		if (strcmp(result.counts[i].name, count) == 0)
			return result.counts[i].value;
	CHECK(!"a count of this name");
	return -1;
}

void check_ended(struct lease_rig *r, struct str uuid, enum lease_status status)
{
	struct lease l = lease_of(r, uuid);

	CHECK(l.status == status && l.end_ms > 0 && l.ttl_sec > 0 && l.account_id.n > 0);
	CHECK(told(r, "LeaseTerminated", uuid) == 1);
	CHECK(!is_armed(r, "expiry", uuid) && !is_armed(r, "moment", uuid));
	CHECK(live_of(r, &ann) == 0);
}

enum rc edit(struct lease_rig *r, struct str uuid, struct lease_edit *change)
{
	change->call = (struct lease_call){
		.by = manager, .policy = &r->policy, .owner_email = ann.email, .uuid = uuid
	};
	return rig_try(&r->k, lease_edit, change, NULL);
}

int free_accounts(struct lease_rig *r)
{
	int64_t counts[ACCOUNT_STATUS_COUNT];

	CHECK(store_read(r->k.store, account_counts, counts, &r->k.arena, NULL) == RC_OK);
	return (int)counts[ACCOUNT_AVAILABLE];
}

enum rc rules_read(struct str text, struct arena *a, struct approval_policy *ret, struct problems *problems)
{
	CLEANUP(json_freep) json_t *document = NULL;

	CHECK(json_parse(text, &document, NULL) == RC_OK);
	return approval_read(document, a, ret, problems);
}
