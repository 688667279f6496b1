/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csp_sim.c - a vendor that makes sandboxes: keeps a stock, deletes on demand, makes a new one for each deleted.
 *
 * Stands in for the real vendor when none is configured. Its accounts are records in the simulated cloud's store: they
 * survive our restarts, and our own store knows no more of them than of a real vendor's. The cloud's switches disturb
 * it too.
 */
#include "providers/sim/cloud.h"

#include <stdlib.h>

#include "base/id.h"
#include "base/mem.h"
#include "domain/ports/csp.h"
#include "providers/sim/cloud_private.h"

enum { GROUP = 90, PAGE = 1000 };

struct csp_sim {
	struct csp             base;
	struct csp_sim_options options;
};

static enum rc make_one(struct session *s, struct csp_sim *sim, int64_t number, struct err *e)
{
	char               uuid[ID_UUID_SIZE];
	struct sim_account a = { .created_at = wall_sec(session_now(s)) }, old;
	bool               is_there;
	enum rc            rc;

	sim_faults_uuid(sim->options.faults, uuid);
	a.sandbox_id = str_dup(session_arena(s), str_from(uuid));
	a.external_id = str_format(session_arena(s), "identity/accounts/%s", uuid);
	a.name = str_format(session_arena(s), "sandbox-%06lld", (long long)number);
	rc = session_find(s, &sim_account_type, a.external_id, &old, &is_there, e);
	if (rc)
		return rc;
	if (is_there)
		return err_set(e, RC_INTERNAL, "two simulated accounts with one id");
	session_put(s, &sim_account_type, &a);
	return RC_OK;
}

/* A change of the stock: count more; with an external_id, only if that one is there, and it is deleted. */
struct restocking {
	struct csp_sim *sim;
	int64_t         count;
	struct str      external_id;
};

static enum rc restock(struct session *s, void *arg, struct err *e)
{
	const struct restocking *r = arg;
	struct sim_counter       c;
	bool                     was_there = true;
	enum rc                  rc = RC_OK;

	if (r->external_id.n)
		rc = session_drop(s, &sim_account_type, r->external_id, &was_there, e);
	if (rc || !was_there || (rc = session_find_or_new(s, &sim_counter_type, STR("accounts"), &c, e)))
		return rc;
	for (int64_t i = 0; i < r->count; i++)
		if ((rc = make_one(s, r->sim, ++c.made, e)))
			return rc;
	session_put(s, &sim_counter_type, &c);
	return RC_OK;
}

static enum rc count_stock(struct session *s, void *arg, struct err *e)
{
	return session_count(s, &sim_account_type, QUERY_ALL, value_int(0), arg, e);
}

static enum rc fill_stock(struct csp_sim *sim, int64_t stock, struct err *e)
{
	int64_t there = 0;
	enum rc rc = store_read(sim->options.store, count_stock, &there, NULL, e);

	while (!rc && there < stock) {
		struct restocking r = { .sim = sim, .count = stock - there < GROUP ? stock - there : GROUP };

		rc = store_run(sim->options.store, restock, &r, NULL, e);
		there += r.count;
	}
	return rc;
}

/* A vendor has no throttling: to its client that is an outage. */
static enum rc disturb(struct csp_sim *sim, enum world_call call, struct err *e)
{
	struct err why = { 0 };
	enum rc    rc = sim_faults_before(sim->options.faults, call, &why);

	return rc ? err_set(e, rc == RC_LIMITED ? RC_UNAVAILABLE : rc, "%s", why.msg) : RC_OK;
}

static enum rc list(struct csp *base, struct arena *a, struct csp_account **ret, size_t *ret_count, struct err *e)
{
	struct csp_sim     *sim = CONTAINER_OF(base, struct csp_sim, base);
	struct query        q = { .type = &sim_account_type, .index = QUERY_ALL, .limit = PAGE };
	struct sim_listing  l = { .q = &q };
	struct csp_account *accounts = NULL;
	size_t              count = 0;
	enum rc             rc = disturb(sim, WORLD_CSP_LIST, e);

	if (rc)
		return rc;
	do {
		if ((rc = store_read(sim->options.store, sim_read_page, &l, a, e)))
			break;
		accounts = mem_resize(accounts, (count + l.page.count) * sizeof(*accounts));
		for (size_t i = 0; i < l.page.count; i++) {
			struct sim_account *from = page_record(&l.page, &sim_account_type, i);

			accounts[count++] = (struct csp_account){ .sandbox_id = from->sandbox_id,
				                                  .external_id = from->external_id,
				                                  .name = from->name,
				                                  .created_at = from->created_at };
		}
		q.cursor = l.page.next;
	} while (q.cursor.n);
	rc = sim_faults_after(sim->options.faults, WORLD_CSP_LIST, rc, e);
	if (!rc) {
		*ret = arena_alloc(a, count * sizeof(*accounts));
		memcpy(*ret, accounts, count * sizeof(*accounts));
		*ret_count = count;
	}
	free(accounts);
	return rc;
}

static enum rc delete_account(struct csp *base, struct str external_id, struct err *e)
{
	struct csp_sim   *sim = CONTAINER_OF(base, struct csp_sim, base);
	struct restocking r = { .sim = sim, .count = 1, .external_id = external_id };
	enum rc           rc = disturb(sim, WORLD_CSP_DELETE, e);

	if (rc)
		return rc;
	rc = store_run(sim->options.store, restock, &r, NULL, e);
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
