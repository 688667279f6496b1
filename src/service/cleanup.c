/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cleanup.c - deletes given-back sandboxes at the vendor.
 *
 * Intent is stored (`pending_deletion`) long before; the call can be repeated (already gone counts as done); the outcome
 * is stored after. So a crash between the call and the record repeats a deletion that the vendor answers with "gone".
 * The pace is the operator's: batches, a wait between them, a wait between two deletions.
 *
 * A vendor that does not serve is no fault of the sandbox: when the circuit is open the pass ends and nothing counts.
 */
#include <string.h>

#include "base/arena.h"
#include "service/sweep.h"
#include "store/store.h"

enum { PAGE = 50 };

struct cleanup {
	const struct pass *p;
	struct arena       page_arena, next_arena, work;
	struct str         cursor;
	struct page        page;
	int64_t            deleted, failed, postponed, tried;
	bool               is_stopped; /* the circuit is open, or we are asked to end */
};

static enum rc read_pending(struct session *s, void *arg, struct err *e)
{
	struct cleanup *c = arg;
	struct query    q = { .type = &sandbox_type,
		              .index = SANDBOX_BY_STATUS,
		              .hash = value_int(SANDBOX_PENDING_DELETION),
		              .limit = PAGE,
		              .cursor = c->cursor };

	return session_query(s, &q, &c->page, e);
}

struct outcome {
	const struct pass *p;
	struct str         id;
	bool               is_deleted;
	struct str         why;
	bool               is_recorded;
};

static enum rc record_outcome(struct session *s, void *arg, struct err *e)
{
	struct outcome *o = arg;
	struct sandbox  sandbox;
	enum rc         rc = session_get(s, &sandbox_type, o->id, &sandbox, NULL);

	o->is_recorded = false;
	if (rc == RC_NOT_FOUND || (!rc && sandbox.status != SANDBOX_PENDING_DELETION))
		return RC_OK; /* an operator took it out of our hands meanwhile */
	if (rc)
		return err_set(e, rc, "sandbox %.*s cannot be read", STR_ARG(o->id));
	o->is_recorded = true;
	if (o->is_deleted) {
		if ((rc = remove_with_tombstone(s, &sandbox, e)))
			return rc;
		return sandbox_tell_gone(s, NEWS_SANDBOX_DELETED, &sandbox, &o->p->by, e);
	}
	rc = sandbox_deletion_failed(&sandbox, o->p->settings->deletion_max_attempts,
	                             o->p->settings->deletion_backoff_sec, o->why, session_now(s), e);
	if (rc)
		return rc;
	return sandbox_save(s,
	                    sandbox.status == SANDBOX_DELETION_FAILED ? NEWS_SANDBOX_DELETION_FAILED
	                                                              : NEWS_SANDBOX_DELETION_POSTPONED,
	                    &sandbox, &o->p->by, e);
}

static bool is_circuit_open(const struct err *e)
{
	return e->code && strcmp(e->code, "CIRCUIT_OPEN") == 0;
}

static struct str cut(struct str text, size_t max)
{
	return str_of(text.p, text.n < max ? text.n : max);
}

/* The page may be minutes old: is the sandbox still ours to delete? */
struct look {
	struct str id;
	bool       is_pending;
};

static enum rc look_again(struct session *s, void *arg, struct err *e)
{
	struct look   *l = arg;
	struct sandbox sandbox;
	enum rc        rc = session_get(s, &sandbox_type, l->id, &sandbox, NULL);

	l->is_pending = !rc && sandbox.status == SANDBOX_PENDING_DELETION;
	return rc && rc != RC_NOT_FOUND ? err_set(e, rc, "sandbox %.*s cannot be read", STR_ARG(l->id)) : RC_OK;
}

static enum rc delete_one(struct cleanup *c, const struct sandbox *sandbox, struct err *e)
{
	struct err     why = { 0 };
	struct outcome o = { .p = c->p, .id = sandbox->sandbox_id };
	struct look    look = { .id = sandbox->sandbox_id };
	enum rc        rc;

	arena_reset(&c->work);
	rc = store_read(c->p->store, look_again, &look, &c->work, e);
	if (rc || !look.is_pending)
		return rc; /* an operator took it out of our hands meanwhile */
	rc = csp_delete(c->p->csp, sandbox->external_id, &why);
	if (rc && is_circuit_open(&why)) {
		c->is_stopped = true;
		c->postponed++;
		return err_set(e, RC_UNAVAILABLE, "%s", why.msg);
	}
	o.is_deleted = rc == RC_OK;
	o.why = cut(str_from(why.msg), SANDBOX_TEXT_MAX);
	arena_reset(&c->work);
	rc = store_run(c->p->store, record_outcome, &o, &c->work, e);
	if (!rc && o.is_recorded) {
		c->deleted += o.is_deleted;
		c->failed += !o.is_deleted;
	}
	return rc;
}

/* Keep the pace before the next deletion. False: stop. */
static bool pace(struct cleanup *c)
{
	const struct broker_settings *s = c->p->settings;
	bool                          is_batch_over = c->tried % s->cleanup_batch_size == 0;

	if (c->tried == 0)
		return c->p->wait(c->p->wait_arg, 0);
	return c->p->wait(c->p->wait_arg, is_batch_over ? s->cleanup_batch_delay_ms : s->cleanup_sandbox_delay_ms);
}

static enum rc clean_page(struct cleanup *c, int64_t now_sec, struct err *e)
{
	for (size_t i = 0; i < c->page.count; i++) {
		struct sandbox *sandbox = page_record(&c->page, &sandbox_type, i);
		enum rc         rc;

		if (c->is_stopped || sandbox->next_deletion_at > now_sec) {
			c->postponed++;
			continue;
		}
		if (!pace(c)) {
			c->is_stopped = true;
			c->postponed++;
			continue;
		}
		c->tried++;
		rc = delete_one(c, sandbox, e);
		if (rc && !c->is_stopped)
			return rc;
	}
	return RC_OK;
}

static enum rc clean_all(struct cleanup *c, struct err *e)
{
	do {
		struct arena spare = c->page_arena;
		enum rc      rc;

		c->page_arena = c->next_arena; /* the cursor lives in the arena of the page before */
		c->next_arena = spare;
		arena_reset(&c->page_arena);
		rc = store_read(c->p->store, read_pending, c, &c->page_arena, e);
		if (!rc)
			rc = clean_page(c, wall_sec(clock_now(c->p->clock)), e);
		if (rc)
			return rc;
		c->cursor = c->page.next;
	} while (c->cursor.n && !c->is_stopped);
	return RC_OK;
}

enum rc pass_cleanup(const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct cleanup c = { .p = p };
	enum rc        rc = clean_all(&c, e);

	if (!rc && e->rc)
		rc = e->rc; /* the circuit opened: what was done is counted, the pass says why it ended */
	pass_count(ret, "deleted", c.deleted, METRIC_CLEANUP_DELETED);
	pass_count(ret, "failed", c.failed, METRIC_CLEANUP_FAILED);
	pass_count(ret, "postponed", c.postponed, METRIC__COUNT);
	arena_fini(&c.page_arena);
	arena_fini(&c.next_arena);
	arena_fini(&c.work);
	return rc;
}
