/* record.h - a record type is described once, in a table. Columns, attributes, JSON and validation come from it. */
#pragma once

#include <string.h>

#include "base/err.h"
#include "base/str.h"

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

/* A list X_FIELDS(X) of X(number of the field, its row) is both the enumeration of a record's fields, enum {
 * X_FIELDS(RECORD_FIELD_ID) }, and their table; see record_rows.h. */
#define RECORD_FIELD_ID(id, ...) id,

/* Records that share a value, in the order of another. */
struct record_index {
	const char *name;
	int         hash; /* field whose value is looked up */
	int         sort; /* field that orders them; NO_FIELD: by age */
	bool is_unique;  /* the store refuses a second record with the same hash value; read by session_find_unique() */
	int  only_field; /* holds only records whose enum field has this value; NO_FIELD: all records */
	int  only_value;
	int  gsi;        /* DynamoDB: number of the GSI that serves it; 0: read through one with the same hash */
	bool is_hot;     /* SQLite: kept in memory, because it changes all the time; its hash is an enum */
	bool is_counted; /* SQLite: how many there are of each value is kept in memory; all records are in it, by an enum */
};

/* An item of a table that other programs read, made from a record: see record_items_fn. */
enum item_kind { ITEM_TEXT, ITEM_NUMBER, ITEM_MAP }; /* map: a JSON object of texts */
struct item_attribute {
	const char    *name;
	enum item_kind kind;
	struct str     text;
};
enum { ITEM_ATTRIBUTES_MAX = 48, RECORD_ITEMS_MAX = 8 };
struct record_item {
	struct str            pk, sk;
	size_t                count; /* 0: it goes */
	struct item_attribute attributes[ITEM_ATTRIBUTES_MAX];
};

/* DynamoDB: what this change of a record makes of the documents' table of tenants, in the same transaction. Nobody
 * reads it back. before, after: NULL when there is none. Answers how many items; their texts live in the arena. */
typedef size_t record_items_fn(const void *before, const void *after, struct arena *a,
                               struct record_item ret[RECORD_ITEMS_MAX]);

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
	bool        is_often_empty;        /* mostly there is no record at all: looking for one must cost nothing */
	bool        is_packed;             /* SQLite: one value in its row, because it is written all the time */
	bool        has_time_key; /* SQLite: packed, many to a row, by a number made of the key, an id of the kernel */
	const char *key_prefix;   /* DynamoDB: in front of the key, in the documents' own table; NULL: in ours */
	bool        is_sliced;    /* DynamoDB: over many partition keys; its indexes are in the order of the key */
	record_items_fn *items;   /* NULL: none */
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

/* Reading and writing fields without knowing the struct. Inline: every record that is read or written passes here field
 * by field. */
static inline struct str record_text(const struct record_field *f, const void *record)
{
	struct str text;

	memcpy(&text, (const char *)record + f->offset, sizeof(text));
	return text;
}

/* Of an INT or an ENUM. */
static inline int64_t record_number(const struct record_field *f, const void *record)
{
	const char *at = (const char *)record + f->offset;
	int64_t     number;
	int         word;

	if (f->kind == FIELD_INT) {
		memcpy(&number, at, sizeof(number));
		return number;
	}
	memcpy(&word, at, sizeof(word));
	return word;
}

static inline struct value record_value(const struct record_type *type, int field, const void *record)
{
	const struct record_field *f = &type->fields[field];

	return f->kind == FIELD_TEXT ? value_text(record_text(f, record)) : value_int(record_number(f, record));
}

static inline void record_set_field(const struct record_field *f, void *record, struct value v)
{
	char *at = (char *)record + f->offset;
	int   word = (int)v.number;

	switch (f->kind) {
	case FIELD_TEXT: memcpy(at, &v.text, sizeof(v.text)); break;
	case FIELD_INT: memcpy(at, &v.number, sizeof(v.number)); break;
	case FIELD_ENUM: memcpy(at, &word, sizeof(word)); break;
	}
}

static inline void record_set(const struct record_type *type, int field, void *record, struct value v)
{
	record_set_field(&type->fields[field], record, v);
}

static inline struct str record_key(const struct record_type *type, const void *record)
{
	return record_text(&type->fields[type->key], record);
}

/* True when the field counts as absent. */
static inline bool record_is_absent(const struct record_type *type, int field, const void *record)
{
	const struct record_field *f = &type->fields[field];

	if (!f->is_optional)
		return false;
	return f->kind == FIELD_TEXT ? record_text(f, record).n == 0 : record_number(f, record) == 0;
}

uint64_t record_version(const struct record_type *type, const void *record);
void     record_set_version(const struct record_type *type, void *record, uint64_t version);

/* Which fields differ: bit n for field n. */
uint64_t record_changes(const struct record_type *type, const void *before, const void *after);

/* True when the record belongs into the index. */
bool record_is_in_index(const struct record_type *type, const struct record_index *index, const void *record);

int value_cmp(enum field_kind kind, struct value a, struct value b);

/* Bytes of memory that it takes, its texts included. */
size_t record_bytes(const struct record_type *type, const void *record);

/* A copy whose texts live in the arena. */
void record_copy(const struct record_type *type, void *to, const void *from, struct arena *a);

/* RC_CORRUPT with the field's name when a value breaks the table's limits. */
MUST_CHECK enum rc record_check(const struct record_type *type, const void *record, struct err *e);

/* The named fields as members of the open JSON object, up to NO_FIELD; NULL means all. Absent ones are null. */
void record_write_json(const struct record_type *type, const void *record, const int *fields, struct json_out *o);
