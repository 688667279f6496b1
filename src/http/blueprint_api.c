/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blueprint_api.c - the routes of blueprints: records that can be made, changed and removed.
 *
 * A blueprint is shown with its one stack set and with its deployments, of which there are none: no provider deploys stack sets, and the list of
 * those that one could choose is empty. The regions of a stack set and the set itself cannot be changed.
 */
#include "base/json.h"
#include "domain/lease.h"
#include "http/api.h"
#include "http/body.h"
#include "http/jsend.h"
#include "http/lease_form.h"
#include "http/page_token.h"
#include "http/rights.h"
#include "service/blueprints.h"

enum {
	BLUEPRINT_SCHEMA = 1,
	TIMEOUT_LEAST = 5,
	TIMEOUT_MOST = 480,
	TIMEOUT_DEFAULT = 30,
	TEXT_MAX = 16384,
};

/* --- out --- */

static void put_blueprint(struct json_out *o, const struct blueprint *b)
{
	json_put_str(o, "blueprintId", b->id);
	json_put_str(o, "name", b->name);
	json_put_raw(o, "tags", b->tags.n ? b->tags : STR("{}"));
	json_put_str(o, "createdBy", b->created_by);
	json_put_int(o, "deploymentTimeoutMinutes", b->timeout_minutes);
	json_put_str(o, "regionConcurrencyType", str_from(region_order_names[b->region_order]));
	json_put_object(o, "totalHealthMetrics");
	json_put_int(o, "totalDeploymentCount", 0);
	json_put_int(o, "totalSuccessfulCount", 0);
	json_close_object(o);
	form_put_meta(o, b->created_ms, b->edited_ms, BLUEPRINT_SCHEMA);
}

static void put_stack_set(struct json_out *o, const struct blueprint *b)
{
	json_put_str(o, "blueprintId", b->id);
	json_put_str(o, "stackSetId", b->stack_set_id);
	json_put_str(o, "administrationRoleArn", STR("")); /* a provider would know; clients take it for a text */
	json_put_str(o, "executionRoleName", STR(""));
	json_put_raw(o, "regions", b->regions);
	json_put_int(o, "deploymentOrder", 1);
	json_put_int(o, "maxConcurrentPercentage", b->concurrent_percent);
	json_put_int(o, "failureTolerancePercentage", b->failures_percent);
	json_put_str(o, "concurrencyMode", str_from(failure_mode_names[b->failure_mode]));
	json_put_object(o, "healthMetrics");
	json_put_int(o, "deploymentCount", 0);
	json_put_int(o, "successfulDeploymentCount", 0);
	json_put_int(o, "consecutiveFailures", 0);
	json_close_object(o);
	form_put_meta(o, b->created_ms, b->edited_ms, BLUEPRINT_SCHEMA);
}

/* {blueprint, stackSets, recentDeployments}: into the open object. */
static void put_parts(struct json_out *o, const struct blueprint *b)
{
	json_put_object(o, "blueprint");
	put_blueprint(o, b);
	json_close_object(o);
	json_put_array(o, "stackSets");
	json_open_object(o);
	put_stack_set(o, b);
	json_close_object(o);
	json_close_array(o);
	json_put_array(o, "recentDeployments");
	json_close_array(o);
}

static void on_whole(struct request *r)
{
	const struct blueprint_call *c = r->arg;
	struct json_out              o;

	if (jsend_failed(r))
		return;
	o = jsend_begin(r);
	json_put_object(&o, "data");
	put_parts(&o, &c->blueprint);
	json_close_object(&o);
	reply_send(r, 200);
}

/* --- lists --- */

static void on_listed(struct request *r)
{
	const struct blueprint_list *l = r->arg;
	struct json_out              o;

	if (jsend_failed(r))
		return;
	o = jsend_begin(r);
	json_put_object(&o, "data");
	json_put_array(&o, "blueprints");
	for (size_t i = 0; i < l->page.count; i++) {
		json_open_object(&o);
		put_parts(&o, page_record(&l->page, &blueprint_type, i));
		json_close_object(&o);
	}
	json_close_array(&o);
	page_token_put(r, &o, "blueprints", l->page.next);
	json_close_object(&o);
	reply_send(r, 200);
}

void handle_blueprint_list(struct request *r)
{
	struct blueprint_list *l = arena_alloc(&r->call->arena, sizeof(*l));
	struct problems        p = { .arena = &r->call->arena };
	struct caller          by;

	if (!rights_enter(r, &by))
		return;
	page_token_read(r, "blueprints", BLUEPRINT_PAGE_MOST, &l->limit, &l->cursor, &p);
	if (!page_is_good(r, &p))
		return;
	r->arg = l;
	request_submit(r, blueprint_list, l, true, on_listed);
}

void handle_blueprint_stack_sets(struct request *r)
{
	struct problems p = { .arena = &r->call->arena };
	struct json_out o;
	struct caller   by;
	struct str      cursor;
	size_t          limit;

	if (!rights_enter(r, &by))
		return;
	page_token_read(r, "stacksets", BLUEPRINT_PAGE_MOST, &limit, &cursor, &p);
	if (!page_is_good(r, &p))
		return;
	o = jsend_begin(r);
	json_put_object(&o, "data");
	json_put_array(&o, "result");
	json_close_array(&o);
	json_put_null(&o, "nextPageIdentifier");
	json_close_object(&o);
	reply_send(r, 200);
}

/* --- in --- */

static bool is_tag_char(char c)
{
	return (unsigned char)c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr(" _.:/=+-@", c));
}

static bool is_tag_text(struct str text, size_t least, size_t most)
{
	for (size_t i = 0; i < text.n; i++)
		if (!is_tag_char(text.p[i]))
			return false;
	return text.n >= least && text.n <= most;
}

static bool is_tag(const char *name, const json_t *value)
{
	return is_tag_text(str_from(name), 1, BLUEPRINT_TAG_NAME_MOST) && strncmp(name, "aws:", 4) != 0 &&
	       json_is_string(value) &&
	       is_tag_text(str_of(json_string_value(value), json_string_length(value)), 0, BLUEPRINT_TAG_MOST);
}

static bool read_tags(const struct part *at, struct str *ret)
{
	json_t         *tags, *value;
	const char     *name;
	struct json_out o;
	struct buf      b;

	part_any_object(at, "tags", &tags);
	if (!tags)
		return false;
	if (json_object_size(tags) > BLUEPRINT_TAGS_MOST)
		part_problem(at, "tags", "must be at most 10");
	buf_init(&b, TEXT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_object_foreach(tags, name, value)
	{
		if (is_tag(name, value))
			json_put_str(&o, name, str_from(json_string_value(value)));
		else
			part_problem(at, "tags",
			             "names have 1 to 128 letters, digits and _.:/=+-@, not aws: at the beginning; "
			             "values are such texts of up to 256");
	}
	json_close_object(&o);
	*ret = str_dup(at->body->problems.arena, buf_str(&b));
	buf_fini(&b);
	return true;
}

static bool is_region(const json_t *item)
{
	struct str text = str_of(json_string_value(item), json_string_length(item));

	if (!json_is_string(item) || !text.n || text.n > BLUEPRINT_REGION_MOST)
		return false;
	for (size_t i = 0; i < text.n; i++)
		if (!(text.p[i] >= 'a' && text.p[i] <= 'z') && !(text.p[i] >= '0' && text.p[i] <= '9') &&
		    text.p[i] != '-')
			return false;
	return true;
}

static bool is_repeated(const json_t *list, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (json_equal(json_array_get(list, i), json_array_get(list, at)))
			return true;
	return false;
}

static void read_regions(const struct part *at, struct str *ret)
{
	const json_t *list;
	struct buf    b;

	if (part_list(at, "regions", REQUIRED, BLUEPRINT_REGIONS_MOST, &list) != GIVEN)
		return;
	if (json_array_size(list) == 0)
		part_problem(at, "regions", "must name at least one region");
	buf_init(&b, TEXT_MAX);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);
		char          field[32];

		(void)snprintf(field, sizeof(field), "regions.%zu", i); /* fits */
		if (!is_region(item))
			part_problem(at, field, "must be a region such as us-east-1");
		else if (is_repeated(list, i))
			part_problem(at, field, "is there twice");
		else
			buf_addf(&b, "%s\"%s\"", b.n ? "," : "", json_string_value(item));
	}
	*ret = str_format(at->body->problems.arena, "[%s]", b.n ? b.p : "");
	buf_fini(&b);
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

static const char name_rule[] = "must be a letter, then letters, digits and hyphens, at most 50 in all";

static bool read_new(struct request *r, struct blueprint_call *c)
{
	CLEANUP(body_close) struct body body;
	struct part                     whole;

	if (!body_open(r, &body))
		return false;
	whole = body_whole(&body);
	part_expect(
	        &whole,
	        "name stackSetId regions tags deploymentTimeoutMinutes regionConcurrencyType maxConcurrentPercentage "
	        "failureTolerancePercentage concurrencyMode");
	c->fields.timeout_minutes = TIMEOUT_DEFAULT;
	c->fields.concurrent_percent = 100;
	(void)part_checked(&whole, "name", REQUIRED, blueprint_name_is_ok, name_rule,
	                   &c->fields.name); /* problems are in the body */
	(void)part_text(&whole, "stackSetId", REQUIRED, 1, BLUEPRINT_STACK_SET_MOST, &c->fields.stack_set_id);
	read_regions(&whole, &c->fields.regions);
	read_options(&whole, c);
	return body_is_good(&body);
}

static bool read_change(struct request *r, struct blueprint_call *c)
{
	CLEANUP(body_close) struct body body;
	struct part                     whole;

	if (!body_open(r, &body))
		return false;
	whole = body_whole(&body);
	part_expect(&whole, "name tags deploymentTimeoutMinutes regionConcurrencyType maxConcurrentPercentage "
	                    "failureTolerancePercentage concurrencyMode");
	c->sets_name = part_checked(&whole, "name", OPTIONAL, blueprint_name_is_ok, name_rule, &c->fields.name) ==
	               GIVEN;
	read_options(&whole, c);
	return body_is_good(&body);
}

/* --- one --- */

/* is_one: the path names it. NULL: it has been answered. */
static struct blueprint_call *blueprint_call_new(struct request *r, bool is_one)
{
	struct blueprint_call *c = arena_alloc(&r->call->arena, sizeof(*c));
	struct problems        p = { .arena = &r->call->arena };

	if (!rights_enter(r, &c->by))
		return NULL;
	if (is_one && !uuid_is_ok(r->params[0])) {
		problems_add(&p, "blueprintId", "must be a uuid");
		jsend_refuse(r, 400, &p);
		return NULL;
	}
	c->id = r->params[0];
	r->arg = c;
	return c;
}

static void on_created(struct request *r)
{
	const struct blueprint_call *c = r->arg;
	struct json_out              o;

	if (jsend_failed(r))
		return;
	o = jsend_begin(r);
	json_put_object(&o, "data");
	put_blueprint(&o, &c->blueprint);
	json_close_object(&o);
	reply_send(r, 201);
}

void handle_blueprint_create(struct request *r)
{
	struct blueprint_call *c = blueprint_call_new(r, false);

	if (c && read_new(r, c))
		request_submit(r, blueprint_create, c, false, on_created);
}

void handle_blueprint_show(struct request *r)
{
	struct blueprint_call *c = blueprint_call_new(r, true);

	if (c)
		request_submit(r, blueprint_get, c, true, on_whole);
}

void handle_blueprint_change(struct request *r)
{
	struct blueprint_call *c = blueprint_call_new(r, true);

	if (c && read_change(r, c))
		request_submit(r, blueprint_change, c, false, on_whole);
}

static void on_removed(struct request *r)
{
	const struct blueprint_call *c = r->arg;
	struct json_out              o;

	if (jsend_failed(r))
		return;
	o = jsend_begin(r);
	json_put_object(&o, "data");
	json_put_str(&o, "message", STR("the blueprint is removed"));
	json_put_str(&o, "blueprintId", c->id);
	json_close_object(&o);
	reply_send(r, 200);
}

void handle_blueprint_remove(struct request *r)
{
	struct blueprint_call *c = blueprint_call_new(r, true);

	if (c)
		request_submit(r, blueprint_delete, c, false, on_removed);
}
