/* figures.h - what /metrics tells of leases, accounts and holds: counted from records and events, now and then. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct metrics;
struct store;

/* Counters begin at 0 with what happens from since_ms on. counts_ended: count ended leases too, where that is cheap. */
struct figures *figures_new(struct store *store, struct metrics *metrics, bool counts_ended, int64_t since_ms);
void            figures_free(struct figures *f);

/* Read what there is, and what has happened since the last time. Blocks. */
MUST_CHECK enum rc figures_refresh(struct figures *f, struct err *e);
