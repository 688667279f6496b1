/* sqlite_row.h - a record as one value: a JSON array that holds its version and its fields. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "store/record.h"

/* The array's member of a field; the version is member 0. */
#define ROW_MEMBER(field) ((field) + 1)

/* True when the key has a column as well, to be found by. */
static inline bool row_has_key_column(const struct record_type *type)
{
	return !type->has_time_key;
}

/* True for a text that may be long: it has a column of its own, where nothing of it must be quoted, and is null in the
 * array. */
enum { ROW_TEXT_MAX = 4096 };
static inline bool row_is_long(const struct record_field *field)
{
	return field->kind == FIELD_TEXT && field->max > ROW_TEXT_MAX;
}

static inline bool row_has_column(const struct record_type *type, int f)
{
	return row_is_long(&type->fields[f]);
}

/* The record's array, at the end of the buffer, with blanks behind it up to `least` bytes. */
void row_pack(const struct record_type *type, const void *record, size_t least, struct buf *b);

/* Back again: these fields (bit n: field n) and the version; what is not named, or has a column, is left as it is. The
 * text is changed, the record's texts are views of it, each followed by a NUL; it has ROW_SLACK bytes behind it. False:
 * it is no such array. */
enum { ROW_SLACK = 8 };
MUST_CHECK bool row_unpack(const struct record_type *type, uint64_t fields, char *text, size_t size, void *record);

/* The numbers that a key with a time in it may have: ROW_SLOTS from this one on, in the order of keys. False: it
 * is no such key; then it is still the number of the first that is not before it. */
enum { ROW_SLOTS = 8 };
bool row_of_time_key(struct str key, int64_t *ret);
