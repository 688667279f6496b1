/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.c - reads the command line.
 *
 * Options may stand anywhere, as "--name value" or "--name=value"; "--" ends them. An option's name alone says whether
 * it takes a value, so the words that are left are the command and its operands, wherever they stand. Where a value may
 * be left out ("[SECONDS]"), the next word is it unless that is an option or there is none. An option given
 * twice, one that the command does not know and a missing or surplus operand are errors: a guess could give back the
 * wrong sandbox.
 */
#include "cli/args.h"

#include <string.h>

#include "base/buf.h"
#include "cli/help.h"
#include "cli/suggest.h"

enum { LIST_MAX = 160, USAGE_MAX = 160, SHOWN_MAX = 40 /* of a wrong word, so that the advice behind it has room */ };

struct words {
	const char *p[CLI_WORDS_MAX];
	size_t      count;
	struct str  unknown; /* the first option that is in no table; which ones would be right, the command says */
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
static enum rc take_option(struct cli_args *args, int argc, char **argv, int *at, struct words *words, struct err *e)
{
	struct str  rest = str_from(argv[*at]);
	struct str  name = str_cut(&rest, '=');
	int         id = find_option(name);
	const char *value = rest.p; /* ends where the argument ends */

	if (id < 0) {
		if (words->unknown.n == 0)
			words->unknown = name;
		return RC_OK;
	}
	if (args->values[id])
		return err_set(e, RC_INVALID, "%s is given twice", cli_options[id].name);
	if (cli_options[id].value[0] == '\0') {
		if (value)
			return err_set(e, RC_INVALID, "%s takes no value", cli_options[id].name);
		value = "";
	} else if (!value && cli_options[id].value[0] == '[' && (*at + 1 >= argc || argv[*at + 1][0] == '-')) {
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

/* In place of a command, "--version" is one. */
static bool is_version(const char *word, const struct words *words)
{
	return words->count == 0 && (strcmp(word, "--version") == 0 || strcmp(word, "-v") == 0);
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
		else if (is_version(word, words))
			rc = add_word(words, "version", e);
		else
			rc = take_option(args, argc, argv, &at, words, e);
	}
	return rc;
}

/* The words that may follow a noun, "claim, show"; empty when it is none. */
static void list_verbs(struct buf *b, const char *noun)
{
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++) {
		struct str verb = cli_command_verb(&cli_commands[i]);

		if (verb.n && str_eq(cli_command_noun(&cli_commands[i]), str_from(noun)))
			buf_addf(b, "%s%.*s", b->n ? ", " : "", STR_ARG(verb));
	}
}

/* The first word is no command's. */
static enum rc refuse_first_word(const char *const *words, size_t count, struct err *e)
{
	struct str meant = suggest_command(words, count);

	if (meant.n)
		return err_set(e, RC_INVALID, "there is no command '%.*s'; did you mean '%.*s'?", SHOWN_MAX, words[0],
		               STR_ARG(meant));
	return err_set(e, RC_INVALID, "there is no command '%.*s'; see: leasehold help", SHOWN_MAX, words[0]);
}

enum rc cli_refuse_command(const char *const *words, size_t count, struct err *e)
{
	size_t                    used = 0;
	const struct cli_command *c = cli_command_find(words, count, &used);
	struct buf                verbs;
	enum rc                   rc;

	if (c && used < count)
		return err_set(e, RC_INVALID, "'%.*s' is too much; see: leasehold help %s", SHOWN_MAX, words[used],
		               c->name);
	buf_init(&verbs, LIST_MAX);
	list_verbs(&verbs, words[0]);
	if (verbs.n == 0)
		rc = refuse_first_word(words, count, e);
	else if (count < 2)
		rc = err_set(e, RC_INVALID, "%s needs one of: %s", words[0], verbs.p);
	else
		rc = err_set(e, RC_INVALID, "there is no command '%s %.*s'; %s has: %s", words[0], SHOWN_MAX, words[1],
		             words[0], verbs.p);
	buf_fini(&verbs);
	return rc;
}

/* The command does not take this option; when c is NULL none was understood. */
static enum rc refuse_option(const struct cli_command *c, struct str name, struct err *e)
{
	struct str  meant = suggest_option(name, c ? cli_command_options(c) : UINT64_MAX);
	const char *who = c ? c->name : "leasehold", *in_help = c ? c->name : "";

	if (name.n > SHOWN_MAX)
		name.n = SHOWN_MAX;
	if (meant.n)
		return err_set(e, RC_INVALID, "%s has no option %.*s; did you mean %.*s?", who, STR_ARG(name),
		               STR_ARG(meant));
	return err_set(e, RC_INVALID, "%s has no option %.*s; see: leasehold help%s%s", who, STR_ARG(name),
	               c ? " " : "", in_help);
}

static enum rc check_options(const struct cli_args *args, struct err *e)
{
	uint64_t known = cli_command_options(args->command);

	for (int id = 0; id < CLI_OPTION__COUNT; id++)
		if (args->values[id] && !(known & UINT64_C(1) << id))
			return refuse_option(args->command, str_from(cli_options[id].name), e);
	return RC_OK;
}

/* With all it takes to be right: operands and needed options. */
static enum rc refuse_missing(const struct cli_command *c, struct err *e)
{
	struct buf usage;
	enum rc    rc;

	buf_init(&usage, USAGE_MAX);
	help_add_usage(&usage, c, false);
	rc = err_set(e, RC_INVALID, "%s needs %s: leasehold %s", c->name, c->operands, usage.p);
	buf_fini(&usage);
	return rc;
}

static enum rc check_operands(const struct cli_args *args, struct err *e)
{
	const struct cli_command *c = args->command;

	if (args->operand_count < c->min)
		return refuse_missing(c, e);
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
	if (words.unknown.n)
		return refuse_option(args.command, words.unknown, e);
	if (!args.command && !args.wants_help) {
		if (words.count == 0)
			return err_set(e, RC_INVALID, "a command is missing; see: leasehold help");
		return cli_refuse_command(words.p, words.count, e);
	}
	for (size_t i = used; i < words.count; i++)
		args.operands[args.operand_count++] = words.p[i];
	if (args.command && !args.wants_help && ((rc = check_options(&args, e)) || (rc = check_operands(&args, e))))
		return rc;
	*ret = args;
	return RC_OK;
}
