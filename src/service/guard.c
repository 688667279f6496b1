/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - holds of accounts that another system owns.
 */
#include "service/guard.h"

enum rc guard_end_hold(struct session *s, struct hold *hold, enum hold_state how, struct str by, struct str why,
                       struct err *e)
{
	(void)s;
	(void)how;
	(void)by;
	(void)why;
	return err_set(e, RC_INTERNAL, "hold %.*s is of a guard, and there is none", STR_ARG(hold->id));
}
