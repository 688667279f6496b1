/* sink.h - what the sinks that call AWS have in common. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* The region that an ARN names, in the arena; NULL: none, or no ARN. */
static inline const char *arn_region(struct str arn, struct arena *a)
{
	struct str region;

	if (!str_starts_with(arn, STR("arn:")))
		return NULL;
	for (int i = 0; i < 3; i++)
		(void)str_cut(&arn, ':');
	region = str_cut(&arn, ':');
	return region.n ? str_dup(a, region).p : NULL;
}

/* One delivery holds a worker for so long at most; the queue's own tries come on top. */
enum { SINK_MS = 15000, SINK_ATTEMPTS = 3 };

/* As a queue that buries nonsense wants it: RC_INVALID is what a row of errors says of what no try will help; an
 * answer that cannot be read, or a code that nobody knows, may well be another the next time. */
static inline enum rc sink_rc(enum rc rc, struct err *e)
{
	if (rc != RC_CORRUPT)
		return rc;
	if (e)
		e->rc = RC_UNAVAILABLE;
	return RC_UNAVAILABLE;
}
