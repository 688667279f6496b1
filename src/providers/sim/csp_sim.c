/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csp_sim.c - a vendor that makes sandboxes: keeps a stock, deletes on demand, makes a new one for each deleted.
 *
 * It stands in for the real vendor when none is configured. Its accounts are records of the simulated cloud's store, so it
 * survives our restarts as a real one would, and our store never knows more of it than it would of a real one. The switches of
 * the simulated cloud disturb it too.
 */
#include "providers/sim/csp_sim.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/id.h"
#include "base/mem.h"
#include "domain/csp.h"
#include "providers/sim/faults.h"
#include "providers/sim/records.h"
#include "store/session.h"
#include "store/store.h"

enum { GROUP = 90, PAGE = 1000 };

struct csp_sim {
	struct csp             base;
	struct csp_sim_options options;
};

static enum rc make_one(struct session *s, struct csp_sim *sim, int64_t number, struct err *e)
{
	char               uuid[ID_UUID_SIZE];
	struct sim_account a = { .created_at = wall_sec(session_now(s)) }, old;
	enum rc            rc;

	sim_faults_uuid(sim->options.faults, uuid);
	a.sandbox_id = str_dup(session_arena(s), str_from(uuid));
	a.external_id = str_format(session_arena(s), "identity/accounts/%s", uuid);
	a.name = str_format(session_arena(s), "sandbox-%06lld", (long long)number);
	rc = session_get(s, &sim_account_type, a.external_id, &old, NULL);
	if (rc != RC_NOT_FOUND)
		return rc ? rc : err_set(e, RC_INTERNAL, "two simulated accounts with one id");
	session_put(s, &sim_account_type, &a);
	return RC_OK;
}

static enum rc make_some(struct session *s, struct csp_sim *sim, int64_t count, struct err *e)
{
	struct sim_counter c = { .name = STR("accounts") };
	enum rc            rc = session_get(s, &sim_counter_type, c.name, &c, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return rc;
	for (int64_t i = 0; i < count; i++)
		if ((rc = make_one(s, sim, ++c.made, e)))
			return rc;
	session_put(s, &sim_counter_type, &c);
	return RC_OK;
}

/* A change of the stock: more, or another one for this one. */
struct restocking {
	struct csp_sim *sim;
	int64_t         count;
	struct str      external_id;
};

static enum rc restock(struct session *s, void *arg, struct err *e)
{
	const struct restocking *r = arg;

	return make_some(s, r->sim, r->count, e);
}

static enum rc count_stock(struct session *s, void *arg, struct err *e)
{
	return session_count(s, &sim_account_type, QUERY_ALL, value_int(0), arg, e);
}

static enum rc fill_stock(struct csp_sim *sim, int64_t stock, struct err *e)
{
	struct arena a = { 0 };
	int64_t      there = 0;
	enum rc      rc = store_read(sim->options.store, count_stock, &there, &a, e);

	while (!rc && there < stock) {
		struct restocking r = { .sim = sim, .count = stock - there < GROUP ? stock - there : GROUP };

		arena_reset(&a);
		rc = store_run(sim->options.store, restock, &r, &a, e);
		there += r.count;
	}
	arena_fini(&a);
	return rc;
}

/* The vendor's client knows no throttling: it is one way of not being served. */
static enum rc disturb(struct csp_sim *sim, enum world_call call, struct err *e)
{
	struct err why = { 0 };
	enum rc    rc = sim_faults_before(sim->options.faults, call, &why);

	return rc ? err_set(e, rc == RC_LIMITED ? RC_UNAVAILABLE : rc, "%s", why.msg) : RC_OK;
}

struct listing {
	struct str  cursor;
	struct page page;
};

static enum rc read_page(struct session *s, void *arg, struct err *e)
{
	struct listing *l = arg;
	struct query    q = { .type = &sim_account_type, .index = QUERY_ALL, .limit = PAGE, .cursor = l->cursor };

	return session_query(s, &q, &l->page, e);
}

static enum rc list(struct csp *base, struct arena *a, struct csp_account **ret, size_t *ret_count, struct err *e)
{
	struct csp_sim     *sim = CONTAINER_OF(base, struct csp_sim, base);
	struct listing      l = { 0 };
	struct csp_account *accounts = NULL;
	size_t              count = 0;
	enum rc             rc = disturb(sim, WORLD_CSP_LIST, e);

	if (rc)
		return rc;
	do {
		rc = store_read(sim->options.store, read_page, &l, a, e);
		if (rc)
			break;
		accounts = mem_resize(accounts, (count + l.page.count) * sizeof(*accounts));
		for (size_t i = 0; i < l.page.count; i++) {
			struct sim_account *from = page_record(&l.page, &sim_account_type, i);

			accounts[count++] = (struct csp_account){ .sandbox_id = from->sandbox_id,
				                                  .external_id = from->external_id,
				                                  .name = from->name,
				                                  .created_at = from->created_at };
		}
		l.cursor = l.page.next;
	} while (l.cursor.n);
	rc = sim_faults_after(sim->options.faults, WORLD_CSP_LIST, rc, e);
	if (!rc) {
		*ret = arena_alloc(a, count * sizeof(*accounts));
		memcpy(*ret, accounts, count * sizeof(*accounts));
		*ret_count = count;
	}
	free(accounts);
	return rc;
}

static enum rc replace(struct session *s, void *arg, struct err *e)
{
	const struct restocking *r = arg;
	struct sim_account       account;
	enum rc                  rc = session_get(s, &sim_account_type, r->external_id, &account, NULL);

	if (rc == RC_NOT_FOUND)
		return RC_OK;
	if (rc)
		return rc;
	session_delete(s, &sim_account_type, r->external_id);
	return make_some(s, r->sim, 1, e);
}

static enum rc delete_account(struct csp *base, struct str external_id, struct err *e)
{
	struct csp_sim   *sim = CONTAINER_OF(base, struct csp_sim, base);
	struct restocking r = { .sim = sim, .external_id = external_id };
	struct arena      a = { 0 };
	enum rc           rc = disturb(sim, WORLD_CSP_DELETE, e);

	if (rc)
		return rc;
	rc = store_run(sim->options.store, replace, &r, &a, e);
	arena_fini(&a);
	return sim_faults_after(sim->options.faults, WORLD_CSP_DELETE, rc, e);
}

static void close_sim(struct csp *base)
{
	free(CONTAINER_OF(base, struct csp_sim, base));
}

enum rc csp_sim_open(const struct csp_sim_options *o, struct csp **ret, struct err *e)
{
	static const struct csp_ops ops = { "sim", list, delete_account, close_sim };
	struct csp_sim             *sim = mem_new(struct csp_sim);
	enum rc                     rc;

	sim->base.ops = &ops;
	sim->options = *o;
	rc = fill_stock(sim, o->stock, e);
	if (rc) {
		free(sim);
		return rc;
	}
	*ret = &sim->base;
	return RC_OK;
}
