/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_segment.c - records with time keys that were written by one commit are one row, a segment.
 *
 * A row costs SQLite the same whatever is in it. A segment is one JSON array with a line for each record, in the order
 * of their numbers:
 *
 *     [[0,0,57,[version,field,field,...]],
 *     [32768,57,48,[version,field,field,...]]]
 *
 * A line holds how much greater the record's number is than the row's, where its long text begins in the row's column
 * for that text and how many bytes it has, and its array as row_pack() writes it, which has no line feed. A record that
 * is alone in its row has nothing but its array, as it was before there were segments; readers here see no difference.
 *
 * A row that was read may hold anything: a line that is none of these is a damaged place. It has a number behind the
 * place before it, so that who reads page by page gets past it; several in a row share one.
 *
 * Not here: which rows there are (sqlite_timed.c, sqlite_timed_read.c).
 */
#include "store/sqlite/sqlite_segment.h"

#include <assert.h>
#include <stdlib.h>

#include "base/digits.h"
#include "base/mem.h"
#include "store/sqlite/sqlite_row.h"

enum { VALUE_MAX = 16 << 20, PLACES_STEP = 64, HEAD_MAX = 4 * (DIGITS_MAX + 2) };

int segment_text_field(const struct record_type *type)
{
	int found = NO_FIELD;

	for (int f = 0; f < type->field_count; f++)
		if (row_has_column(type, f)) {
			assert(found == NO_FIELD);
			found = f;
		}
	return found;
}

/* --- reading --- */

/* "number," */
static bool read_number(char **at, const char *end, int64_t *ret)
{
	int64_t number = 0;
	char   *from = *at, *p = from;

	for (; p < end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, *p - '0', &number))
			return false;
	if (p == from || p == end || *p != ',')
		return false;
	*ret = number;
	*at = p + 1;
	return true;
}

/* A line into a place that has its number already if it is damaged. */
static bool read_line(struct segment_place *p, int64_t row, char *line, char *end, struct str text)
{
	int64_t behind, start, size, seq;
	char   *at = line + 1;

	if (end - line < 2 || line[0] != '[' || end[-1] != ']' || !read_number(&at, end, &behind) ||
	    !read_number(&at, end, &start) || !read_number(&at, end, &size))
		return false;
	if (__builtin_add_overflow(row, behind, &seq) || seq < p->seq || start > (int64_t)text.n ||
	    size > (int64_t)text.n - start)
		return false;
	if (end - at < 3 || at[0] != '[' || at[1] == '[') /* alone in its row, it would be taken for a segment */
		return false;
	p->seq = seq;
	p->value = at;
	p->size = (size_t)(end - 1 - at);
	p->text = str_of(text.p + start, (size_t)size);
	return true;
}

static struct segment_place *add_place(struct segment *g)
{
	if (g->count == g->room_for) {
		g->room_for += PLACES_STEP;
		g->places = mem_resize(g->places, g->room_for * sizeof(*g->places));
	}
	return &g->places[g->count++];
}

/* Behind the number before it. */
static int64_t next_number(const struct segment *g)
{
	int64_t last = g->count ? g->places[g->count - 1].seq : g->seq;

	return g->count && last < INT64_MAX ? last + 1 : last;
}

static void read_lines(struct segment *g, char *at, char *end, struct str text)
{
	if (end[-1] == ']')
		end--;
	while (at < end) {
		char                *feed = memchr(at, '\n', (size_t)(end - at)), *next = feed ? feed + 1 : end;
		char                *line_end = !feed ? end : feed > at && feed[-1] == ',' ? feed - 1 : feed;
		int64_t              seq = next_number(g);
		struct segment_place place = { .seq = seq, .value = at, .size = (size_t)(line_end - at) };

		place.is_damaged = !read_line(&place, g->seq, at, line_end, text);
		if (place.is_damaged && g->count && g->places[g->count - 1].is_damaged)
			place.seq = g->places[g->count - 1].seq; /* many must not reach into the next row */
		*add_place(g) = place;
		at = next;
	}
}

void segment_read(struct segment *g, int64_t seq, struct str value, struct str text)
{
	char *room;

	g->seq = seq;
	g->count = 0;
	g->has_many = value.n > 2 && value.p[0] == '[' && value.p[1] == '[';
	g->room.max = SIZE_MAX;
	buf_reset(&g->room);
	room = buf_room(&g->room, value.n + text.n + ROW_SLACK);
	if (value.n)
		memcpy(room, value.p, value.n);
	if (text.n)
		memcpy(room + value.n, text.p, text.n);
	memset(room + value.n + text.n, 0, ROW_SLACK);
	text.p = room + value.n;
	if (g->has_many)
		read_lines(g, room + 1, room + value.n, text);
	else
		*add_place(g) = (struct segment_place){ .seq = seq, .value = room, .size = value.n, .text = text };
}

void segment_fini(struct segment *g)
{
	free(g->places);
	buf_fini(&g->room);
	*g = (struct segment){ 0 };
}

int64_t segment_last(const struct segment *g)
{
	return g->places[g->count - 1].seq;
}

bool segment_covers(const struct segment *g, int64_t seq)
{
	return g->count && g->seq <= seq && seq <= segment_last(g);
}

bool segment_unpack(const struct record_type *type, struct segment_place *place, void *ret)
{
	int text = segment_text_field(type);

	if (place->is_damaged || !row_unpack(type, ~0ull, place->value, place->size, ret))
		return false;
	if (text != NO_FIELD)
		record_set(type, text, ret, value_text(place->text));
	return true;
}

/* --- writing --- */

void segment_begin(struct segment_row *r, const struct record_type *type, int64_t seq)
{
	r->type = type;
	r->text_field = segment_text_field(type);
	r->seq = seq;
	r->count = r->only = r->only_size = 0;
	r->value.max = r->text.max = VALUE_MAX;
	buf_reset(&r->value);
	buf_reset(&r->text);
}

/* What is in front of a record's array. */
static void add_head(struct segment_row *r, int64_t seq, size_t text_size)
{
	char *at = buf_room(&r->value, HEAD_MAX), *from = at;

	if (!at)
		return; /* segment_end() tells it */
	memcpy(at, r->count ? ",\n[" : "[[", 3);
	at = digits_put(at + (r->count ? 3 : 2), seq - r->seq);
	*at++ = ',';
	at = digits_put(at, (int64_t)r->text.n);
	*at++ = ',';
	at = digits_put(at, (int64_t)text_size);
	*at++ = ',';
	buf_added(&r->value, (size_t)(at - from));
}

/* Behind it; it began here. */
static void add_tail(struct segment_row *r, int64_t seq, size_t from, struct str text)
{
	if (!r->count++ && seq == r->seq) {
		r->only = from;
		r->only_size = r->value.n - from;
	}
	buf_add_char(&r->value, ']');
	buf_add_str(&r->text, text);
}

void segment_add(struct segment_row *r, int64_t seq, const void *record)
{
	bool       has_text = r->text_field != NO_FIELD;
	struct str text = has_text ? record_value(r->type, r->text_field, record).text : STR("");
	size_t     from;

	assert(seq >= r->seq);
	add_head(r, seq, text.n);
	from = r->value.n;
	row_pack(r->type, record, 0, &r->value);
	add_tail(r, seq, from, text);
}

/* As it stands behind a mark, with which no line is one of a record, now or when the row is written again. */
static void add_damaged(struct segment_row *r, const struct segment_place *place)
{
	struct str line = str_of(place->value, place->size);

	buf_add_text(&r->value, r->count++ ? ",\n" : "[");
	if (!str_starts_with(line, STR("[?")))
		buf_add_text(&r->value, "[?");
	buf_add_str(&r->value, line);
}

void segment_add_place(struct segment_row *r, const struct segment_place *place)
{
	size_t from;

	if (place->is_damaged) {
		add_damaged(r, place);
		return;
	}
	add_head(r, place->seq, place->text.n);
	from = r->value.n;
	buf_add(&r->value, place->value, place->size);
	add_tail(r, place->seq, from, place->text);
}

bool segment_end(struct segment_row *r, struct str *ret_value)
{
	bool is_alone = r->count == 1 && r->only_size;

	buf_add_char(&r->value, ']');
	if (r->value.is_full || r->text.is_full)
		return false;
	*ret_value = is_alone ? str_of(r->value.p + r->only, r->only_size) : buf_str(&r->value);
	return true;
}

void segment_row_fini(struct segment_row *r)
{
	buf_fini(&r->value);
	buf_fini(&r->text);
}
