/* walk.h - all records of a query, page by page, a transaction for each page. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "store/session.h"
#include "store/store.h"

/* What is done with a page, inside its transaction; may be run again for the same page after a conflict. */
typedef enum rc walk_fn(struct session *s, const struct page *page, void *arg, struct err *e);

/* The query's limit is the size of a page. Read-only walks run beside the writers. Ends at the first failure. Blocks. */
MUST_CHECK enum rc store_walk(struct store *store, const struct query *q, bool is_read_only, walk_fn *visit, void *arg,
                              struct err *e);
