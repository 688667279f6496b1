/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leases.c - people who ask for leases, managers who decide, operators who look after accounts, outsiders who move
 * them; and a cloud that throttles, times out, and has a cleaner that fails and lies.
 *
 * The service and the cloud are the product's own. Between them are ports that let time pass in each call, in which the
 * other nodes go on, and that see which cleanups have really succeeded. The pool is small, so that there is a line.
 *
 * What must be so is in leases_model.c.
 */
#include "leases.h"

#include "base/arena.h"
#include "base/mem.h"
#include "domain/world.h"
#include "kernel/kernel.h"
#include "kernel/timer.h"
#include "truth/sim_truth.h"
#include "providers/sim/faults.h"
#include "providers/sim/records.h"
#include "bank.h"
#include "service/pool/accounts.h"
#include "service/account/account_follow.h"
#include "service/hold/holds.h"
#include "service/lease/lease_passes.h"
#include "service/record/lease_records.h"
#include "service/lease/leases.h"
#include "service/reconcile/reconcile.h"
#include "sim.h"
#include "store/memory/memory.h"
#include "store/session.h"

enum { ROUNDS_MAX = 20, CLEAN_MIN_MS = 30000, CLEAN_MAX_MS = 90000, CALL_MAX_MS = 1500, CALL_SLOW_MS = 29000 };

enum { TEMPLATES = 3 };
static const struct lease_template templates[TEMPLATES] = {
	{ .uuid = STR_INIT("10000000-0000-4000-8000-000000000001"),
	  .name = STR_INIT("Playground"),
	  .max_spend = 10 * LEASE_USD,
	  .budget_thresholds = STR_INIT("[{\"dollarsSpent\":5,\"action\":\"ALERT\"}]"),
	  .duration_ms = 8 * LEASE_HOUR_MS,
	  .duration_thresholds = STR_INIT("[{\"hoursRemaining\":2,\"action\":\"ALERT\"}]") },
	{ .uuid = STR_INIT("10000000-0000-4000-8000-000000000002"),
	  .name = STR_INIT("Project"),
	  .requires_approval = 1,
	  .max_spend = 40 * LEASE_USD,
	  .budget_thresholds = STR_INIT("[{\"dollarsSpent\":20,\"action\":\"FREEZE_ACCOUNT\"}]"),
	  .duration_ms = 20 * LEASE_HOUR_MS,
	  .duration_thresholds = STR_INIT("[{\"hoursRemaining\":6,\"action\":\"ALERT\"}]") },
	{ .uuid = STR_INIT("10000000-0000-4000-8000-000000000003"),
	  .name = STR_INIT("Minute"),
	  .max_spend = 1 * LEASE_USD,
	  .duration_ms = LEASE_HOUR_MS / 4 },
};

/* Of a long world: as people lend accounts. */
static const struct lease_template long_templates[TEMPLATES] = {
	{ .uuid = STR_INIT("10000000-0000-4000-8000-000000000001"),
	  .name = STR_INIT("Week"),
	  .max_spend = 100 * LEASE_USD,
	  .budget_thresholds = STR_INIT("[{\"dollarsSpent\":50,\"action\":\"ALERT\"}]"),
	  .duration_ms = 7ll * 24 * LEASE_HOUR_MS,
	  .duration_thresholds = STR_INIT("[{\"hoursRemaining\":48,\"action\":\"ALERT\"}]") },
	{ .uuid = STR_INIT("10000000-0000-4000-8000-000000000002"),
	  .name = STR_INIT("Month"),
	  .requires_approval = 1,
	  .max_spend = 400 * LEASE_USD,
	  .budget_thresholds = STR_INIT("[{\"dollarsSpent\":200,\"action\":\"FREEZE_ACCOUNT\"}]"),
	  .duration_ms = 30ll * 24 * LEASE_HOUR_MS,
	  .duration_thresholds = STR_INIT("[{\"hoursRemaining\":120,\"action\":\"ALERT\"}]") },
	{ .uuid = STR_INIT("10000000-0000-4000-8000-000000000003"),
	  .name = STR_INIT("Hours"),
	  .max_spend = 1 * LEASE_USD,
	  .duration_ms = 3 * LEASE_HOUR_MS },
};

static const struct lease_template *templates_of(const struct sim *sim)
{
	return sim_is_long(sim) ? long_templates : templates;
}

/* Hours: short, so that a seed sees many; in a long world up to the product's 72. */
static const int64_t rests[] = { 0, 1, 2, 6 };

static const struct caller manager = { .email = STR_INIT("boss@example.com"), .roles = ROLE_MANAGER };

static uint64_t draw(void *arg)
{
	return chance_next(arg);
}

static const struct policy *policy_of(void *arg)
{
	return &((struct leases *)arg)->policy;
}

/* --- the ports: calls take time --- */

static void take_time(struct sim *sim)
{
	sim_call_takes(sim, chance_below(&sim->chance, chance_is(&sim->chance, 40) ? CALL_SLOW_MS : CALL_MAX_MS));
}

static enum rc list_ous(struct organisation *o, struct arena *a, struct cloud_ou **ret, size_t *ret_count,
                        struct err *e)
{
	struct organisation *real = CONTAINER_OF(o, struct leases, organisation)->real.organisation;

	return real->ops->list_ous(real, a, ret, ret_count, e);
}

static enum rc find_parent(struct organisation *o, struct str id, struct arena *a, struct str *ret, struct err *e)
{
	struct organisation *real = CONTAINER_OF(o, struct leases, organisation)->real.organisation;

	return real->ops->find_parent(real, id, a, ret, e);
}

static enum rc move(struct organisation *o, struct str id, struct str from, struct str to, struct err *e)
{
	struct leases *l = CONTAINER_OF(o, struct leases, organisation);

	take_time(l->sim);
	return l->real.organisation->ops->move(l->real.organisation, id, from, to, e);
}

static enum rc list_accounts(struct organisation *o, struct str ou, struct str cursor, struct arena *a,
                             struct cloud_account_page *ret, struct err *e)
{
	struct leases *l = CONTAINER_OF(o, struct leases, organisation);

	take_time(l->sim);
	return l->real.organisation->ops->list_accounts(l->real.organisation, ou, cursor, a, ret, e);
}

static enum rc set_access(struct access *x, const struct cloud_assignment *assignment, bool is_granted, struct err *e)
{
	struct leases *l = CONTAINER_OF(x, struct leases, access);

	take_time(l->sim);
	return l->real.access->ops->set(l->real.access, assignment, is_granted, e);
}

static enum rc list_access(struct access *x, struct str id, struct arena *a, struct cloud_assignment **ret,
                           size_t *ret_count, struct err *e)
{
	struct access *real = CONTAINER_OF(x, struct leases, access)->real.access;

	return real->ops->list(real, id, a, ret, ret_count, e);
}

/* A run belongs to the time in which it was first asked for, whether or not it was answered. */
static struct known_run *run_of_key(struct leases *l, struct str id, struct str key)
{
	struct known_run *run = names_find(&l->runs, key);

	if (run)
		return run;
	run = arena_alloc(&l->sim->arena, sizeof(*run));
	run->account = lent_account(l, id);
	run->era = run->account->era;
	names_add(&l->runs, str_dup(&l->sim->arena, key), run);
	return run;
}

static enum rc start_cleanup(struct cleaner *c, struct str id, struct str key, struct arena *a, struct str *ret,
                             struct err *e)
{
	struct leases    *l = CONTAINER_OF(c, struct leases, cleaner);
	struct known_run *run = run_of_key(l, id, key);
	enum rc           rc;

	take_time(l->sim);
	rc = l->real.cleaner->ops->start(l->real.cleaner, id, key, a, ret, e);
	if (!rc && !names_find(&l->runs, *ret))
		names_add(&l->runs, str_dup(&l->sim->arena, *ret), run);
	return rc;
}

static enum rc check_cleanup(struct cleaner *c, struct str run_id, struct arena *a, struct cloud_run *ret,
                             struct err *e)
{
	struct leases    *l = CONTAINER_OF(c, struct leases, cleaner);
	struct known_run *run = names_find(&l->runs, run_id);
	enum rc           rc = l->real.cleaner->ops->check(l->real.cleaner, run_id, a, ret, e);

	if (rc || !run || run->is_counted || run->era != run->account->era || ret->state == CLOUD_RUNNING)
		return rc;
	run->is_counted = true;
	run->account->good_runs = ret->state == CLOUD_SUCCEEDED ? run->account->good_runs + 1 : 0;
	return rc;
}

static void set_ports(struct leases *l)
{
	static const struct organisation_ops organisation = {
		.list_ous = list_ous, .find_parent = find_parent, .move = move, .list_accounts = list_accounts
	};
	static const struct access_ops  access = { .set = set_access, .list = list_access };
	static const struct cleaner_ops cleaner = { .start = start_cleanup, .check = check_cleanup };

	l->organisation.ops = &organisation;
	l->access.ops = &access;
	l->cleaner.ops = &cleaner;
}

/* --- open, close --- */

static void set_rules(struct sim *sim)
{
	static const struct {
		enum world_fault fault;
		int              part; /* of the seed's roughness */
	} faults[] = { { WORLD_OUTAGE, 4 },        { WORLD_THROTTLE, 4 },    { WORLD_TIMEOUT_BEFORE, 4 },
		       { WORLD_TIMEOUT_AFTER, 3 }, { WORLD_CLEAN_FAILS, 1 }, { WORLD_CLEAN_LIES, 1 } };
	struct world_rules rules = { .count = 0 };

	for (size_t i = 0; i < ARRAY_LEN(faults) && !sim->is_calm; i++)
		if (faults[i].fault != WORLD_CLEAN_LIES || sim->leases->lies)
			rules.rules[rules.count++] = (struct world_rule){ .fault = faults[i].fault,
				                                          .call = WORLD_ANY_CALL,
				                                          .per_mille = (int)sim->profile.step /
				                                                       faults[i].part };
	sim_faults_set(sim_cloud_faults(sim->leases->cloud), &rules);
}

static void open_cloud(struct sim *sim, struct leases *l)
{
	struct sim_cloud_options o = { .clock = &sim->clock,
		                       .random = draw,
		                       .random_arg = &l->chance,
		                       .accounts = LENT_ACCOUNTS,
		                       .available = LENT_FREE,
		                       .cost_delay_min_ms = sim_paced(sim, HOUR_MS / 2),
		                       .cost_delay_max_ms = sim_paced(sim, 2 * HOUR_MS),
		                       .clean_min_ms = CLEAN_MIN_MS,
		                       .clean_max_ms = CLEAN_MAX_MS };

	l->chance.state = chance_next(&sim->chance);
	l->store = o.store = store_memory_open(sim_types, sim_type_count, &sim->clock);
	if (sim_cloud_open(&o, &l->cloud, NULL))
		abort(); /* the memory store does not fail */
	l->real = sim_cloud_ports(l->cloud);
	set_ports(l);
}

static void learn_accounts(struct sim *sim, struct leases *l)
{
	static const enum sim_ou_name ous[] = { SIM_OU_AVAILABLE, SIM_OU_ENTRY };
	struct organisation          *o = l->real.organisation;
	size_t                        count = 0;

	for (size_t i = 0; i < ARRAY_LEN(ous); i++) {
		struct cloud_account_page page = { 0 };

		if (o->ops->list_accounts(o, sim_cloud_ou(l->cloud, ous[i]), STR(""), &sim->arena, &page, NULL))
			abort(); /* nothing goes wrong yet */
		for (size_t j = 0; j < page.count && count < LENT_ACCOUNTS; j++)
			l->accounts[count++].id = page.items[j].id;
	}
}

void leases_open(struct sim *sim)
{
	struct leases *l;

	if (sim->seed % SEEDS_PER_LEASE)
		return;
	l = arena_alloc(&sim->arena, sizeof(*l));
	sim->leases = l;
	l->sim = sim;
	l->leases.arena = l->runs.arena = l->holds.arena = &sim->arena;
	l->lies = chance_is(&sim->chance, 500);
	policy_defaults(&l->policy);
	l->policy.leases_per_user = LEASES_EACH;
	l->policy.duration_max_hours = sim_paced(sim, l->policy.duration_max_hours);
	l->policy.budget_max_usd = sim_paced(sim, l->policy.budget_max_usd);
	l->policy.ttl_days = sim_paced(sim, 1);
	hold_rules_defaults(&l->rules);
	l->rules.hours[HOLD_BILLING] = sim_paced(sim, rests[chance_below(&sim->chance, ARRAY_LEN(rests))]);
	l->rules.hours[HOLD_QUOTA] = sim_paced(sim, chance_is(&sim->chance, 300) ? 3 : 0);
	l->rules.ejects = chance_is(&sim->chance, 50);
	open_cloud(sim, l);
	l->world = (struct lease_world){ .cloud = { .organisation = &l->organisation,
		                                    .access = &l->access,
		                                    .costs = l->real.costs,
		                                    .cleaner = &l->cleaner },
		                         .projects = true,
		                         .line_limit_ms = sim_paced(sim, 2ll * DAY_MS),
		                         .policy = policy_of,
		                         .policy_arg = l };
	for (int i = 0; i < PEOPLE; i++) {
		l->people[i].email = str_format(&sim->arena, "Person-%d@example.com", i);
		l->people[i].key = str_format(&sim->arena, "person-%d@example.com", i);
	}
	learn_accounts(sim, l);
	set_rules(sim);
}

void leases_calm(struct sim *sim)
{
	if (sim->leases)
		set_rules(sim);
}

void leases_close(struct sim *sim)
{
	struct world_counts counts;

	if (!sim->leases)
		return;
	counts = sim_faults_counts(sim_cloud_faults(sim->leases->cloud));
	sim->faults[SIM_CLOUD_FAILED] += counts.faults[WORLD_OUTAGE] + counts.faults[WORLD_THROTTLE] +
	                                 counts.faults[WORLD_TIMEOUT_BEFORE];
	sim->faults[SIM_CLOUD_ANSWER_LOST] += counts.faults[WORLD_TIMEOUT_AFTER];
	sim->faults[SIM_CLEAN_FAILED] += counts.faults[WORLD_CLEAN_FAILS];
	sim->faults[SIM_CLEAN_LIED] += counts.faults[WORLD_CLEAN_LIES];
	sim_cloud_close(sim->leases->cloud);
	store_close(sim->leases->store);
}

static enum rc seed(struct session *s, void *arg, struct err *e)
{
	struct leases *l = arg;

	(void)e;
	for (int i = 0; i < LENT_FREE; i++) {
		struct account a = { .id = l->accounts[i].id,
			             .name = STR("sandbox"),
			             .status = ACCOUNT_AVAILABLE,
			             .placed_ou = STR("Available"),
			             .cleaned_ms = session_now(s).ms,
			             .rested_ms = session_now(s).ms,
			             .created_ms = session_now(s).ms,
			             .edited_ms = session_now(s).ms };

		session_add(s, &account_type, &a);
	}
	for (size_t i = 0; i < TEMPLATES; i++) {
		struct lease_template template = templates_of(l->sim)[i];

		template.created_by = manager.email;
		session_add(s, &template_type, &template);
	}
	return RC_OK;
}

void leases_seed(struct sim *sim)
{
	struct arena a = { 0 };

	sim->leases->is_seeding = true;
	if (store_run(sim->shared, seed, sim->leases, &a, NULL))
		abort(); /* nothing goes wrong yet */
	sim->leases->is_seeding = false;
	arena_fini(&a);
}

/* --- a node --- */

static size_t add_routes(struct leases_node *ln)
{
	static const struct route more[] = { { CLEANUP_EVENTS, CLEANUP_QUEUE },
		                             { EVENT_DRIFT_DETECTED, DRIFT_QUEUE },
		                             { EVENT_HOLD_DUE, HOLD_QUEUE },
		                             { LEASES_EVENTS, LEASES_QUEUE },
		                             { LINE_EVENTS, LINE_QUEUE } };
	size_t                    count = 0;

	for (size_t i = 0; i < bank_route_count; i++)
		ln->routes[count++] = bank_routes[i];
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		ln->routes[count++] = more[i];
	return count;
}

static struct account_world_options world_options(const struct sim_node *n)
{
	return (struct account_world_options){ .store = n->leases->clean.store,
		                               .cloud = n->sim->leases->world.cloud,
		                               .user_permissions = STR("user"),
		                               .manager_group = STR("managers"),
		                               .manager_permissions = STR("manager"),
		                               .admin_group = STR("admins"),
		                               .admin_permissions = STR("admin") };
}

void leases_start(struct sim_node *n, struct kernel_options *o)
{
	struct leases               *l = n->sim->leases;
	struct leases_node          *ln;
	struct account_world_options options;
	struct queue                *queues = &n->queues[NODE_QUEUES - LEASE_QUEUES];

	if (!l)
		return;
	ln = n->leases = mem_new(struct leases_node);
	ln->clean = (struct account_clean_options){ .store = &n->base,
		                                    .cleaner = &l->cleaner,
		                                    .at_once = 2,
		                                    .rules = &l->rules,
		                                    .policy = policy_of,
		                                    .policy_arg = l };
	options = world_options(n);
	ln->world = account_world_new(&options);
	ln->follow = account_follow_kind(ln->world);
	for (size_t i = 0; i < o->saga_count; i++)
		ln->kinds[i] = o->sagas[i];
	ln->kinds[o->saga_count++] = &ln->follow;
	o->sagas = ln->kinds;
	o->route_count = add_routes(ln);
	o->routes = ln->routes;
	queues[0] = account_clean_queue(&ln->clean);
	queues[1] = account_drift_queue();
	queues[2] = hold_queue();
	queues[3] = leases_queue;
	queues[4] = line_queue;
	o->queue_count += LEASE_QUEUES;
}

void leases_end(struct sim_node *n)
{
	if (!n->leases)
		return;
	account_world_free(n->leases->world);
	free(n->leases);
	n->leases = NULL;
}

/* --- people --- */

static void ask(struct sim_node *n, struct arena *a)
{
	struct sim           *sim = n->sim;
	struct leases        *l = sim->leases;
	struct known_person  *who = &l->people[chance_below(&sim->chance, PEOPLE)];
	struct lease_request *r = arena_alloc(a, sizeof(*r));
	struct err            e = { 0 };
	enum rc               rc;

	*r = (struct lease_request){ .by = { .email = who->email, .roles = ROLE_USER },
		                     .policy = &l->policy,
		                     .owner_email = chance_is(&sim->chance, 500) ? who->email : who->key,
		                     .owner_roles = ROLE_USER };
	r->template_uuid = templates_of(sim)[chance_below(&sim->chance, TEMPLATES)].uuid;
	if ((r->is_assigned = chance_is(&sim->chance, 150)))
		r->by = manager;
	rc = node_run(n, lease_request, r, a, &e);
	sim_trace(sim, n, "%.*s asks for a lease: %.*s", STR_ARG(who->email),
	          rc ? (int)sizeof(e.msg) : (int)r->lease.uuid.n, rc ? e.msg : r->lease.uuid.p);
	if (!rc && !names_find(&l->leases, r->lease.uuid))
		sim_broken(sim, "what was answered is stored", "lease %.*s was answered, and is not there",
		           STR_ARG(r->lease.uuid));
}

/* One of these statuses; NULL: there is none. */
static const struct known_lease *any_lease(struct sim *sim, unsigned statuses)
{
	const struct known_lease *found = NULL;
	int64_t                   count = 0;

	for (const struct known_lease *k = sim->leases->first; k; k = k->next)
		if (k->is_there && (statuses & 1u << k->status) && chance_below(&sim->chance, ++count) == 0)
			found = k;
	return found;
}

static struct lease_call call_for(struct sim *sim, const struct known_lease *k)
{
	return (struct lease_call){ .by = manager,
		                    .policy = &sim->leases->policy,
		                    .owner_email = k->owner->email,
		                    .uuid = k->uuid,
		                    .reason = STR("simulated") };
}

static void change(struct sim_node *n, txn_fn *run, const char *name, unsigned statuses, struct arena *a)
{
	const struct known_lease *k = any_lease(n->sim, chance_is(&n->sim->chance, 900) ? statuses : ~0u);
	struct lease_call         c;
	struct err                e = { 0 };
	enum rc                   rc;

	if (!k)
		return;
	c = call_for(n->sim, k);
	if (run == lease_withdraw)
		c.by = (struct caller){ .email = k->owner->email, .roles = ROLE_USER };
	rc = node_run(n, run, &c, a, &e);
	sim_trace(n->sim, n, "somebody %s lease %.*s: %s", name, STR_ARG(k->uuid), rc ? e.msg : "ok");
}

/* Sooner, later, at once; more money or less. */
static void edit(struct sim_node *n, struct arena *a)
{
	struct sim               *sim = n->sim;
	const struct known_lease *k = any_lease(sim,
	                                        1u << LEASE_ACTIVE | 1u << LEASE_FROZEN | 1u << LEASE_PROVISIONING);
	struct lease_edit        *x;
	struct err                e = { 0 };
	enum rc                   rc;

	if (!k)
		return;
	x = arena_alloc(a, sizeof(*x));
	x->call = call_for(sim, k);
	if ((x->sets_expiry = chance_is(&sim->chance, 500)))
		x->expires_ms = sim_now(sim) + sim_paced(sim, chance_from_to(&sim->chance, -HOUR_MS, 12ll * HOUR_MS));
	else if ((x->sets_max_spend = true))
		x->max_spend = sim_paced(sim, chance_from_to(&sim->chance, 1, 50)) * LEASE_USD;
	rc = node_run(n, lease_edit, x, a, &e);
	sim_trace(sim, n, "a manager changes lease %.*s: %s", STR_ARG(k->uuid), rc ? e.msg : "ok");
}

/* --- operators and outsiders --- */

static struct sim_truth truth_of(struct leases *l, const struct lent_account *k)
{
	struct sim_truth truth = { 0 };

	if (sim_cloud_inspect(l->cloud, k->id, &truth, NULL))
		abort(); /* the truth is not disturbed */
	return truth;
}

static void look_after_account(struct sim_node *n, struct arena *a)
{
	static const struct {
		txn_fn     *run;
		const char *name;
	} orders[] = { { account_retry_cleanup, "cleans again" },
		       { account_retry_cleanup, "cleans again" },
		       { account_retry_cleanup, "cleans again" },
		       { account_register, "registers" },
		       { account_register, "registers" },
		       { account_quarantine, "quarantines" },
		       { account_eject, "ejects" } };
	struct sim          *sim = n->sim;
	struct lent_account *k = &sim->leases->accounts[chance_below(&sim->chance, LENT_ACCOUNTS)];
	size_t               which = (size_t)chance_below(&sim->chance, ARRAY_LEN(orders));
	struct account_call  c = { .id = k->id,
		                   .name = STR("sandbox"),
		                   .reason = STR("simulated"),
		                   .by = { .email = STR("root@example.com"), .roles = ROLE_ADMIN } };
	struct err           e = { 0 };
	enum rc              rc;

	if (orders[which].run == account_register && truth_of(sim->leases, k).ou != SIM_OU_ENTRY)
		return; /* the API does not let it through */
	if (orders[which].run == account_quarantine && !k->is_there)
		return;
	rc = node_run(n, orders[which].run, &c, a, &e);
	sim_trace(sim, n, "operator %s account %.*s: %s", orders[which].name, STR_ARG(k->id), rc ? e.msg : "ok");
}

static const struct known_hold *any_hold(struct sim *sim)
{
	const struct known_hold *found = NULL;
	int64_t                  count = 0;

	for (const struct known_hold *k = sim->leases->first_hold; k; k = k->next)
		if ((k->is_open || chance_is(&sim->chance, 50)) && chance_below(&sim->chance, ++count) == 0)
			found = k;
	return found;
}

static void look_after_hold(struct sim_node *n, struct arena *a)
{
	static const struct {
		txn_fn     *run;
		const char *name;
	} orders[] = { { hold_release, "releases" },
		       { hold_extend_until, "extends" },
		       { hold_cancel, "cancels" },
		       { hold_add, "adds" },
		       { hold_set_bypass, "lets pass the next" } };
	struct sim              *sim = n->sim;
	const struct known_hold *k = any_hold(sim);
	size_t                   which = (size_t)chance_below(&sim->chance, ARRAY_LEN(orders));
	struct hold_call         c = { .account = sim->leases->accounts[chance_below(&sim->chance, LENT_ACCOUNTS)].id,
		                       .reason = STR("simulated"),
		                       .by = { .email = STR("root@example.com"), .roles = ROLE_ADMIN } };
	struct err               e = { 0 };
	enum rc                  rc;

	if (!k && orders[which].run != hold_add && orders[which].run != hold_set_bypass)
		return;
	c.id = k ? k->id : STR("");
	c.due_ms = sim_now(sim) + sim_paced(sim, chance_from_to(&sim->chance, -HOUR_MS / 4, 4ll * HOUR_MS));
	rc = node_run(n, orders[which].run, &c, a, &e);
	sim_trace(sim, n, "operator %s hold %.*s: %s", orders[which].name, STR_ARG(c.id), rc ? e.msg : "ok");
}

/* Somebody cancels the timer of a hold: only the reconciler can know. */
static void lose_release(struct sim_node *n, struct arena *a)
{
	const struct known_hold *k = any_hold(n->sim);
	struct timer_call        c = { .actor = STR("root") };
	struct err               e = { 0 };
	enum rc                  rc;

	if (!k)
		return;
	c.name = str_format(a, HOLD_NAME_PREFIX "%.*s", STR_ARG(k->id));
	rc = node_run(n, timer_cancel, &c, a, &e);
	sim_trace(n->sim, n, "operator cancels the timer of hold %.*s: %s", STR_ARG(k->id), rc ? e.msg : "ok");
}

/* How much it has put right; -1: it failed. */
static int64_t reconcile(struct sim_node *n, struct organisation *organisation, struct err *e)
{
	struct leases          *l = n->sim->leases;
	struct native_records   records = native_records(&n->base, &l->rules);
	struct reconcile_world  world = { organisation, &records.base };
	struct pass             terms = { .store = &n->base, .clock = &n->clock, .reconcile = &world };
	struct reconcile_report report = { .count = 0 };
	int64_t                 found = -1;

	if (!reconcile_run(&terms, false, &report, e))
		found = 0;
	for (size_t i = 0; i < report.count; i++) {
		found += found >= 0 && report.items[i].is_healed;
		sim_trace(n->sim, n, "the reconciler: %.*s", STR_ARG(report.items[i].text));
	}
	reconcile_report_fini(&report);
	return found;
}

/* In the console, past us. Rather back to Entry from where it has left the pool. */
static void meddle(struct sim *sim)
{
	struct leases       *l = sim->leases;
	struct world        *world = sim_cloud_world(l->cloud);
	struct lent_account *k = &l->accounts[chance_below(&sim->chance, LENT_ACCOUNTS)];
	enum sim_ou_name     from = truth_of(l, k).ou;
	enum sim_ou_name     to = (enum sim_ou_name)chance_from_to(&sim->chance, SIM_OU_AVAILABLE, SIM_OU_COUNT - 1);

	if (from == SIM_OU_EXIT)
		to = SIM_OU_ENTRY;
	if (from == to ||
	    world->ops->move(world, k->id, sim_cloud_ou(l->cloud, from), sim_cloud_ou(l->cloud, to), NULL))
		return;
	k->is_moved = true;
	sim_trace(sim, NULL, "an outsider moves account %.*s to OU %d", STR_ARG(k->id), (int)to);
}

static void spend(struct sim *sim)
{
	struct leases       *l = sim->leases;
	struct world        *world = sim_cloud_world(l->cloud);
	struct lent_account *k = &l->accounts[chance_below(&sim->chance, LENT_ACCOUNTS)];

	if (world->ops->set_rate(world, k->id, chance_from_to(&sim->chance, 0, 8) * LEASE_USD / sim->profile.pace,
	                         NULL))
		abort(); /* it is there */
}

static void look(struct sim_node *n, struct arena *a)
{
	const struct known_lease *k = any_lease(n->sim, 1u << LEASE_PENDING_APPROVAL);
	struct lease_call         c;

	if (!k)
		return;
	c = call_for(n->sim, k);
	rc_ignore(node_read(n, lease_get, &c, a, NULL)); /* refused: he looks again */
}

void leases_operate(struct sim_node *n)
{
	enum { PENDING = 1u << LEASE_PENDING_APPROVAL, IN_USE = 1u << LEASE_ACTIVE | 1u << LEASE_PROVISIONING };
	struct arena a = { 0 };
	int64_t      what = chance_below(&n->sim->chance, 100);

	if (what < 38)
		ask(n, &a);
	else if (what < 52)
		change(n, lease_approve, "approves", PENDING, &a);
	else if (what < 56)
		change(n, lease_deny, "denies", PENDING, &a);
	else if (what < 59)
		change(n, lease_withdraw, "withdraws", PENDING, &a);
	else if (what < 65)
		change(n, lease_freeze, "freezes", IN_USE, &a);
	else if (what < 70)
		change(n, lease_unfreeze, "unfreezes", 1u << LEASE_FROZEN, &a);
	else if (what < 80)
		change(n, lease_terminate, "ends", IN_USE | 1u << LEASE_FROZEN, &a);
	else if (what < 85)
		edit(n, &a);
	else if (what < 91)
		look_after_account(n, &a);
	else if (what < 92)
		look_after_hold(n, &a);
	else if (what < 93)
		lose_release(n, &a);
	else if (what < 94)
		(void)reconcile(n, &n->sim->leases->organisation, NULL); /* what fails is found by the next one */
	else if (what < 96)
		meddle(n->sim);
	else if (what < 98)
		spend(n->sim);
	else
		look(n, &a);
	arena_fini(&a);
}

/* --- the end --- */

static int64_t count_findings(const struct pass_result *r)
{
	int64_t sum = 0;

	for (int i = 0; i < r->count; i++)
		if (!str_eq(str_from(r->counts[i].name), STR("scanned")))
			sum += r->counts[i].value;
	return sum;
}

static int64_t run_pass(struct sim_node *n, pass_fn *pass)
{
	struct leases     *l = n->sim->leases;
	struct lease_world world = { .cloud = l->real, .policy = policy_of, .policy_arg = l };
	struct pass        terms = { .store = &n->base, .clock = &n->clock, .leases = &world };
	struct pass_result result = { 0 };
	struct err         e = { 0 };

	if (pass(&terms, &result, &e))
		sim_broken(n->sim, "a pass does its work when nothing fails", "%s", e.msg);
	return count_findings(&result);
}

bool leases_settle(struct sim_node *n)
{
	struct sim *sim = n->sim;
	struct err  e = { 0 };
	int64_t     found;

	if (!sim->leases)
		return false;
	sim_pass(sim, HOUR_MS);
	if ((found = run_pass(n, pass_find_orphans)))
		sim_broken(sim, "a lease and its account do not lose each other",
		           "the pass that looks for orphans has found %lld", (long long)found);
	if ((found = reconcile(n, sim->leases->real.organisation, &e)) < 0)
		sim_broken(sim, "a pass does its work when nothing fails", "%s", e.msg);
	found += run_pass(n, pass_find_drift) + run_pass(n, pass_tend_line);
	if (found && ++sim->leases->rounds == ROUNDS_MAX)
		sim_broken(sim, "the pool comes to rest", "there is still something to be put right after %d rounds",
		           ROUNDS_MAX);
	return found > 0;
}
