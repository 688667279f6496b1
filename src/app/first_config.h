/* first_config.h - the first configuration file: asks what only a person knows, and makes the rest. */
#pragma once

#include "base/err.h"

/* Asks on the terminal (or reads a line for each question from standard input; at its end the defaults), makes tokens,
 * a secret and the first admin, and writes the file, which must not exist, and DATA/users. data NULL: LEASEHOLD_DATA,
 * else /var/lib/leasehold for root, else "data". For root both folder and files are made for the user "leasehold", if
 * there is one, and the process goes on as that user. RC_INVALID: an answer is wrong; nothing was written. */
MUST_CHECK enum rc first_config_make(const char *file, const char *data, struct err *e);

/* What to do now; for people. */
void first_config_explain(const char *file);
