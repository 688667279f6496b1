/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.c - the life of an account of the pool.
 *
 * CleanUp -> Cooldown -> Available -> Active <-> Frozen -> CleanUp, again and again; aside of that Quarantine, for what
 * could not be cleaned or is not where it should be, and Exit, the way out. The status is a target: the organisation
 * and the access grants follow it.
 *
 * Always true:
 *   1. status changes only in account_apply(), only along the table below.
 *   2. The only way to Available is a cleanup that succeeded, and a rest after it whose last hold is closed.
 *      [account_ok()]
 *   3. Only who is Active has a holder: every other status means that nobody shall have access.      [account_ok()]
 *
 * Not here: how the world is brought behind the record (service/), how often a cleanup is tried (service/).
 */
#include "domain/account.h"

#include <assert.h>

/* clang-format off */
static const struct account_step steps[] = {
	/* from                on                     to                 */
	{ ACCOUNT_AVAILABLE,  ACCOUNT_ON_LEND,       ACCOUNT_ACTIVE     },
	{ ACCOUNT_AVAILABLE,  ACCOUNT_ON_QUARANTINE, ACCOUNT_QUARANTINE },
	{ ACCOUNT_AVAILABLE,  ACCOUNT_ON_EJECT,      ACCOUNT_EXIT       },
	{ ACCOUNT_ACTIVE,     ACCOUNT_ON_FREEZE,     ACCOUNT_FROZEN     },
	{ ACCOUNT_ACTIVE,     ACCOUNT_ON_TAKE_BACK,  ACCOUNT_CLEANUP    },
	{ ACCOUNT_ACTIVE,     ACCOUNT_ON_QUARANTINE, ACCOUNT_QUARANTINE },
	{ ACCOUNT_ACTIVE,     ACCOUNT_ON_EJECT,      ACCOUNT_EXIT       },
	{ ACCOUNT_FROZEN,     ACCOUNT_ON_UNFREEZE,   ACCOUNT_ACTIVE     },
	{ ACCOUNT_FROZEN,     ACCOUNT_ON_TAKE_BACK,  ACCOUNT_CLEANUP    },
	{ ACCOUNT_FROZEN,     ACCOUNT_ON_QUARANTINE, ACCOUNT_QUARANTINE },
	{ ACCOUNT_FROZEN,     ACCOUNT_ON_EJECT,      ACCOUNT_EXIT       },
	{ ACCOUNT_AVAILABLE,  ACCOUNT_ON_HOLD,       ACCOUNT_COOLDOWN   },
	{ ACCOUNT_CLEANUP,    ACCOUNT_ON_CLEANED,    ACCOUNT_COOLDOWN   },
	{ ACCOUNT_COOLDOWN,   ACCOUNT_ON_RELEASE,    ACCOUNT_AVAILABLE  },
	{ ACCOUNT_COOLDOWN,   ACCOUNT_ON_QUARANTINE, ACCOUNT_QUARANTINE },
	{ ACCOUNT_COOLDOWN,   ACCOUNT_ON_EJECT,      ACCOUNT_EXIT       },
	{ ACCOUNT_CLEANUP,    ACCOUNT_ON_RETRY,      ACCOUNT_CLEANUP    },
	{ ACCOUNT_COOLDOWN,   ACCOUNT_ON_RETRY,      ACCOUNT_CLEANUP    },
	{ ACCOUNT_CLEANUP,    ACCOUNT_ON_QUARANTINE, ACCOUNT_QUARANTINE },
	{ ACCOUNT_QUARANTINE, ACCOUNT_ON_RETRY,      ACCOUNT_CLEANUP    },
	{ ACCOUNT_QUARANTINE, ACCOUNT_ON_QUARANTINE, ACCOUNT_QUARANTINE },
	{ ACCOUNT_QUARANTINE, ACCOUNT_ON_EJECT,      ACCOUNT_EXIT       },
	{ ACCOUNT_EXIT,       ACCOUNT_ON_EJECT,      ACCOUNT_EXIT       },
};

/* As in "cannot be lent". */
static const char *const done_to_it[ACCOUNT_EVENT_COUNT] = {
	[ACCOUNT_ON_REGISTER]   = "registered",
	[ACCOUNT_ON_LEND]       = "lent",
	[ACCOUNT_ON_FREEZE]     = "frozen",
	[ACCOUNT_ON_UNFREEZE]   = "unfrozen",
	[ACCOUNT_ON_TAKE_BACK]  = "taken back",
	[ACCOUNT_ON_CLEANED]    = "declared clean",
	[ACCOUNT_ON_RELEASE]    = "released from its cooldown",
	[ACCOUNT_ON_HOLD]       = "held back",
	[ACCOUNT_ON_QUARANTINE] = "put into quarantine",
	[ACCOUNT_ON_RETRY]      = "cleaned again",
	[ACCOUNT_ON_EJECT]      = "ejected",
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
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i].from == from && steps[i].on == on)
			return &steps[i];
	return NULL;
}

enum rc account_apply(struct account *a, enum account_event on, struct wall now, struct err *e)
{
	const struct account_step *step = account_step(a->status, on);

	assert(on < ACCOUNT_EVENT_COUNT);
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
		               account_status_names[a->status], done_to_it[on]);
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
