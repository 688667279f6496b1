/* secret.h - a secret of our own, kept by Secrets Manager. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct aws_caller;

/* A setting that begins with this has its value there: "secretsmanager:NAME", or "secretsmanager:NAME#key" for one
 * member of a JSON object. */
#define AWS_SECRET_PREFIX "secretsmanager:"

/* The value of NAME or NAME#key, in the arena. RC_NOT_FOUND, RC_DENIED, RC_INVALID: it has no such key. No
 * error shows any part of the value. Blocks. */
MUST_CHECK enum rc aws_secret_read(struct aws_caller *c, struct str reference, struct arena *a, struct str *ret,
                                   struct err *e);
