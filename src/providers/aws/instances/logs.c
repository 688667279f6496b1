/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs.c - what a tenant's tasks say, from CloudWatch Logs; and everything there is of all tenants, by its tags.
 *
 * FilterLogEvents answers the oldest lines first, and the newest are wanted. So stretches of time are read, the latest
 * first, each longer than the one before, until there are enough lines. One with more than STRETCH_PAGES pages is given
 * up for a shorter one: how much a site logs is up to the tenant. Of each stretch only what is answered is kept.
 */
#include "base/clock.h"
#include "base/grow.h"
#include "providers/aws/instances/content.h"
#include "providers/aws/instances/tasks.h"

enum { THINGS_MAX = 100000, HOUR_MS = 3600 * 1000, STRETCH_PAGES = 10, STRETCH_STEP = 8 };

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

/* --- the newest lines --- */

/* Lines of [from, to). */
struct stretch {
	struct site              *s;
	struct str                stream;
	int64_t                   from_ms, to_ms;
	struct arena             *a;     /* of what follows */
	struct instance_log_line *lines; /* a ring of max */
	size_t                    max, total;
	int                       pages;
	bool                      is_too_long;
};

static void take_line(struct stretch *t, const json_t *event)
{
	struct instance_log_line *line = &t->lines[t->total % t->max];
	struct str                stream;
	int64_t                   at;

	if (!json_get_number(event, "timestamp", 0, &at) || at < t->from_ms || at >= t->to_ms ||
	    !json_take_text(event, "message", t->a, &line->text) ||
	    !json_take_text(event, "logStreamName", t->a, &stream))
		return;
	line->at_ms = at;
	while (stream.n)
		line->task = str_cut(&stream, '/');
	t->total++;
}

/* A millisecond cannot be divided: all of its pages are read. */
static enum rc take_page(void *arg, const json_t *page, struct err *e UNUSED)
{
	struct stretch *t = arg;
	const json_t   *events = json_object_get(page, "events");

	t->is_too_long = ++t->pages > STRETCH_PAGES && t->to_ms - t->from_ms > 1;
	for (size_t i = 0; !t->is_too_long && i < json_array_size(events); i++)
		take_line(t, json_array_get(events, i));
	return RC_OK;
}

static enum rc read_stretch(struct stretch *t, struct err *e)
{
	struct str        streams = str_format(t->a, "[\"%.*s\"]", STR_ARG(t->stream));
	struct str        body = JSON_OF(t->a, member_str("logGroupName", log_group_name(t->s)),
	                                 member_if(t->stream.n > 0, member_raw("logStreamNames", streams)),
	                                 member_if(!t->stream.n, member_word("logStreamNamePrefix", "wordpress/")),
	                                 member_if_any(member_int("startTime", t->from_ms)),
	                                 member_if(t->to_ms < INT64_MAX, member_int("endTime", t->to_ms)));
	struct aws_paging paging = { .call = { .op = &filter_events, .body = body, .ms = SITE_CALL_MS },
		                     .token = "nextToken",
		                     .each = take_page,
		                     .arg = t,
		                     .is_over = &t->is_too_long };

	t->lines = arena_alloc(t->a, t->max * sizeof(*t->lines));
	return aws_pages(t->s->x->caller, &paging, e);
}

struct reading {
	struct site              *s;
	struct str                stream;
	int64_t                   from_ms, to_ms; /* what is still to be read */
	int64_t                   now_ms, span_ms;
	int64_t                   long_ms; /* where the stretch began that was too long; its parts do not grow */
	struct instance_log_line *lines;   /* filled from behind: the first ones of them are missing */
	size_t                    missing;
	int                       pages;
};

static void keep_newest(struct reading *r, const struct stretch *t)
{
	size_t count = t->total < t->max ? t->total : t->max;

	for (size_t i = 1; i <= count; i++) {
		const struct instance_log_line *line = &t->lines[(t->total - i) % t->max];

		r->lines[--r->missing] = (struct instance_log_line){ .at_ms = line->at_ms,
			                                             .task = str_dup(r->s->a, line->task),
			                                             .text = str_dup(r->s->a, line->text) };
	}
}

/* What is read first has no end but the one that was asked for: our clock may be slow. */
static enum rc read_next(struct reading *r, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	int64_t                          end_ms = r->to_ms < r->now_ms ? r->to_ms : r->now_ms;
	int64_t                          from_ms = end_ms - r->span_ms;
	struct stretch                   t = { .s = r->s,
		                               .stream = r->stream,
		                               .from_ms = from_ms > r->from_ms ? from_ms : r->from_ms,
		                               .to_ms = r->to_ms,
		                               .a = &a,
		                               .max = r->missing };
	enum rc                          rc = read_stretch(&t, e);

	if (rc)
		return rc;
	if ((r->pages += t.pages) > AWS_PAGES_MAX)
		return err_set(e, RC_UNAVAILABLE, "%zu lines were not among %d pages of the log: name a shorter time",
		               r->missing, AWS_PAGES_MAX);
	r->span_ms = end_ms - t.from_ms;
	if (t.is_too_long) {
		r->span_ms = r->span_ms > STRETCH_STEP ? r->span_ms / STRETCH_STEP : 1;
		r->long_ms = t.from_ms;
		return RC_OK;
	}
	keep_newest(r, &t);
	r->to_ms = t.from_ms;
	r->span_ms *= t.from_ms > r->long_ms ? 1 : STRETCH_STEP;
	return RC_OK;
}

/* A task's own stream is short: all of it is one stretch, unless it is too long. */
enum rc logs_read(struct site *s, struct str stream, int64_t from_ms, int64_t to_ms, size_t max,
                  struct instance_log_line **ret, size_t *ret_count, struct err *e)
{
	struct reading r = { .s = s,
		             .stream = stream,
		             .from_ms = from_ms > 0 ? from_ms : 0,
		             .to_ms = to_ms,
		             .now_ms = clock_now(&clock_real).ms,
		             .span_ms = stream.n ? INT64_MAX : HOUR_MS,
		             .long_ms = INT64_MAX,
		             .lines = arena_alloc(s->a, (max + 1) * sizeof(*r.lines)),
		             .missing = max };
	enum rc        rc = RC_OK;

	while (!rc && r.missing && r.to_ms > r.from_ms)
		rc = read_next(&r, e);
	if ((rc = err_forgive(e, rc, RC_NOT_FOUND))) /* nothing was logged yet */
		return rc;
	*ret = r.lines + r.missing;
	*ret_count = max - r.missing;
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
		if (str_has(arn, str_from(rows[i].part))) {
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
