/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blueprints.c - the records of blueprints, and who may still need one.
 *
 * Each change is one transaction with its event (BlueprintCreated, BlueprintChanged, BlueprintDeleted). A blueprint
 * that a template names is not deleted; there are few templates, and all are looked at. A template that is stored at
 * the same moment reads the blueprint in its own transaction: one of the two is run again.
 *
 * Not here: deploying. There is no provider of stack sets; blueprints are kept for those who have one.
 */
#include "service/lease/blueprints.h"

#include "base/id.h"
#include "base/json.h"
#include "domain/lease.h"
#include "domain/lease_template.h"
#include "kernel/event.h"
#include "service/lease/lease_private.h"
#include "service/record/lease_records.h"
#include "store/record_rows.h"

enum {
	TAGS_TEXT_MAX = BLUEPRINT_TAGS_MOST * (BLUEPRINT_TAG_NAME_MOST + BLUEPRINT_TAG_MOST + 6) * 2,
	REGIONS_TEXT_MAX = BLUEPRINT_REGIONS_MOST * (BLUEPRINT_REGION_MOST + 3) + 2,
};

const char *const region_order_names[REGION_ORDER_COUNT] = { "SEQUENTIAL", "PARALLEL" };
const char *const failure_mode_names[FAILURE_MODE_COUNT] = { "STRICT_FAILURE_TOLERANCE", "SOFT_FAILURE_TOLERANCE" };

/* --- the record --- */

/* clang-format off */
static const struct record_field blueprint_fields[] = {
	{ TEXT(blueprint, id, LEASE_UUID_MAX) },
	{ TEXT(blueprint, name, BLUEPRINT_NAME_MOST) },
	{ TEXT_OR_NONE(blueprint, created_by, EMAIL_MAX) },
	{ TEXT_OR_NONE(blueprint, tags, TAGS_TEXT_MAX) },
	{ TEXT(blueprint, stack_set_id, 4 * BLUEPRINT_STACK_SET_MOST) },
	{ TEXT(blueprint, regions, REGIONS_TEXT_MAX) },
	{ INT(blueprint, timeout_minutes) },
	{ ENUM(blueprint, region_order, region_order_names, REGION_ORDER_COUNT) },
	{ INT(blueprint, concurrent_percent) },
	{ INT(blueprint, failures_percent) },
	{ ENUM(blueprint, failure_mode, failure_mode_names, FAILURE_MODE_COUNT) },
	{ INT(blueprint, created_ms) },
	{ INT(blueprint, edited_ms) },
};
/* clang-format on */

const struct record_type blueprint_type = { RECORD_TYPE("blueprint", blueprint, blueprint_fields) };

bool blueprint_name_is_ok(struct str name)
{
	return name.n && name.n <= BLUEPRINT_NAME_MOST && char_is_of(name.p[0], "a-zA-Z") &&
	       str_is_of(name, "a-zA-Z0-9-");
}

/* --- the calls --- */

static enum rc tell(struct session *s, const struct blueprint_call *call, const char *type, struct err *e)
{
	const struct blueprint *b = &call->blueprint;
	struct arena           *a = session_arena(s);
	struct actor            by = actor_of_caller(&call->by);

	return session_tell(s, type, str_format(a, "blueprint/%.*s", STR_ARG(b->id)), by.name, by.request_id,
	                    JSON_OF(a, member_str("blueprintId", b->id), member_str("name", b->name),
	                            member_str("stackSetId", b->stack_set_id)),
	                    e);
}

enum rc blueprint_get(struct session *s, void *arg, struct err *e)
{
	struct blueprint_call *call = arg;

	return session_get(s, &blueprint_type, call->id, &call->blueprint, e);
}

enum rc blueprint_create(struct session *s, void *arg, struct err *e)
{
	struct blueprint_call *call = arg;
	struct blueprint      *b = &call->blueprint;
	char                   id[ID_UUID_SIZE];

	id_uuid(id);
	*b = call->fields;
	b->id = str_dup(session_arena(s), str_from(id));
	b->created_by = call->by.email;
	b->created_ms = b->edited_ms = session_now(s).ms;
	session_add(s, &blueprint_type, b);
	return tell(s, call, "BlueprintCreated", e);
}

static void apply_fields(const struct blueprint_call *call, struct blueprint *b)
{
	const struct blueprint *given = &call->fields;

	if (call->sets_name)
		b->name = given->name;
	if (call->sets_tags)
		b->tags = given->tags;
	if (call->sets_timeout)
		b->timeout_minutes = given->timeout_minutes;
	if (call->sets_order)
		b->region_order = given->region_order;
	if (call->sets_concurrent)
		b->concurrent_percent = given->concurrent_percent;
	if (call->sets_failures)
		b->failures_percent = given->failures_percent;
	if (call->sets_mode)
		b->failure_mode = given->failure_mode;
}

enum rc blueprint_change(struct session *s, void *arg, struct err *e)
{
	struct blueprint_call *call = arg;
	enum rc                rc = blueprint_get(s, call, e);

	if (rc)
		return rc;
	apply_fields(call, &call->blueprint);
	call->blueprint.edited_ms = session_now(s).ms;
	session_put(s, &blueprint_type, &call->blueprint);
	return tell(s, call, "BlueprintChanged", e);
}

/* RC_CONFLICT with its name when a template has the blueprint. */
static enum rc check_unused(struct session *s, struct str id, struct err *e)
{
	struct records all = { .query = { .type = &template_type, .index = QUERY_ALL, .limit = QUERY_LIMIT_MAX } };
	const struct lease_template *t;
	enum rc                      rc;

	while ((t = session_next(s, &all, &rc, e)))
		if (str_eq(t->blueprint_id, id))
			return err_set(e, RC_CONFLICT, "the template %.*s uses this blueprint; take it out there first",
			               STR_ARG(t->name));
	return rc;
}

enum rc blueprint_delete(struct session *s, void *arg, struct err *e)
{
	struct blueprint_call *call = arg;
	enum rc                rc = blueprint_get(s, call, e);

	if (rc || (rc = check_unused(s, call->id, e)))
		return rc;
	session_delete(s, &blueprint_type, call->id);
	return tell(s, call, "BlueprintDeleted", e);
}

enum rc blueprint_list(struct session *s, void *arg, struct err *e)
{
	struct blueprint_list *l = arg;
	struct query q = { .type = &blueprint_type, .index = QUERY_ALL, .limit = l->limit, .cursor = l->cursor };

	return session_query(s, &q, &l->page, e);
}
