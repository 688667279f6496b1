/* SPDX-License-Identifier: Apache-2.0 */
/* compose.c - the parts of a request. Whatever was typed is escaped where it goes into a path, a query or a body. */
#include "cli/call/compose.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/call/remote.h"

enum { PATH_MAX_BYTES = 16384, AMOUNT_MAX = 1000000000 };
enum { BODY_MAX = 1 << 20 }; /* more than an argument can have, escaped */

struct str compose_path(struct remote *remote, const char *pattern, struct str id)
{
	const char *open = strchr(pattern, '{');
	struct buf  path = BUF(PATH_MAX_BYTES);

	if (!open)
		return str_from(pattern);
	buf_add(&path, pattern, (size_t)(open - pattern));
	fetch_escape(&path, id);
	buf_add_text(&path, strchr(open, '}') + 1);
	return buf_take(&path, &remote->arena);
}

/* --- the value of a field --- */

struct value {
	bool       is_given;
	bool       is_json; /* not text */
	struct str text;
};

static enum rc read_amount(struct remote *remote, const struct compose_field *f, struct value *ret, struct err *e)
{
	const char *typed = remote->args->values[f->option];
	char       *end;
	double      amount = strtod(typed, &end);

	if (*end || end == typed || !(amount > 0 && amount < AMOUNT_MAX))
		return err_set(e, RC_INVALID, "%s must be a number above 0, not '%.40s'", cli_options[f->option].name,
		               typed);
	*ret = (struct value){ true, true, str_format(&remote->arena, "%.15g", amount) };
	return RC_OK;
}

static enum rc read_value(struct remote *remote, const struct compose_field *f, struct value *ret, struct err *e)
{
	const char *typed = remote->args->values[f->option];
	int64_t     number;
	enum rc     rc;

	*ret = (struct value){ .is_given = typed != NULL, .text = str_from(f->text) };
	switch (f->value) {
	case VALUE_NUMBER:
		if ((rc = option_number(remote, f->option, f->min, f->max, f->fallback, &number, e)))
			return rc;
		*ret = (struct value){ number != 0 || typed, true, str_format(&remote->arena, "%" PRId64, number) };
		return RC_OK;
	case VALUE_FIXED: ret->is_given = true; return RC_OK;
	case VALUE_FILE:
		ret->is_given = true;
		return settings_read_file(remote->io, remote->args->operands[0], &remote->arena, &ret->text, e);
	case VALUE_OPERAND:
	case VALUE_SECOND:
		ret->is_given = remote->args->operand_count > (f->value == VALUE_SECOND);
		ret->text = str_from(remote->args->operands[f->value == VALUE_SECOND]);
		return RC_OK;
	default: break;
	}
	if (cli_option_is_in(f->option, remote->args->command->needed)) {
		ret->is_given = true;
		return option_needed(remote, f->option, &ret->text, e);
	}
	if (!typed || f->value == VALUE_WORD)
		return RC_OK;
	ret->is_json = f->value == VALUE_LITERAL;
	if (f->value == VALUE_AMOUNT)
		return read_amount(remote, f, ret, e);
	if (f->value == VALUE_TEXT || f->value == VALUE_FILLED || f->value == VALUE_TIME)
		ret->text = str_from(typed);
	if (f->value == VALUE_FILLED)
		ret->is_given = ret->text.n > 0;
	if (f->value == VALUE_TIME && !iso_time_parse(ret->text, &number))
		return err_set(e, RC_INVALID, "%s must be a time such as 2026-11-15T18:03:43Z, not '%s'",
		               cli_options[f->option].name, typed);
	if (f->value != VALUE_FIRST_LINE)
		return RC_OK;
	rc = settings_read_line(typed, &remote->arena, &ret->text, e);
	ret->is_given = ret->text.n > 0;
	return rc;
}

/* --- queries --- */

static void add_parameter(struct buf *b, bool *is_first, const char *name, struct str value)
{
	buf_addf(b, "%c%s=", *is_first ? '?' : '&', name);
	fetch_escape(b, value);
	*is_first = false;
}

/* Statuses are capitalised or not; people are not that strict. */
static struct str as_written(const struct remote *remote, enum cli_option_id option, struct str typed)
{
	struct str rest = str_from(cli_option_in(remote->args->command, option).words);

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');

		if (str_eq_nocase(word, typed))
			return word;
	}
	return typed;
}

enum rc compose_query(struct remote *remote, struct str path, const struct compose_field *fields, bool is_api,
                      int64_t limit, struct str cursor, struct str *ret, struct err *e)
{
	bool       is_first = !memchr(path.p, '?', path.n);
	enum rc    rc = RC_OK;
	struct buf b = BUF(PATH_MAX_BYTES);

	buf_add_str(&b, path);
	if (limit)
		add_parameter(&b, &is_first, is_api ? "pageSize" : "limit",
		              str_format(&remote->arena, "%" PRId64, limit));
	for (const struct compose_field *f = fields; f && f->name && !rc; f++) {
		struct value v;

		rc = read_value(remote, f, &v, e);
		if (!rc && v.is_given)
			add_parameter(&b, &is_first, f->name, as_written(remote, f->option, v.text));
	}
	if (cursor.n)
		add_parameter(&b, &is_first, is_api ? "pageIdentifier" : "cursor", cursor);
	*ret = buf_take(&b, &remote->arena);
	return rc;
}

/* --- headers and bodies --- */

enum rc compose_headers(struct remote *remote, const struct compose_field *fields, const char **ret, struct err *e)
{
	enum rc      rc = RC_OK;
	struct value v;

	for (const struct compose_field *f = fields; f && f->name && !rc; f++)
		if (!(rc = read_value(remote, f, &v, e)) && v.is_given)
			*ret++ = str_format(&remote->arena, "%s: %.*s", f->name, STR_ARG(v.text)).p;
	return rc;
}

enum rc compose_body(struct remote *remote, const struct compose_field *fields, struct str *ret, struct err *e)
{
	enum rc         rc = RC_OK;
	struct buf      b = BUF(BODY_MAX);
	struct json_out out = JSON_OUT(&b);
	struct str      within = STR(""); /* the object that is open */

	json_open_object(&out);
	for (const struct compose_field *f = fields; f->name && !rc; f++) {
		struct str   name = str_from(f->name), owner = strchr(f->name, '.') ? str_cut(&name, '.') : STR("");
		struct value v;

		if ((rc = read_value(remote, f, &v, e)) || !v.is_given)
			continue;
		if (within.n && !str_eq(owner, within))
			json_close_object(&out);
		if (owner.n && !str_eq(owner, within))
			json_put_object(&out, str_dup(&remote->arena, owner).p);
		within = owner;
		JSON_PUT(&out, v.is_json ? member_raw(name.p, v.text) : member_str(name.p, v.text));
	}
	if (within.n)
		json_close_object(&out);
	json_close_object(&out);
	if (!rc && b.is_full)
		rc = err_set(e, RC_INVALID, "the options together have more than %d bytes", BODY_MAX);
	*ret = buf_take(&b, &remote->arena);
	if (str_eq(*ret, STR("{}")))
		*ret = STR("");
	return rc;
}

/* --- options --- */

enum rc option_number(const struct remote *remote, enum cli_option_id id, int64_t min, int64_t max, int64_t fallback,
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

enum rc option_needed(const struct remote *remote, enum cli_option_id id, struct str *ret, struct err *e)
{
	struct str value = str_trim(str_from(remote->args->values[id]));

	if (!value.n)
		return err_set(e, RC_INVALID, "%s %s is needed; see: leasehold help %s", cli_options[id].name,
		               cli_options[id].value, remote->args->command->name);
	*ret = value;
	return RC_OK;
}
