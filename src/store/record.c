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

void record_set(const struct record_type *type, int field, void *record, struct value v)
{
	char *at = (char *)record + type->fields[field].offset;
	int   number = (int)v.number;

	switch (type->fields[field].kind) {
	case FIELD_TEXT: memcpy(at, &v.text, sizeof(v.text)); break;
	case FIELD_INT: memcpy(at, &v.number, sizeof(v.number)); break;
	case FIELD_ENUM: memcpy(at, &number, sizeof(number)); break;
	}
}

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

uint64_t record_changes(const struct record_type *type, const void *before, const void *after)
{
	uint64_t changed = 0;

	for (int f = 0; f < type->field_count; f++) {
		struct value a = record_value(type, f, before), b = record_value(type, f, after);

		/* most texts are the very same ones, not only equal */
		if (a.number != b.number || a.text.n != b.text.n || (a.text.p != b.text.p && !str_eq(a.text, b.text)))
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
	return record_value(type, index->only_field, record).number == index->only_value;
}

size_t record_bytes(const struct record_type *type, const void *record)
{
	size_t bytes = type->size;

	for (int f = 0; f < type->field_count; f++)
		if (type->fields[f].kind == FIELD_TEXT)
			bytes += record_value(type, f, record).text.n;
	return bytes;
}

void record_copy(const struct record_type *type, void *to, const void *from, struct arena *a)
{
	memcpy(to, from, type->size);
	for (int f = 0; f < type->field_count; f++)
		if (type->fields[f].kind == FIELD_TEXT)
			record_set(type, f, to, value_text(str_dup(a, record_value(type, f, from).text)));
}

enum rc record_check(const struct record_type *type, const void *record, struct err *e)
{
	struct str key = record_key(type, record);

	for (int f = 0; f < type->field_count; f++) {
		const struct record_field *field = &type->fields[f];
		struct value               v = record_value(type, f, record);

		if (field->kind == FIELD_TEXT && v.text.n > field->max)
			return err_set(e, RC_CORRUPT, "%s.%s has %zu bytes, at most %u are allowed", type->name,
			               field->name, v.text.n, field->max);
		if (field->kind == FIELD_TEXT && v.text.n == 0 && !field->is_optional)
			return err_set(e, RC_CORRUPT, "%s.%s is empty", type->name, field->name);
		if (field->kind == FIELD_ENUM && (v.number < 0 || v.number >= field->max))
			return err_set(e, RC_CORRUPT, "%s.%s has no value number %lld", type->name, field->name,
			               (long long)v.number);
	}
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
