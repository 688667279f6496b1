/* dynamodb.h - the back end for many nodes: records are items, a transaction is one conditional write. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "store/record.h"

struct aws_client;
struct store;

enum { DDB_GSI_MAX = 3, DDB_SLICES_MAX = 64 };

struct ddb_options {
	struct aws_client               *client;       /* borrowed */
	const char                      *pool_table;   /* of the source documents; types with a key_prefix */
	const char                      *kernel_table; /* ours: all other types, and the markers of unique values */
	const char                      *tenant_table; /* of the documents, for others to read; NULL: none is kept */
	const char                      *gsi[DDB_GSI_MAX];
	const struct record_type *const *types;
	size_t                           type_count;
	const struct clock              *clock;
	unsigned                         workers;    /* transactions under way at once */
	size_t                           candidates; /* read at a time for claims */
	unsigned                         slices;     /* of a sliced type, at least; a power of two */
	int                              backoff_base_ms, backoff_max_ms; /* between two tries after a conflict */
	int                              deadline_ms;                     /* for one transaction, waiting included */
};

/* Nothing is asked of the service yet. End it with store_close(). */
struct store *store_dynamodb_open(const struct ddb_options *o);

/* Make the tables that are missing, with their indexes, and wait until they can be used. */
MUST_CHECK enum rc ddb_create_tables(const struct ddb_options *o, struct err *e);

/* Compare the tables with what is needed. RC_CORRUPT: every difference is named in `ret`, one a line. */
struct buf;
MUST_CHECK enum rc ddb_check_tables(const struct ddb_options *o, struct buf *ret, struct err *e);

/* Make sure that every record in a unique index has its marker: other programs write records without one. */
MUST_CHECK enum rc ddb_adopt(struct store *s, struct err *e);
