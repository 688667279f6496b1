/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c - what a tenant's tasks say, from CloudWatch Logs; and everything there is of all tenants, by its tags. */
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
	struct str                stream;
	int64_t                   from_ms, to_ms;
	struct instance_log_line *lines; /* a ring of max */
	size_t                    max, total;
};

static struct str make_question(void *arg, struct str token, struct arena *a)
{
	struct reading *r = arg;

	return JSON_OF(a, member_str("logGroupName", log_group_name(r->s)),
	               member_if(r->stream.n > 0,
	                         member_raw("logStreamNames", str_format(a, "[\"%.*s\"]", STR_ARG(r->stream)))),
	               member_if(!r->stream.n, member_word("logStreamNamePrefix", "wordpress/")),
	               member_if_any(member_int("startTime", r->from_ms)),
	               member_if(r->to_ms < INT64_MAX, member_int("endTime", r->to_ms)),
	               member_if_any(member_str("nextToken", token)));
}

static enum rc take_lines(void *arg, const json_t *page, struct err *e)
{
	struct reading *r = arg;
	const json_t   *event;
	struct str      stream;
	int64_t         at;
	size_t          i;

	(void)e;
	json_array_foreach(json_object_get(page, "events"), i, event)
	{
		struct instance_log_line *line = &r->lines[r->total % r->max];

		if (!json_get_number(event, "timestamp", 0, &at) || at < r->from_ms || at >= r->to_ms ||
		    !json_take_text(event, "message", r->s->a, &line->text) ||
		    !json_take_text(event, "logStreamName", r->s->a, &stream))
			continue;
		line->at_ms = at;
		while (stream.n)
			line->task = str_cut(&stream, '/');
		r->total++;
	}
	return RC_OK;
}

enum rc logs_read(struct site *s, struct str stream, int64_t from_ms, int64_t to_ms, size_t max,
                  struct instance_log_line **ret, size_t *ret_count, struct err *e)
{
	struct reading r = {
		.s = s, .stream = stream, .from_ms = from_ms > 0 ? from_ms : 0, .to_ms = to_ms, .max = max ? max : 1
	};
	struct err why = { 0 };
	enum rc    rc;

	r.lines = arena_alloc(s->a, r.max * sizeof(*r.lines));
	rc = aws_pages(s->x->caller,
	               &(struct aws_paging){ .op = &filter_events,
	                                     .token = "nextToken",
	                                     .make = make_question,
	                                     .each = take_lines,
	                                     .arg = &r,
	                                     .ms = SITE_CALL_MS },
	               &why);
	if (rc && rc != RC_NOT_FOUND) /* nobody has written anything yet */
		return err_set_code(e, rc, why.code, "%s", why.msg);
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
	if (t->count == t->room) {
		struct instance_thing *more = arena_alloc(t->s->a, (t->room = 2 * t->room + 64) * sizeof(*more));

		if (t->count)
			memcpy(more, t->items, t->count * sizeof(*more));
		t->items = more;
	}
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

static struct str make_scan(void *arg, struct str token, struct arena *a)
{
	struct things *t = arg;

	return JSON_OF(a, member_list("TagFilters"), member_object(NULL), member_word("Key", TAG_MANAGED_BY),
	               member_raw("Values", STR("[\"" MANAGED_BY "\"]")), member_end(), member_object(NULL),
	               member_word("Key", TAG_ENVIRONMENT),
	               member_raw("Values", str_format(a, "[\"%.*s\"]", STR_ARG(t->s->x->o.env))), member_end(),
	               member_list_end(), member_int("ResourcesPerPage", 100),
	               member_if_any(member_str("PaginationToken", token)));
}

static enum rc take_things(void *arg, const json_t *page, struct err *e)
{
	struct things         *t = arg;
	const json_t          *row, *tags;
	enum instance_resource kind;
	struct str             arn, tenant;
	size_t                 i;

	json_array_foreach(json_object_get(page, "ResourceTagMappingList"), i, row)
	{
		tags = json_object_get(row, "Tags");
		tenant = site_tag(t->s, tags, "Key", "Value", TAG_TENANT);
		if (json_get_text(row, "ResourceARN", &arn) && tenant_id_is_ok(tenant) && kind_of(arn, &kind))
			add(t, tenant, site_tag(t->s, tags, "Key", "Value", TAG_KEY), kind);
	}
	return t->count > THINGS_MAX ? err_set(e, RC_TOO_LARGE, "more than %d resources", THINGS_MAX) : RC_OK;
}

static void add_database(void *arg, struct str tenant, struct str key)
{
	if (tenant_id_is_ok(tenant))
		add(arg, tenant, key, INSTANCE_DATABASE);
}

enum rc scan(struct site *s, struct instance_thing **ret, size_t *ret_count, struct err *e)
{
	struct things t = { .s = s };
	enum rc       rc = aws_pages(s->x->caller,
	                             &(struct aws_paging){ .op = &get_resources,
	                                                   .token = "PaginationToken",
	                                                   .make = make_scan,
	                                                   .each = take_things,
	                                                   .arg = &t,
	                                                   .ms = SITE_CALL_MS },
	                             e);

	if (rc || (rc = rds_list(s, add_database, &t, e)))
		return rc;
	*ret = t.items;
	*ret_count = t.count;
	return RC_OK;
}
