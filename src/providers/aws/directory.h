/* directory.h - who the people are, by the groups of Identity Center: the identity port, from memory. One node reads
 * the identity store and stores what it read; all load that.
 *
 *     aws_directory_refresh()   every few minutes, by one node at a time
 *     aws_directory_load()      every few seconds, by each node
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/ports/caller.h"

enum { AWS_GROUP_USER, AWS_GROUP_MANAGER, AWS_GROUP_ADMIN, AWS_GROUPS };

enum {
	AWS_DIRECTORY_REFRESH_SEC = 300,
	AWS_DIRECTORY_STALE_MS = 86400000, /* if it was unreadable for this long, nobody signs in any more */
};

/* Copied; what it points to is borrowed. */
struct aws_directory_options {
	struct aws_centre  *centre;
	struct store       *store;
	const struct clock *clock;
	struct str          groups[AWS_GROUPS]; /* names; empty: nobody has that role by a group */
};
struct aws_directory *aws_directory_new(const struct aws_directory_options *o);
void                  aws_directory_free(struct aws_directory *d);
struct identity      *aws_directory_identity(struct aws_directory *d);

/* The source that goes first, such as the users file; NULL: none. Before anybody is looked for. */
void aws_directory_set_next(struct aws_directory *d, struct identity *next);

/* Read the groups, and describe their new members; once a day everybody. A missing group has no members; if all are
 * missing, it fails, and the last copy stays in force. Blocks. */
struct aws_directory_done {
	int64_t members, described, changed;
};
MUST_CHECK enum rc aws_directory_refresh(struct aws_directory *d, struct aws_directory_done *ret, struct err *e);

/* What another node has read since. Blocks, on the store alone. */
MUST_CHECK enum rc aws_directory_load(struct aws_directory *d, struct err *e);

/* Somebody signs in: who is it? Someone who is not in memory is looked up in the identity store; if not found there
 * either, not again for a minute. RC_NOT_FOUND: not there, disabled, or without a role; RC_UNAVAILABLE: the last copy
 * is a day old. Blocks. */
MUST_CHECK enum rc aws_directory_sign_in(struct aws_directory *d, struct str email, struct arena *a, struct caller *ret,
                                         struct err *e);

/* --- names and ids, for access.c --- */

/* The user with this email, even one who has left the groups. RC_NOT_FOUND: there is none. Blocks for one who is not in
 * memory. */
MUST_CHECK enum rc aws_directory_user_id(struct aws_directory *d, struct str email, struct arena *a, struct str *ret,
                                         struct err *e);

/* From memory; false: not known. */
bool aws_directory_email(struct aws_directory *d, struct str user_id, struct arena *a, struct str *ret);

/* Kept for an hour. RC_NOT_FOUND. */
MUST_CHECK enum rc aws_directory_group_id(struct aws_directory *d, struct str name, struct arena *a, struct str *ret,
                                          struct err *e);
bool aws_directory_group_name(struct aws_directory *d, struct str group_id, struct arena *a, struct str *ret);
void aws_directory_forget_groups(struct aws_directory *d);

/* As it was read last. Blocks, on the store alone. */
struct aws_directory_state {
	int64_t    read_ms; /* 0: never */
	int64_t    members, disabled, without_email;
	struct str missing; /* groups that are not there, separated by commas */
};
MUST_CHECK enum rc aws_directory_look(struct aws_directory *d, struct arena *a, struct aws_directory_state *ret,
                                      struct err *e);

/* When it was read last; 0: never. From memory. */
int64_t aws_directory_read_ms(struct aws_directory *d);
