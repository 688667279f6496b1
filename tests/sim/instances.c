/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instances.c - tenants' instances on the simulated cloud: made, scaled, suspended, parked, archived, restored and
 * removed by people who do not wait for each other, while calls fail, time out after their effect, nodes crash, and
 * operators retry and abort sagas.
 *
 * Promises checked here:
 *   with each commit: a state changes only along the contract's table; a tenant has one live instance at most; one
 *   operation at a time; a completion is told once
 *   when all is quiet: who is at rest has exactly its resources, all its own, running and routed as the record says;
 *   who is gone, or failed and rolled back, has none;
 *   who was active and is gone has an archive
 */
#include "instances.h"

#include <stdlib.h>

#include "bank.h"
#include "base/json.h"
#include "base/mem.h"
#include "names.h"
#include "truth/sim_truth.h"
#include "providers/sim/faults.h"
#include "providers/sim/records.h"
#include "sagas.h"
#include "service/instance/instances.h"
#include "sim.h"
#include "store/memory/memory.h"
#include "store/session.h"

enum {
	ARCHIVE_DAYS = 2,
	LONG_ARCHIVE_DAYS = 90, /* the product's */
	TENANTS = 4,
	ROUTES_ROOM = 32,
	FIRST_QUEUE = NODE_QUEUES - INSTANCE_QUEUES,
	ALL_KINDS = (1 << INSTANCE_RESOURCE_COUNT) - 1
};

struct tenant {
	struct str name;
	struct str live; /* the instance it has, empty: none */
};

struct instances {
	struct store     *store; /* the cloud's */
	struct sim_cloud *cloud;
	struct chance     chance;
	struct tenant     tenants[TENANTS];
	struct names      told; /* operations whose completion was told */
};

struct instances_node {
	struct instance_world   world;
	struct saga_kind        kinds[OP_COUNT];
	const struct saga_kind *list[SAGA_KINDS + 1 + OP_COUNT];
	struct route            routes[ROUTES_ROOM];
};

static uint64_t draw(void *arg)
{
	return chance_next(arg);
}

static void set_rules(struct sim *sim)
{
	static const enum world_fault faults[] = { WORLD_OUTAGE, WORLD_THROTTLE, WORLD_TIMEOUT_BEFORE,
		                                   WORLD_TIMEOUT_AFTER };
	struct world_rules            rules = { .count = 0 };

	for (size_t i = 0; i < ARRAY_LEN(faults) && !sim->is_calm; i++)
		rules.rules[rules.count++] = (struct world_rule){ .fault = faults[i],
			                                          .call = WORLD_ANY_CALL,
			                                          .per_mille = sim->profile.step / 3 };
	sim_faults_set(sim_cloud_faults(sim->instances->cloud), &rules);
}

void instances_open(struct sim *sim)
{
	struct sim_cloud_options o = { .clock = &sim->clock, .random = draw, .accounts = -1 };
	struct instances        *x;

	if (sim->seed % SEEDS_PER_INSTANCE != INSTANCE_SEED)
		return;
	x = sim->instances = arena_alloc(&sim->arena, sizeof(*x));
	x->told.arena = &sim->arena;
	x->chance.state = chance_next(&sim->chance);
	o.random_arg = &x->chance;
	x->store = o.store = store_memory_open(sim_types, sim_type_count, &sim->clock);
	if (sim_cloud_open(&o, &x->cloud, NULL))
		abort(); /* the memory store does not fail */
	for (int i = 0; i < TENANTS; i++)
		x->tenants[i].name = str_format(&sim->arena, "tenant-%c%c%c", 'a' + i, 'a' + i, 'a' + i);
	set_rules(sim);
}

void instances_calm(struct sim *sim)
{
	if (sim->instances)
		set_rules(sim);
}

void instances_close(struct sim *sim)
{
	struct world_counts counts;

	if (!sim->instances)
		return;
	counts = sim_faults_counts(sim_cloud_faults(sim->instances->cloud));
	sim->faults[SIM_CLOUD_FAILED] += counts.faults[WORLD_OUTAGE] + counts.faults[WORLD_THROTTLE] +
	                                 counts.faults[WORLD_TIMEOUT_BEFORE];
	sim->faults[SIM_CLOUD_ANSWER_LOST] += counts.faults[WORLD_TIMEOUT_AFTER];
	sim_cloud_close(sim->instances->cloud);
	store_close(sim->instances->store);
}

/* --- a node --- */

void instances_start(struct sim_node *n, struct kernel_options *o)
{
	const char            *events[INSTANCE_QUEUES];
	int64_t                archive_days = sim_is_long(n->sim) ? LONG_ARCHIVE_DAYS : ARCHIVE_DAYS;
	struct instances_node *in;

	if (!n->sim->instances)
		return;
	in = n->instances = mem_new(struct instances_node);
	in->world = (struct instance_world){ .store = &n->base,
		                             .driver = sim_cloud_driver(n->sim->instances->cloud),
		                             .archive_ms = archive_days * DAY_MS };
	instance_kinds(&in->world, in->kinds);
	instance_queues(&in->world, &n->queues[FIRST_QUEUE], events);
	for (size_t i = 0; i < o->saga_count; i++)
		in->list[i] = o->sagas[i];
	for (size_t i = 0; i < OP_COUNT; i++)
		in->list[o->saga_count++] = &in->kinds[i];
	for (size_t i = 0; i < bank_route_count; i++)
		in->routes[i] = bank_routes[i];
	for (size_t i = 0; i < INSTANCE_QUEUES; i++)
		in->routes[o->route_count++] = (struct route){ events[i], n->queues[FIRST_QUEUE + i].name };
	o->sagas = in->list;
	o->routes = in->routes;
	o->queue_count += INSTANCE_QUEUES;
}

void instances_end(struct sim_node *n)
{
	free(n->instances);
	n->instances = NULL;
}

/* --- people --- */

static const struct {
	txn_fn     *run;
	const char *name;
	int         weight;
} wishes[] = {
	{ instance_create, "create", 6 },   { instance_delete, "delete", 4 },   { instance_scale, "scale", 3 },
	{ instance_suspend, "suspend", 3 }, { instance_resume, "resume", 4 },   { instance_park, "park", 2 },
	{ instance_unpark, "unpark", 3 },   { instance_update, "update", 1 },   { instance_backup, "backup", 1 },
	{ instance_rotate, "rotate", 1 },   { instance_recover, "recover", 1 },
};

static size_t draw_wish(struct sim *sim)
{
	int64_t total = 0, at;
	size_t  i = 0;

	for (size_t n = 0; n < ARRAY_LEN(wishes); n++)
		total += wishes[n].weight;
	for (at = chance_below(&sim->chance, total); at >= wishes[i].weight; i++)
		at -= wishes[i].weight;
	return i;
}

void instances_operate(struct sim_node *n)
{
	struct sim          *sim = n->sim;
	size_t               wish = draw_wish(sim);
	struct arena         a = { 0 };
	struct err           e = { 0 };
	struct instance_call c = { .world = &n->instances->world,
		                   .tenant = sim->instances->tenants[chance_below(&sim->chance, TENANTS)].name,
		                   .actor = STR("somebody"),
		                   .want = { .organization = STR("Simulated"),
		                             .contact_email = STR("somebody@example.com"),
		                             .tier = -1,
		                             .reason = STR("simulated"),
		                             .desired_count = chance_from_to(&sim->chance, 2, 10) } };
	enum rc              rc = node_run(n, wishes[wish].run, &c, &a, &e);

	sim_trace(sim, n, "%s instance of %.*s: %s", wishes[wish].name, STR_ARG(c.tenant), rc ? e.msg : "ok");
	arena_fini(&a);
}

/* --- with each commit --- */

static struct tenant *tenant_of(struct sim *sim, struct str name)
{
	for (int i = 0; i < TENANTS; i++)
		if (str_eq(sim->instances->tenants[i].name, name))
			return &sim->instances->tenants[i];
	return NULL;
}

static bool is_in_table(enum instance_state from, enum instance_state to)
{
	for (size_t i = 0; i < INSTANCE_STEPS; i++)
		if (instance_steps[i].to == to && instance_steps[i].from & UINT32_C(1) << from)
			return true;
	return from == to;
}

static void observe_instance(struct sim *sim, const struct instance *before, const struct instance *after)
{
	enum instance_state from = before ? before->state : INSTANCE_NONE;
	struct tenant      *t = tenant_of(sim, after->tenant);

	if (!is_in_table(from, after->state))
		sim_broken(sim, "an instance follows its table", "%.*s goes from %s to %s", STR_ARG(after->id),
		           instance_state_name(from), instance_state_name(after->state));
	if (before && before->operation.n && after->operation.n && !str_eq(before->operation, after->operation) &&
	    before->state != INSTANCE_FAILED && before->state != INSTANCE_PENDING_PROVISIONING)
		sim_broken(sim, "one operation at a time", "%.*s has another while it is %s", STR_ARG(after->id),
		           instance_state_name(before->state));
	if (!instance_state_is_live(after->state)) {
		if (str_eq(t->live, after->id))
			t->live = STR("");
		return;
	}
	if (t->live.n && !str_eq(t->live, after->id))
		sim_broken(sim, "a tenant has one live instance", "%.*s has %.*s and %.*s", STR_ARG(t->name),
		           STR_ARG(t->live), STR_ARG(after->id));
	t->live = str_dup(&sim->arena, after->id);
}

static void observe_event(struct sim *sim, const struct event *event)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	struct str                  id;

	if (!str_starts_with(event->type, STR("CLUSTER_")) || json_parse(event->detail, &detail, NULL) ||
	    !json_get_text(detail, "operationId", &id) || !id.n)
		return;
	id = str_dup(&sim->arena, id);
	if (names_find(&sim->instances->told, id))
		sim_broken(sim, "a completion is told once", "%.*s of %.*s comes again", STR_ARG(event->type),
		           STR_ARG(id));
	else
		names_add(&sim->instances->told, id, sim);
}

void instances_observe(struct sim *sim, struct session *s)
{
	for (const struct session_entry *entry = NULL;
	     sim->instances && !sim->has_failed && (entry = session_next_change(s, entry));) {
		if (entry->type == &instance_type && entry->after)
			observe_instance(sim, entry->before, entry->after);
		else if (entry->type == &event_type && entry->after && !entry->before)
			observe_event(sim, entry->after);
	}
}

/* --- when all is quiet --- */

struct reading {
	struct page      instances;
	struct instance *instance;
	struct saga      saga;
	struct backup    archive;
	bool             has_saga, has_archive;
};

static enum rc read_all(struct session *s, void *arg, struct err *e)
{
	struct reading *r = arg;
	struct query    q = { .type = &instance_type, .index = QUERY_ALL, .limit = QUERY_LIMIT_MAX };

	return session_query(s, &q, &r->instances, e);
}

static enum rc read_rest(struct session *s, void *arg, struct err *e)
{
	struct reading *r = arg;
	enum rc         rc = RC_OK;

	r->has_saga = r->has_archive = false;
	if (r->instance->operation.n)
		rc = session_find(s, &saga_type, r->instance->operation, &r->saga, &r->has_saga, e);
	if (!rc && r->instance->archive.n)
		rc = session_find(s, &backup_type, r->instance->archive, &r->archive, &r->has_archive, e);
	return rc;
}

static struct sim_tenant_truth truth_of(struct sim *sim, struct str tenant, struct arena *a)
{
	struct sim_tenant_truth t = { 0 };

	if (sim_cloud_inspect_tenant(sim->instances->cloud, tenant, a, &t, NULL))
		abort(); /* the memory store does not fail */
	return t;
}

/* What it should have; -1: cannot be told. */
static int wanted_kinds(const struct instance *i)
{
	switch (i->state) {
	case INSTANCE_ACTIVE:
	case INSTANCE_SUSPENDED: return ALL_KINDS;
	case INSTANCE_PARKED: return ALL_KINDS & ~(1 << INSTANCE_WORKERS);
	case INSTANCE_FAILED: return i->has_data ? -1 : 0;
	default: return -1;
	}
}

static void check_live(struct sim *sim, const struct instance *i, struct arena *a)
{
	struct sim_tenant_truth t = truth_of(sim, i->tenant, a);
	int                     kinds = wanted_kinds(i);

	if (kinds >= 0 && (int)t.kinds != kinds)
		sim_broken(sim, "an instance at rest has exactly its resources", "%.*s is %s and has %x, not %x",
		           STR_ARG(i->id), instance_state_name(i->state), t.kinds, (unsigned)kinds);
	if (t.resources && (t.owners != 1 || !str_eq(t.instance, i->id)))
		sim_broken(sim, "no resource is without an owner", "tenant %.*s has resources of another than %.*s",
		           STR_ARG(i->tenant), STR_ARG(i->id));
	if (i->state == INSTANCE_ACTIVE && (t.desired != i->desired_count || t.route != ROUTE_OPEN || !t.is_configured))
		sim_broken(sim, "an active instance runs as its record says", "%.*s: %lld tasks of %lld, route %lld",
		           STR_ARG(i->id), (long long)t.desired, (long long)i->desired_count, (long long)t.route);
	if (i->state == INSTANCE_SUSPENDED && (t.desired || t.route != ROUTE_SUSPENDED))
		sim_broken(sim, "a suspended instance does not run", "%.*s: %lld tasks, route %lld", STR_ARG(i->id),
		           (long long)t.desired, (long long)t.route);
}

static void check_instance(struct sim_node *n, struct reading *r, struct arena *a)
{
	struct sim            *sim = n->sim;
	const struct instance *i = r->instance;

	if (node_read(n, read_rest, r, a, NULL))
		return;
	if (r->has_saga && r->saga.state == SAGA_PARKED)
		return; /* a person has to see to it, and does */
	if (!instance_state_is_rest(i->state) || (i->operation.n && instance_state_is_live(i->state)))
		sim_broken(sim, "every operation comes to an end", "%.*s is %s, operation %.*s", STR_ARG(i->id),
		           instance_state_name(i->state), STR_ARG(i->operation));
	else if (!instance_state_is_live(i->state) && i->has_data && !r->has_archive)
		sim_broken(sim, "no data are lost without an archive", "%.*s was active and is gone", STR_ARG(i->id));
	else if (instance_state_is_live(i->state))
		check_live(sim, i, a);
}

void instances_check_quiet(struct sim_node *n)
{
	struct sim    *sim = n->sim;
	struct reading r = { 0 };
	struct arena   a = { 0 };

	if (!sim->instances || node_read(n, read_all, &r, &a, NULL)) {
		arena_fini(&a);
		return;
	}
	for (size_t k = 0; k < r.instances.count && !sim->has_failed; k++) {
		r.instance = page_record(&r.instances, &instance_type, k);
		check_instance(n, &r, &a);
	}
	for (int i = 0; i < TENANTS && !sim->has_failed; i++)
		if (!sim->instances->tenants[i].live.n && truth_of(sim, sim->instances->tenants[i].name, &a).resources)
			sim_broken(sim, "no resource is without an owner", "tenant %.*s has no instance, but resources",
			           STR_ARG(sim->instances->tenants[i].name));
	arena_fini(&a);
}
