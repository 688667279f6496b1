/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_api.c - the routes of reports: the costs of a month, and what one lease cost.
 *
 * A thread asks the cloud for the costs of a month and adds them up while the caller waits: the calls block.
 */
#include "base/buf.h"
#include "base/json.h"
#include "domain/ports/cloud.h"
#include "http/api/blocking.h"
#include "http/api/ops.h"
#include "http/api/rights.h"
#include "service/cost/cost_report.h"
#include "service/cost/statement.h"

struct report_work {
	struct cost_report_call call;
	struct buf              csv; /* the answer */
};

static enum rc make_report(struct request *r UNUSED, void *arg, struct err *e)
{
	struct report_work *w = arg;
	enum rc             rc;

	buf_init(&w->csv, REPORT_BYTES_MAX);
	rc = cost_report_make(&w->call, &w->csv, e);
	if (rc)
		buf_fini(&w->csv);
	return rc;
}

static void reply_report(struct request *r)
{
	struct report_work *w = r->arg;

	request_header(r, "Content-Disposition", "attachment; filename=\"cost-report-%04d-%02d.csv\"",
	               w->call.month.year, w->call.month.month);
	request_reply_taken(r, 200, "text/csv; charset=utf-8", &w->csv);
}

void handle_report_costs(struct request *r)
{
	const struct api_options *o = &r->api->options;
	struct report_work       *w = NEW_OF(r, struct report_work);
	struct str                month;
	int                       by;

	if (!request_is_good(r,
	                     request_query(r, "month", &month, &r->e) ||
	                             (!cost_month_parse(month, &w->call.month) &&
	                              err_set(&r->e, RC_INVALID, "month must be yyyy-MM, such as 2026-10, not '%.*s'",
	                                      STR_ARG(month))) ||
	                             ops_read_word(r, "by", cost_report_by_names, COST_BY_COUNT,
	                                           "group, owner, template, lease or day", &by, &r->e) ||
	                             request_query(r, "group", &w->call.group, &r->e) ||
	                             ((!o->cloud || !o->cloud->costs) &&
	                              err_set(&r->e, RC_UNAVAILABLE, "there is no cloud here to ask for costs"))))
		return;
	w->call.by = by < 0 ? COST_BY_GROUP : (enum cost_report_by)by;
	w->call.store = o->store;
	w->call.costs = o->cloud->costs;
	w->call.now = (struct wall){ ops_now_ms(r) };
	blocking_start(r, BLOCKING_REPORT, make_report, reply_report, w);
}

/* The same for people and their programs. */
HANDLER(session_costs, handle_report_costs(r))

/* --- statements --- */

struct statement_view {
	struct statement st; /* first: the transaction's argument */
	struct str       owner_email;
	bool             is_csv;
};

static enum rc read_format(struct request *r, bool *ret_is_csv, struct err *e)
{
	int     format;
	enum rc rc = ops_read_word(r, "format", (const char *const[]){ "json", "csv" }, 2, "json or csv", &format, e);

	*ret_is_csv = format == 1;
	return rc;
}

static void put_statement(struct json_out *o, struct request *r UNUSED, const void *thing)
{
	statement_write_json(thing, o);
}

static void on_statement(struct request *r)
{
	const struct statement_view *v = r->arg;

	if (request_failed(r))
		return;
	if (!v->is_csv) {
		view_reply(r, 200, put_statement, &v->st);
		return;
	}
	buf_reset(&r->page); /* it may be called again */
	statement_write_csv(&v->st, &r->page);
	buf_reset(&r->call->headers);
	request_header(r, "Content-Disposition", "attachment; filename=\"%.*s.csv\"", STR_ARG(v->st.uuid));
	r->page_status = 200;
	r->page_type = "text/csv; charset=utf-8";
}

void handle_statement_show(struct request *r)
{
	struct statement_view *v = arena_alloc(&r->call->arena, sizeof(*v));

	r->arg = v;
	if (request_is_good(r, ops_read_id(r, "lease", &v->st.uuid, &r->e) || read_format(r, &v->is_csv, &r->e)))
		request_submit_page(r, statement_get, &v->st, on_statement);
}

/* The lease's id names its owner; a statement that is another's is not there. */
static enum rc get_owned(struct session *s, void *arg, struct err *e)
{
	struct statement_view *v = arg;
	struct str             uuid = v->st.uuid;
	enum rc                rc = statement_get(s, &v->st, e);

	if (!rc && !str_eq_nocase(v->st.user_email, v->owner_email))
		rc = err_set(e, RC_NOT_FOUND, "there is no statement of lease %.*s of %.*s", STR_ARG(uuid),
		             STR_ARG(v->owner_email));
	v->st.uuid = uuid; /* for the next try */
	return rc;
}

void handle_lease_statement(struct request *r)
{
	struct statement_view *v = arena_alloc(&r->call->arena, sizeof(*v));

	r->arg = v;
	if (request_is_good(r, read_format(r, &v->is_csv, &r->e)) && rights_own_lease(r, &v->owner_email, &v->st.uuid))
		request_submit_page(r, get_owned, v, on_statement);
}
