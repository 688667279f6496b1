/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completion.c - completion scripts for shells, made from the command table.
 *
 * Both scripts work alike: they collect the words before the cursor that are neither options nor their values, and
 * those words choose from a "case" what may come next. Nothing asks the server: completing must not wait or need a
 * token.
 */
#include "cli/help.h"

#include <string.h>

#include "cli/commands.h"

/* "--a|--b" of all options that take a value. */
static void print_value_options(FILE *out)
{
	const char *separator = "";

	for (int id = 0; id < CLI_OPTION__COUNT; id++)
		if (cli_options[id].value[0]) {
			fprintf(out, "%s%s", separator, cli_options[id].name);
			separator = "|";
		}
}

static void print_option_names(FILE *out, const struct cli_command *c)
{
	uint64_t options = cli_command_options(c);

	for (int id = 0; id < CLI_OPTION__COUNT; id++)
		if (options & UINT64_C(1) << id)
			fprintf(out, " %s", cli_options[id].name);
}

/* True for the first command with its noun. */
static bool is_first_of_noun(size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (str_eq(cli_command_noun(&cli_commands[i]), cli_command_noun(&cli_commands[at])))
			return false;
	return true;
}

static void print_nouns(FILE *out)
{
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++)
		if (is_first_of_noun(i))
			fprintf(out, " %.*s", STR_ARG(cli_command_noun(&cli_commands[i])));
}

static void print_verbs(FILE *out, struct str noun)
{
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++)
		if (str_eq(cli_command_noun(&cli_commands[i]), noun))
			fprintf(out, " %.*s", STR_ARG(cli_command_verb(&cli_commands[i])));
}

/* The branches that both shells share: words before the cursor -> set="what may come next". */
static void print_branches(FILE *out, const char *set)
{
	fprintf(out, "\tcase \"$before\" in\n\t'') %s=\"", set);
	print_nouns(out);
	fprintf(out, " --help\" ;;\n\thelp) %s=\"", set);
	print_nouns(out);
	fprintf(out, " exit-codes --man\" ;;\n");
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++) {
		const struct cli_command *c = &cli_commands[i];

		if (cli_command_verb(c).n && is_first_of_noun(i)) {
			fprintf(out, "\t'%.*s'|'help %.*s') %s=\"", STR_ARG(cli_command_noun(c)),
			        STR_ARG(cli_command_noun(c)), set);
			print_verbs(out, cli_command_noun(c));
			fprintf(out, "\" ;;\n");
		}
		if (strcmp(c->name, "help") == 0)
			continue;
		fprintf(out, "\t'%s'*) %s=\"%s", c->name, set, c->words);
		print_option_names(out, c);
		fprintf(out, "\" ;;\n");
	}
	fprintf(out, "\tesac\n");
}

/* Branches on the option whose value is being completed; file, dir and words are the shell's ways to do it. */
static void print_value_branches(FILE *out, const char *file, const char *dir, const char *words)
{
	for (int id = 0; id < CLI_OPTION__COUNT; id++) {
		const struct cli_option *o = &cli_options[id];

		if (o->value[0] == '\0')
			continue;
		fprintf(out, "\t%s) ", o->name);
		if (strcmp(o->words, "@file") == 0)
			fputs(file, out);
		else if (strcmp(o->words, "@dir") == 0)
			fputs(dir, out);
		else if (o->words[0])
			fprintf(out, "%s \"%s\"", words, o->words);
		fprintf(out, "%sreturn ;;\n", o->words[0] ? "; " : "");
	}
}

static void print_bash(FILE *out)
{
	fputs("# bash completion of leasehold\n"
	      "_leasehold_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$cur\")); }\n"
	      "_leasehold() {\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} before='' next='' i word\n"
	      "\tCOMPREPLY=()\n"
	      "\tcase \"$previous\" in\n",
	      out);
	print_value_branches(out, "COMPREPLY=($(compgen -f -- \"$cur\"))", "COMPREPLY=($(compgen -d -- \"$cur\"))",
	                     "_leasehold_words");
	fputs("\tesac\n"
	      "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "\t\tword=${COMP_WORDS[i]}\n"
	      "\t\tcase \"$word\" in\n\t\t",
	      out);
	print_value_options(out);
	fputs(") ((i++)) ;;\n"
	      "\t\t-*) ;;\n"
	      "\t\t*) before=\"${before:+$before }$word\" ;;\n"
	      "\t\tesac\n"
	      "\tdone\n",
	      out);
	print_branches(out, "next");
	fputs("\t_leasehold_words \"$next\"\n}\ncomplete -F _leasehold leasehold\n", out);
}

static void print_zsh(FILE *out)
{
	fputs("#compdef leasehold\n"
	      "_leasehold_words() { compadd -- ${=1} }\n"
	      "_leasehold() {\n"
	      "\tlocal previous=${words[CURRENT-1]} before='' next='' i word\n"
	      "\tcase \"$previous\" in\n",
	      out);
	print_value_branches(out, "_files", "_files -/", "_leasehold_words");
	fputs("\tesac\n"
	      "\tfor ((i = 2; i < CURRENT; i++)); do\n"
	      "\t\tword=${words[i]}\n"
	      "\t\tcase \"$word\" in\n\t\t",
	      out);
	print_value_options(out);
	fputs(") ((i++)) ;;\n"
	      "\t\t-*) ;;\n"
	      "\t\t*) before=\"${before:+$before }$word\" ;;\n"
	      "\t\tesac\n"
	      "\tdone\n",
	      out);
	print_branches(out, "next");
	fputs("\t_leasehold_words \"$next\"\n}\n"
	      "if [[ \"$funcstack[1]\" == _leasehold ]]; then _leasehold \"$@\"; else "
	      "compdef _leasehold leasehold; fi\n",
	      out);
}

bool help_completion(FILE *out, const char *shell)
{
	if (strcmp(shell, "bash") == 0)
		print_bash(out);
	else if (strcmp(shell, "zsh") == 0)
		print_zsh(out);
	else
		return false;
	return true;
}
