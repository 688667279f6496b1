/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csp_sim.c - a vendor that makes sandboxes: keeps a stock, deletes on demand, makes a new one for each deleted.
 *
 * It stands in for the real vendor when none is configured. Its accounts are records of a store of its own, so it
 * survives our restarts as a real one would, and our store never knows more of it than it would of a real one.
 */
#include "providers/sim/csp_sim.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "domain/csp.h"
#include "store/session.h"
#include "store/sqlite.h"
#include "store/store.h"

enum { GROUP = 90, PAGE = 1000, CACHE_MB = 16 };

struct sim_account {
	struct str external_id;
	struct str sandbox_id;
	struct str name;
	int64_t    created_at;
	uint64_t   version;
};

/* How many were ever made: the number in the next one's name. */
struct sim_counter {
	struct str name;
	int64_t    made;
	uint64_t   version;
};

static const struct record_field account_fields[] = {
	{ "external_id", FIELD_TEXT, offsetof(struct sim_account, external_id), false, 64, NULL },
	{ "sandbox_id", FIELD_TEXT, offsetof(struct sim_account, sandbox_id), false, 64, NULL },
	{ "name", FIELD_TEXT, offsetof(struct sim_account, name), false, 64, NULL },
	{ "created_at", FIELD_INT, offsetof(struct sim_account, created_at), false, 0, NULL },
};

static const struct record_type account_type = {
	.name = "sim_account",
	.size = sizeof(struct sim_account),
	.fields = account_fields,
	.field_count = ARRAY_LEN(account_fields),
	.version_offset = offsetof(struct sim_account, version),
};

static const struct record_field counter_fields[] = {
	{ "name", FIELD_TEXT, offsetof(struct sim_counter, name), false, 64, NULL },
	{ "made", FIELD_INT, offsetof(struct sim_counter, made), false, 0, NULL },
};

static const struct record_type counter_type = {
	.name = "sim_counter",
	.size = sizeof(struct sim_counter),
	.fields = counter_fields,
	.field_count = ARRAY_LEN(counter_fields),
	.version_offset = offsetof(struct sim_counter, version),
};

static const struct record_type *const sim_types[] = { &account_type, &counter_type };

struct csp_sim {
	struct csp    base;
	struct store *store;
};

static enum rc make_one(struct session *s, int64_t number, struct err *e)
{
	char               uuid[ID_UUID_SIZE];
	struct sim_account a = { .created_at = wall_sec(session_now(s)) }, old;
	enum rc            rc;

	id_uuid(uuid);
	a.sandbox_id = str_dup(session_arena(s), str_from(uuid));
	a.external_id = str_format(session_arena(s), "identity/accounts/%s", uuid);
	a.name = str_format(session_arena(s), "sandbox-%06lld", (long long)number);
	rc = session_get(s, &account_type, a.external_id, &old, NULL);
	if (rc != RC_NOT_FOUND)
		return rc ? rc : err_set(e, RC_INTERNAL, "two simulated accounts with one id");
	session_put(s, &account_type, &a);
	return RC_OK;
}

static enum rc make_some(struct session *s, int64_t count, struct err *e)
{
	struct sim_counter c = { .name = STR("accounts") };
	enum rc            rc = session_get(s, &counter_type, c.name, &c, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return rc;
	for (int64_t i = 0; i < count; i++)
		if ((rc = make_one(s, ++c.made, e)))
			return rc;
	session_put(s, &counter_type, &c);
	return RC_OK;
}

static enum rc restock(struct session *s, void *arg, struct err *e)
{
	return make_some(s, *(const int64_t *)arg, e);
}

static enum rc count_stock(struct session *s, void *arg, struct err *e)
{
	return session_count(s, &account_type, QUERY_ALL, value_int(0), arg, e);
}

static enum rc fill_stock(struct csp_sim *sim, int64_t stock, struct err *e)
{
	struct arena a = { 0 };
	int64_t      there = 0;
	enum rc      rc = store_read(sim->store, count_stock, &there, &a, e);

	while (!rc && there < stock) {
		int64_t count = stock - there < GROUP ? stock - there : GROUP;

		arena_reset(&a);
		rc = store_run(sim->store, restock, &count, &a, e);
		there += count;
	}
	arena_fini(&a);
	return rc;
}

struct listing {
	struct str  cursor;
	struct page page;
};

static enum rc read_page(struct session *s, void *arg, struct err *e)
{
	struct listing *l = arg;
	struct query    q = { .type = &account_type, .index = QUERY_ALL, .limit = PAGE, .cursor = l->cursor };

	return session_query(s, &q, &l->page, e);
}

static enum rc list(struct csp *base, struct arena *a, struct csp_account **ret, size_t *ret_count, struct err *e)
{
	struct csp_sim     *sim = CONTAINER_OF(base, struct csp_sim, base);
	struct listing      l = { 0 };
	struct csp_account *accounts = NULL;
	size_t              count = 0;
	enum rc             rc;

	do {
		rc = store_read(sim->store, read_page, &l, a, e);
		if (rc)
			break;
		accounts = mem_resize(accounts, (count + l.page.count) * sizeof(*accounts));
		for (size_t i = 0; i < l.page.count; i++) {
			struct sim_account *from = page_record(&l.page, &account_type, i);

			accounts[count++] = (struct csp_account){ .sandbox_id = from->sandbox_id,
				                                  .external_id = from->external_id,
				                                  .name = from->name,
				                                  .created_at = from->created_at };
		}
		l.cursor = l.page.next;
	} while (l.cursor.n);
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
	const struct str  *external_id = arg;
	struct sim_account account;
	enum rc            rc = session_get(s, &account_type, *external_id, &account, NULL);

	if (rc == RC_NOT_FOUND)
		return RC_OK;
	if (rc)
		return rc;
	session_delete(s, &account_type, *external_id);
	return make_some(s, 1, e);
}

static enum rc delete_account(struct csp *base, struct str external_id, struct err *e)
{
	struct csp_sim *sim = CONTAINER_OF(base, struct csp_sim, base);
	struct arena    a = { 0 };
	enum rc         rc = store_run(sim->store, replace, &external_id, &a, e);

	arena_fini(&a);
	return rc;
}

static void close_sim(struct csp *base)
{
	struct csp_sim *sim = CONTAINER_OF(base, struct csp_sim, base);

	store_close(sim->store);
	free(sim);
}

enum rc csp_sim_open(const char *path, int64_t stock, const struct clock *clock, struct csp **ret, struct err *e)
{
	static const struct csp_ops ops = { "sim", list, delete_account, close_sim };
	struct csp_sim             *sim = mem_new(struct csp_sim);
	struct sqlite_options       options = { path, sim_types, ARRAY_LEN(sim_types), clock, CACHE_MB };
	enum rc                     rc;

	sim->base.ops = &ops;
	rc = store_sqlite_open(&options, &sim->store, e);
	if (!rc)
		rc = fill_stock(sim, stock, e);
	if (rc) {
		store_close(sim->store);
		free(sim);
		return rc;
	}
	*ret = &sim->base;
	return RC_OK;
}
