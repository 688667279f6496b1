/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - commands.def turned into tables, and looking things up in them. Knows nothing of what commands do. */
#include "cli/commands.h"

#include <stdbool.h>

#define O(id) (UINT64_C(1) << CLI_OPTION_##id)

_Static_assert(CLI_OPTION__COUNT <= 64, "options are kept as bits of 64");

const struct cli_option cli_options[CLI_OPTION__COUNT] = {
#define OPTION(id, name, value, words, help) { name, value, words, help },
#include "cli/commands.def"
};

const struct cli_command cli_commands[CLI_COMMAND__COUNT] = {
#define COMMAND(id, place, name, operands, min, max, needed, optional, words, summary, details, examples) \
	{ CLI_PLACE_##place, name, operands, min, max, needed, optional, words, summary, details, examples },
#include "cli/commands.def"
};

const struct cli_note cli_variables[] = {
#define VARIABLE(name, help) { name, help },
#include "cli/commands.def"
};
const size_t cli_variable_count = ARRAY_LEN(cli_variables);

const struct cli_note cli_exit_codes[] = {
#define EXIT_CODE(id, number, help) { #number, help },
#include "cli/commands.def"
};
const size_t cli_exit_code_count = ARRAY_LEN(cli_exit_codes);

struct str cli_command_noun(const struct cli_command *c)
{
	struct str rest = str_from(c->name);

	return str_cut(&rest, ' ');
}

struct str cli_command_verb(const struct cli_command *c)
{
	struct str rest = str_from(c->name);

	(void)str_cut(&rest, ' '); /* the noun */
	return rest;
}

/* Those that only look: they can look again. */
static bool is_look(const struct cli_command *c)
{
	struct str verb = cli_command_verb(c);

	return c->place == CLI_PLACE_API && (str_eq(verb, STR("list")) || str_eq(verb, STR("show")));
}

uint64_t cli_command_options(const struct cli_command *c)
{
	uint64_t everywhere = O(HELP);

	if (c->place == CLI_PLACE_API)
		everywhere |= O(JSON) | O(ADDRESS) | O(TOKEN_FILE) | O(CA);
	if (is_look(c))
		everywhere |= O(WATCH);
	return c->needed | c->optional | everywhere;
}

const struct cli_command *cli_command_find(const char *const *words, size_t count, size_t *ret_used)
{
	for (size_t i = 0; count > 0 && i < CLI_COMMAND__COUNT; i++) {
		const struct cli_command *c = &cli_commands[i];
		struct str                verb = cli_command_verb(c);

		if (!str_eq(cli_command_noun(c), str_from(words[0])))
			continue;
		if (verb.n && (count < 2 || !str_eq(verb, str_from(words[1]))))
			continue;
		*ret_used = verb.n ? 2 : 1;
		return c;
	}
	return NULL;
}
