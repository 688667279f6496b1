/* accounts.h - from the vendor's list of accounts to those we may lend. No I/O. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* What a listing held. */
struct csp_listing {
	struct csp_account *accounts;
	size_t              count;
	size_t              malformed;     /* skipped: something in them makes no sense */
	size_t              duplicates;    /* skipped: an earlier account has the same sandbox_id or external_id */
	struct str          first_problem; /* what was wrong with the first malformed one */
};

/* Read {"results": [...]}. Accounts of another type or state are not ours and not counted. Everything in *ret lives
 * in the arena. RC_CORRUPT when the document as a whole is not such a list. */
MUST_CHECK enum rc csp_read_accounts(struct str json, struct arena *a, struct csp_listing *ret, struct err *e);
