/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_api.c - the routes that explain: for operators any thing, for people their leases.
 *
 * Who is only a user reaches no lease but his own, and is told nothing of the server's insides; that is service/explain.c's part.
 */
#include "base/json.h"
#include "domain/caller.h"
#include "domain/lease.h"
#include "http/api.h"
#include "http/jsend.h"
#include "http/ops.h"
#include "http/rights.h"
#include "service/explain.h"

static void on_explained(struct request *r)
{
	const struct explain *x = r->arg;

	if (!ops_failed(r))
		request_reply_as(r, 200, "application/json", x->json);
}

void handle_explain(struct request *r)
{
	struct explain *x = arena_alloc(&r->call->arena, sizeof(*x));
	struct err      e = { 0 };

	x->kind = r->params[0];
	x->id = r->params[1];
	x->base_path = api_options(r->api)->base_path;
	x->policy = api_options(r->api)->policy ? rights_policy(r) : NULL;
	r->arg = x;
	if (!x->id.n || x->id.n > LEASE_ID_MAX) {
		rc_ignore(err_set(&e, RC_NOT_FOUND, "no id is empty or so long")); /* noted in e */
		request_fail(r, &e);
		return;
	}
	request_submit(r, explain, x, true, on_explained);
}

struct lease_question {
	struct explain ask;
	struct caller  by;
};

static void on_lease_explained(struct request *r)
{
	const struct lease_question *q = r->arg;
	struct json_out              o;

	if (jsend_failed(r))
		return;
	o = jsend_begin(r);
	json_put_raw(&o, "data", q->ask.json);
	reply_send(r, 200);
}

void handle_lease_explain(struct request *r)
{
	struct lease_question *q = arena_alloc(&r->call->arena, sizeof(*q));
	struct err             e = { 0 };

	if (!rights_enter(r, &q->by))
		return;
	q->ask.kind = STR("lease");
	q->ask.base_path = api_options(r->api)->base_path;
	q->ask.policy = rights_policy(r);
	q->ask.by = &q->by;
	r->arg = q;
	if (lease_id_parse(r->params[0], &r->call->arena, &q->ask.owner_email, &q->ask.id, &e))
		request_fail(r, &e);
	else if (rights_own_only(r, &q->by, q->ask.owner_email))
		request_submit(r, explain, &q->ask, true, on_lease_explained);
}
