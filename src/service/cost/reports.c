/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reports.c - the queue that makes statements and the monthly cost report.
 *
 * StatementDue, from a timer, asks what the account spent, by service and day, and stores it; the statement's timer is
 * then set for what comes next, finally for its removal. CostReportDue makes the report of a month and tells that it
 * can be fetched; the table is not stored, because it is made again, with later figures, whenever somebody asks for it.
 *
 * The cloud is asked between two transactions [call_reports()]; all effects are in the one that removes the delivery
 * [settle_reports()]. What fails on its last try is reported as failed, and the next timer is armed anyway: a statement
 * is always removed in the end, and a month without a report is followed by the next.
 */
#include "base/arena.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "domain/lease.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "service/cost/cost_report.h"
#include "service/cost/statement.h"
#include "service/record/lease_records.h"
#include "store/session.h"

enum { REPORT_TRIES = 8 };

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

static bool go_on(void *arg)
{
	struct call *c = arg;

	return c->go_on(c);
}

/* --- asking --- */

static enum rc make_statement(struct call *c, struct findings *f, struct err *e)
{
	struct reports         *r = c->arg;
	struct statement_asking how = { .costs = r->costs, .go_on = go_on, .go_on_arg = c };
	struct str              rest = c->delivery->event.subject; /* "lease/UUID" */
	enum rc                 rc;

	f->statement.uuid = str_eq(str_cut(&rest, '/'), STR("lease")) ? rest : STR("");
	rc = store_read(r->store, statement_get, &f->statement, c->arena, e);
	if (rc == RC_NOT_FOUND)
		return RC_OK; /* removed meanwhile */
	if (rc)
		return rc;
	f->is_there = true;
	f->is_over = clock_now(c->clock).ms >= f->statement.end_ms + (r->kept_ms ? r->kept_ms : STATEMENT_KEPT_MS);
	return f->is_over ? RC_OK : statement_ask(&f->statement, &how, c->arena, &f->day_costs, e);
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
	CLEANUP(buf_fini) struct buf csv = BUF(REPORT_BYTES_MAX);

	read_month(c, &f->month);
	call.month = f->month;
	return cost_report_make(&call, &csv, e);
}

static enum rc call_reports(struct call *c, struct err *e)
{
	struct findings *f = arena_alloc(c->arena, sizeof(*f));
	bool             is_report = is_type(c->delivery, EVENT_COST_REPORT_DUE);
	enum rc          rc = RC_OK;

	c->result = f;
	if (is_report)
		rc = make_report(c, f, e);
	else if (is_type(c->delivery, EVENT_STATEMENT_DUE))
		rc = make_statement(c, f, e);
	f->has_failed = rc && (is_report || f->is_there) && c->delivery->tries >= queue_tries(c->delivery->queue);
	return f->has_failed ? RC_OK : rc;
}

/* --- statements --- */

static enum rc emit_costs(struct session *s, const struct statement *st, struct err *e)
{
	struct arena *a = session_arena(s);

	return session_tell(s, EVENT_COSTS_GENERATED, str_format(a, "lease/%.*s", STR_ARG(st->uuid)), STR("statement"),
	                    STR(""),
	                    JSON_OF(a, member_str("leaseId", st->uuid), member_str("userEmail", st->user_email),
	                            member_str("accountId", st->account_id), member_micro("totalCost", st->total),
	                            member_if_any(member_micro("budget", st->budget)), member_word("currency", "USD"),
	                            member_time("startDate", st->from_ms), member_time("endDate", st->to_ms),
	                            member_word("state", statement_state_names[st->state]),
	                            member_str("hash", st->hash)),
	                    e);
}

/* The figures are for the window that was asked about. When it has grown since, the timer that says so is armed. */
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
	if (st->state >= STATEMENT_FINAL && (rc = cost_shares_change(s, st, SHARES_SETTLE, f->day_costs, e)))
		return rc;
	return emit_costs(s, st, e);
}

/* The cloud has not answered for a long time: it is asked again later. */
static enum rc put_off(struct session *s, const struct statement *st, const struct reports *r, struct err *e)
{
	int64_t due_ms = statement_due_ms(st, r->final_ms, r->kept_ms, session_now(s).ms);
	int64_t later_ms = session_now(s).ms + STATEMENT_AGAIN_MS;
	enum rc rc = statement_arm(s, st, due_ms > later_ms ? due_ms : later_ms, e);

	if (rc)
		return rc;
	return session_tell(s, EVENT_COSTS_FAILED, str_format(session_arena(s), "lease/%.*s", STR_ARG(st->uuid)),
	                    STR("statement"), STR(""),
	                    JSON_OF(session_arena(s), member_str("leaseId", st->uuid),
	                            member_str("accountId", st->account_id)),
	                    e);
}

/* The lease, while its record is kept, says what the statement says. */
static enum rc tell_lease(struct session *s, const struct statement *st, struct err *e)
{
	struct lease l;
	bool         is_there;
	enum rc      rc = session_find(s, &lease_type, st->uuid, &l, &is_there, e);

	if (rc || !is_there || st->state == STATEMENT_PENDING)
		return rc;
	l.cost = st->total;
	l.cost_at_ms = st->complete_until_ms;
	l.cost_state = str_from(statement_state_names[st->state]);
	session_put(s, &lease_type, &l);
	return RC_OK;
}

static enum rc note_statement(struct session *s, const struct call *c, struct err *e)
{
	const struct findings *f = c->result;
	struct reports        *r = c->arg;
	enum statement_state   wanted;
	struct statement       st;
	bool                   is_same, is_there;
	enum rc                rc;

	if (!f->is_there)
		return RC_OK;
	rc = session_find(s, &statement_type, f->statement.uuid, &st, &is_there, e);
	if (rc || !is_there)
		return rc;
	if (f->is_over) {
		session_delete(s, &statement_type, st.uuid);
		return cost_shares_change(s, &st, SHARES_REMOVE, NULL, e);
	}
	if (f->has_failed)
		return put_off(s, &st, r, e);
	if (st.to_ms != f->statement.to_ms)
		return RC_OK;
	is_same = str_eq(st.hash, f->statement.hash);
	wanted = statement_wanted(&f->statement, r->final_ms, session_now(s).ms);
	st.complete_until_ms = f->statement.complete_until_ms;
	if (statement_next(st.state, wanted, is_same, &st.state) && (rc = take_figures(s, &st, f, e)))
		return rc;
	session_put(s, &statement_type, &st);
	if ((rc = tell_lease(s, &st, e)))
		return rc;
	return statement_arm(s, &st, statement_due_ms(&st, r->final_ms, r->kept_ms, session_now(s).ms), e);
}

/* --- the monthly report --- */

static enum rc arm_report(struct session *s, const struct cost_month *month, struct err *e)
{
	struct timer timer = { .name = STR(COST_REPORT_TIMER),
		               .type = STR(EVENT_COST_REPORT_DUE),
		               .subject = STR("report/costs"),
		               .detail = str_format(session_arena(s), "{\"reportMonth\":\"%04d-%02d\"}", month->year,
		                                    month->month),
		               .due_ms = cost_month_due_ms(month) };

	return session_arm(s, &timer, e);
}

/* The month after it. */
static struct cost_month month_after(const struct cost_month *m)
{
	struct cost_month next;

	cost_month_before((struct wall){ m->to_ms + 32 * (int64_t)DAY_MS }, &next);
	return next;
}

enum rc reports_arm(struct session *s, void *arg UNUSED, struct err *e)
{
	struct cost_month month; /* the one whose report is the next to be due */
	struct timer      armed;
	bool              is_there;
	enum rc           rc = session_find(s, &timer_type, STR(COST_REPORT_TIMER), &armed, &is_there, e);

	cost_month_before(session_now(s), &month);
	if (cost_month_due_ms(&month) <= session_now(s).ms)
		month = month_after(&month);
	return rc || is_there ? rc : arm_report(s, &month, e);
}

static enum rc tell_report(struct session *s, const struct findings *f, struct err *e)
{
	char          time[ISO_TIME_SIZE];
	struct str    iso = iso_time(wall_sec(session_now(s)), time); /* yyyy-MM-ddTHH:mm:ssZ */
	struct arena *a = session_arena(s);
	struct str    month = str_format(a, "%04d-%02d", f->month.year, f->month.month);
	const char   *t = iso.p;
	struct str    file = str_format(a, "%04d/%02d/cost-report-%.4s%.2s%.2s-%.2s%.2s%.2s.csv", f->month.year,
	                                f->month.month, t, t + 5, t + 8, t + 11, t + 14, t + 17);

	return session_tell(s, f->has_failed ? EVENT_REPORT_FAILED : EVENT_REPORT_GENERATED, STR("report/costs"),
	                    STR("report"), STR(""),
	                    JSON_OF(a, member_str("reportMonth", month),
	                            member_if(!f->has_failed, member_str("fileName", file)),
	                            member_if(!f->has_failed, member_word("bucketName", "leasehold")),
	                            member_str("timestamp", iso),
	                            member_if(f->has_failed, member_word("logName", "leasehold"))),
	                    e);
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

static enum rc settle_reports(struct session *s, const struct call *c, struct err *e)
{
	if (is_type(c->delivery, EVENT_STATEMENT_DUE))
		return note_statement(s, c, e);
	return is_type(c->delivery, EVENT_COST_REPORT_DUE) ? note_report(s, c, e) : RC_OK;
}

struct queue reports_queue(struct reports *r)
{
	return (struct queue){
		.name = REPORTS_QUEUE, .call = call_reports, .settle = settle_reports, .arg = r, .tries = REPORT_TRIES
	};
}
