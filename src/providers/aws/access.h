/* access.h - the access port by IAM Identity Center: who may do what in which account. Principals are emails and names
 * of groups, permission sets are names; their ids stay here. */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum {
	AWS_PERMISSION_SETS = 3,
	AWS_ACCESS_MS = 240000, /* a change may take two minutes, and wait for another as long */
};

/* The policies of CleanUp and Quarantine end sessions that are open; that of Frozen does not. */
#define AWS_FREEZE_NOTE                                                                                               \
	"sessions that are open in the account live on until they end by themselves, up to 12 hours: a freeze keeps " \
	"new ones away only"

/* Copied; what it points to is borrowed. */
struct aws_access_options {
	struct aws_centre    *centre;
	struct aws_directory *directory;
	const struct clock   *clock;
	struct str            sets[AWS_PERMISSION_SETS]; /* names of ours: others are neither shown nor touched */
	void (*wait)(void *arg, long ms);                /* NULL: sleeps, until it is stopped; for tests */
	void *wait_arg;
};
struct aws_access *aws_access_new(const struct aws_access_options *o);
void               aws_access_free(struct aws_access *x);
struct access     *aws_access_port(struct aws_access *x);

/* Ends every wait for an assignment with RC_TIMEOUT. Call it before the calling threads are joined. */
void aws_access_stop(struct aws_access *x);
