/* account_steps.h - the steps of the saga that follows an account, and its input; for account_follow.c alone. */
#pragma once

#include "base/str.h"
#include "service/account/account_follow.h"

struct arena;

enum { ACCOUNT_STEP_COUNT = 4 };

struct account_world {
	struct account_world_options options;
	struct account_ous          *ous;
	struct saga_step             steps[ACCOUNT_STEP_COUNT];
};

/* What one saga is to bring about: the target as it was when the saga began. */
struct account_target {
	struct str account;
	int64_t    number; /* of the saga */
	struct str from, to;
	struct str holder;  /* who has access afterwards; empty: nobody */
	int64_t    revokes; /* 1: other users' access ends (on the way out also the groups') */
	int64_t    groups;  /* 1: the groups get access */
};

/* The target in an account, to be followed from where it is now. */
struct account_target account_target_of(const struct account *account);

/* Nobody brings it back from there: Quarantine and Exit. They are also reached from wherever the account really is. */
bool account_target_is_final(const struct account_target *w);

/* As the saga's input, and back. RC_CORRUPT. */
struct str         account_target_write(const struct account_target *w, struct arena *a);
MUST_CHECK enum rc account_target_read(struct str input, struct arena *a, struct account_target *ret, struct err *e);

/* access_ms: of the steps that change who has access; see account_world_options. */
void account_steps_init(struct saga_step ret[ACCOUNT_STEP_COUNT], int64_t access_ms);
