/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_events.c - events in words: one row for each type.
 *
 * A row is a sentence with members of the detail in braces: {reason}, {reason.type} of an object in it, {due@} as a
 * time. What is in brackets is left out when one of its members is missing. An event with an empty row, such as a
 * timer's, is not shown. A type without a row is shown by its name, so a new event is never hidden.
 *
 * Details were written by us, but events from outside come into the log too: whatever a detail has, the outcome is one
 * line of a limited length.
 */

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "kernel/event.h"
#include "service/explain/explain_private.h"
#include "service/lease/leases.h"

enum { LOOK_PAGE = 100, LOOK_PAGES = 10, TEXT_MAX = 400, VALUE_MAX = 240, MICRO_PER_CENT = 10000 };

/* clang-format off */
static const struct {
	const char *type, *text;
} rows[] = {
	{ "AccountRegistered",           "added to the pool" },
	{ "CleanAccountRequest",         "a cleanup was requested ({reason})" },
	{ "CleanupDue",                  "" },
	{ "AccountCleanupSucceeded",     "the cleanup succeeded: it is empty" },
	{ "AccountCleanupFailed",        "the cleanup was given up[: {error}]" },
	{ "AccountCleanupRetried",       "someone had it cleaned again" },
	{ "AccountProvisioned",          "set up for {leaseId.userEmail}" },
	{ "AccountQuarantined",          "put in quarantine[: {reason}]" },
	{ "AccountEjected",              "taken out of the pool" },
	{ "AccountRemoved",              "left the pool" },
	{ "AccountDriftDetected",        "found outside its OU[: in {actualOu}]"
	                                 "[, but it should be in {expectedOu}]" },
	{ "AccountReconciled",           "repaired by the reconciler[: {text}]" },
	{ "GuardRetryDue",               "" },
	{ "GuardConfirmDue",             "" },
	{ "cloudtrail:MoveAccount",      "moved in the organisation[ from {detail.requestParameters.sourceParentId}]"
	                                 "[ to {detail.requestParameters.destinationParentId}]"
	                                 "[ by {detail.userIdentity.sessionContext.sessionIssuer.userName}]" },
	{ "HoldCreated",                 "held: {reason}[, until {due@}][ ({note})]" },
	{ "HoldExtended",                "the hold {reason} was changed[: until {due@}]" },
	{ "HoldClosed",                  "the hold {reason} ended: {state}[ ({why})]" },
	{ "HoldDue",                     "" },
	{ "HoldBypassSet",               "the next cleanup is not followed by a cooldown" },
	{ "InstanceOperationStarted",    "{operation} was requested[: {reason}]" },
	{ "InstanceLeftoversRemoved",    "what a failed provisioning left behind was removed" },
	{ "InstanceSecretShown",         "the administrator's password was shown" },
	{ "InstancePersonAdded",         "{email} was added to the identity pool" },
	{ "InstancePersonPassword",      "{email} got a new password in the identity pool" },
	{ "InstancePersonRemoved",       "{email} was removed from the identity pool" },
	{ "InstanceServiceEvent",        "the container service reported: {eventName}" },
	{ "InstanceArchiveDue",          "" },
	{ "InstanceRemovalDue",          "" },
	{ "InstanceArchiveRemoved",      "the archive {backupId} was removed: it had expired" },
	{ "CLUSTER_CREATION_COMPLETE",   "provisioning: {status}[: {error.code}, {error.message}]" },
	{ "CLUSTER_SCALE_COMPLETE",      "change of size: {status}[, {desiredCount} tasks]"
	                                 "[: {error.code}, {error.message}]" },
	{ "CLUSTER_SUSPEND_COMPLETE",    "suspend: {status}[: {error.message}]" },
	{ "CLUSTER_RESUME_COMPLETE",     "resume: {status}[: {error.code}, {error.message}]" },
	{ "CLUSTER_PARK_COMPLETE",       "park: {status}[: {error.message}]" },
	{ "CLUSTER_UNPARK_COMPLETE",     "unpark: {status}[: {error.code}, {error.message}]" },
	{ "CLUSTER_UPDATE_COMPLETE",     "change of configuration: {status}[: {error.message}]" },
	{ "CLUSTER_BACKUP_COMPLETE",     "backup {backupId}: {status}[: {error.message}]" },
	{ "CLUSTER_RESTORE_COMPLETE",    "restore of {backupId}: {status}[: {error.message}]" },
	{ "CLUSTER_ROTATION_COMPLETE",   "new database password: {status}[: {error.message}]" },
	{ "CLUSTER_RECOVERY_COMPLETE",   "recovery: {status}[: {error.message}]" },
	{ "CLUSTER_DELETION_COMPLETE",   "removal: {status}[: {error.message}]" },
	{ "SagaStarted",                 "{kind} started" },
	{ "SagaDone",                    "{kind} done" },
	{ "SagaUndone",                  "{kind} failed and was undone[: {reason}]" },
	{ "SagaParked",                  "{kind} is parked at step {step}[: {reason}]" },
	{ "SagaRetried",                 "{kind} was retried" },
	{ "SagaSkipped",                 "step {step} of {kind} was counted as done[: {reason}]" },
	{ "SagaAborted",                 "{kind} was aborted and rolled back[: {reason}]" },
	{ "DeadLetterReplayed",          "a dead letter of queue {queue} was delivered again" },
	{ "DeadLetterDropped",           "a dead letter of queue {queue} was dropped[: {reason}]" },
	{ "TimerFiredByHand",            "someone fired the timer {timer} early" },
	{ "TimerCancelled",              "someone cancelled the timer {timer}" },
	{ "LeaseRequested",              "requested, from the template {templateName}[: {comments}]" },
	{ "LeaseQueued",                 "approved by {approvedBy}[: {reason}]; no account was free, "
	                                 "so it waits in line" },
	{ "LeaseProvisioningStarted",    "approved by {approvedBy}[: {reason}]; account {accountId} is being set up" },
	{ "LeaseApproved",               "ready: {userEmail} can use account {awsAccountId}" },
	{ "LeaseDenied",                 "denied by {deniedBy}[: {reason}]" },
	{ "LeaseWithdrawn",              "withdrawn[: {reason}]" },
	{ "LeaseEdited",                 "changed[; the budget is {maxSpend} USD][; the end is {expirationDate@}]" },
	{ "LeaseFrozen",                 "frozen ({reason.type})[: {reason.comment}][: {reason.totalSpend} USD spent, "
	                                 "the threshold is {reason.triggeredBudgetThreshold} USD]"
	                                 "[; it comes to {reason.projectedSpend} USD at this rate]"
	                                 "[: {reason.triggeredDurationThreshold} h before its end]" },
	{ "LeaseUnfrozen",               "unfrozen[: {reason}]" },
	{ "LeaseTerminated",             "ended by {terminatedBy} ({reason.type})[: {reason.comment}]"
	                                 "[: {reason.totalSpend} USD spent][ of {reason.budget} USD]"
	                                 "[, about {reason.estimatedSpend} USD with what is not billed yet]" },
	{ "LeaseProvisioningFailed",     "account {accountId} could not be set up[: {reason}]" },
	{ "LeaseBudgetExceeded",         "the budget is used up: {totalSpend} USD[ of {budget} USD]"
	                                 "[, about {estimatedSpend} USD with what is not billed yet]" },
	{ "LeaseExpired",                "its time is up[, since {expirationDate@}]" },
	{ "LeaseBudgetThresholdAlert",   "{totalSpend} USD spent, above the threshold of "
	                                 "{budgetThresholdTriggered} USD" },
	{ "LeaseDurationThresholdAlert", "{triggeredDurationThreshold} h are left" },
	{ "LeaseFreezingThresholdAlert", "it has reached a threshold at which it is frozen ({reason.type})" },
	{ "LeaseProjectedSpendAlert",    "at this rate it will cost {projectedSpend} USD"
	                                 "[; the budget is {budget} USD]" },
	{ "LeaseTimerDue",               "" },
	{ "StatementDue",                "" },
	{ "LeaseCostsGenerated",         "the statement was created: {totalCost} USD" },
	{ "SandboxAdded",                "seen at the vendor for the first time" },
	{ "SandboxAllocated",            "claimed by track {track}[, until {expiresAt@}]" },
	{ "SandboxMarkedForDeletion",    "given back by track {track}" },
	{ "SandboxExpired",              "not given back in time by track {track}" },
	{ "SandboxDeleted",              "deleted at the vendor" },
	{ "SandboxDeletionPostponed",    "deletion failed (attempt {attempts}): {error}[; again at {nextAttemptAt@}]" },
	{ "SandboxDeletionFailed",       "deletion given up after {attempts} attempts: {error}" },
	{ "SandboxDeletionRetried",      "someone had the deletion tried again" },
	{ "SandboxStale",                "the vendor no longer lists it" },
	{ "SandboxQuarantined",          "put in quarantine[: {reason}]" },
	{ "SandboxReleased",             "its quarantine has ended: {status}" },
	{ "SandboxRestored",             "the vendor lists it again" },
	{ "SandboxRemoved",              "the record was removed; nothing was deleted at the vendor" },
};

/* Why a lease was frozen or has ended. */
static const char reason_text[] =
	"[{comment}][{totalSpend} USD were spent][ of {budget} USD][; the threshold is {triggeredBudgetThreshold} USD]"
	"[; about {estimatedSpend} USD with what is not billed yet]"
	"[{triggeredDurationThreshold} h before its end]";
/* clang-format on */

/* --- values --- */

const char *explain_usd(struct arena *a, int64_t micro_usd)
{
	int64_t     cents = micro_usd / MICRO_PER_CENT;
	const char *sign = cents < 0 ? "-" : "";

	return str_format(a, "%s%lld.%02lld USD", sign, llabs(cents / 100), llabs(cents % 100)).p;
}

static struct str sec_to_time(struct arena *a, int64_t sec)
{
	char       text[ISO_TIME_SIZE];
	struct str iso = iso_time(sec, text);

	return str_format(a, "%.10s %.5s UTC", iso.p, iso.p + 11);
}

const char *explain_time(struct situation *x, int64_t ms)
{
	return sec_to_time(x->a, ms / 1000).p;
}

static struct str to_text(struct arena *a, const json_t *value)
{
	if (json_is_string(value) && str_eq(str_from(json_string_value(value)), STR(AUTO_APPROVED)))
		return STR("the rules");
	if (json_is_string(value))
		return utf8_line(a, str_of(json_string_value(value), json_string_length(value)), VALUE_MAX);
	if (json_is_integer(value))
		return str_format(a, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	if (json_is_real(value))
		return json_dollars(a, json_real_value(value));
	return STR("");
}

/* "reason.type", "due@". Empty when it is not there. */
static struct str member(struct arena *a, const json_t *detail, struct str path)
{
	bool          is_time = path.n && path.p[path.n - 1] == '@';
	const json_t *value = detail;
	int64_t       sec;

	path.n -= is_time;
	while (path.n)
		value = json_object_get(value, str_dup(a, str_cut(&path, '.')).p);
	if (!is_time)
		return to_text(a, value);
	sec = json_integer_value(value); /* 0 for anything else */
	if (json_is_string(value))
		is_time = iso_time_parse(str_of(json_string_value(value), json_string_length(value)), &sec);
	return is_time && sec > 0 ? sec_to_time(a, sec) : STR("");
}

/* --- rows --- */

/* The pattern with its members; false when one is missing. */
static bool fill(struct buf *b, struct arena *a, struct str pattern, const json_t *detail)
{
	bool is_complete = true;

	while (pattern.n) {
		struct str before = str_cut(&pattern, '{'), value;

		buf_add_str(b, before);
		if (!pattern.n)
			break;
		value = member(a, detail, str_cut(&pattern, '}'));
		buf_add_str(b, value);
		is_complete = is_complete && value.n;
	}
	return is_complete;
}

static struct str expand(struct arena *a, struct str pattern, const json_t *detail)
{
	CLEANUP(buf_fini) struct buf whole = BUF(TEXT_MAX * 16), part = BUF(TEXT_MAX * 16);

	while (pattern.n) {
		struct str plain = str_cut(&pattern, '[');

		(void)fill(&whole, a, plain, detail); /* outside of brackets a missing one is just not there */
		buf_reset(&part);
		if (pattern.n && fill(&part, a, str_cut(&pattern, ']'), detail))
			buf_add_str(&whole, buf_str(&part));
	}
	return utf8_line(a, buf_str(&whole), TEXT_MAX);
}

static const char *row_of(struct str type)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(type, str_from(rows[i].type)))
			return rows[i].text;
	return NULL;
}

struct str explain_event(const struct event *event, struct arena *a)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	const char                 *row = row_of(event->type);

	if (!row)
		return event->type;
	if (json_parse(event->detail, &detail, NULL))
		detail = NULL; /* then the members are missing, and the sentence is short */
	return expand(a, str_from(row), detail);
}

struct str explain_reason(struct str json, struct arena *a)
{
	CLEANUP(json_freep) json_t *reason = NULL;

	if (!json.n || json_parse(json, &reason, NULL))
		return STR("");
	return expand(a, str_from(reason_text), reason);
}

/* --- the newest --- */

void explain_read_events(struct situation *x)
{
	struct event_list list = { .subject = x->subject, .limit = LOOK_PAGE, .is_newest_first = true };

	for (int page = 0; page < LOOK_PAGES && x->event_count < EXPLAIN_EVENTS; page++) {
		if (x->rc || (x->rc = event_list(x->s, &list, x->e)))
			return;
		for (size_t i = 0; i < list.count && x->event_count < EXPLAIN_EVENTS; i++) {
			const char *row = row_of(list.events[i].type);

			if (!row || row[0])
				x->events[x->event_count++] = list.events[i];
		}
		if (!list.next.n)
			return;
		list.cursor = list.next;
	}
}
