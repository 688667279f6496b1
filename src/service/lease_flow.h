/* lease_flow.h - where leases and accounts meet: shared by leases.c and accounts.c and the files around them; nobody else includes this.
 *
 * leases.c decides about leases and asks for accounts; accounts.c decides about accounts, starts the saga that brings the world behind the
 * record, and tells the lease when it has. Both sides are called inside the other's transaction. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "domain/account.h"
#include "domain/hold.h"
#include "domain/lease.h"
#include "store/session.h"

/* --- accounts, for leases (accounts.c) --- */

/* Claim the longest rested free account for this lease: Active, its holder the owner, and the world follows. RC_EXHAUSTED: none is free. */
MUST_CHECK enum rc account_lend(struct session *s, const struct lease *lease, struct str actor, struct account *ret,
                                struct err *e);

/* Freeze, unfreeze, take back: change the account of a lease, and have the world follow. Taking back asks for a cleanup
 * (CleanAccountRequest with this reason) once the account is in CleanUp. */
MUST_CHECK enum rc account_freeze(struct session *s, const struct lease *lease, struct str actor, struct err *e);
MUST_CHECK enum rc account_unfreeze(struct session *s, const struct lease *lease, struct str actor, struct err *e);
MUST_CHECK enum rc account_take_back(struct session *s, const struct lease *lease, struct str clean_reason,
                                     struct str actor, struct err *e);

/* --- among the files about accounts (accounts.c) --- */

/* Quarantine an account that this transaction has read: its live lease ends, a hold of this kind locks it away, AccountQuarantined, and the world follows from wherever the
 * account really is. RC_CONFLICT: it is on its way out of the pool. */
MUST_CHECK enum rc account_lock_away(struct session *s, struct account *account, enum hold_reason kind,
                                     struct str reason, struct str actor, struct str request_id, struct err *e);

/* --- leases, for accounts (leases.c) --- */

/* The account is Active and its owner has access: a lease in Provisioning is published (Active, start and end from now on, timers,
 * LeaseApproved). Anything else is left alone. */
MUST_CHECK enum rc lease_on_ready(struct session *s, const struct account *account, struct err *e);

/* The account could not be made ready: the lease is reset to PendingApproval (approved by a person) or ended as ProvisioningFailed; the
 * account is no longer its. Anything else is left alone. */
MUST_CHECK enum rc lease_on_failed(struct session *s, const struct account *account, struct str why, struct err *e);

/* The account is being quarantined or ejected: its live lease ends (QUARANTINE, EJECT) without a cleanup. RC_OK also when there is none. */
MUST_CHECK enum rc lease_on_lost(struct session *s, const struct account *account, enum lease_event event,
                                 struct str comment, struct str actor, struct err *e);

/* An account became free: whoever is next in line should hear of it. */
MUST_CHECK enum rc line_poke(struct session *s, struct err *e);

/* --- events --- */

/* {"userEmail": ..., "uuid": ...} as most events name a lease. */
struct json_out;
void lease_put_key(struct json_out *o, const char *name, const struct lease *lease);

/* Emit with subject "lease/UUID" (leases.c) or "account/ID" (accounts.c), detail as text. */
MUST_CHECK enum rc lease_emit(struct session *s, const char *type, const struct lease *lease, struct str actor,
                              struct str request_id, struct str detail, struct err *e);
MUST_CHECK enum rc account_emit(struct session *s, const char *type, const struct account *account, struct str actor,
                                struct str request_id, struct str detail, struct err *e);
