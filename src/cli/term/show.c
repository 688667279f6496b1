/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.c - from JSON to something to read.
 *
 * Text from a server goes to a terminal only through clean(): a name with an escape sequence in it must not move the
 * cursor or change the title. Widths count characters, not bytes; characters of double width are not known here.
 */
#include "cli/term/show.h"

#include <assert.h>
#include <time.h>

#include "base/arena.h"
#include "base/json.h"

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Control characters, C1 ones in UTF-8 included, become '?'. */
static struct str clean(struct arena *a, struct str text)
{
	char *copy = arena_copy(a, text.p, text.n);

	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)copy[i];

		if (c < 0x20 || c == 0x7f)
			copy[i] = '?';
		else if (c == 0xc2 && i + 1 < text.n && (unsigned char)copy[i + 1] < 0xa0)
			copy[i] = copy[i + 1] = '?';
	}
	return str_of(copy, text.n);
}

static size_t width(struct str text)
{
	size_t characters = 0;

	for (size_t i = 0; i < text.n; i++)
		characters += !is_continuation(text.p[i]);
	return characters;
}

void table_init(struct table *t, struct arena *a, const char *const *headings, size_t columns)
{
	assert(columns <= TABLE_COLUMNS_MAX);
	*t = (struct table){ .arena = a, .columns = columns };
	t->first = t->last = arena_alloc(a, sizeof(*t->first));
	for (size_t i = 0; i < columns; i++)
		t->first->cells[i] = str_from(headings[i]);
}

struct table_row *table_add_row(struct table *t)
{
	struct table_row *row = arena_alloc(t->arena, sizeof(*row));

	t->last->next = row;
	t->last = row;
	return row;
}

static void measure(const struct table *t, size_t *widths)
{
	for (const struct table_row *row = t->first; row; row = row->next)
		for (size_t i = 0; i < t->columns; i++)
			if (width(row->cells[i]) > widths[i])
				widths[i] = width(row->cells[i]);
}

static size_t shorter(size_t least, size_t width)
{
	return least && least < width ? least : width;
}

size_t table_least(const struct table *t, const size_t *least)
{
	size_t widths[TABLE_COLUMNS_MAX] = { 0 }, sum = 2 * (t->columns - 1);

	measure(t, widths);
	for (size_t i = 0; i < t->columns; i++)
		sum += shorter(least[i], widths[i]);
	return sum;
}

void table_drop(struct table *t, size_t column)
{
	assert(column < t->columns && t->columns > 1);
	t->columns--;
	for (struct table_row *row = t->first; row; row = row->next)
		memmove(&row->cells[column], &row->cells[column + 1], (t->columns - column) * sizeof(row->cells[0]));
}

void table_fit(struct table *t, const size_t *least, size_t most)
{
	size_t widths[TABLE_COLUMNS_MAX] = { 0 }, fitting[TABLE_COLUMNS_MAX], sum = table_least(t, least);

	measure(t, widths);
	for (size_t i = 0; i < t->columns; i++) { /* what is left goes to the first that can use it */
		size_t more = sum < most ? most - sum : 0;

		fitting[i] = shorter(least[i], widths[i]);
		more = more < widths[i] - fitting[i] ? more : widths[i] - fitting[i];
		fitting[i] += more;
		sum += more;
	}
	for (struct table_row *row = t->first; row; row = row->next)
		for (size_t i = 0; i < t->columns; i++)
			row->cells[i] = show_cut(t->arena, row->cells[i], fitting[i]);
}

static const char *colour_of(struct str text)
{
	static const struct {
		const char *colour, *words;
	} colours[] = {
		{ "\033[32m", "available success done Active Available" },
		{ "\033[36m", "allocated" },
		{ "\033[33m",
		  "stale paused warning undoing PendingApproval InLine Provisioning Frozen CleanUp Cooldown" },
		{ "\033[31m", "error deletion_failed parked page Quarantine BudgetExceeded ProvisioningFailed" },
	};

	for (size_t i = 0; i < ARRAY_LEN(colours); i++)
		if (str_is_word_of(text, colours[i].words))
			return colours[i].colour;
	return NULL;
}

/* A cell padded to that many characters; the colour, when not NULL, does not count. */
static void print_cell(FILE *out, struct str text, size_t padded, const char *colour)
{
	if (text.n == 0)
		text = STR("-");
	fprintf(out, "%s%.*s%s", colour ? colour : "", STR_ARG(text), colour ? "\033[0m" : "");
	for (size_t n = width(text); n < padded; n++)
		fputc(' ', out);
}

void table_print(const struct table *t, FILE *out, bool is_coloured)
{
	size_t widths[TABLE_COLUMNS_MAX] = { 0 };

	measure(t, widths);
	widths[t->columns - 1] = 0; /* nothing to align behind the last */

	for (const struct table_row *row = t->first; row; row = row->next)
		for (size_t i = 0; i < t->columns; i++) {
			const char *colour = row == t->first ? "\033[1m" : colour_of(row->cells[i]);

			print_cell(out, row->cells[i], widths[i], is_coloured ? colour : NULL);
			fputs(i + 1 < t->columns ? "  " : "\n", out);
		}
}

struct str show_duration(struct arena *a, int64_t seconds)
{
	int64_t days = seconds / 86400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;

	if (seconds < 60)
		return str_format(a, "%" PRId64 " s", seconds);
	if (days > 0)
		return hours ? str_format(a, "%" PRId64 " d %" PRId64 " h", days, hours)
		             : str_format(a, "%" PRId64 " d", days);
	if (hours > 0)
		return minutes ? str_format(a, "%" PRId64 " h %" PRId64 " min", hours, minutes)
		               : str_format(a, "%" PRId64 " h", hours);
	return str_format(a, "%" PRId64 " min", minutes);
}

struct str show_relative(struct arena *a, int64_t seconds)
{
	struct str duration = show_duration(a, seconds < 0 ? -seconds : seconds);

	if (seconds == 0)
		return STR("now");
	return str_format(a, seconds > 0 ? "in %.*s" : "%.*s ago", STR_ARG(duration));
}

struct str show_age(struct arena *a, int64_t seconds)
{
	if (seconds < 60)
		return str_format(a, "%" PRId64 "s", seconds < 0 ? 0 : seconds);
	if (seconds < 3600)
		return str_format(a, "%" PRId64 "m", seconds / 60);
	if (seconds < 2 * 86400)
		return str_format(a, "%" PRId64 "h", seconds / 3600);
	return str_format(a, "%" PRId64 "d", seconds / 86400);
}

struct str show_cut(struct arena *a, struct str text, size_t characters)
{
	size_t at = 0, seen = 0;

	if (width(text) <= characters)
		return text;
	while (at < text.n && (is_continuation(text.p[at]) || ++seen < characters))
		at++;
	return str_format(a, "%.*s\xe2\x80\xa6", (int)at, text.p);
}

struct str show_date(struct arena *a, int64_t sec)
{
	time_t    t = (time_t)sec;
	char      text[48];
	struct tm tm;

	if (sec <= 0)
		return STR("");
	if (!localtime_r(&t, &tm) || strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm) == 0)
		return str_format(a, "%" PRId64, sec);
	return str_dup(a, str_from(text));
}

struct str show_time(struct arena *a, int64_t sec, struct wall now)
{
	struct str date = show_date(a, sec), relative;

	if (!date.n)
		return date;
	relative = show_relative(a, sec - wall_sec(now));
	return str_format(a, "%.*s (%.*s)", STR_ARG(date), STR_ARG(relative));
}

/* "a, b" of a list of texts; other lists and objects as JSON. */
static struct str show_nested(struct arena *a, const json_t *value)
{
	struct str texts = STR("");
	size_t     i;
	json_t    *item;

	json_array_foreach(value, i, item)
	{
		if (!json_is_string(item))
			return clean(a, json_dump(a, value));
		texts = str_format(a, "%.*s%s%s", STR_ARG(texts), i ? ", " : "", json_string_value(item));
	}
	return clean(a, json_is_array(value) ? texts : json_dump(a, value));
}

struct str show_member(struct arena *a, const json_t *object, const char *name, struct wall now)
{
	const json_t *value = json_object_get(object, name);
	size_t        n = strlen(name);
	bool          is_time = (n > 3 && strcmp(name + n - 3, "_at") == 0) || strcmp(name, "last_synced") == 0;

	if (!value || json_is_null(value))
		return STR("");
	if (json_is_string(value))
		return clean(a, str_of(json_string_value(value), json_string_length(value)));
	if (json_is_boolean(value))
		return json_is_true(value) ? STR("yes") : STR("no");
	if (json_is_integer(value) && is_time)
		return show_time(a, json_integer_value(value), now);
	return show_nested(a, value);
}

void show_record(FILE *out, struct arena *a, json_t *object, struct wall now, bool is_coloured)
{
	size_t      widest = 0;
	const char *name;
	json_t     *value;

	json_object_foreach(object, name, value) if (width(str_from(name)) > widest) widest = width(str_from(name));
	json_object_foreach(object, name, value)
	{
		struct str text = show_member(a, object, name, now);

		print_cell(out, clean(a, str_from(name)), widest + 2, is_coloured ? "\033[1m" : NULL);
		print_cell(out, text, 0, is_coloured ? colour_of(text) : NULL);
		fputc('\n', out);
	}
}

void show_wrapped(FILE *out, struct str text, size_t at, size_t indent, size_t width)
{
	bool is_first = true;

	while (text.n) {
		struct str word = str_cut(&text, ' ');

		if (!is_first && width && at + 1 + word.n > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
			is_first = true;
		}
		at += (size_t)fprintf(out, "%s%.*s", is_first ? "" : " ", STR_ARG(word));
		is_first = false;
	}
	fputc('\n', out);
}
