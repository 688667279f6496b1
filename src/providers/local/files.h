/* files.h - files and folders of the local driver. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/* Whole or not at all; durable when asked for. uid and gid -1: as we are. */
struct file_owner {
	uid_t  uid;
	gid_t  gid;
	mode_t mode;
};
#define FILE_OF_US(mode) ((struct file_owner){ (uid_t)-1, (gid_t)-1, (mode) })
#define FILE_OURS        FILE_OF_US(0600)

MUST_CHECK enum rc file_write(const char *path, struct str text, struct file_owner owner, bool is_durable,
                              struct err *e);

/* The name of this file or folder is there also after the machine was cut off. */
MUST_CHECK bool name_sync(const char *path);

/* RC_NOT_FOUND, RC_TOO_LARGE. */
MUST_CHECK enum rc file_read(const char *path, size_t max, struct arena *a, struct str *ret, struct err *e);
MUST_CHECK enum rc file_remove(const char *path, struct err *e);

/* Makes it when it is not there; sets owner and mode in any case. */
MUST_CHECK enum rc folder_make(const char *path, struct file_owner owner, struct err *e);

/* With all that is in it; links are not followed. */
MUST_CHECK enum rc tree_remove(const char *path, struct err *e);
