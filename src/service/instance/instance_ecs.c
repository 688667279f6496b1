/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_ecs.c - events of the container service.
 *
 * An event is a hint, not the truth: the tasks are counted before a state follows from it. It is about the tenant in
 * its tag bbws:tenant-id or, without that tag, about the instance whose workers have the name of its service. An event
 * that is older than the last one is ignored, unless that one is from the future. [instance_call_ecs(),
 * instance_settle_ecs()]
 */
#include "base/arena.h"
#include "base/json.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "service/instance/instance_private.h"

enum { AHEAD_MS = 3600000 };

struct ecs_event {
	struct str name, detail_type;
	int64_t    at_ms;
};

/* --- what it is about --- */

/* As tasks have them: {"key", "value"} each. */
static struct str tag_of(const json_t *tags, const char *key, struct arena *a)
{
	struct str name, value;

	for (size_t i = 0; i < json_array_size(tags); i++)
		if (json_get_text(json_array_get(tags, i), "key", &name) && str_eq(name, str_from(key)) &&
		    json_get_text(json_array_get(tags, i), "value", &value))
			return str_dup(a, value);
	return STR("");
}

/* The service: of a task in its group, else at the end of its ARN, or as the event has it. */
static struct str service_of(const json_t *event, struct arena *a)
{
	const json_t *resources = json_object_get(event, "resources"), *detail = json_object_get(event, "detail");
	struct str    arn = STR(""), name = STR("");

	if (json_get_text(detail, "group", &name) && str_cut_prefix(&name, STR("service:")))
		return str_dup(a, name);
	if (json_is_string(json_array_get(resources, 0)))
		arn = str_from(json_string_value(json_array_get(resources, 0)));
	while (memchr(arn.p ? arn.p : "", '/', arn.n))
		(void)str_cut(&arn, '/');
	if (!arn.n && (!json_get_text(detail, "serviceName", &name) || !name.n) &&
	    !json_get_text(detail, "service", &name))
		return STR("");
	return str_dup(a, arn.n ? arn : name);
}

struct ecs_call {
	struct instance_world *world;
	struct str             tenant; /* the tag's; empty: it has none */
	struct str             service;
	struct ecs_event       event;
	struct instance        instance;
	bool                   is_known;
	struct instance_tasks  tasks;
};

static bool is_its_service(const struct instance *i, struct str service, struct arena *a)
{
	return str_eq(instance_resource_name(i->tenant, INSTANCE_WORKERS, a), service);
}

static enum rc find_by_tenant(struct session *s, struct ecs_call *c, struct str tenant, struct err *e)
{
	struct tenant_slot slot;
	enum rc            rc;

	if (!tenant_id_is_ok(tenant))
		return RC_OK;
	rc = session_find(s, &tenant_slot_type, tenant, &slot, &c->is_known, e);
	if (!rc && c->is_known)
		rc = session_find(s, &instance_type, slot.instance, &c->instance, &c->is_known, e);
	return rc;
}

/* Most names have the tenant's id in them. */
static enum rc find_by_name(struct session *s, struct ecs_call *c, struct err *e)
{
	static const struct str end = STR_INIT("-wordpress");
	enum rc                 rc;

	if (c->service.n <= end.n)
		return RC_OK;
	rc = find_by_tenant(s, c, str_of(c->service.p, c->service.n - end.n), e);
	c->is_known = !rc && c->is_known && is_its_service(&c->instance, c->service, session_arena(s));
	return rc;
}

/* A name that was shortened has a hash of it: then all live instances are looked at. */
static enum rc find_instance(struct session *s, void *arg, struct err *e)
{
	struct ecs_call       *c = arg;
	struct records         all = { .query = query_of(&instance_type, QUERY_ALL, value_int(0), QUERY_LIMIT_MAX) };
	const struct instance *i;
	enum rc                rc;

	c->is_known = false;
	if (c->tenant.n)
		return find_by_tenant(s, c, c->tenant, e);
	if (!c->service.n)
		return RC_OK;
	if ((rc = find_by_name(s, c, e)) || c->is_known)
		return rc;
	while (!c->is_known && (i = session_next(s, &all, &rc, e))) {
		c->is_known = instance_state_is_live(i->state) && is_its_service(i, c->service, session_arena(s));
		if (c->is_known)
			c->instance = *i;
	}
	return rc;
}

static enum rc read_ecs(const struct delivery *d, struct arena *a, struct ecs_call *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *event = NULL;
	const json_t               *detail;
	struct str                  time, status;
	int64_t                     sec = 0;
	enum rc                     rc = json_parse(d->event.detail, &event, e);

	if (rc)
		return rc;
	detail = json_object_get(event, "detail");
	ret->tenant = tag_of(json_object_get(detail, "tags"), "bbws:tenant-id", a);
	ret->service = service_of(event, a);
	if (!json_take_text(event, "detail-type", a, &ret->event.detail_type) ||
	    !json_take_text(detail, "eventName", a, &ret->event.name) || !json_get_text(event, "time", &time) ||
	    (time.n && !iso_time_parse(time, &sec)))
		return err_set(
		        e, RC_INVALID,
		        "an event of the container service needs detail.eventName, and a time such as 2026-11-15T18:03:43Z");
	if (!ret->event.name.n && json_get_text(detail, "lastStatus", &status) && status.n) /* of a task */
		ret->event.name = str_format(a, "TASK_%.*s", STR_ARG(status));
	ret->event.at_ms = sec ? sec * 1000 : d->event.time_ms;
	if (ret->event.name.n > INSTANCE_LABEL_MAX || ret->event.detail_type.n > INSTANCE_LABEL_MAX)
		return err_set(e, RC_INVALID, "eventName and detail-type have at most %d bytes", INSTANCE_LABEL_MAX);
	return RC_OK;
}

/* --- what comes of it --- */

/* An unknown service is not ours, and its events are ignored. */
enum rc instance_call_ecs(struct call *call, struct err *e)
{
	struct ecs_call *c = arena_alloc(call->arena, sizeof(*c));
	enum rc          rc;

	c->world = call->arg;
	call->result = c;
	if ((rc = read_ecs(call->delivery, call->arena, c, e)) ||
	    (rc = store_read(c->world->store, find_instance, c, call->arena, e)) || !c->is_known)
		return rc;
	return c->world->driver->ops->tasks(c->world->driver, c->instance.tenant, call->arena, &c->tasks, e);
}

static void set_ecs_error(struct session *s, struct instance *i, const struct ecs_call *c, const char *what)
{
	i->last_error = instance_error(session_arena(s), c->event.name.p, str_from(what), STR(""), STR(""),
	                               session_now(s).ms);
}

/* The contract's section 7. SUSPENDING, RESUMING and SCALING are left to their sagas. */
static enum rc judge(struct session *s, struct instance *i, const struct ecs_call *c, struct err *e)
{
	struct str name = c->event.name;
	int64_t    now_ms = session_now(s).ms;

	if (str_starts_with(name, STR("SERVICE_DEPLOYMENT_")))
		name = str_skip(name, strlen("SERVICE_"));
	if (str_eq(name, STR("SERVICE_STEADY_STATE"))) {
		bool is_whole = c->tasks.running == i->desired_count && c->tasks.is_healthy;

		if (is_whole)
			i->below_since_ms = 0;
		if (is_whole && i->state == INSTANCE_FAILED && i->has_data && !i->operation.n)
			return instance_apply(i, INSTANCE_ON_RECOVER, now_ms, e);
	} else if (str_eq(name, STR("SERVICE_TASK_START_IMPAIRED"))) {
		set_ecs_error(s, i, c, "the container service cannot start tasks");
		if (i->state == INSTANCE_ACTIVE && !i->operation.n && c->tasks.running == 0)
			return instance_apply(i, INSTANCE_ON_BREAK, now_ms, e);
	} else if (str_eq(name, STR("DEPLOYMENT_COMPLETED"))) {
		i->deployment = DEPLOYMENT_COMPLETED;
	} else if (str_eq(name, STR("DEPLOYMENT_IN_PROGRESS"))) {
		i->deployment = DEPLOYMENT_IN_PROGRESS;
	} else if (str_eq(name, STR("DEPLOYMENT_FAILED"))) {
		i->deployment = DEPLOYMENT_FAILED;
		set_ecs_error(s, i, c, "a deployment failed; the revision before it still serves");
		if (i->state == INSTANCE_ACTIVE && !i->operation.n && c->tasks.running == 0)
			return instance_apply(i, INSTANCE_ON_BREAK, now_ms, e);
	}
	return RC_OK;
}

enum rc instance_settle_ecs(struct session *s, const struct call *call, struct err *e)
{
	const struct ecs_call *c = call->result;
	struct instance        i;
	bool                   is_there;
	enum rc                rc = RC_OK;

	if (!c->is_known || (rc = session_find(s, &instance_type, c->instance.id, &i, &is_there, e)))
		return rc;
	if (!is_there || !instance_state_is_live(i.state))
		return RC_OK; /* nothing runs for it any more */
	/* One from the future was told by a clock that was ahead: nothing is old because of it. */
	if (c->event.at_ms < i.last_ecs_ms && i.last_ecs_ms <= session_now(s).ms + AHEAD_MS)
		return RC_OK; /* older than what is known */
	if (c->tasks.running != i.running_count && instance_state_is_rest(i.state))
		i.running_count = c->tasks.running;
	i.last_ecs_ms = c->event.at_ms;
	i.last_ecs_event = JSON_OF(session_arena(s), member_str("eventName", c->event.name),
	                           member_str("detailType", c->event.detail_type),
	                           member_time("timestamp", c->event.at_ms));
	if ((rc = judge(s, &i, c, e)))
		return rc;
	session_put(s, &instance_type, &i);
	return instance_emit(s, EVENT_INSTANCE_ECS, &i, STR("inbox/ecs"), STR(""),
	                     JSON_OF(session_arena(s), member_str("instanceId", i.id),
	                             member_str("eventName", c->event.name),
	                             member_word("status", instance_status(i.state)),
	                             member_int("runningCount", c->tasks.running)),
	                     e);
}
