/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blueprint_api.c - the routes of blueprints: records that can be created, changed and removed.
 *
 * A blueprint is shown with its one stack set and its deployments, of which there are none: no provider deploys stack
 * sets, and the list of stack sets to choose from is empty. The stack set and its regions cannot be changed.
 */
#include "base/json.h"
#include "domain/lease.h"
#include "http/api/api.h"
#include "http/api/body.h"
#include "http/api/lease_form.h"
#include "http/api/view.h"
#include "service/lease/blueprints.h"

enum { BLUEPRINT_SCHEMA = 1, TIMEOUT_LEAST = 5, TIMEOUT_MOST = 480, TIMEOUT_DEFAULT = 30, TEXT_MAX = 16384 };

/* --- out --- */

static void put_blueprint(struct json_out *o, struct request *r UNUSED, const void *thing)
{
	const struct blueprint *b = thing;

	JSON_PUT(o, member_str("blueprintId", b->id), member_str("name", b->name),
	         member_raw("tags", b->tags.n ? b->tags : STR("{}")), member_str("createdBy", b->created_by),
	         member_int("deploymentTimeoutMinutes", b->timeout_minutes),
	         member_word("regionConcurrencyType", region_order_names[b->region_order]),
	         member_object("totalHealthMetrics"), member_int("totalDeploymentCount", 0),
	         member_int("totalSuccessfulCount", 0), member_end());
	form_put_meta(o, b->created_ms, b->edited_ms, BLUEPRINT_SCHEMA);
}

/* A provider would know the role; clients take it for a text. */
static void put_stack_set(struct json_out *o, struct request *r UNUSED, const void *thing)
{
	const struct blueprint *b = thing;

	JSON_PUT(o, member_str("blueprintId", b->id), member_str("stackSetId", b->stack_set_id),
	         member_word("administrationRoleArn", ""), member_word("executionRoleName", ""),
	         member_raw("regions", b->regions), member_int("deploymentOrder", 1),
	         member_int("maxConcurrentPercentage", b->concurrent_percent),
	         member_int("failureTolerancePercentage", b->failures_percent),
	         member_word("concurrencyMode", failure_mode_names[b->failure_mode]), member_object("healthMetrics"),
	         member_int("deploymentCount", 0), member_int("successfulDeploymentCount", 0),
	         member_int("consecutiveFailures", 0), member_end());
	form_put_meta(o, b->created_ms, b->edited_ms, BLUEPRINT_SCHEMA);
}

/* {blueprint, stackSets, recentDeployments}: into the open object. */
static void put_parts(struct json_out *o, struct request *r, const void *thing)
{
	json_put_object(o, "blueprint");
	put_blueprint(o, r, thing);
	json_close_object(o);
	view_put_all(r, o, "stackSets", thing, sizeof(struct blueprint), 1, put_stack_set);
	JSON_PUT(o, member_list("recentDeployments"), member_list_end());
}

/* --- lists --- */

static const struct listing blueprints = { "blueprints",
	                                   "blueprints",
	                                   &blueprint_type,
	                                   put_parts,
	                                   blueprint_list,
	                                   LIST_OF(struct blueprint_list),
	                                   .most = BLUEPRINT_PAGE_MOST };
HANDLER(blueprint_list, view_list(r, &blueprints))

static const struct listing stack_sets = {
	"result", "stacksets", NULL, NULL, NULL, LIST_OF(struct blueprint_list), .most = BLUEPRINT_PAGE_MOST
};

void handle_blueprint_stack_sets(struct request *r)
{
	struct listing *v = view_begin_list(r, &stack_sets);

	if (view_read_page(r, v))
		view_reply_list(r, v, NULL, 0, 0, STR(""));
}

/* --- in --- */

static bool is_tag_text(struct str text, size_t least, size_t most)
{
	return text.n >= least && text.n <= most && str_is_of(text, " _.:/=+@a-zA-Z0-9\x80-\xff-");
}

static bool read_tags(const struct part *at, struct str *ret)
{
	json_t                      *tags, *value;
	const char                  *name;
	CLEANUP(buf_fini) struct buf b = BUF(TEXT_MAX);
	struct json_out              o = JSON_OUT(&b);

	part_any_object(at, "tags", &tags);
	if (!tags)
		return false;
	if (json_object_size(tags) > BLUEPRINT_TAGS_MOST)
		part_problem(at, "tags", "must be at most 10");
	json_open_object(&o);
	json_object_foreach(tags, name, value)
	{
		bool is_ok = is_tag_text(str_from(name), 1, BLUEPRINT_TAG_NAME_MOST) && strncmp(name, "aws:", 4) != 0 &&
		             json_is_string(value) &&
		             is_tag_text(str_of(json_string_value(value), json_string_length(value)), 0,
		                         BLUEPRINT_TAG_MOST);

		if (is_ok)
			json_put_str(&o, name, str_from(json_string_value(value)));
		else
			part_problem(at, "tags",
			             "names have 1 to 128 letters, digits and _.:/=+-@, not aws: at the beginning; "
			             "values are such texts of up to 256");
	}
	json_close_object(&o);
	*ret = str_dup(at->body->problems.arena, buf_str(&b));
	return true;
}

static void read_regions(const struct part *at, struct str *ret)
{
	const json_t                *list;
	CLEANUP(buf_fini) struct buf b = BUF(TEXT_MAX);

	if (part_list(at, "regions", REQUIRED, BLUEPRINT_REGIONS_MOST, &list) != GIVEN)
		return;
	if (json_array_size(list) == 0)
		part_problem(at, "regions", "must name at least one region");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);
		struct str    text = str_of(json_string_value(item), json_string_length(item));
		size_t        first = 0; /* the same one */
		char          field[32];

		while (!json_equal(json_array_get(list, first), item))
			first++;
		(void)snprintf(field, sizeof(field), "regions.%zu", i); /* fits */
		if (!json_is_string(item) || !text.n || text.n > BLUEPRINT_REGION_MOST || !str_is_of(text, "a-z0-9-"))
			part_problem(at, field, "must be a region such as us-east-1");
		else if (first < i)
			part_problem(at, field, "is there twice");
		else
			buf_addf(&b, "%s\"%s\"", b.n ? "," : "", json_string_value(item));
	}
	*ret = str_format(at->body->problems.arena, "[%s]", b.n ? b.p : "");
}

static void read_options(const struct part *at, struct blueprint_call *c)
{
	struct blueprint *b = &c->fields;
	int               order = b->region_order, mode = b->failure_mode;

	c->sets_tags = read_tags(at, &b->tags);
	c->sets_timeout = part_int(at, "deploymentTimeoutMinutes", OPTIONAL, TIMEOUT_LEAST, TIMEOUT_MOST,
	                           &b->timeout_minutes) == GIVEN;
	c->sets_order = part_choice(at, "regionConcurrencyType", OPTIONAL, region_order_names, REGION_ORDER_COUNT,
	                            &order) == GIVEN;
	c->sets_concurrent = part_int(at, "maxConcurrentPercentage", OPTIONAL, 1, 100, &b->concurrent_percent) == GIVEN;
	c->sets_failures = part_int(at, "failureTolerancePercentage", OPTIONAL, 0, 100, &b->failures_percent) == GIVEN;
	c->sets_mode = part_choice(at, "concurrencyMode", OPTIONAL, failure_mode_names, FAILURE_MODE_COUNT, &mode) ==
	               GIVEN;
	b->region_order = (enum region_order)order;
	b->failure_mode = (enum failure_mode)mode;
}

#define CHANGE_WORDS                                                                                                   \
	"name tags deploymentTimeoutMinutes regionConcurrencyType maxConcurrentPercentage failureTolerancePercentage " \
	"concurrencyMode"

enum body_kind { NO_BODY, NEW, CHANGE };

static bool read_body(struct request *r, struct blueprint_call *c, bool is_new)
{
	CLEANUP(body_close) struct body body;

	if (!body_open(r, is_new ? "stackSetId regions " CHANGE_WORDS : CHANGE_WORDS, &body))
		return false;
	c->sets_name = part_checked(&body.whole, "name", is_new ? REQUIRED : OPTIONAL, blueprint_name_is_ok,
	                            "must be a letter, then letters, digits and hyphens, at most 50 in all",
	                            &c->fields.name) == GIVEN;
	if (is_new) {
		c->fields.timeout_minutes = TIMEOUT_DEFAULT;
		c->fields.concurrent_percent = 100;
		(void)part_text(&body.whole, "stackSetId", REQUIRED, 1, BLUEPRINT_STACK_SET_MOST,
		                &c->fields.stack_set_id); /* problems are in the body */
		read_regions(&body.whole, &c->fields.regions);
	}
	read_options(&body.whole, c);
	return body_is_good(&body);
}

/* --- one --- */

static void put_removed(struct json_out *o, struct request *r, const void *thing UNUSED)
{
	JSON_PUT(o, member_word("message", "the blueprint is removed"), member_str("blueprintId", r->params[0]));
}

/* The path names the blueprint, unless it is new. */
static void submit(struct request *r, enum body_kind kind, txn_fn *run, enum view_access access, int status,
                   put_fn *put)
{
	struct blueprint_call *c = NEW_OF(r, struct blueprint_call);
	struct problems        p = { .arena = &r->call->arena };

	c->by = r->by;
	c->id = r->params[0];
	r->shown = &c->blueprint;
	if (kind != NEW && !uuid_is_ok(c->id)) {
		problems_add(&p, "blueprintId", "must be a uuid");
		request_fail_all(r, 400, &p);
	} else if (kind == NO_BODY || read_body(r, c, kind == NEW)) {
		view_submit(r, run, c, access, status, put);
	}
}

HANDLER(blueprint_create, submit(r, NEW, blueprint_create, WRITES, 201, put_blueprint))
HANDLER(blueprint_show, submit(r, NO_BODY, blueprint_get, READS, 200, put_parts))
HANDLER(blueprint_change, submit(r, CHANGE, blueprint_change, WRITES, 200, put_parts))
HANDLER(blueprint_remove, submit(r, NO_BODY, blueprint_delete, WRITES, 200, put_removed))
