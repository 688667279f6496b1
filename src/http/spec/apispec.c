/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apispec.c - reads routes.def, params.def and schemas.def for those who describe the API.
 *
 * The tables are written for people, so some cells are small languages: "201:Allocation 409:Error" is a list of
 * replies, "name:s? jobs:[Job]" a list of members. All reading of these languages is here; test_openapi.c reads every
 * row, so a mistake in a table fails there and not in front of a caller.
 *
 * Not here: what a route does (the handlers), and the shape of any output.
 */
#include "http/spec/apispec.h"
#include "domain/sandbox.h"

#include "http/api/body.h"
#include "http/api/ops.h"
#include "kernel/edge/intake.h"

/* The states of a sandbox in the tables, as words of which a value is one, and as members with a number each. A bar
 * behind the last word does no harm. */
#define STATE_WORD(name, text)   text "|"
#define STATE_NUMBER(name, text) text ":i "

const struct spec_param spec_params[] = {
#define PARAM(id, name, where, type, least, most, is_required, description) \
	{ id, name, where, type, least, most, is_required, description },
#include "http/spec/params.def"
#undef PARAM
};
const size_t spec_param_count = ARRAY_LEN(spec_params);

const struct spec_schema spec_schemas[] = {
#define SCHEMA(name, members) { name, members },
#include "http/spec/schemas.def"
#undef SCHEMA
};
const size_t spec_schema_count = ARRAY_LEN(spec_schemas);

static const struct spec_body bodies[] = {
#define BODY(route, schema, bytes, need, description) \
	{ #route, NULL, description, 0, (need) == REQUIRED, schema, bytes },
#define REASON(route, most, need, description) { #route, "reason", description, most, (need) == REQUIRED, NULL, 0 },
#include "http/spec/bodies.def"
#undef BODY
#undef REASON
};

/* By scope: what can happen to any call. */
static const char *const scope_errors[] = {
	[SCOPE_PUBLIC] = "400:Error 405:Error 413:Error 500:Error",
	[SCOPE_PROBE] = "400:Error 405:Error 413:Error 500:Error",
	[SCOPE_TRACK] = "400:Error 401:Error 403:Error 405:Error 413:Error 429:Error 500:Error 503:Error",
	[SCOPE_ADMIN] = "400:Error 401:Error 403:Error 405:Error 413:Error 429:Error 500:Error 503:Error",
	[SCOPE_INBOX] = "400:Error 401:Error 403:Error 405:Error 413:Error 429:Error 500:Error 503:Error",
	[SCOPE_SESSION] = "400:Fail 401:Fail 403:Fail 413:Error 429:Fail 500:Failure 503:Failure",
};

static const struct {
	int         status;
	const char *text;
} statuses[] = {
	{ 200, "Done." },
	{ 201, "Newly claimed, or created." },
	{ 202, "Accepted, or still running; GET admin/jobs shows how a job ended." },
	{ 302, "Go to the address in the Location header." },
	{ 400, "A parameter is missing, malformed, out of range or unknown; or there is a body where none is taken." },
	{ 401, "No token, or an unknown one." },
	{ 403, "The token or the track may not do this." },
	{ 404, "Not found." },
	{ 405, "Wrong method; the Allow header lists the right ones." },
	{ 409, "The state does not allow it, or no sandbox is free." },
	{ 413, "The body is larger than this call takes: 4096 bytes, webhooks 16384, documents 262144, "
	       "the inbox 1048576 with a valid token." },
	{ 415, "The body is missing, is not JSON, or says that it is something else." },
	{ 422, "Understood, but not possible now: the state does not allow it, or an operation is in progress." },
	{ 429, "Too many requests; Retry-After says when to try again." },
	{ 500, "Something went wrong here; the log has the details under the request_id." },
	{ 503, "Not available now; the message says why." },
};

/* The word with this number, or an empty one. */
static struct str word_at(const char *words, size_t number)
{
	struct str rest = str_from(words);
	struct str word = str_cut(&rest, ' ');

	while (number-- > 0)
		word = str_cut(&rest, ' ');
	return word;
}

/* What the braces of a path name, "{base}" apart. */
static struct str path_param_at(const char *path, size_t number)
{
	struct str rest = str_from(path), name;

	(void)str_cut(&rest, '{'); /* what is before the first brace */
	while (rest.n) {
		name = str_cut(&rest, '}');
		(void)str_cut(&rest, '{'); /* what is between two */
		if (!str_eq(name, STR("base")) && number-- == 0)
			return name;
	}
	return STR("");
}

bool spec_next_param(const struct api_route *route, size_t *at, const struct spec_param **ret)
{
	size_t     in_path = 0;
	struct str id;

	while (path_param_at(route->path, in_path).n)
		in_path++;
	id = *at < in_path ? path_param_at(route->path, *at) : word_at(route->params, *at - in_path);
	if (!id.n)
		return false;
	*ret = NULL;
	for (size_t i = 0; i < spec_param_count && !*ret; i++)
		if (str_eq(id, str_from(spec_params[i].id)))
			*ret = &spec_params[i];
	++*at;
	return true;
}

static struct spec_reply read_reply(struct str text)
{
	struct str digits = str_cut(&text, ':');
	int64_t    status = 0;

	if (!str_to_int(digits, 100, 599, &status))
		status = 0; /* no status: the test of the tables finds it */
	return (struct spec_reply){ (int)status, text };
}

static bool has_reply(struct str replies, int status)
{
	while (replies.n)
		if (read_reply(str_cut(&replies, ' ')).status == status)
			return true;
	return false;
}

/* First the route's own, then those of its scope; *at counts the bytes of both. */
bool spec_next_reply(const struct api_route *route, size_t *at, struct spec_reply *ret)
{
	struct str own = str_from(route->replies), shared = str_from(scope_errors[route->scope]);

	while (*at < own.n + shared.n) {
		bool       is_own = *at < own.n;
		struct str rest = is_own ? str_skip(own, *at) : str_skip(shared, *at - own.n);
		size_t     left = rest.n;

		*ret = read_reply(str_cut(&rest, ' '));
		*at += left - rest.n;
		if (is_own || !has_reply(own, ret->status))
			return true;
	}
	return false;
}

/* "s", "[X]", "{X}" or "=word". */
static bool read_type(struct str type, struct spec_member *ret)
{
	static const char letters[] = {
		[SPEC_TEXT] = 's', [SPEC_INTEGER] = 'i', [SPEC_BOOLEAN] = 'b', [SPEC_NUMBER] = 'n'
	};
	char last = type.n ? type.p[type.n - 1] : 0;

	if (type.n > 1 && type.p[0] == '=') {
		ret->kind = SPEC_WORD;
		ret->of = str_of(type.p + 1, type.n - 1);
		return true;
	}
	if (type.n > 2 && ((type.p[0] == '[' && last == ']') || (type.p[0] == '{' && last == '}'))) {
		ret->kind = last == ']' ? SPEC_LIST : SPEC_OBJECT;
		ret->of = str_of(type.p + 1, type.n - 2);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(letters); i++)
		if (type.n == 1 && type.p[0] == letters[i]) {
			ret->kind = (enum spec_kind)i;
			return true;
		}
	return false;
}

bool spec_next_member(struct str *rest, struct spec_member *ret)
{
	struct str after = *rest;
	struct str type = str_cut(&after, ' ');

	*ret = (struct spec_member){ .name = str_cut(&type, ':') };
	if (type.n && type.p[type.n - 1] == '?') {
		ret->is_nullable = true;
		type.n--;
	}
	if (!ret->name.n || !read_type(type, ret))
		return false;
	*rest = after;
	return true;
}

enum spec_shape spec_shape(const struct spec_schema *schema, struct str *ret_choices)
{
	bool is_words = schema->members[0] == '=';
	bool is_one_of = schema->members[0] == '|';

	*ret_choices = is_words || is_one_of ? str_from(schema->members + 1) : STR("");
	if (is_words)
		return SPEC_WORDS;
	return is_one_of ? SPEC_ONE_OF : SPEC_MEMBERS;
}

bool spec_is_any(const struct spec_member *m)
{
	return str_eq(m->name, STR("*"));
}

const struct spec_body *spec_find_body(const struct api_route *route)
{
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		if (strcmp(bodies[i].route, route->name) == 0)
			return &bodies[i];
	return NULL;
}

size_t spec_body_max(const struct api_route *route)
{
	const struct spec_body *body = spec_find_body(route);

	return body && body->bytes_most ? body->bytes_most : SPEC_BODY_MAX;
}

const char *spec_status_text(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (statuses[i].status == status)
			return statuses[i].text;
	return "";
}

const char *spec_media_type(struct str schema)
{
	static const struct {
		struct str  schema;
		const char *type;
	} texts[] = {
		{ STR_INIT("Text"), "text/plain" },
		{ STR_INIT("Page"), "text/html" },
		{ STR_INIT("Csv"), "text/csv" },
		{ STR_INIT("JsonLines"), "application/x-ndjson" },
		{ STR_INIT("EventStream"), "text/event-stream" },
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (str_eq(schema, texts[i].schema))
			return texts[i].type;
	return "application/json";
}

bool spec_is_plain_text(struct str schema)
{
	return strcmp(spec_media_type(schema), "application/json") != 0;
}
