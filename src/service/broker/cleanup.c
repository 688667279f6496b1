/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cleanup.c - deletes given-back sandboxes at the vendor.
 *
 * Intent is stored (`pending_deletion`) long before; the call can be repeated (already gone counts as done); the
 * outcome is stored after. So a crash between the call and the record repeats a deletion that the vendor answers with
 * "gone". The pace is the operator's: batches, a wait between them, a wait between two deletions.
 *
 * A vendor that does not serve is no fault of the sandbox: when the circuit is open the pass ends and nothing counts.
 */
#include <string.h>

#include "base/arena.h"
#include "service/broker/passes.h"
#include "service/broker/records.h"
#include "service/broker/sandbox_events.h"
#include "store/walk.h"

enum { PAGE = 50 };

struct cleanup {
	const struct pass *p;
	struct arena       work;
	int64_t            deleted, failed, postponed, tried;
	bool               is_stopped; /* the circuit is open, or we are asked to end */
};

struct outcome {
	const struct pass *p;
	struct str         id;
	bool               is_deleted;
	struct str         why;
	bool               is_recorded;
};

static enum rc record_outcome(struct session *s, void *arg, struct err *e)
{
	struct outcome   *o = arg;
	struct sandbox    sandbox;
	enum sandbox_news news;
	bool              is_there;
	enum rc           rc = session_find(s, &sandbox_type, o->id, &sandbox, &is_there, e);

	o->is_recorded = false;
	if (rc || !is_there || sandbox.status != SANDBOX_PENDING_DELETION)
		return rc; /* an operator took it out of our hands meanwhile */
	o->is_recorded = true;
	if (o->is_deleted)
		return sandbox_remove(s, NEWS_SANDBOX_DELETED, &sandbox, &o->p->by, e);
	rc = sandbox_deletion_failed(&sandbox, o->p->settings->deletion_max_attempts,
	                             o->p->settings->deletion_backoff_sec, o->why, session_now(s), e);
	news = sandbox.status == SANDBOX_DELETION_FAILED ? NEWS_SANDBOX_DELETION_FAILED
	                                                 : NEWS_SANDBOX_DELETION_POSTPONED;
	return rc ? rc : sandbox_save(s, news, &sandbox, &o->p->by, e);
}

/* How often it took more than one try, and how long after it was given back. */
static void feed_metrics(const struct pass *p, const struct sandbox *sandbox, bool is_deleted)
{
	int64_t age_sec = wall_sec(clock_now(p->clock)) - sandbox->deletion_requested_at;

	if (!p->metrics)
		return;
	metrics_add(p->metrics, METRIC_CLEANUP_RETRIES, "", sandbox->deletion_retry_count > 0);
	if (is_deleted)
		metrics_observe(p->metrics, METRIC_CLEANUP_LATENCY, "", (double)age_sec);
}

static enum rc delete_one(struct cleanup *c, const struct sandbox *sandbox, struct err *e)
{
	struct err     why = { 0 };
	struct outcome o = { .p = c->p, .id = sandbox->sandbox_id };
	struct sandbox now;
	bool           is_there;
	enum rc        rc;

	arena_reset(&c->work);
	rc = store_find(c->p->store, &sandbox_type, o.id, &c->work, &now, &is_there, e);
	if (rc || !is_there || now.status != SANDBOX_PENDING_DELETION)
		return rc; /* the page may be minutes old: an operator took it out of our hands meanwhile */
	rc = csp_delete(c->p->csp, sandbox->external_id, &why);
	if (rc && why.code && strcmp(why.code, "CIRCUIT_OPEN") == 0) {
		c->is_stopped = true;
		c->postponed++;
		return err_set(e, RC_UNAVAILABLE, "%s", why.msg);
	}
	o.is_deleted = rc == RC_OK;
	o.why = str_from(why.msg);
	if (o.why.n > SANDBOX_TEXT_MAX)
		o.why.n = SANDBOX_TEXT_MAX;
	arena_reset(&c->work);
	rc = store_run(c->p->store, record_outcome, &o, &c->work, e);
	if (!rc && o.is_recorded) {
		c->deleted += o.is_deleted;
		c->failed += !o.is_deleted;
		feed_metrics(c->p, sandbox, o.is_deleted);
	}
	return rc;
}

/* Fails without a word when it has stopped: then the pages behind are not read. */
static enum rc clean_page(const struct page *page, struct arena *a, void *arg, struct err *e)
{
	struct cleanup               *c = arg;
	const struct broker_settings *pace = c->p->settings;
	int64_t                       now_sec = wall_sec(clock_now(c->p->clock));

	(void)a;
	for (size_t i = 0; i < page->count; i++) {
		struct sandbox *sandbox = page_record(page, &sandbox_type, i);
		bool            is_batch_over = c->tried % pace->cleanup_batch_size == 0;
		int64_t pause_ms = is_batch_over ? pace->cleanup_batch_delay_ms : pace->cleanup_sandbox_delay_ms;
		enum rc rc;

		if (!c->is_stopped && sandbox->next_deletion_at <= now_sec)
			c->is_stopped = !pass_wait(c->p, c->tried ? pause_ms : 0);
		if (c->is_stopped || sandbox->next_deletion_at > now_sec) {
			c->postponed++;
			continue;
		}
		c->tried++;
		rc = delete_one(c, sandbox, e);
		if (rc && !c->is_stopped)
			return rc;
	}
	return c->is_stopped ? RC_UNAVAILABLE : RC_OK;
}

enum rc pass_cleanup(const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct cleanup c = { .p = p };
	struct query   q = query_of(&sandbox_type, SANDBOX_BY_STATUS, value_int(SANDBOX_PENDING_DELETION), PAGE);
	enum rc        rc = store_read_pages(p->store, &q, clean_page, &c, e);

	if (c.is_stopped)
		rc = RC_OK;
	if (!rc && e->rc)
		rc = e->rc; /* the circuit opened: what was done is counted, the pass says why it ended */
	pass_count(ret, "deleted", c.deleted, METRIC_CLEANUP_DELETED);
	pass_count(ret, "failed", c.failed, METRIC_CLEANUP_FAILED);
	pass_count(ret, "postponed", c.postponed, METRIC__COUNT);
	arena_fini(&c.work);
	return rc;
}
