/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - commands.def turned into tables, and looking things up in them. Knows nothing of what commands do. */
#include "cli/term/commands.h"

#include <string.h>

/* clang-format off */
#define O(id)        CLI_OPTION_##id, /* one of a list */
#define OPTIONS(...) (const enum cli_option_id[]){ __VA_ARGS__ CLI_OPTION__COUNT }
/* clang-format on */

const struct cli_option cli_options[CLI_OPTION__COUNT] = {
#define OPTION(id, name, value, words, help) { name, value, words, help },
#include "cli/term/commands.def"
};

const struct cli_command cli_commands[CLI_COMMAND__COUNT] = {
#define COMMAND(id, place, name, operands, min, max, needed, optional, words, summary, details, examples) \
	{ CLI_PLACE_##place, name,  operands, min,     max,     OPTIONS(needed),                          \
	  OPTIONS(optional), words, summary,  details, examples },
#include "cli/term/commands.def"
};

const struct cli_note cli_variables[] = {
#define VARIABLE(name, help) { name, help },
#include "cli/term/commands.def"
	{ NULL, NULL }
};

const struct cli_note cli_exit_codes[] = {
#define EXIT_CODE(id, number, help) { #number, help },
#include "cli/term/commands.def"
	{ NULL, NULL }
};

struct str cli_command_noun(const struct cli_command *c)
{
	const char *last = strrchr(c->name, ' ');

	return last ? str_of(c->name, (size_t)(last - c->name)) : str_from(c->name);
}

struct str cli_command_verb(const struct cli_command *c)
{
	const char *last = strrchr(c->name, ' ');

	return str_from(last ? last + 1 : "");
}

bool cli_option_is_in(enum cli_option_id id, const enum cli_option_id *list)
{
	while (*list != CLI_OPTION__COUNT && *list != id)
		list++;
	return *list == id;
}

bool cli_command_takes(const struct cli_command *c, enum cli_option_id id)
{
	struct str verb = cli_command_verb(c);
	bool       only_looks = str_eq(verb, STR("list")) || str_eq(verb, STR("show")); /* and can look again */

	if (cli_option_is_in(id, c->needed) || cli_option_is_in(id, c->optional) || id == CLI_OPTION_HELP)
		return true;
	return c->place == CLI_PLACE_API && (cli_option_is_in(id, OPTIONS(O(JSON) O(ADDRESS) O(TOKEN_FILE) O(CA))) ||
	                                     (only_looks && id == CLI_OPTION_WATCH));
}

struct cli_option cli_option_in(const struct cli_command *c, enum cli_option_id id)
{
	static const struct {
		const char        *command;
		enum cli_option_id id;
		const char        *words, *help;
	} meanings[] = {
#define MEANING(command, id, words, help) { command, CLI_OPTION_##id, words, help },
#include "cli/term/commands.def"
	};
	static const struct {
		const char        *command;
		enum cli_option_id id;
		const char        *value;
	} values[] = {
#define VALUE(command, id, value) { command, CLI_OPTION_##id, value },
#include "cli/term/commands.def"
	};
	struct cli_option o = cli_options[id];

	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		if (values[i].id == id && str_starts_with(str_from(c->name), str_from(values[i].command)))
			o.value = values[i].value;
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
		if (meanings[i].id == id && str_starts_with(str_from(c->name), str_from(meanings[i].command))) {
			o.help = meanings[i].help;
			o.words = meanings[i].words[0] ? meanings[i].words : o.words;
			break;
		}
	return o;
}

size_t cli_count_said(struct str name, const char *const *words, size_t count)
{
	size_t n = 0;

	for (; name.n; n++)
		if (n == count || !str_eq(str_cut(&name, ' '), str_from(words[n])))
			return 0;
	return n;
}

const struct cli_command *cli_command_find(const char *const *words, size_t count, size_t *ret_used)
{
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++)
		if ((*ret_used = cli_count_said(str_from(cli_commands[i].name), words, count)))
			return &cli_commands[i];
	return NULL;
}
