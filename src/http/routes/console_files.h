/* console_files.h - the files of the web console, as scripts/embed-console puts them into the program. */
#pragma once

#include "base/str.h"

struct console_file {
	const char *path;   /* below src/console */
	const char *type;   /* Content-Type */
	const char *tag;    /* of the content: another for every other content */
	struct str  plain;  /* as it is */
	struct str  packed; /* gzip */
};

extern const struct console_file console_files[];
extern const size_t              console_file_count;

/* Of all of them together; in the path of all but index.html. */
extern const char console_version[];
