/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_scan.c - the records of instances compared with what there really is: how many tasks run, and which
 * resources are whose.
 *
 * A resource of no live instance is an orphan. It is not deleted where it is found, for it might be a new instance's by
 * then: the tenant gets a record of it, FAILED, and that record is removed as any other is: the tenant can have no
 * other instance meanwhile, and what may be data is archived before.   [adopt()] An instance at rest without one of its
 * resources is only named: what to do about that is for a person.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/metrics.h"
#include "kernel/kernel.h"
#include "service/instance/instance_private.h"
#include "store/walk.h"

enum {
	PAGE = 200,
	FINDINGS_SHOWN = 50,
	ALL_KINDS = (1 << INSTANCE_RESOURCE_COUNT) - 1,
	DAY_MS = 86400000,
	PRUNED = 90
};

/* --- tasks --- */

struct watching {
	const struct instance_world *world;
	struct instance_watch       *ret;
	struct str                   id;
	struct instance_tasks        tasks;
};

static enum rc note_tasks(struct session *s, void *arg, struct err *e)
{
	struct watching *w = arg;
	struct instance  i;
	bool             is_there, is_below;
	enum rc          rc = session_find(s, &instance_type, w->id, &i, &is_there, e);

	if (rc || !is_there || i.state != INSTANCE_ACTIVE || i.operation.n)
		return rc;
	is_below = w->tasks.running < i.desired_count || !w->tasks.is_healthy;
	if (i.running_count == w->tasks.running && is_below == (i.below_since_ms > 0))
		return RC_OK;
	i.running_count = w->tasks.running;
	i.below_since_ms = !is_below ? 0 : i.below_since_ms ? i.below_since_ms : session_now(s).ms;
	session_put(s, &instance_type, &i);
	return RC_OK;
}

static enum rc watch_page(const struct page *page, struct arena *a, void *arg, struct err *e)
{
	struct watching        *w = arg;
	struct instance_driver *d = w->world->driver;
	enum rc                 rc = RC_OK;

	for (size_t n = 0; !rc && n < page->count; n++) {
		const struct instance *i = page_record(page, &instance_type, n);

		w->ret->active++;
		if (i->operation.n)
			continue;
		w->ret->looked++;
		w->id = i->id;
		if (d->ops->tasks(d, i->tenant, a, &w->tasks, NULL)) {
			w->ret->failed++; /* the next pass looks again */
			continue;
		}
		w->ret->below += w->tasks.running < i->desired_count || !w->tasks.is_healthy;
		if (w->tasks.running != i->running_count || w->tasks.running < i->desired_count ||
		    !w->tasks.is_healthy || i->below_since_ms)
			rc = store_run(w->world->store, note_tasks, w, a, e);
	}
	return rc;
}

enum rc instance_watch(const struct instance_world *world, struct instance_watch *ret, struct err *e)
{
	struct watching w = { .world = world, .ret = ret };
	struct query    q = {
		   .type = &instance_type, .index = INSTANCE_BY_STATE, .hash = value_int(INSTANCE_ACTIVE), .limit = PAGE
	};
	enum rc rc;

	*ret = (struct instance_watch){ 0 };
	rc = store_read_pages(world->store, &q, watch_page, &w, e);
	if (!rc && world->metrics) {
		metrics_set(world->metrics, METRIC_INSTANCES_BELOW, (double)ret->below);
		metrics_set(world->metrics, METRIC_INSTANCES_ACTIVE, (double)ret->active);
	}
	return rc;
}

/* --- orphans --- */

/* What one tenant has. */
struct holding {
	struct str tenant, instance;
	unsigned   kinds;
	bool       is_known; /* a live instance has it */
};

struct scanning {
	const struct instance_world *world;
	bool                         heals;
	struct arena                *arena;
	struct holding              *holdings;
	size_t                       count;
	struct holding              *at; /* being adopted */
	struct instance_scan_result *ret;
	struct buf                   found;
	struct json_out              out;
};

static int by_tenant(const void *a, const void *b)
{
	return str_cmp(((const struct holding *)a)->tenant, ((const struct holding *)b)->tenant);
}

static int thing_by_tenant(const void *a, const void *b)
{
	return str_cmp(((const struct instance_thing *)a)->tenant, ((const struct instance_thing *)b)->tenant);
}

static void gather(struct scanning *sc, struct instance_thing *things, size_t count)
{
	qsort(things, count, sizeof(*things), thing_by_tenant);
	sc->holdings = arena_alloc(sc->arena, (count + 1) * sizeof(*sc->holdings));
	for (size_t i = 0; i < count; i++) {
		struct holding *h = sc->count ? &sc->holdings[sc->count - 1] : NULL;

		if (!h || !str_eq(h->tenant, things[i].tenant)) {
			h = &sc->holdings[sc->count++];
			*h = (struct holding){ .tenant = things[i].tenant, .instance = things[i].instance };
		}
		h->kinds |= 1u << things[i].kind;
	}
}

static void note(struct scanning *sc, const char *what, struct str tenant, struct str instance, unsigned kinds)
{
	if (sc->ret->orphans + sc->ret->missing > FINDINGS_SHOWN)
		return;
	JSON_PUT(&sc->out, member_object(NULL), member_word("finding", what), member_str("tenantId", tenant),
	         member_text("instanceId", instance), member_list("resources"));
	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		if (kinds & 1u << kind)
			json_add_str(&sc->out, str_from(instance_resource_names[kind]));
	JSON_PUT(&sc->out, member_list_end(), member_end());
}

static unsigned wanted_kinds(const struct instance *i)
{
	switch (i->state) {
	case INSTANCE_ACTIVE:
	case INSTANCE_SUSPENDED: return ALL_KINDS;
	case INSTANCE_PARKED: return ALL_KINDS & ~(1u << INSTANCE_WORKERS);
	default: return 0;
	}
}

static enum rc compare_page(const struct page *page, struct arena *a, void *arg, struct err *e)
{
	struct scanning *sc = arg;

	(void)a;
	(void)e;
	for (size_t n = 0; n < page->count; n++) {
		const struct instance *i = page_record(page, &instance_type, n);
		struct holding         key = { .tenant = i->tenant };
		struct holding *h = sc->count ? bsearch(&key, sc->holdings, sc->count, sizeof(key), by_tenant) : NULL;
		unsigned        missing = i->operation.n ? 0 : wanted_kinds(i) & ~(h ? h->kinds : 0);

		if (!instance_state_is_live(i->state))
			continue;
		if (h)
			h->is_known = true;
		if (missing) {
			sc->ret->missing++;
			note(sc, "missing", i->tenant, i->id, missing);
		}
	}
	return RC_OK;
}

/* A record of what nobody has, so that it can be removed as anything else is. The tenant may have got an instance
 * since: then it is that one's. */
static enum rc adopt(struct session *s, void *arg, struct err *e)
{
	enum { DATA = 1u << INSTANCE_STORAGE | 1u << INSTANCE_DATABASE };
	struct scanning     *sc = arg;
	struct tenant_slot   slot = { 0 };
	struct instance      last = { .state = INSTANCE_NONE }, i;
	struct instance_call c = { .world = sc->world,
		                   .tenant = sc->at->tenant,
		                   .actor = STR("job/instance-orphans"),
		                   .want = { .tier = -1 } };
	char                 id[KERNEL_ID_SIZE];
	bool                 is_there;
	enum rc              rc = session_find(s, &tenant_slot_type, sc->at->tenant, &slot, &is_there, e);

	if (!rc && is_there)
		rc = session_find(s, &instance_type, slot.instance, &last, &is_there, e);
	if (rc || instance_state_is_live(last.state))
		return rc;
	kernel_id(kernel_of(s), session_now(s).ms, id);
	i = (struct instance){ .id = str_format(session_arena(s), "inst-%s", id),
		               .tenant = sc->at->tenant,
		               .organization = STR("orphans"),
		               .contact_email = STR("nobody@example.invalid"),
		               .wordpress_version = STR("none"),
		               .desired_count = INSTANCE_COUNT_MIN,
		               .state = INSTANCE_FAILED,
		               .has_data = (sc->at->kinds & DATA) == DATA,
		               .created_ms = session_now(s).ms,
		               .updated_ms = session_now(s).ms };
	slot.tenant = i.tenant;
	slot.instance = i.id;
	session_add(s, &instance_type, &i);
	session_put(s, &tenant_slot_type, &slot);
	c.id = i.id;
	c.want.reason = STR("resources that no instance had");
	return instance_delete(s, &c, e);
}

static enum rc see_to_orphans(struct scanning *sc, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t n = 0; !rc && n < sc->count; n++) {
		sc->at = &sc->holdings[n];
		if (sc->at->is_known)
			continue;
		sc->ret->orphans++;
		note(sc, "orphan", sc->at->tenant, sc->at->instance, sc->at->kinds);
		if (!sc->heals || !tenant_id_is_ok(sc->at->tenant))
			continue;
		if (!(rc = store_run(sc->world->store, adopt, sc, sc->arena, e)))
			sc->ret->healed++;
	}
	return rc;
}

static enum rc keep_result(struct session *s, void *arg, struct err *e)
{
	const struct scanning      *sc = arg;
	struct instance_scan_result old = { 0 }, result = *sc->ret;
	bool                        is_there;
	enum rc                     rc = session_find(s, &instance_scan_type, sc->ret->name, &old, &is_there, e);

	result.version = old.version;
	result.at_ms = session_now(s).ms;
	sc->ret->at_ms = result.at_ms;
	session_put(s, &instance_scan_type, &result);
	return rc;
}

static enum rc prune_keys(struct session *s, void *arg, struct err *e)
{
	size_t      *removed = arg;
	struct query q = { .type = &once_type,
		           .index = ONCE_BY_AGE,
		           .hash = value_int(1),
		           .has_sort_max = true,
		           .sort_max = session_now(s).ms - ONCE_KEPT_DAYS * (int64_t)DAY_MS,
		           .limit = PRUNED };
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	*removed = rc ? 0 : page.count;
	for (size_t n = 0; !rc && n < page.count; n++)
		session_delete(s, &once_type, record_key(&once_type, page_record(&page, &once_type, n)));
	return rc;
}

enum rc instance_scan(const struct instance_world *w, bool heals, struct arena *a, struct instance_scan_result *ret,
                      struct err *e)
{
	struct scanning        sc = { .world = w, .heals = heals, .arena = a, .ret = ret };
	struct query           q = { .type = &instance_type, .index = QUERY_ALL, .limit = PAGE };
	struct instance_thing *things;
	size_t                 count, removed = 0;
	enum rc                rc = w->driver->ops->list(w->driver, a, &things, &count, e);

	if (rc)
		return err_wrap(e, rc, "what the driver holds");
	*ret = (struct instance_scan_result){ .name = STR("last") };
	buf_init(&sc.found, SCAN_FINDINGS_MAX - 2);
	json_out_init(&sc.out, &sc.found);
	gather(&sc, things, count);
	if (!(rc = store_read_pages(w->store, &q, compare_page, &sc, e)))
		rc = see_to_orphans(&sc, e);
	ret->findings = sc.found.is_full ? STR("[]")
	                                 : str_format(a, "[%.*s]", (int)sc.found.n, sc.found.p ? sc.found.p : "");
	buf_fini(&sc.found);
	if (!rc && heals)
		rc = store_run(w->store, keep_result, &sc, a, e);
	do
		rc = rc || !heals ? rc : store_run(w->store, prune_keys, &removed, a, e);
	while (!rc && heals && removed == PRUNED);
	return rc;
}
