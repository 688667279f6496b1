/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reports.c - the queue that makes statements and the monthly cost report.
 *
 * Two kinds of events come here. StatementDue, which its timer says, asks what the account spent, by service and day, and writes it down; the
 * one timer of a statement is then set for what comes next, at last for its removal. CostReportDue makes the report of a month and tells that it can be fetched; the table itself is not kept, because it is made anew, with later
 * figures, whenever somebody asks for it.
 *
 * Asking the cloud happens between two transactions [reports_call()], all effects in the one that removes the delivery
 * [reports_settle()]. What fails on its last try is told as failed, and the next timer is armed all the same: a statement is always removed
 * in the end, and a month without a report has a next one.
 */
#include "base/arena.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "service/cost_report.h"
#include "service/cost_shares.h"
#include "service/statement.h"
#include "store/session.h"

enum { REPORT_TRIES = 8, EVENT_DETAIL_MAX = 4096 };

/* What a call found out, for its settling. */
struct findings {
	struct statement  statement; /* its figures are new */
	int64_t          *day_costs;
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

static int64_t or_default(int64_t value, int64_t fallback)
{
	return value ? value : fallback;
}

static int64_t final_ms(const struct reports *r)
{
	return or_default(r->final_ms, STATEMENT_FINAL_MS);
}

static int64_t kept_ms(const struct reports *r)
{
	return or_default(r->kept_ms, STATEMENT_KEPT_MS);
}

static bool go_on(void *arg)
{
	struct call *c = arg;

	return c->go_on(c);
}

static bool is_last_try(const struct call *c)
{
	return c->delivery->tries >= queue_tries(c->delivery->queue);
}

/* --- asking --- */

static enum rc make_statement(struct call *c, struct findings *f, struct err *e)
{
	struct reports         *r = c->arg;
	struct statement_asking how = { .costs = r->costs, .go_on = go_on, .go_on_arg = c };
	enum rc                 rc;

	f->statement.uuid = lease_of(c->delivery);
	rc = store_read(r->store, statement_get, &f->statement, c->arena, e);
	if (rc == RC_NOT_FOUND)
		return RC_OK; /* removed meanwhile */
	if (rc)
		return rc;
	f->is_there = true;
	f->is_over = f->statement.state >= STATEMENT_FINAL &&
	             clock_now(c->clock).ms >= f->statement.end_ms + kept_ms(r);
	if (f->is_over)
		return RC_OK;
	rc = statement_ask(&f->statement, &how, c->arena, &f->day_costs, e);
	f->has_failed = rc && is_last_try(c);
	return f->has_failed ? RC_OK : rc;
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
	f->has_failed = rc && is_last_try(c);
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

static enum rc remove_statement(struct session *s, const struct statement *st, struct err *e)
{
	enum rc rc = cost_shares_remove(s, st, e);

	if (!rc)
		session_delete(s, &statement_type, st->uuid);
	return rc;
}

/* The figures are those of the window that was asked for. When the window has grown since, the timer that says so is armed already. */
static enum rc take_figures(struct session *s, struct statement *st, const struct findings *f, struct err *e)
{
	const struct statement *made = &f->statement;
	enum rc                 rc;

	st->total = made->total;
	st->complete_until_ms = made->complete_until_ms;
	st->rows = made->rows;
	st->days = made->days;
	st->hash = made->hash;
	st->made_ms = session_now(s).ms;
	if (st->state >= STATEMENT_FINAL && (rc = cost_shares_settle(s, st, f->day_costs, e)))
		return rc;
	return emit_costs(s, st, e);
}

/* The cloud could not be asked for long. Later. */
static enum rc put_off(struct session *s, const struct statement *st, const struct reports *r, struct err *e)
{
	struct event event = { .type = STR(EVENT_COSTS_FAILED), .actor = STR("statement") };
	int64_t      due_ms = statement_due_ms(st, final_ms(r), kept_ms(r), session_now(s).ms);
	int64_t      later_ms = session_now(s).ms + STATEMENT_AGAIN_MS;
	enum rc      rc = statement_arm(s, st, due_ms > later_ms ? due_ms : later_ms, e);

	if (rc)
		return rc;
	event.subject = str_format(session_arena(s), "lease/%.*s", STR_ARG(st->uuid));
	event.detail = str_format(session_arena(s), "{\"leaseId\":\"%.*s\",\"accountId\":\"%.*s\"}", STR_ARG(st->uuid),
	                          STR_ARG(st->account_id));
	return session_emit(s, &event, e);
}

static enum rc note_statement(struct session *s, const struct call *c, struct err *e)
{
	const struct findings *f = c->result;
	struct reports        *r = c->arg;
	enum statement_state   wanted;
	struct statement       st;
	bool                   is_same;
	enum rc                rc;

	if (!f->is_there)
		return RC_OK;
	rc = session_get(s, &statement_type, f->statement.uuid, &st, NULL);
	if (rc == RC_NOT_FOUND)
		return RC_OK;
	if (rc)
		return err_set(e, rc, "the statement cannot be read");
	if (f->is_over)
		return remove_statement(s, &st, e);
	if (f->has_failed)
		return put_off(s, &st, r, e);
	if (st.to_ms != f->statement.to_ms)
		return RC_OK;
	is_same = str_eq(st.hash, f->statement.hash);
	wanted = statement_wanted(&f->statement, final_ms(r), session_now(s).ms);
	st.complete_until_ms = f->statement.complete_until_ms;
	if (statement_next(st.state, wanted, is_same, &st.state) && (rc = take_figures(s, &st, f, e)))
		return rc;
	session_put(s, &statement_type, &st);
	return statement_arm(s, &st, statement_due_ms(&st, final_ms(r), kept_ms(r), session_now(s).ms), e);
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
