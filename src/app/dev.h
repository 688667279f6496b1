/* dev.h - what a development server makes for itself, and what it says when it is ready. */
#pragma once

#include "base/err.h"

struct config;

/* Creates tokens, a session secret and three users in the data folder, once, unless the settings name others. */
MUST_CHECK enum rc dev_prepare(struct config *c, struct err *e);

/* Writes DIR/client, by which commands find this server: the address, and those tokens and secrets that development
 * mode made. Prints the address, how to sign in, and three things to try. */
void dev_welcome(struct config *c, const char *address, bool lends_accounts);
