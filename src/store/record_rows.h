/* record_rows.h - the words in which tables of fields are written: { TEXT(struct name, member, longest) }, and so
 * on. Included by the files that describe record types. */
#pragma once

#include <stddef.h>

#include "base/attr.h"
#include "store/record.h"

#define TEXT(type, member, max)          #member, FIELD_TEXT, offsetof(struct type, member), false, max, NULL
#define TEXT_OR_NONE(type, member, max)  #member, FIELD_TEXT, offsetof(struct type, member), true, max, NULL
#define INT(type, member)                #member, FIELD_INT, offsetof(struct type, member), false, 0, NULL
#define INT_OR_NONE(type, member)        #member, FIELD_INT, offsetof(struct type, member), true, 0, NULL
#define ENUM(type, member, names, count) #member, FIELD_ENUM, offsetof(struct type, member), false, count, names

/* An index that all records with a hash value are in: { INDEX("ByName", hash, sort, gsi) }. */
#define INDEX(name, hash, sort, gsi) name, hash, sort, false, NO_FIELD, 0, gsi

/* What is said of every record type: { RECORD_TYPE("name", struct name, its table of fields), INDEXES(its table of
 * indexes) }. The key is its first field. */
#define RECORD_TYPE(stored_as, type, table)                                                               \
	.name = stored_as, .size = sizeof(struct type), .fields = table, .field_count = ARRAY_LEN(table), \
	.version_offset = offsetof(struct type, version)
#define INDEXES(table) .indexes = table, .index_count = ARRAY_LEN(table)

/* { X_FIELDS(RECORD_FIELD_ROW) } is the table of a list of fields, see record.h. */
#define RECORD_FIELD_ROW(id, ...) [id] = { __VA_ARGS__ },

/* Both the enumeration and the table, x_fields. */
#define FIELDS(x, list)                 \
	enum { list(RECORD_FIELD_ID) }; \
	static const struct record_field x##_fields[] = { list(RECORD_FIELD_ROW) }
