/* guard.h - stands beside another system's account pool: what it declares Available after a cleanup is held until the bills have settled. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "domain/hold.h"
#include "store/session.h"

/* A guard's hold has come to its end, by its time or by a person: it is closed as `how` once nothing stands against it outside. While the
 * account has other open holds that is at once; the last one brings the account back first. */
MUST_CHECK enum rc guard_end_hold(struct session *s, struct hold *hold, enum hold_state how, struct str by,
                                  struct str why, struct err *e);
