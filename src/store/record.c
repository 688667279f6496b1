/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - reads and writes structs by their table.
 *
 * The table is the single description of a record type; the back ends, the API and the checks all go through these
 * few functions, so that a new field is one new row. Nothing here knows a concrete type.
 */
#include "store/record.h"

#include <string.h>

#include "base/arena.h"
#include "base/json.h"

uint64_t record_version(const struct record_type *type, const void *record)
{
	uint64_t version;

	memcpy(&version, (const char *)record + type->version_offset, sizeof(version));
	return version;
}

void record_set_version(const struct record_type *type, void *record, uint64_t version)
{
	memcpy((char *)record + type->version_offset, &version, sizeof(version));
}

int value_cmp(enum field_kind kind, struct value a, struct value b)
{
	if (kind == FIELD_TEXT)
		return str_cmp(a.text, b.text);
	return (a.number > b.number) - (a.number < b.number);
}

/* Most texts are the very same ones, not only equal. */
static bool is_same_text(struct str a, struct str b)
{
	return (a.p == b.p && a.n == b.n) || str_eq(a, b);
}

uint64_t record_changes(const struct record_type *type, const void *before, const void *after)
{
	uint64_t changed = 0;

	for (int f = 0; f < type->field_count; f++) {
		const struct record_field *field = &type->fields[f];

		if (field->kind == FIELD_TEXT ? !is_same_text(record_text(field, before), record_text(field, after))
		                              : record_number(field, before) != record_number(field, after))
			changed |= 1ull << f;
	}
	return changed;
}

bool record_is_in_index(const struct record_type *type, const struct record_index *index, const void *record)
{
	if (record_is_absent(type, index->hash, record))
		return false;
	if (index->only_field == NO_FIELD)
		return true;
	return record_number(&type->fields[index->only_field], record) == index->only_value;
}

size_t record_bytes(const struct record_type *type, const void *record)
{
	size_t bytes = type->size;

	for (int f = 0; f < type->field_count; f++)
		if (type->fields[f].kind == FIELD_TEXT)
			bytes += record_text(&type->fields[f], record).n;
	return bytes;
}

void record_copy(const struct record_type *type, void *to, const void *from, struct arena *a)
{
	memcpy(to, from, type->size);
	for (int f = 0; f < type->field_count; f++)
		if (type->fields[f].kind == FIELD_TEXT)
			record_set(type, f, to, value_text(str_dup(a, record_value(type, f, from).text)));
}

static inline bool is_within_limits(const struct record_field *field, const void *record)
{
	size_t n;

	switch (field->kind) {
	case FIELD_TEXT: n = record_text(field, record).n; return n ? n <= field->max : field->is_optional;
	case FIELD_ENUM: return (uint64_t)record_number(field, record) < field->max; /* negative ones are not */
	case FIELD_INT: return true;
	}
	return false;
}

static enum rc is_over_limit(const struct record_type *type, const struct record_field *field, const void *record,
                             struct err *e)
{
	if (field->kind == FIELD_ENUM)
		return err_set(e, RC_CORRUPT, "%s.%s has no value number %lld", type->name, field->name,
		               (long long)record_number(field, record));
	if (!record_text(field, record).n)
		return err_set(e, RC_CORRUPT, "%s.%s is empty", type->name, field->name);
	return err_set(e, RC_CORRUPT, "%s.%s has %zu bytes, at most %u are allowed", type->name, field->name,
	               record_text(field, record).n, field->max);
}

enum rc record_check(const struct record_type *type, const void *record, struct err *e)
{
	const struct record_field *end = type->fields + type->field_count;
	struct str                 key = record_key(type, record);

	for (const struct record_field *field = type->fields; field < end; field++)
		if (!is_within_limits(field, record))
			return is_over_limit(type, field, record, e);
	if (type->is_ok && !type->is_ok(record))
		return err_set(e, RC_CORRUPT, "%s %.*s breaks the rules of its state", type->name, STR_ARG(key));
	return RC_OK;
}

static void write_field(const struct record_type *type, int f, const void *record, struct json_out *o)
{
	const struct record_field *field = &type->fields[f];
	struct value               v = record_value(type, f, record);

	if (record_is_absent(type, f, record)) {
		json_put_null(o, field->name);
		return;
	}
	switch (field->kind) {
	case FIELD_TEXT: json_put_str(o, field->name, v.text); break;
	case FIELD_INT: json_put_int(o, field->name, v.number); break;
	case FIELD_ENUM: json_put_str(o, field->name, str_from(field->names[v.number])); break;
	}
}

void record_write_json(const struct record_type *type, const void *record, const int *fields, struct json_out *o)
{
	if (!fields)
		for (int f = 0; f < type->field_count; f++)
			write_field(type, f, record, o);
	else
		for (; *fields != NO_FIELD; fields++)
			write_field(type, *fields, record, o);
}
