/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.c - reads the command line.
 *
 * Options may stand anywhere, as "--name value" or "--name=value"; "--" ends them. An option's name alone says
 * whether it takes a value, so the words that are left are the command and its operands, wherever they stand. Where a
 * value may be left out ("[SECONDS]"), the next word is it unless that is an option or there is none. An option given
 * twice, one that the command does not know and a missing or surplus operand are errors: a guess could give back the
 * wrong sandbox.
 *
 * For a mistyped name the nearest one is suggested: at most DISTANCE_MAX letters and half of the word to change, so
 * that a word of three letters is not taken for another. Of equals the first in the table wins. A guess is never run.
 */
#include "cli/term/args.h"

#include <string.h>

#include "base/buf.h"
#include "cli/term/help.h"

enum { LIST_MAX = 160, USAGE_MAX = 160, DISTANCE_MAX = 2 };
enum { SHOWN_MAX = 40 }; /* of a wrong word, so that the advice behind it has room */

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

/* One option at argv[*at]; moves *at behind its value. */
static enum rc take_option(struct cli_args *args, int argc, char **argv, int *at, struct words *words, struct err *e)
{
	struct str  rest = str_from(argv[*at]);
	struct str  name = str_cut(&rest, '=');
	int         id = 0;
	const char *value = rest.p; /* ends where the argument ends */

	while (id < CLI_OPTION__COUNT && !str_eq(name, str_from(cli_options[id].name)))
		id++;
	if (id == CLI_OPTION__COUNT) {
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
		else if (words->count == 0 && (strcmp(word, "--version") == 0 || strcmp(word, "-v") == 0))
			rc = add_word(words, "version", e); /* in place of a command, it is one */
		else
			rc = take_option(args, argc, argv, &at, words, e);
	}
	return rc;
}

/* --- what may have been meant --- */

struct nearest {
	struct str text;
	size_t     distance;
};

/* Take the text when the name is nearer to what was written than all before. */
static void consider(struct nearest *best, struct str written, struct str name, struct str text)
{
	size_t d = str_distance(written, name);

	if (name.n && d <= DISTANCE_MAX && d * 2 <= written.n && (best->text.n == 0 || d < best->distance))
		*best = (struct nearest){ text, d };
}

/* Of the options that the command takes, or of all when it is NULL. */
static struct str suggest_option(struct str name, const struct cli_command *c)
{
	struct nearest best = { .distance = STR_DISTANCE_MAX };

	for (int id = 0; id < CLI_OPTION__COUNT; id++) {
		struct str option = str_from(cli_options[id].name);

		if (!c || cli_command_takes(c, (enum cli_option_id)id))
			consider(&best, name, option, option);
	}
	return best.text;
}

/* The command, or the first word of some: "claim" gives "sandbox claim". */
static struct str suggest_command(const char *const *words, size_t count)
{
	struct nearest best = { .distance = STR_DISTANCE_MAX };
	struct str     first = str_from(words[0]);

	for (size_t i = 0; count >= 2 && i < CLI_COMMAND__COUNT; i++) { /* both words at once, "sandbx show" */
		const struct cli_command *c = &cli_commands[i];
		size_t                    d = str_distance(first, cli_command_noun(c));

		if (d <= DISTANCE_MAX && d * 2 <= first.n)
			consider(&best, str_from(words[1]), cli_command_verb(c), str_from(c->name));
	}
	if (best.text.n)
		return best.text;
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++) { /* one: a noun, or a verb whose noun was left out */
		const struct cli_command *c = &cli_commands[i];

		consider(&best, first, cli_command_noun(c), cli_command_noun(c));
		consider(&best, first, cli_command_verb(c), str_from(c->name));
	}
	return best.text;
}

/* The longest noun that these words begin with: one word, or two; *ret_used is how many. */
static struct str noun_said(const char *const *words, size_t count, size_t *ret_used)
{
	struct str said = str_from(words[0]);

	*ret_used = 1;
	for (const struct cli_command *c = cli_commands; c < cli_commands + CLI_COMMAND__COUNT; c++) {
		size_t n = cli_count_said(cli_command_noun(c), words, count);

		if (n > *ret_used) {
			*ret_used = n;
			said = cli_command_noun(c);
		}
	}
	return said;
}

enum rc cli_refuse_command(const char *const *words, size_t count, struct err *e)
{
	size_t                       used = 0, after;
	const struct cli_command    *c = cli_command_find(words, count, &used);
	struct str                   meant = suggest_command(words, count), noun = noun_said(words, count, &after);
	CLEANUP(buf_fini) struct buf verbs = BUF(LIST_MAX); /* that may follow the noun: "claim, show" */

	if (c && used < count)
		return err_set(e, RC_INVALID, "'%.*s' is too much; see: leasehold help %s", SHOWN_MAX, words[used],
		               c->name);
	for (c = cli_commands; c < cli_commands + CLI_COMMAND__COUNT; c++)
		if (cli_command_verb(c).n && str_eq(cli_command_noun(c), noun))
			buf_addf(&verbs, "%s%.*s", verbs.n ? ", " : "", STR_ARG(cli_command_verb(c)));
	if (verbs.n && after == count)
		return err_set(e, RC_INVALID, "%.*s needs one of: %s", STR_ARG(noun), verbs.p);
	if (verbs.n)
		return err_set(e, RC_INVALID, "there is no command '%.*s %.*s'; %.*s has: %s", STR_ARG(noun), SHOWN_MAX,
		               words[after], STR_ARG(noun), verbs.p);
	if (meant.n)
		return err_set(e, RC_INVALID, "there is no command '%.*s'; did you mean '%.*s'?", SHOWN_MAX, words[0],
		               STR_ARG(meant));
	return err_set(e, RC_INVALID, "there is no command '%.*s'; see: leasehold help", SHOWN_MAX, words[0]);
}

/* The command does not take this option; when c is NULL none was understood. */
static enum rc refuse_option(const struct cli_command *c, struct str name, struct err *e)
{
	struct str  meant = suggest_option(name, c);
	const char *who = c ? c->name : "leasehold";

	if (name.n > SHOWN_MAX)
		name.n = SHOWN_MAX;
	if (meant.n)
		return err_set(e, RC_INVALID, "%s has no option %.*s; did you mean %.*s?", who, STR_ARG(name),
		               STR_ARG(meant));
	return err_set(e, RC_INVALID, "%s has no option %.*s; see: leasehold help%s%s", who, STR_ARG(name),
	               c ? " " : "", c ? c->name : "");
}

/* With all it takes to be right: operands and needed options. */
static enum rc refuse_missing(const struct cli_command *c, struct err *e)
{
	CLEANUP(buf_fini) struct buf usage = BUF(USAGE_MAX);

	help_add_usage(&usage, c, false);
	return err_set(e, RC_INVALID, "%s needs %s: leasehold %s", c->name, c->operands, usage.p);
}

static enum rc check(const struct cli_args *args, struct err *e)
{
	const struct cli_command *c = args->command;

	for (int id = 0; id < CLI_OPTION__COUNT; id++)
		if (args->values[id] && !cli_command_takes(c, (enum cli_option_id)id))
			return refuse_option(c, str_from(cli_options[id].name), e);
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
	if (args.command && !args.wants_help && (rc = check(&args, e)))
		return rc;
	*ret = args;
	return RC_OK;
}
