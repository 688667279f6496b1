/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_account_api.c - the operators' routes of service accounts: the programs that have a key for /api.
 *
 * A key is in the reply to the call that creates it, and nowhere else. This node's keyring has a change before the
 * reply is sent.
 */
#include "base/json.h"
#include "http/api/auth.h"
#include "http/api/ops.h"

enum { OVERLAP_DEFAULT_MIN = 60 };

PUT_OF(put_account, struct service_account, a, member_str("name", a->name), member_str("email", a->email),
       member_str("scopes", service_scopes_text(a->scopes, &r->call->arena)),
       member_text("description", a->description), member_sec("created_at", a->created_ms),
       member_text("created_by", a->created_by), member_sec("rotated_at", a->rotated_ms),
       member_sec("old_key_until", a->old_until_ms), member_sec("revoked_at", a->revoked_ms))

/* --- reading bodies --- */

static enum rc read_new(struct request *r, struct service_account_call *c, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct str                  scopes;
	enum rc                     rc = ops_read_object(r, "like {\"name\": \"portal\", \"scopes\": \"read,approve\"}",
	                                                 "name scopes description", &body, e);

	if (rc)
		return rc;
	if (!json_take_text(body, "name", &r->call->arena, &c->name) ||
	    !json_take_text(body, "description", &r->call->arena, &c->description))
		return err_set(e, RC_INVALID, "name and description must be texts");
	if (!json_get_text(body, "scopes", &scopes) || !service_scopes_parse(scopes, &c->scopes))
		return err_set(
		        e, RC_INVALID,
		        "scopes: must be one or more of read, approve, pool-admin and cost, separated by commas");
	return RC_OK;
}

static enum rc read_name(struct request *r, struct service_account_call *c, struct err *e)
{
	return ops_read_id(r, "service account", &c->name, e);
}

static enum rc read_overlap(struct request *r, struct service_account_call *c, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	int64_t                     minutes = OVERLAP_DEFAULT_MIN;
	enum rc                     rc = read_name(r, c, e);

	if (!rc && r->call->req.body.n)
		rc = ops_read_object(r, "like {\"overlap_minutes\": 60}", "overlap_minutes", &body, e);
	if (rc)
		return rc;
	if ((body && !json_get_number(body, "overlap_minutes", OVERLAP_DEFAULT_MIN, &minutes)) || minutes < 0 ||
	    minutes > SERVICE_OVERLAP_MAX_MS / 60000)
		return err_set(e, RC_INVALID, "overlap_minutes: must be a whole number from 0 to %lld",
		               (long long)(SERVICE_OVERLAP_MAX_MS / 60000));
	c->overlap_ms = minutes * 60000;
	return RC_OK;
}

/* --- the routes --- */

static const struct listing accounts = { "service_accounts",    NULL,
	                                 &service_account_type, put_account,
	                                 service_account_list,  PAGE_OF(struct service_account_list) };
HANDLER(service_account_list, view_list(r, &accounts))

static void put_call(struct json_out *o, struct request *r, const void *thing)
{
	const struct service_account_call *c = thing;

	keyring_note(r->api->options.auth->o.keyring, &c->account);
	put_account(o, r, &c->account);
	if (c->key.n)
		json_put_str(o, "key", c->key);
	request_header(r, "Cache-Control", "no-store");
}

static void submit(struct request *r, enum rc (*read)(struct request *r, struct service_account_call *c, struct err *e),
                   txn_fn *run, int status)
{
	struct service_account_call *c = NEW_OF(r, struct service_account_call);

	*c = (struct service_account_call){ .actor = r->actor, .request_id = str_from(r->id) };
	if (request_is_good(r, read(r, c, &r->e)))
		view_submit(r, run, c, WRITES, status, put_call);
}

HANDLER(service_account_create, submit(r, read_new, service_account_create, 201))
HANDLER(service_account_rotate, submit(r, read_overlap, service_account_rotate, 200))
HANDLER(service_account_revoke, submit(r, read_name, service_account_revoke, 200))
