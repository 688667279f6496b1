/* sqlite.h - the embedded back end: one file, one writer that commits many transactions at once, readers beside it. */
#pragma once

#include <stddef.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/record.h"

struct store;

enum { SQLITE_SCHEMA_VERSION = 2 }; /* 2: the kernel's records; a program that does not know them would tell nobody */

struct sqlite_options {
	const char                      *path; /* made when it does not exist */
	const struct record_type *const *types;
	size_t                           type_count;
	const struct clock              *clock;
	int                              cache_mb; /* page cache of the writer; 0: the default */
};

/* Open, make or migrate the file. RC_UNAVAILABLE: cannot be opened; RC_CORRUPT: not one of our files, damaged, or
 * written by a newer version (the message says which). */
MUST_CHECK enum rc store_sqlite_open(const struct sqlite_options *options, struct store **ret, struct err *e);

/* Copy a database that may be in use into a new file. Fails when the target exists. */
MUST_CHECK enum rc sqlite_backup(const char *from, const char *to, struct err *e);

/* Every page, every index entry, the schema version. RC_CORRUPT with the first problem found. */
MUST_CHECK enum rc sqlite_check(const char *path, struct err *e);
