/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ecs.c - a tenant's tasks: a service of the shared cluster, with a circuit breaker.
 *
 * A service that was deleted is DRAINING until its tasks have ended; then it is INACTIVE, which is as good as not
 * there.
 */
#include "providers/aws/instances/ecs.h"

#include "providers/aws/instances/alb.h"
#include "providers/aws/instances/tasks.h"

static const struct aws_op create_service = ECS_OP("CreateService", true),
                           update_service = ECS_OP("UpdateService", true),
                           delete_service = ECS_OP("DeleteService", true),
                           describe_services = ECS_OP("DescribeServices", false);

/* NULL: there is none. Yours. */
static enum rc get_service(struct site *s, json_t **ret, struct err *e)
{
	CLEANUP(json_freep) json_t *got = NULL;
	json_t                     *service;
	struct str                  status;
	enum rc                     rc = site_do(s, &describe_services,
	                                         JSON_OF(s->a, member_str("cluster", s->x->o.cluster),
	                                                 member_raw("services",
	                                                            str_format(s->a, "[\"%s\"]", family_name(s, FAMILY_WORDPRESS).p)),
	                                                 member_raw("include", STR("[\"TAGS\"]"))),
	                                         &got, e);

	if (rc)
		return rc;
	service = json_array_get(json_object_get(got, "services"), 0);
	if (service && json_get_text(service, "status", &status) && !str_eq(status, STR("INACTIVE")))
		*ret = json_incref(service);
	else
		*ret = NULL;
	return RC_OK;
}

static enum rc find_service(struct site *s, struct found *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *service = NULL;
	enum rc                     rc = get_service(s, &service, e);

	*ret = (struct found){ 0 };
	if (rc || !service)
		return rc;
	ret->is_there = true;
	json_take_text(service, "serviceArn", s->a, &ret->arn);
	json_take_text(service, "status", s->a, &ret->state);
	ret->id = ret->arn;
	ret->key = aws_get_tag(json_object_get(service, "tags"), "key", "value", TAG_KEY, s->a);
	return RC_OK;
}

static enum rc need_service(struct site *s, json_t **ret, struct err *e)
{
	struct str status;
	enum rc    rc = get_service(s, ret, e);

	if (!rc && (!*ret || !json_get_text(*ret, "status", &status) || !str_eq(status, STR("ACTIVE"))))
		return err_set(e, RC_NOT_FOUND, "tenant %.*s has no service", STR_ARG(s->tenant));
	return rc;
}

/* --- made --- */

static enum rc make_service(struct site *s, struct found *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *made = NULL;
	struct str                  definition, group, body;
	enum rc                     rc;

	if ((rc = log_group_make(s, e)) || (rc = alb_target(s, &group, e)) ||
	    (rc = definition_make(s, FAMILY_WORDPRESS, &definition, e)))
		return rc;
	body = JSON_OF(s->a, member_str("cluster", s->x->o.cluster),
	               member_str("serviceName", family_name(s, FAMILY_WORDPRESS)),
	               member_str("taskDefinition", definition), member_int("desiredCount", s->spec->desired_count),
	               member_str("clientToken", site_token(s, str_format(s->a, "service %s %lld", definition.p,
	                                                                  (long long)s->spec->desired_count)
	                                                               .p)),
	               member_word("launchType", "FARGATE"), member_word("platformVersion", "1.4.0"),
	               member_raw("networkConfiguration", site_network(s)), member_list("loadBalancers"),
	               member_object(NULL), member_str("targetGroupArn", group),
	               member_word("containerName", SITE_CONTAINER), member_int("containerPort", 80), member_end(),
	               member_list_end(),
	               member_raw("deploymentConfiguration",
	                          STR("{\"deploymentCircuitBreaker\":{\"enable\":true,\"rollback\":true},"
	                              "\"minimumHealthyPercent\":50,\"maximumPercent\":200}")),
	               member_int("healthCheckGracePeriodSeconds", 120), member_bool("enableECSManagedTags", true),
	               member_word("propagateTags", "SERVICE"),
	               member_raw("tags", site_tag_list(s, "key", "value", NULL, STR(""))));
	if ((rc = site_do(s, &create_service, body, &made, e)))
		return rc;
	*ret = (struct found){ .is_there = true, .state = STR("ACTIVE"), .key = s->spec->instance };
	json_take_text(json_object_get(made, "service"), "serviceArn", s->a, &ret->arn);
	ret->id = ret->arn;
	return RC_OK;
}

static struct str outputs_of(const struct site *s, struct str arn, struct str key)
{
	return JSON_OF(s->a, member_str("id", arn), member_str("name", family_name(s, FAMILY_WORDPRESS)),
	               member_str("cluster", s->x->o.cluster), member_if_any(member_str("instance", key)));
}

enum rc ecs_make(struct site *s, struct str *ret_outputs, struct err *e)
{
	struct found f;
	enum rc      rc = site_make_once(s, INSTANCE_WORKERS, find_service, make_service, &f, e);

	if (!rc && !str_eq(f.state, STR("ACTIVE")))
		rc = err_set(e, RC_UNAVAILABLE, "the service before it is still %.*s", STR_ARG(f.state));
	if (!rc)
		*ret_outputs = outputs_of(s, f.arn, f.key);
	return rc;
}

enum rc ecs_check(struct site *s, bool *ret_exists, struct str *ret_outputs, struct err *e)
{
	struct found f;
	enum rc      rc = find_service(s, &f, e);

	*ret_exists = f.is_there;
	if (!rc && !f.is_there)
		rc = definition_find(s, FAMILY_WORDPRESS, ret_exists, &f.key, e);
	*ret_outputs = outputs_of(s, f.arn, f.key);
	return rc;
}

/* --- changed --- */

static enum rc update(struct site *s, struct json_member what, struct err *e)
{
	return site_do(s, &update_service,
	               JSON_OF(s->a, member_str("cluster", s->x->o.cluster),
	                       member_str("service", family_name(s, FAMILY_WORDPRESS)), what),
	               NULL, e);
}

enum rc ecs_scale(struct site *s, int64_t desired, struct err *e)
{
	CLEANUP(json_freep) json_t *service = NULL;
	struct str                  group;
	enum rc                     rc = need_service(s, &service, e);

	if (!rc && desired) /* a group that no rule forwards to finds no task healthy */
		rc = alb_target(s, &group, e);
	return rc ? rc : update(s, member_int("desiredCount", desired), e);
}

enum rc ecs_restart(struct site *s, struct err *e)
{
	return update(s, member_bool("forceNewDeployment", true), e);
}

enum rc ecs_redefine(struct site *s, struct err *e)
{
	CLEANUP(json_freep) json_t *service = NULL;
	struct str                  definition, now;
	enum rc                     rc = need_service(s, &service, e);

	if (rc || (rc = definition_make(s, FAMILY_WORDPRESS, &definition, e)))
		return rc;
	if (json_get_text(service, "taskDefinition", &now) && str_eq(now, definition))
		return RC_OK;
	return update(s, member_str("taskDefinition", definition), e);
}

/* --- removed --- */

static enum rc is_gone(struct site *s, bool *ret, struct err *e)
{
	struct found f;
	enum rc      rc = find_service(s, &f, e);

	*ret = !f.is_there;
	return rc;
}

static enum rc drop(struct site *s, struct err *e)
{
	struct str body = JSON_OF(s->a, member_str("cluster", s->x->o.cluster),
	                          member_str("service", family_name(s, FAMILY_WORDPRESS)), member_bool("force", true));
	enum rc    rc = err_forgive(e, update(s, member_int("desiredCount", 0), e), RC_NOT_FOUND);

	return rc ? rc : err_forgive(e, site_do(s, &delete_service, body, NULL, e), RC_NOT_FOUND);
}

enum rc ecs_remove(struct site *s, struct err *e)
{
	struct found f;
	enum rc      rc = find_service(s, &f, e);

	if (!rc && f.is_there && !str_eq(f.state, STR("DRAINING")))
		rc = drop(s, e);
	if (!rc && f.is_there)
		rc = site_wait_for(s, is_gone, "the service is gone", e);
	return rc ? rc : definitions_remove(s, FAMILY_WORDPRESS, e);
}

/* --- counted --- */

static void read_task(struct site *s, const json_t *task, struct instance_tasks *ret)
{
	struct instance_task *t = &ret->items[ret->count++];
	struct str            arn = STR(""), status = STR(""), health = STR("");

	*t = (struct instance_task){ 0 };
	json_take_text(task, "taskArn", s->a, &arn);
	while (arn.n)
		t->id = str_cut(&arn, '/');
	json_get_text(task, "lastStatus", &status);
	json_get_text(task, "healthStatus", &health);
	t->is_running = str_eq(status, STR("RUNNING"));
	t->is_healthy = str_eq(health, STR("HEALTHY"));
	(void)aws_get_time(task, "startedAt", &t->started_ms); /* not there while it comes up */
}

static enum rc read_tasks(struct site *s, struct instance_tasks *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *tasks = NULL;
	const json_t               *task;
	size_t                      i;
	enum rc                     rc = tasks_read(s, member_str("serviceName", family_name(s, FAMILY_WORDPRESS)),
	                                            (struct json_member){ 0 }, &tasks, e);

	if (rc)
		return rc;
	json_array_foreach(json_object_get(tasks, "tasks"), i, task)
	{
		if (ret->count < INSTANCE_TASKS_MAX)
			read_task(s, task, ret);
	}
	return RC_OK;
}

/* It has settled: one deployment, which has come to its end. A deployment that failed where nothing runs will not get
 * better by waiting. */
static enum rc read_deployments(const json_t *service, struct instance_tasks *ret, struct err *e)
{
	const json_t *all = json_object_get(service, "deployments"), *first = json_array_get(all, 0);
	struct str    state = STR(""), why = STR("");

	json_get_text(first, "rolloutState", &state);
	json_get_text(first, "rolloutStateReason", &why);
	ret->is_healthy = json_array_size(all) == 1 && (!state.n || str_eq(state, STR("COMPLETED")));
	if (str_eq(state, STR("FAILED")) && !ret->running && ret->desired)
		return err_set(e, RC_INVALID, "the tasks do not start: %.*s", STR_ARG(why));
	return RC_OK;
}

enum rc ecs_count(struct site *s, struct instance_tasks *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *service = NULL;
	int64_t                     healthy;
	enum rc                     rc = get_service(s, &service, e);

	*ret = (struct instance_tasks){ .is_healthy = true };
	if (rc || !service)
		return rc;
	if (!json_get_number(service, "desiredCount", 0, &ret->desired) ||
	    !json_get_number(service, "runningCount", 0, &ret->running) ||
	    !json_get_number(service, "pendingCount", 0, &ret->pending))
		return err_set(e, RC_CORRUPT, "DescribeServices: a count that is no number");
	if ((rc = read_deployments(service, ret, e)) || (rc = alb_count(s, &healthy, e)))
		return rc;
	ret->is_healthy = ret->is_healthy && healthy >= ret->running;
	return read_tasks(s, ret, e);
}
