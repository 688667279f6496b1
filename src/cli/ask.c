/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - the parts of a request. Whatever was typed is escaped where it goes into a path, a query or a body. */
#include "cli/ask.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/remote.h"

enum { PATH_MAX_BYTES = 16384, BODY_ROOM = 4096 };

static struct str take_text(struct remote *remote, struct buf *b)
{
	struct str ret = str_dup(&remote->arena, buf_str(b));

	buf_fini(b);
	return ret;
}

struct str ask_path_of(struct remote *remote, const char *before, struct str id, const char *after)
{
	struct buf path;

	buf_init(&path, PATH_MAX_BYTES);
	buf_add_text(&path, before);
	fetch_escape(&path, id);
	buf_add_text(&path, after);
	return take_text(remote, &path);
}

struct str ask_path(struct remote *remote, const char *before, const char *after)
{
	return ask_path_of(remote, before, str_from(remote->args->operands[0]), after);
}

static void add_parameter(struct buf *b, bool *is_first, const char *name, struct str value)
{
	buf_addf(b, "%c%s=", *is_first ? '?' : '&', name);
	fetch_escape(b, value);
	*is_first = false;
}

/* What a list calls its page. */
struct page_words {
	const char *limit, *cursor;
	bool        is_api;
};

/* Under /api statuses are capitalised; people are not that strict. */
static struct str as_written(enum cli_option_id option, struct str typed)
{
	struct str rest = str_from(cli_options[option].words);

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');

		if (str_eq_nocase(word, typed) && word.p[0] >= 'A' && word.p[0] <= 'Z')
			return word;
	}
	return typed;
}

static struct str write_query(struct remote *remote, const char *path, const struct ask_filter *filters, size_t count,
                              const struct page_words *words, int64_t limit, struct str cursor)
{
	bool       is_first = !strchr(path, '?');
	struct buf b;

	buf_init(&b, PATH_MAX_BYTES);
	buf_add_text(&b, path);
	if (limit)
		add_parameter(&b, &is_first, words->limit, str_format(&remote->arena, "%" PRId64, limit));
	for (size_t i = 0; i < count; i++) {
		const char *typed = remote->args->values[filters[i].option];

		if (typed)
			add_parameter(&b, &is_first, filters[i].name,
			              filters[i].value ? str_from(filters[i].value)
			              : words->is_api  ? as_written(filters[i].option, str_from(typed))
			                               : str_from(typed));
	}
	if (cursor.n)
		add_parameter(&b, &is_first, words->cursor, cursor);
	return take_text(remote, &b);
}

struct str ask_query(struct remote *remote, const char *path, const struct ask_filter *filters, size_t count,
                     int64_t limit, struct str cursor)
{
	static const struct page_words words = { "limit", "cursor", false };

	return write_query(remote, path, filters, count, &words, limit, cursor);
}

struct str ask_api_query(struct remote *remote, const char *path, const struct ask_filter *filters, size_t count,
                         int64_t limit, struct str cursor)
{
	static const struct page_words words = { "pageSize", "pageIdentifier", true };

	return write_query(remote, path, filters, count, &words, limit, cursor);
}

struct str ask_body(struct remote *remote, const char *name, struct str text)
{
	struct json_out out;
	struct buf      body;

	buf_init(&body, BODY_ROOM + text.n * 6);
	json_out_init(&out, &body);
	json_open_object(&out);
	json_put_str(&out, name, text);
	json_close_object(&out);
	return take_text(remote, &body);
}

enum rc ask_number(const struct remote *remote, enum cli_option_id id, int64_t min, int64_t max, int64_t fallback,
                   int64_t *ret, struct err *e)
{
	const char *text = remote->args->values[id];

	if (!text) {
		*ret = fallback;
		return RC_OK;
	}
	if (!str_to_int(str_from(text), min, max, ret))
		return err_set(e, RC_INVALID, "%s must be a number from %" PRId64 " to %" PRId64, cli_options[id].name,
		               min, max);
	return RC_OK;
}

enum rc ask_needed(const struct remote *remote, enum cli_option_id id, struct str *ret, struct err *e)
{
	struct str value = str_trim(str_from(remote->args->values[id]));

	if (!value.n)
		return err_set(e, RC_INVALID, "%s %s is needed; see: leasehold help %s", cli_options[id].name,
		               cli_options[id].value, remote->args->command->name);
	*ret = value;
	return RC_OK;
}
