/* signin.h - sign-in of this program: its tokens, secrets, users, provider and keys, from the settings. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct api_tokens;
struct config;

struct signin {
	struct store      *store;
	struct users_file *users;
	struct people     *people;
	struct aws_directory
	        *directory; /* Identity Center; NULL: people are in the users file, or a provider knows them */
	struct signin_provider *provider, *by_directory;
	struct keyring         *keyring;
	struct auth            *auth;
};

/* What can be said against the settings; every problem is a line. */
void signin_check(const struct config *c, struct buf *problems);

/* Those of tracks, operators and senders of events. RC_INVALID: one of the first two lists is empty, one is too long,
 * or two share a token. Texts stay the configuration's. */
MUST_CHECK enum rc tokens_read(const struct config *c, struct api_tokens *ret, struct err *e);

/* RC_INVALID, RC_UNAVAILABLE: the users file. The directory, where there is one, says who may do what; it is
 * borrowed. */
MUST_CHECK enum rc signin_open(struct config *c, struct store *store, struct aws_directory *directory,
                               struct signin **ret, struct err *e);
void               signin_close(struct signin *s);

/* The secrets of settings that passed signin_check(). Loop thread. */
void signin_set_secrets(struct signin *s, const struct config *fresh);

/* Every now and then: a users file that has changed; keys and people that other nodes know. Blocks. */
void signin_refresh_users(struct signin *s);
void signin_refresh(struct signin *s);
