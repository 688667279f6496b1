/* people.h - who has signed in: remembered in the store, so that every node knows those whom a sign-in provider
 * vouched for. They are a source of the directory, beside the one that was there before. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/ports/caller.h"
#include "domain/ports/identity.h"
#include "store/record.h"
#include "store/store.h"

struct person {
	struct str email;  /* the key: lower case */
	struct str shown;  /* the email as its source writes it */
	struct str source; /* "provider" or "users file" */
	struct str display_name, user_name;
	int64_t    roles; /* of the last sign-in, enum role; 0: removed */
	int64_t    first_ms, signed_in_ms;
	int64_t    changed_ms; /* the order in which nodes catch up */
	uint64_t   version;
};
extern const struct record_type person_type;

/* next: the source that goes first, such as the users file; it must outlive this. */
struct people   *people_new(struct store *store, struct identity *next);
void             people_free(struct people *p);
struct identity *people_identity(struct people *p);

/* The first source knows everybody: nobody else is in the directory, whatever a provider once said. Call it first. */
void people_believe_next(struct people *p);

/* Catch up with what other nodes have seen. At the start, and now and then. Blocks. */
MUST_CHECK enum rc people_load(struct people *p, struct err *e);

/* This person has just signed in; is_vouched: only a provider says so. Blocks. */
MUST_CHECK enum rc people_sign_in(struct people *p, const struct caller *c, bool is_vouched, struct err *e);

/* Forget a person until the next sign-in; emits an event. RC_NOT_FOUND; RC_CONFLICT: in another source. */
struct person_removal {
	struct people *people;
	struct str     email;
	struct actor   actor;
	struct person  person; /* the answer; people_note() it once it is durable */
};
txn_fn person_remove;

/* This one has changed here. Of two versions the newer stays. */
void people_note(struct people *p, const struct person *person);
