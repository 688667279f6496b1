/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.c - reads the command line.
 *
 * Options may stand anywhere, as "--name value" or "--name=value"; "--" ends them. An option's name alone says whether
 * it takes a value, so the words that are left are the command and its operands, wherever they stand. An option given
 * twice, one that the command does not know and a missing or surplus operand are errors: a guess could give back the
 * wrong sandbox.
 */
#include "cli/args.h"

#include <string.h>

#include "base/buf.h"

enum { LIST_MAX = 160 };

struct words {
	const char *p[CLI_WORDS_MAX];
	size_t      count;
};

static enum rc add_word(struct words *w, const char *word, struct err *e)
{
	if (w->count == CLI_WORDS_MAX)
		return err_set(e, RC_INVALID, "'%s' is one word too many", word);
	w->p[w->count++] = word;
	return RC_OK;
}

static int find_option(struct str name)
{
	for (int id = 0; id < CLI_OPTION__COUNT; id++)
		if (str_eq(name, str_from(cli_options[id].name)))
			return id;
	return -1;
}

/* One option at argv[*at]; moves *at behind its value. */
static enum rc take_option(struct cli_args *args, int argc, char **argv, int *at, struct err *e)
{
	struct str  rest = str_from(argv[*at]);
	struct str  name = str_cut(&rest, '=');
	int         id = find_option(name);
	const char *value = rest.p; /* ends where the argument ends */

	if (id < 0)
		return err_set(e, RC_INVALID, "there is no option %.*s; see: leasehold help", STR_ARG(name));
	if (args->values[id])
		return err_set(e, RC_INVALID, "%s is given twice", cli_options[id].name);
	if (cli_options[id].value[0] == '\0') {
		if (value)
			return err_set(e, RC_INVALID, "%s takes no value", cli_options[id].name);
		value = "";
	} else if (!value) {
		if (*at + 1 >= argc)
			return err_set(e, RC_INVALID, "%s needs a value: %s %s", cli_options[id].name,
			               cli_options[id].name, cli_options[id].value);
		value = argv[++*at];
	}
	args->values[id] = value;
	return RC_OK;
}

static enum rc sort_arguments(int argc, char **argv, struct cli_args *args, struct words *words, struct err *e)
{
	bool    is_after_options = false;
	enum rc rc = RC_OK;

	for (int at = 1; at < argc && !rc; at++) {
		const char *word = argv[at];

		if (is_after_options || word[0] != '-' || word[1] == '\0')
			rc = add_word(words, word, e);
		else if (strcmp(word, "--") == 0)
			is_after_options = true;
		else if (strcmp(word, "-h") == 0)
			args->values[CLI_OPTION_HELP] = "";
		else
			rc = take_option(args, argc, argv, &at, e);
	}
	return rc;
}

/* "there is no command ...", with the verbs of the noun when that is known. */
static enum rc refuse_command(const struct words *words, struct err *e)
{
	struct buf verbs;
	enum rc    rc;

	buf_init(&verbs, LIST_MAX);
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++) {
		struct str verb = cli_command_verb(&cli_commands[i]);

		if (verb.n && str_eq(cli_command_noun(&cli_commands[i]), str_from(words->p[0])))
			buf_addf(&verbs, "%s%.*s", verbs.n ? ", " : "", STR_ARG(verb));
	}
	if (verbs.n)
		rc = err_set(e, RC_INVALID, "%s needs one of: %s", words->p[0], verbs.p);
	else
		rc = err_set(e, RC_INVALID, "there is no command '%s'; see: leasehold help", words->p[0]);
	buf_fini(&verbs);
	return rc;
}

static enum rc check_options(const struct cli_args *args, struct err *e)
{
	uint32_t known = cli_command_options(args->command);

	for (int id = 0; id < CLI_OPTION__COUNT; id++)
		if (args->values[id] && !(known & UINT32_C(1) << id))
			return err_set(e, RC_INVALID, "%s does not take %s; see: leasehold help %s",
			               args->command->name, cli_options[id].name, args->command->name);
	return RC_OK;
}

static enum rc check_operands(const struct cli_args *args, struct err *e)
{
	const struct cli_command *c = args->command;

	if (args->operand_count < c->min)
		return err_set(e, RC_INVALID, "%s needs %s: leasehold %s %s", c->name, c->operands, c->name,
		               c->operands);
	if (args->operand_count > c->max)
		return err_set(e, RC_INVALID, "%s: '%s' is too much; see: leasehold help %s", c->name,
		               args->operands[c->max], c->name);
	for (size_t i = 0; i < args->operand_count; i++)
		if (args->operands[i][0] == '\0')
			return err_set(e, RC_INVALID, "%s: %s must not be empty", c->name, c->operands);
	return RC_OK;
}

enum rc cli_parse(int argc, char **argv, struct cli_args *ret, struct err *e)
{
	struct cli_args args = { .command = NULL };
	struct words    words = { .count = 0 };
	size_t          used = 0;
	enum rc         rc;

	if ((rc = sort_arguments(argc, argv, &args, &words, e)))
		return rc;
	args.wants_help = args.values[CLI_OPTION_HELP] != NULL;
	args.command = cli_command_find(words.p, words.count, &used);
	if (!args.command && !args.wants_help) {
		if (words.count == 0)
			return err_set(e, RC_INVALID, "a command is missing; see: leasehold help");
		return refuse_command(&words, e);
	}
	for (size_t i = used; i < words.count; i++)
		args.operands[args.operand_count++] = words.p[i];
	if (args.command && !args.wants_help && ((rc = check_options(&args, e)) || (rc = check_operands(&args, e))))
		return rc;
	*ret = args;
	return RC_OK;
}
