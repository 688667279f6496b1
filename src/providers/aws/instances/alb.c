/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alb.c - a tenant's target group, and its rule of the shared listener.
 *
 * A closed rule requires a header with a value that nobody knows; an open one does not. A rule that does not forward
 * answers by itself. ECS accepts no target group without a rule that forwards to it, so before workers are made, the
 * rule has to forward again, closed.
 *
 * Rules have priorities; two drivers that look for a free one at the same time may find the same: the second one takes
 * the next.
 */
#include "base/id.h"
#include "providers/aws/instances/instances_private.h"
#include "providers/aws/instances/alb.h"

enum { FIRST_PRIORITY = 1000, LAST_PRIORITY = 50000, TRIES = 5, PAIRS_MAX = 32 };
#define PROBE_HEADER "X-Leasehold-Probe"

/* clang-format off */
static const struct aws_error_row errors[] = {
	{ "ListenerNotFound",                  RC_DENIED },
	{ "TargetGroupNotFound",               RC_NOT_FOUND },
	{ "RuleNotFound",                      RC_NOT_FOUND },
	{ "DuplicateTargetGroupName",          RC_CONFLICT },
	{ "PriorityInUse",                     RC_CONFLICT },
	{ "ResourceInUse",                     RC_UNAVAILABLE },
	{ "TooManyRules",                      RC_INVALID },
	{ "TooManyTargetGroups",               RC_INVALID },
	{ "TooManyUniqueTargetGroupsPerLoadBalancer", RC_INVALID },
	{ "TooManyTargets",                    RC_INVALID },
	{ "TooManyActions",                    RC_INVALID },
	{ "TooManyTags",                       RC_INVALID },
	{ "TargetGroupAssociationLimit",       RC_INVALID },
	{ "InvalidConfigurationRequest",       RC_INVALID },
	{ NULL, RC_OK },
};
#define ELB_OP(operation, writing) \
	{ .service = &aws_services[AWS_LOAD_BALANCING], .name = operation, .permission = "elasticloadbalancing:" operation, .writes = writing, .errors = errors }
static const struct aws_op
	create_group    = ELB_OP("CreateTargetGroup", true),
	describe_groups = ELB_OP("DescribeTargetGroups", false),
	delete_group    = ELB_OP("DeleteTargetGroup", true),
	describe_health = ELB_OP("DescribeTargetHealth", false),
	create_rule     = ELB_OP("CreateRule", true),
	describe_rules  = ELB_OP("DescribeRules", false),
	modify_rule     = ELB_OP("ModifyRule", true),
	delete_rule     = ELB_OP("DeleteRule", true),
	describe_tags   = ELB_OP("DescribeTags", false);
/* clang-format on */

/* --- pairs of a form, one after the other --- */

struct form {
	struct site    *s;
	struct aws_pair pairs[PAIRS_MAX];
	size_t          count;
};

static void put(struct form *f, struct str value, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void put(struct form *f, struct str value, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	f->pairs[f->count++] = (struct aws_pair){ str_vformat(f->s->a, fmt, args).p, value };
	va_end(args);
}

static enum rc send(struct form *f, const struct aws_op *op, json_t **ret, struct err *e)
{
	return site_do(f->s, op, aws_pairs(f->s->a, f->pairs, f->count), ret, e);
}

static void put_tags(struct form *f)
{
	const struct aws_pair tags[] = { { TAG_TENANT, f->s->tenant },
		                         { TAG_MANAGED_BY, STR(MANAGED_BY) },
		                         { TAG_ENVIRONMENT, f->s->x->o.env },
		                         { TAG_KEY, f->s->spec->instance } };

	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		put(f, str_from(tags[i].name), "Tags.member.%zu.Key", i + 1);
		put(f, tags[i].value, "Tags.member.%zu.Value", i + 1);
	}
}

static enum rc read_key(struct site *s, struct found *f, struct err *e)
{
	CLEANUP(json_freep) json_t *got = NULL;
	struct form                 form = { .s = s };
	enum rc                     rc;

	put(&form, f->arn, "ResourceArns.member.1");
	if ((rc = send(&form, &describe_tags, &got, e)))
		return rc;
	f->key = aws_get_tag(json_object_get(json_array_get(json_object_get(got, "TagDescriptions"), 0), "Tags"), "Key",
	                     "Value", TAG_KEY, s->a);
	return RC_OK;
}

/* --- the target group --- */

static struct str group_name(const struct site *s)
{
	return str_format(s->a, "t-%s-tg", s->h);
}

static void read_group(struct site *s, const json_t *reply, struct found *ret)
{
	*ret = (struct found){ 0 };
	json_take_text(json_array_get(json_object_get(reply, "TargetGroups"), 0), "TargetGroupArn", s->a, &ret->arn);
	ret->id = ret->arn;
	ret->is_there = ret->arn.n > 0;
}

/* Without its key. */
static enum rc find_group_alone(struct site *s, struct found *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *got = NULL;
	struct form                 form = { .s = s };
	enum rc                     rc;

	*ret = (struct found){ 0 };
	put(&form, group_name(s), "Names.member.1");
	if (!(rc = send(&form, &describe_groups, &got, e)))
		read_group(s, got, ret);
	return err_forgive(e, rc, RC_NOT_FOUND);
}

static enum rc find_group(struct site *s, struct found *ret, struct err *e)
{
	enum rc rc = find_group_alone(s, ret, e);

	return rc || !ret->is_there ? rc : read_key(s, ret, e);
}

static enum rc make_group(struct site *s, struct found *ret, struct err *e)
{
	static const struct {
		const char *name, *value;
	} fixed[] = { { "Protocol", "HTTP" },
		      { "Port", "80" },
		      { "TargetType", "ip" },
		      { "HealthCheckProtocol", "HTTP" },
		      { "HealthCheckPath", "/wp-admin/install.php" },
		      { "HealthCheckIntervalSeconds", "30" },
		      { "HealthCheckTimeoutSeconds", "5" },
		      { "HealthyThresholdCount", "2" },
		      { "UnhealthyThresholdCount", "3" },
		      { "Matcher.HttpCode", "200-399" } };
	CLEANUP(json_freep) json_t *made = NULL;
	struct form                 form = { .s = s };
	enum rc                     rc;

	put(&form, group_name(s), "Name");
	put(&form, s->x->o.vpc, "VpcId");
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		put(&form, str_from(fixed[i].value), "%s", fixed[i].name);
	put_tags(&form);
	if ((rc = send(&form, &create_group, &made, e)))
		return rc;
	read_group(s, made, ret);
	/* It may be one that was there, with the same settings: whose it is, its tags say. */
	return read_key(s, ret, e);
}

/* --- the rule --- */

struct rules {
	struct site *s;
	struct str   path;
	struct found found; /* state: forward, or fixed-response */
	bool         is_taken[LAST_PRIORITY - FIRST_PRIORITY + 1];
};

static struct str path_of(const struct site *s)
{
	return str_format(s->a, "/tenant/%s", s->t);
}

static bool has_path(const json_t *rule, struct str path)
{
	const json_t *condition, *value, *values;
	size_t        i, k;

	json_array_foreach(json_object_get(rule, "Conditions"), i, condition)
	{
		values = json_object_get(json_object_get(condition, "PathPatternConfig"), "Values");
		if (!json_is_array(values))
			values = json_object_get(condition, "Values");
		json_array_foreach(values, k, value)
		{
			if (json_is_string(value) && str_eq(str_from(json_string_value(value)), path))
				return true;
		}
	}
	return false;
}

static enum rc take_rule(void *arg, const json_t *rule, struct err *e UNUSED)
{
	struct rules *r = arg;
	struct str    priority;
	int64_t       number;

	if (json_get_text(rule, "Priority", &priority) && str_to_int(priority, FIRST_PRIORITY, LAST_PRIORITY, &number))
		r->is_taken[number - FIRST_PRIORITY] = true;
	if (!has_path(rule, r->path))
		return RC_OK;
	json_take_text(rule, "RuleArn", r->s->a, &r->found.arn);
	json_take_text(json_array_get(json_object_get(rule, "Actions"), 0), "Type", r->s->a, &r->found.state);
	r->found.id = r->found.arn;
	r->found.is_there = true;
	return RC_OK;
}

static enum rc read_rules(struct site *s, struct rules **ret, struct err *e)
{
	struct rules     *r = *ret = arena_alloc(s->a, sizeof(*r));
	struct str        body = AWS_PAIRS(s->a, { "ListenerArn", s->x->o.listener }, { "PageSize", STR("400") });
	struct aws_paging paging = { .call = { .op = &describe_rules, .body = body, .ms = SITE_CALL_MS },
		                     .token = "NextMarker",
		                     .asked_token = "Marker",
		                     .list = "Rules",
		                     .each = take_rule,
		                     .arg = r };

	r->s = s;
	r->path = path_of(s);
	return aws_pages(s->x->caller, &paging, e);
}

static enum rc find_rule(struct site *s, struct found *ret, struct err *e)
{
	struct rules *r;
	enum rc       rc = read_rules(s, &r, e);

	*ret = r->found;
	return rc || !ret->is_there ? rc : read_key(s, ret, e);
}

static void put_conditions(struct form *f, bool is_closed)
{
	char token[ID_TOKEN_SIZE];

	put(f, STR("path-pattern"), "Conditions.member.1.Field");
	put(f, path_of(f->s), "Conditions.member.1.PathPatternConfig.Values.member.1");
	put(f, str_format(f->s->a, "%s/*", path_of(f->s).p), "Conditions.member.1.PathPatternConfig.Values.member.2");
	if (!is_closed)
		return;
	id_token(token);
	put(f, STR("http-header"), "Conditions.member.2.Field");
	put(f, STR(PROBE_HEADER), "Conditions.member.2.HttpHeaderConfig.HttpHeaderName");
	put(f, str_format(f->s->a, "%s", token), "Conditions.member.2.HttpHeaderConfig.Values.member.1");
}

static void put_answer(struct form *f, const char *text)
{
	put(f, STR("fixed-response"), "Actions.member.1.Type");
	put(f, STR("503"), "Actions.member.1.FixedResponseConfig.StatusCode");
	put(f, STR("text/plain"), "Actions.member.1.FixedResponseConfig.ContentType");
	put(f, str_from(text), "Actions.member.1.FixedResponseConfig.MessageBody");
}

static void put_forward(struct form *f, struct str group)
{
	put(f, STR("forward"), "Actions.member.1.Type");
	put(f, group, "Actions.member.1.TargetGroupArn");
}

static int free_priority(const struct rules *r, int from)
{
	while (from <= LAST_PRIORITY && r->is_taken[from - FIRST_PRIORITY])
		from++;
	return from;
}

/* The target group is there. */
static enum rc make_rule(struct site *s, struct found *ret, struct err *e)
{
	struct rules *r;
	struct found  group;
	struct err    why = { 0 };
	int           priority = FIRST_PRIORITY;
	enum rc       rc = read_rules(s, &r, e);

	if (rc || (rc = find_group_alone(s, &group, e)))
		return rc;
	for (int tries = 0; tries < TRIES; tries++) {
		CLEANUP(json_freep) json_t *made = NULL;
		struct form                 form = { .s = s };

		priority = free_priority(r, priority);
		put(&form, s->x->o.listener, "ListenerArn");
		put(&form, str_format(s->a, "%d", priority), "Priority");
		put_conditions(&form, true);
		put_forward(&form, group.arn);
		put_tags(&form);
		err_clear(&why);
		rc = send(&form, &create_rule, &made, &why);
		if (!rc) {
			*ret = (struct found){ .is_there = true, .key = s->spec->instance };
			json_take_text(json_array_get(json_object_get(made, "Rules"), 0), "RuleArn", s->a, &ret->arn);
			return RC_OK;
		}
		if (rc != RC_CONFLICT)
			return err_pass(e, rc, &why);
		priority++;
	}
	return err_set_code(e, RC_UNAVAILABLE, "PriorityInUse", "%d priorities from %d on were taken meanwhile", TRIES,
	                    FIRST_PRIORITY);
}

/* --- the port --- */

static struct str outputs_of(const struct site *s, struct str rule, struct str group, struct str key)
{
	struct str endpoint = str_format(s->a, "https://%.*s/tenant/%s/", STR_ARG(s->x->o.domain), s->t);

	return JSON_OF(s->a, member_str("id", rule), member_str("name", group_name(s)),
	               member_str("targetGroup", group), member_str("endpoint", endpoint),
	               member_if_any(member_str("instance", key)));
}

enum rc alb_make(struct site *s, struct str *ret_outputs, struct err *e)
{
	struct found group, rule;
	enum rc      rc = site_make_once(s, INSTANCE_ROUTE, find_group, make_group, &group, e);

	if (rc || (rc = site_make_once(s, INSTANCE_ROUTE, find_rule, make_rule, &rule, e)))
		return rc;
	*ret_outputs = outputs_of(s, rule.arn, group.arn, rule.key);
	return RC_OK;
}

struct health {
	int64_t    targets, healthy;
	struct str state, why; /* of one that is not */
};

static enum rc read_health(struct site *s, struct str group, struct health *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *got = NULL;
	struct form                 form = { .s = s };
	const json_t               *one;
	struct str                  state;
	size_t                      i;
	enum rc                     rc;

	*ret = (struct health){ 0 };
	put(&form, group, "TargetGroupArn");
	if ((rc = send(&form, &describe_health, &got, e)))
		return rc;
	json_array_foreach(json_object_get(got, "TargetHealthDescriptions"), i, one)
	{
		const json_t *health = json_object_get(one, "TargetHealth");

		ret->targets++;
		if (!json_take_text(health, "State", s->a, &state))
			continue;
		if (str_eq(state, STR("healthy"))) {
			ret->healthy++;
			continue;
		}
		ret->state = state;
		json_take_text(health, "Reason", s->a, &ret->why);
	}
	return RC_OK;
}

/* Of tasks that the group knows, at least one must answer it. */
static enum rc check_health(struct site *s, struct str group, struct err *e)
{
	struct health h;
	enum rc       rc = read_health(s, group, &h, e);

	if (rc || !h.targets || h.healthy) /* without targets there are no workers yet */
		return rc;
	return err_set(e, RC_UNAVAILABLE, "no task answers the load balancer: %.*s %.*s", STR_ARG(h.state),
	               STR_ARG(h.why));
}

enum rc alb_count(struct site *s, int64_t *ret_healthy, struct err *e)
{
	struct found  group;
	struct health h = { 0 };
	enum rc       rc = find_group_alone(s, &group, e);

	if (!rc && group.is_there)
		rc = read_health(s, group.arn, &h, e);
	*ret_healthy = h.healthy;
	return rc;
}

enum rc alb_check(struct site *s, bool *ret_exists, struct str *ret_outputs, struct err *e)
{
	struct rules *r;
	struct found  group;
	enum rc       rc = find_group_alone(s, &group, e);

	if (rc || (rc = read_rules(s, &r, e)))
		return rc;
	if (group.is_there && str_eq(r->found.state, STR("forward")) && (rc = check_health(s, group.arn, e)))
		return rc;
	*ret_exists = group.is_there || r->found.is_there;
	if (*ret_exists && (rc = read_key(s, group.is_there ? &group : &r->found, e)))
		return rc;
	*ret_outputs = outputs_of(s, r->found.arn, group.arn, group.is_there ? group.key : r->found.key);
	return RC_OK;
}

static enum rc drop(struct site *s, const struct aws_op *op, const char *name, struct str arn, struct err *e)
{
	struct form form = { .s = s };

	put(&form, arn, "%s", name);
	return err_forgive(e, send(&form, op, NULL, e), RC_NOT_FOUND);
}

/* A group stays in use for a while after its rule is gone. */
static enum rc drop_group(struct site *s, bool *ret, struct err *e)
{
	struct found group;
	enum rc      rc = find_group_alone(s, &group, e);

	if (rc)
		return rc;
	rc = group.is_there ? drop(s, &delete_group, "TargetGroupArn", group.arn, e) : RC_OK;
	*ret = !rc;
	return err_forgive(e, rc, RC_UNAVAILABLE);
}

enum rc alb_remove(struct site *s, struct err *e)
{
	struct rules *r;
	enum rc       rc = read_rules(s, &r, e);

	if (!rc && r->found.is_there)
		rc = drop(s, &delete_rule, "RuleArn", r->found.arn, e);
	return rc ? rc : site_wait_for(s, drop_group, "the target group can be deleted", e);
}

static enum rc need_route(struct site *s, struct str *ret_group, struct found *ret_rule, struct err *e)
{
	struct rules *r;
	struct found  group;
	enum rc       rc = find_group_alone(s, &group, e);

	if (rc || (rc = read_rules(s, &r, e)))
		return rc;
	if (!group.is_there || !r->found.is_there)
		return err_set(e, RC_NOT_FOUND, "tenant %.*s has no route", STR_ARG(s->tenant));
	*ret_group = group.arn;
	*ret_rule = r->found;
	return RC_OK;
}

enum rc alb_set(struct site *s, enum instance_route to, struct err *e)
{
	struct form  form = { .s = s };
	struct str   group;
	struct found rule;
	enum rc      rc = need_route(s, &group, &rule, e);

	if (rc)
		return rc;
	put(&form, rule.arn, "RuleArn");
	put_conditions(&form, to == ROUTE_CLOSED);
	if (to == ROUTE_SUSPENDED)
		put_answer(&form, "This site is suspended.");
	else if (to == ROUTE_PARKED)
		put_answer(&form, "This site is parked.");
	else
		put_forward(&form, group);
	return send(&form, &modify_rule, NULL, e);
}

enum rc alb_target(struct site *s, struct str *ret_group, struct err *e)
{
	struct found rule;
	enum rc      rc = need_route(s, ret_group, &rule, e);

	return rc || str_eq(rule.state, STR("forward")) ? rc : alb_set(s, ROUTE_CLOSED, e);
}
