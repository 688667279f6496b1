/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_instance.c - what the "instance" commands do beyond their rows in calls.c.
 *
 * An instance is named by its id, or by its tenant, which means that tenant's newest. The server answers once the
 * command is stored; with --wait the client waits for its end, and the progress names the step.
 */
#include "cli/commands/run.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"

/* --- waiting --- */

/* "create, step 3 of 10: secret; not yet: ..." */
static enum wait_outcome judge(struct remote *remote, const json_t *operation, struct str goal UNUSED,
                               struct str *ret_text)
{
	struct str state = cell_text(remote, operation, "state"), what = cell_text(remote, operation, "operation");
	struct str step = cell_text(remote, operation, "step"), waits = cell_text(remote, operation, "waitsFor");
	struct str message = cell_text(remote, json_object_get(operation, "error"), "message"),
	           code = cell_text(remote, json_object_get(operation, "error"), "code");
	int64_t number = member_number(operation, "stepNumber"), count = member_number(operation, "stepCount");

	if (str_eq(state, STR("SUCCEEDED")))
		return WAIT_DONE;
	if (!str_eq(state, STR("RUNNING"))) {
		*ret_text = str_format(&remote->arena, "%.*s: %.*s: %.*s, %.*s", STR_ARG(what), STR_ARG(state),
		                       STR_ARG(code), STR_ARG(message));
		return WAIT_FAILED;
	}
	*ret_text = str_format(&remote->arena, "%.*s, %sstep %" PRId64 " of %" PRId64 ": %.*s%s%.*s", STR_ARG(what),
	                       json_is_true(json_object_get(operation, "goesBack")) ? "undoing " : "", number, count,
	                       STR_ARG(step), waits.n ? "; not yet: " : "", STR_ARG(waits));
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
	fprintf(remote->io->err, "To see its progress: leasehold instance show %.*s (or use --wait)\n", STR_ARG(id));
	return CLI_EXIT_OK;
}

/* --- cells --- */

struct str cell_instance_tasks(struct remote *remote, const json_t *item, const char *member UNUSED)
{
	const json_t *configuration = json_object_get(item, "configuration");
	int64_t       desired = 0, running = 0;

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
	               ? str_format(&remote->arena, "%.*s; parked until someone acts", STR_ARG(text))
	               : text;
}
