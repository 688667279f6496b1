/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.c - one thread does what is due, one work after the other, each through the same stages as in pump.c.
 *
 * It ends when a look finds nothing that could be done: an index that lags may show work as due that is not, and
 * somebody else may have claimed it; a look that achieved nothing is not repeated.
 *
 * Always true:
 *   1. Whatever is claimed is settled, unless the store fails; a saga that has another step when the time is up is
 *      given back. [run_call()]
 *   2. A work that the store fails is left as it is, and the drain ends: it would fail again at once. [drain()]
 */
#include "kernel/drain.h"

#include "base/arena.h"
#include "base/log.h"
#include "kernel/kernel.h"
#include "kernel/work.h"
#include "store/store.h"

enum { FIND_LIMIT = 32, TURNS_MAX = 32 };

static bool may_go_on(void *arg)
{
	const struct drain *d = arg;

	return mono_now().ms < d->until.ms;
}

static enum rc run_stage(struct work *w, txn_fn *stage, struct err *e)
{
	enum rc rc = store_run(kernel_options(w->kernel)->store, stage, w, &w->arena, e);

	if (!rc)
		work_count(w);
	return rc;
}

/* Settle it; a handler's refusal is noted as a failed try. */
static enum rc settle(struct work *w, struct err *e)
{
	enum rc rc = run_stage(w, work_settle, e);

	if (!rc || !work_is_to_blame(w, rc, e))
		return rc;
	log_write(LOG_DEBUG, "kernel", NULL, 0, "%.*s: %s", STR_ARG(w->key), e->msg);
	err_clear(e);
	return run_stage(w, work_refuse, e);
}

static enum rc run_alone(struct drain *d, struct work *w, struct err *e)
{
	int     turns = 0;
	enum rc rc;

	do {
		if ((rc = settle(w, e)))
			return rc;
		d->done += !w->is_lost;
	} while (w->has_more && ++turns < TURNS_MAX && may_go_on(d));
	return RC_OK;
}

static enum rc run_call(struct drain *d, struct work *w, struct err *e)
{
	enum rc rc;

	w->may_go_on = may_go_on;
	w->may_go_on_arg = d;
	if ((rc = run_stage(w, work_claim, e)) || !w->is_claimed)
		return rc;
	do {
		work_perform(w);
		if ((rc = settle(w, e)))
			return rc;
		d->done++;
	} while (w->has_more && w->kind == WORK_SAGA && may_go_on(d));
	return w->has_more && w->kind == WORK_SAGA ? run_stage(w, work_release, e) : RC_OK;
}

static enum rc run_work(struct drain *d, const struct work *found, struct err *e)
{
	struct work w = { 0 };
	enum rc     rc;

	work_copy(&w, found);
	rc = w.needs_call ? run_call(d, &w, e) : run_alone(d, &w, e);
	work_over(&w);
	work_fini(&w);
	return rc;
}

/* One look, and what it found. *ret_is_over: there is nothing more to do for now. */
static enum rc look(struct drain *d, struct arena *a, bool *ret_is_over, struct err *e)
{
	struct work_list list;
	size_t           before = d->done;
	enum rc          rc = work_find(d->kernel, FIND_LIMIT, (struct work_skips){ 0 }, a, &list, e);

	for (size_t i = 0; !rc && i < list.count; i++) {
		if (!may_go_on(d)) {
			d->has_left = true;
			break;
		}
		rc = run_work(d, &list.items[i], e);
	}
	*ret_is_over = d->has_left || d->done == before;
	return rc;
}

enum rc drain(struct drain *d, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	bool                             is_over = false;
	enum rc                          rc = RC_OK;

	d->done = 0;
	d->has_left = false;
	while (!rc && !is_over) {
		arena_reset(&a);
		rc = look(d, &a, &is_over, e);
	}
	return rc;
}
