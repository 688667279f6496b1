/* template.h - the configuration of aws-nuke that the operator wrote, checked, and filled in for one account. Pure
 * but for reading the file.
 *
 * Placeholders: %CLEANUP_ACCOUNT_ID% is the account, %CLEANUP_ROLE_NAME% the role that empties it (to keep by a
 * filter). */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum { NUKE_TEMPLATE_MAX = 131072, NUKE_PROTECTED_MAX = 200 };

struct nuke_template {
	struct str text, role_name;
	const struct str *protected; /* accounts that are never emptied */
	size_t protected_count;
};

/* The file's text into the arena. RC_INVALID: there is none, or it is too large. */
MUST_CHECK enum rc nuke_template_read(const char *path, struct arena *a, struct str *ret, struct err *e);

/* Can any account be filled in? RC_INVALID with what is wrong and what would be right. */
MUST_CHECK enum rc nuke_template_check(const struct nuke_template *t, struct err *e);

/* Every kind of resource in it must be known: aws-nuke takes a typo for a kind without resources. `known`: one a line.
 * */
MUST_CHECK enum rc nuke_template_check_kinds(const struct nuke_template *t, struct str known, struct err *e);

/* The configuration for this account, as JSON, which is YAML. The protected accounts are in its blocklist, whatever
 * the template says. RC_DENIED: the account is one that must not be emptied. RC_INVALID: as nuke_template_check(). */
MUST_CHECK enum rc nuke_template_fill(const struct nuke_template *t, struct str account_id, struct arena *a,
                                      struct str *ret, struct err *e);

/* 12 digits. */
bool nuke_is_account(struct str text);
