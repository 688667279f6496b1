/* sign.h - a signature by which a receiver knows that a body is ours, and how old it is. */
#pragma once

#include <stdint.h>

#include "base/str.h"

struct arena;

/* "t=SECONDS,v1=HEX": HEX is HMAC-SHA256 with the secret over "SECONDS.BODY". */
struct str sign_body(struct str secret, int64_t now_sec, struct str body, struct arena *a);
