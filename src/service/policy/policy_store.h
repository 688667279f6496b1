/* policy_store.h - the operator's documents in the store: read, checked, changed with optimistic locking; and the
 * policy in force.
 *
 * A document that nobody has written has version 0 and says the defaults. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/policy.h"
#include "service/record/lease_records.h"
#include "service/policy/policy_document.h"
#include "store/store.h"

struct clock;

#define EVENT_POLICY_CHANGED "PolicyChanged" /* {document, oldVersion, newVersion, changes: [{key, from, to}]} */

/* What its events are about: "policy/global". */
struct str document_subject(enum document_kind kind, struct arena *a);

struct document_call {
	enum document_kind kind;
	struct str         actor, request_id;
	struct str         text;         /* check, put */
	uint64_t           seen_version; /* put: the one that the caller has read */

	struct document       document; /* the answer: as it is stored now, also after a refusal */
	struct policy         policy;   /* what it says; check: what the text says */
	struct policy_changes changes;  /* check, put: from what was stored to the text */
	struct problems       problems; /* of the text; get: of what is stored */
};
txn_fn document_get;   /* read-only */
txn_fn document_check; /* read-only. RC_OK also when there are problems */

/* RC_INVALID: problems has them all; RC_CONFLICT: somebody else was faster, document is his. The same text again
 * changes nothing. */
txn_fn document_put;

/* --- the policy in force --- */

/* How long a policy that was asked for stays valid after it was replaced. Whoever needs it for longer asks again. */
enum { POLICY_VALID_MS = 60000, POLICY_GENERATIONS_MAX = 1024 };

/* The defaults are in force until the first refresh. */
struct policy_holder *policy_holder_new(struct store *store, const struct clock *clock);

/* What policies say of the accounts' rest; before anybody else has the holder. */
void policy_holder_set_rest(struct policy_holder *h, int64_t rest_ms);
void policy_holder_free(struct policy_holder *h);

/* Any thread, never waits. */
const struct policy *policy_current(const struct policy_holder *h);

/* Take over this version of a document unless a newer one is in force: for the one who has just written it. Does not
 * ask the store. RC_CORRUPT: it cannot be read, what was in force stays; when nothing was, the careful choice:
 * maintenance, or a person is asked about every request. RC_LIMITED: too many changes in POLICY_VALID_MS; a later
 * refresh does. */
MUST_CHECK enum rc policy_holder_take(struct policy_holder *h, enum document_kind kind, const struct document *d,
                                      struct err *e);

/* Read what is stored and take it over. Blocks. At the start, and every few seconds for what other nodes wrote. */
MUST_CHECK enum rc policy_holder_refresh(struct policy_holder *h, struct err *e);
