/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook_api.c - the routes of webhooks: who is told by HTTP.
 *
 * The secret is in the reply to the call that makes the webhook, and nowhere else. What fields may hold is checked by kernel/webhook.c;
 * here only that they are of the right type and that no other is there. After a change the kernel on this node is told at once
 * whether there is anybody to be told; other nodes find out by themselves.
 */
#include "base/json.h"
#include "http/ops.h"
#include "kernel/kernel.h"
#include "kernel/webhook.h"

static void put_webhook(struct json_out *o, const struct webhook *w)
{
	json_put_str(o, "id", w->id);
	json_put_str(o, "url", w->url);
	json_put_str(o, "filter", w->filter);
	ops_put_text(o, "description", w->description);
	json_put_bool(o, "paused", w->is_paused);
	ops_put_time(o, "created_at", w->created_ms);
	ops_put_text(o, "created_by", w->created_by);
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

static enum rc read_paused(const json_t *body, struct webhook_call *c, struct err *e)
{
	const json_t *paused = json_object_get(body, "paused");

	c->sets_paused = paused && !json_is_null(paused);
	if (c->sets_paused && !json_is_boolean(paused))
		return err_set(e, RC_INVALID, "paused must be true or false");
	c->fields.is_paused = json_is_true(paused);
	return RC_OK;
}

static enum rc check_members(json_t *body, struct err *e)
{
	static const char *const known[] = { "url", "filter", "secret", "description", "paused" };
	const char              *name;
	json_t                  *value;

	json_object_foreach(body, name, value)
	{
		bool is_known = false;

		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			is_known = is_known || strcmp(name, known[i]) == 0;
		if (!is_known)
			return err_set(
			        e, RC_INVALID,
			        "a webhook has no member '%.40s'; it has url, filter, secret, description and paused",
			        name);
	}
	return RC_OK;
}

static enum rc read_fields(struct request *r, struct webhook_call *c, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	enum rc                     rc;

	if (r->call->req.body.n && (rc = json_parse(r->call->req.body, &body, e)))
		return err_wrap(e, rc, "body");
	if (!json_is_object(body))
		return err_set(e, RC_INVALID,
		               "the body must be {\"url\": \"https://...\", \"filter\": \"Alarm*\", ...}");
	if ((rc = check_members(body, e)) || (rc = read_text(body, r, "url", &c->fields.url, e)) ||
	    (rc = read_text(body, r, "filter", &c->fields.filter, e)) ||
	    (rc = read_text(body, r, "secret", &c->fields.secret, e)) ||
	    (rc = read_text(body, r, "description", &c->fields.description, e)))
		return rc;
	return read_paused(body, c, e);
}

static struct webhook_call *webhook_call_new(struct request *r)
{
	struct webhook_call *c = arena_alloc(&r->call->arena, sizeof(*c));

	c->actor = r->actor;
	c->allows_private = api_options(r->api)->webhooks_may_be_private;
	c->request_id = str_from(r->id);
	r->arg = c;
	return c;
}

/* --- the list --- */

static void on_listed(struct request *r)
{
	struct webhook_list *l = r->arg;
	struct json_out      o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_array(&o, "webhooks");
	for (size_t i = 0; i < l->page.count; i++) {
		json_open_object(&o);
		put_webhook(&o, page_record(&l->page, &webhook_type, i));
		json_close_object(&o);
	}
	json_close_array(&o);
	reply_send(r, 200);
}

void handle_webhook_list(struct request *r)
{
	r->arg = arena_alloc(&r->call->arena, sizeof(struct webhook_list));
	request_submit(r, webhook_list, r->arg, true, on_listed);
}

/* --- one --- */

static void reply_webhook(struct request *r, int status)
{
	const struct webhook_call *c = r->arg;
	struct json_out            o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	put_webhook(&o, &c->webhook);
	if (status == 201)
		json_put_str(&o, "secret", c->webhook.secret);
	reply_send(r, status);
}

static void on_created(struct request *r)
{
	if (!r->txn.rc)
		kernel_set_has_webhooks(ops_kernel(r), true);
	reply_webhook(r, 201);
}

void handle_webhook_create(struct request *r)
{
	struct webhook_call *c = webhook_call_new(r);
	struct err           e = { 0 };

	if (read_fields(r, c, &e))
		request_fail(r, &e);
	else
		request_submit(r, webhook_create, c, false, on_created);
}

static void on_webhook(struct request *r)
{
	reply_webhook(r, 200);
}

static void submit_webhook(struct request *r, txn_fn *run, bool is_read_only, void (*complete)(struct request *r))
{
	struct webhook_call *c = webhook_call_new(r);
	struct err           e = { 0 };

	if (ops_read_id(r, "webhook", &c->id, &e))
		request_fail(r, &e);
	else
		request_submit(r, run, c, is_read_only, complete);
}

void handle_webhook_show(struct request *r)
{
	submit_webhook(r, webhook_get, true, on_webhook);
}

void handle_webhook_change(struct request *r)
{
	struct webhook_call *c = webhook_call_new(r);
	struct err           e = { 0 };

	if (ops_read_id(r, "webhook", &c->id, &e) || read_fields(r, c, &e))
		request_fail(r, &e);
	else
		request_submit(r, webhook_change, c, false, on_webhook);
}

static void on_rest_listed(struct request *r)
{
	const struct webhook_list *rest = r->txn.arg;

	if (!r->txn.rc) /* otherwise a queue gets deliveries that have no addressee, for a while */
		kernel_set_has_webhooks(ops_kernel(r), rest->page.count > 0);
	r->txn.rc = RC_OK;
	reply_webhook(r, 200);
}

static void on_removed(struct request *r)
{
	struct webhook_list *rest = arena_alloc(&r->call->arena, sizeof(*rest));

	if (!ops_failed(r))
		request_submit(r, webhook_list, rest, true, on_rest_listed);
}

void handle_webhook_remove(struct request *r)
{
	submit_webhook(r, webhook_remove, false, on_removed);
}

static void on_test(struct request *r)
{
	const struct webhook_call *c = r->arg;
	struct json_out            o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_str(&o, "status", STR("sent"));
	json_put_str(&o, "id", c->id);
	reply_send(r, 202);
}

void handle_webhook_test(struct request *r)
{
	submit_webhook(r, webhook_test, false, on_test);
}
