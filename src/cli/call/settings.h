/* settings.h - what the client knows besides its arguments: the environment, then the client file. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct settings {
	const struct cli_io *io;
	const char          *path;     /* of the client file, there or not; NULL when the home is not known */
	const char          *dev_path; /* of the file of a development server, when that is used instead; else NULL */
	const char          *unused_dev_path; /* the same, when it is there but a server or a token was named */
	struct str           file;            /* its text; empty when it is not there */
};

/* RC_INVALID when the client file is there but cannot be used: readable by others, too large, not KEY=VALUE. */
MUST_CHECK enum rc settings_load(struct settings *s, const struct cli_io *io, struct arena *a, struct err *e);

/* When neither an option (is_named) nor the environment nor the client file names a server or a token: take the file
 * that a development server has written into its data folder (LEASEHOLD_DATA, else "data"), if it is there and yours.
 */
MUST_CHECK enum rc settings_load_dev(struct settings *s, bool is_named, struct arena *a, struct err *e);

/* The value of a name, trimmed; empty when it is not set. */
struct str settings_from_env(const struct settings *s, const char *name);
struct str settings_from_file(const struct settings *s, const char *name);

/* The environment's, else the file's. */
struct str settings_get(const struct settings *s, const char *name);

/* All of a file, 64 KiB at most. With io, "-" is standard input. */
MUST_CHECK enum rc settings_read_file(const struct cli_io *io, const char *path, struct arena *a, struct str *ret,
                                      struct err *e);

/* The first line of a file, trimmed. For --token-file. */
MUST_CHECK enum rc settings_read_line(const char *path, struct arena *a, struct str *ret, struct err *e);
