/* record_rows.h - the words in which tables of fields are written: { TEXT(struct name, member, longest) }, and so on. Included by
 * the files that describe record types. */
#pragma once

#include <stddef.h>

#include "store/record.h"

#define TEXT(type, member, max)          #member, FIELD_TEXT, offsetof(struct type, member), false, max, NULL
#define TEXT_OR_NONE(type, member, max)  #member, FIELD_TEXT, offsetof(struct type, member), true, max, NULL
#define INT(type, member)                #member, FIELD_INT, offsetof(struct type, member), false, 0, NULL
#define INT_OR_NONE(type, member)        #member, FIELD_INT, offsetof(struct type, member), true, 0, NULL
#define ENUM(type, member, names, count) #member, FIELD_ENUM, offsetof(struct type, member), false, count, names
