/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c - what a tenant's tasks say, from CloudWatch Logs; and everything there is of all tenants, by its tags. */
#include "base/grow.h"
#include "providers/aws/instances/content.h"
#include "providers/aws/instances/tasks.h"

enum { THINGS_MAX = 100000 };

/* clang-format off */
static const struct aws_error_row errors[] = {
	{ "ResourceNotFoundException",       RC_NOT_FOUND },
	{ "ServiceUnavailableException",     RC_UNAVAILABLE },
	{ "InternalServiceException",        RC_UNAVAILABLE },
	{ "PaginationTokenExpiredException", RC_UNAVAILABLE },
	{ NULL, RC_OK },
};
static const struct aws_op
	filter_events = { .service = &aws_services[AWS_LOGS], .name = "FilterLogEvents", .permission = "logs:FilterLogEvents", .errors = errors },
	get_resources = { .service = &aws_services[AWS_TAGGING], .name = "GetResources", .permission = "tag:GetResources", .errors = errors };
/* clang-format on */

struct reading {
	struct site              *s;
	int64_t                   from_ms, to_ms;
	struct instance_log_line *lines; /* a ring of max */
	size_t                    max, total;
};

static enum rc take_line(void *arg, const json_t *event, struct err *e UNUSED)
{
	struct reading           *r = arg;
	struct instance_log_line *line = &r->lines[r->total % r->max];
	struct str                stream;
	int64_t                   at;

	if (!json_get_number(event, "timestamp", 0, &at) || at < r->from_ms || at >= r->to_ms ||
	    !json_take_text(event, "message", r->s->a, &line->text) ||
	    !json_take_text(event, "logStreamName", r->s->a, &stream))
		return RC_OK;
	line->at_ms = at;
	while (stream.n)
		line->task = str_cut(&stream, '/');
	r->total++;
	return RC_OK;
}

enum rc logs_read(struct site *s, struct str stream, int64_t from_ms, int64_t to_ms, size_t max,
                  struct instance_log_line **ret, size_t *ret_count, struct err *e)
{
	struct reading    r = { .s = s, .from_ms = from_ms > 0 ? from_ms : 0, .to_ms = to_ms, .max = max ? max : 1 };
	struct str        body = JSON_OF(s->a, member_str("logGroupName", log_group_name(s)),
	                                 member_if(stream.n > 0, member_raw("logStreamNames",
	                                                                    str_format(s->a, "[\"%.*s\"]", STR_ARG(stream)))),
	                                 member_if(!stream.n, member_word("logStreamNamePrefix", "wordpress/")),
	                                 member_if_any(member_int("startTime", r.from_ms)),
	                                 member_if(to_ms < INT64_MAX, member_int("endTime", to_ms)));
	struct aws_paging paging = { .call = { .op = &filter_events, .body = body, .ms = SITE_CALL_MS },
		                     .token = "nextToken",
		                     .list = "events",
		                     .each = take_line,
		                     .arg = &r };
	enum rc           rc;

	r.lines = arena_alloc(s->a, r.max * sizeof(*r.lines));
	if ((rc = err_forgive(e, aws_pages(s->x->caller, &paging, e), RC_NOT_FOUND))) /* nothing was logged yet */
		return rc;
	*ret_count = r.total < max ? r.total : max;
	*ret = arena_alloc(s->a, (*ret_count + 1) * sizeof(**ret));
	for (size_t i = 0; i < *ret_count; i++)
		(*ret)[i] = r.lines[(r.total - *ret_count + i) % r.max];
	return RC_OK;
}

/* --- everything there is --- */

struct things {
	struct site           *s;
	struct instance_thing *items;
	size_t                 count, room;
};

static void add(struct things *t, struct str tenant, struct str key, enum instance_resource kind)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->items[i].kind == kind && str_eq(t->items[i].tenant, tenant) && str_eq(t->items[i].instance, key))
			return; /* a rule and its target group are one route */
	t->items = arena_grow(t->s->a, t->items, t->count, &t->room, sizeof(*t->items));
	t->items[t->count++] = (struct instance_thing){ tenant, key, kind };
}

static bool kind_of(struct str arn, enum instance_resource *ret)
{
	static const struct {
		const char            *part;
		enum instance_resource kind;
	} rows[] = { { ":access-point/", INSTANCE_STORAGE }, { ":secretsmanager:", INSTANCE_SECRET },
		     { ":targetgroup/", INSTANCE_ROUTE },    { ":listener-rule/", INSTANCE_ROUTE },
		     { ":service/", INSTANCE_WORKERS },      { ":userpool/", INSTANCE_IDENTITY } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (memmem(arn.p, arn.n, rows[i].part, strlen(rows[i].part))) {
			*ret = rows[i].kind;
			return true;
		}
	return false;
}

static enum rc take_thing(void *arg, const json_t *row, struct err *e)
{
	struct things         *t = arg;
	const json_t          *tags = json_object_get(row, "Tags");
	struct str             tenant = aws_get_tag(tags, "Key", "Value", TAG_TENANT, t->s->a), arn;
	enum instance_resource kind;

	if (json_get_text(row, "ResourceARN", &arn) && tenant_id_is_ok(tenant) && kind_of(arn, &kind))
		add(t, tenant, aws_get_tag(tags, "Key", "Value", TAG_KEY, t->s->a), kind);
	return t->count > THINGS_MAX ? err_set(e, RC_TOO_LARGE, "more than %d resources", THINGS_MAX) : RC_OK;
}

static void add_database(void *arg, struct str tenant, struct str key)
{
	if (tenant_id_is_ok(tenant))
		add(arg, tenant, key, INSTANCE_DATABASE);
}

enum rc scan(struct site *s, struct instance_thing **ret, size_t *ret_count, struct err *e)
{
	struct things     t = { .s = s };
	struct str        env = str_format(s->a, "[\"%.*s\"]", STR_ARG(s->x->o.env));
	struct str        body = JSON_OF(s->a, member_list("TagFilters"), member_object(NULL),
	                                 member_word("Key", TAG_MANAGED_BY), member_raw("Values", STR("[\"" MANAGED_BY "\"]")),
	                                 member_end(), member_object(NULL), member_word("Key", TAG_ENVIRONMENT),
	                                 member_raw("Values", env), member_end(), member_list_end(),
	                                 member_int("ResourcesPerPage", 100));
	struct aws_paging paging = { .call = { .op = &get_resources, .body = body, .ms = SITE_CALL_MS },
		                     .token = "PaginationToken",
		                     .list = "ResourceTagMappingList",
		                     .each = take_thing,
		                     .arg = &t };
	enum rc           rc;

	if ((rc = aws_pages(s->x->caller, &paging, e)) || (rc = rds_list(s, add_database, &t, e)))
		return rc;
	*ret = t.items;
	*ret_count = t.count;
	return RC_OK;
}
