/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document_api.c - the routes of the operator's documents: the global configuration, the one of reports, the approval rules.
 *
 * A body is either {"document": text, "version": n} or the text itself with the version in If-Match, as the ETag of every reply has it.
 * JSON that has a member "document" is the first, for no document has a key of that name. A document with problems is refused with all
 * of them in the error's "problems". After a change the policy in force on this node is the new one before the reply is sent.
 *
 * Not here: what the keys are and what they may hold (service/policy_document.c).
 */
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "http/ops.h"
#include "kernel/event.h"
#include "service/policy_store.h"

/* --- writing --- */

static void put_problems(struct json_out *o, const struct problems *p)
{
	json_put_array(o, "problems");
	for (size_t i = 0; i < p->count; i++) {
		json_open_object(o);
		json_put_str(o, "field", p->items[i].field);
		json_put_str(o, "message", p->items[i].message);
		json_close_object(o);
	}
	json_close_array(o);
}

static void put_etag(struct request *r, const struct document *d)
{
	request_header(r, "ETag", "\"%llu\"", (unsigned long long)d->version);
}

static struct json_out begin_reply(struct request *r, const struct document_call *c)
{
	struct json_out o;

	put_etag(r, &c->document);
	o = reply_begin(r);
	json_put_str(&o, "document", str_from(document_names[c->kind]));
	json_put_int(&o, "version", (int64_t)c->document.version);
	return o;
}

/* As every error, and what is wrong one by one. */
static void refuse_document(struct request *r, const struct document_call *c)
{
	struct json_out o;

	put_etag(r, &c->document);
	o = reply_begin(r);
	json_put_object(&o, "error");
	json_put_str(&o, "code", str_from(err_code(&r->txn.e)));
	json_put_str(&o, "message", str_from(r->txn.e.msg));
	json_put_str(&o, "request_id", str_from(r->id));
	put_problems(&o, &c->problems);
	json_close_object(&o);
	reply_send(r, rc_http_status(r->txn.rc));
}

/* --- reading --- */

/* 3, "3" or W/"3", as a version. */
static bool parse_etag(struct str tag, uint64_t *ret)
{
	int64_t number;

	if (str_starts_with(tag, STR("W/")))
		tag = str_of(tag.p + 2, tag.n - 2);
	if (tag.n >= 2 && tag.p[0] == '"' && tag.p[tag.n - 1] == '"')
		tag = str_of(tag.p + 1, tag.n - 2);
	if (!str_to_int(tag, 0, INT64_MAX, &number))
		return false;
	*ret = (uint64_t)number;
	return true;
}

static enum rc read_if_match(struct request *r, struct document_call *c, bool *has_version, struct err *e)
{
	struct str tag = request_header_value(r, STR("If-Match"));

	if (!tag.n)
		return RC_OK;
	if (!parse_etag(tag, &c->seen_version))
		return err_set(e, RC_INVALID,
		               "If-Match must be the version that you have read, such as \"3\", not '%.*s'",
		               STR_ARG(tag));
	*has_version = true;
	return RC_OK;
}

/* {"document": text, "version": n} */
static enum rc read_envelope(struct request *r, const json_t *body, struct document_call *c, bool *has_version,
                             struct err *e)
{
	const json_t *version = json_object_get(body, "version");
	struct str    text;

	if (!json_get_text(body, "document", &text) || json_object_size(body) != (version ? 2u : 1u))
		return err_set(e, RC_INVALID,
		               "the body must be {\"document\": \"the text\", \"version\": 3}, or the text itself");
	if (version && (!json_is_integer(version) || json_integer_value(version) < 0))
		return err_set(e, RC_INVALID, "version must be the one that you have read: a whole number from 0");
	if (version) {
		c->seen_version = (uint64_t)json_integer_value(version);
		*has_version = true;
	}
	c->text = str_dup(&r->call->arena, text);
	return RC_OK;
}

static enum rc read_body(struct request *r, struct document_call *c, bool *has_version, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct str                  text = r->call->req.body;
	enum rc                     rc = read_if_match(r, c, has_version, e);

	if (rc)
		return rc;
	if (!text.n)
		return err_set(e, RC_INVALID,
		               "the body must be {\"document\": \"the text\", \"version\": 3}, or the text itself");
	if (json_parse(text, &body, NULL) == RC_OK && json_object_get(body, "document"))
		return read_envelope(r, body, c, has_version, e);
	c->text = str_dup(&r->call->arena, text);
	return RC_OK;
}

static struct document_call *call_new(struct request *r, enum document_kind kind)
{
	struct document_call *c = arena_alloc(&r->call->arena, sizeof(*c));

	c->kind = kind;
	c->actor = r->actor;
	c->request_id = str_from(r->id);
	r->arg = c;
	return c;
}

/* --- show, check, put --- */

static void reply_document(struct request *r)
{
	const struct document_call *c = r->arg;
	struct json_out             o = begin_reply(r, c);

	ops_put_text(&o, "edited_by", c->document.edited_by);
	ops_put_time(&o, "edited_at", c->document.edited_ms);
	json_put_str(&o, "text", c->document.text);
	json_put_object(&o, "values");
	policy_write_json(c->kind, &c->policy, &o);
	json_close_object(&o);
	put_problems(&o, &c->problems);
	policy_changes_write(&c->changes, "changes", &o);
	reply_send(r, 200);
}

static void on_shown(struct request *r)
{
	if (!ops_failed(r))
		reply_document(r);
}

static void show(struct request *r, enum document_kind kind)
{
	request_submit(r, document_get, call_new(r, kind), true, on_shown);
}

static void on_checked(struct request *r)
{
	const struct document_call *c = r->arg;
	struct json_out             o;

	if (ops_failed(r))
		return;
	o = begin_reply(r, c);
	json_put_bool(&o, "ok", c->problems.count == 0);
	put_problems(&o, &c->problems);
	policy_changes_write(&c->changes, "changes", &o);
	reply_send(r, 200);
}

static void check(struct request *r, enum document_kind kind)
{
	struct document_call *c = call_new(r, kind);
	struct err            e = { 0 };
	bool                  has_version = false;

	if (read_body(r, c, &has_version, &e))
		request_fail(r, &e);
	else
		request_submit(r, document_check, c, true, on_checked);
}

/* In force here at once; other nodes see it at their next refresh. */
static void take_over(struct request *r, const struct document_call *c)
{
	struct policy_holder *holder = api_options(r->api)->policy;
	struct err            e = { 0 };

	if (holder && policy_holder_take(holder, c->kind, &c->document, &e))
		log_write(LOG_WARNING, "policy", NULL, 0, "a change is stored, but not yet in force: %s", e.msg);
}

static void on_put(struct request *r)
{
	const struct document_call *c = r->arg;

	if (r->txn.rc == RC_INVALID && c->problems.count) {
		refuse_document(r, c);
	} else if (r->txn.rc) {
		if (r->txn.rc == RC_CONFLICT)
			put_etag(r, &c->document);
		request_fail(r, &r->txn.e);
	} else {
		take_over(r, c);
		reply_document(r);
	}
}

static void put(struct request *r, enum document_kind kind)
{
	struct document_call *c = call_new(r, kind);
	struct err            e = { 0 };
	bool                  has_version = false;
	enum rc               rc = read_body(r, c, &has_version, &e);

	if (!rc && !has_version)
		rc = err_set(&e, RC_INVALID,
		             "say which version you have read: \"version\" in the body, or the header If-Match");
	if (rc)
		request_fail(r, &e);
	else
		request_submit(r, document_put, c, false, on_put);
}

/* --- history --- */

static const char *history_name(struct request *r, const struct event_list *l)
{
	return ops_list_name(r, "history", &l->subject, 1);
}

static void put_edit(struct json_out *o, const struct event *event)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	int64_t                     from = 0, to = 0;
	char                       *changes = NULL;

	if (json_parse(event->detail, &detail, NULL) == RC_OK) { /* ours: always */
		(void)json_get_number(detail, "oldVersion", 0, &from);
		(void)json_get_number(detail, "newVersion", 0, &to);
		changes = json_dumps(json_object_get(detail, "changes"), JSON_COMPACT);
	}
	json_put_str(o, "event_id", event->id);
	ops_put_time(o, "at", event->time_ms);
	ops_put_text(o, "by", event->actor);
	json_put_int(o, "old_version", from);
	json_put_int(o, "new_version", to);
	json_put_raw(o, "changes", changes ? str_from(changes) : STR("[]"));
	free(changes);
}

static void on_history(struct request *r)
{
	struct event_list *l = r->arg;
	struct json_out    o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_array(&o, "edits");
	for (size_t i = 0; i < l->count; i++) {
		json_open_object(&o);
		put_edit(&o, &l->events[i]);
		json_close_object(&o);
	}
	ops_send_list(r, &o, history_name(r, l), l->count, l->next);
}

static void history(struct request *r, enum document_kind kind)
{
	struct event_list *l = arena_alloc(&r->call->arena, sizeof(*l));
	struct err         e = { 0 };

	l->type = STR(EVENT_POLICY_CHANGED);
	l->subject = document_subject(kind, &r->call->arena);
	l->is_newest_first = true;
	r->arg = l;
	if (ops_read_page(r, history_name(r, l), &l->limit, &l->cursor, &e))
		request_fail(r, &e);
	else
		request_submit(r, event_list, l, true, on_history);
}

/* --- routes --- */

void handle_policy_show(struct request *r)
{
	show(r, DOCUMENT_GLOBAL);
}

void handle_policy_check(struct request *r)
{
	check(r, DOCUMENT_GLOBAL);
}

void handle_policy_put(struct request *r)
{
	put(r, DOCUMENT_GLOBAL);
}

void handle_policy_history(struct request *r)
{
	history(r, DOCUMENT_GLOBAL);
}

void handle_reporting_show(struct request *r)
{
	show(r, DOCUMENT_REPORTING);
}

void handle_reporting_check(struct request *r)
{
	check(r, DOCUMENT_REPORTING);
}

void handle_reporting_put(struct request *r)
{
	put(r, DOCUMENT_REPORTING);
}

void handle_reporting_history(struct request *r)
{
	history(r, DOCUMENT_REPORTING);
}

void handle_approval_show(struct request *r)
{
	show(r, DOCUMENT_APPROVAL);
}

void handle_approval_check(struct request *r)
{
	check(r, DOCUMENT_APPROVAL);
}

void handle_approval_put(struct request *r)
{
	put(r, DOCUMENT_APPROVAL);
}

void handle_approval_history(struct request *r)
{
	history(r, DOCUMENT_APPROVAL);
}
