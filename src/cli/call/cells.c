/* SPDX-License-Identifier: Apache-2.0 */
/* cells.c - from the JSON of a thing to text for people. Knows no commands. */
#include "cli/call/cells.h"

#include <math.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/call/remote.h"
#include "cli/term/show.h"

enum { HOUR_SEC = 3600, HOURS_MOST = 1000000, CELL_MAX = 4096, SHORT_ID = 8 };

/* --- tables and details --- */

static struct str cell_of(struct remote *remote, const struct column *c, const json_t *item)
{
	const char   *dot = c->member ? strchr(c->member, '.') : NULL, *member = dot ? dot + 1 : c->member;
	const json_t *owner = dot ? json_object_getn(item, c->member, (size_t)(dot - c->member)) : item;
	const json_t *value = json_object_get(owner, member);
	cell_fn      *cell = c->cell ? c->cell : cell_text;
	struct str    text;

	if (c->yes)
		return str_from(json_is_true(value) || json_is_integer(value) ? c->yes : c->no);
	text = cell(remote, owner, member);
	return text.n || !c->otherwise ? text : cell(remote, owner, c->otherwise);
}

/* The spare columns go, the last first, until the rest fits. */
static void drop_spare(struct table *t, const struct column *columns, size_t *least, size_t width)
{
	for (size_t i = t->columns; i-- > 0 && table_least(t, least) > width;)
		if (columns[i].is_spare) {
			table_drop(t, i);
			memmove(&least[i], &least[i + 1], (t->columns - i) * sizeof(least[0]));
		}
}

void cells_print_items(struct remote *remote, const struct column *columns, const json_t *items, bool is_coloured)
{
	const char       *headings[TABLE_COLUMNS_MAX];
	size_t            least[TABLE_COLUMNS_MAX], count = 0;
	bool              is_empty = true; /* the last column */
	struct table_row *row;
	struct table      t;

	for (const struct column *c = columns; c->heading; c++) {
		least[count] = c->width;
		headings[count++] = c->heading;
	}
	table_init(&t, &remote->arena, headings, count);
	for (size_t i = 0; i < json_array_size(items); i++) {
		row = table_add_row(&t);
		for (size_t k = 0; k < count; k++)
			row->cells[k] = cell_of(remote, &columns[k], json_array_get(items, i));
		is_empty = is_empty && !row->cells[count - 1].n;
	}
	t.columns -= columns[count - 1].is_optional && is_empty;
	if (remote->io->width) {
		drop_spare(&t, columns, least, remote->io->width);
		table_fit(&t, least, remote->io->width);
	}
	table_print(&t, remote->io->out, is_coloured);
}

void cells_print_details(struct remote *remote, const struct column *lines, const json_t *item)
{
	CLEANUP(json_freep) json_t *shown = json_object();

	for (const struct column *l = lines; l->heading; l++) {
		struct str text = cell_of(remote, l, item);

		if (text.n) /* what is not UTF-8 is not shown */
			(void)json_object_set_new(shown, l->heading, json_stringn(text.p, text.n));
	}
	show_record(remote->io->out, &remote->arena, shown, clock_now(remote->io->clock), remote->is_coloured);
}

/* --- cells --- */

int64_t member_number(const json_t *item, const char *member)
{
	int64_t n;

	return json_get_number(item, member, 0, &n) ? n : 0;
}

struct str cell_text(struct remote *remote, const json_t *item, const char *member)
{
	return show_member(&remote->arena, item, member, clock_now(remote->io->clock));
}

struct str cell_short(struct remote *remote, const json_t *item, const char *member)
{
	struct str text = cell_text(remote, item, member);

	return text.n > SHORT_ID ? str_of(text.p + text.n - SHORT_ID, SHORT_ID) : text;
}

struct str cell_id(struct remote *remote, const json_t *item, const char *member)
{
	return (remote->io->width ? cell_short : cell_text)(remote, item, member);
}

/* False when there is no time. */
static bool read_seconds(const json_t *item, const char *member, int64_t *ret)
{
	struct str text;

	if (json_get_text(item, member, &text))
		return iso_time_parse(text, ret);
	return json_get_number(item, member, 0, ret) && *ret > 0;
}

struct str cell_age(struct remote *remote, const json_t *item, const char *member)
{
	int64_t sec;

	if (!read_seconds(item, member, &sec))
		return STR("");
	return show_age(&remote->arena, wall_sec(clock_now(remote->io->clock)) - sec);
}

struct str cell_due(struct remote *remote, const json_t *item, const char *member)
{
	int64_t    sec, left;
	struct str age;

	if (!read_seconds(item, member, &sec))
		return STR("");
	left = sec - wall_sec(clock_now(remote->io->clock));
	age = show_age(&remote->arena, left < 0 ? -left : left);
	return str_format(&remote->arena, left >= 0 ? "in %.*s" : "%.*s ago", STR_ARG(age));
}

struct str cell_seconds(struct remote *remote, const json_t *item, const char *member)
{
	const json_t *value = json_object_get(item, member);

	return json_is_integer(value) ? show_age(&remote->arena, json_integer_value(value)) : STR("");
}

struct str cell_duration(struct remote *remote, const json_t *item, const char *member)
{
	int64_t sec = member_number(item, member);

	return sec > 0 ? show_duration(&remote->arena, sec) : STR("");
}

struct str cell_time(struct remote *remote, const json_t *item, const char *member)
{
	int64_t sec;

	return read_seconds(item, member, &sec) ? show_time(&remote->arena, sec, clock_now(remote->io->clock))
	                                        : STR("");
}

struct str cell_dollars(struct remote *remote, const json_t *item, const char *member)
{
	const json_t *value = json_object_get(item, member);

	return json_is_number(value) ? json_dollars(&remote->arena, json_number_value(value)) : STR("");
}

struct str cell_hours(struct remote *remote, const json_t *item, const char *member)
{
	double hours = json_number_value(json_object_get(item, member)); /* 0 for anything else */

	return hours > 0 && hours < HOURS_MOST ? show_duration(&remote->arena, llround(hours * HOUR_SEC)) : STR("");
}

/* Of either kind: by dollars or by hours. */
struct str cell_thresholds(struct remote *remote, const json_t *item, const char *member)
{
	const json_t *list = json_object_get(item, member);
	struct buf    b = BUF(CELL_MAX);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		struct str    spent = cell_dollars(remote, one, "dollarsSpent");
		struct str    left = cell_hours(remote, one, "hoursRemaining");
		struct str    action = cell_text(remote, one, "action");

		buf_addf(&b, "%sat %.*s%.*s%s %.*s", b.n ? ", " : "", STR_ARG(spent), STR_ARG(left),
		         left.n ? " before the end" : "", STR_ARG(action));
	}
	return buf_take(&b, &remote->arena);
}

/* --- CSV --- */

bool csv_cut(struct arena *a, struct str *line, char mark, struct str *ret)
{
	char  *text;
	size_t n = 0, i = 1;

	if (!line->n || line->p[0] != '"') {
		*ret = str_cut(line, mark);
		return true;
	}
	text = arena_alloc(a, line->n);
	for (; i < line->n && (line->p[i] != '"' || (i + 1 < line->n && line->p[i + 1] == '"')); i++) {
		i += line->p[i] == '"';
		text[n++] = line->p[i];
	}
	*ret = str_of(text, n);
	*line = str_skip(*line, i < line->n ? i : line->n);
	return str_cut(line, mark).n > 0; /* the quote, and what does not belong behind it */
}
