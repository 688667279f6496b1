/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.c - strict JSON bodies.
 *
 * A body that is not there, is not JSON or says that it is something else is answered with 415 and one error. One that
 * is JSON is read to the end: each member that is missing, of another type, out of its limits or not known is a problem
 * with the path of its field, and all of them are answered at once with 400.
 *
 * null is a value like any other: it is accepted only where it means "none any more".
 *
 * Not here: what is right together with other records (service/), and which members a call has (its handler).
 */
#include "http/api/body.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "http/api/api.h"
#include "http/api/ops.h"

enum { NAME_SHOWN = 64, PATH_SIZE = 128, WHAT_SIZE = 400 };

/* --- the whole --- */

/* "application/json" or "application/x+json", whatever parameters follow; none at all counts as JSON. */
static bool is_json_type(struct str type)
{
	struct str name = str_trim(str_cut(&type, ';'));
	struct str kind = str_cut(&name, '/');

	if (!kind.n)
		return true;
	if (!str_eq_nocase(kind, STR("application")))
		return false;
	return str_eq_nocase(name, STR("json")) ||
	       (name.n > 5 && str_eq_nocase(str_of(name.p + name.n - 5, 5), STR("+json")));
}

/* A number, a text, true ...: JSON, though json_parse() takes only lists and objects. */
static bool is_scalar(struct str text)
{
	CLEANUP(json_freep) json_t *value = NULL;
	struct str                  begin = text;

	while (begin.n && memchr(" \t\r\n", begin.p[0], 4))
		begin = str_skip(begin, 1);
	if (begin.n && (begin.p[0] == '{' || begin.p[0] == '['))
		return false;
	value = json_loadb(text.p, text.n, JSON_DECODE_ANY, NULL);
	return value && !json_is_object(value) && !json_is_array(value);
}

bool body_open(struct request *r, const char *words, struct body *ret)
{
	struct str text = r->call->req.body;
	struct err e = { 0 };
	bool       is_no_json;

	*ret = (struct body){ .request = r, .whole = { ret, NULL, "" }, .problems.arena = &r->call->arena };
	if (!is_json_type(request_header_value(r, STR("Content-Type"))))
		is_no_json = err_set(&e, RC_INVALID, "the body must be JSON, with Content-Type: application/json");
	else if (!text.n)
		is_no_json = err_set(&e, RC_INVALID, "there is no body; send a JSON object");
	else
		is_no_json = !is_scalar(text) && request_json(r, &ret->whole.object, &e);
	if (is_no_json)
		problems_add(&ret->problems, "", "%s", e.msg);
	else if (!json_is_object(ret->whole.object))
		problems_add(&ret->problems, "input", "must be an object");
	if (ret->problems.count) {
		request_fail_all(r, is_no_json ? 415 : 400, &ret->problems);
		return false;
	}
	part_expect(&ret->whole, words);
	return true;
}

void body_close(struct body *b)
{
	json_freep(&b->whole.object);
}

bool body_is_good(struct body *b)
{
	if (b->problems.count == 0)
		return true;
	request_fail_all(b->request, 400, &b->problems);
	return false;
}

/* --- members --- */

enum given part_problem(const struct part *at, const char *name, const char *fmt, ...)
{
	char    field[PATH_SIZE], what[WHAT_SIZE];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, args); /* our own words, and few */
	va_end(args);
	(void)snprintf(field, sizeof(field), "%s%s", at->path, name); /* our own names, and short */
	problems_add(&at->body->problems, field, "%s", what);
	return ABSENT;
}

/* One that is not known is a problem of the object itself: the path without its last dot, or "input". */
void part_expect(const struct part *at, const char *words)
{
	const char *name;
	json_t     *value;
	char        field[PATH_SIZE] = "input";

	if (at->path[0])
		(void)snprintf(field, sizeof(field), "%.*s", (int)strlen(at->path) - 1, at->path); /* fits */
	json_object_foreach(at->object, name, value)
	{
		if (!ops_is_word(words, name))
			problems_add(&at->body->problems, field, "there is no member '%.*s' here", NAME_SHOWN, name);
	}
}

/* The member when there is one to be read; otherwise NULL, and what that means is in *ret. */
static const json_t *find(const struct part *at, const char *name, enum need need, enum given *ret)
{
	const json_t *member = json_object_get(at->object, name);

	*ret = ABSENT;
	if (!member && need == REQUIRED)
		part_problem(at, name, "is required");
	if (!member || !json_is_null(member))
		return member;
	if (need == NULLABLE)
		*ret = CLEARED;
	else
		part_problem(at, name,
		             need == REQUIRED ? "is required and must not be null"
		                              : "must not be null; leave it out instead");
	return NULL;
}

/* Empty when it is no text. */
static struct str text_of(const json_t *member)
{
	return json_is_string(member) ? str_of(json_string_value(member), json_string_length(member)) : STR("");
}

enum given part_text(const struct part *at, const char *name, enum need need, size_t least, size_t most,
                     struct str *ret)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);
	struct str    text = text_of(member);
	size_t        count = 0;

	if (!member)
		return given;
	for (size_t i = 0; i < text.n; i++) /* characters of a text that is known to be UTF-8 */
		count += ((unsigned char)text.p[i] & 0xc0) != 0x80;
	if (!json_is_string(member) || count < least || count > most)
		return part_problem(at, name, "must be a text of %zu to %zu characters", least, most);
	*ret = str_dup(&at->body->request->call->arena, text);
	return GIVEN;
}

enum given part_checked(const struct part *at, const char *name, enum need need, bool (*is_ok)(struct str s),
                        const char *what, struct str *ret)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);

	if (!member)
		return given;
	if (!json_is_string(member) || !is_ok(text_of(member)))
		return part_problem(at, name, "%s", what);
	*ret = str_dup(&at->body->request->call->arena, text_of(member));
	return GIVEN;
}

enum given part_choice(const struct part *at, const char *name, enum need need, const char *const *names, int count,
                       int *ret)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);
	struct str    words = STR("");

	if (!member)
		return given;
	for (int i = 0; i < count; i++) {
		if (json_is_string(member) && str_eq(text_of(member), str_from(names[i]))) {
			*ret = i;
			return GIVEN;
		}
		words = str_format(at->body->problems.arena, "%.*s%s%s", STR_ARG(words), i ? ", " : "", names[i]);
	}
	return part_problem(at, name, "must be one of %.*s", STR_ARG(words));
}

enum given part_bool(const struct part *at, const char *name, enum need need, int64_t *ret)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);

	if (!member)
		return given;
	if (!json_is_boolean(member))
		return part_problem(at, name, "must be true or false");
	*ret = json_is_true(member);
	return GIVEN;
}

enum given part_int(const struct part *at, const char *name, enum need need, int64_t least, int64_t most, int64_t *ret)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);
	double        value = json_number_value(member);

	if (!member)
		return given;
	if (!json_is_number(member) || value < (double)least || value > (double)most || value != floor(value))
		return part_problem(at, name, "must be a whole number from %lld to %lld", (long long)least,
		                    (long long)most);
	*ret = (int64_t)value;
	return GIVEN;
}

enum given part_amount(const struct part *at, const char *name, enum need need, double scale, double most, int64_t *ret)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);
	double        value = json_number_value(member);

	if (!member)
		return given;
	if (!json_is_number(member) || value > most || value * scale < 0.5)
		return part_problem(at, name, "must be a number above 0, at most %.0f", most);
	*ret = llround(value * scale);
	return GIVEN;
}

enum given part_time(const struct part *at, const char *name, enum need need, int64_t *ret_ms)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);
	struct str    text = text_of(member);
	int64_t       sec, ms = 0, unit = 100;

	if (!member)
		return given;
	if (!text.n || text.p[text.n - 1] != 'Z' || !iso_time_parse(text, &sec) || sec <= 0)
		return part_problem(at, name,
		                    "must be a time such as 2026-11-30T18:00:00Z, in UTC with a Z at its end");
	for (size_t i = 20; i < text.n && text.p[19] == '.' && text.p[i] >= '0' && text.p[i] <= '9'; i++, unit /= 10)
		ms += (text.p[i] - '0') * unit; /* the fraction of "....:SS[.fraction]Z" */
	*ret_ms = sec * 1000 + ms;
	return GIVEN;
}

enum given part_list(const struct part *at, const char *name, enum need need, size_t most, const json_t **ret)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);

	if (!member)
		return given;
	if (!json_is_array(member) || json_array_size(member) > most)
		return part_problem(at, name, "must be a list of at most %zu", most);
	*ret = member;
	return GIVEN;
}

void part_any_object(const struct part *at, const char *name, json_t **ret)
{
	json_t *member = json_object_get(at->object, name);

	*ret = json_is_object(member) ? member : NULL;
	if (member && !*ret)
		part_problem(at, name, "must be an object");
}
