/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.c - a YAML document as a JSON value.
 *
 * libyaml reads the text as a stream of events; here they become values. Only what means the same to every reader is
 * accepted. Refused are aliases (a short text can stand for a very long one), tags (types that we do not have),
 * duplicate keys (one would be lost), keys that are not text, and more than one document. Words of older versions of
 * YAML (yes, no, on, off) are text [resolve()].
 *
 * Always true: one level of a mapping or list is one level of add_value(), at most YAML_DEPTH_MAX; memory grows with
 * the length of the text alone.
 */
#include "base/yaml.h"

#include <math.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/buf.h"
#include "base/json.h"

struct reader {
	yaml_parser_t parser;
	struct err   *e;
};

/* --- scalars --- */

static size_t digits_at(struct str s, size_t at)
{
	size_t n = 0;

	while (at + n < s.n && s.p[at + n] >= '0' && s.p[at + n] <= '9')
		n++;
	return n;
}

/* As JSON writes numbers: no plus, no leading zero, no bare point. */
static bool is_number(struct str s, bool *ret_is_whole)
{
	size_t at = s.n && s.p[0] == '-', n = digits_at(s, at);

	if (n == 0 || (n > 1 && s.p[at] == '0'))
		return false;
	at += n;
	*ret_is_whole = at == s.n;
	if (at < s.n && s.p[at] == '.') {
		n = digits_at(s, ++at);
		if (n == 0)
			return false;
		at += n;
	}
	if (at < s.n && (s.p[at] == 'e' || s.p[at] == 'E')) {
		at++;
		at += at < s.n && (s.p[at] == '+' || s.p[at] == '-');
		n = digits_at(s, at);
		if (n == 0)
			return false;
		at += n;
	}
	return at == s.n;
}

/* NULL: too large, which makes it a text. */
static json_t *number_value(struct str s, bool is_whole)
{
	int64_t whole;
	double  real;

	if (is_whole)
		return str_to_int(s, INT64_MIN, INT64_MAX, &whole) ? json_integer(whole) : NULL;
	real = strtod(s.p, NULL); /* libyaml ends it with a NUL */
	return isfinite(real) ? json_real(real) : NULL;
}

/* What a scalar without quotes is; NULL: text. */
static json_t *resolve(struct str s)
{
	bool is_whole = false;

	if (!s.n || str_is_word_of(s, "~ null Null NULL"))
		return json_null();
	if (str_is_word_of(s, "true True TRUE"))
		return json_true();
	if (str_is_word_of(s, "false False FALSE"))
		return json_false();
	return is_number(s, &is_whole) ? number_value(s, is_whole) : NULL;
}

/* --- events --- */

static enum rc refuse(struct reader *r, const yaml_mark_t *at, const char *why)
{
	return err_set(r->e, RC_INVALID, "not valid YAML at line %zu column %zu: %s", at->line + 1, at->column + 1,
	               why);
}

static enum rc next_event(struct reader *r, yaml_event_t *ret)
{
	if (yaml_parser_parse(&r->parser, ret))
		return RC_OK;
	return refuse(r, &r->parser.problem_mark, r->parser.problem ? r->parser.problem : "it cannot be read");
}

static const char *decoration_of(const yaml_event_t *event)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	switch (event->type) {
	case YAML_ALIAS_EVENT: return "aliases (*name) are not accepted; write the value out";
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		break;
	default: break;
	}
	if (anchor)
		return "anchors (&name) are not accepted; write the value out";
	return tag ? "tags (!name) are not accepted; the type of a value follows from its form" : NULL;
}

static enum rc add_value(struct reader *r, const yaml_event_t *event, int depth, json_t **ret);

static enum rc add_scalar(struct reader *r, const yaml_event_t *event, json_t **ret)
{
	struct str s = str_of((const char *)event->data.scalar.value, event->data.scalar.length);
	json_t    *value = NULL;

	if (memchr(s.p, '\0', s.n))
		return refuse(r, &event->start_mark, "a text with the character NUL");
	if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		value = resolve(s);
	if (!value)
		value = json_stringn(s.p, s.n);
	if (!value)
		return refuse(r, &event->start_mark, "a text that is not valid UTF-8");
	*ret = value;
	return RC_OK;
}

/* The event is the key; its value comes next. */
static enum rc add_member(struct reader *r, const yaml_event_t *event, int depth, json_t *object)
{
	const char  *why = decoration_of(event), *name;
	yaml_event_t next;
	json_t      *value = NULL;
	enum rc      rc;

	if (why)
		return refuse(r, &event->start_mark, why);
	if (event->type != YAML_SCALAR_EVENT)
		return refuse(r, &event->start_mark, "a key must be a text");
	name = (const char *)event->data.scalar.value;
	if (strlen(name) != event->data.scalar.length)
		return refuse(r, &event->start_mark, "a key with the character NUL");
	if (json_object_get(object, name))
		return err_set(r->e, RC_INVALID, "not valid YAML at line %zu: the key '%.40s' appears twice",
		               event->start_mark.line + 1, name);
	if ((rc = next_event(r, &next)))
		return rc;
	if (!(rc = add_value(r, &next, depth, &value)) && json_object_set_new(object, name, value))
		rc = refuse(r, &event->start_mark, "a key that is not valid UTF-8");
	yaml_event_delete(&next);
	return rc;
}

/* The items of a list, or the members of a mapping, up to its end. */
static enum rc add_children(struct reader *r, bool is_list, int depth, json_t **ret)
{
	CLEANUP(json_freep) json_t *parent = is_list ? json_array() : json_object();
	yaml_event_type_t           end = is_list ? YAML_SEQUENCE_END_EVENT : YAML_MAPPING_END_EVENT;
	enum rc                     rc = RC_OK;
	bool                        is_over = false;

	while (!rc && !is_over) {
		yaml_event_t event;
		json_t      *value = NULL;

		if ((rc = next_event(r, &event)))
			return rc;
		is_over = event.type == end;
		if (!is_over && !is_list)
			rc = add_member(r, &event, depth, parent);
		else if (!is_over && !(rc = add_value(r, &event, depth, &value)))
			json_array_append_new(parent, value);
		yaml_event_delete(&event);
	}
	if (!rc)
		*ret = TAKE(parent);
	return rc;
}

/* The value that begins with this event, and all that is in it. */
static enum rc add_value(struct reader *r, const yaml_event_t *event, int depth, json_t **ret)
{
	const char *why = decoration_of(event);

	if (why)
		return refuse(r, &event->start_mark, why);
	if (event->type == YAML_SCALAR_EVENT)
		return add_scalar(r, event, ret);
	if (depth >= YAML_DEPTH_MAX)
		return err_set(r->e, RC_INVALID, "YAML at line %zu is nested deeper than %d levels",
		               event->start_mark.line + 1, YAML_DEPTH_MAX);
	return add_children(r, event->type == YAML_SEQUENCE_START_EVENT, depth + 1, ret);
}

/* --- the document --- */

/* Behind the value: the end of the document and of the text. */
static enum rc expect_end(struct reader *r)
{
	static const yaml_event_type_t wanted[] = { YAML_DOCUMENT_END_EVENT, YAML_STREAM_END_EVENT };

	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		yaml_event_t event;
		enum rc      rc = next_event(r, &event);

		if (rc)
			return rc;
		if (event.type != wanted[i])
			rc = refuse(r, &event.start_mark, "only one document is accepted");
		yaml_event_delete(&event);
		if (rc)
			return rc;
	}
	return RC_OK;
}

static enum rc read_document(struct reader *r, json_t **ret)
{
	CLEANUP(json_freep) json_t *value = NULL;
	enum rc                     rc = RC_OK;
	bool                        is_found = false;

	while (!rc && !is_found) {
		yaml_event_t event;

		if ((rc = next_event(r, &event)))
			return rc;
		if (event.type == YAML_STREAM_END_EVENT)
			value = json_null(), is_found = true;
		else if (event.type != YAML_STREAM_START_EVENT && event.type != YAML_DOCUMENT_START_EVENT)
			rc = add_value(r, &event, 0, &value), is_found = true;
		if (is_found && !rc && event.type != YAML_STREAM_END_EVENT)
			rc = expect_end(r);
		yaml_event_delete(&event);
	}
	if (!rc)
		*ret = TAKE(value);
	return rc;
}

enum rc yaml_parse(struct str text, json_t **ret, struct err *e)
{
	struct reader r = { .e = e };
	enum rc       rc;

	if (text.n > YAML_BYTES_MAX)
		return err_set(e, RC_INVALID, "YAML of %zu bytes; at most %d are accepted", text.n, YAML_BYTES_MAX);
	if (!yaml_parser_initialize(&r.parser))
		abort(); /* fails only without memory */
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.p ? text.p : ""), text.n);
	rc = read_document(&r, ret);
	yaml_parser_delete(&r.parser);
	return rc;
}

/* Between two neighbours, as in a document: there a line break of any kind shows. */
static bool is_read_back(struct str text)
{
	CLEANUP(json_freep) json_t  *value = NULL;
	const json_t                *item = NULL;
	CLEANUP(buf_fini) struct buf b = BUF(YAML_BYTES_MAX);

	buf_addf(&b, "a:\n- %.*s\n- x\n", STR_ARG(text));
	if (!b.is_full && yaml_parse(buf_str(&b), &value, NULL) == RC_OK &&
	    json_array_size(json_object_get(value, "a")) == 2)
		item = json_array_get(json_object_get(value, "a"), 0);
	return json_is_string(item) && str_eq(text, str_of(json_string_value(item), json_string_length(item)));
}

bool yaml_is_plain(struct str text)
{
	static const char old_words[] = "yes Yes YES no No NO on On ON off Off OFF y Y n N";

	if (!text.n || str_is_word_of(text, old_words) || (text.p[0] >= '0' && text.p[0] <= '9'))
		return false;
	if (str_starts_with(text, STR("---")) || str_starts_with(text, STR("...")))
		return false;
	for (size_t i = 0; i < text.n; i++)
		if (strchr(",[]{}#\"'\\", text.p[i]) || (unsigned char)text.p[i] < ' ')
			return false;
	return is_read_back(text);
}
