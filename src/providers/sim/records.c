/* SPDX-License-Identifier: Apache-2.0 */
/* records.c - the record types of the simulated cloud and vendor, from records.def. */
#include "providers/sim/records.h"

#include "domain/ports/account_table.h"
#include "domain/ports/cloud.h"
#include "domain/ports/instance.h"
#include "store/record_rows.h"

enum {
	ACCOUNT_DIGITS = 12,
	PATH_BYTES = 64,
	EMAIL_BYTES = 254,
	RUN_ID_MAX = 40,
	ASSIGNMENT_MAX = 12 + 2 + 2 * CLOUD_NAME_MAX + 2
};

static const char *const outcome_names[SIM_OUTCOME_COUNT] = { "cleans", "fails", "lies" };

/* clang-format off */
#define BEGIN(record)                                static const struct record_field record##_fields[] = {
#define TEXT_ROW(record, member, most)               { TEXT(record, member, most) },
#define TEXT_OR_NONE_ROW(record, member, most)       { TEXT_OR_NONE(record, member, most) },
#define INT_ROW(record, member)                      { INT(record, member) },
#define INT_OR_NONE_ROW(record, member)              { INT_OR_NONE(record, member) },
#define ENUM_ROW(record, member, type, names, count) { ENUM(record, member, names, count) },
#define TYPE(record, ...) \
	const struct record_type record##_type = { RECORD_TYPE(#record, record, record##_fields), __VA_ARGS__ };
#define END(record)       }; TYPE(record)
#define END_INDEXED(record, index, hash, sort) \
	}; \
	static const struct record_index record##_indexes[] = { { INDEX(index, hash, sort, 1) } }; \
	TYPE(record, INDEXES(record##_indexes))
#include "providers/sim/records.def"
/* clang-format on */

const struct record_type *const sim_types[] = {
	&sim_account_type, &sim_counter_type, &sim_ou_type,       &sim_member_type, &sim_assignment_type,
	&sim_rate_type,    &sim_run_type,     &sim_resource_type, &sim_event_type,  &sim_isb_account_type,
	&sim_secret_type,  &sim_archive_type, &sim_person_type,
};
const size_t sim_type_count = ARRAY_LEN(sim_types);
