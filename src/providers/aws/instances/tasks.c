/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks.c - see tasks.h.
 *
 * Such a task carries in startedBy what it does: so one whose start was not answered is found, and no second one is
 * started. What it does is safe to repeat (deploy/aws/site/leasehold-task).
 */
#include "providers/aws/instances/tasks.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/id.h"

enum { LOOK_MS = 2000 };

static const struct aws_op run_task = ECS_OP("RunTask", true), list_tasks = ECS_OP("ListTasks", false),
                           describe_tasks = ECS_OP("DescribeTasks", false);

/* What a task is known by. */
static struct str mark_of(const struct site *s, const struct task_order *o)
{
	struct str text = str_format(s->a, "%.*s %.*s", STR_ARG(s->tenant), STR_ARG(o->name));

	return str_format(s->a, "leasehold-%s-%.*s", o->what, SITE_TOKEN_SIZE - 1, hash_sha256_hex(s->a, text).p);
}

/* --- finding it --- */

static enum rc describe(struct site *s, struct str arns_json, json_t **ret, struct err *e)
{
	return site_do(s, &describe_tasks,
	               JSON_OF(s->a, member_str("cluster", s->x->o.cluster), member_raw("tasks", arns_json)), ret, e);
}

enum rc tasks_read(struct site *s, struct json_member whose, struct json_member state, json_t **ret, struct err *e)
{
	CLEANUP(json_freep) json_t *list = NULL;
	struct str                  body = JSON_OF(s->a, member_str("cluster", s->x->o.cluster), whose, state);
	const json_t               *arns;
	enum rc                     rc = site_do(s, &list_tasks, body, &list, e);

	arns = json_object_get(list, "taskArns");
	return rc || !json_array_size(arns) ? rc : describe(s, json_dump(s->a, arns), ret, e);
}

/* -1: it has not ended. -2: it has ended, and its container never ran. */
enum { STILL_RUNS = -1, NEVER_RAN = -2 };

static int64_t exit_code(const json_t *task)
{
	const json_t *container;
	struct str    status;
	int64_t       code = NEVER_RAN;
	size_t        i;

	if (!json_get_text(task, "lastStatus", &status) || !str_eq(status, STR("STOPPED")))
		return STILL_RUNS;
	json_array_foreach(json_object_get(task, "containers"), i, container)
	{
		if (!json_get_number(container, "exitCode", NEVER_RAN, &code))
			code = NEVER_RAN;
	}
	return code;
}

/* The newest page of tasks of the family that run, or have ended lately. Empty: none of them is the one. */
static enum rc find_task(struct site *s, const struct task_order *o, bool is_over, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *tasks = NULL;
	const json_t               *task;
	struct str                  mark = mark_of(s, o), by;
	size_t                      i;
	enum rc                     rc = tasks_read(s, member_str("family", family_name(s, o->family)),
	                                            member_word("desiredStatus", is_over ? "STOPPED" : "RUNNING"), &tasks, e);

	*ret = STR("");
	if (rc)
		return rc;
	json_array_foreach(json_object_get(tasks, "tasks"), i, task)
	{
		if (json_get_text(task, "startedBy", &by) && str_eq(by, mark) && (!is_over || exit_code(task) == 0))
			json_take_text(task, "taskArn", s->a, ret);
	}
	return RC_OK;
}

/* --- starting it --- */

static struct str make_order(struct site *s, const struct task_order *o, struct str definition)
{
	char            token[ID_UUID_SIZE];
	struct buf      b = BUF(JSON_OF_MAX);
	struct json_out out = JSON_OUT(&b);

	id_uuid(token);
	json_open_object(&out);
	JSON_PUT(&out, member_str("cluster", s->x->o.cluster), member_str("taskDefinition", definition),
	         member_word("launchType", "FARGATE"), member_word("platformVersion", "1.4.0"), member_int("count", 1),
	         member_word("clientToken", token), member_str("startedBy", mark_of(s, o)),
	         member_raw("networkConfiguration", site_network(s)),
	         member_raw("tags", site_tag_list(s, "key", "value", NULL, STR(""))), member_object("overrides"),
	         member_list("containerOverrides"), member_object(NULL), member_word("name", SITE_CONTAINER),
	         member_raw("command", str_format(s->a, "[\"leasehold-task\",\"%s\"]", o->what)),
	         member_list("environment"));
	for (size_t i = 0; i < ORDER_TEXTS && o->texts[i].name; i++)
		JSON_PUT(&out, member_object(NULL), member_word("name", o->texts[i].name),
		         member_str("value", o->texts[i].value), member_end());
	JSON_PUT(&out, member_list_end(), member_end(), member_list_end(), member_end());
	json_close_object(&out);
	return buf_take(&b, s->a);
}

static enum rc start(struct site *s, const struct task_order *o, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *made = NULL;
	struct str                  definition = STR(""), why = STR("");
	struct err                  lost = { 0 };
	enum rc                     rc;

	if ((o->family != FAMILY_DROP && (rc = log_group_make(s, e))) ||
	    (rc = definition_make(s, o->family, &definition, e)))
		return rc;
	rc = site_do(s, &run_task, make_order(s, o, definition), &made, &lost);
	if (rc == RC_TIMEOUT && !find_task(s, o, false, ret, NULL) && ret->n)
		return RC_OK;
	if (rc)
		return err_pass(e, rc, &lost);
	if (!json_take_text(json_array_get(json_object_get(made, "tasks"), 0), "taskArn", s->a, ret) || !ret->n) {
		json_take_text(json_array_get(json_object_get(made, "failures"), 0), "reason", s->a, &why);
		return err_set(e, RC_UNAVAILABLE, "the task '%s' did not start: %.*s", o->what, STR_ARG(why));
	}
	return RC_OK;
}

/* --- its end --- */

static enum rc look(struct site *s, const struct task_order *o, struct str arn, bool *ret_is_over, struct err *e)
{
	CLEANUP(json_freep) json_t *got = NULL;
	const json_t               *task;
	struct str                  why = STR("");
	int64_t                     code;
	enum rc                     rc = describe(s, str_format(s->a, "[\"%.*s\"]", STR_ARG(arn)), &got, e);

	if (rc)
		return rc;
	if (!(task = json_array_get(json_object_get(got, "tasks"), 0)))
		return RC_OK; /* it was started a moment ago, and ECS has not told all of itself */
	code = exit_code(task);
	*ret_is_over = code != STILL_RUNS;
	json_get_text(task, "stoppedReason", &why);
	if (code == NEVER_RAN)
		return err_set(e, RC_UNAVAILABLE, "the task '%s' did not come up: %.*s", o->what, STR_ARG(why));
	if (*ret_is_over && code)
		return err_set(e, RC_UNAVAILABLE, "the task '%s' ended with exit code %lld; its log group is %s",
		               o->what, (long long)code, log_group_name(s).p);
	return RC_OK;
}

enum rc task_run(struct site *s, const struct task_order *o, struct str *ret_id, struct err *e)
{
	struct mono began = mono_now();
	struct str  arn = STR(""), rest;
	bool        is_over = false;
	enum rc     rc = o->is_once ? find_task(s, o, true, &arn, e) : RC_OK;

	is_over = arn.n > 0;
	if (!rc && !arn.n)
		rc = find_task(s, o, false, &arn, e);
	if (!rc && !arn.n)
		rc = start(s, o, &arn, e);
	is_over = is_over || o->is_started;
	while (!rc && !is_over && !(rc = look(s, o, arn, &is_over, e)) && !is_over)
		if (mono_now().ms - began.ms > o->wait_ms || !site_wait(s, LOOK_MS))
			return err_set(e, RC_UNAVAILABLE, "the task '%s' still runs", o->what);
	if (rc)
		return rc;
	rest = arn;
	while (rest.n)
		*ret_id = str_cut(&rest, '/');
	return RC_OK;
}

enum rc task_empty_files(struct site *s, const struct found *point, struct err *e)
{
	struct task_order o = {
		.family = FAMILY_FILES, .what = "empty", .name = point->id, .is_once = true, .wait_ms = SITE_WAIT_MS
	};
	struct str id;

	return task_run(s, &o, &id, e);
}
