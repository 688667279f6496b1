/* drain.h - the kernel's work on the caller's own thread, until nothing is due or the time is up: for a process that
 * runs only while it is asked something. Where there is a pump, it does all this. */
#pragma once

#include "base/clock.h"
#include "base/err.h"

struct drain {
	struct kernel *kernel;
	struct mono    until; /* nothing is begun after this; calls under way are asked to end */

	size_t done;     /* the answer: works that came to an end here */
	bool   has_left; /* the time was up before all was done */
};

/* RC_OK: nothing is due any more, or the time is up; what waits for its next try, or is claimed by others, is not
 * due. RC_UNAVAILABLE and the like: the store failed, and what was not done stays due. Claims are given back either
 * way. Blocks. */
MUST_CHECK enum rc drain(struct drain *d, struct err *e);
