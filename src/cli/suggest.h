/* suggest.h - what somebody who mistyped a command or an option may have meant. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum { SUGGEST_DISTANCE_MAX = 2 };

/* The option nearest to the name, of those whose bit is set. Empty when none is near. */
struct str suggest_option(struct str name, uint64_t options);

/* The command, or the first word of some, nearest to the words: "claim" gives "sandbox claim". Empty when none is near. */
struct str suggest_command(const char *const *words, size_t count);
