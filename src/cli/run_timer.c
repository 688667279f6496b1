/* SPDX-License-Identifier: Apache-2.0 */
/* run_timer.c - the "timer" commands. */
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/run.h"

int run_timer_list(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "NAME", list_text, "name", 36 },
		{ "DUE", list_due, "due_at", 8 },
		{ "TYPE", list_text, "type", 24 },
		{ "SUBJECT", list_text, "subject", 26 },
	};
	static const struct ask_filter filters[] = { { CLI_OPTION_PREFIX, "prefix", NULL } };
	static const struct list       timers = { .path = "/ops/timers",
		                                  .items = "timers",
		                                  .columns = columns,
		                                  .column_count = ARRAY_LEN(columns),
		                                  .filters = filters,
		                                  .filter_count = ARRAY_LEN(filters),
		                                  .has_pages = true };

	return list_run(remote, &timers);
}

int run_timer_fire(struct remote *remote)
{
	return remote_run(remote, &(struct remote_request){ .method = "POST",
	                                                    .path = ask_path(remote, "/ops/timers/", "/fire"),
	                                                    .scope = REMOTE_ADMIN });
}

int run_timer_cancel(struct remote *remote)
{
	return remote_run(remote, &(struct remote_request){ .method = "DELETE",
	                                                    .path = ask_path(remote, "/ops/timers/", ""),
	                                                    .scope = REMOTE_ADMIN });
}
