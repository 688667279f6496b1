/* records.h - what the simulated cloud keeps, in a store of its own: the structs of records.def. Private to
 * providers/sim, except for the list of types. */
#pragma once

#include "base/str.h"
#include "store/record.h"

/* For opening the store: all of the simulated cloud and the simulated vendor. */
extern const struct record_type *const sim_types[];
extern const size_t                    sim_type_count;

enum { SIM_TAGS_MAX = 32768, SIM_EVENT_MAX = 8192 };
enum sim_outcome { SIM_CLEANS, SIM_FAILS, SIM_LIES, SIM_OUTCOME_COUNT };

/* None has more than one. */
enum sim_index {
	SIM_MEMBER_BY_OU = 0, /* by id */
	SIM_ASSIGNMENT_BY_ACCOUNT = 0,
	SIM_RATE_BY_ACCOUNT = 0, /* by time */
	SIM_RESOURCE_BY_TENANT = 0,
	SIM_ARCHIVE_BY_TENANT = 0,
	SIM_PERSON_BY_TENANT = 0, /* by address */
	SIM_EVENT_DUE = 0,
};

/* clang-format off */
#define BEGIN(record)                               struct record {
#define TEXT_ROW(record, member, most)               struct str member;
#define TEXT_OR_NONE_ROW(record, member, most)       struct str member;
#define INT_ROW(record, member)                      int64_t member;
#define INT_OR_NONE_ROW(record, member)              int64_t member;
#define ENUM_ROW(record, member, type, names, count) type member;
#define END(record)                                  uint64_t version; }; extern const struct record_type record##_type;
#define END_INDEXED(record, index, hash, sort)       END(record)
#include "providers/sim/records.def"
/* clang-format on */
