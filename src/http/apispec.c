/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apispec.c - reads routes.def, params.def and schemas.def for those who describe the API.
 *
 * The tables are written for people, so some cells are small languages: "201:Allocation 409:Error" is a list of replies,
 * "name:s? jobs:[Job]" a list of members. All reading of these languages is here; test_openapi.c reads every row, so a
 * mistake in a table fails there and not in front of a caller.
 *
 * Not here: what a route does (the handlers), and the shape of any output.
 */
#include "http/apispec.h"

#include "domain/sandbox.h"
#include "http/body.h"
#include "http/ops.h"
#include "kernel/intake.h"

const struct api_route spec_routes[] = {
#define ROUTE(name, operation, method, path, scope, params, replies, summary) \
	{ #name, #operation, #method, path, SCOPE_##scope, params, replies, summary },
#include "http/routes.def"
#undef ROUTE
};
const size_t spec_route_count = ARRAY_LEN(spec_routes);

const struct spec_param spec_params[] = {
#define PARAM(id, name, where, type, least, most, is_required, description) \
	{ id, name, where, type, least, most, is_required, description },
#include "http/params.def"
#undef PARAM
};
const size_t spec_param_count = ARRAY_LEN(spec_params);

const struct spec_schema spec_schemas[] = {
#define SCHEMA(name, members) { name, members },
#include "http/schemas.def"
#undef SCHEMA
};
const size_t spec_schema_count = ARRAY_LEN(spec_schemas);

static const char document_body[] =
        "`document` is the text, YAML or JSON. Or the body is the text itself; then the version goes into If-Match.";

static const struct spec_body bodies[] = {
	{ .route = "quarantine",
	  .member = "reason",
	  .description = "Why it is set aside; kept with the sandbox.",
	  .most = SANDBOX_TEXT_MAX },
	{ .route = "dead_drop",
	  .member = "reason",
	  .description = "Why it need not be delivered; kept in the log of events.",
	  .most = OPS_REASON_MAX,
	  .is_required = true },
	{ .route = "saga_skip",
	  .member = "reason",
	  .description = "Why the step counts as done; kept in the log of events.",
	  .most = OPS_REASON_MAX,
	  .is_required = true },
	{ .route = "saga_abort",
	  .member = "reason",
	  .description = "Why it goes back; kept with the saga.",
	  .most = OPS_REASON_MAX,
	  .is_required = true },
	{ .route = "hold_add",
	  .description =
	          "Until `due_at` (ISO 8601 or Unix seconds), for `hours`, or, with neither, until a person closes it.",
	  .is_required = true,
	  .schema = "HoldFields" },
	{ .route = "hold_bypass",
	  .description = "Who and why are kept with the record of the rest that did not happen.",
	  .is_required = true,
	  .schema = "HoldBypassFields" },
	{ .route = "hold_extend",
	  .description = "`due_at` or `hours` from now on.",
	  .is_required = true,
	  .schema = "HoldExtension" },
	{ .route = "hold_release",
	  .description = "Why it need not last; kept with the hold.",
	  .is_required = true,
	  .schema = "HoldEnd" },
	{ .route = "hold_cancel", .description = "Why; kept with the hold.", .is_required = true, .schema = "HoldEnd" },
	{ .route = "hold_drain",
	  .description = "`apply` does it and needs a `reason`; without it the holds are only listed.",
	  .is_required = true,
	  .schema = "HoldDrainFields" },
	{ .route = "webhook_create",
	  .description =
	          "`url` is required; `filter` is a list of event types, \"*\" when not given; without `secret` one is made.",
	  .is_required = true,
	  .schema = "WebhookFields",
	  .bytes_most = WEBHOOK_BODY_MAX },
	{ .route = "webhook_change",
	  .description = "What is not given stays as it is.",
	  .is_required = true,
	  .schema = "WebhookFields",
	  .bytes_most = WEBHOOK_BODY_MAX },
	{ .route = "policy_check",
	  .description = document_body,
	  .is_required = true,
	  .schema = "PolicyText",
	  .bytes_most = DOCUMENT_BODY_MAX },
	{ .route = "policy_put",
	  .description = document_body,
	  .is_required = true,
	  .schema = "PolicyText",
	  .bytes_most = DOCUMENT_BODY_MAX },
	{ .route = "approval_check",
	  .description = document_body,
	  .is_required = true,
	  .schema = "PolicyText",
	  .bytes_most = DOCUMENT_BODY_MAX },
	{ .route = "approval_put",
	  .description = document_body,
	  .is_required = true,
	  .schema = "PolicyText",
	  .bytes_most = DOCUMENT_BODY_MAX },
	{ .route = "approval_explain",
	  .description =
	          "A template by name or uuid; `maxSpend` (dollars) and `hours` are the template's when not given.",
	  .is_required = true,
	  .schema = "Question" },
	{ .route = "account_quarantine",
	  .description = "Why; kept with the account, and told to the lease's owner.",
	  .is_required = true,
	  .schema = "QuarantineReason",
	  .bytes_most = API_BODY_MAX },
	{ .route = "reporting_check",
	  .description = document_body,
	  .is_required = true,
	  .schema = "PolicyText",
	  .bytes_most = DOCUMENT_BODY_MAX },
	{ .route = "reporting_put",
	  .description = document_body,
	  .is_required = true,
	  .schema = "PolicyText",
	  .bytes_most = DOCUMENT_BODY_MAX },
	{ .route = "sim_faults",
	  .description = "The faults and calls there are: docs/sim-cloud.md. An empty list ends all.",
	  .is_required = true,
	  .schema = "SimFaults" },
	{ .route = "sim_add", .description = "How many, 1 to 1000.", .is_required = true, .schema = "SimCount" },
	{ .route = "sim_move", .description = "OUs by name or id.", .is_required = true, .schema = "SimMove" },
	{ .route = "sim_rate", .description = "Dollars, 0 to 1000.", .is_required = true, .schema = "SimRate" },
	{ .route = "lease_create",
	  .description = "With `userEmail` it is assigned to that person, and approved: for managers.",
	  .is_required = true,
	  .schema = "LeaseRequest",
	  .bytes_most = API_BODY_MAX },
	{ .route = "lease_change",
	  .description = "What is not given stays; null clears it.",
	  .is_required = true,
	  .schema = "LeaseChange",
	  .bytes_most = API_BODY_MAX },
	{ .route = "lease_review",
	  .description = "`action` is Approve or Deny; `decision` (approve, deny) is another name for it.",
	  .is_required = true,
	  .schema = "LeaseReview",
	  .bytes_most = API_BODY_MAX },
	{ .route = "lease_review_patch",
	  .description = "As with POST.",
	  .is_required = true,
	  .schema = "LeaseReview",
	  .bytes_most = API_BODY_MAX },
	{ .route = "template_create",
	  .description = "`name` and `requiresApproval` are required.",
	  .is_required = true,
	  .schema = "LeaseTemplateFields",
	  .bytes_most = API_BODY_MAX },
	{ .route = "template_replace",
	  .description = "All of it; `createdBy` is required too.",
	  .is_required = true,
	  .schema = "LeaseTemplateFields",
	  .bytes_most = API_BODY_MAX },
	{ .route = "account_register",
	  .description = "Only the id counts; name and email are the organisation's.",
	  .is_required = true,
	  .schema = "AccountRegistration",
	  .bytes_most = API_BODY_MAX },
	{ .route = "blueprint_create",
	  .description = "`name`, `stackSetId` and `regions` are required.",
	  .is_required = true,
	  .schema = "BlueprintFields",
	  .bytes_most = API_BODY_MAX },
	{ .route = "blueprint_change",
	  .description = "What is not given stays; the stack set and its regions cannot be changed.",
	  .is_required = true,
	  .schema = "BlueprintChange",
	  .bytes_most = API_BODY_MAX },
	{ .route = "service_account_create",
	  .description = "`scopes` are some of read, approve, pool-admin, cost, with commas between them.",
	  .is_required = true,
	  .schema = "ServiceAccountFields" },
	{ .route = "service_account_rotate",
	  .description = "How long the old key is still accepted: 0 to 43200 minutes; 60 when not given.",
	  .schema = "KeyOverlap" },
	{ .route = "inbox",
	  .description =
	          "One event, a list of events, or {\"Records\": [...]} as queues wrap them. At most 100 events.",
	  .is_required = true,
	  .schema = "Document",
	  .bytes_most = INTAKE_BODY_MAX },
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
	{ 201, "Newly claimed, or made." },
	{ 202, "Taken in, or it goes on; GET admin/jobs shows the end of a job." },
	{ 302, "Go to the address in the Location header." },
	{ 400,
	  "A parameter is missing, malformed, out of range or not known; or there is a body where none is taken." },
	{ 401, "No token, or not a known one." },
	{ 403, "The token or the track may not do this." },
	{ 404, "There is no such thing." },
	{ 405, "Not with this method; the Allow header names the right ones." },
	{ 409, "The state does not allow it, or no sandbox is free." },
	{ 413,
	  "The body is larger than this call takes: 4096 bytes, webhooks 16384, documents 262144, the inbox 1048576 with a valid token." },
	{ 415, "The body is missing, is not JSON, or says that it is something else." },
	{ 429, "Too many requests; Retry-After says when to come again." },
	{ 500, "Something went wrong here; the log has the details under the request_id." },
	{ 503, "Cannot be served now; the message says why." },
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

static size_t count_words(const char *words)
{
	size_t count = 0;

	while (word_at(words, count).n)
		count++;
	return count;
}

static const struct spec_param *find_param(struct str id)
{
	for (size_t i = 0; i < spec_param_count; i++)
		if (str_eq(id, str_from(spec_params[i].id)))
			return &spec_params[i];
	return NULL;
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
	*ret = find_param(id);
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

static bool has_reply(const struct api_route *route, int status)
{
	for (size_t i = 0, count = count_words(route->replies); i < count; i++)
		if (read_reply(word_at(route->replies, i)).status == status)
			return true;
	return false;
}

bool spec_next_reply(const struct api_route *route, size_t *at, struct spec_reply *ret)
{
	size_t     own = count_words(route->replies);
	struct str text;

	if (*at < own) {
		*ret = read_reply(word_at(route->replies, (*at)++));
		return true;
	}
	while ((text = word_at(scope_errors[route->scope], *at - own)).n) {
		++*at;
		*ret = read_reply(text);
		if (!has_reply(route, ret->status))
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

const struct spec_schema *spec_find_schema(struct str name)
{
	for (size_t i = 0; i < spec_schema_count; i++)
		if (str_eq(name, str_from(spec_schemas[i].name)))
			return &spec_schemas[i];
	return NULL;
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
