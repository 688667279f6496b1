/* walk.h - all records of a query, page by page, a transaction for each page; or one record. */
#pragma once

#include "base/err.h"
#include "store/session.h"
#include "store/store.h"

/* What is done with a page, inside its transaction; may be run again for the same page after a conflict. */
typedef enum rc walk_fn(struct session *s, const struct page *page, void *arg, struct err *e);

/* The query's limit is the size of a page. Read-only walks run beside the writers. Ends at a failure. Blocks. */
MUST_CHECK enum rc store_walk(struct store *store, const struct query *q, bool is_read_only, walk_fn *visit, void *arg,
                              struct err *e);

/* What is done with a page after the transaction that read it; may run transactions in this arena. The page lives
 * on. */
typedef enum rc    page_fn(const struct page *page, struct arena *a, void *arg, struct err *e);
MUST_CHECK enum rc store_read_pages(struct store *store, const struct query *q, page_fn *visit, void *arg,
                                    struct err *e);

/* session_find() in a read-only transaction of its own. Blocks. */
MUST_CHECK enum rc store_find(struct store *store, const struct record_type *type, struct str key, struct arena *a,
                              void *ret, bool *ret_is_there, struct err *e);
