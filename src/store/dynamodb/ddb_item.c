/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddb_item.c - records as DynamoDB items.
 *
 * Types of the source documents (those with a key_prefix) keep their form: PK is prefix and key, SK is "META",
 * attributes have the names of the fields, enums are text. An absent field has no attribute, unless it orders an index:
 * those need a number in every item. Ours alone is `version`; an item without it was written by another program and is
 * taken as it is.
 *
 * Our own types are kept in a table of ours, where PK is the type and SK the key, so that all of a type can be listed
 * in the order of keys. Its secondary indexes are for any type: an item that belongs in number n has two more
 * attributes, g{n}h = "type.index#hash value" and g{n}s = what it is ordered by, as text whose order is the order of
 * the values.
 */
#include <assert.h>
#include <stdio.h>

#include "store/dynamodb/ddb_private.h"

/* What stands for an empty text, which cannot be a key: before all that is written by people. */
#define EMPTY_SORT "\x01"

const struct ddb_own_index ddb_own_indexes[DDB_KERNEL_GSI_MAX] = {
	{ "Index1", "g1h", "g1s" },
	{ "Index2", "g2h", "g2s" },
	{ "Index3", "g3h", "g3s" },
};

void ddb_begin(struct buf *body, struct json_out *o, const char *table)
{
	*body = BUF(DDB_BODY_MAX);
	*o = JSON_OUT(body);
	JSON_PUT(o, member_object(NULL), member_word("TableName", table));
}

const char *ddb_table(const struct ddb_store *d, const struct record_type *type)
{
	return type->key_prefix ? d->options.pool_table : d->options.kernel_table;
}

void ddb_put_text(struct json_out *o, const char *name, struct str text)
{
	JSON_PUT(o, member_object(name), member_str("S", text), member_end());
}

void ddb_put_number(struct json_out *o, const char *name, int64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)number); /* fits */
	JSON_PUT(o, member_object(name), member_word("N", text), member_end());
}

void ddb_put_value(struct json_out *o, const char *name, const struct record_field *field, struct value v)
{
	switch (field->kind) {
	case FIELD_TEXT: ddb_put_text(o, name, v.text); break;
	case FIELD_INT: ddb_put_number(o, name, v.number); break;
	case FIELD_ENUM: ddb_put_text(o, name, str_from(field->names[v.number])); break;
	}
}

/* "type" or "type.3". */
enum { SLICE_TEXT_SIZE = 64 };

static const char *slice_text(char ret[SLICE_TEXT_SIZE], const struct record_type *type, unsigned slice)
{
	(void)snprintf(ret, SLICE_TEXT_SIZE, slice ? "%s.%u" : "%s", type->name, slice); /* fits */
	return ret;
}

void ddb_put_slice(struct json_out *o, const char *name, const struct record_type *type, unsigned slice)
{
	char text[SLICE_TEXT_SIZE];

	ddb_put_text(o, name, str_from(slice_text(text, type, slice)));
}

void ddb_put_key(struct json_out *o, const struct record_type *type, unsigned slice, struct str key)
{
	char   text[512];
	size_t prefix = type->key_prefix ? strlen(type->key_prefix) : 0;

	if (!type->key_prefix) {
		ddb_put_slice(o, "PK", type, slice);
		ddb_put_text(o, "SK", key);
		return;
	}
	assert(prefix + key.n <= sizeof(text)); /* keys are limited by their type */
	memcpy(text, type->key_prefix, prefix);
	if (key.n)
		memcpy(text + prefix, key.p, key.n);
	ddb_put_text(o, "PK", str_of(text, prefix + key.n));
	ddb_put_text(o, "SK", STR("META"));
}

enum { HASH_TEXT_SIZE = 1024 }; /* values are limited by their type */

/* "type.index#value" behind a prefix; the slice follows the type. */
static const char *hash_text(char ret[HASH_TEXT_SIZE], const char *prefix, const struct record_type *type,
                             unsigned slice, const struct record_index *index, struct value v)
{
	char sliced[SLICE_TEXT_SIZE];
	bool is_text = type->fields[index->hash].kind == FIELD_TEXT;
	int  n = snprintf(ret, HASH_TEXT_SIZE, "%s%s.%s#", prefix, slice_text(sliced, type, slice), index->name);
	int  rest = is_text ? snprintf(ret + n, HASH_TEXT_SIZE - (size_t)n, "%.*s", STR_ARG(v.text))
	                    : snprintf(ret + n, HASH_TEXT_SIZE - (size_t)n, "%lld", (long long)v.number);

	assert(rest >= 0 && n + rest < HASH_TEXT_SIZE);
	return ret;
}

void ddb_put_marker_key(struct json_out *o, const struct record_type *type, int index, struct value v)
{
	char text[HASH_TEXT_SIZE];

	ddb_put_text(o, "PK", str_from(hash_text(text, "unique#", type, 0, &type->indexes[index], v)));
	ddb_put_text(o, "SK", STR("META"));
}

const struct ddb_own_index *ddb_own_index(const struct record_type *type, const struct record_index *index)
{
	if (type->key_prefix || !index->gsi)
		return NULL;
	assert(index->gsi <= DDB_KERNEL_GSI_MAX);
	return &ddb_own_indexes[index->gsi - 1];
}

int ddb_sort_field(const struct record_type *type, const struct record_index *index)
{
	return index->sort == NO_FIELD ? type->key : index->sort;
}

struct str ddb_sort_text(enum field_kind kind, struct value v, char number[DDB_NUMBER_SIZE])
{
	if (kind == FIELD_TEXT)
		return v.text.n ? v.text : STR(EMPTY_SORT);
	/* Shifted, so that the smallest number is 0: as many digits for all, and none has a sign. */
	(void)snprintf(number, DDB_NUMBER_SIZE, "%020llu", (unsigned long long)v.number ^ 1ull << 63); /* fits */
	return str_from(number);
}

void ddb_put_own_hash(struct json_out *o, const char *name, const struct record_type *type, unsigned slice,
                      const struct record_index *index, struct value v)
{
	char text[HASH_TEXT_SIZE];

	ddb_put_text(o, name, str_from(hash_text(text, "", type, slice, index, v)));
}

void ddb_put_places(struct json_out *o, const struct record_type *type, unsigned slice, const void *record,
                    const char *prefix)
{
	for (int i = 0; i < type->index_count; i++) {
		const struct record_index  *index = &type->indexes[i];
		const struct ddb_own_index *own = ddb_own_index(type, index);
		int                         field = ddb_sort_field(type, index);
		char                        name[8], number[DDB_NUMBER_SIZE];

		if (!own || !record_is_in_index(type, index, record))
			continue;
		(void)snprintf(name, sizeof(name), "%s%s", prefix, own->hash); /* fits */
		ddb_put_own_hash(o, name, type, slice, index, record_value(type, index->hash, record));
		(void)snprintf(name, sizeof(name), "%s%s", prefix, own->sort); /* fits */
		ddb_put_text(o, name,
		             ddb_sort_text(type->fields[field].kind, record_value(type, field, record), number));
	}
}

bool ddb_is_kept(const struct record_type *type, int field)
{
	for (int i = 0; i < type->index_count; i++)
		if (type->indexes[i].sort == field && type->fields[field].kind == FIELD_INT)
			return true;
	return false;
}

void ddb_put_item(struct json_out *o, const struct record_type *type, unsigned slice, const void *record)
{
	ddb_put_key(o, type, slice, record_key(type, record));
	ddb_put_number(o, "version", (int64_t)record_version(type, record));
	for (int f = 0; f < type->field_count; f++)
		if (!record_is_absent(type, f, record) || ddb_is_kept(type, f))
			ddb_put_value(o, type->fields[f].name, &type->fields[f], record_value(type, f, record));
	ddb_put_places(o, type, slice, record, "");
}

static struct str attribute(const json_t *item, const char *name, const char *kind)
{
	const json_t *value = json_object_get(json_object_get(item, name), kind);

	return json_is_string(value) ? str_of(json_string_value(value), json_string_length(value)) : (struct str){ 0 };
}

/* -1: the partition key is not one of the type's. */
static int64_t item_slice(const struct record_type *type, struct str pk)
{
	struct str name = str_cut(&pk, '.');
	int64_t    slice = 0;

	if (!str_eq(name, str_from(type->name)) || (pk.n && !type->is_sliced) ||
	    (pk.n && !str_to_int(pk, 1, DDB_SLICES_MAX - 1, &slice)))
		return -1;
	return slice;
}

struct str ddb_item_key(const struct record_type *type, const json_t *item)
{
	struct str pk = attribute(item, "PK", "S"), sk = attribute(item, "SK", "S");
	struct str prefix = str_from(type->key_prefix ? type->key_prefix : "");

	if (!type->key_prefix)
		return item_slice(type, pk) >= 0 ? sk : STR("");
	if (!str_starts_with(pk, prefix) || !str_eq(sk, STR("META")))
		return STR("");
	return str_of(pk.p + prefix.n, pk.n - prefix.n);
}

static enum rc read_field(const struct record_type *type, int f, const json_t *item, struct arena *a, void *record,
                          struct err *e)
{
	const struct record_field *field = &type->fields[f];
	bool                       is_number = field->kind == FIELD_INT;
	struct str                 text = attribute(item, field->name, is_number ? "N" : "S");
	struct value               v = { 0 };
	bool                       is_ok = true;

	if (text.p && is_number)
		is_ok = str_to_int(text, INT64_MIN, INT64_MAX, &v.number);
	else if (field->kind == FIELD_ENUM)
		is_ok = (v.number = str_word(text, field->names, (int)field->max)) < field->max;
	else
		v.text = str_dup(a, text);
	if (!is_ok)
		return err_set(e, RC_CORRUPT, "an item of %s has '%.*s' as %s", type->name, STR_ARG(text), field->name);
	record_set(type, f, record, v);
	return RC_OK;
}

enum rc ddb_read_item(const struct record_type *type, const json_t *item, struct arena *a, struct stored *ret,
                      struct err *e)
{
	struct str version = attribute(item, "version", "N");
	int64_t    number = 0;
	enum rc    rc;

	ret->record = arena_alloc(a, type->size);
	for (int f = 0; f < type->field_count; f++)
		if ((rc = read_field(type, f, item, a, ret->record, e)))
			return rc;
	ret->handle = version.p ? 1 + (type->is_sliced ? item_slice(type, attribute(item, "PK", "S")) : 0) : 0;
	if (version.p && !str_to_int(version, 0, INT64_MAX, &number))
		return err_set(e, RC_CORRUPT, "an item of %s has the version '%.*s'", type->name, STR_ARG(version));
	record_set_version(type, ret->record, (uint64_t)number);
	return record_check(type, ret->record, e);
}
