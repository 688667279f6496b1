/* lease.h - what the lease commands share: which lease is meant, how it is shown, waiting for it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/str.h"
#include "cli/commands.h"

struct fetch_reply;
struct remote;

/* Whose token it is. */
struct lease_asker {
	struct str email;
	bool       is_only_user; /* sees only his own leases */
	bool       is_admin;
};

/* Ask the server. When it cannot tell, the email is empty: the next call says why. Returns the exit code. */
int lease_asker(struct remote *remote, struct lease_asker *ret);

/* The API's id of the lease that the first operand means. Returns the exit code, and has said why when it is not 0. */
int lease_find(struct remote *remote, struct str *ret_id);

/* A lease in an answer's data: with --json as it came, else for people. */
void lease_print(struct remote *remote, const struct fetch_reply *reply, const json_t *document);

/* Look at the lease until it has this status, or has ended with another, for as long as that option says; then print it. Returns the exit
 * code. */
int lease_wait(struct remote *remote, struct str id, struct str status, enum cli_option_id limit);

/* Look at the account of a lease that has ended until it is clean, for as long as --wait says. For admins. Returns the exit code. */
int lease_wait_for_return(struct remote *remote, struct str account_id, struct str uuid);

/* An account in an answer's data, likewise. */
void account_print(struct remote *remote, const struct fetch_reply *reply, const json_t *document);
