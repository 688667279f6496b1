/* store_copy.h - all records from one store into another. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct record_type;
struct store;

/* What a type has in a store. The sum does not depend on the order of the records, nor on their versions. */
struct store_sum {
	int64_t  count;
	uint64_t checksum;
};

MUST_CHECK enum rc store_sum(struct store *s, const struct record_type *type, struct store_sum *ret, struct err *e);

/* Put every record of the type that is missing or different in `to`; what is only there is removed. Safe to repeat. */
MUST_CHECK enum rc store_copy(struct store *from, struct store *to, const struct record_type *type,
                              int64_t *ret_written, struct err *e);
