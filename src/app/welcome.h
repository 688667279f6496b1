/* welcome.h - what a development server says when it is ready, and the file by which commands find it. */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"

struct config;

/* DIR/client with the address, the tokens and the secret of sessions, for this user only. */
MUST_CHECK enum rc welcome_write_client(struct config *c, const char *address, struct err *e);

/* Address, sign-in, three things to try. */
void welcome_print(struct config *c, const char *address, bool lends_accounts);
