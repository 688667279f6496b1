/* saga_ops.h - what saga.c and saga_run.c share; nobody else includes this. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "kernel/saga.h"
#include "store/session.h"

/* Who is told what, and on whose behalf. */
struct saga_news {
	const char *type; /* of the event */
	struct str  step; /* its name */
	struct str  actor, request_id;
	struct str  reason;
};
MUST_CHECK enum rc saga_tell(struct session *s, const struct saga *saga, const struct saga_news *news, struct err *e);

/* The event of its end: SagaDone, SagaUndone or SagaParked. kind may be NULL. */
MUST_CHECK enum rc saga_tell_end(struct session *s, const struct saga_kind *kind, const struct saga *saga,
                                 struct err *e);

/* Is it a JSON object, and short enough to be stored as input or data? RC_INVALID, RC_TOO_LARGE. */
MUST_CHECK enum rc saga_check_object(struct str text, const char *what, struct err *e);
