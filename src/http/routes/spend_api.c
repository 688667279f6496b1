/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spend_api.c - what a running lease has spent so far, by service and by day: the statement of a lease that has not
 * ended.
 *
 * A thread asks the cloud while the caller waits: the calls block. Days are whole: the first one begins at the midnight
 * before the lease, as in the monitor's figures.
 */
#include "base/json.h"
#include "domain/lease.h"
#include "domain/ports/cloud.h"
#include "http/api/blocking.h"
#include "http/api/ops.h"
#include "http/api/rights.h"
#include "http/api/view.h"
#include "service/cost/cost_report.h"
#include "service/cost/statement.h"
#include "service/lease/leases.h"

struct spend_work {
	struct lease_call       call;
	struct statement        st;
	struct statement_asking how;
	struct store           *store;
	int64_t                 now_ms;
};

static void set_window(struct spend_work *w)
{
	const struct lease *l = &w->call.lease;
	int64_t             now_ms = w->now_ms > l->start_ms ? w->now_ms : l->start_ms;
	int64_t             oldest_ms;

	w->st = (struct statement){ .uuid = l->uuid, .account_id = l->account_id, .budget = l->max_spend };
	w->st.from_ms = l->start_ms - l->start_ms % DAY_MS;
	w->st.to_ms = now_ms - now_ms % DAY_MS + DAY_MS;
	oldest_ms = w->st.to_ms - (int64_t)STATEMENT_DAYS_MAX * DAY_MS;
	if (w->st.from_ms < oldest_ms)
		w->st.from_ms = oldest_ms;
}

static enum rc ask_spend(struct request *r, void *arg, struct err *e)
{
	struct spend_work *w = arg;
	int64_t           *days;
	enum rc            rc = store_run(w->store, lease_get, &w->call, &r->call->arena, e);

	if (rc)
		return rc;
	if (w->call.lease.end_ms)
		return err_set(e, RC_NOT_FOUND, "lease %.*s has ended: its statement says what it cost",
		               STR_ARG(w->call.uuid));
	if (!w->call.lease.start_ms || !w->call.lease.account_id.n)
		return err_set(e, RC_NOT_FOUND, "lease %.*s has not started, so it has spent nothing",
		               STR_ARG(w->call.uuid));
	set_window(w);
	return statement_ask(&w->st, &w->how, &r->call->arena, &days, e);
}

PUT_OF(put_spend, struct spend_work, w, member_str("lease", w->st.uuid), member_str("account_id", w->st.account_id),
       member_at("from", w->st.from_ms), member_at("to", w->st.to_ms), member_micro("total_usd", w->st.total),
       member_if_any(member_micro("budget_usd", w->st.budget)), member_word("currency", "USD"),
       member_at("complete_until", w->st.complete_until_ms < w->now_ms ? w->st.complete_until_ms : w->now_ms),
       member_raw("rows", w->st.rows), member_raw("days", w->st.days))

static void reply_spend(struct request *r)
{
	view_reply(r, 200, put_spend, r->arg);
}

void handle_lease_spend(struct request *r)
{
	const struct api_options *o = &r->api->options;
	struct spend_work        *w = NEW_OF(r, struct spend_work);

	if (!rights_own_lease(r, &w->call.owner_email, &w->call.uuid) ||
	    !request_is_good(r, (!o->cloud || !o->cloud->costs) &&
	                                err_set(&r->e, RC_UNAVAILABLE, "there is no cloud here to ask for costs")))
		return;
	w->call.by = r->by;
	w->store = o->store;
	w->how.costs = o->cloud->costs;
	w->now_ms = ops_now_ms(r);
	blocking_start(r, BLOCKING_REPORT, ask_spend, reply_spend, w);
}
