/* php_files.h - the files of php/, which the build puts into the program. */
#pragma once

#include <stddef.h>

struct php_file {
	const char *name, *text;
};
extern const struct php_file php_files[];
extern const size_t          php_file_count;
