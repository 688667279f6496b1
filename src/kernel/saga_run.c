/* SPDX-License-Identifier: Apache-2.0 */
/*
 * saga_run.c - a saga through the stages of work: found, claimed, performed, settled.
 *
 * A claim gives the saga to one node for the time of its lease, and stores what that node is about to do. The call
 * follows without a transaction. Settling stores the outcome and, in the same commit, the intent of the next call with
 * a new lease; so a saga that goes well costs one commit a step. Wherever the process dies, the lease runs out,
 * somebody else claims the saga, and finds in its marks what may have happened.
 *
 * Always true:
 *   1. An outcome is stored only by the holder of the claim: same owner, same fence.        [load_claimed()]
 *   2. The event of the end, and what the kind's on_end changes, are in the commit that ends it.   [finish()]
 *   3. Nothing that settling reads is changed by settling: it may be run again after a conflict.
 *
 * Not here: what is decided (saga_rule.c), threads and waiting (pump.c).
 */
#include "kernel/saga.h"

#include <assert.h>

#include "kernel/defect.h"
#include "kernel/kernel.h"
#include "kernel/kernel_private.h"
#include "kernel/saga_rule.h"
#include "kernel/work_private.h"

/* --- find, claim, extend --- */

static enum rc saga_find(struct session *s, struct work_finder *f, struct err *e)
{
	static const enum saga_state active[] = { SAGA_RUNNING, SAGA_UNDOING };
	struct work                  form = { .kernel = f->kernel, .kind = WORK_SAGA, .needs_call = true };

	for (size_t i = 0; i < ARRAY_LEN(active); i++) {
		struct query q = query_of(&saga_type, SAGA_BY_STATE, value_int(active[i]), 1);
		enum rc      rc = work_query_due(s, f, &q, &form, e);

		if (rc)
			return rc;
	}
	return RC_OK;
}

static enum rc load(struct session *s, struct work *w, struct saga *ret, struct err *e)
{
	bool    is_there;
	enum rc rc = session_find(s, &saga_type, w->key, ret, &is_there, e);

	w->is_lost = !is_there || !saga_is_active(ret->state);
	if (!rc && !w->is_lost)
		session_carry(s, ret->trace);
	return rc;
}

/* RC_OK and is_lost when the claim no longer stands. */
static enum rc load_claimed(struct session *s, struct work *w, struct saga *ret, struct err *e)
{
	enum rc rc = load(s, w, ret, e);

	if (rc || w->is_lost || HAS_DEFECT(IGNORE_FENCE))
		return rc;
	w->is_lost = ret->fence != w->fence || !str_eq(ret->owner, kernel_options(w->kernel)->node);
	return RC_OK;
}

/* Also by the monotonic clock: a node that slept could otherwise take for its own a lease that another has got. */
static void note_lease(struct work *w, const struct saga_rule *r)
{
	int64_t lease_ms = r->saga->due_ms - r->now_ms;

	w->claimed_until_ms = r->saga->due_ms;
	w->claimed_until = (struct mono){ clock_mono(kernel_options(w->kernel)->clock).ms + lease_ms };
}

/* Store the intent of the next call; the work keeps a copy to call with. */
static void put_intent(struct session *s, struct work *w, const struct saga_rule *r)
{
	struct err ignored = { 0 };

	if (saga_rule_fits(r->saga, r->kind, &ignored)) {
		w->saga_todo = SAGA_TODO_NOTHING; /* settling parks it, and says why */
		r->saga->due_ms = r->now_ms + kernel_span_ms(w->kernel, r->lease_ms);
	} else {
		w->saga_todo = saga_rule_intend(r);
	}
	note_lease(w, r);
	session_put(s, &saga_type, r->saga);
	record_copy(&saga_type, &w->saga, r->saga, &w->arena);
}

static enum rc saga_claim(struct session *s, struct work *w, struct err *e)
{
	struct saga      saga;
	struct saga_rule r;
	enum rc          rc = load(s, w, &saga, e);

	w->is_lost = !rc && (w->is_lost || saga.due_ms > session_now(s).ms);
	if (rc || w->is_lost)
		return rc;
	saga.owner = kernel_options(w->kernel)->node;
	w->fence = ++saga.fence;
	r = saga_rule_for(s, &saga);
	put_intent(s, w, &r);
	w->is_claimed = true;
	return RC_OK;
}

static enum rc saga_extend(struct session *s, struct work *w, struct err *e)
{
	struct saga      saga;
	struct saga_rule r;
	enum rc          rc = load_claimed(s, w, &saga, e);

	if (rc || w->is_lost)
		return rc;
	r = saga_rule_for(s, &saga);
	saga.due_ms = r.now_ms + (saga_rule_fits(&saga, r.kind, NULL) ? kernel_span_ms(w->kernel, r.lease_ms)
	                                                              : saga_rule_lease(&r, w->saga_todo));
	note_lease(w, &r);
	session_put(s, &saga_type, &saga);
	return RC_OK;
}

/* Give the claim back between two calls. The intent of the next one is stored already: the next owner checks first, as
 * after a crash. */
static enum rc saga_release(struct session *s, struct work *w, struct err *e)
{
	struct saga saga;
	enum rc     rc = load_claimed(s, w, &saga, e);

	if (rc || w->is_lost)
		return rc;
	saga.owner = STR("");
	saga.due_ms = session_now(s).ms;
	session_put(s, &saga_type, &saga);
	session_poke(s, NEWS_TO_DO);
	return RC_OK;
}

/* --- perform --- */

/* A failure without a message gets one. */
static struct err complete(const struct err *e, enum rc rc)
{
	struct err whole = *e;

	if (!whole.msg[0])
		rc_ignore(err_set(&whole, rc, "%s", rc_text(rc))); /* noted there */
	whole.rc = rc;
	return whole;
}

static int64_t now_of(const struct work *w)
{
	return clock_now(kernel_options(w->kernel)->clock).ms;
}

/* Whatever went wrong with a check, it has not answered: no reason to go back while there are tries. */
static enum rc check(struct work *w, const struct saga_step *step)
{
	enum rc rc = step->check(&w->saga_call, &w->has_happened, &w->failure);

	if (!rc)
		return RC_OK;
	rc = rc == RC_TIMEOUT || rc == RC_LIMITED ? rc : RC_UNAVAILABLE;
	w->failure.rc = rc;
	return err_wrap(&w->failure, rc, "cannot tell whether it has happened");
}

/* A call may last as long as its time-out, and must be over when somebody else takes over: is enough lease left? */
static enum rc check_time(struct work *w, const struct saga_step *step)
{
	int64_t needed_ms = kernel_span_ms(w->kernel, saga_step_timeout(step) + SAGA_SKEW_MAX_MS);

	if (now_of(w) + needed_ms > w->claimed_until_ms ||
	    clock_mono(kernel_options(w->kernel)->clock).ms + needed_ms > w->claimed_until.ms)
		return err_set(&w->failure, RC_UNAVAILABLE, "too little of the lease was left for the call");
	return RC_OK;
}

static enum rc call_step(struct work *w, const struct saga_step *step)
{
	enum rc rc = check_time(w, step);

	if (rc)
		return rc;
	if (w->saga_todo == SAGA_TODO_UNDO)
		return step->undo(&w->saga_call, &w->failure);
	if (w->saga_todo == SAGA_TODO_CHECK) {
		if ((rc = check(w, step)) || w->has_happened || (rc = check_time(w, step)))
			return rc;
		w->saga_call.now_ms = now_of(w);
	}
	return step->act(&w->saga_call, &w->failure);
}

static void saga_perform(struct work *w)
{
	const struct saga_kind *kind = kernel_saga(w->kernel, w->saga.kind);
	const struct saga_step *step;
	enum rc                 rc;

	w->has_failed = w->has_happened = false;
	err_clear(&w->failure);
	if (w->saga_todo == SAGA_TODO_NOTHING)
		return;
	assert(kind); /* otherwise the claim would have said: nothing */
	step = &kind->steps[w->saga.step];
	w->saga_call = (struct saga_call){
		.saga = &w->saga,
		.key = str_format(&w->arena, "%.*s/%s", STR_ARG(w->saga.id), step->name),
		.data = w->saga.data,
		.arena = &w->arena,
		.world = kind->world,
		.now_ms = now_of(w),
		.timeout_ms = saga_step_timeout(step),
	};
	rc = call_step(w, step);
	if (!rc && saga_check_object(w->saga_call.data, "the data it gave back", &w->failure))
		rc = w->failure.rc;
	w->has_failed = rc != RC_OK;
	if (w->has_failed)
		w->failure = complete(&w->failure, rc);
}

/* --- settle --- */

static struct saga_outcome outcome_of(struct session *s, const struct work *w)
{
	struct arena *a = session_arena(s);

	return (struct saga_outcome){ .has_failed = w->has_failed || w->is_refused,
		                      .rc = w->failure.rc,
		                      .error = str_dup(a, str_from(w->failure.msg)),
		                      .data = str_dup(a, w->saga_call.data) };
}

/* How long to wait should this have been a failed try. */
static int64_t draw_backoff(struct work *w, const struct saga_rule *r)
{
	const struct saga_step *step = &r->kind->steps[r->saga->step];

	return kernel_backoff(w->kernel, step->backoff_ms ? step->backoff_ms : SAGA_BACKOFF_MS,
	                      step->backoff_max_ms ? step->backoff_max_ms : SAGA_BACKOFF_MAX_MS, r->saga->tries);
}

/* It has come to an end. A refusal by on_end undoes all of this transaction; saga_refuse() notes it in another. */
static enum rc finish(struct session *s, struct work *w, const struct saga_rule *r, bool asks_on_end, struct err *e)
{
	struct err refusal = { 0 };
	enum rc    rc;

	session_put(s, &saga_type, r->saga);
	if ((rc = saga_tell_end(s, r->kind, r->saga, e)))
		return rc;
	if (!asks_on_end || !r->kind || !r->kind->on_end)
		return RC_OK;
	rc = r->kind->on_end(s, r->saga, &refusal);
	if (!rc || session_has_store_failed(s, rc))
		return err_pass(e, rc, &refusal);
	w->is_refused = true;
	w->failure = complete(&refusal, rc);
	return err_set(e, rc, "saga %.*s: its end was refused: %s", STR_ARG(r->saga->id), w->failure.msg);
}

/* Store what the rules have made of the outcome. */
static enum rc save(struct session *s, struct work *w, const struct saga_rule *r, enum saga_next next, bool asks_on_end,
                    struct err *e)
{
	switch (next) {
	case SAGA_NEXT_CALL:
		put_intent(s, w, r);
		w->has_more = true;
		return RC_OK;
	case SAGA_NEXT_WAIT:
		session_put(s, &saga_type, r->saga);
		session_poke(s, NEWS_TO_DO); /* it may be due before what the finder sleeps for */
		return RC_OK;
	case SAGA_NEXT_END: return finish(s, w, r, asks_on_end, e);
	}
	return RC_INTERNAL;
}

static enum rc saga_settle(struct session *s, struct work *w, struct err *e)
{
	struct saga         saga;
	struct saga_rule    r;
	struct saga_outcome o;
	struct err          why = { 0 };
	enum rc             rc = load_claimed(s, w, &saga, e);

	if (rc || w->is_lost)
		return rc;
	r = saga_rule_for(s, &saga);
	if (saga_rule_fits(&saga, r.kind, &why)) {
		saga_rule_park(&r, str_dup(r.arena, str_from(why.msg)));
		return finish(s, w, &r, false, e);
	}
	o = outcome_of(s, w);
	r.backoff_ms = o.has_failed ? draw_backoff(w, &r) : 0;
	return save(s, w, &r, saga_rule_settle(&r, &o), true, e);
}

/* Its end was refused. If that parks it, on_end is not asked again: a person has to act. */
static enum rc saga_refuse(struct session *s, struct work *w, struct err *e)
{
	struct saga         saga;
	struct saga_rule    r;
	struct saga_outcome o;
	enum rc             rc = load_claimed(s, w, &saga, e);

	if (rc || w->is_lost)
		return rc;
	r = saga_rule_for(s, &saga);
	o = outcome_of(s, w);
	r.backoff_ms = draw_backoff(w, &r);
	return save(s, w, &r, saga_rule_refuse(&r, &o), false, e);
}

const struct work_ops saga_work = { .find = saga_find,
	                            .claim = saga_claim,
	                            .perform = saga_perform,
	                            .settle = saga_settle,
	                            .refuse = saga_refuse,
	                            .extend = saga_extend,
	                            .release = saga_release };
