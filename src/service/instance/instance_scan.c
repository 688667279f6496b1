/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_scan.c - the records of instances compared with what there really is: how many tasks run, and which
 * resources are whose.
 *
 * A resource of no live instance is an orphan. A pass only reports it; a person's call removes it. Even then it is not
 * deleted where it is found, because it might belong to a new instance by then: the tenant gets a FAILED record for it,
 * which is removed like any other. Meanwhile the tenant can have no other instance, and data is archived first.
 * [adopt()] An instance at rest that lacks a resource is only reported: a person decides what to do.
 *
 * Always true, of what is removed [judge()]:
 *   1. A scan saw all its kinds an hour ago or earlier, so nothing of it is younger, whatever a driver knows of ages.
 *      What a scan has no room to keep is new to the next one.
 *   2. Data is removed without an archive only if the call says so, and only where no archive can be made.
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
	FINDINGS_SHOWN = 25, /* of each of both sorts: so they fit into SCAN_FINDINGS_MAX */
	ALL_KINDS = (1 << INSTANCE_RESOURCE_COUNT) - 1,
	DATA = 1 << INSTANCE_STORAGE | 1 << INSTANCE_DATABASE,
	ARCHIVABLE = DATA | 1 << INSTANCE_SECRET, /* the least that an archive is made with */
	HOUR_MS = 3600000,
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
	struct query    q = query_of(&instance_type, INSTANCE_BY_STATE, value_int(INSTANCE_ACTIVE), PAGE);
	enum rc         rc;

	*ret = (struct instance_watch){ 0 };
	rc = store_read_pages(world->store, &q, watch_page, &w, e);
	if (!rc && world->metrics) {
		metrics_set(world->metrics, METRIC_INSTANCES_BELOW, (double)ret->below);
		metrics_set(world->metrics, METRIC_INSTANCES_ACTIVE, (double)ret->active);
	}
	return rc;
}

enum rc pass_watch_instances(const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct instance_watch w = { 0 };
	enum rc               rc = instance_watch(p->instances, &w, e);

	pass_count(ret, "looked", w.looked, METRIC__COUNT);
	pass_count(ret, "below", w.below, METRIC__COUNT);
	pass_count(ret, "failed", w.failed, METRIC__COUNT);
	return rc;
}

/* --- orphans --- */

/* What one tenant has. */
struct holding {
	struct str tenant, instance;
	unsigned   kinds;
	bool       is_known; /* a live instance has it */
	int64_t    since_ms; /* of an orphan: when a scan first saw all of these kinds */
};

const char *const orphan_verdict_names[ORPHAN_VERDICT_COUNT] = { ORPHAN_VERDICTS(ROW_TEXT) };

struct scanning {
	const struct instance_world *world;
	enum instance_scan_mode      mode;
	struct str                   actor;
	int64_t                      now_ms;
	json_t                      *last; /* findings of the scan before */
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

static void note(struct scanning *sc, struct str tenant, struct str instance, unsigned kinds)
{
	JSON_PUT(&sc->out, member_object(NULL), member_str("tenantId", tenant), member_text("instanceId", instance),
	         member_list("resources"));
	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		if (kinds & 1u << kind)
			json_add_str(&sc->out, str_from(instance_resource_names[kind]));
	json_close_array(&sc->out);
}

static void note_orphan(struct scanning *sc, const struct holding *h, enum orphan_verdict verdict)
{
	if (++sc->ret->orphans > FINDINGS_SHOWN)
		return;
	note(sc, h->tenant, h->instance, h->kinds);
	JSON_PUT(&sc->out, member_word("finding", "orphan"), member_word("verdict", orphan_verdict_names[verdict]),
	         member_if(verdict != ORPHAN_REMOVED,
	                   member_int("since", h->since_ms)), /* one that comes after it is new */
	         member_end());
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

static enum rc compare_page(const struct page *page, struct arena *a UNUSED, void *arg, struct err *e UNUSED)
{
	struct scanning *sc = arg;

	for (size_t n = 0; n < page->count; n++) {
		const struct instance *i = page_record(page, &instance_type, n);
		struct holding         key = { .tenant = i->tenant };
		struct holding *h = sc->count ? bsearch(&key, sc->holdings, sc->count, sizeof(key), by_tenant) : NULL;
		unsigned        missing = i->operation.n ? 0 : wanted_kinds(i) & ~(h ? h->kinds : 0);

		if (!instance_state_is_live(i->state))
			continue;
		if (h)
			h->is_known = true;
		if (missing && ++sc->ret->missing <= FINDINGS_SHOWN) {
			note(sc, i->tenant, i->id, missing);
			JSON_PUT(&sc->out, member_word("finding", "missing"), member_end());
		}
	}
	return RC_OK;
}

/* --- orphans: how old --- */

static bool names_kind(const json_t *resources, int kind)
{
	const json_t *name;
	size_t        i;

	json_array_foreach(resources, i, name)
	{
		if (json_is_string(name) &&
		    str_eq(str_from(json_string_value(name)), str_from(instance_resource_names[kind])))
			return true;
	}
	return false;
}

/* Since when it has had all of these kinds; now, if it is new or has more than it had. */
static int64_t find_since(const struct scanning *sc, const struct holding *h)
{
	const json_t *item;
	struct str    finding, tenant;
	int64_t       since_ms;
	size_t        i;

	json_array_foreach(sc->last, i, item)
	{
		bool has_all = json_get_text(item, "finding", &finding) && str_eq(finding, STR("orphan")) &&
		               json_get_text(item, "tenantId", &tenant) && str_eq(tenant, h->tenant) &&
		               json_get_number(item, "since", sc->now_ms, &since_ms);

		for (int kind = 0; has_all && kind < INSTANCE_RESOURCE_COUNT; kind++)
			has_all = !(h->kinds & 1u << kind) || names_kind(json_object_get(item, "resources"), kind);
		if (has_all)
			return since_ms < sc->now_ms ? since_ms : sc->now_ms;
	}
	return sc->now_ms;
}

static enum rc read_last(struct session *s, void *arg, struct err *e)
{
	struct scanning            *sc = arg;
	struct instance_scan_result last;
	bool                        is_there;
	enum rc                     rc = session_find(s, &instance_scan_type, sc->ret->name, &last, &is_there, e);

	sc->now_ms = session_now(s).ms;
	json_decref(sc->last);
	sc->last = NULL;
	if (!rc && is_there && last.findings.n && json_parse(last.findings, &sc->last, NULL))
		sc->last = NULL; /* then all are new */
	return rc;
}

/* --- orphans: removed --- */

static enum orphan_verdict judge(const struct scanning *sc, const struct holding *h)
{
	if (sc->now_ms - h->since_ms < HOUR_MS)
		return ORPHAN_YOUNG;
	if (h->kinds & DATA && (h->kinds & ARCHIVABLE) != ARCHIVABLE && sc->mode != SCAN_REMOVES_UNARCHIVED)
		return ORPHAN_UNARCHIVABLE;
	return ORPHAN_REMOVABLE;
}

/* A record for the orphans, so that they are removed as an instance is. If the tenant has a new instance by now, they
 * belong to that. */
static enum rc adopt(struct session *s, void *arg, struct err *e)
{
	struct scanning     *sc = arg;
	struct tenant_slot   slot = { 0 };
	struct instance      last = { .state = INSTANCE_NONE }, i;
	struct instance_call c = {
		.world = sc->world, .tenant = sc->at->tenant, .actor = sc->actor, .want = { .tier = -1 }
	};
	char    id[KERNEL_ID_SIZE];
	bool    is_there;
	enum rc rc = session_find(s, &tenant_slot_type, sc->at->tenant, &slot, &is_there, e);

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
		               .has_data = (sc->at->kinds & ARCHIVABLE) == ARCHIVABLE,
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
		enum orphan_verdict verdict;

		sc->at = &sc->holdings[n];
		if (sc->at->is_known)
			continue;
		sc->at->since_ms = find_since(sc, sc->at);
		verdict = judge(sc, sc->at);
		if (sc->mode >= SCAN_REMOVES && verdict == ORPHAN_REMOVABLE && tenant_id_is_ok(sc->at->tenant) &&
		    !(rc = store_run(sc->world->store, adopt, sc, sc->arena, e))) {
			verdict = ORPHAN_REMOVED;
			sc->ret->healed++;
		}
		note_orphan(sc, sc->at, verdict);
	}
	return rc;
}

static enum rc keep_result(struct session *s, void *arg, struct err *e)
{
	const struct scanning      *sc = arg;
	struct instance_scan_result old, result = *sc->ret;
	enum rc                     rc = session_find_or_new(s, &instance_scan_type, sc->ret->name, &old, e);

	if (rc)
		return rc;
	result.version = old.version;
	result.at_ms = session_now(s).ms;
	sc->ret->at_ms = result.at_ms;
	session_put(s, &instance_scan_type, &result);
	return RC_OK;
}

static enum rc prune_keys(struct session *s, void *arg, struct err *e)
{
	size_t            *removed = arg;
	int64_t            oldest_ms = session_now(s).ms - ONCE_KEPT_DAYS * (int64_t)DAY_MS;
	struct records     old = { .query = query_until(&once_type, ONCE_BY_AGE, value_int(1), oldest_ms, PRUNED),
		                   .pages_max = 1 };
	const struct once *once;
	enum rc            rc;

	for (*removed = 0; (once = session_next(s, &old, &rc, e)); ++*removed)
		session_delete(s, &once_type, once->key);
	return rc;
}

static enum rc compare(struct scanning *sc, struct err *e)
{
	struct query q = { .type = &instance_type, .index = QUERY_ALL, .limit = PAGE };
	enum rc      rc = store_read(sc->world->store, read_last, sc, sc->arena, e);

	sc->found = BUF(SCAN_FINDINGS_MAX - 2);
	sc->out = JSON_OUT(&sc->found);
	if (!rc && !(rc = store_read_pages(sc->world->store, &q, compare_page, sc, e)))
		rc = see_to_orphans(sc, e);
	sc->ret->findings = sc->found.is_full
	                            ? STR("[]")
	                            : str_format(sc->arena, "[%.*s]", (int)sc->found.n, sc->found.p ? sc->found.p : "");
	buf_fini(&sc->found);
	json_decref(sc->last);
	return rc;
}

enum rc instance_scan(const struct instance_world *w, enum instance_scan_mode mode, struct str actor, struct arena *a,
                      struct instance_scan_result *ret, struct err *e)
{
	struct scanning        sc = { .world = w, .mode = mode, .actor = actor, .arena = a, .ret = ret };
	struct instance_thing *things;
	size_t                 count, removed = 0;
	enum rc                rc = w->driver->ops->list(w->driver, a, &things, &count, e);

	if (rc)
		return err_wrap(e, rc, "what the driver holds");
	*ret = (struct instance_scan_result){ .name = STR("last") };
	gather(&sc, things, count);
	rc = compare(&sc, e);
	if (rc || mode == SCAN_LOOKS)
		return rc;
	rc = store_run(w->store, keep_result, &sc, a, e);
	do
		rc = rc ? rc : store_run(w->store, prune_keys, &removed, a, e);
	while (!rc && removed == PRUNED);
	return rc;
}

enum rc pass_find_orphan_resources(const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct instance_scan_result      r = { 0 };
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc = instance_scan(p->instances, SCAN_KEEPS, STR(""), &a, &r, e);

	pass_count(ret, "orphans", r.orphans, METRIC__COUNT);
	pass_count(ret, "missing", r.missing, METRIC__COUNT);
	return rc;
}
