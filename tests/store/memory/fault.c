/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - injects failures between a caller and its store.
 *
 * Every transaction is wrapped: the wrapper decides by the plan what becomes of it, and everything else is done by the
 * store inside. The session belongs to that inner store, so a wrapped function cannot tell the difference. For a read
 * to fail, the functions of the inner store's table that read are replaced by ours.
 */
#include "store/memory/fault.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/store_ops.h"

struct fault_store {
	struct store       base;
	struct store      *inner;
	struct fault_plan *plan;

	struct store_ops        watched; /* the inner store's table, with our reads in it */
	const struct store_ops *whole;   /* its own */
	const struct session   *failing; /* a read of this one fails */
	int                     reads_left;
};

struct wrapped {
	struct txn    inner;
	struct txn   *outer;
	struct store *store;
	enum fault    fault;
};

static bool use_one_up(atomic_int *count)
{
	int left = atomic_load(count);

	do
		if (left <= 0)
			return false;
	while (!atomic_compare_exchange_weak(count, &left, left - 1));
	return true;
}

static enum fault choose(struct fault_plan *plan, bool is_read_only)
{
	if (!use_one_up(is_read_only ? &plan->refused : &plan->count))
		return FAULT_NONE;
	atomic_fetch_add(&plan->injected, 1);
	return is_read_only ? FAULT_BEFORE : atomic_load(&plan->next);
}

/* --- reads --- */

static struct fault_store *around(const struct session *s)
{
	return (struct fault_store *)(void *)((char *)(uintptr_t)s->store->ops - offsetof(struct fault_store, watched));
}

static enum rc read_one(struct session *s, struct err *e)
{
	struct fault_store *store = around(s);

	if (store->failing != s || --store->reads_left)
		return RC_OK;
	return err_set(e, RC_UNAVAILABLE, "injected: this cannot be read");
}

static enum rc get(struct session *s, const struct record_type *type, struct str key, struct stored *ret, struct err *e)
{
	enum rc rc = read_one(s, e);

	return rc ? rc : around(s)->whole->get(s, type, key, ret, e);
}

static enum rc query(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	enum rc rc = read_one(s, e);

	return rc ? rc : around(s)->whole->query(s, q, ret, e);
}

static enum rc find_unique(struct session *s, const struct record_type *type, int index, struct value v,
                           struct stored *ret, struct err *e)
{
	enum rc rc = read_one(s, e);

	return rc ? rc : around(s)->whole->find_unique(s, type, index, v, ret, e);
}

static enum rc count(struct session *s, const struct record_type *type, int index, struct value hash, int64_t *ret,
                     struct err *e)
{
	enum rc rc = read_one(s, e);

	return rc ? rc : around(s)->whole->count(s, type, index, hash, ret, e);
}

/* --- transactions --- */

static enum rc run_failing(struct session *s, struct wrapped *w, struct err *e)
{
	struct fault_store *store = around(s);
	enum rc             rc;

	store->failing = s;
	store->reads_left = store->plan->read;
	rc = w->outer->run(s, w->outer->arg, e);
	store->failing = NULL;
	if (store->reads_left > 0)
		atomic_fetch_sub(&store->plan->injected, 1); /* there are not so many */
	return rc;
}

static enum rc run_wrapped(struct session *s, void *arg, struct err *e)
{
	struct wrapped *w = arg;

	if (w->fault == FAULT_BEFORE)
		return err_set(e, RC_UNAVAILABLE, "injected: the store did not take it");
	if (w->fault == FAULT_READ)
		return run_failing(s, w, e);
	if (w->fault == FAULT_RERUN) {
		(void)w->outer->run(s, w->outer->arg, e); /* thrown away: that is the point */
		session_reset(s);
		err_clear(e);
	}
	return w->outer->run(s, w->outer->arg, e);
}

static void finish(struct txn *inner, enum rc rc, const struct err *e)
{
	struct wrapped *w = CONTAINER_OF(inner, struct wrapped, inner);
	struct txn     *outer = w->outer;

	outer->rc = rc;
	outer->e = *e;
	if (w->fault == FAULT_AFTER && !rc)
		outer->rc = err_set(&outer->e, RC_UNAVAILABLE, "injected: written, but the answer was lost");
	store_tell(w->store, &outer, 1);
	free(w);
}

static void submit_one(struct store *base, struct txn *t)
{
	struct fault_store *store = CONTAINER_OF(base, struct fault_store, base);
	struct wrapped     *w = mem_new(struct wrapped);

	if (!t->is_read_only && store->plan->before_write)
		store->plan->before_write(store->plan->before_write_arg);
	atomic_fetch_add(&store->plan->reads, t->is_read_only);
	*w = (struct wrapped){ .outer = t, .store = base, .fault = choose(store->plan, t->is_read_only) };
	if (store->inner->context != base->context) { /* before the first transaction; never while others run */
		store->inner->context = base->context;
		store->inner->on_news = base->on_news;
	}
	w->inner = (struct txn){
		.run = run_wrapped, .arg = w, .arena = t->arena, .is_read_only = t->is_read_only, .done = finish
	};
	store_submit(store->inner, &w->inner);
}

static void submit(struct store *base, struct txn *const *txns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		submit_one(base, txns[i]);
}

static void turn(struct store *base)
{
	struct fault_store *store = CONTAINER_OF(base, struct fault_store, base);

	store->inner->ops->turn(store->inner);
}

static void close_store(struct store *base)
{
	struct fault_store *store = CONTAINER_OF(base, struct fault_store, base);

	store->inner->ops = store->whole;
	store_close(store->inner);
	store_fini(base);
	free(store);
}

struct store *store_fault_open(struct store *inner, struct fault_plan *plan)
{
	/* Sessions are the inner store's, so its session calls are never reached through this table. */
	static const struct store_ops ops = { .name = "fault", .submit = submit, .turn = turn, .close = close_store };
	struct fault_store           *store = mem_new(struct fault_store);

	store_init(&store->base, &ops, inner->clock);
	store->inner = inner;
	store->plan = plan;
	store->whole = inner->ops;
	store->watched = *inner->ops;
	store->watched.get = get;
	store->watched.query = query;
	store->watched.find_unique = find_unique;
	store->watched.count = count;
	inner->ops = &store->watched;
	return &store->base;
}
