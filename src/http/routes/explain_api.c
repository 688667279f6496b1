/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_api.c - the routes that explain: operators anything, people their leases, managers accounts too.
 *
 * Someone with only the role User reaches only their own leases, and hears nothing about the server's internals:
 * service/explain/explain.c sees to that.
 */
#include "base/json.h"
#include "domain/lease.h"
#include "http/api/api.h"
#include "http/api/ops.h"
#include "http/api/rights.h"
#include "service/explain/explain.h"

/* In the envelope under /api, where a person asks. */
static void on_explained(struct request *r)
{
	const struct explain *x = r->arg;

	if (request_failed(r))
		return;
	if (x->by)
		REPLY(r, 200, member_word("status", "success"), member_raw("data", x->json));
	else
		request_reply_as(r, 200, "application/json", x->json);
}

/* by: NULL for an operator. */
static void submit(struct request *r, struct str kind, struct str owner_email, struct str id, const struct caller *by)
{
	struct explain *x = NEW_OF(r, struct explain);

	*x = (struct explain){ .kind = kind, .id = id, .owner_email = owner_email, .by = by, .route = rights_route };
	x->base_path = r->api->options.base_path;
	x->policy = r->api->options.policy ? rights_policy(r) : NULL;
	r->arg = x;
	if (!id.n || id.n > LEASE_ID_MAX)
		request_refuse(r, RC_NOT_FOUND, "there is no such id: it is empty or too long");
	else
		request_submit(r, explain, x, true, on_explained);
}

HANDLER(explain, submit(r, r->params[0], STR(""), r->params[1], NULL))
HANDLER(account_explain, submit(r, STR("account"), STR(""), r->params[0], &r->by))

void handle_lease_explain(struct request *r)
{
	struct str owner_email, uuid;

	if (rights_own_lease(r, &owner_email, &uuid))
		submit(r, STR("lease"), owner_email, uuid, &r->by);
}
