/* lease_ops.h - what the files of the lease service share: lease_life.c. Nobody else includes this. All inside a transaction. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "domain/caller.h"
#include "domain/lease.h"
#include "service/lease_events.h"
#include "store/session.h"

enum { DAY_SEC = 86400 };

/* A person, as actor of events: his email, as much as fits. */
struct actor actor_of_caller(const struct caller *c);

/* RC_NOT_FOUND with a sentence. */
MUST_CHECK enum rc lease_load(struct session *s, struct str uuid, struct lease *ret, struct err *e);

/* The lease of a call, checked against its owner; it is kept as long as the call's policy says. */
struct lease_call;
MUST_CHECK enum rc lease_load_called(struct session *s, struct lease_call *c, struct err *e);

/* Put it, with what follows from other fields. It must have been read in this session. */
void lease_store(struct session *s, struct lease *l);

/* One more, or one less, live lease of its owner. RC_CONFLICT: he would have more than max. */
MUST_CHECK enum rc lessee_add(struct session *s, const struct lease *l, int64_t max, struct err *e);
MUST_CHECK enum rc lessee_remove(struct session *s, const struct lease *l, struct err *e);

/* Both timers as the lease needs them now: armed, set anew, or cancelled. Two actions. */
MUST_CHECK enum rc lease_arm(struct session *s, const struct lease *l, struct err *e);

/* Does the account belong to this lease? Then *ret is true. */
MUST_CHECK enum rc lease_has_account(struct session *s, const struct lease *l, bool *ret, struct err *e);

/* End a monitored lease: status, end, removal date, counter, timers, LeaseTerminated. With clean_reason its account is taken back.
 * RC_CONFLICT: it has ended already, or was never approved. */
struct lease_ending {
	enum lease_event    event;
	struct str          reason_json;
	struct str          clean_reason; /* empty: somebody else sees to the account */
	const struct actor *by;
};
MUST_CHECK enum rc lease_finish(struct session *s, struct lease *l, const struct lease_ending *end, struct err *e);

/* Freeze it and its account, for this reason, and tell. RC_CONFLICT unless it is Active. */
MUST_CHECK enum rc lease_freeze_for(struct session *s, struct lease *l, struct str reason_json, const struct actor *by,
                                    struct err *e);

/* DENY or WITHDRAW a pending one. The reason may be empty. */
MUST_CHECK enum rc lease_refuse(struct session *s, struct lease *l, enum lease_event event, struct str who,
                                struct str reason, const struct actor *by, struct err *e);

/* Give a pending lease an account, or a place in line when none is free or others wait for one. Changes and tells, does not store. */
MUST_CHECK enum rc lease_grant(struct session *s, struct lease *l, struct str approver, const struct actor *by,
                               struct err *e);

/* --- the line (lease_line.c) --- */

MUST_CHECK enum rc line_is_empty(struct session *s, bool *ret, struct err *e);

/* To the end of it; does not store. */
MUST_CHECK enum rc lease_line_join(struct session *s, struct lease *l, struct str approver, const struct actor *by,
                                   struct err *e);

/* Its place from 1 on, 0 when it is not in line, and when its turn may come (0: cannot be told), when accounts rest so long. */
MUST_CHECK enum rc line_place(struct session *s, const struct lease *l, int64_t rest_ms, int64_t *ret_position,
                              int64_t *ret_estimate_ms, struct err *e);
