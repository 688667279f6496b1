/* welcome.h - what a development server says when it is ready, and the file by which commands find it. */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"

struct config;

/* DIR/client, for this user only: the address, and those tokens and secrets that development mode made. */
MUST_CHECK enum rc welcome_write_client(struct config *c, const char *address, struct err *e);

/* Address, sign-in, three things to try. */
void welcome_print(struct config *c, const char *address, bool lends_accounts);
