/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook_api.c - the routes of webhooks: who is told of events by HTTP.
 *
 * The secret is in the reply to the call that creates the webhook, and nowhere else. kernel/edge/webhook.c checks what
 * fields may hold; here only their types are checked, and that there are no others. After a change the kernel on this
 * node learns at once whether there are any webhooks; other nodes find out by themselves.
 */
#include "base/json.h"
#include "http/api/ops.h"
#include "kernel/edge/webhook.h"

PUT_OF(put_webhook, struct webhook, w, member_str("id", w->id), member_str("url", w->url),
       member_str("filter", w->filter), member_text("description", w->description), member_bool("paused", w->is_paused),
       member_sec("created_at", w->created_ms), member_text("created_by", w->created_by))

/* --- reading a body --- */

static enum rc read_fields(struct request *r, struct webhook_call *c, struct err *e)
{
	const struct {
		const char *name;
		struct str *to;
	} texts[] = { { "url", &c->fields.url },
		      { "filter", &c->fields.filter },
		      { "secret", &c->fields.secret },
		      { "description", &c->fields.description } };
	CLEANUP(json_freep) json_t *body = NULL;
	const json_t               *paused;
	enum rc                     rc = ops_read_object(r, "{\"url\": \"https://...\", \"filter\": \"Alarm*\", ...}",
	                                                 "url, filter, secret, description, paused", &body, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (!json_take_text(body, texts[i].name, &r->call->arena, texts[i].to))
			return err_set(e, RC_INVALID, "%s must be a text", texts[i].name);
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

static void put_sent(struct json_out *o, struct request *r, const void *thing UNUSED)
{
	JSON_PUT(o, member_word("status", "sent"), member_str("id", r->params[0]));
}

enum { NAMES_ONE = 1, HAS_FIELDS = 2 };

static void submit(struct request *r, unsigned reads, txn_fn *run, enum view_access access, int status, put_fn *put)
{
	struct webhook_call *c = NEW_OF(r, struct webhook_call);

	*c = (struct webhook_call){ .actor = r->actor, .request_id = str_from(r->id) };
	c->allows_private = r->api->options.webhooks_may_be_private;
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
