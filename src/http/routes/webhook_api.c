/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook_api.c - the routes of webhooks: who is told by HTTP.
 *
 * The secret is in the reply to the call that makes the webhook, and nowhere else. What fields may hold is checked by
 * kernel/edge/webhook.c; here only that they are of the right type and that no other is there. After a change the
 * kernel on this node is told at once whether there is anybody to be told; other nodes find out by themselves.
 */
#include "base/json.h"
#include "http/api/ops.h"
#include "kernel/edge/webhook.h"

static void put_webhook(struct json_out *o, struct request *r, const void *thing)
{
	const struct webhook *w = thing;

	(void)r;
	JSON_PUT(o, member_str("id", w->id), member_str("url", w->url), member_str("filter", w->filter),
	         member_text("description", w->description), member_bool("paused", w->is_paused),
	         member_sec("created_at", w->created_ms), member_text("created_by", w->created_by));
}

/* --- reading a body --- */

static enum rc read_text(const json_t *body, struct request *r, const char *name, struct str *ret, struct err *e)
{
	struct str text;

	if (!json_get_text(body, name, &text))
		return err_set(e, RC_INVALID, "%s must be a text", name);
	*ret = str_dup(&r->call->arena, text);
	return RC_OK;
}

static enum rc read_fields(struct request *r, struct webhook_call *c, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	const json_t               *paused;
	const char                 *name;
	json_t                     *value;
	enum rc rc = ops_read_object(r, "{\"url\": \"https://...\", \"filter\": \"Alarm*\", ...}", NULL, &body, e);

	if (rc)
		return rc;
	json_object_foreach(body, name, value)
	{
		if (!ops_is_word("url filter secret description paused", name))
			return err_set(
			        e, RC_INVALID,
			        "a webhook has no member '%.40s'; it has url, filter, secret, description and paused",
			        name);
	}
	if ((rc = read_text(body, r, "url", &c->fields.url, e)) ||
	    (rc = read_text(body, r, "filter", &c->fields.filter, e)) ||
	    (rc = read_text(body, r, "secret", &c->fields.secret, e)) ||
	    (rc = read_text(body, r, "description", &c->fields.description, e)))
		return rc;
	paused = json_object_get(body, "paused");
	c->sets_paused = paused && !json_is_null(paused);
	if (c->sets_paused && !json_is_boolean(paused))
		return err_set(e, RC_INVALID, "paused must be true or false");
	c->fields.is_paused = json_is_true(paused);
	return RC_OK;
}

/* --- the routes --- */

static const struct listing webhooks = {
	"webhooks", NULL, &webhook_type, put_webhook, webhook_list, sizeof(struct page)
};
HANDLER(webhook_list, view_list(r, &webhooks))

static void put_created(struct json_out *o, struct request *r, const void *thing)
{
	put_webhook(o, r, thing);
	json_put_str(o, "secret", ((const struct webhook *)thing)->secret);
}

static void put_sent(struct json_out *o, struct request *r, const void *thing)
{
	(void)thing;
	JSON_PUT(o, member_word("status", "sent"), member_str("id", r->params[0]));
}

enum { NAMES_ONE = 1, HAS_FIELDS = 2 };

static void submit(struct request *r, unsigned reads, txn_fn *run, enum view_access access, int status, put_fn *put)
{
	struct webhook_call *c = arena_alloc(&r->call->arena, sizeof(*c));

	c->actor = r->actor;
	c->allows_private = r->api->options.webhooks_may_be_private;
	c->request_id = str_from(r->id);
	r->shown = &c->webhook;
	if (request_is_good(r, (reads & NAMES_ONE && ops_read_id(r, "webhook", &c->id, &r->e)) ||
	                               (reads & HAS_FIELDS && read_fields(r, c, &r->e))))
		view_submit(r, run, c, access, status, put);
}

HANDLER(webhook_create, submit(r, HAS_FIELDS, webhook_create, WRITES, 201, put_created))
HANDLER(webhook_show, submit(r, NAMES_ONE, webhook_get, READS, 200, put_webhook))
HANDLER(webhook_change, submit(r, NAMES_ONE | HAS_FIELDS, webhook_change, WRITES, 200, put_webhook))
HANDLER(webhook_remove, submit(r, NAMES_ONE, webhook_remove, WRITES, 200, put_webhook))
HANDLER(webhook_test, submit(r, NAMES_ONE, webhook_test, WRITES, 202, put_sent))
