/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.c - from an Authorization header to a caller.
 *
 * A bearer that begins with "lsk_" is the key of a service account, everything else a session's token. Nothing is
 * looked up outside the process: tokens carry their roles, keys are in the keyring.
 *
 * Always true:
 *   1. Without a secret there is no caller at all.                                                   [session_read()]
 *   2. A service account has only the roles that its scopes are worth for this very call.            [auth_caller()]
 *
 * Not here: what a caller may do (the handlers), how he got his token (auth_api.c).
 */
#include "http/api/auth.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "domain/ports/identity.h"
#include "http/api/api.h"
#include "http/api/ratelimit.h"

static_assert((int)ROLE_USER == (int)JWT_USER && (int)ROLE_MANAGER == (int)JWT_MANAGER &&
                      (int)ROLE_ADMIN == (int)JWT_ADMIN,
              "roles have the same numbers in tokens");

enum { PAIR_BURST = 10, STRICT_BURST = 3, EITHER_BURST = 60 };

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
	a->by_pair_strictly = ratelimit_new(1, STRICT_BURST);
	a->by_either = ratelimit_new(1, EITHER_BURST);
	id_random(&a->hash_seed, sizeof(a->hash_seed));
	return a;
}

void auth_free(struct auth *a)
{
	if (!a)
		return;
	ratelimit_free(a->by_pair);
	ratelimit_free(a->by_pair_strictly);
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

bool auth_is_set_up(const struct auth *a)
{
	return a && a->o.secrets.current.n >= JWT_SECRET_MIN;
}

/* --- a request's --- */

enum rc auth_read_bearer(const struct http_request *req, enum rc otherwise, struct str *ret, struct err *e)
{
	size_t     times;
	struct str rest = http_header(req, STR("Authorization"), &times);
	struct str scheme = str_cut(&rest, ' ');
	struct str token = str_trim(rest);

	if (times == 0)
		return err_set(e, RC_UNKNOWN, "no Authorization header; send 'Authorization: Bearer TOKEN'");
	if (times > 1 || !str_eq_nocase(scheme, STR("Bearer")) || token.n == 0)
		return err_set(e, otherwise, "the Authorization header must be 'Bearer TOKEN' (and sent once)");
	*ret = token;
	return RC_OK;
}

enum rc session_read(struct request *r, struct session_proof *ret, struct err *e)
{
	struct auth *a = r->api->options.auth;
	struct wall  now;
	struct str   token;
	enum rc      rc;

	if (!auth_is_set_up(a))
		return err_set(e, RC_UNAVAILABLE, "sign-in is not set up here: LEASEHOLD_JWT_SECRET is missing");
	if ((rc = auth_read_bearer(&r->call->req, RC_DENIED, &token, e)))
		return rc;
	now = clock_now(a->o.clock);
	ret->is_service = str_starts_with(token, STR(SERVICE_KEY_PREFIX));
	if (ret->is_service)
		return keyring_find(a->o.keyring, token, now.ms, &r->call->arena, &ret->account, e);
	return jwt_read(token, &a->o.secrets, wall_sec(now), &r->call->arena, &ret->session, e);
}

bool auth_find_sender(struct request *r, struct str *ret, bool *ret_is_tried)
{
	struct session_proof proof;

	*ret_is_tried = request_header_value(r, STR("Authorization")).n > 0;
	if (!*ret_is_tried || session_read(r, &proof, NULL))
		return false;
	*ret = proof.is_service ? proof.account.email : proof.session.email;
	return true;
}

static struct caller caller_of(const struct jwt_session *s)
{
	return (struct caller){
		.email = s->email, .display_name = s->display_name, .user_name = s->user_name, .roles = s->roles
	};
}

bool auth_caller_of_token(const struct auth *a, struct str token, struct arena *arena, struct caller *ret,
                          struct err *e)
{
	struct jwt_session s;

	if (!auth_is_set_up(a) || jwt_read(token, &a->o.secrets, wall_sec(clock_now(a->o.clock)), arena, &s, e))
		return false;
	*ret = caller_of(&s);
	return true;
}

enum rc auth_caller(struct request *r, struct caller *ret, struct err *e)
{
	const struct http_request    *req = &r->call->req;
	struct session_proof          proof;
	const struct service_account *account = &proof.account;
	unsigned                      roles;
	enum rc                       rc = session_read(r, &proof, e);

	if (rc)
		return rc;
	if (proof.is_service) {
		roles = service_scope_roles(account->scopes, req->is_head ? STR("GET") : req->method, req->path);
		if (!roles)
			return err_set(e, RC_DENIED, "the scopes of service account %.*s do not cover this",
			               STR_ARG(account->name));
		*ret = (struct caller){ .email = account->email, .display_name = account->name, .roles = roles };
	} else {
		*ret = caller_of(&proof.session);
	}
	ret->request_id = str_from(r->id);
	return RC_OK;
}

enum rc person_find(struct request *r, struct str email, struct caller *ret, struct err *e)
{
	struct identity *people = r->api->options.identity;
	struct err       cause = { 0 };
	enum rc          rc;

	if (!people)
		return err_set(e, RC_UNAVAILABLE, "no directory of people is set up");
	rc = people->ops->find(people, email, &r->call->arena, ret, &cause);
	if (rc == RC_NOT_FOUND)
		return err_set(e, rc, "%.*s is not in the directory of people", STR_ARG(email));
	return rc ? err_set(e, rc, "%s", cause.msg) : RC_OK;
}
