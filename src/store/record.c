/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - reads and writes structs by their table.
 *
 * The table is the single description of a record type; the back ends, the API and the checks all go through these
 * few functions, so that a new field is one new row. Nothing here knows a concrete type.
 */
#include "store/record.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"

static const void *field_at(const struct record_type *type, int field, const void *record)
{
	assert(field >= 0 && field < type->field_count);
	return (const char *)record + type->fields[field].offset;
}

struct value record_value(const struct record_type *type, int field, const void *record)
{
	const void  *at = field_at(type, field, record);
	struct value v = { 0 };
	int          number;

	switch (type->fields[field].kind) {
	case FIELD_TEXT: memcpy(&v.text, at, sizeof(v.text)); break;
	case FIELD_INT: memcpy(&v.number, at, sizeof(v.number)); break;
	case FIELD_ENUM:
		memcpy(&number, at, sizeof(number));
		v.number = number;
		break;
	}
	return v;
}

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

struct str record_key(const struct record_type *type, const void *record)
{
	return record_value(type, type->key, record).text;
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

bool record_is_absent(const struct record_type *type, int field, const void *record)
{
	struct value v;

	if (!type->fields[field].is_optional)
		return false;
	v = record_value(type, field, record);
	return type->fields[field].kind == FIELD_TEXT ? v.text.n == 0 : v.number == 0;
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

	for (int f = 0; f < type->field_count; f++)
		if (value_cmp(type->fields[f].kind, record_value(type, f, before), record_value(type, f, after)))
			changed |= 1ull << f;
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

void record_copy(const struct record_type *type, void *to, const void *from, struct arena *a)
{
	memcpy(to, from, type->size);
	for (int f = 0; f < type->field_count; f++)
		if (type->fields[f].kind == FIELD_TEXT)
			record_set(type, f, to, value_text(str_dup(a, record_value(type, f, from).text)));
}

static enum rc check_field(const struct record_type *type, int f, const void *record, struct err *e)
{
	const struct record_field *field = &type->fields[f];
	struct value               v = record_value(type, f, record);

	switch (field->kind) {
	case FIELD_TEXT:
		if (v.text.n > field->max)
			return err_set(e, RC_CORRUPT, "%s.%s has %zu bytes, at most %u are allowed", type->name,
			               field->name, v.text.n, field->max);
		if (v.text.n == 0 && !field->is_optional)
			return err_set(e, RC_CORRUPT, "%s.%s is empty", type->name, field->name);
		return RC_OK;
	case FIELD_ENUM:
		if (v.number < 0 || v.number >= field->max)
			return err_set(e, RC_CORRUPT, "%s.%s has no value number %lld", type->name, field->name,
			               (long long)v.number);
		return RC_OK;
	case FIELD_INT: return RC_OK;
	}
	return RC_OK;
}

enum rc record_check(const struct record_type *type, const void *record, struct err *e)
{
	for (int f = 0; f < type->field_count; f++) {
		enum rc rc = check_field(type, f, record, e);

		if (rc)
			return rc;
	}
	if (type->is_ok && !type->is_ok(record)) {
		struct str key = record_key(type, record);

		return err_set(e, RC_CORRUPT, "%s %.*s breaks the rules of its state", type->name, STR_ARG(key));
	}
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
