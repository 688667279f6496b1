/* commands.h - the tables of commands.def as C. */
#pragma once

#include "base/str.h"

enum cli_option_id {
#define OPTION(id, name, value, words, help) CLI_OPTION_##id,
#include "cli/term/commands.def"
	CLI_OPTION__COUNT
};

enum cli_command_id {
#define COMMAND(id, place, name, operands, min, max, needed, optional, words, summary, details, examples) \
	CLI_COMMAND_##id,
#include "cli/term/commands.def"
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
	enum cli_place            place;
	const char               *name;     /* one or two words */
	const char               *operands; /* for help */
	size_t                    min, max; /* of operands */
	const enum cli_option_id *needed;   /* that must be there (or their default); up to CLI_OPTION__COUNT */
	const enum cli_option_id *optional;
	const char               *words; /* what may complete an operand */
	const char               *summary, *details;
	const char               *examples; /* one per line */
};

struct cli_note { /* an environment variable or an exit code, for help; arrays end with one without a name */
	const char *name, *help;
};

extern const struct cli_option  cli_options[CLI_OPTION__COUNT];
extern const struct cli_command cli_commands[CLI_COMMAND__COUNT];
extern const struct cli_note    cli_variables[];
extern const struct cli_note    cli_exit_codes[];

/* Is the option in the list? */
bool cli_option_is_in(enum cli_option_id id, const enum cli_option_id *list);

/* Does the command take it, be it as one of those that every API command takes? */
bool cli_command_takes(const struct cli_command *c, enum cli_option_id id);

/* The option as that command has it: its value, what it is for and what may complete it can differ between commands. */
struct cli_option cli_option_in(const struct cli_command *c, enum cli_option_id id);

/* How many words the name has, when the first ones are these; 0: they are not. */
size_t cli_count_said(struct str name, const char *const *words, size_t count);

/* The command whose name is the first words. NULL when there is none; *ret_used is how many it took. */
const struct cli_command *cli_command_find(const char *const *words, size_t count, size_t *ret_used);

/* The words of a command's name before its last, "instance" or "instance person"; or its only one. */
struct str cli_command_noun(const struct cli_command *c);

/* The last word; empty when there is only one. */
struct str cli_command_verb(const struct cli_command *c);
