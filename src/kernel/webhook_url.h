/* webhook_url.h - which URLs a webhook may have. */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

enum { WEBHOOK_URL_MAX = 2048 };

/* RC_INVALID when it is not http:// or https:// with a host, has a user or a password, or names an address that a webhook may not call.
 * What a host name resolves to is seen only when it is called. */
MUST_CHECK enum rc webhook_url_check(struct str url, bool allows_private, struct err *e);

/* As others may see it: without the query, where people put tokens. */
struct str webhook_url_shown(struct str url);
