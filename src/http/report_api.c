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

static void on_statement(struct request *r)
{
	struct json_out o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	statement_write_json(r->arg, &o);
	reply_send(r, 200);
}

void handle_statement_show(struct request *r)
{
	struct statement *st = arena_alloc(&r->call->arena, sizeof(*st));
	struct err        e = { 0 };

	r->arg = st;
	if (ops_read_id(r, "lease", &st->uuid, &e))
		request_fail(r, &e);
	else
		request_submit(r, statement_get, st, true, on_statement);
}
