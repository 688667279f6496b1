/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_show.c - the settings for people: `leasehold config` with the values in use, docs/settings.md with the
 * defaults.
 *
 * A secret is never shown, only that there is one.
 */
#include "app/config/config_table.h"

const char *config_origin_name(enum config_origin origin)
{
	static const char *const names[] = { "default", "file", "environment", "command line", "development mode" };

	return names[origin];
}

static void add_limits(int id, struct buf *b)
{
	const struct config_row *row = &config_table[id];
	const char *const       *words = config_words(row->kind);

	switch (row->kind) {
	case INT: buf_addf(b, "%.0f to %.0f", row->least, row->most); break;
	case SECONDS: buf_addf(b, "%g to %g, decimals allowed", row->least, row->most); break;
	case TOKENS: buf_addf(b, "%.0f to %.0f characters each", row->least, row->most); break;
	case TEXT:
	case SECRET:
		if (row->least > 0)
			buf_addf(b, "%.0f to %.0f characters", row->least, row->most);
		else
			buf_addf(b, "up to %.0f characters", row->most);
		break;
	default:
		for (size_t i = 0; words[i]; i++)
			buf_addf(b, "%s%s", i ? ", " : "", words[i]);
	}
}

/* The title of the topic that begins with this setting; NULL: none does. */
static const char *topic_at(int id)
{
	static const struct {
		int         first;
		const char *title;
	} topics[] = {
#define TOPIC(id, title) { CONFIG_##id, title },
#include "app/config/config.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(topics); i++)
		if (topics[i].first == id)
			return topics[i].title;
	return NULL;
}

void config_print(const struct config *c, struct buf *b)
{
	const char *file = c->file && *c->file ? c->file : NULL;

	buf_addf(b, "%-36s %-26s %-16s %s\n", "SETTING", "VALUE", "FROM", "LIMITS");
	buf_addf(b, "%-36s %-26s %-16s %s\n    %s\n", CONFIG_FILE_NAME, file ? file : "-",
	         file ? config_origin_name(c->file_origin) : "default", "a readable file",
	         "File with lines KEY=VALUE for the settings below; the environment wins over it");
	for (int id = 0; id < CONFIG_COUNT; id++) {
		enum config_kind kind = config_table[id].kind;
		struct str       value = c->values[id].text;

		if (topic_at((int)id))
			buf_addf(b, "%s# %s\n\n", id ? "\n" : "", topic_at((int)id));
		if ((kind == SECRET || kind == TOKENS) && value.n)
			value = STR("********");
		if (!value.n)
			value = STR("-");
		buf_addf(b, "%-36s %-26.*s %-16s ", config_table[id].name, STR_ARG(value),
		         config_origin_name(c->values[id].origin));
		add_limits(id, b);
		buf_addf(b, "\n    %s\n", config_table[id].help);
	}
}

void config_write_doc(struct buf *b)
{
	buf_add_text(
	        b,
	        "# Settings\n\n"
	        "Made from `src/app/config/config.def` by `make docs`. Each is a variable of the environment or a line "
	        "`NAME=VALUE` of the file that `" CONFIG_FILE_NAME "` (or `--file`) names;\n"
	        "the command line wins over the environment, the environment over the file, the file over the "
	        "default. `leasehold config` checks them and shows the values in use.\n");
	for (int id = 0; id < CONFIG_COUNT; id++) {
		const char *fallback = config_table[id].fallback, *topic = topic_at(id);

		if (topic)
			buf_addf(b, "\n## %s\n\n| setting | default | limits | what |\n|---|---|---|---|\n", topic);
		buf_addf(b, "| `%s` | ", config_table[id].name);
		if (*fallback)
			buf_addf(b, "`%s` | ", fallback);
		else
			buf_add_text(b, "| ");
		add_limits(id, b);
		buf_addf(b, " | %s |\n", config_table[id].help);
	}
}
