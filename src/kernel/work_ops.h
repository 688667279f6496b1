/* work_ops.h - the stages of each kind of work; shared by work.c and the files that do them; nobody else includes this. */
#pragma once

#include "kernel/kernel.h"
#include "kernel/work.h"
#include "store/session.h"

/* Collects what is due, in one read-only transaction. */
struct work_finder {
	struct kernel *kernel;
	struct arena  *arena;
	size_t         limit;   /* of each queue and kind */
	int64_t        lead_ms; /* count as due what is due so soon: 0, except for one of the deliberate defects */
	struct work   *items;
	size_t         count, room;
	int64_t        next_due_ms;
};

/* Add a work that is due, or note when there will be more. */
void work_found(struct work_finder *f, const struct work *w);
void work_later(struct work_finder *f, int64_t due_ms);

/* Add what the query (an index sorted by the due time) finds due; each a copy of the form with key and due time. */
enum rc work_query_due(struct session *s, struct work_finder *f, struct query *q, int due_field,
                       const struct work *form, struct err *e);

/* queue.c */
enum rc lane_find(struct session *s, struct work_finder *f, struct err *e);
enum rc lane_claim(struct session *s, struct work *w, struct err *e);
void    lane_perform(struct work *w);
enum rc lane_settle(struct session *s, struct work *w, struct err *e);
enum rc lane_refuse(struct session *s, struct work *w, struct err *e);
enum rc lane_extend(struct session *s, struct work *w, struct err *e);

/* timer.c: nothing to claim, nothing to perform */
enum rc timer_find(struct session *s, struct work_finder *f, struct err *e);
enum rc timer_settle(struct session *s, struct work *w, struct err *e);

/* saga_run.c. Settling stores the outcome of a call and, in the same commit, the intent of the next one: then has_more is set and the
 * saga stays claimed. */
enum rc saga_find(struct session *s, struct work_finder *f, struct err *e);
enum rc saga_claim(struct session *s, struct work *w, struct err *e);
void    saga_perform(struct work *w);
enum rc saga_settle(struct session *s, struct work *w, struct err *e);
enum rc saga_refuse(struct session *s, struct work *w, struct err *e);
enum rc saga_extend(struct session *s, struct work *w, struct err *e);
