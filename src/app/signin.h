/* signin.h - sign-in of this program: its secrets, users, provider and keys, from the settings. */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"

struct auth;
struct config;
struct identity;
struct signin;
struct store;

/* What can be said against the settings; every problem is a line. */
void signin_check(const struct config *c, struct buf *problems);

/* Development: a secret and three users are made, once, in the data folder; unless the settings name others. */
MUST_CHECK enum rc signin_prepare_dev(struct config *c, struct err *e);

/* Lines with the users of development and their passwords; nothing when the users are of other origin. */
void signin_print_dev(const struct config *c);

/* RC_INVALID, RC_UNAVAILABLE: the users file. */
MUST_CHECK enum rc signin_open(struct config *c, struct store *store, struct signin **ret, struct err *e);
void               signin_close(struct signin *s);

struct auth     *signin_auth(struct signin *s);
struct identity *signin_identity(struct signin *s);

/* Read the users again; on failure those of before stay. */
MUST_CHECK enum rc signin_reload_users(struct signin *s, struct err *e);

/* The secrets of settings that passed signin_check(). Loop thread. */
void signin_set_secrets(struct signin *s, const struct config *fresh);

/* Every now and then: a users file that has changed; keys that other nodes have made. Blocks. */
void signin_refresh_users(struct signin *s);
void signin_refresh_keys(struct signin *s);
