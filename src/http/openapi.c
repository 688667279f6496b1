/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openapi.c - the tables of apispec.h as an OpenAPI 3.1 document.
 *
 * Every operation says itself who may call it and what it can answer; what many share (schemas, tokens, error replies) is
 * under "components" and referred to. A member that may be null is not "required": some replies leave it out.
 *
 * Not here: texts about what calls mean beyond one line; those are in docs/broker.md.
 */
#include "http/openapi.h"

#include "base/arena.h"
#include "base/json.h"
#include "http/apispec.h"

enum { ERROR_STATUS_FROM = 400, RETRY_AFTER_LEAST = 1 };

struct writer {
	struct json_out o;
	struct arena    arena; /* names that must end with a NUL */
	struct str      base;
};

static const char *format_ref(struct writer *w, const char *kind, struct str name)
{
	return str_format(&w->arena, "#/components/%s/%.*s", kind, STR_ARG(name)).p;
}

static void put_ref(struct writer *w, const char *kind, struct str name)
{
	json_put_str(&w->o, "$ref", str_from(format_ref(w, kind, name)));
}

/* "{base}/a/{b}" with the base path put in. */
static struct str full_path(struct writer *w, const char *path)
{
	struct str rest = str_from(path);

	if (!str_starts_with(rest, STR("{base}")))
		return rest;
	return str_format(&w->arena, "%.*s%s", STR_ARG(w->base), path + strlen("{base}"));
}

/* --- schemas --- */

/* Its "type": one name, or with null a list of two. */
static void put_type(struct writer *w, const char *type, bool is_nullable)
{
	if (!is_nullable) {
		json_put_str(&w->o, "type", str_from(type));
		return;
	}
	json_put_array(&w->o, "type");
	json_add_str(&w->o, str_from(type));
	json_add_str(&w->o, STR("null"));
	json_close_array(&w->o);
}

static void put_object_ref(struct writer *w, const struct spec_member *m)
{
	if (!m->is_nullable) {
		put_ref(w, "schemas", m->of);
		return;
	}
	json_put_array(&w->o, "anyOf");
	json_open_object(&w->o);
	put_ref(w, "schemas", m->of);
	json_close_object(&w->o);
	json_open_object(&w->o);
	put_type(w, "null", false);
	json_close_object(&w->o);
	json_close_array(&w->o);
}

static void put_member(struct writer *w, const struct spec_member *m)
{
	static const char *const types[] = {
		[SPEC_TEXT] = "string",   [SPEC_INTEGER] = "integer", [SPEC_BOOLEAN] = "boolean",
		[SPEC_NUMBER] = "number", [SPEC_LIST] = "array",      [SPEC_WORD] = "string"
	};

	json_put_object(&w->o, spec_is_any(m) ? "additionalProperties" : str_dup(&w->arena, m->name).p);
	if (m->kind == SPEC_OBJECT)
		put_object_ref(w, m);
	else
		put_type(w, types[m->kind], m->is_nullable);
	if (m->kind == SPEC_LIST) {
		json_put_object(&w->o, "items");
		put_ref(w, "schemas", m->of);
		json_close_object(&w->o);
	}
	if (m->kind == SPEC_WORD)
		json_put_str(&w->o, "const", m->of);
	json_close_object(&w->o);
}

static void put_required(struct writer *w, const char *members)
{
	struct str         rest = str_from(members);
	struct spec_member m;

	json_put_array(&w->o, "required");
	while (spec_next_member(&rest, &m))
		if (!m.is_nullable && !spec_is_any(&m))
			json_add_str(&w->o, m.name);
	json_close_array(&w->o);
}

static void put_words(struct writer *w, struct str words)
{
	put_type(w, "string", false);
	json_put_array(&w->o, "enum");
	while (words.n)
		json_add_str(&w->o, str_cut(&words, '|'));
	json_close_array(&w->o);
}

static void put_one_of(struct writer *w, struct str names)
{
	json_put_array(&w->o, "oneOf");
	while (names.n) {
		json_open_object(&w->o);
		put_ref(w, "schemas", str_cut(&names, '|'));
		json_close_object(&w->o);
	}
	json_close_array(&w->o);
}

/* Members with names are properties; the one that stands for any comes beside them. */
static void put_members(struct writer *w, const char *members)
{
	struct str         rest = str_from(members);
	struct spec_member m, any = { 0 };

	json_put_object(&w->o, "properties");
	while (spec_next_member(&rest, &m)) {
		if (spec_is_any(&m))
			any = m;
		else
			put_member(w, &m);
	}
	json_close_object(&w->o);
	if (any.name.n)
		put_member(w, &any);
	put_required(w, members);
}

static const char *type_of(const struct spec_schema *schema)
{
	if (strcmp(schema->name, "List") == 0)
		return "array";
	return spec_is_plain_text(str_from(schema->name)) ? "string" : "object";
}

static void put_schema(struct writer *w, const struct spec_schema *schema)
{
	struct str choices;

	json_put_object(&w->o, schema->name);
	switch (spec_shape(schema, &choices)) {
	case SPEC_WORDS: put_words(w, choices); break;
	case SPEC_ONE_OF: put_one_of(w, choices); break;
	case SPEC_MEMBERS:
		put_type(w, type_of(schema), false);
		if (schema->members[0])
			put_members(w, schema->members);
		break;
	}
	json_close_object(&w->o);
}

/* --- parameters and bodies --- */

static void put_param_schema(struct writer *w, const struct spec_param *p)
{
	struct str type = str_from(p->type);
	bool       is_text = str_eq(type, STR("string"));

	json_put_object(&w->o, "schema");
	if (strchr(p->type, '|')) {
		put_words(w, type);
	} else {
		put_type(w, p->type, false);
		json_put_int(&w->o, is_text ? "minLength" : "minimum", p->least);
		json_put_int(&w->o, is_text ? "maxLength" : "maximum", p->most);
	}
	json_close_object(&w->o);
}

static void put_params(struct writer *w, const struct api_route *route)
{
	const struct spec_param *p;
	size_t                   at = 0;

	json_put_array(&w->o, "parameters");
	while (spec_next_param(route, &at, &p)) {
		if (!p)
			continue;
		json_open_object(&w->o);
		json_put_str(&w->o, "name", str_from(p->name));
		json_put_str(&w->o, "in", str_from(p->where));
		json_put_bool(&w->o, "required", p->is_required);
		json_put_str(&w->o, "description", str_from(p->description));
		put_param_schema(w, p);
		json_close_object(&w->o);
	}
	json_close_array(&w->o);
}

static void open_content(struct writer *w, const char *type)
{
	json_put_object(&w->o, "content");
	json_put_object(&w->o, type);
	json_put_object(&w->o, "schema");
}

static void close_content(struct writer *w)
{
	json_close_object(&w->o);
	json_close_object(&w->o);
	json_close_object(&w->o);
}

/* An object with one text. */
static void put_body_member(struct writer *w, const struct spec_body *body)
{
	put_type(w, "object", false);
	json_put_object(&w->o, "properties");
	json_put_object(&w->o, body->member);
	put_type(w, "string", !body->is_required);
	json_put_int(&w->o, "maxLength", body->most);
	json_put_str(&w->o, "description", str_from(body->description));
	json_close_object(&w->o);
	json_close_object(&w->o);
	json_put_bool(&w->o, "additionalProperties", false);
}

static void put_body(struct writer *w, const struct spec_body *body)
{
	json_put_object(&w->o, "requestBody");
	json_put_bool(&w->o, "required", body->is_required);
	if (body->schema)
		json_put_str(&w->o, "description", str_from(body->description));
	open_content(w, "application/json");
	if (body->schema)
		put_ref(w, "schemas", str_from(body->schema));
	else
		put_body_member(w, body);
	close_content(w);
	json_close_object(&w->o);
}

/* --- replies --- */

static const char *status_name(struct writer *w, int status)
{
	return str_format(&w->arena, "%d", status).p;
}

static struct str error_name(struct writer *w, int status)
{
	return str_format(&w->arena, "Error%d", status);
}

static bool is_error(const struct spec_reply *reply)
{
	return str_eq(reply->schema, STR("Error"));
}

static void put_replies(struct writer *w, const struct api_route *route)
{
	struct spec_reply reply;
	size_t            at = 0;

	json_put_object(&w->o, "responses");
	while (spec_next_reply(route, &at, &reply)) {
		json_put_object(&w->o, status_name(w, reply.status));
		if (is_error(&reply)) {
			put_ref(w, "responses", error_name(w, reply.status));
		} else {
			json_put_str(&w->o, "description", str_from(spec_status_text(reply.status)));
			open_content(w, spec_media_type(reply.schema));
			put_ref(w, "schemas", reply.schema);
			close_content(w);
		}
		json_close_object(&w->o);
	}
	json_close_object(&w->o);
}

/* With a status that a client may wait out comes when to try again. */
static void put_retry_after(struct writer *w)
{
	json_put_object(&w->o, "headers");
	json_put_object(&w->o, "Retry-After");
	json_put_str(&w->o, "description",
	             STR("Seconds until another attempt makes sense; also retry_after in the body."));
	json_put_object(&w->o, "schema");
	put_type(w, "integer", false);
	json_put_int(&w->o, "minimum", RETRY_AFTER_LEAST);
	json_close_object(&w->o);
	json_close_object(&w->o);
	json_close_object(&w->o);
}

static bool is_any_route_error(int status)
{
	for (size_t i = 0; i < spec_route_count; i++) {
		struct spec_reply reply;
		size_t            at = 0;

		while (spec_next_reply(&spec_routes[i], &at, &reply))
			if (reply.status == status && is_error(&reply))
				return true;
	}
	return false;
}

static void put_error_replies(struct writer *w)
{
	json_put_object(&w->o, "responses");
	for (int status = ERROR_STATUS_FROM; status < 600; status++) {
		if (!is_any_route_error(status))
			continue;
		json_put_object(&w->o, error_name(w, status).p);
		json_put_str(&w->o, "description", str_from(spec_status_text(status)));
		if (status == 409 || status == 429 || status == 503)
			put_retry_after(w);
		open_content(w, "application/json");
		put_ref(w, "schemas", STR("Error"));
		close_content(w);
		json_close_object(&w->o);
	}
	json_close_object(&w->o);
}

/* --- operations --- */

/* The first segment of the path; what every server has, such as /healthz, is "service". */
static struct str tag_of(const struct api_route *route)
{
	struct str rest = str_from(route->path);

	if (route->scope == SCOPE_PUBLIC || route->scope == SCOPE_PROBE)
		return STR("service");
	(void)str_cut(&rest, '/'); /* "{base}", or nothing before /api */
	if (route->scope == SCOPE_SESSION)
		(void)str_cut(&rest, '/');
	return str_cut(&rest, '/');
}

static void add_security(struct writer *w, const char *scheme)
{
	json_open_object(&w->o);
	json_put_array(&w->o, scheme);
	json_close_array(&w->o);
	json_close_object(&w->o);
}

static void put_security(struct writer *w, const struct api_route *route)
{
	json_put_array(&w->o, "security");
	if (route->scope == SCOPE_TRACK)
		add_security(w, "trackToken");
	if (route->scope == SCOPE_INBOX)
		add_security(w, "inboxToken");
	if (route->scope == SCOPE_ADMIN || route->scope == SCOPE_INBOX)
		add_security(w, "adminToken");
	if (route->scope == SCOPE_SESSION && strncmp(route->path, "/api/auth/", strlen("/api/auth/")) != 0)
		add_security(w, "sessionToken");
	json_close_array(&w->o);
}

static const char *lower_case(struct writer *w, const char *method)
{
	char *text = arena_copy(&w->arena, method, strlen(method));

	for (char *at = text; *at; at++)
		if (*at >= 'A' && *at <= 'Z')
			*at = (char)(*at - 'A' + 'a');
	return text;
}

static void put_operation(struct writer *w, const struct api_route *route)
{
	const struct spec_body *body = spec_find_body(route);

	json_put_object(&w->o, lower_case(w, route->method));
	json_put_str(&w->o, "operationId", str_from(route->operation));
	json_put_str(&w->o, "summary", str_from(route->summary));
	json_put_array(&w->o, "tags");
	json_add_str(&w->o, tag_of(route));
	json_close_array(&w->o);
	put_security(w, route);
	put_params(w, route);
	if (body)
		put_body(w, body);
	put_replies(w, route);
	json_close_object(&w->o);
}

static bool is_first_of_path(size_t route)
{
	for (size_t i = 0; i < route; i++)
		if (strcmp(spec_routes[i].path, spec_routes[route].path) == 0)
			return false;
	return true;
}

static void put_paths(struct writer *w)
{
	json_put_object(&w->o, "paths");
	for (size_t i = 0; i < spec_route_count; i++) {
		if (!is_first_of_path(i))
			continue;
		json_put_object(&w->o, full_path(w, spec_routes[i].path).p);
		for (size_t k = i; k < spec_route_count; k++)
			if (strcmp(spec_routes[i].path, spec_routes[k].path) == 0)
				put_operation(w, &spec_routes[k]);
		json_close_object(&w->o);
	}
	json_close_object(&w->o);
}

/* --- the document --- */

static void put_info(struct writer *w)
{
	json_put_object(&w->o, "info");
	json_put_str(&w->o, "title", STR("Leasehold"));
	json_put_str(&w->o, "summary", STR("Lends pre-made sandboxes to lab tracks and takes them back."));
	json_put_str(&w->o, "version", STR(LEASEHOLD_VERSION));
	json_put_object(&w->o, "license");
	json_put_str(&w->o, "name", STR("Apache License 2.0"));
	json_put_str(&w->o, "identifier", STR("Apache-2.0"));
	json_close_object(&w->o);
	json_close_object(&w->o);

	json_put_array(&w->o, "servers");
	json_open_object(&w->o);
	json_put_str(&w->o, "url", STR("/"));
	json_close_object(&w->o);
	json_close_array(&w->o);
}

static void put_token(struct writer *w, const char *name, struct str description)
{
	json_put_object(&w->o, name);
	json_put_str(&w->o, "type", STR("http"));
	json_put_str(&w->o, "scheme", STR("bearer"));
	json_put_str(&w->o, "description", description);
	json_close_object(&w->o);
}

static void put_components(struct writer *w)
{
	json_put_object(&w->o, "components");
	json_put_object(&w->o, "securitySchemes");
	put_token(w, "trackToken", STR("A track's token, one of BROKER_API_TOKEN."));
	put_token(w, "adminToken", STR("An operator's token, one of BROKER_ADMIN_TOKEN."));
	put_token(w, "inboxToken", STR("A token of those who send events, one of LEASEHOLD_INBOX_TOKENS."));
	put_token(w, "sessionToken", STR("A signed token of a person or a service account; sign-in gives one."));
	json_close_object(&w->o);
	put_error_replies(w);
	json_put_object(&w->o, "schemas");
	for (size_t i = 0; i < spec_schema_count; i++)
		put_schema(w, &spec_schemas[i]);
	json_close_object(&w->o);
	json_close_object(&w->o);
}

void openapi_write(struct str base_path, struct buf *b)
{
	struct writer w = { .base = base_path };

	arena_init(&w.arena);
	json_out_init(&w.o, b);
	json_open_object(&w.o);
	json_put_str(&w.o, "openapi", STR("3.1.0"));
	put_info(&w);
	put_paths(&w);
	put_components(&w);
	json_close_object(&w.o);
	arena_fini(&w.arena);
}
