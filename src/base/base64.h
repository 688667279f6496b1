/* base64.h - URL-safe base64 without padding, for tokens that travel in a query string. */
#pragma once

#include "base/str.h"

struct str base64url_encode(struct arena *a, struct str bytes);

/* False when text is not exactly what base64url_encode() makes. */
bool base64url_decode(struct arena *a, struct str text, struct str *ret);
