/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.c - the life of an account of the pool.
 *
 * CleanUp -> Cooldown -> Available -> Active <-> Frozen -> CleanUp, again and again; besides, Quarantine for what could
 * not be cleaned or is not where it should be, and Exit, the way out. The status is a target: the organisation
 * and the access grants follow it.
 *
 * Always true:
 *   1. status changes only in account_apply(), only along the table below.
 *   2. The only way to Available is a cleanup that succeeded, and a rest after it whose last hold is closed.
 *      [account_ok()]
 *   3. Only an Active account has a holder: every other status means that nobody may have access.    [account_ok()]
 *
 * Not here: how the world is brought behind the record (service/), how often a cleanup is tried (service/).
 */
#include "domain/account.h"

#include <assert.h>

#define IN(name) (UINT32_C(1) << ACCOUNT_##name)

/* clang-format off */
static const struct account_step steps[ACCOUNT_EVENT_COUNT] = {
	[ACCOUNT_ON_REGISTER]   = { 0, /* it has no status yet */ ACCOUNT_CLEANUP,    "registered" },
	[ACCOUNT_ON_LEND]       = { IN(AVAILABLE),                ACCOUNT_ACTIVE,     "lent" },
	[ACCOUNT_ON_FREEZE]     = { IN(ACTIVE),                   ACCOUNT_FROZEN,     "frozen" },
	[ACCOUNT_ON_UNFREEZE]   = { IN(FROZEN),                   ACCOUNT_ACTIVE,     "unfrozen" },
	[ACCOUNT_ON_TAKE_BACK]  = { IN(ACTIVE) | IN(FROZEN),      ACCOUNT_CLEANUP,    "taken back" },
	[ACCOUNT_ON_CLEANED]    = { IN(CLEANUP),                  ACCOUNT_COOLDOWN,   "declared clean" },
	[ACCOUNT_ON_RELEASE]    = { IN(COOLDOWN),                 ACCOUNT_AVAILABLE,  "released from its cooldown" },
	[ACCOUNT_ON_HOLD]       = { IN(AVAILABLE),                ACCOUNT_COOLDOWN,   "held back" },
	[ACCOUNT_ON_QUARANTINE] = { ~IN(EXIT),                    ACCOUNT_QUARANTINE, "put into quarantine" },
	[ACCOUNT_ON_RETRY]      = { IN(QUARANTINE) | IN(COOLDOWN) | IN(CLEANUP), ACCOUNT_CLEANUP, "cleaned again" },
	[ACCOUNT_ON_EJECT]      = { ~IN(CLEANUP),                 ACCOUNT_EXIT,       "ejected" },
};
/* clang-format on */

const char *const account_status_names[ACCOUNT_STATUS_COUNT] = { ACCOUNT_STATUSES(ROW_TEXT) };
const char *const account_ou_names[ACCOUNT_STATUS_COUNT] = { ACCOUNT_STATUSES(ROW_THIRD) };

bool account_ok(const struct account *a)
{
	bool has_holder = a->holder.n > 0, has_lease = a->lease_uuid.n > 0;

	if (a->id.n == 0)
		return false;
	switch (a->status) {
	case ACCOUNT_ACTIVE: return has_holder && has_lease;
	case ACCOUNT_FROZEN: return !has_holder && has_lease;
	case ACCOUNT_AVAILABLE: return !has_holder && !has_lease && !a->open_holds && a->rested_ms >= a->cleaned_ms;
	case ACCOUNT_COOLDOWN:
	case ACCOUNT_CLEANUP:
	case ACCOUNT_QUARANTINE:
	case ACCOUNT_EXIT: return !has_holder && !has_lease;
	case ACCOUNT_STATUS_COUNT: return false;
	}
	return false;
}

const struct account_step *account_step(enum account_status from, enum account_event on)
{
	assert(on < ACCOUNT_EVENT_COUNT);
	return from < ACCOUNT_STATUS_COUNT && steps[on].from >> from & 1 ? &steps[on] : NULL;
}

enum rc account_apply(struct account *a, enum account_event on, struct wall now, struct err *e)
{
	const struct account_step *step = account_step(a->status, on);

	if (on == ACCOUNT_ON_REGISTER && a->version > 0)
		return err_set(e, RC_CONFLICT, "account %.*s is registered already, it is %s", STR_ARG(a->id),
		               account_status_names[a->status]);
	if (on == ACCOUNT_ON_REGISTER) {
		a->status = ACCOUNT_CLEANUP;
		a->created_ms = a->edited_ms = now.ms;
		return RC_OK;
	}
	if (!step)
		return err_set(e, RC_CONFLICT, "account %.*s is %s: it cannot be %s", STR_ARG(a->id),
		               account_status_names[a->status], steps[on].done);
	if (step->to != ACCOUNT_ACTIVE)
		a->holder = STR("");
	if (on == ACCOUNT_ON_CLEANED)
		a->cleaned_ms = now.ms;
	if (on == ACCOUNT_ON_RELEASE)
		a->rested_ms = now.ms > a->cleaned_ms ? now.ms : a->cleaned_ms;
	a->status = step->to;
	a->edited_ms = now.ms;
	return RC_OK;
}

bool account_must_follow(const struct account *a)
{
	return !str_eq(a->placed_ou, str_from(account_ou_names[a->status])) || !str_eq_nocase(a->granted, a->holder);
}
