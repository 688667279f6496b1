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
 * Not here: retries, the circuit breaker (guard.c), what listed accounts become (service/).
 */
#include "providers/csp/http.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "domain/csp.h"
#include "net/fetch.h"
#include "providers/csp/accounts.h"

enum { LIST_MAX = 64 << 20, DELETE_ANSWER_MAX = 1 << 20, URL_MAX = 4096 };

struct csp_http {
	struct csp csp;
	char      *base_url; /* without a slash at its end */
	char      *authorization;
	char      *ca_file;
	long       connect_timeout_ms;
	long       total_timeout_ms;
};

static enum rc call(const struct csp_http *h, const char *method, const char *url, size_t max_bytes, struct arena *a,
                    struct fetch_reply *ret, struct err *e)
{
	struct fetch_request req = {
		.method = method,
		.url = url,
		.headers = { h->authorization, "Accept: application/json" },
		.connect_timeout_ms = h->connect_timeout_ms,
		.total_timeout_ms = h->total_timeout_ms,
		.max_bytes = max_bytes,
		.ca_file = h->ca_file,
	};

	return fetch(&req, a, ret, e);
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
	if (l->malformed) {
		struct log_field fields[] = { LOG_NUM("skipped", l->malformed), LOG_NUM("kept", l->count),
			                      LOG_STR("first", l->first_problem) };

		log_write(LOG_WARNING, "csp", fields, ARRAY_LEN(fields), "accounts skipped that make no sense");
	}
	if (l->duplicates) {
		struct log_field fields[] = { LOG_NUM("skipped", l->duplicates), LOG_NUM("kept", l->count) };

		log_write(LOG_WARNING, "csp", fields, ARRAY_LEN(fields),
		          "accounts skipped whose sandbox id an earlier one has");
	}
}

static enum rc list(struct csp *c, struct arena *a, struct csp_account **ret, size_t *ret_count, struct err *e)
{
	struct csp_http   *h = CONTAINER_OF(c, struct csp_http, csp);
	struct arena       scratch = { 0 }; /* the answer may be large: not for the caller's arena */
	struct str         url = str_format(&scratch, "%s/current_user/accounts", h->base_url);
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

static struct str last_part(struct str path)
{
	for (size_t i = path.n; i > 0; i--)
		if (path.p[i - 1] == '/')
			return str_of(path.p + i, path.n - i);
	return path;
}

/* An empty part or dots would address something else than one account. */
static enum rc delete_url(const struct csp_http *h, struct str external_id, struct buf *ret, struct err *e)
{
	struct str uuid = last_part(external_id);

	if (uuid.n == 0 || str_eq(uuid, STR(".")) || str_eq(uuid, STR("..")))
		return err_set(e, RC_INVALID, "delete account: external id '%.*s' must end with the account's own id",
		               STR_ARG(external_id));
	buf_add_text(ret, h->base_url);
	buf_add_text(ret, "/sandbox/accounts/");
	fetch_escape(ret, uuid);
	if (ret->is_full)
		return err_set(e, RC_INVALID, "delete account: its URL is longer than %d bytes", URL_MAX);
	return RC_OK;
}

static enum rc delete_account(struct csp *c, struct str external_id, struct err *e)
{
	struct csp_http   *h = CONTAINER_OF(c, struct csp_http, csp);
	struct arena       scratch = { 0 };
	struct fetch_reply reply = { 0 };
	struct buf         url;
	enum rc            rc;

	buf_init(&url, URL_MAX);
	rc = delete_url(h, external_id, &url, e);
	if (!rc)
		rc = call(h, "DELETE", url.p, DELETE_ANSWER_MAX, &scratch, &reply, e);
	if (rc == RC_TOO_LARGE)
		rc = err_wrap(e, RC_UNAVAILABLE, "delete account");
	if (!rc && reply.status != 200 && reply.status != 202 && reply.status != 204 && reply.status != 404)
		rc = err_wrap(e, judge("delete account", reply.status, e), "%.*s", STR_ARG(external_id));
	buf_fini(&url);
	arena_fini(&scratch);
	return rc;
}

static void close_http(struct csp *c)
{
	struct csp_http *h = CONTAINER_OF(c, struct csp_http, csp);

	free(h->base_url);
	free(h->authorization);
	free(h->ca_file);
	free(h);
}

static const struct csp_ops ops = { .name = "http", .list = list, .delete = delete_account, .close = close_http };

struct csp *csp_http_open(const struct csp_http_options *options)
{
	struct csp_http *h = mem_new(struct csp_http);
	struct buf       header;

	h->csp.ops = &ops;
	h->base_url = mem_strdup(options->base_url);
	for (size_t n = strlen(h->base_url); n > 0 && h->base_url[n - 1] == '/'; n--)
		h->base_url[n - 1] = '\0';
	buf_init(&header, strlen(options->token) + 64);
	buf_addf(&header, "Authorization: Token %s", options->token);
	h->authorization = header.p; /* taken over: never freed by the buffer */
	h->ca_file = options->ca_file ? mem_strdup(options->ca_file) : NULL;
	h->connect_timeout_ms = options->connect_timeout_ms;
	h->total_timeout_ms = options->total_timeout_ms;
	return &h->csp;
}
