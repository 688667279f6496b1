/* world_clock.h - the time of a simulated world: it may go faster, and a restart does not set it back. */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

struct clock;
struct store;

/* The clock of the world in this store, before anybody else uses it. Stays the machine's own when scale is 1 and the world is not ahead
 * of it. Blocks. */
MUST_CHECK enum rc world_clock(struct store *store, int64_t scale, struct clock *ret, struct err *e);
