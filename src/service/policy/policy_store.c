/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_store.c - transactions on the operator's documents.
 *
 * The text is stored as it was given, with its comments, and read whenever it is needed. A change names the version
 * that it is based on, so of two people who edit at the same time the second is refused. Each change is an event in the
 * same commit: who, which versions, which keys; these events are the history.
 *
 * Always true: what is stored had no problems when it was stored. If a later program finds some, document_get() returns
 * them beside the text.
 */
#include "service/policy/policy_store.h"

#include "base/buf.h"
#include "base/json.h"
#include "kernel/event.h"
#include "store/session.h"

enum { DEFAULTS_MAX = 65536 };

struct str document_subject(enum document_kind kind, struct arena *a)
{
	return str_format(a, "policy/%s", document_names[kind]);
}

static struct str defaults_text(enum document_kind kind, struct arena *a)
{
	struct policy defaults;
	struct buf    b = BUF(DEFAULTS_MAX);

	policy_defaults(&defaults);
	policy_write_yaml(kind, &defaults, &b);
	return buf_take(&b, a);
}

/* The call, with no answer yet but the document. */
static enum rc begin(struct session *s, struct document_call *c, struct err *e)
{
	struct str name = str_from(document_names[c->kind]);
	bool       is_there;
	enum rc    rc = session_find(s, &document_type, name, &c->document, &is_there, e);

	c->problems = (struct problems){ .arena = session_arena(s) };
	c->changes.count = 0;
	policy_defaults(&c->policy);
	if (!rc && !is_there)
		c->document = (struct document){ .name = name, .text = defaults_text(c->kind, session_arena(s)) };
	return rc;
}

/* What the text says, and how that differs from what is stored. */
static bool read_text(struct session *s, struct document_call *c)
{
	struct problems old_problems = { .arena = session_arena(s) };
	struct policy   old;

	if (c->text.n > DOCUMENT_MAX)
		problems_add(&c->problems, "input", "has %zu bytes, at most %d are allowed", c->text.n, DOCUMENT_MAX);
	else if (policy_says_nothing(c->text))
		problems_add(&c->problems, "input", "says nothing; {} would set every key to its default");
	else
		(void)policy_read(c->kind, c->text, &c->policy, &c->problems); /* counted below */
	if (c->problems.count)
		return false;
	policy_defaults(&old);
	if (!policy_read(c->kind, c->document.text, &old, &old_problems))
		policy_defaults(&old); /* cannot be read any more: nothing of it was in force */
	policy_compare(c->kind, &old, &c->policy, session_arena(s), &c->changes);
	return true;
}

enum rc document_get(struct session *s, void *arg, struct err *e)
{
	struct document_call *c = arg;
	enum rc               rc = begin(s, c, e);

	if (rc)
		return rc;
	(void)policy_read(c->kind, c->document.text, &c->policy, &c->problems); /* the caller shows both */
	c->policy.version = c->document.version;
	return RC_OK;
}

enum rc document_check(struct session *s, void *arg, struct err *e)
{
	struct document_call *c = arg;
	enum rc               rc = begin(s, c, e);

	if (!rc)
		(void)read_text(s, c); /* the problems are the answer */
	return rc;
}

static enum rc emit_change(struct session *s, const struct document_call *c, uint64_t old_version, struct err *e)
{
	CLEANUP(buf_fini) struct buf b = BUF(DETAIL_MAX);
	struct json_out              o = JSON_OUT(&b);
	struct str                   detail;

	JSON_PUT(&o, member_object(NULL), member_str("document", c->document.name),
	         member_int("oldVersion", (int64_t)old_version),
	         member_int("newVersion", (int64_t)c->document.version));
	policy_changes_write(&c->changes, &o);
	json_close_object(&o);
	detail = event_detail(&b, session_arena(s));
	return session_tell(s, EVENT_POLICY_CHANGED, document_subject(c->kind, session_arena(s)), c->actor,
	                    c->request_id, detail, e);
}

enum rc document_put(struct session *s, void *arg, struct err *e)
{
	struct document_call *c = arg;
	const struct problem *first = &c->problems.items[0];
	enum rc               rc = begin(s, c, e);
	uint64_t              old_version = c->document.version;

	if (rc)
		return rc;
	if (!read_text(s, c))
		return err_set(e, RC_INVALID, "the %s document has %zu problem%s, the first: %.*s: %.*s",
		               document_names[c->kind], c->problems.count, c->problems.count == 1 ? "" : "s",
		               STR_ARG(first->field), STR_ARG(first->message));
	if (c->seen_version != old_version)
		return err_set(e, RC_CONFLICT,
		               "the %s document is at version %llu, not %llu: read it again and repeat the change",
		               document_names[c->kind], (unsigned long long)old_version,
		               (unsigned long long)c->seen_version);
	c->policy.version = old_version;
	if (old_version && str_eq(c->text, c->document.text))
		return RC_OK;
	c->document.text = c->text;
	c->document.edited_by = c->actor;
	c->document.edited_ms = session_now(s).ms;
	session_put(s, &document_type, &c->document);
	c->policy.version = c->document.version;
	return emit_change(s, c, old_version, e);
}
