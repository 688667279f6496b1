/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_instance.c - what the "instance" commands do beyond their rows in calls.c.
 *
 * An instance is meant by its id, or by its tenant: then it is that one's last. A command is answered when it is
 * stored; with --wait it is followed to its end, and the progress names the step.
 */
#include "cli/commands/run.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"

enum { COUNT_MIN = 2, COUNT_MAX = 10 };

/* --- waiting --- */

/* "create, step 3 of 10: secret; waits for: ..." */
static enum wait_outcome judge(struct remote *remote, const json_t *operation, struct str goal, struct str *ret_text)
{
	struct str state = cell_text(remote, operation, "state"), what = cell_text(remote, operation, "operation");
	struct str step = cell_text(remote, operation, "step"), waits = cell_text(remote, operation, "waitsFor");
	struct str message = cell_text(remote, json_object_get(operation, "error"), "message"),
	           code = cell_text(remote, json_object_get(operation, "error"), "code");
	int64_t number = 0, count = 0;

	(void)goal;
	if (str_eq(state, STR("SUCCEEDED")))
		return WAIT_DONE;
	if (!str_eq(state, STR("RUNNING"))) {
		*ret_text = str_format(&remote->arena, "%.*s: %.*s: %.*s, %.*s", STR_ARG(what), STR_ARG(state),
		                       STR_ARG(code), STR_ARG(message));
		return WAIT_FAILED;
	}
	if (!json_get_number(operation, "stepNumber", 0, &number) ||
	    !json_get_number(operation, "stepCount", 0, &count))
		number = count = 0;
	*ret_text = str_format(&remote->arena, "%.*s, %sstep %" PRId64 " of %" PRId64 ": %.*s%s%.*s", STR_ARG(what),
	                       json_is_true(json_object_get(operation, "goesBack")) ? "going back from " : "", number,
	                       count, STR_ARG(step), waits.n ? "; waits: " : "", STR_ARG(waits));
	return WAIT_ON;
}

static int follow(struct remote *remote, const json_t *accepted)
{
	struct str instance = cell_text(remote, accepted, "instanceId"),
	           operation = cell_text(remote, accepted, "operationId");
	struct wait w = { .path = str_format(&remote->arena, "/-/instances/%.*s/operations/%.*s", STR_ARG(instance),
		                             STR_ARG(operation)),
		          .scope = REMOTE_TENANT,
		          .judge = judge,
		          .advice = "It continues; 'leasehold instance show' shows its progress." };
	int         code = wait_run(remote, &w);

	return code == CLI_EXIT_OK ? call_run(remote, &calls[CLI_COMMAND_INSTANCE_SHOW]) : code;
}

int finish_instance(struct remote *remote, const struct answer *answer)
{
	struct str id = cell_text(remote, answer->data, "instanceId"),
	           message = cell_text(remote, answer->data, "message");
	struct str status = cell_text(remote, answer->data, "status"),
	           operation = cell_text(remote, answer->data, "operationId");

	if (remote->args->values[CLI_OPTION_WAIT])
		return follow(remote, answer->data);
	if (remote->is_json) {
		remote_print_json(remote, &answer->reply);
		return CLI_EXIT_OK;
	}
	fprintf(remote->io->out, "Instance %.*s is %.*s: %.*s (operation %.*s).\n", STR_ARG(id), STR_ARG(status),
	        STR_ARG(message), STR_ARG(operation));
	fprintf(remote->io->err, "To see how far it is: leasehold instance show %.*s; --wait waits for it.\n",
	        STR_ARG(id));
	return CLI_EXIT_OK;
}

/* --- create and update: members below members --- */

static void set_text(json_t *object, const char *name, const char *text)
{
	if (text)
		(void)json_object_set_new(object, name, json_string(text)); /* fails only when memory is gone */
}

static enum rc compose(struct remote *remote, bool is_new, struct str *ret, struct err *e)
{
	const char *const          *v = remote->args->values;
	CLEANUP(json_freep) json_t *body = json_object();
	json_t                     *configuration = json_object();
	int64_t                     count = 0;
	enum rc                     rc = option_number(remote, CLI_OPTION_COUNT, COUNT_MIN, COUNT_MAX, 0, &count, e);

	set_text(body, "organizationName", is_new ? v[CLI_OPTION_ORGANIZATION] : NULL);
	set_text(body, "contactEmail", v[CLI_OPTION_EMAIL]);
	set_text(body, "tier", v[CLI_OPTION_TIER]);
	set_text(configuration, "wordpressVersion", v[CLI_OPTION_WORDPRESS]);
	if (count)
		(void)json_object_set_new(configuration, "desiredCount", json_integer(count)); /* as above */
	if (json_object_size(configuration))
		(void)json_object_set(body, "configuration", configuration); /* as above */
	json_decref(configuration);
	*ret = json_dump(&remote->arena, body);
	return rc;
}

static int send(struct remote *remote, const char *method, struct str path, bool is_new)
{
	struct remote_request              req = { .method = method, .path = path, .scope = REMOTE_TENANT };
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	struct err                         e = { 0 };
	int                                code;

	if (compose(remote, is_new, &req.body, &e))
		return remote_fail(remote, &e);
	if (remote->args->values[CLI_OPTION_KEY])
		req.headers[0] =
		        str_format(&remote->arena, "Idempotency-Key: %s", remote->args->values[CLI_OPTION_KEY]).p;
	code = remote_call(remote, &req, &answer);
	return code == CLI_EXIT_OK ? finish_instance(remote, &answer) : code;
}

int run_instance_create(struct remote *remote)
{
	return send(remote, "POST", compose_path(remote, "/{}/instances", str_from(remote->args->operands[0])), true);
}

int run_instance_update(struct remote *remote)
{
	const char *const *v = remote->args->values;

	if (!v[CLI_OPTION_TIER] && !v[CLI_OPTION_WORDPRESS] && !v[CLI_OPTION_EMAIL])
		return remote_misused(remote, "nothing to change: give --tier, --wordpress or --email");
	return send(remote, "PUT", compose_path(remote, "/-/instances/{}", str_from(remote->args->operands[0])), false);
}

/* --- cells --- */

struct str cell_instance_tasks(struct remote *remote, const json_t *item, const char *member)
{
	const json_t *configuration = json_object_get(item, "configuration");
	int64_t       desired = 0, running = 0;

	(void)member;
	if (!json_get_number(configuration ? configuration : item, "desiredCount", 0, &desired) ||
	    !json_get_number(item, "runningCount", 0, &running))
		return STR("");
	return str_format(&remote->arena, "%" PRId64 "/%" PRId64, running, desired);
}

struct str cell_instance_error(struct remote *remote, const json_t *item, const char *member)
{
	const json_t *error = json_object_get(item, member);
	struct str    code = cell_text(remote, error, "code"), message = cell_text(remote, error, "message"),
	           step = cell_text(remote, error, "step");

	return code.n ? str_format(&remote->arena, "%.*s%s%.*s: %.*s", STR_ARG(code), step.n ? " at " : "",
	                           STR_ARG(step), STR_ARG(message))
	              : STR("");
}

struct str cell_instance_operation(struct remote *remote, const json_t *item, const char *member)
{
	const json_t *operation = json_object_get(item, member);
	struct str    text = STR("");

	if (json_is_object(operation))
		(void)judge(remote, operation, STR(""), &text);
	return json_is_true(json_object_get(operation, "parked"))
	               ? str_format(&remote->arena, "%.*s; parked: it waits for a person", STR_ARG(text))
	               : text;
}
