/* SPDX-License-Identifier: Apache-2.0 */
/* test_openapi.c - the tables that describe the API hold together, and so does what is made from them. */
#include "test.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "domain/sandbox.h"
#include "http/spec/apispec.h"
#include "http/spec/openapi.h"

enum { DOCUMENT_MAX = 1024 * 1024 };

/* The document as a server with this base path gives it. Yours: json_decref(). */
static json_t *document(struct str base)
{
	struct arena a = { 0 };
	struct err   e = { 0 };
	json_t      *ret = NULL;

	CHECK(json_parse(openapi_text(base, &a), &ret, &e) == RC_OK);
	arena_fini(&a);
	return ret;
}

static const struct spec_schema *spec_find_schema(struct str name)
{
	for (size_t i = 0; i < spec_schema_count; i++)
		if (str_eq(name, str_from(spec_schemas[i].name)))
			return &spec_schemas[i];
	return NULL;
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	CHECK(text != NULL);
	return text;
}

/* The value that "#/a/b" points to, or NULL. */
static const json_t *follow(const json_t *root, const char *ref)
{
	struct str    rest = str_from(ref);
	const json_t *at = root;
	char          name[64];

	CHECK(str_eq(str_cut(&rest, '/'), STR("#")));
	while (at && rest.n) {
		struct str step = str_cut(&rest, '/');

		CHECK(step.n < sizeof(name));
		memcpy(name, step.p, step.n);
		name[step.n] = 0;
		at = json_object_get(at, name);
	}
	return at;
}

static void check_refs(const json_t *root, json_t *value)
{
	const char *name;
	json_t     *member;
	size_t      i;

	json_object_foreach(value, name, member)
	{
		if (strcmp(name, "$ref") == 0) {
			CASE(json_string_value(member));
			CHECK(follow(root, json_string_value(member)) != NULL);
		}
		check_refs(root, member);
	}
	json_array_foreach(value, i, member) check_refs(root, member);
}

TEST(every_parameter_that_a_route_names_has_a_row)
{
	for (size_t i = 0; i < api_route_count; i++) {
		const struct spec_param *p;
		size_t                   at = 0;

		CASE(api_routes[i].name);
		while (spec_next_param(&api_routes[i], &at, &p))
			CHECK(p != NULL);
	}
}

TEST(parameters_are_of_a_known_kind_and_have_limits)
{
	for (size_t i = 0; i < spec_param_count; i++) {
		const struct spec_param *p = &spec_params[i];
		bool                     has_words = strchr(p->type, '|') != NULL;

		CASE(p->id);
		CHECK(strcmp(p->where, "header") == 0 || strcmp(p->where, "query") == 0 ||
		      strcmp(p->where, "path") == 0);
		CHECK(has_words || strcmp(p->type, "string") == 0 || strcmp(p->type, "integer") == 0);
		CHECK(has_words || (p->least >= 0 && p->least <= p->most));
		CHECK(p->is_required || strcmp(p->where, "path") != 0);
		CHECK(p->description[0]);
	}
}

TEST(every_reply_has_a_status_with_a_meaning_and_a_schema)
{
	for (size_t i = 0; i < api_route_count; i++) {
		struct spec_reply reply;
		size_t            at = 0, good = 0;

		CASE(api_routes[i].name);
		while (spec_next_reply(&api_routes[i], &at, &reply)) {
			CHECK(spec_status_text(reply.status)[0]);
			CHECK(spec_find_schema(reply.schema) != NULL);
			good += reply.status >= 200 && reply.status < 400;
		}
		CHECK(good > 0);
	}
}

TEST(every_member_of_a_schema_can_be_read_and_refers_to_one_that_exists)
{
	for (size_t i = 0; i < spec_schema_count; i++) {
		struct str         rest = str_from(spec_schemas[i].members), choices;
		struct spec_member m;

		CASE(spec_schemas[i].name);
		if (spec_shape(&spec_schemas[i], &choices) != SPEC_MEMBERS)
			continue;
		while (spec_next_member(&rest, &m))
			if (m.kind == SPEC_LIST || m.kind == SPEC_OBJECT)
				CHECK(spec_find_schema(m.of) != NULL);
		CHECK(rest.n == 0);
	}
}

static bool has_choice(struct str choices, struct str word)
{
	while (choices.n)
		if (str_eq(str_cut(&choices, '|'), word))
			return true;
	return false;
}

static struct str choices_of(const char *schema, enum spec_shape shape)
{
	const struct spec_schema *found = spec_find_schema(str_from(schema));
	struct str                choices = STR("");

	CHECK(found != NULL);
	CHECK(spec_shape(found, &choices) == shape);
	return choices;
}

TEST(a_choice_is_among_schemas_that_exist)
{
	size_t count = 0;

	for (size_t i = 0; i < spec_schema_count; i++) {
		struct str choices;

		CASE(spec_schemas[i].name);
		if (spec_shape(&spec_schemas[i], &choices) != SPEC_ONE_OF)
			continue;
		count++;
		CHECK(choices.n > 0);
		while (choices.n)
			CHECK(spec_find_schema(str_cut(&choices, '|')) != NULL);
	}
	CHECK(count == 1);
}

TEST(the_words_for_states_and_error_codes_are_those_of_the_program)
{
	static const char *const codes[] = {
#define X(name, http, retry, code, text) code,
		RC_TABLE(X)
#undef X
	};
	static const char *const more[] = { "INVALID_TRACK_ID",  "NOT_SANDBOX_OWNER", "ALLOCATION_EXPIRED",
		                            "SANDBOX_NOT_FOUND", "JOB_NOT_FOUND",     "REQUEST_TIMEOUT" };
	struct str               states = choices_of("SandboxState", SPEC_WORDS);
	struct str               errors = choices_of("ErrorCode", SPEC_WORDS);

	for (int i = 0; i < SANDBOX_STATE_COUNT; i++)
		CHECK(str_eq(str_cut(&states, '|'), str_from(sandbox_state_names[i])));
	CHECK(states.n == 0);
	for (size_t i = 1; i < ARRAY_LEN(codes); i++) { /* the first is OK */
		CASE(codes[i]);
		CHECK(has_choice(errors, str_from(codes[i])));
	}
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		CASE(more[i]);
		CHECK(has_choice(errors, str_from(more[i])));
	}
}

static const struct {
	const char    *text;
	bool           is_member, is_nullable;
	enum spec_kind kind;
	const char    *name, *of;
} members[] = {
	{ "a:s", true, false, SPEC_TEXT, "a", "" },
	{ "a:i?", true, true, SPEC_INTEGER, "a", "" },
	{ "a:b", true, false, SPEC_BOOLEAN, "a", "" },
	{ "a:n more:s", true, false, SPEC_NUMBER, "a", "" },
	{ "jobs:[Job]", true, false, SPEC_LIST, "jobs", "Job" },
	{ "last:{Job}?", true, true, SPEC_OBJECT, "last", "Job" },
	{ "*:i", true, false, SPEC_INTEGER, "*", "" },
	{ "status:=done", true, false, SPEC_WORD, "status", "done" },
	{ "", false, false, 0, "", "" },
	{ "a", false, false, 0, "", "" },
	{ "a:", false, false, 0, "", "" },
	{ "a:x", false, false, 0, "", "" },
	{ "a:ss", false, false, 0, "", "" },
	{ "a:?", false, false, 0, "", "" },
	{ "a:=", false, false, 0, "", "" },
	{ "a:[]", false, false, 0, "", "" },
	{ "a:[X}", false, false, 0, "", "" },
	{ ":s", false, false, 0, "", "" },
};

TEST(members_are_read_as_their_notation_says)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		struct str         rest = str_from(members[i].text);
		struct spec_member m;

		CASE(members[i].text);
		CHECK(spec_next_member(&rest, &m) == members[i].is_member);
		if (!members[i].is_member)
			continue;
		CHECK(m.kind == members[i].kind && m.is_nullable == members[i].is_nullable);
		CHECK(str_eq(m.name, str_from(members[i].name)) && str_eq(m.of, str_from(members[i].of)));
	}
}

TEST(routes_have_a_summary_and_names_and_paths_are_unique)
{
	for (size_t i = 0; i < api_route_count; i++) {
		const struct api_route *r = &api_routes[i];

		CASE(r->name);
		CHECK(r->summary[0]);
		CHECK(r->path[0] == '/' || strncmp(r->path, "{base}/", 7) == 0);
		for (size_t k = 0; k < i; k++) {
			CHECK(strcmp(api_routes[k].name, r->name) != 0);
			CHECK(strcmp(api_routes[k].operation, r->operation) != 0);
			CHECK(strcmp(api_routes[k].path, r->path) != 0 || strcmp(api_routes[k].method, r->method) != 0);
		}
	}
}

static const struct {
	const char *label, *route;
	const char *statuses; /* all of them, in order */
} replies[] = {
	{ "a track's call has the errors of its scope", "show", "200 404 400 401 403 405 413 429 500 503" },
	{ "so has an operator's", "stats", "200 400 401 403 405 413 429 500 503" },
	{ "an error the route names itself is not repeated", "allocate",
	  "201 200 409 400 401 403 405 413 429 500 503" },
	{ "a probe asks nobody who it is", "health", "200 400 405 413 500" },
	{ "a status with a body of its own stays with that", "ready", "200 503 400 405 413 500" },
};

TEST(the_errors_of_a_scope_are_added_once)
{
	for (size_t i = 0; i < ARRAY_LEN(replies); i++) {
		struct str        rest = str_from(replies[i].statuses);
		struct spec_reply reply;
		size_t            at = 0, route = 0;

		CASE(replies[i].label);
		while (strcmp(api_routes[route].name, replies[i].route) != 0)
			CHECK(++route < api_route_count);
		while (spec_next_reply(&api_routes[route], &at, &reply)) {
			int64_t expected = 0;

			CHECK(str_to_int(str_cut(&rest, ' '), 100, 599, &expected));
			CHECK(reply.status == expected);
		}
		CHECK(rest.n == 0);
	}
}

TEST(the_document_has_one_operation_for_each_route)
{
	CLEANUP(json_freep) json_t *root = document(STR("/v1"));
	const char                 *path, *method;
	json_t                     *item, *operation;
	size_t                      count = 0;

	CHECK(strcmp(text_of(root, "openapi"), "3.1.0") == 0);
	json_object_foreach(json_object_get(root, "paths"), path, item)
	{
		CASE(path);
		CHECK(path[0] == '/' && !strstr(path, "{base}"));
		json_object_foreach(item, method, operation)
		{
			size_t route = 0;

			while (strcmp(api_routes[route].operation, text_of(operation, "operationId")) != 0)
				CHECK(++route < api_route_count);
			CHECK(str_eq_nocase(str_from(method), str_from(api_routes[route].method)));
			CHECK(strcmp(text_of(operation, "summary"), api_routes[route].summary) == 0);
			CHECK(json_array_size(json_object_get(operation, "tags")) == 1);
			CHECK(json_object_size(json_object_get(operation, "responses")) > 0);
			count++;
		}
	}
	CHECK(count == api_route_count);
}

TEST(the_document_refers_to_nothing_that_is_missing)
{
	CLEANUP(json_freep) json_t *root = document(STR("/v1"));

	check_refs(root, root);
	CHECK(follow(root, "#/components/responses/Error503") != NULL);
	CHECK(follow(root, "#/components/nothing") == NULL);
}

TEST(the_document_says_who_may_call_and_with_what)
{
	CLEANUP(json_freep) json_t *root = document(STR("/v1"));
	const json_t               *paths = json_object_get(root, "paths");
	const json_t               *claim = json_object_get(json_object_get(paths, "/v1/allocate"), "post");
	const json_t               *list = json_object_get(json_object_get(paths, "/v1/admin/sandboxes"), "get");
	const json_t               *health = json_object_get(json_object_get(paths, "/healthz"), "get");
	const json_t               *show = json_object_get(json_object_get(paths, "/v1/sandboxes/{sandbox_id}"), "get");
	const json_t               *limit = json_array_get(json_object_get(list, "parameters"), 1);
	const json_t               *in_path = json_array_get(json_object_get(show, "parameters"), 0);

	CHECK(json_object_get(json_array_get(json_object_get(claim, "security"), 0), "trackToken") != NULL);
	CHECK(json_object_get(json_array_get(json_object_get(list, "security"), 0), "adminToken") != NULL);
	CHECK(json_is_array(json_object_get(health, "security")));
	CHECK(json_array_size(json_object_get(health, "security")) == 0);
	CHECK(strcmp(text_of(limit, "name"), "limit") == 0 && strcmp(text_of(limit, "in"), "query") == 0);
	CHECK(json_integer_value(json_object_get(json_object_get(limit, "schema"), "maximum")) == 100);
	CHECK(strcmp(text_of(in_path, "in"), "path") == 0 && json_is_true(json_object_get(in_path, "required")));
}

TEST(the_document_has_choices_words_and_any_members)
{
	CLEANUP(json_freep) json_t *root = document(STR("/v1"));
	const json_t               *result = follow(root, "#/components/schemas/JobResult/oneOf");
	const json_t               *counts = follow(root, "#/components/schemas/JobCounts/additionalProperties");
	const json_t               *status = follow(root, "#/components/schemas/Sandbox/properties/status");

	CHECK(json_array_size(result) == 5);
	CHECK(strcmp(text_of(json_array_get(result, 0), "$ref"), "#/components/schemas/SyncResult") == 0);
	CHECK(strcmp(text_of(counts, "type"), "integer") == 0);
	CHECK(strcmp(text_of(status, "$ref"), "#/components/schemas/SandboxState") == 0);
	CHECK(json_array_size(follow(root, "#/components/schemas/SandboxState/enum")) == SANDBOX_STATE_COUNT);
	CHECK(strcmp(text_of(follow(root, "#/components/schemas/ErrorCode"), "type"), "string") == 0);
}

/* The description of the parameter with this name; NULL when there is none. */
static const char *param_text(const char *route, const char *name)
{
	const struct spec_param *p;
	size_t                   at = 0, i = 0;

	while (strcmp(api_routes[i].name, route) != 0)
		CHECK(++i < api_route_count);
	while (spec_next_param(&api_routes[i], &at, &p))
		if (p && strcmp(p->name, name) == 0)
			return p->description;
	return NULL;
}

TEST(a_preference_is_described_for_the_call_that_has_it)
{
	CHECK(strstr(param_text("allocate", "Prefer"), "wait=SECONDS"));
	CHECK(!strstr(param_text("allocate", "Prefer"), "respond-async"));
	CHECK(strstr(param_text("job_run", "Prefer"), "respond-async"));
	CHECK(!strstr(param_text("job_run", "Prefer"), "wait="));
	CHECK(param_text("stats", "Prefer") == NULL);
}

TEST(another_base_path_is_put_into_the_paths)
{
	CLEANUP(json_freep) json_t *root = document(STR("/lab/v2"));
	CLEANUP(json_freep) json_t *bare = document(STR(""));

	CHECK(json_object_get(json_object_get(root, "paths"), "/lab/v2/allocate") != NULL);
	CHECK(json_object_get(json_object_get(root, "paths"), "/healthz") != NULL);
	CHECK(json_object_get(json_object_get(bare, "paths"), "/allocate") != NULL);
}

TEST(the_page_has_a_row_for_every_route)
{
	struct buf b;
	char       row[256];

	buf_init(&b, DOCUMENT_MAX);
	apidoc_write(&b);
	CHECK(!b.is_full);
	for (size_t i = 0; i < api_route_count; i++) {
		CASE(api_routes[i].name);
		snprintf(row, sizeof(row), "\n| %s | `%s` | ", api_routes[i].method, api_routes[i].path);
		CHECK(strstr(b.p, row) != NULL);
		CHECK(strchr(api_routes[i].summary, '|') == NULL);
	}
	buf_fini(&b);
}
