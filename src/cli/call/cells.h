/* cells.h - what is shown of one thing: its members as cells of a table, or as labelled lines. */
#pragma once

#include <jansson.h>

#include "base/str.h"

struct remote;

typedef struct str cell_fn(struct remote *remote, const json_t *item, const char *member);

/* A column of a table, or a line of details. Arrays of these end with one without a heading. */
struct column {
	const char *heading;
	const char *member;      /* "freezeReason.comment": of an object in it */
	size_t      width;       /* longer texts may be cut to it on a terminal that is too narrow; 0: never */
	cell_fn    *cell;        /* NULL: cell_text */
	bool        is_optional; /* the last one: left out where all its cells are empty */
	bool        is_spare;  /* left out where the terminal is too narrow for all of them, the last such one first */
	const char *otherwise; /* a member that is shown where the first is empty */
	const char *yes, *no;  /* instead of a cell: whether the member is true, or there is a number */
};

/* A table with these headings, and a row for each item. */
void cells_print_items(struct remote *remote, const struct column *columns, const json_t *items, bool is_coloured);

/* A line for each cell that is not empty. */
void cells_print_details(struct remote *remote, const struct column *lines, const json_t *item);

/* A number; 0 where there is none. */
int64_t member_number(const json_t *item, const char *member);

cell_fn cell_text;       /* as show_member() has it */
cell_fn cell_short;      /* the last 8 characters: ids begin with their time, so many begin alike */
cell_fn cell_id;         /* the same on a terminal, the whole one elsewhere */
cell_fn cell_age;        /* how long ago: Unix seconds, or a time as text */
cell_fn cell_due;        /* "in 3m", "3m ago" */
cell_fn cell_seconds;    /* a duration in seconds: "3m" */
cell_fn cell_duration;   /* the same: "3 min"; empty for 0 */
cell_fn cell_time;       /* "2026-11-15 18:03:43 (in 3 h 59 min)" of the same; empty for 0 */
cell_fn cell_dollars;    /* "12.50" */
cell_fn cell_hours;      /* hours as a number: "1 d 2 h" */
cell_fn cell_thresholds; /* "at 40.00 ALERT, at 2 h before the end FREEZE_ACCOUNT" */

/* The next cell of a line of CSV; the line goes on behind its mark, a comma as a rule. False: a quote is not closed. */
bool csv_cut(struct arena *a, struct str *line, char mark, struct str *ret);
