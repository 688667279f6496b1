/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document_api.c - the routes of the operator's documents: the global configuration, the one of reports, the approval
 * rules.
 *
 * A body is either {"document": text, "version": n} or the text itself with the version in If-Match, as in the ETag of
 * every reply. JSON with a member "document" is the first kind, because no document has a key of that name. A document
 * with problems is refused with all of them in the error's "problems". After a change, the new policy is in force on
 * this node before the reply is sent.
 *
 * An explanation of a decision uses the rules in force on this node and the directory of people, as a real request
 * does.
 *
 * Not here: what the keys are and what they may hold (service/policy/policy_document.c).
 */
#include <math.h>

#include "base/json.h"
#include "base/log.h"
#include "domain/lease.h"
#include "http/api/auth.h"
#include "http/api/blocking.h"
#include "http/api/ops.h"
#include "kernel/event.h"
#include "service/lease/leases.h"
#include "service/policy/policy_store.h"

enum {
	ENVELOPE_VALUES_MAX = 8, /* of {"document": "...", "version": 3} */
	TEMPLATE_TEXT_MAX = 50,
	USD_MOST = 1000000000,
	HOURS_MOST = 1000000,
};

#define BODY_RULE "the body must be {\"document\": \"the text\", \"version\": 3}, or the text itself"

struct document_work {
	struct document_call call; /* first: the transactions' argument */
	bool                 has_version;
	bool                 is_check;
};

/* --- writing --- */

PUT_OF(put_problem, struct problem, p, member_str("field", p->field), member_str("message", p->message))

static void put_problems(struct json_out *o, struct request *r, const struct problems *p)
{
	view_put_all(r, o, "problems", p->items, sizeof(*p->items), p->count, put_problem);
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
	JSON_PUT(&o, member_word("document", document_names[c->kind]),
	         member_int("version", (int64_t)c->document.version));
	return o;
}

/* Like any error, with a list of everything that is wrong. */
static void refuse_document(struct request *r, const struct document_call *c)
{
	struct json_out o;

	put_etag(r, &c->document);
	o = reply_begin(r);
	JSON_PUT(&o, member_object("error"), member_word("code", err_code(&r->txn.e)),
	         member_word("message", r->txn.e.msg), member_word("request_id", r->id));
	put_problems(&o, r, &c->problems);
	json_close_object(&o);
	reply_send(r, rc_http_status(r->txn.rc));
}

/* --- reading --- */

/* 3, "3" or W/"3", as a version. */
static enum rc read_if_match(struct request *r, struct document_work *w, struct err *e)
{
	struct str header = request_header_value(r, STR("If-Match")), tag = header;
	int64_t    number;

	if (!tag.n)
		return RC_OK;
	if (str_starts_with(tag, STR("W/")))
		tag = str_of(tag.p + 2, tag.n - 2);
	if (tag.n >= 2 && tag.p[0] == '"' && tag.p[tag.n - 1] == '"')
		tag = str_of(tag.p + 1, tag.n - 2);
	if (!str_to_int(tag, 0, INT64_MAX, &number))
		return err_set(e, RC_INVALID,
		               "If-Match must be the version that you have read, such as \"3\", not '%.*s'",
		               STR_ARG(header));
	w->call.seen_version = (uint64_t)number;
	w->has_version = true;
	return RC_OK;
}

/* {"document": text, "version": n} */
static enum rc read_envelope(struct request *r, const json_t *body, struct document_work *w, struct err *e)
{
	const json_t *version = json_object_get(body, "version");
	struct str    text;

	if (!json_get_text(body, "document", &text) || json_object_size(body) != (version ? 2u : 1u))
		return err_set(e, RC_INVALID, BODY_RULE);
	if (version && (!json_is_integer(version) || json_integer_value(version) < 0))
		return err_set(e, RC_INVALID, "version must be the one that you have read: a whole number from 0");
	if (version) {
		w->call.seen_version = (uint64_t)json_integer_value(version);
		w->has_version = true;
	}
	w->call.text = str_dup(&r->call->arena, text);
	return RC_OK;
}

/* On a thread: a text can be too long for the loop to read. */
static enum rc read_body(struct request *r, void *arg, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct document_work       *w = arg;
	struct str                  text = r->call->req.body;
	enum rc                     rc = read_if_match(r, w, e);

	if (rc)
		return rc;
	if (!text.n)
		return err_set(e, RC_INVALID, BODY_RULE);
	if (json_parse_limited(text, ENVELOPE_VALUES_MAX, &body, NULL) == RC_OK && json_object_get(body, "document"))
		return read_envelope(r, body, w, e);
	w->call.text = str_dup(&r->call->arena, text);
	return RC_OK;
}

static struct document_work *work_new(struct request *r, enum document_kind kind)
{
	struct document_work *w = NEW_OF(r, struct document_work);

	w->call.kind = kind;
	w->call.actor = r->actor;
	w->call.request_id = str_from(r->id);
	r->arg = w;
	return w;
}

/* --- show, check, put --- */

static void reply_document(struct request *r)
{
	const struct document_work *w = r->arg;
	const struct document_call *c = &w->call;
	struct json_out             o;

	if (request_failed(r))
		return;
	o = begin_reply(r, c);
	if (w->is_check) {
		json_put_bool(&o, "ok", c->problems.count == 0);
	} else {
		JSON_PUT(&o, member_text("edited_by", c->document.edited_by),
		         member_sec("edited_at", c->document.edited_ms), member_str("text", c->document.text),
		         member_object("values"));
		policy_write_json(c->kind, &c->policy, &o);
		json_close_object(&o);
	}
	put_problems(&o, r, &c->problems);
	policy_changes_write(&c->changes, &o);
	reply_send(r, 200);
}

static void show(struct request *r, enum document_kind kind)
{
	request_submit(r, document_get, work_new(r, kind), true, reply_document);
}

static void submit_check(struct request *r)
{
	request_submit(r, document_check, r->arg, true, reply_document);
}

static void check(struct request *r, enum document_kind kind)
{
	struct document_work *w = work_new(r, kind);

	w->is_check = true;
	blocking_start(r, BLOCKING_DOCUMENT, read_body, submit_check, w);
}

/* In force here immediately; other nodes see it at their next refresh. */
static enum rc take_over(struct request *r, void *arg, struct err *e UNUSED)
{
	const struct document_call *c = arg;
	struct policy_holder       *holder = r->api->options.policy;
	struct err                  why = { 0 };

	if (holder && policy_holder_take(holder, c->kind, &c->document, &why))
		log_write(LOG_WARNING, "policy", NULL, 0, "a change is stored, but not yet in force: %s", why.msg);
	return RC_OK;
}

static void on_put(struct request *r)
{
	struct document_call *c = r->arg;

	if (r->txn.rc == RC_INVALID && c->problems.count) {
		refuse_document(r, c);
	} else if (r->txn.rc) {
		if (r->txn.rc == RC_CONFLICT)
			put_etag(r, &c->document);
		request_fail(r, &r->txn.e);
	} else {
		blocking_start(r, BLOCKING_DOCUMENT, take_over, reply_document, c);
	}
}

static void submit_put(struct request *r)
{
	const struct document_work *w = r->arg;

	if (w->has_version)
		request_submit(r, document_put, r->arg, false, on_put);
	else
		request_refuse(r, RC_INVALID,
		               "say which version you read: \"version\" in the body, or the header If-Match");
}

static void put(struct request *r, enum document_kind kind)
{
	blocking_start(r, BLOCKING_DOCUMENT, read_body, submit_put, work_new(r, kind));
}

/* --- history --- */

static void put_edit(struct json_out *o, struct request *r, const void *thing)
{
	const struct event         *event = thing;
	CLEANUP(json_freep) json_t *detail = NULL;
	int64_t                     from = 0, to = 0;
	struct str                  changes = STR("");

	if (json_parse(event->detail, &detail, NULL) == RC_OK) { /* ours: always */
		(void)json_get_number(detail, "oldVersion", 0, &from);
		(void)json_get_number(detail, "newVersion", 0, &to);
		changes = json_dump(&r->call->arena, json_object_get(detail, "changes"));
	}
	JSON_PUT(o, member_str("event_id", event->id), member_sec("at", event->time_ms),
	         member_text("by", event->actor), member_int("old_version", from), member_int("new_version", to),
	         member_raw("changes", changes.n ? changes : STR("[]")));
}

static void history(struct request *r, enum document_kind kind)
{
	struct event_list *l = arena_alloc(&r->call->arena, sizeof(*l));

	l->type = STR(EVENT_POLICY_CHANGED);
	l->subject = document_subject(kind, &r->call->arena);
	l->is_newest_first = true;
	ops_list_events(r, l,
	                &(struct listing){ "edits", ops_list_name(r, "history", &l->subject, 1), .put = put_edit });
}

/* --- what the rules would decide about a lease request, and why --- */

/* A number above 0; not given, it stays as it is. */
static enum rc read_amount(json_t *body, const char *name, double most, int64_t unit, int64_t *ret, struct err *e)
{
	const json_t *value = json_object_get(body, name);
	double        number = json_number_value(value); /* 0 when it is none */

	if (!value || json_is_null(value))
		return RC_OK;
	if (!(number * (double)unit >= 1) || number > most)
		return err_set(e, RC_INVALID, "%s: must be a number above 0, at most %.0f", name, most);
	*ret = llround(number * (double)unit);
	return RC_OK;
}

static enum rc read_question(struct request *r, struct lease_explain *x, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	enum rc rc = ops_read_object(r, "like {\"template\": \"Project\", \"userEmail\": \"ann@example.org\"}",
	                             "template, userEmail, maxSpend, hours", &body, e);

	if (rc)
		return rc;
	if (!json_take_text(body, "template", &r->call->arena, &x->template_name) || !x->template_name.n ||
	    x->template_name.n > TEMPLATE_TEXT_MAX)
		return err_set(e, RC_INVALID, "template: must be the name or the uuid of a template");
	if (!json_take_text(body, "userEmail", &r->call->arena, &x->owner.email) || !email_is_ok(x->owner.email))
		return err_set(e, RC_INVALID, "userEmail: must be an email address");
	if ((rc = read_amount(body, "maxSpend", USD_MOST, LEASE_USD, &x->max_spend, e)))
		return rc;
	return read_amount(body, "hours", HOURS_MOST, LEASE_HOUR_MS, &x->duration_ms, e);
}

PUT_OF(put_note, struct approval_note, n, member_str("rule", n->rule), member_bool("matches", n->matches),
       member_str("why", n->why))

static void put_amount(struct json_out *o, const char *name, int64_t value, int64_t unit)
{
	if (value)
		json_put_real(o, name, (double)value / (double)unit);
	else
		json_put_null(o, name);
}

static void put_explained(struct json_out *o, struct request *r, const void *thing)
{
	const struct lease_explain *x = thing;

	JSON_PUT(o, member_word("decision", approval_verdict_names[x->answer.verdict]),
	         member_word("decided_by", x->is_by_template  ? "template"
	                                   : x->answer.rule.n ? "rule"
	                                                      : "default"),
	         member_text("rule", x->answer.rule), member_str("template", x->question.template_name),
	         member_str("user_email", x->question.email));
	put_amount(o, "max_spend", x->question.max_spend, LEASE_USD);
	put_amount(o, "hours", x->question.duration_ms, LEASE_HOUR_MS);
	view_put_all(r, o, "rules", x->answer.notes, sizeof(*x->answer.notes), x->answer.note_count, put_note);
}

void handle_approval_explain(struct request *r)
{
	const struct api_options *o = &r->api->options;
	struct lease_explain     *x = arena_alloc(&r->call->arena, sizeof(*x));

	if (!request_is_good(r, read_question(r, x, &r->e) || person_find(r, x->owner.email, &x->owner, &r->e)))
		return;
	x->approval = o->approval ? o->approval(o->approval_arg) : NULL;
	view_submit(r, lease_explain, x, READS, 200, put_explained);
}

/* --- routes --- */

HANDLER(policy_show, show(r, DOCUMENT_GLOBAL))
HANDLER(policy_check, check(r, DOCUMENT_GLOBAL))
HANDLER(policy_put, put(r, DOCUMENT_GLOBAL))
HANDLER(policy_history, history(r, DOCUMENT_GLOBAL))
HANDLER(reporting_show, show(r, DOCUMENT_REPORTING))
HANDLER(reporting_check, check(r, DOCUMENT_REPORTING))
HANDLER(reporting_put, put(r, DOCUMENT_REPORTING))
HANDLER(reporting_history, history(r, DOCUMENT_REPORTING))
HANDLER(approval_show, show(r, DOCUMENT_APPROVAL))
HANDLER(approval_check, check(r, DOCUMENT_APPROVAL))
HANDLER(approval_put, put(r, DOCUMENT_APPROVAL))
HANDLER(approval_history, history(r, DOCUMENT_APPROVAL))
