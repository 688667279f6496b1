/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.c - the life of a sandbox.
 *
 * available -> allocated -> pending_deletion -> gone; besides, stale (the vendor no longer lists it, or an operator has
 * set it aside) and deletion_failed (needs an operator).
 *
 * Always true:
 *   1. status changes only in sandbox_apply(), only along the table below.
 *   2. A sandbox is used once: no row leads from a state behind `allocated` back to `available`. An operator's release
 *      of a sandbox that was claimed before leads to its deletion.                   [sandbox_release()]
 *   3. An `allocated` sandbox has an owner and a time; an `available` one has neither, and was never to be deleted.
 *      From a record that keeps the rules no call makes one that does not: records come from outside too, and in other
 *      states they may have one without the other.                        [sandbox_ok(), sandbox_was_used()]
 *
 * Not here: who may ask (http/), how records are found and kept (service/, store/).
 */
#include "domain/sandbox.h"

#include <assert.h>

enum { BACKOFF_DOUBLINGS_MAX = 10, LAST_SYNCED_PRECISION_SEC = 3600 };

/* clang-format off */
static const struct sandbox_step steps[] = {
	/* from                      on                          to                       */
	{ SANDBOX_AVAILABLE,        SANDBOX_ON_SEEN,            SANDBOX_AVAILABLE        },
	{ SANDBOX_AVAILABLE,        SANDBOX_ON_CLAIM,           SANDBOX_ALLOCATED        },
	{ SANDBOX_AVAILABLE,        SANDBOX_ON_MISSED,          SANDBOX_STALE            },
	{ SANDBOX_AVAILABLE,        SANDBOX_ON_QUARANTINE,      SANDBOX_STALE            },
	{ SANDBOX_AVAILABLE,        SANDBOX_ON_DISCARD,         SANDBOX_PENDING_DELETION },
	{ SANDBOX_AVAILABLE,        SANDBOX_ON_REMOVE,          SANDBOX_GONE             },
	{ SANDBOX_ALLOCATED,        SANDBOX_ON_GIVE_BACK,       SANDBOX_PENDING_DELETION },
	{ SANDBOX_ALLOCATED,        SANDBOX_ON_EXPIRE,          SANDBOX_PENDING_DELETION },
	{ SANDBOX_ALLOCATED,        SANDBOX_ON_QUARANTINE,      SANDBOX_STALE            },
	{ SANDBOX_ALLOCATED,        SANDBOX_ON_DISCARD,         SANDBOX_PENDING_DELETION },
	{ SANDBOX_ALLOCATED,        SANDBOX_ON_REMOVE,          SANDBOX_GONE             },
	{ SANDBOX_PENDING_DELETION, SANDBOX_ON_DELETED,         SANDBOX_GONE             },
	{ SANDBOX_PENDING_DELETION, SANDBOX_ON_DELETE_LATER,    SANDBOX_PENDING_DELETION },
	{ SANDBOX_PENDING_DELETION, SANDBOX_ON_GIVE_UP,         SANDBOX_DELETION_FAILED  },
	{ SANDBOX_PENDING_DELETION, SANDBOX_ON_QUARANTINE,      SANDBOX_STALE            },
	{ SANDBOX_PENDING_DELETION, SANDBOX_ON_REMOVE,          SANDBOX_GONE             },
	{ SANDBOX_STALE,            SANDBOX_ON_SEEN,            SANDBOX_AVAILABLE        },
	{ SANDBOX_STALE,            SANDBOX_ON_QUARANTINE,      SANDBOX_STALE            },
	{ SANDBOX_STALE,            SANDBOX_ON_RELEASE_UNUSED,  SANDBOX_AVAILABLE        },
	{ SANDBOX_STALE,            SANDBOX_ON_RELEASE_USED,    SANDBOX_PENDING_DELETION },
	{ SANDBOX_STALE,            SANDBOX_ON_DISCARD,         SANDBOX_PENDING_DELETION },
	{ SANDBOX_STALE,            SANDBOX_ON_REMOVE,          SANDBOX_GONE             },
	{ SANDBOX_DELETION_FAILED,  SANDBOX_ON_RETRY,           SANDBOX_PENDING_DELETION },
	{ SANDBOX_DELETION_FAILED,  SANDBOX_ON_QUARANTINE,      SANDBOX_STALE            },
	{ SANDBOX_DELETION_FAILED,  SANDBOX_ON_REMOVE,          SANDBOX_GONE             },
};
/* clang-format on */

const char *const sandbox_state_names[SANDBOX_STATE_COUNT] = { SANDBOX_STATES(ROW_TEXT) };

static const char *const event_names[SANDBOX_EVENT_COUNT] = { SANDBOX_EVENTS(ROW_TEXT) };

const char *sandbox_state_name(enum sandbox_state state)
{
	return state == SANDBOX_GONE ? "(gone)" : sandbox_state_names[state];
}

bool sandbox_state_parse(struct str name, enum sandbox_state *ret)
{
	int found = str_word(name, sandbox_state_names, SANDBOX_STATE_COUNT);

	if (found < SANDBOX_STATE_COUNT)
		*ret = (enum sandbox_state)found;
	return found < SANDBOX_STATE_COUNT;
}

const struct sandbox_step *sandbox_step(enum sandbox_state from, enum sandbox_event on)
{
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i].from == from && steps[i].on == on)
			return &steps[i];
	return NULL;
}

void sandbox_print_table(struct buf *b)
{
	buf_addf(b, "%-18s %-50s %s\n", "FROM", "ON", "TO");
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		buf_addf(b, "%-18s %-50s %s\n", sandbox_state_name(steps[i].from), event_names[steps[i].on],
		         sandbox_state_name(steps[i].to));
}

bool sandbox_was_used(const struct sandbox *s)
{
	return s->allocated_to_track.n > 0 || s->allocated_at != 0 || s->deletion_requested_at != 0;
}

bool sandbox_ok(const struct sandbox *s)
{
	bool has_owner = s->allocated_to_track.n > 0 && s->allocated_at > 0;

	if (s->sandbox_id.n == 0 || s->external_id.n == 0 || s->allocated_at < 0 || s->deletion_requested_at < 0)
		return false;
	switch (s->status) {
	case SANDBOX_AVAILABLE: return !sandbox_was_used(s) && s->quarantine_reason.n == 0;
	case SANDBOX_ALLOCATED: return has_owner && s->lab_duration_hours > 0 && s->deletion_requested_at == 0;
	case SANDBOX_PENDING_DELETION:
	case SANDBOX_DELETION_FAILED: return s->deletion_requested_at > 0;
	case SANDBOX_STALE: return true;
	case SANDBOX_GONE: return false;
	}
	return false;
}

enum rc sandbox_apply(struct sandbox *s, enum sandbox_event on, struct wall now, struct err *e)
{
	const struct sandbox_step *step = sandbox_step(s->status, on);

	if (!step)
		return err_set(e, RC_CONFLICT, "sandbox %.*s is %s: cannot be %s", STR_ARG(s->sandbox_id),
		               sandbox_state_name(s->status), event_names[on]);
	if (step->to == SANDBOX_PENDING_DELETION && s->deletion_requested_at == 0)
		s->deletion_requested_at = wall_sec(now);
	s->status = step->to;
	s->updated_at = wall_sec(now);
	return RC_OK;
}

int64_t sandbox_expires_at(const struct sandbox *s)
{
	return s->allocated_at ? s->allocated_at + s->lab_duration_hours * 3600 : 0;
}

bool sandbox_is_live(const struct sandbox *s, struct wall now)
{
	return s->status == SANDBOX_ALLOCATED && wall_sec(now) < sandbox_expires_at(s);
}

struct sandbox sandbox_from_account(const struct csp_account *account, int64_t lab_hours, struct wall now)
{
	struct sandbox s = {
		.sandbox_id = account->sandbox_id,
		.external_id = account->external_id,
		.name = account->name,
		.sfdc_account_id = account->sfdc_account_id,
		.status = SANDBOX_AVAILABLE,
		.lab_duration_hours = lab_hours,
		.created_at = account->created_at ? account->created_at : wall_sec(now),
		.updated_at = wall_sec(now),
		.last_synced = wall_sec(now),
	};

	assert(sandbox_ok(&s));
	return s;
}

bool sandbox_see(struct sandbox *s, const struct csp_account *account, struct wall now)
{
	bool is_back = s->status == SANDBOX_STALE && s->quarantine_reason.n == 0 && !sandbox_was_used(s);
	bool is_same = str_eq(s->name, account->name) && str_eq(s->sfdc_account_id, account->sfdc_account_id);

	if (s->status != SANDBOX_AVAILABLE && !is_back)
		return false;
	if (!is_back && is_same && wall_sec(now) - s->last_synced < LAST_SYNCED_PRECISION_SEC)
		return false; /* a write for each account at each sync would buy nothing */
	if (sandbox_apply(s, SANDBOX_ON_SEEN, now, NULL))
		return false;
	s->name = account->name;
	s->sfdc_account_id = account->sfdc_account_id;
	s->last_synced = wall_sec(now);
	assert(sandbox_ok(s));
	return true;
}

enum rc sandbox_claim(struct sandbox *s, const struct sandbox_claim *claim, struct wall now, struct err *e)
{
	enum rc rc;

	assert(sandbox_ok(s) && claim->owner.n > 0 && claim->lab_hours > 0);
	rc = sandbox_apply(s, SANDBOX_ON_CLAIM, now, e);
	if (rc)
		return rc;
	s->allocated_to_track = claim->owner;
	s->idempotency_key = claim->idempotency_key.n ? claim->idempotency_key : claim->owner;
	s->track_name = claim->track_name;
	s->allocated_at = wall_sec(now);
	s->lab_duration_hours = claim->lab_hours;
	assert(sandbox_ok(s));
	return RC_OK;
}

enum rc sandbox_check_owner(const struct sandbox *s, struct str owner, struct err *e)
{
	if (s->allocated_at == 0 || !str_eq(s->allocated_to_track, owner))
		return err_set_code(e, RC_DENIED, "NOT_SANDBOX_OWNER", "sandbox %.*s is not yours",
		                    STR_ARG(s->sandbox_id));
	return RC_OK;
}

enum rc sandbox_give_back(struct sandbox *s, struct str owner, struct wall now, bool *ret_is_changed, struct err *e)
{
	enum rc rc = sandbox_check_owner(s, owner, e);

	*ret_is_changed = false;
	if (rc)
		return rc;
	if (s->status == SANDBOX_PENDING_DELETION || s->status == SANDBOX_DELETION_FAILED)
		return RC_OK;
	if (s->status == SANDBOX_ALLOCATED && !sandbox_is_live(s, now))
		return err_set_code(e, RC_DENIED, "ALLOCATION_EXPIRED",
		                    "your time with sandbox %.*s ended after %lld h; it is taken back automatically",
		                    STR_ARG(s->sandbox_id), (long long)s->lab_duration_hours);
	if (s->status == SANDBOX_STALE)
		return err_set(e, RC_CONFLICT,
		               "sandbox %.*s was put in quarantine by an operator; there is nothing more for you to do",
		               STR_ARG(s->sandbox_id));
	rc = sandbox_apply(s, SANDBOX_ON_GIVE_BACK, now, e);
	assert(rc || sandbox_ok(s));
	*ret_is_changed = !rc;
	return rc;
}

bool sandbox_is_orphaned(const struct sandbox *s, int64_t grace_sec, struct wall now)
{
	return s->status == SANDBOX_ALLOCATED && wall_sec(now) > sandbox_expires_at(s) + grace_sec;
}

enum rc sandbox_deletion_failed(struct sandbox *s, int64_t max_attempts, int64_t backoff_sec, struct str why,
                                struct wall now, struct err *e)
{
	int64_t failures = s->deletion_retry_count + 1;
	int64_t doublings = failures - 1 < BACKOFF_DOUBLINGS_MAX ? failures - 1 : BACKOFF_DOUBLINGS_MAX;
	enum rc rc = sandbox_apply(s, failures > max_attempts ? SANDBOX_ON_GIVE_UP : SANDBOX_ON_DELETE_LATER, now, e);

	if (rc)
		return rc;
	s->deletion_retry_count = failures;
	s->next_deletion_at = s->status == SANDBOX_DELETION_FAILED ? 0 : wall_sec(now) + (backoff_sec << doublings);
	s->last_error = why;
	assert(sandbox_ok(s));
	return RC_OK;
}

/* Its deletion, if there is one, starts over. */
static enum rc start_over(struct sandbox *s, enum sandbox_event on, struct wall now, struct err *e)
{
	enum rc rc = sandbox_apply(s, on, now, e);

	if (rc)
		return rc;
	s->quarantine_reason = STR("");
	s->deletion_retry_count = 0;
	s->next_deletion_at = 0;
	assert(sandbox_ok(s));
	return RC_OK;
}

enum rc sandbox_retry_deletion(struct sandbox *s, struct wall now, struct err *e)
{
	if (s->status != SANDBOX_DELETION_FAILED)
		return err_set(e, RC_CONFLICT, "sandbox %.*s is %s; only one that is deletion_failed can be retried",
		               STR_ARG(s->sandbox_id), sandbox_state_name(s->status));
	return start_over(s, SANDBOX_ON_RETRY, now, e);
}

enum rc sandbox_quarantine(struct sandbox *s, struct str reason, struct wall now, struct err *e)
{
	enum rc rc = sandbox_apply(s, SANDBOX_ON_QUARANTINE, now, e);

	if (!rc)
		s->quarantine_reason = reason.n ? reason : STR("put in quarantine by an operator");
	return rc;
}

enum rc sandbox_release(struct sandbox *s, struct wall now, struct err *e)
{
	if (s->status != SANDBOX_STALE || s->quarantine_reason.n == 0)
		return err_set(e, RC_CONFLICT, "sandbox %.*s is not in quarantine, it is %s", STR_ARG(s->sandbox_id),
		               sandbox_state_name(s->status));
	return start_over(s, sandbox_was_used(s) ? SANDBOX_ON_RELEASE_USED : SANDBOX_ON_RELEASE_UNUSED, now, e);
}

enum rc sandbox_discard(struct sandbox *s, struct wall now, struct err *e)
{
	return start_over(s, SANDBOX_ON_DISCARD, now, e);
}

bool sandbox_is_label(struct str text)
{
	return text.n > 0 && text.n <= SANDBOX_OWNER_MAX && str_is_visible(text);
}

bool sandbox_is_id(struct str text)
{
	return text.n > 0 && text.n <= SANDBOX_ID_MAX && str_is_of(text, "a-zA-Z0-9._:/-");
}
