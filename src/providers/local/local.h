/* local.h - tenants' WordPress sites on this machine: the instance driver on Debian's packages. See
 * docs/instances-local.md.
 *
 * One private mariadbd, one private nginx, php-fpm masters as tasks; all of them are children that outlive a crash of
 * this process and are taken over by the next that opens the folder. Everything is below one folder. As root every
 * tenant has a user id of its own; otherwise there is one user for all, and no wall between tenants. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct local;

enum { LOCAL_FOLDER_MAX = 80 }; /* bytes of its path: names of sockets are short */

struct local_options {
	const char *folder; /* absolute; made when it is not there */
	const char *router; /* HOST:PORT that nginx listens on */
	const char *origin; /* where browsers find it, such as https://sites.example; NULL: http://ROUTER */
};

/* Takes over what runs there, starts what should. RC_INVALID: a program is missing (scripts/setup instances), or the
 * folder cannot be used. RC_CONFLICT: another process has the folder. */
MUST_CHECK enum rc local_open(const struct local_options *o, struct local **ret, struct err *e);

/* Ends everything that runs; what is stored stays, and runs again at the next local_open(). */
void local_close(struct local *l);

struct instance_driver *local_driver(struct local *l);
void                    local_close_driver(struct instance_driver *d); /* the same as local_close() */
