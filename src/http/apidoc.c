/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apidoc.c - the tables of apispec.h as Markdown: docs/api.md, printed by `leasehold api-doc`.
 *
 * First a list of all calls, then each with its parameters and replies, then the bodies with their fields, each body once.
 * Examples use the base path of a server that was not told another.
 */
#include "http/openapi.h"

#include "base/attr.h"
#include "http/apispec.h"

static const char *const callers[] = {
	[SCOPE_PUBLIC] = "anybody",
	[SCOPE_PROBE] = "anybody; also on `METRICS_PORT`",
	[SCOPE_TRACK] = "a track: `Authorization: Bearer` with one of `BROKER_API_TOKEN`",
	[SCOPE_ADMIN] = "an operator: `Authorization: Bearer` with one of `BROKER_ADMIN_TOKEN`",
	[SCOPE_INBOX] =
	        "a sender of events: `Authorization: Bearer` with one of `LEASEHOLD_INBOX_TOKENS`; an operator too",
	[SCOPE_SESSION] =
	        "a person or a service account with the role for it: `Authorization: Bearer` with a session token",
};

static const char *const callers_short[] = {
	[SCOPE_PUBLIC] = "anybody", [SCOPE_PROBE] = "anybody", [SCOPE_TRACK] = "track",
	[SCOPE_ADMIN] = "operator", [SCOPE_INBOX] = "sender",  [SCOPE_SESSION] = "person",
};

/* The calls that have an example. Path parameters stand in it as variables of the shell. */
static const struct {
	const char *route;
	const char *options; /* beside the method and the token */
	const char *query;
} examples[] = {
	{ "allocate", "-H \"X-Track-ID: lab-42\" -H \"Prefer: wait=30\"", "" },
	{ "give_back", "-H \"X-Track-ID: lab-42\"", "" },
	{ "show", "-H \"X-Track-ID: lab-42\"", "" },
	{ "list", "", "?status=available&limit=10" },
	{ "stats", "", "" },
	{ "sync", "", "" },
	{ "remove_stale", "", "?grace_period_hours=48" },
	{ "quarantine", "-d '{\"reason\": \"does not start\"}'", "" },
	{ "job_run", "-H \"Prefer: respond-async\"", "" },
	{ "ready", "", "" },
	{ "event_list", "", "?type=Sandbox*&since=2026-11-15T00:00:00Z" },
	{ "event_export", "", "?subject=sandbox/sb-1" },
	{ "event_stream", "-N", "?type=Alarm*" },
	{ "dead_drop", "-d '{\"reason\": \"the address is gone\"}'", "" },
	{ "webhook_create", "-d '{\"url\": \"https://example.org/hook\", \"filter\": \"Alarm*\"}'", "" },
	{ "inbox", "-d '{\"id\": \"1\", \"detail-type\": \"MoveAccount\", \"detail\": {}}'", "" },
};

static const char intro[] =
        "# The API\n\n"
        "Made from the route table by `make docs`; change `src/http/routes.def` and its neighbours, not this page. What the\n"
        "calls mean is in [broker.md](broker.md). The same as OpenAPI 3.1 is served at `{base}/openapi.json`.\n\n"
        "`{base}` is `API_BASE_PATH`, `/v1` by default. Times are Unix seconds. A member that may be null may be missing.\n\n";

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static char upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* A cell of a table: a bar would end it. */
static void add_cell(struct buf *b, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '|')
			buf_add_char(b, '\\');
		buf_add_char(b, text.p[i]);
	}
}

/* --- parameters --- */

static void add_words(struct buf *b, struct str words)
{
	struct str word = str_cut(&words, '|');

	buf_addf(b, "`%.*s`", STR_ARG(word));
	while (words.n) {
		word = str_cut(&words, '|');
		buf_addf(b, ", `%.*s`", STR_ARG(word));
	}
}

static void add_param(struct buf *b, const struct spec_param *p)
{
	buf_addf(b, "| `%s` | %s | ", p->name, p->where);
	if (strchr(p->type, '|'))
		add_words(b, str_from(p->type));
	else
		buf_addf(b, "%s, %lld to %lld%s", p->type, (long long)p->least, (long long)p->most,
		         str_eq(str_from(p->type), STR("string")) ? " characters" : "");
	buf_addf(b, " | %s | ", p->is_required ? "yes" : "no");
	add_cell(b, str_from(p->description));
	buf_add_text(b, " |\n");
}

static void add_link(struct buf *b, struct str schema)
{
	buf_addf(b, "[%.*s](#", STR_ARG(schema));
	for (size_t i = 0; i < schema.n; i++)
		buf_add_char(b, lower(schema.p[i]));
	buf_add_char(b, ')');
}

static void add_body(struct buf *b, const struct spec_body *body)
{
	struct str schema = str_from(body->schema);

	if (!schema.n) {
		buf_addf(b, "\nBody: a JSON object%s. `%s` (text, at most %lld bytes): %s\n",
		         body->is_required ? "" : ", or none", body->member, (long long)body->most, body->description);
		return;
	}
	buf_add_text(b, "\nBody: ");
	add_link(b, schema);
	buf_addf(b, ". %s\n", body->description);
}

static void add_params(struct buf *b, const struct api_route *route)
{
	const struct spec_body  *body = spec_find_body(route);
	const struct spec_param *p;
	size_t                   at = 0;

	while (spec_next_param(route, &at, &p)) {
		if (at == 1)
			buf_add_text(b, "\n| parameter | in | type | required | what |\n|---|---|---|---|---|\n");
		if (p)
			add_param(b, p);
	}
	if (body)
		add_body(b, body);
}

/* --- replies --- */

static void add_replies(struct buf *b, const struct api_route *route)
{
	struct spec_reply reply;
	size_t            at = 0;

	buf_add_text(b, "\n| status | body | when |\n|---|---|---|\n");
	while (spec_next_reply(route, &at, &reply)) {
		buf_addf(b, "| %d | ", reply.status);
		add_link(b, reply.schema);
		buf_addf(b, " | %s |\n", spec_status_text(reply.status));
	}
}

/* --- examples --- */

/* "{base}/sandboxes/{sandbox_id}" as "/v1/sandboxes/$SANDBOX_ID". */
static void add_example_path(struct buf *b, const char *path)
{
	struct str rest = str_from(path);

	buf_add_str(b, str_cut(&rest, '{'));
	while (rest.n) {
		struct str name = str_cut(&rest, '}');

		if (str_eq(name, STR("base"))) {
			buf_add_text(b, "/v1");
		} else {
			buf_add_char(b, '$');
			for (size_t i = 0; i < name.n; i++)
				buf_add_char(b, upper(name.p[i]));
		}
		buf_add_str(b, str_cut(&rest, '{'));
	}
}

static void add_example(struct buf *b, const struct api_route *route)
{
	static const char *const tokens[] = { [SCOPE_TRACK] = "BROKER_API_TOKEN",
		                              [SCOPE_ADMIN] = "BROKER_ADMIN_TOKEN",
		                              [SCOPE_INBOX] = "LEASEHOLD_INBOX_TOKENS",
		                              [SCOPE_SESSION] = "TOKEN" };

	for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
		if (strcmp(examples[i].route, route->name) != 0)
			continue;
		buf_addf(b, "\n    curl%s", strcmp(route->method, "GET") == 0 ? "" : " -X ");
		if (strcmp(route->method, "GET") != 0)
			buf_add_text(b, route->method);
		if (tokens[route->scope])
			buf_addf(b, " -H \"Authorization: Bearer $%s\"", tokens[route->scope]);
		buf_addf(b, "%s%s \"http://127.0.0.1:8080", examples[i].options[0] ? " " : "", examples[i].options);
		add_example_path(b, route->path);
		buf_addf(b, "%s\"\n", examples[i].query);
	}
}

/* --- the page --- */

static void add_list(struct buf *b)
{
	buf_add_text(b, "| call | by | what |\n|---|---|---|\n");
	for (size_t i = 0; i < spec_route_count; i++) {
		const struct api_route *r = &spec_routes[i];

		buf_addf(b, "| `%s %s` | %s | %s |\n", r->method, r->path, callers_short[r->scope], r->summary);
	}
}

static void add_route(struct buf *b, const struct api_route *route)
{
	const char *end = strchr(route->summary, '?') ? "" : ".";

	buf_addf(b, "\n### %s %s\n\n%s%s\n\nWho: %s.\n", route->method, route->path, route->summary, end,
	         callers[route->scope]);
	add_params(b, route);
	add_replies(b, route);
	add_example(b, route);
}

static void add_member(struct buf *b, const struct spec_member *m)
{
	static const char *const types[] = { [SPEC_TEXT] = "text",
		                             [SPEC_INTEGER] = "integer",
		                             [SPEC_BOOLEAN] = "true or false",
		                             [SPEC_NUMBER] = "number" };

	if (spec_is_any(m))
		buf_add_text(b, "| any | ");
	else
		buf_addf(b, "| `%.*s` | ", STR_ARG(m->name));
	if (m->kind == SPEC_LIST)
		buf_add_text(b, "list of ");
	if (m->kind == SPEC_LIST || m->kind == SPEC_OBJECT)
		add_link(b, m->of);
	else if (m->kind == SPEC_WORD)
		buf_addf(b, "always `%.*s`", STR_ARG(m->of));
	else
		buf_add_text(b, types[m->kind]);
	buf_add_text(b, m->is_nullable ? " or null |\n" : " |\n");
}

static void add_one_of(struct buf *b, struct str names)
{
	buf_add_text(b, "One of these: ");
	add_link(b, str_cut(&names, '|'));
	while (names.n) {
		buf_add_text(b, ", ");
		add_link(b, str_cut(&names, '|'));
	}
	buf_add_text(b, ".\n");
}

static void add_members(struct buf *b, const struct spec_schema *schema)
{
	struct str         rest = str_from(schema->members);
	struct spec_member m;

	if (!rest.n) {
		if (spec_is_plain_text(str_from(schema->name)))
			buf_addf(b, "Text: `%s`.\n", spec_media_type(str_from(schema->name)));
		else
			buf_add_text(b, strcmp(schema->name, "List") == 0 ? "A list.\n" : "An object.\n");
		return;
	}
	buf_add_text(b, "| member | type |\n|---|---|\n");
	while (spec_next_member(&rest, &m))
		add_member(b, &m);
}

static void add_schema(struct buf *b, const struct spec_schema *schema)
{
	struct str choices;

	buf_addf(b, "\n### %s\n\n", schema->name);
	switch (spec_shape(schema, &choices)) {
	case SPEC_WORDS:
		buf_add_text(b, "One of these words: ");
		add_words(b, choices);
		buf_add_text(b, ".\n");
		break;
	case SPEC_ONE_OF: add_one_of(b, choices); break;
	case SPEC_MEMBERS: add_members(b, schema); break;
	}
}

void apidoc_write(struct buf *b)
{
	buf_add_text(b, intro);
	add_list(b);
	buf_add_text(b, "\n## Calls\n");
	for (size_t i = 0; i < spec_route_count; i++)
		add_route(b, &spec_routes[i]);
	buf_add_text(b, "\n## Bodies\n");
	for (size_t i = 0; i < spec_schema_count; i++)
		add_schema(b, &spec_schemas[i]);
}
