/* show.h - answers as people read them: tables, records, times. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"

enum { TABLE_COLUMNS_MAX = 8 };

struct table_row {
	struct table_row *next;
	struct str        cells[TABLE_COLUMNS_MAX];
};

/* Rows of text under headings, all in the arena. */
struct table {
	struct arena     *arena;
	size_t            columns;
	struct table_row *first, *last;
};

/* There is a heading for each column. */
void table_init(struct table *t, struct arena *a, const char *const *headings, size_t columns);

/* A new row; cells that stay empty are shown as "-". */
struct table_row *table_add_row(struct table *t);

/* Cuts cells until all columns together have at most `width` characters, but none shorter than least[] has for its
 * column; 0 there: never. */
void table_fit(struct table *t, const size_t *least, size_t width);

/* How wide it is at the least, when cells are cut like that. */
size_t table_least(const struct table *t, const size_t *least);

/* Leave a column out. */
void table_drop(struct table *t, size_t column);

/* Columns as wide as their widest cell. */
void table_print(const struct table *t, FILE *out, bool is_coloured);

/* "in 3 h 59 min", "12 s ago", "now". */
struct str show_relative(struct arena *a, int64_t seconds_from_now);

/* "10 min", "3 h 59 min", "2 d". Not negative. */
struct str show_duration(struct arena *a, int64_t seconds);

/* "12s", "3m", "2h", "5d"; less than nothing counts as nothing. */
struct str show_age(struct arena *a, int64_t seconds);

/* At most `width` characters; the last is an ellipsis when some are missing. */
struct str show_cut(struct arena *a, struct str text, size_t width);

/* "2026-11-15 18:03:43" in local time; empty for 0. */
struct str show_date(struct arena *a, int64_t sec);

/* "2026-11-15 18:03:43 (in 3 h 59 min)" in local time; empty for 0. */
struct str show_time(struct arena *a, int64_t sec, struct wall now);

/* A member of an answer as one line of text without control characters; empty when missing or null. A number whose
 * name ends in "_at" is a time. */
struct str show_member(struct arena *a, const json_t *object, const char *name, struct wall now);

/* All members, one per line. */
void show_record(FILE *out, struct arena *a, json_t *object, struct wall now, bool is_coloured);

/* Text in lines of at most `width` characters, 0: one line; the first begins at column `at`, the others at `indent`. */
void show_wrapped(FILE *out, struct str text, size_t at, size_t indent, size_t width);
