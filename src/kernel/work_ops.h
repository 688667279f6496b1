/* work_ops.h - the stages of each kind of work; shared by work.c and the files that do them; nobody else includes this. */
#pragma once

#include "kernel/kernel.h"
#include "kernel/work.h"
#include "store/session.h"

/* Collects what is due, in one read-only transaction. */
struct work_finder {
	struct kernel *kernel;
	size_t         limit; /* of each queue and kind */
	struct work   *items;
	size_t         count, room;
	int64_t        next_due_ms;
};

/* Add a work that is due, or note when it will be: true while more may be added. */
void work_found(struct work_finder *f, const struct work *w);
void work_later(struct work_finder *f, int64_t due_ms);

/* queue.c */
enum rc lane_find(struct session *s, struct work_finder *f, struct err *e);
enum rc lane_claim(struct session *s, struct work *w, struct err *e);
void    lane_perform(struct work *w);
enum rc lane_settle(struct session *s, struct work *w, struct err *e);
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
enum rc saga_extend(struct session *s, struct work *w, struct err *e);
