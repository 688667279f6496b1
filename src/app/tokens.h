/* tokens.h - the tokens of the server: from the settings, or invented in development mode. */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"
#include "http/api.h"

struct config;

/* In development mode: those of DIR/tokens, made there (mode 0600) when there are none. */
MUST_CHECK enum rc tokens_prepare_dev(struct config *c, struct err *e);

/* RC_INVALID when the tracks' or the operators' list is empty, when one is too long, or two have a token in common. Texts stay the configuration's. */
MUST_CHECK enum rc tokens_read(const struct config *c, struct api_tokens *ret, struct err *e);
