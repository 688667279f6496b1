/* account_slots.h - how many cleanups run at once, and who is next; for account_clean.c alone. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "store/session.h"

enum { CLEAN_AT_ONCE_MAX = 32 };

/* Take one of `max` slots for this account. *ret: it has one, now or since before. */
MUST_CHECK enum rc account_slots_enter(struct session *s, struct str id, size_t max, bool *ret, struct err *e);

/* Give it back. *ret_next: the waiting account whose turn it is; empty: none, or there was nothing to give back. */
MUST_CHECK enum rc account_slots_leave(struct session *s, struct str id, struct str *ret_next, struct err *e);
