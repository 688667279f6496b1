/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reports.c - the queue that makes statements and the monthly cost report.
 *
 * Three kinds of events come here. LeaseTerminated opens a statement. StatementDue, which its timer says, asks what the account spent,
 * day by day, and writes it down; the one timer of a statement is then set for its next stage: final, and at last its removal. CostReportDue
 * makes the report of a month and tells that it can be fetched; the table itself is not kept, because it is made anew, with later
 * figures, whenever somebody asks for it.
 *
 * Asking the cloud happens between two transactions [reports_call()], all effects in the one that removes the delivery
 * [reports_settle()]. A report that fails on its last try is told as failed, and the next month's timer is armed all the same.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "domain/cloud.h"
#include "domain/lease.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "service/cost_report.h"
#include "service/lease_records.h"
#include "service/statement.h"
#include "store/session.h"

enum { REPORT_TRIES = 8, EVENT_DETAIL_MAX = 4096, HASH_BYTES = 32, HASH_HEX = 64, DATE_LENGTH = 10 };

/* What a call found out, for its settling. */
struct findings {
	struct statement  statement;         /* its figures are new */
	bool              is_there, is_over; /* over: kept for long enough */
	struct cost_month month;
	bool              has_failed;
};

static bool is_type(const struct delivery *d, const char *type)
{
	return str_eq(d->event.type, str_from(type));
}

/* "lease/UUID" */
static struct str lease_of(const struct delivery *d)
{
	struct str rest = d->event.subject;

	return str_eq(str_cut(&rest, '/'), STR("lease")) ? rest : STR("");
}

/* --- figures --- */

static void add_row(struct buf *b, int64_t from_ms, int64_t days, int64_t micro_usd)
{
	char            text[ISO_TIME_SIZE];
	struct str      iso = iso_time(from_ms / 1000, text);
	struct json_out o;

	if (b->n > 1)
		buf_add_char(b, ',');
	json_out_init(&o, b);
	json_open_object(&o);
	json_put_str(&o, "from", str_of(iso.p, DATE_LENGTH));
	json_put_int(&o, "days", days);
	json_put_real(&o, "usd", (double)micro_usd / 1e6);
	json_close_object(&o);
}

/* Day by day; a window of more days than rows are kept has rows of several days. */
static enum rc ask_rows(struct call *c, struct statement *st, struct buf *rows, struct err *e)
{
	struct reports *r = c->arg;
	int64_t         days = (st->to_ms - st->from_ms) / DAY_MS;
	int64_t         step = (days + STATEMENT_ROWS_MAX - 1) / STATEMENT_ROWS_MAX;

	st->total = 0;
	st->complete_until_ms = 0;
	for (int64_t from_ms = st->from_ms; from_ms < st->to_ms; from_ms += step * DAY_MS) {
		int64_t            to_ms = from_ms + step * DAY_MS < st->to_ms ? from_ms + step * DAY_MS : st->to_ms;
		struct cloud_spend spend;
		enum rc            rc;

		if (!c->go_on(c))
			return err_set(e, RC_UNAVAILABLE, "the statement was interrupted");
		if ((rc = r->costs->ops->spend(r->costs, st->account_id, from_ms, to_ms, &spend, e)))
			return err_wrap(e, rc, "costs of account %.*s", STR_ARG(st->account_id));
		if (__builtin_add_overflow(st->total, spend.micro_usd, &st->total))
			return err_set(e, RC_TOO_LARGE, "the costs are more than can be counted");
		st->complete_until_ms = spend.complete_until_ms;
		if (spend.micro_usd)
			add_row(rows, from_ms, (to_ms - from_ms) / DAY_MS, spend.micro_usd);
	}
	return RC_OK;
}

static struct str hash_of(const struct statement *st, struct arena *a)
{
	struct str    text = str_format(a, "%.*s %.*s %lld %lld %lld %.*s", STR_ARG(st->uuid), STR_ARG(st->account_id),
	                                (long long)st->from_ms, (long long)st->to_ms, (long long)st->total,
	                                STR_ARG(st->rows));
	unsigned char digest[EVP_MAX_MD_SIZE];
	char          hex[HASH_HEX + 1];

	if (!EVP_Digest(text.p, text.n, digest, NULL, EVP_sha256(), NULL))
		abort(); /* fails only without memory */
	for (int i = 0; i < HASH_BYTES; i++)
		(void)snprintf(hex + (ptrdiff_t)2 * i, 3, "%02x", digest[i]); /* two digits */
	return str_dup(a, str_of(hex, HASH_HEX));
}

static enum rc make_statement(struct call *c, struct findings *f, struct err *e)
{
	struct reports *r = c->arg;
	struct buf      rows;
	enum rc         rc;

	f->statement.uuid = lease_of(c->delivery);
	rc = store_read(r->store, statement_get, &f->statement, c->arena, e);
	if (rc == RC_NOT_FOUND)
		return RC_OK; /* removed meanwhile */
	if (rc)
		return rc;
	f->is_there = true;
	f->is_over = f->statement.state >= STATEMENT_FINAL &&
	             clock_now(c->clock).ms >= f->statement.end_ms + STATEMENT_KEPT_MS;
	if (f->is_over)
		return RC_OK;
	buf_init(&rows, STATEMENT_TEXT_MAX);
	buf_add_char(&rows, '[');
	rc = ask_rows(c, &f->statement, &rows, e);
	buf_add_char(&rows, ']');
	f->statement.rows = str_dup(c->arena, buf_str(&rows));
	buf_fini(&rows);
	f->statement.hash = hash_of(&f->statement, c->arena);
	return rc;
}

static bool go_on(void *arg)
{
	struct call *c = arg;

	return c->go_on(c);
}

/* The month that the timer names; without one, the last. */
static void read_month(const struct call *c, struct cost_month *ret)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	struct str                  text = STR("");

	if (json_parse(c->delivery->event.detail, &detail, NULL) == RC_OK)
		(void)json_get_text(detail, "reportMonth", &text); /* else it is empty */
	if (!cost_month_parse(text, ret))
		cost_month_before(clock_now(c->clock), ret);
}

static enum rc make_report(struct call *c, struct findings *f, struct err *e)
{
	struct reports         *r = c->arg;
	struct cost_report_call call = {
		.store = r->store, .costs = r->costs, .now = clock_now(c->clock), .go_on = go_on, .go_on_arg = c
	};
	struct buf csv;
	enum rc    rc;

	read_month(c, &f->month);
	call.month = f->month;
	buf_init(&csv, REPORT_BYTES_MAX);
	rc = cost_report_make(&call, &csv, e);
	buf_fini(&csv);
	f->has_failed = rc && c->delivery->tries >= queue_tries(c->delivery->queue);
	return f->has_failed ? RC_OK : rc;
}

enum rc reports_call(struct call *c, struct err *e)
{
	struct findings *f = arena_alloc(c->arena, sizeof(*f));

	c->result = f;
	if (is_type(c->delivery, EVENT_STATEMENT_DUE))
		return make_statement(c, f, e);
	if (is_type(c->delivery, EVENT_COST_REPORT_DUE))
		return make_report(c, f, e);
	return RC_OK;
}

/* --- statements --- */

static int64_t or_default(int64_t value, int64_t fallback)
{
	return value ? value : fallback;
}

/* The stage that comes after this state, at its time. */
static enum rc arm_statement(struct session *s, const struct reports *r, const struct statement *st, struct err *e)
{
	int64_t      spread = (int64_t)(str_hash(st->uuid, 0) % STATEMENT_SPREAD_MS), after = STATEMENT_KEPT_MS;
	struct timer timer = { .type = STR(EVENT_STATEMENT_DUE), .detail = STR("{}") };

	if (st->state == STATEMENT_PENDING)
		after = or_default(r->provisional_ms, STATEMENT_PROVISIONAL_MS) + spread;
	else if (st->state == STATEMENT_PROVISIONAL)
		after = or_default(r->final_ms, STATEMENT_FINAL_MS) + spread;
	timer.name = str_format(session_arena(s), "statement/%.*s", STR_ARG(st->uuid));
	timer.subject = str_format(session_arena(s), "lease/%.*s", STR_ARG(st->uuid));
	timer.due_ms = st->end_ms + after;
	return session_arm(s, &timer, e);
}

static enum rc open_statement(struct session *s, const struct call *c, struct err *e)
{
	struct str       uuid = lease_of(c->delivery);
	struct statement st = { 0 };
	struct lease     lease;
	enum rc          rc = session_get(s, &lease_type, uuid, &lease, e);

	if (rc == RC_NOT_FOUND)
		return RC_OK; /* removed meanwhile */
	if (rc)
		return rc;
	if (!lease.start_ms || !lease.end_ms || !lease.account_id.n)
		return RC_OK; /* never began */
	rc = session_get(s, &statement_type, uuid, &st, NULL);
	if (rc != RC_NOT_FOUND)
		return rc; /* the event came again */
	st = (struct statement){ .uuid = uuid,
		                 .user_email = lease.user_email,
		                 .account_id = lease.account_id,
		                 .cost_group = lease.cost_group,
		                 .start_ms = lease.start_ms,
		                 .end_ms = lease.end_ms };
	statement_window(st.start_ms, st.end_ms, &st.from_ms, &st.to_ms);
	session_put(s, &statement_type, &st);
	return arm_statement(s, c->arg, &st, e);
}

static void put_iso(struct json_out *o, const char *name, int64_t ms)
{
	char text[ISO_TIME_SIZE];

	json_put_str(o, name, iso_time(ms / 1000, text));
}

static enum rc emit_costs(struct session *s, const struct statement *st, struct err *e)
{
	struct event    event = { .type = STR(EVENT_COSTS_GENERATED), .actor = STR("statement") };
	struct json_out o;
	struct buf      b;

	buf_init(&b, EVENT_DETAIL_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "leaseId", st->uuid);
	json_put_str(&o, "userEmail", st->user_email);
	json_put_str(&o, "accountId", st->account_id);
	json_put_real(&o, "totalCost", (double)st->total / 1e6);
	json_put_str(&o, "currency", STR("USD"));
	put_iso(&o, "startDate", st->from_ms);
	put_iso(&o, "endDate", st->to_ms);
	json_put_str(&o, "state", str_from(statement_state_names[st->state]));
	json_put_str(&o, "hash", st->hash);
	json_close_object(&o);
	event.subject = str_format(session_arena(s), "lease/%.*s", STR_ARG(st->uuid));
	event.detail = str_dup(session_arena(s), buf_str(&b));
	buf_fini(&b);
	return session_emit(s, &event, e);
}

static enum statement_state wanted_state(const struct statement *st)
{
	return st->state == STATEMENT_PENDING ? STATEMENT_PROVISIONAL : STATEMENT_FINAL;
}

static enum rc note_statement(struct session *s, const struct call *c, struct err *e)
{
	const struct findings *f = c->result;
	struct reports        *r = c->arg;
	struct statement       st;
	enum rc                rc;

	if (!f->is_there)
		return RC_OK;
	rc = session_get(s, &statement_type, f->statement.uuid, &st, NULL);
	if (rc == RC_NOT_FOUND)
		return RC_OK;
	if (rc)
		return err_set(e, rc, "the statement cannot be read");
	if (f->is_over) {
		session_delete(s, &statement_type, st.uuid);
		return RC_OK;
	}
	if (!statement_next(st.state, wanted_state(&st), str_eq(st.hash, f->statement.hash), &st.state))
		return RC_OK;
	st.total = f->statement.total;
	st.complete_until_ms = f->statement.complete_until_ms;
	st.rows = f->statement.rows;
	st.hash = f->statement.hash;
	st.made_ms = session_now(s).ms;
	session_put(s, &statement_type, &st);
	if ((rc = emit_costs(s, &st, e)))
		return rc;
	return arm_statement(s, r, &st, e);
}

/* --- the monthly report --- */

static enum rc arm_report(struct session *s, const struct cost_month *month, struct err *e)
{
	struct timer timer = { .name = STR(COST_REPORT_TIMER),
		               .type = STR(EVENT_COST_REPORT_DUE),
		               .subject = STR("report/costs"),
		               .due_ms = cost_month_due_ms(month) };

	timer.detail = str_format(session_arena(s), "{\"reportMonth\":\"%04d-%02d\"}", month->year, month->month);
	return session_arm(s, &timer, e);
}

/* The month after it. */
static struct cost_month month_after(const struct cost_month *m)
{
	struct cost_month next;

	cost_month_before((struct wall){ m->to_ms + 32 * (int64_t)DAY_MS }, &next);
	return next;
}

/* The one whose report is the next to be due. */
static struct cost_month month_next(int64_t now_ms)
{
	struct cost_month month;

	cost_month_before((struct wall){ now_ms }, &month);
	return cost_month_due_ms(&month) > now_ms ? month : month_after(&month);
}

enum rc reports_arm(struct session *s, void *arg, struct err *e)
{
	struct cost_month month = month_next(session_now(s).ms);
	struct timer      armed;
	enum rc           rc = session_get(s, &timer_type, STR(COST_REPORT_TIMER), &armed, NULL);

	(void)arg;
	if (rc != RC_NOT_FOUND)
		return rc;
	return arm_report(s, &month, e);
}

static enum rc tell_report(struct session *s, const struct findings *f, struct err *e)
{
	struct event event = { .type = f->has_failed ? STR(EVENT_REPORT_FAILED) : STR(EVENT_REPORT_GENERATED),
		               .subject = STR("report/costs"),
		               .actor = STR("report") };
	char         time[ISO_TIME_SIZE];
	struct str   iso = iso_time(wall_sec(session_now(s)), time); /* yyyy-MM-ddTHH:mm:ssZ */

	if (f->has_failed)
		event.detail =
		        str_format(session_arena(s),
		                   "{\"reportMonth\":\"%04d-%02d\",\"timestamp\":\"%s\",\"logName\":\"leasehold\"}",
		                   f->month.year, f->month.month, iso.p);
	else
		event.detail =
		        str_format(session_arena(s),
		                   "{\"reportMonth\":\"%04d-%02d\",\"fileName\":\"%04d/%02d/cost-report-%.4s%.2s%.2s-"
		                   "%.2s%.2s%.2s.csv\",\"bucketName\":\"leasehold\",\"timestamp\":\"%s\"}",
		                   f->month.year, f->month.month, f->month.year, f->month.month, iso.p, iso.p + 5,
		                   iso.p + 8, iso.p + 11, iso.p + 14, iso.p + 17, iso.p);
	return session_emit(s, &event, e);
}

static enum rc note_report(struct session *s, const struct call *c, struct err *e)
{
	const struct findings *f = c->result;
	struct cost_month      next = month_after(&f->month);
	enum rc                rc = tell_report(s, f, e);

	if (rc || !str_eq(c->delivery->event.actor, STR("timer/" COST_REPORT_TIMER)))
		return rc; /* asked for out of turn: the timer is armed already */
	return arm_report(s, &next, e);
}

/* --- the queue --- */

enum rc reports_settle(struct session *s, const struct call *c, struct err *e)
{
	if (is_type(c->delivery, EVENT_LEASE_TERMINATED))
		return open_statement(s, c, e);
	if (is_type(c->delivery, EVENT_STATEMENT_DUE))
		return note_statement(s, c, e);
	if (is_type(c->delivery, EVENT_COST_REPORT_DUE))
		return note_report(s, c, e);
	return RC_OK;
}

struct queue reports_queue(struct reports *r)
{
	return (struct queue){
		.name = REPORTS_QUEUE, .call = reports_call, .settle = reports_settle, .arg = r, .tries = REPORT_TRIES
	};
}
