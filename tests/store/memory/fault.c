/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - injects failures between a caller and its store.
 *
 * Every transaction is wrapped: the wrapper decides by the plan what becomes of it, and everything else is done by the
 * store inside. The session belongs to that inner store, so a wrapped function cannot tell the difference.
 */
#include "store/memory/fault.h"

#include <stdlib.h>

#include "base/mem.h"
#include "store/store_ops.h"

struct fault_store {
	struct store       base;
	struct store      *inner;
	struct fault_plan *plan;
};

struct wrapped {
	struct txn  inner;
	struct txn *outer;
	enum fault  fault;
};

static enum fault choose(struct fault_plan *plan)
{
	int left = atomic_load(&plan->count);

	do
		if (left <= 0)
			return FAULT_NONE;
	while (!atomic_compare_exchange_weak(&plan->count, &left, left - 1));
	atomic_fetch_add(&plan->injected, 1);
	return atomic_load(&plan->next);
}

static enum rc run_wrapped(struct session *s, void *arg, struct err *e)
{
	struct wrapped *w = arg;

	if (w->fault == FAULT_BEFORE)
		return err_set(e, RC_UNAVAILABLE, "injected: the store did not take it");
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
	free(w);
	outer->done(outer, outer->rc, &outer->e);
}

static void submit_one(struct store *base, struct txn *t)
{
	struct fault_store *store = CONTAINER_OF(base, struct fault_store, base);
	struct wrapped     *w = mem_new(struct wrapped);

	if (!t->is_read_only && store->plan->before_write)
		store->plan->before_write(store->plan->before_write_arg);
	atomic_fetch_add(&store->plan->reads, t->is_read_only);
	*w = (struct wrapped){ .outer = t, .fault = t->is_read_only ? FAULT_NONE : choose(store->plan) };
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
	return &store->base;
}
