/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help.c - help, the manual page and completion scripts. All come from the command table; none knows a command by name.
 *
 * The completion scripts of all shells work alike: they collect the words before the cursor that are neither options
 * nor their values, and those words choose from a "case" what may come next. Nothing asks the server: completing must
 * neither wait nor need a token.
 */
#include "cli/term/help.h"

#include "base/arena.h"
#include "base/buf.h"
#include "cli/term/commands.h"
#include "cli/term/show.h"

enum { USAGE_MAX = 512, USAGE_WIDTH = 24, PLAIN_WIDTH = 119 };

static const char about[] = "lends temporary environments and takes them back";

static const char *const glossary[] = {
	"A track is who claims a sandbox, such as one student's run of a lab; it holds one at a time. A lab is the "
	"course it belongs to, kept as a note. The CSP is the vendor that makes the sandboxes and deletes them after "
	"use. A stale sandbox is one that the CSP no longer lists, or that an operator has put in quarantine: "
	"nobody gets it.",
	"A lease lends a cloud account to one person, for a time and a budget that come from its template; then the "
	"account is emptied and lent again.",
};

static void add_options(struct buf *b, const struct cli_command *c, bool is_needed)
{
	for (enum cli_option_id id = 0; id < CLI_OPTION__COUNT; id++) {
		struct cli_option o = cli_option_in(c, id);

		if (cli_option_is_in(id, is_needed ? c->needed : c->optional))
			buf_addf(b, " %s%s%s%s%s", is_needed ? "" : "[", o.name, o.value[0] ? " " : "", o.value,
			         is_needed ? "" : "]");
	}
}

void help_add_usage(struct buf *b, const struct cli_command *c, bool has_optional)
{
	buf_addf(b, "%s%s%s", c->name, c->operands[0] ? " " : "", c->operands);
	add_options(b, c, true);
	if (has_optional)
		add_options(b, c, false);
}

/* "NAME: sync, cleanup or expiry"; nothing for a command whose operand may be anything. */
static void add_operand_words(struct buf *b, const struct cli_command *c)
{
	struct str rest = str_from(c->words);

	for (bool is_first = true; rest.n; is_first = false) {
		struct str word = str_cut(&rest, ' ');

		if (is_first)
			buf_addf(b, "%s: %.*s", c->operands, STR_ARG(word));
		else
			buf_addf(b, "%s%.*s", rest.n ? ", " : " or ", STR_ARG(word));
	}
}

static void print_options(FILE *out, const struct cli_command *c, size_t width)
{
	for (enum cli_option_id id = 0; id < CLI_OPTION__COUNT; id++) {
		struct cli_option o = cli_option_in(c, id);
		int               used;

		if (!cli_command_takes(c, id))
			continue;
		used = fprintf(out, "  %s %s", o.name, o.value);
		used += fprintf(out, "%*s", used < USAGE_WIDTH ? USAGE_WIDTH - used : 1, "");
		show_wrapped(out, str_from(o.help), (size_t)used, USAGE_WIDTH, width);
	}
}

static void print_notes(FILE *out, const char *title, const struct cli_note *notes, size_t width)
{
	fprintf(out, "\n%s:\n", title);
	for (; notes->name; notes++) {
		int used = fprintf(out, "  %-20s  ", notes->name);

		show_wrapped(out, str_from(notes->help), (size_t)used, USAGE_WIDTH, width);
	}
}

/* It has the options that every API command has, and nothing else. */
static const struct cli_command any_command = { .place = CLI_PLACE_API,
	                                        .name = "",
	                                        .needed = (const enum cli_option_id[]){ CLI_OPTION__COUNT },
	                                        .optional = (const enum cli_option_id[]){ CLI_OPTION__COUNT } };

static void print_command(FILE *out, const struct cli_command *c, size_t width)
{
	int used = fprintf(out, "  %-22s  ", c->name);

	show_wrapped(out, str_from(c->summary), (size_t)used, (size_t)used, width);
}

void help_all(FILE *out, size_t width)
{
	fprintf(out, "leasehold - %s\n\n", about);
	for (size_t i = 0; i < ARRAY_LEN(glossary); i++)
		show_wrapped(out, str_from(glossary[i]), 0, 0, width ? width : PLAIN_WIDTH);
	fprintf(out, "\nusage: leasehold COMMAND [OPTION...]\n\ncommands:\n");
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++)
		print_command(out, &cli_commands[i], width);
	fprintf(out, "\noptions of all commands that ask a server:\n");
	print_options(out, &any_command, width);
	print_notes(out, "environment (or KEY=VALUE lines in ~/.config/leasehold/client, mode 600)", cli_variables,
	            width);
	print_notes(out, "exit codes", cli_exit_codes, width);
	fprintf(out, "\nMore on one: leasehold help COMMAND\n");
}

void help_exit_codes(FILE *out)
{
	for (const struct cli_note *n = cli_exit_codes; n->name; n++)
		fprintf(out, "%s  %s\n", n->name, n->help);
}

void help_one(FILE *out, const struct cli_command *c, size_t width)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	CLEANUP(buf_fini) struct buf     usage = BUF(USAGE_MAX);
	struct str                       examples = str_from(c->examples);

	help_add_usage(&usage, c, true);
	fputs("usage: ", out);
	show_wrapped(out, str_format(&a, "leasehold %s", usage.p), 7, 7, width);
	fputc('\n', out);
	show_wrapped(out, str_format(&a, "%s.", c->summary), 0, 0, width);
	if (c->details[0])
		show_wrapped(out, str_from(c->details), 0, 0, width);
	buf_reset(&usage);
	add_operand_words(&usage, c);
	if (usage.n)
		show_wrapped(out, buf_str(&usage), 0, 0, width);
	fprintf(out, "\noptions:\n");
	print_options(out, c, width);
	fprintf(out, "\nexamples:\n");
	while (examples.n) {
		struct str line = str_cut(&examples, '\n');

		fprintf(out, "  %.*s\n", STR_ARG(line));
	}
}

static bool begins_with(const struct cli_command *c, const char *const *words, size_t count)
{
	struct str name = str_from(c->name);

	for (size_t i = 0; i < count; i++)
		if (!str_eq(str_cut(&name, ' '), str_from(words[i])))
			return false;
	return count > 0;
}

bool help_command(FILE *out, const char *const *words, size_t count, size_t width)
{
	size_t                    used = 0;
	const struct cli_command *c = cli_command_find(words, count, &used);
	bool                      is_known = false;

	if (c && used == count) {
		help_one(out, c, width);
		return true;
	}
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++)
		if (begins_with(&cli_commands[i], words, count)) {
			print_command(out, &cli_commands[i], width);
			is_known = true;
		}
	return is_known;
}

/* Text in which troff finds nothing of its own: "-" stays a hyphen-minus, "\" a backslash, "." no request. */
static void man_text(FILE *out, struct str text)
{
	if (text.n && (text.p[0] == '.' || text.p[0] == '\''))
		fputs("\\&", out);
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '-')
			fputs("\\-", out);
		else if (text.p[i] == '\\')
			fputs("\\e", out);
		else
			fputc(text.p[i], out);
	}
}

static void man_line(FILE *out, struct str text)
{
	man_text(out, text);
	fputc('\n', out);
}

/* ".TP", a bold term, what stands for its value (NULL: it has none), its text. */
static void man_entry(FILE *out, const char *term, const char *value, const char *text)
{
	fputs(".TP\n\\fB", out);
	man_text(out, str_from(term));
	fputs("\\fR", out);
	if (value)
		fprintf(out, "%s\\fI%s\\fR", *value ? " " : "", value);
	fputc('\n', out);
	man_line(out, str_from(text));
}

static void man_command(FILE *out, const struct cli_command *c)
{
	struct str                   examples = str_from(c->examples);
	CLEANUP(buf_fini) struct buf usage = BUF(USAGE_MAX);

	help_add_usage(&usage, c, true);
	fputs(".SS \"", out);
	man_text(out, buf_str(&usage));
	fputs("\"\n", out);
	man_text(out, str_from(c->summary));
	fputs(".\n", out);
	if (c->details[0])
		man_line(out, str_from(c->details));
	buf_reset(&usage);
	add_operand_words(&usage, c);
	if (usage.n)
		man_line(out, buf_str(&usage));
	for (enum cli_option_id id = 0; id < CLI_OPTION__COUNT; id++) {
		struct cli_option o = cli_option_in(c, id);

		if (cli_option_is_in(id, c->needed) || cli_option_is_in(id, c->optional))
			man_entry(out, o.name, o.value, o.help);
	}
	fputs(".PP\n.nf\n", out);
	while (examples.n) {
		fputs(".RS\n", out);
		man_line(out, str_cut(&examples, '\n'));
		fputs(".RE\n", out);
	}
	fputs(".fi\n", out);
}

static void man_notes(FILE *out, const char *title, const struct cli_note *notes)
{
	fprintf(out, ".SH %s\n", title);
	for (; notes->name; notes++)
		man_entry(out, notes->name, NULL, notes->help);
}

/* What is around the process: the same for every command, so in no table of commands. */
static const struct cli_note signals[] = {
	{ "SIGTERM, SIGINT",
	  "The server finishes the requests in progress and exits. A second signal does not wait for that." },
	{ "SIGHUP",
	  "The server reads the tokens (in the configuration file or Secrets Manager) and the certificates again." },
	{ NULL, NULL },
};

static const struct cli_note files[] = {
	{ "$XDG_CONFIG_HOME/leasehold/client",
	  "The client's settings: KEY=VALUE lines with the names of the environment variables, used where those are "
	  "not set. Without XDG_CONFIG_HOME: ~/.config/leasehold/client. Refused when others may read it." },
	{ NULL, NULL },
};

void help_man(FILE *out)
{
	fprintf(out,
	        ".TH LEASEHOLD 1 \"\" \"leasehold " LEASEHOLD_VERSION "\" \"User Commands\"\n"
	        ".SH NAME\nleasehold \\- %s\n"
	        ".SH SYNOPSIS\n.B leasehold\n.I COMMAND\n.RI [ OPTION ...]\n"
	        ".SH DESCRIPTION\n"
	        "One program: the server\n.RB ( \"leasehold serve\" )\n"
	        "and the client that talks to it over HTTP. The client can do nothing that the HTTP API cannot.\n"
	        ".PP\n",
	        about);
	for (size_t i = 0; i < ARRAY_LEN(glossary); i++)
		man_line(out, str_from(glossary[i]));
	fputs(".SH COMMANDS\n", out);
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++)
		man_command(out, &cli_commands[i]);
	fputs(".SH OPTIONS\nOf all commands that ask a server:\n", out);
	for (enum cli_option_id id = 0; id < CLI_OPTION__COUNT; id++)
		if (cli_command_takes(&any_command, id))
			man_entry(out, cli_options[id].name, cli_options[id].value, cli_options[id].help);
	man_notes(out, "ENVIRONMENT", cli_variables);
	fputs(".SH CONFIGURATION\n", out);
	man_line(out,
	         STR("The server's settings come from the environment, or from a file of KEY=VALUE lines that "
	             "LEASEHOLD_CONFIG_FILE or serve --file names; the environment wins. "
	             "leasehold config lists every setting, what it is for, its value and where that comes from."));
	man_notes(out, "SIGNALS", signals);
	man_notes(out, "FILES", files);
	man_notes(out, "EXIT STATUS", cli_exit_codes);
}

/* --- completion --- */

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
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++) {
		struct str noun = cli_command_noun(&cli_commands[i]);

		if (is_first_of_noun(i) && !memchr(noun.p, ' ', noun.n))
			fprintf(out, " %.*s", STR_ARG(noun));
	}
}

/* What may follow a noun: verbs, and the second word of nouns that begin with it. */
static void print_verbs(FILE *out, struct str noun)
{
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++) {
		struct str other = cli_command_noun(&cli_commands[i]), first = str_cut(&other, ' ');

		if (str_eq(cli_command_noun(&cli_commands[i]), noun))
			fprintf(out, " %.*s", STR_ARG(cli_command_verb(&cli_commands[i])));
		else if (other.n && str_eq(first, noun) && is_first_of_noun(i))
			fprintf(out, " %.*s", STR_ARG(other));
	}
}

/* Where the shells differ. */
struct shell {
	const char *name;
	const char *begin; /* up to the loop over the words before the cursor */
	const char *file, *folder;
	const char *first, *count, *word; /* of the words before the cursor */
	const char *end;
};

/* clang-format off */
static const struct shell shells[] = {
	{ "bash",
	  "# bash completion of leasehold\n"
	  "_leasehold_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$cur\")); }\n"
	  "_leasehold() {\n"
	  "\tlocal cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} before='' next='' i word\n"
	  "\tCOMPREPLY=()\n",
	  "COMPREPLY=($(compgen -f -- \"$cur\"))", "COMPREPLY=($(compgen -d -- \"$cur\"))",
	  "1", "COMP_CWORD", "COMP_WORDS",
	  "complete -F _leasehold leasehold\n" },
	{ "zsh",
	  "#compdef leasehold\n"
	  "_leasehold_words() { compadd -- ${=1} }\n"
	  "_leasehold() {\n"
	  "\tlocal previous=${words[CURRENT-1]} before='' next='' i word\n",
	  "_files", "_files -/",
	  "2", "CURRENT", "words",
	  "if [[ \"$funcstack[1]\" == _leasehold ]]; then _leasehold \"$@\"; else compdef _leasehold leasehold; fi\n" },
};
/* clang-format on */

/* A branch for each command in which the value is completed otherwise than elsewhere. */
static void print_own_values(FILE *out, enum cli_option_id id)
{
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++) {
		const struct cli_command *c = &cli_commands[i];
		struct cli_option         o = cli_option_in(c, id);

		if (cli_command_takes(c, id) && o.words != cli_options[id].words)
			fprintf(out, "\t'%s %s'*) _leasehold_words \"%s\"; return ;;\n", o.name, c->name, o.words);
	}
}

/* Branches on the option before the cursor, and the command: how its value is completed. */
static void print_values(FILE *out, const struct shell *s)
{
	fputs("\tcase \"$previous $before\" in\n", out);
	for (enum cli_option_id id = 0; id < CLI_OPTION__COUNT; id++) {
		const struct cli_option *o = &cli_options[id];

		if (o->value[0] == '\0')
			continue;
		print_own_values(out, id);
		fprintf(out, "\t'%s '*) ", o->name);
		if (strcmp(o->words, "@file") == 0)
			fputs(s->file, out);
		else if (strcmp(o->words, "@dir") == 0)
			fputs(s->folder, out);
		else if (o->words[0])
			fprintf(out, "_leasehold_words \"%s\"", o->words);
		fprintf(out, "%sreturn ;;\n", o->words[0] ? "; " : "");
	}
	fputs("\tesac\n", out);
}

/* Collects the words before the cursor that are neither options nor their values. */
static void print_loop(FILE *out, const struct shell *s)
{
	const char *separator = "";

	fprintf(out, "\tfor ((i = %s; i < %s; i++)); do\n\t\tword=${%s[i]}\n\t\tcase \"$word\" in\n\t\t", s->first,
	        s->count, s->word);
	for (int id = 0; id < CLI_OPTION__COUNT; id++)
		if (cli_options[id].value[0]) {
			fprintf(out, "%s%s", separator, cli_options[id].name);
			separator = "|";
		}
	fputs(") ((i++)) ;;\n\t\t-*) ;;\n\t\t*) before=\"${before:+$before }$word\" ;;\n\t\tesac\n\tdone\n", out);
}

/* Branches on these words: what may come next. */
static void print_branches(FILE *out)
{
	fputs("\tcase \"$before\" in\n\t'') next=\"", out);
	print_nouns(out);
	fputs(" --help\" ;;\n\thelp) next=\"", out);
	print_nouns(out);
	fputs(" exit-codes --man\" ;;\n", out);
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++) {
		const struct cli_command *c = &cli_commands[i];
		struct str                noun = cli_command_noun(c);

		if (cli_command_verb(c).n && is_first_of_noun(i)) {
			fprintf(out, "\t'%.*s'|'help %.*s') next=\"", STR_ARG(noun), STR_ARG(noun));
			print_verbs(out, noun);
			fputs("\" ;;\n", out);
		}
		if (strcmp(c->name, "help") == 0)
			continue;
		fprintf(out, "\t'%s'*) next=\"%s", c->name, c->words);
		for (enum cli_option_id id = 0; id < CLI_OPTION__COUNT; id++)
			if (cli_command_takes(c, id))
				fprintf(out, " %s", cli_options[id].name);
		fputs("\" ;;\n", out);
	}
	fputs("\tesac\n", out);
}

bool help_completion(FILE *out, const char *shell)
{
	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (strcmp(shells[i].name, shell) == 0) {
			fputs(shells[i].begin, out);
			print_loop(out, &shells[i]);
			print_values(out, &shells[i]);
			print_branches(out);
			fprintf(out, "\t_leasehold_words \"$next\"\n}\n%s", shells[i].end);
			return true;
		}
	return false;
}
