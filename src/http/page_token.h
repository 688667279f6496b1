/* page_token.h - pages of the lists under /api: pageSize and pageIdentifier in, nextPageIdentifier out. */
#pragma once

#include <stddef.h>

#include "base/json.h"
#include "domain/policy.h"

struct request;

/* A query parameter whose value may be encoded twice, as clients of the original do; empty when it is not there, or a problem. */
struct str page_query(struct request *r, const char *name, struct problems *p);

/* What page is wanted: how many records (most when not said) and the store's cursor (empty: from the start). The list's name, with its
 * filter, is part of the token, so that one of another list is refused. */
void page_token_read(struct request *r, const char *list, size_t most, size_t *ret_limit, struct str *ret_cursor,
                     struct problems *p);

/* No problem with the query? Otherwise they have been answered. */
bool page_is_good(struct request *r, const struct problems *p);

/* "nextPageIdentifier": a token of URL-safe characters only, or an explicit null: some clients ask on until they see it. */
void page_token_put(struct request *r, struct json_out *o, const char *list, struct str next);
