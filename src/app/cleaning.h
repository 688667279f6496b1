/* cleaning.h - who empties accounts, from the settings: aws-nuke, where it is wanted. */
#pragma once

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct cleaner;
struct cleaning;
struct config;

/* The values of LEASEHOLD_CLEANER. */
enum { CLEANING_SIM, CLEANING_NUKE };

/* What can be said against the settings; every problem is a line. */
void cleaning_check(const struct config *c, struct buf *problems);

/* Of settings that passed cleaning_check(). The accounts, separated by commas, are never emptied. *ret is NULL where the simulated cloud
 * empties its accounts itself. RC_INVALID, RC_UNAVAILABLE: aws-nuke does not run, or not with this configuration. */
MUST_CHECK enum rc cleaning_open(const struct config *c, struct str admin_accounts, struct cleaning **ret,
                                 struct err *e);
void               cleaning_close(struct cleaning *k);
struct cleaner    *cleaning_cleaner(struct cleaning *k);
