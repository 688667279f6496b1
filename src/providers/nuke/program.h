/* program.h - the program aws-nuke: where it is, and what it knows. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

struct arena;

/* Its path. RC_INVALID: it is not on PATH, or cannot be executed. */
MUST_CHECK enum rc nuke_program_find(const char *name, const char *path, struct arena *a, struct str *ret,
                                     struct err *e);

/* The kinds of resources that it knows, one a line: proves that it runs. RC_INVALID: it does not. Blocks for a moment. */
MUST_CHECK enum rc nuke_program_kinds(const char *program, struct arena *a, struct str *ret, struct err *e);
