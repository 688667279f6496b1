/* SPDX-License-Identifier: Apache-2.0 */
/* run_saga.c - the "saga" commands. */
#include "cli/run.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/show.h"

/* "2/5 move account" */
static struct str step_cell(struct remote *remote, const json_t *item, const char *member)
{
	struct str name = list_text(remote, item, member);
	int64_t    step, count;

	if (!json_get_number(item, "step", 0, &step) || !json_get_number(item, "step_count", 0, &count))
		return name;
	return str_format(&remote->arena, "%" PRId64 "/%" PRId64 " %.*s", step, count, STR_ARG(name));
}

/* Why it is where it is: the last error, or the reason it was given. */
static struct str why_cell(struct remote *remote, const json_t *item, const char *member)
{
	struct str error = list_text(remote, item, member);

	return error.n ? error : list_text(remote, item, "reason");
}

int run_saga_list(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "ID", list_text, "id", 22 },           { "KIND", list_text, "kind", 12 },
		{ "SUBJECT", list_text, "subject", 14 }, { "STATE", list_text, "state", 7 },
		{ "STEP", step_cell, "step_name", 14 },  { "SINCE", list_age, "step_since_at", 5 },
		{ "TRIES", list_text, "tries", 5 },      { "WHY", why_cell, "last_error", 7 },
	};
	static const struct ask_filter filters[] = { { CLI_OPTION_STATE, "state", NULL },
		                                     { CLI_OPTION_SUBJECT, "subject", NULL } };
	static const struct list       sagas = { .path = "/ops/sagas",
		                                 .items = "sagas",
		                                 .columns = columns,
		                                 .column_count = ARRAY_LEN(columns),
		                                 .filters = filters,
		                                 .filter_count = ARRAY_LEN(filters),
		                                 .has_pages = true };

	return list_run(remote, &sagas);
}

/* A saga as a record, and its steps as a table below it. */
static void show_saga(struct remote *remote, json_t *saga)
{
	static const char *const    headings[] = { "STEP", "NAME", "MARK" };
	struct wall                 now = clock_now(remote->io->clock);
	CLEANUP(json_freep) json_t *steps = json_incref(json_object_get(saga, "steps"));
	struct table                t;

	(void)json_object_del(saga, "steps"); /* not there: nothing to show below */
	show_record(remote->io->out, &remote->arena, saga, now, remote->is_coloured);
	if (!json_array_size(steps))
		return;
	table_init(&t, &remote->arena, headings, ARRAY_LEN(headings));
	for (size_t i = 0; i < json_array_size(steps); i++) {
		struct table_row *row = table_add_row(&t);

		row->cells[0] = str_format(&remote->arena, "%zu", i + 1);
		row->cells[1] = show_member(&remote->arena, json_array_get(steps, i), "name", now);
		row->cells[2] = show_member(&remote->arena, json_array_get(steps, i), "mark", now);
	}
	fputc('\n', remote->io->out);
	table_print(&t, remote->io->out, remote->is_coloured);
}

static int run_and_show(struct remote *remote, const struct remote_request *req)
{
	CLEANUP(json_freep) json_t *saga = NULL;
	struct fetch_reply          reply;
	struct err                  e = { 0 };

	if (remote_send(remote, req, &reply, &e))
		return remote_fail(remote, &e);
	if (!remote_is_success(&reply))
		return remote_refused(remote, &reply);
	if (remote_json(&reply, &saga, &e))
		return remote_fail(remote, &e);
	if (remote->is_json)
		remote_print_json(remote, &reply);
	else
		show_saga(remote, saga);
	return CLI_EXIT_OK;
}

int run_saga_show(struct remote *remote)
{
	return run_and_show(remote, &(struct remote_request){ .method = "GET",
	                                                      .path = ask_path(remote, "/ops/sagas/", ""),
	                                                      .scope = REMOTE_ADMIN });
}

int run_saga_retry(struct remote *remote)
{
	return run_and_show(remote, &(struct remote_request){ .method = "POST",
	                                                      .path = ask_path(remote, "/ops/sagas/", "/retry"),
	                                                      .scope = REMOTE_ADMIN });
}

static int order_with_reason(struct remote *remote, const char *order)
{
	struct remote_request req = { .method = "POST", .scope = REMOTE_ADMIN };
	struct err            e = { 0 };
	struct str            reason;

	if (ask_needed(remote, CLI_OPTION_REASON, &reason, &e))
		return remote_fail(remote, &e);
	req.path = ask_path(remote, "/ops/sagas/", order);
	req.body = ask_body(remote, "reason", reason);
	return run_and_show(remote, &req);
}

int run_saga_skip(struct remote *remote)
{
	return order_with_reason(remote, "/skip");
}

int run_saga_abort(struct remote *remote)
{
	return order_with_reason(remote, "/abort");
}
