/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_events.c - events in words: one row for each type.
 *
 * A row is a sentence with members of the detail in braces: {reason}, {reason.type} of an object in it, {due@} as a time. What stands in
 * brackets is left out when a member in it is missing. An empty row is an event that only keeps things going, such as a timer's: it is not
 * told. A type that has no row is told by its name, so a new event is never hidden.
 *
 * Details were written by us, but events from outside come into the log too: whatever a detail has, the outcome is one line of a limited
 * length.
 */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "kernel/event.h"
#include "service/explain_ops.h"
#include "service/leases.h"

enum { LOOK_PAGE = 100, LOOK_PAGES = 10, TEXT_MAX = 400, VALUE_MAX = 240, MICRO = 1000000 };

/* clang-format off */
static const struct {
	const char *type, *text;
} rows[] = {
	{ "AccountRegistered",           "taken into the pool" },
	{ "CleanAccountRequest",         "a cleanup was asked for ({reason})" },
	{ "CleanupDue",                  "" },
	{ "AccountCleanupSucceeded",     "the cleanup succeeded: it is empty" },
	{ "AccountCleanupFailed",        "the cleanup was given up[: {error}]" },
	{ "AccountCleanupRetried",       "somebody had it cleaned again" },
	{ "AccountQuarantined",          "locked away[: {reason}]" },
	{ "AccountEjected",              "sent out of the pool" },
	{ "AccountRemoved",              "left the pool" },
	{ "AccountDriftDetected",        "found outside of its OU[: in {actualOu}][, but it should be in {expectedOu}]" },
	{ "AccountReconciled",           "put right by the reconciler[: {text}]" },
	{ "GuardRetryDue",               "" },
	{ "GuardConfirmDue",             "" },
	{ "cloudtrail:MoveAccount",      "moved in the organisation[ from {detail.requestParameters.sourceParentId}][ to {detail.requestParameters.destinationParentId}][ by {detail.userIdentity.sessionContext.sessionIssuer.userName}]" },
	{ "HoldCreated",                 "held: {reason}[, until {due@}][ ({note})]" },
	{ "HoldExtended",                "the hold {reason} was changed[: until {due@}]" },
	{ "HoldClosed",                  "the hold {reason} ended: {state}[ ({why})]" },
	{ "HoldDue",                     "" },
	{ "HoldBypassSet",               "the next cleanup shall not be followed by a rest" },
	{ "SagaStarted",                 "{kind} started: the organisation and the access follow the record" },
	{ "SagaDone",                    "{kind} done" },
	{ "SagaUndone",                  "{kind} failed and was undone[: {reason}]" },
	{ "SagaParked",                  "{kind} is parked at step {step}[: {reason}]" },
	{ "SagaRetried",                 "{kind} was made to go on" },
	{ "SagaSkipped",                 "step {step} of {kind} was counted as done[: {reason}]" },
	{ "SagaAborted",                 "{kind} was made to go back[: {reason}]" },
	{ "DeadLetterReplayed",          "a dead letter of queue {queue} was delivered again" },
	{ "DeadLetterDropped",           "a dead letter of queue {queue} was dropped[: {reason}]" },
	{ "TimerFiredByHand",            "somebody did not wait for the timer {timer}" },
	{ "TimerCancelled",              "somebody cancelled the timer {timer}" },
	{ "LeaseRequested",              "asked for, from the template {templateName}[: {comments}]" },
	{ "LeaseQueued",                 "approved by {approvedBy}; no account was free, so it got a place in line" },
	{ "LeaseProvisioningStarted",    "approved by {approvedBy}; account {accountId} is made ready" },
	{ "LeaseApproved",               "ready: {userEmail} can use account {awsAccountId}" },
	{ "LeaseDenied",                 "denied by {deniedBy}[: {reason}]" },
	{ "LeaseWithdrawn",              "withdrawn[: {reason}]" },
	{ "LeaseEdited",                 "changed[; the budget is {maxSpend} USD][; the end is {expirationDate@}]" },
	{ "LeaseFrozen",                 "frozen ({reason.type})[: {reason.comment}][: {reason.totalSpend} USD spent, the threshold is {reason.triggeredBudgetThreshold} USD]"
	                                 "[: {reason.triggeredDurationThreshold} h before its end]" },
	{ "LeaseUnfrozen",               "unfrozen[: {reason}]" },
	{ "LeaseTerminated",             "ended by {terminatedBy} ({reason.type})[: {reason.comment}][: {reason.totalSpend} USD spent][ of {reason.budget} USD]" },
	{ "LeaseProvisioningFailed",     "account {accountId} could not be made ready[: {reason}]" },
	{ "LeaseBudgetExceeded",         "the budget is used up: {totalSpend} USD[ of {budget} USD]" },
	{ "LeaseExpired",                "its time is over[, since {expirationDate@}]" },
	{ "LeaseBudgetThresholdAlert",   "{totalSpend} USD spent: over the threshold of {budgetThresholdTriggered} USD" },
	{ "LeaseDurationThresholdAlert", "{triggeredDurationThreshold} h are left" },
	{ "LeaseFreezingThresholdAlert", "a threshold is reached at which it is frozen ({reason.type})" },
	{ "LeaseProjectedSpendAlert",    "at this rate it will cost {projectedSpend} USD[; the budget is {budget} USD]" },
	{ "LeaseTimerDue",               "" },
	{ "StatementDue",                "" },
	{ "LeaseCostsGenerated",         "the statement was made: {totalCost} USD" },
	{ "SandboxAdded",                "seen at the vendor for the first time" },
	{ "SandboxAllocated",            "claimed by track {track}[, until {expiresAt@}]" },
	{ "SandboxMarkedForDeletion",    "given back by track {track}" },
	{ "SandboxExpired",              "not given back in time by track {track}" },
	{ "SandboxDeleted",              "deleted at the vendor" },
	{ "SandboxDeletionPostponed",    "deletion failed (attempt {attempts}): {error}[; again at {nextAttemptAt@}]" },
	{ "SandboxDeletionFailed",       "deletion given up after {attempts} attempts: {error}" },
	{ "SandboxDeletionRetried",      "somebody had the deletion tried again" },
	{ "SandboxStale",                "the vendor does not list it any more" },
	{ "SandboxQuarantined",          "set aside[: {reason}]" },
	{ "SandboxReleased",             "its quarantine was ended: {status}" },
	{ "SandboxRestored",             "the vendor lists it again" },
	{ "SandboxRemoved",              "the record was removed; nothing was deleted at the vendor" },
};

/* Why a lease was frozen or has ended. */
static const char reason_text[] =
	"[{comment}][{totalSpend} USD were spent][ of {budget} USD][; the threshold is {triggeredBudgetThreshold} USD]"
	"[{triggeredDurationThreshold} h before its end]";
/* clang-format on */

/* --- values --- */

const char *explain_usd(struct arena *a, int64_t micro_usd)
{
	return str_format(a, "%lld.%02lld USD", (long long)(micro_usd / MICRO), (long long)(micro_usd % MICRO / 10000))
	        .p;
}

static struct str to_time(struct arena *a, const json_t *value)
{
	char       text[ISO_TIME_SIZE];
	int64_t    sec = json_integer_value(value); /* 0 for anything else */
	struct str iso;

	if (json_is_string(value) && !iso_time_parse(str_of(json_string_value(value), json_string_length(value)), &sec))
		return STR("");
	if (sec <= 0)
		return STR("");
	iso = iso_time(sec, text);
	return str_format(a, "%.10s %.5s UTC", iso.p, iso.p + 11);
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
		return str_format(a, "%.2f", json_real_value(value));
	return STR("");
}

/* "reason.type", "due@". Empty when it is not there. */
static struct str member(struct arena *a, const json_t *detail, struct str path)
{
	bool          is_time = path.n && path.p[path.n - 1] == '@';
	const json_t *value = detail;

	path.n -= is_time;
	while (path.n)
		value = json_object_get(value, str_dup(a, str_cut(&path, '.')).p);
	return is_time ? to_time(a, value) : to_text(a, value);
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
	CLEANUP(buf_fini) struct buf whole;
	CLEANUP(buf_fini) struct buf part;

	buf_init(&whole, TEXT_MAX * 16);
	buf_init(&part, TEXT_MAX * 16);
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

enum rc explain_read_events(struct situation *x, struct err *e)
{
	struct event_list list = { .subject = x->subject, .limit = LOOK_PAGE, .is_newest_first = true };

	for (int page = 0; page < LOOK_PAGES && x->event_count < EXPLAIN_EVENTS; page++) {
		enum rc rc = event_list(x->s, &list, e);

		if (rc)
			return rc;
		for (size_t i = 0; i < list.count && x->event_count < EXPLAIN_EVENTS; i++) {
			const char *row = row_of(list.events[i].type);

			if (!row || row[0])
				x->events[x->event_count++] = list.events[i];
		}
		if (!list.next.n)
			break;
		list.cursor = list.next;
	}
	return RC_OK;
}
