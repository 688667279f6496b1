/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - what all kinds of work have in common: finding what is due, and which function does which stage. */
#include "kernel/work.h"

#include <assert.h>
#include <stdio.h>

#include "base/metrics.h"
#include "base/trace.h"
#include "kernel/kernel_private.h"
#include "kernel/work_private.h"

static const struct work_ops *const kinds[] = {
	[WORK_LANE] = &lane_work, [WORK_TIMER] = &timer_work, [WORK_SAGA] = &saga_work
};

void work_found(struct work_finder *f, const struct work *w)
{
	if (f->count == f->room) {
		struct work *old = f->items;

		f->room = f->room ? f->room * 2 : 32;
		f->items = arena_alloc(f->arena, f->room * sizeof(*f->items));
		if (old)
			memcpy(f->items, old, f->count * sizeof(*old));
	}
	f->items[f->count++] = *w;
}

void work_later(struct work_finder *f, int64_t due_ms)
{
	if (due_ms < f->next_due_ms)
		f->next_due_ms = due_ms;
}

/* First a look at the earliest alone: mostly nothing is due, and then that is all it costs. */
enum rc work_query_due(struct session *s, struct work_finder *f, struct query *q, const struct work *form,
                       struct err *e)
{
	int64_t     now_ms = session_now(s).ms + f->lead_ms, earliest;
	int         due_field = q->type->indexes[q->index].sort;
	struct page page;
	enum rc     rc;

	q->is_last = true; /* what comes behind is looked for anew, next time */
	if ((rc = session_query(s, q, &page, e)) || !page.count)
		return rc;
	earliest = record_value(q->type, due_field, page_record(&page, q->type, 0)).number;
	if (earliest > now_ms) {
		work_later(f, earliest - f->lead_ms);
		return RC_OK;
	}
	q->limit = f->limit;
	q->has_sort_max = true;
	q->sort_max = now_ms;
	if ((rc = session_query(s, q, &page, e)))
		return rc;
	for (size_t i = 0; i < page.count; i++) {
		void       *record = page_record(&page, q->type, i);
		struct work w = *form;

		w.key = record_key(q->type, record);
		w.due_ms = record_value(q->type, due_field, record).number;
		work_found(f, &w);
	}
	return RC_OK;
}

static enum rc find_all(struct session *s, void *arg, struct err *e)
{
	struct work_finder *f = arg;
	enum rc             rc;

	f->items = NULL;
	f->count = f->room = 0;
	f->next_due_ms = INT64_MAX;
	if ((rc = timer_work.find(s, f, e)) || (rc = lane_work.find(s, f, e)))
		return rc;
	return kernel_options(f->kernel)->saga_count ? saga_work.find(s, f, e) : RC_OK;
}

enum rc work_find(struct kernel *k, size_t limit, struct work_skips skips, struct arena *a, struct work_list *ret,
                  struct err *e)
{
	struct work_finder f = { .kernel = k, .limit = limit, .skips = skips, .arena = a };
	enum rc            rc;

#ifdef LEASEHOLD_DEFECTS
	defect_catch_up(k);
#endif
	rc = store_read(kernel_options(k)->store, find_all, &f, a, e);
	*ret = (struct work_list){ f.items, f.count, f.next_due_ms };
	return rc;
}

void work_copy(struct work *to, const struct work *from)
{
	struct arena arena = to->arena;

	*to = *from;
	to->arena = arena;
	to->key = str_dup(&to->arena, from->key);
}

void work_fini(struct work *w)
{
	arena_fini(&w->arena);
}

enum rc work_claim(struct session *s, void *arg, struct err *e)
{
	struct work *w = arg;

	assert(w->needs_call);
	w->is_claimed = w->is_lost = w->has_more = w->has_failed = false;
	w->outcome = NULL;
	return kinds[w->kind]->claim(s, w, e);
}

void work_perform(struct work *w)
{
	struct trace before = trace_enter(w->kind == WORK_SAGA ? w->saga.trace : w->delivery.event.trace);

	assert(w->is_claimed);
	kinds[w->kind]->perform(w);
	trace_return(&before);
}

enum rc work_settle(struct session *s, void *arg, struct err *e)
{
	struct work *w = arg;
	enum rc      rc;

	w->has_more = w->is_lost = w->is_refused = false;
	w->outcome = NULL;
	rc = kinds[w->kind]->settle(s, w, e);
	w->was_run = rc == RC_OK;
	return rc;
}

bool work_is_to_blame(struct work *w, enum rc rc, const struct err *e)
{
	if (rc && w->was_run && !rc_is_retryable(rc)) {
		w->is_refused = true;
		w->failure = *e;
	}
	return w->is_refused;
}

enum rc work_refuse(struct session *s, void *arg, struct err *e)
{
	struct work *w = arg;

	w->has_more = w->is_lost = false;
	return kinds[w->kind]->refuse ? kinds[w->kind]->refuse(s, w, e) : RC_OK;
}

enum rc work_release(struct session *s, void *arg, struct err *e)
{
	struct work *w = arg;

	return w->is_claimed && kinds[w->kind]->release ? kinds[w->kind]->release(s, w, e) : RC_OK;
}

void work_over(const struct work *w)
{
	if (w->kind == WORK_LANE && w->is_claimed && w->needs_call && w->queue->over)
		w->queue->over(&w->call);
}

void work_count(void *arg)
{
	const struct work *w = arg;
	struct metrics    *metrics = kernel_options(w->kernel)->metrics;
	char               labels[QUEUE_NAME_MAX + 16];

	if (!w->outcome || !metrics)
		return;
	if (w->kind == WORK_TIMER) {
		metrics_add(metrics, METRIC_TIMERS_FIRED, "", 1);
	} else if (w->kind == WORK_LANE) {
		(void)snprintf(labels, sizeof(labels), "%s,%s", w->queue->name, w->outcome); /* fits */
		metrics_add(metrics, METRIC_DELIVERIES, labels, 1);
	}
}

enum rc work_extend(struct session *s, void *arg, struct err *e)
{
	struct work *w = arg;

	return kinds[w->kind]->extend(s, w, e);
}

enum rc work_keep(struct work *w, struct err *e)
{
	int64_t     until_ms = w->claimed_until_ms;
	struct mono until = w->claimed_until;
	bool        is_lost = w->is_lost;
	enum rc     rc = store_run(kernel_options(w->kernel)->store, work_extend, w, &w->arena, e);

	if (rc) {
		w->claimed_until_ms = until_ms;
		w->claimed_until = until;
		w->is_lost = is_lost;
	}
	return rc;
}
