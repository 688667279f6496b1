/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_api.c - the routes of reports: the costs of a month, and what one lease cost.
 *
 * The costs of a month are asked for and added up while the caller waits, on a thread of libuv, for the cloud's answers block. The struct
 * report_work lives in the call's arena, which stays until the reply.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "domain/cloud.h"
#include "domain/lease.h"
#include "http/jsend.h"
#include "http/ops.h"
#include "http/rights.h"
#include "service/cost_report.h"
#include "service/statement.h"

struct report_work {
	uv_work_t               work;
	struct request         *request;
	struct cost_report_call call;
	struct buf              csv; /* the answer */
	struct err              e;
};

static void run(uv_work_t *work)
{
	struct report_work *w = CONTAINER_OF(work, struct report_work, work);

	rc_ignore(cost_report_make(&w->call, &w->csv, &w->e)); /* noted in e */
}

static void answer(uv_work_t *work, int status)
{
	struct report_work *w = CONTAINER_OF(work, struct report_work, work);
	struct buf          csv = w->csv; /* the call's arena is gone after the reply */

	assert(status == 0); /* nobody cancels it */
	(void)status;
	if (w->e.rc) {
		w->e.code = NULL; /* the cloud's own code is for its callers; ours are a closed list */
		request_fail(w->request, &w->e);
	} else {
		request_header(w->request, "Content-Disposition", "attachment; filename=\"cost-report-%04d-%02d.csv\"",
		               w->call.month.year, w->call.month.month);
		request_reply_as(w->request, 200, "text/csv; charset=utf-8", buf_str(&csv));
	}
	buf_fini(&csv);
}

static enum rc read_month(struct request *r, struct cost_month *ret, struct err *e)
{
	struct str text;
	enum rc    rc = request_query(r, "month", &text, e);

	if (rc)
		return rc;
	if (!cost_month_parse(text, ret))
		return err_set(e, RC_INVALID, "query parameter month must be yyyy-MM, such as 2026-10, not '%.*s'",
		               STR_ARG(text));
	return RC_OK;
}

void handle_report_costs(struct request *r)
{
	const struct api_options *o = api_options(r->api);
	struct report_work       *w = arena_alloc(&r->call->arena, sizeof(*w));
	struct err                e = { 0 };
	enum rc                   rc = read_month(r, &w->call.month, &e);

	if (!rc && (!o->cloud || !o->cloud->costs))
		rc = err_set(&e, RC_UNAVAILABLE, "there is no cloud here that could tell costs");
	if (rc) {
		request_fail(r, &e);
		return;
	}
	w->request = r;
	w->call.store = o->store;
	w->call.costs = o->cloud->costs;
	w->call.now = (struct wall){ ops_now_ms(r) };
	buf_init(&w->csv, REPORT_BYTES_MAX);
	if (uv_queue_work(o->loop, &w->work, run, answer))
		abort(); /* fails only without a callback */
}

/* The same for people and their programs. */
void handle_session_costs(struct request *r)
{
	struct caller caller;

	if (rights_enter(r, &caller))
		handle_report_costs(r);
}

/* --- statements --- */

struct statement_view {
	struct statement st; /* first: the transaction's argument */
	struct str       owner_email;
	bool             is_csv;
};

static enum rc read_format(struct request *r, bool *ret_is_csv, struct err *e)
{
	struct str text;
	enum rc    rc = request_query(r, "format", &text, e);

	if (rc)
		return rc;
	*ret_is_csv = str_eq(text, STR("csv"));
	if (text.n && !*ret_is_csv && !str_eq(text, STR("json")))
		return err_set(e, RC_INVALID, "query parameter format must be json or csv, not '%.*s'", STR_ARG(text));
	return RC_OK;
}

static void reply_csv(struct request *r, const struct statement *st)
{
	struct buf csv;

	buf_init(&csv, REPORT_BYTES_MAX);
	statement_write_csv(st, &csv);
	request_header(r, "Content-Disposition", "attachment; filename=\"%.*s.csv\"", STR_ARG(st->uuid));
	request_reply_as(r, 200, "text/csv; charset=utf-8", buf_str(&csv));
	buf_fini(&csv);
}

static void on_statement(struct request *r)
{
	const struct statement_view *v = r->arg;
	struct json_out              o;

	if (ops_failed(r))
		return;
	if (v->is_csv) {
		reply_csv(r, &v->st);
		return;
	}
	o = reply_begin(r);
	statement_write_json(&v->st, &o);
	reply_send(r, 200);
}

void handle_statement_show(struct request *r)
{
	struct statement_view *v = arena_alloc(&r->call->arena, sizeof(*v));
	struct err             e = { 0 };

	r->arg = v;
	if (ops_read_id(r, "lease", &v->st.uuid, &e) || read_format(r, &v->is_csv, &e))
		request_fail(r, &e);
	else
		request_submit(r, statement_get, &v->st, true, on_statement);
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

static void on_lease_statement(struct request *r)
{
	const struct statement_view *v = r->arg;
	struct json_out              o;

	if (jsend_failed(r))
		return;
	if (v->is_csv) {
		reply_csv(r, &v->st);
		return;
	}
	o = jsend_begin(r);
	json_put_object(&o, "data");
	statement_write_json(&v->st, &o);
	json_close_object(&o);
	reply_send(r, 200);
}

void handle_lease_statement(struct request *r)
{
	struct statement_view *v = arena_alloc(&r->call->arena, sizeof(*v));
	struct caller          by;
	struct err             e = { 0 };

	if (!rights_enter(r, &by))
		return;
	if (lease_id_parse(r->params[0], &r->call->arena, &v->owner_email, &v->st.uuid, &e) ||
	    read_format(r, &v->is_csv, &e)) {
		request_fail(r, &e);
		return;
	}
	if (!rights_own_only(r, &by, v->owner_email))
		return;
	r->arg = v;
	request_submit(r, get_owned, v, true, on_lease_statement);
}
