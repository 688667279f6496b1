/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - what all kinds of work have in common: finding what is due, and which function does which stage. */
#include "kernel/work.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/metrics.h"
#include "kernel/kernel_ops.h"
#include "kernel/work_ops.h"

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
enum rc work_query_due(struct session *s, struct work_finder *f, struct query *q, int due_field,
                       const struct work *form, struct err *e)
{
	int64_t     now_ms = session_now(s).ms + f->lead_ms, earliest;
	struct page page;
	enum rc     rc;

	q->limit = 1;
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
	if ((rc = timer_find(s, f, e)))
		return rc;
	if ((rc = lane_find(s, f, e)))
		return rc;
	return kernel_options(f->kernel)->saga_count ? saga_find(s, f, e) : RC_OK;
}

enum rc work_find(struct kernel *k, size_t limit, struct arena *a, struct work_list *ret, struct err *e)
{
	struct work_finder f = { .kernel = k, .limit = limit, .arena = a };
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
	return w->kind == WORK_SAGA ? saga_claim(s, w, e) : lane_claim(s, w, e);
}

void work_perform(struct work *w)
{
	assert(w->is_claimed);
	if (w->kind == WORK_SAGA)
		saga_perform(w);
	else
		lane_perform(w);
}

static enum rc settle(struct session *s, struct work *w, struct err *e)
{
	switch (w->kind) {
	case WORK_TIMER: return timer_settle(s, w, e);
	case WORK_LANE: return lane_settle(s, w, e);
	case WORK_SAGA: return saga_settle(s, w, e);
	}
	return RC_INTERNAL;
}

enum rc work_settle(struct session *s, void *arg, struct err *e)
{
	struct work *w = arg;
	enum rc      rc;

	w->has_more = w->is_lost = w->is_refused = false;
	w->outcome = NULL;
	rc = settle(s, w, e);
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
	switch (w->kind) {
	case WORK_TIMER: return RC_OK; /* has no handler that could refuse */
	case WORK_LANE: return lane_refuse(s, w, e);
	case WORK_SAGA: return saga_refuse(s, w, e);
	}
	return RC_INTERNAL;
}

void work_over(const struct work *w)
{
	if (w->kind == WORK_LANE && w->is_claimed && w->needs_call && w->queue->over)
		w->queue->over(&w->call);
}

void work_count(const struct work *w)
{
	struct metrics *metrics = kernel_options(w->kernel)->metrics;
	char            labels[QUEUE_NAME_MAX + 16];

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

	return w->kind == WORK_SAGA ? saga_extend(s, w, e) : lane_extend(s, w, e);
}

enum rc work_keep(struct work *w, struct err *e)
{
	int64_t     until_ms = w->claimed_until_ms;
	struct mono until = w->claimed_until;
	enum rc     rc = store_run(kernel_options(w->kernel)->store, work_extend, w, &w->arena, e);

	if (rc) {
		w->claimed_until_ms = until_ms;
		w->claimed_until = until;
	}
	return rc;
}
