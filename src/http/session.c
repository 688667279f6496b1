/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - from an Authorization header to a caller.
 *
 * A bearer that begins with "lsk_" is the key of a service account, everything else a session's token. Nothing is looked up outside
 * the process: tokens carry their roles, keys are in the keyring.
 *
 * Always true:
 *   1. Without a secret there is no caller at all.                                                   [session_read()]
 *   2. A service account has only the roles that its scopes are worth for this very call.            [session_caller()]
 *
 * Not here: what a caller may do (the handlers), how he got his token (auth_api.c).
 */
#include "http/session.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "domain/policy.h"
#include "http/auth_ops.h"
#include "service/policy_store.h"

static_assert((int)ROLE_USER == (int)JWT_USER && (int)ROLE_MANAGER == (int)JWT_MANAGER &&
                      (int)ROLE_ADMIN == (int)JWT_ADMIN,
              "roles have the same numbers in tokens");

enum { PAIR_BURST = 10, EITHER_BURST = 60 };

/* --- life --- */

struct auth *auth_new(const struct auth_options *o)
{
	struct auth *a = mem_new(struct auth);

	a->o = *o;
	a->o.web_app_url = str_dup(&a->arena, o->web_app_url);
	while (a->o.web_app_url.n && a->o.web_app_url.p[a->o.web_app_url.n - 1] == '/')
		a->o.web_app_url.n--;
	auth_set_secrets(a, &o->secrets);
	a->by_pair = ratelimit_new(1, PAIR_BURST);
	a->by_either = ratelimit_new(1, EITHER_BURST);
	id_random(&a->hash_seed, sizeof(a->hash_seed));
	return a;
}

void auth_free(struct auth *a)
{
	if (!a)
		return;
	ratelimit_free(a->by_pair);
	ratelimit_free(a->by_either);
	arena_fini(&a->secret_arena);
	arena_fini(&a->arena);
	free(a);
}

void auth_set_secrets(struct auth *a, const struct jwt_secrets *secrets)
{
	struct arena       fresh = { 0 };
	struct jwt_secrets copy = { str_dup(&fresh, secrets->current), str_dup(&fresh, secrets->old),
		                    secrets->old_until };

	arena_fini(&a->secret_arena);
	a->secret_arena = fresh;
	a->o.secrets = copy;
}

struct auth *auth_of(const struct request *r)
{
	return api_options(r->api)->auth;
}

bool auth_is_set_up(const struct auth *a)
{
	return a && a->o.secrets.current.n >= JWT_SECRET_MIN;
}

static int64_t session_minutes(const struct request *r)
{
	const struct api_options *o = api_options(r->api);
	int64_t                   minutes = o->policy ? policy_current(o->policy)->session_minutes : 0;

	return minutes > 0 ? minutes : SESSION_MINUTES_DEFAULT;
}

struct str auth_issue(struct request *r, const struct caller *c)
{
	const struct auth *a = auth_of(r);
	int64_t            now = wall_sec(clock_now(a->o.clock));
	struct jwt_session s = { .email = c->email,
		                 .display_name = c->display_name,
		                 .user_name = c->user_name,
		                 .roles = c->roles,
		                 .issued_at = now,
		                 .expires_at = now + session_minutes(r) * 60 };

	return jwt_issue(&s, a->o.secrets.current, &r->call->arena);
}

/* --- a request's --- */

static enum rc read_bearer(const struct request *r, struct str *ret, struct err *e)
{
	size_t     times;
	struct str rest = http_header(&r->call->req, STR("Authorization"), &times);
	struct str scheme = str_cut(&rest, ' ');
	struct str token = str_trim(rest);

	if (times == 0)
		return err_set(e, RC_UNKNOWN, "no Authorization header; send 'Authorization: Bearer TOKEN'");
	if (times > 1 || !str_eq_nocase(scheme, STR("Bearer")) || token.n == 0)
		return err_set(e, RC_DENIED, "the Authorization header must be 'Bearer TOKEN' (and sent once)");
	*ret = token;
	return RC_OK;
}

enum rc session_read(struct request *r, struct session_proof *ret, struct err *e)
{
	struct auth *a = auth_of(r);
	struct wall  now;
	struct str   token;
	enum rc      rc;

	if (!auth_is_set_up(a))
		return err_set(e, RC_UNAVAILABLE, "sign-in is not set up here: LEASEHOLD_JWT_SECRET is missing");
	if ((rc = read_bearer(r, &token, e)))
		return rc;
	now = clock_now(a->o.clock);
	ret->is_service = str_starts_with(token, STR(SERVICE_KEY_PREFIX));
	if (ret->is_service)
		return keyring_find(a->o.keyring, token, now.ms, &r->call->arena, &ret->account, e);
	return jwt_read(token, &a->o.secrets, wall_sec(now), &r->call->arena, &ret->session, e);
}

static struct caller caller_of(const struct jwt_session *s)
{
	return (struct caller){
		.email = s->email, .display_name = s->display_name, .user_name = s->user_name, .roles = s->roles
	};
}

bool session_of_token(const struct auth *a, struct str token, struct arena *arena, struct caller *ret,
                      int64_t *ret_left_sec)
{
	struct jwt_session s;
	int64_t            now;

	if (!auth_is_set_up(a))
		return false;
	now = wall_sec(clock_now(a->o.clock));
	if (jwt_read(token, &a->o.secrets, now, arena, &s, NULL))
		return false;
	*ret = caller_of(&s);
	*ret_left_sec = s.expires_at - now;
	return true;
}

static enum rc service_caller(const struct request *r, const struct service_account *account, struct caller *ret,
                              struct err *e)
{
	const struct http_request *req = &r->call->req;
	struct str                 method = req->is_head ? STR("GET") : req->method;
	unsigned                   roles = service_scope_roles(account->scopes, method, req->path);

	if (!roles)
		return err_set(e, RC_DENIED, "the scopes of service account %.*s do not reach here",
		               STR_ARG(account->name));
	*ret = (struct caller){
		.email = account->email, .display_name = account->name, .roles = roles, .request_id = str_from(r->id)
	};
	return RC_OK;
}

enum rc session_caller(struct request *r, struct caller *ret, struct err *e)
{
	struct session_proof proof;
	enum rc              rc = session_read(r, &proof, e);

	if (rc)
		return rc;
	if (proof.is_service)
		return service_caller(r, &proof.account, ret, e);
	*ret = caller_of(&proof.session);
	ret->request_id = str_from(r->id);
	return RC_OK;
}
