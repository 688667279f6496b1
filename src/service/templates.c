/* SPDX-License-Identifier: Apache-2.0 */
/*
 * templates.c - what leases are made from: look, make, replace, remove.
 *
 * A template is replaced as a whole. Leases have copied its values, so no change here touches one of them. Each change is an event with
 * subject "template/UUID".
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/json.h"
#include "kernel/event.h"
#include "service/lease_ops.h"
#include "service/lease_records.h"
#include "service/leases.h"

enum { TEMPLATE_DETAIL_MAX = 4096 };

static enum rc is_missing(struct str uuid, struct err *e)
{
	return err_set(e, RC_NOT_FOUND, "there is no lease template %.*s", STR_ARG(uuid));
}

static enum rc load(struct session *s, struct template_call *c, struct err *e)
{
	enum rc rc = session_get(s, &template_type, c->uuid, &c->template, NULL);

	if (rc == RC_NOT_FOUND)
		return is_missing(c->uuid, e);
	return rc ? err_set(e, rc, "lease template %.*s cannot be read", STR_ARG(c->uuid)) : RC_OK;
}

/* The oldest one that has it. */
static enum rc load_by_name(struct session *s, struct template_call *c, struct err *e)
{
	struct query q = { .type = &template_type, .index = TEMPLATE_BY_NAME, .hash = value_text(c->uuid), .limit = 1 };
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	if (rc)
		return rc;
	if (!page.count)
		return is_missing(c->uuid, e);
	c->template = *(struct lease_template *)page_record(&page, &template_type, 0);
	return RC_OK;
}

enum rc template_get(struct session *s, void *arg, struct err *e)
{
	struct template_call *c = arg;
	enum rc               rc = uuid_is_ok(c->uuid) ? load(s, c, e) : load_by_name(s, c, e);

	if (!rc && c->template.visibility == TEMPLATE_PRIVATE && caller_is_only_user(&c->by))
		return is_missing(c->uuid, e);
	return rc;
}

static enum rc tell(struct session *s, const char *type, const struct template_call *c, struct err *e)
{
	CLEANUP(buf_fini) struct buf b;
	struct actor                 by = actor_of_caller(&c->by);
	struct json_out              o;
	struct event                 event = { .type = str_from(type), .actor = by.name, .request_id = by.request_id };

	buf_init(&b, TEMPLATE_DETAIL_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "uuid", c->template.uuid);
	json_put_str(&o, "name", c->template.name);
	json_put_bool(&o, "requiresApproval", c->template.requires_approval);
	json_put_str(&o, "visibility", str_from(template_visibility_names[c->template.visibility]));
	json_close_object(&o);
	event.subject = str_format(session_arena(s), "template/%.*s", STR_ARG(c->template.uuid));
	event.detail = str_dup(session_arena(s), buf_str(&b));
	return session_emit(s, &event, e);
}

static enum rc check(struct session *s, struct template_call *c, struct err *e)
{
	c->problems = (struct problems){ .arena = session_arena(s) };
	template_check(&c->fields, c->policy, &c->problems);
	if (!c->problems.count)
		return RC_OK;
	return err_set(e, RC_INVALID, "%.*s: %.*s", STR_ARG(c->problems.items[0].field),
	               STR_ARG(c->problems.items[0].message));
}

static void make(struct session *s, struct template_call *c)
{
	char uuid[ID_UUID_SIZE];

	id_uuid(uuid);
	c->template = c->fields;
	c->template.uuid = c->uuid.n ? c->uuid : str_dup(session_arena(s), str_from(uuid));
	c->template.version = 0;
	c->template.created_ms = c->template.edited_ms = session_now(s).ms;
	session_add(s, &template_type, &c->template);
}

static enum rc replace(struct session *s, struct template_call *c, struct err *e)
{
	struct lease_template old;
	enum rc               rc = load(s, c, e);

	if (rc)
		return rc;
	old = c->template;
	c->template = c->fields;
	c->template.uuid = old.uuid;
	c->template.version = old.version;
	if (!c->template.created_ms)
		c->template.created_ms = old.created_ms;
	c->template.edited_ms = session_now(s).ms;
	session_put(s, &template_type, &c->template);
	return RC_OK;
}

enum rc template_put(struct session *s, void *arg, struct err *e)
{
	struct template_call *c = arg;
	enum rc               rc = check(s, c, e);

	if (rc)
		return rc;
	if (c->is_new)
		make(s, c);
	else if ((rc = replace(s, c, e)))
		return rc;
	return tell(s, c->is_new ? "LeaseTemplateCreated" : "LeaseTemplateChanged", c, e);
}

enum rc template_delete(struct session *s, void *arg, struct err *e)
{
	struct template_call *c = arg;
	enum rc               rc = session_get(s, &template_type, c->uuid, &c->template, NULL);

	if (rc == RC_NOT_FOUND)
		return RC_OK;
	if (rc)
		return err_set(e, rc, "lease template %.*s cannot be read", STR_ARG(c->uuid));
	session_delete(s, &template_type, c->uuid);
	return tell(s, "LeaseTemplateDeleted", c, e);
}

enum rc template_list(struct session *s, void *arg, struct err *e)
{
	struct template_list *l = arg;
	struct query q = { .type = &template_type, .index = QUERY_ALL, .limit = l->limit, .cursor = l->cursor };

	return session_query(s, &q, &l->page, e);
}
