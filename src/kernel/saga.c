/* SPDX-License-Identifier: Apache-2.0 */
/*
 * saga.c - starting sagas, and what operators can see and order.
 *
 * An order is one transaction: it reads the saga, lets saga_rule.c decide, stores what comes out and an event that says
 * who wanted it and why. An order does not wait for a call that is under way: it takes the saga away from its owner
 * (the fence grows), so the outcome of that call is refused when it comes.
 *
 * Always true:
 *   1. Every order that changed something is in the event log with its actor, request and reason.   [save_order()]
 *   2. Nothing is called from here; the next owner does that.                                      [saga_run.c]
 */
#include "kernel/saga.h"

#include <assert.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/saga_ops.h"
#include "kernel/saga_rule.h"

enum { NEWS_MAX = 16384, PRUNE_SAGAS = 40 };

/* --- events --- */

static void put_if_any(struct json_out *o, const char *name, struct str text)
{
	if (text.n)
		json_put_str(o, name, text);
}

static struct str write_detail(struct arena *a, const struct saga *saga, const struct saga_news *news)
{
	struct json_out o;
	struct buf      b;
	struct str      text;

	buf_init(&b, NEWS_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "sagaId", saga->id);
	json_put_str(&o, "kind", saga->kind);
	json_put_str(&o, "step", news->step);
	json_put_str(&o, "state", str_from(saga_state_names[saga->state]));
	put_if_any(&o, "reason", news->reason);
	put_if_any(&o, "lastError", saga->last_error);
	if (saga->leftovers.n)
		json_put_raw(&o, "leftovers", saga->leftovers);
	json_close_object(&o);
	assert(!b.is_full); /* the limits of the record's fields add up to less, also with every character escaped */
	text = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return text;
}

enum rc saga_tell(struct session *s, const struct saga *saga, const struct saga_news *news, struct err *e)
{
	struct event event = {
		.type = str_from(news->type),
		.subject = saga->subject,
		.actor = news->actor,
		.request_id = news->request_id,
		.detail = write_detail(session_arena(s), saga, news),
	};

	return session_emit(s, &event, e);
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
	return saga_tell(s, saga, &news, e);
}

/* --- start --- */

enum rc saga_check_object(struct str text, const char *what, struct err *e)
{
	CLEANUP(json_freep) json_t *object = NULL;
	enum rc                     rc;

	if (text.n > SAGA_DATA_MAX)
		return err_set(e, RC_TOO_LARGE, "%s has %zu bytes; %d are the most", what, text.n, SAGA_DATA_MAX);
	if ((rc = json_parse(text, &object, e)))
		return err_wrap(e, rc, "%s", what);
	if (!json_is_object(object))
		return err_set(e, RC_INVALID, "%s must be a JSON object", what);
	return RC_OK;
}

static enum rc check_length(int field, struct str text, struct err *e)
{
	const struct record_field *f = &saga_type.fields[field];

	if ((!text.n && !f->is_optional) || text.n > f->max)
		return err_set(e, RC_INVALID, "a saga's %s has %zu bytes; right is %d to %u", f->name, text.n,
		               f->is_optional ? 0 : 1, f->max);
	return RC_OK;
}

/* The table itself is right: a mistake in it is found by the first saga that is started. */
static enum rc check_kind(const struct saga_kind *kind, const char *name, struct err *e)
{
	if (!kind)
		return err_set(e, RC_INVALID, "there is no saga of the kind '%s'", name);
	if (kind->step_count < 1 || kind->step_count > SAGA_STEPS_MAX)
		return err_set(e, RC_INTERNAL, "the saga '%s' has %zu steps; right is 1 to %d", name, kind->step_count,
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
	enum rc rc;

	if ((rc = check_length(SAGA_F_ID, saga->id, e)))
		return rc;
	if ((rc = check_length(SAGA_F_SUBJECT, saga->subject, e)))
		return rc;
	if ((rc = check_length(SAGA_F_ACTOR, saga->actor, e)))
		return rc;
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
		                  .actor = str_dup(a, actor) };
	struct saga      other;
	struct saga_rule r = { .kind = kernel_saga(kernel_of(s), saga.kind),
		               .saga = &saga,
		               .now_ms = session_now(s).ms,
		               .scale = kernel_span_ms(kernel_of(s), 1),
		               .arena = a };
	enum rc          rc;

	if ((rc = check_kind(r.kind, kind, e)) || (rc = check_new(&saga, e)))
		return err_wrap(e, rc, "saga %.*s", STR_ARG(id));
	rc = session_get(s, &saga_type, saga.id, &other, NULL);
	if (!rc)
		return err_set(e, RC_CONFLICT, "there is a saga %.*s already, of the kind '%.*s'", STR_ARG(id),
		               STR_ARG(other.kind));
	if (rc != RC_NOT_FOUND)
		return err_set(e, rc, "saga %.*s cannot be read", STR_ARG(id));
	saga_rule_start(&r);
	session_put(s, &saga_type, &saga);
	session_poke(s, NEWS_TO_DO);
	return saga_tell(s, &saga,
	                 &(struct saga_news){ .type = "SagaStarted",
	                                      .step = saga_rule_step_name(&saga, r.kind, a),
	                                      .actor = saga.actor },
	                 e);
}

/* --- seeing --- */

/* The next due first; those that have come to an end, and those of one subject: the newest first. */
enum rc saga_list(struct session *s, void *arg, struct err *e)
{
	struct saga_list *l = arg;
	struct query      q = {
		     .type = &saga_type, .index = QUERY_ALL, .limit = l->limit, .cursor = l->cursor, .is_descending = true
	};

	assert(!(l->has_state && l->subject.n));
	assert(l->limit >= 1 && l->limit <= QUERY_LIMIT_MAX);
	if (l->has_state) {
		q.index = SAGA_BY_STATE;
		q.hash = value_int(l->state);
		q.is_descending = l->state != SAGA_RUNNING && l->state != SAGA_UNDOING;
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

enum rc saga_count(struct session *s, void *arg, struct err *e)
{
	int64_t *counts = arg;

	for (int state = 0; state < SAGA_OPEN_STATES; state++) {
		enum rc rc = session_count(s, &saga_type, SAGA_BY_STATE, value_int(state), &counts[state], e);

		if (rc)
			return rc;
	}
	return RC_OK;
}

/* --- orders --- */

static enum rc check_reason(struct saga_order *o, struct err *e)
{
	if (!str_trim(o->reason).n || o->reason.n > ERROR_MAX)
		return err_set(e, RC_INVALID, "the reason has %zu bytes; right is a text of 1 to %d", o->reason.n,
		               ERROR_MAX);
	return RC_OK;
}

static enum rc load(struct session *s, struct saga_order *o, struct saga_rule *ret, struct err *e)
{
	enum rc rc = session_get(s, &saga_type, o->id, &o->saga, e);

	if (rc)
		return rc;
	*ret = (struct saga_rule){ .kind = kernel_saga(kernel_of(s), o->saga.kind),
		                   .saga = &o->saga,
		                   .now_ms = session_now(s).ms,
		                   .scale = kernel_span_ms(kernel_of(s), 1),
		                   .arena = session_arena(s) };
	return RC_OK;
}

/* The same for orders that need to know the steps. */
static enum rc load_known(struct session *s, struct saga_order *o, struct saga_rule *ret, struct err *e)
{
	enum rc rc = load(s, o, ret, e);

	if (rc)
		return rc;
	if (saga_rule_fits(ret->saga, ret->kind, e)) {
		if (e)
			e->rc = RC_CONFLICT; /* the data are as they were written; it is this program that cannot do it */
		return err_wrap(e, RC_CONFLICT, "saga %.*s", STR_ARG(o->id));
	}
	return RC_OK;
}

/* Store it with an event of the order, and of the end if this was it. */
static enum rc save_order(struct session *s, struct saga_order *o, const struct saga_rule *r, struct saga_news *news,
                          enum saga_next next, struct err *e)
{
	enum rc rc;

	news->actor = o->actor;
	news->request_id = o->request_id;
	news->reason = o->reason;
	session_put(s, &saga_type, &o->saga);
	session_poke(s, NEWS_TO_DO);
	if ((rc = saga_tell(s, &o->saga, news, e)))
		return rc;
	if (next != SAGA_NEXT_END)
		return RC_OK;
	if ((rc = saga_tell_end(s, r->kind, &o->saga, e)))
		return rc;
	return r->kind->on_end ? r->kind->on_end(s, &o->saga, e) : RC_OK;
}

enum rc saga_retry(struct session *s, void *arg, struct err *e)
{
	struct saga_order *o = arg;
	struct saga_rule   r;
	struct saga_news   news = { .type = "SagaRetried" };
	enum rc            rc;

	if ((rc = load(s, o, &r, e)))
		return rc;
	news.step = saga_rule_step_name(&o->saga, r.kind, r.arena);
	if ((rc = saga_rule_retry(&r, e)))
		return rc;
	return save_order(s, o, &r, &news, SAGA_NEXT_WAIT, e);
}

enum rc saga_skip(struct session *s, void *arg, struct err *e)
{
	struct saga_order *o = arg;
	struct saga_rule   r;
	struct saga_news   news = { .type = "SagaSkipped" };
	enum saga_next     next;
	enum rc            rc;

	if ((rc = check_reason(o, e)) || (rc = load_known(s, o, &r, e)))
		return rc;
	news.step = saga_rule_step_name(&o->saga, r.kind, r.arena);
	if ((rc = saga_rule_skip(&r, &next, e)))
		return rc;
	return save_order(s, o, &r, &news, next, e);
}

enum rc saga_abort(struct session *s, void *arg, struct err *e)
{
	struct saga_order *o = arg;
	struct saga_rule   r;
	struct saga_news   news = { .type = "SagaAborted" };
	struct str         reason;
	enum saga_next     next;
	enum rc            rc;

	if ((rc = check_reason(o, e)) || (rc = load_known(s, o, &r, e)))
		return rc;
	news.step = saga_rule_step_name(&o->saga, r.kind, r.arena);
	reason = str_format(r.arena, "aborted by %.*s: %.*s", STR_ARG(o->actor), STR_ARG(o->reason));
	if ((rc = saga_rule_abort(&r, reason, &next, e)))
		return rc;
	return save_order(s, o, &r, &news, next, e);
}

/* --- retention --- */

/* An ended saga was due when it ended. */
enum rc saga_prune(struct session *s, void *arg, struct err *e)
{
	static const enum saga_state ended[] = { SAGA_DONE, SAGA_UNDONE };
	struct saga_prune           *p = arg;

	p->removed = 0;
	for (size_t i = 0; i < ARRAY_LEN(ended); i++) {
		struct query q = { .type = &saga_type,
			           .index = SAGA_BY_STATE,
			           .hash = value_int(ended[i]),
			           .limit = PRUNE_SAGAS,
			           .has_sort_max = true,
			           .sort_max = p->before_ms };
		struct page  page;
		enum rc      rc = session_query(s, &q, &page, e);

		if (rc)
			return rc;
		for (size_t j = 0; j < page.count; j++)
			session_delete(s, &saga_type, record_key(&saga_type, page_record(&page, &saga_type, j)));
		p->removed += page.count;
	}
	return RC_OK;
}
