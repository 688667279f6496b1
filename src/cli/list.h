/* list.h - lists as tables of at most 100 columns: what to ask for, and which member goes where. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cli/ask.h"

struct remote;

/* What a column shows of an item. */
typedef struct str list_cell_fn(struct remote *remote, const json_t *item, const char *member);

struct list_column {
	const char   *heading;
	list_cell_fn *cell;
	const char   *member;
	size_t        width; /* longer texts are cut */
};

struct list {
	const char               *path;
	const char               *items; /* the answer's member that has them; under /api of its data */
	const struct list_column *columns;
	size_t                    column_count;
	const struct ask_filter  *filters;
	size_t                    filter_count;
	bool                      has_pages; /* knows limit and cursor; --limit and --all are for these */
	bool                      is_api;    /* of people, under /api; has pages */
	int64_t                   page_most; /* what the server takes as a limit; 0: 100 */
};

/* Ask for one page, or with --all for every one, and print them. Returns the exit code. */
int list_run(struct remote *remote, const struct list *list);

list_cell_fn list_text;
list_cell_fn list_short;   /* the first 8 characters */
list_cell_fn list_age;     /* how long ago: Unix seconds, or a time as text */
list_cell_fn list_due;     /* "in 3m", "3m ago" */
list_cell_fn list_seconds; /* a duration */
