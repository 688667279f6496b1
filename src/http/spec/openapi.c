/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openapi.c - the tables of apispec.h as an OpenAPI 3.1 document, and the table of routes as Markdown.
 *
 * Every operation says itself who may call it and what it can answer; what many share (schemas, tokens, error replies)
 * is under "components" and referred to. A member that may be null is not "required": some replies leave it out.
 *
 * Not here: texts about what calls mean beyond one line; those are in docs/broker.md.
 */
#include "http/spec/openapi.h"

#include <assert.h>
#include <ctype.h>

#include "base/arena.h"
#include "base/json.h"
#include "http/spec/apispec.h"

enum { OPENAPI_MAX = 1024 * 1024, ERROR_STATUS_FROM = 400 };

struct writer {
	struct json_out o;
	struct arena   *arena; /* names that must end with a NUL */
};

static struct json_member ref(struct writer *w, const char *kind, struct str name)
{
	return member_str("$ref", str_format(w->arena, "#/components/%s/%.*s", kind, STR_ARG(name)));
}

/* --- schemas --- */

/* Its "type": one name; if it may be null, a list of two. */
static struct json_member type(struct writer *w, const char *name, bool is_nullable)
{
	return is_nullable ? member_raw("type", str_format(w->arena, "[\"%s\",\"null\"]", name))
	                   : member_word("type", name);
}

static void put_member(struct writer *w, const struct spec_member *m)
{
	static const char *const types[] = {
		[SPEC_TEXT] = "string",   [SPEC_INTEGER] = "integer", [SPEC_BOOLEAN] = "boolean",
		[SPEC_NUMBER] = "number", [SPEC_LIST] = "array",      [SPEC_WORD] = "string"
	};

	json_put_object(&w->o, spec_is_any(m) ? "additionalProperties" : str_dup(w->arena, m->name).p);
	if (m->kind != SPEC_OBJECT)
		JSON_PUT(&w->o, type(w, types[m->kind], m->is_nullable));
	else if (!m->is_nullable)
		JSON_PUT(&w->o, ref(w, "schemas", m->of));
	else
		JSON_PUT(&w->o, member_raw("anyOf",
		                           str_format(w->arena,
		                                      "[{\"$ref\":\"#/components/schemas/%.*s\"},{\"type\":\"null\"}]",
		                                      STR_ARG(m->of))));
	if (m->kind == SPEC_LIST)
		JSON_PUT(&w->o, member_object("items"), ref(w, "schemas", m->of), member_end());
	if (m->kind == SPEC_WORD)
		json_put_str(&w->o, "const", m->of);
	json_close_object(&w->o);
}

static void put_words(struct writer *w, struct str words)
{
	JSON_PUT(&w->o, type(w, "string", false), member_list("enum"));
	while (words.n)
		json_add_str(&w->o, str_cut(&words, '|'));
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
	json_put_array(&w->o, "required");
	for (rest = str_from(members); spec_next_member(&rest, &m);)
		if (!m.is_nullable && !spec_is_any(&m))
			json_add_str(&w->o, m.name);
	json_close_array(&w->o);
}

static void put_schema(struct writer *w, const struct spec_schema *schema)
{
	const char *kind = spec_is_plain_text(str_from(schema->name)) ? "string" : "object";
	struct str  choices;

	json_put_object(&w->o, schema->name);
	switch (spec_shape(schema, &choices)) {
	case SPEC_WORDS: put_words(w, choices); break;
	case SPEC_ONE_OF:
		json_put_array(&w->o, "oneOf");
		while (choices.n)
			JSON_PUT(&w->o, member_object(NULL), ref(w, "schemas", str_cut(&choices, '|')), member_end());
		json_close_array(&w->o);
		break;
	case SPEC_MEMBERS:
		JSON_PUT(&w->o, type(w, strcmp(schema->name, "List") == 0 ? "array" : kind, false));
		if (schema->members[0])
			put_members(w, schema->members);
		break;
	}
	json_close_object(&w->o);
}

/* --- parameters and bodies --- */

static void put_params(struct writer *w, const struct api_route *route)
{
	const struct spec_param *p;
	size_t                   at = 0;

	json_put_array(&w->o, "parameters");
	while (spec_next_param(route, &at, &p)) {
		bool is_text = p && strcmp(p->type, "string") == 0;

		if (!p)
			continue;
		JSON_PUT(&w->o, member_object(NULL), member_word("name", p->name), member_word("in", p->where),
		         member_bool("required", p->is_required), member_word("description", p->description),
		         member_object("schema"));
		if (strchr(p->type, '|'))
			put_words(w, str_from(p->type));
		else
			JSON_PUT(&w->o, type(w, p->type, false),
			         member_int(is_text ? "minLength" : "minimum", p->least),
			         member_int(is_text ? "maxLength" : "maximum", p->most));
		JSON_PUT(&w->o, member_end(), member_end());
	}
	json_close_array(&w->o);
}

/* A schema that is there by name, or else an object with one text. */
static void put_body(struct writer *w, const struct spec_body *body)
{
	JSON_PUT(&w->o, member_object("requestBody"), member_bool("required", body->is_required),
	         member_if(body->schema, member_word("description", body->description)), member_object("content"),
	         member_object("application/json"), member_object("schema"));
	if (body->schema)
		JSON_PUT(&w->o, ref(w, "schemas", str_from(body->schema)));
	else
		JSON_PUT(&w->o, type(w, "object", false), member_object("properties"), member_object(body->member),
		         type(w, "string", !body->is_required), member_int("maxLength", body->most),
		         member_word("description", body->description), member_end(), member_end(),
		         member_bool("additionalProperties", false));
	JSON_PUT(&w->o, member_end(), member_end(), member_end(), member_end());
}

/* --- replies --- */

static struct str error_name(struct writer *w, int status)
{
	return str_format(w->arena, "Error%d", status);
}

static bool is_error(const struct spec_reply *reply)
{
	return str_eq(reply->schema, STR("Error"));
}

static void put_content(struct writer *w, struct str schema)
{
	JSON_PUT(&w->o, member_object("content"), member_object(spec_media_type(schema)), member_object("schema"),
	         ref(w, "schemas", schema), member_end(), member_end(), member_end());
}

static void put_replies(struct writer *w, const struct api_route *route)
{
	struct spec_reply reply;
	size_t            at = 0;

	json_put_object(&w->o, "responses");
	while (spec_next_reply(route, &at, &reply)) {
		json_put_object(&w->o, str_format(w->arena, "%d", reply.status).p);
		if (is_error(&reply)) {
			JSON_PUT(&w->o, ref(w, "responses", error_name(w, reply.status)));
		} else {
			json_put_str(&w->o, "description", str_from(spec_status_text(reply.status)));
			put_content(w, reply.schema);
		}
		json_close_object(&w->o);
	}
	json_close_object(&w->o);
}

/* Which statuses any route answers an error with. */
static void mark_errors(bool *is_used)
{
	for (size_t i = 0; i < api_route_count; i++) {
		struct spec_reply reply;
		size_t            at = 0;

		while (spec_next_reply(&api_routes[i], &at, &reply))
			if (is_error(&reply) && reply.status >= ERROR_STATUS_FROM)
				is_used[reply.status - ERROR_STATUS_FROM] = true;
	}
}

/* Where waiting may help, Retry-After says for how long. */
static void put_error_replies(struct writer *w)
{
	bool is_used[600 - ERROR_STATUS_FROM] = { false };

	mark_errors(is_used);
	json_put_object(&w->o, "responses");
	for (int status = ERROR_STATUS_FROM; status < 600; status++) {
		if (!is_used[status - ERROR_STATUS_FROM])
			continue;
		JSON_PUT(&w->o, member_object(error_name(w, status).p),
		         member_word("description", spec_status_text(status)));
		if (status == 409 || status == 429 || status == 503)
			JSON_PUT(
			        &w->o, member_object("headers"), member_object("Retry-After"),
			        member_word("description",
			                    "Seconds until another attempt makes sense; also retry_after in the body."),
			        member_object("schema"), member_word("type", "integer"), member_int("minimum", 1),
			        member_end(), member_end(), member_end());
		put_content(w, STR("Error"));
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

static void put_operation(struct writer *w, const struct api_route *route)
{
	static const char *const security[] = {
		[SCOPE_PUBLIC] = "[]",
		[SCOPE_PROBE] = "[]",
		[SCOPE_TRACK] = "[{\"trackToken\":[]}]",
		[SCOPE_ADMIN] = "[{\"adminToken\":[]}]",
		[SCOPE_INBOX] = "[{\"inboxToken\":[]},{\"adminToken\":[]}]",
		[SCOPE_SESSION] = "[{\"sessionToken\":[]}]",
	};
	const struct spec_body *body = spec_find_body(route);
	bool                    is_signin = strncmp(route->path, "/api/auth/", strlen("/api/auth/")) == 0;
	char                   *method = arena_copy(w->arena, route->method, strlen(route->method));

	for (char *at = method; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	JSON_PUT(&w->o, member_object(method), member_word("operationId", route->operation),
	         member_word("summary", route->summary));
	json_put_texts(&w->o, "tags", (struct str[]){ tag_of(route) }, 1);
	json_put_raw(&w->o, "security", str_from(is_signin ? "[]" : security[route->scope]));
	put_params(w, route);
	if (body)
		put_body(w, body);
	put_replies(w, route);
	json_close_object(&w->o);
}

static void put_paths(struct writer *w, struct str base)
{
	json_put_object(&w->o, "paths");
	for (size_t i = 0; i < api_route_count; i++) {
		size_t first = 0;

		while (strcmp(api_routes[first].path, api_routes[i].path) != 0)
			first++;
		if (first < i)
			continue; /* shown with that one */
		json_put_object(&w->o, route_path(&api_routes[i], base, w->arena).p);
		for (size_t k = i; k < api_route_count; k++)
			if (strcmp(api_routes[i].path, api_routes[k].path) == 0)
				put_operation(w, &api_routes[k]);
		json_close_object(&w->o);
	}
	json_close_object(&w->o);
}

/* --- the document --- */

static void put_token(struct writer *w, const char *name, const char *description)
{
	JSON_PUT(&w->o, member_object(name), member_word("type", "http"), member_word("scheme", "bearer"),
	         member_word("description", description), member_end());
}

static void put_components(struct writer *w)
{
	JSON_PUT(&w->o, member_object("components"), member_object("securitySchemes"));
	put_token(w, "trackToken", "A track's token, one of BROKER_API_TOKEN.");
	put_token(w, "adminToken", "An operator's token, one of BROKER_ADMIN_TOKEN.");
	put_token(w, "inboxToken", "A token of those who send events, one of LEASEHOLD_INBOX_TOKENS.");
	put_token(w, "sessionToken", "A signed token of a person or a service account; sign-in gives one.");
	json_close_object(&w->o);
	put_error_replies(w);
	json_put_object(&w->o, "schemas");
	for (size_t i = 0; i < spec_schema_count; i++)
		put_schema(w, &spec_schemas[i]);
	JSON_PUT(&w->o, member_end(), member_end());
}

struct str openapi_text(struct str base_path, struct arena *a)
{
	CLEANUP(arena_fini) struct arena names = { 0 };
	struct buf                       b = BUF(OPENAPI_MAX);
	struct writer                    w = { .arena = &names, .o = JSON_OUT(&b) };

	JSON_PUT(&w.o, member_object(NULL), member_word("openapi", "3.1.0"), member_object("info"),
	         member_word("title", "Leasehold"),
	         member_word("summary", "Lends pre-made sandboxes to lab tracks and takes them back."),
	         member_word("version", LEASEHOLD_VERSION), member_object("license"),
	         member_word("name", "Apache License 2.0"), member_word("identifier", "Apache-2.0"), member_end(),
	         member_end(), member_raw("servers", STR("[{\"url\":\"/\"}]")));
	put_paths(&w, base_path);
	put_components(&w);
	json_close_object(&w.o);
	assert(!b.is_full);
	return buf_take(&b, a);
}

/* --- for people: docs/api.md, printed by `leasehold api-doc` --- */

static const char intro[] =
        "# The API\n\n"
        "Every route, in one table. Every server serves its parameters, bodies and replies as OpenAPI 3.1:\n\n"
        "    curl http://127.0.0.1:8080/v1/openapi.json\n\n"
        "What the calls do is in [broker.md](broker.md) and [lease-api.md](lease-api.md). `make docs` makes this page:\n"
        "change `src/http/api/routes.def`, not the page.\n\n"
        "`{base}` is `API_BASE_PATH`, `/v1` by default. Callers send `Authorization: Bearer TOKEN`:\n\n"
        "| who | which token |\n|---|---|\n"
        "| anybody | none |\n"
        "| track | one of `BROKER_API_TOKEN` |\n"
        "| operator | one of `BROKER_ADMIN_TOKEN`, or that of an admin's sign-in |\n"
        "| sender | one of `LEASEHOLD_INBOX_TOKENS`, or an operator's |\n"
        "| person | that of a sign-in, or a service account's key; the role decides, see [sign-in.md](sign-in.md) |\n\n"
        "| method | path | who | what |\n|---|---|---|---|\n";

void apidoc_write(struct buf *b)
{
	static const char *const callers[] = {
		[SCOPE_PUBLIC] = "anybody", [SCOPE_PROBE] = "anybody", [SCOPE_TRACK] = "track",
		[SCOPE_ADMIN] = "operator", [SCOPE_INBOX] = "sender",  [SCOPE_SESSION] = "person",
	};

	buf_add_text(b, intro);
	for (size_t i = 0; i < api_route_count; i++) {
		const struct api_route *r = &api_routes[i];

		buf_addf(b, "| %s | `%s` | %s | %s |\n", r->method, r->path, callers[r->scope], r->summary);
	}
}
