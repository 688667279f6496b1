/* identity.h - the port to a directory of people, implemented in providers/. Answers from memory: any thread, never
 * waits. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/ports/caller.h"

struct identity;

struct directory_entry {
	struct caller caller;
	struct str    source;                 /* which directory says so: "users file", "provider" */
	int64_t       first_ms, signed_in_ms; /* sign-ins that are known of; 0: none */
};

struct identity_ops {
	/* The person with this email (without regard to case), with the email as the directory has it. RC_NOT_FOUND. */
	enum rc (*find)(struct identity *i, struct str email, struct arena *a, struct caller *ret, struct err *e);

	/* Up to max people with one of these roles, by their emails in lower case, after this one (empty: from the
	 * first). */
	size_t (*list)(struct identity *i, unsigned roles, struct str after, struct arena *a,
	               struct directory_entry *ret, size_t max);
};

struct identity {
	const struct identity_ops *ops;
};
