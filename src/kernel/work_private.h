/* work_private.h - the stages of each kind of work; for work.c and the files that do them alone. */
#pragma once

#include "kernel/kernel.h"
#include "kernel/work.h"
#include "store/session.h"

/* Collects what is due, in one read-only transaction. */
struct work_finder {
	struct kernel    *kernel;
	struct arena     *arena;
	size_t            limit; /* of each queue and kind */
	struct work_skips skips;
	int64_t           lead_ms; /* count as due what is due so soon: 0, except for one of the deliberate defects */
	struct work      *items;
	size_t            count, room;
	int64_t           next_due_ms;
};

/* Add a work that is due, or note when there will be more. */
void work_found(struct work_finder *f, const struct work *w);
void work_later(struct work_finder *f, int64_t due_ms);

/* Add what the query (limit 1, of an index sorted by due time) finds due: copies of the form with key and due time. */
enum rc work_query_due(struct session *s, struct work_finder *f, struct query *q, const struct work *form,
                       struct err *e);

/* The stages of one kind. */
struct work_ops {
	enum rc (*find)(struct session *s, struct work_finder *f, struct err *e);
	enum rc (*claim)(struct session *s, struct work *w, struct err *e);
	void (*perform)(struct work *w);
	enum rc (*settle)(struct session *s, struct work *w, struct err *e);
	enum rc (*refuse)(struct session *s, struct work *w, struct err *e);
	enum rc (*extend)(struct session *s, struct work *w, struct err *e);
	enum rc (*release)(struct session *s, struct work *w, struct err *e); /* NULL: nothing to give back */
};

extern const struct work_ops lane_work;  /* queue.c */
extern const struct work_ops timer_work; /* timer.c: nothing to claim, perform or refuse */

/* saga_run.c. Settling stores the outcome of a call and, in the same commit, the intent of the next one: then has_more
 * is set and the saga stays claimed. */
extern const struct work_ops saga_work;
