/* sqlite_file.h - the files of the embedded store: are they there, are they ours alone, are they still the same? */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"

enum { SQLITE_FILES = 3 }; /* the database, its log (-wal), the log's index (-shm) */

struct sqlite_file {
	char *path;
	int   fd; /* holds the lock; closed after SQLite has closed the file */
	struct {
		char *path;
		dev_t device;
		ino_t inode;
	} ids[SQLITE_FILES];
};

/* What is at this path? RC_OK: a file with something in it. RC_NOT_FOUND: nothing at all. RC_CORRUPT: an empty file,
 * or what a store leaves behind without the store itself. */
enum rc sqlite_file_look(const char *path, struct err *e);

/* Lock an existing file against every other process that takes it. RC_UNAVAILABLE when one has it. */
MUST_CHECK enum rc sqlite_file_take(const char *path, struct sqlite_file *ret, struct err *e);

/* Does a process have it? For one that has not opened the file itself: see sqlite_file_free(). */
bool sqlite_file_is_taken(const char *path);

/* Remember which files these are, when SQLite has opened all of them. */
MUST_CHECK enum rc sqlite_file_note(struct sqlite_file *f, struct err *e);

/* Are they still at their paths? RC_UNAVAILABLE: what is written now would be lost. */
enum rc sqlite_file_check(const struct sqlite_file *f, struct err *e);

/* Fine for one that was never taken. Only after SQLite has closed the file: closing it drops SQLite's own locks. */
void sqlite_file_free(struct sqlite_file *f);

/* Move a finished file to its place, and have that survive a crash. */
MUST_CHECK enum rc sqlite_file_place(const char *from, const char *to, struct err *e);

/* Rename all files at this path that are there, to NAME.before-TIME. */
MUST_CHECK enum rc sqlite_file_set_aside(const char *path, struct err *e);

/* --- its write-ahead log, which nobody has open, before SQLite looks at it (sqlite_log.c) --- */

struct sqlite_log {
	int64_t frames;     /* pages that can be read, up to the last whole commit */
	int64_t broken_at;  /* the first frame that cannot be read; 0: none */
	int64_t lost;       /* frames of commits behind it, as far as known */
	int64_t commits;    /* commits seen among them */
	int64_t changed_at; /* Unix seconds */
};

/* Of the database at this path. Without a log all is 0. RC_CORRUPT: commits were lost, and which; sets *ret too. */
MUST_CHECK enum rc sqlite_log_check(const char *path, struct sqlite_log *ret, struct err *e);
