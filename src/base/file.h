/* file.h - whole files through a descriptor, and whether a file is safe for secrets. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct stat;

/* Everything up to the end, in the arena. RC_TOO_LARGE: more than max bytes; RC_UNAVAILABLE: errno says why. */
MUST_CHECK enum rc file_read_all(int fd, size_t max, struct arena *a, struct str *ret);

/* All of it. False: errno says why. */
bool file_write_all(int fd, struct str text);

/* For CLEANUP(): closes it, unless it could not be opened (-1). */
void fd_closep(int *fd);

/* Only its owner, who must be root or the user that runs this, may change it, and nobody but the owner and the group
 * may read it. RC_INVALID says what is wrong and how to fix it. Anything that is not a plain file (a pipe, such as a
 * shell's <(...)) passes. */
MUST_CHECK enum rc secret_file_check(const char *path, const struct stat *st, struct err *e);
