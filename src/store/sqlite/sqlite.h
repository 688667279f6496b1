/* sqlite.h - the embedded back end: one file, one writer that commits many transactions at once, readers beside it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/record.h"

struct store;

/* 2: the kernel's records; a program that does not know them would tell nobody. 3: packed records. 4: many
 * to a row. */
enum { SQLITE_SCHEMA_VERSION = 4 };

struct sqlite_options {
	const char                      *path; /* made when it does not exist, unless it is to be owned */
	const struct record_type *const *types;
	size_t                           type_count;
	const struct clock              *clock;
	int                              cache_mb; /* page cache of the writer; 0: the default */

	/* For this process alone: an existing store, locked and watched. Nothing is acknowledged when its files were
	 * replaced or removed, and a log that lost commits is refused, unless the caller asks with ret_has_lost to be
	 * told of it. */
	bool  is_owned;
	bool *ret_has_lost;
};

/* Open, make or migrate the file. RC_UNAVAILABLE: cannot be opened, or another process owns it; RC_NOT_FOUND: there is
 * none to own; RC_CORRUPT: not ours, damaged, or written by a newer version (the message says which). */
MUST_CHECK enum rc store_sqlite_open(const struct sqlite_options *options, struct store **ret, struct err *e);

/* Copy a database that may be in use into a new file. Fails when the target exists. */
MUST_CHECK enum rc sqlite_backup(const char *from, const char *to, struct err *e);

/* Every page, every index entry, the schema version. RC_CORRUPT with the first problem found. */
MUST_CHECK enum rc sqlite_check(const char *path, struct err *e);

/* Make an empty store where there is nothing. RC_CONFLICT: there is one; RC_CORRUPT: there is something of one. */
MUST_CHECK enum rc sqlite_make(const struct sqlite_options *options, struct err *e);

/* Put the copy of a backup in the place of the store; what is there is set aside. prepare() is called with the copy
 * before. No process may use the store: the caller sees to that. */
MUST_CHECK enum rc sqlite_replace(const struct sqlite_options *options, const char               *backup,
                                  enum rc (*prepare)(struct store *s, struct err *e), struct err *e);

/* Write the file anew without its unused pages. RC_UNAVAILABLE when a process owns it. */
MUST_CHECK enum rc sqlite_compact(const char *path, struct err *e);

/* What a file is called that is not finished: its name and this. */
#define SQLITE_UNFINISHED ".new"
