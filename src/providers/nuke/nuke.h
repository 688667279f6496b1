/* nuke.h - accounts are emptied by the program aws-nuke: the cleaner port for real AWS accounts. See docs/leases.md.
 *
 * Runs are processes on this machine, with a folder each: a run can be checked only where it was started. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "net/aws.h"
#include "providers/nuke/template.h"

struct nuke;

enum { NUKE_KEEP_DAYS = 30 }; /* folders of runs */

/* Everything is borrowed for as long as the nuke lives. */
struct nuke_options {
	const char *folder;            /* of the folders of runs; made when it is not there */
	const char *self;              /* a program that knows NUKE_RUN_COMMAND */
	const char *program;           /* aws-nuke; without a slash it is looked for on PATH */
	struct nuke_template template; /* checked */
	struct str              role;  /* in every account: its name, with a path where it has one */
	struct aws_role_options sts;
	int64_t limit_ms;     /* of a run: well below AWS_SESSION_MAX_SEC, since nobody renews its credentials */
	int64_t wait_retries; /* rounds (of 5 s) in which nothing moves before aws-nuke gives up */
	const char *(*env)(const char *name);

	/* The role's credentials in an account, for as long as a run may last; NULL: our own credentials assume it by
	 * sts. */
	enum rc (*assume)(void *arg, struct str account_id, struct arena *a, struct aws_credentials *ret,
	                  struct err *e);
	void *assume_arg;
};

/* Checks everything a run needs except the accounts. RC_INVALID: aws-nuke is missing or does not run, or its
 * configuration names kinds of resources that it does not know. RC_UNAVAILABLE: the folder. */
MUST_CHECK enum rc nuke_open(const struct nuke_options *o, struct nuke **ret, struct err *e);

/* Runs that are under way go on. */
void            nuke_close(struct nuke *n);
struct cleaner *nuke_cleaner(struct nuke *n);

/* Letters, digits and +=.@_- in parts that / separates. */
bool       nuke_is_role(struct str role);
struct str nuke_role_name(struct str role); /* its last part */
