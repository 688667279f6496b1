/* sqlite_segment.h - the value of a row of records with time keys: one record, or those of one commit. */
#pragma once

#include "base/attr.h"
#include "base/buf.h"
#include "store/record.h"

/* Where one record stands in its row. */
struct segment_place {
	int64_t    seq;        /* the record's number */
	char      *value;      /* its array, as row_pack() writes it, with ROW_SLACK bytes behind it */
	size_t     size;       /* of the value */
	struct str text;       /* its text that has a column */
	bool       is_damaged; /* the value is what stands there, and the number one that no record has */
	bool       is_gone;    /* for who writes the row again */
};

/* A row that was read. All zeroes: none. */
struct segment {
	int64_t               seq; /* of the row; none of its records has a smaller one */
	bool                  has_many;
	struct segment_place *places; /* in the order of their numbers */
	size_t                count;

	size_t     room_for; /* places */
	struct buf room;     /* the value, and behind it the text */
};

/* Take a row apart, whatever stands in it: what cannot be read is a damaged place. */
void segment_read(struct segment *g, int64_t seq, struct str value, struct str text);
void segment_fini(struct segment *g);

/* The number of its last record. */
int64_t segment_last(const struct segment *g);

/* Is a number the row's, so that no other row may have it? */
bool segment_covers(const struct segment *g, int64_t seq);

/* The record, as views into the row; once for each place. False: it is damaged. */
MUST_CHECK bool segment_unpack(const struct record_type *type, struct segment_place *place, void *ret);

/* The one field that has a column; NO_FIELD. */
int segment_text_field(const struct record_type *type);

/* A row that is being made: begin, add records in the order of their numbers, end. */
struct segment_row {
	const struct record_type *type;
	int                       text_field;
	int64_t                   seq;
	struct buf                value, text;

	size_t count;
	size_t only, only_size; /* the value of the first record, which is the row's when it stays alone */
};

/* Its records have numbers from this one on. */
void segment_begin(struct segment_row *r, const struct record_type *type, int64_t seq);
void segment_add(struct segment_row *r, int64_t seq, const void *record);
void segment_add_place(struct segment_row *r, const struct segment_place *place);

/* The row's value, which lasts until it is begun again. False: it is too large. */
MUST_CHECK bool segment_end(struct segment_row *r, struct str *ret_value);
void            segment_row_fini(struct segment_row *r);

static inline size_t segment_size(const struct segment_row *r)
{
	return r->value.n + r->text.n;
}
