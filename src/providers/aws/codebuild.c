/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codebuild.c - accounts are emptied by builds.
 *
 * The project holds the program, its image and its roles; a build is told the account and our key. For each key we
 * store first that a build is requested, then which one it is. AWS remembers a token for only five minutes; a build
 * that was requested longer ago and has no id is looked for among the project's newest builds, by the key that each
 * build carries.
 *
 * Always true:
 *   1. A key has one build: before another is started for a known key, the project's builds are searched.     [start()]
 *   2. An admin account is refused before anything is stored or sent.                                    [check_call()]
 *
 * The caller counts attempts.
 */
#include "providers/aws/codebuild.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "domain/ports/cloud.h"
#include "providers/aws/builds.h"
#include "providers/aws/call.h"
#include "service/record/aws_records.h"
#include "store/session.h"
#include "store/store.h"

enum {
	TOKEN_CHARS = 32,
	RUN_MINUTES = 60,
	LIST_PAGES = 10, /* of 100 builds each, newest first: a lost one is not older */
	TEXT_BYTES = 1024,
	FORGET_COUNT = 5,
};
#define KEEP_MS      (30 * INT64_C(86400000))
#define KEY_VARIABLE "STATE_MACHINE_EXECUTION_ID"

/* clang-format off */
static const struct aws_error_row errors[] = {
	{ "InvalidInputException",         RC_INVALID },
	{ "ResourceNotFoundException",     RC_DENIED }, /* the project: for a person to put right */
	{ "AccountLimitExceededException", RC_LIMITED },
	{ NULL, RC_OK },
};
#define BUILD_OP(operation, writing) \
	{ .service = &aws_services[AWS_CODEBUILD], .name = operation, .permission = "codebuild:" operation, .writes = writing, .errors = errors }
static const struct aws_op
	start_build = BUILD_OP("StartBuild", true),
	get_builds  = BUILD_OP("BatchGetBuilds", false),
	list_builds = BUILD_OP("ListBuildsForProject", false);
/* clang-format on */

struct aws_codebuild {
	struct cleaner               base;
	struct aws_codebuild_options o;
	struct aws_builds           *waited_for;
};

/* --- what is stored of a key --- */

struct keyed {
	struct aws_build build; /* its key is set */
	bool             is_known;
};

/* A few for each new one, so that they do not pile up. */
static enum rc forget_old(struct session *s, int64_t now_ms, struct err *e)
{
	struct query q = query_until(&aws_build_type, AWS_BUILD_BY_AGE, value_int(1), now_ms - KEEP_MS, FORGET_COUNT);
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	for (size_t i = 0; !rc && i < page.count; i++)
		session_delete(s, &aws_build_type, ((struct aws_build *)page_record(&page, &aws_build_type, i))->key);
	return rc;
}

/* The key's build, which is that of this account; a new one is noted as asked for. */
static enum rc claim_key(struct session *s, void *arg, struct err *e)
{
	struct keyed    *k = arg;
	struct aws_build known, wanted = k->build;
	enum rc          rc = session_find(s, &aws_build_type, wanted.key, &known, &k->is_known, e);

	if (rc)
		return rc;
	if (!k->is_known) {
		wanted.lot = 1;
		wanted.asked_ms = session_now(s).ms;
		session_put(s, &aws_build_type, &wanted);
		return forget_old(s, wanted.asked_ms, e);
	}
	if (!str_eq(known.account_id, wanted.account_id))
		return err_set_code(e, RC_CONFLICT, "IdempotentParameterMismatchException",
		                    "the key %.*s belongs to a build for account %.*s", STR_ARG(wanted.key),
		                    STR_ARG(known.account_id));
	k->build = known;
	return RC_OK;
}

static enum rc note_build(struct session *s, void *arg, struct err *e)
{
	struct keyed    *k = arg;
	struct aws_build build;
	enum rc          rc = session_get(s, &aws_build_type, k->build.key, &build, e);

	if (rc)
		return rc;
	build.build_id = k->build.build_id;
	session_put(s, &aws_build_type, &build);
	return RC_OK;
}

/* --- builds --- */

static enum rc get_build_list(struct aws_codebuild *b, struct str ids_json, struct arena *a, json_t **ret,
                              struct err *e)
{
	return aws_do(b->o.caller, &get_builds, JSON_OF(a, member_raw("ids", ids_json)), a, ret, e);
}

static bool has_key(const json_t *build, struct str key, struct arena *a)
{
	const json_t *variables = json_object_get(json_object_get(build, "environment"), "environmentVariables");

	return str_eq(aws_get_tag(variables, "name", "value", KEY_VARIABLE, a), key);
}

/* Among these ids, the build that carries the key; empty: none. */
static enum rc find_among(struct aws_codebuild *b, const json_t *ids, struct str key, struct arena *a, struct str *ret,
                          struct err *e)
{
	CLEANUP(json_freep) json_t *reply = NULL;
	const json_t               *build;
	size_t                      i;
	enum rc                     rc;

	if (!json_array_size(ids))
		return RC_OK;
	if ((rc = get_build_list(b, json_dump(a, ids), a, &reply, e)))
		return rc;
	json_array_foreach(json_object_get(reply, "builds"), i, build)
	{
		if (has_key(build, key, a) && json_take_text(build, "id", a, ret))
			return RC_OK;
	}
	return RC_OK;
}

static enum rc find_build(struct aws_codebuild *b, struct str key, struct arena *a, struct str *ret, struct err *e)
{
	struct str token = STR("");
	enum rc    rc = RC_OK;

	*ret = STR("");
	for (int page = 0; !rc && !ret->n && page < LIST_PAGES && (token.n || !page); page++) {
		CLEANUP(json_freep) json_t *reply = NULL;
		struct str                  body = JSON_OF(a, member_str("projectName", b->o.project),
		                                           member_word("sortOrder", "DESCENDING"),
		                                           member_if_any(member_str("nextToken", token)));

		if ((rc = aws_do(b->o.caller, &list_builds, body, a, &reply, e)))
			return rc;
		rc = find_among(b, json_object_get(reply, "ids"), key, a, ret, e);
		if (!json_take_text(reply, "nextToken", a, &token))
			token = STR("");
	}
	return rc;
}

static void put_variable(struct json_out *o, const char *name, struct str value)
{
	if (!value.n)
		return;
	JSON_PUT(o, member_object(NULL), member_word("name", name), member_str("value", value),
	         member_str("type", STR("PLAINTEXT")), member_end());
}

static struct str make_build(const struct aws_codebuild *b, const struct aws_build *build, struct arena *a)
{
	struct buf      buf = BUF(JSON_OF_MAX);
	struct json_out o = JSON_OUT(&buf);

	JSON_PUT(&o, member_object(NULL), member_str("projectName", b->o.project),
	         member_str("idempotencyToken", str_of(hash_sha256_hex(a, build->key).p, TOKEN_CHARS)),
	         member_int("timeoutInMinutesOverride", RUN_MINUTES),
	         member_raw("logsConfigOverride", STR("{\"cloudWatchLogs\":{\"status\":\"ENABLED\"}}")),
	         member_list("environmentVariablesOverride"));
	put_variable(&o, "CLEANUP_ACCOUNT_ID", build->account_id);
	put_variable(&o, KEY_VARIABLE, build->key);
	put_variable(&o, "APPCONFIG_APPLICATION_ID", b->o.application_id);
	put_variable(&o, "APPCONFIG_ENVIRONMENT_ID", b->o.environment_id);
	put_variable(&o, "APPCONFIG_NUKE_CONFIG_CONFIGURATION_PROFILE_ID", b->o.nuke_profile_id);
	JSON_PUT(&o, member_list_end(), member_end());
	return buf_take(&buf, a);
}

static enum rc ask_build(struct aws_codebuild *b, const struct aws_build *build, struct arena *a, struct str *ret,
                         struct err *e)
{
	CLEANUP(json_freep) json_t *reply = NULL;
	struct err                  why = { 0 };
	enum rc                     rc = aws_do(b->o.caller, &start_build, make_build(b, build, a), a, &reply, &why);

	if (rc == RC_TIMEOUT && find_build(b, build->key, a, ret, NULL) == RC_OK && ret->n)
		return RC_OK; /* it was started */
	if (rc)
		return err_pass(e, rc, &why);
	if (!json_take_text(json_object_get(reply, "build"), "id", a, ret) || !ret->n)
		return err_set(e, RC_TIMEOUT, "StartBuild: the answer has no id");
	return RC_OK;
}

/* --- the port --- */

static bool is_protected(const struct aws_codebuild *b, struct str account)
{
	struct str rest = b->o.protected;

	while (rest.n)
		if (str_eq(str_trim(str_cut(&rest, ',')), account))
			return true;
	return false;
}

static enum rc check_call(const struct aws_codebuild *b, struct str account_id, struct str key, struct err *e)
{
	if (!str_is_digits(account_id, 12))
		return err_set(e, RC_INVALID, "an account id must have 12 digits, not '%.*s'", STR_ARG(account_id));
	if (!key.n || key.n > CLOUD_KEY_MAX)
		return err_set(e, RC_INVALID, "the key of a run must have 1 to %d bytes", CLOUD_KEY_MAX);
	if (is_protected(b, account_id))
		return err_set(e, RC_DENIED,
		               "account %.*s is one that the organisation is run from, which is never emptied",
		               STR_ARG(account_id));
	return RC_OK;
}

static enum rc start(struct cleaner *base, struct str account_id, struct str key, struct arena *a,
                     struct str *ret_run_id, struct err *e)
{
	struct aws_codebuild *b = CONTAINER_OF(base, struct aws_codebuild, base);
	struct keyed          k = { .build = { .key = key, .account_id = account_id } };
	struct str            found = STR("");
	enum rc               rc = check_call(b, account_id, key, e);

	if (rc || (rc = store_run(b->o.store, claim_key, &k, a, e)))
		return rc;
	if (k.is_known && k.build.build_id.n) {
		*ret_run_id = k.build.build_id;
		return RC_OK;
	}
	if (k.is_known && (rc = find_build(b, key, a, &found, e)))
		return rc;
	if (!found.n && (rc = ask_build(b, &k.build, a, &found, e)))
		return rc;
	if (found.n > AWS_BUILD_ID_MAX)
		return err_set(e, RC_CORRUPT, "StartBuild: an id of %zu bytes", found.n);
	k.build.build_id = found;
	if ((rc = store_run(b->o.store, note_build, &k, a, e)))
		return rc;
	*ret_run_id = found;
	return RC_OK;
}

/* The phase that failed, its words, and where the log is. */
static struct str why_failed(const json_t *build, struct str status, struct arena *a)
{
	const json_t *phase, *context;
	struct str    text = str_format(a, "build %.*s", STR_ARG(status)), name, result, message, link;
	size_t        i, k;

	json_array_foreach(json_object_get(build, "phases"), i, phase)
	{
		if (!json_get_text(phase, "phaseType", &name) || !json_get_text(phase, "phaseStatus", &result) ||
		    !result.n || str_eq(result, STR("SUCCEEDED")))
			continue;
		text = str_format(a, "%.*s; %.*s %.*s", STR_ARG(text), STR_ARG(name), STR_ARG(result));
		json_array_foreach(json_object_get(phase, "contexts"), k, context)
		{
			if (json_get_text(context, "message", &message) && message.n)
				text = str_format(a, "%.*s: %.*s", STR_ARG(text), STR_ARG(message));
		}
	}
	text = utf8_line(a, text, TEXT_BYTES);
	if (json_get_text(json_object_get(build, "logs"), "deepLink", &link) && link.n)
		text = str_format(a, "%.*s; log: %.*s", STR_ARG(text), STR_ARG(link));
	return utf8_line(a, text, 2 * TEXT_BYTES);
}

static struct cloud_run read_build(const json_t *build, struct str status, struct arena *a)
{
	if (str_eq(status, STR("IN_PROGRESS")))
		return (struct cloud_run){ .state = CLOUD_RUNNING };
	if (str_eq(status, STR("SUCCEEDED")))
		return (struct cloud_run){ .state = CLOUD_SUCCEEDED };
	return (struct cloud_run){ .state = CLOUD_FAILED, .text = why_failed(build, status, a) };
}

/* Asks for all others that are waited for too. NULL: there is no such build any more. */
static enum rc get_build(struct aws_codebuild *b, struct str id, int64_t now_ms, struct arena *a, json_t **ret,
                         struct err *e)
{
	CLEANUP(json_freep) json_t *ids = aws_builds_ids(b->waited_for, id, now_ms), *reply = NULL;
	json_t                     *list, *build;
	struct str                  name;
	size_t                      i;
	enum rc                     rc = get_build_list(b, json_dump(a, ids), a, &reply, e);

	if (rc)
		return rc;
	list = json_object_get(reply, "builds");
	aws_builds_hear(b->waited_for, id, list, now_ms);
	*ret = NULL;
	json_array_foreach(list, i, build)
	{
		if (!*ret && json_get_text(build, "id", &name) && str_eq(name, id))
			*ret = json_incref(build);
	}
	return RC_OK;
}

static enum rc check(struct cleaner *base, struct str run_id, struct arena *a, struct cloud_run *ret, struct err *e)
{
	struct aws_codebuild       *b = CONTAINER_OF(base, struct aws_codebuild, base);
	int64_t                     now_ms = clock_now(b->o.clock).ms;
	CLEANUP(json_freep) json_t *build = NULL;
	struct str                  status;
	enum rc                     rc;

	if (!run_id.n || run_id.n > AWS_BUILD_ID_MAX || str_has_control(run_id))
		return err_set(e, RC_NOT_FOUND, "that is not the id of a build");
	build = aws_builds_take(b->waited_for, run_id, now_ms);
	if (!build && (rc = get_build(b, run_id, now_ms, a, &build, e)))
		return rc;
	if (build && (!json_get_text(build, "buildStatus", &status) || !status.n))
		return err_set(e, RC_CORRUPT, "build %.*s has no status", STR_ARG(run_id));
	*ret = build ? read_build(build, status, a)
	             : (struct cloud_run){ .state = CLOUD_FAILED,
		                           .text = STR("CodeBuild does not have the build any more") };
	aws_builds_wait(b->waited_for, run_id, ret->state == CLOUD_RUNNING, now_ms);
	return RC_OK;
}

static const struct cleaner_ops ops = { start, check };

struct aws_codebuild *aws_codebuild_new(const struct aws_codebuild_options *o)
{
	struct aws_codebuild *b = mem_new(struct aws_codebuild);

	b->base.ops = &ops;
	b->o = *o;
	b->waited_for = aws_builds_new();
	return b;
}

void aws_codebuild_free(struct aws_codebuild *b)
{
	if (b)
		aws_builds_free(b->waited_for);
	free(b);
}

struct cleaner *aws_codebuild_cleaner(struct aws_codebuild *b)
{
	return &b->base;
}
