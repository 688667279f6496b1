/* args.h - the words of a command line, checked against the command table. */
#pragma once

#include "base/err.h"
#include "cli/term/commands.h"

enum { CLI_WORDS_MAX = 128 };

struct cli_args {
	const struct cli_command *command;                   /* NULL: none was named, only help is wanted */
	const char               *values[CLI_OPTION__COUNT]; /* NULL: not given; a given flag is "" */
	const char               *operands[CLI_WORDS_MAX];
	size_t                    operand_count;
	bool                      wants_help;
};

/* Everything in *ret points into argv. RC_INVALID says what is wrong and what would be right. Needed options are not
 * checked: they may have a default. */
MUST_CHECK enum rc cli_parse(int argc, char **argv, struct cli_args *ret, struct err *e);

/* RC_INVALID that says why these words, at least one, name no command, and what would. */
enum rc cli_refuse_command(const char *const *words, size_t count, struct err *e);
