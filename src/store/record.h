/* record.h - a record type is described once, in a table. Columns, attributes, JSON and validation come from it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

struct arena;
struct json_out;

enum field_kind {
	FIELD_TEXT, /* struct str */
	FIELD_INT,  /* int64_t */
	FIELD_ENUM, /* an enum, stored as its number, shown as its name */
};

enum { NO_FIELD = -1, RECORD_FIELDS_MAX = 63 };

struct record_field {
	const char        *name; /* of the column, the attribute and the JSON member */
	enum field_kind    kind;
	size_t             offset;
	bool               is_optional; /* absent (NULL) while empty or 0 */
	unsigned           max;         /* TEXT: longest value in bytes; ENUM: number of names */
	const char *const *names;       /* ENUM only */
};

/* Records that share a value, in the order of another. */
struct record_index {
	const char *name;
	int         hash; /* field whose value is looked up */
	int         sort; /* field that orders them; NO_FIELD: by age */
	bool is_unique;  /* the store refuses a second record with the same hash value; read by session_find_unique() */
	int  only_field; /* holds only records whose enum field has this value; NO_FIELD: all records */
	int  only_value;
	int gsi; /* DynamoDB: number of the secondary index that serves it; 0: read through one that has the same hash */
};

struct record_type {
	const char                *name;
	size_t                     size; /* of the struct */
	const struct record_field *fields;
	int                        field_count;
	int                        key;            /* field number of the primary key, a TEXT */
	size_t                     version_offset; /* uint64_t, +1 for every stored change; kept by the store */
	const struct record_index *indexes;
	int                        index_count;
	bool (*is_ok)(const void *record); /* the domain's own rules; NULL: none beside the limits of the fields */
	bool        is_often_empty; /* mostly there is no record at all: whoever looks for one shall not pay for that */
	const char *key_prefix;     /* DynamoDB: in front of the key, in the documents' own table; NULL: in ours */
};

/* A value to look up. */
struct value {
	int64_t    number; /* INT and ENUM */
	struct str text;   /* TEXT */
};

static inline struct value value_int(int64_t number)
{
	return (struct value){ .number = number };
}

static inline struct value value_text(struct str text)
{
	return (struct value){ .text = text };
}

/* Reading fields without knowing the struct. */
struct str   record_key(const struct record_type *type, const void *record);
struct value record_value(const struct record_type *type, int field, const void *record);
void         record_set(const struct record_type *type, int field, void *record, struct value v);
uint64_t     record_version(const struct record_type *type, const void *record);
void         record_set_version(const struct record_type *type, void *record, uint64_t version);

/* True when the field counts as absent. */
bool record_is_absent(const struct record_type *type, int field, const void *record);

/* Which fields differ: bit n for field n. */
uint64_t record_changes(const struct record_type *type, const void *before, const void *after);

/* True when the record belongs into the index. */
bool record_is_in_index(const struct record_type *type, const struct record_index *index, const void *record);

int value_cmp(enum field_kind kind, struct value a, struct value b);

/* A copy whose texts live in the arena. */
void record_copy(const struct record_type *type, void *to, const void *from, struct arena *a);

/* RC_CORRUPT with the field's name when a value breaks the table's limits. */
MUST_CHECK enum rc record_check(const struct record_type *type, const void *record, struct err *e);

/* The named fields as members of the open JSON object; fields is a list that ends with NO_FIELD, NULL means all.
 * Absent ones are null. */
void record_write_json(const struct record_type *type, const void *record, const int *fields, struct json_out *o);
