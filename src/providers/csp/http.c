/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.c - calls the vendor's API.
 *
 *   list    GET    {base}/current_user/accounts
 *   delete  DELETE {base}/sandbox/accounts/{uuid}     uuid = last path part of external_id
 *
 * A status becomes what the caller can do about it [judge()]: 408, 429 and 5xx are trouble that passes, another 4xx is
 * a refusal. A status we do not expect (a redirect, say) counts as trouble, never as done. Deleting something that is
 * gone (404) is done.
 *
 * The vendor's error bodies stay out of messages: they have been seen to hold another service's whole HTML page.
 *
 * Not here: retries, the circuit breaker (csp_breaker.c), what listed accounts become (service/).
 */
#include "providers/csp/http.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "domain/ports/csp.h"
#include "net/fetch.h"
#include "providers/csp/accounts.h"

enum { LIST_MAX = 64 << 20, DELETE_ANSWER_MAX = 1 << 20, URL_MAX = 4096 };

struct csp_http {
	struct csp              csp;
	struct csp_http_options o; /* texts in the arena; the base URL without a slash at its end */
	const char             *authorization;
	struct arena            arena;
};

static enum rc call(const struct csp_http *h, const char *method, const char *url, size_t max_bytes, struct arena *a,
                    struct fetch_reply *ret, struct err *e)
{
	struct fetch_request req = {
		.method = method,
		.url = url,
		.headers = { h->authorization, "Accept: application/json" },
		.connect_timeout_ms = h->o.connect_timeout_ms,
		.total_timeout_ms = h->o.total_timeout_ms,
		.max_bytes = max_bytes,
		.ca_file = h->o.ca_file,
	};
	enum rc rc = fetch(&req, a, ret, e);
	int64_t sec;

	if (!rc && h->o.on_date && fetch_date(fetch_header(ret, "Date"), &sec))
		h->o.on_date(sec, h->o.on_date_arg);
	return rc;
}

/* What a status that is not success means for the caller. */
static enum rc judge(const char *what, int status, struct err *e)
{
	if (status == 408 || status == 429 || status >= 500)
		return err_set(e, RC_UNAVAILABLE, "%s: the CSP answered %d; try again later", what, status);
	if (status == 401 || status == 403)
		return err_set(e, RC_DENIED, "%s: the CSP answered %d; check CSP_API_TOKEN and its rights", what,
		               status);
	if (status >= 400)
		return err_set(e, RC_DENIED, "%s: the CSP answered %d", what, status);
	return err_set(e, RC_UNAVAILABLE, "%s: the CSP answered %d, which is not expected; check CSP_BASE_URL", what,
	               status);
}

static void warn_of_skipped(const struct csp_listing *l)
{
	struct log_field malformed[] = { LOG_NUM("skipped", l->malformed), LOG_NUM("kept", l->count),
		                         LOG_STR("first", l->first_problem) };
	struct log_field duplicates[] = { LOG_NUM("skipped", l->duplicates), LOG_NUM("kept", l->count) };

	if (l->malformed)
		log_write(LOG_WARNING, "csp", malformed, ARRAY_LEN(malformed), "accounts skipped that make no sense");
	if (l->duplicates)
		log_write(LOG_WARNING, "csp", duplicates, ARRAY_LEN(duplicates),
		          "accounts skipped whose sandbox id or id an earlier one has");
}

static enum rc list(struct csp *c, struct arena *a, struct csp_account **ret, size_t *ret_count, struct err *e)
{
	struct csp_http   *h = CONTAINER_OF(c, struct csp_http, csp);
	struct arena       scratch = { 0 }; /* the answer may be large: not for the caller's arena */
	struct str         url = str_format(&scratch, "%s/current_user/accounts", h->o.base_url);
	struct fetch_reply reply = { 0 };
	struct csp_listing listing;
	enum rc            rc = call(h, "GET", url.p, LIST_MAX, &scratch, &reply, e);

	if (rc == RC_TOO_LARGE)
		rc = err_wrap(e, RC_CORRUPT, "list of accounts");
	if (!rc && reply.status != 200)
		rc = judge("list of accounts", reply.status, e);
	if (!rc)
		rc = csp_read_accounts(reply.body, a, &listing, e);
	arena_fini(&scratch);
	if (rc)
		return rc;
	warn_of_skipped(&listing);
	*ret = listing.accounts;
	*ret_count = listing.count;
	return RC_OK;
}

/* An empty part or dots would address something else than one account. */
static enum rc delete_url(const struct csp_http *h, struct str external_id, struct buf *ret, struct err *e)
{
	const char *slash = external_id.n ? memrchr(external_id.p, '/', external_id.n) : NULL;
	struct str  uuid = slash ? str_skip(external_id, (size_t)(slash + 1 - external_id.p)) : external_id;

	if (uuid.n == 0 || str_eq(uuid, STR(".")) || str_eq(uuid, STR("..")))
		return err_set(e, RC_INVALID, "delete account: external id '%.*s' must end with the account's own id",
		               STR_ARG(external_id));
	buf_add_text(ret, h->o.base_url);
	buf_add_text(ret, "/sandbox/accounts/");
	fetch_escape(ret, uuid);
	if (ret->is_full)
		return err_set(e, RC_INVALID, "delete account: its URL is longer than %d bytes", URL_MAX);
	return RC_OK;
}

/* 200, 204 and 404 (already gone) are done, with no body or one in JSON: a page, whatever its status, comes from
 * somebody else on the way. */
static enum rc judge_deletion(struct str external_id, const struct fetch_reply *reply, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;

	if (reply->status != 200 && reply->status != 204 && reply->status != 404)
		return err_wrap(e, judge("delete account", reply->status, e), "%.*s", STR_ARG(external_id));
	if (str_trim(reply->body).n == 0 || json_parse(reply->body, &body, NULL) == RC_OK)
		return RC_OK;
	return err_set(
	        e, RC_UNAVAILABLE,
	        "%.*s: delete account: the CSP answered %d with something that is not JSON; is there a proxy on the "
	        "way? check CSP_BASE_URL",
	        STR_ARG(external_id), reply->status);
}

static enum rc delete_account(struct csp *c, struct str external_id, struct err *e)
{
	struct csp_http                 *h = CONTAINER_OF(c, struct csp_http, csp);
	CLEANUP(arena_fini) struct arena scratch = { 0 };
	struct fetch_reply               reply = { 0 };
	CLEANUP(buf_fini) struct buf     url = BUF(URL_MAX);
	enum rc                          rc;

	rc = delete_url(h, external_id, &url, e);
	if (!rc)
		rc = call(h, "DELETE", url.p, DELETE_ANSWER_MAX, &scratch, &reply, e);
	if (rc == RC_TOO_LARGE)
		rc = err_wrap(e, RC_UNAVAILABLE, "delete account");
	if (!rc)
		rc = judge_deletion(external_id, &reply, e);
	return rc;
}

static void close_http(struct csp *c)
{
	struct csp_http *h = CONTAINER_OF(c, struct csp_http, csp);

	arena_fini(&h->arena);
	free(h);
}

static const struct csp_ops ops = { .name = "http", .list = list, .delete = delete_account, .close = close_http };

struct csp *csp_http_open(const struct csp_http_options *options)
{
	struct csp_http *h = mem_new(struct csp_http);
	struct str       base = str_from(options->base_url);

	while (base.n && base.p[base.n - 1] == '/')
		base.n--;
	h->csp.ops = &ops;
	h->o = *options;
	h->o.base_url = str_dup(&h->arena, base).p;
	h->o.ca_file = options->ca_file ? str_dup(&h->arena, str_from(options->ca_file)).p : NULL;
	h->authorization = str_format(&h->arena, "Authorization: Token %s", options->token).p;
	return &h->csp;
}
