/* SPDX-License-Identifier: Apache-2.0 */
/* run_queue.c - the "queue" commands. */
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/run.h"

enum { WITHOUT_END = 1000 };

static struct str tries_cell(struct remote *remote, const json_t *queue, const char *member)
{
	if (json_integer_value(json_object_get(queue, member)) >= WITHOUT_END)
		return STR("no limit");
	return list_text(remote, queue, member);
}

int run_queue_list(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "NAME", list_text, "name", 32 },
		{ "SUBJECTS", list_text, "lanes", 9 },
		{ "OLDEST", list_seconds, "oldest_age_sec", 6 },
		{ "FAILING", list_text, "failing", 8 },
		{ "DEAD", list_text, "dead", 8 },
		{ "TRIES", tries_cell, "tries", 8 },
		{ "VISIBILITY", list_seconds, "visibility_sec", 10 },
	};
	static const struct list queues = {
		.path = "/ops/queues", .items = "queues", .columns = columns, .column_count = ARRAY_LEN(columns)
	};

	return list_run(remote, &queues);
}

int run_queue_show(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "SUBJECT", list_text, "subject", 26 }, { "TARGET", list_text, "target", 12 },
		{ "STATE", list_text, "state", 9 },      { "BEHIND", list_text, "behind", 6 },
		{ "AGE", list_age, "since_at", 5 },      { "TRIES", list_text, "tries", 5 },
		{ "DUE", list_due, "due_at", 8 },        { "ERROR", list_text, "last_error", 15 },
	};
	struct list lanes = { .path = ask_path(remote, "/ops/queues/", "/lanes").p,
		              .items = "lanes",
		              .columns = columns,
		              .column_count = ARRAY_LEN(columns),
		              .has_pages = true };

	return list_run(remote, &lanes);
}
