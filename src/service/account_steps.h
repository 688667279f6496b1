/* account_steps.h - the steps of the saga that follows an account, and its input; shared with account_follow.c, nobody else includes this. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/account_follow.h"

struct account_ous;
struct arena;

struct account_world {
	struct account_world_options options;
	struct account_ous          *ous;
};

/* What one saga is to bring about: the wish as it was when the saga began. */
struct account_wish {
	struct str account;
	int64_t    number; /* of the saga */
	struct str from, to;
	struct str holder;  /* who has access afterwards; empty: nobody */
	int64_t    revokes; /* 1: other users' access ends (on the way out also the groups') */
	int64_t    groups;  /* 1: the groups get access */
};

/* The wish in an account, to be followed from where it is now. */
struct account_wish account_wish_of(const struct account *account);

/* Nobody brings it back from there: Quarantine and Exit. They are also reached from wherever the account really is. */
bool account_wish_is_final(const struct account_wish *w);

/* As the saga's input, and back. RC_CORRUPT. */
struct str         account_wish_write(const struct account_wish *w, struct arena *a);
MUST_CHECK enum rc account_wish_read(struct str input, struct arena *a, struct account_wish *ret, struct err *e);

enum { ACCOUNT_STEP_COUNT = 4 };
extern const struct saga_step account_steps[ACCOUNT_STEP_COUNT];
