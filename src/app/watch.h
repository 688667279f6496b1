/* watch.h - the machine's date and the store's commits, looked after; the time of a simulated world. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/id.h"

/* Says in the store when the machine's date is not followed, and goes on with that after a restart. */
struct clock_watch {
	struct store       *store;
	const struct clock *clock;
	char                fact[ID_UUID_SIZE + 16];
	int64_t             told_min; /* as it was stated last */
};

/* name: of the node, or of the only machine that uses the store. */
void clock_watch_init(struct clock_watch *w, struct store *store, const struct clock *clock, const char *name);

/* At a start: the process before this one may have had its reasons not to believe the date. Blocks. */
MUST_CHECK enum rc clock_watch_resume(struct clock_watch *w, struct err *e);

/* Look, and state what has changed; with each beat while the date is not followed. Blocks. */
void clock_watch_tell(struct clock_watch *w, bool is_beat);

/* Says when the store begins to refuse commits, and when that is over. */
struct store_watch {       /* zero at first */
	uint64_t failed;   /* commits, when looked last */
	uint64_t before;   /* and before the trouble that is not over yet */
	int64_t  since_ms; /* when it was noticed; 0: there is none */
};

/* Look now: every second or so. Blocks. */
void store_watch_look(struct store_watch *w, struct store *store, const struct clock *clock);

/* The clock of the simulated world in this store, before anybody else uses it. It may run faster, and a restart does
 * not set it back. The machine's own when scale is 1 and the world is not ahead of it. Blocks. */
MUST_CHECK enum rc world_clock(struct store *store, int64_t scale, struct clock *ret, struct err *e);
