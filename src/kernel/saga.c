/* SPDX-License-Identifier: Apache-2.0 */
/*
 * saga.c - starting sagas, and what operators can see and order.
 *
 * An order is one transaction: it reads the saga, lets saga_rule.c decide, stores what comes out and an event that says
 * who wanted it and why. An order does not wait for a call that is under way: it takes the saga away from its owner
 * (the fence grows), so the outcome of that call is refused when it comes.
 *
 * Always true:
 *   1. Every order that changed something is in the event log with its actor, request and reason.   [obey()]
 *   2. Nothing is called from here; the next owner does that.                                      [saga_run.c]
 */
#include "kernel/saga.h"

#include <assert.h>

#include "base/json.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/kernel_private.h"
#include "kernel/saga_rule.h"

enum { PRUNE_SAGAS = 40 };

/* --- events --- */

/* Who is told what, and on whose behalf. */
struct saga_news {
	const char *type; /* of the event */
	struct str  step; /* its name */
	struct str  actor, request_id, reason;
};

static enum rc tell(struct session *s, const struct saga *saga, const struct saga_news *news, struct err *e)
{
	return session_tell(s, news->type, saga->subject, news->actor, news->request_id,
	                    JSON_OF(session_arena(s), member_str("sagaId", saga->id), member_str("kind", saga->kind),
	                            member_str("step", news->step), member_word("state", saga_state_names[saga->state]),
	                            member_if_any(member_str("reason", news->reason)),
	                            member_if_any(member_str("lastError", saga->last_error)),
	                            member_if_any(member_raw("leftovers", saga->leftovers))),
	                    e);
}

enum rc saga_tell_end(struct session *s, const struct saga_kind *kind, const struct saga *saga, struct err *e)
{
	static const char *const types[SAGA_STATE_COUNT] = {
		[SAGA_DONE] = "SagaDone", [SAGA_UNDONE] = "SagaUndone", [SAGA_PARKED] = "SagaParked"
	};
	struct arena    *a = session_arena(s);
	struct saga_news news = { .type = types[saga->state],
		                  .step = saga_rule_step_name(saga, kind, a),
		                  .actor = str_format(a, "saga/%.*s", STR_ARG(saga->kind)),
		                  .reason = saga->reason };

	assert(news.type);
	return tell(s, saga, &news, e);
}

/* --- start --- */

enum rc saga_check_object(struct str text, const char *what, struct err *e)
{
	CLEANUP(json_freep) json_t *object = NULL;
	enum rc                     rc;

	if (text.n > SAGA_DATA_MAX)
		return err_set(e, RC_TOO_LARGE, "%s has %zu bytes; the limit is %d", what, text.n, SAGA_DATA_MAX);
	if ((rc = json_parse(text, &object, e)))
		return err_wrap(e, rc, "%s", what);
	if (!json_is_object(object))
		return err_set(e, RC_INVALID, "%s must be a JSON object", what);
	return RC_OK;
}

struct saga_rule saga_rule_for(struct session *s, struct saga *saga)
{
	struct kernel *k = kernel_of(s);

	return (struct saga_rule){ .kind = kernel_saga(k, saga->kind),
		                   .saga = saga,
		                   .now_ms = session_now(s).ms,
		                   .scale = kernel_span_ms(k, 1),
		                   .lease_ms = kernel_options(k)->lease_ms,
		                   .arena = session_arena(s) };
}

/* The table itself is right: a mistake in it is found by the first saga that is started. */
static enum rc check_kind(const struct saga_kind *kind, const char *name, struct err *e)
{
	if (!kind)
		return err_set(e, RC_INVALID, "there is no saga of the kind '%s'", name);
	if (kind->step_count < 1 || kind->step_count > SAGA_STEPS_MAX)
		return err_set(e, RC_INTERNAL, "the saga '%s' has %zu steps, not 1 to %d", name, kind->step_count,
		               SAGA_STEPS_MAX);
	for (size_t i = 0; i < kind->step_count; i++)
		if (!kind->steps[i].name[0] || strlen(kind->steps[i].name) > SAGA_STEP_NAME_MAX || !kind->steps[i].act)
			return err_set(e, RC_INTERNAL,
			               "the saga '%s': step %zu needs a name of 1 to %d bytes and an act", name, i + 1,
			               SAGA_STEP_NAME_MAX);
	return RC_OK;
}

static enum rc check_new(const struct saga *saga, struct err *e)
{
	static const int texts[] = { SAGA_F_ID, SAGA_F_SUBJECT, SAGA_F_ACTOR };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const struct record_field *f = &saga_type.fields[texts[i]];
		size_t                     n = record_value(&saga_type, texts[i], saga).text.n;

		if ((!n && !f->is_optional) || n > f->max)
			return err_set(e, RC_INVALID, "a saga's %s has %zu bytes, not %d to %u", f->name, n,
			               f->is_optional ? 0 : 1, f->max);
	}
	return saga_check_object(saga->input, "the input", e);
}

enum rc session_start(struct session *s, const char *kind, struct str id, struct str subject, struct str input,
                      struct str actor, struct err *e)
{
	struct arena    *a = session_arena(s);
	struct saga      saga = { .id = str_dup(a, id),
		                  .kind = str_dup(a, str_from(kind)),
		                  .subject = str_dup(a, subject),
		                  .input = str_dup(a, input.n ? input : STR("{}")),
		                  .data = STR("{}"),
		                  .actor = str_dup(a, actor),
		                  .trace = session_trace(s) };
	struct saga      other;
	struct saga_rule r = saga_rule_for(s, &saga);
	bool             is_there;
	enum rc          rc;

	if ((rc = check_kind(r.kind, kind, e)) || (rc = check_new(&saga, e)))
		return err_wrap(e, rc, "saga %.*s", STR_ARG(id));
	if ((rc = session_find(s, &saga_type, saga.id, &other, &is_there, e)))
		return rc;
	if (is_there)
		return err_set(e, RC_CONFLICT, "there is a saga %.*s already, of the kind '%.*s'", STR_ARG(id),
		               STR_ARG(other.kind));
	saga_rule_start(&r);
	session_put(s, &saga_type, &saga);
	session_poke(s, NEWS_TO_DO);
	return tell(s, &saga,
	            &(struct saga_news){
	                    .type = "SagaStarted", .step = saga_rule_step_name(&saga, r.kind, a), .actor = saga.actor },
	            e);
}

/* --- seeing --- */

/* The next due first; those that have come to an end, and those of one subject: the newest first. */
enum rc saga_list(struct session *s, void *arg, struct err *e)
{
	struct saga_list *l = arg;
	struct query      q = query_of(&saga_type, QUERY_ALL, value_int(0), l->limit);

	q.cursor = l->cursor;
	q.is_descending = true;
	assert(!(l->has_state && l->subject.n));
	assert(l->limit >= 1 && l->limit <= QUERY_LIMIT_MAX);
	if (l->has_state) {
		q.index = SAGA_BY_STATE;
		q.hash = value_int(l->state);
		q.is_descending = !saga_is_active(l->state);
	} else if (l->subject.n) {
		q.index = SAGA_BY_SUBJECT;
		q.hash = value_text(l->subject);
	}
	return session_query(s, &q, &l->page, e);
}

enum rc saga_get(struct session *s, void *arg, struct err *e)
{
	struct saga *saga = arg;

	return session_get(s, &saga_type, saga->id, saga, e);
}

enum rc saga_is_under_way(struct session *s, struct str id, bool *ret, struct err *e)
{
	struct saga saga;
	bool        is_there = false;
	enum rc     rc = id.n ? session_find(s, &saga_type, id, &saga, &is_there, e) : RC_OK;

	*ret = is_there && saga_is_active(saga.state);
	return rc;
}

TXN(saga_count, session_count_each(s, &saga_type, SAGA_BY_STATE, SAGA_OPEN_STATES, arg, e))

/* --- actions of a person --- */

enum order { RETRY, SKIP, ABORT };

static enum rc apply(const struct saga_rule *r, enum order order, struct str reason, enum saga_next *ret, struct err *e)
{
	switch (order) {
	case RETRY: *ret = SAGA_NEXT_WAIT; return saga_rule_retry(r, e);
	case SKIP: return saga_rule_skip(r, ret, e);
	case ABORT: return saga_rule_abort(r, reason, ret, e);
	}
	return RC_INTERNAL;
}

/* It is stored with an event of the order, and of the end if this is it. A retry needs no reason and no known steps. */
static enum rc obey(struct session *s, struct saga_action *o, enum order order, struct err *e)
{
	static const char *const types[] = { "SagaRetried", "SagaSkipped", "SagaAborted" };
	struct saga_news         news = {
		        .type = types[order], .actor = o->actor, .request_id = o->request_id, .reason = o->reason
	};
	struct saga_rule r;
	struct str       reason;
	enum saga_next   next;
	enum rc          rc;

	if (order != RETRY && (!str_trim(o->reason).n || o->reason.n > ERROR_MAX))
		return err_set(e, RC_INVALID, "the reason has %zu bytes, not 1 to %d", o->reason.n, ERROR_MAX);
	if ((rc = session_get(s, &saga_type, o->id, &o->saga, e)))
		return rc;
	r = saga_rule_for(s, &o->saga);
	/* The data are as they were written; it is this program that cannot do it. */
	if (order != RETRY && saga_rule_fits(r.saga, r.kind, e))
		return err_wrap(e, RC_CONFLICT, "saga %.*s", STR_ARG(o->id));
	news.step = saga_rule_step_name(&o->saga, r.kind, r.arena);
	reason = str_format(r.arena, "aborted by %.*s: %.*s", STR_ARG(o->actor), STR_ARG(o->reason));
	if ((rc = apply(&r, order, reason, &next, e)))
		return rc;
	session_put(s, &saga_type, &o->saga);
	session_poke(s, NEWS_TO_DO);
	if ((rc = tell(s, &o->saga, &news, e)) || next != SAGA_NEXT_END ||
	    (rc = saga_tell_end(s, r.kind, &o->saga, e)) || !r.kind->on_end)
		return rc;
	return r.kind->on_end(s, &o->saga, e);
}

TXN(saga_retry, obey(s, arg, RETRY, e))
TXN(saga_skip, obey(s, arg, SKIP, e))
TXN(saga_abort, obey(s, arg, ABORT, e))

/* --- retention --- */

/* An ended saga was due when it ended. */
enum rc saga_prune(struct session *s, void *arg, struct err *e)
{
	struct saga_prune *p = arg;
	struct query       q = query_until(&saga_type, SAGA_BY_STATE, value_int(SAGA_DONE), p->before_ms, PRUNE_SAGAS);
	enum rc            rc;

	p->removed = 0;
	if ((rc = kernel_remove_page(s, &q, &p->removed, e)))
		return rc;
	q.hash = value_int(SAGA_UNDONE);
	return kernel_remove_page(s, &q, &p->removed, e);
}
