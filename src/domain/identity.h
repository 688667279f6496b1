/* identity.h - who the people are: the port to a directory. Implemented in providers/. Answers from memory: any thread, never waits. */
#pragma once

#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/caller.h"

struct arena;
struct identity;

/* The person with this email (compared without case), with the email as the directory writes it. RC_NOT_FOUND. */
typedef enum rc identity_find_fn(struct identity *i, struct str email, struct arena *a, struct caller *ret,
                                 struct err *e);

/* Emails of everybody with one of these roles, for notices; at most max. */
typedef size_t identity_list_fn(struct identity *i, unsigned roles, struct arena *a, struct str *ret, size_t max);

struct identity_ops {
	identity_find_fn *find;
	identity_list_fn *list;
};

struct identity {
	const struct identity_ops *ops;
};
