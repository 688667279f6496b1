/* accounts.h - the accounts of the pool: what people, leases and those who watch over accounts can do with them.
 *
 * Each change is one transaction for records, events and timers; what must happen outside follows by a saga that the
 * same transaction starts (see account_follow.h). Cleaning them is account_clean.h's. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/account.h"
#include "domain/ports/caller.h"
#include "domain/hold.h"
#include "domain/lease.h"
#include "service/account/account_report.h"
#include "store/session.h"
#include "store/store.h"

/* --- for people: transaction functions --- */

struct account_call {
	struct caller by;
	struct str    id;
	struct str    name, email;   /* register: as the organisation has them */
	struct str    reason;        /* quarantine */
	bool          restarts_rest; /* retry: also of one that rests, whose rest begins anew */
	bool          is_of_pool; /* quarantine: RC_NOT_FOUND for one that is not stored, which is otherwise taken in */

	struct account        account; /* the answer */
	struct account_report report;  /* get: of its last cleanup; without runs when there is none */
};
txn_fn account_get;           /* read-only */
txn_fn account_register;      /* it is in Entry. RC_CONFLICT: known already */
txn_fn account_retry_cleanup; /* RC_CONFLICT unless in Quarantine, or in CleanUp and not being cleaned */
txn_fn account_quarantine;    /* ends its lease as AccountQuarantined */
txn_fn account_eject;         /* ends its lease as Ejected. RC_CONFLICT while in CleanUp */

struct account_list {
	unsigned   statuses; /* bit n: those of enum account_status n; 0: all */
	size_t     limit;
	struct str cursor;

	struct page page; /* the answer: struct account records */
};
txn_fn account_list; /* read-only */

/* How many are in each status; read-only. arg is int64_t[ACCOUNT_STATUS_COUNT]. */
txn_fn account_counts;

/* --- for leases, inside their transaction --- */

/* Claim the longest rested free account for this lease: Active, held by its owner; the world follows. RC_EXHAUSTED. */
MUST_CHECK enum rc account_lend(struct session *s, const struct lease *lease, struct str actor, struct account *ret,
                                struct err *e);

/* FREEZE, UNFREEZE, TAKE_BACK: change the account of a lease, and have the world follow. Taking back asks for a cleanup
 * (CleanAccountRequest with this reason) once the account is in CleanUp. RC_CONFLICT: another lease has it by now. */
MUST_CHECK enum rc account_change(struct session *s, const struct lease *lease, enum account_event event,
                                  struct str clean_reason, struct str actor, struct err *e);

/* --- for those who watch over accounts, inside their transaction --- */

/* Quarantine an account that this transaction has read: its live lease ends, a hold of this kind locks it away,
 * AccountQuarantined, and the world follows from wherever the account is. RC_CONFLICT: it is on its way out. */
MUST_CHECK enum rc account_lock_away(struct session *s, struct account *account, enum hold_reason kind,
                                     struct str reason, struct str actor, struct str request_id, struct err *e);
