/* sweep.h - visits every sandbox of one state in small transactions. Shared by the passes. */
#pragma once

#include "service/passes.h"
#include "service/records.h"
#include "service/sandbox_events.h"
#include "store/session.h"

enum sweep_verdict { SWEEP_LEAVE, SWEEP_PUT, SWEEP_REMOVE };

/* Decides about one record inside a transaction; may change it. The state has been checked. */
typedef enum sweep_verdict sweep_fn(struct sandbox *s, const struct pass *p, struct wall now);

/* How many records were changed or removed; each of them is told as this news. Records that were ever lent leave a
 * tombstone. */
MUST_CHECK enum rc sweep(const struct pass *p, enum sandbox_state state, sweep_fn *decide, enum sandbox_news news,
                         int64_t *ret_changed, struct err *e);

/* Remove a record, with a tombstone. The record must have been read in this session. */
MUST_CHECK enum rc remove_with_tombstone(struct session *s, const struct sandbox *sandbox, struct err *e);

/* Between two groups of a pass: RC_UNAVAILABLE when it shall stop (the server ends, another node has taken over). */
MUST_CHECK enum rc go_on(const struct pass *p, struct err *e);
