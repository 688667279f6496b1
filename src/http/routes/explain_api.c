/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_api.c - the routes that explain: for operators any thing, for people their leases, for managers accounts too.
 *
 * Who is only a user reaches no lease but his own, and is told nothing of the server's insides; that is
 * service/explain/explain.c's part.
 */
#include "base/json.h"
#include "domain/lease.h"
#include "http/api/api.h"
#include "http/api/ops.h"
#include "http/api/rights.h"
#include "service/explain/explain.h"

/* Under /api, where somebody asks, in the envelope. */
static void on_explained(struct request *r)
{
	const struct explain *x = r->arg;
	struct json_out       o;

	if (request_failed(r))
		return;
	if (!x->by) {
		request_reply_as(r, 200, "application/json", x->json);
		return;
	}
	o = reply_begin(r);
	JSON_PUT(&o, member_word("status", "success"), member_raw("data", x->json));
	reply_send(r, 200);
}

static struct explain *explain_new(struct request *r)
{
	struct explain *x = NEW_OF(r, struct explain);

	x->route = rights_route;
	x->base_path = r->api->options.base_path;
	x->policy = r->api->options.policy ? rights_policy(r) : NULL;
	r->arg = x;
	return x;
}

void handle_explain(struct request *r)
{
	struct explain *x = explain_new(r);

	x->kind = r->params[0];
	x->id = r->params[1];
	if (!x->id.n || x->id.n > LEASE_ID_MAX)
		request_refuse(r, RC_NOT_FOUND, "no id is empty or so long");
	else
		request_submit(r, explain, x, true, on_explained);
}

void handle_account_explain(struct request *r)
{
	struct explain *x = explain_new(r);

	x->kind = STR("account");
	x->id = r->params[0];
	x->by = &r->by;
	request_submit(r, explain, x, true, on_explained);
}

void handle_lease_explain(struct request *r)
{
	struct explain *x = explain_new(r);

	x->kind = STR("lease");
	x->by = &r->by;
	if (rights_own_lease(r, &x->owner_email, &x->id))
		request_submit(r, explain, x, true, on_explained);
}
