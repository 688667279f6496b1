/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - help and the manual page. Both print the same tables; neither knows a command by name. */
#include "cli/help.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cli/commands.h"

enum { USAGE_MAX = 512, USAGE_WIDTH = 24, PLAIN_WIDTH = 119 };

static const char about[] = "lends temporary environments and takes them back";

static const char *const glossary[] = {
	"A track is who claims a sandbox, such as one student's run of a lab; it holds one at a time. A lab is the course "
	"it belongs to, kept as a note. The CSP is the vendor that makes the sandboxes and deletes them after use. A stale "
	"sandbox is one that the CSP no longer lists, or that an operator has set aside (quarantine): nobody gets it.",
	"A lease lends a cloud account to one person, for a time and a budget that come from its template; then the account is "
	"emptied and lent again.",
};

static void add_options(struct buf *b, uint64_t options, bool is_needed)
{
	for (int id = 0; id < CLI_OPTION__COUNT; id++) {
		const struct cli_option *o = &cli_options[id];

		if (options & UINT64_C(1) << id)
			buf_addf(b, " %s%s%s%s%s", is_needed ? "" : "[", o->name, o->value[0] ? " " : "", o->value,
			         is_needed ? "" : "]");
	}
}

void help_add_usage(struct buf *b, const struct cli_command *c, bool has_optional)
{
	buf_addf(b, "%s%s%s", c->name, c->operands[0] ? " " : "", c->operands);
	add_options(b, c->needed, true);
	if (has_optional)
		add_options(b, c->optional, false);
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

/* Text in lines of at most `width` characters, 0: one line; the first begins at column `at`, the others at `indent`. */
static void print_wrapped(FILE *out, struct str text, size_t at, size_t indent, size_t width)
{
	bool is_first = true;

	while (text.n) {
		struct str word = str_cut(&text, ' ');

		if (!is_first && width && at + 1 + word.n > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
			is_first = true;
		}
		at += (size_t)fprintf(out, "%s%.*s", is_first ? "" : " ", STR_ARG(word));
		is_first = false;
	}
	fputc('\n', out);
}

static void print_options(FILE *out, uint64_t options, size_t width)
{
	for (int id = 0; id < CLI_OPTION__COUNT; id++) {
		const struct cli_option *o = &cli_options[id];
		int                      used;

		if (!(options & UINT64_C(1) << id))
			continue;
		used = fprintf(out, "  %s %s", o->name, o->value);
		used += fprintf(out, "%*s", used < USAGE_WIDTH ? USAGE_WIDTH - used : 1, "");
		print_wrapped(out, str_from(o->help), (size_t)used, USAGE_WIDTH, width);
	}
}

static void print_notes(FILE *out, const char *title, const struct cli_note *notes, size_t count, size_t width)
{
	fprintf(out, "\n%s:\n", title);
	for (size_t i = 0; i < count; i++) {
		int used = fprintf(out, "  %-20s  ", notes[i].name);

		print_wrapped(out, str_from(notes[i].help), (size_t)used, USAGE_WIDTH, width);
	}
}

/* The options that every API command has and nothing else. */
static uint64_t common_options(void)
{
	return cli_command_options(&(struct cli_command){ .place = CLI_PLACE_API });
}

static void print_command(FILE *out, const struct cli_command *c, size_t width)
{
	int used = fprintf(out, "  %-22s  ", c->name);

	print_wrapped(out, str_from(c->summary), (size_t)used, (size_t)used, width);
}

void help_all(FILE *out, size_t width)
{
	fprintf(out, "leasehold - %s\n\n", about);
	for (size_t i = 0; i < ARRAY_LEN(glossary); i++)
		print_wrapped(out, str_from(glossary[i]), 0, 0, width ? width : PLAIN_WIDTH);
	fprintf(out, "\nusage: leasehold COMMAND [OPTION...]\n\ncommands:\n");
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++)
		print_command(out, &cli_commands[i], width);
	fprintf(out, "\noptions of all commands that ask a server:\n");
	print_options(out, common_options(), width);
	print_notes(out, "environment (or KEY=VALUE lines in ~/.config/leasehold/client, mode 600)", cli_variables,
	            cli_variable_count, width);
	print_notes(out, "exit codes", cli_exit_codes, cli_exit_code_count, width);
	fprintf(out, "\nMore on one: leasehold help COMMAND\n");
}

void help_exit_codes(FILE *out)
{
	for (size_t i = 0; i < cli_exit_code_count; i++)
		fprintf(out, "%s  %s\n", cli_exit_codes[i].name, cli_exit_codes[i].help);
}

void help_one(FILE *out, const struct cli_command *c, size_t width)
{
	struct arena a = { 0 };
	struct buf   usage;
	struct str   examples = str_from(c->examples);

	buf_init(&usage, USAGE_MAX);
	help_add_usage(&usage, c, true);
	fputs("usage: ", out);
	print_wrapped(out, str_format(&a, "leasehold %s", usage.p), 7, 7, width);
	fputc('\n', out);
	print_wrapped(out, str_format(&a, "%s.", c->summary), 0, 0, width);
	if (c->details[0])
		print_wrapped(out, str_from(c->details), 0, 0, width);
	buf_reset(&usage);
	add_operand_words(&usage, c);
	if (usage.n)
		print_wrapped(out, buf_str(&usage), 0, 0, width);
	buf_fini(&usage);
	arena_fini(&a);
	fprintf(out, "\noptions:\n");
	print_options(out, cli_command_options(c), width);
	fprintf(out, "\nexamples:\n");
	while (examples.n) {
		struct str line = str_cut(&examples, '\n');

		fprintf(out, "  %.*s\n", STR_ARG(line));
	}
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
	if (count != 1)
		return false;
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++)
		if (str_eq(cli_command_noun(&cli_commands[i]), str_from(words[0]))) {
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

/* ".TP", a bold term, its text. */
static void man_entry(FILE *out, struct str term, const char *text)
{
	fputs(".TP\n\\fB", out);
	man_text(out, term);
	fputs("\\fR\n", out);
	man_line(out, str_from(text));
}

static void man_options(FILE *out, uint64_t options)
{
	for (int id = 0; id < CLI_OPTION__COUNT; id++) {
		if (!(options & UINT64_C(1) << id))
			continue;
		fputs(".TP\n\\fB", out);
		man_text(out, str_from(cli_options[id].name));
		fprintf(out, "\\fR%s\\fI%s\\fR\n", cli_options[id].value[0] ? " " : "", cli_options[id].value);
		man_line(out, str_from(cli_options[id].help));
	}
}

static void man_command(FILE *out, const struct cli_command *c)
{
	struct str examples = str_from(c->examples);
	struct buf usage;

	buf_init(&usage, USAGE_MAX);
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
	buf_fini(&usage);
	man_options(out, c->needed | c->optional);
	fputs(".PP\n.nf\n", out);
	while (examples.n) {
		fputs(".RS\n", out);
		man_text(out, str_cut(&examples, '\n'));
		fputs("\n.RE\n", out);
	}
	fputs(".fi\n", out);
}

static void man_notes(FILE *out, const char *title, const struct cli_note *notes, size_t count)
{
	fprintf(out, ".SH %s\n", title);
	for (size_t i = 0; i < count; i++)
		man_entry(out, str_from(notes[i].name), notes[i].help);
}

/* What is around the process: the same for every command, so in no table of commands. */
static const struct cli_note signals[] = {
	{ "SIGTERM, SIGINT", "The server answers what is under way and ends. A second one does not wait for that." },
	{ "SIGHUP", "The server reads the tokens of the configuration file and the certificates again." },
};

static const struct cli_note files[] = {
	{ "$XDG_CONFIG_HOME/leasehold/client",
	  "The client's settings: KEY=VALUE lines with the names of the environment variables, used where those are not "
	  "set. Without XDG_CONFIG_HOME: ~/.config/leasehold/client. Refused when others may read it." },
};

static void man_configuration(FILE *out)
{
	fputs(".SH CONFIGURATION\n", out);
	man_line(out,
	         STR("The server's settings come from the environment, or from a file of KEY=VALUE lines that "
	             "LEASEHOLD_CONFIG_FILE or serve --file names; the environment wins. "
	             "leasehold config lists every setting, what it is for, its value and where that comes from."));
}

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
	man_options(out, common_options());
	man_notes(out, "ENVIRONMENT", cli_variables, cli_variable_count);
	man_configuration(out);
	man_notes(out, "SIGNALS", signals, ARRAY_LEN(signals));
	man_notes(out, "FILES", files, ARRAY_LEN(files));
	man_notes(out, "EXIT STATUS", cli_exit_codes, cli_exit_code_count);
}
