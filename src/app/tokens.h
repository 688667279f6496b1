/* tokens.h - the tokens of the server: from the settings, or invented in development mode. */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"
#include "http/api.h"

struct config;

/* In development mode: those of DIR/tokens, made there (mode 0600) when there are none. */
MUST_CHECK enum rc tokens_prepare_dev(struct config *c, struct err *e);

/* RC_INVALID when one of the two lists is empty, or too long. Texts stay the configuration's. */
MUST_CHECK enum rc tokens_read(const struct config *c, struct api_tokens *ret, struct err *e);
