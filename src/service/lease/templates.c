/* SPDX-License-Identifier: Apache-2.0 */
/*
 * templates.c - what leases are requested from: show, create, replace, delete.
 *
 * A template is replaced as a whole. Leases have copied its values, so no change affects them. Each change is an event
 * with the subject "template/UUID".
 */
#include "base/id.h"
#include "base/json.h"
#include "kernel/event.h"
#include "service/lease/lease_private.h"
#include "service/record/lease_records.h"
#include "service/lease/leases.h"

enum { NAMED_PAGE = 16 }; /* few have one name */

static enum rc is_missing(struct str uuid, struct err *e)
{
	return err_set(e, RC_NOT_FOUND, "there is no lease template %.*s", STR_ARG(uuid));
}

static bool is_hidden(const struct lease_template *t, const struct caller *by)
{
	return by && t->visibility == TEMPLATE_PRIVATE && caller_is_only_user(by);
}

enum rc template_load(struct session *s, const struct caller *by, struct str uuid, struct lease_template *ret,
                      struct err *e)
{
	bool    is_there;
	enum rc rc = session_find(s, &template_type, uuid, ret, &is_there, e);

	return rc || (is_there && !is_hidden(ret, by)) ? rc : is_missing(uuid, e);
}

/* The oldest one that has it, of those that are there for the caller. */
static enum rc load_by_name(struct session *s, struct template_call *c, struct err *e)
{
	struct records all = { .query = query_of(&template_type, TEMPLATE_BY_NAME, value_text(c->uuid), NAMED_PAGE) };
	const struct lease_template *next;
	enum rc                      rc;

	while ((next = session_next(s, &all, &rc, e)) && is_hidden(next, &c->by))
		;
	if (rc || !next)
		return rc ? rc : is_missing(c->uuid, e);
	c->template = *next;
	return RC_OK;
}

enum rc template_get(struct session *s, void *arg, struct err *e)
{
	struct template_call *c = arg;

	return uuid_is_ok(c->uuid) ? template_load(s, &c->by, c->uuid, &c->template, e) : load_by_name(s, c, e);
}

static enum rc tell(struct session *s, const char *type, const struct template_call *c, struct err *e)
{
	const struct lease_template *t = &c->template;
	struct arena                *a = session_arena(s);
	struct actor                 by = actor_of_caller(&c->by);

	return session_tell(s, type, str_format(a, "template/%.*s", STR_ARG(t->uuid)), by.name, by.request_id,
	                    JSON_OF(a, member_str("uuid", t->uuid), member_str("name", t->name),
	                            member_bool("requiresApproval", t->requires_approval),
	                            member_word("visibility", template_visibility_names[t->visibility])),
	                    e);
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
	enum rc               rc = template_load(s, NULL, c->uuid, &old, e);

	if (rc)
		return rc;
	c->template = c->fields;
	c->template.uuid = old.uuid;
	c->template.version = old.version;
	c->template.created_by = old.created_by;
	if (!c->template.created_ms)
		c->template.created_ms = old.created_ms;
	c->template.edited_ms = session_now(s).ms;
	session_put(s, &template_type, &c->template);
	return RC_OK;
}

enum rc template_put(struct session *s, void *arg, struct err *e)
{
	struct template_call *c = arg;
	enum rc               rc;

	c->problems = (struct problems){ .arena = session_arena(s) };
	template_check(&c->fields, c->policy, &c->problems);
	if (c->problems.count)
		return err_set(e, RC_INVALID, "%.*s: %.*s", STR_ARG(c->problems.items[0].field),
		               STR_ARG(c->problems.items[0].message));
	if (c->is_new)
		make(s, c);
	else if ((rc = replace(s, c, e)))
		return rc;
	return tell(s, c->is_new ? "LeaseTemplateCreated" : "LeaseTemplateChanged", c, e);
}

enum rc template_delete(struct session *s, void *arg, struct err *e)
{
	struct template_call *c = arg;
	bool                  is_there;
	enum rc               rc = session_find(s, &template_type, c->uuid, &c->template, &is_there, e);

	if (rc || !is_there)
		return rc;
	session_delete(s, &template_type, c->uuid);
	return tell(s, "LeaseTemplateDeleted", c, e);
}

enum rc template_list(struct session *s, void *arg, struct err *e)
{
	struct template_list *l = arg;
	struct query q = { .type = &template_type, .index = QUERY_ALL, .limit = l->limit, .cursor = l->cursor };

	return session_query(s, &q, &l->page, e);
}
