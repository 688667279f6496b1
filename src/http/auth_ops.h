/* auth_ops.h - the inside of sign-in, shared by session.c, auth_api.c and signin_page.c; nobody else includes this. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "domain/signin.h"
#include "http/api.h"
#include "http/ratelimit.h"
#include "http/session.h"
#include "service/service_accounts.h"

struct auth {
	struct auth_options o;
	struct arena        arena;        /* what lives as long as this */
	struct arena        secret_arena; /* of o.secrets */
	struct ratelimit   *by_pair;      /* a person's name from one address */
	struct ratelimit   *by_either;    /* the name alone, the address alone */
	uint64_t            hash_seed;
	unsigned            busy; /* calls that are with a worker */
};

/* What the Authorization header says, whatever it is good for. */
struct session_proof {
	bool                   is_service;
	struct jwt_session     session; /* a person */
	struct service_account account; /* a program */
};
MUST_CHECK enum rc session_read(struct request *r, struct session_proof *ret, struct err *e);

struct auth *auth_of(const struct request *r);
bool         auth_is_set_up(const struct auth *a);

/* A new session of this person, as a token in the request's arena. It lasts as long as the policy says. */
struct str auth_issue(struct request *r, const struct caller *c);

/* The page of our own. message may be empty; form is the token against forged forms. */
void signin_page_write(struct buf *b, struct str message, struct str email, struct str form);

/* The Content-Security-Policy of the page: nothing but its own style, and forms that go to us and end at the web app. */
struct str signin_page_policy(struct str web_app_url, struct arena *a);
