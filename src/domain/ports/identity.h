/* identity.h - who the people are: the port to a directory. Implemented in providers/. Answers from memory: any thread, never waits. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/ports/caller.h"

struct identity;

/* The person with this email (compared without case), with the email as the directory writes it. RC_NOT_FOUND. */
typedef enum rc identity_find_fn(struct identity *i, struct str email, struct arena *a, struct caller *ret,
                                 struct err *e);

struct directory_entry {
	struct caller caller;
	struct str    source;                 /* which directory says so: "users file", "provider" */
	int64_t       first_ms, signed_in_ms; /* sign-ins that are known of; 0: none */
};

/* Everybody with one of these roles, in the order of their emails in lower case, behind this one (empty: from the first); at most max. */
typedef size_t identity_list_fn(struct identity *i, unsigned roles, struct str after, struct arena *a,
                                struct directory_entry *ret, size_t max);

struct identity_ops {
	identity_find_fn *find;
	identity_list_fn *list;
};

struct identity {
	const struct identity_ops *ops;
};
