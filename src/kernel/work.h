/* work.h - one piece of background work through its stages: found, claimed, performed, settled.
 *
 * pump.c runs the stages with threads; the simulator runs them one at a time and crashes between them. What calls
 * out is claimed (owner, fence, visibility) in a transaction of its own, performed without one, settled in another;
 * what only touches the store is settled alone. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "kernel/queue.h"
#include "kernel/saga.h"
#include "kernel/saga_rule.h"
#include "store/store.h"

enum work_kind { WORK_LANE, WORK_TIMER, WORK_SAGA };

struct work {
	struct kernel      *kernel;
	enum work_kind      kind;
	struct str          key; /* of its record */
	int64_t             due_ms;
	const struct queue *queue;      /* lanes */
	bool                needs_call; /* claim and perform it first */
	bool                is_claimed;
	bool                is_lost;  /* somebody else has it, or it is gone */
	bool                has_more; /* after settling: the same work is due again at once (sagas: still claimed) */

	const char *outcome;    /* after claiming or settling: what became of it, for the figures; NULL: nothing */
	bool        has_failed; /* the call said no; see failure */
	bool        is_refused; /* settling: a handler said no, and nothing was written; see failure */
	struct err  failure;

	/* Private: what was claimed. */
	struct arena     arena;
	bool             was_run; /* settling came to its end; what follows is the commit */
	int64_t          fence, claimed_until_ms;
	struct mono      claimed_until; /* the same, should the clock be set back */
	struct delivery  delivery;
	struct call      call;
	struct saga      saga;
	struct saga_call saga_call;
	enum saga_todo   saga_todo;    /* what to call */
	bool             has_happened; /* what a check found out */
	bool (*may_go_on)(void *arg);  /* set by its runner: false when it should stop soon */
	void *may_go_on_arg;
};

/* Everything that is due, in due order within its kind: at most `limit` of each queue and kind. next_due_ms: when
 * one of the kinds of which nothing is due will have something, as far as this node knows; INT64_MAX: never. Of the
 * others there may be more behind what was found: look again when that is done. Blocks. */
struct work_list {
	struct work *items; /* in the arena: to be copied */
	size_t       count;
	int64_t      next_due_ms;
};

/* Where the limit of a queue is reached, lanes of these addressees are passed over ("queue#target|", as the lanes'
 * keys begin): they have no room anyway, and however many there are, they hide nobody else's. */
struct work_skips {
	const struct str *prefixes;
	size_t            count;
};
MUST_CHECK enum rc work_find(struct kernel *k, size_t limit, struct work_skips skips, struct arena *a,
                             struct work_list *ret, struct err *e);

/* A copy with memory of its own. `to` is all zero, or was used before and has its arena reset. */
void work_copy(struct work *to, const struct work *from);
void work_fini(struct work *w);

/* Claim it: sets is_claimed, or is_lost. arg is the work. */
txn_fn work_claim;

/* Do what blocks. Outcome in has_failed and failure. */
void work_perform(struct work *w);

/* Do what does not block, or store the outcome of what did; remove it, or note the failed call. Sets has_more, is_lost.
 * When it fails and work_is_to_blame(), run work_refuse next; otherwise the store failed, and the work stays due. */
txn_fn work_settle;

/* Has settling failed because a handler refused, or because what it wrote breaks a limit? Sets is_refused and failure
 * in the second case too: it would fail for ever, and must count as a try like any other. Not when the store could not
 * read for the handler. */
bool work_is_to_blame(struct work *w, enum rc rc, const struct err *e);

/* A handler has refused: note the failed try. arg is the work. */
txn_fn work_refuse;

/* Settled, and has_more, but not continued here: gives the claim back, so that others need not wait until it runs out.
 * arg is the work. */
txn_fn work_release;

/* It was performed and settled, or that was tried: wakes the waiters in this process. Last stage, no transaction. */
void work_over(const struct work *w);

/* A stage is durable: what became of it goes into the kernel's figures. arg is the work. */
void work_count(void *arg);

/* Keep a claimed one for longer. Sets is_lost; right only when known to be written: use work_keep(). arg is the
 * work. */
txn_fn work_extend;

/* The same in a transaction of its own. When that fails, the claim stands as long as it did before. Blocks. */
MUST_CHECK enum rc work_keep(struct work *w, struct err *e);
