/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.c - the life of a lease.
 *
 * PendingApproval -> Provisioning -> Active <-> Frozen -> one of six ends. Approving claims an account; the lease is
 * Active only when access works. A provisioning that fails leads back to PendingApproval when a person had approved it.
 *
 * Always true:
 *   1. status changes only in lease_apply(), only along the table below.
 *   2. Nothing leads out of ApprovalDenied and the six ends.
 *   3. A lease that is monitored (Provisioning, Active, Frozen) or has ended has an account, an approver and a start;
 *      one that is pending or denied has none of them.                                              [lease_ok()]
 *
 * Not here: who may ask (http/), which account (service/), when the monitor finds that something is over
 * (lease_watch.c).
 */
#include "domain/lease.h"

#include <assert.h>

#include "base/buf.h"

#define IN(name)      (UINT32_C(1) << LEASE_##name)
#define ALL_MONITORED (IN(PROVISIONING) | IN(ACTIVE) | IN(FROZEN))

/* clang-format off */
static const struct lease_step steps[LEASE_EVENT_COUNT] = {
	[LEASE_ON_APPROVE]    = { IN(PENDING_APPROVAL), LEASE_PROVISIONING },
	[LEASE_ON_PUBLISH]    = { IN(PROVISIONING),     LEASE_ACTIVE },
	[LEASE_ON_DENY]       = { IN(PENDING_APPROVAL), LEASE_APPROVAL_DENIED },
	[LEASE_ON_WITHDRAW]   = { IN(PENDING_APPROVAL), LEASE_APPROVAL_DENIED },
	[LEASE_ON_RESET]      = { IN(PROVISIONING),     LEASE_PENDING_APPROVAL },
	[LEASE_ON_FAIL]       = { IN(PROVISIONING),     LEASE_PROVISIONING_FAILED },
	[LEASE_ON_FREEZE]     = { IN(ACTIVE),           LEASE_FROZEN },
	[LEASE_ON_UNFREEZE]   = { IN(FROZEN),           LEASE_ACTIVE },
	[LEASE_ON_EXPIRE]     = { ALL_MONITORED,        LEASE_EXPIRED },
	[LEASE_ON_EXCEED]     = { ALL_MONITORED,        LEASE_BUDGET_EXCEEDED },
	[LEASE_ON_TERMINATE]  = { ALL_MONITORED,        LEASE_MANUALLY_TERMINATED },
	[LEASE_ON_QUARANTINE] = { ALL_MONITORED,        LEASE_ACCOUNT_QUARANTINED },
	[LEASE_ON_EJECT]      = { ALL_MONITORED,        LEASE_EJECTED },
};
/* clang-format on */

const char *const lease_status_names[LEASE_STATUS_COUNT] = { LEASE_STATUSES(ROW_TEXT) };

const char *const lease_event_names[LEASE_EVENT_COUNT] = { LEASE_EVENTS(ROW_TEXT) };

static const enum lease_group groups[LEASE_STATUS_COUNT] = {
#define X(name, text, group) LEASE_GROUP_##group,
	LEASE_STATUSES(X)
#undef X
};

enum lease_group lease_group(enum lease_status status)
{
	assert(status < LEASE_STATUS_COUNT);
	return groups[status];
}

enum lease_status lease_shown_status(const struct lease *l)
{
	return l->queued_ms ? LEASE_PROVISIONING : l->status;
}

const char *lease_state_text(const struct lease *l)
{
	return l->queued_ms ? "in line for an account" : lease_status_names[l->status];
}

bool lease_is_live(enum lease_status status)
{
	return lease_group(status) == LEASE_GROUP_PENDING || lease_group(status) == LEASE_GROUP_MONITORED;
}

const struct lease_step *lease_step(enum lease_status from, enum lease_event on)
{
	assert(on < LEASE_EVENT_COUNT);
	return from < LEASE_STATUS_COUNT && steps[on].from >> from & 1 ? &steps[on] : NULL;
}

/* What only a lease with an account has. */
static bool has_account(const struct lease *l)
{
	return l->account_id.n > 0 && l->approved_by.n > 0 && l->start_ms > 0 && l->last_checked_ms > 0 &&
	       l->queued_ms == 0;
}

static bool has_nothing_of_an_account(const struct lease *l)
{
	return l->account_id.n == 0 && l->approved_by.n == 0 && l->start_ms == 0 && l->last_checked_ms == 0 &&
	       l->expires_ms == 0 && l->cost == 0 && l->end_ms == 0;
}

bool lease_ok(const struct lease *l)
{
	bool has_what_all_have = l->uuid.n > 0 && l->user_email.n > 0 && str_eq_nocase(l->user_email, l->user_key) &&
	                         l->template_uuid.n > 0 && l->template_name.n > 0 && l->max_spend >= 0 &&
	                         l->duration_ms >= 0 && l->ttl_days >= 0;

	if (l->status >= LEASE_STATUS_COUNT || !has_what_all_have)
		return false;
	switch (lease_group(l->status)) {
	case LEASE_GROUP_PENDING:
		return has_nothing_of_an_account(l) && l->ttl_sec == 0 && (l->queued_ms > 0) == (l->queued_by.n > 0);
	case LEASE_GROUP_DENIED: return has_nothing_of_an_account(l) && l->ttl_sec > 0 && l->queued_ms == 0;
	case LEASE_GROUP_MONITORED: return has_account(l) && l->end_ms == 0 && l->ttl_sec == 0;
	case LEASE_GROUP_ENDED: return has_account(l) && l->end_ms > 0 && l->ttl_sec > 0;
	}
	return false;
}

/* Says from where the event leads anywhere: "Active, Frozen or Provisioning". */
static enum rc refuse(const struct lease *l, enum lease_event on, struct err *e)
{
	CLEANUP(buf_fini) struct buf allowed = BUF(256);
	enum lease_status            from[LEASE_STATUS_COUNT];
	size_t                       count = 0;

	for (int status = 0; status < LEASE_STATUS_COUNT; status++)
		if (lease_step((enum lease_status)status, on))
			from[count++] = (enum lease_status)status;
	for (size_t i = 0; i < count; i++)
		buf_addf(&allowed, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", lease_status_names[from[i]]);
	return err_set(e, RC_CONFLICT, "lease %.*s is %s; to %s, it must be %s", STR_ARG(l->uuid), lease_state_text(l),
	               lease_event_names[on], allowed.p);
}

static void leave_line(struct lease *l)
{
	l->queued_ms = 0;
	l->queued_by = STR("");
}

static void note(struct lease *l, enum lease_event on, struct wall now)
{
	switch (on) {
	case LEASE_ON_APPROVE:
		leave_line(l);
		l->start_ms = l->last_checked_ms = now.ms;
		break;
	case LEASE_ON_DENY:
	case LEASE_ON_WITHDRAW: leave_line(l); break;
	case LEASE_ON_PUBLISH: /* its duration counts from when it can be used; an end that a manager has set stays */
		l->start_ms = l->last_checked_ms = now.ms;
		if (l->expires_ms == 0 && l->duration_ms > 0)
			l->expires_ms = now.ms + l->duration_ms;
		break;
	case LEASE_ON_RESET:
		l->account_id = l->approved_by = l->decision_reason = l->freeze_reason = l->frozen_by = STR("");
		l->start_ms = l->last_checked_ms = l->expires_ms = 0;
		l->settled_until_ms = l->settled_cost = 0;
		l->cost = l->cost_at_ms = l->rate_from_ms = l->rate_from_cost = l->projected_ms = 0;
		break;
	case LEASE_ON_UNFREEZE: l->freeze_reason = l->frozen_by = STR(""); break;
	case LEASE_ON_FREEZE: break;
	case LEASE_ON_FAIL:
	case LEASE_ON_EXPIRE:
	case LEASE_ON_EXCEED:
	case LEASE_ON_TERMINATE:
	case LEASE_ON_QUARANTINE:
	case LEASE_ON_EJECT: l->end_ms = now.ms; break;
	case LEASE_EVENT_COUNT: break;
	}
}

enum rc lease_apply(struct lease *l, enum lease_event on, struct wall now, struct err *e)
{
	const struct lease_step *step = lease_step(l->status, on);

	if (!step)
		return refuse(l, on, e);
	note(l, on, now);
	l->status = step->to;
	l->edited_ms = now.ms;
	return RC_OK;
}

int64_t lease_hours(const struct lease *l)
{
	int64_t span = l->expires_ms > l->start_ms && l->start_ms > 0 ? l->expires_ms - l->start_ms : l->duration_ms;

	return (span + LEASE_HOUR_MS / 2) / LEASE_HOUR_MS;
}
