/* commands.h - the tables of commands.def as C. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum cli_option_id {
#define OPTION(id, name, value, words, help) CLI_OPTION_##id,
#include "cli/commands.def"
	CLI_OPTION__COUNT
};

enum cli_command_id {
#define COMMAND(id, place, name, operands, min, max, needed, optional, words, summary, details, examples) \
	CLI_COMMAND_##id,
#include "cli/commands.def"
	CLI_COMMAND__COUNT
};

enum cli_place { CLI_PLACE_API, CLI_PLACE_LOCAL, CLI_PLACE_APP };

struct cli_option {
	const char *name;
	const char *value; /* what stands for it in help; "" for a flag */
	const char *words; /* what may complete it */
	const char *help;
};

struct cli_command {
	enum cli_place place;
	const char    *name;     /* one or two words */
	const char    *operands; /* for help */
	size_t         min, max; /* of operands */
	uint64_t       needed;   /* options that must be there (or their default), by bit */
	uint64_t       optional;
	const char    *words; /* what may complete an operand */
	const char    *summary;
	const char    *details;
	const char    *examples; /* one per line */
};

struct cli_note { /* an environment variable or an exit code, for help */
	const char *name;
	const char *help;
};

extern const struct cli_option  cli_options[CLI_OPTION__COUNT];
extern const struct cli_command cli_commands[CLI_COMMAND__COUNT];
extern const struct cli_note    cli_variables[];
extern const size_t             cli_variable_count;
extern const struct cli_note    cli_exit_codes[];
extern const size_t             cli_exit_code_count;

/* All options a command takes, by bit, those of every API command included. */
uint64_t cli_command_options(const struct cli_command *c);

/* The command whose name is the first one or two words. NULL when there is none; *ret_used is how many it took. */
const struct cli_command *cli_command_find(const char *const *words, size_t count, size_t *ret_used);

/* The first word of a command's name. */
struct str cli_command_noun(const struct cli_command *c);

/* The second word; empty when there is none. */
struct str cli_command_verb(const struct cli_command *c);
