/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.c - strict JSON bodies.
 *
 * A body that is not there, is not JSON or says that it is something else is answered with 415 and one error. One that is JSON is read to the
 * end: each member that is missing, of another type, out of its limits or not known is a problem with the path of its field, and all of
 * them are answered at once with 400.
 *
 * null is a value like any other: it is accepted only where it means "none any more".
 *
 * Not here: what is right together with other records (service/), and which members a call has (its handler).
 */
#include "http/body.h"

#include <math.h>

#include "base/clock.h"
#include "http/api.h"
#include "http/jsend.h"

enum { NAME_SHOWN = 64, PATH_SIZE = 128 };

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
	CLEANUP(json_freep) json_t *value = json_loadb(text.p, text.n, JSON_DECODE_ANY, NULL);

	return value && !json_is_object(value) && !json_is_array(value);
}

/* *ret stays NULL for JSON that has no members. */
static enum rc parse(struct request *r, json_t **ret, struct err *e)
{
	if (!is_json_type(request_header_value(r, STR("Content-Type"))))
		return err_set(e, RC_INVALID, "the body must be JSON, with Content-Type: application/json");
	if (!r->call->req.body.n)
		return err_set(e, RC_INVALID, "there is no body; send a JSON object");
	return is_scalar(r->call->req.body) ? RC_OK : json_parse(r->call->req.body, ret, e);
}

bool body_open(struct request *r, struct body *ret)
{
	struct err e = { 0 };
	int        status = 400;

	ret->request = r;
	ret->root = NULL;
	ret->problems.arena = &r->call->arena;
	ret->problems.count = 0;
	if (parse(r, &ret->root, &e)) {
		status = 415;
		problems_add(&ret->problems, "", "%s", e.msg);
	} else if (!json_is_object(ret->root)) {
		problems_add(&ret->problems, "input", "must be an object");
	}
	if (ret->problems.count)
		jsend_refuse(r, status, &ret->problems);
	return ret->problems.count == 0;
}

void body_close(struct body *b)
{
	json_freep(&b->root);
}

bool body_is_good(struct body *b)
{
	if (b->problems.count == 0)
		return true;
	jsend_refuse(b->request, 400, &b->problems);
	return false;
}

struct part body_whole(struct body *b)
{
	return (struct part){ .body = b, .object = b->root, .path = "" };
}

/* --- members --- */

void part_problem(const struct part *at, const char *name, const char *what)
{
	char field[PATH_SIZE];

	(void)snprintf(field, sizeof(field), "%s%s", at->path, name); /* our own names, and short */
	problems_add(&at->body->problems, field, "%s", what);
}

/* That is a problem of the object itself: the path without its last dot, or "input". */
static void unknown_member(const struct part *at, const char *name)
{
	char field[PATH_SIZE];
	int  n = snprintf(field, sizeof(field), "%s", at->path[0] ? at->path : "input");

	if (at->path[0] && n > 0 && (size_t)n < sizeof(field))
		field[n - 1] = 0;
	problems_add(&at->body->problems, field, "there is no member '%.*s' here", NAME_SHOWN, name);
}

void part_expect(const struct part *at, const char *words)
{
	const char *name;
	json_t     *value;

	json_object_foreach(at->object, name, value)
	{
		struct str rest = str_from(words);
		bool       is_known = false;

		while (rest.n)
			is_known = str_eq(str_cut(&rest, ' '), str_from(name)) || is_known;
		if (!is_known)
			unknown_member(at, name);
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

static struct str text_of(const json_t *member)
{
	return str_of(json_string_value(member), json_string_length(member));
}

/* Characters of a text that is known to be UTF-8. */
static size_t count_characters(struct str text)
{
	size_t count = 0;

	for (size_t i = 0; i < text.n; i++)
		count += ((unsigned char)text.p[i] & 0xc0) != 0x80;
	return count;
}

static bool is_within(const json_t *member, size_t least, size_t most)
{
	size_t count = json_is_string(member) ? count_characters(text_of(member)) : 0;

	return json_is_string(member) && count >= least && count <= most;
}

enum given part_text(const struct part *at, const char *name, enum need need, size_t least, size_t most,
                     struct str *ret)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);
	char          what[80];

	if (!member)
		return given;
	if (is_within(member, least, most)) {
		*ret = str_dup(&at->body->request->call->arena, text_of(member));
		return GIVEN;
	}
	(void)snprintf(what, sizeof(what), "must be a text of %zu to %zu characters", least, most); /* fits */
	part_problem(at, name, what);
	return ABSENT;
}

enum given part_checked(const struct part *at, const char *name, enum need need, bool (*is_ok)(struct str s),
                        const char *what, struct str *ret)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);

	if (!member)
		return given;
	if (json_is_string(member) && is_ok(text_of(member))) {
		*ret = str_dup(&at->body->request->call->arena, text_of(member));
		return GIVEN;
	}
	part_problem(at, name, what);
	return ABSENT;
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
	part_problem(at, name, str_format(at->body->problems.arena, "must be one of %.*s", STR_ARG(words)).p);
	return ABSENT;
}

enum given part_bool(const struct part *at, const char *name, enum need need, int64_t *ret)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);

	if (!member)
		return given;
	if (!json_is_boolean(member)) {
		part_problem(at, name, "must be true or false");
		return ABSENT;
	}
	*ret = json_is_true(member);
	return GIVEN;
}

enum given part_int(const struct part *at, const char *name, enum need need, int64_t least, int64_t most, int64_t *ret)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);
	double        value = json_number_value(member);
	char          what[80];

	if (!member)
		return given;
	if (json_is_number(member) && value >= (double)least && value <= (double)most && value == floor(value)) {
		*ret = (int64_t)value;
		return GIVEN;
	}
	(void)snprintf(what, sizeof(what), "must be a whole number from %lld to %lld", (long long)least,
	               (long long)most); /* fits */
	part_problem(at, name, what);
	return ABSENT;
}

enum given part_amount(const struct part *at, const char *name, enum need need, double scale, double most, int64_t *ret)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);
	double        value = json_number_value(member);
	char          what[80];

	if (!member)
		return given;
	if (json_is_number(member) && value <= most && value * scale >= 0.5) {
		*ret = llround(value * scale);
		return GIVEN;
	}
	(void)snprintf(what, sizeof(what), "must be a number above 0, at most %.0f", most); /* fits */
	part_problem(at, name, what);
	return ABSENT;
}

/* Milliseconds of "....:SS[.fraction]Z". */
static int64_t read_fraction(struct str text)
{
	int64_t ms = 0, unit = 100;

	for (size_t i = 20; i < text.n && text.p[19] == '.' && text.p[i] >= '0' && text.p[i] <= '9'; i++, unit /= 10)
		ms += (text.p[i] - '0') * unit;
	return ms;
}

enum given part_time(const struct part *at, const char *name, enum need need, int64_t *ret_ms)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);
	struct str    text;
	int64_t       sec;

	if (!member)
		return given;
	text = json_is_string(member) ? text_of(member) : STR("");
	if (text.n && text.p[text.n - 1] == 'Z' && iso_time_parse(text, &sec) && sec > 0) {
		*ret_ms = sec * 1000 + read_fraction(text);
		return GIVEN;
	}
	part_problem(at, name, "must be a time such as 2026-11-30T18:00:00Z, in UTC with a Z at its end");
	return ABSENT;
}

enum given part_list(const struct part *at, const char *name, enum need need, size_t most, const json_t **ret)
{
	enum given    given;
	const json_t *member = find(at, name, need, &given);
	char          what[80];

	if (!member)
		return given;
	if (json_is_array(member) && json_array_size(member) <= most) {
		*ret = member;
		return GIVEN;
	}
	(void)snprintf(what, sizeof(what), "must be a list of at most %zu", most); /* fits */
	part_problem(at, name, what);
	return ABSENT;
}

void part_any_object(const struct part *at, const char *name, json_t **ret)
{
	json_t *member = json_object_get(at->object, name);

	*ret = NULL;
	if (member && !json_is_object(member))
		part_problem(at, name, "must be an object");
	else
		*ret = member;
}
