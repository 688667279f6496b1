/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggest.c - finds the name nearest to a mistyped one.
 *
 * Near means: at most SUGGEST_DISTANCE_MAX letters to insert, delete or replace, and at most half of the word, so that
 * a word of three letters is not taken for another. Of equals the first in the table wins. Nothing is ever carried out
 * on a guess: it is only said.
 */
#include "cli/suggest.h"

#include "cli/commands.h"

enum { NAME_MAX_BYTES = 48, FAR = NAME_MAX_BYTES };

struct nearest {
	struct str text;
	size_t     distance;
};

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* How many letters differ (Levenshtein), row by row; FAR for words that are too long to be names. */
static size_t distance(struct str a, struct str b)
{
	size_t row[NAME_MAX_BYTES + 1];

	if (a.n > NAME_MAX_BYTES || b.n > NAME_MAX_BYTES)
		return FAR;
	for (size_t k = 0; k <= b.n; k++)
		row[k] = k;
	for (size_t i = 1; i <= a.n; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t k = 1; k <= b.n; k++) {
			size_t above = row[k];

			row[k] = min3(above + 1, row[k - 1] + 1, diagonal + (a.p[i - 1] != b.p[k - 1]));
			diagonal = above;
		}
	}
	return row[b.n];
}

/* Take the text when the name is nearer to what was written than all before. */
static void consider(struct nearest *best, struct str written, struct str name, struct str text)
{
	size_t d = distance(written, name);

	if (name.n && d <= SUGGEST_DISTANCE_MAX && d * 2 <= written.n && (best->text.n == 0 || d < best->distance))
		*best = (struct nearest){ text, d };
}

struct str suggest_option(struct str name, uint64_t options)
{
	struct nearest best = { .distance = FAR };

	for (int id = 0; id < CLI_OPTION__COUNT; id++) {
		struct str option = str_from(cli_options[id].name);

		if (options & UINT64_C(1) << id)
			consider(&best, name, option, option);
	}
	return best.text;
}

/* Both words at once, "sandbx show". */
static void consider_pair(struct nearest *best, struct str noun, struct str verb)
{
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++) {
		const struct cli_command *c = &cli_commands[i];
		size_t                    d = distance(noun, cli_command_noun(c));

		if (d <= SUGGEST_DISTANCE_MAX && d * 2 <= noun.n)
			consider(best, verb, cli_command_verb(c), str_from(c->name));
	}
}

/* One word: the noun of some commands, or a verb whose noun was left out. */
static void consider_word(struct nearest *best, struct str word)
{
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++) {
		const struct cli_command *c = &cli_commands[i];

		consider(best, word, cli_command_noun(c), cli_command_noun(c));
		consider(best, word, cli_command_verb(c), str_from(c->name));
	}
}

struct str suggest_command(const char *const *words, size_t count)
{
	struct nearest best = { .distance = FAR };

	if (count >= 2)
		consider_pair(&best, str_from(words[0]), str_from(words[1]));
	if (count >= 1 && best.text.n == 0)
		consider_word(&best, str_from(words[0]));
	return best.text;
}
