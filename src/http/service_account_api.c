/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_account_api.c - the operators' routes of service accounts: the programs that have a key for /api.
 *
 * A key is in the reply to the call that makes it, and nowhere else. This node's keyring has a change before it is answered.
 */
#include "base/json.h"
#include "http/auth_ops.h"
#include "http/ops.h"

enum { OVERLAP_DEFAULT_MIN = 60 };

static void put_account(struct json_out *o, const struct service_account *a, struct arena *arena)
{
	json_put_str(o, "name", a->name);
	json_put_str(o, "email", a->email);
	json_put_str(o, "scopes", service_scopes_text(a->scopes, arena));
	ops_put_text(o, "description", a->description);
	ops_put_time(o, "created_at", a->created_ms);
	ops_put_text(o, "created_by", a->created_by);
	ops_put_time(o, "rotated_at", a->rotated_ms);
	ops_put_time(o, "old_key_until", a->old_until_ms);
	ops_put_time(o, "revoked_at", a->revoked_ms);
}

static struct service_account_call *call_new(struct request *r)
{
	struct service_account_call *c = arena_alloc(&r->call->arena, sizeof(*c));

	c->actor = r->actor;
	c->request_id = str_from(r->id);
	r->arg = c;
	return c;
}

/* --- reading bodies --- */

static enum rc read_object(struct request *r, const char *example, json_t **ret, struct err *e)
{
	enum rc rc = r->call->req.body.n ? json_parse(r->call->req.body, ret, e) : RC_OK;

	if (rc)
		return err_wrap(e, rc, "body");
	return json_is_object(*ret) ? RC_OK : err_set(e, RC_INVALID, "the body must be like %s", example);
}

static enum rc check_members(json_t *body, const char *words, struct err *e)
{
	const char *name;
	json_t     *value;

	json_object_foreach(body, name, value)
	{
		struct str rest = str_from(words);
		bool       is_known = false;

		while (rest.n)
			is_known = str_eq(str_cut(&rest, ' '), str_from(name)) || is_known;
		if (!is_known)
			return err_set(e, RC_INVALID, "there is no member '%.40s' here; known are: %s", name, words);
	}
	return RC_OK;
}

static enum rc read_new(struct request *r, struct service_account_call *c, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct str                  name, description, scopes;
	enum rc rc = read_object(r, "{\"name\": \"portal\", \"scopes\": \"read,approve\"}", &body, e);

	if (rc || (rc = check_members(body, "name scopes description", e)))
		return rc;
	if (!json_get_text(body, "name", &name) || !json_get_text(body, "description", &description))
		return err_set(e, RC_INVALID, "name and description must be texts");
	if (!json_get_text(body, "scopes", &scopes) || !service_scopes_parse(scopes, &c->scopes))
		return err_set(e, RC_INVALID,
		               "scopes: must be some of read, approve, pool-admin, cost, with commas between them");
	c->name = str_dup(&r->call->arena, name);
	c->description = str_dup(&r->call->arena, description);
	return RC_OK;
}

static enum rc read_overlap(struct request *r, struct service_account_call *c, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	int64_t                     minutes = OVERLAP_DEFAULT_MIN;
	enum rc                     rc = RC_OK;

	if (r->call->req.body.n && !(rc = read_object(r, "{\"overlap_minutes\": 60}", &body, e)))
		rc = check_members(body, "overlap_minutes", e);
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

static void on_listed(struct request *r)
{
	struct service_account_list *l = r->arg;
	struct json_out              o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_array(&o, "service_accounts");
	for (size_t i = 0; i < l->page.count; i++) {
		json_open_object(&o);
		put_account(&o, page_record(&l->page, &service_account_type, i), &r->call->arena);
		json_close_object(&o);
	}
	json_close_array(&o);
	reply_send(r, 200);
}

void handle_service_account_list(struct request *r)
{
	r->arg = arena_alloc(&r->call->arena, sizeof(struct service_account_list));
	request_submit(r, service_account_list, r->arg, true, on_listed);
}

static void reply_account(struct request *r, int status)
{
	const struct service_account_call *c = r->arg;
	struct json_out                    o;

	if (ops_failed(r))
		return;
	keyring_note(auth_of(r)->o.keyring, &c->account);
	o = reply_begin(r);
	put_account(&o, &c->account, &r->call->arena);
	if (c->key.n)
		json_put_str(&o, "key", c->key);
	request_header(r, "Cache-Control", "no-store");
	reply_send(r, status);
}

static void on_created(struct request *r)
{
	reply_account(r, 201);
}

static void on_changed(struct request *r)
{
	reply_account(r, 200);
}

void handle_service_account_create(struct request *r)
{
	struct service_account_call *c = call_new(r);
	struct err                   e = { 0 };

	if (read_new(r, c, &e))
		request_fail(r, &e);
	else
		request_submit(r, service_account_create, c, false, on_created);
}

void handle_service_account_rotate(struct request *r)
{
	struct service_account_call *c = call_new(r);
	struct err                   e = { 0 };

	if (ops_read_id(r, "service account", &c->name, &e) || read_overlap(r, c, &e))
		request_fail(r, &e);
	else
		request_submit(r, service_account_rotate, c, false, on_changed);
}

void handle_service_account_revoke(struct request *r)
{
	struct service_account_call *c = call_new(r);
	struct err                   e = { 0 };

	if (ops_read_id(r, "service account", &c->name, &e))
		request_fail(r, &e);
	else
		request_submit(r, service_account_revoke, c, false, on_changed);
}
